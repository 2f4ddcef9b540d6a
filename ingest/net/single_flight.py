"""Single flight: what several callers ask for at the same time is fetched once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(eq=False, slots=True)
class _SharedTask:
    """Work under way, how many wait for it, and the timer that ends it once nobody does."""

    task: asyncio.Task[Any]
    waiting: int = 0
    end: asyncio.TimerHandle | None = None

    def stay(self) -> None:
        """Somebody waits again."""
        if self.end is not None:
            self.end.cancel()
            self.end = None


class SharedTasks:
    """Work under way by key. Belongs to one event loop; nothing is kept of what has landed.

    `linger_seconds` is how long work goes on after its last waiter left: a fetch that is nearly done may
    finish, so that its answer can be kept by `start` for the next who asks.
    """

    def __init__(self, *, linger_seconds: float = 0.0) -> None:
        self._linger = linger_seconds
        self._flights: dict[str, _SharedTask] = {}

    def __len__(self) -> int:
        """How many are under way."""
        return len(self._flights)

    async def run_once(self, key: str, start: Callable[[], Awaitable[T]]) -> T:
        """What `start` gives, or the exception it raises. While work for `key` is under way its result is
        waited for and `start` is not called: it must mean the same work for every caller with that key.

        A waiter that is cancelled takes nothing from the others.
        """
        flight = self._flights.get(key)
        if flight is None:
            flight = _SharedTask(asyncio.create_task(_call(start)))
            self._flights[key] = flight
            flight.task.add_done_callback(partial(self._landed, key, flight))
        flight.stay()
        flight.waiting += 1
        try:
            await asyncio.wait({flight.task})  # unlike awaiting the task, a cancelled wait leaves it alone
        finally:
            flight.waiting -= 1
            if not flight.waiting and not flight.task.done():
                loop = asyncio.get_running_loop()
                flight.end = loop.call_later(self._linger, self._abandon, key, flight)
        result: T = flight.task.result()
        return result

    async def close(self) -> None:
        """Cancels what is under way, and whoever waits for it, and waits until it has ended."""
        tasks = [flight.task for flight in self._flights.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _abandon(self, key: str, flight: _SharedTask) -> None:
        self._forget(key, flight)  # first, so that nobody boards what is about to be cancelled
        flight.task.cancel()

    def _landed(self, key: str, flight: _SharedTask, task: asyncio.Task[Any]) -> None:
        flight.stay()
        self._forget(key, flight)
        if not task.cancelled():
            task.exception()  # seen, also when nobody waits any more

    def _forget(self, key: str, flight: _SharedTask) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]


async def _call(start: Callable[[], Awaitable[T]]) -> T:
    return await start()
