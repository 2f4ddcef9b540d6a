"""How long: spans of time in a text, however they are written. Half an hour is 30 minutes and no hour."""

from __future__ import annotations

from collections.abc import Sequence

from vouchgate.ingest.contradictions.lists import LISTS
from vouchgate.ingest.support.tokens import Token

# Before "an hour", so that it counts: "100 requests an hour" says how often.
_LASTING = frozenset(
    {
        "after",
        "for",
        "within",
        "in",
        "of",
        "lasts",
        "takes",
        "every",
        "about",
        "than",
        "is",
        "to",
        "least",
        "most",
    }
)
_ARTICLES = frozenset({"a", "an"})
_MEASURES = frozenset({"time", "calendar"})  # of the units; a month has no fixed number of days


def durations(words: Sequence[Token]) -> dict[int, tuple[str, float]]:
    """By where each word of a span of time begins, what is measured and how long it is. Linear."""
    found: dict[int, tuple[str, float]] = {}
    for at, token in enumerate(words):
        measure, size = (
            LISTS.units.get(token.low) or LISTS.units.get(token.low.removesuffix("s")) or ("", 0.0)
        )
        if measure not in _MEASURES or not at:
            continue
        first, amount = _amount(words, at)
        if amount is not None:
            span = measure, round(amount * size, 9)
            found.update((word.start, span) for word in words[first : at + 1])
    return found


def _amount(words: Sequence[Token], at: int) -> tuple[int, float | None]:
    """How many of the unit at a place, and where that begins."""
    before = words[at - 1]
    if before.number:
        return at - 1, _value(before)
    if before.low not in _ARTICLES:
        return at, None
    if at > 1 and words[at - 2].number:
        return at - 2, _value(words[at - 2]) if words[at - 2].low == "half" else None
    return at - 1, 1.0 if at > 1 and words[at - 2].low in _LASTING else None


def _value(token: Token) -> float | None:
    try:
        return float(token.keys[0].removeprefix("#").replace(",", ""))
    except ValueError:
        return None
