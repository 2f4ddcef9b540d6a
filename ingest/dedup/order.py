"""When the same words in another order still say the same (ADR-0007).

Two moves are harmless: an adverbial phrase that goes from one end of its sentence to the other ("In 2024 the
team chose X", "The team chose X in 2024"), and members of one list that change places ("JSON and YAML").
Everything else can exchange roles ("A calls B", "B calls A") and counts as a change. When unsure: a change.
"""

from __future__ import annotations

import re

from vouchgate.ingest.dedup.rewording import Unit
from vouchgate.ingest.language.value_words import ValueWords

# A phrase longer than this is a clause with roles of its own; a longer list is no list. Both bound the work.
_LONGEST_PHRASE = 10
_LONGEST_LIST = 24
_LONGEST_MEMBER = 3
_CITING = frozenset({"per", "see"})
_REFERENCE = re.compile(r"[a-z]{2,10}-\d{1,6}|#\d{1,9}")
# As months are read.
_MONTHS = frozenset({"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"})
_DAY = re.compile(r"(?:[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?")
# Places tried for one move. Only a text that repeats itself has several.
_TRIES = 8


def cited_last(units: list[Unit]) -> list[Unit]:
    """The units without the word that leads to a reference, and a reference that opens a sentence put at its end: "per
    ADR-8, X" cites what "X (ADR-8)" does. Linear."""
    if not any(unit.key in _CITING for unit in units):
        return units
    found: list[Unit] = []
    held: Unit | None = None
    for index, unit in enumerate(units):
        cites = index and units[index - 1].key in _CITING and _REFERENCE.fullmatch(unit.key)
        leads = unit.key in _CITING and any(
            _REFERENCE.fullmatch(after.key) for after in units[index + 1 : index + 2]
        )
        if leads:
            continue
        if cites and _starts_sentence(units, index - 1) and not unit.ends:
            held = unit
            continue
        found.append(unit)
        if held is not None and (unit.ends or index + 1 == len(units)):
            found[-1] = unit._replace(ends=False)
            found.append(held._replace(ends=unit.ends, comma=False))
            held = None
    return found


def changed_window(ours: list[Unit], theirs: list[Unit]) -> tuple[int, int]:
    """Start and end of what is left of `ours` without the beginning and the end that both share.

    The texts must have equally many units; (0, 0) means that they are equal.
    """
    start, end = 0, len(ours)
    while start < end and ours[start].key == theirs[start].key:
        start += 1
    while start < end and ours[end - 1].key == theirs[end - 1].key:
        end -= 1
    return (start, end) if start < end else (0, 0)


def harmless_order(ours: list[Unit], theirs: list[Unit], words: ValueWords) -> bool:
    """Whether two texts of the same units, each as often, say the same in spite of their order. Linear."""
    start, end = changed_window(ours, theirs)
    if start == end:
        return True
    return (
        _phrase_moved(ours, theirs, start, end, words)
        or _phrase_moved(theirs, ours, start, end, words)
        or (_list_member_moved(ours, theirs, start, end, words))
        or _named_first(ours, theirs)
        or _adverb_moved(ours[start:end], theirs[start:end], words)
    )


def _named_first(ours: list[Unit], theirs: list[Unit]) -> bool:
    """Whether one is "the X is N" and the other "N is the X", of a name."""
    keys = [unit.key for unit in ours]
    if keys.count("is") != 1 or any(unit.ends or unit.comma for unit in ours[:-1]):
        return False
    at = keys.index("is")
    left, right = ours[:at], ours[at + 1 :]
    turned = [*keys[at + 1 :], "is", *keys[:at]] == [unit.key for unit in theirs]
    sides = ((left, right), (right, left))
    return turned and any(one and two and one[0].article and all(u.firm for u in two) for one, two in sides)


def _adverb_moved(ours: list[Unit], theirs: list[Unit], words: ValueWords) -> bool:
    """Whether an adverb of manner stands before its verb in the one, and right after it in the other."""
    if len(ours) != 2 or any(unit.joined or unit.comma or unit.ends for unit in (ours[0], theirs[0])):
        return False
    adverbs = [unit.key for unit in ours if unit.key.endswith("ly") and unit.key not in words.negations]
    verbs = [unit.key for unit in ours if unit.key.endswith(("ed", "en"))]
    return len(adverbs) == len(verbs) == 1 and len(adverbs[0]) > 4


def day_first(units: list[Unit]) -> list[Unit]:
    """The units with the day before its month, which "12 March" and "March 12" say alike. Linear."""
    found = list(units)
    for at in range(1, len(found)):
        month, day = found[at - 1], found[at]
        if (
            month.firm
            and month.key in _MONTHS
            and _DAY.fullmatch(day.key)
            and not month.ends
            and not month.comma
        ):
            if at > 1 and _DAY.fullmatch(found[at - 2].key):
                continue  # "2 March 12": one of them is no day
            found[at - 1 : at + 1] = (
                day._replace(joined=month.joined, article=month.article, comma=False, ends=False),
                month._replace(joined=False, article=False, comma=day.comma, ends=day.ends),
            )
    return found


