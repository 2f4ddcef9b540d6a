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
# Before what may yet be done.
_OPEN = frozenset({"should", "must", "may", "can", "could", "might", "would", "shall"})
_COMING = frozenset({"will", "shall", "going"})
_NOT_ACTIVE = ACTS.be | {"by", ""}  # behind what was done to something
_ASKED = 3  # words behind one that asks, in which "to" stands
_PREVENTED = 6  # words before "from", among which a verb says that something is kept from it
_AUXILIARIES = 2  # words before a verb
_AS_IT_STANDS = ("adverbs", "clauses", "modals")
_DECIDING = ("we", "you")  # "we will use Redis" is how records decide, and "you will wear a helmet" is a rule
_OF_ALL = ("adverbs", "clauses", "reports")  # what may stand before the subject, too


def governed(words: Sequence[Token], place: Sequence[Token]) -> dict[str, float]:
    """Whether the place says of an act of the statement what that leaves out: by a modal ("will"), which may as well be
    how it is decided (`intended`), or by another word (`governed`). Linear in both."""
    found = {"intended": 0.0, "governed": 0.0}
    done = _done(words)
    if _is_to_come(words, place):
        found["governed"] = 1.0
    if not done and not any(token.low in LISTS.governing or token.low == "from" for token in place):
        return found
    if _only_due(done, place):
        found["governed"] = 1.0
    ours = [token for token in words if token.content]
    said = frozenset({token.low for token in words}.union(*(token.keys for token in words)))
    before: dict[str, set[str]] = {key: set() for token in ours for key in token.keys}
    for one, two in pairwise(ours):
        for key in two.keys:
            before[key].update(one.keys)
    opens = ours[0].keys if ours else ()
    seen: set[str] = set()
    for at, token in enumerate(place):
        if _wished(place, at, said, before) or _prevented(place, at, said, before):
            found["governed"] = 1.0
        due = _is_due(place, at)
        ruled = bool(done) and token.low in LISTS.ruling and token.low not in said  # what "must" be done
        forms = _MODAL if due or ruled else _forms(place, at, said)
        behind = place[at + 1 + due : at + 1 + due + _NEAR]
        act = _act(forms, behind) if forms else None
        if act is not None:
            opened = not forms.isdisjoint(_OF_ALL)
            asked = {key for word in behind[: behind.index(act)] for key in word.keys}
            told = any(
                not (seen | asked).isdisjoint(before.get(key, ())) or (opened and key in opens)
                for key in act.keys
            )
            undone = not (done.isdisjoint(act.keys) or seen.isdisjoint(before))
            if (undone and "modals" in forms) or (told and "modals" not in forms):
                found["governed"] = 1.0
            elif told and not (due or ruled):  # "is to be read" is how documents rule
                found["intended"] = 1.0
        seen.update(token.keys)
    return found


def _forms(place: Sequence[Token], at: int, said: Collection[str]) -> frozenset[str]:
    """What a word of the place rules that the statement has in no form; none where it is how people decide."""
    token = place[at]
    forms = LISTS.governing.get(token.low, frozenset())
    decides = bool(at) and "modals" in forms and place[at - 1].low in _DECIDING
    return frozenset() if decides or token.low in said or not set(token.keys).isdisjoint(said) else forms


def _is_to_come(words: Sequence[Token], place: Sequence[Token]) -> bool:
    """Whether the statement says will be done what the place says was done, and nothing there is still to come."""
    coming = [
        at
        for at, token in enumerate(words)
        if token.low in _COMING
        and (token.low != "going" or (words[at + 1 : at + 2] and words[at + 1].low == "to"))
    ]
    if not coming or any(token.low in _COMING or token.low in LISTS.coming for token in place):
        return False
    done = _done(place)
    behind = words[coming[0] + 1 : coming[0] + 2 + _NEAR]
    return any(not done.isdisjoint(token.keys) for token in behind if token.content)


