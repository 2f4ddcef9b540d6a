"""Workers, owners, sweepers and agents at one item: it ends once, and nothing is lost or doubled."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.claims import NOW, policy
from tests.rechecking import Bench, World, bench, send
from tests.reviews import all_memories, assert_consistent, history, queue_of, reviewer
from tests.running.racers import Report, race
from vouchgate.gate.examiner import Examiner
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.waiting import ReviewStatus
from vouchgate.review.recheck import RecheckResult
from vouchgate.storage.store import Store
from vouchgate.workers.recheck import Rechecker

SOON = NOW + timedelta(seconds=30)


@pytest.fixture
def here(store: Store, tmp_path: Path) -> Iterator[Bench]:
    """A bench under the built-in policy."""
    with bench(store, tmp_path) as made:
        yield made


def world_of(path: str) -> tuple[World, Examiner]:
    """The same world as the bench's, in another process."""
    world = World(Path(path))
    return world, Examiner(policy(), world, clock=lambda: SOON)


def checks(store: Store, path: str, start: str) -> Report:
    """Works like the service; what it did."""
    world, examiner = world_of(path)
    worker = Rechecker(store, policy(), examiner.examine, world.read, clock=lambda: SOON)
    counts = asyncio.run(worker.job.run_once(datetime.fromisoformat(start)))
    examiner.close()
    return [(result.value, str(counts[result])) for result in RecheckResult]


def approves(store: Store, items: list[str]) -> Report:
    """Approves the items in this order."""
    queue = queue_of(store)
    return [(type(queue.approve(reviewer(), i, version=1, now=SOON)).__name__, i) for i in items]


def expires(store: Store, at: str) -> Report:
    """Sweeps."""
    return [("expired", str(queue_of(store).expire(datetime.fromisoformat(at))))]


def repeats(store: Store, path: str, contents: list[str]) -> Report:
    """Sends the claims once more."""
    _, examiner = world_of(path)
    answers = [send(store, examiner, content) for content in contents]
    examiner.close()
    return [(a.outcome.value, str(a.queue_id or a.memory_id or a.conflicting_memory_id)) for a in answers]


def count(report: Report, name: str) -> int:
    """What a process says it did of one kind."""
    return sum(int(many) for what, many in report if what == name)


def part(store: Store, what: str, given: list[Any]) -> Report:
    """One of the processes of a race."""
    work: Any = {"check": checks, "approve": approves, "expire": expires, "repeat": repeats}[what]
    report: Report = work(store, *given)
    return report


def many(here: Bench, count: int = 8) -> tuple[list[str], list[str]]:
    """Claims that wait for the repository, which is back afterwards: their ids and texts."""
    texts = here.houses(count)
    here.hide()
    items = [str(here.send(text).queue_id) for text in texts]
    here.show()
    return items, texts


def test_two_workers_promote_each_claim_once(here: Bench, database_url: str) -> None:
    items, texts = many(here)
    work: list[tuple[Any, ...]] = [("check", [str(here.repository.path), SOON.isoformat()])] * 3
    reports = race(database_url, part, work)
    assert sum(count(report, "promoted") for report in reports) == len(items)
    assert {here.item(item).status for item in items} == {ReviewStatus.PROMOTED}
    assert sorted(m.content for m in all_memories(here.store)) == sorted(texts)
    actions = Counter(e.action for e in history(here.store))
    assert actions == {Action.CLAIM_QUEUED: len(items), Action.CLAIM_PROMOTED: len(items)}
    assert_consistent(here.store, SOON)


def test_approvals_race_with_promotions(here: Bench, database_url: str) -> None:
    items, texts = many(here)
    work: list[tuple[Any, ...]] = [("check", [str(here.repository.path), SOON.isoformat()])] * 2
    work += [("approve", [items]), ("approve", [items[::-1]])]
    reports = race(database_url, part, work)
    promoted = sum(count(report, "promoted") for report in reports[:2])
    approved = sum(name == "Approved" for report in reports[2:] for name, _ in report)
    assert promoted + approved == len(items)
    ends = Counter(here.item(item).status for item in items)
    assert (ends[ReviewStatus.PROMOTED], ends[ReviewStatus.APPROVED]) == (promoted, approved)
    assert sorted(m.content for m in all_memories(here.store)) == sorted(texts)
    assert_consistent(here.store, SOON)


def test_expiry_races_with_promotions(here: Bench, database_url: str) -> None:
    """The workers' clocks are just before the items' end, the sweepers' just after."""
    items, _ = many(here)
    end = here.item(items[0]).expires_at
    before = end - timedelta(seconds=1)
    work: list[tuple[Any, ...]] = [("check", [str(here.repository.path), before.isoformat()])] * 2
    work += [("expire", [(end + timedelta(minutes=1)).isoformat()])] * 2
    reports = race(database_url, part, work)
    promoted = sum(count(report, "promoted") for report in reports[:2])
    expired = sum(count(report, "expired") for report in reports[2:])
    ends = Counter(here.item(item).status for item in items)
    assert (ends[ReviewStatus.PROMOTED], ends[ReviewStatus.EXPIRED]) == (promoted, len(items) - promoted)
    assert expired == len(items) - promoted  # a worker that runs late leaves them to the sweep
    assert len(all_memories(here.store, SOON)) == promoted
    assert_consistent(here.store, end)


def test_repeats_of_a_claim_race_with_its_promotion(here: Bench, database_url: str) -> None:
    items, texts = many(here, 8)
    path = str(here.repository.path)
    work: list[tuple[Any, ...]] = [("check", [path, SOON.isoformat()])] * 2
    work += [("repeat", [path, texts]), ("repeat", [path, texts[::-1]])]
    reports = race(database_url, part, work)
    assert sum(count(report, "promoted") for report in reports[:2]) == len(items)
    by_text = dict(zip(texts, items, strict=True))
    for sent, report in zip((texts, texts[::-1]), reports[2:], strict=True):
        for text, answer in zip(sent, report, strict=True):
            item = here.item(by_text[text])
            assert answer in {("queued", item.id), ("blocked", str(item.memory_id))}
    assert sorted(m.content for m in all_memories(here.store)) == sorted(texts)
    assert_consistent(here.store, SOON)
