"""What to look for, made by rule from a claim: its telling words, its names and numbers, its names and years."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from vouchgate.ingest.language.terms import Kind, words_of

MOST_WORDS = 12  # of a query; search engines cut longer ones
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
_TELLING = frozenset({Kind.GENERAL, Kind.NUMBER, Kind.WORD, Kind.NAME, Kind.IDENTIFIER})
_NAMED = frozenset({Kind.NAME, Kind.IDENTIFIER})
_SURE = _NAMED | {Kind.NUMBER}


def queries_of(claim: str) -> tuple[str, ...]:
    """The queries for a claim, best first, each once; the claim itself when it has no telling word. Linear."""
    words = [(claim[word.start : word.end], word.kind) for word in words_of(claim)]
    found = (
        _query(word for word, kind in words if kind in _TELLING),
        _query(word for word, kind in words if kind in _SURE),
        _query(word for word, kind in words if kind in _NAMED or _YEAR.fullmatch(word)),
    )
    return tuple(dict.fromkeys(query for query in found if query)) or (claim.strip()[:200],)


def plan(text: str, paths: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """The looks for a claim or a question, each a path and a query, in the order they are taken: the best query along
    every path first."""
    return tuple((path, query) for query in queries_of(text) for path in paths)


def _query(words: Iterable[str]) -> str:
    return " ".join(list(dict.fromkeys(words))[:MOST_WORDS])
