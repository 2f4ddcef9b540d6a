"""The figures of a digest, read in one state of the database."""

from __future__ import annotations

from datetime import datetime, timedelta
from math import ceil

from sqlalchemy import Connection

from vouchgate.ingest.scoring.priority import NEAR_EXPIRY
from vouchgate.review.digests.text import MOST_SHOWN, DigestFigures
from vouchgate.storage.identity import owners
from vouchgate.storage.outgoing import webhooks
from vouchgate.storage.queue import overview, pending
from vouchgate.storage.queue.pending import QueueFilter

_HOUR = timedelta(hours=1)
_MOMENT = timedelta(minutes=5)  # a digest that comes a little late is still about its hours


def figures_of(
    connection: Connection, owner_id: str, *, since: datetime, page: str | None, now: datetime
) -> DigestFigures:
    """The figures of one owner, all of the one state that this reading transaction sees; what happened, `since`
    then."""
    log_seq, waiting = owners.log_ends(connection, [owner_id]).get(owner_id, (0, 0))
    wanted = QueueFilter(owners=frozenset({owner_id}), limit=MOST_SHOWN)
    return DigestFigures(
        owner_id=owner_id,
        at=now,
        hours=max(1, ceil((now - since - _MOMENT) / _HOUR)),
        waiting=waiting,
        by_rule=overview.facets(connection, owner_id, waiting, log_seq, None).by_rule,
        oldest=overview.oldest_wait_since(connection, owner_id),
        expiring=overview.expiring(connection, owner_id, now + NEAR_EXPIRY),
        first=pending.search(connection, wanted),
        happened=overview.count_events(connection, owner_id, since, log_seq),
        failing=webhooks.failing(connection, owner_id),
        page=page,
    )
