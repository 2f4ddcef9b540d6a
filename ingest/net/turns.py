"""So many at once in all and for each owner, so that whoever asks for much waits for itself and not for others."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Hashable, Iterator
from concurrent.futures import Executor
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

_OWNER: ContextVar[str] = ContextVar("owner", default="")


@contextmanager
def on_behalf_of(owner_id: str) -> Iterator[None]:
    """Has what is asked meanwhile, in this task and those that it starts, be this owner's (`asking`): a reader of
    sources is given a citation, and needs no other word of whose it is."""
    before = _OWNER.set(owner_id)
    try:
        yield
    finally:
        _OWNER.reset(before)


def asking() -> str:
    """On whose behalf something is asked now; empty for nobody's."""
    return _OWNER.get()


class Turns:
    """Lets `each` coroutines of a name go on at the same time, and of all names together `total`: then names take
    turns, and each name's go in the order they came in. Belongs to one event loop."""

    def __init__(self, each: int, total: int = sys.maxsize) -> None:
        self._each = each
        self._free = total
        self._going: Counter[Hashable] = Counter()
        self._waiting: dict[Hashable, deque[asyncio.Future[None]]] = {}
        self._next: dict[Hashable, None] = {}  # who waits and has not all of its share, in the order of turns

    @property
    def names(self) -> set[Hashable]:
        """Whose turn it is, and who waits for one."""
        return {*self._going, *self._waiting}

    @asynccontextmanager
    async def of(self, name: Hashable) -> AsyncIterator[None]:
        """Waits for a turn, and has it until the end of the block."""
        await self.take(name)
        try:
            yield
        finally:
            self.give_back(name)

    async def run(
        self, name: Hashable, threads: Executor, work: Callable[[], T], seconds: float | None = None
    ) -> T:
        """Does the work in one of the threads when the turn comes. Raises TimeoutError when it takes over so many
        seconds from then on. Who does not wait any more gives the turn back when the thread is free again, so that no
        work of others is handed to threads that are not."""
        loop = asyncio.get_running_loop()
        await self.take(name)
        try:
            job = threads.submit(work)
        except BaseException:
            self.give_back(name)
            raise

        def free(_: object) -> None:
            with suppress(RuntimeError):  # the loop has been closed, and nobody waits any more
                loop.call_soon_threadsafe(self.give_back, name)

        job.add_done_callback(free)
        return await asyncio.wait_for(asyncio.wrap_future(job), seconds)

    async def take(self, name: Hashable) -> None:
        """Waits for a turn, which lasts until it is given back."""
        if self._free and self._going[name] < self._each and name not in self._waiting:
            self._go(name)
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(name, deque()).append(turn)
        self._line_up(name)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it came at the same moment
                self.give_back(name)
            else:
                self._leave(name, turn)
            raise

    def _go(self, name: Hashable) -> None:
        self._free -= 1
        self._going[name] += 1

    def give_back(self, name: Hashable) -> None:
        """Ends a turn of this name; in the event loop."""
        self._free += 1
        self._going[name] -= 1
        if not self._going[name]:
            del self._going[name]
        self._line_up(name)
        while self._free and self._next:
            following = next(iter(self._next))
            del self._next[following]
            turn = self._waiting[following].popleft()
            if not self._waiting[following]:
                del self._waiting[following]
            if not turn.done():
                self._go(following)
                turn.set_result(None)
            self._line_up(following)

    def _line_up(self, name: Hashable) -> None:
        """Behind the others, if it waits and has a turn left to wait for."""
        if name in self._waiting and self._going[name] < self._each:
            self._next.setdefault(name)

    def _leave(self, name: Hashable, turn: asyncio.Future[None]) -> None:
        if (line := self._waiting.get(name)) is not None and turn in line:
            line.remove(turn)
            if not line:
                del self._waiting[name]
                self._next.pop(name, None)
