"""What rests on a source."""

from __future__ import annotations

from pydantic import Field

from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.claims.memory import Memory
from vouchgate.ingest.claims.waiting import PendingMemory


class Impact(Frozen):
    """What of one owner's rests on a source, and what was done since. Of what waits the newest are told, on the first
    page; memories are the newest, of any status, page by page."""

    owner_id: str
    source: str
    names: tuple[str, ...]  # that it was looked for by
    counts: dict[str, int] = Field(
        description="How many, by status; of those that are active or pending how many rest on nothing else (`alone`), "
        "and of the active how many are `stale`, `lowered`, or were `confirmed` since they were stored."
    )
    alone: tuple[str, ...]  # ids of those on this page that rest on nothing else
    waiting: tuple[PendingMemory, ...]
    memories: tuple[Memory, ...]
    next: str | None  # `after` of the following page
