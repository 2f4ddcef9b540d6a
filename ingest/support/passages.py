"""The passages of a text that bear on a claim.

Sentences are ranked as a search engine ranks documents (BM25, with the sentences of the text as its documents), for
the words of the claim without its citing. The best are kept with a sentence of context, in the order of the text.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from vouchgate.ingest.claims.citation import Citation
from vouchgate.ingest.claims.source import EXCERPT_CHARACTERS
from vouchgate.ingest.language.sentences import sentences
from vouchgate.ingest.language.terms import Word, words_of
from vouchgate.ingest.support.scope import scope_of
from vouchgate.ingest.support.topic import PARTS, WEIGHTS, content_words

GAP = "\n\n"  # between passages that do not follow one another
_SATURATION = 1.2  # BM25's k1: how soon more of the same word adds nothing
_LENGTH = 0.5  # BM25's b: how much a long sentence is held back
_IN_TITLE = 0.5  # a word of the title is what the whole text is about, and is kept beside the excerpt
_WEAK = 0.15  # of the best rank; sentences below have a common word or two by chance
_NEIGHBOUR = 0.25  # of a neighbour's rank: a sentence among others that fit is rather the place


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Passages of a text: `text`, and where each stretch of it comes from, as (start in `text`, start in the source,
    length)."""

    text: str
    stretches: tuple[tuple[int, int, int], ...]

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Where in the source's text the characters `start` to `end` of this excerpt are."""
        begin, source, length = next(
            (stretch for stretch in reversed(self.stretches) if stretch[0] <= start), (0, 0, len(self.text))
        )
        return source + start - begin, min(source + end - begin, source + length)


class RankedText:
    """A text whose sentences can be ranked for one claim after the other. Built in time linear in it; its words, and
    its sentences as `parts`, may be known already."""

    def __init__(
        self, text: str, words: Iterable[Word] | None = None, parts: Sequence[tuple[int, int]] | None = None
    ) -> None:
        self.text = text
        self.parts = sentences(text) if parts is None else parts
        average = sum(end - start for start, end in self.parts) / max(1, len(self.parts))
        self.held_back = [
            _SATURATION * (1 - _LENGTH + _LENGTH * (end - start) / average) for start, end in self.parts
        ]
        self._numbers: dict[str, list[int]] = {}  # of a key, which of all keys of the text it is
        self._begins: list[int] = []  # of each sentence, how many keys there are up to its first
        numbers, begins, number = self._numbers, self._begins, 0
        ends = [start for start, _ in self.parts[1:]] + [len(text) + 1]
        end = 0
        for key, start, _, _, more in words_of(text) if words is None else words:
            while start >= end and len(begins) < len(ends):
                end = ends[len(begins)]
                begins.append(number)
            for each in (key, *(part for part, _ in more)) if more else (key,):
                numbers.setdefault(each, []).append(number)
                number += 1

    def with_key(self, key: str) -> dict[int, tuple[int, int]]:
        """The sentences that have a key: which of all keys of the text it first is there, and how often it is."""
        found: dict[int, tuple[int, int]] = {}
        for number in self._numbers.get(key, ()):
            at = bisect_right(self._begins, number) - 1
            first, count = found.get(at, (number, 0))
            found[at] = first, count + 1
        return found


def passages(
    claim: str,
    citations: Sequence[Citation],
    title: str,
    text: str,
    ready: Callable[[], RankedText] | None = None,
) -> Excerpt:
    """The passages of `text` that bear on what the claim says of the source `citations` name: whole sentences, in
    order, at most EXCERPT_CHARACTERS. A text that fits is taken whole; one without a word of the claim from its
    beginning. `ready` gives the same text, where it is kept for other claims. Linear in the text."""
    if len(text) <= EXCERPT_CHARACTERS:
        return Excerpt(text, ((0, 0, len(text)),))
    ranked = RankedText(text) if ready is None else ready()
    ranks = _ranks(_wanted(scope_of(claim, citations).text, title), ranked)
    return _excerpt(text, ranked.parts, _chosen(ranked.parts, ranks))


def _wanted(claim: str, title: str) -> dict[str, tuple[str, float]]:
    """What to look for: a key of a text's word to the claim's word it stands for, and its weight."""
    in_title = {word.key for word in words_of(title)}
    wanted: dict[str, tuple[str, float]] = {}
    for word in content_words(words_of(claim)):
        weight = WEIGHTS[word.kind] * (_IN_TITLE if word.key in in_title else 1)
        wanted[word.key] = word.key, weight
        whole = sum(WEIGHTS[kind] for _, kind in word.parts)
        for key, kind in word.parts:
            wanted.setdefault(key, (key, PARTS * weight * WEIGHTS[kind] / whole))
    return wanted


def _ranks(wanted: dict[str, tuple[str, float]], ranked: RankedText) -> list[float]:
    """BM25 of every sentence; 0 for one without a word that is looked for."""
    count = len(ranked.parts)
    terms: dict[int, list[tuple[int, float]]] = {}
    for key, (_, weight) in wanted.items():
        places = ranked.with_key(key)
        rarity = math.log(1 + (count - len(places) + 0.5) / (len(places) + 0.5))
        for at, (first, n) in places.items():
            worth = weight * rarity * n * (_SATURATION + 1) / (n + ranked.held_back[at])
            terms.setdefault(at, []).append((first, worth))
    ranks = [0.0] * count
    for at, found in terms.items():
        ranks[at] = sum(
            [worth for _, worth in sorted(found)]
        )  # in the order of the text, so that sums are equal
    return ranks


def _chosen(parts: Sequence[tuple[int, int]], ranks: Sequence[float]) -> set[int]:
    """The best sentences with one of context on each side, as many as fit; without any, those at the beginning."""

    def around(index: int) -> float:
        beside = [ranks[other] for other in (index - 1, index + 1) if 0 <= other < len(ranks)]
        return ranks[index] + _NEIGHBOUR * sum(beside)

    weak = _WEAK * max(ranks, default=0)
    best = sorted(
        (index for index, rank in enumerate(ranks) if rank > weak), key=lambda at: (-around(at), at)
    )
    order = [near for index in best for near in (index, index - 1, index + 1)] or range(len(parts))
    chosen: set[int] = set()
    left = EXCERPT_CHARACTERS
    for index in order:
        if index in chosen or not 0 <= index < len(parts):
            continue
        cost = parts[index][1] - parts[index][0] + len(GAP)
        if cost <= left:
            chosen.add(index)
            left -= cost
    return chosen


def _excerpt(text: str, parts: Sequence[tuple[int, int]], chosen: set[int]) -> Excerpt:
    """The chosen sentences as one text. Those that follow one another stay joined as they were."""
    pieces: list[str] = []
    stretches: list[tuple[int, int, int]] = []
    length = 0
    last = -2
    for index in sorted(chosen):
        start, end = parts[index]
        gap = GAP if pieces else ""
        if index == last + 1 and start - parts[last][1] <= len(GAP):
            gap = text[parts[last][1] : start]
        pieces += (gap, text[start:end])
        length += len(gap)
        stretches.append((length, start, end - start))
        length += end - start
        last = index
    return Excerpt("".join(pieces), tuple(stretches))
