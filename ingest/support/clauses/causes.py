"""What is the reason of what, and what comes before what: whether a statement has the two sides of a place exchanged.

"The sync is nightly because the link is slow" has every word of "the link is slow because the sync is nightly". What
stands behind "because" is the reason, what stands behind "therefore" has one; what stands behind "after" is first.
Linear in the words.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice

from vouchgate.ingest.support.tokens import LISTS, Token, parts_of

_SENTENCE = frozenset(".;!?\n|")
_NO_REASON = frozenset({"that", "far", "much", "many"})  # behind "so"
_OF_EACH = 2  # words of either side that a mere "and" has to join the other way about
_MOST = 8  # pairs of either that are looked at
# The keys of what is first, and of what comes of it or after it.
_Pair = tuple[frozenset[str], frozenset[str]]


def turned_about(text: str, words: Sequence[Token], source: str, place: Sequence[Token]) -> bool:
    """Whether what is a reason in the statement has one in the place, which is the statement's result; or whether the
    place, in one sentence, joins the two by "and", and tells first what the statement says came of the other. The same
    of what is first of two."""
    for pairs in (_in_time, _reasons):
        ours, theirs = (
            list(islice(pairs(whole, each), _MOST)) for whole, each in ((text, words), (source, place))
        )
        if ours and not theirs and pairs is _reasons:
            joined = list(islice(_joined(source, place), _MOST))
            return any(_turned(one, other) >= _OF_EACH for one in ours for other in joined)
        if any(max((_turned(one, other) for other in theirs), key=abs, default=0) > 0 for one in ours):
            return True
        if any(_of_another(one, theirs) for one in ours):
            return True
    return False


def _of_another(ours: _Pair, theirs: Sequence[_Pair]) -> bool:
    """Whether the place gives the reason of something else, and another one of what the statement gives it of: "A was
    dropped because it is slow, B because it is dear"."""
    reason, result = ours
    cause, came = max(
        theirs, key=lambda each: len(reason & each[0] - result), default=(frozenset(), frozenset())
    )
    if 2 * len(reason & cause - result) < len(reason):
        return False
    return any(result & other - came - reason - cause and result & came for _, other in theirs)


def _turned(ours: _Pair, theirs: _Pair) -> int:
    """How many words of either side stand on the other one in the place; less than 0 where they stand as they do in the
    statement, and 0 where that does not show."""
    (reason, result), (cause, came) = ours, theirs
    back, forth = len(reason & came - result), len(result & cause - reason)
    first, second = len(reason & cause - result), len(result & came - reason)
    if back > first and forth > second:
        return min(back, forth)
    return -first - second


def _reasons(text: str, words: Sequence[Token]) -> Iterator[_Pair]:
    sentences = parts_of(words, text, _SENTENCE)
    for at, token in enumerate(words):
        then = words[at + 1].low if at + 1 < len(words) else ""
        if token.low in LISTS.because or (token.low, then) in LISTS.owing:
            yield from _pair(text, words, sentences, at, behind_is_first=True)
        elif token.low in LISTS.therefore and then not in _NO_REASON and words[max(0, at - 1)].low != "or":
            yield from _pair(text, words, sentences, at, behind_is_first=False)


def _in_time(text: str, words: Sequence[Token]) -> Iterator[_Pair]:
    sentences = parts_of(words, text, _SENTENCE)
    for at, token in enumerate(words):
        if token.low in ("after", "before"):
            yield from _pair(text, words, sentences, at, behind_is_first=token.low == "after")


def _joined(text: str, words: Sequence[Token]) -> Iterator[_Pair]:
    """What stands before an "and" of the place, as if it were the reason of what stands behind it."""
    sentences = parts_of(words, text, _SENTENCE)
    for at, token in enumerate(words):
        if token.low == "and":
            yield from _pair(text, words, sentences, at, behind_is_first=False)


def _pair(
    text: str, words: Sequence[Token], sentences: Sequence[int], at: int, *, behind_is_first: bool
) -> Iterator[_Pair]:
    """What such a word stands between in its sentence: of one that begins it what is before the first comma, and behind
    it; or, if what is first stands before it, the sentence before."""
    first, end = bisect_left(sentences, sentences[at]), bisect_right(sentences, sentences[at])
    before, behind = words[first:at], words[at + 1 : end]
    if not before and behind_is_first:
        before, behind = _fronted(text, behind)
    elif not before and at:
        before = words[bisect_left(sentences, sentences[at - 1]) : at]
    one, two = _keys(before), _keys(behind)
    if one and two:
        yield (two, one) if behind_is_first else (one, two)


def _fronted(text: str, words: Sequence[Token]) -> tuple[Sequence[Token], Sequence[Token]]:
    """What stands behind the first comma, and what before it."""
    for at in range(len(words) - 1):
        if "," in text[words[at].end : words[at + 1].start]:
            return words[at + 1 :], words[: at + 1]
    return (), words


def _keys(words: Sequence[Token]) -> frozenset[str]:
    return frozenset(key for token in words if token.content for key in token.keys)
