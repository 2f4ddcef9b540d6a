"""The workers that send to webhooks, signed after the Standard Webhooks specification: what waits, which follows the
log (`storage.outgoing.webhook_messages`), and memories, of which each is a row (`storage.outgoing.deliveries`).

lease -> post, with nothing locked -> one transaction that notes what came of it
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import logging
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import Any

from sqlalchemy import Connection

from vouchgate.ingest.claims.delivery import DeliveryOp
from vouchgate.ingest.net.client import Outbound
from vouchgate.ingest.net.fetched import Fetched, FetchFailed, FetchOutcome
from vouchgate.ingest.net.hosts import requested_wait
from vouchgate.storage.ids import new_id_suffix
from vouchgate.storage.outgoing import deliveries, webhook_messages, webhooks
from vouchgate.storage.outgoing import streams as delivery_streams
from vouchgate.storage.outgoing.deliveries import LeasedDelivery
from vouchgate.storage.outgoing.webhook_messages import Message
from vouchgate.storage.outgoing.webhooks import Endpoint, Event, Webhook
from vouchgate.storage.store import Store
from vouchgate.workers.runner import Job, now_in_utc, write

log = logging.getLogger(__name__)

POLL_SECONDS = 2.0  # the longest sleep: what is to be told may have come from another process
POST_SECONDS = 15.0  # for all of one try; the specification says 15 to 30
LEASE_SECONDS = 75.0  # of a message: a try, and a minute for waiting and writing
MOST = 20  # memories of one owner in one lease, so that others get their turn
# The waits between the tries of one message, in seconds: the specification's, three days and more in all.
WAITS = (5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)
_SPREAD = 0.1  # of a wait, by the message: many that failed together do not come back together
MOST_RETRY_AFTER = 86_400.0  # seconds; a receiver may ask for more, it does not get it
TROUBLE = timedelta(hours=1)  # of tries that fail, then somebody is told


class SendResult(StrEnum):
    """What became of one try."""

    TOLD = "told"
    FAILED = "failed"  # it is tried again
    NOT_SENT = "not_sent"  # its URL wants no requests at the moment; that is no try
    GIVEN_UP = "given_up"  # the last try failed, or the receiver says that it is gone
    LOST = "lost"  # the lease ended first, or the webhook is gone: nothing was noted


@dataclass(frozen=True, slots=True)
class RetryDecision:
    """What an outcome means for a message. `error` and `attempts` are noted unless it was told; `due_at` is when it
    is tried again."""

    result: SendResult
    error: str = ""
    attempts: int = 0
    due_at: datetime | None = None


def sign(secret: str, message_id: str, seconds: int, body: str) -> str:
    """The value of `webhook-signature`: HMAC-SHA256 under the secret (`whsec_` and base64) over id, time and body."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{message_id}.{seconds}.{body}".encode()
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def headers_of(secret: str, message_id: str, body: str, at: datetime) -> dict[str, str]:
    """What is sent along with a body at this time."""
    seconds = int(at.timestamp())
    return {
        "content-type": "application/json",
        "webhook-id": message_id,
        "webhook-timestamp": str(seconds),
        "webhook-signature": sign(secret, message_id, seconds, body),
    }


def decide_retry(
    outcome: FetchOutcome, message_id: str, attempts: int, at: datetime, waits: Sequence[int] = WAITS
) -> RetryDecision:
    """What the outcome of a try at `at` means, after `attempts` earlier ones; `waits` are those between the tries, in
    seconds. Pure."""
    if isinstance(outcome, FetchFailed) and outcome.code == "rate_limited":
        wait = _spread(message_id, _seconds(outcome.retry_after, at) or waits[0])
        return RetryDecision(
            SendResult.NOT_SENT, describe_outcome(outcome), attempts, at + timedelta(seconds=wait)
        )
    if isinstance(outcome, Fetched) and 200 <= outcome.status < 300:
        return RetryDecision(SendResult.TOLD)
    tried = attempts + 1
    gone = isinstance(outcome, Fetched) and outcome.status == 410
    if gone or tried > len(waits):
        return RetryDecision(SendResult.GIVEN_UP, describe_outcome(outcome), tried)
    wait = _spread(message_id, waits[attempts])
    if isinstance(outcome, Fetched):
        asked = requested_wait(outcome.headers.get("retry-after", ""), at, MOST_RETRY_AFTER)
        wait = max(wait, asked or 0.0)
    return RetryDecision(SendResult.FAILED, describe_outcome(outcome), tried, at + timedelta(seconds=wait))


