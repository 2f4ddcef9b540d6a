"""How a statement is said: of how many, denied or not, surely, still, and by the source itself.

Words that qualify reach a few words on, up to a mark. What a place says only within the reach of one ("may be
encrypted", "formerly on port 80", "critics claim that …") it does not say of a statement that has no such word, nor the
other way round.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, pairwise
from types import MappingProxyType

from vouchgate.ingest.contradictions.lists import LISTS as RULES
from vouchgate.ingest.support.clauses.acts import ACTS, is_verb
from vouchgate.ingest.support.clauses.turned import turned
from vouchgate.ingest.support.source_text import SourceText
from vouchgate.ingest.support.tokens import LISTS, MAY, Token, denies_all_else, is_denial, parts_of

_OPENS = 2  # words before "that" which can only say something of what follows: "ADR-4 forbids that …"
_FRAME = 8  # words of a statement among which a clause may begin that it says something of
_MOST = 6  # sentences that may deny what another one says, of which so many are looked at
_REACH = 3  # words that say something after a negation or another word that qualifies
_MARK = frozenset(",.;:!?()[]|\n")
_END = frozenset(".;!?|\n")
_QUOTES = frozenset("\"'`“”‘’")
_TURNING = LISTS.joints - LISTS.joining  # with which something else is said
_DECIDES = frozenset({"chose", "decide", "decided", "vote", "voted"})  # for one thing and "against" another
_PREFERRED = {"instead": "of", "rather": "than"}
_BUT = frozenset({"but", "except", "excluding", "save"})
_EVERYTHING = frozenset({"all", "anybody", "anyone", "anything", "everybody", "everyone", "everything"})
# Of what is behind "that", these say that somebody thought of it.
_NOTIONS = frozenset({"alternative", "assumption", "hypothesis", "idea", "notion", "option", "suggestion"})
_THAT = 3  # words behind one of these
_LONGER = frozenset({"longer", "more"})  # behind "no"
# With one of these a place may say of something that it "used to" be so.
_ONCE_SO = LISTS.former | LISTS.never | {"used", "was", "were", "longer", "anymore", "had"}
_USED_TO = "used to"  # the one of `former` that is two words


def universals(words: Sequence[Token]) -> tuple[Token, ...]:
    """The words that say of all what may be true of some. "Every 15 minutes" says how often."""
    return tuple(
        token
        for token, after in zip(words, (*words[1:], None), strict=True)
        if token.low in LISTS.universals
        and not (after is not None and (after.number or after.low in LISTS.spans))
    )


def unsaid_universals(words: Sequence[Token], place: Sequence[Token]) -> tuple[Token, ...]:
    """Those that the place does not have in any form: "each" says "all", "nothing but" says "only", and what "must
    not" be is "never"."""
    if not (wanted := universals(words)):
        return ()
    theirs = {token.low for token in place}
    said = {LISTS.universals[token.low] for token in universals(place)}
    if "each" in theirs:
        said.add("all")
    for one, two in pairwise(place):
        if one.low in LISTS.never or (one.low in LISTS.ruling and two.low == "not"):
            said.add("never")
        if is_denial(one) and two.low in LISTS.excepting and two.low != "only":
            said.add("only")
        if two.low == "else" and (one.low == "one" or is_denial(one)):  # "by no one else"
            said.add("only")
    return tuple(token for token in wanted if LISTS.universals[token.low] not in said)


