"""How many of them, and whether they are there at all: only and also, all and some, supported and removed."""

from __future__ import annotations

from collections.abc import Iterator

from vouchgate.ingest.contradictions.lists import LISTS
from vouchgate.ingest.contradictions.match import Contradiction, Pair
from vouchgate.ingest.contradictions.sentence import Sentence

_ENOUGH = 0.75
_ENOUGH_ALL = 0.65
_ENOUGH_GONE = 0.5
_REACH = 4  # words between a quantifier and what it is said of


def only_rule(pair: Pair) -> Iterator[Contradiction]:
    """The claim has "only A", the source "A and B"."""
    claim, source = pair.claim, pair.source
    if claim.denials or source.denials or not pair.same_time() or LISTS.sole.intersection(source.lows):
        return
    for index, low in enumerate(claim.lows):
        if low not in LISTS.sole:
            continue
        after = [place for place in claim.content if index < place <= index + _REACH]
        if not after and (before := claim.content_before(index)) is not None:
            after = [before]
        for place in after[:3]:
            theirs = source.positions.get(claim.words[place].key, ())
            joined = next(
                (found for found in (_joined(source, other) for other in theirs) if found is not None), None
            )
            if joined is None or source.words[joined[1]].key in claim.keys:
                continue
            if pair.about((), _ENOUGH):
                yield pair.conflict("quantifier", (min(index, place), max(index, place)), joined)
                return


def besides_rule(pair: Pair) -> Iterator[Contradiction]:
    """The claim has "accepts only folders", the source "accepts files as well"."""
    claim, source = pair.claim, pair.source
    sole = next((index for index, low in enumerate(claim.lows) if low in LISTS.sole), None)
    if sole is None or claim.denials or source.denials or claim.old or source.old:
        return
    after = [place for place in claim.content if sole < place <= sole + _REACH]
    before = claim.content_before(sole)
    for index, low in enumerate(source.lows):
        added = low in ("too", "also") or source.lows[index : index + 3] == ("as", "well", ".")
        if (
            not added
            or not after
            or before is None
            or claim.words[before].key not in source.near(index, 8, 4)
        ):
            continue
        if claim.words[after[0]].key not in source.keys and pair.about(after[:1], _ENOUGH):
            yield pair.conflict("quantifier", (sole, after[0]), (index, index))
            return


def _joined(sentence: Sentence, index: int) -> tuple[int, int] | None:
    """The word after a thing in "A and B", with one word between at most ("A files and B")."""
    for place in (index + 1, index + 2):
        if place + 1 >= len(sentence.words):
            return None
        if sentence.lows[place] in LISTS.besides:
            other = place + 1
            while other < len(sentence.words) and not sentence.words[other].content and other < place + 3:
                other += 1
            good = other < len(sentence.words) and sentence.words[other].content
            return (index, other) if good else None
        if not sentence.words[place].content:
            return None
    return None


def all_rule(pair: Pair) -> Iterator[Contradiction]:
    """All of them in the claim and only some in the source, or the other way round, said of the same word."""
    claim, source = pair.claim, pair.source
    if claim.denials or source.denials or not pair.same_time():
        return
    for ours, theirs in ((LISTS.every, LISTS.part), (LISTS.part, LISTS.every)):
        if ours.intersection(source.lows) or theirs.intersection(claim.lows):
            continue
        for index, low in enumerate(claim.lows):
            head = claim.content_after(index)
            if low not in ours or head is None or head - index > _REACH:
                continue
            for place, other in enumerate(source.lows):
                said = source.content_after(place)
                if other in theirs and said is not None and source.words[said].key == claim.words[head].key:
                    if pair.about((), _ENOUGH_ALL):
                        yield pair.conflict("quantifier", (index, head), (place, said))
                    return


def gone_rule(pair: Pair) -> Iterator[Contradiction]:
    """The source removes a thing, or what is said of it, that the claim says is there."""
    claim, source = pair.claim, pair.source
    ordered = source.command in source.negations  # "avoid X" is read as a denial, too
    if claim.denials or claim.old or source.denials > ordered or claim.keys & LISTS.gone:
        return
    if pair.is_before_change(source) or pair.is_before_change(claim):
        return
    there = [index for index, word in enumerate(claim.words) if word.key in LISTS.there]
    if not there:
        return
    for index in source.content:
        if source.words[index].key not in LISTS.gone or (
            source.polarity[index] != 1 and index != source.command
        ):
            continue
        things = _things(source, index)
        ours = [place for place in claim.content for key in things if claim.words[place].key == key]
        # Every word of the thing: "support for Python 3.7" is gone, that for Python 3.8 is not.
        whole = len(set(things)) <= len({claim.words[place].key for place in ours})
        near = any(abs(place - verb) <= _REACH for place in ours for verb in there)
        if things and whole and near and _named(pair, ours) and pair.about((there[0],), _ENOUGH_GONE):
            yield pair.conflict("status", (min(ours), max(ours)), (index, index))
            return


def _named(pair: Pair, places: list[int]) -> bool:
    return (
        any(pair.claim.words[place].name or pair.claim.words[place].number for place in places)
        or len(places) > 1
    )


def _things(sentence: Sentence, index: int) -> tuple[str, ...]:
    """What is gone: the content words right after the verb, "support for" left out; before it in the passive."""
    end = index
    while end > 0 and sentence.lows[end - 1] in ("now", "also", "already", "since", "therefore", "finally"):
        end -= 1
    if end and sentence.lows[end - 1] in ("is", "was", "were", "are", "been", "being"):
        end -= 1
        found: list[str] = []
        while end > 0 and len(found) < 3:
            end -= 1
            if not sentence.words[end].content:
                break
            found.append(sentence.words[end].key)
        return tuple(found)
    found = []
    for place in range(index + 1, min(len(sentence.words), index + 9)):
        word = sentence.words[place]
        if word.content and word.key not in LISTS.there:
            found.append(word.key)
        elif found or (not word.key and word.low not in "`\"'"):
            break
    return tuple(found)