def describe_outcome(outcome: FetchOutcome) -> str:
    """What a receiver answered, for people. Without the URL, whose path may be a secret."""
    if isinstance(outcome, FetchFailed):
        return outcome.detail
    if outcome.status == 410:
        return "HTTP status 410: the receiver is gone for good"
    if 300 <= outcome.status < 400:
        return f"HTTP status {outcome.status}: redirects are not followed, give the URL it leads to"
    return f"HTTP status {outcome.status}"


def _seconds(until: datetime | None, at: datetime) -> float:
    return 0.0 if until is None else min(max((until - at).total_seconds(), 0.0), MOST_RETRY_AFTER)


def _spread(message_id: str, seconds: float) -> float:
    """A little longer, for some more than for others, always the same for one message."""
    return seconds * (1 + _SPREAD * zlib.crc32(message_id.encode()) / 2**32)


def memory_message(handed: LeasedDelivery) -> str:
    """What is sent of a memory: the same words at every try. Of one that is out of force, its id alone."""
    record, event = handed.record, _event_of(handed)
    data: dict[str, Any] = {"id": record.memory_id, "owner_id": record.owner_id}
    if handed.memory is not None and event is Event.MEMORY_STORED:
        shown = {"content", "memory_type", "label", "confidence", "source_id", "validity_horizon"}
        data |= handed.memory.model_dump(mode="json", include=shown)
    return webhook_messages.body(event, record.created_at, data)


def _event_of(handed: LeasedDelivery) -> Event:
    removed = handed.record.op is DeliveryOp.REMOVE or handed.memory is None
    return Event.MEMORY_REMOVED if removed else Event.MEMORY_STORED


@dataclass(frozen=True, slots=True)
class Batch:
    """What this process is to send to one webhook, in order."""

    to: Endpoint
    handed: Sequence[LeasedDelivery]


