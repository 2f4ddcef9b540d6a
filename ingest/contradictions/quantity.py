"""Numbers: the same thing counted or measured, and another number, or one outside the bound."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from vouchgate.ingest.contradictions.clock import times
from vouchgate.ingest.contradictions.dates import dates
from vouchgate.ingest.contradictions.lists import LISTS
from vouchgate.ingest.contradictions.match import Contradiction, Pair
from vouchgate.ingest.contradictions.sentence import Sentence, read_once
from vouchgate.ingest.contradictions.version import versions

_ROUGH = 0.1  # what "about" allows on either side
_HEAD_REACH = 4  # words after a number among which the thing it counts is named
_PARTS = frozenset(
    {";", "|"}
)  # between the cells of a row, and parts of a sentence that are about other things
_AROUND = 7  # words to either side of a number that say what it is the number of
_AGES = frozenset(map(LISTS.key, ("century", "millennium")))  # many things happen in each
_CURRENCY = ("$", "€", "£")
_ENOUGH = 0.5  # of the claim's other words; the thing counted and what is said of it are asked for besides
_ENOUGH_LABELLED = 0.6
_ENOUGH_THRESHOLD = 0.9
_SUBJECT_REACH = 2  # words before a bound that is part of the subject: "Parcels over 30 kg"


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number as the values it allows, what it measures, and what it counts."""

    low: float
    high: float
    mark: str  # of ingest/data/contradiction.toml, "" for none
    measure: str  # time, size …; "" for a plain count
    heads: tuple[str, ...]  # keys of the thing counted
    label: str  # "port" in "port 8080"
    first: int  # words, with the bound and the unit
    last: int
    at: int  # the number itself

    def disjoint(self, other: Quantity) -> bool:
        """Whether no value fits both, or both give a range, and not the same one. A strict bound excludes its number
        only against a claim's own bound."""
        if self.mark == other.mark == "" and self.low < self.high and other.low < other.high:
            return (self.low, self.high) != (other.low, other.high)
        if self.low > other.high or other.low > self.high:
            return True
        touching = self.low == other.high or other.low == self.high
        return (
            touching
            and (self.mark in "<>" and self.mark != "")
            and other.mark in ("", "=", "<", ">", "max", "min")
        )


def _value(sentence: Sentence, index: int) -> tuple[float, int] | None:
    """The number at a place and how many words it takes: "1.5 million" is two."""
    word = sentence.words[index]
    if not word.number:
        return None
    known = LISTS.numbers.get(word.low)
    if known is None:
        digits = word.low.replace(",", "").replace("_", "")
        if not digits.replace(".", "", 1).isdigit() or len(digits) > 15 or not digits.isascii():
            return None
        known = float(digits)
    elif word.low == "one" and not _counts_one(sentence, index):
        return None
    taken = 1
    while index + taken < len(sentence.words) and taken < 4:
        scale = LISTS.scales.get(sentence.lows[index + taken])
        if scale is None:
            break
        known, taken = known * scale, taken + 1
    return known, taken


def _counts_one(sentence: Sentence, index: int) -> bool:
    """Whether "one" is a number: a thing stands right after it, or a label before it."""
    if index and sentence.words[index - 1].key in LISTS.labels:
        return True
    return index + 1 < len(sentence.words) and sentence.words[index + 1].content


def _bound(sentence: Sentence, index: int, after: int) -> tuple[str, int, int]:
    """The bound around a number, with the first and last word it takes."""
    money = index > 0 and sentence.lows[index - 1] in _CURRENCY
    index -= money
    for back in (4, 3, 2, 1):
        begin = index - back
        if begin < 0:
            continue
        phrase = LISTS.bounds_before.at(sentence.lows, begin)
        if phrase and begin + phrase[0] == index:
            return phrase[1], begin, after - 1
        if sentence.lows[begin] in (">", ">=", "<", "<=", "~") and back == 1:
            return sentence.lows[begin], begin, after - 1
    if after < len(sentence.words):
        phrase = LISTS.bounds_after.at(sentence.lows, after)
        if phrase:
            return phrase[1], index, after + phrase[0] - 1
    return "", index, after - 1


