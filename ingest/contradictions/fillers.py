"""One place in a sentence, and another thing in it: computed by the server, by the client; sent to Loki, to Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from vouchgate.ingest.contradictions.lists import LISTS
from vouchgate.ingest.contradictions.match import Contradiction, Pair
from vouchgate.ingest.contradictions.sentence import Sentence, is_identifier, read_once

_JOINTS = frozenset(
    {
        "by",
        "with",
        "to",
        "in",
        "into",
        "from",
        "via",
        "through",
        "per",
        "on",
        "called",
        "as",
        "under",
        "at",
        "of",
    }
)
_ENOUGH = (
    0.75  # of the claim's other content words, which is nearly all: little else shows that the places are one
)
_LONGEST = 3  # words of a thing
_LEFT = 3  # content words before the joint, of which one must be shared
_WHERE = frozenset({"in", "from", "at", "on"})
_FROM = frozenset({"in", "from"})
_LISTED = frozenset({"and", "or", "also", "either", "&", "/"})
# Keys of words before a joint after which the cause is named.
_CAUSES = frozenset({"due", "caus"})


@dataclass(frozen=True, slots=True)
class Filler:
    """A thing in its place: the words before the joint, the joint, and the keys of the thing."""

    left: tuple[str, ...]  # the nearest last
    joint: str
    keys: frozenset[str]
    shape: str  # "name", "the" before a plain thing, or "a"
    first: int
    last: int


@read_once
def fillers(sentence: Sentence) -> tuple[Filler, ...]:
    """The things that stand right after a joint."""
    found: list[Filler] = []
    for index, low in enumerate(sentence.lows):
        if low not in _JOINTS or not index:
            continue
        begin = index + 1
        article = sentence.lows[begin] if begin < len(sentence.words) else ""
        begin += article in ("the", "a", "an")
        while begin < len(sentence.words) and sentence.lows[begin] in "`\"'":
            begin += 1
        end = begin
        while end < len(sentence.words) and end - begin < _LONGEST and sentence.words[end].content:
            end += 1
        left = _left(sentence, index)
        if end == begin or not left or any(word.number for word in sentence.words[begin:end]):
            continue
        words = sentence.words[begin:end]
        shape = "name" if any(word.name for word in words) else "the" if article == "the" else "a"
        found.append(Filler(left, low, frozenset(word.key for word in words), shape, begin, end - 1))
    return tuple(found)


def _left(sentence: Sentence, index: int) -> tuple[str, ...]:
    """What stands before a joint in its clause, the nearest last."""
    clause = sentence.clause(index)
    places = [place for place in sentence.content if clause.start <= place < index]
    return tuple(sentence.words[place].key for place in places[-_LEFT:])


def filler_rule(pair: Pair) -> Iterator[Contradiction]:
    """The same said of the same, with another thing after the same joint."""
    claim, source = pair.claim, pair.source
    if (
        claim.denials
        or source.denials
        or not pair.same_time()
        or LISTS.contrasts.within(source.lows)
        or "elsewhere" in source.lows
    ):
        return
    for mine in fillers(claim):
        for other in fillers(source):
            joined = other.joint == mine.joint or (_settles(mine) and {mine.joint, other.joint} == _FROM)
            if not joined or other.keys & mine.keys or not _same_place(mine, other):
                continue
            if (
                not _exclusive(pair, mine, other)
                or _listed(source, other)
                or source.polarity[other.first] <= 0
            ):
                continue
            if _said_elsewhere(pair, mine, other) or not _about(pair, mine, other):
                continue
            yield pair.conflict("exchange", (mine.first, mine.last), (other.first, other.last))
            return


def _same_place(mine: Filler, other: Filler) -> bool:
    """Whether the same word stands right before both joints, or is near: "tested with", "we test components with"."""
    return mine.left[-1] == other.left[-1] or (
        mine.left[-1] in other.left and len(set(mine.left) & set(other.left)) > 1
    )


def _exclusive(pair: Pair, mine: Filler, other: Filler) -> bool:
    """Whether only one of the two can be true: both are names, or both the one thing of their kind, or causes, or the
    source has the claim's thing in another place of the sentence ("stored in UTC and shown in local time")."""
    named = mine.shape == other.shape == "name" and mine.left[-1] == other.left[-1]
    if named and _settles(mine) and mine.keys.isdisjoint(pair.passage.keys):
        return True
    exact = _exact(pair.claim, mine) and _exact(pair.source, other)
    agents = mine.joint == "by" and mine.shape == other.shape == "the"
    if not (exact or agents or pair.passage.change or pair.source.section == "now"):
        return False  # people and places have many things to do with each other
    if mine.joint in ("per", "called") or (mine.left[-1] in _CAUSES and mine.joint in ("by", "to")):
        return True
    if mine.shape == other.shape and mine.shape in ("name", "the"):
        return mine.joint != "of" and (mine.joint not in ("in", "on", "at") or mine.shape == "name")
    elsewhere = [filler for filler in fillers(pair.source) if filler.keys == mine.keys]
    if mine.joint == "of" or not elsewhere:
        return False
    return all(filler.left[-1] != mine.left[-1] for filler in elsewhere)


