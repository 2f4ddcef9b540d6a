"""How a statement is said: of how many, denied or not, surely, still, and by the source itself.

Words that qualify reach a few words on, up to a mark. What a place says only within the reach of one ("may be
encrypted", "formerly on port 80", "critics claim that …") it does not say of a statement that has no such word, nor the
other way round.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from vouchgate.ingest.support.tokens import LISTS, Token

_FRAME = 8  # words of a statement among which a clause may begin that it says something of
_REACH = 3  # words that say something after a negation or another word that qualifies
_MARK = frozenset(",.;:!?()[]|\n")


def universals(words: Sequence[Token]) -> tuple[Token, ...]:
    """The words that say of all what may be true of some. "Every 15 minutes" says how often."""
    return tuple(
        token
        for token, after in zip(words, (*words[1:], None), strict=True)
        if token.low in LISTS.universals
        and not (after is not None and (after.number or after.low in LISTS.spans))
    )


def qualified(text: str, words: Sequence[Token], place: Sequence[Token], source: str) -> dict[str, float]:
    """Whether the statement denies what the place does not (`denial_unsaid`) or the other way round (`denial_said`),
    and whether the place says it only as possible, as it was, or as somebody's word."""
    theirs: dict[str, list[int]] = {}
    for at, token in enumerate(place):
        for key in token.keys if token.content else ():
            theirs.setdefault(key, []).append(at)
    met = [
        (at, next((theirs[key] for key in token.keys if key in theirs), []))
        for at, token in enumerate(words)
        if token.content
    ]
    denied, denies = _denied(text, words), _denied(source, place)
    unsaid = bool(denied) and not denies
    unsaid |= any(at in denied and places and denies.isdisjoint(places) for at, places in met)
    found = {"denial_unsaid": float(unsaid), "denial_said": float(_only_within(met, denied, denies))}
    for name, cues in (("possible", LISTS.possible), ("former", LISTS.former), ("reported", LISTS.reported)):
        reach = _reached(source, place, cues)
        found[name] = float(bool(reach) and _only_within(met, _reached(text, words, cues), reach))
    found["framed"] = float(_framed(words, theirs))
    return found


def _framed(words: Sequence[Token], theirs: Mapping[str, Sequence[int]]) -> bool:
    """Whether the statement says of a whole clause what the place does not: "it is a rumour that …"."""
    for at, token in enumerate(words[:_FRAME]):
        after = words[at + 1] if at + 1 < len(words) else token
        if token.low == "that" and at and (after.low in LISTS.opening or after.shown[:1].isupper()):
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
        if token.low in cues:
            found.update(
                _before(text, words, at) if token.low in LISTS.backwards else _after(text, words, at)
            )
    return frozenset(found)


def _denied(text: str, words: Sequence[Token]) -> frozenset[int]:
    """Which words stand in the reach of a negation: the next few that say something, up to a mark."""
    found: set[int] = set()
    for at, token in enumerate(words):
        if token.low not in LISTS.negations and not token.low.endswith("n't"):
            continue
        found.update(_after(text, words, at))
        last = at + 1 == len(words) or not _MARK.isdisjoint(text[token.end : words[at + 1].start])
        if last:  # "…, which is wrong": nothing follows, so it denies what stands before it
            found.update(_before(text, words, at))
    return frozenset(found)


def _after(text: str, words: Sequence[Token], at: int) -> Iterator[int]:
    """The next few words behind `at` that say something, up to a mark."""
    reach = 0
    for index in range(at + 1, len(words)):
        if reach == _REACH or not _MARK.isdisjoint(text[words[index - 1].end : words[index].start]):
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
