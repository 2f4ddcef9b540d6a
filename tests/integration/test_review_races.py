"""Reviewers who act at the same time, in threads and in processes: one wins, and there is one memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from fractions import Fraction
from threading import Barrier

import pytest

from ingest.types import MemoryStatus, ReviewStatus
from review.answers import AlreadyDecided, Approved, Rejected
from storage.store import Store
from tests.claims import NOW, policy
from tests.reviews import all_memories, assert_consistent, queue_of, reviewer, waiting

LATER = NOW + timedelta(hours=1)
OVERDUE = NOW + timedelta(days=policy().queue.expire_days)

# A process of its own: opens the store, says so, waits for the word, acts, and prints how it went.
_REVIEWER = """
import json, sys
from datetime import datetime
from fractions import Fraction
from ingest.policy import load_policy
from ingest.types import Principal, Role
from review.queue import ReviewQueue
from storage.store import Store

task = json.loads(sys.argv[1])
now = datetime.fromisoformat(task["now"])
store = Store.open(task["url"], threshold=Fraction(23, 25))
queue = ReviewQueue(store, load_policy())
me = Principal(id=task["name"], name=task["name"], role=Role.REVIEWER, owners=frozenset({"ann"}))
print("ready", flush=True)
sys.stdin.readline()
if task["act"] == "expire":
    print(json.dumps(queue.expire(now)))
else:
    answers = [queue.approve(me, item, version=1, now=now) for item in task["items"]]
    print(json.dumps([type(answer).__name__ for answer in answers]))
store.close()
"""


def in_two_processes(url: str, act: str, items: list[str], now: datetime) -> list[object]:
    """What two processes print that do the same at the same time."""
    racers = []
    for name in ("one", "two"):
        task = {"url": url, "act": act, "items": items, "now": now.isoformat(), "name": name}
        command = [sys.executable, "-W", "error", "-c", _REVIEWER, json.dumps(task)]
        racers.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    try:
        for racer in racers:
            assert racer.stdout is not None
            assert racer.stdout.readline() == "ready\n"
        for racer in racers:
            assert racer.stdin is not None
            racer.stdin.write("go\n")
            racer.stdin.flush()
        outputs = [racer.communicate(timeout=60)[0] for racer in racers]
        assert [racer.returncode for racer in racers] == [0, 0]
    finally:
        for racer in racers:
            racer.kill()
            racer.communicate()
    return [json.loads(output) for output in outputs]


def test_two_processes_approve_the_same_items(store: Store, database_url: str) -> None:
    items = [waiting(store, f"Service number {n} starts alone.").id for n in range(20)]
    one, two = in_two_processes(database_url, "approve", items, LATER)
    assert isinstance(one, list)
    assert isinstance(two, list)
    for pair in zip(one, two, strict=True):
        assert sorted(pair) == ["AlreadyDecided", "Approved"]
    memories = all_memories(store)
    assert len(memories) == 20
    winners = {
        item.memory_id: item.decided_by
        for item in queue_of(store).get_pending(reviewer(), status=ReviewStatus.APPROVED)
    }
    assert winners == {memory.id: memory.approved_by for memory in memories}
    assert_consistent(store)


def test_two_processes_expire_the_same_items(store: Store, database_url: str) -> None:
    for n in range(20):
        waiting(store, f"Service number {n} starts alone.", owner_id=("ann", "bob", "cat")[n % 3])
    counts = in_two_processes(database_url, "expire", [], OVERDUE)
    assert sum(count for count in counts if isinstance(count, int)) == 20
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
