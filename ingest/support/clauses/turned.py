"""What a statement says and the source denies, or the other way round, in so many words: then the source refutes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from vouchgate.ingest.contradictions.lists import LISTS as RULES
from vouchgate.ingest.contradictions.lists import root_of
from vouchgate.ingest.support.source_text import SourceText
from vouchgate.ingest.support.tokens import LISTS, Token, is_denial, parts_of

# Of a statement's weight: a place that has so much says it, but for a denial. Lower, half of what it finds is wrong.
_MOST = 300  # sentences that are looked at for one statement
_SAME = 0.85
_LEAST = 2  # words that say something
_APART = frozenset(".;:!?")  # between what is said of two


def turned(
    words: Sequence[Token],
    place: Sequence[Token],
    met: Sequence[tuple[int, Sequence[int]]],
    denied: tuple[Collection[int], Collection[int]],
    source: str,
) -> bool:
    """Whether either the statement or the place denies what both say, and nothing else is denied there. `met` is where
    the place has the statement's words, `denied` the words of the two that denials reach.

    What stands on two sides of a mark is said of two. A limit makes less of a denial than it seems to be: "not kept for
    longer than 30 days" denies nothing of "kept for 30 days".
    """
    if sum(token.content for token in words) < _LEAST:
        return False
    answer = 1 if place and place[0].low == "no" else 0  # "No. It …"
    mine = Counter(token.low for token in words if is_denial(token))
    theirs = Counter(token.low for token in place[answer:] if is_denial(token))
    ours = (mine - theirs).total()
    if ours + (theirs - mine).total() != 1 or sum(map(_is_plain, (mine + theirs).elements())) != 1:
        return False
    head = min(denied[0 if ours else 1], default=None)
    if head is None or _is_limited(words, place, denies=bool(ours)):
        return False
    heads = next((places for at, places in met if at == head), ()) if ours else (head,)
    said = [places for _, places in met if places]
    if not (ours or any(head in places for places in said)):
        return False
    parts = parts_of(place, source, _APART)
    return any(all(any(parts[each] == parts[at] for each in places) for places in said) for at in heads)


def _is_plain(low: str) -> bool:
    """Whether a word denies what is said, and not a thing in it: "without a terminal" denies no more than that."""
    return low in LISTS.plain_denials or low.endswith("n't")


def _is_limited(words: Sequence[Token], place: Sequence[Token], *, denies: bool) -> bool:
    """Whether a denial is of less than the whole; `denies` says whether it is the statement's. A verb that denies by
    itself, "prevents", in one of the two makes a second denial."""
    roots = ({root_of(token.low) for token in each if token.content} for each in (words, place))
    if set.symmetric_difference(*roots) & RULES.preventing:
        return True
    denying, other = (words, place) if denies else (place, words)
    lows = {token.low for token in other}
    chosen = "over" in lows and any(RULES.key(token.low) in RULES.choosing for token in words)
    return chosen or "only" in lows or any(token.low in LISTS.limits for token in denying)


def says_as_much(wanted: Sequence[Token], missing: Sequence[Token]) -> bool:
    """Whether a place that lacks what is `missing` says the statement, as far as its words go."""
    return sum(token.weight for token in missing) <= (1 - _SAME) * sum(token.weight for token in wanted)


def said_elsewhere(
    wanted: Sequence[Token],
    found: Sequence[tuple[tuple[str, float], ...]],
    source: SourceText,
    place: tuple[int, int],
    *,
    denied: bool,
) -> bool:
    """Whether another sentence than those of the place says a statement, denied or not as that is; also where more of
    them share its rarest word than are looked at, so that a long list costs no more than a page."""
    known = [({key for key, _ in keys}, token) for token, keys in zip(wanted, found, strict=True)]
    places = [{at for key in keys for at in source.sentences_with(key)} for keys, _ in known if keys]
    rarest: set[int] = min(places, key=len, default=set())
    for count, at in enumerate(sorted(rarest)):
        if count >= _MOST:
            return True
        start, end = source.spans[at]
        if place[0] <= start and end <= place[1]:
            continue
        said = source.said(at)
        lost = [token for keys, token in known if keys.isdisjoint(said) and not source.titles(token, at)]
        if says_as_much(wanted, lost) and any(map(is_denial, source.within(at, at))) is denied:
            return True
    return False
