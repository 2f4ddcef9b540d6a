"""The dedup index: keys (`ingest.signature`) of every active memory and pending item, by owner.

An index is good for one threshold and one version of the keys; the row `dedup_index` of table `meta` says
which. Whoever writes to the index holds that row (`hold`), so that it cannot be rebuilt under their hands.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Select, Table, bindparam, delete, select, tuple_, update

from ingest.checks.dedup import jaccard, tokens
from ingest.signature import VERSION, signature_keys
from ingest.types import (
    DedupFacts,
    DedupUnavailable,
    ItemKind,
    MemoryStatus,
    Neighbour,
    Neighbours,
    ReviewStatus,
)
from storage.sql import Bulk, among
from storage.tables import DedupKeyRow, MemoryRow, MetaRow, PendingRow

TABLE: Table = DedupKeyRow.metadata.tables["dedup_key"]
_META: Table = MetaRow.metadata.tables["meta"]
_MEMORY: Table = MemoryRow.metadata.tables["memory"]
_PENDING: Table = PendingRow.metadata.tables["pending"]

ROWS = Bulk(TABLE)
_NAME = "dedup_index"
_BUILT_WITH = select(_META.c.value).where(_META.c.name == _NAME)
_HOLD = _BUILT_WITH.with_for_update(read=True)
_HOLD_ALONE = _BUILT_WITH.with_for_update()
_SET_BUILT_WITH = update(_META).where(_META.c.name == _NAME).values(value=bindparam("built_with"))
# The keys of many owners at once. CROSS JOIN makes SQLite start with the keys, never with the table.
_PROBE = {
    "sqlite": "SELECT k.owner_id, k.key, k.item_id, k.kind FROM json_each(?) AS o "
    "CROSS JOIN json_each(o.value) AS wanted "
    "CROSS JOIN dedup_key AS k ON k.owner_id = o.key AND k.key = wanted.value",
    "postgresql": "SELECT k.owner_id, k.key, k.item_id, k.kind "
    "FROM unnest(%s::text[], %s::bigint[]) AS wanted (owner_id, key) "
    "JOIN dedup_key AS k ON k.owner_id = wanted.owner_id AND k.key = wanted.key",
}
_REMOVE = delete(TABLE).where(
    TABLE.c.owner_id == bindparam("of_owner"), TABLE.c.item_id == bindparam("of_item")
)
_MEMORIES = select(_MEMORY.c.id, _MEMORY.c.content, _MEMORY.c.validity_horizon).where(
    _MEMORY.c.owner_id == bindparam("of_owner"),
    among(_MEMORY.c.id, "ids"),
    _MEMORY.c.status == MemoryStatus.ACTIVE.value,
)
_ITEMS = select(_PENDING.c.id, _PENDING.c.content).where(
    _PENDING.c.owner_id == bindparam("of_owner"),
    among(_PENDING.c.id, "ids"),
    _PENDING.c.status == ReviewStatus.PENDING.value,
)
_REBUILD_BATCH = 1000


@dataclass(frozen=True, slots=True)
class Candidate:
    """What shares a key with a claim. `horizon` is set for a memory that stops being valid then."""

    neighbour: Neighbour
    horizon: datetime | None = None

    def counts_at(self, now: datetime) -> bool:
        """Whether it is still in force; a pending item always is."""
        return self.horizon is None or self.horizon > now


def built_for(connection: Connection) -> Fraction | None:
    """The threshold the index was built with; None when its keys are of another version, or it is not built."""
    return _threshold_of(connection.scalar(_BUILT_WITH))


def hold(connection: Connection) -> Fraction | None:
    """As `built_for`, and keeps the index from being rebuilt until this write transaction ends. Taken first,
    before the owners' locks."""
    return _threshold_of(connection.scalar(_HOLD))


def hold_alone(connection: Connection) -> Fraction | None:
    """As `hold`, and keeps every other writer out as well."""
    return _threshold_of(connection.scalar(_HOLD_ALONE))


@lru_cache(maxsize=8)
def _threshold_of(built_with: str | None) -> Fraction | None:
    version, _, threshold = (built_with or "").partition(":")
    return Fraction(threshold) if threshold and version == str(VERSION) else None


def facts(
    connection: Connection,
    owner_id: str,
    content: str,
    probes: Sequence[int],
    *,
    threshold: Fraction,
    now: datetime,
) -> DedupFacts:
    """What the dedup check is told about a claim: every item of its owner and type at or over `threshold`.

    `probes` are the keys of `content` for that threshold. When the index is of another one it cannot answer,
    and says so: a part of the neighbours would look like all of them.
    """
    built = built_for(connection)
    if built != threshold:
        return unavailable(built, threshold)
    return near(content, neighbours(connection, owner_id, probes, now), threshold)


def unavailable(built: Fraction | None, threshold: Fraction) -> DedupUnavailable:
    """The fact that an index of another threshold could not be asked."""
    has = "another version of the program" if built is None else f"the threshold {float(built):g}"
    return DedupUnavailable(
        detail=f"The index of earlier claims was built for {has}, the policy asks for {float(threshold):g}."
    )


def near(content: str, candidates: Iterable[Neighbour], threshold: Fraction) -> Neighbours:
    """The candidates that reach the threshold, by id. The others only share a key, and are no evidence."""
    own: frozenset[str] | None = None
    found = []
    for candidate in candidates:
        own = tokens(content) if own is None else own
        if jaccard(own, tokens(candidate.content)) >= threshold:
            found.append(candidate)
    return Neighbours(items=tuple(sorted(found, key=lambda neighbour: neighbour.id)))


