"""What rests on a source: memories, of whatever status, and what waits."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, Table, and_, case, func, select

from vouchgate.ingest.citations.names import Wanted
from vouchgate.ingest.claims.impact import ImpactCounts, Resting
from vouchgate.ingest.claims.likeness import ItemKind
from vouchgate.ingest.claims.memory import MemoryStatus
from vouchgate.ingest.claims.waiting import ReviewStatus
from vouchgate.storage.claims import lineage, memories
from vouchgate.storage.queue import pending, rechecks

MOST = 200  # memories, and waiting claims, of a page
_LINEAGE, _MEMORY, _PENDING, _RECHECK = lineage.TABLE, memories.TABLE, pending.TABLE, rechecks.TABLE
_WHAT = ("id", "owner_id", "content", "memory_type", "decision_id", "created_at")
# What was done since, as far as an item has it.
_SINCE = (
    "stale_since",
    "stale_reason",
    "lowered_at",
    "lowered_reason",
    "confirmed_at",
    "superseded_by",
    "retracted_reason",
)


def counts_of(
    connection: Connection, wanted: Wanted, owners: frozenset[str] | None, now: datetime
) -> ImpactCounts:
    """How many of these owners' rest on the source; None: of every owner's."""
    basis, joined = _joined(_MEMORY, wanted, owners)
    state = _state(now)
    of_active = {
        "alone": basis.c.others == 0,
        "stale": _MEMORY.c.stale_since.is_not(None),
        "lowered": _MEMORY.c.lowered_at.is_not(None),
        "confirmed": _MEMORY.c.confirmed_at > _MEMORY.c.created_at,
    }
    sums = [_sum(true).label(name) for name, true in of_active.items()]
    by_state = select(state.label("state"), func.count().label("many"), *sums).select_from(joined)
    found: dict[str, int] = {}
    for row in connection.execute(by_state.group_by("state")):
        found[row.state] = row.many
        if row.state == MemoryStatus.ACTIVE:
            found |= {name: getattr(row, name) for name in of_active}
    basis, joined = _joined(_PENDING, wanted, owners)
    waiting = select(func.count(), _sum(basis.c.others == 0)).select_from(joined).where(_waits())
    many, alone = connection.execute(waiting).one()
    return ImpactCounts(**found | {"waiting": many, "alone": found.get("alone", 0) + (alone or 0)})


def memories_on(
    connection: Connection,
    wanted: Wanted,
    owners: frozenset[str] | None,
    now: datetime,
    *,
    after: str | None = None,
    limit: int = MOST,
) -> list[Resting]:
    """The newest memories that rest on the source; `after` is the id of the last one of the page before."""
    more = {"status": _state(now), **{name: _MEMORY.c[name] for name in _SINCE}}
    return _page(connection, _listing(_MEMORY, wanted, owners, more), _MEMORY, after, limit)


def waiting_on(
    connection: Connection,
    wanted: Wanted,
    owners: frozenset[str] | None,
    *,
    after: str | None = None,
    limit: int = MOST,
) -> list[Resting]:
    """The newest waiting claims that rest on the source; else as `memories_on`."""
    listing = _listing(_PENDING, wanted, owners, {"status": _PENDING.c.status}).where(_waits())
    return _page(connection, listing, _PENDING, after, limit)


def _listing(
    items: Table, wanted: Wanted, owners: frozenset[str] | None, more: dict[str, ColumnElement[Any]]
) -> Select[Any]:
    basis, joined = _joined(items, wanted, owners)
    planned = and_(_RECHECK.c.owner_id == items.c.owner_id, _RECHECK.c.item_id == items.c.id)
    more = more | {"others": basis.c.others, "harvested": basis.c.harvested, "next_check": _RECHECK.c.due_at}
    columns = [*(items.c[name] for name in _WHAT), *(column.label(name) for name, column in more.items())]
    return select(*columns).select_from(joined.outerjoin(_RECHECK, planned)).order_by(items.c.id.desc())


def _page(
    connection: Connection, listing: Select[Any], items: Table, after: str | None, limit: int
) -> list[Resting]:
    kind = ItemKind.MEMORY if items is _MEMORY else ItemKind.PENDING
    beyond = listing if after is None else listing.where(items.c.id < after)
    return [Resting(kind=kind, **row) for row in connection.execute(beyond.limit(limit)).mappings()]


def _joined(items: Table, wanted: Wanted, owners: frozenset[str] | None) -> tuple[Any, Any]:
    """What decisions say of these names, and that joined with what rests on the decisions."""
    said = select(
        _LINEAGE.c.owner_id,
        _LINEAGE.c.decision_id,
        func.min(_LINEAGE.c.others).label("others"),
        func.min(case((_LINEAGE.c.harvested, 1), else_=0)).label("harvested"),
    ).where(lineage.named(wanted))
    if owners is not None:
        said = said.where(_LINEAGE.c.owner_id.in_(owners))
    basis = said.group_by(_LINEAGE.c.owner_id, _LINEAGE.c.decision_id).subquery("basis")
    same = and_(basis.c.owner_id == items.c.owner_id, basis.c.decision_id == items.c.decision_id)
    return basis, basis.join(items, same)


def _state(now: datetime) -> ColumnElement[str]:
    """The status of a memory now: of one past its horizon EXPIRED, whatever its row says."""
    over = and_(_MEMORY.c.status == MemoryStatus.ACTIVE.value, _MEMORY.c.validity_horizon <= now)
    return case((over, MemoryStatus.EXPIRED.value), else_=_MEMORY.c.status)


def _waits() -> ColumnElement[bool]:
    return _PENDING.c.status == ReviewStatus.PENDING.value


def _sum(true: ColumnElement[bool]) -> ColumnElement[int]:
    return func.sum(case((true, 1), else_=0))
