"""Who is independent of whom. Two sources are one voice when they are on one site, share a text, or one cites the
other; and so is whoever is one with either of them. Union-find, so the order cannot matter.

Two texts are one when they share QUOTED_WORDS words in a row anywhere, when the shorter one stands in the other, or
when they are near-duplicates by the measure of the dedup check: a press release with other words in a few places.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction
from typing import TypeVar

from vouchgate.ingest.corroboration.history import Hit
from vouchgate.ingest.dedup.compare import jaccard
from vouchgate.ingest.language.words import RUN, runs, tokens
from vouchgate.ingest.scoring.score import QUOTED_WORDS, are_others
from vouchgate.ingest.scoring.sites import author_of

Key = TypeVar("Key", bound=Hashable)


class Groups:
    """A partition of 0 to `count` - 1, at first of single members."""

    def __init__(self, count: int) -> None:
        self._above = list(range(count))

    def of(self, member: int) -> int:
        """The lowest member of its group, by which the group is called."""
        while self._above[member] != member:
            self._above[member] = self._above[self._above[member]]
            member = self._above[member]
        return member

    def join(self, one: int, other: int) -> None:
        """Makes one group of two."""
        low, high = sorted((self.of(one), self.of(other)))
        self._above[high] = low

    def join_equal(self, keys: Iterable[tuple[int, Key]]) -> None:
        """Joins members that have a key in common."""
        first: dict[Key, int] = {}
        for member, key in keys:
            self.join(first.setdefault(key, member), member)


def text_groups(texts: Sequence[str], digests: Sequence[str], threshold: Fraction) -> tuple[str, ...]:
    """For each text the lowest digest of those that are one text with it. Linear in the texts but for the sets of
    words, which are compared two by two."""
    groups = Groups(len(texts))
    groups.join_equal(enumerate(digests))
    words = [RUN.findall(text.casefold()) for text in texts]
    groups.join_equal((at, run) for at, each in enumerate(words) for run in set(runs(each, QUOTED_WORDS)))
    short = [at for at, each in enumerate(words) if len(each) < QUOTED_WORDS]
    spaced = [f" {' '.join(each)} " for each in words]
    for at in short:
        for other in range(len(texts)):
            if spaced[at] in spaced[other]:  # an empty text cannot be told from any other
                groups.join(at, other)
    sets = [tokens(text) for text in texts]
    for one in range(len(texts)):
        for other in range(one):
            few, many = sorted((len(sets[one]), len(sets[other])))
            near = groups.of(one) != groups.of(other) and few >= threshold * many
            if near and jaccard(sets[one], sets[other]) >= threshold:
                groups.join(one, other)
    lowest: dict[int, str] = {}
    for at, digest in enumerate(digests):
        root = groups.of(at)
        lowest[root] = min(digest, lowest.get(root, digest))
    return tuple(lowest[groups.of(at)] for at in range(len(texts)))


def independent(hits: Sequence[Hit]) -> tuple[tuple[Hit, ...], ...]:
    """The hits by voices. A hit that says nothing joins nobody to anybody but by its site and text."""
    groups = Groups(len(hits))
    groups.join_equal((at, hit.group or hit.digest) for at, hit in enumerate(hits))
    for one in range(len(hits)):
        for other in range(one):
            if one_voice(hits[one].site, hits[one].cites, hits[other].site, hits[other].cites):
                groups.join(one, other)
    voices: dict[int, list[Hit]] = {}
    for at, hit in enumerate(hits):
        voices.setdefault(groups.of(at), []).append(hit)
    return tuple(map(tuple, voices.values()))


def one_voice(site: str, cites: Iterable[str], other: str, other_cites: Iterable[str]) -> bool:
    """Whether two sites are one author's, one hosts the other, or one of the two pages links to the other's site."""
    if not site or not other:
        return False
    return not are_others(site, other) or _names(cites, other) or _names(other_cites, site)


def _names(cites: Iterable[str], site: str) -> bool:
    return any(author_of(cited) == author_of(site) for cited in cites)
