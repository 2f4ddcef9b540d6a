"""Who does what to whom: whether a statement has a place's verb, or its preference, with the sides exchanged.

"PostgreSQL uses sessions" has every word of "We use PostgreSQL for sessions". What stands right before a verb does it,
and in the passive it is what it is done to; where the place has that word on the verb's other side alone, and another
one in its stead, the two say different things. Only verbs of a list are looked at, and only the nearest word before.
Whatever the verb: two things with the same words between them, the other way about, are in each other's place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from vouchgate.ingest.contradictions.lists import LISTS as TENSES
from vouchgate.ingest.language.terms import term_key
from vouchgate.ingest.support.clauses.acts import ACTS
from vouchgate.ingest.support.tokens import LISTS, Token, tokens_of

_REACH = 8  # words to either side of a verb in which its sides are looked for
_FEWEST = 4  # words that both have, by which an order can be told
_MARK = frozenset(",.;:!?()[]|\n")
_NAMING = frozenset({"called", "named"})  # "a script called X" calls nothing
_BE = frozenset({"is", "are", "was", "were", "be", "been", "being"})
# What stands between a thing and the one it is preferred to, with the word that has to stand before it.
_PREFERRED = {"over": None, "than": "rather", "of": "instead"}
# A constant made once of the package's own data.
_VERBS = frozenset(map(term_key, TENSES.tense.commands | LISTS.acting))
# Between two things, or before both: they may change places, and no more is said. As keys.
_EVEN = frozenset(
    token.keys[0]
    for token in tokens_of(
        "and or nor but while whereas versus vs with alongside besides beside between both near next plus as equal"
        " equals same different differs differ similar"
    )
)
# Before the first of two things with a comma between them: "unlike A, B is restarted".
_LEADING = frozenset({"unlike", "before", "after", "without", "once", "until", "despite"})


@dataclass(frozen=True, slots=True)
class _Verb:
    """A verb with the words on its sides, as keys: who does it first, whatever its voice."""

    keys: frozenset[str]
    subject: frozenset[str]  # of the one word right before it, as written
    doing: frozenset[str]
    done: frozenset[str]
    passive: bool
    goes_on: bool  # it is joined to what stands before brackets
    has_object: bool  # of one that is not passive: whether it is done to something


def swapped(text: str, words: Sequence[Token], source: str, place: Sequence[Token]) -> bool:
    """Whether what does a thing in the statement is what it is done to in the place, and never what does it. Linear in
    both, but for the verbs that they share."""
    theirs: dict[str, list[_Verb]] = {}
    for verb in _verbs(source, place):
        for key in verb.keys:
            theirs.setdefault(key, []).append(verb)
    return any(_against(verb, theirs) for verb in _verbs(text, words))


def exchanged(text: str, words: Sequence[Token], source: str, place: Sequence[Token]) -> bool:
    """Whether the place prefers what the statement does not: "A over B", "B rather than A"; or has two of its things
    in each other's place: "from A into B", "from B into A". What stands on both sides tells them not apart. Linear in
    both, but for such words."""
    theirs = list(_preferred(source, place))
    if any(
        left & after and right & before for left, right in _preferred(text, words) for before, after in theirs
    ):
        return True
    ours = _linked(text, words)
    there = _linked(source, place) if ours else frozenset()
    if any((link, right, left) in there for link, left, right in ours - there):
        return True
    changes, theirs_too = _changes(words), _changes(place)
    turned = any((after, before) in theirs_too for before, after in changes - theirs_too)
    return turned or _crossed(attached(words), attached(place))


def transposed(words: Sequence[Token], place: Sequence[Token]) -> bool:
    """Whether the place has the words of the statement in its order but for two, with others between them, that are in
    each other's stead: "templates are combined to pages", "pages are combined to templates". Only words that both have
    once; in the passive who does it stands last."""
    ours, theirs = _once(words), _once(place)
    met = [(at, theirs[key]) for key, at in ours.items() if key in theirs]
    order = sorted(there for _, there in met)
    moved = [index for index, (_, there) in enumerate(met) if there != order[index]]
    if len(met) < _FEWEST or len(moved) != 2 or moved[1] - moved[0] < 2:
        return False
    (first, other), (last, one) = (met[index] for index in moved)
    between, beyond = words[first : last + 1], place[one : other + 1]
    even = any(token.low != "as" and not _EVEN.isdisjoint(token.keys) for token in (*between, *beyond))
    # "On Friday … in Havn" and "in Havn … on Friday" say the same.
    kept = _relation(words, first) == _relation(place, other) and _relation(words, last) == _relation(
        place, one
    )
    told = _relation(words, first) or _relation(words, last)
    return not (even or (kept and told)) and _is_passive(between) == _is_passive(beyond)


def _relation(words: Sequence[Token], at: int) -> str:
    """The small word of relation that stands before a word, with an article between them or not."""
    before = [token.low for token in words[max(0, at - 2) : at] if token.low not in LISTS.articles]
    return before[-1] if before and before[-1] in LISTS.relations else ""


def _once(words: Sequence[Token]) -> dict[str, int]:
    """Where each word stands that says something and is there but once."""
    places: dict[str, list[int]] = {}
    for at, token in enumerate(words):
        if token.content:
            places.setdefault(token.keys[0], []).append(at)
    return {key: at[0] for key, at in places.items() if len(at) == 1}


def _is_passive(words: Sequence[Token]) -> bool:
    done = (token.low.endswith("ed") or token.low in ACTS.participles for token in words)
    return any(done) and any(token.low in _BE for token in words)


def _changes(words: Sequence[Token]) -> frozenset[tuple[str, str]]:
    """What stands right behind "from" with what stands right behind the "to" that follows: "from 9 s to 4 s"."""
    found = set()
    for at, token in enumerate(words):
        if token.low == "from":
            behind = range(at + 1, min(at + 1 + _REACH, len(words)))
            ends = next((index for index in behind if words[index].low == "to"), len(words))
            one, other = (
                next((word for word in words[first : first + 2] if word.content), None)
                for first in (at + 1, ends + 1)
            )
            if one is not None and other is not None:
                found.add((one.keys[0], other.keys[0]))
    return frozenset(found)


def attached(words: Sequence[Token]) -> frozenset[tuple[str, str, str]]:
    """What a small word of relation attaches to what: "primary", "at" and "Leeds" of "the primary at Leeds"."""
    found = set()
    for at, token in enumerate(words[1:-1], 1):
        if token.low in LISTS.relations and words[at - 1].content:
            behind = next((word for word in words[at + 1 : at + 3] if word.low not in LISTS.articles), None)
            if behind is not None and behind.content:
                found.add((words[at - 1].keys[0], token.low, behind.keys[0]))
    return frozenset(found)


def _crossed(ours: frozenset[tuple[str, str, str]], theirs: frozenset[tuple[str, str, str]]) -> bool:
    """Whether of two things, each attached in one way, the place has the other one in each one's stead: "the primary at
    Leeds, the standby at York" and "the primary at York, the standby at Leeds"."""
    return any(
        {(one, how, that), (other, how, this)} <= theirs
        for one, how, this in ours - theirs
        for other, also, that in ours - theirs
        if how == also and one != other and this != that
    )


