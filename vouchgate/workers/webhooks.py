"""The worker that tells owners what waits, by webhooks signed after the Standard Webhooks specification. What is to
be told is in the database (`storage.outgoing.webhook_messages`), so any number of processes may have one.

lease -> post, with nothing locked -> one transaction that notes what came of it
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import logging
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TypeVar

from sqlalchemy import Connection

from vouchgate.ingest.net.client import Outbound
from vouchgate.ingest.net.fetched import Fetched, FetchFailed, FetchOutcome
from vouchgate.ingest.net.hosts import requested_wait
from vouchgate.storage.ids import new_id_suffix
from vouchgate.storage.outgoing import webhook_messages, webhooks
from vouchgate.storage.outgoing.webhook_messages import Message
from vouchgate.storage.outgoing.webhooks import Endpoint, Webhook
from vouchgate.storage.store import Store
from vouchgate.workers.rounds import keep_going, one_round

log = logging.getLogger(__name__)

AT_ONCE = 8  # messages under way, and leases held, in one process
POLL_SECONDS = 2.0  # the longest sleep: what is to be told may have come from another process
ERROR_SECONDS = 10.0  # the sleep after an error, such as a database that is away
POST_SECONDS = 15.0  # for all of one try; the specification says 15 to 30
LEASE_SECONDS = 75.0  # a try, and a minute for waiting and writing
# The waits between the tries of one message, in seconds: the specification's, three days and more in all.
WAITS = (5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)
_SPREAD = 0.1  # of a wait, by the message: many that failed together do not come back together
MOST_RETRY_AFTER = 86_400.0  # seconds; a receiver may ask for more, it does not get it
TROUBLE = timedelta(hours=1)  # of tries that fail, then somebody is told

T = TypeVar("T")


class SendResult(StrEnum):
    """What became of one try."""

    TOLD = "told"
    FAILED = "failed"  # it is tried again
    NOT_SENT = "not_sent"  # the host wants no requests at the moment; that is no try
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


class Webhooks:
    """Sends what is due, and says what is not well. Its coroutines belong to one event loop; `problems` and
    `problem` may be called from any thread. Nothing is kept between two calls."""

    def __init__(
        self,
        store: Store,
        outbound: Outbound | None,
        *,
        page: str | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """`outbound` None: nothing is sent, because the service is offline. `page` is the address of the review page
        for people, if it is known."""
        self._store = store
        self._outbound = outbound
        self._page = page
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
                what="telling webhooks",
            )

    async def run_once(self, now: datetime) -> Counter[SendResult]:
        """Sends what is due at `now` or comes due while it works. Raises StorageError when nothing can be taken."""
        if self._outbound is None:
            return Counter()
        return await one_round(now, AT_ONCE, self._lease, self._send)

    async def test(self, to: Endpoint) -> FetchOutcome:
        """Sends a message that says nothing, now; what came of it is noted nowhere."""
        at = self._clock()
        body = webhook_messages.body("webhook.test", at, {"owner_id": to.owner_id, "url": self._page})
        return await self._post(to, webhook_messages.message_id(to.id, new_id_suffix(at)), body, at)

    def problems(self) -> tuple[str, ...]:
        """What is not well with all webhooks, a sentence at most: no owner and no URL is named. Raises
        StorageError."""
        with self._store.read() as connection:
            if self._outbound is None:
                kept = webhooks.listing(connection)
                return ("Webhooks are told nothing, because the service is offline.",) if kept else ()
            found = [hook for hook in webhooks.failing(connection) if self._in_trouble(hook)]
        if not found:
            return ()
        since = _minute(min(_since(hook) for hook in found))
        if len(found) == 1:
            return (f"A webhook has not been answered since {since}.",)
        return (f"{len(found)} webhooks have not been answered, the first since {since}.",)

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

    def _until_next(self) -> float:
        """Seconds to sleep. A moment at least: what is due now is with another process."""
        with self._store.read() as connection:
            due = webhook_messages.next_due(connection)
        seconds = POLL_SECONDS if due is None else (due - self._clock()).total_seconds()
        return max(min(seconds, POLL_SECONDS), 0.1)

    async def _lease(self, now: datetime, room: int) -> list[Message]:
        """What is due, as much as there is room for. Goes on while webhooks are found that have nothing to tell."""
        name, page = new_id_suffix(now), self._page
        while True:
            due = await asyncio.to_thread(self._next_due)
            if due is None or due > now:
                return []
            messages, looked_at = await self._write(
                lambda c: webhook_messages.lease_due(c, now, room, LEASE_SECONDS, name, page=page)
            )
            if messages or not looked_at:
                return messages

    def _next_due(self) -> datetime | None:
        with self._store.read() as connection:
            return webhook_messages.next_due(connection)

    async def _send(self, message: Message, at: datetime) -> list[SendResult]:
        """One try, and the note of what came of it."""
        outcome = await self._post(message.to, message.id, message.body, at)
        verdict = decide_retry(outcome, message.id, message.attempts, at)
        if verdict.result is not SendResult.TOLD:
            log.warning("webhook %s: %s (%s)", message.to.id, verdict.result.value, verdict.error)
        try:
            noted = await self._write(lambda c: _write_outcome(c, message, verdict, at))
        except Exception:  # it is sent again when the lease ends
            log.exception("what a message to webhook %s came to could not be noted", message.to.id)
            return [SendResult.LOST]
        return [verdict.result if noted else SendResult.LOST]

    async def _post(self, to: Endpoint, message_id: str, body: str, at: datetime) -> FetchOutcome:
        if self._outbound is None:
            return FetchFailed("offline", "offline: nothing is sent", to.url)
        return await self._outbound.fetch(
            to.url,
            method="POST",
            headers=headers_of(to.secret, message_id, body, at),
            body=body.encode(),
            max_bytes=0,
            seconds=POST_SECONDS,
            follow=False,
        )

    async def _write(self, work: Callable[[Connection], T]) -> T:
        return await asyncio.wrap_future(self._store.writer.run((), work))


def _write_outcome(connection: Connection, message: Message, verdict: RetryDecision, at: datetime) -> bool:
    if verdict.result is SendResult.TOLD:
        return webhook_messages.mark_sent(connection, message, at)
    return webhook_messages.mark_failed(
        connection, message, at, error=verdict.error, attempts=verdict.attempts, due_at=verdict.due_at
    )


def _since(hook: Webhook) -> datetime:
    return hook.created_at if hook.failing_since is None else hook.failing_since


def _minute(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"
