"""Opening and migrating real databases, and what the two kinds of transaction promise."""

from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import closing
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import psycopg
import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import make_url, text
from sqlalchemy.exc import DBAPIError
from sqlmodel import SQLModel

from tests.conftest import THRESHOLD, Postgresql
from tests.reviews import waiting
from tests.running.processes import FORKED
from vouchgate.cli.database import open_existing
from vouchgate.cli.output import Failure
from vouchgate.ingest.dedup.signature import signature_keys
from vouchgate.settings import load_settings
from vouchgate.storage import engine as engines
from vouchgate.storage.dedup.builds import builds
from vouchgate.storage.dedup.window import CandidateSet, DedupIndexView
from vouchgate.storage.engine import (
    has_tables,
    is_busy,
    migrate,
    needs_migration,
    open_engine,
    reading,
    revisions,
    writing,
)
from vouchgate.storage.errors import StorageError, StoreBusy
from vouchgate.storage.identity import owners
from vouchgate.storage.outgoing import webhooks
from vouchgate.storage.outgoing.webhooks import OF_MEMORIES, Event
from vouchgate.storage.sql import fetch
from vouchgate.storage.store import Store


def test_migrations_make_the_tables_of_the_program(empty_database_url: str) -> None:
    engine = open_engine(empty_database_url)
    assert needs_migration(engine)
    with pytest.raises(Failure, match="holds no tables of vouchgate"):  # a command that only works on one
        open_existing(load_settings({}, database_url=empty_database_url))
    assert not has_tables(engine)
    migrate(engine)
    assert has_tables(engine)
    assert not needs_migration(engine)
    migrate(engine)
    with reading(engine) as connection:
        # SQLite's full-text index, the tables that it makes for itself, and what PostgreSQL has instead.
        own = ("memory_fts", "memory_words_found") if engine.dialect.name == "sqlite" else ()
        opts = {"compare_type": True, "include_object": lambda _, name, *__: not str(name).startswith(own)}
        context = MigrationContext.configure(connection, opts=opts)
        assert compare_metadata(context, SQLModel.metadata) == []
        assert connection.execute(text("SELECT id, pending FROM queue_total")).all() == [(1, 0)]
    engine.dispose()


def test_the_revisions_by_file_names_are_those_that_alembic_reads() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(engines.__file__).parent / "migrations"))
    config.set_main_option("recursive_version_locations", "true")
    script = ScriptDirectory.from_config(config)
    assert revisions() == [revision.revision for revision in script.walk_revisions()][::-1]
    assert script.get_heads() == [revisions()[-1]]


def test_webhooks_made_before_there_were_events_are_told_as_they_were(empty_database_url: str) -> None:
    """Those of table `webhook` of what waits, and those of table `sink`, which is no more, of memories."""
    engine = open_engine(empty_database_url)
    migrate(engine)
    row = {
        "owner": "ann",
        "url": "https://x.example/",
        "secret": "whsec_c2VjcmV0",
        "at": "2026-05-04 12:00:00",
    }
    columns = "owner_id, id, url, secret, created_at"
    with writing(engine) as connection:
        config = engines.migration_config()
        config.attributes["connection"] = connection
        command.downgrade(config, "0004")
        old = f"({columns}) VALUES (:owner, 'sink_1', :url, :secret, :at)"
        connection.execute(text(f"INSERT INTO sink {old}"), row)
        old = f"({columns}, told_seq, attempts, due_at) VALUES (:owner, 'hook_1', :url, :secret, :at, 7, 0, :at)"
        connection.execute(text(f"INSERT INTO webhook {old}"), row)
    assert needs_migration(engine)
    migrate(engine)
    with reading(engine) as connection:
        hooks = webhooks.listing(connection)
        to = webhooks.endpoint(connection, "sink_1")
    assert [(hook.id, set(hook.events), hook.told_seq) for hook in hooks] == [
        ("hook_1", {Event.WAITING}, 7),
        ("sink_1", OF_MEMORIES, 0),
    ]
    assert to is not None
    assert (to.url, to.secret) == (row["url"], row["secret"])
    engine.dispose()


