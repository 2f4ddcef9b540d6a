"""A claim as it was sent, and what checks find in it."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import Field, JsonValue

from vouchgate.ingest.claims.citation import Citation
from vouchgate.ingest.claims.delivery import DeliveryOp, DeliveryTarget
from vouchgate.ingest.claims.frozen import Frozen


class MemoryType(StrEnum):
    """What kind of thing the claim is."""

    FACT = "fact"
    DECISION = "decision"
    PREFERENCE = "preference"
    PROCEDURE = "procedure"


class Source(StrEnum):
    """Where the caller says the claim comes from. Every one but AI_SYNTHESIS must be granted to the token."""

    USER = "user"
    DOCUMENTATION = "documentation"
    ADR = "adr"
    COMMIT = "commit"
    MANUAL = "manual"
    CONVERSATION = "conversation"
    CHAT = "chat"
    AI_SYNTHESIS = "ai_synthesis"


class Verdict(StrEnum):
    """What a check concluded. UNKNOWN means it could not be found out: never a PASS, never a FAIL."""

    PASS = "PASS"  # noqa: S105  (a verdict, not a password)
    DOUBT = "DOUBT"
    FAIL = "FAIL"
    UNKNOWN = "UNKNOWN"


class SecretMatch(Frozen):
    """Where a credential or personal data was. What it was is kept nowhere: the characters `start` to `end` are masked
    in `where`, which is `content`, `metadata` or `delivery` with the way to the text in it, or `citations[0]`."""

    kind: str
    where: str
    start: int
    end: int


class Claim(Frozen):
    """The text an agent wants to save, or asks to have removed (`delivery`). `content` is the text exactly as
    sent, but for masks in place of credentials (`secrets`) and of `personal` data."""

    content: str
    memory_type: MemoryType
    asserted_source: Source  # what the caller said
    source: Source  # what counts: AI_SYNTHESIS when the caller may not assert `asserted_source`
    owner_id: str
    citations: tuple[Citation, ...] = ()  # given beside the text
    validity_horizon: datetime | None = None
    metadata: dict[str, JsonValue] = Field(default_factory=dict)
    delivery: DeliveryTarget | None = Field(default=None, exclude_if=lambda found: found is None)
    # Credentials that were in it, in place of which it has masks. Any one blocks it.
    secrets: tuple[SecretMatch, ...] = Field(default=(), exclude_if=lambda found: not found)
    # Personal data that was in it and that the policy masks. It stands in no claim's way.
    personal: tuple[SecretMatch, ...] = Field(default=(), exclude_if=lambda found: not found)
    # Characters at the start of `content` that only name what it is about, put there by an import (`Ada (person): `).
    # The text is compared and checked as a whole; no source has to say these.
    context: int = Field(default=0, ge=0, exclude_if=lambda characters: not characters)

    @property
    def stated(self) -> str:
        """What a source has to say: `content` with blanks in place of its context, so that offsets hold."""
        return " " * self.context + self.content[self.context :] if self.context else self.content

    @property
    def removes(self) -> bool:
        """Whether it asks for something to go, instead of saying something."""
        return self.delivery is not None and self.delivery.op is DeliveryOp.REMOVE


class Span(Frozen):
    """Characters `start` to `end` of the text as sent."""

    start: int
    end: int


class Finding(Frozen):
    """What one check concluded. `code` is a stable machine word, `message` one sentence for a human."""

    check: str
    verdict: Verdict
    code: str
    message: str
    citation: Citation | None = None
    spans: tuple[Span, ...] = ()
    facts: dict[str, JsonValue] = Field(default_factory=dict)
    took_ms: float | None = None  # to gather what it judges; None for what needs no look-up


GivenText = Annotated[str | None, Field(exclude_if=lambda found: found is None)]


GivenTime = Annotated[datetime | None, Field(exclude_if=lambda found: found is None)]
