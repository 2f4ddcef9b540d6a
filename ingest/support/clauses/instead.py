"""Words of a statement in whose stead the place has others, or none; and what the place limits that the statement does
not.

Most of what makes a true sentence false is one word: "the exporter listens on port 8080" and "the gateway listens on
port 8080", "kept for admins" and "kept for auditors", "a report" and "a public report". A share of the words that two
sentences have in common tells none of these, and their order does not either.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, takewhile

from vouchgate.ingest.support.clauses.acts import ACTS
from vouchgate.ingest.support.clauses.roles import attached
from vouchgate.ingest.support.tokens import LISTS, Token

_NEAR = 5  # words to either side that are of the same clause
_VERBAL = ("ed", "ing")
_FEWEST = 3  # words of a statement; what has fewer has no beginning and no end apart from its middle
_ADDED = 2  # words in a row that are added; more of them are another thing
_LEADS = 8  # words of a sentence among which one of the statement shows that it is told of it
_CASES = frozenset({"if", "when", "once", "whenever", "should", "unless", "until", "as", "whoever"})
_ONCE = frozenset({"after", "soon", "when"})  # that say "once" in other words
_CASE = 10  # words behind such a one that tell it
_LOST = 2  # words of one case that the other lacks
_LEADING = ACTS.determiners | ACTS.pronouns
_BESIDE = 2  # characters between a name and what kind of thing it is
_EACH = frozenset({"each", "every"})
_SHORT = 5  # letters; a longer word in "-ly" is an adverb, "early" and "reply" are none
_AS = frozenset({"as"})
_NEXT = frozenset({"next"})
_ENDS = frozenset(".;:,()\n")
_SENTENCES = frozenset(".\n")
_BREAKS = frozenset(".;:\n()|")
_CELLS = frozenset("|")


@dataclass(frozen=True)
class Compared:
    """A statement and its place, word by word. `found` are the keys under which the source has each of `wanted`."""

    claim: str  # the text that the statement is of
    words: Sequence[Token]
    wanted: Sequence[Token]  # those that say something, each once
    found: Sequence[Collection[str]]
    place: Sequence[Token]
    text: str  # of the source
    missing: tuple[Token, ...]  # of `wanted`, what the place has not
    gone: Sequence[Token]  # and the source has nowhere

    def without(self, words: Sequence[Token], place: Sequence[Token]) -> Compared:
        """The same with a place that has not these words either."""
        return replace(self, place=place, missing=(*self.missing, *words), gone=())

    @cached_property
    def lost(self) -> frozenset[Token]:
        """What is missing, to be looked up."""
        return frozenset(self.missing)

    @cached_property
    def keys(self) -> list[set[str]]:
        """Those under which each of `wanted` may be found."""
        return [{*token.keys, *keys} for token, keys in zip(self.wanted, self.found, strict=True)]

    @cached_property
    def telling(self) -> list[int]:
        """Which words of the place say something."""
        return [at for at, token in enumerate(self.place) if token.content]

    @cached_property
    def said(self) -> list[Token]:
        """These words."""
        return [self.place[at] for at in self.telling]

    @cached_property
    def theirs(self) -> list[set[str]]:
        """Their keys."""
        return [{*token.keys, *token.parts} for token in self.said]

    @cached_property
    def own(self) -> set[str]:
        """All keys of the statement."""
        return set[str]().union(*self.keys)

    def at(self, wanted: int) -> list[int]:
        """Where the place has this word."""
        return [i for i, keys in enumerate(self.theirs) if not keys.isdisjoint(self.keys[wanted])]

    def gap(self, one: Token, other: Token) -> str:
        """What stands between two words of the place."""
        return self.text[one.end : other.start]


def replaced(laid: Compared) -> int:
    """Missing words in whose stead, between the same neighbours, at the beginning or at the end, the place has others
    that the statement has not. In the middle a verb by its ending is none of these: most of what is done has more than
    one word."""
    count = 0
    wanted, keys, theirs, lost = laid.wanted, laid.keys, laid.theirs, laid.lost
    for at in range(1, len(wanted) - 1):
        if wanted[at] not in lost or wanted[at - 1] in lost or wanted[at + 1] in lost:
            continue
        if _is_open(wanted[at]):
            continue
        own = set[str]().union(*keys[max(0, at - _NEAR) : at + _NEAR + 1])
        count += any(
            2 <= right - left <= 3
            and _CELLS.isdisjoint(laid.gap(laid.said[left], laid.said[right]))
            and any(each.isdisjoint(own) for each in theirs[left + 1 : right])
            for left in laid.at(at - 1)
            for right in laid.at(at + 1)
        )
    return count + _begins_otherwise(laid) + _ends_otherwise(laid) + _attached_otherwise(laid)


def _is_open(word: Token) -> bool:
    """Whether a word is, by its form, a verb in the past or in progress, or one that tells little of what is done."""
    past = word.low in ACTS.past or word.low in ACTS.participles
    return past or word.low.endswith(_VERBAL) or not ACTS.light.isdisjoint(word.keys)


def _begins_otherwise(laid: Compared) -> bool:
    """Whether the statement begins with a word in whose stead the place has another: "the gateway listens" and "the
    exporter listens". What only leads to it ("Additionally, …") is no such word."""
    words, wanted = laid.words, laid.wanted
    if len(wanted) < _FEWEST or wanted[0] not in laid.lost or wanted[1] in laid.lost:
        return False
    at = words.index(wanted[0])
    bare = at == 0 and not words[0].low.endswith("ly") and wanted[1].shown[:1].islower()
    if not (bare and words[1].start - words[0].end <= 1) and not (at == 1 and words[0].low in _LEADING):
        return False
    return any(
        there
        and laid.theirs[there - 1].isdisjoint(laid.own)
        and _opens_sentence(laid, laid.telling[there - 1], words[0].low)
        for there in laid.at(1)
    )


