"""A delivery that somebody holds."""

from __future__ import annotations

from datetime import datetime

from pydantic import JsonValue

from vouchgate.ingest.claims.claim import MemoryType
from vouchgate.ingest.claims.delivery import DeliveryOp
from vouchgate.ingest.claims.frozen import Frozen

HAND_OVER = "hand-over"  # the preference (RFC 7240) by which a claim's delivery comes with its answer


class Delivery(Frozen):
    """One write that a store behind the gate is to do, leased: nobody else gets it for 60 seconds.

    `id` is the same for every try: whoever remembers it does nothing twice. `content` is the text of the memory, an
    owner's edit included; empty for a removal of what was never the gate's. `data` is what the claim said is needed
    besides.
    """

    id: str
    lease: str
    owner_id: str
    sink: str
    place: str
    op: DeliveryOp
    data: dict[str, JsonValue]
    content: str
    memory_id: str | None
    memory_type: MemoryType | None
    attempts: int
    created_at: datetime
