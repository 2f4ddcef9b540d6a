"""The words of a text as a statement is laid over a source: what each may be found under, and what it weighs.

Two words meet when they share a key: a stem, a group of words that say the same (`ingest/data/stance.toml`), the parts
of a compound, a number however it is written ("two", "2"), or an abbreviation and the words it is made of.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from vouchgate.ingest.contradictions.lists import LISTS as OPPOSITES
from vouchgate.ingest.data import read_data
from vouchgate.ingest.language.dates import parts_of_date
from vouchgate.ingest.language.terms import Kind, Word, term_key, words_of
from vouchgate.ingest.support.topic import WEIGHTS

_LEAST = 0.3  # weight of a word that says something, however common it is
_CODED = ("-", "`")
_CONTRACTED = ("'ve", "'re", "'ll", "'d", "'m", "n't", "o'clock")  # "they've" is no name
MAY = "May"  # within a sentence a month, though its letters are a small word's
_MEASURE = re.compile(r"(?![12]\d\d0s)(\d+(?:[.,]\d+)*)([A-Za-zµ]{1,4})")
_MEASURED = ("time", "size")
_ACRONYMS = re.compile(r"[A-Z][A-Z\d]{1,7}s")  # "VPCs"
_LONGEST = 64  # characters of a word of which is kept what it says
_MOST_RUN = 7  # capitalised words that may make one abbreviation


class Token(NamedTuple):
    """One word. `keys` is what it may be found under, the strictest first."""

    start: int
    end: int
    low: str
    keys: tuple[str, ...]
    parts: tuple[str, ...]
    weight: float
    content: bool  # says something; a preposition and an article do not
    number: bool
    name: bool
    identifier: bool
    shown: str

    def among(self, keys: Collection[str]) -> bool:
        """Whether it may be found under one of the keys, or a part of it."""
        return any(key in keys for key in (*self.keys, *self.parts))


def tokens_of(text: str, offset: int = 0) -> tuple[Token, ...]:
    """The words of a text in order, with offsets counted from `offset`. Linear; never raises."""
    return tuple(
        token_of(word, text[word.start : word.end], offset, coded=text[word.start - 1 : word.start] in _CODED)
        for word in words_of(text)
    )


def token_of(word: Word, shown: str, offset: int = 0, *, coded: bool = False) -> Token:
    """One word as it is laid over another. `coded` says that a sign of code stands before it: "--max-tries"."""
    key, start, end, kind, parts = word
    read = _read if len(shown) <= _LONGEST else _read_anew
    # Past the constructor, which takes as long as all the rest.
    return tuple.__new__(Token, (start + offset, end + offset, *read(key, kind, parts, shown, coded), shown))


def _read_anew(
    key: str, kind: Kind, parts: tuple[tuple[str, Kind], ...], shown: str, coded: bool
) -> tuple[str, tuple[str, ...], tuple[str, ...], float, bool, bool, bool, bool]:
    """What a token says of a word as written, wherever it stands, from `low` to `identifier`."""
    low = shown.lower().replace("’", "'")
    measure = measure_of(shown)
    keys, number = ((f"#{measure.number}",), True) if measure else _keys(key, low, kind, shown)
    acronym = 2 <= len(shown) <= 6 and shown.isupper()
    content = number or (kind is not Kind.FUNCTION and not ("'" in low and low.endswith(_CONTRACTED)))
    identifier = kind is Kind.IDENTIFIER and not measure and (coded or _in_code(shown))
    return (
        low,
        keys,
        (term_key(measure.unit),)
        if measure
        else tuple("#" + key if kind is Kind.NUMBER else key for key, kind in parts_of_date(shown) or parts),
        max(_LEAST, WEIGHTS[kind]) if content else 0.0,
        content,
        number,
        kind is Kind.NAME or identifier or acronym,
        identifier,
    )


_read = lru_cache(maxsize=1 << 14)(_read_anew)  # most words come again and again


def _keys(key: str, low: str, kind: Kind, shown: str) -> tuple[tuple[str, ...], bool]:
    """What a word is found under, and whether it is a number."""
    if kind is Kind.NUMBER:
        return ("#" + (key.lstrip("0") or "0" if len(key) == 2 else key),), True
    if low in LISTS.numbers:
        return ("#" + LISTS.numbers[low],), True
    if shown in LISTS.short:
        return (LISTS.short[shown],), False
    group = LISTS.groups.get(key)
    if (one := one_of(shown)) and one != key:
        return (key, one), False
    return ((key,) if group is None else (key, group)), False


def one_of(shown: str) -> str:
    """The key of one of what a short form with an "s" says there are several of: "vpc" of "VPCs"; else empty."""
    return shown[:-1].lower() if _ACRONYMS.fullmatch(shown) else ""


class Measure(NamedTuple):
    """A number with its unit in one word, both as digits and small letters: "80ms"."""

    number: str
    unit: str


def measure_of(shown: str) -> Measure | None:
    """What a word says that is a number and its unit: "80ms", "2GiB", not "1960s". Constant time."""
    if not shown[0].isdigit() or (match := _MEASURE.fullmatch(shown)) is None:
        return None
    unit = match[2].lower()
    kind, _ = OPPOSITES.units.get(unit, ("", 0.0))
    return Measure(match[1].replace(",", ""), unit) if kind in _MEASURED else None


def _in_code(shown: str) -> bool:
    """Whether an identifier is one of code, and not a word with a hyphen: "well-known" names nothing."""
    return not all(part.isalpha() and (part.islower() or part.istitle()) for part in shown.split("-"))


def shown_of(tokens: Iterable[Token]) -> list[tuple[int, int, str]]:
    """Where each word stands, and as what."""
    return [(token.start, token.end, token.shown) for token in tokens]


def abbreviations(words: Sequence[tuple[int, int, str]]) -> dict[str, tuple[int, int]]:
    """The first letters of every run of capitalised words, small ("aws"), with the first and last word of the run.
    `words` are start, end and the word as written."""
    found: dict[str, tuple[int, int]] = {}
    for first, (_, before, opening) in enumerate(words):
        if not opening[:1].isupper() or len(opening) < 2:
            continue
        letters, last = opening[0], before
        for at in range(first + 1, min(first + _MOST_RUN, len(words))):
            start, end, shown = words[at]
            if start - last > 2:
                break
            last = end
            if shown[:1].isupper():
                letters += shown[0]
                found.setdefault(letters.lower(), (first, at))
            elif shown.lower() not in ("of", "and", "for", "the"):
                break
    return found


@dataclass(frozen=True, slots=True)
class Lists:
    """The lists of `stance.toml`."""

    numbers: Mapping[str, str]  # a number in words to its digits
    groups: Mapping[str, str]  # the key of a word to that of its group
    short: Mapping[str, str]  # a month or day as it is shortened, to the key of its name: "Sat" is no "sat"
    signs: Mapping[str, str]  # at a number, each with what it counts
    often: frozenset[str]  # behind "once": it counts
    ranks: frozenset[str]
    verdicts: frozenset[str]  # before a colon they judge what stands behind it
    kinds: frozenset[str]  # keys of what things are called by that have a name
    relating: Mapping[str, frozenset[str]]
    relations: frozenset[str]  # small words that say how two others stand to each other
    universals: Mapping[str, str]  # each to the first of those that say the same
    ruling: frozenset[str]  # with "not" behind them they say "never"
    never: frozenset[str]  # and these do by themselves
    spans: frozenset[str]  # of time, and what else "every" may count
    negations: frozenset[str]
    limits: frozenset[str]
    plain_denials: frozenset[str]
    modals: frozenset[str]
    possible: frozenset[str]
    wishes: frozenset[str]  # those of `possible` that are one
    deciding: frozenset[str]  # whose wishes are meant
    conditions: frozenset[str]  # those of `possible` that name one
    able: frozenset[str]  # that say in a statement what "may" says in a source
    backwards: frozenset[str]  # those of `former` that reach back
    once: frozenset[str]  # behind which "used to" tells what was so
    former: frozenset[str]
    reported: frozenset[str]
    governing: Mapping[str, frozenset[str]]  # what rules an act, each with the forms of it that it rules
    telling: frozenset[str]  # keys of what may be said of a clause and changes nothing: decided, known, true
    opening: frozenset[str]  # of a clause behind "that", where it does not tell which thing is meant
    articles: frozenset[str]
    preferring: frozenset[str]
    excluding: Mapping[str, frozenset[str]]  # of a small word those that cannot stand in its place
    limiting: frozenset[str]  # with which a condition begins, behind "only"
    coming: frozenset[str]
    exceptions: frozenset[str]
    excepted: frozenset[str]
    only: frozenset[str]
    fronted: frozenset[str]  # with which a sentence begins that tells of another time
    weak: frozenset[str]  # adverbs that weaken or stress what is said, and add nothing
    discourse: frozenset[str]  # behind "in" or "for", up to a comma: "in fact,"
    resuming: frozenset[str]  # with which a sentence goes on with the one before
    where: frozenset[str]  # before what tells where, or by what, something is done
    pronouns: frozenset[str]  # that stand for a subject named before
    definite: frozenset[str]  # before a thing named already
    single: frozenset[str]  # that say there is one
    excepting: frozenset[str]  # behind a negation: it denies all else
    joining: frozenset[str]  # joints of words as well as of clauses
    joints: frozenset[str]  # small words with which a clause begins
    parting: frozenset[str]  # small words with which another part of a statement begins
    because: frozenset[str]  # behind which a reason stands
    owing: frozenset[tuple[str, str]]  # the same, of two words
    therefore: frozenset[str]  # behind which stands what has a reason
    progress: Mapping[str, int]  # in a row of a table: where a task stands, by the number of its kind
    ending: frozenset[str]
    undoing: frozenset[str]  # what somebody does without, as a denial says in other words
    decided: frozenset[str]  # before "to": what was decided is told as done
    sending: frozenset[str]  # in the head of a table, over where something comes from
    receiving: frozenset[str]  # and over where it goes
    towards: frozenset[str]
    away: frozenset[str]
    assigning: frozenset[str]  # keys of what a name and its value say by their form
    acting: frozenset[str]  # verbs that somebody does to something
    preventing: frozenset[str]  # keys of verbs before "from" and what nobody does
    counting: frozenset[str]  # the keys of numbers in words
    indexed: frozenset[str]  # small words that may be what a word of a statement is found under
    written: Mapping[str, tuple[str, ...]]  # a number to its words, a group to the keys of its words

    def forms(self, key: str) -> tuple[str, ...]:
        """The keys of the words that a key of a number ("#2") or of a group ("=use") stands for."""
        written = self.written.get(key, ())
        return (key[1:], key[1:].zfill(2), *written) if key[0] == "#" else written


def _both_ways(lines: Sequence[Sequence[str]]) -> dict[str, frozenset[str]]:
    """The first word of each line with the others, and each of those with the first."""
    found: dict[str, set[str]] = {}
    for first, *others in lines:
        for other in others:
            found.setdefault(first, set()).add(other)
            found.setdefault(other, set()).add(first)
    return {word: frozenset(others) for word, others in found.items()}


def _load() -> Lists:
    raw = read_data("stance.toml")
    groups: dict[str, str] = {}
    for group in raw["same"]:
        head = "=" + term_key(group[0])
        for word in group:
            groups.setdefault(term_key(word), head)
    written: dict[str, tuple[str, ...]] = {}
    for word, digits in raw["numbers"].items():
        written["#" + digits] = (*written.get("#" + digits, ()), *dict.fromkeys((word, term_key(word))))
    for key, head in groups.items():
        written[head] = (*written.get(head, ()), key)
    return Lists(
        numbers=raw["numbers"],
        groups=groups,
        short={shown: term_key(name) for shown, name in raw["short"].items()},
        signs=raw["signs"],
        often=frozenset(raw["often"]),
        ranks=frozenset(raw["ranks"]),
        relating={word: frozenset(others) for word, others in raw["relating"].items()},
        relations=frozenset(raw["relations"]),
        universals={word: group[0] for group in raw["universals"] for word in group},
        ruling=frozenset(raw["ruling"]),
        never=frozenset(raw["never"]),
        spans=frozenset(raw["spans"]),
        negations=frozenset(raw["negations"]),
        limits=frozenset(raw["limits"]),
        verdicts=frozenset(raw["verdicts"]),
        kinds=frozenset(map(term_key, raw["kinds"])),
        plain_denials=frozenset(raw["plain_denials"]),
        modals=frozenset(raw["modals"]),
        possible=frozenset(raw["possible"]),
        wishes=frozenset(raw["wishes"]),
        deciding=frozenset(raw["deciding"]),
        conditions=frozenset(raw["conditions"]),
        able=frozenset(raw["able"]),
        backwards=frozenset(raw["backwards"]),
        once=frozenset(raw["once"]),
        former=frozenset(raw["former"]),
        reported=frozenset(raw["reported"]),
        governing={
            word: frozenset(form for form, words in raw["governing"].items() if word in words)
            for words in raw["governing"].values()
            for word in words
        },
        telling=frozenset(map(term_key, raw["telling"])),
        opening=frozenset(raw["opening"]),
        articles=frozenset(raw["articles"]),
        preferring=frozenset(raw["preferring"]),
        excluding=_both_ways(raw["excluding"]),
        limiting=frozenset(raw["limiting"]),
        coming=frozenset(raw["coming"]),
        exceptions=frozenset(raw["exceptions"]),
        excepted=frozenset(raw["excepted"]),
        only=frozenset(raw["only"]),
        fronted=frozenset(raw["fronted"]),
        weak=frozenset(raw["weak"]),
        discourse=frozenset(raw["discourse"]),
        resuming=frozenset(raw["resuming"]),
        where=frozenset(raw["where"]),
        pronouns=frozenset(raw["pronouns"]),
        definite=frozenset(raw["definite"]),
        single=frozenset(raw["single"]),
        excepting=frozenset(raw["excepting"]),
        joining=frozenset(raw["joining"]),
        joints=frozenset(raw["joints"]),
        parting=frozenset(raw["parting"]),
        because=frozenset(raw["because"]),
        owing=frozenset((one, two) for one, two in raw["owing"]),
        therefore=frozenset(raw["therefore"]),
        progress={word: number for number, words in enumerate(raw["progress"]) for word in words},
        ending=frozenset(raw["ending"]),
        undoing=frozenset(raw["undoing"]),
        decided=frozenset(raw["decided"]),
        sending=frozenset(raw["sending"]),
        receiving=frozenset(raw["receiving"]),
        towards=frozenset(raw["towards"]),
        away=frozenset(raw["away"]),
        assigning=frozenset(map(term_key, raw["assigning"])),
        acting=frozenset(raw["acting"]),
        preventing=frozenset(map(term_key, raw["preventing"])),
        indexed=frozenset(raw["comparing"]).union(
            key for key, words in written.items() if key[0] == "#" for key in words
        ),
        counting=frozenset(key for key, words in written.items() if key[0] == "#" for key in words),
        written=written,
    )


# A constant read once from the package's own data file.
LISTS = _load()


def parts_of(
    words: Sequence[Token], text: str, marks: frozenset[str], joints: frozenset[str] = frozenset()
) -> list[int]:
    """Of each word, in which part of its text it stands: a mark between two words parts them, and so does a joint, with
    which the next part begins."""
    found, part = [], 0
    for at, token in enumerate(words):
        if at and (token.low in joints or not marks.isdisjoint(text[words[at - 1].end : token.start])):
            part += 1
        found.append(part)
    return found


def is_denial(token: Token) -> bool:
    """Whether a word denies something."""
    return token.low in LISTS.negations or token.low.endswith("n't")


def denies_all_else(words: Sequence[Token], at: int) -> bool:
    """Whether a negation leaves something out, "nothing but", or is none but a bound: "no more than"."""
    lows = [token.low for token in words[at + 1 : at + 3]]
    return bool(lows) and (lows[0] in LISTS.excepting or lows[1:] == ["than"])
