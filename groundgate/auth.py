"""From the Authorization header to a principal, and what a principal may do."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable
from datetime import UTC, datetime

from ingest.types import Principal
from storage import tokens
from storage.store import Store

REMEMBER_SECONDS = 60.0  # how long a principal is remembered for submits
REMEMBER_TOKENS = 1000  # how many


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
        presented = _presented(authorization)
        if presented is None:
            return None
        if self._inline:
            return self._look_up(presented)
        return await asyncio.get_running_loop().run_in_executor(None, self._look_up, presented)

    async def remembered(self, authorization: str | None) -> Principal | None:
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


def _presented(authorization: str | None) -> str | None:
    scheme, _, presented = (authorization or "").partition(" ")
    return presented.strip() or None if scheme.lower() == "bearer" else None


class RateLimit:
    """A token bucket per principal and process: `per_minute` claims a minute, all at once if need be."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}

    def wait(self, principal_id: str, claims: int = 1) -> float:
        """Takes `claims` from the bucket and returns 0, or takes nothing and returns the seconds to wait."""
        if not self._per_minute:
            return 0.0
        now = self._clock()
        level, then = self._buckets.get(principal_id, (float(self._per_minute), now))
        rate = self._per_minute / 60
        level = min(float(self._per_minute), level + (now - then) * rate)
        needed = min(
            claims, self._per_minute
        )  # a batch larger than the bucket passes when the bucket is full
        if level < needed:
            return (needed - level) / rate
        self._buckets[principal_id] = (level - needed, now)
        return 0.0
