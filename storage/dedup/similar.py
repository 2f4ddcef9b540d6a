"""The similar index: band keys (`ingest.dedup.similar`) of every active memory, by owner, to show a reviewer what
is near a claim. It is advice: who asks copes with an exception, and whoever writes to it never fails for it
but for the database itself.

A look-up is bounded whatever an owner has stored: it reads the newest NEWEST rows of each of a claim's keys,
and the texts of the MOST_READ memories that share most keys with it.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from typing import Any

from sqlalchemy import Connection, Table, and_, bindparam, delete, func, or_, select, union_all

from vouchgate.ingest.claims.types import MemoryStatus, SimilarMemory
from vouchgate.ingest.dedup.similar import BANDS, band_keys, nearest
from vouchgate.storage.columns import UtcTime
from vouchgate.storage.sql import BulkInsert, PreparedSelect, among
from vouchgate.storage.tables.claims import MemoryRow, SimilarKeyRow

log = logging.getLogger(__name__)

TABLE: Table = SimilarKeyRow.metadata.tables["similar_key"]
_MEMORY: Table = MemoryRow.metadata.tables["memory"]

ROWS = BulkInsert(TABLE)
NEWEST = 64
MOST_READ = 64
_BATCH = 1000
_CLEARED = 5000  # rows; some 20 ms

_OF_KEY = TABLE.alias("of_key")
_NOW = bindparam("now", type_=UtcTime)


def _sharing(band: int) -> Any:
    """The newest memories that have the claim's key of one band."""
    rows = (
        select(TABLE.c.memory_id)
        .where(TABLE.c.owner_id == bindparam("of_owner"), TABLE.c.key == bindparam(f"key_{band}"))
        .order_by(TABLE.c.memory_id.desc())
        .limit(NEWEST)
        .subquery(f"band_{band}")
    )
    return select(rows.c.memory_id)


_SHARED = union_all(*(_sharing(band) for band in range(BANDS))).subquery("shared")
_FIRST = (
    select(_SHARED.c.memory_id)
    .group_by(_SHARED.c.memory_id)
    .order_by(func.count().desc(), _SHARED.c.memory_id.desc())
    .limit(MOST_READ)
    .subquery("first")
)
_CANDIDATES = PreparedSelect(
    select(_MEMORY.c.id, _MEMORY.c.content)
    .join_from(
        _FIRST, _MEMORY, and_(_MEMORY.c.owner_id == bindparam("of_owner"), _MEMORY.c.id == _FIRST.c.memory_id)
    )
    .where(
        _MEMORY.c.status == MemoryStatus.ACTIVE.value,
        _MEMORY.c.memory_type == bindparam("of_type"),
        or_(_MEMORY.c.validity_horizon.is_(None), _MEMORY.c.validity_horizon > _NOW),
    )
)
_OLDEST = (
    select(TABLE.c.memory_id)
    .where(TABLE.c.owner_id == bindparam("of_owner"), TABLE.c.key == _OF_KEY.c.key)
    .order_by(TABLE.c.memory_id.desc())
    .limit(1)
    .offset(NEWEST - 1)
    .correlate(_OF_KEY)
    .scalar_subquery()
)
# The newest NEWEST rows of each key.
_NEWEST = select(_OF_KEY.c.key, _OF_KEY.c.memory_id).where(
    _OF_KEY.c.owner_id == bindparam("of_owner"),
    among(_OF_KEY.c.key, "keys"),
    _OF_KEY.c.memory_id >= func.coalesce(_OLDEST, ""),
)
_TEXTS = select(_MEMORY.c.id, _MEMORY.c.memory_type, _MEMORY.c.content).where(
    _MEMORY.c.owner_id == bindparam("of_owner"),
    among(_MEMORY.c.id, "ids"),
    _MEMORY.c.status == MemoryStatus.ACTIVE.value,
    or_(_MEMORY.c.validity_horizon.is_(None), _MEMORY.c.validity_horizon > _NOW),
)
_TEXT = select(_MEMORY.c.content, _MEMORY.c.memory_type).where(
    _MEMORY.c.owner_id == bindparam("of_owner"), _MEMORY.c.id == bindparam("of_id")
)
_REMOVE = delete(TABLE).where(
    TABLE.c.owner_id == bindparam("of_owner"),
    among(TABLE.c.key, "keys"),
    TABLE.c.memory_id == bindparam("of_id"),
)
_BOUNDARY = (
    select(TABLE.c.key)
    .where(TABLE.c.owner_id == bindparam("of_owner"))
    .order_by(TABLE.c.key)
    .offset(_CLEARED)
    .limit(1)
)
_PAGE = (
    select(_MEMORY.c.id, _MEMORY.c.memory_type, _MEMORY.c.content)
    .where(
        _MEMORY.c.owner_id == bindparam("of_owner"),
        _MEMORY.c.id > bindparam("after"),
        _MEMORY.c.status == MemoryStatus.ACTIVE.value,
    )
    .order_by(_MEMORY.c.id)
    .limit(_BATCH)
)


