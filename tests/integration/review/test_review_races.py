"""Reviewers who act at the same time, in threads and in processes: one wins, and there is one memory."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from fractions import Fraction
from threading import Barrier

import pytest

from tests.claims import NOW, policy
from tests.reviews import all_memories, assert_consistent, queue_of, reviewer, waiting
from tests.running.racers import Report, race
from vouchgate.ingest.claims.memory import MemoryStatus
from vouchgate.ingest.claims.waiting import ReviewStatus
from vouchgate.review.answers import AlreadyDecided, Approved, Rejected
from vouchgate.storage.queue.pending import QueueFilter
from vouchgate.storage.store import Store

LATER = NOW + timedelta(hours=1)
OVERDUE = NOW + timedelta(days=policy().queue.expire_days)


def rule(store: Store, name: str, items: list[str]) -> Report:
    """Approves the items in turn, or without items expires what is overdue; how it went."""
    queue = queue_of(store)
    if not items:
        return [("expired", str(queue.expire(OVERDUE)))]
    me = reviewer(name=name)
    return [(type(queue.approve(me, item, version=1, now=LATER)).__name__,) for item in items]


def test_two_processes_approve_the_same_items(store: Store, database_url: str) -> None:
    items = [waiting(store, f"Service number {n} starts alone.").id for n in range(20)]
    for pair in zip(*race(database_url, rule, [("one", items), ("two", items)]), strict=True):
        assert sorted(pair) == [("AlreadyDecided",), ("Approved",)]
    memories = all_memories(store)
    assert len(memories) == 20
    winners = {
        item.memory_id: item.decided_by
        for item in queue_of(store).search(
            reviewer(), QueueFilter(status=ReviewStatus.APPROVED, order="oldest")
        )
    }
    assert winners == {memory.id: memory.approved_by for memory in memories}
    assert_consistent(store)


def test_two_processes_expire_the_same_items(store: Store, database_url: str) -> None:
    for n in range(20):
        waiting(store, f"Service number {n} starts alone.", owner_id=("ann", "bob", "cat")[n % 3])
    reports = race(database_url, rule, [("one", []), ("two", [])])
    assert sum(int(count) for ((_, count),) in reports) == 20
    assert_consistent(store)


@pytest.mark.parametrize("stores", [1, 2])
def test_many_threads_on_one_item(store: Store, database_url: str, stores: int) -> None:
    """Approvals and rejections of the same version, through one writer or through two."""
    item = waiting(store, "The nightly export leaves for bucket seven.")
    others = [Store.open(database_url, threshold=Fraction(23, 25)) for _ in range(stores - 1)]
    queues = [queue_of(one) for one in (store, *others)]
    start = Barrier(8)

    def act(n: int) -> object:
        queue, who = queues[n % stores], reviewer(name=f"r{n}")
        start.wait()
        if n % 4 == 3:
            return queue.reject(who, item.id, version=1, reason="no", now=LATER)
        return queue.approve(who, item.id, version=1, now=LATER)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(act, range(8)))
    for other in others:
        other.close()
    kinds = Counter(type(answer) for answer in answers)
    assert kinds[AlreadyDecided] == 7
    won = kinds[Approved]
    assert won + kinds[Rejected] == 1
    assert [memory.status for memory in all_memories(store)] == [MemoryStatus.ACTIVE] * won
    current = queue_of(store).get_by_id(reviewer(), item.id)
    assert current is not None
    assert all(answer.current == current for answer in answers if isinstance(answer, AlreadyDecided))
    assert_consistent(store)
