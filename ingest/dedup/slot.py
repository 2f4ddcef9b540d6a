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
from vouchgate.ingest.dedup.rewording import Unit
from vouchgate.ingest.dedup.slot_words import WORDS
from vouchgate.ingest.dedup.subject import COPULA, has_digit, is_count, is_verb, last_verb

_LONGEST = 4  # units of one side that are one thing; more are another sentence
_REFERENCE = re.compile(r"#\d+|[a-z]{2,10}-\d+|(?=\w*\d)(?=\w*[a-f])[0-9a-f]{7,40}|https?:.*")
_DIGITS = re.compile(r"\d+")
_EACH = frozenset({"per", "every"})
_OPEN = frozenset({"of", "for"})  # after these a thing has one of many
_PURPOSES = frozenset({"for", "as", "to", "in"})
_TURNING = frozenset({"before", "after", "with", "without", "since", "until"})
_PLACES = frozenset({"in", "into", "on", "upon", "at", "by"})
_WHEN = frozenset({"by", "per", "every", "after", "within"})  # begins how or when something is done
_ONWARD = frozenset({"later", "newer", "above", "up", "higher", "earlier", "older", "below"})


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
    if any(rule(found) for rule in (_allowed_or_not, _other_bound, _only_against_more, _turned)):
        return Slot.ONE
    if _means_same(found):
        return Slot.UNSURE
    if last_verb(found.before) is None and not (found.before and _starts_with_verb(found)):
        sentence = (*found.before, *found.ours, *found.after)
        if last_verb(sentence) is None and found.ours[0].shown.lower() not in WORDS.opening:
            listed = bool(found.before) and found.before[-1].key in WORDS.numbered
            return Slot.BOTH if listed else Slot.UNSURE
        return _of_subject(found)
    return _of_predicate(found)


def _starts_with_verb(found: Difference) -> bool:
    return any(is_verb(units[0], first=False) for units in (found.ours, found.theirs))


def _turned(found: Difference) -> bool:
    """Whether one says "before", and the other "after", of the same."""
    words = found.ours[0].key, found.theirs[0].key
    return bool(found.before) and _TURNING.issuperset(words) and _paired(found)


def _allowed_or_not(found: Difference) -> bool:
    return _allowed(found.ours) + _allowed(found.theirs) == 0 and _allowed(found.ours) != 0


def _allowed(units: Sequence[Unit]) -> int:
    """1 for "may" or "is allowed to", -1 for "must not" or "cannot", 0 for all else."""
    keys = {unit.key for unit in units}
    if not keys & WORDS.modals or not keys <= WORDS.modals | WORDS.negations | WORDS.helping:
        return 0
    return -1 if keys & WORDS.negations else 1


def _means_same(found: Difference) -> bool:
    """Whether the two are the same in other words: "hourly" and "every hour", "all" and "everyone", and before "not"
    "must" and "may"."""
    ours, theirs = ([unit.key for unit in units] for units in (found.ours, found.theirs))
    if len(ours) == len(theirs) == 1 and found.after and found.after[0].key == "not":
        return {*ours, *theirs} <= WORDS.modals
    whose = [keys[0] in WORDS.every and len(keys) == 1 for keys in (ours, theirs)]
    return all(whose) or _period(ours) == _period(theirs) is not None


def _period(keys: Sequence[str]) -> str | None:
    if len(keys) == 2 and keys[0] in WORDS.every:
        return keys[1]
    return WORDS.periods.get(keys[0]) if len(keys) == 1 else None


def _other_bound(found: Difference) -> bool:
    """Whether both are words that bound a number or a degree, such as "at least" and "exactly", and not the same."""
    ours, theirs = (
        WORDS.bounds.get(tuple(unit.key for unit in units)) for units in (found.ours, found.theirs)
    )
    return None not in (ours, theirs) and ours != theirs


def _only_against_more(found: Difference) -> bool:
    """Whether one text has "only" of somebody or something, and the other says it of all, or of another subject."""
    alone = [any(unit.key in WORDS.only for unit in units) for units in (found.ours, found.theirs)]
    if alone[0] == alone[1]:
        return False
    other = found.theirs if alone[0] else found.ours
    return not found.before or any(unit.key in WORDS.every for unit in other)


def _added(found: Difference) -> Slot:
    """One text has words more. A negation alone turns the other round; anything else may only tell more."""
    keys = {unit.key for unit in (*found.ours, *found.theirs)}
    if keys & WORDS.negations and keys <= WORDS.negations | WORDS.helping:
        return Slot.ONE
    return Slot.UNSURE if last_verb(found.before) is not None else Slot.BOTH


def _paired(found: Difference) -> bool:
    """Whether word for word the two are equal or opposites."""
    ours, theirs = _bare(found.ours), _bare(found.theirs)
    whole = tuple("-".join(unit.key for unit in units) for units in (ours, theirs))
    if whole in WORDS.opposites:
        return True
    return len(ours) == len(theirs) and all(
        one.key == other.key or WORDS.opposed(one, other) for one, other in zip(ours, theirs, strict=True)
    )


