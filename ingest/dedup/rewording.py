"""A claim as the units in which it can differ from another one, with harmless differences taken away.

Contractions are written out, phrases and synonyms of the audited lists brought to one form, "5ms" and "well-known"
taken apart, plurals and British spellings folded, small words left out. Two claims whose units are equal in
order say the same; every other difference is one that nobody has called harmless (ADR-0007).
"""

from __future__ import annotations

from typing import NamedTuple

from vouchgate.ingest.language.value_words import ValueWords
from vouchgate.ingest.language.words import COMPOUND, COUNTED, MARKED_AS_CODE, split_words, word_list

# A word of two letters that stands twice is a slip ("to to"); longer ones may be two ("the cache caches").
_SLIP = 2
_REMEMBERED = 1 << 14  # words as written: some 10 MB with what was made of them
_EDGE = "\"'`“”‘’„«»([{}])*"
_COMMAS = (",", ";", "、", "،")
_STOPS = (".", "!", "?", ":", "。", "؟", "।")


class Unit(NamedTuple):
    """One thing a claim says. Two units say the same when their keys are equal."""

    key: str
    shown: str  # as written
    firm: bool = False  # a number, identifier or name, and so no verb
    joined: bool = False  # "and" stands before it
    article: bool = False  # another small word stands before it
    comma: bool = False  # a comma stands after it
    ends: bool = False  # a sentence ends after it


class _Word(NamedTuple):
    """A normalised word, and what its surroundings say about it."""

    text: str
    shown: str
    exact: bool
    firm: bool
    comma: bool
    ends: bool


def _is_exact(shown: str, raw: str, *, opens_sentence: bool) -> bool:
    """Whether a word is a number, an identifier or a name by its looks. The first word of a sentence is a name
    only if it is one further on."""
    if any(character.isnumeric() for character in shown) or MARKED_AS_CODE.search(raw):
        return True
    return shown[:1].isupper() and not opens_sentence


class _Piece(NamedTuple):
    """What stands between two spaces: its words, and what its punctuation says."""

    words: tuple[_Word, ...]
    comma: bool
    ends: bool


def _piece(raw: str, words: ValueWords, *, opens_sentence: bool) -> _Piece:
    if raw.isascii() and raw.isalpha() and raw.islower():
        return _Piece((_Word(raw, raw, False, False, False, False),), False, False)
    core = raw.rstrip(_EDGE)
    ends, comma = core.endswith(_STOPS), core.endswith(_COMMAS)
    shown = raw.strip(_EDGE).rstrip(".,;:!?…") or raw
    exact = _is_exact(shown, raw, opens_sentence=opens_sentence)
    parts = split_words(raw)
    found = []
    for index, part in enumerate(parts, 1):
        firm = exact or (shown[:1].isupper() and part not in words.openers)
        last = index == len(parts)
        written = shown if len(parts) == 1 else part
        found.append(_Word(part, written, exact, firm, last and comma, last and ends))
    return _Piece(tuple(found), comma, ends)


def _parts(text: str, exact: frozenset[str], words: ValueWords) -> tuple[str, ...]:
    """The words that one word is made of."""
    if text.isalpha():
        return (text,)
    if text.endswith("n't") and len(text) > 3:
        return text[:-3], "not"
    counted = COUNTED.fullmatch(text)
    if counted and counted[2] in words.unit_names:
        return counted[1], counted[2]
    if COMPOUND.fullmatch(text) and text not in exact:
        return tuple(text.split("-"))
    return (text,)


class _Text(NamedTuple):
    """A text as words, and those of them that are names, numbers or identifiers in it."""

    words: list[_Word]
    exact: frozenset[str]


