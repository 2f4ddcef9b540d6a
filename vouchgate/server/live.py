"""Tells open pages that their owner's queue has changed.

Several processes share a database, so a change may have been written anywhere: the end of each owner's log is what
says so, and one task in each process looks at it, for all who listen together and only while somebody does.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self

from vouchgate.storage.identity import owners
from vouchgate.storage.queue import overview
from vouchgate.storage.store import Store

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0  # between two looks at the database; a page learns of a change within that
# Between two signs of life on a quiet stream: what the HTML standard advises, as proxies close one that is silent.
HEARTBEAT_SECONDS = 15.0
MOST_FOR_ONE = (
    5  # streams of one owner: a browser keeps six connections to a site at most, and needs one for pages
)
MOST_IN_ALL = 500  # streams of one process


@dataclass(frozen=True, slots=True)
class QueueState:
    """An owner's queue at one moment. `seq` is the number of the owner's last log entry: two states with the same
    one are the same, but for a snooze that ended. `waiting` items are listed."""

    seq: int
    waiting: int


class TooManyStreams(Exception):
    """As many streams are open as may be, or the service ends."""


class Stream:
    """The states of one owner's queue, for one listener: the present one, then each later one. One that comes
    while the listener is busy with another replaces it, so the listener may miss states but never the last."""

    def __init__(self) -> None:
        self.crowded_out = False  # ended because its owner has opened so many others since
        self._ended = False
        self._newest: QueueState | None = None  # None: not known yet
        self._told: QueueState | None = None
        self._changed = asyncio.Event()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> QueueState:
        """May be cancelled, and asked again: nothing is lost."""
        while not self._ended:
            if self._newest is not None and self._newest != self._told:
                self._told = self._newest
                return self._newest
            self._changed.clear()
            await self._changed.wait()
        raise StopAsyncIteration

    def push_state(self, state: QueueState) -> None:
        """The queue is in this state now."""
        self._newest = state
        self._changed.set()

    def end(self, *, crowded_out: bool = False) -> None:
        """Nothing more is told."""
        self._ended, self.crowded_out = True, crowded_out
        self._changed.set()


class Hub:
    """The streams of one process. It belongs to one event loop."""

    def __init__(
        self,
        store: Store,
        report: Callable[[int], None] = lambda count: None,
        *,
        look_seconds: float = LOOK_SECONDS,
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
        most_for_one: int = MOST_FOR_ONE,
        most_in_all: int = MOST_IN_ALL,
    ) -> None:
        """`report` is told how many streams are open, whenever that changes."""
        self.heartbeat_seconds = heartbeat_seconds
        self._store = store
        self._report = report
        self._look_seconds = look_seconds
        self._most_for_one = most_for_one
        self._most_in_all = most_in_all
        self._streams: dict[str, list[Stream]] = {}  # by owner, in the order they were opened
        self._open = 0
        self._closed = False
        self._poller: asyncio.Task[None] | None = None
        self._asked = asyncio.Event()  # to look at once: somebody new listens, or nobody does any more
        self._blind = False  # the last look failed

    @contextmanager
    def listen(self, owner_id: str) -> Iterator[Stream]:
        """The owner's states, until it is left or the hub closes. The owner's oldest stream makes room where there
        are too many. Raises NoRoom."""
        stream = self._add(owner_id)
        try:
            yield stream
        finally:
            self._remove(owner_id, stream)

    def close(self) -> None:
        """Ends every stream, and takes no more."""
        self._closed = True
        for owner_id, streams in list(self._streams.items()):
            for stream in list(streams):
                stream.end()
                self._remove(owner_id, stream)
        if self._poller is not None:
            self._poller.cancel()

    def _add(self, owner_id: str) -> Stream:
        mine = self._streams.get(owner_id, [])
        if self._closed or (self._open >= self._most_in_all and len(mine) < self._most_for_one):
            raise TooManyStreams
        if len(mine) >= self._most_for_one:
            oldest = mine[0]
            oldest.end(crowded_out=True)
            self._remove(owner_id, oldest)
        stream = Stream()
        self._streams.setdefault(owner_id, []).append(stream)
        self._count(+1)
        self._asked.set()
        if self._poller is None or self._poller.done():
            self._poller = asyncio.create_task(self._poll())
        return stream

    def _remove(self, owner_id: str, stream: Stream) -> None:
        """Nothing when it was removed before."""
        streams = self._streams.get(owner_id, [])
        if stream not in streams:
            return
        streams.remove(stream)
        if not streams:
            del self._streams[owner_id]
        self._count(-1)
        if not self._streams:
            self._asked.set()

    def _count(self, change: int) -> None:
        self._open += change
        self._report(self._open)

    async def _poll(self) -> None:
        """Looks every second, and at once when it is asked to, until nobody listens any more."""
        while self._streams:
            self._asked.clear()
            await self._look()
            try:
                async with asyncio.timeout(self._look_seconds):
                    await self._asked.wait()
            except TimeoutError:
                pass

    async def _look(self) -> None:
        try:
            ends = await asyncio.to_thread(self._read, list(self._streams))
        except Exception:
            if not self._blind:
                log.exception(
                    "open pages are not told of changes: the database cannot be read; it is tried again"
                )
            self._blind = True
            return
        if self._blind:
            log.info("open pages are told of changes again")
        self._blind = False
        for owner_id, streams in self._streams.items():
            # Whoever came during the look was not asked for: `_asked` is set, so that the next look is at once.
            if (end := ends.get(owner_id)) is not None:
                for stream in streams:
                    stream.push_state(end)

    def _read(self, owner_ids: Collection[str]) -> Mapping[str, QueueState]:
        with self._store.read() as connection:
            found = owners.log_ends(connection, owner_ids)
            away = overview.away(connection, owner_ids, datetime.now(UTC))
        states = {owner_id: found.get(owner_id, (0, 0)) for owner_id in owner_ids}
        return {one: QueueState(seq, max(0, all_ - away.get(one, 0))) for one, (seq, all_) in states.items()}
