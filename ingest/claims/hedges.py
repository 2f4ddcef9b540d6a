"""What is weak about the words of a claim."""

from __future__ import annotations

from enum import StrEnum

from vouchgate.ingest.claims.frozen import Frozen


class HedgeCategory(StrEnum):
    """Kinds of hedge. The first three block, the last two send to review."""

    PERSONAL_SPECULATION = "personal_speculation"
    ADMITTED_UNCERTAINTY = "admitted_uncertainty"
    UNDECIDED_SUGGESTION = "undecided_suggestion"
    TECHNICAL_HEDGE = "technical_hedge"
    APPROXIMATION = "approximation"


BLOCKING_HEDGES = frozenset(
    {
        HedgeCategory.PERSONAL_SPECULATION,
        HedgeCategory.ADMITTED_UNCERTAINTY,
        HedgeCategory.UNDECIDED_SUGGESTION,
    }
)


class HedgeAction(StrEnum):
    """What the hedges in a text call for; BLOCK wins over REVIEW."""

    BLOCK = "block"
    REVIEW = "review"
    CONTINUE = "continue"


class HedgeMatch(Frozen):
    """One hedge. `text` is `sent_text[start:end]`: offsets are characters of the text as sent."""

    category: HedgeCategory
    text: str
    start: int
    end: int
