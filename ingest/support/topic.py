"""Is a source about what a claim says? A score from the words they share, and where the source comes nearest.

Each word of the claim weighs by its kind; the score is the share of that weight which the source has. Words far
apart count less than words that are close together: a page about anything has most common words somewhere, a page
about the claim has several of them in one place. The title counts as close to every place.

Overlap finds the wrong source, not the right claim: a high score says that the two speak of the same thing, never
that they say the same (ADR-0010).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from vouchgate.ingest.language.terms import Kind, Word, term_key, words_of

OFF_TOPIC = 0.30  # below it the source speaks of something else; measured in docs/checks.md
ON_TOPIC = 0.40  # from here on it speaks of it; between the two the rules cannot tell

WEIGHTS = {
    Kind.FUNCTION: 0.0,
    Kind.COMMON: 0.3,
    Kind.GENERAL: 0.6,
    Kind.NUMBER: 0.5,
    Kind.WORD: 1.0,
    Kind.NAME: 1.2,
    Kind.IDENTIFIER: 1.4,
}
# A number that the source does not have is rather another value than another subject.
MISSING_NUMBER = 0.2
PARTS = 0.8  # of an identifier's weight, when all its parts are there, but not joined like this
AKIN = 0.5  # of a word's weight, when the source has a longer or shorter word with the same beginning
# A source that has none of the names a claim speaks of is rather about another thing of the same kind.
NAMELESS = 0.6
WINDOW = 35  # words that count as close together: about two sentences
SHORT = 60  # words; a source that is shorter may be a passage that names its subject by a pronoun
LONG = 150  # words; in a source that is longer, chance brings more of any claim's words together
NEAR = 0.5  # how much of the score goes by the words that are close together
NEAR_IN_LONG = 0.75
_BEGINNING = 4  # letters that two forms of a word share at least
LONGEST_PAIRED = 20  # letters of a word that may be half of a compound
MOST_PLACES = 50  # of one part of a word, or keys with one beginning; a hostile text repeats them without end

_PRONOUNS = frozenset({"he", "she", "it", "they", "his", "her", "its", "their"})
_DEFINITE = frozenset({"the", "this", "these"})


@dataclass(frozen=True, slots=True)
class TopicMatch:
    """How far a source speaks of what a claim says. `place` is where it comes nearest, in the source's text."""

    score: float  # 0 to 1
    shared: tuple[Word, ...]  # words of the claim that the source has
    missing: tuple[Word, ...]  # and those it has not
    place: tuple[int, int] | None
    weight: float  # of all words of the claim together; 0 when there is nothing to look for


@dataclass(frozen=True, slots=True)
class _Hit:
    """A word of the claim seen at a word of the source."""

    at: int  # index of the word in the source
    which: int  # index of the word in the claim
    weight: float


class Subject:
    """The words of a source, ready to be asked for those of a claim. Built in time linear in the text, of which
    the first `head` characters are the title."""

    def __init__(self, text: str, head: int = 0) -> None:
        self._text = text
        self.words = tuple(words_of(text))
        self.titled = sum(word.start < head for word in self.words)
        self._places: dict[str, list[int]] = {}
        for index, word in enumerate(self.words):
            if word.kind is not Kind.FUNCTION:
                self._places.setdefault(word.key, []).append(index)
                for key, _ in word.parts:
                    self._places.setdefault(key, []).append(index)

    @cached_property
    def _pairs(self) -> dict[str, list[int]]:
        """Neighbouring words written as one: time out is timeout."""
        found: dict[str, list[int]] = {}
        shown = [
            self._text[word.start : min(word.end, word.start + LONGEST_PAIRED)].lower() for word in self.words
        ]
        for index, (one, two) in enumerate(pairwise(shown)):
            found.setdefault(term_key(one + two), []).append(index)
        return found

    @cached_property
    def _beginnings(self) -> Beginnings:
        return Beginnings(self._places)

    @cached_property
    def names_by_pronoun(self) -> bool:
        """Whether it is a short passage that speaks of its subject as "it" or "the city"."""
        if len(self.words) >= SHORT or not self.words:
            return False
        return self.words[0].key in _DEFINITE or any(word.key in _PRONOUNS for word in self.words[:12])

    def find_word(self, word: Word) -> list[tuple[float, list[int]]]:
        """How much of a word is there, from 0 to 1 in one or more parts, each with the places where it is."""
        if places := self._places.get(word.key) or self._pairs.get(word.key):
            return [(1.0, places)]
        if word.parts:
            whole = max(1.0, sum(WEIGHTS[kind] for _, kind in word.parts))
            return [
                (PARTS * WEIGHTS[kind] / whole, self._places[key][:MOST_PLACES])
                for key, kind in word.parts
                if key in self._places
            ]
        if word.kind in (Kind.WORD, Kind.NAME, Kind.GENERAL) and (key := self._beginnings.akin_to(word.key)):
            return [(AKIN, self._places[key])]
        return []


