"""So many at once for each name, so that whoever asks for much waits for itself and not for others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Turns:
    """Lets `at_once` coroutines of each name go on at the same time. Belongs to one event loop."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._places: dict[str, tuple[asyncio.Semaphore, set[object]]] = {}

    @property
    def names(self) -> set[str]:
        """Whose turn it is, and who waits for one."""
        return set(self._places)

    @asynccontextmanager
    async def of(self, name: str) -> AsyncIterator[None]:
        """Waits for a turn, and has it until the end of the block."""
        places, here = self._places.setdefault(name, (asyncio.Semaphore(self._at_once), set()))
        me = object()
        here.add(me)
        try:
            async with places:
                yield
        finally:
            here.discard(me)
            if not here:
                self._places.pop(name, None)
