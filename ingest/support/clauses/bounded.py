"""What bounds a clause of the place and is not in the statement: a case, a speaker, a doubt, another time.

"If the flag is set, …", "…, the vendor says", "in theory", "in most cases" and "(not yet)" stand before, behind or
within what they bound, and a statement that leaves them out says more than the place does (ADR-0092). The forms are in
`bounds` of `ingest/data/stance.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from vouchgate.ingest.data import read_data
from vouchgate.ingest.support.tokens import Token

_DATA = read_data("stance.toml")["bounds"]
_LONGEST = 2_000  # characters of a sentence that are looked at
_LEAST = 2  # words of a statement that the bounded clause has
_MOST = 0.6  # of those that its sentence has
_CLAUSES = re.compile(r";|:\s|\s[-–—]\s|,\s(?:and|but|so|or|while|whereas)\s|\s(?:but|whereas)\s")
_PARTS = re.compile(r"[,;:(\n]|\s[-–—]\s|\s(?:and|or|but|who|which|that|whereas|while|because)\s")


class _Bound(NamedTuple):
    """What bounds a clause, `first` to `last`, and the clause, `start` to `end`."""

    first: int
    last: int
    start: int
    end: int


_OPENS = r"[\W_]*(?:(?:and|but|so|then|also|however|therefore|thus)\b,? )?"
# At the beginning, up to a comma or without one; right before a clause; somewhere in it; behind it.
_HOWS = {
    "fronted": rf"{_OPENS}(?:%s)(?=[ ,])[^,;:—\n]{{0,160}}?,",
    "opening": rf"{_OPENS}(?:%s),?\s",
    "leading": r"(?:%s)\s",
    "within": r"\b(?:%s)\b",
    "behind": r"(?:%s)(?=$|[.,;!?)\s])[^,;.:)\n]*",
}
_KINDS = tuple(
    (each["kind"], how, re.compile(form % "|".join(each[how]), re.I), frozenset(each["unless"]))
    for each in _DATA
    for how, form in _HOWS.items()
    if how in each
)


def bounded(
    words: Sequence[Token],
    keys: Collection[str],
    place: Sequence[Token],
    text: str,
    sentences: Sequence[tuple[int, int]],
) -> dict[str, float]:
    """By what its place bounds a statement, of which `keys` are those of its words: a case that it leaves out
    (`left_out`), somebody's word or a doubt (`reported`), that it was only tried or considered (`governed`), another
    time (`former`), or the circumstance with which its sentence begins (`scoped`). Of a sentence so many characters are
    looked at."""
    found: dict[str, float] = {}
    lows = {token.low for token in words}
    for start, stop in sentences:
        end = min(stop, start + _LONGEST)
        here = [
            token for token in place if token.content and start <= token.start < end and token.among(keys)
        ]
        if len(here) < _LEAST:
            continue
        for kind, how, pattern, own in _KINDS:
            if found.get(kind) or not lows.isdisjoint(own):
                continue
            for bound in _bounds(text, start, end, how, pattern):
                told = any(bound.first <= token.start < bound.last for token in here)
                within = sum(bound.start <= token.start < bound.end for token in here)
                if not told and within >= max(_LEAST, _MOST * len(here)):
                    found[kind] = 1.0
    return found


def _bounds(text: str, start: int, end: int, how: str, pattern: re.Pattern[str]) -> Iterator[_Bound]:
    if how in {"fronted", "opening"}:
        if (match := pattern.match(text, start, end)) is not None:
            yield _Bound(match.start(), match.end(), match.end(), _until(text, match.end(), end))
        return
    for match in pattern.finditer(text, start, end):
        first, last = match.span()
        until = _until(text, last, end)
        if how == "leading" or (how == "within" and text[last:until].strip(" .")):
            yield _Bound(first, last, last, until)
        else:
            stop = start + len(text[start:first].rstrip(" ,(*_"))
            before = max((each.end() for each in _PARTS.finditer(text, start, stop)), default=start)
            yield _Bound(first, last, before, first)


def _until(text: str, start: int, end: int) -> int:
    match = _CLAUSES.search(text, start, end)
    return end if match is None else match.start()
