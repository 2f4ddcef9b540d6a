"""Which of the names that are known a mistyped one was meant to be."""

from __future__ import annotations

from collections.abc import Iterable

_LETTERS_A_SLIP = 4  # one letter wrong, missing, too many or exchanged with its neighbour in so many
_LONGEST = 100  # characters of a name that is compared


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like `name`, whatever the case; None when none is like it."""
    from rapidfuzz import process  # noqa: PLC0415  (only somebody who mistyped waits for it)
    from rapidfuzz.distance import OSA  # noqa: PLC0415

    name = name[:_LONGEST]
    slips = max(1, len(name) // _LETTERS_A_SLIP)
    found = process.extractOne(
        name, list(known), scorer=OSA.distance, processor=str.casefold, score_cutoff=slips
    )
    return None if found is None else found[0]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a sentence on a name that is unknown; empty when no known name is like it."""
    nearest = nearest_name(name, known)
    return "" if nearest is None else f" (did you mean {nearest}?)"
