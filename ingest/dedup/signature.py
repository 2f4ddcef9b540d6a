"""Keys by which an index finds every set over a Jaccard threshold, and few others.

Two sets at or over the threshold p/q differ in few words: a set of n words and any partner differ in at
most D(n) = floor(n (q-p) / p) of them. Cut the words by a stable hash into more parts than that, and one
part is identical in both; its hash is the key. Recall is therefore exactly 1 at the threshold, and the
index never needs more than the candidates' texts to decide. (The pigeonhole family of PartEnum; Deng, Li,
Wen and Feng, VLDB 2015.) All arithmetic is in whole numbers: as floats, 23 of 25 is not 0.92.

Both sides must cut into the same number of parts, so sizes are grouped in classes that share one; a set
stores the keys of its own class and probes those of every class a partner could be in (three at most).

What many sets share a key by, a template, is refined by `ingest.dedup.template`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from xxhash import xxh3_64_intdigest

VERSION = 2  # of tokeniser and keys; an index built with another one is rebuilt


class SizeClass(NamedTuple):
    """Sets of `low` words and somewhat more, which are all cut into `parts`: one more than two partners in
    the class, or a partner of one, can differ in."""

    low: int
    parts: int


@dataclass(frozen=True, slots=True)
class SignatureKeys:
    """The keys of one set of words, signed and of 64 bits.

    `stored` are written with an item; `probes`, by size class, are looked up to find its partners. `differ`
    is the most words in which the set and a partner can differ, in all.
    """

    words: frozenset[str]
    scope: str
    threshold: Fraction
    differ: int
    own: SizeClass
    stored: tuple[int, ...]
    probes: tuple[tuple[SizeClass, tuple[int, ...]], ...]

    def all_probes(self) -> list[int]:
        """The probes of every class, in order."""
        return [key for _, keys in self.probes for key in keys]


@lru_cache(maxsize=8192)
def _size_class(size: int, threshold: Fraction) -> SizeClass:
    """The class that `size` belongs to."""
    low = 1
    while True:
        high = int(low / threshold)
        if size <= high:
            return SizeClass(low, int(high * (1 - threshold) / threshold) + 1)
        low = high + 1


class _Plan(NamedTuple):
    own: int
    classes: tuple[SizeClass, ...]
    differ: int


@lru_cache(maxsize=8192)
def _plan(size: int, numerator: int, denominator: int) -> _Plan:
    """The classes that a partner of a set of `size` can be in, and which of them is the set's own.

    The threshold comes as two integers, because hashing a fraction takes longer than all the rest.
    """
    threshold = Fraction(numerator, denominator)
    if not Fraction(1, 2) < threshold <= 1:
        raise ValueError(f"a duplicate threshold must be over 0.5 and at most 1, not {float(threshold)}")
    smallest = -int(-(size * threshold) // 1)
    largest = int(size / threshold)
    classes = tuple(sorted({_size_class(n, threshold) for n in range(max(1, smallest), largest + 1)}))
    own = classes.index(_size_class(size, threshold))
    return _Plan(own, classes, int(size * (1 - threshold) / threshold))


@lru_cache(maxsize=1 << 16)
def _hashed(word: str) -> tuple[int, bytes]:
    """A number that says which part a word belongs to, and its bytes. Most words come again and again.

    Unpaired surrogates cannot reach storage, but any string is taken.
    """
    encoded = word.encode("utf-8", "surrogatepass")
    return xxh3_64_intdigest(encoded), encoded


def _cut(hashed: list[tuple[int, bytes]], parts: int) -> list[bytes]:
    """The words of each part, as one text."""
    # NUL keeps words apart: it is refused in claims, and were it there, a shared key would cost one more
    # comparison.
    if parts == 1:
        return [b"\0".join([word for _, word in hashed])]
    buckets: list[list[bytes]] = [[] for _ in range(parts)]
    for number, word in hashed:
        buckets[number % parts].append(word)
    return [b"\0".join(bucket) for bucket in buckets]


def signed(value: int) -> int:
    """An unsigned number of 64 bits as the signed one that databases keep."""
    return value - (1 << 64) if value >> 63 else value


def signature_keys(words: frozenset[str], scope: str, threshold: Fraction) -> SignatureKeys:
    """Keys of one set of words. `scope` (the memory type) and the threshold are mixed in, so that only sets
    of one scope ever meet, and keys for two thresholds can lie in one table.

    `threshold` is a fraction in (1/2, 1], else ValueError; an empty set is found by sets of one size only.
    """
    numerator, denominator = threshold.numerator, threshold.denominator
    plan = _plan(max(1, len(words)), numerator, denominator)
    hashed = [_hashed(word) for word in sorted(words)]
    head = f"{VERSION}\0{scope}\0{numerator}/{denominator}"
    cut: dict[int, list[bytes]] = {}
    probes = []
    for of in plan.classes:
        texts = cut.get(of.parts) or cut.setdefault(of.parts, _cut(hashed, of.parts))
        start = f"{head}\0{of.low}\0".encode()
        keys = [signed(xxh3_64_intdigest(start + text, part)) for part, text in enumerate(texts)]
        probes.append((of, tuple(keys)))
    own, stored = probes[plan.own]
    return SignatureKeys(words, scope, threshold, plan.differ, own, stored, tuple(probes))