def _heads(sentence: Sentence, after: int) -> tuple[str, ...]:
    """The thing counted: content words after the number up to the first mark or small word."""
    found: list[str] = []
    for word in sentence.words[after : after + _HEAD_REACH]:
        if not word.key or word.number or (not word.content and word.low not in ("more", "other")):
            break
        if word.content:
            found.append(word.key)
    return tuple(found)


@read_once
def quantities(sentence: Sentence) -> tuple[Quantity, ...]:
    """All numbers of a sentence but years, dates and versions."""
    dated = {place for date in dates(sentence) for place in range(date.first, date.last + 1)}
    dated |= {version.at for version in versions(sentence)}
    dated |= {place for time in times(sentence) for place in range(time.first, time.last + 1)}
    dated |= {index + 1 for index, low in enumerate(sentence.lows) if low in LISTS.references}
    found: list[Quantity] = []
    index = 0
    while index < len(sentence.words):
        parsed = None if index in dated else _value(sentence, index)
        if parsed is None:
            each = _each(sentence, index)
            if each is not None:
                found.append(each)
            index += 1
            continue
        value, taken = parsed
        number, after = index, index + taken
        high = value
        before = sentence.lows[index - 1] if index else ""
        joints = ("-", "–", "and") if before == "between" else () if before == "from" else ("-", "–", "to")
        if after + 1 < len(sentence.words) and sentence.lows[after] in joints:
            then = after + 1 + (before in _CURRENCY and sentence.lows[after + 1] == before)  # "$80 to $100"
            upper = _value(sentence, then) if then < len(sentence.words) else None
            if upper is not None and upper[0] > value:
                high, after = upper[0], then + upper[1]
        measure = ""
        if after < len(sentence.words):
            unit = LISTS.units.get(sentence.lows[after]) or LISTS.units.get(sentence.lows[after].rstrip("s"))
            if unit is not None:
                measure, value, high, after = unit[0], value * unit[1], high * unit[1], after + 1
        mark, first, last = _bound(sentence, index, after)
        if before in _CURRENCY:
            measure = before
        low, top = _interval(value, high, mark)
        label = sentence.words[index - 1].key if index and not measure and mark == "" else ""
        found.append(
            Quantity(
                low,
                top,
                mark,
                measure,
                _heads(sentence, after),
                label if label in LISTS.labels else "",
                first,
                last,
                number,
            )
        )
        index = max(after, index + 1)
    return tuple(found)


def _each(sentence: Sentence, index: int) -> Quantity | None:
    """One second for "every second": a unit of time that stands right after a word that says each."""
    if sentence.lows[index] not in ("every", "each", "per") or index + 1 >= len(sentence.words):
        return None
    measure, size = LISTS.units.get(sentence.lows[index + 1], ("", 0.0))
    if measure != "time":
        return None
    return Quantity(size, size, "", measure, (), "", index, index + 1, index)


def _interval(low: float, high: float, mark: str) -> tuple[float, float]:
    if mark in (">", ">="):
        return low, math.inf
    if mark in ("<", "<="):
        return -math.inf, high
    if mark == "~":
        return low * (1 - _ROUGH), high * (1 + _ROUGH)
    return low, high


def _same_thing(pair: Pair, ours: Quantity, theirs: Quantity) -> bool:
    """Whether both count or measure the same: the same unit or thing, and the same said of it."""
    if ours.measure != theirs.measure or not (ours.measure or _same_heads(pair, ours, theirs)):
        return False
    around = pair.source.near(theirs.at, _AROUND, _AROUND)
    words = pair.claim.words
    if ours.measure and _only_one(pair, ours.measure):
        apart = max((at for at in range(ours.first) if pair.claim.lows[at] in _PARTS), default=-1)
        left = [words[place].key for place in pair.claim.content if apart < place < ours.first][-2:]
        return bool(pair.source.keys.intersection(left))
    said = {words[place].key for place in _said_before(pair.claim, ours.first)}
    if said:
        return said <= pair.source.keys and bool(said & around)
    right = pair.claim.content_after(ours.last + len(ours.heads)) if ours.heads or ours.measure else None
    return right is not None and words[right].key in around


