"""Text of others as pieces that a template can show: what is marked in it, and what nobody would see.

Claims, excerpts, titles, addresses and names are hostile. Characters that cannot be seen, that turn the order of
others around, or that pile up become pieces of their own with a name for text (`U+202E`), so that whoever decides
sees what is there. Nothing here makes HTML; escaping is left to the template. Linear in the text, never raises.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from vouchgate.ingest.language.unseen import code_point, name_of, stretches

UNSEEN = "unseen"

# A text that is not trying to hide something has a handful; beyond this the page would only get slow.
MOST_TAGS = 500
_RUNS = 6  # different characters in one stretch of unseen ones; with more of them the stretch is one tag
_NAMED = 3  # names in the note of one tag

# In a list of many texts: four lines of a wide window have some 450 characters. A hundred whole claims that hide
# things are 4 MB and seconds of work, each time that somebody's list is brought up to date.
_OPENING = 600
_OPENING_TAGS = 40
_HALVES = "\u200c\u200d\ufe0e\ufe0f"  # joiners and selectors: what they were for may have been cut off
_ROOM = 4  # characters that are read for each one of a plain line: some are white space


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
    return cut.rstrip(_HALVES).rstrip() + "…"


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


def _tags(text: str, most: int) -> Iterator[_Tag]:
    """What is shown in place of characters that are not, in order. One tag for a run of the same character, and
    one for a stretch of many different ones; beyond `most` they have no words."""
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return
    made = 0
    for start, end in stretches(text):
        if made >= most:
            yield _Tag(start, end, "", "")  # counted, never shown
            continue
        runs = [(character, len(list(run))) for character, run in groupby(text[start:end])]
        if len(runs) > _RUNS:
            others = len({character for character, _ in runs}) - 1
            label = (
                f"{code_point(text[start])} and {others} other{'s' if others != 1 else ''} × {end - start}"
            )
            yield _Tag(start, end, label, _names(text[start:end]))
            made += 1
            continue
        at = start
        for character, count in runs:
            times = f" × {count}" if count > 1 else ""
            yield _Tag(at, at + count, f"{code_point(character)}{times}", name_of(character))
            at += count
        made += len(runs)


def _names(characters: str) -> str:
    """The names of the first few different characters."""
    distinct = list(dict.fromkeys(characters))
    more = ", …" if len(distinct) > _NAMED else ""
    return ", ".join(map(name_of, distinct[:_NAMED])) + more
