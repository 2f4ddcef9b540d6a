"""The similar index: band keys (`ingest.dedup.similar`) of every active memory, by owner, to show a reviewer what
is near a claim. It is advice: who asks copes with an exception, and whoever writes to it never fails for it
but for the database itself.

A look-up is bounded whatever an owner has stored: it reads the newest NEWEST rows of each of a claim's keys,
and the texts of the MOST_READ memories that share most keys with it.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Table, and_, bindparam, delete, func, or_, select, union_all

from vouchgate.ingest.claims.decision import Label
from vouchgate.ingest.claims.likeness import ItemKind, Neighbour
from vouchgate.ingest.claims.memory import MemoryStatus
from vouchgate.ingest.dedup.similar import BANDS, band_keys
from vouchgate.storage.columns import UtcTime
from vouchgate.storage.dedup.window import Candidate
from vouchgate.storage.sql import BulkInsert, PreparedSelect, among, fetch, time_of
from vouchgate.storage.tables.claims import MemoryRow, SimilarKeyRow

log = logging.getLogger(__name__)

TABLE: Table = SimilarKeyRow.metadata.tables["similar_key"]
_MEMORY: Table = MemoryRow.metadata.tables["memory"]

ROWS = BulkInsert(TABLE)
NEWEST = 64
MOST_READ = 64
_BATCH = 1000
_CLEARED = 5000  # rows; some 20 ms

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
# The newest ids of each (owner, key), and the texts of (owner, id). CROSS JOIN makes SQLite start with what is
# asked, and its IN is looked up once a key.
_NEWEST = {
    "sqlite": """
        SELECT o.key, w.value, k.memory_id FROM json_each(?1) AS o CROSS JOIN json_each(o.value) AS w
        CROSS JOIN similar_key AS k ON k.owner_id = o.key AND k.key = w.value AND k.memory_id IN (
            SELECT memory_id FROM similar_key WHERE owner_id = o.key AND key = w.value
            ORDER BY memory_id DESC LIMIT ?2)""",
    "postgresql": """
        SELECT w.owner_id, w.key, k.memory_id
        FROM unnest(%(owner)s::text[], %(value)s::bigint[]) AS w (owner_id, key) CROSS JOIN LATERAL (
            SELECT memory_id FROM similar_key AS s WHERE s.owner_id = w.owner_id AND s.key = w.key
            ORDER BY memory_id DESC LIMIT %(most)s) AS k""",
}
_TEXTS = {
    "sqlite": """
        SELECT m.owner_id, m.id, m.memory_type, m.content, m.validity_horizon
        FROM json_each(?1) AS o CROSS JOIN json_each(o.value) AS w
        CROSS JOIN memory AS m ON m.owner_id = o.key AND m.id = w.value AND m.status = 'active'""",
    "postgresql": """
        SELECT m.owner_id, m.id, m.memory_type, m.content, m.validity_horizon
        FROM unnest(%(owner)s::text[], %(value)s::text[]) AS w (owner_id, id)
        JOIN memory AS m ON m.owner_id = w.owner_id AND m.id = w.id AND m.status = 'active'""",
}
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
        _MEMORY.c.label != Label.UNVOUCHED.value,
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
    connection: Connection, wanted: Mapping[str, Mapping[tuple[int, ...], str]]
) -> dict[tuple[str, tuple[int, ...]], list[Candidate]]:
    """As `candidates`, for many claims of many owners in two statements: by owner, their keys to their memory types.
    What was found, in force or not, has the owner and the keys; whoever found nothing is not in it."""
    keys = {owner: sorted({key for bands in claims for key in bands}) for owner, claims in wanted.items()}
    by_key: dict[tuple[str, int], list[str]] = {}
    for owner, key, memory_id in _of_owners(connection, _NEWEST, keys, NEWEST):
        by_key.setdefault((owner, key), []).append(memory_id)
    if not by_key:
        return {}  # most claims are new
    first = {
        (owner, bands): [each for each, _ in shared.most_common(MOST_READ)]
        for owner, claims in wanted.items()
        for bands in claims
        if (shared := Counter(i for key in bands for i in by_key.get((owner, key), ())))
    }
    ids: dict[str, set[str]] = {}
    for (owner, _), found in first.items():
        ids.setdefault(owner, set()).update(found)
    of_owners = {owner: sorted(found) for owner, found in ids.items()}
    memories = {
        (owner, memory_id, memory_type): Candidate(
            Neighbour(kind=ItemKind.MEMORY, id=memory_id, content=content),
            None if until is None else time_of(until),
        )
        for owner, memory_id, memory_type, content, until in _of_owners(connection, _TEXTS, of_owners)
    }
    return {
        (owner, bands): [
            memory
            for memory_id in found
            if (memory := memories.get((owner, memory_id, wanted[owner][bands])))
        ]
        for (owner, bands), found in first.items()
    }


def _of_owners(
    connection: Connection, statements: Mapping[str, str], wanted: Mapping[str, Sequence[Any]], *most: int
) -> list[Any]:
    """The rows of one look-up for values of several owners, at most so many for each where it says."""
    if connection.dialect.name == "sqlite":
        return fetch(connection, statements["sqlite"], (json.dumps(wanted), *most))
    pairs = [(owner, value) for owner, values in wanted.items() for value in values]
    owners, values = [owner for owner, _ in pairs], [value for _, value in pairs]
    asked = {"owner": owners, "value": values} | dict(zip(("most",), most, strict=False))
    return fetch(connection, statements["postgresql"], asked)


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
