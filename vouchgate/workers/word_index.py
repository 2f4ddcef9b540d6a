"""The worker that takes new memories into the index of words, so that a search has little to read beside it; and
the memories of an old database, batch by batch."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

from sqlalchemy import Connection

from vouchgate.storage.claims import word_index
from vouchgate.storage.identity import owners
from vouchgate.storage.store import Store
from vouchgate.workers.runner import Job

POLL_SECONDS = 5.0
_NOW = datetime.min.replace(tzinfo=UTC)  # of who is behind: no time is waited for


class WordIndexer:
    """Follows every owner's log; following it is its `job`. Two processes that take one owner's batch do the work twice
    and write it once, so nothing is leased."""

    def __init__(self, store: Store) -> None:
        self._store = store
        name = "taking memories into the index of words"
        self.job = Job(name, store, _next_due, self._behind, self._take_in, POLL_SECONDS, at_once=1)

    async def _behind(self, now: datetime, room: int) -> list[str]:
        def read() -> str | None:
            with self._store.read() as connection:
                return word_index.behind(connection)

        owner_id = await asyncio.to_thread(read)
        return [] if owner_id is None else [owner_id]

    async def _take_in(self, owner_id: str, now: datetime) -> list[str]:
        await asyncio.to_thread(take_in, self._store, owner_id)
        return []


def _next_due(connection: Connection) -> datetime | None:
    return None if word_index.behind(connection) is None else _NOW


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
