"""Which Idempotency-Keys were used before: for a caller who sends much again and wants to pass over what is done.

It saves work and decides nothing: the write transaction looks again (`storage.claims.submit`).
"""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, Table, bindparam, select

from vouchgate.storage.sql import among
from vouchgate.storage.tables.claims import IdempotencyRow

_TABLE: Table = IdempotencyRow.metadata.tables["idempotency"]
_KNOWN = select(_TABLE.c.key).where(
    _TABLE.c.principal_id == bindparam("of_principal"), among(_TABLE.c.key, "keys")
)


def known_keys(connection: Connection, principal_id: str, keys: Collection[str]) -> frozenset[str]:
    """Those of the keys under which this principal was answered before; one statement however many they are."""
    if not keys:
        return frozenset()
    return frozenset(connection.execute(_KNOWN, {"of_principal": principal_id, "keys": keys}).scalars())
