"""The word lists of `ingest/data/values.toml`: which words carry a value, and which differences carry none.

Every list is part of the policy. The first group names values; a value is never small, never inflected and
never left out. The second group is the whole of what may differ between two claims that are the same.
"""

from __future__ import annotations

from functools import cached_property
from typing import Self

from pydantic import model_validator

from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.language.stems import inflected

Pair = tuple[str, str]


class ValueWords(Frozen):
    """Words that carry a value although they look like prose, and differences that carry none; lower case.

    Raises ValueError when a phrase or a group of synonyms would hide a negation or an opposite.
    """

    negations: tuple[str, ...]
    numbers: tuple[str, ...]
    dates: tuple[str, ...]
    units: tuple[str, ...]  # also right after a number: "5ms" is "5 ms"
    opposites: tuple[Pair, ...]
    sentence_openers: tuple[str, ...]  # capitalised words at the start of a sentence that are no names

    small: tuple[str, ...]  # may come, go, move or be exchanged for one another
    joiners: tuple[str, ...]  # small words that join the members of a list
    same: tuple[tuple[str, ...], ...]  # each word of a group says what the others say
    phrases: tuple[Pair, ...]  # the left side says what the right side says
    adverbials: tuple[str, ...]  # begin a phrase that may stand first or last in its sentence
    adverbs: tuple[str, ...]  # such a phrase in one word
    ordering: tuple[str, ...]  # say that the order of a list matters

    @cached_property
    def carriers(self) -> frozenset[str]:
        """Words that are a value wherever they stand."""
        return frozenset(self.negations + self.numbers + self.dates)

    @cached_property
    def values(self) -> frozenset[str]:
        """Every word of the lists of values."""
        return self.carriers | {*self.units, *(word for pair in self.opposites for word in pair)}

    @cached_property
    def openers(self) -> frozenset[str]:
        """`sentence_openers` as a set."""
        return frozenset(self.sentence_openers)

    @cached_property
    def droppable(self) -> frozenset[str]:
        """Small words and joiners; a value is neither, even if a policy lists it as both."""
        return frozenset(self.small + self.joiners) - self.values

    @cached_property
    def joining(self) -> frozenset[str]:
        """`joiners` as a set."""
        return frozenset(self.joiners)

    @cached_property
    def unit_names(self) -> frozenset[str]:
        """`units` as a set."""
        return frozenset(self.units)

    @cached_property
    def phrase_heads(self) -> frozenset[str]:
        """`adverbials` as keys."""
        return frozenset(map(self.key, self.adverbials))

    @cached_property
    def date_keys(self) -> frozenset[str]:
        """`dates` as keys."""
        return frozenset(map(self.key, self.dates))

    @cached_property
    def lone_adverbs(self) -> frozenset[str]:
        """Keys of words that may move alone: `adverbs` and the dates."""
        return frozenset(map(self.key, self.adverbs)) | self.date_keys

    @cached_property
    def ordered(self) -> frozenset[str]:
        """`ordering` as keys."""
        return frozenset(map(self.key, self.ordering))

    @cached_property
    def synonyms(self) -> dict[str, str]:
        """Each word of a group of `same` to the first one."""
        return {word: group[0] for group in self.same for word in group}

    @cached_property
    def rewrites(self) -> dict[str, tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]]:
        """`phrases` by first word, the longest first."""
        found: dict[str, list[tuple[tuple[str, ...], tuple[str, ...]]]] = {}
        for left, right in sorted(self.phrases, key=lambda pair: -len(pair[0].split())):
            found.setdefault(left.split()[0], []).append((tuple(left.split()), tuple(right.split())))
        return {head: tuple(rules) for head, rules in found.items()}

    def key(self, word: str) -> str:
        """What stands for a word in a comparison: equal keys say the same."""
        known = self.synonyms.get(word)
        if known is not None:
            return known
        if word in self.carriers:
            return word
        stem = inflected(word.removesuffix("'s"))
        if stem in self.carriers or stem in self.droppable:
            return word  # "ones" is not "one"
        return self.synonyms.get(stem, stem)

    @model_validator(mode="after")
    def _hides_no_value(self) -> Self:
        for one, other in self.opposites:
            if self.key(one) == self.key(other):
                raise ValueError(f"opposites that count as the same word: {one!r} and {other!r}")
        for left, right in self.phrases:
            if not left.split():
                raise ValueError("a phrase must have a word")
            both = left.split(), right.split()
            if any(self._negates(one) and not self._may_negate(other) for one, other in (both, both[::-1])):
                raise ValueError(f"a phrase that hides a negation: {left!r} for {right!r}")
        for group in self.same:
            if len({self._negates([word]) for word in group}) > 1:
                raise ValueError(f"a negation counts as another word: {', '.join(group)}")
        return self

    def _negates(self, phrase: list[str]) -> bool:
        return any(word in self.negations or word.endswith("n't") for word in phrase)

    def _may_negate(self, phrase: list[str]) -> bool:
        """Contractions are known by their ending, so that a policy may shorten the list of negations."""
        return self._negates(phrase) or any(word.endswith(("not", "nt")) for word in phrase)
