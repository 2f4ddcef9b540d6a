"""One claim held against earlier ones: word Jaccard, and in which words they say different things.

The measure is plain on purpose: the set of words that white space separates, normalised (`ingest.language.words`). Over
the threshold, two texts are the same only when every difference is known to be harmless (ADR-0007).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from vouchgate.ingest.claims.likeness import Neighbour, SimilarMemory
from vouchgate.ingest.dedup.contradicted import NEAR, contradicted
from vouchgate.ingest.dedup.order import changed_window, cited_last, day_first, harmless_order
from vouchgate.ingest.dedup.rewording import Rewriter, RewrittenClaim, Unit
from vouchgate.ingest.dedup.sketch import LONG, Sketch, remembered, sketch, surely_below
from vouchgate.ingest.dedup.subject import Subject, subject_of
from vouchgate.ingest.language.value_words import ValueWords
from vouchgate.ingest.language.words import parts_words, tokens, word_list

# Words of each text that a finding names. A person needs a few; two long texts can differ in hundreds.
_NAMED = 8
# Words that each of two texts may have and the other has not, for one to contradict the other: what decides is one or
# two, beside small words and other forms of the same (`ingest.dedup.contradicted`).
_MOST_DIFFERING = 8
# Words from which on two texts that differ in one place alone are over the threshold, and compared there: 24 for 0.92.
# What is longer and shares half of its words differs in many places, of which no rule can tell.
_LONGEST_CONTRADICTED = 24
_BEGINNING = 400  # characters of a claim in which its subject is looked for; more of them are a long text


def jaccard(left: frozenset[str], right: frozenset[str]) -> Fraction:
    """Size of the overlap over size of the union, exact; two empty sets are equal, so 1."""
    shared = len(left & right)
    union = len(left) + len(right) - shared
    return Fraction(shared, union) if union else Fraction(1)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A claim against one neighbour over the threshold. `changed` holds the words that differ or changed
    places, as written, claim first; empty means the two say the same."""

    neighbour: Neighbour
    similarity: Fraction
    changed: tuple[str, ...]


def _named(units: Iterable[Unit]) -> list[str]:
    return list(dict.fromkeys(unit.shown for unit in units))[:_NAMED]


def _surplus(units: list[Unit], counts: Counter[str], other: Counter[str]) -> list[Unit]:
    """The units that the other text does not have, or not as often: then the last ones."""
    more = counts - other
    left = {key: other[key] for key in more}
    found = []
    for unit in units if more else ():
        if unit.key in left:
            if left[unit.key] > 0:
                left[unit.key] -= 1
            else:
                found.append(unit)
    return found


def changed_values(claim: str, other: str, words: ValueWords) -> tuple[str, ...]:
    """The words in which two texts say different things, as written, claim's first; empty when they say the same.

    They say the same when nothing differs but what the lists of `words` call harmless: small words, synonyms,
    inflection, spelling, and an order that exchanges no roles. Words that only changed places are named as
    well; at most eight of each text are. Linear in the texts.
    """
    return Comparisons(claim, Fraction(0), words).changed(other)


def _changed(ours: list[Unit], theirs: list[Unit], words: ValueWords) -> tuple[str, ...]:
    ours, theirs = day_first(cited_last(ours)), day_first(cited_last(theirs))
    left, right = Counter([unit.key for unit in ours]), Counter([unit.key for unit in theirs])
    if only := _named(_surplus(ours, left, right)) + _named(_surplus(theirs, right, left)):
        return tuple(dict.fromkeys(only))
    if harmless_order(ours, theirs, words):
        return ()
    start, end = changed_window(ours, theirs)
    moved = [
        pair for pair in zip(ours[start:end], theirs[start:end], strict=True) if pair[0].key != pair[1].key
    ]
    return tuple(dict.fromkeys(_named(one for one, _ in moved) + _named(two for _, two in moved)))


