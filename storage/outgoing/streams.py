"""Which streams of deliveries have something due, and how deliveries do over all owners; see
`storage.outgoing.deliveries`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Select,
    String,
    Table,
    and_,
    bindparam,
    column,
    func,
    select,
    text,
)

from vouchgate.storage import modes
from vouchgate.storage.identity.owners import TABLE as OWNER
from vouchgate.storage.outgoing.sink_consumers import is_served_by
from vouchgate.storage.sql import among
from vouchgate.storage.tables.doors import DeliveryRow, WebhookRow

MOST = 100  # deliveries in one lease

TABLE: Table = DeliveryRow.metadata.tables["delivery"]
_WEBHOOK: Table = WebhookRow.metadata.tables["webhook"]


def is_waiting(table: FromClause) -> ColumnElement[bool]:
    """Written out in the statement: only so does either database see that the index `delivery_waiting` fits."""
    state: ColumnElement[str] = table.c.state
    return state == bindparam(None, "waiting", literal_execute=True)


def first_seq(owner_id: ColumnElement[str], sink: ColumnElement[str]) -> Any:
    """The number of a stream's head, as a part of a statement."""
    head = TABLE.alias()
    found = select(func.min(head.c.seq)).where(
        head.c.owner_id == owner_id, head.c.sink == sink, is_waiting(head)
    )
    return found.scalar_subquery()


def _due(base: FromClause, owner_id: ColumnElement[str], sink: ColumnElement[str]) -> Select[Any]:
    head = and_(TABLE.c.owner_id == owner_id, TABLE.c.seq == first_seq(owner_id, sink))
    return (
        select(TABLE.c.owner_id, TABLE.c.sink, TABLE.c.due_at)
        .select_from(base.join(TABLE, head))
        .where(modes.writable(owner_id))
        .order_by(TABLE.c.due_at, TABLE.c.owner_id)
    )


def _of_any(hint: str) -> Select[Any]:
    owners = text(_EVERY_OWNER.format(hint=hint)).columns(column("owner_id", String)).subquery()
    return _due(owners, owners.c.owner_id, bindparam("of_sink"))


# Every owner for whom something waits, by one step into the index for each of them. SQLite has to be told which index:
# left alone it looks through everybody's rows in another one at every step.
_EVERY_OWNER = """
    WITH RECURSIVE each_owner (owner_id) AS (
        SELECT min(owner_id) FROM delivery {hint} WHERE state = 'waiting'
        UNION ALL
        SELECT (SELECT min(d.owner_id) FROM delivery AS d {hint} WHERE d.state = 'waiting' AND d.owner_id > e.owner_id)
        FROM each_owner AS e WHERE e.owner_id IS NOT NULL)
    SELECT owner_id FROM each_owner WHERE owner_id IS NOT NULL"""
_OF_ANY = {"sqlite": _of_any("INDEXED BY delivery_waiting"), "postgresql": _of_any("")}
_OF_OWNERS = _due(OWNER, OWNER.c.owner_id, bindparam("of_sink")).where(among(OWNER.c.owner_id, "owner_ids"))
_OF_WEBHOOKS = _due(_WEBHOOK, _WEBHOOK.c.owner_id, _WEBHOOK.c.id)
_UP_TO_NOW = TABLE.c.due_at <= bindparam("now")
_SERVED = is_served_by(TABLE.c.owner_id, bindparam("of_sink"), bindparam("of_token"))
_DEAD = select(func.count()).select_from(TABLE).where(TABLE.c.state == "dead")
_COUNT = (
    select(TABLE.c.state, func.count().label("how_many"))
    .where(TABLE.c.state.in_(["waiting", "dead"]))
    .group_by(TABLE.c.state)
)


def owners_due(
    connection: Connection,
    sink: str,
    owners: frozenset[str] | None,
    now: datetime,
    most: int,
    *,
    token_id: str,
) -> list[str]:
    """Of these owners (None: of all) those whose stream to `sink` has something that this token can lease, at most so
    many, first the one that has been due for longest."""
    asked: dict[str, Any] = {"of_sink": sink, "now": now, "of_token": token_id}
    asked |= modes.read_only(connection)
    if owners is None:
        statement = _OF_ANY[connection.dialect.name]
    else:
        statement, asked = _OF_OWNERS, asked | {"owner_ids": owners}
    rows = connection.execute(statement.where(_UP_TO_NOW, _SERVED).limit(most), asked)
    return [row.owner_id for row in rows]


def webhooks_due(connection: Connection, now: datetime, most: int) -> list[tuple[str, str]]:
    """(owner, sink) of webhooks that have something to send at `now`, else as `owners_due`."""
    asked = {"now": now} | modes.read_only(connection)
    rows = connection.execute(_OF_WEBHOOKS.where(_UP_TO_NOW).limit(most), asked)
    return [(row.owner_id, row.sink) for row in rows]


def webhooks_next_due(connection: Connection) -> datetime | None:
    """When a webhook has something to send next, or some lease ends; None when none has."""
    row = connection.execute(_OF_WEBHOOKS.limit(1), modes.read_only(connection)).first()
    return None if row is None else row.due_at


@dataclass(frozen=True, slots=True)
class DeliveryFigures:
    """How many deliveries wait, and how many are dead letters, over all owners."""

    waiting: int
    dead: int


def dead_letters(connection: Connection) -> int:
    """How many dead letters there are, whatever waits."""
    return connection.scalar(_DEAD) or 0


def figures(connection: Connection) -> DeliveryFigures:
    """The figures now."""
    counts = {row.state: row.how_many for row in connection.execute(_COUNT)}
    return DeliveryFigures(counts.get("waiting", 0), counts.get("dead", 0))
