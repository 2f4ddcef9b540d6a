"""The vectors of active memories and pending items, for `dedup_method = "vector"`; else the table stays empty.

A look-up compares the claim with every vector of its owner, in the database: pgvector on PostgreSQL, sqlite-vec
on SQLite. Both are exact, and a vector is written and removed in the transaction of its item. Some builds of
Python cannot load SQLite extensions; there the one function that is used is made with numpy.

The look-up is made before the write transaction, so of two paraphrases sent at once neither may see the
other. It is advice to the owner; the word measure, asked again under the lock, is the referee.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Table, and_, bindparam, delete, func, literal, or_, select, text, update

from vouchgate.ingest.claims.likeness import (
    Embedding,
    ItemKind,
    Paraphrase,
    ParaphraseFacts,
    Paraphrases,
    ParaphraseUnavailable,
)
from vouchgate.ingest.dedup.paraphrase import cosine
from vouchgate.storage.columns import UtcTime
from vouchgate.storage.dedup.in_force import IN_FORCE, MEMORY, PENDING
from vouchgate.storage.errors import StorageError
from vouchgate.storage.sql import BulkInsert, among
from vouchgate.storage.tables.claims import EmbeddingRow

TABLE: Table = EmbeddingRow.metadata.tables["embedding"]

ROWS = BulkInsert(TABLE)
# The databases compute in float32. What is this much farther than asked for is fetched too, and left out after
# the cosine has been computed again, alike for both.
_SLACK = 1e-4
_EXTENSION_LOCK = 0x76656374  # any fixed number: processes that start together make the extension in turn

# In a plan that is made once for all parameters, only the sub-select keeps `wanted` from being cast for every row,
# which would take most of the time.
_NEAR = {
    "sqlite": "SELECT item_id, kind, vector FROM embedding WHERE owner_id = :of_owner AND model = :of_model "
    "AND vec_distance_cosine(vector, :wanted) <= :farthest",
    "postgresql": "SELECT item_id, kind, vector FROM embedding WHERE owner_id = :of_owner AND model = :of_model "
    "AND vector::vector <=> (SELECT CAST(:wanted AS real[])::vector) <= :farthest",
}
_NEAREST = {
    "sqlite": "SELECT item_id, vec_distance_cosine(vector, :wanted) AS distance FROM embedding "
    "WHERE owner_id = :of_owner AND model = :of_model AND kind = 'memory' ORDER BY distance LIMIT :most",
    "postgresql": "SELECT item_id, vector::vector <=> (SELECT CAST(:wanted AS real[])::vector) AS distance "
    "FROM embedding WHERE owner_id = :of_owner AND model = :of_model AND kind = 'memory' "
    "ORDER BY distance LIMIT :most",
}
_NOW = bindparam("now", type_=UtcTime)
_OF_ITEM = and_(TABLE.c.owner_id == bindparam("of_owner"), TABLE.c.item_id == bindparam("of_item"))
_REMOVE = delete(TABLE).where(_OF_ITEM)
_MOVE = update(TABLE).where(_OF_ITEM).values(item_id=bindparam("to_id"), kind=bindparam("to_kind"))

_TEXTS = {
    ItemKind.MEMORY: select(MEMORY.c.id, MEMORY.c.content).where(
        MEMORY.c.owner_id == bindparam("of_owner"),
        among(MEMORY.c.id, "ids"),
        IN_FORCE[ItemKind.MEMORY][1],
        or_(MEMORY.c.validity_horizon.is_(None), MEMORY.c.validity_horizon > _NOW),
    ),
    ItemKind.PENDING: select(PENDING.c.id, PENDING.c.content).where(
        PENDING.c.owner_id == bindparam("of_owner"),
        among(PENDING.c.id, "ids"),
        IN_FORCE[ItemKind.PENDING][1],
    ),
}


def _without_vector(kind: ItemKind) -> Any:
    """Items in force that have no vector of this model, whether or not they have one of another."""
    table, in_force = IN_FORCE[kind]
    has = and_(
        TABLE.c.owner_id == table.c.owner_id,
        TABLE.c.item_id == table.c.id,
        TABLE.c.model == bindparam("of_model"),
    )
    return (
        select(table.c.owner_id, literal(kind.value).label("kind"), table.c.id, table.c.content)
        .join_from(table, TABLE, has, isouter=True)
        .where(in_force, TABLE.c.item_id.is_(None))
    )


_LACKS = {
    kind: _without_vector(kind).where(table.c.owner_id == bindparam("of_owner")).limit(1)
    for kind, (table, _) in IN_FORCE.items()
}
_PAGES = {
    kind: _without_vector(kind)
    .where(
        or_(
            table.c.owner_id > bindparam("after_owner"),
            and_(table.c.owner_id == bindparam("after_owner"), table.c.id > bindparam("after_id")),
        )
    )
    .order_by(table.c.owner_id, table.c.id)
    .limit(bindparam("most"))
    for kind, (table, _) in IN_FORCE.items()
}
_STILL = {
    kind: select(func.count())
    .select_from(table)
    .where(table.c.owner_id == bindparam("of_owner"), table.c.id == bindparam("of_item"), in_force)
    for kind, (table, in_force) in IN_FORCE.items()
}


@dataclass(frozen=True, slots=True)
class Unembedded:
    """An item in force without a vector of the model in use."""

    owner_id: str
    kind: ItemKind
    id: str
    content: str


def find(
    connection: Connection, owner_id: str, wanted: Embedding, *, threshold: float, now: datetime
) -> ParaphraseFacts:
    """Every item of this owner in force whose cosine with `wanted` is at or over `threshold`, by id.

    When an item has no vector of this model (yet), that is the answer: a part would look like all.
    """
    asked = _asked(connection, owner_id, wanted)
    if any(connection.execute(lacks, asked).first() for lacks in _LACKS.values()):
        return ParaphraseUnavailable(
            detail="Not all earlier claims can be looked up by meaning yet: their vectors are being made."
        )
    dialect = connection.dialect.name
    asked["farthest"] = 1 - threshold + _SLACK
    near = text(_NEAR[dialect]).columns(TABLE.c.item_id, TABLE.c.kind, TABLE.c.vector)
    cosines: dict[ItemKind, dict[str, float]] = {kind: {} for kind in ItemKind}
    for item_id, kind, vector in connection.execute(near, asked):
        if (found := cosine(wanted.vector, vector)) >= threshold:
            cosines[ItemKind(kind)][item_id] = found
    items = []
    for kind, by_id in cosines.items():
        if by_id:
            names = {"of_owner": owner_id, "ids": list(by_id)}
            parameters = names if kind is ItemKind.PENDING else names | {"now": now}
            for item_id, content in connection.execute(_TEXTS[kind], parameters):
                items.append(Paraphrase(kind=kind, id=item_id, content=content, cosine=by_id[item_id]))
    return Paraphrases(model=wanted.model, items=tuple(sorted(items, key=lambda item: item.id)))


def nearest(
    connection: Connection, owner_id: str, wanted: Embedding, *, least: float, most: int
) -> list[str]:
    """The owner's memories nearest to `wanted` by cosine, if it is over `least`; those without a vector (yet) are left
    out, and so are those that are not in force."""
    near = text(_NEAREST[connection.dialect.name])
    rows = connection.execute(near, _asked(connection, owner_id, wanted) | {"most": most})
    return [item_id for item_id, distance in rows if 1 - distance > least]


def _asked(connection: Connection, owner_id: str, wanted: Embedding) -> dict[str, Any]:
    native = TABLE.c.vector.type.dialect_impl(connection.dialect).bind_processor(connection.dialect)
    vector = wanted.vector if native is None else native(wanted.vector)
    return {"of_owner": owner_id, "of_model": wanted.model, "wanted": vector}


def rows_of(owner_id: str, kind: ItemKind, item_id: str, embedding: Embedding | None) -> list[dict[str, Any]]:
    """The row of one item as parameters of INSERT; none when it has no vector."""
    if embedding is None:
        return []
    return [
        {
            "owner_id": owner_id,
            "item_id": item_id,
            "kind": kind.value,
            "model": embedding.model,
            "vector": embedding.vector,
        }
    ]


def add(
    connection: Connection, owner_id: str, kind: ItemKind, item_id: str, embedding: Embedding | None
) -> None:
    """Puts an item in; None leaves it without, which `missing` tells."""
    ROWS.write(connection, rows_of(owner_id, kind, item_id, embedding))


def become_memory(connection: Connection, owner_id: str, item_id: str, memory_id: str) -> None:
    """Hands the vector of an item, if it has one, to the memory that its unchanged text becomes."""
    moved = {"to_id": memory_id, "to_kind": ItemKind.MEMORY.value}
    connection.execute(_MOVE, {"of_owner": owner_id, "of_item": item_id} | moved)


def become_item(connection: Connection, owner_id: str, memory_id: str, item_id: str) -> None:
    """Hands the vector of a memory, if it has one, to the item in which its unchanged text waits again."""
    moved = {"to_id": item_id, "to_kind": ItemKind.PENDING.value}
    connection.execute(_MOVE, {"of_owner": owner_id, "of_item": memory_id} | moved)


def remove(connection: Connection, owner_id: str, item_id: str) -> None:
    """Takes an item's vector away; one that is not there is no error."""
    connection.execute(_REMOVE, {"of_owner": owner_id, "of_item": item_id})


