"""What the citation types share: the shape of a rule, folding of look-alike characters, trimming of ends."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple


class FoundCitation(NamedTuple):
    """One citation in the text a rule was handed: its offsets there and its canonical form."""

    start: int
    end: int
    key: str


@dataclass(frozen=True)
class CitationRule:
    """How one type of citation is recognised. All but the URL's functions see folded text (`fold`)."""

    type: str
    label: str  # what people call such a thing, on the pages
    needles: tuple[str, ...]  # lower case; a text with none of them has no such citation. Empty: always look
    find: Callable[[str], Iterator[FoundCitation]]  # in running text, where the surroundings count
    whole: Callable[[str], str | None]  # key of a string that is this citation and nothing else, or None
    bare: Callable[[str], str | None]  # the same once the type is known, so that "3" will do for an ADR
    forms: str  # the accepted forms, for error sentences


# Characters that print as nothing. They are dropped, not replaced, so offsets have to be mapped back.
INVISIBLE = frozenset(
    map(
        chr,
        (
            0xAD,
            0x200B,
            0x200C,
            0x200D,
            0x200E,
            0x200F,
            *range(0x202A, 0x202F),
            *range(0x2060, 0x2065),
            0xFEFF,
        ),
    )
)
_FOLD: dict[int, str] = {
    **dict.fromkeys((0xA0, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000), " "),
    **dict.fromkeys((0x2010, 0x2011, 0x2012, 0x2212, 0xFE58, 0xFE63), "-"),
    **dict.fromkeys((0x2018, 0x2019, 0x02BC), "'"),
    **{code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},  # full-width forms of ASCII
}


class Folded(NamedTuple):
    """Text ready for matching. `offsets` maps its characters to the text as sent; None means one to one."""

    text: str
    offsets: list[int] | None

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Offsets in the text as sent of a non-empty stretch of the folded text."""
        if self.offsets is None:
            return start, end
        return self.offsets[start], self.offsets[end - 1] + 1


def fold(text: str) -> Folded:
    """Replaces odd spaces, hyphens, apostrophes and full-width forms, and drops invisible characters.

    En and em dashes stay: they separate two citations as often as they join the parts of one.
    """
    if text.isascii():
        return Folded(text, None)
    folded = text.translate(_FOLD)
    if INVISIBLE.isdisjoint(folded):
        return Folded(folded, None)
    offsets = [i for i, char in enumerate(folded) if char not in INVISIBLE]
    return Folded("".join(folded[i] for i in offsets), offsets)


_CLOSERS = {")": "(", "]": "[", "}": "{", ">": "<"}
_TRAILING = frozenset(".,;:!?'\"*~")


def trim_end(text: str, start: int, end: int) -> int:
    """The end of a URL or DOI without trailing punctuation, possessive 's and closers not opened in it."""
    surplus = {
        closer: text.count(closer, start, end) - text.count(opener, start, end)
        for closer, opener in _CLOSERS.items()
    }
    while end > start:
        last = text[end - 1]
        if last in _TRAILING:
            end -= 1
        elif surplus.get(last, 0) > 0:
            surplus[last] -= 1
            end -= 1
        elif last == "s" and text[end - 2] == "'":
            end -= 2
        else:
            break
    return end


# "The ADR 3 weeks ago", "RFC 12 months later": a number that counts something names no document.
NOT_A_COUNT = (
    r"(?! (?:more |other )?"
    r"(?:second|minute|hour|day|week|month|year|time|people|page|line|percent|of \d)s?\b| ?%)"
)


def full_match(pattern: re.Pattern[str], key: Callable[[re.Match[str]], str]) -> Callable[[str], str | None]:
    """A `whole` or `bare` function: the key when the pattern matches the string from end to end."""

    def decide(value: str) -> str | None:
        match = pattern.fullmatch(value)
        return None if match is None else key(match)

    return decide


def numbered_rule(
    type_: str,
    *,
    label: str,
    prefix: str,
    number: str,
    needles: tuple[str, ...],
    forms: str,
    tail: str = "",
) -> CitationRule:
    """The rule of a type written as a word and a number, like `RFC 9110`.

    `prefix` (word and separator), `number` and `tail` (what must follow) are regex pieces. The prefix does
    not count after a letter, a digit, `_`, `#`, `@`, or an identifier and a dot (`time.RFC3339`). The key
    holds the number as an integer, so leading zeros do not count.
    """
    one = rf"{prefix}(?P<number>{number})"
    # A dot and a digit make a version or a decimal number, a year and a hyphen a date.
    no_version = r"(?!\.\d)(?!(?<=19\d\d)-\d|(?<=20\d\d)-\d)"
    running = re.compile(rf"(?<![\w#@$&\\])(?<!\w\.){one}(?!\w){no_version}{NOT_A_COUNT}{tail}", re.ASCII)

    def key(match: re.Match[str]) -> str:
        return f"{type_}:{int(match['number'])}"

    def find(text: str) -> Iterator[FoundCitation]:
        for match in running.finditer(text):
            yield FoundCitation(match.start(), match.end(), key(match))

    return CitationRule(
        type_,
        label,
        needles,
        find,
        whole=full_match(re.compile(one, re.ASCII), key),
        bare=full_match(re.compile(rf"(?:{prefix})?(?P<number>{number})", re.ASCII), key),
        forms=forms,
    )
