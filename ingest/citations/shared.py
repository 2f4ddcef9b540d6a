"""What the citation types share: the shape of a rule, and the trimming of ends."""

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
    """How one type of citation is recognised. All but the URL's functions see text with plain signs (`plain_signs`)."""

    type: str
    label: str  # what people call such a thing, on the pages
    needles: tuple[str, ...]  # lower case; a text with none of them has no such citation. Empty: always look
    find: Callable[[str], Iterator[FoundCitation]]  # in running text, where the surroundings count
    whole: Callable[[str], str | None]  # key of a string that is this citation and nothing else, or None
    bare: Callable[[str], str | None]  # the same once the type is known, so that "3" will do for an ADR
    forms: str  # the accepted forms, for error sentences


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
