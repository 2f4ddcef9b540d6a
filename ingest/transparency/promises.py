"""Promises that an entry will be in the tree, given before it is. All entries of one commit share one signature: it is
over the root of a small tree of them, and each promise has the hashes that lead there. Pure."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass, field

from vouchgate.ingest.claims.log import Promise
from vouchgate.ingest.transparency.tree import inclusion_proof
from vouchgate.ingest.transparency.verifier import (
    leaf_hash,
    node_hash,
    promise_text,
    promised_entry,
    range_hash,
)


@dataclass(slots=True)
class Commit:
    """The log entries of one transaction, as owner's pseudonym, number and digest. They are told to nobody before it is
    on disk, and nothing is added afterwards."""

    entries: list[tuple[str, int, str]] = field(default_factory=list)
    _levels: list[list[bytes]] = field(default_factory=list)
    _note: str = ""

    def promise(self, index: int, origin: str, sign_note: Callable[[str], str]) -> Promise:
        """Of one of them; `sign_note` makes the lines below the text of a note, and is asked once."""
        size = len(self.entries)
        if not self._note:
            level = [leaf_hash(promised_entry(*entry)) for entry in self.entries]
            while level:
                self._levels.append(level)
                level = [node_hash(*level[i : i + 2]) for i in range(0, len(level) - 1, 2)]
            text = promise_text(origin, size, range_hash(self._hash, 0, size))
            self._note = f"{text}\n{sign_note(text)}"
        owner, seq, digest = self.entries[index]
        hashes = [base64.b64encode(each).decode() for each in inclusion_proof(self._hash, index, size)]
        return Promise(
            owner=owner, seq=seq, digest=digest, index=index, hashes=tuple(hashes), note=self._note
        )

    def _hash(self, level: int, index: int) -> bytes:
        return self._levels[level][index]
