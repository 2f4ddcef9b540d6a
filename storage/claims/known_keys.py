"""Which Idempotency-Keys were used before, and what was answered then."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import Connection, Table, bindparam, select

from vouchgate.storage.claims import decisions
from vouchgate.storage.sql import among
from vouchgate.storage.tables.claims import IdempotencyRow

TABLE: Table = IdempotencyRow.metadata.tables["idempotency"]
_OF_PRINCIPAL = TABLE.c.principal_id == bindparam("of_principal"), among(TABLE.c.key, "keys")
_KNOWN = select(TABLE.c.key).where(*_OF_PRINCIPAL)
_ANSWERED = (
    select(TABLE.c.key, TABLE.c.body_digest, decisions.TABLE.c.answer)
    .join(
        decisions.TABLE,
        (decisions.TABLE.c.owner_id == TABLE.c.owner_id) & (decisions.TABLE.c.id == TABLE.c.decision_id),
    )
    .where(*_OF_PRINCIPAL)
)


def known_keys(connection: Connection, principal_id: str, keys: Collection[str]) -> frozenset[str]:
    """Those of the keys under which this principal was answered before; one statement however many they are. For a
    caller who sends much again and wants to pass over what is done: the write transaction looks again."""
    if not keys:
        return frozenset()
    return frozenset(connection.execute(_KNOWN, {"of_principal": principal_id, "keys": keys}).scalars())


def answered(connection: Connection, principal_id: str, keys: Collection[str]) -> list[Any]:
    """The `key`, `body_digest` and `answer` of each."""
    return list(connection.execute(_ANSWERED, {"of_principal": principal_id, "keys": keys}))
