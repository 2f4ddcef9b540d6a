"""What belongs together: whether the words of one clause of a statement stand in one clause of the place.

"Ravens eat fish and gulls eat corn" has every word of "gulls eat fish, ravens eat corn". A place says a clause where
one of its own clauses has what tells that clause from the others; words that it has only on either side of a joint it
says of two things.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from functools import partial
from itertools import combinations, zip_longest

from vouchgate.ingest.contradictions.lists import LISTS as MEASURES
from vouchgate.ingest.support.clauses.acts import ACTS
from vouchgate.ingest.support.tokens import LISTS, Token

_MARK = frozenset(",.;!?()–—")
_SHARES = frozenset({"#0.5"})  # half
_SHARED = frozenset({"%", "percent", "per", "percentage"})
_LABEL = 40  # characters of a label in brackets
_SAME = 3  # words that two clauses have in common when they compare the same
_FRAME = 0.4  # of the words of two clauses of a place, from which on they say the same of two things


def clauses(text: str, words: Sequence[Token]) -> list[int]:
    """Of each word, in which clause it stands: the first is 0. A row of a table is one."""
    found, clause = [], 0
    for at, token in enumerate(words):
        if at:
            between = text[words[at - 1].end : token.start]
            if between.strip() == "(" and _is_label(text, words, at):
                between = " "  # "Ada Holm (minutes)" says it of Ada Holm
            if token.low in LISTS.joints or not _MARK.isdisjoint(between) or _new_line(between):
                clause += 1
        found.append(clause)
    return found


def _is_label(text: str, words: Sequence[Token], at: int) -> bool:
    """Whether what stands in brackets from a word on is a word or two behind a name."""
    end = text.find(")", words[at].start, words[at].start + _LABEL)
    return (
        end >= 0
        and words[at - 1].shown[:1].isupper()
        and sum(each.start < end for each in words[at : at + 3]) < 3
    )


def _new_line(between: str) -> bool:
    return "\n" in between and (between.count("\n") > 1 or not between.isspace())


def binding(text: str, words: Sequence[Token], source: str, place: Sequence[Token]) -> dict[str, float]:
    """Whether clauses of the statement exchange what the place says in two (`crossed`), whether one has what two
    clauses of the place say of two things (`mixed`), and a number that its own clause of the place has another one
    for (`borrowed`). Linear in the words, but for the clauses, two by two."""
    there: dict[str, set[int]] = defaultdict(set)
    their_clauses = clauses(source, place)
    sizes = Counter(clause for token, clause in zip(place, their_clauses, strict=True) if token.content)
    for token, clause in zip(place, their_clauses, strict=True):
        for key in (*token.keys, *token.parts) if token.content else ():
            there[key].add(clause)
    here: dict[str, set[int]] = defaultdict(set)
    own: dict[int, dict[str, frozenset[int]]] = defaultdict(dict)
    our_clauses = clauses(text, words)
    for token, clause in zip(words, our_clauses, strict=True):
        if token.content:
            stands = next((there[key] for key in token.keys if key in there), None)
            if stands is not None:
                here[token.keys[0]].add(clause)
                own[clause][token.keys[0]] = frozenset(stands)
    resuming = _resuming(place, their_clauses)
    alone = {key for key, at in here.items() if len(at) == 1}
    return {
        "crossed": float(_crossed(own, alone)),
        "mixed": float(any(_mixed(met, sizes, resuming) for met in own.values())),
        "compared": float(_compared_otherwise(words, our_clauses, place, their_clauses)),
        "borrowed": float(_borrowed(own, words, place, their_clauses)),
    }


def _crossed(own: dict[int, dict[str, frozenset[int]]], alone: set[str]) -> bool:
    """Whether two clauses both take from the same two clauses of the place, by words that only one of each has."""
    taken = {
        clause: {at for key, places in met.items() if key in alone and len(places) == 1 for at in places}
        for clause, met in own.items()
    }
    return any(len(one & two) > 1 for one, two in combinations(taken.values(), 2))


def _mixed(met: Mapping[str, frozenset[int]], sizes: Mapping[int, int], resuming: frozenset[int]) -> bool:
    """Whether one clause has words of two that say the same of two things. One that resumes what was named, "a key …
    The key …", says more of the one thing."""
    apart = {next(iter(places)) for places in met.values() if len(places) == 1} - resuming
    for one, two in combinations(apart, 2):
        frame = sum(one in places and two in places for places in met.values())
        if frame and frame >= _FRAME * max(sizes[one], sizes[two]):
            return True
    return False


