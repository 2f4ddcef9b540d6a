"""Which rows have to do with each other, by the keys that they share: whole columns at a time. Pure.

Rows are numbers, keys are numbers of 64 bits. All rows that have a key are joined in one place, whatever parts of the
file they come from; what they say is compared elsewhere (`vouchgate.importing.bulk.tasks`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vouchgate.importing.nearest import CANDIDATES

Numbers = NDArray[np.int64]
_NONE = np.empty(0, np.int64)


class Keyed(NamedTuple):
    """Rows with their keys, each as often as it has keys. `text` tells equal texts of an owner and type."""

    key: Numbers
    row: Numbers
    text: Numbers

    def of_place(self, place: int, of: int) -> Keyed:
        """Those whose keys are joined at one of so many places."""
        here = self.key.view(np.uint64) % np.uint64(of) == place
        return Keyed(self.key[here], self.row[here], self.text[here])


class Pairs(NamedTuple):
    """Each row with another one; the same pair may be there several times."""

    row: Numbers
    other: Numbers


def joined(pairs: Iterable[Pairs]) -> Pairs:
    """All of them."""
    return Pairs(*map(np.concatenate, zip(Pairs(_NONE, _NONE), *pairs, strict=True)))


def sharing(keyed: Keyed) -> Pairs:
    """Each row with the one before it that has the same key: as links of a chain they connect all that share one."""
    order = np.lexsort((keyed.row, keyed.key))
    key, row = keyed.key[order], keyed.row[order]
    same = (key[1:] == key[:-1]) & (row[1:] != row[:-1])
    return Pairs(row[1:][same], row[:-1][same])


def met(keyed: Keyed) -> Pairs:
    """Each row with the newest CANDIDATES texts before it under each of its keys: once a key, a text by the first row
    that has it. As `vouchgate.importing.nearest.EarlierTexts` meets them."""
    order = np.lexsort((keyed.row, keyed.text, keyed.key))
    of = np.stack((keyed.key[order], keyed.text[order]))
    is_first = np.ones(len(order), bool)
    is_first[order[1:]] = (of[:, 1:] != of[:, :-1]).any(axis=0)
    order = np.lexsort((keyed.row, keyed.key))
    key, row, is_first = keyed.key[order], keyed.row[order], is_first[order]
    listed = row[is_first]
    before = (
        np.cumsum(is_first) - is_first
    )  # where the first text that is not before the row stands in the list
    start = np.searchsorted(key[is_first], key)  # where the list of its key begins
    found = []
    for back in range(1, CANDIDATES + 1):
        there = before - back >= start
        found.append(Pairs(row[there], listed[before[there] - back]))
    return joined(found)


def nearest(pairs: Pairs, size: int) -> Pairs:
    """Of each row the CANDIDATES that it was met with most often, of equals the newest. `size` is over every number."""
    both, times = np.unique(pairs.row * size + pairs.other, return_counts=True)
    row, other = both // size, both % size
    order = np.lexsort((-other, -times, row))
    row, other = row[order], other[order]
    first = np.arange(len(row)) - np.searchsorted(row, row) < CANDIDATES
    return Pairs(row[first], other[first])


def components(pairs: Pairs, size: int) -> Numbers:
    """The first row of all that each row is connected to, itself where there is none."""
    root = np.arange(size, dtype=np.int64)
    while (apart := root[pairs.row] != root[pairs.other]).any():
        pairs = Pairs(pairs.row[apart], pairs.other[apart])
        one, other = root[pairs.row], root[pairs.other]
        np.minimum.at(root, np.maximum(one, other), np.minimum(one, other))
        while (root[root] != root).any():
            root = root[root]
    return root
