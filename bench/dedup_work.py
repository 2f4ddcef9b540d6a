"""What the dedup bench asks: a store, the claims that come next, and what brute force finds for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bench.claims import PLANTED, Generator
from bench.dedup_truth import Truth
from bench.floods import FloodGenerator

NATURAL = 3_000  # claims as they come: the times are of these
NATURAL_JUDGED = 600  # of which so many are compared with brute force
PLANTED_EACH = 40  # near-duplicates of every kind; compared, but not in the times
NEW_SHARE = 0.9  # of natural claims
LENGTHS = ((1, 11), (12, 23), (24, 34), (35, 99))  # in each of these another number of words may differ
SAMPLED_OWNERS = 40  # of many: contenders in memory hold an index for each, and get half of the claims
FRESH = 800  # claims to insert
FLOOD_NATURAL, FLOOD_JUDGED = 400, 100
FLOOD_CHANGES = ("exact", "deletion", "insertion", "value")


class Query(NamedTuple):
    """A claim that comes to a store. `truth` is None when brute force was not asked."""

    text: str
    owner: int
    natural: bool
    truth: frozenset[int] | None


@dataclass(frozen=True)
class Work:
    """A store of texts with the owners they belong to, and the claims that come next."""

    texts: Sequence[str]
    owner_of: Sequence[int]
    queries: Sequence[Query]
    fresh: Sequence[tuple[int, str]]

    def rows(self) -> Iterator[tuple[int, str]]:
        """Owner and text of every claim in the store."""
        return zip(self.owner_of, self.texts, strict=True)

    def judged(self, owners: frozenset[int]) -> list[Query]:
        """The claims of these owners that brute force was asked about, in a random order of kinds."""
        return [query for query in self.queries if query.truth is not None and query.owner in owners]


def sampled(owners: int) -> frozenset[int]:
    """The owners whose claims every contender gets."""
    return frozenset(range(min(owners, SAMPLED_OWNERS)))


def natural_work(texts: Sequence[str], owners: int, truth: Truth) -> Work:
    """A store of these texts, dealt out to `owners` in turn. `truth` is over the texts."""
    source = _Source(texts, owners)
    mixed = [source.natural() for _ in range(NATURAL)]
    planted = [source.planted(kind) for kind in PLANTED for _ in range(PLANTED_EACH)]

    def judged(text: str, owner: int) -> frozenset[int]:
        return frozenset(number for number in truth.matches(text) if number % owners == owner)

    queries = [
        Query(text, owner, True, judged(text, owner) if number < NATURAL_JUDGED else None)
        for number, (owner, text) in enumerate(mixed)
    ]
    queries += [Query(text, owner, False, judged(text, owner)) for owner, text in planted]
    source.random.shuffle(queries)
    owner_of = [number % owners for number in range(len(texts))]
    return Work(texts, owner_of, queries, [source.natural() for _ in range(FRESH)])


class _Source:
    """New claims, and changed ones of the store."""

    def __init__(self, texts: Sequence[str], owners: int) -> None:
        self._texts, self._owners = texts, owners
        self._generator = Generator(f"queries {len(texts)} {owners}")
        self.random = self._generator.random

    def _owner(self) -> int:
        among_all = self.random.random() < 0.5
        return self.random.randrange(self._owners if among_all else len(sampled(self._owners)))

    def natural(self) -> tuple[int, str]:
        """A claim as it comes, and whose it is."""
        if self.random.random() < NEW_SHARE:
            return self._owner(), self._generator.claim()
        return self._changed(self.random.choice(PLANTED), (1, 99))

    def planted(self, kind: str) -> tuple[int, str]:
        """A near-duplicate of a stored claim, of any length alike."""
        return self._changed(kind, self.random.choice(LENGTHS))

    def _changed(self, kind: str, lengths: tuple[int, int]) -> tuple[int, str]:
        low, high = lengths
        tries = 0
        while True:
            tries += 1
            owner = self._owner()
            text = self._texts[self.random.randrange(owner, len(self._texts), self._owners)]
            if not low <= len(set(text.split())) <= high and tries % 1000:  # else whatever there is
                continue
            changed = self._generator.changed(kind, text)
            if changed is not None:
                return owner, changed
            if tries % 50 == 0:  # this kind of change needs a longer text
                low, high = 35, 99


@dataclass(frozen=True)
class Flooded:
    """An owner's claims: `alike` are of one template, the others as they come. `first` is the number that the
    first of `texts` has in the store."""

    source: FloodGenerator
    owner: int
    first: int
    alike: Sequence[str]
    texts: Sequence[str]


def flood_work(store: Flooded, truth: Truth) -> Work:
    """More of the template, and changed ones of it, that come to a flooded owner. `truth` is over the texts."""
    source, random = store.source, store.source.random

    def planted() -> str:
        return source.changed(random.choice(FLOOD_CHANGES), random.choice(store.alike))

    def natural() -> str:
        return source.claim() if random.random() < NEW_SHARE else planted()

    def judged(text: str, *, is_natural: bool) -> Query:
        return Query(
            text,
            store.owner,
            is_natural,
            frozenset(store.first + number for number in truth.matches(text)),
        )

    queries = [Query(natural(), store.owner, True, None) for _ in range(FLOOD_NATURAL)]
    queries += [judged(natural(), is_natural=True) for _ in range(FLOOD_JUDGED // 2)]
    queries += [judged(planted(), is_natural=False) for _ in range(FLOOD_JUDGED // 2)]
    random.shuffle(queries)
    owner_of = [store.owner] * len(store.texts)
    return Work(store.texts, owner_of, queries, [(store.owner, natural()) for _ in range(FRESH)])
