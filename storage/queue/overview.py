"""Figures about queues, for those who run the service and for an owner's digest. Nothing here reads a claim's text.

Of what waits, every statement reads as many rows as wait, which the policy bounds; of the log, a stretch at its end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, Table, bindparam, case, func, or_, select

from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.waiting import ReviewStatus
from vouchgate.ingest.rules import Rule
from vouchgate.storage.columns import UtcTime
from vouchgate.storage.log.chain import TABLE as LOG
from vouchgate.storage.queue.pending import TABLE as PENDING
from vouchgate.storage.sql import among
from vouchgate.storage.tables.claims import QueueTotalRow

_TOTAL: Table = QueueTotalRow.metadata.tables["queue_total"]
MOST_ENTRIES = 100_000  # of one owner's log, from its end, that are counted: some 50 ms

_WAITING_OF = (PENDING.c.owner_id == bindparam("of_owner"), PENDING.c.status == ReviewStatus.PENDING.value)
_HOW_MANY = func.count().label("how_many")
_COUNTS = {
    column.name: select(column, _HOW_MANY)
    .where(*_WAITING_OF, column.is_not(None))
    .group_by(column)
    .order_by(_HOW_MANY.desc(), column)
    .limit(bindparam("most"))
    for column in (PENDING.c.rule, PENDING.c.submitted_by, PENDING.c.cited)
}
# Read from the index `pending_away`.
_AWAY_ROWS = select(
    PENDING.c.rule, PENDING.c.submitted_by, PENDING.c.cited, PENDING.c.sent_back_at, PENDING.c.snoozed_until
).where(*_WAITING_OF, or_(PENDING.c.snoozed_until.is_not(None), PENDING.c.sent_back_at.is_not(None)))
_AWAY = (
    select(PENDING.c.owner_id, func.count())
    .where(
        among(PENDING.c.owner_id, "owner_ids"),
        PENDING.c.status == ReviewStatus.PENDING.value,
        or_(PENDING.c.snoozed_until > bindparam("now", type_=UtcTime), PENDING.c.sent_back_at.is_not(None)),
    )
    .group_by(PENDING.c.owner_id)
)
_TOTAL_WAITING = select(_TOTAL.c.pending).where(_TOTAL.c.id == 1)
_OLDEST = (
    select(PENDING.c.created_at)
    .where(PENDING.c.status == bindparam("pending"))
    .order_by(PENDING.c.expires_at)
    .limit(1)
)

MOST_GROUPS = 20  # of one kind that are counted; there are fewer rules than that

_WAITS = PENDING.c.status == ReviewStatus.PENDING.value
_OF_OWNER = PENDING.c.owner_id == bindparam("of_owner")


@dataclass(frozen=True, slots=True)
class Facets:
    """How many items are listed, in all and in each group: what is snoozed or sent back is `away`. Of senders and of
    things cited, the largest groups only."""

    waiting: int
    by_rule: dict[Rule, int]
    by_sender: dict[str, int]  # id of a principal
    by_cited: dict[str, int]  # key of the first thing cited; an item that cites nothing is in no such group
    seq: int  # number of the owner's last log entry: two counts with the same one are the same, until `back_at`
    away: int = 0
    back_at: datetime | None = None  # when the first snooze ends


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """What waits over all owners, without a name of any. The four ages add up to what waits; an item past its time
    that no sweep has met yet counts as one that expires soon."""

    owners: int  # that have something waiting
    largest: int  # items of the owner who has most
    expiring: int  # within the time asked for
    under_1h: int  # by how long they have waited
    under_1d: int
    under_7d: int
    older: int


def queue_figures(connection: Connection, now: datetime, soon: timedelta) -> QueueFigures:
    """The figures of all queues at `now`; `soon` is within which time an item counts as expiring."""
    hour, day, week = (now - timedelta(hours=hours) for hours in (1, 24, 24 * 7))
    created = PENDING.c.created_at
    kinds = {
        "expiring": PENDING.c.expires_at <= now + soon,
        "under_1h": created > hour,
        "under_1d": (created <= hour) & (created > day),
        "under_7d": (created <= day) & (created > week),
        "older": created <= week,
    }
    # By owner first, so that the largest queue is known, and from the index `pending_due`: of a queue that is
    # empty, an index by owner still has everything that ever waited.
    each = (
        select(
            func.count().label("items"),
            *(func.sum(case((is_so, 1), else_=0)).label(n) for n, is_so in kinds.items()),
        )
        .where(_WAITS)
        .group_by(PENDING.c.owner_id)
        .subquery()
    )
    row = connection.execute(
        select(func.count(), func.max(each.c["items"]), *(func.sum(each.c[name]) for name in kinds))
    ).one()
    return QueueFigures(*(int(value or 0) for value in row))


def oldest_wait_since(connection: Connection, owner_id: str) -> datetime | None:
    """Since when the owner's oldest item waits; None when nothing does."""
    statement = select(PENDING.c.created_at).where(_OF_OWNER, _WAITS).order_by(PENDING.c.id).limit(1)
    found: datetime | None = connection.scalar(statement, {"of_owner": owner_id})
    return found


