"""Two texts that differ in one place: can both be true?

"The API listens on port 8080" and "… on port 8081" cannot; "Alice owns billing" and "Alice owns search" can, and so can
what is said of two subjects. It goes by the kind of what changed (a number, a name, an opposite, a negation, a word of
one group) and by what it is said with; the words are in `ingest/data/memories.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from vouchgate.ingest.contradictions.lists import LISTS, root_of
from vouchgate.ingest.data import read_data
from vouchgate.ingest.dedup.rewording import Unit

_LONGEST = 4  # units of one side that are one thing; more are another sentence
_REACH = 24  # units of a text among which its verb is looked for
_REFERENCE = re.compile(r"#\d+|[a-z]{2,10}-\d+|(?=\w*\d)(?=\w*[a-f])[0-9a-f]{7,40}|https?:.*")
_DIGITS = re.compile(r"\d+")
_YEAR = re.compile(r"(?:19|20)\d\d")
_NUMBER = re.compile(r"[-+<>]?[$€£]?\d[\d,]*(?:\.\d+)?%?")
_COPULA = frozenset({"is", "was", "be", "been", "become", "becomes", "remains", "stays", "=", "equals"})
_JOINTS = frozenset(
    {
        "by",
        "in",
        "on",
        "at",
        "to",
        "with",
        "from",
        "as",
        "for",
        "into",
        "under",
        "via",
        "of",
        "every",
        "per",
        "until",
    }
)
_PURPOSES = frozenset({"for", "as", "to", "in"})


class Slot(Enum):
    """What follows from the one place in which two texts differ."""

    ONE = "only one can be true"
    BOTH = "both can be true"
    UNSURE = "nothing follows"


@dataclass(frozen=True, slots=True)
class Difference:
    """The one place in which two texts differ, and what stands around it in their sentence."""

    before: Sequence[Unit]
    ours: Sequence[Unit]
    theirs: Sequence[Unit]
    after: Sequence[Unit]


class _Words:
    """`ingest/data/memories.toml`, its words as their stems."""

    def __init__(self) -> None:
        raw = read_data("memories.toml")
        self.opposites = {
            (root_of(a), root_of(b))
            for one, other in raw["opposites"]
            for a, b in ((one, other), (other, one))
        }
        self.negations = frozenset(raw["negations"])
        self.helping = frozenset(raw["helping"])
        self.often: dict[str, str] = raw["often"]
        self.modals = frozenset(raw["modals"])
        self.opening = frozenset(raw["opening"])
        self.numbered = frozenset(raw["numbered"]) | LISTS.references
        self.groups = {root_of(word): name for name, words in raw["groups"].items() for word in words}
        self.counterparts = {frozenset(map(root_of, pair)) for pair in raw["counterparts"]}
        self.naming = frozenset(map(root_of, raw["verbs"]["naming"]))
        self.fond = frozenset(map(root_of, raw["verbs"]["fond"]))
        self.many, self.one, self.sole = (
            frozenset(map(root_of, raw["verbs"][name])) for name in ("many", "one", "sole")
        )
        self.single = frozenset(map(root_of, raw["subjects"]["single"]))

    def group(self, unit: Unit) -> str | None:
        """The name of the group of which a word is."""
        low = unit.key.lower()
        return (
            self.groups.get(root_of(low)) or LISTS.groups.get(low) or LISTS.groups.get(low.removesuffix("s"))
        )

    def opposed(self, one: Unit, other: Unit) -> bool:
        """Whether two words are opposites."""
        left, right = root_of(one.key), root_of(other.key)
        return (
            (left, right) in self.opposites
            or right in LISTS.opposites_of(left)
            or left in LISTS.opposites_of(right)
        )


_WORDS = _Words()


def difference(ours: Sequence[Unit], theirs: Sequence[Unit]) -> Difference | None:
    """The one place in which two texts differ; None when there are several, or it is a whole sentence."""
    start, most = 0, min(len(ours), len(theirs))
    while start < most and ours[start].key == theirs[start].key:
        start += 1
    end = 0
    while end < most - start and ours[-1 - end].key == theirs[-1 - end].key:
        end += 1
    mine, others = ours[start : len(ours) - end], theirs[start : len(theirs) - end]
    if not (mine or others) or max(len(mine), len(others)) > _LONGEST:
        return None
    if any(unit.ends for unit in (*mine[:-1], *others[:-1])):
        return None
    before, after = ours[:start], ours[len(ours) - end :]
    opened = max((index + 1 for index, unit in enumerate(before) if unit.ends), default=0)
    closed = bool(mine and mine[-1].ends) or bool(others and others[-1].ends)
    stop = next((index + 1 for index, unit in enumerate(after) if unit.ends), len(after))
    return Difference(before[opened:], mine, others, () if closed else after[:stop])


def excluded(found: Difference) -> Slot:
    """Whether what stands in the one place of the claim excludes what stands there in the other text."""
    if not found.ours or not found.theirs:
        return _added(found)
    if _allowed(found.ours) + _allowed(found.theirs) == 0 and _allowed(found.ours):
        return Slot.ONE
    if _verb(found.before) is None and not (found.before and _starts_with_verb(found)):
        sentence = (*found.before, *found.ours, *found.after)
        if _verb(sentence) is None and found.ours[0].shown.lower() not in _WORDS.opening:
            listed = bool(found.before) and found.before[-1].key in _WORDS.numbered
            return Slot.BOTH if listed else Slot.UNSURE
        return _of_subject(found)
    return _of_predicate(found)


def _starts_with_verb(found: Difference) -> bool:
    return any(_is_verb(units[0], first=False) for units in (found.ours, found.theirs))


def _allowed(units: Sequence[Unit]) -> int:
    """1 for "may" or "is allowed to", -1 for "must not" or "cannot", 0 for all else."""
    keys = {unit.key for unit in units}
    if not keys & _WORDS.modals or not keys <= _WORDS.modals | _WORDS.negations | _WORDS.helping:
        return 0
    return -1 if keys & _WORDS.negations else 1


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
    if not at and len(units) > 1 and units[0].key in _WORDS.numbered:
        at = 2  # "Item 12 of the list"
    before = units[:at]
    told = bool(before) and not any(unit.ends for unit in units[:-1]) and not _is_verb(units[0], first=True)
    if not told or any(
        unit.shown.lower() in _WORDS.opening or unit.key in _WORDS.negations for unit in before
    ):
        return None
    after = [root_of(unit.key) for unit in units[at : at + 2]]
    if _WORDS.sole.intersection(after[:1]) or _WORDS.single.intersection(after):
        return None
    counts = before[1:] if _is_count(before[0]) else before
    lows = {
        unit.shown.lower()
        for unit in counts
        if unit.key not in _JOINTS and (unit.shown.isalnum() or _has_digit(unit))
    }
    return Subject(tuple(frozenset((low, low + "s", low.removesuffix("s"))) for low in sorted(lows)))


def other_subject(ours: Sequence[Unit], theirs: Sequence[Unit]) -> bool:
    """Whether each of two texts has words before its verb that the other has not there."""
    mine, others = ({unit.key for unit in units[: _first_verb(units)]} for units in (ours, theirs))
    return bool(mine - others) and bool(others - mine)


def _first_verb(units: Sequence[Unit]) -> int:
    """Where the first verb stands after the first word, by its looks; 0 when there is none."""
    return next((i for i, unit in enumerate(units[:_REACH]) if i and _is_verb(unit, first=False)), 0)


def _verb(units: Sequence[Unit], start: int = 0) -> int | None:
    """Where the last verb stands from a place on, by its looks."""
    last = None
    for index, unit in enumerate(units):
        if index >= start and _is_verb(unit, first=index == 0):
            last = index
    return last


def _is_verb(unit: Unit, *, first: bool) -> bool:
    low = unit.key
    if (
        low in _COPULA
        or low in LISTS.tense.finite
        or low in LISTS.tense.past
        or low in LISTS.tense.past_verbs
    ):
        return True
    if unit.firm and not first:
        return False
    root = root_of(low)
    if first:
        return low in LISTS.tense.commands
    if unit.article or low in _JOINTS:
        return False
    shown = unit.shown.lower()
    return (
        root in _WORDS.many
        or root in _WORDS.one
        or (len(shown) > 3 and shown.endswith(("s", "ed")) and not shown.endswith("ss"))
    )


def _added(found: Difference) -> Slot:
    """One text has words more. A negation alone turns the other round; anything else may only tell more."""
    keys = {unit.key for unit in (*found.ours, *found.theirs)}
    if keys & _WORDS.negations and keys <= _WORDS.negations | _WORDS.helping:
        return Slot.ONE
    return Slot.UNSURE if _verb(found.before) is not None else Slot.BOTH


def _paired(found: Difference) -> bool:
    """Whether word for word the two are equal or opposites."""
    whole = tuple("-".join(unit.key for unit in units) for units in (found.ours, found.theirs))
    if whole in _WORDS.opposites:
        return True
    return len(found.ours) == len(found.theirs) and all(
        one.key == other.key or _WORDS.opposed(one, other)
        for one, other in zip(found.ours, found.theirs, strict=True)
    )


def _of_subject(found: Difference) -> Slot:
    """Of other things other things are said, but for the only one that does something, a count, and an order."""
    mine, others = found.ours[0], found.theirs[0]
    if _paired(found):
        return (
            Slot.ONE
            if {mine.shown.lower(), others.shown.lower()} <= _WORDS.opening | LISTS.tense.commands
            else Slot.BOTH
        )
    if found.before:
        return Slot.BOTH
    if all(map(_is_count, (mine, others))) and len(found.ours) == len(found.theirs) == 1:
        counted = (
            bool(found.after) and not found.after[0].firm and found.after[0].key not in LISTS.tense.finite
        )
        return Slot.ONE if counted else Slot.BOTH
    at = next((index for index, unit in enumerate(found.after) if _is_verb(unit, first=False)), None)
    if at is None:
        return Slot.BOTH
    rest = found.after[at + 1 :]
    alone = root_of(found.after[at].key) in _WORDS.sole and "by" not in {unit.key for unit in rest[:1]}
    titled = found.after[at].key in _COPULA and bool(rest) and root_of(rest[0].key) in _WORDS.single
    return (
        Slot.ONE
        if alone or (titled and at == 0 and _named(found.ours) and _named(found.theirs))
        else Slot.BOTH
    )


def _is_count(unit: Unit) -> bool:
    return _NUMBER.fullmatch(unit.key) is not None and _YEAR.fullmatch(unit.key) is None


def _of_predicate(found: Difference) -> Slot:
    verb = _verb(found.before)
    if verb is None:
        return Slot.ONE if _paired(found) else Slot.UNSURE  # another verb
    many = _says_one_of_many(found, verb)
    if _paired(found):
        fond = root_of(found.before[verb].key) in _WORDS.fond
        return Slot.BOTH if (many and not fond) or _counterparts(found) else Slot.ONE
    return _of_values(found, many=many) or (Slot.BOTH if many else _of_things(found, verb))


def _of_things(found: Difference, verb: int) -> Slot:
    """What follows when the two are neither numbers nor listed: it goes by what they are said with."""
    single = any(root_of(unit.key) in _WORDS.single for unit in found.before[:verb])
    if single and found.before[-1].key in _COPULA and not found.after and not _akin(found):
        return Slot.ONE
    named = _named(found.ours) and _named(found.theirs)
    return Slot.ONE if _says_of_one(found, verb, named=named) else Slot.UNSURE


def _of_values(found: Difference, *, many: bool) -> Slot | None:
    """What follows when the two are numbers, or words of one group; None when they are neither."""
    times = _times(found.ours), _times(found.theirs)
    if None not in times:
        return Slot.ONE if times[0] != times[1] else Slot.UNSURE
    if any(map(_has_digit, found.ours)) and any(map(_has_digit, found.theirs)):
        return _of_numbers(found, many=many)
    group = _WORDS.group(found.ours[0]) if len(found.ours) == len(found.theirs) == 1 else None
    if group is not None and group == _WORDS.group(found.theirs[0]):
        return Slot.BOTH if many else Slot.ONE
    return None


def _counterparts(found: Difference) -> bool:
    """Whether the two are things of which each has its place, such as reader and writer, not what something is."""
    pair = frozenset(root_of(units[0].key) for units in (found.ours, found.theirs))
    return pair in _WORDS.counterparts and found.before[-1].key not in _COPULA


def _akin(found: Difference) -> bool:
    """Whether the two share a stem, and so may be one thing."""
    return bool({root_of(unit.key) for unit in found.ours} & {root_of(unit.key) for unit in found.theirs})


def _says_one_of_many(found: Difference, verb: int) -> bool:
    """Whether the verb is one that a thing may do to many. In the passive, "is owned by", it is not."""
    passive = verb > 0 and found.before[verb - 1].key in _COPULA
    return root_of(found.before[verb].key) in _WORDS.many and not passive


def _has_digit(unit: Unit) -> bool:
    return any(character.isdigit() for character in unit.key)


def _named(units: Sequence[Unit]) -> bool:
    return all(unit.firm and not _is_count(unit) for unit in units)


def _of_numbers(found: Difference, *, many: bool) -> Slot:
    mine = next(unit for unit in found.ours if _has_digit(unit))
    other = next(unit for unit in found.theirs if _has_digit(unit))
    before = found.before[-1]
    if any(_REFERENCE.fullmatch(unit.key.lower()) for unit in (mine, other)) or before.key in _WORDS.numbered:
        return Slot.BOTH
    if _DIGITS.sub("0", mine.key) != _DIGITS.sub("0", other.key) and not (
        _is_count(mine) and _is_count(other)
    ):
        return Slot.BOTH if many else Slot.UNSURE
    ours, theirs = _size(found.ours), _size(found.theirs)
    if len(found.ours) > 1 or len(found.theirs) > 1:
        if ours is None or theirs is None or ours[0] != theirs[0]:
            return Slot.UNSURE
        return Slot.UNSURE if ours[1] == theirs[1] else Slot.ONE
    counted = _is_count(mine) and bool(found.after) and not found.after[0].firm and not before.firm
    return Slot.BOTH if many and not counted else Slot.ONE


def _times(units: Sequence[Unit]) -> str | None:
    """How often, of "twice" and "2 times"."""
    keys = [unit.key for unit in units]
    if len(keys) == 1:
        return _WORDS.often.get(keys[0])
    return keys[0] if len(keys) == 2 and keys[1] in ("time", "times") and _is_count(units[0]) else None


def _size(units: Sequence[Unit]) -> tuple[str, float] | None:
    """A number with its unit, as what it measures and how much."""
    if len(units) != 2 or not _is_count(units[0]):
        return None
    measure, size = LISTS.units.get(units[1].key, ("", 0.0))
    digits = units[0].key.strip("+-<>$€£%").replace(",", "")
    return (measure, float(digits) * size) if measure else None


def _says_of_one(found: Difference, verb: int, *, named: bool) -> bool:
    """Whether what the two are said with is said of one only: "is owned by", "runs on", "prefers"."""
    at = len(found.before) - 1
    while at > verb and found.before[at].firm:  # "Team Heron" and "Team Falcon" differ in their second word
        at -= 1
    before, root = found.before[at], root_of(found.before[verb].key)
    if before.key in _JOINTS:
        alone = root in _WORDS.one and not _akin(found)
        return before.key != "of" and (alone or (named and found.before[verb].key in _COPULA))
    if at != verb:
        return False
    if root in _WORDS.naming:
        return named or not found.after
    return named and root in _WORDS.one and bool(found.after) and found.after[0].key in _PURPOSES