def _linked(text: str, words: Sequence[Token]) -> frozenset[tuple[tuple[str, ...], str, str]]:
    """The words between two things of one clause and the things, as keys. Of what stands behind a comma, "unlike A, B
    is restarted", the word before the first links the two. What does not say which is which links nothing: a form of
    "be" alone, a joint, and what the first thing stands behind, too ("in A in B")."""
    found: list[tuple[tuple[str, ...], str, str]] = []
    before = ""
    for at, first in enumerate(words):
        if first.low in LISTS.articles:
            continue
        link: list[str] = []
        for second in _side(text, words, at, 1, _MARK - {","}) if first.content else ():
            if second.low in LISTS.articles:
                continue
            apart = "," in text[first.end : second.start]
            if apart and (link or before not in _LEADING):
                break
            tells = apart or (before not in link and _EVEN.isdisjoint(link) and not _BE.issuperset(link))
            if tells and second.content and second.keys[0] != first.keys[0]:
                found.append(((before,) if apart else tuple(link), _thing(first), _thing(second)))
            if apart:
                break
            link.append(second.keys[0])
        before = first.low
    return frozenset(found)


def _preferred(text: str, words: Sequence[Token]) -> Iterator[tuple[frozenset[str], frozenset[str]]]:
    """Of each such word what only one side has, as keys."""
    for at, token in enumerate(words):
        if token.low in _PREFERRED and _PREFERRED[token.low] in {None, words[max(0, at - 1)].low}:
            before, after = (_keys([*_side(text, words, at, step)]) for step in (-1, 1))
            yield before - after, after - before


