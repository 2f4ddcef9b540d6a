"""Which agent's token serves a sink of an owner: it alone is handed the deliveries and says what became of them.

The first claim that names a sink binds it to the token that sent it, in the transaction of that claim and under the
owner's lock; the operator may name another one. A sink of a database made before that has rows in the outbox and no
token yet is bound to the first token that asks for it, or claims for it, and has put something there before.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, Table, and_, bindparam, insert, or_, select, update

from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.claims.waiting import ReviewStatus
from vouchgate.storage import ids
from vouchgate.storage.sql import PreparedSelect, among
from vouchgate.storage.tables.claims import DecisionRow, MemoryRow, PendingRow, TokenRow
from vouchgate.storage.tables.doors import DeliveryRow, SinkConsumerRow

TABLE: Table = SinkConsumerRow.metadata.tables["sink_consumer"]
_DELIVERY: Table = DeliveryRow.metadata.tables["delivery"]
_MEMORY: Table = MemoryRow.metadata.tables["memory"]
_PENDING: Table = PendingRow.metadata.tables["pending"]
_DECISION: Table = DecisionRow.metadata.tables["decision"]
_TOKEN: Table = TokenRow.metadata.tables["token"]
_KNOWN = PreparedSelect(
    select(TABLE.c.owner_id, TABLE.c.sink, TABLE.c.token_id).where(
        among(TABLE.c.owner_id, "owner_ids"), among(TABLE.c.sink, "sinks")
    )
)
_INSERT = insert(TABLE)
_ONE = and_(TABLE.c.owner_id == bindparam("of_owner"), TABLE.c.sink == bindparam("of_sink"))
_TOKEN_OF = select(TABLE.c.token_id).where(_ONE)
_HAND_OVER = update(TABLE).where(_ONE).values(token_id=bindparam("to_token"), since=bindparam("at"))
_ALL = (
    select(TABLE, _TOKEN.c.name.label("token_name"))
    .outerjoin(_TOKEN, _TOKEN.c.id == TABLE.c.token_id)
    .order_by(TABLE.c.owner_id, TABLE.c.sink)
)
_HAS_ROWS = (
    select(_DELIVERY.c.seq)
    .where(_DELIVERY.c.owner_id == bindparam("of_owner"), _DELIVERY.c.sink == bindparam("of_sink"))
    .limit(1)
)

Key = tuple[str, str]  # an owner, and the name of a sink


class SinkConsumer(Frozen):
    """A sink of an owner and the token that serves it. `token_name` is None when there is no such token any more."""

    owner_id: str
    sink: str
    token_id: str
    token_name: str | None
    since: datetime


def is_served_by(
    owner_id: ColumnElement[str], sink: ColumnElement[str], token_id: ColumnElement[str]
) -> ColumnElement[bool]:
    """Whether a token serves a sink, or will when it asks, as a part of a statement."""
    row = TABLE.alias()
    of_sink = select(row.c.sink).where(row.c.owner_id == owner_id, row.c.sink == sink)
    put = _DELIVERY.alias("put_before")
    of_put = and_(put.c.owner_id == owner_id, put.c.sink == sink)
    claimed = (
        select(put.c.seq)
        .join(_MEMORY, and_(_MEMORY.c.owner_id == put.c.owner_id, _MEMORY.c.id == put.c.memory_id))
        .join(
            _DECISION,
            and_(_DECISION.c.owner_id == _MEMORY.c.owner_id, _DECISION.c.id == _MEMORY.c.decision_id),
        )
        .where(of_put, _DECISION.c.principal_id == token_id)
    )
    approved = (  # what an owner edited has a decision of its own
        select(put.c.seq)
        .join(_PENDING, and_(_PENDING.c.owner_id == put.c.owner_id, _PENDING.c.memory_id == put.c.memory_id))
        .where(of_put, _PENDING.c.submitted_by == token_id, _PENDING.c.status == ReviewStatus.APPROVED.value)
    )
    return or_(
        of_sink.where(row.c.token_id == token_id).exists(),
        and_(~of_sink.exists(), or_(claimed.exists(), approved.exists())),
    )


_SERVES = select(is_served_by(bindparam("of_owner"), bindparam("of_sink"), bindparam("of_token")))
_BOUND = select(TABLE.c.owner_id).where(TABLE.c.sink == bindparam("of_sink"))
_WAITING = (  # owners, each of whom is looked at once, however much waits
    select(_DELIVERY.c.owner_id)
    .where(
        _DELIVERY.c.sink == bindparam("of_sink"),
        _DELIVERY.c.state == bindparam(None, "waiting", literal_execute=True),
    )
    .distinct()
    .subquery()
)
_OWNERS = select(_WAITING.c.owner_id)
_IS_OWN = is_served_by(_WAITING.c.owner_id, bindparam("of_sink"), bindparam("of_token"))
_OWN = (_BOUND.where(TABLE.c.token_id == bindparam("of_token")), _OWNERS.where(_IS_OWN))
_OF_OTHERS = (_BOUND.where(TABLE.c.token_id != bindparam("of_token")), _OWNERS.where(~_IS_OWN))


class Consumers:
    """Who serves the sinks that the claims of one transaction name. Under their owners' locks."""

    def __init__(self, connection: Connection, keys: Collection[Key]) -> None:
        self._connection = connection
        names = {"owner_ids": {owner for owner, _ in keys}, "sinks": {sink for _, sink in keys}}
        rows = _KNOWN.rows(connection, names) if keys else ()
        self._bound = {(owner_id, sink) for owner_id, sink, _ in rows}

    def claimed(self, owner_id: str, sink: str, token_id: str, now: datetime) -> None:
        """A claim of this token names the sink: nobody's until now, it is that token's."""
        if (owner_id, sink) in self._bound:
            return
        asked = {"of_owner": owner_id, "of_sink": sink}
        if self._connection.execute(_HAS_ROWS, asked).first() is None:
            _bind(self._connection, owner_id, sink, token_id, now)
            self._bound.add((owner_id, sink))
        elif serves(self._connection, owner_id, sink, token_id, now):
            self._bound.add((owner_id, sink))


