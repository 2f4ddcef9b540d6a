"""What a memory may still promise that was stored before statements were held against sources one by one. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from vouchgate.ingest.checks import statements
from vouchgate.ingest.claims.types import (
    Confidence,
    Decision,
    Found,
    Label,
    Memory,
    SourceReading,
    ValidationResult,
)

_RANKS = {Confidence.LOW: 0, Confidence.MEDIUM: 1, Confidence.HIGH: 2}
_NOT_SHOWN = "What it cites is not shown to state it."


@dataclass(frozen=True, slots=True)
class Shown:
    """What the sources of a claim are shown to say of it now: the label and confidence that this is worth."""

    label: Label
    confidence: Confidence
    why: str  # a sentence for its owner


def shown_now(then: ValidationResult, readings: tuple[SourceReading, ...], now: Decision) -> Shown | None:
    """What is shown `now`, by sources just read, of a claim that was decided `then`. None when that decision held every
    statement against its sources already, and when not every source could be read: nothing is known then.

    Where every statement is stated, confidence stays as it was: a score may fall with nothing but time.
    """
    before = [source for source in then.evidence.sources if isinstance(source, Found) and source.held is None]
    if not before or not all(isinstance(reading, Found) for reading in readings):
        return None
    found = next((finding for finding in now.findings if finding.check == statements.CHECK), None)
    if found is not None and found.code == "stated":
        return Shown(now.label, Confidence.HIGH, "No official source states all of it by itself.")
    return Shown(now.label, now.confidence, _NOT_SHOWN if found is None else found.message)


def lowered(memory: Memory, shown: Shown) -> tuple[Label, Confidence] | None:
    """The label and confidence that the memory is left with; None when it promises no more than is shown. What its
    owner approved is held with medium confidence at least."""
    label = shown.label if memory.label is Label.FACT else memory.label
    least = Confidence.LOW if memory.approved_by is None else Confidence.MEDIUM
    worth = max(shown.confidence, least, key=_RANKS.__getitem__)
    confidence = min(memory.confidence, worth, key=_RANKS.__getitem__)
    return None if (label, confidence) == (memory.label, memory.confidence) else (label, confidence)
