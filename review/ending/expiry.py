"""Everything whose time is over, ended: what the service does once a minute, and a command at any time."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import NamedTuple

from vouchgate.review.queue import ReviewQueue


class Expired(NamedTuple):
    """How many this sweep ended; another process may have ended others."""

    items: int
    memories: int
    readings: int = 0  # of sources, which were only kept to save asking again
    sign_ins: int = 0  # sessions and links of the pages, which nobody could use any more
    texts: int = 0  # of sources, kept for replays of decisions that are older than the policy has them kept
    documents: int = 0  # that were checked, with their reports
    records: int = 0  # of what users said and tools returned: their words


def expire(queue: ReviewQueue, now: datetime) -> Expired:
    """Expires pending items past their time and memories past their horizon, and forgets what was read of
    sources too long ago and who was signed in; each once, whoever else sweeps."""
    sweeps = (
        queue.expire,
        queue.expire_memories,
        queue.forget_readings,
        queue.forget_sign_ins,
        queue.forget_texts,
        queue.forget_documents,
        queue.forget_records,
    )
    return Expired(
        *(sum(iter(partial(sweep, now), 0)) for sweep in sweeps)
    )  # each until there is nothing more
