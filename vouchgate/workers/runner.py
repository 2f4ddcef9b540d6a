"""The one loop of every worker: lease some of what is due, work at it with nothing locked, settle each piece in one
transaction, report, and sleep until something is due.

What is due is in the database, so any number of processes may have the same worker. Whoever dies leaves what it held to
the others: it comes due again when its lease ends.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection

from vouchgate.storage.store import Store

log = logging.getLogger(__name__)

AT_ONCE = 8  # pieces of work under way, and leases held, by one worker of a process
ERROR_SECONDS = 10.0  # the sleep after an error, such as a database that is away
LEAST_SECONDS = 0.1  # the shortest sleep: what is due now is with another process
ANYWAY_SECONDS = 10.0  # a PostgreSQL that crashed gives the numbers of lost transactions again

P = TypeVar("P")  # a piece of work
R = TypeVar("R")  # what one piece came to
T = TypeVar("T")

Report = Callable[[Mapping[R, int]], None]


def now_in_utc() -> datetime:
    """The clock of a worker, unless a test gives another."""
    return datetime.now(UTC)


@dataclass(slots=True)
class _Known:
    """What `next_due` said, of which version of the database (`Store.version`), and when by the monotonic clock."""

    version: str = ""
    due: datetime | None = None
    asked_at: float = float("-inf")


@dataclass(frozen=True, slots=True)
class Job(Generic[P, R]):
    """What a worker does. Its coroutines belong to one event loop.

    `next_due` tells when the next piece comes due or a lease ends; None when there is none. It depends on the database
    alone, and is asked only after something was written, or after a while. `lease` gets the time and how many pieces
    there is room for, and takes them in a transaction of its own; none when others were faster. `work` does one piece
    and settles it, and says what came of it; what it raises ends the round. `poll_seconds` is the longest sleep,
    because work may come from another process. `at_once` pieces are under way, and leased, at most.
    """

    name: str  # of what failed, in the log: "checking again"
    store: Store
    next_due: Callable[[Connection], datetime | None]
    lease: Callable[[datetime, int], Awaitable[Sequence[P]]]
    work: Callable[[P, datetime], Coroutine[Any, Any, Iterable[R]]]
    poll_seconds: float
    clock: Callable[[], datetime] = now_in_utc
    at_once: int = AT_ONCE
    _known: _Known = field(default_factory=_Known, init=False, compare=False, repr=False)
    _woken: asyncio.Event = field(default_factory=asyncio.Event, init=False, compare=False, repr=False)

    def wake(self) -> None:
        """Has it look at once for what this process has just written, of the event loop that it runs in."""
        self._woken.set()

    async def run(self, report: Report[R]) -> None:
        """Works until it is cancelled, and tells `report` what came of what was done. An error is logged, and the work
        goes on after a while."""

        async def once() -> float:
            await self.run_once(self.clock(), report)
            due = await self._next_due()
            seconds = self.poll_seconds if due is None else (due - self.clock()).total_seconds()
            return max(min(seconds, self.poll_seconds), LEAST_SECONDS)

        await repeat(self.name, once, self._woken)

    async def run_once(self, now: datetime, report: Report[R] = lambda results: None) -> Counter[R]:
        """Does what is due at `now` or comes due while it works; how often what came of it. Raises StorageError when
        nothing can be taken. Cancelled, it cancels what is under way and waits for that."""
        begun = time.monotonic()
        results: Counter[R] = Counter()
        under_way: set[asyncio.Task[Iterable[R]]] = set()
        more = True
        try:
            while more or under_way:
                at = now + timedelta(seconds=time.monotonic() - begun)
                if more and (room := self.at_once - len(under_way)) > 0:
                    due = await self._next_due()
                    pieces = await self.lease(at, room) if due is not None and due <= at else ()
                    more = bool(pieces)
                    under_way |= {asyncio.create_task(self.work(piece, at)) for piece in pieces}
                if under_way:
                    done, under_way = await asyncio.wait(
                        under_way, timeout=self.poll_seconds, return_when=asyncio.FIRST_COMPLETED
                    )
                    more = more or not done  # a piece that takes long keeps nobody else's waiting
                    came = Counter(result for task in done for result in task.result())
                    results += came
                    if came:
                        report(came)
        finally:
            await end(under_way)
        return results

    async def _next_due(self) -> datetime | None:
        def read() -> datetime | None:
            known, now = self._known, time.monotonic()
            version = self.store.version()  # first: what is written meanwhile is another one
            if version != known.version or now > known.asked_at + ANYWAY_SECONDS:
                with self.store.read() as connection:
                    known.due = self.next_due(connection)
                known.version, known.asked_at = version, now
            return known.due

        return await asyncio.to_thread(read)


async def repeat(name: str, work: Callable[[], Awaitable[float]], woken: asyncio.Event | None = None) -> None:
    """Does `work` until it is cancelled, each time after the seconds that the last one gave, or when it is `woken`;
    after an error, which is logged, ERROR_SECONDS."""
    woken = woken or asyncio.Event()
    while True:
        wait, failed = ERROR_SECONDS, True
        woken.clear()  # before it looks: what comes meanwhile has it look again
        try:
            wait, failed = await work(), False
        except Exception:
            log.exception("%s failed; it is tried again", name)
        if (task := asyncio.current_task()) is not None and task.cancelling():
            # `wait_for` of Python 3.11 keeps a cancellation to itself that comes when what it waits for has just ended.
            raise asyncio.CancelledError
        if failed:
            await asyncio.sleep(wait)
            continue
        with suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await woken.wait()


async def write(
    store: Store, owner_ids: Sequence[str], work: Callable[[Connection], T], *, always: bool = False
) -> T:
    """One transaction under the locks of these owners, as `Writer.run`."""
    return await asyncio.wrap_future(store.writer.run(owner_ids, work, always=always))


async def end(tasks: Iterable[asyncio.Future[Any]]) -> None:
    """Cancels what is not done, and waits until it has ended."""
    tasks = list(tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
