"""What is stored, and where it goes from here."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import Field, JsonValue

from vouchgate.ingest.claims.claim import MemoryType, Source
from vouchgate.ingest.claims.decision import Confidence, Label
from vouchgate.ingest.claims.frozen import Frozen


class MemoryStatus(StrEnum):
    """Only ACTIVE memories answer a read that asks for nothing else. A memory whose validity horizon has
    passed is EXPIRED in every read, whatever its row says."""

    ACTIVE = "active"
    SUPERSEDED = "superseded"
    RETRACTED = "retracted"
    EXPIRED = "expired"


class Memory(Frozen):
    """A stored claim."""

    id: str
    owner_id: str
    memory_type: MemoryType
    content: str
    source: Source
    status: MemoryStatus
    confidence: Confidence
    confidence_score: float | None
    label: Label
    source_id: str | None
    created_at: datetime
    validity_horizon: datetime | None
    decision_id: str
    approved_by: str | None = None  # principal id of the reviewer, when it came through the queue
    superseded_by: str | None = None
    retracted_reason: str | None = None
    stale_since: datetime | None = None  # when a source was first seen gone or changed; it stays in force
    stale_reason: str | None = None
    # When its label or confidence was lowered, because it promised more than its sources are shown to say, and why.
    lowered_at: datetime | None = Field(default=None, exclude_if=lambda at: at is None)
    lowered_reason: str | None = Field(default=None, exclude_if=lambda reason: reason is None)
    # When its sources last said what they said when it was stored, or its owner that it still holds; at first when it
    # was stored. What its owner confirmed it in spite of makes it stale no more.
    confirmed_at: datetime | None = Field(default=None, exclude_if=lambda at: at is None)
    confirmed_despite: str | None = Field(default=None, exclude=True)
    metadata: dict[str, JsonValue] = Field(default_factory=dict)
