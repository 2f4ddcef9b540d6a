"""Everything whose time is over, ended: what the service does once a minute, and a command at any time."""

from __future__ import annotations

from datetime import datetime
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
    items = memories = readings = sign_ins = texts = documents = records = 0
    while count := queue.expire(now):
        items += count
    while count := queue.expire_memories(now):
        memories += count
    while count := queue.forget_readings(now):
        readings += count
    while count := queue.forget_sign_ins(now):
        sign_ins += count
    while count := queue.forget_texts(now):
        texts += count
    while count := queue.forget_documents(now):
        documents += count
    while count := queue.forget_records(now):
        records += count
    return Expired(items, memories, readings, sign_ins, texts, documents, records)
