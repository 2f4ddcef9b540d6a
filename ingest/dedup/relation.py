"""What a claim is to one earlier memory: a repeat, a conflict, or something new."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from vouchgate.ingest.dedup.compare import Comparisons
from vouchgate.ingest.dedup.contradicted import NEAR
from vouchgate.ingest.language.value_words import ValueWords


class Relation(StrEnum):
    """What a claim is to an earlier one. `NEW` says only that no rule found either of the others."""

    REPEAT = "repeat"
    CONFLICT = "conflict"
    UPDATE = "update"  # only of a whole memory (`ingest.dedup.retelling`)
    NEW = "new"


@dataclass(frozen=True, slots=True)
class Related:
    """The relation, the word Jaccard, and for a conflict the words that changed, as written, the claim's first."""

    relation: Relation
    similarity: Fraction
    changed: tuple[str, ...] = ()


def relation(earlier: str, claim: str, threshold: Fraction, words: ValueWords) -> Related:
    """Holds a claim against an earlier text as the dedup check does: from the threshold on it is a repeat or, with a
    changed value, a conflict; from half of the words on it conflicts where a rule tells (`ingest.dedup.contradicted`).
    Pure; never raises."""
    known = Comparisons(claim, threshold, words)
    similarity = known.near(earlier) or Fraction(0)
    if similarity >= threshold:
        changed = known.changed(earlier)
        return Related(Relation.CONFLICT if changed else Relation.REPEAT, similarity, changed)
    changed = known.contradicted(earlier) if similarity >= NEAR else ()
    return Related(Relation.CONFLICT if changed else Relation.NEW, similarity, changed)
