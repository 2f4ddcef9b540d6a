"""Claims that wait for their owner, and what became of them. Rows are finished, never deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Literal, NamedTuple

from pydantic import Field
from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Table,
    bindparam,
    insert,
    select,
    tuple_,
    update,
)

from vouchgate.ingest.citations.names import Wanted
from vouchgate.ingest.claims.claim import MemoryType
from vouchgate.ingest.claims.decision import ValidationResult
from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.claims.likeness import ItemKind
from vouchgate.ingest.claims.waiting import Lane, PendingMemory, ReviewStatus
from vouchgate.ingest.policy import QueueLimits
from vouchgate.ingest.rules import Rule
from vouchgate.ingest.scoring.priority import cited_key, head_start, words_digest
from vouchgate.storage import modes
from vouchgate.storage.claims import lineage
from vouchgate.storage.claims.memories import storable
from vouchgate.storage.dedup import index, vectors
from vouchgate.storage.identity.names import valid_name
from vouchgate.storage.identity.owners import note_said
from vouchgate.storage.queue import rechecks
from vouchgate.storage.queue import search as search_terms
from vouchgate.storage.queue.query import NO_QUERY, Query
from vouchgate.storage.sql import limited_to
from vouchgate.storage.tables.claims import OwnerRow, PendingRow, QueueTotalRow
from vouchgate.storage.tables.conversion import to_fields, to_row

BY_REVIEWERS = (
    ReviewStatus.APPROVED,
    ReviewStatus.REJECTED,
    ReviewStatus.LET_GO,
)  # endings that only people bring

TABLE: Table = PendingRow.metadata.tables["pending"]
_OWNER: Table = OwnerRow.metadata.tables["owner"]
_TOTAL: Table = QueueTotalRow.metadata.tables["queue_total"]
THERE = TABLE.c.content != ""  # what was erased has none; see `storage.erasing`
_BY_ID = select(TABLE).where(TABLE.c.id == bindparam("wanted"), THERE)
_PLACE = select(TABLE.c.id, TABLE.c.priority_at, TABLE.c.decided_at).where(TABLE.c.id == bindparam("wanted"))
_DUE = (
    select(TABLE.c.owner_id, TABLE.c.id)
    .where(TABLE.c.status == ReviewStatus.PENDING.value, TABLE.c.expires_at <= bindparam("now"))
    .where(modes.writable(TABLE.c.owner_id))
    .order_by(TABLE.c.expires_at, TABLE.c.id)
    .limit(bindparam("most"))
)
_CHANGE = update(TABLE).where(
    TABLE.c.owner_id == bindparam("of_owner"),
    TABLE.c.id == bindparam("of_id"),
    TABLE.c.version == bindparam("seen_version"),
    TABLE.c.status == ReviewStatus.PENDING.value,
)
_FINISH = _CHANGE.values(
    status=bindparam("to_status"),
    version=TABLE.c.version + 1,
    decided_at=bindparam("at"),
    decided_by=bindparam("by"),
    note=bindparam("with_note"),
    memory_id=bindparam("as_memory"),
)
_PROMOTE = _FINISH.values(decision_id=bindparam("new_decision"))
_REDECIDE = _CHANGE.values(
    version=TABLE.c.version + 1,
    decision_id=bindparam("new_decision"),
    reason=bindparam("new_reason"),
    conflicting_memory_id=bindparam("conflicting"),
    rule=bindparam("new_rule"),
    priority_at=bindparam("new_place"),
)
_EXPLAIN = _CHANGE.values(reason=bindparam("new_reason"))
_RENEW = _CHANGE.values(version=TABLE.c.version + 1)
_REOPEN = (
    update(TABLE)
    .where(
        TABLE.c.owner_id == bindparam("of_owner"),
        TABLE.c.id == bindparam("of_id"),
        TABLE.c.version == bindparam("seen_version"),
        TABLE.c.status.in_([status.value for status in BY_REVIEWERS]),
    )
    .values(
        status=ReviewStatus.PENDING.value,
        version=TABLE.c.version + 1,
        decided_at=None,
        decided_by=None,
        note=None,
        memory_id=None,
        snoozed_until=None,
        sent_back_at=None,
    )
)
_COUNT_FOR_OWNER = (
    update(_OWNER)
    .where(_OWNER.c.owner_id == bindparam("of_owner"))
    .values(pending=_OWNER.c.pending + bindparam("more"), imported=_OWNER.c.imported + bindparam("imports"))
)
_ONE_LESS_IN_ALL = (
    update(_TOTAL)
    .where(_TOTAL.c.id == 1)
    .values(pending=_TOTAL.c.pending - 1, imported=_TOTAL.c.imported - bindparam("imports"))
)

MAX_PAGE = 200
_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
CURSOR = r"^rev_[0-9a-f]{32}(@[0-9]{1,17})?$"  # what `cursor_of` gives, or an id
_MOST_DIGITS = 17  # of a time in a cursor: some three thousand years
_READ_AT_ONCE = 200  # rows of a search by words

Order = Literal["priority", "oldest", "newest"]
Ending = Literal[
    ReviewStatus.APPROVED,
    ReviewStatus.REJECTED,
    ReviewStatus.EXPIRED,
    ReviewStatus.LET_GO,
    ReviewStatus.PROMOTED,
]


class QueueFilter(Frozen):
    """Which items to list, and in what order. What is None does not restrict."""

    owners: frozenset[str] = frozenset()
    status: ReviewStatus = ReviewStatus.PENDING
    rule: Rule | None = None  # that queued it
    sender: str | None = None  # id of the principal that submitted it
    cited: str | None = None  # key of the first thing it cites
    memory_type: MemoryType | None = None
    rests_on: Wanted | None = None
    query: Query = NO_QUERY
    me: str = ""  # the principal that asks, for `assigned:me`
    away: bool = False  # also what is snoozed or sent back, which a query can ask for, too
    now: datetime = Field(default_factory=lambda: datetime.now(UTC))  # against which a snooze is over
    order: Order = "priority"  # see `ingest.scoring.priority`; `oldest` and `newest` go by when it was sent
    after: str | None = (
        None  # `cursor_of` the last item of the page before, or its id, whatever became of it since
    )
    limit: int = Field(default=50, ge=1, le=MAX_PAGE)


def from_answer(
    answer: ValidationResult, *, item_id: str, submitted_by: str, limits: QueueLimits, lane: Lane
) -> PendingMemory:
    """The item that waits for its owner because of this answer."""
    evidence, rejected = answer.evidence, answer.rejected_before
    claim, created_at = evidence.claim, evidence.capture_time
    return PendingMemory(
        id=item_id,
        owner_id=claim.owner_id,
        memory_type=claim.memory_type,
        content=claim.content,
        source=claim.source,
        reason=answer.reason,
        status=ReviewStatus.PENDING,
        version=1,
        seen=1,
        created_at=created_at,
        expires_at=created_at + timedelta(days=limits.expire_days),
        decision_id=str(answer.decision_id),
        submitted_by=submitted_by,
        conflicting_memory_id=answer.conflicting_memory_id,
        validity_horizon=claim.validity_horizon,
        rule=answer.rule,
        cited=cited_key(evidence.sources[0].citation.key) if evidence.sources else None,
        priority_at=created_at - head_start(answer.rule, limits.head_start_days),
        rejected_before=None if rejected is None else rejected.queue_id,
        removal_of=claim.delivery.name if claim.delivery is not None and claim.removes else None,
        lane=lane,
        metadata=claim.metadata,
    )


def row_of(item: PendingMemory, digest: str | None = None) -> dict[str, Any]:
    """The item as the parameters of INSERT. `digest` is its `words_digest`, where that is known."""
    return to_row(item) | {"words_digest": digest or words_digest(item.content, item.memory_type)}


def add(connection: Connection, item: PendingMemory) -> None:
    """Has a new item wait, and counts it for its owner; else as `reopen`."""
    connection.execute(insert(TABLE), row_of(item))
    _count_for_owner(connection, item, 1)


def get(connection: Connection, item_id: str, *, owners: frozenset[str] | None) -> PendingMemory | None:
    """The item of this id in whatever status, or None when none of `owners` has it (None: any owner)."""
    if not valid_name(item_id):
        return None
    statement = limited_to(owners, _BY_ID, TABLE)
    row = connection.execute(statement, {"wanted": item_id}).mappings().one_or_none()
    return None if row is None else _item(row)


class Place(NamedTuple):
    """Where an item is in each order."""

    id: str
    priority_at: datetime
    decided_at: datetime | None


def place_of(connection: Connection, item_id: str, *, owners: frozenset[str]) -> Place | None:
    """That of an item, whatever became of it: also when it was erased a page goes on behind it. None when none of
    `owners` has it."""
    if not valid_name(item_id):
        return None
    row = connection.execute(limited_to(owners, _PLACE, TABLE), {"wanted": item_id}).one_or_none()
    return None if row is None else Place(*row)


def cursor_of(item: PendingMemory, order: Order) -> str:
    """The `after` of the page behind this item. In the order of priority it says where that was: with a new decision
    the item has another place."""
    return item.id if order != "priority" else f"{item.id}@{(item.priority_at - _EPOCH) // _MICROSECOND}"


def _place_after(connection: Connection, cursor: str, owners: frozenset[str]) -> Place | None:
    """What a cursor names, or an item's id: then it is where the item is by now."""
    item_id, at, microseconds = cursor.partition("@")
    last = place_of(connection, item_id, owners=owners)
    if last is None or not at:
        return last
    if not (microseconds.isascii() and microseconds.isdecimal() and len(microseconds) <= _MOST_DIGITS):
        return None
    return last._replace(priority_at=_EPOCH + int(microseconds) * _MICROSECOND)


