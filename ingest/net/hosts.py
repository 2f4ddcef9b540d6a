"""How much one host is asked: so many requests at once, so far apart, and none while it wants none. Owners take turns
at a host, and share the requests of the process: slow hosts that one names make no other wait."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TypeVar

from vouchgate.ingest.net.shared_limits import GRACE_SECONDS, POLL_SECONDS, SharedHostLimits
from vouchgate.ingest.net.turns import Turns, asking

T = TypeVar("T")

LONGEST_PAUSE = 3_600.0  # seconds; a host that asks for more is asked again after an hour
AT_ONCE = 200  # requests of one process; citations should not use up a service's file descriptors
OWNER_AT_ONCE = AT_ONCE // 2  # of one owner's claims
_REMEMBERED = 10_000  # hosts whose pause or last start is kept; the oldest go first


class LimitsUnavailable(Exception):
    """The limits that processes share cannot be read or written, so nothing may be asked."""


@dataclass(slots=True)
class _Queue:
    """Who waits for one host in this process."""

    slots: Turns
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)  # of the one that starts next
    users: int = 0


class HostLimits:
    """The limits per host name. With a folder, all processes of this machine that are given it keep them
    together: then a host is asked `per_host` times at once by all of them, not by each."""

    def __init__(
        self,
        per_host: int,
        spacing_seconds: float,
        shared: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._per_host = per_host
        self._spacing = spacing_seconds
        self._clock = clock
        self._shared = (
            SharedHostLimits(shared, per_host, spacing_seconds, clock) if shared is not None else None
        )
        # Before a request stands among those of others, so that what waits for its owner's own holds nobody up:
        # of one owner so many at a host, and in all. Then the host's slots, and the room of the process.
        self._owners_at_host = Turns(per_host)
        self._owners = Turns(OWNER_AT_ONCE)
        self._room = Turns(AT_ONCE, AT_ONCE)
        self._queues: dict[str, _Queue] = {}  # only of hosts that are being asked or waited for
        self._next: dict[str, float] = {}  # when the next request may start
        self._paused: dict[str, float] = {}  # until when none may

    def pause(self, host: str) -> float:
        """Seconds for which this host wants no requests; 0 when it may be asked."""
        return max(0.0, self._paused.get(host, 0.0) - self._clock())

    async def hold(self, host: str, seconds: float) -> None:
        """Asks nothing of the host for so long, an hour at most. Raises LimitsLost."""
        seconds = min(seconds, LONGEST_PAUSE)
        self._keep(self._paused, host, self._clock() + seconds)
        if (shared := self._shared) is not None:
            while not _sure(partial(shared.hold, host, seconds)):
                await asyncio.sleep(POLL_SECONDS * random.random())  # noqa: S311  (no secret)

    @asynccontextmanager
    async def slot(self, host: str) -> AsyncIterator[float]:
        """Waits until the host may be asked once more, and counts as asking it until the end of the block.

        Gives 0, or the seconds for which the host wants no requests: then it must not be asked. Raises LimitsLost.
        """
        if pause := self.pause(host):
            yield pause
            return
        queue = self._queues.setdefault(host, _Queue(Turns(self._per_host, self._per_host)))
        queue.users += 1
        owner_id = asking()
        try:
            async with AsyncExitStack() as held:
                await held.enter_async_context(self._owners_at_host.of((owner_id, host)))
                for turns in (self._owners, queue.slots, self._room):
                    await held.enter_async_context(turns.of(owner_id))
                handle: int | None = None
                try:
                    async with queue.turn:
                        pause, handle = await (
                            self._start_here(host)
                            if self._shared is None
                            else self._start_shared(host, self._shared)
                        )
                    yield pause
                finally:
                    if handle is not None:
                        os.close(handle)  # which frees the slot for all processes
        finally:
            queue.users -= 1
            if not queue.users:
                del self._queues[host]

    async def _start_here(self, host: str) -> tuple[float, None]:
        while not (pause := self.pause(host)):
            now = self._clock()
            wait = self._next.get(host, now) - now
            if wait <= 0:
                self._keep(self._next, host, now + self._spacing)
                return 0.0, None
            await asyncio.sleep(wait)
        return pause, None

    async def _start_shared(self, host: str, shared: SharedHostLimits) -> tuple[float, int | None]:
        stood_back = False
        while True:
            answer = _sure(partial(shared.start, host, stood_back=stood_back))
            if answer.pause:
                self._keep(self._paused, host, self._clock() + answer.pause)
                return answer.pause, None
            if answer.handle is not None:
                return 0.0, answer.handle
            stood_back = stood_back or answer.stand_back
            wait = max(answer.wait, GRACE_SECONDS if answer.stand_back else 0.0)
            await asyncio.sleep(wait * (1 + random.random() / 4))  # noqa: S311  (so that pollers do not march in step)

    def _keep(self, times: dict[str, float], host: str, until: float) -> None:
        times.pop(host, None)
        if len(times) >= _REMEMBERED:
            now = self._clock()
            for known in [known for known, then in times.items() if then <= now]:
                del times[known]
            for known in list(times)[: len(times) - _REMEMBERED * 9 // 10]:
                del times[known]
        times[host] = until


def _sure(act: Callable[[], T]) -> T:
    try:
        return act()
    except OSError as error:
        raise LimitsUnavailable(f"the limits per host cannot be kept ({error.strerror})") from error


def requested_wait(value: str, now: datetime, most: float = LONGEST_PAUSE) -> float | None:
    """Seconds that a Retry-After header asks for (RFC 9110: seconds, or a date), at most an hour or `most`; None
    when it asks for nothing that can be understood or lies in the past."""
    text = value.strip()
    if text.isascii() and text.isdigit() and len(text) <= 10:
        seconds = float(text)
    else:
        try:
            date = datetime.strptime(text[:40], "%a, %d %b %Y %H:%M:%S GMT").replace(tzinfo=UTC)
        except ValueError:
            return None
        seconds = (date - now) / timedelta(seconds=1)
    return min(seconds, most) if seconds > 0 else None
