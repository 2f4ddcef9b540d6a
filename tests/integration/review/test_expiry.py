"""Memories past their horizon are taken out of force, once, and logged; reads say the same as before."""

from __future__ import annotations

import os
import signal
from datetime import timedelta
from fractions import Fraction

import pytest
from sqlalchemy import event, inspect, select

from tests.claims import NOW, examined, submission_of
from tests.reviews import (
    all_memories,
    assert_consistent,
    history,
    index_tails,
    memory,
    queue_of,
    reviewer,
    set_mode,
    stored,
    waiting,
)
from tests.running.processes import FORKED
from tests.running.racers import Report, race
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.memory import MemoryStatus
from vouchgate.ingest.claims.modes import Mode
from vouchgate.review.ending.expiry import Expired, expire
from vouchgate.storage.claims import memories
from vouchgate.storage.claims.submit import Decided
from vouchgate.storage.dedup import similar, vectors
from vouchgate.storage.dedup.upkeep import KEYS, verify
from vouchgate.storage.store import Store

HERE = Fraction(23, 25)
OWNERS = ("ann", "bob", "cid")
SOON = NOW + timedelta(hours=1)


def expiring(store: Store, count: int = 12, owner_id: str = "ann") -> list[str]:
    """Memories of which every second one holds for an hour; the ids of those."""
    sent = []
    for number in range(count):
        horizon = SOON if number % 2 else None
        text = f"Room {owner_id}{number} is painted in colour c{number * 7} by team t{number}"
        one = examined(text, owner_id=owner_id, validity_horizon=horizon)
        sent.append(store.writer.submit(submission_of(one)))
    answers = [future.result() for future in sent]
    ids = [answer.answer.memory_id for answer in answers if isinstance(answer, Decided)]
    assert len(ids) == count
    return [one for one in ids[1::2] if one is not None]


def test_a_memory_past_its_horizon_is_expired_once(store: Store) -> None:
    passing = expiring(store)
    index_tails(store)
    assert expire(queue_of(store), NOW) == Expired(0, 0)
    before, early = all_memories(store, SOON), all_memories(store)
    assert expire(queue_of(store), SOON) == Expired(0, len(passing))
    assert all_memories(store, SOON) == before
    assert [m.id for m in before if m.status is MemoryStatus.EXPIRED] == sorted(passing)
    assert [m.id for m in early] == [m.id for m in before]
    with store.read() as connection:
        marked = connection.scalars(
            select(memories.TABLE.c.id).where(memories.TABLE.c.status == "expired")
        ).all()
        for table, column in ((KEYS, "item_id"), (similar.TABLE, "memory_id"), (vectors.TABLE, "item_id")):
            assert not set(connection.scalars(select(table.c[column]))) & set(passing)
    assert sorted(marked) == sorted(passing)
    ended = [(e.action, e.subject_id, e.actor) for e in history(store)[-len(passing) :]]
    assert sorted(ended) == sorted((Action.MEMORY_EXPIRED, one, "service") for one in passing)
    log_before = history(store)
    assert expire(queue_of(store), SOON + timedelta(days=1)) == Expired(0, 0)
    assert history(store) == log_before
    assert_consistent(store, SOON)
    assert verify(store).faults == 0


def test_an_expired_memory_is_retracted_but_not_superseded(store: Store) -> None:
    passing = expiring(store)
    expire(queue_of(store), SOON)
    answer = queue_of(store).retract(reviewer(), passing[0], reason="Never was.", now=SOON)
    assert type(answer).__name__ == "Retracted"
    assert memory(store, passing[0], SOON).retracted_reason == "Never was."
    assert (
        type(queue_of(store).retract(reviewer(), passing[0], reason="Again.", now=SOON)).__name__
        == "AlreadyGone"
    )
    taken = store.writer.run(
        ["ann"], lambda c: memories.supersede(c, "ann", passing[1], by="mem_x", at=SOON)
    ).result()
    assert not taken
    assert expire(queue_of(store), SOON) == Expired(0, 0)