def expiring(connection: Connection, owner_id: str, by: datetime) -> int:
    """How many of the owner's items will have expired `by` then, if nobody rules on them."""
    statement = select(func.count()).select_from(PENDING).where(_OF_OWNER, _WAITS, PENDING.c.expires_at <= by)
    return connection.scalar(statement, {"of_owner": owner_id}) or 0


@dataclass(frozen=True, slots=True)
class EventCounts:
    """How often what happened, as the owner's log has it. Not `complete`: of the last MOST_ENTRIES entries only."""

    counts: Mapping[Action, int]
    complete: bool


def count_events(
    connection: Connection, owner_id: str, since: datetime, log_seq: int, most: int = MOST_ENTRIES
) -> EventCounts:
    """What happened `since` then; `log_seq` is the number of the owner's last entry."""
    first = log_seq - most
    rows = connection.execute(
        select(LOG.c.action, func.count().label("times"), func.min(LOG.c.seq).label("first"))
        .where(LOG.c.owner_id == owner_id, LOG.c.seq > first, LOG.c.at >= since)
        .group_by(LOG.c.action)
    ).all()
    counts = {Action(row.action): row.times for row in rows}
    return EventCounts(counts, first <= 0 or all(row.first > first + 1 for row in rows))


def away(connection: Connection, owner_ids: Collection[str], now: datetime) -> dict[str, int]:
    """By owner, how many items are snoozed or sent back; who has none is left out."""
    return {row[0]: row[1] for row in connection.execute(_AWAY, {"owner_ids": owner_ids, "now": now})}


def facets(connection: Connection, owner_id: str, waiting: int, log_seq: int, now: datetime | None) -> Facets:
    """Counts an owner's items in groups, those that are listed, or (`now` is None) those that are away too: all their
    entries in three indexes, so some milliseconds for ten thousand. How many there are, and the end of the log, the
    caller has read (`storage.identity.owners.log_ends`)."""
    rows = [] if now is None else connection.execute(_AWAY_ROWS, {"of_owner": owner_id}).all()
    snoozed = [
        row for row in rows if row.sent_back_at is None and now is not None and row.snoozed_until > now
    ]
    gone = [row for row in rows if row.sent_back_at is not None] + snoozed
    groups = {}
    for name, statement in _COUNTS.items():
        fewer = Counter(row._mapping[name] for row in gone)
        counted = connection.execute(statement, {"of_owner": owner_id, "most": MOST_GROUPS})
        left = {row[0]: row.how_many - fewer[row[0]] for row in counted}
        groups[name] = {group: count for group, count in left.items() if count > 0}
    return Facets(
        max(0, waiting - len(gone)),
        groups["rule"],
        groups["submitted_by"],
        groups["cited"],
        log_seq,
        len(gone),
        min((row.snoozed_until for row in snoozed), default=None),
    )


def waiting(connection: Connection, now: datetime) -> tuple[int, float]:
    """How many items wait over all owners, and for how many seconds the oldest has (0 when none does).

    The count is the one that the limits are held against; the age is read through an index on the status and
    the time of expiry, whose earliest row is the oldest while one policy is in force.
    """
    count = connection.scalar(_TOTAL_WAITING) or 0
    oldest = connection.scalar(_OLDEST, {"pending": ReviewStatus.PENDING.value})
    return count, 0.0 if oldest is None else max(0.0, (now - oldest).total_seconds())
