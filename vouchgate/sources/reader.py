"""Whatever a citation points at, read: git in threads, everything else over the network, and remembered.

Which part of the world answers for which type of citation is decided here and nowhere else.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from typing import Protocol

from vouchgate.ingest.citations.kinds import Reader
from vouchgate.ingest.claims.citation import IN_REPOSITORIES, Citation, CitationType
from vouchgate.ingest.claims.source import Found, Missing, SourceReading, Unreachable
from vouchgate.ingest.net.single_flight import SharedTasks
from vouchgate.ingest.net.turns import Turns, asking
from vouchgate.ingest.sources.corpus.source import CorpusSource
from vouchgate.ingest.sources.git.source import GitSource
from vouchgate.sources.records import RecordSource

log = logging.getLogger(__name__)

LINGER_SECONDS = 20.0  # how long a reading nobody waits for any more may go on, so that it can be kept


class ReadingCache(Protocol):
    """Readings that are kept from one claim to the next."""

    async def get(self, key: str, now: datetime) -> SourceReading | None: ...

    async def put(self, key: str, reading: Found | Missing, now: datetime) -> None: ...

    def close(self) -> None: ...


class Sources:
    """Every source of a service. Its coroutines belong to one event loop: first `stop_reading`, then `close`."""

    def __init__(
        self,
        git: GitSource,
        elsewhere: Mapping[str, Reader],
        kept: ReadingCache | None = None,
        *,
        corpora: CorpusSource | None = None,
        records: RecordSource | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        threads: int = 8,
    ) -> None:
        self.git = git
        self.corpora = corpora
        self._records = records
        self._elsewhere = elsewhere
        self._kept = kept
        self._clock = clock
        self._flights = SharedTasks(linger_seconds=LINGER_SECONDS)
        self._landed = False
        self._pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="git")
        self._folders = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="corpus")
        self._turns = Turns(max(1, threads // 2), threads)
        self._turns_in_folders = Turns(max(1, threads // 2), threads)

    def close(self) -> None:
        """Waits for git readings, those of corpora, and look-ups under way."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._folders.shutdown(wait=True, cancel_futures=True)
        if self._kept is not None:
            self._kept.close()

    async def stop_reading(self) -> None:
        """Ends what is being read outside git, for whoever waits for it could not be found out, and reads nothing
        there any more; in the event loop that read, before it ends."""
        self._landed = True
        await self._flights.close()

    async def read(self, citation: Citation, *, fresh: bool = False) -> SourceReading:
        """What the citation points at; with `fresh` it is asked again whatever was kept. Never raises: what
        goes wrong could not be found out, and is a line in the log."""
        started = time.perf_counter()
        try:
            reading = await self._read(citation, fresh=fresh)
        except Exception:
            log.exception("reading %a failed", citation.key)
            reading = Unreachable(
                citation=citation, code="error", detail=f"{citation.value} could not be looked up."
            )
        took_ms = round((time.perf_counter() - started) * 1000, 3)
        return reading.model_copy(update={"citation": citation, "took_ms": took_ms})

    async def _read(self, citation: Citation, *, fresh: bool) -> SourceReading:
        if citation.type in IN_REPOSITORIES:
            return await self._turns.run(asking(), self._pool, partial(self.git.read, citation))
        if citation.type is CitationType.CORPUS and self.corpora is not None:
            work = partial(self.corpora.read, citation)
            return await self._turns_in_folders.run(asking(), self._folders, work)
        if citation.type is CitationType.RECORD and self._records is not None:
            look_up = partial(self._records.read, citation, asking())
            return await self._turns_in_folders.run(asking(), self._folders, look_up)
        return await self._read_elsewhere(citation, fresh=fresh)

    async def _read_elsewhere(self, citation: Citation, *, fresh: bool) -> SourceReading:
        source = self._elsewhere.get(citation.type)
        if source is None:
            detail = f"{citation.value} is outside the repositories, and nothing else is asked here."
            return Unreachable(citation=citation, code="offline", detail=detail)
        if self._kept is not None and not fresh:
            known = await self._kept.get(citation.key, self._clock())
            if known is not None:
                return known
        if self._landed:
            return _ending(citation)
        try:
            # Of one owner: what another asked for may wait long for that one's turn.
            flight = f"{asking()}\n{citation.key}"
            return await self._flights.run_once(flight, lambda: self._ask(source, citation))
        except asyncio.CancelledError:
            own = asyncio.current_task()
            if own is None or own.cancelling():
                raise
            return _ending(citation)  # by `stop_reading`

    async def _ask(self, source: Reader, citation: Citation) -> SourceReading:
        reading = await source.read(citation)
        if self._kept is not None and not isinstance(reading, Unreachable):
            await self._kept.put(citation.key, reading, self._clock())
        return reading


def _ending(citation: Citation) -> Unreachable:
    detail = f"{citation.value} was not looked up, because the service is ending."
    return Unreachable(citation=citation, code="timeout", detail=detail)