def test_processes_that_start_together_migrate_once(empty_database_url: str) -> None:
    barrier = FORKED.Barrier(3)
    processes = [FORKED.Process(target=_open, args=(empty_database_url, barrier)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0, 0, 0]


def _open(url: str, barrier: object) -> None:
    barrier.wait(120)  # type: ignore[attr-defined]
    store = Store.open(url, threshold=THRESHOLD)
    with store.read() as connection:
        found = builds(connection).built
    store.close()
    os._exit(0 if found is not None and found.threshold == THRESHOLD else 1)


def test_migrating_works_from_any_directory(
    empty_database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    engine = open_engine(empty_database_url)
    migrate(engine)
    assert not needs_migration(engine)
    engine.dispose()


def test_a_newer_database_is_refused(database_url: str) -> None:
    engine = open_engine(database_url)
    migrate(engine)
    with writing(engine) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    with pytest.raises(StorageError, match=r"newer version of vouchgate \(its revision is 9999\)"):
        Store.open(database_url, threshold=THRESHOLD)


def test_an_older_database_is_refused_when_it_may_not_be_migrated(empty_database_url: str) -> None:
    with pytest.raises(StorageError, match="run `vouchgate db upgrade`"):
        Store.open(empty_database_url, threshold=THRESHOLD, migrate=False)


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("mysql://root@localhost/x", "cannot use a mysql database"),
        ("vouchgate.db", "is not a URL"),
        ("sqlite://", "must be a file"),
        ("sqlite:///:memory:", "must be a file"),
        ("sqlite:////nowhere/at/all/vouchgate.db", "cannot open the database sqlite:"),
        ("postgresql://ann:secret@127.0.0.1:1/x", "cannot open the database postgresql:"),
    ],
)
def test_what_cannot_be_opened_is_said_in_a_sentence(url: str, sentence: str) -> None:
    with pytest.raises(StorageError, match=sentence) as caught:
        open_engine(url)
    assert "secret" not in str(caught.value)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("These are notes, and by no means a database. " * 50)
    with pytest.raises(StorageError, match="cannot open the database"):
        open_engine(f"sqlite:///{path}")


def test_a_held_sqlite_database_is_busy(tmp_path: Path) -> None:
    path = tmp_path / "held.db"
    with sqlite3.connect(path, isolation_level=None) as holder:
        holder.execute("PRAGMA journal_mode = WAL")
        holder.execute("BEGIN IMMEDIATE")
        engine = open_engine(f"sqlite:///{path}?timeout=0.05")
        with pytest.raises(StoreBusy):
            migrate(engine)
        engine.dispose()
    holder.close()


def test_sqlite_commits_are_durable(tmp_path: Path) -> None:
    engine = open_engine(f"sqlite:///{tmp_path}/vouchgate.db")
    with reading(engine) as connection:
        assert connection.scalar(text("PRAGMA journal_mode")) == "wal"
        assert connection.scalar(text("PRAGMA synchronous")) == 2  # FULL
        assert connection.scalar(text("PRAGMA foreign_keys")) == 1
        assert connection.scalar(text("PRAGMA busy_timeout")) == 5000
    engine.dispose()


def test_a_reading_transaction_cannot_write(database_url: str) -> None:
    engine = open_engine(database_url)
    migrate(engine)
    with pytest.raises(DBAPIError), reading(engine) as connection:
        connection.execute(text("DELETE FROM meta"))
    with writing(engine) as connection:  # the same connection, from the pool
        connection.execute(text("UPDATE queue_total SET pending = 3"))
    with reading(engine) as connection:
        assert connection.scalar(text("SELECT pending FROM queue_total")) == 3
    engine.dispose()


def test_a_reading_transaction_sees_one_state(database_url: str) -> None:
    engine = open_engine(database_url)
    migrate(engine)
    with reading(engine) as before:
        assert before.scalar(text("SELECT pending FROM queue_total")) == 0
        with writing(engine) as connection:
            connection.execute(text("UPDATE queue_total SET pending = 8"))
        assert before.scalar(text("SELECT pending FROM queue_total")) == 0
    engine.dispose()


def test_a_failed_write_leaves_nothing(database_url: str) -> None:
    engine = open_engine(database_url)
    migrate(engine)
    with pytest.raises(RuntimeError, match="on purpose"), writing(engine) as connection:
        owners.lock_owners(connection, ["ann"])
        raise RuntimeError("on purpose")
    with reading(engine) as connection:
        assert connection.execute(text("SELECT * FROM owner")).all() == []
    engine.dispose()


def test_a_list_of_keys_is_looked_up_in_the_index(tmp_path: Path) -> None:
    """A list parameter that SQLite cannot use an index for reads all keys of an owner."""
    engine = open_engine(f"sqlite:///{tmp_path}/vouchgate.db")
    migrate(engine)
    plans = []

    with reading(engine) as connection:
        raw = connection.connection.driver_connection
        assert isinstance(raw, sqlite3.Connection)
        seen: list[str] = []
        raw.set_trace_callback(seen.append)
        keys = signature_keys(frozenset(["one", "two", "three"]), "fact", THRESHOLD)
        assert DedupIndexView(connection, None).find_candidates("ann", keys) == CandidateSet(
            [], complete=True
        )
        raw.set_trace_callback(None)
        plans = raw.execute(f"EXPLAIN QUERY PLAN {seen[-1]}").fetchall()
    indexed = [plan[3] for plan in plans if "SEARCH k USING PRIMARY KEY (owner_id=? AND key=?)" in plan[3]]
    assert len(indexed) == 2, plans  # the keys, and the templates
    assert not [plan[3] for plan in plans if plan[3].startswith(("SCAN k", "SCAN m", "SCAN p"))], plans
    engine.dispose()


def test_another_threshold_rebuilds_the_index(database_url: str) -> None:
    for threshold in (THRESHOLD, Fraction(4, 5), THRESHOLD):
        store = Store.open(database_url, threshold=threshold)
        with store.read() as connection:
            built = builds(connection).built
            assert built is not None
            assert built.threshold == threshold
        store.close()