def _opens_sentence(laid: Compared, at: int, leading: str) -> bool:
    """Whether nothing stands before this word in its sentence but small words that say which one, or the pronoun that
    leads the statement."""
    before = at - 1
    if leading in ACTS.pronouns and not (before >= 0 and laid.place[before].low == leading):
        return False
    while before >= 0 and laid.place[before].low in _LEADING:
        before -= 1
    return before < 0 or not _SENTENCES.isdisjoint(laid.gap(laid.place[before], laid.place[before + 1]))


def _ends_otherwise(laid: Compared) -> bool:
    """Whether the statement ends with a word in whose stead, behind the same words, the place has another."""
    wanted = laid.wanted
    if len(wanted) < _FEWEST or wanted[-1] not in laid.lost or wanted[-2] in laid.lost:
        return False
    ours = _between(laid.words, wanted[-2], wanted[-1], LISTS.relations)
    for there in laid.at(len(wanted) - 2):
        if there + 1 == len(laid.said) or not laid.theirs[there + 1].isdisjoint(laid.own):
            continue
        one, other = laid.said[there], laid.said[there + 1]
        if _BREAKS.isdisjoint(laid.gap(one, other)) and ours == _between(
            laid.place, one, other, LISTS.relations
        ):
            return True
    return False


def _attached_otherwise(laid: Compared) -> bool:
    """Whether a small word attaches a missing word to one of the place, which has another there: "mandatory for guests"
    and "mandatory for administrators"."""
    lost = {token.keys[0] for token in laid.lost}
    theirs: dict[tuple[str, str], set[str]] = {}
    for one, how, other in attached(laid.place):
        theirs.setdefault((one, how), set()).add(other)
    return any(
        other in lost and laid.own.isdisjoint(theirs.get((one, how), laid.own))
        for one, how, other in attached(laid.words)
    )


def _between(words: Sequence[Token], one: Token, other: Token, small: Collection[str]) -> list[str]:
    """Which of these small words stand between two words."""
    return [w.low for w in words if one.end <= w.start < other.start and w.low in small]


