"""Where the verb of a memory stands, by the looks of its words, and what a memory is about."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from vouchgate.ingest.contradictions.lists import LISTS, root_of
from vouchgate.ingest.dedup.rewording import Unit
from vouchgate.ingest.dedup.slot_words import WORDS

_REACH = 24  # units of a text among which its verb is looked for
_YEAR = re.compile(r"(?:19|20)\d\d")
_NUMBER = re.compile(r"[-+<>]?[$€£]?\d[\d,]*(?:\.\d+)?%?")
_SAYS_NO_THING = LISTS.function_words | WORDS.joints | {"somebody"}
_BEFORE_AMOUNTS = LISTS.function_words | WORDS.joints | {word for words in WORDS.bounds for word in words}
COPULA = frozenset({"is", "was", "be", "been", "become", "becomes", "remains", "stays", "=", "equals"})


@dataclass(frozen=True, slots=True)
class Subject:
    """What a text of one sentence is about: of each of its words the forms that it may have, in small letters."""

    words: tuple[frozenset[str], ...]

    def may_be_of(self, words: frozenset[str]) -> bool:
        """Whether a text of these words can be about the same: with other subject words it is about another thing."""
        joined = {part for word in words if "-" in word for part in word.split("-")}
        return all(not (words.isdisjoint(forms) and joined.isdisjoint(forms)) for forms in self.words)


def subject_of(units: Sequence[Unit]) -> Subject | None:
    """What the text is about, by what stands before its verb, or which of many numbered things it begins with. None
    when that cannot be told, and when its verb is one that has one subject only: of these another one contradicts."""
    units = units[:_REACH]
    at = _first_verb(units)
    if not at and len(units) > 1 and units[0].key in WORDS.numbered:
        at = 2  # "Item 12 of the list"
    before = units[:at]
    told = bool(before) and not any(unit.ends for unit in units[:-1]) and not is_verb(units[0], first=True)
    if not told or any(unit.shown.lower() in WORDS.opening or unit.key in WORDS.negations for unit in before):
        return None
    after = [root_of(unit.key) for unit in units[at : at + 2]]
    if WORDS.sole.intersection(after[:1]) or WORDS.single.intersection(after):
        return None
    counts = before[1:] if is_count(before[0]) else before
    lows = {
        unit.shown.lower()
        for unit in counts
        if unit.key not in WORDS.joints and (unit.shown.isalnum() or has_digit(unit))
    }
    return Subject(tuple(frozenset((low, low + "s", low.removesuffix("s"))) for low in sorted(lows)))


def two_things(ours: Sequence[Unit], theirs: Sequence[Unit], fold: Callable[[str], str]) -> bool:
    """Whether each of two texts is about something that the other does not speak of, as far as that can be told: they
    have other words or another number in front of the verb ("Room 12 has …"); and where that is one of which a thing
    has one subject ("leads the … team"), they say it of two things. `fold` brings words that stand for one another to
    one form."""
    at, of = _verb_beside(ours, theirs), _verb_beside(theirs, ours)
    if not (_tells_its_subject(ours, at) and _tells_its_subject(theirs, of)):
        return False
    one = any(
        WORDS.sole & _roots(units) or WORDS.single & _roots(units)
        for units in (ours[at : at + 2], theirs[of : of + 2])
    )
    if one and not (_only_here(ours[at + 1 :], theirs) and _only_here(theirs[of + 1 :], ours)):
        return False
    if _numbers(ours[:at], theirs) and _numbers(theirs[:of], ours):
        return True
    left, gone = _only_here(ours[:at], theirs), _only_here(theirs[:of], ours)
    # "The kid" and "the child" may be one; "the billing service" and "the invoice service" are two.
    alike = not set(map(fold, left)).isdisjoint(map(fold, gone))
    return bool(left and gone) and (not alike or not _roots(ours[:at]).isdisjoint(_roots(theirs[:of])))


def _verb_beside(units: Sequence[Unit], others: Sequence[Unit]) -> int:
    """Where the verb of a text stands, also in the form that it has behind "now", if it is one of the other text."""
    known = (
        WORDS.sole
        | WORDS.fond
        | {root_of(unit.key) for unit in others[1:_REACH] if is_verb(unit, first=False)}
    )
    places = (
        i
        for i, unit in enumerate(units[:_REACH])
        if i and (is_verb(unit, first=False) or root_of(unit.key) in known)
    )
    return next(places, 0)


def _tells_its_subject(units: Sequence[Unit], at: int) -> bool:
    if not 0 < at < len(units) - 1:
        return False
    quiet = WORDS.opening | WORDS.negations
    several = any(unit.ends for unit in units[:-1]) or is_verb(units[0], first=True)
    return not several and quiet.isdisjoint(unit.shown.lower() for unit in units[:at])


def _numbers(part: Sequence[Unit], text: Sequence[Unit]) -> set[str]:
    """By which number a thing is called, that is nowhere in the other text: "Room 12", not "above 12 metres"."""
    named = {unit.key for last, unit in pairwise(part) if is_count(unit) and last.key not in _BEFORE_AMOUNTS}
    return named - {unit.key for unit in text}


def _roots(units: Sequence[Unit]) -> set[str]:
    return {root_of(unit.key) for unit in units}


def _only_here(part: Sequence[Unit], text: Sequence[Unit]) -> set[str]:
    """Words of content and names of a part of one text that are nowhere in the other one."""
    known = {form for unit in text for form in (unit.shown.lower(), root_of(unit.key))}
    return {
        unit.key
        for unit in part
        if unit.key not in _SAYS_NO_THING
        and any(map(str.isalpha, unit.key))
        and known.isdisjoint((unit.shown.lower(), root_of(unit.key)))
    }


def other_subject(ours: Sequence[Unit], theirs: Sequence[Unit]) -> bool:
    """Whether each of two texts has words before its verb that the other has not there."""
    mine, others = ({unit.key for unit in units[: _first_verb(units)]} for units in (ours, theirs))
    return bool(mine - others) and bool(others - mine)


def _first_verb(units: Sequence[Unit]) -> int:
    """Where the first verb stands after the first word, by its looks; 0 when there is none."""
    return next((i for i, unit in enumerate(units[:_REACH]) if i and is_verb(unit, first=False)), 0)


def last_verb(units: Sequence[Unit]) -> int | None:
    """Where the last verb stands, by its looks."""
    last = None
    ordered = _orders(units)
    for index, unit in enumerate(units):
        if ordered and index and unit.key not in COPULA and unit.key not in LISTS.tense.finite:
            continue  # "Write tests before the code": what follows an order is what it is about
        if is_verb(unit, first=index == 0) or (ordered and not index):
            last = index
    return last


def _orders(units: Sequence[Unit]) -> bool:
    """Whether a text begins with an order: a verb of orders, or another one in its base form before a joint."""
    if len(units) < 2:
        return False
    low = units[0].shown.lower()
    listed = low in LISTS.tense.commands and not units[0].article
    return listed or (units[1].key in WORDS.joints and low in WORDS.orders)


def is_verb(unit: Unit, *, first: bool) -> bool:
    low = unit.key
    if low in COPULA or low in LISTS.tense.finite or low in LISTS.tense.past or low in LISTS.tense.past_verbs:
        return True
    if unit.firm and not first:
        return False
    root = root_of(low)
    if first:
        return low in LISTS.tense.commands
    if unit.article or low in WORDS.joints:
        return False
    shown = unit.shown.lower()
    return (
        root in WORDS.many
        or root in WORDS.one
        or (len(shown) > 3 and shown.endswith(("s", "ed")) and not shown.endswith("ss"))
    )


def is_count(unit: Unit) -> bool:
    return _NUMBER.fullmatch(unit.key) is not None and _YEAR.fullmatch(unit.key) is None


def has_digit(unit: Unit) -> bool:
    return any(character.isdigit() for character in unit.key)
