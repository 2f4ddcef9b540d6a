"""How far a thing holds: always or only then, of all or of all but some; and whether it holds still."""

from __future__ import annotations

from collections.abc import Iterator

from vouchgate.ingest.contradictions.lists import LISTS
from vouchgate.ingest.contradictions.match import Contradiction, Pair
from vouchgate.ingest.contradictions.sentence import LABELS, Sentence

_ENOUGH = 0.7
_ENOUGH_STALE = 0.9  # of the claim: it says word for word how things were
_ALWAYS = frozenset({"always", "every", "all", "any", "each", "unconditionally", "everywhere"})
_UNDER = frozenset(
    {"when", "if", "for", "on", "in", "after", "before", "with", "to", "from", "while", "once", "during"}
)
_BUT = frozenset({"but", "except"})
_REACH = 3  # words between "all" and "but", and between "only" and what it is of


def scope_rule(pair: Pair) -> Iterator[Contradiction]:
    """The claim has "always" or "for every push", the source "only when" or "only for pushes to main"; or the claim
    "only in production" and the source "in all environments"."""
    claim, source = pair.claim, pair.source
    if claim.denials or source.denials or not pair.same_time():
        return
    ours, theirs = _limited(claim), _limited(source)
    whole, others = _whole(claim), _whole(source)
    if (
        whole is not None
        and theirs is not None
        and others is None
        and not LISTS.sole.intersection(claim.lows)
    ):
        mine, other = whole, theirs
    elif (
        ours is not None and others is not None and whole is None and not LISTS.sole.intersection(source.lows)
    ):
        mine, other = ours, others
    else:
        return
    if _said_before(pair, mine) and pair.about((), _ENOUGH):
        yield pair.conflict("quantifier", (mine, mine), (other, other))


def _limited(sentence: Sentence) -> int | None:
    """Where "only" stands before a condition or a place, if anywhere."""
    for index, low in enumerate(sentence.lows[:-1]):
        if low in LISTS.sole and sentence.lows[index + 1] in _UNDER:
            return index
    return None


def _whole(sentence: Sentence) -> int | None:
    """Where a word stands that leaves nothing out, if one does; not "all X but Y"."""
    for index, low in enumerate(sentence.lows):
        if low in _ALWAYS and not _BUT.intersection(sentence.lows[index : index + _REACH + 2]):
            return index
    return None


def _said_before(pair: Pair, index: int) -> bool:
    """Whether the source has the two content words of the claim before a place or, failing those, the one after it."""
    near = [pair.claim.words[place].key for place in pair.claim.content if place < index][-2:]
    if not near:
        after = pair.claim.content_after(index)
        near = [] if after is None else [pair.claim.words[after].key]
    here = pair.passage.keys if pair.source.lows[0] in LISTS.referring else pair.source.keys
    return bool(near) and set(near) <= here


def except_rule(pair: Pair) -> Iterator[Contradiction]:
    """The claim has "only X" and the source "all but X", or the other way round."""
    claim, source = pair.claim, pair.source
    for one, other, ours_first in ((claim, source, True), (source, claim, False)):
        left_out, alone = _left_out(one), _alone(other)
        if (
            left_out is None
            or not alone
            or one.words[left_out].key not in {other.words[i].key for i in alone}
        ):
            continue
        only = next(index for index, low in enumerate(other.lows) if low in LISTS.sole)
        ours, theirs = (left_out, only) if ours_first else (only, left_out)
        if pair.same_time() and pair.about((), _ENOUGH - 0.1):
            yield pair.conflict("quantifier", (ours, ours), (theirs, theirs))
            return


def _left_out(sentence: Sentence) -> int | None:
    """The thing in "all but X" and "all … except X"."""
    everything = False
    for index, low in enumerate(sentence.lows):
        everything = everything or low in _ALWAYS
        if everything and low in _BUT:
            after = sentence.content_after(index)
            return after if after is not None and after - index <= 2 else None
    return None


def _alone(sentence: Sentence) -> list[int]:
    """The thing in "only X" and "on X only"."""
    for index, low in enumerate(sentence.lows):
        if low in LISTS.sole:
            after = [place for place in sentence.content if index < place <= index + _REACH]
            before = sentence.content_before(index)
            return after[:1] or ([] if before is None else [before])
    return []


def stale_rule(pair: Pair) -> Iterator[Contradiction]:
    """The claim says that a thing is so now, the source that it was so before the change, and no sentence that tells
    how it is now says so: "after the change uploads are truncated"."""
    claim, source = pair.claim, pair.source
    if (
        not LISTS.new.within(claim.lows)
        or pair.is_before_change(claim)
        or not pair.is_before_change(source)
        or source.new
    ):
        return
    if claim.denials or source.denials or not any(sentence.new for sentence in pair.passage.sentences):
        return
    told = [index for index in claim.content if claim.words[index].key not in LISTS.changes]
    deciding = [index for index in told if claim.words[index].low.endswith("ed") or index == told[-1]]
    if len(told) < 2 or any(pair.passage_says(claim.words[index].root) for index in deciding):
        return
    if claim.words[told[-1]].key in source.keys and pair.about((), _ENOUGH_STALE):
        yield pair.conflict("status", (told[0], told[-1]), (source.content[0], source.content[-1]))


def label_rule(pair: Pair) -> Iterator[Contradiction]:
    """The status under a heading, "Status: superseded", and a claim that gives its subject another."""
    lows = pair.source.lows
    if len(lows) < 3 or lows[0] not in LABELS or lows[1] != ":" or lows[2] not in LISTS.stages:
        return
    claim = pair.claim
    if (
        claim.denials
        or pair.is_before_change(claim)
        or not any(word.key in LISTS.recorded for word in claim.words)
    ):
        return
    for index, low in enumerate(claim.lows):
        stage = LISTS.stages.get(low)
        theirs = LISTS.stages[lows[2]]
        if stage is None or not index or stage == theirs or {stage, theirs} == {"yes", "over"}:
            continue
        copula = {"is", "was", "remains", "stays", "been"}.intersection(claim.lows[max(0, index - 3) : index])
        if copula and low not in pair.passage.lows and index >= len(claim.words) - 2:
            yield pair.conflict("status", (index, index), (2, 2))
            return
