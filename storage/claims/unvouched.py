"""Memories that were let through while the gate observed. They are in no index, so no claim is held against them."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, and_, func, select, text

from vouchgate.ingest.claims.memory import MemoryStatus
from vouchgate.storage.claims.decisions import TABLE as DECISION
from vouchgate.storage.claims.memories import TABLE
from vouchgate.storage.claims.standing_rulings import RulingAct

# In words: only so does either database see that the index `memory_unvouched` fits.
_UNVOUCHED = and_(text("label = 'UNVOUCHED'"), TABLE.c.status == MemoryStatus.ACTIVE.value)


def in_force(
    connection: Connection, owner_id: str, most: int, *, without: Collection[str] = ()
) -> list[RulingAct]:
    """What was let through for an owner and is in force, the oldest first, but for what these agents sent."""
    wanted = (
        select(TABLE.c.id.label("memory_id"), TABLE.c.decision_id, DECISION.c.principal_id, DECISION.c.answer)
        .join(DECISION, and_(DECISION.c.owner_id == TABLE.c.owner_id, DECISION.c.id == TABLE.c.decision_id))
        .where(TABLE.c.owner_id == owner_id, _UNVOUCHED, DECISION.c.principal_id.not_in(without))
    )
    rows = connection.execute(wanted.order_by(TABLE.c.id).limit(most)).mappings()
    return [RulingAct(**row) for row in rows]


def count(connection: Connection, owner_id: str | None = None) -> int:
    """How many memories in force nobody vouches for: of an owner, or of all."""
    of_owner = [] if owner_id is None else [TABLE.c.owner_id == owner_id]
    return connection.scalar(select(func.count()).select_from(TABLE).where(_UNVOUCHED, *of_owner)) or 0
