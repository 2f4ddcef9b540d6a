"""A text as sentences, list items, table rows, headings and lines of code: what can be shown on its own."""

from __future__ import annotations

import re
from collections.abc import Iterable

from vouchgate.ingest.data import read_data

LONGEST = 500  # characters; what goes on longer without an end is cut at a space

# Only the first mark of a run is tried, so that a text of full stops is read once. It begins with one set of signs,
# which is looked for five times as fast as three ways to begin.
_END = re.compile(
    r"[.!?。！？\n](?:(?<=[.!?])(?<![.!?].)[.!?]*[\"'”’)\]*_`]{0,4}(?=\s)|(?<=[。！？])|(?<=\n)[ \t]*)"
)
# A line goes on in the next one that begins small, where neither names what has a value.
_SMALL = re.compile(r"[a-zß-ÿ][\w'’-]*(?:\s|[,.;)])(?!\s*[:=])")
_KEYED = re.compile(r"\s*[\w.-]+\s*[:=]\s")
_LAST_WORD = re.compile(r"[^\s(\[\"“]+\Z")
_FIRST_WORD = re.compile(r"[A-Za-z]*")
# What a heading or an item begins with, and no sentence is: "4. Text", "ii. Text", "Part 1. Text".
_NUMBERING = re.compile(r"\s*(?:(?:[A-Z][a-z]{1,9} )?\d{1,3}|[ivx]{1,4})")
_ITEM = re.compile(r"(?:[a-z]\)|[ivx]{1,4}[.)])\s+\S")  # the letter or Roman number of an item
# What begins a line that belongs to no sentence before it: an item, a heading, a table row, a quote, a fence, code.
_LINE_START = re.compile(r"(?:[-*+•#|>]|\d{1,3}[.)]\s|```|~~~| {4}|\t)")
# Wrapped lines are of about one length; a shorter line ends something, a longer one was never wrapped.
_WRAPPED = range(45, 111)
# Not the sign of a query ("/x?a=b"), of a type ("int?.name") or of a name in code ("`valid?`").
_ASKED = re.compile(r"[?？؟‽⁇⁈⁉](?![`=]|[a-z0-9_]|\w+=|\.\w)")
_BROKEN = re.compile(r"[^.!?…:;|。！？\s\"\'”’)\]*_`][\"\'”’)\]*_`]{0,4}[ \t]*(?:\n[ \t]*[a-zß-ÿ]|\S)\Z")


def sentences(text: str, longest: int | None = LONGEST) -> list[tuple[int, int]]:
    """Start and end of each, in order, without the white space around; none is empty. One of more than `longest`
    characters is cut, unless that is None. Linear in the text."""
    found: list[tuple[int, int]] = []
    start = line = 0
    for match in _END.finditer(text):
        if match.group()[0] == "\n":
            ends = _line_ends(text, line, match.start(), match.end())
            line = match.end()
        else:
            mark = match.group()
            if mark[0] == ".":
                ends = not _abbreviated(text, start, match.start(), match.end())
            else:
                ends = not _goes_on(text, match.end(), mark)
        if ends:
            _add(found, text, start, match.end(), longest)
            start = match.end()
    _add(found, text, start, len(text), longest)
    return found


def unwrapped(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """The text with a space for each line break within one of these sentences, which says nothing. Offsets hold."""
    if "\n" not in text:
        return text
    pieces, done = list[str](), 0
    for start, end in spans:
        pieces += (text[done:start], text[start:end].replace("\n", " "))
        done = end
    return "".join((*pieces, text[done:]))


def without_questions(text: str) -> str:
    """The text with dots for the words of each sentence that asks, also one that is cut or broken at short lines: what
    a text asks, it does not say. Offsets hold. Linear."""
    pieces, asks, begins = list[str](), False, len(text)
    for start, end in reversed(sentences(text) if _ASKED.search(text) else ()):
        goes_on = asks and _BROKEN.search(text, max(start, end - 5), begins + 1)
        asks = bool(goes_on or _ASKED.search(text, start, end))
        pieces += (text[end:begins], re.sub(r"\w", "·", text[start:end]) if asks else text[start:end])
        begins = start
    return "".join((text[:begins], *reversed(pieces)))


def _line_ends(text: str, line: int, end: int, after: int) -> bool:
    """Whether the line from `line` to `end` ends what it says; the next one begins at `after`."""
    goes_on = _SMALL.match(text, after) is not None and _KEYED.match(text, line) is None
    return (
        (end - line not in _WRAPPED and not goes_on)
        or text[after : after + 1] in ("\n", "\r", "")
        or text[end - 1] in ":|"
        or _LINE_START.match(text, end + 1) is not None
        or _LINE_START.match(text, after) is not None
    )


def _goes_on(text: str, end: int, mark: str) -> bool:
    """Whether a sentence goes on behind a quotation: `"Is it hot?" he asked`."""
    return mark[-1] in "\"'”’" and text[end : end + 8].lstrip()[:1].islower()


def _abbreviated(text: str, start: int, stop: int, end: int) -> bool:
    """Whether a full stop belongs to the word before it: an abbreviation, an initial, a number that begins an item, or
    a small letter follows."""
    last = _LAST_WORD.search(text, max(start, stop - 20), stop)
    word = last.group().lower() if last else ""
    following = text[end : end + 20].lstrip()
    initial = len(word) == 1 and word.isalpha()
    if word in ABBREVIATIONS or initial:
        may_end = word in _AT_SENTENCE_END or (initial and text[start : stop - 1].strip())
        return not may_end or _FIRST_WORD.match(following)[0] not in _SENTENCE_STARTS  # type: ignore[index]
    if _NUMBERING.fullmatch(text, start, stop):
        return True
    if following[:1].islower():
        return _ITEM.match(following) is None
    return word in _BEFORE_NUMBERS and following[:1].isdigit()


def _add(found: list[tuple[int, int]], text: str, start: int, end: int, longest: int | None) -> None:
    while longest is not None and end - start > longest:
        cut = text.rfind(" ", start + longest // 2, start + longest)
        cut = start + longest if cut < 0 else cut
        _add_one(found, text, start, cut)
        start = cut
    _add_one(found, text, start, end)


def _add_one(found: list[tuple[int, int]], text: str, start: int, end: int) -> None:
    piece = text[start:end]
    start += len(piece) - len(piece.lstrip())
    end -= len(piece) - len(piece.rstrip())
    if start < end:
        found.append((start, end))


# Constants read once from the package's own data file.
_LISTS = read_data("language.toml")
ABBREVIATIONS = frozenset(_LISTS["abbreviations"])
_AT_SENTENCE_END = frozenset(_LISTS["at_sentence_end"])
_SENTENCE_STARTS = frozenset(_LISTS["sentence_starts"])
_BEFORE_NUMBERS = frozenset(_LISTS["before_numbers"])
