"""The writer thread: groups, failures, and databases that go away."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import sys
import threading
import traceback
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, event, text

from tests.claims import NOW, examined, policy, submission_of
from tests.conftest import THRESHOLD, Postgresql
from tests.running.patience import until
from tests.running.processes import FORKED
from vouchgate.ingest.claims.log import Action
from vouchgate.storage import engine, writer
from vouchgate.storage.claims import decisions, turns
from vouchgate.storage.claims.submit import Decided, Submission
from vouchgate.storage.engine import _take_write_lock, writing
from vouchgate.storage.errors import StorageError, StoreBusy, StoreClosed
from vouchgate.storage.log import chain as log
from vouchgate.storage.store import Store


def _claim(number: int | str, owner_id: str = "ann") -> Submission:
    return submission_of(examined(f"Gate number {number} is closed.", owner_id=owner_id))


def _count(store: Store, table: str = "memory") -> int:
    with store.read() as connection:
        return int(connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one())  # noqa: S608


class Held:
    """Keeps the writer busy until `go` is set, so that what is sent meanwhile waits together."""

    def __init__(self, store: Store) -> None:
        self.go = threading.Event()
        started = threading.Event()

        def work(connection: Connection) -> None:
            started.set()
            self.go.wait(120)

        self.done = store.writer.run([], work)
        started.wait(120)


def test_what_waits_together_is_committed_together(store: Store) -> None:
    held = Held(store)
    commits: list[Connection] = []
    note = commits.append
    futures = [store.writer.submit(_claim(n, owner)) for owner in ("ann", "bob") for n in range(50)]
    event.listen(store._engine, "commit", note)
    held.go.set()
    assert all(isinstance(future.result(120), Decided) for future in futures)
    event.remove(store._engine, "commit", note)
    assert len(commits) == 2  # the work that held the writer, and all of the claims
    assert _count(store) == 100


@pytest.mark.on("sqlite")
def test_an_owner_does_not_wait_for_all_that_another_sent_before(store: Store) -> None:
    """Claims of one owner stay in their order with the work that is about it; those of others come in between."""
    held, written = Held(store), list[str]()

    def note(future: Future[Any], name: str) -> None:
        future.add_done_callback(lambda _: written.append(name))

    long = "It is closed at night and on every day of rest. " * 100
    for number in range(150):
        note(store.writer.submit(_claim(f"{number}. {long if number < 6 else ''}")), f"ann {number}")
    for number in range(2):
        note(store.writer.run(["ann", "cyd"], lambda connection: None), f"ann's work {number}")
        note(store.writer.submit(_claim(f"{number} after")), f"ann after {number}")
    note(store.writer.submit(_claim("alone", "bob")), "bob")
    note(store.writer.run(["bob"], lambda connection: None), "bob's work")
    last = [store.writer.run(["ann"], lambda connection: None), store.writer.run([], lambda connection: None)]
    held.go.set()
    for future in last:
        future.result(120)
    ann = [name for name in written if name.startswith("ann")]
    assert ann[:150] == [f"ann {number}" for number in range(150)]
    assert ann[150:] == ["ann's work 0", "ann after 0", "ann's work 1", "ann after 1"]
    assert written.index("bob") < written.index("bob's work") <= 4  # one long text, then bob


@pytest.mark.on("sqlite")
def test_an_owner_has_so_many_waiting_and_no_more(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "WAITING_PER_OWNER", 3)
    held = Held(store)
    futures = [store.writer.submit(_claim(number)) for number in range(5)]
    other = store.writer.submit(_claim("alone", "bob"))
    assert [future.done() for future in [*futures, other]] == [False, False, False, True, True, False]
    held.go.set()
    assert isinstance(other.result(120), Decided)


def test_an_answer_is_told_only_when_it_is_on_disk(store: Store) -> None:
    for number in range(20):
        answer = store.writer.submit(_claim(number)).result(120)
        assert isinstance(answer, Decided)
        with store.read() as connection:
            assert decisions.get(connection, str(answer.answer.decision_id), owners=None) == answer.json


@pytest.mark.on("sqlite")
def test_work_and_claims_keep_their_order(store: Store) -> None:
    held = Held(store)
    seen: list[int] = []

    def count(connection: Connection) -> None:
        seen.append(connection.execute(text("SELECT count(*) FROM memory")).scalar_one())

    futures: list[Future[Any]] = []
    for number in range(3):
        futures.append(store.writer.submit(_claim(f"{number} a")))
        futures.append(store.writer.submit(_claim(f"{number} b")))
        futures.append(store.writer.run(["ann"], count))
    held.go.set()
    for future in futures:
        future.result(120)
    assert seen == [2, 4, 6]


def test_one_bad_claim_spoils_no_other(store: Store) -> None:
    held = Held(store)
    bad = submission_of(examined("A time without a zone.", now=NOW.replace(tzinfo=None)))
    futures = [store.writer.submit(one) for one in (_claim(1), bad, _claim(2))]
    held.go.set()
    assert isinstance(futures[0].result(120), Decided)
    assert isinstance(futures[2].result(120), Decided)
    with pytest.raises(ValueError, match="without a zone"):
        futures[1].result(120)
    assert (_count(store), _count(store, "log_entry")) == (2, 2)


def test_a_refused_row_takes_the_rows_before_it_along(store: Store) -> None:
    """On SQLite many rows are one statement, and the rows before a refused one are undone by the rollback."""
    held = Held(store)
    first = _claim(1)
    futures = [store.writer.submit(c) for c in (first, _claim(2), replace(_claim(3), suffix=first.suffix))]
    held.go.set()
    assert isinstance(futures[0].result(120), Decided)
    assert isinstance(futures[1].result(120), Decided)
    with pytest.raises(StorageError, match="refused"):
        futures[2].result(120)
    assert (_count(store), _count(store, "decision"), _count(store, "log_entry")) == (2, 2, 2)
    with store.read() as connection:
        assert log.verify(connection) == []


def test_an_exception_in_work_rolls_back_and_goes_to_the_caller(store: Store) -> None:
    def work(connection: Connection) -> None:
        connection.execute(text("UPDATE queue_total SET pending = 9"))
        raise LookupError("on purpose")

    with pytest.raises(LookupError, match="on purpose"):
        store.writer.run(["ann"], work).result(120)
    assert _count(store, "owner") == 0
    assert store.writer.run(["ann"], lambda connection: 7).result(120) == 7
    assert _count(store, "queue_total WHERE pending = 0") == 1


def test_a_statement_the_database_refuses_is_a_storage_error(store: Store) -> None:
    def work(connection: Connection) -> None:
        connection.execute(text("UPDATE queue_total SET pending = NULL"))

    with pytest.raises(StorageError, match="the database refused the write"):
        store.writer.run([], work).result(120)


def test_a_caller_that_gave_up_before_its_turn_wrote_nothing(store: Store) -> None:
    held = Held(store)
    gone, kept = store.writer.submit(_claim(1)), store.writer.submit(_claim(2))
    assert gone.cancel()
    held.go.set()
    assert isinstance(kept.result(120), Decided)
    assert _count(store) == 1


@pytest.mark.on("sqlite")
def test_closing_writes_what_waits_and_refuses_the_rest(store: Store) -> None:
    held = Held(store)
    futures = [store.writer.submit(_claim(number)) for number in range(5)]
    closing = threading.Thread(target=store.writer.close)
    closing.start()
    held.go.set()
    closing.join(120)
    assert all(isinstance(future.result(0), Decided) for future in futures)
    with pytest.raises(StoreClosed):
        store.writer.submit(_claim(9)).result(120)
    with pytest.raises(StoreClosed):
        store.writer.run([], lambda connection: None).result(120)


@pytest.mark.on("sqlite")
def test_too_many_waiting_claims_are_refused_at_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "MAX_WAITING", 3)
    held = Held(store)
    futures = [store.writer.submit(_claim(number)) for number in range(5)]
    assert [future.done() for future in futures] == [False, False, False, True, True]
    with pytest.raises(StoreBusy, match="too many claims"):
        futures[3].result(0)
    held.go.set()
    assert all(isinstance(future.result(120), Decided) for future in futures[:3])


@pytest.mark.on("sqlite")
def test_a_coroutine_waits_without_a_thread(store: Store) -> None:
    async def main() -> list[object]:
        gone = store.comparer.submit_async(_claim("gone"))
        gone.cancel()
        return list(await asyncio.gather(*(store.comparer.submit_async(_claim(n)) for n in range(50))))

    assert all(isinstance(answer, Decided) for answer in asyncio.run(main()))
    bad = submission_of(examined("A time without a zone.", now=NOW.replace(tzinfo=None)))

    async def fails() -> None:
        await store.comparer.submit_async(bad)

    with pytest.raises(ValueError, match="without a zone"):
        asyncio.run(fails())


@pytest.mark.on("sqlite")
def test_a_loop_that_ended_does_not_stop_the_writer(store: Store) -> None:
    async def leave() -> None:
        store.comparer.submit_async(_claim("left"))

    held = Held(store)
    asyncio.run(leave())
    held.go.set()
    assert isinstance(store.writer.submit(_claim("next")).result(120), Decided)


def test_sqlite_held_by_another_process_is_busy_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "vouchgate.db"
    store = Store.open(f"sqlite:///{path}?timeout=0.05", threshold=THRESHOLD)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    futures = [store.writer.submit(_claim(number)) for number in range(3)]
    for future in futures:
        with pytest.raises(StoreBusy, match="busy"):
            future.result(120)
    other.execute("ROLLBACK")
    other.close()
    assert isinstance(store.writer.submit(_claim(1)).result(120), Decided)
    assert _count(store) == 1
    store.close()


def test_claims_that_come_while_another_process_writes_are_committed_together(tmp_path: Path) -> None:
    path = tmp_path / "vouchgate.db"
    store = Store.open(f"sqlite:///{path}", threshold=THRESHOLD)
    commits: list[Connection] = []
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    first = store.writer.submit(_claim("first"))

    def waits() -> bool:
        stack = traceback.walk_stack(sys._current_frames()[store.writer._thread.ident or 0])
        return any(frame.f_code is _take_write_lock.__code__ for frame, _ in stack)

    until(waits)
    more = [store.writer.submit(_claim(number)) for number in range(20)]
    event.listen(store._engine, "commit", commits.append)
    other.execute("ROLLBACK")
    other.close()
    assert all(isinstance(future.result(120), Decided) for future in (first, *more))
    assert len(commits) == 1
    store.close()


def test_policies_are_kept_by_digest(store: Store) -> None:
    store.save_policy(policy(), NOW)
    store.save_policy(policy(), NOW)
    store.save_policy(policy(threshold=0.8), NOW)
    assert store.load_policy(policy().digest) == policy()
    assert store.load_policy("unknown") is None
    assert _count(store, "policy") == 2


@pytest.fixture
def postgresql_store(postgresql: Postgresql) -> Any:
    """A store on a PostgreSQL database of its own."""
    name = f"writer_{os.urandom(6).hex()}"
    postgresql.run(f"CREATE DATABASE {name} TEMPLATE migrated")
    opened = Store.open(postgresql.url(name), threshold=THRESHOLD)
    yield opened
    opened.close()
    postgresql.run(f"DROP DATABASE {name} WITH (FORCE)")


def test_a_crashed_server_is_busy_until_it_is_back(postgresql_store: Store, postgresql: Postgresql) -> None:
    store = postgresql_store
    first = store.writer.submit(_claim(1)).result(120)
    postgresql.crash()
    try:
        for future in [store.writer.submit(_claim(number)) for number in (2, 3)]:
            with pytest.raises(StoreBusy):
                future.result(120)
    finally:
        postgresql.start()
    second = store.writer.submit(_claim(4)).result(120)
    assert isinstance(first, Decided)
    assert isinstance(second, Decided)
    assert _count(store) == 2
    with store.read() as connection:
        assert log.verify(connection) == []


def test_a_connection_lost_before_the_commit_is_tried_again(postgresql_store: Store) -> None:
    store = postgresql_store
    tries: list[int] = []

    def work(connection: Connection) -> int:
        tries.append(connection.execute(text("SELECT pg_backend_pid()")).scalar_one())
        if len(tries) == 1:
            _kill(store, tries[0])
        connection.execute(text("UPDATE queue_total SET pending = pending + 1"))
        return len(tries)

    assert store.writer.run([], work).result(120) == 2
    assert _count(store, "queue_total WHERE pending = 1") == 1


@pytest.mark.parametrize("between", ["statements", "rows"])
def test_a_process_that_hangs_in_a_transaction_keeps_nobody_waiting_for_long(
    postgresql_store: Store, monkeypatch: pytest.MonkeyPatch, between: str
) -> None:
    monkeypatch.setattr(engine, "STANDSTILL_MS", 200)
    monkeypatch.setattr(engine, "LONGEST_MS", 400)
    url = postgresql_store._engine.url.render_as_string(hide_password=False)
    hanging = Store.open(url, threshold=THRESHOLD)
    begun, go, tries = threading.Event(), threading.Event(), list[int]()

    def work(connection: Connection) -> int:
        tries.append(1)
        if between == "rows" and not begun.is_set():
            plain: Any = connection.connection.driver_connection
            pipeline = plain.pipeline()
            pipeline.__enter__()
            plain.execute("SELECT 1")
            plain.pgconn.flush()  # the server waits for more
        begun.set()
        go.wait(120)
        connection.execute(text("UPDATE queue_total SET pending = pending + 1"))
        return len(tries)

    late = hanging.writer.run(["ann"], work)
    assert begun.wait(120)
    try:
        assert isinstance(postgresql_store.writer.submit(_claim(1)).result(9), Decided)
    finally:
        go.set()
    assert late.result(120) == 2  # tried again
    hanging.close()
    assert _count(postgresql_store, "queue_total WHERE pending = 1") == 1


def _kill(store: Store, backend: int) -> None:
    with store.read() as connection:
        connection.execute(text("SELECT pg_terminate_backend(:pid, 5000)"), {"pid": backend})


def test_a_connection_lost_in_the_commit_is_never_a_success(postgresql_store: Store) -> None:
    """The server ends the connection while it commits, so the commit did not happen."""
    store = postgresql_store
    with writing(store._engine) as connection:
        connection.execute(
            text(
                "CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS "
                "$$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$"
            )
        )
        connection.execute(
            text(
                "CREATE CONSTRAINT TRIGGER die AFTER INSERT ON decision DEFERRABLE INITIALLY DEFERRED "
                "FOR EACH ROW EXECUTE FUNCTION die()"
            )
        )
    held = Held(store)
    futures = [store.writer.submit(_claim(number)) for number in range(3)]
    held.go.set()
    for future in futures:
        with pytest.raises(StoreBusy, match="connection to the database was lost"):
            future.result(120)
    assert _count(store) == _count(store, "decision") == 0
    with writing(store._engine) as connection:
        connection.execute(text("DROP TRIGGER die ON decision"))
    assert isinstance(store.writer.submit(_claim(1)).result(120), Decided)


def test_a_commit_that_happened_is_told_although_its_answer_was_lost(postgresql_store: Store) -> None:
    """The connection breaks after the server has committed; the database then says that it did."""
    store = postgresql_store

    lost: list[int] = []

    def lose(connection: Connection) -> None:
        if not lost:
            backend = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
            lost.append(backend)
            connection.exec_driver_sql("COMMIT")
            _kill(store, backend)

    event.listen(store._engine, "commit", lose)
    answer = store.writer.submit(_claim(1)).result(120)
    event.remove(store._engine, "commit", lose)
    assert len(lost) == 1
    assert isinstance(answer, Decided)
    assert _count(store) == _count(store, "decision") == 1


def test_tables_that_grow_are_counted_before_postgresql_would(postgresql_store: Store) -> None:
    def counted() -> float:
        statement = text("SELECT reltuples FROM pg_class WHERE relname = 'memory'")
        with postgresql_store.read() as connection:
            return float(connection.execute(statement).scalar_one())

    sent = 0
    while counted() < 100 and sent < 10_000:  # what it was told of rows it tells others after a second or so
        sent += 100
        done = [postgresql_store.writer.submit(_claim(f"{sent} of {each}")) for each in range(100)]
        assert all(isinstance(each.result(120), Decided) for each in done)
    assert 100 <= counted() <= sent


def test_tables_that_cannot_be_counted_harm_nobody(
    postgresql_store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(writer, "_LOOK_EVERY", 1)
    monkeypatch.setattr(engine, "_GROWN", text("SELECT no_such_column FROM pg_class"))
    for number in range(3):
        assert isinstance(postgresql_store.writer.submit(_claim(number)).result(120), Decided)
    until(lambda: "could not be counted" in caplog.text)


@pytest.mark.parametrize("turn", range(2))
def test_a_killed_process_loses_nothing_it_answered(store: Store, database_url: str, turn: int) -> None:
    receive, send = FORKED.Pipe(duplex=False)
    process = FORKED.Process(target=_write_forever, args=(database_url, send))
    process.start()
    send.close()
    answered = [receive.recv() for _ in range(150 + 77 * turn)]
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    try:
        while True:
            answered.append(receive.recv())
    except EOFError:
        pass
    process.join(120)
    receive.close()
    with store.read() as connection:
        assert log.verify(connection) == []
        kept = {item_id for item_id, _ in decisions.walk(connection)}
        entries = log.events(connection, None, after=None, limit=10_000)
    assert set(answered) <= kept
    assert {entry.subject_id for entry in entries if entry.action is Action.CLAIM_STORED} == kept
    assert _count(store) == len(kept)
    assert isinstance(store.writer.submit(_claim("after")).result(120), Decided)


def _write_forever(url: str, send: Any) -> None:
    store = Store.open(url, threshold=THRESHOLD)
    number = 0
    while True:
        futures = [store.writer.submit(_claim(number + n)) for n in range(16)]
        number += 16
        for future in futures:
            answer = future.result(120)
            assert isinstance(answer, Decided)
            send.send(answer.answer.decision_id)