def _same_heads(pair: Pair, ours: Quantity, theirs: Quantity) -> bool:
    """Whether two plain counts are of the same thing, or the claim's of nothing named."""
    if not ours.heads:
        return True
    beside = (*theirs.heads, *pair.source.near(theirs.at, 2, 4))
    return bool(set(ours.heads) & set(theirs.heads)) and ours.heads[0] in beside


def _only_one(pair: Pair, measure: str) -> bool:
    """Whether the passage has one time, or one size, and so no other that the claim could be about."""
    return sum(other.measure == measure for s in pair.passage.sentences for other in quantities(s)) == 1


def _said_before(sentence: Sentence, index: int) -> tuple[int, ...]:
    """The nearest content word before a number that is no name, within its clause, and what it belongs to: of
    "the timeout of the proxy is 30" both."""
    found: list[int] = []
    for place in range(index - 1, max(-1, index - 8), -1):
        word = sentence.words[place]
        if not word.key and word.low in ",;:":
            break
        if not word.content or word.number or word.name:
            continue
        found.append(place)
        if not {"of", "for"} & set(sentence.lows[max(0, place - 2) : place]):
            break
    return tuple(found)


def _opposite_bounds(ours: Quantity, theirs: Quantity) -> bool:
    """Whether one says "at most 5" and the other "at least 5"."""
    up, down = (">=", "min", ">"), ("<=", "max", "<")
    same = ours.at >= 0 and {ours.low, ours.high} & {theirs.low, theirs.high} - {math.inf, -math.inf}
    return bool(same) and (
        (ours.mark in up and theirs.mark in down) or (ours.mark in down and theirs.mark in up)
    )


def number_rule(pair: Pair) -> Iterator[Contradiction]:
    """Numbers with their units and bounds, and numbered things ("port 8080")."""
    ours = quantities(pair.claim)
    if not ours or pair.claim.denials or pair.removal_differs() or not _same_dates(pair):
        return
    if pair.is_before_change(pair.claim) and not pair.is_before_change(pair.source):
        return
    theirs = quantities(pair.source)
    for mine in ours[:8]:
        if mine.mark and _conditional(pair.claim, mine.at):
            continue
        if mine.label:
            yield from _labelled(pair, mine, theirs)
            continue
        deciding = range(mine.first, mine.last + 1)
        alike = _nearest(pair, [other for other in theirs if _same_thing(pair, mine, other)])
        early = mine.measure and mine.mark and 0 < mine.first <= _SUBJECT_REACH
        if not alike or not pair.about(deciding, _ENOUGH_THRESHOLD if early else _ENOUGH):
            continue
        apart = [other for other in alike if _other_threshold(pair, mine, other)]
        differing = apart or [o for o in alike if mine.disjoint(o) or _opposite_bounds(mine, o)]
        shared = _shared(pair, alike[0], pair.source)
        if len(differing) != len(alike) or (not apart and _confirmed(pair, mine, shared)):
            continue
        if any(_is_another(ours, mine, other) for other in differing):
            continue
        rule = "bound" if mine.mark or differing[0].mark else "number"
        yield pair.conflict(rule, (mine.first, mine.last), (differing[0].first, differing[0].last))


def _conditional(sentence: Sentence, at: int) -> bool:
    """Whether a number stands in a condition: "even if it is below 100 °C" says nothing of how warm it is."""
    return any(sentence.lows[index] in ("if", "unless", "whether") for index in sentence.clause(at))


def _is_another(ours: tuple[Quantity, ...], mine: Quantity, other: Quantity) -> bool:
    """Whether the source's number is one that the claim has, too, of another thing."""
    return any(
        third is not mine
        and third.measure == other.measure
        and (third.low, third.high) == (other.low, other.high)
        for third in ours
    )


