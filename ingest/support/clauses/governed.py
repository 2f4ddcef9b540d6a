"""A word of the place that rules the act of a statement and is not in it: who "plans to sell" does not sell yet.

Between two words that a statement has side by side, or before its first, the place may have a word that makes of what
is done a plan, an attempt, a permission or somebody's wish, or says that it is done seldom (ADR-0086).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise

from vouchgate.ingest.support.clauses.acts import ACTS
from vouchgate.ingest.support.tokens import LISTS, Token

_NEAR = 4  # words of the place from the one that rules to the act
_PAST = frozenset({"been", "had", "has", "have", "was", "were", "already"})  # before what was done
_IS = frozenset({"is", "are", "was", "were"})
_MODAL = frozenset({"modals"})
_AUXILIARIES = 2  # words before a verb
_AS_IT_STANDS = ("adverbs", "clauses", "modals")
_DECIDING = ("we", "you")  # "we will use Redis" is how records decide, and "you will wear a helmet" is a rule
_OF_ALL = ("adverbs", "clauses")  # what may stand before the subject, too


def governed(words: Sequence[Token], place: Sequence[Token]) -> dict[str, float]:
    """Whether the place says of an act of the statement what that leaves out: by a modal ("will"), which may as well be
    how it is decided (`intended`), or by another word (`governed`). Linear in both."""
    found = {"intended": 0.0, "governed": 0.0}
    done = _done(words)
    if not any(
        token.low in LISTS.governing or (done and _is_due(place, at)) for at, token in enumerate(place)
    ):
        return found
    ours = [token for token in words if token.content]
    said = {token.low for token in words}.union(*(token.keys for token in words))
    before: dict[str, set[str]] = {key: set() for token in ours for key in token.keys}
    for one, two in pairwise(ours):
        for key in two.keys:
            before[key].update(one.keys)
    opens = ours[0].keys if ours else ()
    seen: set[str] = set()
    for at, token in enumerate(place):
        due = _is_due(place, at)
        forms = _MODAL if due else _forms(place, at, said)
        act = _act(forms, place[at + 1 + due : at + 1 + due + _NEAR]) if forms else None
        if act is not None:
            opened = not forms.isdisjoint(_OF_ALL)
            told = any(
                not seen.isdisjoint(before.get(key, ())) or (opened and key in opens) for key in act.keys
            )
            undone = not (done.isdisjoint(act.keys) or seen.isdisjoint(before))
            if (undone and "modals" in forms) or (told and "modals" not in forms):
                found["governed"] = 1.0
            elif told and not due:  # "is to be read" is how documents rule
                found["intended"] = 1.0
        seen.update(token.keys)
    return found


def _forms(place: Sequence[Token], at: int, said: Collection[str]) -> frozenset[str]:
    """What a word of the place rules that the statement has in no form; none where it is how people decide."""
    token = place[at]
    forms = LISTS.governing.get(token.low, frozenset())
    decides = bool(at) and "modals" in forms and place[at - 1].low in _DECIDING
    return frozenset() if decides or token.low in said or not set(token.keys).isdisjoint(said) else forms


def _is_due(place: Sequence[Token], at: int) -> bool:
    """Whether something "is to" be done."""
    return place[at].low in _IS and at + 1 < len(place) and place[at + 1].low == "to"


def _done(words: Sequence[Token]) -> frozenset[str]:
    """What a statement says was done, by the keys of its words: what has been moved is not what will be."""
    return frozenset(
        key
        for at, token in enumerate(words)
        if (token.low.endswith("ed") or token.low in ACTS.participles)
        and any(word.low in _PAST for word in words[max(0, at - _AUXILIARIES) : at])
        for key in token.keys
    )


def _act(forms: frozenset[str], behind: Sequence[Token]) -> Token | None:
    """What such a word rules, of the words behind it: "plans to sell", "stopped selling"."""
    first = next(iter(behind), None)
    fits = (
        not forms.isdisjoint(_AS_IT_STANDS)
        or ("infinitives" in forms and any(token.low == "to" for token in behind[:2]))
        or ("participles" in forms and first is not None and first.low.endswith("ing"))
    )
    acts = (token for token in behind if token.content and token.low not in LISTS.governing)
    return next(acts, None) if fits else None