def search(connection: Connection, wanted: QueueFilter) -> list[PendingMemory]:
    """The items that match, in their order; none when `after` is no item of these owners.

    An owner's items are read from an index in their order, so a page costs the same whatever waits behind it.
    """
    texts = (wanted.sender, wanted.cited, wanted.after)
    if any(text is not None and not storable(text) for text in texts):
        return []
    beyond: list[ColumnElement[bool]] = []
    if wanted.after is not None:
        last = _place_after(connection, wanted.after, wanted.owners)
        if last is None:
            return []
        beyond.append(_after_item(last, wanted.order))
    # An owner at a time: in the order of one the rows lie in the index, in that of several they would be sorted.
    listings = [_listing(owner_id, wanted, beyond) for owner_id in sorted(wanted.owners)]
    items = items_of(connection, listings, wanted.query, wanted.limit)
    items.sort(key=lambda item: _sort_key(item, wanted.order), reverse=wanted.order == "newest")
    return items[: wanted.limit]


def items_of(
    connection: Connection, listings: Iterable[Select[Any]], query: Query, most: int
) -> list[PendingMemory]:
    """The first so many items of each listing whose text has the words of the query, in their order."""
    holds = search_terms.text_filter(query)
    if holds is not None:
        return [item for listing in listings for item in _that_hold(connection, listing, holds, most)]
    return [_item(row) for each in listings for row in connection.execute(each.limit(most)).mappings()]


