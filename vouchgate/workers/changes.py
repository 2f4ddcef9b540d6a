"""The watch over corpora and repositories: when one changed, the claims that cite nothing are looked up again soon, for
it may state them by now."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol

from vouchgate.storage.queue import rechecks
from vouchgate.storage.store import Store
from vouchgate.workers.runner import now_in_utc, write

log = logging.getLogger(__name__)

WATCH_SECONDS = 60.0
LISTING_SECONDS = 30.0  # for one look at a corpus or a repository
SOON = timedelta(minutes=2)  # by then every process has seen the change


class Place(Protocol):
    """Where claims are looked up."""

    async def digest(self, seconds: float) -> str | None:
        """What changes when any document does; None when that could not be found out."""
        ...


class ChangeWatch:
    """Looks whether `places` are what they were. What they were is kept in the database, so that a change is seen
    although no process ran, and once for all processes."""

    def __init__(
        self, store: Store, places: Sequence[Place], clock: Callable[[], datetime] = now_in_utc
    ) -> None:
        self._store = store
        self._places = places
        self._clock = clock
        self._seen = ""

    async def look(self) -> float:
        """Looks once. In how many seconds to look again."""
        digests = [await place.digest(LISTING_SECONDS) for place in self._places]
        known = [digest for digest in digests if digest is not None]
        state = hashlib.sha256("\n".join(known).encode()).hexdigest()
        if known and len(known) == len(digests) and state != self._seen:
            now = self._clock()
            count = await write(
                self._store, (), partial(rechecks.bring_forward, places=state, now=now, due=now + SOON)
            )
            self._seen = state
            if count:
                log.info("%d claims that cite nothing are looked up again: documents have changed", count)
        return WATCH_SECONDS
