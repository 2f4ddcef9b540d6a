"""How long, and at what time of day, however it is written: half an hour is 30 minutes and no hour, 2 pm is 14:00."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from vouchgate.ingest.contradictions.lists import LISTS
from vouchgate.ingest.language.terms import term_key
from vouchgate.ingest.support.tokens import Token, measure_of

# Before "an hour", so that it counts: "100 requests an hour" says how often.
_LASTING = frozenset(
    {
        "after",
        "for",
        "within",
        "in",
        "of",
        "lasts",
        "takes",
        "every",
        "about",
        "than",
        "is",
        "to",
        "least",
        "most",
    }
)
_ARTICLES = frozenset({"a", "an"})
_HOURS, _MINUTES = 24, 60
_NOON = 12 * _MINUTES
_NAMED = {"noon": _NOON, "midday": _NOON, "midnight": 0}
_HALVES = {"am": (0,), "a.m": (0,), "pm": (_NOON,), "p.m": (_NOON,), "o'clock": (0, _NOON)}
_PARTS = {"morning": (0,), "afternoon": (_NOON,), "evening": (_NOON,)}
_QUARTERS = frozenset({"quarter", "quarters"})
_LAST_PART = re.compile(r"(?:[_.-]|(?<=[a-z])(?=[A-Z]))([A-Za-z]+)\Z")  # of the name of a setting
_OF_CODE = ("time.", "timeunit.", "chronounit.")  # before a unit, behind how many of it
_SHORTEST = 2  # letters; "ms", "hr" and the like are short for another
_MEASURES = frozenset({"time", "calendar"})  # of the units; a month has no fixed number of days


def durations(words: Sequence[Token]) -> dict[int, tuple[str, float]]:
    """By where each word of a span of time begins, what is measured and how long it is. Linear."""
    found: dict[int, tuple[str, float]] = {}

    def note(amount: float | None, unit: str, of: Sequence[Token]) -> None:
        measure, size = LISTS.units.get(unit) or LISTS.units.get(unit.removesuffix("s")) or ("", 0.0)
        if amount is not None and measure in _MEASURES:
            found.update((word.start, (measure, round(amount * size, 9))) for word in of)

    for one, two in pairwise(words):
        # "timeout_ms: 8000" and "timeout_seconds = 8"; "5 * time.Minute"
        name, number = (one, two) if two.number else (two, one)
        unit = _LAST_PART.search(name.shown) if name.identifier and number.number else None
        if unit is not None and (number is two or name.low.startswith(_OF_CODE)):
            note(_value(number), unit[1].lower(), (name, number))
    for at, token in enumerate(words):
        if token.number and (measure := measure_of(token.shown)):
            note(_value(token), measure.unit, (token,))
        elif at:
            first, amount = _amount(words, at)
            note(amount, token.low, words[first : at + 1])
    return found


def names_a_unit(name: str) -> bool:
    """Whether the name of a setting ends with what its value counts: `timeout_ms`."""
    return _LAST_PART.search(name) is not None


def written_as(span: tuple[str, float]) -> Iterator[str]:
    """The keys of the words for a span of time in whole units: 8000 ms are 8 seconds."""
    measure, length = span
    for word, (kind, size) in LISTS.units.items():
        amount = length / size
        if kind == measure and len(word) > _SHORTEST and amount >= 1 and amount == int(amount):
            yield from (str(int(amount)), term_key(word))


def times_of_day(text: str, words: Sequence[Token]) -> dict[int, frozenset[int]]:
    """By where each word of a time of day begins, the minutes from midnight that it may be: "two o'clock" is one of
    two. `words` are those of `text`. Linear."""
    found: dict[int, frozenset[int]] = {}
    for at, token in enumerate(words):
        if token.low in _NAMED:
            found[token.start] = frozenset({_NAMED[token.low]})
        hour = token.keys[0].removeprefix("#") if token.number else ""
        if token.start in found or not (hour.isdecimal() and int(hour) <= _HOURS):
            continue
        behind = words[at + 1] if at + 1 < len(words) else token
        minute = behind.low if behind.number and text[token.end : behind.start] == ":" else ""
        last = at + bool(minute)
        half, last = _half(token, words, last)
        if (minute or half) and (not minute or (minute.isdecimal() and int(minute) < _MINUTES)):
            minutes = int(hour) * _MINUTES + int(minute or 0)
            span = frozenset({minutes} if not half else {minutes % _NOON + add for add in half})
            found.update((word.start, span) for word in words[at : last + 1])
    return found


def _half(token: Token, words: Sequence[Token], last: int) -> tuple[tuple[int, ...], int]:
    """The minutes from midnight at which the half of the day begins that is said behind a time, whose last word is
    `last`; and the last word of that."""
    if token.low[-2:] in _HALVES:
        return _HALVES[token.low[-2:]], last
    lows = [word.low for word in words[last + 1 : last + 4]]
    if lows and lows[0] in _HALVES:
        return _HALVES[lows[0]], last + 1
    if len(lows) > 2 and lows[:2] == ["in", "the"] and lows[2] in _PARTS:
        return _PARTS[lows[2]], last + 3
    return (), last


def _amount(words: Sequence[Token], at: int) -> tuple[int, float | None]:
    """How many of the unit at a place, and where that begins."""
    before = words[at - 1]
    if at > 3 and before.low == "half" and [word.low for word in words[at - 3 : at - 1]] == ["and", "a"]:
        whole = _value(words[at - 4])  # "one" before "and" counts nothing by itself
        return at - 4, None if whole is None else whole + 0.5
    if before.number:
        return at - 1, _value(before)
    if before.low not in _ARTICLES:
        return at, None
    if at > 1 and words[at - 2].number:
        return at - 2, _value(words[at - 2]) if words[at - 2].low == "half" else None
    if at > 2 and words[at - 2].low == "of" and words[at - 3].low in _QUARTERS:
        several = at > 3 and words[at - 4].number
        count = _value(words[at - 4]) if several else 1.0
        return at - 3 - several, count and count / 4
    return at - 1, 1.0 if at > 1 and words[at - 2].low in _LASTING else None


def _value(token: Token) -> float | None:
    try:
        return float(token.keys[0].removeprefix("#").replace(",", ""))
    except ValueError:
        return None


def find_durations(
    words: Sequence[Token],
    wanted: Sequence[Token],
    found: list[tuple[tuple[str, float], ...]],
    place: Sequence[Token],
) -> int:
    """Finds spans of time that the place writes otherwise under its words, "half an hour" under "30 minutes"; how many
    the place has not, but others."""
    ours, theirs = durations(words), durations(place)
    written: dict[tuple[str, float], list[str]] = {}
    for token in place:
        if token.content and token.start in theirs:
            written.setdefault(theirs[token.start], []).append(token.keys[0])
    for index, token in enumerate(wanted):
        if token.start in ours and (keys := written.get(ours[token.start])):
            found[index] = ((keys[0] if token.number else keys[-1], 1.0),)
    bare = {token.keys[0] for token in place if token.number and token.start not in theirs}
    elided = {ours[token.start] for token in words if token.start in ours and token.keys[0] in bare}
    # "14 days" of "a for 400 days, b for 14" is there.
    return len({span for span in ours.values() if written and span not in written} - elided)


def find_times_of_day(  # noqa: PLR0917  (a statement and its place, with their texts)
    text: str,
    words: Sequence[Token],
    wanted: Sequence[Token],
    found: list[tuple[tuple[str, float], ...]],
    source: str,
    place: Sequence[Token],
) -> None:
    """Finds times of day that the place writes otherwise under its words, "2 pm" under "14:00"."""
    ours = times_of_day(text, words)
    theirs = times_of_day(source, place) if ours else {}
    written = {
        minute: token.keys[0]
        for token in reversed(place)
        for minute in theirs.get(token.start, ())
        if token.content
    }
    for index, token in enumerate(wanted):
        keys = [written[minute] for minute in ours.get(token.start, ()) if minute in written]
        if keys:
            found[index] = ((keys[0], 1.0),)
