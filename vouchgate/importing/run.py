"""Sends the rows of a file through the gate: many at once, in order, and none twice however often it is run."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterable, Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from vouchgate.gate.examiner import Examiner
from vouchgate.gate.gate import Gate
from vouchgate.importing.batches import Batch, PreparedRow, must_wait
from vouchgate.importing.feed import examine_all, reason_of
from vouchgate.importing.rows import BadRow
from vouchgate.ingest.claims.claim import Claim
from vouchgate.ingest.claims.decision import Outcome
from vouchgate.ingest.claims.people import Principal
from vouchgate.ingest.claims.waiting import Lane
from vouchgate.ingest.pipeline import Examined
from vouchgate.ingest.rules import Rule
from vouchgate.storage.claims.submit import (
    Decided,
    KeyReused,
    OwnerRefused,
    Repeated,
    SubmitAnswer,
    TokenGone,
)
from vouchgate.storage.errors import StorageError
from vouchgate.storage.modes import Halted
from vouchgate.storage.queue.capacity import QueueFull

IN_FLIGHT = 512  # claims that wait to be written while more are examined: two transactions


class ImportStopped(Exception):
    """The import cannot go on; the message is one sentence. What was sent before stays sent."""


@dataclass(slots=True)
class Tally:
    """What became of the rows so far. A row is in exactly one of `decided`, `before`, `full` and `bad`."""

    decided: Counter[tuple[Outcome, str]] = field(default_factory=Counter)  # in this run, by reason
    before: int = 0  # decided by an earlier run
    full: Counter[str] = field(default_factory=Counter)  # not sent, by owner: the queue has no room
    limit: QueueFull | None = None  # the last that was met
    bad: int = 0

    @property
    def rows(self) -> int:
        """All of them."""
        return self.decided.total() + self.before + self.full.total() + self.bad


@dataclass(frozen=True, slots=True)
class _Sent:
    row: PreparedRow
    answer: asyncio.Future[SubmitAnswer]


class Importer:
    """One run. `tell_bad` is called for each row that cannot be sent, `report` after each batch with the bytes of
    the file that were read; `again` decides about a claim that was sent before, under its key, in case its owner
    asked for a source."""

    def __init__(
        self,
        gate: Gate,
        plain: Examiner,
        principal: Principal,
        *,
        tell_bad: Callable[[BadRow], None],
        report: Callable[[Tally, int], None] = lambda tally, position: None,
        again: Callable[[Claim, Decided, str], Awaitable[Decided]] | None = None,
    ) -> None:
        """`plain` is an examiner of the same policy and sources that looks nothing up in the database."""
        self._gate = gate
        self._plain = plain
        self._principal = principal
        self._tell_bad = tell_bad
        self._report = report
        self._again = again
        self._in_flight: deque[_Sent] = deque()
        self.tally = Tally()

    async def run(self, batches: AsyncIterable[Batch], stopped: Callable[[], bool]) -> None:
        """Sends every row; ends after what is under way when `stopped` says so.

        Raises ImportStopped, after what is under way too.
        """
        position = 0
        try:
            async for batch in batches:
                position = batch.position
                await self._send(batch)
                while len(self._in_flight) > IN_FLIGHT:
                    await self._settle()
                self._report(self.tally, position)
                if batch.error is not None:
                    raise ImportStopped(batch.error)
                if stopped():
                    break
        finally:
            while self._in_flight:
                await self._settle()
            self._report(self.tally, position)

    async def _send(self, batch: Batch) -> None:
        """Examines all, and sends it in order."""
        for bad in batch.bad:
            self._bad(bad)
        self.tally.before += batch.before
        rows = await self._with_room(batch.ready)
        for row, examined in zip(rows, await examine_all(self._gate, rows), strict=True):
            if isinstance(examined, BadRow):
                self._bad(examined)
            else:
                answer = self._gate.send(self._principal, examined, row.key, lane=Lane.IMPORT)
                self._in_flight.append(_Sent(row, answer))

    async def _with_room(self, rows: Sequence[PreparedRow]) -> list[PreparedRow]:
        """The rows without those that are queued at best while their owner's queue is full: these are counted."""
        # A judge can let pass what would have to wait without one, so then each claim is asked about.
        if self._gate.policy.judge.enabled or not self.tally.full:
            return list(rows)
        to_ask = [row for row in rows if self._is_full(row.claim.owner_id)]
        looked = await examine_all(self._plain, to_ask)
        waiting = {
            id(row)
            for row, examined in zip(to_ask, looked, strict=True)
            if isinstance(examined, Examined) and must_wait(examined)
        }
        left = []
        for row in rows:
            if id(row) in waiting:
                self.tally.full[row.claim.owner_id] += 1
            else:
                left.append(row)
        return left

    def _is_full(self, owner_id: str) -> bool:
        met = self.tally.limit
        return owner_id in self.tally.full or (met is not None and met.which.in_all)

    def _bad(self, row: BadRow) -> None:
        self.tally.bad += 1
        self._tell_bad(row)

    async def _settle(self) -> None:
        """Notes the oldest answer that is outstanding."""
        sent = self._in_flight.popleft()
        try:
            answer = await sent.answer
        except StorageError as error:
            await self._drop()
            raise ImportStopped(f"{error}; run it again, and it goes on where it stopped") from error
        match answer:
            case Decided():
                if answer.answer.rule == Rule.ALREADY_PENDING and self._again is not None:
                    answer = await self._again(sent.row.claim, answer, sent.row.key.key)
                self.tally.decided[answer.answer.outcome, reason_of(answer.answer)] += 1
            case Repeated():
                self.tally.before += 1
            case QueueFull():
                self.tally.full[sent.row.claim.owner_id] += 1
                self.tally.limit = answer
            case TokenGone():
                await self._drop()
                raise ImportStopped("the token was revoked or has expired; run it again with one that holds")
            case Halted():
                await self._drop()
                why = answer.sentence.removesuffix(".")
                raise ImportStopped(f"{why}; run it again later, and it goes on where it stopped")
            case OwnerRefused():
                owner_id = sent.row.claim.owner_id
                self._bad(
                    BadRow(
                        sent.row.place, f"is for the owner {owner_id!r}, who is not there or not this token's"
                    )
                )
            case KeyReused():  # the key is a digest of the claim itself
                self._bad(BadRow(sent.row.place, "was sent before with other words under the same key"))

    async def _drop(self) -> None:
        """Waits for what is under way, whatever becomes of it: the next run finds what was kept."""
        waiting = [sent.answer for sent in self._in_flight]
        self._in_flight.clear()
        await asyncio.gather(*waiting, return_exceptions=True)