def _bare(units: Sequence[Unit]) -> Sequence[Unit]:
    """The units without "is" and its like, where anything else is left."""
    return [unit for unit in units if unit.key not in COPULA] or units


def _other_fate(found: Difference) -> bool:
    """Whether both say what is done with a thing, and only one of that can be done: dropped, kept, passed on."""
    ours, theirs = _bare(found.ours), _bare(found.theirs)
    if any(unit.key not in WORDS.joints for unit in (*ours[1:], *theirs[1:])):
        return False
    mine, others = (WORDS.fates.get(root_of(units[0].key), frozenset()) for units in (ours, theirs))
    return bool(mine and others) and mine.isdisjoint(others)


def _of_manner(found: Difference) -> bool:
    """Whether both say how, how often or when, at the end: "linearly", "per customer". One of them has no joint."""
    ends = [_manner(units) for units in (found.ours, found.theirs)]
    return not found.after and all(ends) and "ly" in ends


def _manner(units: Sequence[Unit]) -> str:
    low = units[0].shown.lower()
    if len(units) == 1:
        return "ly" if len(low) > 4 and low.endswith("ly") else ""
    whole = " ".join(unit.key for unit in units)
    return "joint" if units[0].key in _WHEN and whole not in WORDS.idioms else ""


def _of_subject(found: Difference) -> Slot:
    """Of other things other things are said, but for the only one that does something, a count, and an order."""
    mine, others = found.ours[0], found.theirs[0]
    if _paired(found):
        return (
            Slot.ONE
            if {mine.shown.lower(), others.shown.lower()} <= WORDS.opening | LISTS.tense.commands
            else Slot.BOTH
        )
    if found.before:
        return Slot.ONE if _one_ranks(found) else Slot.BOTH
    if all(map(is_count, (mine, others))) and len(found.ours) == len(found.theirs) == 1:
        counted = (
            bool(found.after) and not found.after[0].firm and found.after[0].key not in LISTS.tense.finite
        )
        return Slot.ONE if counted else Slot.BOTH
    at = next((index for index, unit in enumerate(found.after) if is_verb(unit, first=False)), None)
    if at is None:
        return Slot.BOTH
    rest = found.after[at + 1 :]
    alone = root_of(found.after[at].key) in WORDS.sole and "by" not in {unit.key for unit in rest[:1]}
    titled = found.after[at].key in COPULA and bool(rest) and root_of(rest[0].key) in WORDS.single
    return (
        Slot.ONE
        if alone or (titled and at == 0 and _named(found.ours) and _named(found.theirs))
        else Slot.BOTH
    )


def _one_ranks(found: Difference) -> bool:
    """Whether of two numbered things both are said to be the latest, the minimum or the like, of which there is one."""
    said = [unit.key for unit in found.after[:2]]
    numbers = all(len(units) == 1 and has_digit(units[0]) for units in (found.ours, found.theirs))
    return numbers and len(said) == 2 and said[0] in COPULA and said[1] in WORDS.ranks


def _of_predicate(found: Difference) -> Slot:
    verb = last_verb(found.before)
    if verb is None:
        return Slot.ONE if _paired(found) or _other_fate(found) else Slot.UNSURE  # another verb
    many = _says_one_of_many(found, verb)
    if _paired(found):
        fond = root_of(found.before[verb].key) in WORDS.fond
        return Slot.BOTH if (many and not fond) or _counterparts(found) else Slot.ONE
    return _of_values(found, many=many) or (Slot.BOTH if many else _of_things(found, verb))


def _of_things(found: Difference, verb: int) -> Slot:
    """What follows when the two are neither numbers nor listed: it goes by what they are said with."""
    if _of_manner(found):
        return Slot.ONE
    single = any(root_of(unit.key) in WORDS.single for unit in found.before[:verb])
    if single and found.before[-1].key in COPULA and not found.after and not _akin(found):
        return Slot.ONE
    named = _named(found.ours) and _named(found.theirs)
    return Slot.ONE if _says_of_one(found, verb, named=named) else Slot.UNSURE


def _of_values(found: Difference, *, many: bool) -> Slot | None:
    """What follows when the two are numbers, or words of one group; None when they are neither."""
    times = _times(found.ours), _times(found.theirs)
    if None not in times:
        return Slot.ONE if times[0] != times[1] else Slot.UNSURE
    if _other_unit(found):
        return Slot.BOTH if many else Slot.ONE
    if any(map(has_digit, found.ours)) and any(map(has_digit, found.theirs)):
        return _of_numbers(found, many=many)
    if _other_fate(found):
        return Slot.ONE
    group = WORDS.group(found.ours[0]) if len(found.ours) == len(found.theirs) == 1 else None
    if group is not None and group == WORDS.group(found.theirs[0]) and found.before[-1].key not in _OPEN:
        return Slot.BOTH if many else Slot.ONE
    return None


