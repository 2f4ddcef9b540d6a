"""A claim as its statements: the parts of it that can be true or false by themselves.

A sentence is one, a list item is one, and so is a clause that rides on a sentence: what follows ", and", "which
means", a semicolon, a dash or a dot between two parts, and what stands in brackets. A lie beside a true sentence is a
statement of its own, and a claim is as good as its worst one.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

from vouchgate.ingest.language.sentences import ABBREVIATIONS, sentences

MOST = 200  # statements of a claim: more than a claim of 8,192 characters has in ordinary sentences
_LEAST_WORDS = 3  # of a clause; what has fewer belongs to what stands before it
_WORD = re.compile(r"\w(?:[\w'’.]|-(?!-))*")
# Where a clause begins that may be true or false by itself. Never inside a word, a number or a list of single words.
_JOINT = re.compile(
    r"(?:,\s{1,4}|\s{1,4})(?:and|but|while|whereas|so)\s{1,4}(?!a (?:half|quarter)\b)"
    r"(?=(?:that|the|a|an|it|its|they|their|this|these|we|our|you|no|not|every|all|each|"
    r"never|always|only|also|then|thus|there|for|if|at|in|on|by|to|can|may|must|is|are|was|were|has|have|will|do|does)\b)"
    r"|,\s{1,4}(?:and|but|or|so|which|while|whereas|because|since|although|though|meaning|whose|where|with)\s{1,4}"
    r"|(?P<stop>[.!?])[\"'”’)\]*_`]{0,4}\s{1,4}(?=[a-z])"
    # A long dash mostly stands without spaces; a short one without them is a hyphen, or a range.
    r"|;\s{1,4}|[；。]\s{0,4}|\s{0,4}[—―⸺]\s{0,4}|(?<=[^\W_])---?(?=[^\W\d_])"
    r"|\s{1,4}(?:[–‒·•¶]|--?-?|//|::)\s{1,4}|…\s{1,4}|\t\s{0,3}|\s{1,4}[(](?=\w)|[)]\s{1,4}(?=\w)"
)
_TRAILING = " \t\r\n\f\v\u00a0,;:"  # what a statement does not end with
_LAST_WORD = re.compile(r"([^\s(\[\"“]+)\Z")


@dataclass(frozen=True, slots=True)
class Statement:
    """A part of a claim, by characters of the claim's text: `start` to `end`, in the sentence `sentence`, whose subject
    it may need to be understood."""

    start: int
    end: int
    sentence: tuple[int, int]

    @property
    def whole(self) -> bool:
        """Whether it is its sentence."""
        return (self.start, self.end) == self.sentence


def statements(claim: str, said: str | None = None) -> tuple[Statement, ...]:
    """The statements of a claim in order, at most MOST; what comes after those is one more, to its end. `said` is the
    claim with what only cites blanked out, when a statement is to have words beyond that. Linear."""
    said = claim if said is None else said
    found: list[Statement] = []
    for sentence in sentences(claim, None):
        start, end = _trimmed(said, *sentence)
        for first, last in _clauses(claim, said, start, end) if start < end else ():
            if len(found) == MOST:
                return (*found, Statement(first, len(said), (first, len(said))))
            found.append(Statement(first, last, (start, end)))
    return tuple(found)


def _clauses(claim: str, said: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The clauses of one sentence. A piece with too few words is part of the clause before it."""
    begin = start
    words: list[int] | None = None  # where each begins, once they have to be counted
    for match in _JOINT.finditer(claim, start, end):
        if words is None:
            words = [word.start() for word in _WORD.finditer(said, start, end)]
        at = bisect_left(words, match.end())
        before = bisect_left(words, match.start()) - bisect_left(words, begin)
        apart = before >= _LEAST_WORDS and len(words) - at >= _LEAST_WORDS
        if apart if match["stop"] is None else _ends(claim, begin, match.start()):
            first, last = _trimmed(said, begin, match.start())
            if first < last:
                yield first, last
            begin = match.end()
    first, last = _trimmed(said, begin, end)
    if first < last:
        yield first, last


def _ends(text: str, begin: int, stop: int) -> bool:
    """Whether a full stop before a small letter is the end of a sentence: the word before it is no abbreviation."""
    last = _LAST_WORD.search(text, max(begin, stop - 20), stop)
    return last is None or (len(last[1]) > 1 and last[1].lower() not in ABBREVIATIONS)


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), end - len(piece) + len(piece.rstrip(_TRAILING))
