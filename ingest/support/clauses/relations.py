"""How a statement sets one thing beside another: before it, as much as it, more than all. A place that has the words
and does not set them so does not say it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from vouchgate.ingest.support.tokens import LISTS, Token

_SUPERLATIVE = 6  # letters; "oldest" and longer, so that "west", "test" and "rest" are none
_TURNING = frozenset(
    {"after", "before", "once", "when", "until", "following"}
)  # of two the later may stand first
_BACK = 4  # words before a superlative among which "one of the" begins


def unrelated(words: Sequence[Token], place: Sequence[Token]) -> bool:
    """Whether the statement has an order in time, a comparison, a likeness, a preference or a first rank that the place
    has not."""
    theirs = {token.low for token in place}
    for at, token in enumerate(words):
        accepted = LISTS.relating.get(token.low)
        counted = at + 1 < len(words) and words[at + 1].number  # "more than 50" may be "over 50"
        if accepted is not None and not counted and theirs.isdisjoint(accepted):
            return True
    preferred = any(
        one.low in ("instead", "rather") and two.low in ("of", "than") for one, two in pairwise(words)
    )
    if preferred and theirs.isdisjoint(LISTS.preferring):
        return True
    if theirs.isdisjoint(_TURNING) and _turned_round(words, place):
        return True
    return any(_outranked(token.low, words, place) for token in words if _is_superlative(token))


def _turned_round(words: Sequence[Token], place: Sequence[Token]) -> bool:
    """Whether of "one, then the other" the place has the other first."""
    where: dict[str, list[int]] = {}
    for at, token in enumerate(place):
        for key in token.keys if token.content else ():
            where.setdefault(key, []).append(at)
    for at, token in enumerate(words):
        if token.low == "then":
            one = next((where.get(word.keys[0], []) for word in reversed(words[:at]) if word.content), [])
            other = next((where.get(word.keys[0], []) for word in words[at + 1 :] if word.content), [])
            if not one or not other:
                continue
            listed = any(word.low == "then" for word in place[min(other) : min(one)])
            if max(other) < min(one) or listed:
                return True
    return False


def _is_superlative(token: Token) -> bool:
    return token.content and token.low.endswith("est") and len(token.low) >= _SUPERLATIVE


def _outranked(low: str, words: Sequence[Token], place: Sequence[Token]) -> bool:
    """Whether the place has a superlative only behind a rank or among others, "second-oldest", "one of the oldest", and
    the statement not."""
    return not _ranked(low, words) and _ranked(low, place)


def _ranked(low: str, words: Sequence[Token]) -> bool:
    places = [at for at, token in enumerate(words) if token.low.rpartition("-")[2] == low]
    return bool(places) and all(
        words[at].low.partition("-")[0] in LISTS.ranks
        or any(token.low in LISTS.ranks for token in words[max(0, at - _BACK) : at])
        for at in places
    )