def _other_unit(found: Difference) -> bool:
    """Whether the two are units of one measure, behind the same number: "30 s" and "30 ms"."""
    if len(found.ours) != 1 or len(found.theirs) != 1 or not is_count(found.before[-1]):
        return False
    ours, theirs = (LISTS.units.get(units[0].key) for units in (found.ours, found.theirs))
    return ours is not None and theirs is not None and ours[0] == theirs[0] and ours[1] != theirs[1]


def _counterparts(found: Difference) -> bool:
    """Whether the two are things of which each has its place, such as reader and writer, not what something is."""
    pair = frozenset(root_of(units[0].key) for units in (found.ours, found.theirs))
    return pair in WORDS.counterparts and found.before[-1].key not in COPULA | _PLACES


def _akin(found: Difference) -> bool:
    """Whether the two share a stem, and so may be one thing."""
    return bool({root_of(unit.key) for unit in found.ours} & {root_of(unit.key) for unit in found.theirs})


def _says_one_of_many(found: Difference, verb: int) -> bool:
    """Whether the verb is one that a thing may do to many. In the passive, "is owned by", it is not."""
    root = root_of(found.before[verb].key)
    joint = found.before[-1].key
    if (root, joint) in WORDS.alone or joint in _EACH:
        return False
    said = root_of(found.before[verb + 1].key) if verb + 1 < len(found.before) else ""
    if found.before[verb].key in COPULA and said in WORDS.shared:
        return True  # "is available in"
    if _passive(found.before, verb):
        return joint in WORDS.joints and root in WORDS.shared  # "is called by", and not "is called Otto"
    return root in WORDS.many


def _passive(before: Sequence[Unit], verb: int) -> bool:
    return verb > 0 and before[verb - 1].key in COPULA


def _named(units: Sequence[Unit]) -> bool:
    return all(unit.firm and not is_count(unit) for unit in units)


def _of_numbers(found: Difference, *, many: bool) -> Slot:
    mine = next(unit for unit in found.ours if has_digit(unit))
    other = next(unit for unit in found.theirs if has_digit(unit))
    before = found.before[-1]
    if any(_REFERENCE.fullmatch(unit.key.lower()) for unit in (mine, other)) or before.key in WORDS.numbered:
        return Slot.BOTH
    if _DIGITS.sub("0", mine.key) != _DIGITS.sub("0", other.key) and not (is_count(mine) and is_count(other)):
        return Slot.BOTH if many else Slot.UNSURE
    ours, theirs = _size(found.ours), _size(found.theirs)
    if len(found.ours) > 1 or len(found.theirs) > 1:
        if ours is None or theirs is None or ours[0] != theirs[0]:
            return Slot.UNSURE
        return Slot.UNSURE if ours[1] == theirs[1] else Slot.ONE
    if found.after and found.after[0].key in _ONWARD:
        return Slot.ONE
    after = found.after[0] if found.after else None
    thing = after is not None and (not after.firm or after.key in LISTS.units)  # "GB" is written like a name
    counted = is_count(mine) and thing and not before.firm
    return Slot.BOTH if many and not counted else Slot.ONE


def _times(units: Sequence[Unit]) -> str | None:
    """How often, of "twice" and "2 times"."""
    keys = [unit.key for unit in units]
    if len(keys) == 1:
        return WORDS.often.get(keys[0])
    return keys[0] if len(keys) == 2 and keys[1] in ("time", "times") and is_count(units[0]) else None


def _size(units: Sequence[Unit]) -> tuple[str, float] | None:
    """A number with its unit, as what it measures and how much."""
    if len(units) != 2 or not is_count(units[0]):
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
    if before.key in WORDS.joints:
        return not _akin(found) and _joined_to_one(found.before, verb, at)
    if at != verb:
        return False
    if root in WORDS.naming:
        return named or len(found.after) < 2
    return named and root in WORDS.one and bool(found.after) and found.after[0].key in _PURPOSES


def _joined_to_one(before: Sequence[Unit], verb: int, at: int) -> bool:
    """Whether a verb and the joint at a place are followed by one thing: where it is, by whom or on what it is done. Of
    an active verb in the past nothing follows, unless it is one of the list: what happened may happen again."""
    root, joint = root_of(before[verb].key), before[at].key
    if (root, joint) in WORDS.alone or joint in _EACH:
        return True
    if joint in _OPEN:
        return False
    if before[verb].key in COPULA:
        return at == verb + 1
    past = before[verb].shown.lower().endswith("ed") or before[verb].key in LISTS.tense.past_verbs
    return root in WORDS.one or _passive(before, verb) or (not past and at == verb + 1)
