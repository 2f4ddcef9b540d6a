"""The worker that takes new memories into the index of words, so that a search has little to read beside it; and
the memories of an old database, batch by batch."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from functools import partial

from vouchgate.storage.claims import word_index
from vouchgate.storage.identity import owners
from vouchgate.storage.store import Store

POLL_SECONDS = 5.0


class WordIndexer:
    """Follows every owner's log. Two processes that take one owner's batch do the work twice and write it once, so
    nothing is leased."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen = ""  # the version of the database in which nobody was behind

    async def step(self) -> float:
        """Takes one batch in, if there is one; for how many seconds to sleep. Raises StorageError."""
        return await asyncio.to_thread(self._step)

    def _step(self) -> float:
        version = self._store.version()  # first: what is written meanwhile is another one
        if version == self._seen:
            return POLL_SECONDS
        with self._store.read() as connection:
            behind = word_index.behind(connection)
        if behind is None:
            self._seen = version
            return POLL_SECONDS
        take_in(self._store, behind)
        return 0.0


def take_in(store: Store, owner_id: str) -> int:
    """Puts the next of an owner's memories into the index; up to how many entries of the log. Raises StorageError."""
    with store.read() as connection:
        batch = word_index.next_batch(connection, owner_id)
    if batch.end > batch.begin:
        rows = word_index.rows_of(batch, store.dialect)  # with nothing locked
        put = partial(word_index.put, batch=batch, rows=rows)
        # Also of owners who are read-only: it is no change of theirs.
        store.writer.run([owner_id], put, always=True).result()
    return batch.end - batch.begin


def rebuild(store: Store, owner_id: str | None, progress: Callable[[int], None]) -> int:
    """Makes the index anew, of all owners or one, in short transactions; how many entries of logs were read. Until it
    is done, a search reads more. Raises StorageError."""
    with store.read() as connection:
        every = [owner_id] if owner_id is not None else owners.names(connection, "", sys.maxsize)
    count = 0
    for owner in every:
        while store.writer.run([owner], partial(word_index.clear_part, owner_id=owner), always=True).result():
            pass
        while taken := take_in(store, owner):
            count += taken
            progress(count)
    return count