class Webhooks:
    """Sends what is due (`jobs`), and says what is not well. Its coroutines belong to one event loop; `problems` and
    `problem` may be called from any thread."""

    def __init__(
        self,
        store: Store,
        outbound: Outbound | None,
        *,
        page: str | None = None,
        clock: Callable[[], datetime] = now_in_utc,
    ) -> None:
        """`outbound` None: nothing is sent, because the service is offline. `page` is the address of the review page
        for people, if it is known."""
        self._store = store
        # Many owners may have theirs at one host: a pause that the receiver of one asks for is not the others'.
        self._outbound = None if outbound is None else outbound.limited_by_url()
        self._page = page
        self._clock = clock
        self.messages = Job(
            *(
                "telling webhooks",
                store,
                webhook_messages.next_due,
                self._lease,
                self._tell,
                POLL_SECONDS,
                clock,
            )
        )
        next_due = delivery_streams.webhooks_next_due
        self.memories = Job(
            *(
                "sending memories",
                store,
                next_due,
                self._lease_memories,
                self._send_memories,
                POLL_SECONDS,
                clock,
            )
        )

    @property
    def jobs(self) -> tuple[Job[Any, SendResult], ...]:
        """What is to be run; nothing when offline."""
        return () if self._outbound is None else (self.messages, self.memories)

    async def test(self, to: Endpoint) -> FetchOutcome:
        """Sends a message that says nothing, now; what came of it is noted nowhere."""
        at = self._clock()
        body = webhook_messages.body("webhook.test", at, {"owner_id": to.owner_id, "url": self._page})
        return await self._post(to, webhook_messages.message_id(to.id, new_id_suffix(at)), body, at)

    def problems(self) -> tuple[str, ...]:
        """What is not well with webhooks, and with deliveries to anybody, a sentence each: no owner and no URL is
        named. Raises StorageError."""
        now = self._clock()
        with self._store.read() as connection:
            silent = self._outbound is None and bool(webhooks.listing(connection))
            failing = [hook for hook in webhooks.failing(connection) if self._in_trouble(hook)]
            dead = delivery_streams.dead_letters(connection)
            stuck = deliveries.stuck_since(connection, now)
        found = []
        if silent:
            found.append("Webhooks are told nothing, because the service is offline.")
        elif failing:
            since = _minute(min(map(_since, failing)))
            found.append(
                f"A webhook has not been answered since {since}."
                if len(failing) == 1
                else f"{len(failing)} webhooks have not been answered, the first since {since}."
            )
        if dead:
            are = "1 delivery was" if dead == 1 else f"{dead} deliveries were"
            found.append(f"{are} given up: see `vouchgate delivery list --state dead`.")
        if stuck is not None and now - stuck >= TROUBLE:
            found.append(f"Deliveries have waited since {_minute(stuck)}: their sink takes nothing.")
        return tuple(found)

    def problem(self, owner_id: str) -> str | None:
        """What is not well with the owner's webhooks, for the owner; None when all is. Raises StorageError."""
        with self._store.read() as connection:
            found = [hook for hook in webhooks.failing(connection, owner_id) if self._in_trouble(hook)]
        if not found:
            return None
        first = min(found, key=_since)
        end = (
            "No more is sent to it until it is resumed."
            if first.due_at is None
            else "It is tried on and off."
        )
        return (
            f"Your webhook {first.id} has not been answered since {_minute(_since(first))} "
            f"({first.last_error}). {end}"
        )

    def _in_trouble(self, hook: Webhook) -> bool:
        return hook.due_at is None or self._clock() - _since(hook) >= TROUBLE

    async def _lease(self, now: datetime, room: int) -> list[Message]:
        """Messages on what waits. Goes on while webhooks are found that have nothing to tell."""
        name, page = new_id_suffix(now), self._page
        while True:
            messages, looked_at = await write(
                self._store,
                (),
                lambda c: webhook_messages.lease_due(c, now, room, LEASE_SECONDS, name, page=page),
            )
            if messages or not looked_at:
                return messages

    async def _tell(self, message: Message, at: datetime) -> list[SendResult]:
        """One try."""
        outcome = await self._post(message.to, message.id, message.body, at, resumed=message.resumed)
        verdict = decide_retry(outcome, message.id, message.attempts, at)
        return [await self._noted(message.to, verdict, (), partial(_note_message, message=message, at=at))]

    async def _lease_memories(self, now: datetime, room: int) -> list[Batch]:
        """Memories for as many webhooks as there is room for. Goes on while all that is found need not be sent."""
        name = new_id_suffix(now)

        def due() -> list[tuple[str, str]]:
            with self._store.read() as connection:
                return delivery_streams.webhooks_due(connection, now, room)

        while streams := await asyncio.to_thread(due):
            owner_ids = [owner_id for owner_id, _ in streams]
            take = partial(_take, streams=streams, now=now, name=name)
            if batches := await write(self._store, owner_ids, take):
                return batches
        return []

    async def _send_memories(self, batch: Batch, begun_at: datetime) -> list[SendResult]:
        """One try of each, up to the first that is to be tried again. What was erased or went out of force since the
        lease is not sent; the next lease is of what is left."""
        begun, results = time.monotonic(), list[SendResult]()
        for handed in batch.handed:
            at = begun_at + timedelta(seconds=time.monotonic() - begun)
            record = handed.record
            if not await self._is_needed(handed, at):
                break
            resumed = record.last_error is not None and record.attempts == 0
            outcome = await self._post(batch.to, record.id, memory_message(handed), at, resumed=resumed)
            verdict = decide_retry(outcome, record.id, record.attempts, at, deliveries.WAITS)
            note = partial(_note_memory, handed=handed, at=at)
            results.append(await self._noted(batch.to, verdict, [record.owner_id], note))
            if results[-1] not in (SendResult.TOLD, SendResult.GIVEN_UP):
                break
        return results

    async def _is_needed(self, handed: LeasedDelivery, at: datetime) -> bool:
        """Whether it is still to be sent. If not, or if that cannot be found out, the lease is over."""

        def look() -> bool:
            with self._store.read() as connection:
                return deliveries.is_needed(connection, handed, at)

        try:
            if await asyncio.to_thread(look):
                return True
            await write(self._store, [handed.record.owner_id], partial(_give_back, handed=handed, at=at))
        except Exception:  # it comes again when the lease ends
            log.exception("delivery %s could not be looked at again before it was sent", handed.record.id)
        return False

    async def _noted(
        self, to: Endpoint, verdict: RetryDecision, owner_ids: Sequence[str], note: Callable[..., bool]
    ) -> SendResult:
        """What became of a try, once that is noted."""
        if verdict.result is not SendResult.TOLD:
            log.warning("webhook %s: %s (%s)", to.id, verdict.result.value, verdict.error)
        try:
            noted = await write(self._store, owner_ids, partial(note, verdict=verdict))
        except Exception:  # it is sent again when the lease ends
            log.exception("what was sent to webhook %s, and came to, could not be noted", to.id)
            noted = False
        return verdict.result if noted else SendResult.LOST

    async def _post(
        self, to: Endpoint, message_id: str, body: str, at: datetime, *, resumed: bool = False
    ) -> FetchOutcome:
        if self._outbound is None:
            return FetchFailed("offline", "offline: nothing is sent", to.url)
        if resumed:
            await self._outbound.end_pause(to.url)
        return await self._outbound.fetch(
            to.url,
            method="POST",
            headers=headers_of(to.secret, message_id, body, at),
            body=body.encode(),
            max_bytes=0,
            seconds=POST_SECONDS,
            follow=False,
        )


