"""Where a quotation stands in a text, whatever its case, white space and typography.

Two questions: `find` says where the very words stand, and nothing else will do; `align` says where the text comes
nearest to them, and how near. Neither makes another word or number of what is written.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from vouchgate.ingest.language.normalise import plain_signs

MOST_QUOTED = 500  # characters of a quotation that is aligned
MOST_SEARCHED = 4_000  # characters of a text in which one is; the time grows with the product of both
_LONGEST_WORD = 40  # characters
_SIGNS = str.maketrans("“”„‟«»‘’‚`–—", '""""""\'\'\'\'--')  # one for one, so that no place moves
_SPACE = re.compile(r"\s+")


class Alignment(NamedTuple):
    """A place in a text as given, and how like the quotation it is: from 0 to 1, where 1 is the same words."""

    start: int
    end: int
    score: float


class _Readable:
    """A text in one case, with single spaces and plain signs, and the way back to the text as given."""

    def __init__(self, text: str) -> None:
        self._plain = plain_signs(text)
        self._starts: list[int] = []
        pieces: list[str] = []
        signs = self._plain.text.translate(_SIGNS)
        at = 0
        for space in (*_SPACE.finditer(signs), None):
            end = len(signs) if space is None else space.start()
            pieces.extend(signs[at:end])
            self._starts.extend(range(at, end))
            if space is not None and pieces and space.end() < len(signs):
                pieces.append(" ")
                self._starts.append(space.start())
            at = end if space is None else space.end()
        self.text = "".join(low if len(low := character.lower()) == 1 else character for character in pieces)

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Offsets in the text as given of a stretch that is not empty."""
        return self._plain.span(self._starts[start], self._starts[end - 1] + 1)


def find(quote: str, text: str) -> tuple[int, int] | None:
    """Where the words of a quotation stand in a text, first and one after the last character; None when they do not.
    A quotation that ends within a word or number stands nowhere: "port 80" is not in "port 8080"."""
    wanted, searched = _Readable(quote).text, _Readable(text)
    place = _found(wanted, searched.text)
    return None if place is None else searched.origin(*place)


def align(quote: str, text: str) -> Alignment | None:
    """Where a text comes nearest to a quotation. The very words score 1; without them it is the stretch of about the
    same length with the fewest characters to change (`partial_ratio` of rapidfuzz). None when either has no word.
    Looks at the first MOST_QUOTED characters of the one and MOST_SEARCHED of the other."""
    wanted, searched = _Readable(quote[:MOST_QUOTED]).text, _Readable(text[:MOST_SEARCHED])
    if not wanted or not searched.text:
        return None
    exact = _found(wanted, searched.text)
    if exact is not None:
        return Alignment(*searched.origin(*exact), 1.0)
    from rapidfuzz import fuzz  # noqa: PLC0415  (5 MiB that only a quotation with a slip in it needs)

    nearest = fuzz.partial_ratio_alignment(wanted, searched.text)
    if nearest is None or nearest.dest_start >= nearest.dest_end:
        return None
    start, end = searched.origin(*_to_whole_words(searched.text, nearest.dest_start, nearest.dest_end))
    return Alignment(start, end, min(nearest.score / 100, 0.99))  # 1 is kept for the very words


def _to_whole_words(text: str, start: int, end: int) -> tuple[int, int]:
    """A place widened to the ends of the words that it begins and ends in; of no word by more than a word's length."""
    first, last = max(0, start - _LONGEST_WORD), min(len(text), end + _LONGEST_WORD)
    while start > first and text[start - 1].isalnum() and text[start].isalnum():
        start -= 1
    while end < last and text[end].isalnum() and text[end - 1].isalnum():
        end += 1
    return start, end


def _found(wanted: str, searched: str) -> tuple[int, int] | None:
    if not wanted:
        return None
    # Letters of ASCII only: scripts that do not part their words, or hang endings on them, have no such edge.
    match = re.search(f"(?<![0-9a-z]){re.escape(wanted)}(?![0-9a-z])", searched)
    return None if match is None else match.span()