def _that_hold(
    connection: Connection, listing: Select[Any], holds: Callable[[str], bool], most: int
) -> list[PendingMemory]:
    """The first so many whose text passes. Read some at a time: there may be all that waits."""
    rows = connection.execute(listing.execution_options(yield_per=_READ_AT_ONCE)).mappings()
    with closing(rows):
        return [_item(row) for row in islice((row for row in rows if holds(row["content"])), most)]


def _listing(owner_id: str, wanted: QueueFilter, beyond: list[ColumnElement[bool]]) -> Select[Any]:
    conditions = [*beyond, THERE, TABLE.c.owner_id == owner_id, TABLE.c.status == wanted.status.value]
    for column, value in (
        (TABLE.c.rule, wanted.rule),
        (TABLE.c.submitted_by, wanted.sender),
        (TABLE.c.cited, wanted.cited),
        (TABLE.c.memory_type, wanted.memory_type and wanted.memory_type.value),
    ):
        if value is not None:
            conditions.append(column == value)
    if wanted.rests_on is not None:
        conditions.append(lineage.rests_on(TABLE, wanted.rests_on, frozenset({owner_id})))
    conditions += search_terms.conditions(wanted.query, me=wanted.me, now=wanted.now)
    if wanted.status is ReviewStatus.PENDING and not (wanted.away or wanted.query.names_away):
        conditions.append(search_terms.is_listed(wanted.now))
    order = [TABLE.c.id.desc() if wanted.order == "newest" else TABLE.c.id]
    if wanted.order == "priority":
        order.insert(0, TABLE.c.priority_at)
    return select(TABLE).where(*conditions).order_by(*order)


def _sort_key(item: PendingMemory, order: Order) -> tuple[datetime, str] | tuple[str]:
    return (item.priority_at, item.id) if order == "priority" else (item.id,)


def _after_item(last: Place, order: Order) -> ColumnElement[bool]:
    """What comes after an item."""
    match order:
        case "priority":
            at = TABLE.c.priority_at
            return tuple_(at, TABLE.c.id) > tuple_(last.priority_at, last.id)
        case "oldest":
            return TABLE.c.id > last.id
        case "newest":
            return TABLE.c.id < last.id