def missing(
    connection: Connection, kind: ItemKind, model: str, after: tuple[str, str], most: int
) -> Sequence[Unembedded]:
    """Items in force without a vector of `model`, by (owner id, item id), past the place `after`."""
    asked = {"of_model": model, "after_owner": after[0], "after_id": after[1], "most": most}
    return [
        Unembedded(row.owner_id, kind, row.id, row.content) for row in connection.execute(_PAGES[kind], asked)
    ]


def store_vector(connection: Connection, item: Unembedded, embedding: Embedding) -> None:
    """Gives an item its vector in place of any other, if it is still in force. The caller holds its owner's
    lock."""
    still = connection.scalar(_STILL[item.kind], {"of_owner": item.owner_id, "of_item": item.id})
    remove(connection, item.owner_id, item.id)
    if still:
        ROWS.write(connection, rows_of(item.owner_id, item.kind, item.id, embedding))


def prepare_sqlite(connection: sqlite3.Connection) -> None:
    """Gives a connection the function `vec_distance_cosine`. Raises StorageError without the extra."""
    if getattr(connection, "enable_load_extension", None) is None:
        connection.create_function("vec_distance_cosine", 2, _numpy_distance(), deterministic=True)
        return
    try:
        import sqlite_vec  # noqa: PLC0415  (of the extra, and only where the policy asks for it)
    except ImportError as error:
        raise StorageError(f"{error}: run pip install 'vouchgate[vector]'") from error
    connection.enable_load_extension(True)
    try:
        sqlite_vec.load(connection)
    finally:
        connection.enable_load_extension(False)


