"""The word lists the rules go by: `ingest/data/contradiction.toml`, and what `ingest/data/values.toml` already has."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from vouchgate.ingest.language.value_words import ValueWords, inflected

Phrase = tuple[str, ...]

# Endings that tense and the making of nouns add: directed, directing, director, direction. The stem keeps four letters
# in front of the longer ones, so that "version" and "user" stay themselves.
_ENDINGS = re.compile(r"(?<=[a-z]{3})(?:ing|ed)$|(?<=[a-z]{4})(?:ers?|ors?|ions?)$")
_DENYING = ("un", "non", "non-")
_DOUBLED = re.compile(r"([bdgmnprt])\1$")
_NO_ENDING = frozenset(
    {"former", "number", "order", "other", "speed", "need", "during", "string", "million", "billion", "thing"}
)


def stem(word: str) -> str:
    """The part of an English word that its tense, number and the nouns made of it share; other words as they are."""
    word = word.removesuffix("'s").removesuffix("’s")
    if len(word) < 4 or word in _NO_ENDING or not (word.isascii() and word.isalpha()):
        return word
    word = inflected(word)
    if word in _NO_ENDING:
        return word
    cut = _ENDINGS.sub("", word)
    if cut != word and len(cut) > 3:
        cut = _DOUBLED.sub(r"\1", cut)
    if len(cut) > 3 and cut.endswith("e"):
        cut = cut[:-1]
    return cut[:-1] + "y" if len(cut) > 3 and cut.endswith("i") else cut


@dataclass(frozen=True, slots=True)
class Phrases:
    """Phrases that are looked for at a place in a list of words, the longest first, by their first word."""

    by_head: dict[str, tuple[tuple[Phrase, str], ...]]

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> Phrases:
        """From pairs of a phrase and what it means."""
        found: dict[str, list[tuple[Phrase, str]]] = {}
        for text, meaning in sorted(pairs, key=lambda pair: -len(pair[0].split())):
            words = tuple(text.split())
            found.setdefault(words[0], []).append((words, meaning))
        return cls({head: tuple(entries) for head, entries in found.items()})

    def at(self, words: Sequence[str], index: int) -> tuple[int, str] | None:
        """How many words the phrase that begins at `index` has and what it means; None when none begins there."""
        for phrase, meaning in self.by_head.get(words[index], ()):
            if tuple(words[index : index + len(phrase)]) == phrase:
                return len(phrase), meaning
        return None

    def within(self, words: Sequence[str]) -> bool:
        """Whether any of them stands anywhere in the words."""
        heads = self.by_head
        return any(word in heads and self.at(words, index) is not None for index, word in enumerate(words))


@dataclass(frozen=True, slots=True)
class Tense:
    """The words that tell of which side of a change a sentence speaks."""

    past: frozenset[str]
    past_verbs: frozenset[str]
    finite: frozenset[str]
    staying: frozenset[str]
    openers: frozenset[str]
    sections: dict[str, str]  # a heading to "then", "now" or "neither"
    commands: frozenset[str]
    stopping: frozenset[str]
    mending: frozenset[str]  # keys
    reports: frozenset[str]  # keys


@dataclass(frozen=True, slots=True)
class Lists:
    """What the rules know about words."""

    function_words: frozenset[str]
    function_roots: dict[str, str]  # their stems
    stems: dict[str, str]  # the stem of a word to that of the first word of its group
    alike: dict[str, tuple[str, ...]]  # and the other way round, names of several words by their first
    names: Phrases
    abbreviations: frozenset[str]
    old: Phrases
    repair: Phrases
    fault: Phrases
    changes: frozenset[str]  # keys
    tense: Tense
    new: Phrases
    negations: Phrases
    preventing: frozenset[str]  # keys
    clause_openers: frozenset[str]
    stages: dict[str, str]  # of a decision or an issue: "wait", "yes", "no", "over"
    recorded: frozenset[str]  # keys
    conditions: frozenset[str]
    contrasts: Phrases
    choosing: frozenset[str]  # keys
    every: frozenset[str]
    part: frozenset[str]
    sole: frozenset[str]
    besides: frozenset[str]
    totals: frozenset[str]
    gone: frozenset[str]  # keys
    there: frozenset[str]  # keys
    numbers: dict[str, float]
    scales: dict[str, float]
    units: dict[str, tuple[str, float]]  # what it measures, and its size
    bounds_before: Phrases
    bounds_after: Phrases
    labels: frozenset[str]  # keys
    references: frozenset[str]
    ordinals: dict[str, int]
    months: dict[str, int]
    weekdays: dict[str, int]
    date_bounds: dict[str, str]
    once: frozenset[str]  # keys
    states: dict[str, bool]
    opposites: dict[str, frozenset[str]]  # stem to stems
    groups: dict[str, str]  # word to the name of its group
    makers: frozenset[str]  # keys
    pronouns: frozenset[str]
    referring: frozenset[str]
    subjects: frozenset[str]  # keys

    def opposites_of(self, root: str) -> Iterator[str]:
        """All stems that are opposites of one: of a pair of the lists, or the same with a prefix that denies it."""
        yield from self.opposites.get(root, ())
        for prefix in _DENYING if len(root) > 4 else ():
            yield prefix + root
            if root.startswith(prefix) and len(root) > len(prefix) + 4:
                yield root[len(prefix) :]

    def key(self, word: str) -> str:
        """What stands for a word in a comparison of what two sentences are about."""
        root = stem(word)
        return self.stems.get(root, root)


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads(resources.files("vouchgate.ingest.data").joinpath(name).read_text("utf-8"))


def _phrases(texts: Iterable[str]) -> Phrases:
    return Phrases.of((text, text) for text in texts)


def _opposites(raw: dict[str, Any], values: ValueWords) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    alone = frozenset(raw["not_alone"])
    listed = [pair for pair in values.opposites if not alone.intersection(pair)]
    for one, other in [*listed, *(tuple(pair) for pair in raw["pairs"])]:
        found.setdefault(stem(one), set()).add(stem(other))
        found.setdefault(stem(other), set()).add(stem(one))
    return {word: frozenset(others) for word, others in found.items()}


def _joined(groups: Sequence[Sequence[str]]) -> dict[str, str]:
    """Each stem of the groups to one that stands for all it is joined with, directly or through other groups."""
    found: dict[str, str] = {}
    for group in groups:
        roots = {stem(word) for word in group}
        seen = {found[root] for root in roots if root in found}
        head = min(seen, default=stem(group[0]))
        found |= dict.fromkeys(roots, head) | {root: head for root, known in found.items() if known in seen}
    return found


def _alike(stems: dict[str, str], names: Sequence[Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """What may stand for each key in a text: the stems of its group, and the first words of the names that mean it."""
    found: dict[str, list[str]] = {}
    for root, key in stems.items():
        found.setdefault(key, [key]).append(root)
    for name, meaning in names:
        key = stems.get(stem(meaning), stem(meaning))
        found.setdefault(key, [key]).append(name.split()[0])
    return {key: tuple(roots) for key, roots in found.items()}


def _months(names: Sequence[str]) -> dict[str, int]:
    months = {name: index for index, name in enumerate(names, 1)}
    return months | {name[:3]: index for name, index in months.items()} | {"sept": 9}


def _tense(raw: dict[str, Any], keys: Callable[[Iterable[str]], frozenset[str]]) -> Tense:
    commands = raw["commands"]
    return Tense(
        past=frozenset(raw["past"]),
        past_verbs=frozenset(raw["past_verbs"]),
        finite=frozenset(raw["finite"]),
        staying=frozenset(raw["staying"]),
        openers=frozenset(raw["openers"]),
        sections={word: section for section, words in raw["sections"].items() for word in words},
        commands=frozenset(commands["all"]),
        stopping=frozenset(commands["stopping"]),
        mending=keys(commands["mending"]),
        reports=keys(raw["reports"]),
    )


def _units(raw: dict[str, dict[str, float]]) -> dict[str, tuple[str, float]]:
    return {word: (measure, float(size)) for measure, sizes in raw.items() for word, size in sizes.items()}


def load_lists() -> Lists:
    """Both files as one set of lists."""
    raw = _read("contradiction.toml")
    values = ValueWords.model_validate(_read("values.toml"))
    stems = _joined([*raw["same"], *values.same])

    def keys(words: Iterable[str]) -> frozenset[str]:
        return frozenset(stems.get(root, root) for root in map(stem, words))

    bounds = raw["bounds"]
    return Lists(
        function_words=frozenset(raw["function_words"]),
        function_roots={word: stem(word) for word in raw["function_words"]},
        stems=stems,
        alike=_alike(stems, raw["names"]),
        names=Phrases.of((pair[0], pair[1]) for pair in raw["names"]),
        abbreviations=frozenset(raw["abbreviations"]),
        old=_phrases(raw["old"]),
        repair=_phrases(raw["repair"]),
        fault=_phrases(raw["fault"]),
        changes=keys(raw["changes"]),
        tense=_tense(raw, keys),
        new=_phrases(raw["new"]),
        negations=_phrases(raw["negations"]),
        preventing=keys(raw["preventing"]),
        clause_openers=frozenset(raw["clause_openers"]),
        stages={word: stage for stage, words in raw["stages"].items() for word in words},
        recorded=keys(raw["status"]["recorded"]),
        conditions=frozenset(raw["conditions"]),
        contrasts=_phrases(raw["contrasts"]),
        choosing=keys(raw["choosing"]),
        every=frozenset(raw["quantifiers"]["all"]),
        part=frozenset(raw["quantifiers"]["part"]),
        sole=frozenset(raw["quantifiers"]["sole"]),
        besides=frozenset(raw["quantifiers"]["besides"]),
        totals=frozenset(raw["quantifiers"]["totals"]),
        gone=keys(raw["status"]["gone"]),
        there=keys(raw["status"]["there"]),
        numbers={word: float(group[0]) for group in values.same if group[0].isdigit() for word in group[1:]},
        scales={word: float(size) for word, size in raw["scales"].items()},
        units=_units(raw["units"]),
        bounds_before=Phrases.of((text, mark) for text, mark in bounds["before"]),
        bounds_after=Phrases.of((text, mark) for text, mark in bounds["after"]),
        labels=keys(bounds["labels"]),
        references=frozenset(bounds["references"]),
        ordinals={word: index for index, word in enumerate(bounds["ordinals"])},
        months=_months(raw["dates"]["months"]),
        weekdays={name: index for index, name in enumerate(raw["groups"]["weekday"])},
        date_bounds=dict.fromkeys(raw["dates"]["before"], "<") | dict.fromkeys(raw["dates"]["after"], ">"),
        once=keys(raw["dates"]["once"]),
        states=dict.fromkeys(raw["states"]["on"], True) | dict.fromkeys(raw["states"]["off"], False),
        opposites=_opposites(raw["opposites"], values),
        groups={word: name for name, words in raw["groups"].items() for word in words},
        makers=keys(raw["agents"]["verbs"]),
        subjects=keys(raw["agents"]["subjects"]),
        pronouns=frozenset(raw["agents"]["pronouns"]),
        referring=frozenset(raw["agents"]["referring"]),
    )


# A constant read once from the package's own data files; it depends on no policy.
LISTS = load_lists()