def _resuming(place: Sequence[Token], their_clauses: Sequence[int]) -> frozenset[int]:
    """The clauses of a place that begin with a thing that one before them has, by its article."""
    found: set[int] = set()
    named: set[str] = set()
    for at, (token, clause) in enumerate(zip(place, their_clauses, strict=True)):
        opens = at > 0 and (at == 1 or their_clauses[at - 2] != clause) and their_clauses[at - 1] == clause
        if opens and place[at - 1].low in LISTS.definite and not named.isdisjoint(token.keys):
            found.add(clause)
        named.update(token.keys)
    return frozenset(found)


def _compared_otherwise(
    words: Sequence[Token], our_clauses: Sequence[int], place: Sequence[Token], their_clauses: Sequence[int]
) -> bool:
    """Whether a clause says "more" where the clause of the place that has most of its words says "less". What stands
    right behind such a word tells what there is more of, and is looked at with it (`follows_another`)."""
    theirs: dict[int, set[str]] = defaultdict(set)
    for token, clause in zip(place, their_clauses, strict=True):
        theirs[clause] |= {token.low, *token.keys}
    ours: dict[int, set[str]] = defaultdict(set)
    lows: dict[int, set[str]] = defaultdict(set)
    for token, after, clause in zip(words, (*words[1:], None), our_clauses, strict=True):
        if after is None or not after.content:
            lows[clause].add(token.low)
        ours[clause].update(token.keys[:1] if token.content else ())
    for these, those in ACTS.pairs:
        for clause, keys in ours.items():
            if lows[clause].isdisjoint(these) or not keys:
                continue
            near = max(theirs.values(), key=partial(_common, keys), default=set[str]())
            if len(keys & near) >= _SAME and near & those and not near & these:
                return True
    return False


def _common(one: Set[str], other: Set[str]) -> int:
    return len(one & other)


def _borrowed(
    own: dict[int, dict[str, frozenset[int]]],
    words: Sequence[Token],
    place: Sequence[Token],
    their_clauses: Sequence[int],
) -> bool:
    """Whether a clause has a number of one clause of the place, and its other words of another that has a number
    instead."""
    measures: dict[int, set[str]] = defaultdict(set)
    for token, after, clause in zip(place, (*place[1:], None), their_clauses, strict=True):
        if token.number:
            measures[clause].add(_measure(token, after))
    units = {one.keys[0]: _measure(one, two) for one, two in zip_longest(words, words[1:]) if one.number}
    for met in own.values():
        count = Counter(at for key, places in met.items() if key not in units for at in places)
        most = max(count.values(), default=0)
        best = {at for at, number in count.items() if number == most}
        for key, places in met.items():
            unit = units.get(key)
            if unit and best and best.isdisjoint(places) and all(unit in measures[at] for at in best):
                return True
    return False


def _measure(number: Token, unit: Token | None) -> str:
    """What a number measures, by the word behind it."""
    if number.keys[0] in _SHARES:
        return "share"
    if unit is None:
        return ""
    if unit.low in _SHARED:
        return "share"
    known = MEASURES.units.get(unit.low) or MEASURES.units.get(unit.low.removesuffix("s"))
    return known[0] if known else unit.keys[0]
