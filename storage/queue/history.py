"""What became of claims that waited: those that were decided, the last first."""

from __future__ import annotations

from datetime import UTC, datetime

from pydantic import Field
from sqlalchemy import ColumnElement, Connection, select, tuple_

from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.claims.waiting import PendingMemory, ReviewStatus
from vouchgate.storage.queue import pending
from vouchgate.storage.queue import search as search_terms
from vouchgate.storage.queue.pending import TABLE, items_of
from vouchgate.storage.queue.query import NO_QUERY, Query

_LATELY = 1000  # decisions: some milliseconds


class HistoryFilter(Frozen):
    """Which decided items to list. What is None does not restrict; `until` is not in it."""

    status: ReviewStatus | None = None
    by: str | None = None  # id of the principal that decided
    since: datetime | None = None
    until: datetime | None = None
    query: Query = NO_QUERY
    me: str = ""  # as in QueueFilter, and so is `now`
    now: datetime = Field(default_factory=lambda: datetime.now(UTC))


EVERYTHING = HistoryFilter()


def history(
    connection: Connection,
    owners: frozenset[str],
    *,
    wanted: HistoryFilter = EVERYTHING,
    after: str | None,
    limit: int,
) -> list[PendingMemory]:
    """Items of these owners that do not wait any more, the last decided first.

    `after` is the id of the last item of the page before. One whose decision was taken back since has no place
    here any more; then the list is given from its beginning.
    """
    at = TABLE.c.decided_at
    conditions: list[ColumnElement[bool]] = [
        at.is_not(None),
        pending.THERE,
        *search_terms.conditions(wanted.query, me=wanted.me, now=wanted.now),
    ]
    if wanted.status is not None:
        conditions.append(TABLE.c.status == wanted.status.value)
    if wanted.by is not None:
        conditions.append(TABLE.c.decided_by == wanted.by)
    if wanted.since is not None:
        conditions.append(at >= wanted.since)
    if wanted.until is not None:
        conditions.append(at < wanted.until)
    if after is not None:
        last = pending.place_of(connection, after, owners=owners)
        if last is None:
            return []
        if last.decided_at is not None:
            conditions.append(tuple_(at, TABLE.c.id) < tuple_(last.decided_at, last.id))
    listing = select(TABLE).where(*conditions).order_by(at.desc(), TABLE.c.id.desc())
    listings = (listing.where(TABLE.c.owner_id == owner_id) for owner_id in owners)
    items = items_of(connection, listings, wanted.query, limit)
    items.sort(key=lambda item: (item.decided_at or item.created_at, item.id), reverse=True)
    return items[:limit]


def deciders(connection: Connection, owner_id: str) -> list[str]:
    """Who decided something of the owner's lately, of the last _LATELY decisions."""
    at = TABLE.c.decided_at
    last = select(TABLE.c.decided_by).where(TABLE.c.owner_id == owner_id, at.is_not(None))
    lately = last.order_by(at.desc(), TABLE.c.id.desc()).limit(_LATELY).subquery()
    return sorted(found for (found,) in connection.execute(select(lately.c.decided_by).distinct()) if found)