def _note_message(connection: Connection, message: Message, verdict: RetryDecision, at: datetime) -> bool:
    if verdict.result is SendResult.TOLD:
        return webhook_messages.mark_sent(connection, message, at)
    error, attempts, due_at = verdict.error, verdict.attempts, verdict.due_at
    return webhook_messages.mark_failed(
        connection, message, at, error=error, attempts=attempts, due_at=due_at
    )


def _take(
    connection: Connection, streams: Sequence[tuple[str, str]], now: datetime, name: str
) -> list[Batch]:
    """What is due of these streams, by owner and webhook, of webhooks that are still there and are told it."""
    batches = []
    for owner_id, webhook_id in streams:
        to = webhooks.endpoint(connection, webhook_id)
        if to is None:
            continue
        handed = deliveries.lease(connection, owner_id, webhook_id, now, most=MOST, name=name)
        wanted = [one for one in handed if _event_of(one) in to.events]
        for one in handed:
            if one not in wanted:
                deliveries.drop(connection, one.record, "Its webhook is not told of this.", now)
        if wanted:
            batches.append(Batch(to, wanted))
    return batches


def _note_memory(
    connection: Connection, handed: LeasedDelivery, verdict: RetryDecision, at: datetime
) -> bool:
    if verdict.result is SendResult.TOLD:
        noted = deliveries.mark_done(connection, handed.record, handed.lease, at)
    else:
        error, attempts, due_at = verdict.error, verdict.attempts, verdict.due_at
        noted = deliveries.mark_failed(
            connection, handed.record, handed.lease, at, error=error, attempts=attempts, due_at=due_at
        )
    if not noted:
        _give_back(connection, handed, at)
    return noted


def _give_back(connection: Connection, handed: LeasedDelivery, at: datetime) -> None:
    deliveries.release(connection, handed.record, handed.lease, at)


def _since(hook: Webhook) -> datetime:
    return hook.created_at if hook.failing_since is None else hook.failing_since


def _minute(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"
