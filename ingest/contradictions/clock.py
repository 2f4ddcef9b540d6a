"""Times of day, weekdays and months: by 14:00 and by 18:00, every Tuesday and every Thursday."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from vouchgate.ingest.contradictions.lists import LISTS
from vouchgate.ingest.contradictions.match import Contradiction, Pair
from vouchgate.ingest.contradictions.sentence import Sentence, read_once

_CLOCK = re.compile(r"(\d{1,2})(?:[:.](\d\d))?(am|pm)?$")
_HALVES = {"am": 0, "a.m": 0, "pm": 12, "p.m": 12, "o'clock": 0}
_NAMED = {"noon": 12 * 60, "midday": 12 * 60, "midnight": 24 * 60}
_AT = frozenset({"at", "by", "until", "till", "from", "to", "before", "after", "since", "between", "and"})
_DAY = 24 * 60
_AROUND = 6  # words to either side of a time that say what it is the time of
_ENOUGH = 0.6


@dataclass(frozen=True, slots=True)
class Time:
    """A time of day in minutes, what stands before it, and its words."""

    minutes: int
    joint: str
    first: int
    last: int


def _at(sentence: Sentence, index: int) -> tuple[int, int] | None:
    """The minutes of a time that begins at a place, and its last word."""
    low = sentence.lows[index]
    if low in _NAMED:
        return _NAMED[low], index
    found = _CLOCK.match(low)
    if found is None or not low.isascii():
        return None
    after = sentence.lows[index + 1] if index + 1 < len(sentence.words) else ""
    half = found[3] or (after if after in _HALVES else "")
    if not half and (found[2] is None or ":" not in low):
        return None
    hour, minute = int(found[1]), int(found[2] or 0)
    if half in ("am", "pm", "a.m", "p.m"):
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + _HALVES[half]
    if hour > 24 or minute > 59:
        return None
    return hour * 60 + minute, index + (not found[3] and half != "")


@read_once
def times(sentence: Sentence) -> tuple[Time, ...]:
    """The times of day in a sentence."""
    found: list[Time] = []
    index = 0
    while index < len(sentence.words):
        at = _at(sentence, index)
        if at is None:
            index += 1
            continue
        before = sentence.lows[index - 1] if index else ""
        found.append(Time(at[0], before if before in _AT else "", index, at[1]))
        index = at[1] + 1
    return tuple(found)


def time_rule(pair: Pair) -> Iterator[Contradiction]:
    """The claim's one time of day, when the source tells another for the same and never this one. A claim that allows
    less than the source, "by 13:00" of "by 14:00", agrees."""
    ours = times(pair.claim)
    if (
        len(ours) != 1
        or pair.claim.denials
        or pair.source.denials
        or pair.is_before_change(pair.claim) is not pair.is_before_change(pair.source)
    ):
        return
    mine = ours[0]
    theirs = [other for other in times(pair.source) if other.joint == mine.joint]
    if len(theirs) != 1 or any(
        other.minutes % _DAY == mine.minutes % _DAY for s in pair.passage.sentences for other in times(s)
    ):
        return
    other = theirs[0]
    if (mine.joint == "by" and mine.minutes < other.minutes) or (
        mine.joint == "after" and mine.minutes > other.minutes
    ):
        return
    if _same_place(pair, mine.first, other.first) and pair.about(range(mine.first, mine.last + 1), _ENOUGH):
        yield pair.conflict("time", (mine.first, mine.last), (other.first, other.last))


def _same_place(pair: Pair, ours: int, theirs: int) -> bool:
    """Whether the word before the claim's time stands around the source's."""
    before = pair.claim.content_before(ours)
    return before is not None and pair.claim.words[before].key in pair.source.near(theirs, _AROUND, _AROUND)


def _named(sentence: Sentence, index: int) -> tuple[str, int] | None:
    """What a word is among the days of the week or the months, with its number. "May" and "march" may be verbs."""
    low = sentence.lows[index]
    singular = low.removesuffix("s")
    if LISTS.groups.get(singular) == "weekday":
        return "weekday", LISTS.weekdays[singular]
    if not sentence.words[index].text[:1].isupper() or low not in LISTS.months or not index:
        return None
    if low == "may" and sentence.lows[index - 1] not in ("in", "of", "since", "until", "by", "every"):
        return None
    return "month", LISTS.months[low]


@read_once
def calendar(sentence: Sentence) -> tuple[tuple[str, int, int], ...]:
    """The weekdays and months of a sentence, but those of a date with a year: kind, number, place."""
    found: list[tuple[str, int, int]] = []
    for index in range(len(sentence.words)):
        named = _named(sentence, index)
        if named is None:
            continue
        around = sentence.words[max(0, index - 1) : index + 3]
        if named[0] == "month" and any(word.number and word.low != sentence.lows[index] for word in around):
            continue
        found.append((*named, index))
    return tuple(found)


def calendar_rule(pair: Pair) -> Iterator[Contradiction]:
    """The claim's one weekday or month, when the source has one other for the same, and the passage never this one."""
    ours, theirs = calendar(pair.claim), calendar(pair.source)
    if len(ours) != 1 or len(theirs) != 1 or pair.claim.denials or pair.source.denials:
        return
    (kind, number, index), (other_kind, other, place) = ours[0], theirs[0]
    if (
        kind != other_kind
        or number == other
        or pair.is_before_change(pair.claim) is not pair.is_before_change(pair.source)
    ):
        return
    if any(found[:2] == (kind, number) for s in pair.passage.sentences for found in calendar(s)):
        return
    if _same_place(pair, index, place) and pair.about((index,), _ENOUGH):
        yield pair.conflict("time", (index, index), (place, place))
