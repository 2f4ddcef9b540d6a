"""The word lists the rules go by: `ingest/data/contradiction.toml`, and what `ingest/data/values.toml` already has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any

from pydantic import AfterValidator, AliasPath, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo

from vouchgate.ingest.data import read_data
from vouchgate.ingest.language.stems import inflected, stem
from vouchgate.ingest.language.value_words import ValueWords

Phrase = tuple[str, ...]

_DENYING = ("un", "non", "non-")
# What the stemmer would take for forms of another word, and two forms that it takes for none.
_ROOTS = {
    **{
        word: word
        for word in ("former", "number", "order", "other", "speed", "need", "during", "string", "thing")
    },
    **{word: word for word in ("million", "billion")},
    **dict.fromkeys(("added", "adding"), "add"),
}


@lru_cache(maxsize=1 << 14)  # most words of a source come again and again
def root_of(word: str) -> str:
    """The stem of a word as the rules compare it; a possessive is its word."""
    word = word.removesuffix("'s").removesuffix("’s")
    return _ROOTS.get(inflected(word)) or stem(word)


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


def _keyed(words: frozenset[str], info: ValidationInfo) -> frozenset[str]:
    """The keys of words; the context has the stems that are joined."""
    stems: dict[str, str] = info.context or {}
    return frozenset(stems.get(root, root) for root in map(root_of, words))


def _by_word(table: dict[str, list[str]]) -> dict[str, str]:
    """Each word of a table of lists to the name of its list."""
    return {word: name for name, words in table.items() for word in words}


def _at(*path: str) -> Any:
    """Where in the file a list stands that has another name here."""
    return Field(validation_alias=AliasPath(*path))


Words = frozenset[str]
Keys = Annotated[frozenset[str], AfterValidator(_keyed)]
Listed = Annotated[Phrases, BeforeValidator(lambda texts: Phrases.of((text, text) for text in texts))]
Meanings = Annotated[Phrases, BeforeValidator(Phrases.of)]
ByWord = Annotated[dict[str, str], BeforeValidator(_by_word)]
Places = Annotated[dict[str, int], BeforeValidator(lambda words: {word: at for at, word in enumerate(words)})]


class _FromFile(BaseModel):
    model_config = ConfigDict(frozen=True)


class Tense(_FromFile):
    """The words that tell of which side of a change a sentence speaks."""

    past: Words
    past_verbs: Words
    finite: Words
    staying: Words
    openers: Words
    sections: ByWord  # a heading to "then", "now" or "neither"
    commands: Words = _at("commands", "all")
    stopping: Words = _at("commands", "stopping")
    mending: Keys = _at("commands", "mending")
    reports: Keys


class Lists(_FromFile):
    """What the rules know about words."""

    function_words: Words
    function_roots: dict[str, str]  # their stems
    stems: dict[str, str]  # the stem of a word to that of the first word of its group
    alike: dict[str, tuple[str, ...]]  # and the other way round, names of several words by their first
    names: Meanings
    old: Listed
    repair: Listed
    fault: Listed
    changes: Keys
    tense: Tense
    new: Listed
    negations: Listed
    preventing: Keys
    clause_openers: Words
    stages: ByWord  # of a decision or an issue: "wait", "yes", "no", "over"
    recorded: Keys = _at("status", "recorded")
    conditions: Words
    contrasts: Listed
    choosing: Keys
    every: Words = _at("quantifiers", "all")
    part: Words = _at("quantifiers", "part")
    sole: Words = _at("quantifiers", "sole")
    besides: Words = _at("quantifiers", "besides")
    totals: Words = _at("quantifiers", "totals")
    gone: Keys = _at("status", "gone")
    there: Keys = _at("status", "there")
    numbers: dict[str, float]
    scales: dict[str, float]
    units: dict[str, tuple[str, float]]  # what it measures, and its size
    bounds_before: Meanings = _at("bounds", "before")
    bounds_after: Meanings = _at("bounds", "after")
    labels: Keys = _at("bounds", "labels")
    references: Words = _at("bounds", "references")
    ordinals: Places = _at("bounds", "ordinals")
    months: dict[str, int]
    weekdays: Places = _at("groups", "weekday")
    date_bounds: dict[str, str]
    once: Keys = _at("dates", "once")
    states: dict[str, bool]
    opposites: dict[str, frozenset[str]]  # stem to stems
    opposites_beside: dict[str, frozenset[str]]  # those that show nothing alone
    groups: ByWord  # word to the name of its group
    makers: Keys = _at("agents", "verbs")
    settled: Keys = _at("agents", "settled")
    pronouns: Words = _at("agents", "pronouns")
    referring: Words = _at("agents", "referring")
    subjects: Keys = _at("agents", "subjects")

    def opposites_of(self, root: str) -> Iterator[str]:
        """All stems that are opposites of one: of a pair of the lists, or the same with a prefix that denies it."""
        yield from self.opposites.get(root, ())
        for prefix in _DENYING if len(root) > 4 else ():
            yield prefix + root
            if root.startswith(prefix) and len(root) > len(prefix) + 4:
                yield root[len(prefix) :]

    def key(self, word: str) -> str:
        """What stands for a word in a comparison of what two sentences are about."""
        root = root_of(word)
        return self.stems.get(root, root)


def _opposites(raw: dict[str, Any], values: ValueWords, *, alone: bool) -> dict[str, frozenset[str]]:
    """Of each stem its opposites: those that show something alone, or the others."""
    found: dict[str, set[str]] = {}
    not_alone = frozenset(raw["not_alone"])
    listed = [pair for pair in values.opposites if not_alone.isdisjoint(pair) is alone]
    if not alone:
        listed = [pair for pair in listed if not {*raw["loose"]}.intersection(pair)]
    for one, other in [*listed, *(tuple(pair) for pair in raw["pairs"] if alone)]:
        found.setdefault(root_of(one), set()).add(root_of(other))
        found.setdefault(root_of(other), set()).add(root_of(one))
    return {word: frozenset(others) for word, others in found.items()}


def _joined(groups: Sequence[Sequence[str]]) -> dict[str, str]:
    """Each stem of the groups to one that stands for all it is joined with, directly or through other groups."""
    found: dict[str, str] = {}
    for group in groups:
        roots = {root_of(word) for word in group}
        seen = {found[root] for root in roots if root in found}
        head = min(seen, default=root_of(group[0]))
        found |= dict.fromkeys(roots, head) | {root: head for root, known in found.items() if known in seen}
    return found


def _alike(stems: dict[str, str], names: Sequence[Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """What may stand for each key in a text: the stems of its group, and the first words of the names that mean it."""
    found: dict[str, list[str]] = {}
    for root, key in stems.items():
        found.setdefault(key, [key]).append(root)
    for name, meaning in names:
        key = stems.get(root_of(meaning), root_of(meaning))
        found.setdefault(key, [key]).append(name.split()[0])
    return {key: tuple(roots) for key, roots in found.items()}


def _months(names: Sequence[str]) -> dict[str, int]:
    months = {name: index for index, name in enumerate(names, 1)}
    return months | {name[:3]: index for name, index in months.items()} | {"sept": 9}


def load_lists() -> Lists:
    """Both files as one set of lists."""
    raw = read_data("contradiction.toml")
    values = ValueWords.model_validate(read_data("values.toml"))
    stems = _joined([*raw["same"], *values.same])
    dates, states = raw["dates"], raw["states"]
    made = {
        "function_roots": {word: root_of(word) for word in raw["function_words"]},
        "stems": stems,
        "alike": _alike(stems, raw["names"]),
        "tense": raw,
        "numbers": {word: group[0] for group in values.same if group[0].isdigit() for word in group[1:]},
        "units": {word: (name, size) for name, sizes in raw["units"].items() for word, size in sizes.items()},
        "months": _months(dates["months"]),
        "date_bounds": dict.fromkeys(dates["before"], "<") | dict.fromkeys(dates["after"], ">"),
        "states": dict.fromkeys(states["on"], True) | dict.fromkeys(states["off"], False),
        "opposites": _opposites(raw["opposites"], values, alone=True),
        "opposites_beside": _opposites(raw["opposites"], values, alone=False),
    }
    return Lists.model_validate(raw | made, context=stems)


# A constant read once from the package's own data files; it depends on no policy.
LISTS = load_lists()
