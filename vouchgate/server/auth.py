"""From the Authorization header to a principal, and what a principal may do."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import struct
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from vouchgate.ingest.claims.people import Principal
from vouchgate.storage.identity import tokens
from vouchgate.storage.store import Store

REMEMBER_SECONDS = 60.0  # how long a principal is remembered for submits
REMEMBER_TOKENS = 1000  # how many

_BUCKET = struct.Struct("dd")  # level, time


class Authenticator:
    """Reads tokens from the database, so that a revoked one stops working at once.

    A submit need not ask before its write transaction, which sees for all claims of a group at once whether
    their tokens still hold (`Submission.recheck_token`). For those a principal is remembered for a while.
    """

    def __init__(
        self,
        store: Store,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._clock = clock
        self._timer = timer
        self._remembered: dict[bytes, tuple[Principal, float]] = {}
        # A look-up in the SQLite file takes less time than a hop to another thread; a server may be slow.
        self._inline = store.dialect == "sqlite"

    async def principal(self, authorization: str | None) -> Principal | None:
        """Who presents this header, as the database says now; None when nobody known does."""
        presented = _read_token(authorization)
        if presented is None:
            return None
        if self._inline:
            return self._look_up(presented)
        return await asyncio.get_running_loop().run_in_executor(None, self._look_up, presented)

    async def cached_principal(self, authorization: str | None) -> Principal | None:
        """As `principal`, but the answer may be a minute old: only for what looks again before it writes."""
        digest = hashlib.sha256((authorization or "").encode("latin-1", "replace")).digest()
        known = self._remembered.get(digest)
        if known is not None and self._timer() - known[1] < REMEMBER_SECONDS:
            return known[0]
        principal = await self.principal(authorization)
        if principal is None:
            self._remembered.pop(digest, None)
            return None
        if len(self._remembered) >= REMEMBER_TOKENS:
            self._remembered.clear()
        self._remembered[digest] = (principal, self._timer())
        return principal

    def _look_up(self, presented: str) -> Principal | None:
        with self._store.read() as connection:
            return tokens.authenticate(connection, presented, self._clock())


def _read_token(authorization: str | None) -> str | None:
    scheme, _, presented = (authorization or "").partition(" ")
    return presented.strip() or None if scheme.lower() == "bearer" else None


class RateLimit:
    """A token bucket per principal: `per_minute` claims a minute, all at once if need be. What is more than the bucket
    holds passes when it is full, and what is above is owed: nothing else passes until it is paid off.

    With a folder the buckets are files in it, one a principal, which the processes that are given the same
    folder share. Their clock must then be one clock, as the monotonic one of a machine is.
    """

    def __init__(
        self, per_minute: int, clock: Callable[[], float] = time.monotonic, folder: Path | None = None
    ) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._folder = folder
        self._buckets: dict[str, tuple[float, float]] = {}

    def wait(self, principal_id: str, claims: int = 1, *, taken: int = 0) -> float:
        """Takes `claims`, of which `taken` were taken before, from the bucket and returns 0, or takes nothing and
        returns the seconds after which all of them would pass.

        Raises OSError when a shared bucket cannot be read or written: the claim is then not let through.
        """
        if not self._per_minute:
            return 0.0
        if self._folder is not None:
            return self._wait_shared(
                self._folder / hashlib.sha256(principal_id.encode()).hexdigest(), claims, taken
            )
        seconds, self._buckets[principal_id] = self._take(self._buckets.get(principal_id), claims, taken)
        return seconds

    def _wait_shared(self, file: Path, claims: int, taken: int) -> float:
        bucket = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(bucket, fcntl.LOCK_EX)  # for some microseconds; a process that dies lets go of it
            kept = os.pread(bucket, _BUCKET.size, 0)
            level, then = _BUCKET.unpack(kept) if kept else (float(self._per_minute), self._clock())
            seconds, after = self._take((level, then), claims, taken)
            os.pwrite(bucket, _BUCKET.pack(*after), 0)
        finally:
            os.close(bucket)
        return seconds

    def _take(
        self, bucket: tuple[float, float] | None, claims: int, taken: int
    ) -> tuple[float, tuple[float, float]]:
        """The seconds to wait, and the bucket (its level, below 0 while something is owed, and the time of it)
        afterwards."""
        now, full = self._clock(), float(self._per_minute)
        level, then = bucket or (full, now)
        level = min(full, level + max(0.0, now - then) * full / 60)
        needed = min(float(claims), full)
        if level < needed - taken:
            return (needed - level) * 60 / full, (level, now)
        return 0.0, (level - (claims - taken), now)
