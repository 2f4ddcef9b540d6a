"""Of whom a place says what a statement says: of its subject, of another one, or of somebody who only stands by."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import groupby
from operator import itemgetter

from vouchgate.ingest.support.tokens import LISTS, Token, parts_of

_STOPS = frozenset(".:;!?|*-\n")
_PARTS = frozenset(".;!?\n")  # between what is said of one and what is said of another
_SMALL_BETWEEN = 6  # characters between a subject and its verb: "is", "was", "will"


def subject_elsewhere(
    words: Sequence[Token],
    place: Sequence[Token],
    lost: Collection[Token],
    gone: Sequence[Token],
    source: str,
) -> bool:
    """Whether a statement begins with a word that the source has, but not at the place, which names its own subject: it
    says something else of that."""
    opens = 1 if words and words[0].low in LISTS.articles else 0
    if opens >= len(words) or words[opens] not in lost or words[opens] in gone:
        return False
    if place[0].low in LISTS.pronouns:
        return False
    then = next((word for word in words[opens + 1 :] if word.content), None)
    if then is None:
        return True
    if then is words[opens + 1] and then in lost:
        return False
    before = max(0, place[0].start - 3)
    for token in place:
        if then.keys[0] in token.keys and not _STOPS.isdisjoint(source[before : token.start]):
            return False  # "Chosen: keep it" and "- Keep it" have no subject
        before = token.end
    return True


def other_subject(words: Sequence[Token], place: Sequence[Token], gone: Sequence[Token]) -> bool:
    """Whether a statement begins with a word that the source has not, and somebody else does at the place what comes
    next: "Ada leads the team" is not said by "Ben leads the team"."""
    opens = next((at for at, token in enumerate(words) if token.content), len(words))
    if opens + 1 >= len(words) or words[opens] not in gone or not words[opens].shown[:1].isupper():
        return False
    then = next((token for token in words[opens + 1 :] if token.content), None)
    apart = words[opens + 1].start > words[opens].end + 1  # "Additionally, …"
    if then is None or apart or then.shown[:1].isupper():
        return False
    own = {key for token in words for key in token.keys}
    before: Token | None = None
    for token in place:
        if not token.content:
            continue
        if before is not None and not set(then.keys).isdisjoint(token.keys):
            others = before.shown[:1].isupper() and own.isdisjoint(before.keys)
            if others and token.start - before.end <= _SMALL_BETWEEN:
                return True
        before = token
    return False


def bystander(words: Sequence[Token], place: Sequence[Token], text: str) -> bool:
    """Whether a name of the statement stands only where it begins a part of the place with nothing else of it, behind
    all that the place has of the rest: "Its chair is Ada; Ben takes the minutes" does not make Ben the chair."""
    numbered = zip(parts_of(place, text, _PARTS), place, strict=True)
    parts = [[token for _, token in part] for _, part in groupby(numbered, key=itemgetter(0))]
    keys = [{key for token in part for key in (*token.keys, *token.parts)} for part in parts]
    named = {token for token in words if token.content and (token.name or token.shown[0].isupper())}
    rest = {key for token in words if token.content and token not in named for key in token.keys}
    others = [at for at, part in enumerate(keys) if not part.isdisjoint(rest)]
    for token in named:
        there = [at for at, part in enumerate(keys) if not part.isdisjoint(token.keys)]
        if there and others and there[0] > others[-1] and _begins(parts[there[0]], token):
            return True
    return False


def _begins(part: Sequence[Token], name: Token) -> bool:
    """Whether a part begins with a name, all of whose words have capitals."""
    for token in part:
        if not token.content or not token.shown[0].isupper():
            return False
        if not set(token.keys).isdisjoint(name.keys):
            return True
    return False
