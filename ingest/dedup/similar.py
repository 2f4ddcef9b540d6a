"""What an owner's earlier memories say nearly the same: for the human who reviews, never for the decision.

Word Jaccard (`ingest.checks.dedup`) from a half up to below the duplicate threshold. The candidates are
found by MinHash: the sketch of a text has BANDS x ROWS numbers, of which each is equal in two texts with a
probability that is their Jaccard similarity; two texts meet when all numbers of one band are equal. So a
pair at similarity s is found with probability 1 - (1 - s^ROWS)^BANDS: not always, unlike a duplicate.
What is shown is exact, because every candidate's text is compared (`nearest`).
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Collection, Iterable
from fractions import Fraction
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from vouchgate.ingest.claims.likeness import SimilarMemory
from vouchgate.ingest.dedup.compare import jaccard
from vouchgate.ingest.dedup.contradicted import NEAR
from vouchgate.ingest.language.words import tokens

if TYPE_CHECKING:
    from numpy import uint32
    from numpy.typing import NDArray

VERSION = 1  # of the sketch and its keys; keys of two versions never meet
# Ten rows of two find 94 % of the pairs at 0.5 and 99 % at 0.6. Rows of three have fewer false candidates, and
# need 16 bands for that. docs/checks.md has what is left of it in a large store.
BANDS = 10
ROWS = 2
MAX_SHOWN = 5

# Words of up to three letters ("the", "of", "not") are in so many texts that bands of them would hold nothing
# else. They are left out of the sketch, not of the similarity, while at least three other words remain.
_SMALL_LETTERS = 3
_LEAST_WORDS = 3


class _Permutations(NamedTuple):
    """What makes BANDS x ROWS hashes of one: times a factor, plus an offset, in 32 bits."""

    factors: NDArray[uint32]
    offsets: NDArray[uint32]


@lru_cache(maxsize=1)
def _permutations() -> _Permutations:
    """Those of this VERSION, given in full: they are the same in every process. numpy is imported when it is first
    needed, because that takes a tenth of a second and 25 MiB."""
    import numpy  # noqa: PLC0415

    count = BANDS * ROWS
    drawn = [
        int.from_bytes(blake2b(b"similar %d %d" % (VERSION, number), digest_size=4).digest(), "big")
        for number in range(2 * count)
    ]
    factors = [number | 1 for number in drawn[:count]]  # times an odd number is a permutation of 32 bits
    return _Permutations(numpy.array(factors, numpy.uint32), numpy.array(drawn[count:], numpy.uint32))


def _sketch(words: Iterable[str]) -> bytes:
    """The smallest of each of the hashes, little-endian: the MinHash of datasketch with its scheme `affine32`. That
    package is not asked, because with it comes scipy: 0.4 s and 70 MiB for the six lines below."""
    import numpy  # noqa: PLC0415

    permutations = _permutations()
    hashes = numpy.array([zlib.crc32(word.encode("utf-8", "surrogatepass")) for word in words], numpy.uint32)
    # The last steps of MurmurHash3, which spread what CRC leaves close together.
    hashes ^= hashes >> 16
    hashes *= 0x85EBCA6B
    hashes ^= hashes >> 13
    hashes *= 0xC2B2AE35
    hashes ^= hashes >> 16
    values: NDArray[uint32] = (hashes[:, None] * permutations.factors + permutations.offsets).min(axis=0)
    return values.astype("<u4", copy=False).tobytes()


def band_keys(content: str, memory_type: str) -> tuple[int, ...]:
    """The BANDS keys of a text, signed 64-bit, one a band; none for a text without a word.

    Only texts of one memory type meet, as with duplicates: what is shown is a part of what the dedup check
    looked at, with a lower threshold. One key of two bands is another key, so no two are equal.
    """
    words = _telling(tokens(content))
    if not words:
        return ()
    values = _sketch(words)
    size = 4 * ROWS
    return tuple(
        [
            int.from_bytes(
                blake2b(head + values[band * size : (band + 1) * size], digest_size=8).digest(),
                "big",
                signed=True,
            )
            for band, head in enumerate(_heads(memory_type))
        ]
    )


@lru_cache(maxsize=64)
def _heads(memory_type: str) -> tuple[bytes, ...]:
    """What each band's key begins with."""
    return tuple(b"%d\x00%d\x00%b\x00" % (VERSION, band, memory_type.encode()) for band in range(BANDS))


def _telling(words: frozenset[str]) -> Collection[str]:
    """The words that the sketch is made of."""
    telling = [
        word for word in words if len(word) > _SMALL_LETTERS or not (word.isascii() and word.isalpha())
    ]
    return telling if len(telling) >= _LEAST_WORDS else words


def nearest(
    content: str, candidates: Iterable[tuple[str, str]], threshold: Fraction
) -> tuple[SimilarMemory, ...]:
    """Of the candidates (memory id, text) the nearest MAX_SHOWN that are similar and no duplicates by
    `threshold`; nearest first, equals by id, so that the answer does not depend on the order they came in."""
    own = tokens(content)
    found = [(jaccard(own, tokens(text)), memory_id, text) for memory_id, text in candidates]
    found = [one for one in found if NEAR <= one[0] < threshold]
    found.sort(key=lambda one: (-one[0], one[1]))
    return tuple(
        SimilarMemory(memory_id=memory_id, similarity=_shown(similarity), content=text)
        for similarity, memory_id, text in found[:MAX_SHOWN]
    )


def _shown(similarity: Fraction) -> float:
    """To four places, rounded down: what is shown is below the threshold, as the exact value is."""
    return math.floor(similarity * 10_000) / 10_000