def _other_threshold(pair: Pair, mine: Quantity, other: Quantity) -> bool:
    """Whether both say the same of what lies beyond a threshold, and of another one: "parcels over 50 kg go by
    freight" against "parcels over 30 kg". It must be part of the subject, and the claim's nowhere in the passage."""
    same_way = mine.mark == other.mark and mine.mark in ("<", ">", "<=", ">=", "max", "min")
    early = mine.first <= _SUBJECT_REACH and other.first - pair.source.prefix <= _SUBJECT_REACH
    if not (same_way and early and mine.measure) or (mine.low, mine.high) == (other.low, other.high):
        return False
    known = {value for s in pair.passage.sentences for q in quantities(s) for value in (q.low, q.high)}
    if {mine.low, mine.high} - {math.inf, -math.inf} <= known:
        return False
    return pair.about(range(mine.first, mine.last + 1), _ENOUGH_THRESHOLD)


def _same_dates(pair: Pair) -> bool:
    """A count grows: one of another day is another count."""
    ours = {(date.low, date.high) for date in dates(pair.claim)}
    theirs = {(date.low, date.high) for date in dates(pair.source)}
    return not ours or not theirs or bool(ours & theirs)


def _shared(pair: Pair, quantity: Quantity, sentence: Sentence) -> int:
    """How many of the claim's content words stand around a number."""
    return len(sentence.near(quantity.at, _AROUND, _AROUND) & pair.claim.keys)


def _nearest(pair: Pair, alike: list[Quantity]) -> list[Quantity]:
    """Of several numbers those that the claim's words stand around most."""
    most = max((_shared(pair, other, pair.source) for other in alike), default=0)
    return [other for other in alike if _shared(pair, other, pair.source) == most]


def _confirmed(pair: Pair, mine: Quantity, shared: int) -> bool:
    """Whether the passage has the claim's very number of that thing, or one that its bound allows where as many of the
    claim's words stand around it."""
    for sentence in pair.passage.sentences:
        for other in quantities(sentence):
            if other.measure != mine.measure or (
                mine.heads and other.heads and not set(mine.heads) & set(other.heads)
            ):
                continue
            if mine.disjoint(other) or _opposite_bounds(mine, other):
                continue
            if mine.heads and not other.heads and sentence.lows[other.last + 1 : other.last + 2] == ("of",):
                continue  # "two of them" counts a part
            whole = LISTS.totals.intersection(sentence.lows[max(0, other.at - 4) : other.at + 5])
            if not mine.mark or whole or _shared(pair, other, sentence) >= shared:
                return True
    return False


def _labelled(pair: Pair, mine: Quantity, theirs: tuple[Quantity, ...]) -> Iterator[Contradiction]:
    others = [other for other in theirs if other.label == mine.label]
    if not others or any(other.low == mine.low for other in others):
        return
    if pair.claim.content_before(mine.at - 1) is None:
        return  # what the claim speaks of, not what it says
    if any(
        other.label == mine.label and other.low == mine.low
        for s in pair.passage.sentences
        for other in quantities(s)
    ):
        return
    if pair.about((mine.at,), _ENOUGH_LABELLED):
        yield pair.conflict("number", (mine.at - 1, mine.at), (others[0].at - 1, others[0].at))


def ordinal_rule(pair: Pair) -> Iterator[Contradiction]:
    """The same thing at another place in its row: "the third album" against "the fifth album"."""
    for index, ours in _ordinals(pair.claim):
        heads = [key for key in _heads(pair.claim, index + 1) if key not in _AGES]
        for place, theirs in _ordinals(pair.source) if heads else ():
            if theirs == ours or not set(heads) & set(_heads(pair.source, place + 1)):
                continue
            if not any(_ordinal(word) == ours for word in pair.passage.lows) and pair.about(
                (index,), _ENOUGH_LABELLED
            ):
                yield pair.conflict("number", (index, index), (place, place))


@read_once
def _ordinals(sentence: Sentence) -> tuple[tuple[int, int], ...]:
    """The places and values of a sentence's ordinals."""
    values = ((index, _ordinal(low)) for index, low in enumerate(sentence.lows))
    return tuple((index, value) for index, value in values if value is not None)


def _ordinal(low: str) -> int | None:
    known = LISTS.ordinals.get(low)
    if known is None and low[:1].isdigit() and low[-2:] in ("st", "nd", "rd", "th") and low[:-2].isascii():
        return int(low[:-2]) if low[:-2].isdigit() and len(low) < 8 else None
    return known
