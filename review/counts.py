"""How many items are listed, in all and in groups: counted once for each state that a queue is in."""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from sqlalchemy import Connection

from vouchgate.ingest.rules import Rule
from vouchgate.storage.identity import owners
from vouchgate.storage.queue import overview
from vouchgate.storage.queue.overview import Facets

_OWNERS = 1000  # whose counts are remembered: those looked at lately
# Of a longer queue the groups are counted only so often: a page must not cost more for each claim that waits, and in
# so many one more or less tells nobody anything. How many wait in all is always as it is.
_LONG = 1000
_SECONDS = 5.0
_AHEAD = timedelta(minutes=1)  # of one request before another: more is a clock that was put back


class QueueCounts:
    """What was counted lately. Every change of a queue adds to its owner's log, so the number of the last entry
    tells whether a count still holds. Safe to share between threads."""

    def __init__(self, long: int = _LONG) -> None:
        """`long`: of so many items the groups are counted each time."""
        self._long = long
        self._known: OrderedDict[str, tuple[Facets, float, datetime]] = OrderedDict()
        self._lock = threading.Lock()

    def counts_of(self, connection: Connection, owner_id: str, now: datetime) -> Facets:
        """The counts of one owner's queue, as it is in this reading transaction; the groups of one in which more than
        `long` items wait as they were up to _SECONDS ago."""
        log_seq, waiting = owners.log_ends(connection, [owner_id]).get(owner_id, (0, 0))
        with self._lock:
            known, counted_at, as_of = self._known.get(owner_id, (None, 0.0, now))
        if known is not None and (known.back_at is not None and known.back_at <= now):
            known = None  # a snooze is over, of which no log tells
        if now < as_of - _AHEAD:
            known = None  # the clock was ahead: snoozes were over then that are not
        if known is not None and known.seq == log_seq:
            return known
        many = known is not None and min(known.waiting, waiting) > self._long
        if known is not None and many and time.monotonic() - counted_at < _SECONDS:
            return replace(known, waiting=max(0, waiting - known.away), seq=log_seq)
        facets = overview.facets(connection, owner_id, waiting, log_seq, now)
        with self._lock:
            self._known[owner_id] = facets, time.monotonic(), now
            self._known.move_to_end(owner_id)
            if len(self._known) > _OWNERS:
                self._known.popitem(last=False)
        return facets


def sum_facets(found: Sequence[Facets]) -> Facets:
    """The counts of several queues, or of none, as those of one."""
    if len(found) == 1:
        return found[0]
    by_rule, by_sender, by_cited = Counter[Rule](), Counter[str](), Counter[str]()
    for one in found:
        by_rule.update(one.by_rule)
        by_sender.update(one.by_sender)
        by_cited.update(one.by_cited)
    return Facets(
        sum(one.waiting for one in found),
        dict(by_rule.most_common()),
        dict(by_sender.most_common(overview.MOST_GROUPS)),
        dict(by_cited.most_common(overview.MOST_GROUPS)),
        sum(one.seq for one in found),
        sum(one.away for one in found),
    )
