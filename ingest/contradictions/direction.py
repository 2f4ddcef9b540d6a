"""Direction: from one thing to another, one replaced by another, one before another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from vouchgate.ingest.contradictions.lists import LISTS
from vouchgate.ingest.contradictions.match import Contradiction, Pair
from vouchgate.ingest.contradictions.sentence import Sentence, read_once

_REACH = 6  # words to either side in which the two things are named
_ENOUGH = 0.5
_ENOUGH_PLAIN = 0.6
_ENOUGH_CROSSED = 0.7
_ENOUGH_SWAPPED = 0.9
_ORDER = frozenset({"before", "after"})  # left to `order_rule`
_KEPT = 2  # from this many words on the same side as in the claim, the sides are not exchanged: one may be the verb
# Verbs whose first thing gives way to a second, with the word before the second.
_REPLACING = {
    "replac": ("with", "by"),
    "renam": ("to", "as", "into"),
    "convert": ("to", "into"),
    "migrat": ("to",),
    "switch": ("to",),
    "mov": ("to",),
    "chang": ("to", "into"),
    "modify": ("to",),
    "bump": ("to",),
    "upgrad": ("to",),
    "downgrad": ("to",),
    "translat": ("to", "into"),
    "swap": ("for",),
    "supersed": ("by",),
}
# Relations of two things in one order: A, the word, B.
_RELATIONS = frozenset(
    {
        "before",
        "after",
        "than",
        "calls",
        "depends",
        "imports",
        "extends",
        "inherits",
        "owns",
        "contains",
        "wraps",
        "precedes",
        "follows",
        "overrides",
        "beat",
        "defeated",
        "includes",
        "implies",
        "triggers",
        "supersedes",
    }
)


@dataclass(frozen=True, slots=True)
class Replacement:
    """One thing giving way to another; keys of each side, and the words it was read from."""

    old: tuple[str, ...]
    new: tuple[str, ...]
    first: int
    last: int


def _side(sentence: Sentence, begin: int) -> tuple[tuple[str, ...], int]:
    """The keys of a thing that begins at a place, and where it ends: up to the next small word or mark."""
    found: list[str] = []
    place = begin
    for place in range(begin, min(len(sentence.words), begin + _REACH)):
        word = sentence.words[place]
        if (
            (word.low in LISTS.units or word.low.rstrip("s") in LISTS.units)
            and place > begin
            and sentence.words[place - 1].number
        ):
            continue
        value = word.content or word.low in LISTS.states or word.number
        if value:
            found.append(word.low if not word.content else word.key)
        elif found or (not word.key and word.low not in ("`", '"', "'", "*", "“")):
            return tuple(found), place
    return tuple(found), place + 1


def _from_to(sentence: Sentence, index: int) -> Replacement | None:
    """The change in "from A to B" and "to B from A"."""
    low = sentence.lows[index]
    if low not in ("from", "to"):
        return None
    first, end = _side(sentence, index + 1)
    while end < len(sentence.words) and not sentence.words[end].key and sentence.words[end].low in "`\"'*":
        end += 1
    if not first or end >= len(sentence.words) or sentence.lows[end] != ("to" if low == "from" else "from"):
        return None
    second, after = _side(sentence, end + 1)
    if not second:
        return None
    return Replacement(
        *((first, second) if low == "from" else (second, first)), index, min(after, len(sentence.words)) - 1
    )


def _replaced(sentence: Sentence, index: int) -> Replacement | None:
    """The change in "replace A with B", "rename A to B", "A was replaced by B" and "B replaces A"."""
    joints = _REPLACING.get(sentence.words[index].key)
    if joints is None or sentence.polarity[index] <= 0:
        return None
    first, end = _side(sentence, index + 1)
    while end < len(sentence.words) and not sentence.words[end].key and sentence.words[end].low in "`\"'*":
        end += 1
    joint = end if end < len(sentence.words) and sentence.lows[end] in joints else None
    if joint is not None and first:
        second, after = _side(sentence, joint + 1)
        return Replacement(first, second, index, min(after, len(sentence.words)) - 1) if second else None
    before = tuple(sentence.words[place].key for place in sentence.content if index - 4 <= place < index)
    following = sentence.lows[index + 1] if index + 1 < len(sentence.words) else ""
    if following in ("by", "with", "to") and before and following in joints:
        second, after = _side(sentence, index + 2)
        return (
            Replacement(before[-2:], second, index, min(after, len(sentence.words)) - 1) if second else None
        )
    passive = index and sentence.lows[index - 1] in ("is", "was", "were", "are", "been", "be")
    if sentence.words[index].key in ("replac", "supersed") and first and before and not passive:
        return Replacement(first, before[-2:], max(0, index - 1), end - 1)
    return None


def _favoured(sentence: Sentence, index: int) -> Replacement | None:
    """The change in "A is deprecated in favour of B" and "drop A in favour of B"."""
    if sentence.lows[index : index + 3] not in (("in", "favour", "of"), ("in", "favor", "of")):
        return None
    places = [i for i in sentence.content if i in sentence.clause(index) and index - _REACH <= i < index]
    verbs = LISTS.gone | LISTS.tense.reports
    old = tuple(key for key in (sentence.words[place].key for place in places) if key not in verbs)
    new, after = _side(sentence, index + 3)
    return Replacement(old, new, places[0], min(after, len(sentence.words)) - 1) if old and new else None


@read_once
def changes(sentence: Sentence) -> tuple[Replacement, ...]:
    """What gives way to what in a sentence."""
    found: list[Replacement] = []
    for index in range(len(sentence.words)):
        change = _from_to(sentence, index) or _replaced(sentence, index) or _favoured(sentence, index)
        if change is not None and set(change.old) != set(change.new):
            found.append(change)
    return tuple(found)


def direction_rule(pair: Pair) -> Iterator[Contradiction]:
    """The source tells of the same change the other way round."""
    if pair.claim.denials or pair.source.denials:
        return
    for mine in changes(pair.claim)[:4]:
        theirs = changes(pair.source)
        old, new = set(mine.old), set(mine.new)
        if any(
            old & set(other.old) and new & set(other.new)
            for s in pair.passage.sentences
            for other in changes(s)
        ):
            continue
        for other in theirs:
            differing = (set(other.old) - set(other.new), set(other.new) - set(other.old))
            if (
                old & differing[1]
                and new & differing[0]
                and not old & differing[0]
                and not new & differing[1]
            ):
                if _same_change(pair, mine):
                    yield pair.conflict("direction", (mine.first, mine.last), (other.first, other.last))
                break
            if _other_end(pair, old, new, differing) and _same_change(pair, mine):
                yield pair.conflict("direction", (mine.first, mine.last), (other.first, other.last))
                break


def end_rule(pair: Pair) -> Iterator[Contradiction]:
    """The claim tells only what a thing changed to, and in the source that is what it changed from."""
    claim, source = pair.claim, pair.source
    if claim.denials or source.denials or changes(claim):
        return
    for index, low in enumerate(claim.lows):
        side = _side(claim, index + 1)[0] if low == "to" else ()
        before = claim.content_before(index)
        if not side or before is None:
            continue
        ends = [place for place, word in enumerate(claim.words) if place > index and word.key in side]
        exact = (
            any(claim.words[place].name or claim.words[place].number for place in ends)
            or side[0] in LISTS.states
        )
        for change in changes(source) if exact else ():
            there = range(change.first, change.last + 1)
            said = any(
                claim.words[place].key in source.near(there[0], 6, 0)
                for place in claim.content
                if place < index
            )
            swapped = set(side) <= set(change.old) and not set(side) & set(change.new)
            if swapped and said and pair.about(ends, _ENOUGH_PLAIN):
                yield pair.conflict(
                    "direction", (index, ends[-1] if ends else index + 1), (change.first, change.last)
                )
                return


def _same_change(pair: Pair, mine: Replacement) -> bool:
    """Whether the source speaks of the same change: plain words at its ends show less than names do."""
    ends = [index for index, word in enumerate(pair.claim.words) if word.key in (*mine.old, *mine.new)]
    named = any(pair.claim.words[index].name for index in ends)
    return pair.about(ends, _ENOUGH if named else _ENOUGH_PLAIN)


def _other_end(pair: Pair, old: set[str], new: set[str], other: tuple[set[str], set[str]]) -> bool:
    """Whether one end is the same and the other is a thing that the passage does not name at all: numbers and
    identifiers only, since a plain thing has many names, in one word or more."""
    if old & other[0] and not new & other[1]:
        ours, theirs = new, other[1]
    elif new & other[1] and not old & other[0]:
        ours, theirs = old, other[0]
    else:
        return False
    exact = {
        word.key
        for sentence in (pair.claim, pair.source)
        for word in sentence.words
        if word.name or word.number
    }
    run_on = "".join(pair.source.lows)  # in which "Big Query" is "BigQuery"
    apart = any(word.low in run_on for word in pair.claim.words if word.key in ours)
    return bool(ours & exact) and bool(theirs & exact) and not (apart or ours & pair.passage.keys)


def order_rule(pair: Pair) -> Iterator[Contradiction]:
    """The same relation with its sides exchanged: "A runs before B" against "B runs before A"."""
    claim, source = pair.claim, pair.source
    if claim.denials or source.denials or not pair.same_time():
        return
    for index, low in enumerate(claim.lows):
        if low not in _RELATIONS:
            continue
        left, right = _around(claim, index)
        for place, other in enumerate(source.lows):
            if other != low:
                continue
            their_left, their_right = _around(source, place)
            crossed = left & their_right - their_left and right & their_left - their_right
            kept = (left & their_left) | (right & their_right)
            if crossed and len(kept) < _KEPT and pair.about((), _ENOUGH_CROSSED):
                yield pair.conflict("direction", (index, index), (place, place))
                break


def swap_rule(pair: Pair) -> Iterator[Contradiction]:
    """The same verb with its two things exchanged: "variables override options" against "options override variables".
    What stands before the verb in one must all stand after it in the other."""
    claim, source = pair.claim, pair.source
    if claim.denials or source.denials or not pair.same_time():
        return
    for index in claim.content[1:-1]:
        word = claim.words[index]
        if _ORDER.intersection(claim.lows) or _ORDER.intersection(source.lows):
            return
        if word.number or not (word.low.endswith(("s", "ed")) or word.low in ("alias", "override")):
            continue
        theirs = source.positions.get(word.key, ())
        left, right = _sides(claim, index) if theirs else (set(), set())
        for place in theirs:
            their_left, their_right = _sides(source, place)
            if not left or not left <= their_right or left & their_left or not right & their_left:
                continue
            if 2 * len(right & their_left) >= len(their_left) and pair.about((), _ENOUGH_SWAPPED):
                yield pair.conflict("direction", (index, index), (place, place))
                return


def _sides(sentence: Sentence, index: int) -> tuple[set[str], set[str]]:
    """What does a verb and what it is done to: in the passive what stands after "by" and what stands before."""
    left, right = _around(sentence, index)
    passive = {"is", "are", "was", "were", "be", "been", ","}.intersection(
        sentence.lows[max(0, index - 3) : index]
    )
    participle = passive or sentence.words[index].low.endswith("ed")
    if participle and "by" in sentence.lows[index + 1 : index + 8]:
        return right, left
    if passive and sentence.words[index].low != "alias":
        return set(), set()
    return left, right


def _around(sentence: Sentence, index: int) -> tuple[set[str], set[str]]:
    """The content keys on either side of a word, within its clause."""
    sides: list[set[str]] = []
    for places in (
        range(index - 1, max(-1, index - 8), -1),
        range(index + 1, min(len(sentence.words), index + 8)),
    ):
        keys: set[str] = set()
        for place in places:
            word = sentence.words[place]
            if word.low in (",", ";", ":", "and", "but"):
                break
            if word.content:
                keys.add(word.key)
        sides.append(keys)
    return sides[0], sides[1]
