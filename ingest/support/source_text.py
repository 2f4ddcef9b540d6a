"""A source as statements are laid over it: read once, its sentences, and where each word stands."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from operator import itemgetter

from vouchgate.ingest.language.asserted import without_unsaid
from vouchgate.ingest.language.dates import dates_in, parts_of_date
from vouchgate.ingest.language.frames import frames
from vouchgate.ingest.language.sentences import sentences, unwrapped, without_questions
from vouchgate.ingest.language.settings import Setting, settings_of, without_commented_out
from vouchgate.ingest.language.terms import Kind, term_key, words_of
from vouchgate.ingest.language.written import written_out
from vouchgate.ingest.support.times import durations, names_a_unit, written_as
from vouchgate.ingest.support.tokens import (
    LISTS,
    MAY,
    Token,
    abbreviations,
    measure_of,
    one_of,
    shown_of,
    token_of,
    tokens_of,
)
from vouchgate.ingest.support.topic import Beginnings

AKIN = 0.6  # of a word's weight, when the place has a longer or shorter word with the same beginning
JOINED = 0.9  # and when it has all parts of a compound, apart
SIGNS = {sign: term_key(word) for sign, word in LISTS.signs.items()}  # at a number, each with what it counts
LONGEST = 160  # words of a place that are looked at; what goes on longer is a list or a table
_PART = re.compile(r"[A-Z]?[a-z]+|[^\W\d_]|\d+")
_RULE = re.compile(r"\|[\s:|-]*")  # between the head of a table and its rows
_MOST_CALLED = 100  # places in which settings of one name stand, that a claim may tell apart
_ASSIGNS = re.compile(
    r"(?:(?:const|export|final|let|pub|public|static|val|var)\s+){0,4}"
    r"[A-Za-z_][\w.]*(?:\s*:\s*[\w.\[\], |]+)?\s*:?=(?!=)"
)
_BEFORE = 3  # sentences before a place, where what it speaks of may have been named
_TOPIC_ASKED = re.compile(r"\W*(?:how|wh)", re.I)  # "Why does it rain?" names what a text is about


class SourceText:
    """A source as statements are laid over it. Built in time linear in its text.

    What it asks is left out, and what it has and does not say. `title` is what the whole text is about; `given` are
    words that count as said beside it: the project's own name in the record of a project. A file of `settings` is read
    line by line, each setting under the keys above it.
    """

    def __init__(self, text: str, title: str = "", given: str = "", *, settings: bool = False) -> None:
        whole = text = written_out(text)
        title = title if _TOPIC_ASKED.match(title) else without_questions(title)
        text = without_questions(without_unsaid(without_commented_out(text) if settings else text))
        self.is_whole = text == whole  # whether nothing of it is left out
        self._settings = tuple(settings_of(text)) if settings else ()
        self.spans = [(each.start, each.end) for each in self._settings] if settings else sentences(text)
        self.text = text = unwrapped(text, self.spans)
        self._frames = frames(whole, self.spans, settings=settings)
        self.words = tuple(words_of(text))
        self.titled = _keys(tokens_of(f"{title}\n{given}\n{dates_in(title)}"))
        self._title_abbreviations = frozenset(abbreviations(shown_of(tokens_of(title))))
        self._headed: dict[int, frozenset[str]] = {}  # by which headings these are
        self._said: dict[int, frozenset[str]] = {}
        self._first: list[int] = []  # of each sentence, its first word
        self._places: dict[str, list[int]] = {}
        places, sentence = self._places, -1
        ends = [start for start, _ in self.spans[1:]] + [len(text) + 1]
        end = -1
        for index, (key, start, stop, kind, parts) in enumerate(self.words):
            while start >= end and sentence + 1 < len(ends):
                sentence += 1
                end = ends[sentence]
                self._first.append(index)
            shown = text[start:stop]
            if kind is Kind.FUNCTION and key not in LISTS.indexed and shown != MAY:
                continue
            places.setdefault(LISTS.short.get(shown, key), []).append(sentence)
            dated = kind is Kind.NUMBER or (parts and key[0].isdigit())
            keys = [part for part, _ in (dated and parts_of_date(shown)) or parts]
            if dated and (measure := measure_of(shown)):
                keys = [measure.number, term_key(measure.unit)]
            for part in keys:
                if part != key:
                    places.setdefault(part, []).append(sentence)
            if (one := one_of(shown)) and one != key:
                places.setdefault(one, []).append(sentence)
            if kind is Kind.NUMBER and (signed := _signed(text, start, stop)):
                places.setdefault(signed, []).append(sentence)
        self._first += [len(self.words)] * (len(self.spans) + 1 - len(self._first))
        self._paths = [tuple(_paths(text, setting)) for setting in self._settings]
        for at, setting in enumerate(self._settings):
            timed = names_a_unit(setting.key)
            spans = dict.fromkeys(durations(self.within(at, at)).values() if timed else ())
            for key in (*self._paths[at], *chain.from_iterable(map(written_as, spans))):
                insort(places.setdefault(key, []), at)

    @cached_property
    def _beginnings(self) -> Beginnings:
        return Beginnings(self._places)

    @cached_property
    def _abbreviations(self) -> Mapping[str, tuple[int, int]]:
        return abbreviations([(start, end, self.text[start:end]) for _, start, end, _, _ in self.words])

    @cached_property
    def counted(self) -> Mapping[str, frozenset[str]]:
        """What the text counts: a word to the numbers that stand right before it ("15 minutes", "15-minute")."""
        found: dict[str, set[str]] = {}
        for at, word in enumerate(self.words):
            digits = word.kind is Kind.NUMBER or (word.parts and word.parts[0][1] is Kind.NUMBER)
            if digits or word.key in LISTS.counting:
                pair = [self._token(index) for index in range(at, min(at + 2, len(self.words)))]
                for number, unit in counts(pair):
                    found.setdefault(unit, set()).add(number)
        return {unit: frozenset(numbers) for unit, numbers in found.items()}

    def within(self, first: int, last: int) -> tuple[Token, ...]:
        """The words of the sentences from `first` to `last`, at most LONGEST."""
        start = self._first[first]
        words = tuple(self._token(at) for at in range(start, min(self._first[last + 1], start + LONGEST)))
        if not (self._settings and words):
            return words
        named = words[0]._replace(parts=(*words[0].parts, *self._paths[last]))
        return (*self._above(self._settings[last]), named, *words[1:])

    def said(self, at: int) -> frozenset[str]:
        """The keys of the words of a sentence."""
        if (keys := self._said.get(at)) is None:
            keys = _keys(self.within(at, at))
            self._said[at] = keys
        return keys

    def is_row(self, at: int) -> bool:
        """Whether a sentence is a row of a table or a setting, which says nothing of what the next one is about."""
        return self.text[self.spans[at][0]] == "|" or bool(self._settings and self._settings[at].key)

    def assigns(self, at: int) -> bool:
        """Whether a sentence is a name and its value: a setting, or a constant of code."""
        return (
            bool(self._settings and self._settings[at].key)
            or _ASSIGNS.match(self.text, *self.spans[at]) is not None
        )

    def _token(self, at: int) -> Token:
        word = self.words[at]
        token = token_of(word, self.text[word.start : word.end])
        signed = _signed(self.text, word.start, word.end) if token.number else ""
        if not signed:
            return token
        return token._replace(parts=(*token.parts, signed, LISTS.groups.get(signed, signed)))

    def find(self, token: Token) -> tuple[tuple[str, float], ...]:
        """The keys under which the text has a word, each with how much of the word it is; none when it has not."""
        for key in token.keys:
            if self.sentences_with(key):
                return ((key, 1.0),)
        if token.number:
            return ()
        if token.parts:
            return self._find_parts(token)
        if token.shown.isupper() and (run := self._abbreviations.get(token.low)) is not None:
            share = 1.0 / (run[1] - run[0] + 1)
            return tuple((self._token(at).keys[0], share) for at in range(run[0], run[1] + 1))
        akin = self._beginnings.akin_to(token.keys[0])
        return () if akin is None else ((akin, AKIN),)

    def _find_parts(self, token: Token) -> tuple[tuple[str, float], ...]:
        have = [key for key in token.parts if self.sentences_with(key)]
        if len(have) < len(token.parts) or (
            token.identifier and not (parts_of_date(token.shown) or self._spells(token.shown))
        ):
            return ()
        return tuple((key, JOINED / len(have)) for key in have)

    def _spells(self, identifier: str) -> bool:
        """Whether the parts of an identifier stand side by side: "max retries", while "SQL" alone is no "MySQL"."""
        parts = r"[\W_]{0,2}".join(_PART.findall(identifier))
        return re.search(rf"(?<![^\W_]){parts}(?:e?s)?(?![^\W_])", self.text, re.IGNORECASE) is not None

    def sentences_with(self, key: str) -> Sequence[int]:
        """The sentences that have a key, in order; more than once where they have it so."""
        if key[0] not in "#=":
            return self._places.get(key, ())
        found = [self._places[form] for form in LISTS.forms(key) if form in self._places]
        return found[0] if len(found) == 1 else sorted(at for places in found for at in places)

    def titles(self, token: Token, at: int = -1) -> bool:
        """Whether the title has a word, or what it is short for; or, of a sentence `at`, a heading it stands under."""
        if not self.titled.isdisjoint(token.keys) or token.low in self._title_abbreviations:
            return True
        return at >= 0 and not self.headed(at).isdisjoint(token.keys)

    def before(self, token: Token, at: int) -> bool:
        """Whether one of the sentences before a sentence has a word, in the same paragraph or list. A row of a table is
        not told of by the one above it."""
        if self.is_row(at):
            return False
        for sentence in range(at - 1, max(-1, at - 1 - _BEFORE), -1):
            if "\n\n" in self.text[self.spans[sentence][1] : self.spans[sentence + 1][0]]:
                return False
            if any(sentence in self.sentences_with(key) for key in token.keys):
                return True
        return False

    @property
    def is_framed(self) -> bool:
        """Whether a sentence of it may not hold by itself."""
        return bool(self._settings or self.framed)

    @cached_property
    def framed(self) -> Mapping[int, Sequence[tuple[frozenset[str], frozenset[str]]]]:
        """The sentences that do not hold by themselves, each with what a claim on it says too: one of the keys, or one
        of the words, for each frame."""
        found: dict[int, list[tuple[frozenset[str], frozenset[str]]]] = {}
        for start, end, (said, also) in self._frames:
            tokens = tokens_of(said)
            keys = frozenset(key for token in tokens if token.content for key in (*token.keys, *token.parts))
            first = bisect_right(self.spans, start, key=itemgetter(1))
            for at in range(first, bisect_left(self.spans, end, key=itemgetter(0))):
                found.setdefault(at, []).append((keys, also))
        return found

    def holds(self, at: int, words: Iterable[Token]) -> bool:
        """Whether a sentence holds by itself, or under what the words of a claim say too."""
        words = tuple(words)
        if self._settings and not self._tells_which(at, words):
            return False
        if (asked := self.framed.get(at)) is None:
            return True
        own = self.said(at) | self.titled
        keys, lows = {key for token in words for key in token.keys}, {token.low for token in words}
        return all(not (keys.isdisjoint(said - own) and lows.isdisjoint(also)) for said, also in asked)

    @cached_property
    def _called(self) -> Mapping[str, frozenset[frozenset[str]]]:
        """The words of the keys above the settings with each key."""
        found: dict[str, set[frozenset[str]]] = {}
        for setting in self._settings:
            found.setdefault(setting.key, set()).add(_keys(self._above(setting)))
        return {key: frozenset(above) for key, above in found.items()}

    def _above(self, setting: Setting) -> list[Token]:
        """The words of the keys that a setting stands under."""
        return [token for start, end in setting.above for token in tokens_of(self.text[start:end], start)]

    def _tells_which(self, at: int, words: Iterable[Token]) -> bool:
        """Whether a claim says under which keys a setting stands, where others have the same name under other ones."""
        setting = self._settings[at]
        if not setting.key or len(called := self._called[setting.key]) < 2:
            return True
        said = _keys(words)
        own = _keys(self._above(setting))
        return len(called) <= _MOST_CALLED and all(
            keys == own or not said.isdisjoint(own - keys) or (own < keys and said.isdisjoint(keys - own))
            for keys in called
        )

    def headed(self, at: int) -> frozenset[str]:
        """The keys of the words in the headings that a sentence stands under, and in the head of its table."""
        if self._settings:
            return frozenset()  # the keys above a setting are words of its place
        index = bisect_right(self._headings, at, key=itemgetter(0)) - 1
        if (keys := self._headed.get(index)) is None:
            spans = self._headings[index][1] if index >= 0 else ()
            tokens = tokens_of("\n".join(self.text[start:end] for start, end in spans)) if spans else ()
            keys = _keys(tokens)
            self._headed[index] = keys
        return keys

    def head(self, at: int) -> str:
        """The head of the table that a row is in; empty where it has none."""
        index = bisect_right(self._headings, at, key=itemgetter(0)) - 1
        start, end = self._headings[index][1][-1] if index >= 0 and self._headings[index][1] else (0, 0)
        return self.text[start:end] if self.text[start:end].startswith("|") else ""

    @cached_property
    def _headings(self) -> Sequence[tuple[int, tuple[tuple[int, int], ...]]]:
        """The sentences from which on other headings hold, each with where these stand."""
        above: list[tuple[int, tuple[int, int]]] = []
        found: list[tuple[int, tuple[tuple[int, int], ...]]] = []
        table = False
        for at, (start, end) in enumerate(self.spans):
            first = self.text[start]
            if first == "#":
                level = len(self.text[start:end]) - len(self.text[start:end].lstrip("#"))
                above = [*(each for each in above if each[0] < level), (level, (start, end))]
            elif first == "|" and not table and at and _RULE.fullmatch(self.text, start, end):
                found.append((at, (*(span for _, span in above), self.spans[at - 1])))
                table = True
                continue
            elif first == "|" or not table or "\n" not in self.text[self.spans[at - 1][1] : start]:
                continue  # the next row, or the next sentence of this one
            table = False
            found.append((at, tuple(span for _, span in above)))
        return found


def _keys(tokens: Iterable[Token]) -> frozenset[str]:
    return frozenset(key for token in tokens for key in (*token.keys, *token.parts))


def _paths(text: str, setting: Setting) -> Iterator[str]:
    """The keys of the names that a setting has with one or more of those above it: `database.timeout`."""
    names = [text[start:end] for start, end in setting.above] if setting.key else []
    for at in range(len(names)):
        whole = tokens_of(".".join((*names[at:], setting.key)))
        if len(whole) == 1:
            yield whole[0].keys[0]


def _signed(text: str, start: int, end: int) -> str:
    """The key of what a number counts by the sign at it: "€12" has euros, "12 %" percent."""
    return SIGNS.get(text[start - 1 : start], "") or SIGNS.get(text[end : end + 2].strip()[:1], "")


def counts(words: Sequence[Token]) -> Iterator[tuple[str, str]]:
    """Each number with the word it counts."""
    for token, after in zip(words, (*words[1:], None), strict=True):
        if token.number and after is not None and after.content and not after.number:
            yield token.keys[0], after.keys[0]
        elif token.parts and token.parts[0].startswith("#"):
            yield from ((token.parts[0], part) for part in token.parts[1:2])