def _numpy_distance() -> Callable[[bytes, bytes], float]:
    """What sqlite-vec's function of the same purpose computes: 1 less the cosine of two float32 vectors."""
    import numpy as np  # noqa: PLC0415  (as above)

    def distance(left: bytes, right: bytes) -> float:
        ours, theirs = np.frombuffer(left, np.float32), np.frombuffer(right, np.float32)
        return float(1 - ours @ theirs / np.sqrt((ours @ ours) * (theirs @ theirs)))

    return distance


def prepare_postgresql(connection: Connection) -> None:
    """Makes the extension `vector` where it is not there. Raises StorageError when this user may not."""
    if connection.scalar(text("SELECT 1 FROM pg_extension WHERE extname = 'vector'")):
        return
    connection.execute(select(func.pg_advisory_xact_lock(_EXTENSION_LOCK)))
    allowed = text(
        "SELECT count(*) FROM pg_available_extension_versions v, pg_roles r WHERE v.name = 'vector' "
        "AND r.rolname = current_user AND (r.rolsuper OR (v.trusted AND has_database_privilege("
        "current_database(), 'CREATE')))"
    )
    if not connection.scalar(allowed):
        raise StorageError(
            'dedup_method = "vector" needs pgvector in this database: install it on the server, and let a '
            "superuser run CREATE EXTENSION vector"
        )
    connection.execute(text("CREATE EXTENSION IF NOT EXISTS vector"))
