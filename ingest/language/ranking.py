"""How well texts answer a query, by the words they share and by how rare these are: the same reckoning for every
database, whatever it brought up."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from vouchgate.ingest.language.terms import Kind, words_of

MOST_WORDS = 24  # of a query: more would be a document
_SATURATION, _LENGTH = 1.2, 0.75  # k1 and b of BM25 (Robertson and Zaragoza, 2009)
_FUSION = 60  # of reciprocal rank fusion (Cormack, Clarke and Büttcher, 2009)


def index_words(text: str) -> list[str]:
    """The words of a text that it is found by, in order, each as its stem; an identifier also by its parts. Words that
    are in every text are left out."""
    found = []
    for word in words_of(text):
        if word.kind is not Kind.FUNCTION:
            found += [word.key, *(key for key, _ in word.parts if key != word.key)]
    return found


def query_words(text: str) -> tuple[str, ...]:
    """The words to look for, each once, the first MOST_WORDS; none where a query has only words of every text."""
    return tuple(dict.fromkeys(index_words(text)))[:MOST_WORDS]


def rarity(total: int, having: int) -> float:
    """What a word is worth that so many of so many texts have (BM25's idf); more than 0."""
    return math.log1p((max(total - having, 0) + 0.5) / (having + 0.5))


def best_first(texts: Mapping[str, Sequence[str]], worth: Mapping[str, float]) -> list[str]:
    """The texts, by name and as `index_words`, that have one of the words, best first by BM25; of two alike, the one
    that comes first."""
    mean = sum(map(len, texts.values())) / max(len(texts), 1)
    scores = {name: _score(words, worth, mean) for name, words in texts.items()}
    return sorted((name for name in scores if scores[name] > 0), key=lambda name: -scores[name])


def fused(rankings: Iterable[Sequence[str]]) -> list[str]:
    """One order of several, by the sum of reciprocal ranks."""
    scores: defaultdict[str, float] = defaultdict(float)
    for ranking in rankings:
        for rank, name in enumerate(ranking, start=1):
            scores[name] += 1 / (_FUSION + rank)
    return sorted(scores, key=lambda name: -scores[name])


def _score(words: Sequence[str], worth: Mapping[str, float], mean: float) -> float:
    counts = Counter(word for word in words if word in worth)
    slack = _SATURATION * (1 - _LENGTH + _LENGTH * len(words) / max(mean, 1))
    return sum(worth[word] * n * (_SATURATION + 1) / (n + slack) for word, n in counts.items())
