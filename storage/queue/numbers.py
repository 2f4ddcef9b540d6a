"""What came in and what was cleared, counted by day (UTC), agent and rule.

What came is counted from the owner's log, which only grows: what was counted once stays counted. What was cleared is
counted from the items as they stand, so that a decision which was taken back does not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, date, datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, and_, bindparam, case, func, literal, select

from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.waiting import ReviewStatus
from vouchgate.ingest.rules import Rule
from vouchgate.storage import ids
from vouchgate.storage.claims.decisions import TABLE as DECISION
from vouchgate.storage.erasing.apply import STATUS
from vouchgate.storage.log.chain import TABLE as LOG
from vouchgate.storage.queue.pending import TABLE as PENDING
from vouchgate.storage.sql import among, day_of

MOST_ENDED = 20_000  # items of one owner, the last decided, that are counted: some 90 ms
MOST_WAITS = 5_000  # of these, whose waits are read one by one: some 10 ms

_CAME = {
    Action.CLAIM_STORED: "stored",
    Action.CLAIM_QUEUED: "queued",
    Action.CLAIM_REPEATED: "repeated",
    Action.CLAIM_BLOCKED: "blocked",
    Action.CLAIM_LET_THROUGH: "let_through",
    Action.REVIEW_SENT_BACK: "sent_back",
    Action.REVIEW_UNDONE: "undone",
}
_OF_ITEMS = (Action.REVIEW_SENT_BACK.value, Action.REVIEW_UNDONE.value)
_STRETCH = (LOG.c.owner_id == bindparam("of_owner"), LOG.c.seq > bindparam("after"))
_SUFFIX = func.substr(LOG.c.subject_id, len(ids.decision_id("")) + 1)
# Of a claim an entry names the decision, of these the item. An item is looked up for them, and for what was queued:
# whoever took a standing ruling back had it wait, and did not send it.
_ITEM_ID = case(
    (LOG.c.action.in_(_OF_ITEMS), LOG.c.subject_id),
    (LOG.c.action == Action.CLAIM_QUEUED.value, literal(ids.queue_id("")) + _SUFFIX),
)
_COUNT_CAME = (
    select(
        day_of(LOG.c.at).label("day"),
        LOG.c.action.label("what"),
        func.coalesce(PENDING.c.submitted_by, LOG.c.actor).label("agent"),
        DECISION.c.rule,
        PENDING.c.rule.label("item_rule"),
        func.count().label("times"),
    )
    .select_from(
        LOG.outerjoin(
            DECISION, and_(DECISION.c.owner_id == LOG.c.owner_id, DECISION.c.id == LOG.c.subject_id)
        ).outerjoin(PENDING, and_(PENDING.c.owner_id == LOG.c.owner_id, PENDING.c.id == _ITEM_ID))
    )
    .where(
        *_STRETCH,
        LOG.c.seq <= bindparam("last"),
        LOG.c.at >= bindparam("since"),
        LOG.c.action.in_([action.value for action in _CAME]),
    )
    .group_by("day", "what", "agent", DECISION.c.rule, PENDING.c.rule)
)
_FIRST = select(LOG.c.at).where(*_STRETCH).order_by(LOG.c.seq).limit(1)

_LAST_ENDED = (
    select(PENDING)
    .where(PENDING.c.owner_id == bindparam("of_owner"), PENDING.c.decided_at >= bindparam("since"))
    .where(PENDING.c.decided_at.is_not(None))  # what the index is made of
    .where(PENDING.c.status != STATUS)  # nobody cleared what was erased while it waited
    .order_by(PENDING.c.decided_at.desc(), PENDING.c.id.desc())
)
_ENDED = _LAST_ENDED.limit(MOST_ENDED).subquery()
_COUNT_ENDED = select(
    day_of(_ENDED.c.decided_at).label("day"),
    _ENDED.c.status.label("what"),
    _ENDED.c.submitted_by.label("agent"),
    _ENDED.c.rule,
    func.min(_ENDED.c.decided_at).label("first"),
    func.count().label("times"),
).group_by("day", "what", "agent", _ENDED.c.rule)
_WAITS = (
    _LAST_ENDED.where(PENDING.c.status != ReviewStatus.PROMOTED.value)
    .with_only_columns(PENDING.c.created_at, PENDING.c.decided_at)
    .limit(MOST_WAITS)
)
_MIDDLE = (
    select(PENDING.c.created_at)
    .where(among(PENDING.c.owner_id, "owner_ids"), PENDING.c.status == ReviewStatus.PENDING.value)
    .order_by(PENDING.c.id)
    .limit(bindparam("most"))
    .offset(bindparam("before"))
)


class Group(NamedTuple):
    """What is counted together. `what` is `stored`, `queued`, `repeated`, `blocked`, `let_through`, `sent_back` or
    `undone`, or how the wait of an item ended (ReviewStatus). `agent` is a principal's id. The rule of an item is the
    last one that it waited under; None is that of a decision which is gone."""

    day: date
    what: str
    agent: str
    rule: Rule | None


def count_came(
    connection: Connection, owner_id: str, since: datetime, after: int, last: int
) -> Counter[Group]:
    """What came `since` then, of the owner's log entries behind number `after` up to `last`. Repeats of a waiting claim
    count apart from what was queued."""
    asked = {"of_owner": owner_id, "after": after, "last": last, "since": since}
    rows = connection.execute(_COUNT_CAME, asked)
    return _counter(
        (_day(row.day), _CAME[Action(row.what)], row.agent, row.rule or row.item_rule, row.times)
        for row in rows
    )


def time_of_entry(connection: Connection, owner_id: str, after: int) -> datetime | None:
    """When the first entry of the owner's log behind this number was written; None when there is none."""
    found: datetime | None = connection.scalar(_FIRST, {"of_owner": owner_id, "after": after})
    return found


def count_ended(
    connection: Connection, owner_id: str, since: datetime
) -> tuple[Counter[Group], datetime | None]:
    """How the waits that ended `since` then ended, and from when on all are counted; None: all."""
    rows = connection.execute(_COUNT_ENDED, {"of_owner": owner_id, "since": since}).all()
    cut = sum(row.times for row in rows) >= MOST_ENDED
    counted = _counter((_day(row.day), row.what, row.agent, row.rule, row.times) for row in rows)
    return counted, min(row.first for row in rows) if cut else None


def waits(connection: Connection, owner_id: str, since: datetime) -> list[tuple[datetime, float]]:
    """When waits ended, and for how many seconds each had lasted: of the last MOST_WAITS since then. What was stored by
    itself after another check is left out, as nobody had to look."""
    rows = connection.execute(_WAITS, {"of_owner": owner_id, "since": since})
    return [(row.decided_at, (row.decided_at - row.created_at).total_seconds()) for row in rows]


def middle_wait_since(connection: Connection, owner_ids: Collection[str], waiting: int) -> datetime | None:
    """Since when the item in the middle of these `waiting` ones waits; ids go by age."""
    asked = {"owner_ids": owner_ids, "most": 2 - waiting % 2, "before": max(0, (waiting - 1) // 2)}
    found: Sequence[datetime] = connection.scalars(_MIDDLE, asked).all() if waiting else ()
    return (
        None if not found else datetime.fromtimestamp(sum(at.timestamp() for at in found) / len(found), UTC)
    )


def _day(value: Any) -> date:
    return value if isinstance(value, date) else date.fromisoformat(value)


def _counter(rows: Iterable[tuple[date, str, str, Rule | None, int]]) -> Counter[Group]:
    counted = Counter[Group]()
    for day, what, agent, rule, times in rows:
        counted[Group(day, what, agent, rule)] += times
    return counted
