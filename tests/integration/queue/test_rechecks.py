"""Work that is due lives in the database: leased by one at a time, taken over from the dead, done once. And what
comes of it for stored memories, whose sources are read again on a schedule."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, event

from tests.claims import NOW
from tests.rechecking import NO_CHECKS, Bench, bench, policy_with
from tests.repos import adr
from tests.reviews import memory, set_mode
from tests.running.patience import until
from tests.running.processes import FORKED
from tests.running.racers import Report, race
from vouchgate.ingest.claims.citation import Citation
from vouchgate.ingest.claims.claim import MemoryType, Source
from vouchgate.ingest.claims.likeness import ItemKind
from vouchgate.ingest.claims.modes import Mode
from vouchgate.ingest.claims.source import Found, Missing, SourceReading, Standing, Unreachable
from vouchgate.ingest.claims.trust import OwnPublishers
from vouchgate.ingest.claims.waiting import ReviewStatus
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.policy import Freshness, Policy, Recheck
from vouchgate.review.recheck import RecheckResult
from vouchgate.storage import ids
from vouchgate.storage.errors import StorageError
from vouchgate.storage.queue import rechecks
from vouchgate.storage.queue.rechecks import LeasedRecheck
from vouchgate.storage.store import Store
from vouchgate.workers.recheck import Rechecker

HERE = Fraction(23, 25)
SOON = NOW + timedelta(seconds=30)
WEEK = timedelta(days=7.8)  # a week and the most of the spread
POLICY = load_policy()
PLAN = POLICY.recheck


@pytest.fixture
def here(store: Store, tmp_path: Path) -> Iterator[Bench]:
    """A bench under the built-in policy."""
    with bench(store, tmp_path) as made:
        yield made


def add(store: Store, count: int, kind: ItemKind = ItemKind.PENDING, owner_id: str = "ann") -> list[str]:
    """Rows that are due one after the other from SOON on; their ids."""
    suffixes = [ids.new_id_suffix(NOW) for _ in range(count)]
    names = [ids.queue_id(suffix) for suffix in suffixes]
    rows: list[dict[str, Any]] = []
    for number, name in enumerate(names):
        row = rechecks.pending_row(POLICY, owner_id, name, (), NOW + timedelta(milliseconds=number))
        assert row is not None
        rows.append(row | {"kind": kind.value})
    store.writer.run([owner_id], lambda c: rechecks.ROWS.write(c, rows)).result()
    return names


def lease(
    store: Store, now: datetime, name: str, limit: int = 10, seconds: float = 60
) -> list[LeasedRecheck]:
    """Takes what is due."""
    return store.writer.run((), lambda c: rechecks.lease(c, now, limit, seconds, name)).result()


def holds(store: Store, due: LeasedRecheck) -> bool:
    """Whether this lease still counts."""
    return store.writer.run([due.owner_id], lambda c: rechecks.hold_lease(c, due)).result()


# --- the schedule


def test_a_lease_keeps_others_away_until_it_ends(store: Store) -> None:
    names = add(store, 3)
    assert lease(store, SOON - timedelta(seconds=1), "early") == []
    first = lease(store, SOON, "one")
    assert [due.item_id for due in first] == names[:1]
    later = SOON + timedelta(seconds=1)
    assert [due.item_id for due in lease(store, later, "two")] == names[1:]
    assert lease(store, later, "three") == []
    assert all(holds(store, due) for due in first)
    over = SOON + timedelta(seconds=60)
    taken = lease(store, over, "four")
    assert [due.item_id for due in taken] == names[:1]
    assert not holds(store, first[0])
    assert holds(store, taken[0])


def test_a_lease_that_ended_and_nobody_took_still_counts(store: Store) -> None:
    add(store, 1)
    (due,) = lease(store, SOON, "one", seconds=0.001)
    assert holds(store, due)


def test_what_waits_for_its_promotion_comes_before_memories(store: Store) -> None:
    memories_ = add(store, 5, ItemKind.MEMORY)
    items = add(store, 3)
    later = SOON + timedelta(minutes=1)
    assert [due.item_id for due in lease(store, later, "one", 5)] == items + memories_[:2]
    with store.read() as connection:
        assert rechecks.next_due(connection) is not None


def test_what_is_read_only_is_not_taken_and_keeps_nobody_s_waiting(store: Store) -> None:
    names = {owner_id: add(store, 2, owner_id=owner_id) for owner_id in ("ann", "bob")}
    later = SOON + timedelta(minutes=1)
    set_mode(store, "ann", Mode.READ_ONLY)
    assert [due.item_id for due in lease(store, later, "one", 2, seconds=600)] == names["bob"]
    with store.read() as connection:
        assert rechecks.next_due(connection) == later + timedelta(seconds=600)
    set_mode(store, "ann", Mode.ENFORCE)
    assert [due.item_id for due in lease(store, later, "two", 2)] == names["ann"]


def test_the_look_for_work_reads_its_index(store: Store) -> None:
    add(store, 3)
    if store.dialect != "sqlite":  # PostgreSQL reads so small a table whole
        return
    with store.read() as connection:
        asked = rechecks._DUE.compile(connection.engine)
        values = {**asked.params, "of_kind": "pending", "now": "2026-05-05 00:00:00", "most": 5}
        marks = tuple(values[name] for name in asked.positiontup or ())
        plan = str(connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {asked}", marks).all())
    assert "recheck_due" in plan
    assert "TEMP B-TREE" not in plan


def take_all(store: Store, label: str) -> Report:
    """Leases what is due, a few at a time, until nothing is left."""
    report: Report = []
    for number in range(1000):
        taken = lease(store, SOON + timedelta(minutes=1), f"{label}{number}", limit=3, seconds=600)
        if not taken:
            return report
        report += [(due.item_id,) for due in taken]
    raise AssertionError("there is always more")


def test_several_processes_share_the_work_without_a_piece_twice(store: Store, database_url: str) -> None:
    names = [name for owner_id in ("ann", "bob") for name in add(store, 60, owner_id=owner_id)]
    reports = race(database_url, take_all, [(label,) for label in "abcd"])
    taken = Counter(name for report in reports for (name,) in report)
    assert taken == dict.fromkeys(names, 1)


def hold_and_die(url: str, during: bool) -> None:
    """Leases work and is killed: with the lease on disk, or in the middle of the transaction that takes it."""
    store = Store.open(url, threshold=HERE)
    if during:

        @event.listens_for(store._engine, "after_cursor_execute")
        def _die(_connection: object, _cursor: object, statement: str, *_more: object) -> None:
            if statement.startswith("UPDATE recheck"):
                os.kill(os.getpid(), signal.SIGKILL)

    lease(store, SOON, "dead", seconds=60)
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("during", [False, True])
def test_what_a_killed_process_held_comes_to_others(store: Store, database_url: str, during: bool) -> None:
    (name,) = add(store, 1)
    process = FORKED.Process(target=hold_and_die, args=(database_url, during))
    process.start()
    process.join(120)
    assert process.exitcode == -signal.SIGKILL
    # PostgreSQL notices a little later that its client is gone, and until then the locked row is skipped.
    alive = until(lambda: lease(store, SOON, "alive")) if during else lease(store, SOON, "alive")
    assert [due.item_id for due in alive] == ([name] if during else [])
    assert [due.item_id for due in lease(store, SOON + timedelta(seconds=60), "later")] == [name]


# --- when


@given(
    first=st.floats(0.001, 86_400),
    growth=st.floats(1, 10),
    attempts=st.integers(0, 10_000),
    most=st.timedeltas(timedelta(seconds=1), timedelta(days=3650)),
)
def test_waits_grow_up_to_a_bound(first: float, growth: float, attempts: int, most: timedelta) -> None:
    plan = Recheck(first_seconds=first, growth=growth, attempts=8, memory_days=7)
    one, next_one = (rechecks.next_wait(plan, tried, most) for tried in (attempts, attempts + 1))
    assert timedelta(0) <= one <= next_one <= most
    assert one >= min(timedelta(seconds=first), most) - timedelta(microseconds=1)


def unreachable(retry_after: datetime | None = None) -> Unreachable:
    """A source that could not be asked."""
    return Unreachable(citation=adr(1), code="rate_limited", detail="Later.", retry_after=retry_after)


def found(**more: Any) -> Found:
    """A source that was there."""
    return Found(citation=adr(1), source_id="ADR-001", standing=Standing.IN_FORCE, detail="It is.", **more)


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [
        (None, 30),
        (NOW + timedelta(seconds=5), 30),
        (NOW - timedelta(days=5), 30),
        (NOW + timedelta(hours=2), 7200),
        (NOW + timedelta(days=400), 86_400),
        (datetime.max.replace(tzinfo=UTC), 86_400),
    ],
)
def test_a_source_may_ask_for_more_time_up_to_a_day(asked: datetime | None, seconds: int) -> None:
    readings: list[SourceReading] = [found(), unreachable(asked), unreachable()]
    row = rechecks.pending_row(POLICY, "ann", "rev_1", readings, NOW)
    assert row is not None
    assert row["due_at"] == NOW + timedelta(seconds=seconds)


def test_when_a_memory_is_looked_at_first() -> None:
    missing = Missing(citation=adr(2), detail="None.")
    assert rechecks.memory_row(POLICY, "ann", "mem_1", (), NOW, memory_type=MemoryType.FACT) is None
    assert rechecks.memory_row(POLICY, "ann", "mem_1", (missing,), NOW, memory_type=MemoryType.FACT) is None
    soon = rechecks.memory_row(
        POLICY, "ann", "mem_1", (found(), unreachable()), NOW, memory_type=MemoryType.FACT
    )
    assert soon is not None
    assert soon["due_at"] == SOON
    late = rechecks.memory_row(POLICY, "ann", "mem_1", (missing, found()), NOW, memory_type=MemoryType.FACT)
    assert late is not None
    assert NOW + timedelta(days=7) <= late["due_at"] <= NOW + timedelta(days=7.7)
    asked = POLICY.model_copy(update={"freshness": Freshness(claims={MemoryType.FACT: 90})})
    confirmed = rechecks.memory_row(asked, "ann", "mem_1", (), NOW, memory_type=MemoryType.FACT)
    assert confirmed is not None and confirmed["due_at"] == NOW + timedelta(days=90)
    assert rechecks.memory_row(asked, "ann", "mem_1", (), NOW, memory_type=MemoryType.DECISION) is None


def test_the_second_look_at_an_unlisted_page_cannot_be_foretold() -> None:
    page = found().model_copy(update={"source_id": "https://blog.example/port", "site": "blog.example"})
    none = Policy.model_validate(
        POLICY.model_dump() | {"recheck": PLAN.model_dump() | {"second_look_days": 0}}
    )
    trusting = POLICY.heeding(OwnPublishers(trusted=("blog.example",)))

    def days(policy: Policy, *readings: SourceReading) -> float:
        row = rechecks.memory_row(policy, "ann", "mem_1", readings, NOW, memory_type=MemoryType.FACT)
        assert row is not None
        return float((row["due_at"] - NOW) / timedelta(days=1))

    looks = [days(POLICY, found(), page) for _ in range(300)]
    assert 0 <= min(looks) < 0.3
    assert 2.7 < max(looks) <= PLAN.second_look_days == 3
    assert len(set(looks)) == len(looks)
    usual = days(POLICY, found())
    assert usual >= 7
    assert [days(none, page), days(trusting, page)] == [usual, usual]


def test_memories_of_one_import_come_due_spread_over_hours() -> None:
    names = [ids.memory_id(ids.new_id_suffix(NOW)) for _ in range(1000)]
    waits = [rechecks.memory_interval(PLAN, name) for name in names]
    assert waits == [rechecks.memory_interval(PLAN, name) for name in names]
    by_hour = Counter(int(wait.total_seconds() // 3600) for wait in waits)
    assert len(by_hour) >= 16  # a tenth of a week has 16.8
    assert max(by_hour.values()) < 150


# --- the worker


@pytest.mark.on("sqlite")
def test_the_worker_runs_until_it_is_cancelled_and_survives_errors(
    store: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vouchgate.workers.runner.ERROR_SECONDS", 0.05)
    with bench(store, tmp_path, policy_with(first_seconds=0.2, growth=1, attempts=20)) as here:
        here.hide()
        begun = datetime.now(UTC)
        here.clock.now = begun
        sent = here.send()
        reports = Counter[RecheckResult]()
        job = Rechecker(store, here.policy, here.examiner.examine, here.world.read).job
        failures = iter([StorageError("away for a moment")])

        def sometimes(connection: Connection) -> datetime | None:
            for error in failures:
                raise error
            return job.next_due(connection)

        async def work() -> None:
            task = asyncio.create_task(replace(job, next_due=sometimes).run(reports.update))
            await asyncio.sleep(1.0)
            here.show()
            end = time.monotonic() + 120
            while not reports[RecheckResult.PROMOTED] and time.monotonic() < end:
                await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert asyncio.all_tasks() == {asyncio.current_task()}

        asyncio.run(work())
        assert "away for a moment" in caplog.text
        assert reports[RecheckResult.PROMOTED] == 1
        assert reports[RecheckResult.AGAIN] >= 1
        assert here.item(sent.queue_id).status is ReviewStatus.PROMOTED


@pytest.mark.on("sqlite")
def test_a_worker_that_is_stopped_while_it_reads_leaves_its_work_to_the_next(here: Bench) -> None:
    sent = here.send(source=Source.USER)
    reading = asyncio.Event()

    async def hangs(citation: Citation, *, fresh: bool = False) -> SourceReading:
        reading.set()
        await asyncio.sleep(60)
        raise AssertionError("nobody waits so long")

    worker = Rechecker(here.store, here.policy, here.examiner.examine, hangs, clock=here.clock)

    async def stopped() -> None:
        task = asyncio.create_task(worker.job.run_once(NOW + WEEK))
        await reading.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(stopped())
    assert here.work(NOW + WEEK) == NO_CHECKS
    assert here.work(NOW + WEEK + timedelta(hours=1)).same == 1
    assert memory(here.store, str(sent.memory_id)).stale_since is None
