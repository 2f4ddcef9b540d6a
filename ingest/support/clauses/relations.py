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
_FIRST = frozenset({"first"})
_STEP = 4  # words to either side of "then" that tell two steps apart
_BACK = 4  # words before a superlative among which "one of the" begins


def unrelated(words: Sequence[Token], place: Sequence[Token]) -> bool:
    """Whether the statement has an order in time, a comparison, a likeness, a preference or a first rank that the place
    has not."""
    theirs = {token.low for token in place}
    for at, token in enumerate(words):
        accepted = LISTS.relating.get(token.low)
        counted = at + 1 < len(words) and words[at + 1].number  # "more than 50" may be "over 50"
        prefers = token.low == "than" and at > 0 and words[at - 1].low == "rather"
        if accepted is not None and not counted and not prefers and theirs.isdisjoint(accepted):
            return True
    preferred = any(
        one.low in ("instead", "rather") and two.low in ("of", "than") for one, two in pairwise(words)
    )
    if preferred and theirs.isdisjoint(LISTS.preferring):
        return True
    return any(_outranked(token.low, words, place) for token in words if _is_superlative(token))


def turned_round(words: Sequence[Token], place: Sequence[Token]) -> bool:
    """Whether of "one, then the other" the place has the other first: the nearest word, or all of the few words that
    only one of the two has. What stands before or after another by its small words may be told in any order."""
    if any(token.low in _TURNING for token in place):
        return False
    where: dict[str, list[int]] = {}
    for at, token in enumerate(place):
        for key in token.keys if token.content else ():
            where.setdefault(key, []).append(at)
    steps: list[list[str]] = [[]]
    for token in words:
        if token.low == "then":
            steps.append([])
        elif token.content and token.keys[0] in where and token.low not in _FIRST:
            steps[-1].append(token.keys[0])
    for before, behind in pairwise(steps):
        if not before or not behind:
            continue
        one, other = where[before[-1]][0], where[behind[0]][0]
        listed = any(token.low == "then" for token in place[other:one])
        if listed or (one > other and len(where[behind[0]]) == 1):
            return True
        first = [where[key][0] for key in before[-_STEP:] if key not in behind]
        second = [where[key][0] for key in behind[:_STEP] if key not in before]
        if first and second and max(second) < min(first):
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