def candidates(
    connection: Connection, owner_id: str, keys: Sequence[int], memory_type: str, *, now: datetime
) -> list[tuple[str, str]]:
    """The memories (id, text) of this owner and type, in force at `now`, that share most of these keys: MOST_READ
    at most. Not complete: a similar one is missed with the probability that `ingest.dedup.similar` tells."""
    if not keys:
        return []
    asked = {"of_owner": owner_id, "of_type": memory_type, "now": now}
    rows = _CANDIDATES.rows(connection, asked | {f"key_{band}": key for band, key in enumerate(keys)})
    return [(memory_id, text) for memory_id, text in rows]


def candidates_of_many(
    connection: Connection, owner_id: str, claims: Mapping[tuple[int, ...], str], *, now: datetime
) -> dict[tuple[int, ...], list[tuple[str, str]]]:
    """As `candidates`, for many claims of an owner in two statements: their keys to their memory types, and their keys
    to what was found."""
    wanted = sorted({key for keys in claims for key in keys})
    by_key: dict[int, list[str]] = {}
    for key, memory_id in connection.execute(_NEWEST, {"of_owner": owner_id, "keys": wanted}):
        by_key.setdefault(key, []).append(memory_id)
    first = {
        keys: [
            each for each, _ in Counter(i for key in keys for i in by_key.get(key, ())).most_common(MOST_READ)
        ]
        for keys in claims
    }
    found = {each for ids in first.values() for each in ids}
    if not found:
        return {keys: [] for keys in claims}
    rows = connection.execute(_TEXTS, {"of_owner": owner_id, "ids": sorted(found), "now": now})
    texts = {memory_id: (memory_type, content) for memory_id, memory_type, content in rows}
    return {
        keys: [(i, texts[i][1]) for i in ids if i in texts and texts[i][0] == claims[keys]]
        for keys, ids in first.items()
    }


def find(
    connection: Connection,
    owner_id: str,
    content: str,
    memory_type: str,
    *,
    threshold: Fraction,
    now: datetime,
) -> tuple[SimilarMemory, ...]:
    """The nearest memories of this owner and type that are no duplicates by `threshold`, and in force at
    `now`, as far as `candidates` has them."""
    keys = band_keys(content, memory_type)
    return nearest(content, candidates(connection, owner_id, keys, memory_type, now=now), threshold)


def keys_of(content: str, memory_type: str) -> tuple[int, ...]:
    """`band_keys`, or none when they cannot be made: a memory that is never shown as similar is better than
    a claim that cannot be stored."""
    try:
        return band_keys(content, memory_type)
    except Exception:
        log.exception("a memory has no keys in the similar index")
        return ()


def rows_of(owner_id: str, memory_id: str, keys: Iterable[int]) -> list[dict[str, Any]]:
    """The index rows of one memory, as parameters of INSERT."""
    return [{"owner_id": owner_id, "key": key, "memory_id": memory_id} for key in keys]


def add(connection: Connection, owner_id: str, memory_id: str, keys: Sequence[int]) -> None:
    """Puts a memory in."""
    ROWS.write(connection, rows_of(owner_id, memory_id, keys))


def remove(connection: Connection, owner_id: str, memory_id: str) -> None:
    """Takes a memory out, whose row and text stay; one that is not in is no error."""
    row = connection.execute(_TEXT, {"of_owner": owner_id, "of_id": memory_id}).one_or_none()
    if row is None:
        return
    keys = keys_of(row.content, row.memory_type)
    connection.execute(_REMOVE, {"of_owner": owner_id, "of_id": memory_id, "keys": keys})


def clear_part(connection: Connection, owner_id: str) -> bool:
    """Deletes some thousand of an owner's rows, and all of one key; whether there may be more."""
    boundary = connection.scalar(_BOUNDARY, {"of_owner": owner_id})
    of_owner = delete(TABLE).where(TABLE.c.owner_id == owner_id)
    connection.execute(of_owner if boundary is None else of_owner.where(TABLE.c.key <= boundary))
    return boundary is not None


def fill_part(connection: Connection, owner_id: str, after: str) -> tuple[int, str | None]:
    """Puts the owner's next memories after this id in, "" for the first; how many, and the id to go on from,
    None when that was the last. Those that were stored meanwhile, and are in, stay in."""
    batch = connection.execute(_PAGE, {"of_owner": owner_id, "after": after}).all()
    if not batch:
        return 0, None
    keys = {row.id: band_keys(row.content, row.memory_type) for row in batch}
    of_owner = {"of_owner": owner_id}
    connection.execute(_REMOVE, [of_owner | {"of_id": key, "keys": bands} for key, bands in keys.items()])
    ROWS.write(connection, [row for key, bands in keys.items() for row in rows_of(owner_id, key, bands)])
    return len(batch), batch[-1].id
