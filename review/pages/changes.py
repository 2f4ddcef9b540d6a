"""What changed about an item between two decisions on it: what a reviewer saw, and what holds now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from vouchgate.ingest.claims.claim import Finding
from vouchgate.ingest.claims.decision import ValidationResult
from vouchgate.review.pages.wording.text import Piece, pieces


@dataclass(frozen=True, slots=True)
class DecisionChange:
    """One thing that is otherwise now; an empty side means that it was, or is, not there."""

    name: str
    old: tuple[Piece, ...]
    new: tuple[Piece, ...]


def changes_between(old: ValidationResult | None, new: ValidationResult | None) -> tuple[DecisionChange, ...]:
    """What differs; nothing when either is not there."""
    return () if old is None or new is None else tuple(_changes(old, new))


def _changes(old: ValidationResult, new: ValidationResult) -> Iterator[DecisionChange]:
    if old.reason != new.reason:
        yield DecisionChange("Why it waits", pieces(old.reason), pieces(new.reason))
    before, now = _messages_by_subject(old), _messages_by_subject(new)
    for place in dict.fromkeys([*before, *now]):
        said, says = before.get(place), now.get(place)
        if said != says:
            name = place[0].replace("_", " ").capitalize()
            yield DecisionChange(name, pieces(said or "not looked at"), pieces(says or "not looked at"))
    if old.conflicting_memory_id != new.conflicting_memory_id:
        yield DecisionChange(
            "Conflicting memory",
            pieces(old.conflicting_memory_id or "none"),
            pieces(new.conflicting_memory_id or "none"),
        )


def _messages_by_subject(answer: ValidationResult) -> dict[tuple[str, str], str]:
    """What each check said of each citation."""
    said: dict[tuple[str, str], list[str]] = {}
    for finding in answer.findings:
        said.setdefault(_subject(finding), []).append(finding.message)
    return {place: " ".join(sentences) for place, sentences in said.items()}


def _subject(finding: Finding) -> tuple[str, str]:
    return finding.check, "" if finding.citation is None else finding.citation.key
