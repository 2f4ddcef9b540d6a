"""What of a statement only one of the sentences of its place has.

A place of two sentences says one thing where the second goes on with what the first says. "Backups are encrypted. The
gateway stores sessions in Redis." does not say that sessions are encrypted: a word that stands beside nothing else of
the statement is said of something else (ADR-0095).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from vouchgate.ingest.support.clauses.instead import Compared, added, replaced, tells_how
from vouchgate.ingest.support.source_text import SourceText
from vouchgate.ingest.support.tokens import LISTS, Token, is_denial

_NEAR = 3  # words behind a negation, or "for example", that it is about
_EXAMPLE = frozenset({"e.g", "eg", "example", "instance", "like", "such"})
_OPENING = 3  # words of a sentence among which one shows that it goes on


def stray(laid: Compared, source: SourceText, first: int, end: int) -> bool:
    """Whether the place, from the sentence `first` to the offset `end`, has a number or another word of the statement
    only where it is said of something else."""
    return _number_alone(laid, _sentences(source, first, end)) or _added_from_beside(laid, source, first, end)


def _sentences(source: SourceText, first: int, end: int) -> list[frozenset[str]]:
    """The words of each sentence of a place; one that begins small was broken at its line, and goes on."""
    found: list[frozenset[str]] = []
    for at in range(first, len(source.spans)):
        start, stop = source.spans[at]
        if stop > end:
            break
        if found and source.text[start].islower():
            found[-1] |= source.said(at)
        else:
            found.append(source.said(at))
    return found


def _number_alone(laid: Compared, lines: Sequence[frozenset[str]]) -> bool:
    """Whether the place has a number only in a sentence with nothing else of the statement, but for what is counted;
    one sentence alone is the place itself."""
    if len(lines) < 2 or not any(token.number for token in laid.wanted):
        return False
    counted = {two.keys[0] for one, two in pairwise(laid.words) if one.number}
    met = list(zip(laid.wanted, laid.found, strict=True))
    others = [keys for token, keys in met if not token.number and token.keys[0] not in counted]
    beside = frozenset[str]().union(*others)
    return any(
        all(beside.isdisjoint(line) for line in lines if not line.isdisjoint(keys))
        for token, keys in met
        if token.number and any(not line.isdisjoint(keys) for line in lines)
    )


def _added_from_beside(laid: Compared, source: SourceText, first: int, end: int) -> bool:
    """Whether of the two sentences of a place, of which the first is `first`, the one with more of the statement has
    other words in the stead of those that only the other one has, or none, so that they are added to it (`replaced`,
    `added`). These stand beside nothing else of the statement where they are added, or tell how it is done. What a
    claim denies, or gives as an example, it may have from there."""
    last = first + 1
    if last >= len(source.spans) or source.spans[last][1] > end or _goes_on(source, first):
        return False
    lines = source.said(first), source.said(last)
    only: tuple[list[Token], list[Token]] = [], []
    shared = False
    for token, keys in zip(laid.wanted, laid.keys, strict=True):
        here = [not line.isdisjoint(keys) for line in lines]
        if any(here) and not all(here):
            only[here[1]].append(token)
        shared = shared or all(here)
    lesser = len(only[0]) >= len(only[1])
    main = first if lesser else last
    # A name may be carried on from a sentence before.
    beside = [token for token in only[lesser] if not (token.name and source.before(token, main))]
    if not beside or any(_is_aside(laid.words, token) for token in beside):
        return False
    alone = laid.without(beside, source.within(main, main))
    if main == first and replaced(alone):  # behind another sentence "the maker" may be the one that it names
        return True
    return not shared and (any(map(tells_how, beside)) or added(alone))


def _goes_on(source: SourceText, first: int) -> bool:
    """Whether a sentence is a heading or leads to the next, or that goes on with it, by its form or by a pronoun."""
    head, tail = (source.text[slice(*source.spans[each])] for each in (first, first + 1))
    if head[0] in "#|" or head.rstrip("*_ ").endswith(":") or tail[0].islower() or tail[0] in "|#":
        return True
    opening = {word.lower().strip(",.") for word in tail.lstrip("-*+ ").split()[:_OPENING]}
    return not opening.isdisjoint(LISTS.resuming)


def _is_aside(words: Sequence[Token], token: Token) -> bool:
    """Whether a word is denied, or an example."""
    at = words.index(token)
    return any(is_denial(word) or word.low in _EXAMPLE for word in words[max(0, at - _NEAR) : at])