def neighbours(
    connection: Connection, owner_id: str, probes: Sequence[int], now: datetime
) -> tuple[Neighbour, ...]:
    """Every item of this owner that shares one of the keys, with its text, by id: all that can reach the
    threshold, and few that do not. Memories past their horizon at `now` are left out."""
    found = {
        candidate.neighbour.id: candidate.neighbour
        for candidates in find(connection, {owner_id: probes})[owner_id].values()
        for candidate in candidates
        if candidate.counts_at(now)
    }
    return tuple(found[item_id] for item_id in sorted(found))


def find(
    connection: Connection, probes: Mapping[str, Collection[int]]
) -> dict[str, dict[int, list[Candidate]]]:
    """The candidates by key for every owner asked about, for the probes of any number of claims at once."""
    found: dict[str, dict[int, list[Candidate]]] = {owner_id: {} for owner_id in probes}
    shared: dict[str, list[tuple[int, str, str]]] = {}
    for owner_id, key, item_id, kind in _probe(connection, probes):
        shared.setdefault(owner_id, []).append((key, item_id, kind))
    for owner_id, rows in shared.items():
        candidates = _candidates(connection, owner_id, {(item_id, kind) for _, item_id, kind in rows})
        for key, item_id, _ in rows:
            if item_id in candidates:
                found[owner_id].setdefault(key, []).append(candidates[item_id])
    return found


def _probe(connection: Connection, probes: Mapping[str, Collection[int]]) -> Sequence[Any]:
    dialect = connection.dialect.name
    parameters: tuple[Any, ...]
    if dialect == "sqlite":
        parameters = (json.dumps({owner_id: list(keys) for owner_id, keys in probes.items()}),)
    else:
        pairs = [(owner_id, key) for owner_id, keys in probes.items() for key in keys]
        parameters = ([owner_id for owner_id, _ in pairs], [key for _, key in pairs])
    return connection.exec_driver_sql(_PROBE[dialect], parameters).all()


def _candidates(connection: Connection, owner_id: str, items: set[tuple[str, str]]) -> dict[str, Candidate]:
    found = {}
    if ids := [item_id for item_id, kind in items if kind == ItemKind.MEMORY]:
        for item_id, content, horizon in connection.execute(_MEMORIES, {"of_owner": owner_id, "ids": ids}):
            memory = Neighbour(kind=ItemKind.MEMORY, id=item_id, content=content)
            found[item_id] = Candidate(memory, horizon)
    if ids := [item_id for item_id, kind in items if kind == ItemKind.PENDING]:
        for item_id, content in connection.execute(_ITEMS, {"of_owner": owner_id, "ids": ids}):
            found[item_id] = Candidate(Neighbour(kind=ItemKind.PENDING, id=item_id, content=content))
    return found


def rows_of(owner_id: str, kind: ItemKind, item_id: str, stored: Iterable[int]) -> list[dict[str, Any]]:
    """The index rows of one item, as parameters of INSERT."""
    return [{"owner_id": owner_id, "key": key, "item_id": item_id, "kind": kind.value} for key in stored]


def add(connection: Connection, owner_id: str, kind: ItemKind, item_id: str, stored: Sequence[int]) -> None:
    """Puts an item in. `stored` are its keys for the threshold that `hold` named."""
    ROWS.write(connection, rows_of(owner_id, kind, item_id, stored))


def remove(connection: Connection, owner_id: str, item_id: str) -> None:
    """Takes an item out; one that is not in is no error."""
    connection.execute(_REMOVE, {"of_owner": owner_id, "of_item": item_id})


def rebuild(connection: Connection, threshold: Fraction) -> int:
    """Builds the whole index anew for `threshold`; how many items are in it. Other writers wait meanwhile."""
    hold_alone(connection)
    connection.execute(delete(TABLE))
    count = 0
    for kind, table, status in (
        (ItemKind.MEMORY, _MEMORY, MemoryStatus.ACTIVE.value),
        (ItemKind.PENDING, _PENDING, ReviewStatus.PENDING.value),
    ):
        for batch in _batches(connection, table, status):
            rows = []
            for row in batch:
                keys = signature_keys(tokens(row.content), row.memory_type, threshold)
                rows += rows_of(row.owner_id, kind, row.id, keys.stored)
            ROWS.write(connection, rows)
            count += len(batch)
    connection.execute(_SET_BUILT_WITH, {"built_with": f"{VERSION}:{threshold}"})
    return count


def _batches(connection: Connection, table: Table, status: str) -> Iterator[Sequence[Any]]:
    """The rows of a status, in batches by primary key."""
    place = tuple_(table.c.owner_id, table.c.id)
    page: Select[Any] = (
        select(table.c.owner_id, table.c.id, table.c.memory_type, table.c.content)
        .where(table.c.status == status, place > tuple_(bindparam("last_owner"), bindparam("last_id")))
        .order_by(table.c.owner_id, table.c.id)
        .limit(_REBUILD_BATCH)
    )
    last = {"last_owner": "", "last_id": ""}
    while batch := connection.execute(page, last).all():
        yield batch
        last = {"last_owner": batch[-1].owner_id, "last_id": batch[-1].id}
