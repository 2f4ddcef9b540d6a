"""Building the tree of a log: what a batch of entries adds to its tiles, and proofs out of them.

Pure. A tree is kept as tiles (tlog-tiles), each a run of hashes that only ever gets longer: a partial tile of any
earlier size is the beginning of what is kept. Proofs read at most two tiles a level.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from vouchgate.ingest.transparency.verifier import (
    EMPTY_ROOT,
    HASH_BYTES,
    TILE_HASHES,
    GetHash,
    node_hash,
    range_hash,
    split_of,
    subtree,
)

TILE_BYTES = TILE_HASHES * HASH_BYTES


@dataclass(frozen=True, slots=True)
class Edge:
    """The right edge of a tree, from which it grows: how many entries it has, and its last tile of each level, as far
    as it is partial (`b""` where none is), leaves first."""

    size: int = 0
    partial: tuple[bytes, ...] = ()

    @property
    def root(self) -> bytes:
        """RFC 6962, section 2.1: the peaks of the tree, folded from the right."""
        root = b""
        for kept in self.partial:
            tile = kept
            while tile:
                width = len(tile) & -len(tile)  # the least peak; both are multiples of a hash
                peak = subtree(tile[-width:])
                root = node_hash(peak, root) if root else peak
                tile = tile[:-width]
        return root or EMPTY_ROOT


def edge_of(size: int, tiles: Mapping[tuple[int, int], bytes]) -> Edge:
    """The edge of a tree of this size, out of its last tile of each level, by level and number. A tile may be longer
    than it was at that size."""
    levels = range((size.bit_length() + 7) // 8)
    widths = [(size >> 8 * level) % TILE_HASHES * HASH_BYTES for level in levels]
    partial = [
        tiles[level, size >> 8 * level + 8][: widths[level]] if widths[level] else b"" for level in levels
    ]
    if any(len(tile) != width for tile, width in zip(partial, widths, strict=True)):
        raise ValueError(f"the tiles are not those of a tree of {size}")
    return Edge(size, tuple(partial))


def grow(edge: Edge, leaves: Iterable[bytes]) -> tuple[Edge, dict[tuple[int, int], bytes]]:
    """The edge after more entries, given by their leaf hashes, and each tile that is new or longer than before, whole,
    by level and number. About a microsecond an entry."""
    added, level, first = list(leaves), 0, edge.size
    size, partial, changed = edge.size + len(added), [], {}
    while added or level < len(edge.partial):
        before = edge.partial[level] if level < len(edge.partial) else b""
        content, number, above = before + b"".join(added), (first >> 8 * level) // TILE_HASHES, []
        for at in range(0, len(content) if added else 0, TILE_BYTES):
            tile = content[at : at + TILE_BYTES]
            changed[level, number + at // TILE_BYTES] = tile
            if len(tile) == TILE_BYTES:
                above.append(subtree(tile))
        partial.append(content[len(content) - len(content) % TILE_BYTES :])
        added, level = above, level + 1
    return Edge(size, tuple(partial)), changed


def inclusion_proof(get: GetHash, index: int, size: int) -> list[bytes]:
    """RFC 6962, section 2.1.1: the hashes beside the way from an entry (counted from 0) up to the root."""
    if not 0 <= index < size:
        raise ValueError(f"there is no entry {index} in a tree of {size}")
    proof: list[bytes] = []
    begin, end = 0, size
    while end - begin > 1:
        middle = begin + split_of(end - begin)
        if index < middle:
            proof.append(range_hash(get, middle, end))
            end = middle
        else:
            proof.append(range_hash(get, begin, middle))
            begin = middle
    return proof[::-1]
