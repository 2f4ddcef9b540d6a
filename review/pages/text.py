"""Text of others as pieces that a template can show: what is marked in it, and what nobody would see.

Claims, excerpts, titles, addresses and names are hostile. Characters that cannot be seen, that turn the order of
others around, or that pile up become pieces of their own with a name for text (`U+202E`), so that whoever decides
sees what is there. Nothing here makes HTML; escaping is left to the template. Linear in the text, never raises.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache
from itertools import groupby

UNSEEN = "unseen"

# A text that is not trying to hide something has a handful; beyond this the page would only get slow.
MOST_TAGS = 500
_RUNS = 6  # different characters in one stretch of unseen ones; with more of them the stretch is one tag
_PILE = 4  # marks on one letter; real writing has up to four, what piles up more covers the lines above
_NAMED = 3  # names in the note of one tag

# In a list of many texts: four lines of a wide window have some 450 characters. A hundred whole claims that hide
# things are 4 MB and seconds of work, each time that somebody's list is brought up to date.
_OPENING = 600
_OPENING_TAGS = 40
_ROOM = 4  # characters that are read for each one of a plain line: some are white space

# Format characters that have a shape of their own: signs of Arabic, Syriac and Kaithi numbers and verses.
_SHAPED = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd")
# Letters, marks and symbols that Unicode shows as nothing: fillers, the grapheme joiner, a braille cell without dots.
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2065\u2800\u3164\uffa0\U0001d159")
_JOINERS = frozenset("\u200c\u200d")
_JOINED = range(0x0600, 0x1900)  # the scripts, Arabic to Mongolian, that are written with joiners
_SELECTORS = range(0xFE00, 0xFE10)
_PRESENTED = frozenset("\u203c\u2049\u2139\u3030\u303d")  # no symbols by category that have an emoji form
_KEYCAP = "\u20e3"
_NONCHARACTERS = range(0xFDD0, 0xFDF0)
_UNASSIGNED = (range(0xFFF0, 0xFFF9), range(0xE0000, 0xE1000))  # of those, the ones that are shown as nothing
_CONTROLS = {
    "\x00": "NULL",
    "\x07": "BELL",
    "\x08": "BACKSPACE",
    "\x0b": "LINE TABULATION",
    "\x0c": "FORM FEED",
    "\r": "CARRIAGE RETURN",
    "\x1b": "ESCAPE",
    "\x7f": "DELETE",
    "\x85": "NEXT LINE",
}
_NAMELESS = {"Cc": "CONTROL CHARACTER", "Co": "PRIVATE USE CHARACTER", "Cs": "LONE SURROGATE"}


@dataclass(frozen=True, slots=True)
class MarkedSpan:
    """Characters `start` to `end` of a text, and what they are marked as; `note` says why, in a phrase."""

    start: int
    end: int
    kind: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text that is shown alike. With the mark UNSEEN, `text` names characters that are not shown, and
    `note` has their Unicode name; else `text` is the text itself."""

    text: str
    marks: frozenset[str] = frozenset()
    note: str = ""


Pieces = tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class _Tag:
    """What is shown in place of the characters `start` to `end`."""

    start: int
    end: int
    text: str
    note: str


def pieces(text: str, spans: Iterable[MarkedSpan] = (), *, most: int = MOST_TAGS) -> Pieces:
    """The text in pieces, in order. A piece has every mark whose span covers it, with their notes; spans beyond the
    text are cut, empty ones say nothing. The pieces without UNSEEN are the text without what cannot be seen.

    At most `most` + 1 pieces are UNSEEN; what is beyond them is left out, and the last says how much.
    """
    tags = list(_tags(text, most))
    kept, dropped = tags[:most], tags[most:]
    starts = [tag.start for tag in tags]
    changes = _changes(text, spans, tags, starts)
    made = _PieceBuilder()
    at, next_tag = 0, 0
    for cut in sorted({*changes, *starts, *(tag.end for tag in tags), len(text)}):
        if cut > at:
            if next_tag < len(tags) and tags[next_tag].start == at:
                if next_tag < len(kept):
                    made.tag(tags[next_tag])
                next_tag += 1
            else:
                made.plain(text[at:cut])
            at = cut
        made.change(changes.get(cut, ()))
    made.flush()
    if dropped:
        count = sum(tag.end - tag.start for tag in dropped)
        made.done.append(
            Piece(f"and {count:,} more", frozenset({UNSEEN}), "characters that cannot be seen, left out here")
        )
    return tuple(made.done)


