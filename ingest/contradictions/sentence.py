"""Words and sentences as the rules compare them.

A word is *content* when it says what the sentence is about; its key is the same for every form of the word and for
its synonyms. Polarity is what the sentence says of a word: asserted, denied, or neither, when it stands under a
condition or after a negation whose reach is unsure.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, wraps
from typing import Any, NamedTuple, TypeVar

from vouchgate.ingest.contradictions.lists import LISTS
from vouchgate.ingest.language.words import LOOKS_LIKE_CODE

_BREAKS = frozenset(',;:()[]—–|"“”')
LABELS = ("status", "state")  # of a decision or an issue: "Status: accepted"
_PREFIX = 5  # words of a subject line's prefix, the colon included
_FINITE_REACH = 6  # words after a verb of command in which a finite verb shows that it is a noun
T = TypeVar("T")
_MORE = frozenset({"only", "just", "merely", "simply", "solely"})


def is_identifier(text: str) -> bool:
    """Whether a word looks like a name in code, a flag, a path or an acronym."""
    return not (text.isalpha() and text.islower()) and LOOKS_LIKE_CODE.search(text) is not None


def _may_negate(low: str) -> bool:
    return low in LISTS.negations.by_head or low.endswith("n't")


class Word(NamedTuple):
    """One word or mark. `key` is "" for marks; `start` and `end` are offsets in the text as given. A tuple, since one
    is made for every word that is read."""

    text: str
    low: str
    root: str  # its stem
    key: str
    start: int
    end: int
    content: bool
    name: bool  # capitalised within its sentence, or an identifier
    number: bool


@dataclass(frozen=True)
class Sentence:
    """The words of one sentence, marks included, in order."""

    words: tuple[Word, ...]
    section: str = ""  # key of [sections]: "then" under a heading like Context, "now" under one like Decision
    memo: dict[object, Any] = field(default_factory=dict, compare=False, repr=False)  # of `read_once`

    @cached_property
    def lows(self) -> tuple[str, ...]:
        """The words in small letters."""
        return tuple(word.low for word in self.words)

    @cached_property
    def keys(self) -> frozenset[str]:
        """The keys of the content words."""
        return frozenset(word.key for word in self.words if word.content)

    @cached_property
    def names(self) -> frozenset[str]:
        """The keys of the names among them."""
        return frozenset(word.key for word in self.words if word.content and word.name)

    @cached_property
    def positions(self) -> dict[str, tuple[int, ...]]:
        """Where each key stands."""
        found: dict[str, list[int]] = {}
        for index, word in enumerate(self.words):
            if word.key:
                found.setdefault(word.key, []).append(index)
        return {key: tuple(indices) for key, indices in found.items()}

    @cached_property
    def roots(self) -> dict[str, tuple[int, ...]]:
        """Where each stem stands."""
        found: dict[str, list[int]] = {}
        for index, word in enumerate(self.words):
            if word.root:
                found.setdefault(word.root, []).append(index)
        return {root: tuple(indices) for root, indices in found.items()}

    @cached_property
    def content(self) -> tuple[int, ...]:
        """Where the content words stand."""
        return tuple(index for index, word in enumerate(self.words) if word.content)

    @cached_property
    def old(self) -> bool:
        """Whether it tells how things were before."""
        return self.section == "then" or LISTS.old.within(self.lows)

    @cached_property
    def new(self) -> bool:
        """Whether it tells how things are after a change, or orders that they be so: "Do not start the pager"."""
        if LISTS.new.within(self.lows) or self.section == "now":
            return True
        return self.command is not None and self.words[self.command].key not in LISTS.tense.mending

    @cached_property
    def prefix(self) -> int:
        """How many words name the part that a subject line is about: two in "parser: accept …", else none."""
        for index, low in enumerate(self.lows[:_PREFIX]):
            if low == ":":
                return index + 1
        return 0

    @cached_property
    def command(self) -> int | None:
        """Where the verb of a sentence stands that orders something, as subject lines and decisions do."""
        start = self.prefix
        if start < len(self.words) and self.lows[start] in ("always", "never", "please"):
            start += 1
        if start >= len(self.words) or self.lows[start] not in LISTS.tense.commands:
            return None
        for low in self.lows[start + 1 : start + _FINITE_REACH]:
            if low in LISTS.tense.finite and self.lows[start] not in ("do", "don't"):
                return None  # "Cache entries are kept" orders nothing
            if low in LISTS.clause_openers or low in _BREAKS:
                break
        after = self.words[start + 1] if start + 1 < len(self.words) else None
        return None if after is not None and (after.number or after.low in ("of", ":")) else start

    @cached_property
    def past(self) -> bool:
        """Whether its first verb is in the past tense, other than of the change itself ("was removed")."""
        for index, low in enumerate(self.lows):
            if low in LISTS.tense.past:
                reach = self.words[index + 1 : index + 4]
                return not any(word.key in LISTS.tense.reports for word in reach)
            if low in LISTS.tense.finite:
                return False
            if index and (low in LISTS.tense.past_verbs or (low.endswith("ed") and len(low) > 4)):
                before = self.words[index - 1]
                after = self.lows[index + 1] if index + 1 < len(self.words) else ""
                told = (
                    (
                        before.content
                        and not before.number
                        and before.low not in LISTS.tense.staying
                        and before.key not in LISTS.changes
                    )
                    or before.low in LISTS.pronouns
                    or before.low in ("which", "also", "that")
                )
                if told and after != "by" and not before.low.endswith("ly"):
                    return True
        return False

    @cached_property
    def polarity(self) -> tuple[int, ...]:
        """Of each word: 1 asserted, -1 denied, 0 neither."""
        signs: list[int] = []
        sign, index = 1, 0
        while index < len(self.words):
            low = self.lows[index]
            taken = self.negations.get(index, 0)
            if taken:
                sign = -1 if sign == 1 else 0
                signs.extend([0] * taken)
                index += taken
                continue
            if low in LISTS.conditions:
                sign = 0 if sign == 1 else sign
            elif low in _BREAKS:
                sign = 1
            elif low in LISTS.clause_openers:
                sign = 0 if sign != 1 and low in ("and", "or", "to", "that") else 1
            signs.append(sign)
            index += 1
        return tuple(signs)

    @cached_property
    def denials(self) -> int:
        """How many negations it has."""
        return len(self.negations)

    @cached_property
    def negations(self) -> dict[int, int]:
        """Where a negation begins, and how many words it has."""
        found = {index: self.negates(index) for index, low in enumerate(self.lows) if _may_negate(low)}
        if self.command is not None and self.lows[self.command] in LISTS.tense.stopping:
            found[self.command] = 1
        return {index: taken for index, taken in found.items() if taken}

    def negates(self, index: int) -> int:
        """How many words a negation has that begins at a place, 0 for none. The "no" of yes and no is none, nor is that
        of a bound, "no more than", or of "no other"."""
        low = self.lows[index]
        if low.endswith("n't"):
            return 1
        cue = LISTS.negations.at(self.lows, index)
        if cue is None:
            return 0
        before = self.lows[index - 1] if index else ""
        after = self.lows[index + 1] if index + 1 < len(self.lows) else "."
        answers = low == "no" and (
            before in ("from", "to", "or", "=") or after in ("to", ".", ",", "by", ")")
        )
        more = low == "not" and after in _MORE  # "not only fast" is fast
        bound = LISTS.bounds_before.at(self.lows, index) is not None or (low == "no" and after == "other")
        return 0 if (answers or more or bound) and cue[0] == 1 else cue[0]

    def near(self, index: int, back: int, ahead: int) -> frozenset[str]:
        """The content keys around a place, so many words back and ahead."""
        around = self.words[max(0, index - back) : index + ahead + 1]
        return frozenset(word.key for word in around if word.content)

    def clause(self, index: int) -> range:
        """The places of the clause around a word, up to the next marks."""
        first = last = index
        while first > 0 and self.lows[first - 1] not in _BREAKS:
            first -= 1
        while last + 1 < len(self.words) and self.lows[last + 1] not in _BREAKS:
            last += 1
        return range(first, last + 1)

    def span(self, first: int, last: int) -> tuple[int, int]:
        """Offsets of the words from `first` to `last`, both included."""
        return self.words[first].start, self.words[last].end

    def content_before(self, index: int) -> int | None:
        """Where the nearest content word before a place stands."""
        at = bisect_left(self.content, index)
        return self.content[at - 1] if at else None

    def content_after(self, index: int) -> int | None:
        """Where the nearest content word after a place stands."""
        at = bisect_right(self.content, index)
        return self.content[at] if at < len(self.content) else None


def read_once(function: Callable[[Sentence], T]) -> Callable[[Sentence], T]:
    """What a rule's module reads out of a sentence, kept with the sentence: every pair it is in asks for it."""

    @wraps(function)
    def told(sentence: Sentence) -> T:
        if function not in sentence.memo:
            sentence.memo[function] = function(sentence)
        return sentence.memo[function]  # type: ignore[no-any-return]  # kept under the function that made it

    return told


@dataclass(frozen=True)
class Reading:
    """A text as those of its sentences that were asked for, and what its other words tell."""

    sentences: tuple[Sentence, ...]
    lows: frozenset[str] = (
        frozenset()
    )  # all words, of sentences that were not asked for as well, in small letters
    repairs: bool = False  # whether it tells of a fault and its repair
    change: bool = False  # whether it begins with the subject line of a change

    @cached_property
    def keys(self) -> frozenset[str]:
        """The content keys of all sentences."""
        return frozenset().union(*(sentence.keys for sentence in self.sentences))

    @cached_property
    def roots(self) -> frozenset[str]:
        """The stems of all words."""
        return frozenset(word.root for sentence in self.sentences for word in sentence.words)
