"""Everything whose time is over, ended: what the service does once a minute, and a command at any time."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from review.queue import ReviewQueue


class Expired(NamedTuple):
    """How many this sweep ended; another process may have ended others."""

    items: int
    memories: int


def expire(queue: ReviewQueue, now: datetime) -> Expired:
    """Expires pending items past their time and memories past their horizon, each once, whoever else sweeps."""
    items = memories = 0
    while count := queue.expire(now):
        items += count
    while count := queue.expire_memories(now):
        memories += count
    return Expired(items, memories)
