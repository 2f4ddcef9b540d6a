"""Languages other than English: each is a file of words (`ingest/data/languages/`), read by one engine (ADR-0070).

A file says by which words the language is told, how people hedge in it, and what its small words mean in English: with
these, rules that know English words read a text of it, too (`gloss`). Where a script does not part its words, phrases
are looked for anywhere in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache, cached_property

from pydantic import Field

from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.claims.hedges import HedgeCategory
from vouchgate.ingest.data import read_languages
from vouchgate.ingest.language.sentences import sentences
from vouchgate.ingest.language.terms import LISTS
from vouchgate.ingest.language.words import RUN_OR_CHARACTER

PLAIN = "plain"  # the phrases that only look like a hedge

_WORD = re.compile(r"[^\W\d_]+")
_DIGITS = r"\d[\d.,]*"
_NUMBER = _DIGITS + r"(?!\w)"
_FIGURES = r"\d+(?:[.,:/]\d+|[ \u00a0]\d{3}(?!\d))*"
_JOINED = r"[^\W_]+(?:['._:/@+-][^\W_]+)*"
_MARKS = r".,;:!?。、\n"
_SPACED_GAP = rf"(?:[^\s{_MARKS}]+%s){{0,6}}?"
_UNSPACED_GAP = rf"[^{_MARKS}]{{0,20}}?"
_ANCHORS = {"^": r"\A[\W_]*", "$": r"(?=[\W_]*\Z)", "?": r"(?=[^?]*\?[\W_]*\Z)"}


class Language(Frozen):
    """One file of words. `docs/extending.md` says how to write one."""

    name: str
    letters: str = ""  # of a script that does not part words: the characters that tell the language
    without: str = ""  # those with which a text is of another language after all
    function: tuple[str, ...] = ()  # words that tell the language, and are no English ones
    quoting: tuple[str, ...] = ()  # phrases beside a quotation that make it another's words, or a string
    spellings: dict[str, str] = Field(default_factory=dict)  # how a letter may be written, too
    words: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    hedges: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    endings: str = (
        ""  # of a script that does not part words: characters that say nothing when two texts are compared
    )
    gloss: dict[str, tuple[str, ...]] = Field(
        default_factory=dict
    )  # English words to those that say the same

    @cached_property
    def patterns(self) -> Mapping[str, re.Pattern[str]]:
        """What finds the hedges of each category, and what only looks like one, in a sentence in small letters. Made
        when it is first asked for, which takes a tenth of a second. Raises ValueError naming what cannot be read."""
        if unknown := self.hedges.keys() - {*HedgeCategory, PLAIN}:
            raise ValueError(f"hedges: there is no category {min(unknown)!r}")
        return {kind: self._pattern(self.hedges.get(kind, ())) for kind in (*HedgeCategory, PLAIN)}

    @cached_property
    def quotes(self) -> re.Pattern[str]:
        """What finds the words of `quoting`."""
        return self._pattern(self.quoting)

    @cached_property
    def cues(self) -> frozenset[str]:
        """The words that tell the language, however they are spelled."""
        spelled = {_respelled(word, self.spellings) for word in self.function}
        return frozenset(self.function) | (spelled - LISTS.function)

    @cached_property
    def glossary(self) -> tuple[re.Pattern[str], Mapping[str, str]]:
        """What finds the words of a text in small letters, its group `form` those of `gloss`; and what these mean."""
        meanings = {
            form: form if key == "keep" else key
            for key, forms in self.gloss.items()
            for written in forms
            for form in (written, _respelled(written, self.spellings))
        }
        forms = "|".join(
            re.escape(form).replace(r"\ ", r"\s+")
            + ("" if self.letters or form.endswith("'") else r"(?!\w|-\w)")
            for form in sorted(meanings, key=len, reverse=True)
        )
        forms = forms or r"(?!)"
        if self.letters:
            ending = f"[{self.endings}]" if self.endings else r"(?!)"
            other = rf"(?P<ending>{ending})|{_FIGURES}|{RUN_OR_CHARACTER.pattern}"
            return re.compile(rf"(?P<form>{forms})|{other}"), meanings
        return re.compile(rf"(?<!\w)(?P<form>{forms})|(?:{_FIGURES})(?!\w)|{_JOINED}"), meanings

    def _pattern(self, phrases: Iterable[str]) -> re.Pattern[str]:
        whole = "|".join(sorted(map(self._phrase, phrases), key=len, reverse=True)) or r"(?!)"
        return re.compile(whole if self.letters else rf"(?<![\w#@/])(?<!\w-)(?:{whole})(?!\w|-\w)")

    def _phrase(self, phrase: str) -> str:
        """A phrase as a regular expression. Raises ValueError naming it."""
        gap = _UNSPACED_GAP if self.letters else _SPACED_GAP % self._joint
        pieces, joint, elements = [], "", 0
        for part in phrase.split():
            if part in _ANCHORS:
                pieces.append(_ANCHORS[part])
            elif part in (",", ":"):
                pieces.append(rf"\s*{part}")
            elif part == "...":
                pieces.append(joint + gap)
                joint = ""
            elif part.endswith("?"):
                body = self._element(part[:-1], phrase)
                pieces.append(f"(?:{joint}{body})?" if joint else f"(?:{body}{self._joint})?")
            else:
                pieces.append(joint + self._element(part, phrase))
                joint, elements = self._joint, elements + 1
        if not elements:
            raise ValueError(f"phrase {phrase!r} would match no words at all")
        return "".join(pieces)

    @property
    def _joint(self) -> str:
        return r"\s*" if self.letters else r"[\s*_]+"

    def _element(self, part: str, phrase: str) -> str:
        found: list[str] = []
        for each in part.split("|"):
            listed = each.startswith("{")
            if listed and each[1:-1] not in self.words:
                raise ValueError(f"phrase {phrase!r}: no word list is called {each!r}")
            for word in self.words[each[1:-1]] if listed else (each,):
                if not word:
                    raise ValueError(f"phrase {phrase!r} has an empty alternative")
                found += self._numbers if word == "#" else [self._word(word)]
        whole = "|".join(sorted(found, key=len, reverse=True))
        return f"(?:{whole})"

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
        return "".join(letters).replace(r"\*", r"\w*").replace(r"\ ", self._joint)


def _respelled(word: str, spellings: Mapping[str, str]) -> str:
    return "".join(spellings.get(letter, letter) for letter in word)


class Languages:
    """The languages of one lexicon, to tell which of them a text is of. Safe to share between threads."""

    def __init__(self, languages: Mapping[str, Language]) -> None:
        self.by_code = languages
        self._cued: dict[str, tuple[str, ...]] = {}
        for code, language in languages.items():
            for word in language.cues:
                self._cued[word] = (*self._cued.get(word, ()), code)
        self._shared = frozenset(
            form for language in languages.values() for forms in language.gloss.values() for form in forms
        )
        letters = "".join(language.letters for language in languages.values())
        self._unspaced = re.compile(f"[{letters}]" if letters else r"(?!)")
        self._telling = {
            code: (
                re.compile(f"[{each.letters}]"),
                re.compile(f"[{each.without}]" if each.without else r"(?!)"),
            )
            for code, each in languages.items()
            if each.letters
        }

    def none_in(self, text: str, words: Iterable[str]) -> bool:
        """Whether nothing in an ASCII text tells one of the languages: most texts, in a millionth of a second. `words`
        are its words in small letters."""
        return text.isascii() and self._cued.keys().isdisjoint(words)

    def of(self, text: str) -> list[tuple[int, int, tuple[str, ...]]]:
        """The sentences of a text that are of one of the languages: start, end and the codes of those it may be of.
        Linear."""
        small = text.lower()
        if self._cued.keys().isdisjoint(_WORD.findall(small)) and not self._unspaced.search(text):
            return []
        unspaced = tuple(
            code
            for code, (own, other) in self._telling.items()
            if own.search(text) and not other.search(text)
        )
        found = []
        for start, end in sentences(text):
            sentence = small[start:end]
            codes = self._spaced(sentence)
            if unspaced and self._unspaced.search(sentence):
                codes = (*codes, *unspaced)
            if codes:
                found.append((start, end, codes))
        return found

    def spoken_in(self, text: str) -> tuple[str, ...]:
        """The codes of all languages of which the text may have a sentence."""
        return tuple(dict.fromkeys(code for *_, codes in self.of(text) for code in codes))

    def _spaced(self, sentence: str) -> tuple[str, ...]:
        """The languages of which a sentence has most telling words, or one less. One such word is not enough beside two
        of English."""
        count: dict[str, int] = {}
        english = 0
        for word in _WORD.findall(sentence):
            if codes := self._cued.get(word):
                for code in codes:
                    count[code] = count.get(code, 0) + 1
            else:
                english += word in LISTS.function and word not in self._shared
        most = max(count.values(), default=0)
        if not most or (most == 1 and english > 1):
            return ()
        return tuple(code for code, number in count.items() if number >= max(1, most - 1))


@cache
def load_languages() -> dict[str, Language]:
    """The built-in ones by code, read once."""
    return {code: Language.model_validate(raw) for code, raw in read_languages().items()}


@cache
def built_in() -> Languages:
    """Those of the built-in ones."""
    return Languages(load_languages())
