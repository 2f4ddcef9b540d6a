"""Building the dedup index for another threshold: exact, resumed after a kill, while others write."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from fractions import Fraction

import pytest
from sqlalchemy import Connection, func, select

from tests.claims import NOW, alike, examined, policy, submission_of
from tests.integration.dedup.test_dedup_templates import flood
from tests.reviews import all_memories, assert_consistent, reviewer
from tests.running.processes import FORKED
from tests.running.racers import Report, race
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.likeness import ItemKind, Neighbour
from vouchgate.ingest.dedup.compare import jaccard
from vouchgate.ingest.dedup.signature import signature_keys
from vouchgate.ingest.language.words import tokens
from vouchgate.review.ending.expiry import expire
from vouchgate.review.queue import ReviewQueue
from vouchgate.storage.claims import memories
from vouchgate.storage.claims.submit import Decided, SubmitAnswer
from vouchgate.storage.dedup import builds, index, reindex, upkeep
from vouchgate.storage.dedup.reindex import state_of
from vouchgate.storage.dedup.upkeep import KEYS, TEMPLATES
from vouchgate.storage.dedup.window import DedupIndexView
from vouchgate.storage.engine import open_engine, writing
from vouchgate.storage.errors import StorageError
from vouchgate.storage.queue import pending
from vouchgate.storage.queue.pending import QueueFilter
from vouchgate.storage.store import Store

HERE, THERE = Fraction(23, 25), Fraction(4, 5)
OWNERS = ("ann", "bob", "cid")
SOON = NOW + timedelta(hours=1)
BATCH = 25
ROOM = policy(per_owner=10**6, total=10**6)


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many steps for few items."""
    monkeypatch.setattr(reindex, "BATCH", BATCH)
    monkeypatch.setattr(reindex, "CLEAN_BATCH", 150)
    monkeypatch.setattr(reindex, "REST", 0.0)
    monkeypatch.setattr(reindex, "LEAST_REST", 0.001)


def texts(owner_id: str, count: int) -> Iterator[str]:
    """Claims of two templates, and others."""
    chance = random.Random(owner_id)  # noqa: S311  (a fixed sequence, not a secret)
    yield from flood(21, 3, 60, 2, count=count, edited=0.3)
    yield from flood(16, 1, 500, 1, count=count)
    for _ in range(count):
        yield " ".join(f"free{chance.randrange(4000)}" for _ in range(chance.randint(1, 40)))


def send(store: Store, owner_id: str, content: str, **more: object) -> SubmitAnswer:
    one = examined(content, owner_id=owner_id, under=ROOM, **more)  # type: ignore[arg-type]
    return store.writer.submit(submission_of(one)).result()


def fill(store: Store, count: int = 17) -> None:
    """Memories and waiting items of three owners, some of which end within the hour."""
    chance = random.Random(5)  # noqa: S311
    sent = []
    for owner_id in OWNERS:
        for content in texts(owner_id, count):
            source = chance.choice([Source.USER, Source.AI_SYNTHESIS])
            horizon = SOON if chance.random() < 0.1 else None
            one = examined(content, owner_id=owner_id, under=ROOM, source=source, validity_horizon=horizon)
            sent.append(store.writer.submit(submission_of(one)))
    assert all(isinstance(future.result(), Decided) for future in sent)


def in_force(store: Store) -> dict[str, dict[str, tuple[str, frozenset[str]]]]:
    """By owner and id: the memory type and the words of all that the index must have."""
    found: dict[str, dict[str, tuple[str, frozenset[str]]]] = {}
    with store.read() as connection:
        for table, status in ((memories.TABLE, "active"), (pending.TABLE, "pending")):
            for row in connection.execute(select(table).where(table.c.status == status)):
                words = (row.memory_type, tokens(row.content))
                found.setdefault(row.owner_id, {})[row.id] = words
    return found


def assert_exact(store: Store, threshold: Fraction) -> int:
    """Every item in force finds what brute force finds; no row is too many. How many pairs there were."""
    pairs = 0
    items = in_force(store)
    assert sum(map(len, items.values())) > 100  # enough that some of them are alike
    with store.read() as connection:
        window = DedupIndexView(connection, None)
        for owner_id, of_owner in items.items():
            for memory_type, words in of_owner.values():
                reached = window.find_candidates(owner_id, signature_keys(words, memory_type, threshold))
                assert reached.complete
                ids = {candidate.neighbour.id for candidate in reached.candidates}
                near = {i for i in ids if jaccard(words, of_owner[i][1]) >= threshold}
                assert near == {i for i, (_, other) in of_owner.items() if alike(words, other, threshold)}
                pairs += len(near) - 1
        assert window.threshold == threshold
        built = builds.builds(connection).built
        assert built is not None
        assert set(connection.scalars(select(KEYS.c.generation).distinct())) == {built.generation}
        assert set(connection.scalars(select(TEMPLATES.c.generation))) <= {built.generation}
        state = state_of(connection)
        assert (state.job, state.old) == (None, None)
    assert upkeep.verify(store).faults == 0
    assert_consistent(store)
    return pairs


