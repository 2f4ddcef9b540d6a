"""Dates: one event, and another year, month or day."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from vouchgate.ingest.contradictions.clock import calendar
from vouchgate.ingest.contradictions.lists import LISTS
from vouchgate.ingest.contradictions.match import Contradiction, Pair
from vouchgate.ingest.contradictions.sentence import Sentence, read_once

_FIRST_YEAR, _LAST_YEAR = 1000, 2199
_BEFORE_YEAR = frozenset(
    {
        "in",
        "since",
        "of",
        "until",
        "before",
        "after",
        "by",
        "from",
        "during",
        "(",
        "–",
        "-",
        "to",
        "year",
        "early",
        "late",
        "mid",
    }
)
_DAY = 32  # days are counted so: year * 13 * 32 + month * 32 + day, which keeps the order
_YEAR = 13 * _DAY
_REACH = 6  # words between an event and its date
_ENOUGH = 0.5
_BIRTH_NAME = 10  # words of "(born" and the name that follows
_DASHES = frozenset({"-", "–", "—", "−", "--", "to"})
_OPENING = frozenset({"(", "lrb", "-lrb"})  # the last two as texts that were parsed have it
_LIFE = (LISTS.key("born"), LISTS.key("died"))


@dataclass(frozen=True, slots=True)
class Date:
    """A date, or a side of one, as the days it allows; words from `first` to `last`."""

    low: int
    high: int
    mark: str  # "<" before, ">" after, "" on it
    first: int
    last: int

    def side(self) -> tuple[int, int]:
        """The days that it allows, with its mark."""
        if self.mark == "<":
            return 0, self.low - 1
        return (self.high + 1, _YEAR * 9999) if self.mark == ">" else (self.low, self.high)


def _number(sentence: Sentence, index: int, low: int, high: int) -> int | None:
    if not 0 <= index < len(sentence.words):
        return None
    text = sentence.lows[index]
    if text[-2:] in ("st", "nd", "rd", "th"):
        text = text[:-2]
    if not (text.isascii() and text.isdigit()) or len(text) > 4:
        return None
    return int(text) if low <= int(text) <= high else None


def _days(year: int, month: int | None, day: int | None) -> tuple[int, int]:
    low = year * _YEAR + (month or 0) * _DAY + (day or 0)
    if month is None:
        return low, low + _YEAR - 1
    return (low, low + _DAY - 1) if day is None else (low, low)


def _iso(text: str) -> tuple[int, int] | None:
    parts = text.split("-")
    if (
        len(parts) not in (2, 3)
        or not all(part.isascii() and part.isdigit() for part in parts)
        or len(text) > 10
    ):
        return None
    year, month, day = int(parts[0]), int(parts[1]), int(parts[2]) if len(parts) == 3 else None
    good = len(parts[0]) == 4 and 1 <= month <= 12 and (day is None or 1 <= day <= 31) and len(parts[1]) == 2
    return _days(year, month, day) if good and _FIRST_YEAR <= year <= _LAST_YEAR else None


def _at(sentence: Sentence, index: int) -> tuple[int, int, int] | None:
    """The date that begins at a place, and its last word."""
    iso = _iso(sentence.lows[index])
    if iso is not None:
        return *iso, index
    month = LISTS.months.get(sentence.lows[index]) if sentence.words[index].text[:1].isupper() else None
    if month is not None:
        day = _number(sentence, index + 1, 1, 31)
        place = index + (2 if day is not None else 1)
        if place < len(sentence.words) and sentence.lows[place] in (",", "of"):
            place += 1
        year = _number(sentence, place, _FIRST_YEAR, _LAST_YEAR)
        return (*_days(year, month, day), place) if year is not None else None
    day = _number(sentence, index, 1, 31)
    if day is not None and index + 2 < len(sentence.words):
        month = LISTS.months.get(sentence.lows[index + 1])
        year = _number(sentence, index + 2, _FIRST_YEAR, _LAST_YEAR) if month is not None else None
        if year is not None:
            return *_days(year, month, day), index + 2
    year = _number(sentence, index, _FIRST_YEAR, _LAST_YEAR)
    if year is not None and year % 10 == 0 and sentence.lows[index + 1 : index + 2] == ("s",):
        return _days(year, None, None)[0], _days(year + 9, None, None)[1], index + 1  # "the 1920s"
    if year is None or len(sentence.lows[index]) != 4 or not sentence.words[index].text.isdigit():
        return None
    before = sentence.lows[index - 1] if index else "in"
    after = sentence.lows[index + 1] if index + 1 < len(sentence.words) else "."
    alone = before in _BEFORE_YEAR or (
        index > 1 and before in ("and", ",") and sentence.words[index - 2].number
    )
    return (*_days(year, None, None), index) if alone or after in (")", "film") else None


@read_once
def dates(sentence: Sentence) -> tuple[Date, ...]:
    """The dates of a sentence that have a year."""
    found: list[Date] = []
    index = 0
    while index < len(sentence.words):
        date = _at(sentence, index) if sentence.words[index].key else None
        if date is None:
            index += 1
            continue
        low, high, last = date
        before = sentence.lows[index - 1] if index else ""
        mark = LISTS.date_bounds.get(before, "")
        found.append(Date(low, high, mark, index - 1 if mark else index, last))
        index = last + 1
    return tuple(found)


def _event(sentence: Sentence, date: Date) -> str | None:
    """The key of what is said to have happened on a date: the nearest word before or after it that can happen once."""
    if date in (lived := _lived(sentence)):
        return _LIFE[lived.index(date)]
    for place in range(date.first - 1, max(-1, date.first - _REACH - 1), -1):
        if sentence.words[place].key in LISTS.once:
            return sentence.words[place].key
    for word in sentence.words[date.last + 1 : date.last + 1 + _REACH]:
        if word.key in LISTS.once:
            return word.key
    return None


@read_once
def _lived(sentence: Sentence) -> tuple[Date, ...]:
    """The days of birth and of death that stand in brackets behind a name: "Ada Lind (4 May 1815 – 2 June 1852)"."""
    for one, two in pairwise(dates(sentence)):
        between = sentence.lows[one.last + 1 : two.first]
        before = [low for low in sentence.lows[max(0, one.first - 2) : one.first] if low != "-"]
        bracketed = bool(_OPENING.intersection(before[-1:])) or _named_at_birth(sentence, one.first)
        exact = one.low == one.high or two.low == two.high
        if bracketed and exact and all(low in _DASHES for low in between) and not one.mark:
            return one, two
    return ()


def _named_at_birth(sentence: Sentence, index: int) -> bool:
    """Whether a bracket begins with another name before a place: "Ada Lind (born Ada Holm; 4 May 1815 – …"."""
    before = sentence.lows[max(0, index - _BIRTH_NAME) : index]
    return before[-1:] == (";",) and "born" in before and not _OPENING.isdisjoint(before)


def month_rule(pair: Pair) -> Iterator[Contradiction]:
    """The claim's one month of an event, when the source has its date and the passage never that month."""
    ours = [found for found in calendar(pair.claim) if found[0] == "month"]
    if len(ours) != 1 or dates(pair.claim) or pair.claim.denials or pair.source.denials:
        return
    _, month, index = ours[0]
    event = _event(pair.claim, Date(0, 0, "", index, index))
    told = [(date, _month(date)) for sentence in pair.passage.sentences for date in dates(sentence)]
    if event is None or any(number in (0, month) for _, number in told):
        return
    for date in dates(pair.source):
        known = _event(pair.source, date) == event and not date.mark and not _elsewhere(pair, date)
        if known and pair.about((index,), _ENOUGH):
            yield pair.conflict("date", (index, index), (date.first, date.last))
            return