def opening_pieces(text: str) -> Pieces:
    """The beginning of a text in pieces, as long as anybody reads in a list of many. Where there is more of it, the
    last piece is an ellipsis."""
    shown = pieces(text[:_OPENING], most=_OPENING_TAGS)
    return shown if len(text) <= _OPENING else (*shown, Piece(" …"))


def is_whole(shown: Pieces, text: str) -> bool:
    """Whether the `opening_pieces` of a text has all of it."""
    return len(text) <= _OPENING and sum(UNSEEN in piece.marks for piece in shown) <= _OPENING_TAGS


def plain_line(text: str, most: int) -> str:
    """The text on one line, at most `most` (at least 1) characters long and cut with an ellipsis, for titles and
    labels: white space is one space, and characters that cannot be seen are named as in `⟨U+202E⟩`. Of a long text
    no more is read than such a line may need."""
    text = text.lstrip(" \t\n")
    read = text[: most * _ROOM]
    shown = "".join(f"⟨{piece.text}⟩" if UNSEEN in piece.marks else piece.text for piece in pieces(read))
    line = " ".join(shown.split())
    if len(line) <= most and len(read) == len(text):
        return line
    cut = line[: most - 1]
    opened = cut.rfind("⟨")
    if 0 <= opened and "⟩" not in cut[opened:]:
        cut = cut[:opened]  # half a name would be read as another one
    return cut.rstrip() + "…"


class _PieceBuilder:
    """The pieces so far, and the marks that hold at the present place."""

    def __init__(self) -> None:
        self.done: list[Piece] = []
        self._open: dict[tuple[str, str], int] = {}
        self._text: list[str] = []

    def change(self, changes: Iterable[tuple[MarkedSpan, int]]) -> None:
        for span, by in changes:
            key = span.kind, span.note
            was, now = self._open.get(key, 0), self._open.get(key, 0) + by
            if 0 in (was, now):
                self.flush()
            if now:
                self._open[key] = now
            else:
                self._open.pop(key, None)

    def plain(self, text: str) -> None:
        self._text.append(text)

    def tag(self, tag: _Tag) -> None:
        self.flush()
        self.done.append(Piece(tag.text, self._marks() | {UNSEEN}, tag.note))

    def flush(self) -> None:
        if self._text:
            notes = dict.fromkeys(note for _, note in self._open if note)
            self.done.append(Piece("".join(self._text), self._marks(), "; ".join(notes)))
            self._text = []

    def _marks(self) -> frozenset[str]:
        return frozenset(kind for kind, _ in self._open)


def _changes(
    text: str, spans: Iterable[MarkedSpan], tags: list[_Tag], starts: list[int]
) -> dict[int, list[tuple[MarkedSpan, int]]]:
    """Where marks begin (+1) and end (-1). A tag is marked as a whole, so that no mark begins or ends within."""
    changes: dict[int, list[tuple[MarkedSpan, int]]] = {}
    for span in spans:
        start, end = max(span.start, 0), min(span.end, len(text))
        if start >= end:
            continue
        before = bisect_right(starts, start) - 1
        if before >= 0 and start < tags[before].end:
            start = tags[before].start
        behind = bisect_right(starts, end - 1) - 1
        if behind >= 0 and end < tags[behind].end:
            end = tags[behind].end
        changes.setdefault(start, []).append((span, 1))
        changes.setdefault(end, []).append((span, -1))
    return changes


class _Kind(Enum):
    """What becomes of a character where it stands."""

    SHOWN = auto()
    HIDDEN = auto()
    MARK = auto()  # sits on the letter before
    JOINER = auto()
    SELECTOR = auto()
    BREAK = auto()  # a line break or a tabulator, on which no mark can sit


