"""Two texts held against each other word by word, for a person who is to say which of them holds."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from vouchgate.ingest.language.words import SPACED_CHARACTER, split_words
from vouchgate.review.pages.wording.text import MarkedSpan, Pieces, pieces

# Two claims of the largest size, every character a word of its own, have 67 million; that takes some 50 ms, because
# a row of the table is one number. Longer texts are compared at their ends only.
MOST_PAIRS = 100_000_000

CHANGED = "changed"

# Words, with what holds numbers, versions, names and addresses together inside them; else single characters. A letter
# of a script that does not part its words is a word. Marks stay with their letters; all are written _MARK here.
_MARK = "\u0301"
_LETTER = rf"{SPACED_CHARACTER}{_MARK}*"
_WORD = re.compile(rf"(?:{_LETTER})+(?:[-.,:/@'’%+&=?#~]{{1,3}}(?:{_LETTER})+)*%?|\S{_MARK}*")
_SPACED = re.compile(r"\S+")
_EDGE = "\"'`“”‘’„«»([{}])*.,;:!?…"  # around a word, when it is compared with a changed value
_LEAST_AMID = 2  # words on both sides, from which fewer shared ones between them are noise


class DiffOp(StrEnum):
    """Where a stretch of text is: in both texts, only in the old one, only in the new one."""

    SAME = "same"
    REMOVED = "removed"
    ADDED = "added"


@dataclass(frozen=True, slots=True)
class DiffStretch:
    """One stretch of the two texts read together."""

    op: DiffOp
    text: str


@dataclass(frozen=True, slots=True)
class DiffView:
    """The old and the new text, each with its own words marked, and both read together."""

    old: Pieces
    new: Pieces
    merged: Pieces


def word_diff(old: str, new: str, changed: Collection[str] = ()) -> DiffView:
    """Both texts with the marks `removed` and `added`. Of those words the ones in `changed` (as
    `ingest.checks.dedup.changed_values` names them) have the mark `changed` as well."""
    found = changes(old, new)
    values = _cores(changed)
    return DiffView(
        old=_diff_pieces((change for change in found if change.op is not DiffOp.ADDED), values),
        new=_diff_pieces((change for change in found if change.op is not DiffOp.REMOVED), values),
        merged=_diff_pieces(found, values),
    )


def changed_spans(old: str, new: str, changed: Collection[str]) -> Iterator[tuple[int, int]]:
    """Where in the new text the words of `changed` stand that it does not share with the old one; where none of
    them can be told, every stretch that it does not share."""
    added: list[tuple[int, int]] = []
    values: list[tuple[int, int]] = []
    cores = _cores(changed)
    at = 0
    for change in changes(old, new):
        if change.op is DiffOp.REMOVED:
            continue
        if change.op is DiffOp.ADDED and change.text.strip():
            left = len(change.text) - len(change.text.lstrip())
            added.append((at + left, at + left + len(change.text.strip())))
            values += ((at + start, at + end) for start, end in _values(change.text, cores))
        at += len(change.text)
    yield from values or added


def changes(old: str, new: str) -> tuple[DiffStretch, ...]:
    """The two texts read together: what is the same and removed gives the old text, what is the same and added the
    new one. No two neighbours have the same `op`. A longest common subsequence of words, without shared words that
    stand alone amid longer changes, where they would only tear a sentence apart.
    """
    ours, theirs = _words(old), _words(new)
    return _read(_smoothed(_blocks(ours, theirs)))


@dataclass(frozen=True, slots=True)
class _Word:
    """A word, or a character that is in none, and the white space after it."""

    text: str
    gap: str

    @property
    def telling(self) -> bool:
        return any(map(str.isalnum, self.text))


@dataclass(slots=True)
class _Block:
    """Words of both texts at one place. When `same`, they are equal one by one, but for the white space."""

    same: bool
    ours: list[_Word]
    theirs: list[_Word]

    def size(self) -> int:
        return max(sum(word.telling for word in words) for words in (self.ours, self.theirs))


def _words(text: str) -> list[_Word]:
    """The text in words; put together again they are the text. White space at its beginning follows no word."""
    shadow = text
    if not text.isascii():
        shadow = "".join(_MARK if unicodedata.category(char).startswith("M") else char for char in text)
    found = list(_WORD.finditer(shadow))
    ends = [match.start() for match in found[1:]] + [len(text)]
    first = found[0].start() if found else len(text)
    words = [_Word("", text[:first])] if first else []
    for match, end in zip(found, ends, strict=False):
        words.append(_Word(text[match.start() : match.end()], text[match.end() : end]))
    return words


def _blocks(ours: list[_Word], theirs: list[_Word]) -> Iterator[_Block]:
    """What is alike and what differs, in turn."""
    at, there = 0, 0
    for match in [*_matches([w.text for w in ours], [w.text for w in theirs]), (len(ours), len(theirs), 0)]:
        start, begin, length = match
        if start > at or begin > there:
            yield _Block(False, ours[at:start], theirs[there:begin])
        if length:
            yield _Block(True, ours[start : start + length], theirs[begin : begin + length])
        at, there = start + length, begin + length


def _matches(ours: Sequence[str], theirs: Sequence[str]) -> Iterator[tuple[int, int, int]]:
    """Runs of equal words, as start in both and length, in order."""
    shorter = min(len(ours), len(theirs))
    head = next((at for at in range(shorter) if ours[at] != theirs[at]), shorter)
    rest = shorter - head
    tail = next((at for at in range(rest) if ours[-1 - at] != theirs[-1 - at]), rest)
    pairs = [(at, at) for at in range(head)]
    within = _common(ours[head : len(ours) - tail], theirs[head : len(theirs) - tail])
    pairs += ((head + one, head + other) for one, other in within)
    pairs += ((len(ours) - at, len(theirs) - at) for at in range(tail, 0, -1))
    begun = 0
    for at in range(1, len(pairs) + 1):
        if at == len(pairs) or pairs[at] != (pairs[at - 1][0] + 1, pairs[at - 1][1] + 1):
            yield *pairs[begun], at - begun
            begun = at


def _common(ours: Sequence[str], theirs: Sequence[str]) -> list[tuple[int, int]]:
    """The places of a longest common subsequence. A row of the usual table is one number: bit j is 0 where the
    length grows by one at the j-th word (Hyyrö 2004), so that a row costs a few operations on long numbers."""
    if len(ours) * len(theirs) > MOST_PAIRS:
        return []
    places: dict[str, int] = {}
    for at, word in enumerate(theirs):
        places[word] = places.get(word, 0) | 1 << at
    everywhere = (1 << len(theirs)) - 1
    rows = [everywhere]
    for word in ours:
        row = rows[-1]
        grows = row & places.get(word, 0)
        rows.append(((row + grows) | (row - grows)) & everywhere)
    pairs: list[tuple[int, int]] = []
    one, other = len(ours), len(theirs)
    while one and other:
        bit = 1 << (other - 1)
        if rows[one] & bit:
            other -= 1
        elif rows[one - 1] & bit:
            one, other = one - 1, other - 1
            pairs.append((one, other))
        else:
            one -= 1
    return pairs[::-1]


def _smoothed(blocks: Iterable[_Block]) -> list[_Block]:
    """The blocks, where a few shared words between longer changes count as changed too."""
    done: list[_Block] = []
    for block in blocks:
        if not block.same and len(done) >= 2:
            before, between = done[-2:]
            least = min(before.size(), block.size())
            if least >= _LEAST_AMID and between.size() < least:
                del done[-2:]
                parts = (before, between, block)
                ours = [word for part in parts for word in part.ours]
                block = _Block(False, ours, [word for part in parts for word in part.theirs])  # noqa: PLW2901
        done.append(block)
    return done


class _Reading:
    """The two texts read together, as far as they have been: between two stretches that are the same first what
    was removed, then what was added."""

    def __init__(self) -> None:
        self.done: list[DiffStretch] = []
        self._parts: dict[DiffOp, list[str]] = {op: [] for op in DiffOp}

    def same(self, text: str) -> None:
        if self._parts[DiffOp.REMOVED] or self._parts[DiffOp.ADDED]:
            self.flush()
        self._parts[DiffOp.SAME].append(text)

    def differ(self, old: str, new: str) -> None:
        self._parts[DiffOp.REMOVED] += [old] if old else []
        self._parts[DiffOp.ADDED] += [new] if new else []

    def flush(self) -> None:
        for op, parts in self._parts.items():
            if text := "".join(parts):
                self.done.append(DiffStretch(op, text))
            parts.clear()


def _read(blocks: Iterable[_Block]) -> tuple[DiffStretch, ...]:
    reading = _Reading()
    for block in blocks:
        if not block.same:
            old, new = ("".join(word.text + word.gap for word in side) for side in (block.ours, block.theirs))
            gap = block.ours[-1].gap if block.ours and block.theirs else ""
            if gap and gap == block.theirs[-1].gap:
                reading.differ(old.removesuffix(gap), new.removesuffix(gap))
                reading.same(gap)
            else:
                reading.differ(old, new)
            continue
        for word, other in zip(block.ours, block.theirs, strict=True):
            reading.same(word.text)
            if word.gap == other.gap:
                reading.same(word.gap)
            else:
                reading.differ(word.gap, other.gap)
    reading.flush()
    return tuple(reading.done)


def _diff_pieces(found: Iterable[DiffStretch], values: frozenset[str]) -> Pieces:
    """The stretches as one text in pieces."""
    texts: list[str] = []
    spans: list[MarkedSpan] = []
    at = 0
    for change in found:
        end = at + len(change.text)
        texts.append(change.text)
        if change.op is not DiffOp.SAME:
            spans.append(MarkedSpan(at, end, change.op.value))
            spans += (
                MarkedSpan(at + left, at + right, CHANGED) for left, right in _values(change.text, values)
            )
        at = end
    return pieces("".join(texts), spans)


def _cores(changed: Iterable[str]) -> frozenset[str]:
    """Changed values as the dedup check names them, without the punctuation that may stand around them."""
    return frozenset(word.strip(_EDGE) for word in changed)


def _values(text: str, values: frozenset[str]) -> Iterator[tuple[int, int]]:
    """Where words stand that are among the changed values: whole or, of a word with several parts, a part."""
    if not values:
        return
    for match in _SPACED.finditer(text):
        core = match[0].strip(_EDGE)
        if core and (core in values or not values.isdisjoint(split_words(core))):
            start = match.start() + match[0].index(core)
            yield start, start + len(core)