def test_what_holds_again_elsewhere_may_be_said_again(store: Store) -> None:
    """A memory that is expired is no duplicate, before the sweep and after it."""
    kept = stored(store, "The bridge is closed", validity_horizon=SOON)
    later = SOON + timedelta(minutes=1)
    again = examined("The bridge is closed", now=later, validity_horizon=later + timedelta(hours=1))
    answer = store.writer.submit(submission_of(again)).result()
    assert isinstance(answer, Decided)
    assert answer.answer.memory_id not in (None, kept.id)
    assert expire(queue_of(store), later) == Expired(0, 1)
    assert verify(store).faults == 0


@pytest.mark.parametrize("scope", ["ann", ""])
def test_what_is_read_only_waits_and_keeps_nobody_s_waiting(store: Store, scope: str) -> None:
    queue, over = queue_of(store), waiting(store, "The loft is damp.").expires_at
    passing = {owner_id: expiring(store, 12, owner_id) for owner_id in ("ann", "bob")}
    waiting(store, "The attic is dry.", owner_id="bob", now=NOW + timedelta(seconds=1))
    set_mode(store, scope, Mode.READ_ONLY)
    later = over + timedelta(seconds=1)
    mine = len(passing["bob"]) if scope else 0
    assert queue.expire_memories(later, limit=len(passing["ann"])) == mine  # ann's fill no batch
    assert queue.expire(later, limit=1) == bool(scope)
    assert expire(queue, later) == Expired(0, 0)
    set_mode(store, scope, Mode.ENFORCE)
    assert expire(queue, later) == Expired(1 if scope else 2, len(passing["ann"] + passing["bob"]) - mine)


def sweep(store: Store, steps: list[str]) -> Report:
    """Expires what is over, as one of several processes."""
    done = expire(queue_of(store), SOON)
    return [(str(done.memories),)]


def test_several_processes_expire_each_memory_once(store: Store, database_url: str) -> None:
    passing = [one for owner_id in OWNERS for one in expiring(store, 60, owner_id)]
    reports = race(database_url, sweep, [([],)] * 3)
    assert sum(int(count) for ((count,),) in reports) == len(passing)
    entries = [e for owner_id in OWNERS for e in history(store, owner_id)]
    ended = [e.subject_id for e in entries if e.action is Action.MEMORY_EXPIRED]
    assert sorted(ended) == sorted(passing)
    assert_consistent(store, SOON)


def killed_at(url: str, count: int) -> None:
    """Sweeps, and dies inside of a transaction, before the update of the memory of that number."""
    store = Store.open(url, threshold=HERE)
    updates = 0

    @event.listens_for(store._engine, "before_cursor_execute")
    def _die(_connection: object, _cursor: object, statement: str, *_more: object) -> None:
        nonlocal updates
        updates += statement.startswith("UPDATE memory")
        if updates == count:
            os.kill(os.getpid(), signal.SIGKILL)

    expire(queue_of(store), SOON)


@pytest.mark.parametrize("count", [40, 75])
def test_a_sweep_that_was_killed_leaves_nothing_half_done(
    store: Store, database_url: str, count: int
) -> None:
    passing = expiring(store, 160)
    process = FORKED.Process(target=killed_at, args=(database_url, count))
    process.start()
    process.join(120)
    assert process.exitcode == -signal.SIGKILL
    assert_consistent(store, SOON)
    assert verify(store).faults == 0
    ended = [e.subject_id for e in history(store) if e.action is Action.MEMORY_EXPIRED]
    assert len(ended) == (50 if count > 50 else 0)
    assert expire(queue_of(store), SOON) == Expired(0, len(passing) - len(ended))
    assert_consistent(store, SOON)


def test_the_sweep_reads_an_index_of_its_own(database_url: str) -> None:
    expiring(store := Store.open(database_url, threshold=HERE))
    with store.read() as connection:
        assert "memory_due" in {one["name"] for one in inspect(connection).get_indexes("memory")}
        if store.dialect == "sqlite":  # PostgreSQL reads so small a table whole
            asked = memories._DUE.compile(connection.engine)
            values = {**asked.params, "now": "2026-05-05 00:00:00", "most": 5}
            marks = tuple(values[name] for name in asked.positiontup or ())
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {asked}", marks).all()
            assert "memory_due" in str(plan)
    store.close()
