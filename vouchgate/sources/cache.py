"""What was read outside the repositories, kept in the database for as long as the policy says."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

from vouchgate.ingest.claims.source import Found, Missing, SourceReading
from vouchgate.ingest.policy import Remember
from vouchgate.storage.claims import source_cache as sources
from vouchgate.storage.errors import StorageError
from vouchgate.storage.store import Store

log = logging.getLogger(__name__)


class SourceCache:
    """Readings that were kept in the database, for as long as the policy says."""

    def __init__(self, store: Store, remember: Remember) -> None:
        self._store = store
        self._found = timedelta(hours=remember.found_hours)
        self._missing = timedelta(minutes=remember.missing_minutes)
        # Threads of their own: a repository that hangs must not keep a page from being found here.
        self._pool = ThreadPoolExecutor(max_workers=2, thread_name_prefix="kept")

    def close(self) -> None:
        """Waits for look-ups under way."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    async def get(self, key: str, now: datetime) -> SourceReading | None:
        """What was read of it not too long ago. None, and a line in the log, when the database cannot say."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._get, key, now)

    def _get(self, key: str, now: datetime) -> SourceReading | None:
        try:
            with self._store.read() as connection:
                return sources.get(connection, key, now)
        except StorageError:
            log.exception("what was read of %a before cannot be looked up", key)
            return None

    async def put(self, key: str, reading: Found | Missing, now: datetime) -> None:
        """Keeps a reading; that it could not be kept is a line in the log, for the reading is good without."""
        until = now + (self._found if isinstance(reading, Found) else self._missing)

        try:
            work = sources.keeping(key, reading, checked_at=now, expires_at=until)
            await asyncio.wrap_future(self._store.writer.run((), work))
        except StorageError:
            log.exception("what was read of %a cannot be kept", key)