def added(laid: Compared) -> bool:
    """Whether the statement has a word or two that the place has not, which has nothing in their stead: right before a
    thing ("a public report"), behind all that the place says ("is sent by hand"), or before it all ("In Rome, …"). "It"
    may stand for what the source has elsewhere."""
    wanted = laid.wanted
    if _fronted(laid) or _joined_in_front(laid):
        return True
    for at in range(1, len(wanted)):
        first = wanted[at]
        if first not in laid.lost or wanted[at - 1] in laid.lost or first.low.endswith("ly"):
            continue
        last = at
        while last + 1 < len(wanted) and wanted[last + 1] in laid.lost:
            last += 1
        if last - at >= _ADDED:
            continue
        before = [there for there in laid.at(at - 1) if first in laid.gone or not _stood_for(laid, there)]
        if last + 1 == len(wanted):
            if _is_last(laid, at, last) and any(_ends(laid, there) for there in before):
                return True
        elif wanted[last + 1] not in laid.lost and _describes(laid, at, last):
            after = laid.at(last + 1)
            if any(there + 1 in after for there in before):
                return True
    return False


def _stood_for(laid: Compared, there: int) -> bool:
    """Whether a pronoun stands behind this word of the place, before the next that says something."""
    small = takewhile(lambda token: not token.content, laid.place[laid.telling[there] + 1 :])
    return any(token.low in LISTS.resuming for token in small)


def _joined_in_front(laid: Compared) -> bool:
    """Whether the statement begins with another thing, of which the place has no word, that does it as well: "the proxy
    and the relay keep mail"."""
    lead = list(takewhile(laid.lost.__contains__, laid.wanted))
    if not lead or len(lead) == len(laid.wanted):
        return False
    then = laid.wanted[len(lead)]
    return any(lead[-1].end <= word.start < then.start and word.low in LISTS.joining for word in laid.words)


def tells_how(word: Token) -> bool:
    """Whether a word is an adverb of manner, by its form."""
    return word.low.endswith("ly") and len(word.low) > _SHORT and not word.name


def another_manner(laid: Compared) -> bool:
    """Whether the statement tells how something is done, and the place does not. What only weakens or stresses counts
    where the source has it nowhere."""
    how = [token for token in laid.missing if tells_how(token) and token is not laid.words[0]]
    return any(token in laid.gone or token.low not in LISTS.weak for token in how)


def _fronted(laid: Compared) -> bool:
    """Whether the statement begins with a circumstance of which the place has no word: "In production, …"."""
    if not laid.words or laid.words[0].low not in LISTS.relations | _EACH:
        return False
    lost = {token.keys[0] for token in laid.lost}
    for one, two in pairwise(laid.words):
        if one.content and one.keys[0] not in lost:
            return False
        if "," in laid.claim[one.end : two.start]:
            return one.content and one.low not in LISTS.discourse
    return False


def _is_last(laid: Compared, first: int, last: int) -> bool:
    """Whether the statement ends with these words, which say more than that it was done so: "…, as decided"."""
    one, other = laid.wanted[first - 1], laid.wanted[first]
    if any(token.content and token.start > laid.wanted[last].start for token in laid.words):
        return False
    kind = other not in laid.gone and not LISTS.kinds.isdisjoint(other.keys)
    if kind and one.name and other.start - one.end <= _BESIDE:
        return False  # "of ServiceBinding objects"
    return not (other.low.endswith(_VERBAL) and _between(laid.words, one, other, _AS))


def _ends(laid: Compared, there: int) -> bool:
    """Whether the place says no more behind this word, or goes on with what the statement says, too."""
    if there + 1 == len(laid.said):
        return True
    gap = laid.gap(laid.said[there], laid.said[there + 1])
    return not _ENDS.isdisjoint(gap) or not laid.theirs[there + 1].isdisjoint(laid.own)


def _describes(laid: Compared, first: int, last: int) -> bool:
    """Whether these words belong to what stands around them: behind an article right before a thing, or behind a small
    word that joins or relates: "the public report", "mail from customers for 30 days", "stock and sessions are"."""
    words, wanted = laid.words, laid.wanted
    at, then = words.index(wanted[first]), words.index(wanted[last + 1])
    small = words[at - 1]
    apart = wanted[first] not in laid.gone and not _ENDS.isdisjoint(
        laid.claim[small.start : words[then].start]
    )
    if wanted[first].number or small.content or apart:
        return False
    next_to = then == at + last - first + 1 and words[then].start <= words[then - 1].end + 1
    # "The fields consulted and informed" are these, where the place speaks of fields elsewhere.
    named = wanted[first] not in laid.gone and not LISTS.kinds.isdisjoint(wanted[first].keys)
    if at > 1 and small.low in ACTS.determiners and words[at - 2].low in LISTS.joining:
        return next_to  # "the gateway and the proxy store"
    return (
        small.low in LISTS.relations
        or small.low in LISTS.joining
        or (next_to and not named and small.low in ACTS.determiners)
    )


