"""What some kinds of citation share: a word with a number behind it, and the trimming of ends."""

from __future__ import annotations

import re

from vouchgate.ingest.citations.kinds import CitationKind, OpenSource, each_match, full_match

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


def numbered_kind(
    name: str,
    *,
    label: str,
    prefix: str,
    number: str,
    forms: tuple[str, ...],
    tail: str = "",
    settings: tuple[str, ...] = (),
    source: OpenSource | None = None,
) -> CitationKind:
    """A kind that is written as its name and a number, like `RFC 9110`.

    `prefix` (word and separator), `number` and `tail` (what must follow) are regex pieces. The prefix does
    not count after a letter, a digit, `_`, `#`, `@`, or an identifier and a dot (`time.RFC3339`). The key
    holds the number as an integer, so leading zeros do not count.
    """
    one = rf"{prefix}(?P<number>{number})"
    # A dot and a digit make a version or a decimal number, a year and a hyphen a date.
    no_version = r"(?!\.\d)(?!(?<=19\d\d)-\d|(?<=20\d\d)-\d)"
    running = re.compile(rf"(?<![\w#@$&\\])(?<!\w\.){one}(?!\w){no_version}{NOT_A_COUNT}{tail}", re.ASCII)

    def key(match: re.Match[str]) -> str:
        return f"{name}:{int(match['number'])}"

    return CitationKind(
        name=name,
        label=label,
        needles=(name,),
        find=each_match(running, key),
        whole=full_match(re.compile(one, re.ASCII), key),
        bare=full_match(re.compile(rf"(?:{prefix})?(?P<number>{number})", re.ASCII), key),
        forms=forms,
        settings=settings,
        source=source,
    )
