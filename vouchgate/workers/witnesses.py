"""The worker that shows new checkpoints to witnesses (c2sp.org/tlog-witness), and publishes one once enough cosigned.

lease -> ask all of them at once, with nothing locked -> one transaction that publishes, or nothing. What a witness saw
last it says itself, so nothing is kept of it: two processes at once cost requests, and nothing else.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from sqlalchemy import Connection

from vouchgate.ingest.net.client import Outbound
from vouchgate.ingest.net.fetched import FetchFailed
from vouchgate.ingest.transparency.verifier import (
    COSIGNATURE,
    MAX_NOTE_BYTES,
    Key,
    Malformed,
    Note,
    NotProven,
    consistency_proof,
    parse_key,
    parse_note,
    parse_number,
    parse_signatures,
)
from vouchgate.storage.log import tree
from vouchgate.storage.store import Store
from vouchgate.workers.runner import Job, end, now_in_utc, write

log = logging.getLogger(__name__)

ASK_SECONDS = 5.0  # for all of one request
GRACE_SECONDS = 0.3  # for the others, once enough have cosigned
PAUSE = timedelta(seconds=1)
RETRY = timedelta(seconds=10)  # after too few cosigned
LEASE = timedelta(seconds=30)
LATE = timedelta(minutes=1)  # of waiting for witnesses, then readyz tells of it


class WitnessResult(StrEnum):
    """What became of one checkpoint."""

    PUBLISHED = "published"
    WAITS = "waits"  # too few cosigned: it, or a later one, is shown to them again


@dataclass(frozen=True, slots=True)
class WitnessAt:
    """A witness, and where it is asked."""

    url: str
    key: Key


def parse_witness(text: str) -> WitnessAt:
    """From `https://witness.example name+id+base64`. Raises ValueError."""
    url, _, key = text.partition(" ")
    if not url.startswith(("https://", "http://")):
        raise ValueError("a witness reads: its address, a space, its key")
    try:
        found = WitnessAt(url.rstrip("/"), parse_key(key.strip()))
    except Malformed as error:
        raise ValueError(f"{url}: {error}") from None
    if found.key.kind != COSIGNATURE:
        raise ValueError(f"{url}: this is the key of a log, not of a witness")
    return found


class Witnesses:
    """Shows checkpoints to `witnesses`, of whom `needed` must cosign. With none, what waited for them is published."""

    def __init__(
        self,
        store: Store,
        outbound: Outbound,
        witnesses: Sequence[WitnessAt],
        needed: int,
        *,
        clock: Callable[[], datetime] = now_in_utc,
    ) -> None:
        self._store, self._outbound, self._clock = store, outbound, clock
        self._witnesses, self._needed = witnesses, needed
        self._seen: dict[str, int] = {}  # by address, in this process: spares a request
        self._trouble: dict[str, str] = {}  # by address, as last told
        self.job = Job(
            "showing the log to witnesses", store, tree.next_unpublished, self._lease, self._work, 0.5, clock
        )

    def problems(self) -> tuple[str, ...]:
        """Since when receipts wait for witnesses, if that is long. Raises StorageError."""
        with self._store.read() as connection:
            since = tree.unpublished_since(connection)
        if since is None or self._clock() - since < LATE:
            return ()
        return (
            f"Receipts wait since {since:%Y-%m-%d %H:%M} UTC for {self._needed} of {len(self._witnesses)} witnesses to "
            "cosign the log; the service's own log says what they answer.",
        )

    async def _lease(self, now: datetime, room: int) -> list[tuple[int, str]]:
        def take(connection: Connection) -> list[tuple[int, str]]:
            taken = tree.lease_witnesses(connection, now, now + LEASE)
            last = tree.last_checkpoint(connection, published=False) if taken else None
            return [] if last is None else [last]

        return await write(self._store, (), take)

    async def _work(self, checkpoint: tuple[int, str], at: datetime) -> list[WitnessResult]:
        size, note = checkpoint
        lines = await self._cosignatures(size, note)
        enough = len(lines) >= self._needed

        def settle(connection: Connection) -> None:
            if enough:
                tree.publish(connection, size, note + "".join(lines), at)
            tree.lease_witnesses(connection, at + LEASE, at + (PAUSE if enough else RETRY))

        await write(self._store, (), settle)
        return [WitnessResult.PUBLISHED if enough else WitnessResult.WAITS]

    async def _cosignatures(self, size: int, note: str) -> list[str]:
        """The lines of all who answer, or of enough of them and whoever else is as quick."""
        asked = {asyncio.create_task(self._ask(each, size, note)): each for each in self._witnesses}
        waiting, lines = set(asked), list[str]()
        try:
            while waiting:
                seconds = None if len(lines) < self._needed else GRACE_SECONDS
                done, waiting = await asyncio.wait(
                    waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
                )
                if not done:
                    break
                for each in done:
                    try:
                        lines.append(each.result())
                        self._trouble.pop(asked[each].url, None)
                    except NotProven as error:
                        self._tell(asked[each].url, str(error))
        finally:
            await end(waiting)
        return lines

    def _tell(self, url: str, problem: str) -> None:
        if self._trouble.get(url) != problem:  # once, not every ten seconds
            log.warning("the witness at %s did not cosign the log: %s", url, problem)
        self._trouble[url] = problem

    async def _ask(self, witness: WitnessAt, size: int, note: str) -> str:
        """The line of its cosignature. Raises NotProven with what it answers instead."""
        for _ in range(
            3
        ):  # once more after it said what it saw, which another process may have changed meanwhile
            old = self._seen.get(witness.url, 0)
            if old > size:
                self._seen.pop(witness.url)
                raise NotProven(
                    f"it saw {old} entries, more than the {size} of this checkpoint: was the log put back?"
                )
            proof = await asyncio.to_thread(self._proof, old, size)
            answer = await self._outbound.fetch(
                f"{witness.url}/add-checkpoint",
                method="POST",
                headers={"content-type": "text/plain; charset=utf-8"},
                body=f"old {old}\n{proof}\n{note}".encode(),
                max_bytes=MAX_NOTE_BYTES,
                seconds=ASK_SECONDS,
                follow=False,
            )
            if isinstance(answer, FetchFailed):
                raise NotProven(answer.detail)
            text = answer.body.decode("utf-8", "replace")
            if answer.status == 409 and parse_number(text.strip(), "What a witness saw") != old:
                self._seen[witness.url] = int(text)
            elif answer.status == 200:
                return self._checked(witness, size, note, text)
            else:
                split = "IT SAW ANOTHER VERSION OF THIS LOG, " * (
                    answer.status == 422 or (answer.status == 409 and old == size)
                )
                raise NotProven(f"{split}HTTP status {answer.status}: {text[:200]!a}")
        raise NotProven("what it saw changes all the time: is another gate using the key of this log?")

    def _checked(self, witness: WitnessAt, size: int, note: str, text: str) -> str:
        found = Note(parse_note(note.encode()).text, parse_signatures(text))
        if found.signed_at(witness.key) is None:
            raise NotProven("it answers with a cosignature of another key")
        self._seen[witness.url] = size
        own = witness.key.name, witness.key.key_id
        return next(each.line for each in found.signatures if (each.name, each.data[:4]) == own)

    def _proof(self, old: int, size: int) -> str:
        with self._store.read() as connection:
            hashes = consistency_proof(tree.hashes(connection, size), old, size)
        return "".join(base64.b64encode(each).decode() + "\n" for each in hashes)
