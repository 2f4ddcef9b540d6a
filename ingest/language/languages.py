"""Languages other than English: each is a file of words (`ingest/data/languages/`), read by one engine (ADR-0070).

A file says by which words the language is told, how people hedge in it, and what its small words mean in English: with
these, rules that know English words read a text of it, too (`gloss`). Where a script does not part its words, phrases
are looked for anywhere in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from typing import Annotated

from pydantic import Field

from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.claims.hedges import HedgeCategory
from vouchgate.ingest.data import read_languages
from vouchgate.ingest.language.sentences import sentences
from vouchgate.ingest.language.terms import ENGLISH, respelled, telling
from vouchgate.ingest.language.words import RUN_OR_CHARACTER

PLAIN = "plain"  # the phrases that only look like a hedge

_DIGITS = r"\d[\d.,]*"
_NUMBER = _DIGITS + r"(?!\w)"
_FIGURES = r"\d+(?:[.,:/]\d+|[ \u00a0]\d{3}(?!\d))*"
_JOINED = r"[^\W_]+(?:['._:/@+-][^\W_]+)*"
_MARKS = r".,;:!?。、\n"
_SPACED_GAP = rf"(?:[^\s*_{_MARKS}]+%s){{0,6}}?"  # no sign of it may be one of the joint
_UNSPACED_GAP = rf"[^{_MARKS}]{{0,20}}?"
# Marks of emphasis are no part of a word, joints of a name are: "_vielleicht_", "not_vielleicht".
_BEGINS, _ENDS = r"(?<![^\W_]|[#@/])(?<!\w-)(?<![^\W_]_)", r"(?![^\W_]|-\w|_[^\W_])"
_ANCHORS = {"^": r"\A[\W_]*", "$": r"(?=[\W_]*\Z)", "?": r"(?=[^?]*\?[\W_]*\Z)"}


class Phrase:
    """A regular expression, made when it is first needed: those of a language together take a tenth of a second, and
    most texts need few of them."""

    def __init__(self, kind: str, pattern: str, needs: Sequence[str]) -> None:
        self.kind = kind
        self.pattern = pattern
        self.needs = needs  # one of these is in each text that it matches, as the empty one is

    @cached_property
    def made(self) -> re.Pattern[str]:
        """What finds it."""
        return re.compile(self.pattern)


def _spans(phrases: Sequence[Phrase], text: str) -> Iterator[tuple[int, int]]:
    """Where one of them is, as one expression would find them that has them all, in this order."""
    matches = [
        (match.start(), at, match) for at, phrase in enumerate(phrases) if (match := phrase.made.search(text))
    ]
    while matches:
        _, _, first = min(matches, key=lambda each: each[:2])
        yield first.span()
        place = max(first.end(), first.start() + 1)
        matches = [
            (again.start(), at, again)
            for start, at, match in matches
            if (again := match if start >= place else phrases[at].made.search(text, place))
        ]


Table = Annotated[dict[str, tuple[str, ...]], Field(default_factory=dict)]


class Language(Frozen):
    """One file of words. `docs/extending.md` says how to write one."""

    name: str
    letters: str = ""  # of a script that does not part words: the characters that tell the language
    without: str = ""  # those with which a text is of another language after all
    function: tuple[str, ...] = ()  # words that tell the language, and are no English ones
    quoting: tuple[str, ...] = ()  # phrases beside a quotation that make it another's words, or a string
    spellings: dict[str, str] = Field(default_factory=dict)  # how a letter may be written, too
    words: Table
    hedges: Table
    endings: str = ""  # of such a script: a class of letters that say nothing in a comparison
    gloss: Table  # English words to those that say the same

    def find_hedges(self, sentence: str) -> dict[str, list[tuple[int, int]]]:
        """Where the hedges of each category are, and what only looks like one, in a sentence in small letters. Raises
        ValueError naming what cannot be read."""
        folded = sentence.translate(self._folds)
        able = {at for word, places in self._needing.items() if word in folded for at in places}
        of_kinds: dict[str, list[Phrase]] = {}
        for at in sorted(able):
            of_kinds.setdefault(self.phrases[at].kind, []).append(self.phrases[at])
        return {kind: list(_spans(phrases, sentence)) for kind, phrases in of_kinds.items()}

    @cached_property
    def phrases(self) -> tuple[Phrase, ...]:
        """Those of all categories, longer ones first. Raises ValueError naming what cannot be read."""
        if unknown := self.hedges.keys() - {*HedgeCategory, PLAIN}:
            raise ValueError(f"hedges: there is no category {min(unknown)!r}")
        read = [(kind, *self._phrase(each)) for kind, phrases in self.hedges.items() for each in phrases]
        read.sort(key=lambda each: len(each[1]), reverse=True)
        return tuple(Phrase(kind, self._bounded(each), needs) for kind, each, needs in read)

    @cached_property
    def _needing(self) -> Mapping[str, Sequence[int]]:
        """The phrases, by their places, that each word is needed for."""
        found: dict[str, list[int]] = {}
        for at, phrase in enumerate(self.phrases):
            for word in phrase.needs:
                found.setdefault(word, []).append(at)
        return found

    @cached_property
    def _folds(self) -> dict[int, str]:
        return str.maketrans(self.spellings)

    @cached_property
    def quotes(self) -> re.Pattern[str]:
        """What finds the words of `quoting`, longer ones first."""
        made = (self._phrase(each)[0] for each in self.quoting)
        return re.compile(self._bounded("|".join(sorted(made, key=len, reverse=True)) or r"(?!)"))

    @cached_property
    def glossary(self) -> tuple[re.Pattern[str], Mapping[str, str]]:
        """What finds the words of a text in small letters, its group `form` those of `gloss`; and what these mean."""
        meanings = {
            form: form if key == "keep" else key
            for key, forms in self.gloss.items()
            for written in forms
            for form in (written, respelled(written, self.spellings))
        }
        escaped = (re.escape(form).replace(r"\ ", r"\s+") for form in sorted(meanings, key=len, reverse=True))
        end = "" if self.letters else r"(?:(?<=')|(?!\w|-\w))"
        forms = rf"(?:{'|'.join(escaped) or '(?!)'}){end}"
        if self.letters:
            ending = f"[{self.endings}]" if self.endings else r"(?!)"
            other = rf"(?P<ending>{ending})|{_FIGURES}|{RUN_OR_CHARACTER.pattern}"
            return re.compile(rf"(?P<form>{forms})|{other}"), meanings
        return re.compile(rf"(?<!\w)(?P<form>{forms})|(?:{_FIGURES})(?!\w)|{_JOINED}"), meanings

    def _bounded(self, pattern: str) -> str:
        return pattern if self.letters else f"{_BEGINS}(?:{pattern}){_ENDS}"

    def _phrase(self, phrase: str) -> tuple[str, Sequence[str]]:
        """A phrase as a regular expression, and the words of which it needs one. Raises ValueError naming it."""
        gap = _UNSPACED_GAP if self.letters else _SPACED_GAP % self._joint
        pieces, joint, elements = [], "", list[Sequence[str]]()
        for part in phrase.split():
            if part in _ANCHORS:
                pieces.append(_ANCHORS[part])
            elif part in (",", ":"):
                pieces.append(rf"\s*{part}")
            elif part in ('"', "..."):  # the first is the quotation, in `quoting`
                pieces.append(joint + gap if part == "..." else r'[\s,:;、]*"[\s,:;、]*')
                joint = ""
            elif part.endswith("?"):
                body = self._element(part[:-1], phrase)
                pieces.append(f"(?:{joint}{body})?" if joint else f"(?:{body}{self._joint})?")
            else:
                pieces.append(joint + self._element(part, phrase))
                joint = self._joint
                elements.append(self._needed(part))
        if not elements:
            raise ValueError(f"phrase {phrase!r} would match no words at all")
        # The element with the longest words is in the fewest texts.
        return "".join(pieces), max(elements, key=lambda words: min(map(len, words)))

    def _needed(self, part: str) -> Sequence[str]:
        """For each word of an element the longest piece of it that has to be there as it is, folded; empty for none."""
        words = (word for each in part.split("|") for word in self._words(each))
        return ["" if word == "#" else self._longest_piece(word) for word in words]

    def _longest_piece(self, word: str) -> str:
        return max(re.split(r"[*_ ]", word.removeprefix("=")), key=len).translate(self._folds)

    def _words(self, each: str) -> Sequence[str]:
        return self.words.get(each[1:-1], ()) if each.startswith("{") else (each,)

    @property
    def _joint(self) -> str:
        return r"\s*" if self.letters else r"[\s*_]+"

    def _element(self, part: str, phrase: str) -> str:
        found: list[str] = []
        for each in part.split("|"):
            words = self._words(each)
            if not all(words) or not words:
                raise ValueError(f"phrase {phrase!r}: {each!r} is no word and no word list")
            for word in words:
                found += self._numbers if word == "#" else [self._word(word)]
        return f"(?:{'|'.join(sorted(found, key=len, reverse=True))})"

    @property
    def _numbers(self) -> list[str]:
        """Where words are not parted, a number may be followed by anything: "80ms", "40分"."""
        spelled = (form for key, forms in self.gloss.items() if key.isdigit() for form in forms)
        return [_DIGITS if self.letters else _NUMBER, *map(self._word, spelled)]

    def _word(self, text: str) -> str:
        spelled = {} if text.startswith("=") else self.spellings
        letters = (
            f"(?:{letter}|{spelled[letter]})" if letter in spelled else re.escape(letter)
            for letter in text.removeprefix("=").replace("_", " ")
        )
        return "".join(letters).replace(r"\*", r"[^\W_]*").replace(r"\ ", self._joint)


def _has(text: str, letters: str) -> bool:
    return bool(letters) and re.search(f"[{letters}]", text) is not None


def spoken(text: str, languages: Mapping[str, Language]) -> list[tuple[int, int, list[Language]]]:
    """The sentences of a text that are of one of the languages: start, end, and those it may be of: that have most
    telling words or one less. One such word is not enough beside two of English. Linear."""
    parted = {each.name.lower(): each for each in languages.values() if not each.letters}
    unparted = [each for each in languages.values() if each.letters and not _has(text, each.without)]
    found = []
    for start, end in sentences(text):
        count = telling(text[start:end])
        most = max((count[name] for name in parted), default=0)
        sure = most > (count[ENGLISH] > 1)
        told = [parted[name] for name in parted if sure and 0 < count[name] >= most - 1]
        told += [each for each in unparted if _has(text[start:end], each.letters)]
        if told:
            found.append((start, end, told))
    return found


@cache
def load_languages() -> dict[str, Language]:
    """The built-in ones by code, read once."""
    return {code: Language.model_validate(raw) for code, raw in read_languages().items()}
