"""Brute force over a whole store: which texts reach the threshold, counted word by word and left to no index."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from vouchgate.ingest.language.words import tokens


class Truth:
    """All texts of a store by word."""

    def __init__(self, texts: Sequence[str], threshold: Fraction) -> None:
        self._threshold = threshold
        number_of: dict[str, int] = {}
        words: list[np.ndarray] = []
        sizes = np.empty(len(texts), np.int32)
        for at, text in enumerate(texts):
            own = [number_of.setdefault(word, len(number_of)) for word in tokens(text)]
            words.append(np.array(own, np.int32))
            sizes[at] = len(own)
        flat = np.concatenate(words)
        del words
        by_word = np.argsort(flat, kind="stable")
        self._texts_of = np.repeat(np.arange(len(texts), dtype=np.int32), sizes)[by_word]
        self._start = np.searchsorted(flat[by_word], np.arange(len(number_of) + 1))
        self._number_of, self._sizes = number_of, sizes

    def matches(self, text: str) -> frozenset[int]:
        """The numbers of the texts at or over the threshold."""
        own = tokens(text)
        overlap = np.zeros(len(self._sizes), np.int64)
        for word in own:
            number = self._number_of.get(word)
            if number is not None:  # a word stands once in a text, so no place is counted twice
                overlap[self._texts_of[self._start[number] : self._start[number + 1]]] += 1
        # overlap / (own + other - overlap) >= p / q, in whole numbers; two empty sets are equal.
        low, high = self._threshold.numerator, self._threshold.denominator
        reaches = (low + high) * overlap >= low * (len(own) + self._sizes)
        return frozenset(np.flatnonzero(reaches).tolist())
