"""Work that goes on to its end when whoever asked for it is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class UnderWay:
    """What writes to a store, or asks the gate and is handed over with its answer what is to be written: broken off, it
    would wait for a minute for its lease to end, and all of that owner's that comes after it."""

    def __init__(self) -> None:
        self._tasks = set[asyncio.Task[Any]]()

    async def to_its_end(self, work: Coroutine[Any, Any, T]) -> T:
        """What comes of the work, which goes on where this call is cancelled."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    async def wait(self, seconds: float) -> None:
        """Waits at most so many seconds for what is under way."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # whoever asked may have gone; then nobody else looks at it