class Allowance:
    """How much comparing may still cost: so many texts held against claims word by word, and so many seconds of the
    processor, whoever shares it. What is over it is left out, and the answer says that it is not complete."""

    def __init__(self, texts: int, seconds: float, clock: Callable[[], float] = time.thread_time) -> None:
        """`clock` counts seconds; by default those that this thread computed, not those that it waited."""
        self.texts = texts
        self.seconds = seconds
        self.compared = 0  # texts so far
        self._clock = clock
        self._spent = 0.0

    @property
    def used_up(self) -> bool:
        """Whether nothing more may be compared."""
        return self.compared >= self.texts or self._spent >= self.seconds

    @contextmanager
    def spending(self) -> Iterator[None]:
        """Counts what is done in it."""
        started = self._clock()
        try:
            yield
        finally:
            self._spent += self._clock() - started


class Comparisons:
    """A claim held against earlier ones, each text once however often it is asked about: what was compared before
    a transaction costs nothing inside of it. What it says follows from the two texts and the policy alone."""

    def __init__(self, claim: str, threshold: Fraction, words: ValueWords) -> None:
        self.threshold = threshold
        self._claim = claim
        self._values = words
        self._similar: dict[str, Fraction] = {}
        self._changed: dict[str, tuple[str, ...]] = {}
        self._may_contradict: dict[str, bool] = {}
        self._contradicted: dict[str, tuple[str, ...]] = {}

    @cached_property
    def _words(self) -> frozenset[str]:
        return tokens(self._claim)

    @cached_property
    def _longest(self) -> int:
        """Where one character is a word, three make one."""
        return _LONGEST_CONTRADICTED * (1 if parts_words(self._claim) else 3)

    @cached_property
    def _listed(self) -> list[str]:
        return word_list(self._claim)

    @cached_property
    def _rewritten(self) -> RewrittenClaim:
        return RewrittenClaim(self._claim, Rewriter(self._values))

    @cached_property
    def _sketch(self) -> Sketch:
        return sketch(self._claim, self._words)

    def surely_below(self, other: str, threshold: Fraction | None = None) -> bool:
        """Whether it is remembered of a long text that it is less like the claim than the threshold of repeats, or this
        one; costs a millionth of a second."""
        known = remembered(other)
        return known is not None and surely_below(threshold or self.threshold, self._sketch, known)

    def near(self, other: str, allowance: Allowance | None = None) -> Fraction | None:
        """The similarity of two texts; None when it is not known and the allowance is used up."""
        known = self._similar.get(other)
        if known is not None or (allowance is not None and allowance.used_up):
            return known
        with allowance.spending() if allowance is not None else nullcontext():
            words = tokens(other)
            known = self._similar[other] = jaccard(self._words, words)
            if len(other) > LONG:
                sketch(other, words)
        return known

    def changed(self, other: str) -> tuple[str, ...]:
        """`changed_values` of the claim and this text."""
        known = self._changed.get(other)
        if known is None:
            # The commonest case, at a fraction of the time.
            same = self._similar.get(other, 1) == 1 and self._listed == word_list(other)
            known = () if same else _changed(*self._rewritten.beside(other), self._values)
            self._changed[other] = known
        return known

    def near_all(self, neighbours: Iterable[Neighbour]) -> Iterator[tuple[Neighbour, Fraction]]:
        """Each of the neighbours that `near` gives a similarity, with it."""
        for neighbour in neighbours:
            if (similarity := self.near(neighbour.content)) is not None:
                yield neighbour, similarity

    @cached_property
    def _subject(self) -> Subject | None:
        rewriter = Rewriter(self._values)
        text = rewriter.read(self._claim[:_BEGINNING])
        return subject_of(rewriter.units(text, text.exact))

    def may_contradict(self, other: str, allowance: Allowance) -> bool | None:
        """Whether `contradicted` is worth being asked: the text may be about the same, and has half of the claim's
        words, fewer than a repeat has. A few millionths of a second, and of the allowance only where a text is long and
        its similarity was not paid for before; None when that is used up."""
        may = self._may_contradict.get(other)
        if may is None and (may := self._compared(other, allowance)) is not None:
            self._may_contradict[other] = may
        return may

    def _compared(self, other: str, allowance: Allowance) -> bool | None:
        known = self._similar.get(other)
        if known is not None and not NEAR <= known < self.threshold:
            return False
        long = known is None and max(len(other), len(self._claim)) > _BEGINNING
        if long and self.surely_below(other, NEAR):
            return False
        if long and allowance.used_up:
            return None
        with allowance.spending() if long else nullcontext():
            words = tokens(other)
            if len(other) > LONG:
                sketch(other, words)
            differing = min(len(self._words - words), len(words - self._words))
            if min(len(words), len(self._words)) > self._longest or differing > _MOST_DIFFERING:
                return False
            if self._subject is not None and not self._subject.may_be_of(words):
                return False
            if known is None:
                known = self._similar[other] = jaccard(self._words, words)
            return NEAR <= known < self.threshold

    def contradicted(self, other: str) -> tuple[str, ...]:
        """The words in which only one of the claim and this text can be true (`ingest.dedup.contradicted`)."""
        known = self._contradicted.get(other)
        if known is None:
            long = min(len(tokens(other)), len(self._words)) > self._longest
            known = () if long else contradicted(self._claim, other, *self._rewritten.beside(other))
            self._contradicted[other] = known
        return known

    def compare(self, other: str, allowance: Allowance | None = None) -> bool:
        """Sees to it that `changed` is known; False when it is not, and the allowance is used up. A text that is the
        claim letter by letter costs nothing."""
        if other in self._changed or other == self._claim or allowance is None:
            self.changed(other)
            return True
        return _within(allowance, lambda: self.changed(other))

    def contradict(self, other: str, allowance: Allowance) -> bool:
        """As `compare`, for `contradicted`."""
        return other in self._contradicted or _within(allowance, lambda: self.contradicted(other))