def _settles(filler: Filler) -> bool:
    """Whether it follows a word that one thing is said with: born in, set in, a character in, broadcast on."""
    return filler.left[-1] in LISTS.settled and filler.joint in _WHERE


def _exact(sentence: Sentence, filler: Filler) -> bool:
    """Whether a thing is an identifier or one of a group of exclusive words."""
    words = sentence.words[filler.first : filler.last + 1]
    return any(word.low in LISTS.groups or is_identifier(word.text) for word in words)


def _listed(source: Sentence, other: Filler) -> bool:
    """Whether another thing may follow: "to Loki and Kafka", but not "stored in UTC and shown in local time"."""
    around = source.lows[other.first - 1 : other.first] + source.lows[other.last + 1 : other.last + 2]
    after = source.words[other.last + 2 : other.last + 5]
    if source.lows[other.last + 1 : other.last + 2] == (",",):
        return any(word.low in ("and", "or") for word in after) or (bool(after) and after[0].name)
    if source.lows[other.last + 1 : other.last + 2] == ("and",):
        said = LISTS.tense.finite | LISTS.tense.past_verbs
        return not any(
            word.low.endswith("ed") or word.low in said or word.key in LISTS.choosing for word in after
        )
    return bool(_LISTED.intersection(around))


def _said_elsewhere(pair: Pair, mine: Filler, other: Filler) -> bool:
    """Whether the passage has the claim's thing in that place elsewhere, or beside the same verb in any place."""
    for sentence in pair.passage.sentences:
        for filler in fillers(sentence):
            here = (
                filler.keys & mine.keys
                and mine.left[-1] in filler.left
                and not pair.is_before_change(sentence)
            )
            if here and (sentence is not pair.source or filler.left[-1] == mine.left[-1]):
                return True
        if sentence is pair.source or pair.is_before_change(sentence):
            continue
        places = [place for key in mine.keys for place in sentence.positions.get(key, ())][:1]
        clause = {sentence.words[i].key for place in places for i in sentence.clause(place)}
        if mine.keys <= clause and mine.left[-1] in clause and not sentence.denials:
            return True
    # Before the verb it may be what does it: "the client computes it".
    inside = {pair.source.words[place].key for place in pair.source.clause(other.first)}
    return mine.keys <= inside and not any(filler.keys == mine.keys for filler in fillers(pair.source))


def _about(pair: Pair, mine: Filler, other: Filler) -> bool:
    """Whether the source's clause speaks of what the claim says it of: its subject, and nearly all else."""
    places = range(mine.first, mine.last + 1)
    before = [pair.claim.words[place].key for place in pair.claim.content if place < mine.first]
    subject = [key for key in before if key != mine.left[-1]] or (before if mine.joint == "called" else [])
    referring = pair.source.lows[0] in LISTS.referring
    if not subject or not (referring or set(subject) & pair.source.keys):
        return False
    after = {pair.claim.words[place].key for place in pair.claim.content if place > mine.last}
    return after <= pair.source.keys and pair.about(places, _ENOUGH)
