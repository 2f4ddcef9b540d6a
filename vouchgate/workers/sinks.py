"""The worker that sends memories to the webhooks that get every one of their owner, signed after the Standard Webhooks
specification; and what is not well with deliveries of any kind. The rules are in `storage.outgoing.deliveries`.

lease some of a stream -> post one after the other, with nothing locked -> note what came of each in a transaction
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import Connection

from vouchgate.ingest.claims.types import DeliveryOp
from vouchgate.ingest.net.client import Outbound
from vouchgate.ingest.net.fetched import FetchFailed, FetchOutcome
from vouchgate.storage.ids import new_id_suffix
from vouchgate.storage.outgoing import deliveries, sinks
from vouchgate.storage.outgoing import streams as delivery_streams
from vouchgate.storage.outgoing.deliveries import WAITS, LeasedDelivery
from vouchgate.storage.outgoing.webhook_messages import body
from vouchgate.storage.outgoing.webhooks import Endpoint
from vouchgate.storage.store import Store
from vouchgate.workers.rounds import keep_going, one_round
from vouchgate.workers.webhooks import RetryDecision, SendResult, decide_retry, headers_of

log = logging.getLogger(__name__)

AT_ONCE = 8  # streams that one process works at; in a stream one request follows the other
MOST = 20  # of one stream in one lease, so that others get their turn
POLL_SECONDS = 2.0  # the longest sleep: what is to be sent may have come from another process
ERROR_SECONDS = 10.0  # the sleep after an error, such as a database that is away
POST_SECONDS = 15.0  # for all of one try; with the note of it well under the time of a lease
STUCK = timedelta(hours=1)  # that something cannot be delivered, then somebody is told

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Batch:
    """What this process is to send to one sink, in order."""

    to: Endpoint
    handed: Sequence[LeasedDelivery]


def message_of(handed: LeasedDelivery) -> str:
    """What is sent of a delivery: the same words at every try. Of a memory that is out of force, its id alone."""
    record, memory = handed.record, handed.memory
    data: dict[str, Any] = {"id": record.memory_id, "owner_id": record.owner_id}
    if record.op is DeliveryOp.REMOVE or memory is None:
        return body("memory.removed", record.created_at, data)
    shown = {"content", "memory_type", "label", "confidence", "source_id", "validity_horizon"}
    return body("memory.stored", record.created_at, data | memory.model_dump(mode="json", include=shown))


class Deliverer:
    """Sends what is due. Its coroutines belong to one event loop; `problems` may be called from any thread. Nothing is
    kept between two calls."""

    def __init__(
        self,
        store: Store,
        outbound: Outbound | None,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """`outbound` None: nothing is sent, because the service is offline."""
        self._store = store
        self._outbound = outbound
        self._clock = clock

    async def run(self, report: Callable[[Mapping[SendResult, int]], None]) -> None:
        """Works until it is cancelled, and tells `report` of every round that did something. What was under way is
        then sent once more when its lease ends. Offline it ends at once."""
        if self._outbound is not None:
            await keep_going(
                lambda: self.run_once(self._clock()),
                self._until_next,
                report,
                after_error=ERROR_SECONDS,
                what="sending memories",
            )

    async def run_once(self, now: datetime) -> Counter[SendResult]:
        """Sends what is due at `now` or comes due while it works. Raises StorageError when nothing can be taken."""
        if self._outbound is None:
            return Counter()
        return await one_round(now, AT_ONCE, self._lease, self._send)

    def problems(self) -> tuple[str, ...]:
        """What is not well with deliveries, to webhooks or to anybody else, a sentence each: no owner and no URL is
        named. Raises StorageError."""
        now = self._clock()
        with self._store.read() as connection:
            dead = delivery_streams.dead_letters(connection)
            since = deliveries.stuck_since(connection, now)
            silent = self._outbound is None and bool(sinks.listing(connection))
        found = []
        if dead:
            are = "1 delivery was" if dead == 1 else f"{dead} deliveries were"
            found.append(f"{are} given up: see `vouchgate delivery list --state dead`.")
        if since is not None and now - since >= STUCK:
            found.append(
                f"Deliveries have waited since {since:%Y-%m-%d %H:%M} UTC: their sink takes nothing."
            )
        if silent:
            found.append("Webhooks get no memories, because the service is offline.")
        return tuple(found)

    def _until_next(self) -> float:
        """Seconds to sleep. A moment at least: what is due now is with another process."""
        with self._store.read() as connection:
            due = delivery_streams.webhooks_next_due(connection)
        seconds = POLL_SECONDS if due is None else (due - self._clock()).total_seconds()
        return max(min(seconds, POLL_SECONDS), 0.1)

    async def _lease(self, now: datetime, room: int) -> list[Batch]:
        """What is due, of as many streams as there is room for. Goes on while all that is found need not be sent."""
        name = new_id_suffix(now)
        while streams := await asyncio.to_thread(self._due, now, room):
            owner_ids = [owner_id for owner_id, _ in streams]
            if batches := await self._write(owner_ids, partial(_take, streams=streams, now=now, name=name)):
                return batches
        return []

    def _due(self, now: datetime, room: int) -> list[tuple[str, str]]:
        with self._store.read() as connection:
            return delivery_streams.webhooks_due(connection, now, room)

    async def _send(self, batch: Batch, begun_at: datetime) -> list[SendResult]:
        """One try of each, up to the first that is to be tried again."""
        begun, results = time.monotonic(), list[SendResult]()
        for handed in batch.handed:
            at = begun_at + timedelta(seconds=time.monotonic() - begun)
            outcome = await self._post(batch.to, handed, at)
            verdict = decide_retry(outcome, handed.record.id, handed.record.attempts, at, WAITS)
            if verdict.result is not SendResult.TOLD:
                log.warning("sink %s: %s (%s)", batch.to.id, verdict.result.value, verdict.error)
            try:
                note = partial(_note, handed=handed, verdict=verdict, at=at)
                noted = await self._write([batch.to.owner_id], note)
            except Exception:  # it is sent again when the lease ends
                log.exception("what a delivery to sink %s came to could not be noted", batch.to.id)
                noted = False
            results.append(verdict.result if noted else SendResult.LOST)
            if results[-1] not in (SendResult.TOLD, SendResult.GIVEN_UP):
                break
        return results

    async def _post(self, to: Endpoint, handed: LeasedDelivery, at: datetime) -> FetchOutcome:
        if self._outbound is None:
            return FetchFailed("offline", "offline: nothing is sent", to.url)
        text = message_of(handed)
        return await self._outbound.fetch(
            to.url,
            method="POST",
            headers=headers_of(to.secret, handed.record.id, text, at),
            body=text.encode(),
            max_bytes=0,
            seconds=POST_SECONDS,
            follow=False,
        )

    async def _write(self, owner_ids: Sequence[str], work: Callable[[Connection], T]) -> T:
        return await asyncio.wrap_future(self._store.writer.run(owner_ids, work))


def _take(
    connection: Connection, streams: Sequence[tuple[str, str]], now: datetime, name: str
) -> list[Batch]:
    """What is due of these streams, by owner and sink, of sinks that are still there."""
    batches = []
    for (owner_id, sink), to in sinks.endpoints(connection, streams).items():
        if handed := deliveries.lease(connection, owner_id, sink, now, most=MOST, name=name):
            batches.append(Batch(to, handed))
    return batches


def _note(connection: Connection, handed: LeasedDelivery, verdict: RetryDecision, at: datetime) -> bool:
    if verdict.result is SendResult.TOLD:
        return deliveries.mark_done(connection, handed.record, handed.lease, at)
    return deliveries.mark_failed(
        connection,
        handed.record,
        handed.lease,
        at,
        error=verdict.error,
        attempts=verdict.attempts,
        due_at=verdict.due_at,
    )
