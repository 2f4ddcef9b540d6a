"""Where a claim and an earlier memory of nearly the same words cannot both be true.

The dedup check has always known repeats and changed values over its threshold (`ingest.dedup.compare`). Short texts
never come there: of eight words, one that is changed leaves a Jaccard of 0.78. From half of the words on (`NEAR`) two
texts contradict each other when a rule tells that only one of them can be true:

- they differ in one place, and what stands in it excludes the other (`ingest.dedup.slot`);
- or a rule fires that finds where a source says otherwise (`ingest.contradictions`), in either direction, and the rest
  of the two texts is about the same: "the API listens on 8080" says nothing of the admin pages.

All else is new. A contradiction costs its owner a look, a missed one leaves two memories side by side.
"""

from __future__ import annotations

from fractions import Fraction

from vouchgate.ingest.contradictions.glossed import contradicted_in_another_language
from vouchgate.ingest.contradictions.lists import LISTS
from vouchgate.ingest.contradictions.rules import contradictions
from vouchgate.ingest.dedup.rewording import Unit
from vouchgate.ingest.dedup.slot import Slot, difference, excluded
from vouchgate.ingest.dedup.slot_words import WORDS
from vouchgate.ingest.dedup.subject import other_subject
from vouchgate.ingest.language.words import split_words

NEAR = Fraction(1, 2)  # below it, two short claims share hardly more than their small words
# Words of content that each of two texts may have and the other has not, for the rules to be asked. What decides is
# one or two of them; two texts that differ in more are about two things, and asking takes a millisecond.
_MOST_APART = 2
_DENIALS = frozenset({"not", "never", "no", "cannot"})
_CONDITIONS = frozenset({"while", "after", "before", "when", "until", "during", "if", "unless", "once"})


def contradicted(claim: str, earlier: str, ours: list[Unit], theirs: list[Unit]) -> tuple[str, ...]:
    """The words in which only one of two texts can be true, as written, the claim's first; empty when no rule tells.

    `ours` and `theirs` are the texts' units (`ingest.dedup.rewording`). It is meant for texts that share half of their
    words. Linear in the texts, but for the bounded number of sentences that rules compare; never raises.
    """
    if changed := contradicted_in_another_language(claim, earlier):
        return changed
    found = difference(ours, theirs)
    slot = Slot.UNSURE if found is None else excluded(found)
    if slot is Slot.ONE and found is not None:
        return tuple(dict.fromkeys(unit.shown for unit in (*found.ours, *found.theirs)))
    if denied := _denied_whole(ours, theirs):
        return denied
    mine, other = {unit.key for unit in ours}, {unit.key for unit in theirs}
    only_ours, only_theirs = _content(mine - other), _content(other - mine)
    if (
        slot is Slot.BOTH
        or min(len(only_ours), len(only_theirs)) > _MOST_APART
        or other_subject(ours, theirs)
        or _turned_twice(ours, theirs)
        or _under(ours) != _under(theirs)
    ):
        return ()
    changed = _by_rules(claim, earlier, only_ours, only_theirs)
    return changed or _by_rules(earlier, claim, only_theirs, only_ours)[::-1]


def _by_rules(claim: str, earlier: str, ours: set[str], theirs: set[str]) -> tuple[str, ...]:
    """What the first rule names that fires, unless each text has words of content beside those."""
    for conflict in contradictions(claim, earlier):
        mine = claim[conflict.claim_start : conflict.claim_end]
        other = earlier[conflict.source_start : conflict.source_end]
        if not (ours - _keys(mine) and theirs - _keys(other)):
            return (mine, other)
    return ()


def _keys(text: str) -> set[str]:
    return {LISTS.key(word) for word in split_words(text)}


def _content(words: set[str]) -> set[str]:
    return set(map(LISTS.key, words)) - LISTS.function_words


def _denied_whole(ours: list[Unit], theirs: list[Unit]) -> tuple[str, ...]:
    """The one negation of a text that denies, without a condition, what the other one says, and what that says more."""
    for denying, saying in ((ours, theirs), (theirs, ours)):
        denials = [unit for unit in denying if unit.key in _DENIALS]
        if len(denials) != 1 or any(unit.key in WORDS.negations for unit in saying):
            continue
        said = [unit for unit in saying if unit.key not in WORDS.helping]
        rest = iter(said)
        told = [unit.key for unit in denying if unit.key not in WORDS.helping and unit is not denials[0]]
        if len(told) > 1 and all(any(unit.key == key for unit in rest) for key in told):
            known = frozenset(told)
            more = next((unit for unit in said if unit.key not in known), said[-1])
            return tuple(
                unit.shown for unit in ((denials[0], more) if denying is ours else (more, denials[0]))
            )
    return ()


def _turned_twice(ours: list[Unit], theirs: list[Unit]) -> bool:
    """Whether one of two texts denies, and the other one has the opposite word instead: "not like" and "dislike"."""
    denied = [any(unit.key in WORDS.negations for unit in units) for units in (ours, theirs)]
    if denied[0] == denied[1]:
        return False
    # Each word once: a text may repeat a few of them a thousand times.
    mine, others = ({unit.key: unit for unit in units}.values() for units in (ours, theirs))
    return any(WORDS.opposed(one, other) for one in mine for other in others)


def _under(units: list[Unit]) -> frozenset[str]:
    """The words with which a text says under which condition or when it holds."""
    return frozenset(unit.key for unit in units if unit.key in _CONDITIONS)