class Beginnings:
    """The keys of a text by how they begin, to find one that is a longer or shorter form of another."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._found: dict[str, list[str]] = {}
        for key in keys:
            if len(key) >= _BEGINNING:
                self._found.setdefault(key[:_BEGINNING], []).append(key)

    def akin_to(self, key: str) -> str | None:
        """The first key that begins like this one for most of their length; None when none of those tried does."""
        alike = self._found.get(key[:_BEGINNING], ())[:MOST_PLACES] if len(key) >= _BEGINNING else ()
        return next((other for other in alike if _akin(key, other)), None)


def _akin(one: str, two: str) -> bool:
    """Whether one key begins the other, or both begin alike for most of their length."""
    short, long = sorted((one, two), key=len)
    same = 0
    while same < len(short) and short[same] == long[same]:
        same += 1
    if same == len(short):
        return same >= 4 and 2 * same >= len(long)
    return same >= 5 and same >= 0.65 * len(long)


def content_words(words: Iterable[Word]) -> tuple[Word, ...]:
    """The words that say what a text is about, each once."""
    first: dict[str, Word] = {}
    for word in words:
        if word.kind is not Kind.FUNCTION:
            first.setdefault(word.key, word)
    return tuple(first.values())


def match(claim: str, words: Iterable[Word], subject: Subject) -> TopicMatch:
    """How far the subject speaks of the words, which are of the text `claim`. Linear in both."""
    wanted = content_words(words)
    shared: list[Word] = []
    missing: list[Word] = []
    hits: list[_Hit] = []
    found = lacking = 0.0
    for which, word in enumerate(wanted):
        weight = WEIGHTS[word.kind]
        there = subject.find_word(word)
        share = min(1.0, sum(part for part, _ in there))
        found += share * weight
        lacking += (1 - share) * (MISSING_NUMBER if word.kind is Kind.NUMBER else weight)
        (shared if there else missing).append(word)
        for number, (part, places) in enumerate(there):
            hits += [_Hit(at, which * 100 + number, part * weight) for at in places]
    total = found + lacking
    if not total:
        return TopicMatch(0.0, (), (), None, 0.0)
    nearest, span = _nearest(sorted(hits, key=lambda hit: hit.at), subject.titled)
    near = NEAR_IN_LONG if len(subject.words) > LONG else NEAR
    score = ((1 - near) * found + near * nearest) / total
    if not subject.names_by_pronoun and _nameless(claim, shared, missing):
        score *= NAMELESS
    place = None if span is None else (subject.words[span[0]].start, subject.words[span[1]].end)
    return TopicMatch(round(score, 4), tuple(shared), tuple(missing), place, total)


def _nameless(claim: str, shared: list[Word], missing: list[Word]) -> bool:
    """Whether the claim has names, and no name or identifier is shared. A capital at the start of a sentence may
    make a name."""

    def named(word: Word) -> bool:
        return word.kind in (Kind.NAME, Kind.WORD) and claim[word.start].isupper()

    return any(map(named, missing)) and not any(named(w) or w.kind is Kind.IDENTIFIER for w in shared)


def _nearest(hits: list[_Hit], titled: int) -> tuple[float, tuple[int, int] | None]:
    """The most weight of different words in the title and one window of the text; and the first and last word of the
    window that has most by itself, None when all is in the title. `hits` are in the order of the source."""
    low = 0
    in_title: set[int] = set()
    weight = 0.0  # of what is in the title or in the window
    while low < len(hits) and hits[low].at < titled:
        weight += 0 if hits[low].which in in_title else hits[low].weight
        in_title.add(hits[low].which)
        low += 1
    best, most, span = weight, 0.0, None
    seen: dict[int, int] = {}
    window = 0.0  # of what is in the window
    for hit in hits[low:]:
        seen[hit.which] = seen.get(hit.which, 0) + 1
        if seen[hit.which] == 1:
            window += hit.weight
            weight += 0 if hit.which in in_title else hit.weight
        while hits[low].at <= hit.at - WINDOW:
            gone = hits[low]
            seen[gone.which] -= 1
            if not seen[gone.which]:
                window -= gone.weight
                weight -= 0 if gone.which in in_title else gone.weight
            low += 1
        best = max(best, weight)
        if window > most + 1e-9:
            most, span = window, (hits[low].at, hit.at)
    return best, span
