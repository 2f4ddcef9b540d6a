"""The words of a text as they are compared to tell what it is about: by stem, names, identifiers with their parts,
and numbers.

One claim and one source are too little text to learn from counts which words say much, so how much a word says
follows from its kind and from lists (`ingest/data/support.toml`). The weights are in `ingest.support.topic`.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from vouchgate.ingest.data import read_data, read_languages
from vouchgate.ingest.language.normalise import fold
from vouchgate.ingest.language.stems import stem
from vouchgate.ingest.language.words import TERM

_PIECES = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_NUMBER = re.compile(r"v?([0-9]+(?:[.,][0-9]+)*)(?:st|nd|rd|th|[a-z]{1,2})?")
_JOINTS = re.compile(r"['’.\-/_]+")
# Between two words: a sentence, a line or a quotation begins, so that a capital means nothing.
_OPENING = re.compile(r'[.!?:\n"“]')

# A longer word is read as its beginning: putting a run of combining marks in order costs the square of its length.
_LONGEST = 64
_MOST_PARTS = 12  # of one compound; a path or a slug with more is its first parts
ENGLISH = "english"
_MANY = 40  # words of which one of English prose is a function word
_LETTERS = re.compile(r"(?<![\w./@:])[^\W\d_]+(?![\w/]|\.\w)")
_UNJOINED = re.compile(r"(?<![\w./@:-])[^\W\d_]+(?![\w/-]|\.\w)")
_PLAIN_WORD = re.compile(r"(?<![\w./:-])[a-z]{3,}(?![\w/:(=_-])")
# Small letters; spaces for all but dots and slashes, beside which words are of addresses and files ("example.com").
_SPACED = bytes(ord(chr(code).lower()) if chr(code).isalpha() or code in b"./" else 32 for code in range(256))
_IDEOGRAPHS = "\u2e80"  # from here on one character is a word


class Kind(StrEnum):
    """What a word is worth as a sign of a subject."""

    FUNCTION = "function"  # nothing: it is in every text
    COMMON = "common"  # little: it is in most texts
    GENERAL = "general"  # some: it names a field, and many texts of that field have it
    NUMBER = "number"
    WORD = "word"
    NAME = "name"  # capitalised within a sentence
    IDENTIFIER = "identifier"  # of several parts: camelCase, snake_case, dotted, letters with digits

    # As a text, which is quick: what is known of words is looked up by their kinds, too.
    __hash__ = str.__hash__


class Word(NamedTuple):
    """One word of a text, `text[start:end]`. `key` is equal for two forms of one word. `parts` are the keys of the
    pieces of an identifier with their kinds, empty for any other word."""

    key: str
    start: int
    end: int
    kind: Kind
    parts: tuple[tuple[str, Kind], ...] = ()


def words_of(text: str) -> Iterator[Word]:
    """The words of a text in order. Linear; never raises, lone surrogates included."""
    after, make = 0, tuple.__new__  # the constructor takes as long as all the rest
    for match in TERM.finditer(text):
        start, end = match.span()
        shown = match.group()
        if shown[0] == "_" or shown[-1] == "_":  # it is stressed, or a name of code
            start += len(shown) - len(shown.lstrip("_"))
            shown = shown.strip("_")
            end = start + len(shown)
            if not shown:
                continue
        key, kind, parts = _read(shown[:_LONGEST])
        if kind is Kind.WORD and after and shown[0].isupper():
            opens = _OPENING.search(text, after, min(start, after + 8))
            kind = Kind.WORD if opens else Kind.NAME
        after = end
        yield make(Word, (key, start, end, kind, parts))


@lru_cache(maxsize=16_384)
def _read(shown: str) -> tuple[str, Kind, tuple[tuple[str, Kind], ...]]:
    """Key, kind and parts of a word as written."""
    plain = _plain(shown)
    number = _NUMBER.fullmatch(plain)
    if number is not None:
        return _number(number[1]), Kind.NUMBER, ()
    if plain.endswith(("'s", "’s")):
        plain, shown = plain[:-2], shown[:-2]
    if plain in LISTS.function:
        return plain, Kind.FUNCTION, ()
    plain, shown = plain.strip("_"), shown.strip("_")
    if _JOINTS.search(plain) or _mixed(shown):
        return _compound(shown, plain)
    return *_key_and_kind(plain), ()


def _key_and_kind(plain: str) -> tuple[str, Kind]:
    key = term_key(plain)
    if len(plain) < 2 and plain < _IDEOGRAPHS:
        return key, Kind.FUNCTION  # a letter alone, such as the s of a possessive
    if plain.isdigit():
        return plain, Kind.NUMBER
    return key, LISTS.kinds.get(key, Kind.WORD)


def _mixed(shown: str) -> bool:
    """A capital after a small letter, or letters and digits in one word."""
    if any(one.islower() and two.isupper() for one, two in pairwise(shown)):
        return True
    return any(map(str.isdigit, shown)) and any(map(str.isalpha, shown))


def _compound(shown: str, plain: str) -> tuple[str, Kind, tuple[tuple[str, Kind], ...]]:
    """An identifier: whole without its joints, so that time-out is timeout, and piece by piece."""
    pieces = [piece for part in _JOINTS.split(shown) for piece in _pieces(part) if piece][:_MOST_PARTS]
    parts = dict(_key_and_kind(_plain(piece)) for piece in pieces)
    parts = {
        key: kind for key, kind in parts.items() if key not in LISTS.function and kind is not Kind.FUNCTION
    }
    return term_key(_JOINTS.sub("", plain)), Kind.IDENTIFIER, tuple(parts.items())


def _pieces(part: str) -> list[str]:
    return _PIECES.findall(part) if part.isascii() and _mixed(part) else [part]


def _plain(word: str) -> str:
    """The word in one case, without marks over its letters or characters that show nothing."""
    return word.lower() if word.isascii() else "".join(map(fold, word)).casefold()


def _number(digits: str) -> str:
    """140,000 is 140000; a single comma before other than three digits is a decimal point."""
    if "." not in digits and digits.count(",") == 1 and len(digits.rsplit(",", 1)[1]) != 3:
        return digits.replace(",", ".")
    return digits.replace(",", "")


@lru_cache(maxsize=1 << 15)  # most words come again and again; every submission asks for all of its own
def term_key(word: str) -> str:
    """A key for the forms of a word, in small letters: its stem, or what its group in `same` goes by. Keys of echoes
    are made of it, so what it gives is stored."""
    known = LISTS.same.get(word)
    if known is not None:
        return known
    cut = stem(word)
    return LISTS.same.get(cut, cut)


def telling(text: str) -> Counter[str]:
    """How many words of a text tell each language, by its name in small letters. Linear."""
    count: Counter[str] = Counter()
    for word in _LETTERS.findall(text.lower()):
        if languages := LISTS.foreign.get(word):
            count.update(languages)
        elif word in LISTS.function and word not in LISTS.shared:
            count[ENGLISH] += 1
    return count


def is_plain_english(text: str) -> bool:
    """Whether nothing in a text tells another language: most texts, in a few millionths of a second."""
    return text.isascii() and _TELLING.isdisjoint(
        f"{text} ".encode().translate(_SPACED).replace(b"..", b" ").replace(b". ", b" ").split()
    )


def language_of(text: str, untold: str = ENGLISH) -> str:
    """Which language the function words of a text are of; English when no other language has more of them, and at
    least two, and `untold` of many words without one of English: a claim that nobody can read, a source of data alone.
    Of a text in other letters than Latin ones the script, or "japanese" or "chinese". Linear."""
    if not text.isascii() and (script := _script_of(text)):
        return script
    count = telling(text)
    english = count.pop(ENGLISH, 0)
    most = max(count, key=lambda language: count[language], default="")
    if count[most] >= 2 and count[most] > english:
        return most
    return ENGLISH if english or len(_PLAIN_WORD.findall(text)) < _MANY else untold


def foreign_words(text: str) -> frozenset[str]:
    """The function words of other languages in a sentence that has none of English; none where it has one. "OS" and the
    "eu" of "eu-west-1" are none."""
    words = [word.lower() for word in _UNJOINED.findall(text) if not word.isupper()]
    if any(word in LISTS.function and word not in LISTS.shared for word in words):
        return frozenset()
    return frozenset(word for word in words if word in LISTS.foreign)


def respelled(word: str, spellings: Mapping[str, str]) -> str:
    """A word with its letters as they may be written, too."""
    return "".join(spellings.get(letter, letter) for letter in word)


def _script_of(text: str) -> str:
    """What most letters are that are no Latin ones; empty where these are few. A letter that is a word is two."""
    odd = [letter for letter in text if letter > "\x7f" and letter.isalpha()]
    scripts = Counter(unicodedata.name(letter, "").partition(" ")[0].lower() for letter in odd)
    latin = scripts.pop("latin", 0) + sum(map(str.isalpha, text)) - len(odd)
    if latin > sum(scripts.values()) + scripts["cjk"]:
        return ""
    if scripts["hiragana"] or scripts["katakana"]:
        return "japanese"
    script = max(scripts, key=lambda each: scripts[each], default="")
    return "chinese" if script == "cjk" else script


@dataclass(frozen=True, slots=True)
class _Lists:
    """The lists of `support.toml` as they are asked. `kinds` and `same` go by stem, the others by word."""

    function: frozenset[str]
    kinds: dict[str, Kind]
    same: dict[str, str]
    languages: frozenset[str]
    foreign: dict[str, tuple[str, ...]]  # a function word to the languages that have it
    shared: frozenset[str]  # small words of other languages, which tell no English


def _load() -> _Lists:
    raw = read_data("support.toml")
    same = {form: stem(group[0]) for group in raw["same"] for word in group for form in (word, stem(word))}
    kinds: dict[str, Kind] = {}
    for kind in (Kind.GENERAL, Kind.COMMON):  # what is in both is common
        kinds |= {same.get(word, same.get(stem(word), stem(word))): kind for word in raw[kind.value]}
    foreign: dict[str, tuple[str, ...]] = {}
    function, languages, shared = frozenset(raw["function"]), dict(raw["languages"]), set[str]()
    for each in read_languages().values():
        words = set(each.get("function", ()))
        spelled = {respelled(word, each.get("spellings", {})) for word in words}
        languages[each["name"].lower()] = words | (spelled - function)
        shared.update(form for forms in each.get("gloss", {}).values() for form in forms)
    for language, words in languages.items():
        for word in words:
            foreign[word] = (*foreign.get(word, ()), language)
    return _Lists(function, kinds, same, frozenset(languages), foreign, frozenset(shared))


# A constant read once from the package's own data file.
LISTS = _load()
_TELLING = frozenset(map(str.encode, LISTS.foreign))