def due(connection: Connection, now: datetime, limit: int) -> list[tuple[str, str]]:
    """(owner id, item id) of items that still wait although their time is over, longest overdue first."""
    rows = connection.execute(_DUE, {"now": now, "most": limit} | modes.read_only(connection))
    return [(row.owner_id, row.id) for row in rows]


def finish(
    connection: Connection,
    item: PendingMemory,
    *,
    status: Ending,
    at: datetime,
    by: str,
    note: str | None = None,
    memory_id: str | None = None,
    decision_id: str | None = None,
) -> bool:
    """Ends the wait of an item that is still pending in the version seen: its row, its dedup keys, its place in
    the schedule and both counters. `decision_id` is that of a new decision that ended it. False when it is not
    so any more; then nothing was changed. The caller holds the owner's lock.
    """
    values = {"to_status": status.value, "at": at, "by": by, "with_note": note, "as_memory": memory_id}
    statement = _FINISH
    if decision_id is not None:
        statement, values = _PROMOTE, values | {"new_decision": decision_id}
    if connection.execute(statement, _seen(item) | values).rowcount != 1:
        return False
    index.remove(connection, item.owner_id, ItemKind.PENDING, item.id)
    vectors.remove(connection, item.owner_id, item.id)
    rechecks.remove(connection, item.owner_id, item.id)
    _count_for_owner(connection, item, -1)
    connection.execute(_ONE_LESS_IN_ALL, {"imports": int(item.lane is Lane.IMPORT)})
    _note_verdict(connection, item)
    return True


def reopen(connection: Connection, item: PendingMemory) -> bool:
    """Has an item wait again that a reviewer decided, and counts it for its owner; False when it is not as it
    was seen any more, and nothing was changed. The caller holds the owner's lock, has taken the item's place in
    the whole queue (`storage.queue.capacity`), and gives it back its keys."""
    if connection.execute(_REOPEN, _seen(item)).rowcount != 1:
        return False
    _count_for_owner(connection, item, 1)
    _note_verdict(connection, item)
    return True


def _note_verdict(connection: Connection, item: PendingMemory) -> None:
    """What waited because its agent was not shown to be right says something of that agent, once it is ruled on."""
    if item.rule is Rule.SPOKEN_OF:
        note_said(connection, item.owner_id)


def _count_for_owner(connection: Connection, item: PendingMemory, more: int) -> None:
    counted = {"more": more, "imports": more if item.lane is Lane.IMPORT else 0}
    connection.execute(_COUNT_FOR_OWNER, {"of_owner": item.owner_id} | counted)


def change(connection: Connection, item: PendingMemory, values: Mapping[str, Any]) -> bool:
    """Writes what people say about an item that waits: until when it is snoozed, who is to rule on it, what its agent
    is asked. Nothing about the claim has changed, so its version stays; else as `finish`."""
    return connection.execute(_CHANGE.values(**values), _seen(item)).rowcount == 1


def redecide(
    connection: Connection,
    item: PendingMemory,
    *,
    decision_id: str,
    reason: str,
    conflicting_memory_id: str | None,
    rule: str,
    priority_at: datetime,
) -> bool:
    """Gives an item a new decision, under which it goes on waiting, with the place in the order that the rule
    calls for; else as `finish`."""
    values = _seen(item) | {
        "new_decision": decision_id,
        "new_reason": reason,
        "conflicting": conflicting_memory_id,
        "new_rule": rule,
        "new_place": priority_at,
    }
    return connection.execute(_REDECIDE, values).rowcount == 1


def explain(connection: Connection, item: PendingMemory, reason: str) -> bool:
    """Says in other words why an item waits. Nothing about it has changed, so its version stays; else as
    `finish`."""
    return connection.execute(_EXPLAIN, _seen(item) | {"new_reason": reason}).rowcount == 1


def renew(connection: Connection, item: PendingMemory) -> bool:
    """Has an item wait on in its next version; else as `finish`."""
    return connection.execute(_RENEW, _seen(item)).rowcount == 1


def _seen(item: PendingMemory) -> dict[str, Any]:
    return {"of_owner": item.owner_id, "of_id": item.id, "seen_version": item.version}


def _item(row: Mapping[Any, Any]) -> PendingMemory:
    fields = to_fields(row)
    del fields["words_digest"]
    return PendingMemory.model_validate(fields)
