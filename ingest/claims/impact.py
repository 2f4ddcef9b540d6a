"""What rests on a source."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from vouchgate.ingest.claims.claim import MemoryType
from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.claims.likeness import ItemKind


class Resting(Frozen):
    """A memory or a waiting claim that rests on a source, and what was done since."""

    id: str
    kind: ItemKind
    owner_id: str
    content: str
    memory_type: MemoryType
    status: str  # of a MemoryStatus, or `pending`
    decision_id: str
    created_at: datetime
    others: int = Field(
        description="How many other things were read for it; 0: it rests on the source alone."
    )
    harvested: bool = Field(description="Nobody cited the source: the gate found it.")
    next_check: datetime | None = Field(description="When its sources are read again.")
    stale_since: datetime | None = None
    stale_reason: str | None = None
    lowered_at: datetime | None = None
    lowered_reason: str | None = None
    confirmed_at: datetime | None = None
    superseded_by: str | None = None
    retracted_reason: str | None = None


class ImpactCounts(Frozen):
    """How many rest on a source: memories by status, and what waits. Of those in force and those that wait, `alone`
    rest on nothing else; of those in force, `stale` and `lowered` are so now, and `confirmed` were, by their sources or
    their owner, since they were stored."""

    active: int = 0
    superseded: int = 0
    retracted: int = 0
    expired: int = 0
    waiting: int = 0
    alone: int = 0
    stale: int = 0
    lowered: int = 0
    confirmed: int = 0


class Impact(Frozen):
    """What rests on a source. Of what waits the newest are told, on the first page; memories are the newest, page by
    page."""

    source: str
    names: tuple[str, ...] = Field(description="The names that it was looked for by.")
    counts: ImpactCounts
    waiting: tuple[Resting, ...]
    memories: tuple[Resting, ...]
    next: str | None = Field(description="`after` of the following page, null on the last.")
