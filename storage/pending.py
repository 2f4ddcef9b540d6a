"""Claims that wait for their owner, and what became of them. Rows are finished, never deleted."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import Connection, Table, bindparam, select, update
from sqlalchemy import insert as insert_into

from ingest.priority import words_digest
from ingest.types import ItemKind, PendingMemory, ReviewStatus
from storage import index, rechecks, vectors
from storage.names import valid_name
from storage.rows import to_fields, to_row
from storage.sql import limited_to
from storage.tables import OwnerRow, PendingRow, QueueTotalRow

TABLE: Table = PendingRow.metadata.tables["pending"]
_INSERT = insert_into(TABLE)
_OWNER: Table = OwnerRow.metadata.tables["owner"]
_TOTAL: Table = QueueTotalRow.metadata.tables["queue_total"]
_BY_ID = select(TABLE).where(TABLE.c.id == bindparam("wanted"))
_DUE = (
    select(TABLE.c.owner_id, TABLE.c.id)
    .where(TABLE.c.status == ReviewStatus.PENDING.value, TABLE.c.expires_at <= bindparam("now"))
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
)
_EXPLAIN = _CHANGE.values(reason=bindparam("new_reason"))
_ONE_LESS_FOR_OWNER = (
    update(_OWNER).where(_OWNER.c.owner_id == bindparam("of_owner")).values(pending=_OWNER.c.pending - 1)
)
_ONE_LESS_IN_ALL = update(_TOTAL).where(_TOTAL.c.id == 1).values(pending=_TOTAL.c.pending - 1)

_TOTAL_WAITING = select(_TOTAL.c.pending).where(_TOTAL.c.id == 1)
_OLDEST = (
    select(TABLE.c.created_at)
    .where(TABLE.c.status == bindparam("pending"))
    .order_by(TABLE.c.expires_at)
    .limit(1)
)

Ending = Literal[ReviewStatus.APPROVED, ReviewStatus.REJECTED, ReviewStatus.EXPIRED, ReviewStatus.PROMOTED]


def row_of(item: PendingMemory) -> dict[str, Any]:
    """The item as the parameters of INSERT."""
    return to_row(item) | {"words_digest": words_digest(item.content, item.memory_type)}


def insert(connection: Connection, item: PendingMemory) -> None:
    """Writes a new item; its dedup keys and the two counters are the caller's, under the owner's lock."""
    connection.execute(_INSERT, row_of(item))


def get(connection: Connection, item_id: str, *, owners: frozenset[str] | None) -> PendingMemory | None:
    """The item of this id in whatever status, or None when none of `owners` has it (None: any owner)."""
    if not valid_name(item_id):
        return None
    statement = limited_to(owners, _BY_ID, TABLE)
    row = connection.execute(statement, {"wanted": item_id}).mappings().one_or_none()
    return None if row is None else _item(row)


def page(
    connection: Connection, owners: frozenset[str], *, status: ReviewStatus, after: str | None, limit: int
) -> list[PendingMemory]:
    """Items of these owners in one status, oldest first; `after` is the last id of the page before."""
    statement = select(TABLE).where(TABLE.c.owner_id.in_(owners), TABLE.c.status == status.value)
    if after is not None:
        if not valid_name(after):
            return []
        statement = statement.where(TABLE.c.id > after)
    rows = connection.execute(statement.order_by(TABLE.c.id).limit(limit)).mappings()
    return [_item(row) for row in rows]


def due(connection: Connection, now: datetime, limit: int) -> list[tuple[str, str]]:
    """(owner id, item id) of items that still wait although their time is over, longest overdue first."""
    rows = connection.execute(_DUE, {"now": now, "most": limit})
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
    connection.execute(_ONE_LESS_FOR_OWNER, {"of_owner": item.owner_id})
    connection.execute(_ONE_LESS_IN_ALL)
    return True


def redecide(
    connection: Connection,
    item: PendingMemory,
    *,
    decision_id: str,
    reason: str,
    conflicting_memory_id: str | None,
) -> bool:
    """Gives an item a new decision, under which it goes on waiting; else as `finish`."""
    values = {"new_decision": decision_id, "new_reason": reason, "conflicting": conflicting_memory_id}
    return connection.execute(_REDECIDE, _seen(item) | values).rowcount == 1


def explain(connection: Connection, item: PendingMemory, reason: str) -> bool:
    """Says in other words why an item waits. Nothing about it has changed, so its version stays; else as
    `finish`."""
    return connection.execute(_EXPLAIN, _seen(item) | {"new_reason": reason}).rowcount == 1


def _seen(item: PendingMemory) -> dict[str, Any]:
    return {"of_owner": item.owner_id, "of_id": item.id, "seen_version": item.version}


def waiting(connection: Connection, now: datetime) -> tuple[int, float]:
    """How many items wait over all owners, and for how many seconds the oldest has (0 when none does).

    The count is the one that the limit is held against; the age is read through an index on the status and
    the time of expiry, whose earliest row is the oldest while one policy is in force.
    """
    count = connection.scalar(_TOTAL_WAITING) or 0
    oldest = connection.scalar(_OLDEST, {"pending": ReviewStatus.PENDING.value})
    return count, 0.0 if oldest is None else max(0.0, (now - oldest).total_seconds())


def _item(row: Mapping[Any, Any]) -> PendingMemory:
    fields = to_fields(row)
    del fields["words_digest"]
    return PendingMemory.model_validate(fields)