def _against(verb: _Verb, theirs: dict[str, list[_Verb]]) -> bool:
    same = {id(other): other for key in verb.keys for other in theirs.get(key, ())}.values()
    if not verb.subject or not same:
        return False
    wrong = [other.doing if verb.passive else other.done for other in same]
    right = [other.done if verb.passive else other.doing for other in same]
    if any(verb.subject & keys for keys in right) or any(other.goes_on for other in same):
        return False
    # "The worker stops" and "the worker is stopped" say one thing: nothing is stopped by it.
    alone = [
        other.passive is not verb.passive and not (verb if other.passive else other).has_object
        for other in same
    ]
    return any(verb.subject & keys and not one for keys, one in zip(wrong, alone, strict=True))


def _thing(token: Token) -> str:
    """A thing by its name, of one or several: a recorder is no recording."""
    return token.low.removesuffix("s") if token.low[-2:] != "ss" else token.low


def _verbs(text: str, words: Sequence[Token]) -> Iterator[_Verb]:
    for at, token in enumerate(words):
        if (
            not at
            or not token.content
            or _VERBS.isdisjoint(token.keys)
            or words[at - 1].low in LISTS.articles
        ):
            continue
        participle = token.low.endswith(("ed", "en", "t")) or token.low in ACTS.participles
        passive = participle and any(word.low in _BE for word in words[max(0, at - 2) : at])
        then = words[at + 1].low if at + 1 < len(words) else ""
        after = list(_side(text, words, at, 1))
        if participle and not passive and (not after or then in LISTS.relations or token.low in _NAMING):
            continue  # "a chart sorted by name" and "the team moved to Oslo" look alike, as "all rooms included" does
        before = [word for word in _side(text, words, at, -1) if word.content]
        agent = next((index for index, word in enumerate(after) if word.low == "by"), None)
        behind = after if agent is None or not passive else after[agent + 1 :]
        behind = list(takewhile(lambda word: word.low not in LISTS.relations, behind))
        doing, done = _keys(before), _keys(behind)
        if passive:
            doing, done = done if agent is not None else frozenset(), doing
        straight = takewhile(lambda word: word.low not in LISTS.joints, behind)
        has_object = not passive and any(word.content for word in straight)
        near = list(_side(text, words, at, -1))
        joined = len(near) == 1 and near[0].low in LISTS.joining
        goes_on = joined and ")" in text[max(0, near[0].start - 2) : near[0].start]
        yield _Verb(frozenset(token.keys), _keys(before[:1]), doing, done, passive, goes_on, has_object)


def _side(
    text: str, words: Sequence[Token], at: int, step: int, marks: frozenset[str] = _MARK
) -> Iterator[Token]:
    """The words to one side of another, the nearest first, up to a mark."""
    index = at
    while 0 <= index + step < len(words) and abs(index + step - at) <= _REACH:
        low, high = sorted((index, index + step))
        if not marks.isdisjoint(text[words[low].end : words[high].start]):
            return
        index += step
        yield words[index]


def _keys(words: Sequence[Token]) -> frozenset[str]:
    return frozenset(key for word in words if word.content for key in (*word.keys, *word.parts))
