"""How much of a thing a place says it of: a number as a limit or a range, some of several, a part of one.

"More than 30 seconds" is not 30, "few importers" are not the importers, and "a copy of the rows" is not the rows. A
statement with such a word says it itself (ADR-0093). The forms are in `amounts` of `ingest/data/stance.toml`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Sequence

from vouchgate.ingest.data import read_data
from vouchgate.ingest.support.tokens import Token

_DATA = read_data("stance.toml")["amounts"]
# With which a statement says in other words that a number is a limit.
_TOLD = re.compile(
    r"exceed|limit|max|[<>≤≥]|\b(?:min|minimum|most|least|above|below|over|under|within)\b", re.IGNORECASE
)
_MOST = 0.6  # of the words of a statement that the place has
_MARKS = re.compile(r"[,;:()\n]|[.!?]\s")
_REACH = 40  # characters before or behind a word in which its amount is said


def _before(forms: Sequence[str]) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{'|'.join(forms)})\s\Z", re.IGNORECASE)


_LIMITS = tuple(
    (
        _before(raw["before"]),
        re.compile(rf"\W?\s?(?:[\w%]+\s)?(?:{'|'.join(raw['behind'])})(?!\w)", re.IGNORECASE),
    )
    for raw in (_DATA["most"], _DATA["least"], _DATA["range"])
)
_SEVERAL = _before(_DATA["some"]["several"])  # before what is more than one
_SOME = _before(_DATA["some"]["before"])
_PARTS = _before(_DATA["parts"]["before"])
_SAID = frozenset(_DATA["some"]["words"])


def amounts_to_less(
    text: str, words: Sequence[Token], keys: Collection[str], source: str, place: Sequence[Token]
) -> bool:
    """Whether the place has a number of the statement only as a limit or in a range, or says of some, or of a part,
    what the statement says of the whole. `keys` are all under which a word of the statement is found."""
    theirs = [token for token in place if token.content and token.among(keys)]
    if _only_as_limit(text, words, source, theirs):
        return True
    lows = {token.low for token in words}
    some = _SAID.isdisjoint(lows)
    for token in _of_main_clause(source, theirs):
        before = source[max(0, token.start - _REACH) : token.start]
        several = token.low.endswith("s")
        if some and (_SOME.search(before) is not None or (several and _SEVERAL.search(before) is not None)):
            return True
        head = _PARTS.search(before)
        if head is not None and head.group().lower().split()[0] not in lows:
            return True
    return False


def _of_main_clause(source: str, theirs: Sequence[Token]) -> Sequence[Token]:
    """The words of a statement between the same two marks of the place, where these are most of them."""
    if not theirs:
        return ()
    marks = [each.start() for each in _MARKS.finditer(source, theirs[0].start, theirs[-1].end)]
    clauses = [bisect_left(marks, token.start) for token in theirs]
    most, count = Counter(clauses).most_common(1)[0]
    if count < _MOST * len(theirs):
        return ()
    return [token for token, clause in zip(theirs, clauses, strict=True) if clause == most]


def _only_as_limit(text: str, words: Sequence[Token], source: str, theirs: Sequence[Token]) -> bool:
    for token in words:
        if token.number:
            own = _limits(text, token)
            if not own and _TOLD.search(text, words[0].start, words[-1].end) is not None:
                continue
            there = [other for other in theirs if other.number and other.keys[0] == token.keys[0]]
            if there and all(_limits(source, other) - own for other in there):
                return True
    return False


def _limits(text: str, token: Token) -> frozenset[int]:
    """As which kinds of limit a number stands there."""
    before = text[max(0, token.start - _REACH) : token.start]
    behind = text[token.end : token.end + _REACH]
    return frozenset(
        kind
        for kind, (first, last) in enumerate(_LIMITS)
        if first.search(before) is not None or last.match(behind) is not None
    )
