"""The worker that takes committed log entries into the tree, about once a second, and has the tree signed.

lease -> read what is new and hash it -> one transaction that adds it -> sign -> one transaction that keeps the
checkpoint
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial

from sqlalchemy import Connection

from vouchgate.gate.signing import LogKeyError, LogSigner
from vouchgate.storage.ids import new_id_suffix
from vouchgate.storage.log import tree
from vouchgate.storage.log.tree import Batch, TreeBroken, TreeMoved
from vouchgate.storage.store import Store
from vouchgate.workers.runner import Job, now_in_utc, write

log = logging.getLogger(__name__)

POLL_SECONDS = 0.5  # how soon an entry is found; a receipt is there within two seconds
PAUSE = timedelta(seconds=1)  # between two batches, unless there is more than one holds
# What a killed process held is another's after this. Short, for receipts wait meanwhile; a batch that takes longer is
# only made twice, as the size of the tree lets one of them in.
LEASE_SECONDS = 2.0


class SequencerResult(StrEnum):
    """What became of one turn."""

    ADDED = "added"
    SIGNED = "signed"
    REFUSED = "refused"  # the tree is not the one that was signed: an operator must look at it
    LOST = "lost"  # another process added to the tree meanwhile: nothing was written


class Sequencer:
    """Makes the tree grow (`job`). `signer` None: without checkpoints; `publish` False: witnesses see them first."""

    def __init__(
        self,
        store: Store,
        signer: LogSigner | None,
        *,
        publish: bool = True,
        clock: Callable[[], datetime] = now_in_utc,
    ) -> None:
        self._store = store
        self._signer = signer
        self._publish = publish
        self._trouble: tuple[str, ...] = ()
        due = partial(tree.next_due, signing=signer is not None)
        self.job = Job("adding to the log's tree", store, due, self._lease, self._work, POLL_SECONDS, clock)

    def problems(self) -> tuple[str, ...]:
        """Why nothing is signed, if that is so."""
        return self._trouble

    async def _lease(self, now: datetime, room: int) -> list[str]:
        name = new_id_suffix(now)
        taken = await write(self._store, (), lambda c: tree.lease(c, name, now, LEASE_SECONDS))
        return [name] if taken else []

    async def _work(self, name: str, at: datetime) -> list[SequencerResult]:
        try:
            batch = await asyncio.to_thread(self._read)
            due_at = at if batch.more else at + PAUSE
            # Also of owners who are read-only: the log tells of it that they are.
            add = partial(tree.add, batch=batch, due_at=due_at)
            await write(self._store, sorted(batch.ends), add, always=True)
            signed = [] if self._signer is None else await self._signed(self._signer, at)
            return [SequencerResult.ADDED, *signed]
        except TreeMoved:
            return [SequencerResult.LOST]
        except (LogKeyError, TreeBroken) as error:
            why = "its tree is broken; run `vouchgate log verify`" if isinstance(error, TreeBroken) else error
            if not self._trouble:
                log.error("the log is not signed: %s", why)
            self._trouble = (f"The log is not signed: {why}.",)
            return [SequencerResult.REFUSED]

    def _read(self) -> Batch:
        with self._store.read() as connection:
            return tree.next_batch(connection)

    async def _signed(self, signer: LogSigner, at: datetime) -> list[SequencerResult]:
        size, note = await asyncio.to_thread(signer.sign, self._store)

        def keep(connection: Connection) -> None:
            tree.put_checkpoint(connection, size, note, at, publish=self._publish)

        await write(self._store, (), keep)
        self._trouble = ()
        return [SequencerResult.SIGNED]
