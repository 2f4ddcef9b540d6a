"""Tells of two long texts that they are not nearly the same, without reading either again.

A sketch is a set of bits, one for each word of a text (two words may share one). Where two sketches differ in a bit,
the texts differ in a word at least; so they differ in as many words as bits, or more, and a similarity that would need
fewer is ruled out. What is not ruled out is compared. Nothing is ever missed by it.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from xxhash import xxh3_64_intdigest

LONG = 400  # characters; the words of shorter texts are remembered themselves
_BITS = 4096  # of the 300 words that 2,000 characters have, one in fourteen shares its bit with another
_KEPT = 16_384  # sketches of half a kilobyte


class Sketch(NamedTuple):
    """What is remembered of a text's set of words: its bits, and how many words there are."""

    bits: int
    words: int


# By the hash of the text, which this process keys with a secret: nobody can make two texts share one.
_known: dict[int, Sketch] = {}


def sketch(text: str, words: frozenset[str]) -> Sketch:
    """The sketch of a text of these words; of a long one it is remembered."""
    bits = 0
    for word in words:
        bits |= 1 << xxh3_64_intdigest(word.encode("utf-8", "surrogatepass")) % _BITS
    made = Sketch(bits, len(words))
    if len(text) > LONG:
        if len(_known) >= _KEPT:
            _known.clear()
        _known[hash(text)] = made
    return made


def remembered(text: str) -> Sketch | None:
    """The sketch of a long text that was made before."""
    return _known.get(hash(text)) if len(text) > LONG else None


def surely_below(threshold: Fraction, one: Sketch, other: Sketch) -> bool:
    """Whether the Jaccard similarity of the two sets is under the threshold, as far as sketches tell: of n words in
    both lists together, differing in d it is (n - d) / (n + d)."""
    both, differing = one.words + other.words, (one.bits ^ other.bits).bit_count()
    up, down = threshold.numerator, threshold.denominator
    return (both - differing) * down < up * (both + differing)