def _month(date: Date) -> int:
    """The month of a date, 0 when it has none."""
    return date.low % _YEAR // _DAY


def date_rule(pair: Pair) -> Iterator[Contradiction]:
    """The claim's one date of an event, when the source dates that event and never so."""
    ours = dates(pair.claim)
    if len(ours) != 1 or pair.claim.denials or pair.source.denials or pair.removal_differs():
        return
    mine = ours[0]
    event = _event(pair.claim, mine)
    if event is None or not pair.about(range(mine.first, mine.last + 1), _ENOUGH):
        return
    if any(_confirms(date, mine) for sentence in pair.passage.sentences for date in dates(sentence)):
        return
    for other in dates(pair.source):
        here = other in _lived(pair.source) or not _elsewhere(pair, other)
        if here and _event(pair.source, other) == event and not _overlap(other, mine):
            yield pair.conflict("date", (mine.first, mine.last), (other.first, other.last))
            return


def _confirms(date: Date, mine: Date) -> bool:
    """Whether a date may be the claim's. A year is no word for a day of it: the day of the event stands elsewhere."""
    coarse = date.high - date.low >= _YEAR - 1 and not date.mark
    return _overlap(date, mine) and not (coarse and mine.low == mine.high and not mine.mark)


def _overlap(one: Date, two: Date) -> bool:
    (low, high), (first, last) = one.side(), two.side()
    return low <= last and first <= high


def _elsewhere(pair: Pair, date: Date) -> bool:
    """Whether a place stands before the date that the claim does not name: released in Japan is not released."""
    for place in range(date.first - 1, max(-1, date.first - 4), -1):
        word = pair.source.words[place]
        if word.key in LISTS.once:
            return False
        if word.name and word.content and word.key not in pair.claim.keys:
            return True
    return False