def test_an_owner_is_locked_for_one_writer_at_a_time(database_url: str) -> None:
    engine = open_engine(database_url)
    migrate(engine)
    with writing(engine) as connection:
        owners.lock_owners(connection, ["ann", "bob", "ann"])
    held, free = threading.Event(), threading.Event()

    def lock(owner_id: str, done: threading.Event) -> None:
        with writing(engine) as connection:
            (state,) = owners.lock_owners(connection, [owner_id]).values()
            assert (state.log_seq, state.pending) == (0, 0)
            done.set()

    with writing(engine) as connection:
        assert set(owners.lock_owners(connection, ["ann"])) == {"ann"}
        waits = threading.Thread(target=lock, args=("ann", held))
        waits.start()
        assert not held.wait(0.5)
        if connection.dialect.name == "postgresql":  # owners do not wait for one another
            goes = threading.Thread(target=lock, args=("bob", free))
            goes.start()
            assert free.wait(120)
            goes.join(120)
    assert held.wait(120)
    waits.join(120)
    engine.dispose()


def test_writers_that_lock_in_different_orders_do_not_wait_for_each_other(database_url: str) -> None:
    engine = open_engine(database_url)
    migrate(engine)
    names = [f"owner{number}" for number in range(30)]
    failures: list[Exception] = []

    def lock(order: list[str], prefix: str) -> None:
        try:
            for turn in range(20):
                with writing(engine) as connection:
                    owners.lock_owners(connection, [*order, f"{prefix}{turn}", f"new{turn}"])
        except DBAPIError as error:
            failures.append(error)

    threads = [
        threading.Thread(target=lock, args=(order, prefix))
        for order, prefix in ((names, "a"), (names[::-1], "b"), (names[15:] + names[:15], "c"))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert failures == []
    engine.dispose()


def test_a_look_up_straight_from_the_driver_fails_as_any_other(database_url: str) -> None:
    engine = open_engine(database_url)
    with reading(engine) as connection, pytest.raises(DBAPIError) as caught:
        fetch(connection, "SELECT no_such_column FROM meta", ())
    assert not is_busy(caught.value)
    assert "no_such_column" in str(caught.value)
    with reading(engine) as connection:
        assert [tuple(row) for row in fetch(connection, "SELECT 1", ())] == [(1,)]
    engine.dispose()


def test_a_connection_lost_in_a_look_up_is_not_used_again(postgresql: Postgresql) -> None:
    engine = open_engine(postgresql.url("migrated"))
    with pytest.raises(DBAPIError) as caught, reading(engine) as connection:
        backend = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
        postgresql.run(f"SELECT pg_terminate_backend({backend})")
        fetch(connection, "SELECT 1", ())
    assert caught.value.connection_invalidated
    assert is_busy(caught.value)
    with reading(engine) as connection:
        assert [tuple(row) for row in fetch(connection, "SELECT 1", ())] == [(1,)]
    engine.dispose()


def test_a_postgresql_that_is_gone_is_not_waited_for_for_hours(postgresql: Postgresql) -> None:
    def asked_for(url: str) -> dict[str, str]:
        engine = open_engine(url)
        with reading(engine) as connection:
            plain: Any = connection.connection.driver_connection
            found: dict[str, str] = plain.info.get_parameters()
        engine.dispose()
        return found

    url = postgresql.url("migrated")
    found = asked_for(url)
    assert (found["connect_timeout"], found["tcp_user_timeout"]) == ("10", "25000")
    assert (found["keepalives_idle"], found["keepalives_interval"], found["keepalives_count"]) == (
        "10",
        "5",
        "3",
    )
    given = asked_for(f"{url}&tcp_user_timeout=60000")
    assert (given["tcp_user_timeout"], given["keepalives_idle"]) == ("60000", "10")


def test_who_still_reads_when_a_store_is_closed_leaves_no_connection_open(database_url: str) -> None:
    store = Store.open(database_url, threshold=THRESHOLD)
    opened = []
    with store.read() as connection:
        opened.append(connection.connection.dbapi_connection)
        store.close()
        assert connection.execute(text("SELECT 1")).scalar() == 1
    with store.read() as connection:
        opened.append(connection.connection.dbapi_connection)
    for each in opened:
        with pytest.raises((psycopg.OperationalError, sqlite3.ProgrammingError), match="closed"):
            each.cursor()  # type: ignore[union-attr]  # there was one


@pytest.mark.on("postgresql")
@pytest.mark.parametrize(
    ("zone", "until"),
    [
        ("Asia/Tokyo", datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)),
        ("America/New_York", datetime(1, 1, 1, tzinfo=UTC)),
    ],
)
def test_the_last_hour_that_there_is_can_be_read_whatever_the_zone_of_the_database(
    database_url: str, zone: str, until: datetime
) -> None:
    elsewhere = make_url(database_url).update_query_dict({"options": f"-c timezone={zone}"})
    url = elsewhere.render_as_string(hide_password=False)
    with closing(Store.open(url, threshold=THRESHOLD)) as store:
        assert waiting(store, "The hall is dark at night", validity_horizon=until).validity_horizon == until
