"""Everything whose time is over, ended: what the service does once a minute, and a command at any time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import NamedTuple

from vouchgate.review.queue import Kept, ReviewQueue
from vouchgate.storage.claims import records, source_cache, source_texts
from vouchgate.storage.identity import sessions
from vouchgate.storage.queue import audits, documents


class Expired(NamedTuple):
    """How many this sweep ended; another process may have ended others."""

    items: int
    memories: int
    readings: int = 0  # of sources, which were only kept to save asking again
    sign_ins: int = 0  # sessions and links of the pages, which nobody could use any more
    texts: int = 0  # of sources, kept for replays of decisions that are older than the policy has them kept
    documents: int = 0  # that were checked, with their reports
    records: int = 0  # of what users said and tools returned: their words
    audited: int = 0  # rows of audits that were handed over


def expire(queue: ReviewQueue, now: datetime) -> Expired:
    """Expires pending items past their time and memories past their horizon, and forgets what is kept for a time only;
    each once, whoever else sweeps."""
    items = _all_of(lambda: queue.expire(now))
    memories = _all_of(lambda: queue.expire_memories(now))
    kept: tuple[Kept, ...] = (source_cache, sessions, source_texts, documents, records, audits)
    return Expired(items, memories, *(_all_of(partial(queue.forget, each, now)) for each in kept))


def _all_of(some: Callable[[], int]) -> int:
    """How many there were, done some at a time."""
    return sum(iter(some, 0))
