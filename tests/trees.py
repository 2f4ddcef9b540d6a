"""A log as its own side has it, for the tests: entries, tiles, proofs and signed checkpoints."""

from __future__ import annotations

import base64

from vouchgate.ingest.transparency.note import SigningKey
from vouchgate.ingest.transparency.tree import Edge, grow
from vouchgate.ingest.transparency.verifier import (
    HASH_BYTES,
    consistency_proof,
    hashes_of_tiles,
    leaf_hash,
    range_hash,
)


class Log:
    """A log of some number of made-up entries, kept as tiles, that grew in steps."""

    def __init__(self, *steps: int, entry: bytes = b"%d") -> None:
        self.edge, self.tiles, self.leaves = Edge(), dict[tuple[int, int], bytes](), list[bytes]()
        for step in steps:
            self.add(*(leaf_hash(entry % (len(self.leaves) + i)) for i in range(step)))

    def add(self, *leaves: bytes) -> None:
        self.leaves += leaves
        self.edge, changed = grow(self.edge, leaves)
        assert all(
            tile.startswith(self.tiles.get(at, b"")) for at, tile in changed.items()
        )  # tiles only get longer
        self.tiles |= changed

    def get(self, level: int, index: int) -> bytes:
        return hashes_of_tiles(
            lambda lv, n, width: self.tiles[lv, n][: width * HASH_BYTES], len(self.leaves)
        )(level, index)

    def root(self, size: int) -> bytes:
        return range_hash(self.get, 0, size)

    def checkpoint(self, key: SigningKey, size: int) -> str:
        """Signed, as it was at that size."""
        return key.sign_checkpoint(size, self.root(size))

    def shown(self, key: SigningKey, old: int, new: int) -> str:
        """What a witness is sent that saw it at the size `old` last."""
        proof = "".join(
            base64.b64encode(each).decode() + "\n" for each in consistency_proof(self.get, old, new)
        )
        return f"old {old}\n{proof}\n{self.checkpoint(key, new)}"
