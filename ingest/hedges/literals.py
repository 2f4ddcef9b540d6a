"""Which parts of a text are mentioned rather than said: code spans, fenced blocks, quoted literals.

A quotation is a literal only where it is used as a string: something beside it says so (the message "…", is
printed as "…"). Quotation marks alone hide nothing, else `"I think" the cache is stale` would pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

LITERAL_LIMIT = 300  # characters; a longer quotation or code span in a sentence is not a mention of a string

_FENCE = re.compile(r"^[ \t]{0,12}(?:```+|~~~+)[^\n`]*$", re.MULTILINE)
_TICKS = re.compile(r"`+")
_GNU_QUOTE = re.compile(r"`[^`'\s]{1,40}'")
_QUOTE = re.compile(r"[\"']")

Interval = tuple[int, int]


def code_spans(text: str) -> list[Interval]:
    """Fenced blocks and back-tick spans, in order and disjoint. Linear: every run of ticks is looked at once."""
    if "`" not in text and "~~~" not in text:
        return []
    found: list[Interval] = []
    fences = list(_FENCE.finditer(text))
    for opening, closing in zip(fences[::2], fences[1::2], strict=False):
        found.append((opening.start(), closing.end()))
    edges = [0, *(edge for block in found for edge in block), len(text)]
    outside = zip(edges[::2], edges[1::2], strict=True)
    runs = [run for start, end in outside for run in _TICKS.finditer(text, start, end)]
    partner: dict[int, int] = {}
    latest: dict[int, int] = {}
    for number in range(len(runs) - 1, -1, -1):
        length = len(runs[number].group())
        if length in latest:
            partner[number] = latest[length]
        latest[length] = number
    number = 0
    while number < len(runs):
        other = partner.get(number)
        if other is not None and runs[other].end() - runs[number].start() <= LITERAL_LIMIT:
            found.append((runs[number].start(), runs[other].end()))
            number = other
        elif other is None:
            gnu = _GNU_QUOTE.match(text, runs[number].start())
            if gnu:
                found.append(gnu.span())
        number += 1
    return sorted(found)


def quotations(text: str) -> Iterator[Interval]:
    """Pairs of quotation marks of one kind, neither longer than the limit nor nested."""
    opened: re.Match[str] | None = None
    for mark in _QUOTE.finditer(text):
        before = text[mark.start() - 1] if mark.start() else " "
        after = text[mark.end()] if mark.end() < len(text) else " "
        if opened is not None and mark.start() - opened.start() > LITERAL_LIMIT:
            opened = None
        closes = not before.isspace() and not after.isalnum()
        if opened is not None and mark.group() == opened.group() and closes:
            yield opened.start(), mark.end()
            opened = None
        elif opened is None and not before.isalnum() and not after.isspace():
            opened = mark
