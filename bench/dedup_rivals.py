"""What else finds near-duplicates, each as its documentation says to use it, in memory.

All get the words that `ingest.language.words.tokens` finds, so that only the search differs. What is found by
hashing is compared word by word before it counts, as one has to: their precision is that of the comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

from vouchgate.ingest.dedup.compare import jaccard
from vouchgate.ingest.language.words import tokens

PERMUTATIONS = 128  # the default of datasketch


class Rival(Protocol):
    """An index of the texts it was made of, which have numbers from 0."""

    def check(self, text: str) -> Sequence[int]:
        """The numbers of the texts that it takes for duplicates."""

    def insert(self, text: str) -> None:
        """Adds a text, which gets the next number."""


class Datasketch:
    """datasketch.MinHashLSH. Without `bands` it chooses them for the threshold."""

    def __init__(self, texts: Sequence[str], threshold: Fraction, bands: tuple[int, int] | None) -> None:
        from datasketch import MinHash, MinHashLSH

        self._threshold = threshold
        self._sets = [tokens(text) for text in texts]
        self._index: Any = MinHashLSH(threshold=float(threshold), num_perm=PERMUTATIONS, params=bands)
        encoded = ([word.encode() for word in words] for words in self._sets)
        # One generator for all shares the permutations, which otherwise take most of the time of each.
        sketches = MinHash.generator(encoded, num_perm=PERMUTATIONS)
        with self._index.insertion_session() as session:
            for number, sketch in enumerate(sketches):
                session.insert(number, sketch, check_duplication=False)
        self._empty: Any = MinHash(num_perm=PERMUTATIONS)

    def _sketch(self, words: frozenset[str]) -> Any:
        sketch = self._empty.copy()
        sketch.update_batch([word.encode() for word in words])
        return sketch

    def check(self, text: str) -> Sequence[int]:
        own = tokens(text)
        numbers = self._index.query(self._sketch(own))
        return [number for number in numbers if jaccard(own, self._sets[number]) >= self._threshold]

    def insert(self, text: str) -> None:
        own = tokens(text)
        self._index.insert(len(self._sets), self._sketch(own))
        self._sets.append(own)


class Rensa:
    """rensa.RMinHashLSH, the same in Rust."""

    def __init__(self, texts: Sequence[str], threshold: Fraction, bands: int) -> None:
        import rensa

        self._minhash: Any = rensa.RMinHash
        self._threshold = threshold
        self._sets = [tokens(text) for text in texts]
        self._index: Any = rensa.RMinHashLSH(float(threshold), PERMUTATIONS, bands)
        for number, words in enumerate(self._sets):
            self._index.insert(number, self._sketch(words))

    def _sketch(self, words: frozenset[str]) -> Any:
        sketch = self._minhash(num_perm=PERMUTATIONS, seed=42)
        sketch.update(list(words))
        return sketch

    def check(self, text: str) -> Sequence[int]:
        own = tokens(text)
        numbers = self._index.query(self._sketch(own))
        return [number for number in numbers if jaccard(own, self._sets[number]) >= self._threshold]

    def insert(self, text: str) -> None:
        own = tokens(text)
        self._index.insert(len(self._sets), self._sketch(own))
        self._sets.append(own)


class SetSimilaritySearch:
    """SetSimilaritySearch.SearchIndex: exact, by a prefix filter. It is built once for all texts."""

    def __init__(self, texts: Sequence[str], threshold: Fraction) -> None:
        from SetSimilaritySearch import SearchIndex

        sets = [list(tokens(text)) for text in texts]
        self._index: Any = SearchIndex(
            sets, similarity_func_name="jaccard", similarity_threshold=float(threshold)
        )

    def check(self, text: str) -> Sequence[int]:
        return [int(number) for number, _ in self._index.query(list(tokens(text)))]

    def insert(self, text: str) -> None:
        raise NotImplementedError("it has to be built anew for every text")


class Rapidfuzz:
    """rapidfuzz over all texts, by the score that is nearest to word Jaccard: equal words in any order are 100."""

    def __init__(self, texts: Sequence[str], threshold: Fraction) -> None:
        from rapidfuzz import fuzz, process

        self._extract: Callable[..., Any] = process.extract
        self._scorer = fuzz.token_sort_ratio
        self._cut = float(threshold) * 100
        self._texts = [" ".join(tokens(text)) for text in texts]

    def check(self, text: str) -> Sequence[int]:
        own = " ".join(tokens(text))
        near = self._extract(own, self._texts, scorer=self._scorer, score_cutoff=self._cut, limit=None)
        return [int(number) for _, _, number in near]

    def insert(self, text: str) -> None:
        self._texts.append(" ".join(tokens(text)))


class InMemoryScan:
    """The naive way at its best: every set kept in memory and compared."""

    def __init__(self, texts: Sequence[str], threshold: Fraction) -> None:
        self._sets = [tokens(text) for text in texts]
        self._low, self._high = threshold.numerator, threshold.denominator

    def check(self, text: str) -> Sequence[int]:
        own = tokens(text)
        low, both = self._low, self._low + self._high
        return [
            number
            for number, words in enumerate(self._sets)
            if both * len(own & words) >= low * (len(own) + len(words))
        ]

    def insert(self, text: str) -> None:
        self._sets.append(tokens(text))


class Entry(NamedTuple):
    """A contender: how it is made. `most` texts at once, when more would take more than the bench's memory;
    `grows` when a text can be added."""

    name: str
    make: Callable[[Sequence[str], Fraction], Rival]
    most: int = 10**9
    grows: bool = True


RIVALS = (
    Entry("sets in memory, scan", InMemoryScan),
    Entry("rapidfuzz token_sort_ratio", Rapidfuzz),
    Entry("datasketch, defaults", lambda texts, t: Datasketch(texts, t, None)),
    # 6 kB a text: at a million that is 6 GB.
    Entry("datasketch, 16 bands of 8", lambda texts, t: Datasketch(texts, t, (16, 8)), most=200_000),
    Entry("rensa, 4 bands of 32", lambda texts, t: Rensa(texts, t, 4)),
    Entry("rensa, 16 bands of 8", lambda texts, t: Rensa(texts, t, 16)),
    Entry("SetSimilaritySearch", SetSimilaritySearch, grows=False),
)