def rows(store: Store) -> set[tuple[str, int, str]]:
    with store.read() as connection:
        found = connection.execute(select(KEYS.c.owner_id, KEYS.c.key, KEYS.c.item_id)).all()
    return {(row.owner_id, row.key, row.item_id) for row in found}


def open_for(url: str, threshold: Fraction, report: reindex.Report = lambda done, total: None) -> Store:
    return Store.open(url, threshold=threshold, report=report)


@pytest.mark.parametrize("threshold", [THERE, Fraction(1)])
def test_another_threshold_makes_an_exact_index(filled: Store, filled_url: str, threshold: Fraction) -> None:
    assert assert_exact(filled, HERE)
    told: list[tuple[int, int]] = []
    again = open_for(filled_url, threshold, lambda done, total: told.append((done, total)))
    assert_exact(again, threshold)
    items = sum(map(len, in_force(again).values()))
    assert told == sorted(told)
    assert told[0] == (BATCH, items)
    assert told[-1] == (items, items)
    if threshold == THERE:
        with again.read() as connection:
            assert connection.scalar(select(func.count()).select_from(TEMPLATES))
    again.close()


def test_an_index_that_is_ready_is_opened_as_it_is(store: Store, database_url: str) -> None:
    fill(store, 5)
    before = rows(store)
    told: list[int] = []
    open_for(database_url, HERE, lambda done, total: told.append(done)).close()
    assert (rows(store), told) == (before, [])


def killed_after(url: str, steps: int) -> None:
    """Runs the job and dies in the middle of it."""
    reindex.BATCH, reindex.CLEAN_BATCH = BATCH, 150
    left = steps

    def report(done: int, total: int) -> None:
        nonlocal left
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

    reindex.reindex(open_engine(url), THERE, report)


@pytest.mark.parametrize("steps", [3, 9])
def test_a_job_that_was_killed_goes_on(filled: Store, filled_url: str, steps: int) -> None:
    process = FORKED.Process(target=killed_after, args=(filled_url, steps))
    process.start()
    process.join(120)
    assert process.exitcode == -signal.SIGKILL
    items = sum(map(len, in_force(filled).values()))
    with filled.read() as connection:
        state = state_of(connection)
    built = steps * BATCH < items
    if built:  # the index in use is still the old one
        assert state.job is not None
        assert (state.job.done, state.built) == (steps * BATCH, builds.Build(HERE, 1))
    else:
        assert (state.job, state.built, state.old) == (None, builds.Build(THERE, 2), 1)
    told: list[int] = []
    again = open_for(filled_url, THERE, lambda done, total: told.append(done))
    if built:
        assert told[0] == min((steps + 1) * BATCH, items)
    assert_exact(again, THERE)
    resumed = rows(again)
    reindex.reindex(again._engine, HERE)
    reindex.reindex(again._engine, THERE)
    assert rows(again) == resumed
    again.close()


def test_an_error_on_the_way_leaves_what_is_done(filled: Store, filled_url: str) -> None:

    def fail(done: int, total: int) -> None:
        raise KeyboardInterrupt

    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            open_for(filled_url, THERE, fail)
    with filled.read() as connection:
        state = state_of(connection)
    assert state.job is not None
    assert state.job.done == 3 * BATCH
    open_for(filled_url, HERE).close()  # who needs the old one goes on with it, and leaves the job alone
    with filled.read() as connection:
        assert state_of(connection) == state
    again = open_for(filled_url, THERE)
    assert_exact(again, THERE)
    again.close()