def _starts_sentence(units: list[Unit], at: int) -> bool:
    return at == 0 or units[at - 1].ends


def _ends_sentence(units: list[Unit], end: int) -> bool:
    return end == len(units) or units[end - 1].ends


def _phrase_moved(front: list[Unit], back: list[Unit], start: int, end: int, words: ValueWords) -> bool:
    """Whether a phrase that stands first in the window of `front` stands last in that of `back`."""
    if any(unit.ends for units in (front, back) for unit in units[start : end - 1]):
        return False
    ours = [unit.key for unit in front[start:end]]
    theirs = [unit.key for unit in back[start:end]]
    longest = min(_LONGEST_PHRASE, len(ours) - 1)
    tried = 0
    for size in range(1, longest + 1):
        if ours[size] != theirs[0]:
            continue
        tried += 1
        if tried > _TRIES:
            return False
        if ours[size:] + ours[:size] == theirs:
            phrase, passed = front[start : start + size], front[start + size : end]
            first, last = _starts_sentence(front, start), _ends_sentence(back, end)
            return _may_move(phrase, passed, words, first=first, last=last)
    return False


def _may_move(phrase: list[Unit], passed: list[Unit], words: ValueWords, *, first: bool, last: bool) -> bool:
    """Whether `phrase` may move past the units behind it. `first`: it began its sentence in the one text;
    `last`: it ends it in the other."""
    if len(phrase) == 1:
        # "the daily job" and "copies daily reports" have adjectives
        return phrase[0].key in words.lone_adverbs and first and last and not phrase[0].article
    if phrase[0].key not in words.phrase_heads:
        return False
    if first and last:
        return True
    is_date = len(phrase) <= 4 and any(_is_date(unit, words) for unit in phrase[1:])
    return is_date and (first or last) and not _coordinated(passed)


def _is_date(unit: Unit, words: ValueWords) -> bool:
    """A word of the list, or a year; other numbers belong to what stands beside them."""
    year = len(unit.key) == 4 and unit.key.isdecimal() and unit.key[:2] in ("19", "20")
    return unit.key in words.date_keys or year


def _coordinated(units: list[Unit]) -> bool:
    """Whether a move past these units could take a phrase from one verb to another."""
    return any(unit.joined or unit.key == "or" for unit in units) or any(unit.comma for unit in units[:-1])


def _members(units: list[Unit]) -> list[tuple[str, ...]] | None:
    """The members of a list, sorted; None when it is no list, or one of actions."""
    members: list[list[str]] = [[]]
    comma = False
    for unit in units:
        if (unit.joined or comma or unit.key == "or") and members[-1]:
            members.append([])
        if unit.key != "or":
            if not unit.firm and unit.key.endswith(("ing", "ed")):
                return None
            members[-1].append(unit.key)
        comma = unit.comma
    if len(members) < 2 or any(not 0 < len(member) <= _LONGEST_MEMBER for member in members):
        return None
    return sorted(map(tuple, members))


def _list_member_moved(ours: list[Unit], theirs: list[Unit], start: int, end: int, words: ValueWords) -> bool:
    if end - start > _LONGEST_LIST or any(unit.key in words.ordered for unit in ours):
        return False
    members = _members(ours[start:end])
    return (
        members is not None
        and members == _members(theirs[start:end])
        and not any(key in words.negations for member in members for key in member)
        and _is_list_of_things(ours, start, end, words)
        and _is_list_of_things(theirs, start, end, words)
    )


def _is_list_of_things(units: list[Unit], start: int, end: int, words: ValueWords) -> bool:
    """Whether the window is (part of) one list of things, seen from what stands before and after it.

    "A reads from B and C writes to D" has "B and C" in it, and is no list: a verb follows. "After login, A
    and B start" is none from "login" on.
    """

    def parted(at: int) -> bool:
        return 0 < at < len(units) and (
            units[at].joined or units[at - 1].comma or "or" in (units[at].key, units[at - 1].key)
        )

    first, last = start, end
    while parted(first):
        first -= 1
    while parted(last):
        last += 1
    if not any(unit.joined or unit.key == "or" for unit in units[first + 1 : last]):
        return False
    if any(unit.ends for unit in units[first : last - 1]):
        return False
    opens = _starts_sentence(units, first)
    before = units[first - 1].key if first else ""
    after_head = before in words.phrase_heads and before != "to"
    if not (all(unit.firm for unit in units[first:last]) or units[first].article or after_head):
        return False
    if after_head and _starts_sentence(units, first - 1) and any(u.comma for u in units[first : last - 1]):
        return False
    numeric = all(unit.key.isdecimal() or unit.key == "or" for unit in units[first:last])
    return (
        opens
        or numeric  # no verb can follow with a number as its subject
        or last == len(units)
        or units[last - 1].ends
        or units[last - 1].comma
        or units[last].key in words.phrase_heads
    )