def _within(allowance: Allowance, compare: Callable[[], object]) -> bool:
    """Compares, and counts it; False when the allowance is used up."""
    if allowance.used_up:
        return False
    allowance.compared += 1
    with allowance.spending():
        compare()
    return True


@dataclass(frozen=True, slots=True)
class LookedUp:
    """What of an owner's memories was held against a claim before it came to the writer: those that contradict it,
    whether all were compared that may, and as of which entry of the owner's log. An entry later, the transaction looks
    again. `bands` are the claim's keys in the index that was asked, `similar` is what is only shown."""

    items: tuple[Neighbour, ...] = ()
    complete: bool = False
    as_of: int = -1
    bands: tuple[int, ...] = ()
    similar: tuple[SimilarMemory, ...] = ()


NOT_LOOKED_UP = LookedUp()  # nobody knows


def compare(
    content: str,
    facts: tuple[Neighbour, ...],
    threshold: Fraction,
    words: ValueWords,
    known: Comparisons | None = None,
) -> tuple[Comparison, ...]:
    """Every neighbour at or over the threshold, nearest first; equals are ordered by id so that the answer
    does not depend on the order of the facts. `known` is what was compared before of the same claim."""
    comparisons = known or Comparisons(content, threshold, words)
    found = [
        Comparison(neighbour, similarity, comparisons.changed(neighbour.content))
        for neighbour, similarity in comparisons.near_all(facts)
        if similarity >= threshold
    ]
    return tuple(sorted(found, key=lambda c: (-c.similarity, len(c.changed), c.neighbour.id)))


def contradicting(
    content: str,
    facts: tuple[Neighbour, ...],
    threshold: Fraction,
    words: ValueWords,
    known: Comparisons | None = None,
) -> tuple[Comparison, ...]:
    """Every neighbour below the threshold that contradicts the text, nearest first; otherwise as `compare`."""
    comparisons = known or Comparisons(content, threshold, words)
    found = [
        Comparison(neighbour, similarity, changed)
        for neighbour, similarity in comparisons.near_all(facts)
        if NEAR <= similarity < threshold and (changed := comparisons.contradicted(neighbour.content))
    ]
    return tuple(sorted(found, key=lambda c: (-c.similarity, c.neighbour.id)))