def test_what_others_write_meanwhile_is_right(
    filled: Store, filled_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between any two steps another store stores, retracts, approves, rejects and expires, before and behind
    the place of the job."""
    monkeypatch.setattr(reindex, "BATCH", 2 * BATCH)
    monkeypatch.setattr(reindex, "CLEAN_BATCH", 600)
    queue = ReviewQueue(filled, ROOM)
    chance = random.Random(9)  # noqa: S311
    fresh = {owner_id: iter(list(texts(owner_id, 90))[::-1]) for owner_id in OWNERS}
    acts: list[object] = []
    ended = 0

    def meanwhile(done: int, total: int) -> None:
        nonlocal ended
        for owner_id in OWNERS:
            for _ in range(4):
                send(filled, owner_id, next(fresh[owner_id]), source=chance.choice(list(Source)))
            me = reviewer(owner_id)
            with filled.read() as connection:
                active = connection.scalars(
                    select(memories.TABLE.c.id).where(
                        memories.TABLE.c.owner_id == owner_id, memories.TABLE.c.status == "active"
                    )
                ).all()
                waits = pending.search(connection, QueueFilter(owners=frozenset({owner_id}), limit=200))
            some, few = chance.sample(waits, 3), chance.sample(waits, 2)
            acts.extend(queue.retract(me, one, reason="Moved.", now=NOW) for one in chance.sample(active, 3))
            acts.extend(queue.approve(me, one.id, version=1, supersede=False, now=NOW) for one in some)
            acts.extend(queue.reject(me, one.id, version=1, reason="No.", now=NOW) for one in few)
        if done > total // 2:
            ended += expire(queue, SOON).memories

    again = open_for(filled_url, THERE, meanwhile)
    kinds = {type(act).__name__ for act in acts}
    assert kinds >= {"Retracted", "Approved", "Rejected"}
    assert ended
    assert_exact(again, THERE)
    again.close()


def test_what_is_just_being_written_is_not_left_behind(filled: Store, filled_url: str) -> None:
    """A writer that began before the job, and commits after the job would have passed its place."""
    kept = next(
        memory for memory in all_memories(filled) if memory.owner_id == OWNERS[0]
    )  # whose turn is first
    one = kept.model_copy(update={"id": "mem_00000000", "content": "The safe is behind it"})
    began, go_on = threading.Event(), threading.Event()

    def slow(connection: Connection) -> None:
        memories.insert(connection, one)
        neighbour = Neighbour(kind=ItemKind.MEMORY, id=one.id, content=one.content)
        index.add(connection, one.owner_id, neighbour, one.memory_type.value)
        began.set()
        assert go_on.wait(120)

    writing_it = filled.writer.run([one.owner_id], slow)
    assert began.wait(120)
    passed = threading.Event()
    job = threading.Thread(target=lambda: open_for(filled_url, THERE, lambda *_: passed.set()).close())
    job.start()
    assert not passed.wait(0.5)
    go_on.set()
    writing_it.result(120)
    job.join(120)
    again = open_for(filled_url, THERE)
    assert one.id in in_force(again)[one.owner_id]
    assert_exact(again, THERE)
    again.close()


def help_along(store: Store, batch: int) -> Report:
    """Works at the job; which numbers of items it brought about."""
    reindex.BATCH = batch
    told: list[int] = []
    reindex.reindex(store._engine, THERE, lambda done, total: told.append(done))
    return [(str(done),) for done in told]


def test_two_processes_share_one_job(filled: Store, filled_url: str) -> None:
    items = sum(map(len, in_force(filled).values()))
    reports = race(filled_url, help_along, [(10,), (10,)])
    done = [[int(word) for (word,) in report if int(word) < items] for report in reports]
    assert sorted(done[0] + done[1]) == list(range(10, items, 10))
    assert all(done)
    again = open_for(filled_url, THERE)
    assert_exact(again, THERE)
    again.close()


def test_one_for_another_threshold_is_refused_until_the_first_rests(
    filled: Store, filled_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused: list[str] = []

    def another(done: int, total: int) -> None:
        with pytest.raises(
            StorageError, match=r"another process is building the index for the threshold 0\.8"
        ):
            open_for(filled_url, Fraction(9, 10))
        refused.append("once")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        open_for(filled_url, THERE, another)
    assert refused
    monkeypatch.setattr(reindex, "ANOTHER_JOB", timedelta(0))
    again = open_for(filled_url, Fraction(9, 10))
    assert_exact(again, Fraction(9, 10))
    again.close()


def test_a_service_of_the_old_threshold_cannot_tell_afterwards(filled: Store, filled_url: str) -> None:
    assert isinstance(stored := send(filled, "ann", "The vault door is red"), Decided)
    assert stored.answer.outcome.value == "stored"
    open_for(filled_url, THERE).close()
    for content in ("The vault door is red", "Nothing like it was ever said"):
        answer = send(filled, "ann", content)
        assert isinstance(answer, Decided)
        assert (answer.answer.rule, answer.answer.outcome.value) == ("dedup_unknown", "queued")
    again = open_for(filled_url, THERE)
    assert_exact(again, THERE)
    again.close()


def test_other_writers_do_not_keep_the_job_out(store: Store, database_url: str) -> None:
    """At any moment somebody holds the indexes; the job comes in all the same."""
    fill(store, 5)
    over = threading.Event()
    turns = [0] * 4

    def hold_on(number: int) -> None:
        engine = open_engine(database_url)
        time.sleep(number * 0.05)
        while not over.is_set():
            with writing(engine) as connection:
                builds.hold(connection)
                time.sleep(0.2)
            turns[number] += 1
            time.sleep(0.01)
        engine.dispose()

    # On SQLite one transaction excludes the others anyway, so one other writer is enough.
    others = 1 if store.dialect == "sqlite" else 4
    threads = [threading.Thread(target=hold_on, args=(number,)) for number in range(others)]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    try:
        reindex.reindex(store._engine, THERE)  # PostgreSQL gives a lock that does not come up after 10 s
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert all(turns[:others])
