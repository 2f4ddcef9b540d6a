"""How many items wait, in all and in groups: counted once for each state that a queue is in."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Sequence

from sqlalchemy import Connection

from vouchgate.ingest.rules import Rule
from vouchgate.storage.identity import owners
from vouchgate.storage.queue import overview
from vouchgate.storage.queue.overview import Facets

_OWNERS = 1000  # whose counts are remembered: those looked at lately


class QueueCounts:
    """What was counted lately. Every change of a queue adds to its owner's log, so the number of the last entry
    tells whether a count still holds. Safe to share between threads."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Facets] = OrderedDict()
        self._lock = threading.Lock()

    def counts_of(self, connection: Connection, owner_id: str) -> Facets:
        """The counts of one owner's queue, as it is in this reading transaction."""
        log_seq, waiting = owners.log_ends(connection, [owner_id]).get(owner_id, (0, 0))
        with self._lock:
            known = self._known.get(owner_id)
        if known is not None and known.seq == log_seq:
            return known
        facets = overview.facets(connection, owner_id, waiting, log_seq)
        with self._lock:
            self._known[owner_id] = facets
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
    )
