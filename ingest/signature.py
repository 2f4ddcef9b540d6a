"""Keys by which an index finds every set over a Jaccard threshold, and few others.

Two sets at or over the threshold p/q differ in few words: a set of n words and any partner differ in at
most D(n) = floor(n (q-p) / p) of them. Cut the words by a stable hash into more parts than that, and one
part is identical in both; its hash is the key. Recall is therefore exactly 1 at the threshold, and the
index never needs more than the candidates' texts to decide. (The pigeonhole family of PartEnum; Deng, Li,
Wen and Feng, VLDB 2015.) All arithmetic is in whole numbers: as floats, 23 of 25 is not 0.92.

Both sides must cut into the same number of parts, so sizes are grouped in classes that share one; a set
stores the keys of its own class and probes those of every class a partner could be in (three at most).
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from hashlib import blake2b

VERSION = 1  # of tokeniser and keys; an index built with another one is rebuilt


@dataclass(frozen=True, slots=True)
class SignatureKeys:
    """Signed 64-bit keys. `stored` are written with an item, `probes` are looked up to find its partners."""

    stored: tuple[int, ...]
    probes: tuple[int, ...]


@lru_cache(maxsize=8192)
def _size_class(size: int, threshold: Fraction) -> tuple[int, int]:
    """First size and number of parts of the class that `size` belongs to."""
    low = 1
    while True:
        high = int(low / threshold)
        if size <= high:
            return low, int(high * (1 - threshold) / threshold) + 1
        low = high + 1


@lru_cache(maxsize=8192)
def _plan(size: int, numerator: int, denominator: int) -> tuple[int, tuple[tuple[int, int], ...]]:
    """The classes that a partner of a set of `size` can be in, and which of them is the set's own.

    The threshold comes as two integers, because hashing a fraction takes longer than all the rest.
    """
    threshold = Fraction(numerator, denominator)
    if not Fraction(1, 2) < threshold <= 1:
        raise ValueError(f"a duplicate threshold must be over 0.5 and at most 1, not {float(threshold)}")
    smallest = -int(-(size * threshold) // 1)
    largest = int(size / threshold)
    classes = tuple(sorted({_size_class(n, threshold) for n in range(max(1, smallest), largest + 1)}))
    return classes.index(_size_class(size, threshold)), classes


def _class_keys(hashed: list[tuple[int, bytes]], scope: bytes, low: int, parts: int) -> list[int]:
    buckets: list[list[bytes]] = [[] for _ in range(parts)]
    for number, word in hashed:
        buckets[number % parts].append(word)
    keys = []
    for index, bucket in enumerate(buckets):
        message = b"%b\x00%d\x00%d\x00" % (scope, low, index) + b"\x00".join(bucket)
        keys.append(int.from_bytes(blake2b(message, digest_size=8).digest(), "big", signed=True))
    return keys


def signature_keys(words: frozenset[str], scope: str, threshold: Fraction) -> SignatureKeys:
    """Keys of one set of words. `scope` (the memory type) is mixed in, so only equal scopes ever meet.

    `threshold` is a fraction in (1/2, 1], else ValueError; an empty set is found by sets of one size only.
    """
    own, classes = _plan(max(1, len(words)), threshold.numerator, threshold.denominator)
    # NUL keeps words apart: it is refused in claims, and were it there, a shared key would cost one more
    # comparison. Unpaired surrogates cannot reach storage, but this function takes any string.
    encoded = sorted(word.encode("utf-8", "surrogatepass") for word in words)
    hashed = [(zlib.crc32(word), word) for word in encoded]
    scope_bytes = scope.encode()
    by_class = [_class_keys(hashed, scope_bytes, *size_class) for size_class in classes]
    probes = dict.fromkeys(key for keys in by_class for key in keys)
    return SignatureKeys(stored=tuple(dict.fromkeys(by_class[own])), probes=tuple(probes))