def set_otherwise(laid: Compared) -> bool:
    """Whether two words stand next to each other in both, and a small word that excludes the other's is between them:
    "from Redis" and "to Redis", "for guests" and "against guests"."""
    keys = {token.keys[0]: each for token, each in zip(laid.wanted, laid.keys, strict=True)}
    for one, two in pairwise(token for token in laid.words if token.content):
        excluded = LISTS.excluding.get(_excluding_between(laid.words, one, two))
        first, second = keys.get(one.keys[0]), keys.get(two.keys[0])
        if excluded is None or first is None or second is None:
            continue
        theirs = [
            _excluding_between(laid.place, laid.said[at], laid.said[at + 1])
            for at in range(len(laid.said) - 1)
            if not (laid.theirs[at].isdisjoint(first) or laid.theirs[at + 1].isdisjoint(second))
        ]
        if theirs and excluded.issuperset(theirs):
            return True
    return False


def _excluding_between(words: Sequence[Token], one: Token, two: Token) -> str:
    """The one small word between two others that excludes some; empty when there is none, or more than one."""
    between = _between(words, one, two, LISTS.excluding)
    return between[0] if len(between) == 1 else ""


def left_out(laid: Compared) -> bool:
    """Whether the place says it "only with" or "unless" something, or of another time, with which its sentence begins
    ("until 2019") or which is to come ("next year"), and the statement has no such word."""
    lows = {token.low for token in laid.words}
    limits = ((LISTS.only, "only", LISTS.limiting), (_NEXT, "next", LISTS.coming))
    for own, first, second in limits:
        if lows.isdisjoint(own) and any(a.low == first and b.low in second for a, b in pairwise(laid.place)):
            return True
    if _excepted(laid, lows) or _of_another_case(laid):
        return True
    before: Token | None = None
    for at, token in enumerate(laid.place):
        opens = before is None or not _SENTENCES.isdisjoint(laid.gap(before, token))
        before = token
        told = token.low in lows or (token.low == "once" and not lows.isdisjoint(_ONCE))
        if opens and token.low in LISTS.fronted and not told:
            led = laid.place[at : at + _LEADS]
            if any(word.content and not laid.own.isdisjoint(word.keys) for word in led):
                return True
    return False


def _of_another_case(laid: Compared) -> bool:
    """Whether the place says it of a case, and of another one than the statement: of the few words behind its "if" or
    "when" it has but one, and of those behind the place's own the statement lacks one."""
    theirs = [at for at, token in enumerate(laid.place) if token.low in _CASES]
    if not theirs:
        return False
    lost = {token.start for token in laid.lost}
    for at, token in enumerate(laid.words):
        if token.low in _CASES:
            case = [word for word in laid.words[at + 1 : at + 1 + _CASE] if word.content]
            missing = sum(word.start in lost for word in case)
            if missing >= _LOST and any(_unsaid(laid, there) for there in theirs):
                return True
    return False


def _unsaid(laid: Compared, at: int) -> bool:
    """Whether the statement lacks one of the words behind a word of the place."""
    case = [word for word in laid.place[at + 1 : at + 1 + _CASE] if word.content]
    return any(laid.own.isdisjoint((*word.keys, *word.parts)) for word in case)


def _excepted(laid: Compared, lows: Collection[str]) -> bool:
    """Whether the place makes an exception right behind words of the statement: "…, unless it is late"."""
    if not LISTS.excepted.isdisjoint(lows):
        return False
    last: Token | None = None
    for token in laid.place:
        if token.low in LISTS.exceptions and last is not None and not laid.own.isdisjoint(last.keys):
            return _SENTENCES.isdisjoint(laid.text[last.end : token.start])
        last = token if token.content else last
    return False