@lru_cache(maxsize=8192)
def _kind(character: str) -> _Kind:
    code = ord(character)
    if character in "\n\t":
        return _Kind.BREAK
    if character in _JOINERS:
        return _Kind.JOINER
    if code in _SELECTORS:
        return _Kind.SELECTOR
    category = unicodedata.category(character)
    if (
        character in _BLANK
        or (category == "Cn" and _is_nothing(code))
        or (category == "Mn" and code > 0xE0000)
    ):
        return _Kind.HIDDEN
    if category in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp"):
        return _Kind.SHOWN if character in _SHAPED else _Kind.HIDDEN
    return _Kind.MARK if category in ("Mn", "Me") else _Kind.SHOWN


def _is_nothing(code: int) -> bool:
    """Whether a code point that stands for no character is one that stands for none for ever, or is not drawn."""
    return code & 0xFFFE == 0xFFFE or code in _NONCHARACTERS or any(code in part for part in _UNASSIGNED)


def _tags(text: str, most: int) -> Iterator[_Tag]:
    """What is shown in place of characters that are not, in order. One tag for a run of the same character, and
    one for a stretch of many different ones; beyond `most` they have no words."""
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return
    made = 0
    for start, end in _stretches(text):
        if made >= most:
            yield _Tag(start, end, "", "")  # counted, never shown
            continue
        runs = [(character, len(list(run))) for character, run in groupby(text[start:end])]
        if len(runs) > _RUNS:
            others = len({character for character, _ in runs}) - 1
            label = f"{_code(text[start])} and {others} other{'s' if others != 1 else ''} × {end - start}"
            yield _Tag(start, end, label, _names(text[start:end]))
            made += 1
            continue
        at = start
        for character, count in runs:
            times = f" × {count}" if count > 1 else ""
            yield _Tag(at, at + count, f"{_code(character)}{times}", _name(character))
            at += count
        made += len(runs)


def _stretches(text: str) -> Iterator[tuple[int, int]]:
    """Runs of characters that are not shown, as start and end."""
    begun = -1
    marks = _PILE  # on the letter before; as if it were full where there is none
    for at, character in enumerate(text):
        kind = _kind(character)
        match kind:
            case _Kind.SHOWN | _Kind.BREAK:
                hidden = False
            case _Kind.HIDDEN:
                hidden = not (character == "\r" and text[at + 1 : at + 2] == "\n")
            case _Kind.MARK:
                hidden = marks >= _PILE
            case _Kind.JOINER:
                hidden = not _joins(text, at)
            case _Kind.SELECTOR:
                hidden = not _selects(text, at)
        if kind is _Kind.MARK:
            marks += 1
        elif hidden or kind is _Kind.BREAK:
            marks = _PILE
        elif kind is _Kind.SHOWN:
            marks = 0
        if hidden and begun < 0:
            begun = at
        elif not hidden and begun >= 0:
            yield begun, at
            begun = -1
    if begun >= 0:
        yield begun, len(text)


def _joins(text: str, at: int) -> bool:
    """Whether a joiner is where writing needs one: between letters of a script that has them, or in an emoji."""
    before, after = text[at - 1 : at] if at else "", text[at + 1 : at + 2]
    if not before or not after:
        return False
    if ord(before) in _JOINED and ord(after) in _JOINED:
        return unicodedata.category(before) in ("Lo", "Mn", "Mc") and unicodedata.category(after) == "Lo"
    pictured = before == "\ufe0f" or unicodedata.category(before) in ("So", "Sk")
    return text[at] == "\u200d" and pictured and unicodedata.category(after) == "So"


def _selects(text: str, at: int) -> bool:
    """Whether a variation selector chooses between a symbol and its emoji; elsewhere it only hides something."""
    before = text[at - 1 : at] if at else ""
    if text[at] not in "\ufe0e\ufe0f" or not before or _kind(before) is not _Kind.SHOWN:
        return False
    listed = before in _PRESENTED or unicodedata.category(before) in ("So", "Sm")
    return listed or (before in "#*0123456789" and text[at + 1 : at + 2] == _KEYCAP)


def _code(character: str) -> str:
    return f"U+{ord(character):04X}"


def _name(character: str) -> str:
    known = _CONTROLS.get(character) or unicodedata.name(character, "")
    return known or _NAMELESS.get(unicodedata.category(character), "NONCHARACTER")


def _names(characters: str) -> str:
    """The names of the first few different characters."""
    distinct = list(dict.fromkeys(characters))
    more = ", …" if len(distinct) > _NAMED else ""
    return ", ".join(map(_name, distinct[:_NAMED])) + more