def serves(connection: Connection, owner_id: str, sink: str, token_id: str, now: datetime) -> bool:
    """Whether this token serves the sink; binds one of a database made before. Under the owner's lock. A webhook is
    served by the service alone."""
    asked = {"of_owner": owner_id, "of_sink": sink, "of_token": token_id}
    if sink.startswith(ids.sink_id("")):
        return False
    if (bound := connection.scalar(_TOKEN_OF, asked)) is not None:
        return bool(bound == token_id)
    if not connection.scalar(_SERVES, asked):
        return False
    _bind(connection, owner_id, sink, token_id, now)
    return True


def is_refused(connection: Connection, sink: str, owners: frozenset[str] | None, token_id: str) -> bool:
    """Whether others serve this sink for these owners (None: any), and this token does for none of them."""
    asked: dict[str, Any] = {"of_sink": sink, "of_token": token_id} | (
        {} if owners is None else {"owner_ids": owners}
    )

    def found(statement: Select[Any]) -> bool:
        limited = (
            statement
            if owners is None
            else statement.where(among(statement.selected_columns[0], "owner_ids"))
        )
        return connection.execute(limited.limit(1), asked).first() is not None

    return not any(map(found, _OWN)) and any(map(found, _OF_OTHERS))


def listing(connection: Connection) -> list[SinkConsumer]:
    """Every sink that claims have named or the operator has, by owner and name."""
    return [SinkConsumer.model_validate(dict(row)) for row in connection.execute(_ALL).mappings()]


def hand_over(connection: Connection, key: Key, token_id: str, now: datetime) -> str | None:
    """Has a token serve a sink, whoever did: whose it was, None when nobody's. Under the owner's lock."""
    asked = {"of_owner": key[0], "of_sink": key[1]}
    before: str | None = connection.scalar(_TOKEN_OF, asked)
    if before is None:
        _bind(connection, *key, token_id, now)
    else:
        connection.execute(_HAND_OVER, asked | {"to_token": token_id, "at": now})
    return before


def _bind(connection: Connection, owner_id: str, sink: str, token_id: str, now: datetime) -> None:
    connection.execute(_INSERT, {"owner_id": owner_id, "sink": sink, "token_id": token_id, "since": now})