class Rewriter:
    """Turns texts into units under one policy. It remembers what it made of the last words, so that a text which shares
    most of its words with those before it costs a tenth."""

    def __init__(self, words: ValueWords) -> None:
        self.values = words
        self._pieces: dict[tuple[str, bool], _Piece] = {}
        self._parted: dict[tuple[str, bool], tuple[str, ...]] = {}
        self._keys: dict[str, str] = {}
        self._plain: dict[tuple[str, bool], str | None] = {}

    def read(self, text: str) -> _Text:
        """The words of a text with what stands around them. A text without words is one firm word, itself."""
        found: list[_Word] = []
        pieces = self._pieces
        if len(pieces) > _REMEMBERED:
            for cache in (pieces, self._parted, self._keys, self._plain):
                cache.clear()
        opens_sentence = True
        for raw in text.split():
            piece = pieces.get((raw, opens_sentence))
            if piece is None:
                piece = _piece(raw, self.values, opens_sentence=opens_sentence)
                pieces[raw, opens_sentence] = piece
            if piece.words:
                found += piece.words
                opens_sentence = piece.ends
            elif found and (piece.ends or piece.comma):  # a lone full stop ends what stands before it
                found[-1] = found[-1]._replace(comma=piece.comma, ends=piece.ends or found[-1].ends)
                opens_sentence = opens_sentence or piece.ends
        found = found or [_Word(word, word, True, True, False, False) for word in word_list(text)]
        return _Text(found, frozenset(word.text for word in found if word.exact))

    def vocabulary(self, text: _Text) -> frozenset[str]:
        """Every word and part of a word that its units can be made of, and that it matters of whether it is exact."""
        found: set[str] = set()
        for each in {word.text for word in text.words}:
            found.update((each, *_parts(each, frozenset(), self.values)))
            for _, right in self.values.rewrites.get(each, ()):
                found.update(right)
        return frozenset(found)

    def units(self, text: _Text, exact: frozenset[str]) -> list[Unit]:
        """A text as units, where the words of `exact` are names, numbers or identifiers."""
        words, plain = self.values, self._plain
        droppable, joining = words.droppable, words.joining
        units: list[Unit] = []
        joined = article = False
        before = ""
        at = 0
        while at < len(text.words):
            word = text.words[at]
            place = word.text, word.text in exact
            key = plain[place] if place in plain else self._plain_key(*place)
            if key is not None:  # nearly every word, at a fraction of the time
                units.append(Unit(key, word.shown, word.firm, joined, article, word.comma, word.ends))
                joined, article, before = False, False, word.text
                at += 1
                continue
            taken, parts, word = self._written_out(text.words, at, exact)
            at += taken
            for index, part in enumerate(parts, 1):
                last = index == len(parts)
                if part in droppable:
                    joined, article = joined or part in joining, part not in joining
                    if units and last and (word.comma or word.ends):
                        units[-1] = units[-1]._replace(comma=True, ends=units[-1].ends or word.ends)
                    before = part
                    continue
                ends, comma = last and word.ends, last and word.comma
                if part == before and len(part) <= _SLIP and part.isalpha() and part not in words.carriers:
                    units[-1] = units[-1]._replace(comma=comma, ends=ends)
                else:
                    own = words.synonyms.get(part, part) if part in exact else self._key(part)
                    units.append(Unit(own, word.shown, word.firm, joined, article, comma, ends))
                joined, article, before = False, False, part
        return units

    def _key(self, word: str) -> str:
        known = self._keys.get(word)
        if known is None:
            known = self._keys[word] = self.values.key(word)
        return known

    def _plain_key(self, word: str, exact: bool) -> str | None:
        """The key of a word that is one unit whatever stands around it; None of any other."""
        values, key = self.values, None
        slip = word.isalpha() and len(word) <= _SLIP
        whole = _parts(word, frozenset((word,) if exact else ()), values) == (word,)
        if whole and not slip and word not in values.droppable and word not in values.rewrites:
            key = values.synonyms.get(word, word) if exact else values.key(word)
        self._plain[word, exact] = key
        return key

    def _written_out(
        self, found: list[_Word], at: int, exact: frozenset[str]
    ) -> tuple[int, tuple[str, ...], _Word]:
        """What the words from this one on are written out as: how many are taken, their parts, and the word that
        these were written as."""
        word = found[at]
        for left, right in self.values.rewrites.get(word.text, ()):
            if tuple(w.text for w in found[at : at + len(left)]) == left:
                if len(left) > 1:
                    shown = " ".join(w.shown for w in found[at : at + len(left)])
                    word = found[at + len(left) - 1]._replace(shown=shown)
                return len(left), right, word
        place = word.text, word.text in exact
        parts = self._parted.get(place)
        if parts is None:
            parts = self._parted[place] = _parts(word.text, exact, self.values)
        return 1, parts, word


class RewrittenClaim:
    """A claim that is held against one text after another."""

    def __init__(self, claim: str, rewriter: Rewriter) -> None:
        self._rewriter = rewriter
        self._claim = self._rewriter.read(claim)
        self._vocabulary = self._rewriter.vocabulary(self._claim)
        self._units: dict[
            frozenset[str], list[Unit]
        ] = {}  # of the last text; by which of the vocabulary are exact

    def beside(self, other: str) -> tuple[list[Unit], list[Unit]]:
        """The claim and another text as units. What is a name or an identifier in one of them is none the less one
        in the other, so that the case of a letter alone never makes a difference."""
        theirs = self._rewriter.read(other)
        exact = self._claim.exact | theirs.exact
        known = exact & self._vocabulary
        ours = self._units.get(known)
        if ours is None:
            ours = self._rewriter.units(self._claim, known)
            self._units = {known: ours}
        return ours, self._rewriter.units(theirs, exact)
