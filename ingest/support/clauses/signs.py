"""What signs say of a statement: what stands at a number, a label before it, a question mark behind it.

"<24 hours", "24k hours" and "-24" are other numbers than 24, and "False: …" and "…?" do not say that what stands there
is so, though every word of it is in the source.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from vouchgate.ingest.support.tokens import LISTS, Token

# Before a number; a dash only where it is no range or bullet, a closing bracket only where it is no arrow or quotation.
_SIGN = re.compile(
    r"(?P<bound>(?<![-=<>\n\"'/])[<>]=?|[≤≥⩽⩾])\s?\Z|(?P<other>[≠±∓¬]|!=|(?<![\w.,)\]])(?<!\A)[-−.](?=\Z))\s?\Z"
)
_BOUNDS = {"<=": "≤", ">=": "≥", "⩽": "≤", "⩾": "≥"}
# What says the same as a sign, in the words right before a number.
_IN_WORDS = {
    "<": re.compile(r"\b(?:less|fewer|lower|smaller|shorter|under|below|beneath) (?:than )?\Z"),
    ">": re.compile(r"\b(?:(?:more|greater|higher|larger|longer) than|over|above|beyond|exceed\w*) \Z"),
    "≤": re.compile(r"\b(?:at most|up to|no more than|not more than|maximum(?: of)?|max\.?|within) \Z"),
    "≥": re.compile(r"\b(?:at least|no less than|not less than|minimum(?: of)?|min\.?|from) \Z"),
}
_WRITTEN = re.compile(r"(v?)[\d.,:]+([a-z]{0,2})")
_ORDINALS = frozenset({"", "st", "nd", "rd", "th"})
_SCALES = {"thousand": "k", "million": "m", "billion": "b", "trillion": "t", "milliard": "b"}
_REACH = 24  # characters before a number in which its sign is looked for
_LABEL = 6  # words that a label may have
_SHORT = 4  # letters; a longer word in "-ed" tells what was done, "seed" does not
_COLON = re.compile(r"(?<!:):\s")
_ASKS = re.compile(r"[?？؟‽⁇⁈⁉][\s\"'”’)\]*_`]*\Z")


def other_sign(text: str, words: Sequence[Token], source: str, place: Sequence[Token]) -> bool:
    """Whether a number that both have stands there with another sign, or is of another scale."""
    theirs: dict[str, list[int]] = {}
    for at, token in enumerate(place):
        if token.number:
            theirs.setdefault(token.keys[0], []).append(at)
    for at, token in enumerate(words):
        met = theirs.get(token.keys[0]) if token.number else None
        if met and not any(
            _signs_agree(text, token.start, source, place[other].start)
            and _scales_agree(words, at, place, other)
            for other in met
        ):
            return True
    return False


def _signs_agree(text: str, start: int, source: str, other: int) -> bool:
    ours, theirs = _sign(text, start), _sign(source, other)
    if ours == theirs:
        return True
    return _says_in_words(ours, source, other) and _says_in_words(theirs, text, start)


def _says_in_words(sign: str, text: str, start: int) -> bool:
    """Whether what stands before a number says the same as the sign that stands before it elsewhere."""
    before = text[max(0, start - _REACH) : start].lower().replace("\n", " ")
    return not sign or (sign in _IN_WORDS and _IN_WORDS[sign].search(before) is not None)


def _sign(text: str, start: int) -> str:
    match = _SIGN.search(f" {text[max(0, start - 4) : start]}")
    if match is None:
        return ""
    bound = match["bound"]
    return _BOUNDS.get(bound, bound) if bound else match["other"]


def _scales_agree(words: Sequence[Token], at: int, place: Sequence[Token], other: int) -> bool:
    ours, theirs = _WRITTEN.fullmatch(words[at].low), _WRITTEN.fullmatch(place[other].low)
    if ours is None or theirs is None:
        return True
    for mine, others, where, behind in ((ours, theirs, place, other), (theirs, ours, words, at)):
        if mine[1] and not others[1] and not (behind and where[behind - 1].low.startswith("v")):
            return False
        if mine[2] not in _ORDINALS and mine[2] != others[2]:
            after = where[behind + 1].low if behind + 1 < len(where) else ""
            unit = others[2] or _SCALES.get(after, after)
            if unit[:1] != mine[2][:1]:
                return False
    return True


def labelled(text: str, words: Sequence[Token], place: Sequence[Token], missing: Sequence[Token]) -> bool:
    """Whether what stands before a colon judges what stands behind it, or tells what was done, in a word that the
    source lacks: "Rejected: …", "Passwords leaked: …". What only names a thing ("pool (service): …") does neither."""
    for at, (token, after) in enumerate(pairwise(words[: _LABEL + 1])):
        if _COLON.search(text, token.end, after.start):
            there = {one.low for one in place}
            return any(
                (one.low in LISTS.verdicts and one.low not in there)
                or (one in missing and len(one.low) > _SHORT and one.low.endswith("ed"))
                for one in words[: at + 1]
            )
    return False


def asks(statement: str) -> bool:
    """Whether a sentence asks: it says nothing then."""
    return _ASKS.search(statement) is not None