def qualified(
    text: str,
    words: Sequence[Token],
    place: Sequence[Token],
    source: str,
    akin: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> dict[str, float]:
    """Whether the statement denies what the place does not (`denial_unsaid`) or the other way round (`denial_said`),
    and whether the place says it only as possible, as it was, or as somebody's word. `akin` are the keys under which
    the source has a word of the statement, by its own first one."""
    theirs: dict[str, list[int]] = {}
    for at, token in enumerate(place):
        for key in token.keys if token.content else ():
            theirs.setdefault(key, []).append(at)
    met = [
        (at, next((theirs[key] for key in (*token.keys, *akin.get(token.keys[0], ())) if key in theirs), []))
        for at, token in enumerate(words)
        if token.content
    ]
    mine, others = _passed_over(text, words), _passed_over(source, place)
    denied, denies = _denied(text, words), _denied(source, place)
    # What something else is preferred to is denied as well: "A rather than B" says "A, and not B".
    denied, denies = (denied | mine if denies else denied), (denies | others if denied else denies)
    apart = _denied_apart(met, denied, denies)
    undone, undoes = _undone(text, words), denies | _undone(source, place)
    alike = frozenset() if apart else _denied_alike(text, words, source, place, met)
    plain = [(at, places) for at, places in met if words[at].keys[0] not in alike]
    unsaid = bool(denied) and not undoes
    unsaid |= _turned_condition(words, place)
    unsaid |= any(at in denied and places and undoes.isdisjoint(places) for at, places in plain)
    found = {
        "denial_unsaid": float(unsaid),
        "denial_said": float(_only_within(plain, denied | undone, denies)),
    }
    found["turned"] = float(turned(words, place, met, (denied, denies), source))
    possible = LISTS.possible
    if any(token.low in LISTS.conditions for token in words):
        possible -= LISTS.conditions
    for name, cues, own in (
        ("possible", possible, possible | LISTS.able),
        ("former", LISTS.former, LISTS.former),
        ("reported", LISTS.reported, LISTS.reported),
    ):
        ours, reach = _reached(text, words, own), _reached(source, place, cues)
        if name == "reported":
            ours, reach = ours | _thought_of(text, words), reach | _thought_of(source, place)
        found[name] = float(bool(reach) and _only_within(met, ours, reach))
    lows = {token.low for token in place}
    once = any(
        (token.low in LISTS.former and token.low.endswith("ly") and token.low not in lows)
        or (lows.isdisjoint(_ONCE_SO) and _used_to(text, words, at))
        for at, token in enumerate(words)
    )
    if any(token.low in LISTS.ending for token in words):
        found["former"] = 0.0
    found["former"] = max(found["former"], float(once))
    found["passed_over"] = float(bool(others) and _only_within(met, mine, others))
    found["framed"] = float(_framed(words, theirs))
    return found


def denied_elsewhere(
    text: str,
    words: Sequence[Token],
    found: Sequence[tuple[tuple[str, float], ...]],
    source: SourceText,
    place: tuple[int, int],
) -> bool:
    """Whether another sentence has all that the statement says, and denies it: then the source says both."""
    everywhere: set[int] | None = None
    for key, _ in chain.from_iterable(found):
        there = set(source.sentences_with(key))
        everywhere = there if everywhere is None else everywhere & there
        if not everywhere:
            return False
    return any(
        qualified(text, words, source.within(at, at), source.text)["denial_said"]
        for at in sorted(everywhere or ())[:_MOST]
        if not place[0] <= source.spans[at][0] < place[1]
    )


def _denied_alike(
    text: str,
    words: Sequence[Token],
    source: str,
    place: Sequence[Token],
    met: Sequence[tuple[int, Sequence[int]]],
) -> frozenset[str]:
    """The words of clauses that are denied as often as the clause of the place that has most of them: a denial may
    stand before its verb or behind its subject, "no fee is due" and "a fee is not due"."""
    ours, theirs = _clauses(text, words), _clauses(source, place)
    denials = Counter(clause for clause, token in zip(ours, words, strict=True) if is_denial(token))
    denied = Counter(clause for clause, token in zip(theirs, place, strict=True) if is_denial(token))
    shared: dict[int, Counter[int]] = {}
    for at, places in met:
        shared.setdefault(ours[at], Counter()).update({theirs[each] for each in places})
    alike = {
        clause
        for clause, count in shared.items()
        if denials[clause]
        and any(
            2 * number >= max(count.values()) and denied[each] == denials[clause]
            for each, number in count.items()
        )
    }
    return frozenset(words[at].keys[0] for at, _ in met if ours[at] in alike)


def _denied_apart(
    met: Sequence[tuple[int, Sequence[int]]], ours: frozenset[int], theirs: frozenset[int]
) -> bool:
    """Whether each side denies what the other says plainly, and both deny nothing in common: "in Redis and not in
    Memcached", "in Memcached and not in Redis"."""
    sides = {(at in ours, not theirs.isdisjoint(places)) for at, places in met if places}
    return {(True, False), (False, True)} <= sides and (True, True) not in sides


def _turned_condition(words: Sequence[Token], place: Sequence[Token]) -> bool:
    """Whether one of the two says "unless" of what the other says "if", and nothing is denied there."""
    ours, theirs = (any(token.low == "unless" for token in each) for each in (words, place))
    if ours is theirs:
        return False
    other = place if ours else words
    return any(token.low == "if" for token in other) and not any(map(is_denial, other))


def _clauses(text: str, words: Sequence[Token]) -> list[int]:
    """Of each word, in which clause it stands. Words joined by "and" or "or" may share their verb, and do here."""
    return parts_of(words, text, _MARK, _TURNING)


def _framed(words: Sequence[Token], theirs: Mapping[str, Sequence[int]]) -> bool:
    """Whether the statement says of a whole clause what the place does not: "it is a rumour that …"."""
    for at, token in enumerate(words[:_FRAME]):
        after = words[at + 1] if at + 1 < len(words) else token
        opens = at <= _OPENS or after.low in LISTS.opening or after.shown[:1].isupper()
        if token.low == "that" and at and opens:
            said = [word for word in words[:at] if word.content and LISTS.telling.isdisjoint(word.keys)]
            return any(all(key not in theirs for key in word.keys) for word in said)
    return False


def _only_within(
    met: Sequence[tuple[int, Sequence[int]]], ours: frozenset[int], theirs: frozenset[int]
) -> bool:
    """Whether a word that the statement says plainly stands in the place within a reach alone."""
    return any(at not in ours and places and theirs.issuperset(places) for at, places in met)


def _reached(text: str, words: Sequence[Token], cues: frozenset[str]) -> frozenset[int]:
    """Which words stand in the reach of such a word; of "until" those before it."""
    found: set[int] = set()
    for at, token in enumerate(words):
        if token.low in LISTS.wishes and not (at and words[at - 1].low in LISTS.deciding):
            continue
        if token.shown == MAY:
            continue
        if token.low in cues or (_USED_TO in cues and _used_to(text, words, at)):
            found.update(
                _before(text, words, at) if token.low in LISTS.backwards else _after(text, words, at)
            )
    return frozenset(found)


def _thought_of(text: str, words: Sequence[Token]) -> frozenset[int]:
    """Which words are of something that somebody thought of: "the idea that the office is open"."""
    return frozenset(
        index
        for at, token in enumerate(words)
        if token.low in _NOTIONS and any(word.low == "that" for word in words[at + 1 : at + 1 + _THAT])
        for index in _after(text, words, at)
    )


def _passed_over(text: str, words: Sequence[Token]) -> frozenset[int]:
    """What something else was preferred to: the words behind "instead of", "rather than" or, where somebody chooses,
    "over"."""
    chooses = any(RULES.key(token.low) in RULES.choosing for token in words)
    decides = any(token.low in _DECIDES for token in words)
    found: set[int] = set()
    for at, (token, after) in enumerate(pairwise(words)):
        if _PREFERRED.get(token.low) == after.low:
            found.update(_after(text, words, at + 1))
        elif (token.low == "over" and after.low != "to" and chooses) or (token.low == "against" and decides):
            found.update(_after(text, words, at))
    return frozenset(found)


def _undone(text: str, words: Sequence[Token]) -> frozenset[int]:
    """What somebody does without, drops or leaves out, as a denial says in other words: "drop the usage of X" and "X is
    no longer used"."""
    found: set[int] = set()
    for at, token in enumerate(words):
        if token.low in LISTS.undoing:
            found.update(_after(text, words, at))
            if at and words[at - 1].low in ACTS.be:
                found.update(_before(text, words, at))
    return frozenset(found)


def _used_to(text: str, words: Sequence[Token], at: int) -> bool:
    """Whether this is the "used" of what was so once: "it used to run", "the job used to run", with no other verb, and
    not the job that is "used to run" others."""
    near = words[max(0, at - 1) : at + 2]
    if len(near) < 3 or near[1].low != "used" or near[2].low != "to" or near[0].low in ACTS.auxiliary:
        return False
    if near[0].low in LISTS.once:
        return True
    sentences = parts_of(words, text, _END)
    others = (
        i for i, sentence in enumerate(sentences) if sentence == sentences[at] and i not in (at, at + 2)
    )
    return not any(is_verb(words, other) for other in others)


def _denied(text: str, words: Sequence[Token]) -> frozenset[int]:
    """Which words stand in the reach of a negation: the next few that say something, up to a mark."""
    found: set[int] = set()
    for at, token in enumerate(words):
        if at and token.low in _BUT and words[at - 1].low in _EVERYTHING:
            found.update(_after(text, words, at))  # "everything but mail"
        if not is_denial(token) or denies_all_else(words, at) or _is_quoted(text, token):
            continue
        if at and token.low in LISTS.verdicts and words[at - 1].low in LISTS.articles:
            continue  # "a wrong address" denies nothing
        found.update(_after(text, words, at))
        longer = token.low == "no" and at + 1 < len(words) and words[at + 1].low in _LONGER
        end = at + 1 if longer else at
        last = end + 1 == len(words) or not _MARK.isdisjoint(text[words[end].end : words[end + 1].start])
        if last:  # "…, which is wrong": nothing follows, so it denies what stands before it
            found.update(_before(text, words, at))
            if token.low.endswith("n't") or (at and words[at - 1].low in ACTS.auxiliary):
                found.update(_after(text, words, at, _END))  # "we do not, as of May, use it"
    return frozenset(found)


def _is_quoted(text: str, token: Token) -> bool:
    """Whether a word stands by itself in quotation marks or marks of code: keys with "no" in a row."""
    return text[token.start - 1 : token.start] in _QUOTES and text[token.end : token.end + 1] in _QUOTES


def _after(text: str, words: Sequence[Token], at: int, marks: frozenset[str] = _MARK) -> Iterator[int]:
    """The next few words behind `at` that say something, up to a mark."""
    reach = 0
    for index in range(at + 1, len(words)):
        if reach == _REACH or not marks.isdisjoint(text[words[index - 1].end : words[index].start]):
            return
        if words[index].low in _TURNING:
            return
        if words[index].content:
            yield index
            reach += 1


def _before(text: str, words: Sequence[Token], at: int) -> Iterator[int]:
    """The next few words before `at` that say something, from the nearest one on up to a mark."""
    reach = 0
    for index in range(at - 1, -1, -1):
        marked = not _MARK.isdisjoint(text[words[index].end : words[index + 1].start])
        if reach == _REACH or (reach and marked):
            return
        if words[index].content:
            yield index
            reach += 1