def _wished(place: Sequence[Token], at: int, said: frozenset[str], ours: Collection[str]) -> bool:
    """Whether somebody by name, of whom the statement does not speak, wanted to do what it says."""
    if not at or at + 1 == len(place) or place[at + 1].low != "to":
        return False
    token, by = place[at], place[at - 1]
    named = by.content and by.shown[:1].isupper() and said.isdisjoint((by.low, *by.keys, token.low))
    if not named or "infinitives" not in LISTS.governing.get(token.low, ()):
        return False
    behind = place[at + 2 : at + 2 + _NEAR]
    act = next((word for word in behind if word.content and ACTS.light.isdisjoint(word.keys)), None)
    return act is not None and any(key in ours for key in act.keys)


def _prevented(place: Sequence[Token], at: int, said: frozenset[str], ours: Collection[str]) -> bool:
    """Whether something is kept "from" doing what the statement says, which has nothing of that."""
    behind = place[at + 1 : at + 2]
    if place[at].low != "from" or "from" in said or not behind or not behind[0].low.endswith("ing"):
        return False
    by = place[max(0, at - _PREVENTED) : at]
    return any(not LISTS.preventing.isdisjoint(word.keys) for word in by) and any(
        key in ours for key in behind[0].keys
    )


def _only_due(done: Collection[str], place: Sequence[Token]) -> bool:
    """Whether the place has something that was done only as what somebody is to do, or not to."""
    there: dict[str, set[bool]] = {}
    for at, token in enumerate(place):
        before = {word.low for word in place[max(0, at - 2) : at]}
        decided = {word.low for word in place[max(0, at - 3) : at]} & LISTS.decided
        for key in token.keys if token.content else ():
            open_ = not decided and ("to" in before or not before.isdisjoint(_OPEN))
            there.setdefault(key, set()).add(open_ and not token.low.endswith("ed"))
    return any(there.get(key) == {True} for key in done)


def _is_due(place: Sequence[Token], at: int) -> bool:
    """Whether something "is to" be done."""
    return place[at].low in _IS and at + 1 < len(place) and place[at + 1].low == "to"


def _done(words: Sequence[Token]) -> frozenset[str]:
    """What a statement says was done, by the keys of its words: what has been moved is not what will be."""
    return frozenset(key for at in range(len(words)) if _is_done(words, at) for key in words[at].keys)


def _is_done(words: Sequence[Token], at: int) -> bool:
    low, before = words[at].low, words[max(0, at - _AUXILIARIES) : at]
    if low in ACTS.past and low not in ACTS.participles:
        return True
    regular = low.endswith("ed") and low != words[at].keys[0]  # "need" has no such ending
    if not (regular or low.endswith("ing") or low in ACTS.participles):
        return False
    if any(word.low in _PAST for word in before) and (not low.endswith("ing") or before[-1].low == "been"):
        return True
    # "Quality removed it": a verb in the past right behind who did it, and no other one beside it.
    if not ACTS.auxiliary.isdisjoint(word.low for word in words):
        return False
    behind = words[at + 1].low if at + 1 < len(words) else ""
    does = bool(before) and before[-1].content and not before[-1].low.endswith("ly")
    return (regular or low in ACTS.past) and does and behind not in _NOT_ACTIVE


def _act(forms: frozenset[str], behind: Sequence[Token]) -> Token | None:
    """What such a word rules, of the words behind it: "plans to sell", "stopped selling"."""
    from_ = bool(behind) and behind[0].low == "from"  # "is prevented from selling"
    to = next((at for at, token in enumerate(behind[:_ASKED]) if token.low == "to"), None)
    if forms.isdisjoint(_AS_IT_STANDS) and "infinitives" in forms and to is not None:
        behind = behind[to:]  # "asks the mill to sell"
    fits = (
        not forms.isdisjoint(_AS_IT_STANDS)
        or ("reports" in forms and any(word.low == "that" for word in behind[:1]))
        or ("infinitives" in forms and to is not None)
        or ("participles" in forms and any(word.low.endswith("ing") for word in behind[: 1 + from_]))
    )
    acts = (
        token
        for token in behind
        if token.content and token.low not in LISTS.governing and ACTS.light.isdisjoint(token.keys)
    )
    return next(acts, None) if fits else None
