"""Opening a database, and the two kinds of transaction: reading and writing.

Python's SQLite driver by default opens no transaction for a SELECT, so that "check, then insert" would run
outside of one. It is therefore put in its autocommit mode, and transactions are begun here, in words.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, func, inspect, make_url, select, text
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry

from vouchgate.storage.dedup.vectors import prepare_postgresql, prepare_sqlite
from vouchgate.storage.disk.files import FileWatch, make_private
from vouchgate.storage.errors import StorageError, StoreBusy

if TYPE_CHECKING:
    from alembic.config import Config

# How long SQLite waits for another process's transaction, in seconds, before it gives up an attempt.
BUSY_SECONDS = 5.0
# How often a process that waits to write asks for SQLite's one write lock, in seconds: seldom at first, and
# the more often the longer it has waited, up to the last figure. Ten times as seldom, the lock lies idle for as long as
# it is held (two and five processes: a fifth to a half fewer claims); four times as often, those who ask take the
# processor from those who write.
_ASK_SELDOM, _ASK_OFTEN, _LINE_SECONDS = 0.002, 0.0005, 0.5
# How long PostgreSQL waits for a lock, in milliseconds: longer than any transaction of ours takes.
LOCK_TIMEOUT_MS = 10_000
# For how long a transaction that writes may stand still on PostgreSQL before the server ends it, in milliseconds: a
# process that hangs, or a machine that is gone, would else keep its locks for hours. Shorter than others wait for them.
STANDSTILL_MS = 8_000
# And for how long it may last in all. A standstill between two rows that are sent together is none to the server, which
# waits for the rest of them; from PostgreSQL 17 on it can be told this, too. None of ours takes a tenth of it.
LONGEST_MS = 120_000
# After how long without a sign of it a PostgreSQL on another machine counts as gone: 25 seconds, where the system's own
# patience is a quarter of an hour for what was sent to it, and two hours for an answer.
_POSTGRESQL_GONE = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
}
_FILES = "vouchgate_files"  # of a connection's record: what watches its files
_MIGRATIONS = Path(__file__).parent / "migrations"
# Any fixed number will do: it names the lock under which processes that start together migrate in turn.
_MIGRATION_LOCK = 0x67617465

# Tables as their names are written in a statement.
_GROWN = text(
    "SELECT c.oid::regclass::text FROM pg_stat_user_tables AS s JOIN pg_class AS c ON c.oid = s.relid"
    " WHERE s.schemaname = current_schema() AND s.n_live_tup > greatest(100, 2 * c.reltuples)"
)

# As many connections at once as a server has threads that read, and one for the writer.
_POOL: dict[str, Any] = {"pool_size": 10, "max_overflow": 31}
_POSTGRESQL_READ: dict[str, Any] = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
_POSTGRESQL_SESSION = (
    # A plan for an array of keys does not depend on the keys; without this it is made anew for every call.
    "SET plan_cache_mode = force_generic_plan",
    f"SET lock_timeout = {LOCK_TIMEOUT_MS}",
    # In another zone the first and the last hours that there are lie in a year that Python does not have: the rows that
    # have them, such as a claim that holds until then, could be written and never read.
    "SET timezone = 'UTC'",
    # What is answered is on disk, whatever the database's default is. Stricter settings are left alone.
    "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'",
)


def open_engine(url: str, *, vectors: bool = False) -> Engine:
    """An engine for `sqlite:///file.db` or `postgresql://user@host/name`, tried once.

    With `vectors`, its connections can compare vectors (`storage.dedup.vectors`).

    Raises StorageError with a sentence for the user: a scheme that is not one of these two, a SQLite database
    in memory (it would keep nothing), a file or server that cannot be opened.
    """
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError) as error:
        raise StorageError(
            "the database URL is not a URL; write sqlite:///file.db or postgresql://user@host/name"
        ) from error
    scheme = parsed.drivername.partition("+")[0]
    if scheme == "sqlite":
        engine = _sqlite_engine(parsed, vectors=vectors)
    elif scheme in ("postgresql", "postgres"):
        engine = _postgresql_engine(parsed)
    else:
        raise StorageError(
            f"cannot use a {scheme} database; write sqlite:///file.db or postgresql://user@host/name"
        )
    try:
        with reading(engine) as connection:
            connection.execute(select(1))
    except SQLAlchemyError as error:
        engine.dispose()
        shown = parsed.render_as_string(hide_password=True)
        cause = error.orig if isinstance(error, DBAPIError) else error
        raise StorageError(f"cannot open the database {shown}: {cause}") from error
    return engine


def _sqlite_engine(url: URL, *, vectors: bool) -> Engine:
    if url.database in (None, "", ":memory:") or "mode" in url.query:
        raise StorageError("a SQLite database must be a file; write sqlite:///file.db")
    # As many statements as a writer has are kept prepared: of each table that claims write some ten sizes.
    arguments: dict[str, Any] = {"isolation_level": None, "cached_statements": 256}
    if "timeout" not in url.query:
        arguments["timeout"] = BUSY_SECONDS
    patience = _patience(url)
    try:
        make_private(Path(url.database or ""))
    except OSError as error:
        raise StorageError(f"cannot open the database {url}: {error.strerror}") from error
    files = FileWatch(url.database or "")
    engine = create_engine(url.set(drivername="sqlite+pysqlite"), connect_args=arguments, **_POOL)

    @event.listens_for(engine, "do_connect")
    def _before(*_: object) -> None:
        files.look()  # a new connection would make a new log in place of one that was removed

    @event.listens_for(engine, "close")
    def _closed(*_: object) -> None:
        files.closed()

    @event.listens_for(engine, "connect")
    def _configure(connection: sqlite3.Connection, record: ConnectionPoolEntry) -> None:
        _enable_wal(connection)
        connection.execute("PRAGMA synchronous = FULL")  # a commit that returned survives a power cut
        connection.execute("PRAGMA foreign_keys = ON")
        # Pages written by many transactions are copied back once, and those of the indexes stay in memory: at
        # SQLite's defaults (1,000 pages, 2 MB) the disk takes twice as long for a claim. Both bound what a
        # process uses: 16 MiB of log file, 32 MiB of memory a connection at the most.
        connection.execute("PRAGMA wal_autocheckpoint = 4096")
        connection.execute("PRAGMA cache_size = -32768")
        if vectors:
            prepare_sqlite(connection)
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()  # opens all of its files
        record.info[_FILES] = files
        files.opened()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        write = bool(connection.get_execution_options().get("vouchgate_write"))
        if connection.info.get("vouchgate_write") is not write:  # of the file's connection, whoever uses it
            connection.exec_driver_sql(f"PRAGMA query_only = {'OFF' if write else 'ON'}")
            # Who writes waits in `_take_write_lock`; once it has the lock, nothing in WAL mode makes it wait.
            connection.exec_driver_sql(f"PRAGMA busy_timeout = {0 if write else round(patience * 1000)}")
            connection.info["vouchgate_write"] = write
        look_at_files(connection, lately=not write)
        if write:
            _take_write_lock(connection, patience)
        else:
            connection.exec_driver_sql("BEGIN")

    return engine


def look_at_files(connection: Connection, *, lately: bool = False) -> None:
    """That what this connection writes is in the files that the next start reads: before a transaction (`lately`, if it
    only reads), and after its commit before anybody is told. Raises StorageError; PostgreSQL sees to its own files."""
    files = connection.info.get(_FILES)
    if isinstance(files, FileWatch):
        files.look(_plain(connection), lately=lately)


def _plain(connection: Connection) -> sqlite3.Connection:
    plain = connection.connection.driver_connection
    if not isinstance(plain, sqlite3.Connection):
        raise TypeError(f"not a SQLite connection: {plain!r}")
    return plain


def _patience(url: URL) -> float:
    """For how many seconds a SQLite transaction waits to begin: `?timeout=` of the URL, or BUSY_SECONDS."""
    given = url.query.get("timeout", BUSY_SECONDS)
    try:
        return float(str(given))
    except ValueError as error:
        raise StorageError(f"the timeout in the database URL is no number of seconds: {given}") from error


def _take_write_lock(connection: Connection, patience: float) -> None:
    """BEGIN IMMEDIATE, tried again until it works or `patience` seconds are over.

    SQLite's own waiting sleeps ever longer, up to 0.1 s, so a process that has waited long is the least likely
    to look just when the lock is free: with 8 busy processes one in a thousand claims waited over a second.
    Here whoever has waited longest looks most often.
    """
    plain = _plain(connection)
    start = time.monotonic()
    while True:
        try:
            plain.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            waited = time.monotonic() - start
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or waited >= patience:
                break
            time.sleep(max(_ASK_OFTEN, _ASK_SELDOM * (1 - waited / _LINE_SECONDS)))
        else:
            return
    connection.exec_driver_sql("BEGIN IMMEDIATE")  # the last try, whose error SQLAlchemy turns into its own


def _enable_wal(connection: sqlite3.Connection) -> None:
    """Turns WAL on. SQLite does not wait its busy time-out here when two processes do so at once."""
    end = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(0.01)
        else:
            if mode != "wal":
                raise sqlite3.OperationalError(f"the file system does not support WAL (journal mode {mode})")
            return


def _postgresql_engine(url: URL) -> Engine:
    from vouchgate.storage.waiting import PatientConnection  # noqa: PLC0415  (its driver is for who has one)

    engine = create_engine(
        url.set(drivername="postgresql+psycopg"),
        isolation_level="READ COMMITTED",  # after a lock, the next statement sees what its holder wrote
        pool_pre_ping=True,  # a server that was restarted costs one connection, not one request
        connect_args={name: value for name, value in _POSTGRESQL_GONE.items() if name not in url.query},
        **_POOL,
    )

    @event.listens_for(engine, "do_connect")
    def _connect(_dialect: object, _record: object, given: Any, named: Any) -> PatientConnection:
        return PatientConnection.connect(*given, **named)

    @event.listens_for(engine, "connect")
    def _configure(connection: Any, _record: object) -> None:
        with connection.cursor() as cursor:
            for statement in _POSTGRESQL_SESSION:
                cursor.execute(statement)
        connection.commit()

    return engine


def close_engine(engine: Engine) -> None:
    """Closes its connections. Those in use, and any opened from now on, are closed when they are given back: kept for
    the next one they would stay open until the garbage is collected."""
    event.listen(engine, "checkin", lambda _, record: record.invalidate())
    engine.dispose()


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A read-only transaction: everything in it sees one state of the database."""
    with engine.connect() as plain:
        connection = plain
        if engine.dialect.name == "postgresql":
            connection = plain.execution_options(**_POSTGRESQL_READ)
        with connection.begin():
            yield connection


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """A write transaction, committed at the end, rolled back on an exception.

    On SQLite it holds the one write lock from its beginning; on PostgreSQL what it reads must be locked.
    """
    with engine.connect().execution_options(vouchgate_write=True) as connection, connection.begin():
        yield connection


def connect_to_write(engine: Engine) -> Connection:
    """A connection for one write transaction after the other. Where it stands still in one, the server ends it, and
    what it has locked is free for others; never give it back to the pool."""
    connection = engine.connect().execution_options(vouchgate_write=True)
    if engine.dialect.name == "postgresql":
        try:
            connection.exec_driver_sql(f"SET idle_in_transaction_session_timeout = {STANDSTILL_MS}")
            connection.exec_driver_sql(
                f"SELECT set_config('transaction_timeout', '{LONGEST_MS}', false)"
                " WHERE current_setting('server_version_num')::int >= 170000"
            )
            connection.commit()
        except BaseException:
            connection.close()
            raise
    return connection


def is_busy(error: DBAPIError) -> bool:
    """Whether trying the same transaction again may work: another process was in the way, or the connection
    was lost. (Whether the lost transaction had been committed is for the caller to know.)"""
    if error.connection_invalidated:
        return True
    cause = error.orig
    if isinstance(cause, sqlite3.Error):
        code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
        return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    state = getattr(cause, "sqlstate", None)
    if state is None:  # not said by the server: the connection could not be made, or broke
        return isinstance(error, OperationalError)
    # Serialization failure, deadlock, lock time-out, too many connections, or a server that goes down.
    return state in ("40001", "40P01", "55P03", "53300") or state.startswith(("57P", "08"))


def migrate(engine: Engine) -> None:
    """Brings the tables up to this program's version. Processes that start together do it in turn.

    Raises StorageError when the database was written by a newer program, StoreBusy when another process
    holds it for too long.
    """
    if not needs_migration(engine):
        return
    from alembic import command  # noqa: PLC0415  (it takes a third of a second, and few starts migrate)

    config = migration_config()
    try:
        with writing(engine) as connection:
            if engine.dialect.name == "postgresql":
                connection.execute(select(func.pg_advisory_xact_lock(_MIGRATION_LOCK)))
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
    except DBAPIError as error:
        if is_busy(error):
            raise StoreBusy("another process holds the database; try again when it has finished") from error
        raise StorageError(f"the tables could not be brought up to date: {error.orig}") from error


def refresh_statistics(engine: Engine) -> None:
    """Has PostgreSQL count the tables that have more than doubled since it last did; nothing on SQLite, whose
    statements say themselves by which index they go. Left alone it counts once a minute, and plans meanwhile as for
    tables that are nearly empty: by reading all that an owner has, for every claim (ADR-0078)."""
    if engine.dialect.name != "postgresql":
        return
    with engine.begin() as connection:
        for table in connection.scalars(_GROWN).all():
            connection.exec_driver_sql(f"ANALYZE (SKIP_LOCKED) {table}")


def migration_config() -> Config:
    """Alembic's, for the migrations of this program."""
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.set_main_option("recursive_version_locations", "true")
    return config


def prepare_vectors(engine: Engine) -> None:
    """Makes pgvector's extension where it is not there; nothing on SQLite, whose connections have it already.
    Raises StorageError."""
    if engine.dialect.name != "postgresql":
        return
    try:
        with writing(engine) as connection:
            prepare_postgresql(connection)
    except DBAPIError as error:
        raise StorageError(f"pgvector could not be prepared: {error.orig}") from error


def has_tables(engine: Engine) -> bool:
    """Whether this program, or an older or newer one, has made its tables here."""
    with reading(engine) as connection:
        return inspect(connection).has_table("alembic_version")


def needs_migration(engine: Engine) -> bool:
    """Whether `migrate` has something to do. Raises StorageError when the database is newer than the program."""
    known = revisions()
    with reading(engine) as connection:
        if not inspect(connection).has_table("alembic_version"):
            return True
        current = set(connection.scalars(text("SELECT version_num FROM alembic_version")))
    if not current <= {*known}:
        raise StorageError(
            f"the database was written by a newer version of vouchgate (its revision is {', '.join(current)}); "
            "use that version, or another database"
        )
    return current != {known[-1]}


def revisions() -> list[str]:
    """The revisions that this program's tables have gone through, oldest first, by the names of their files: who finds
    nothing to migrate need not load Alembic to know it."""
    return sorted(path.name.partition("_")[0] for path in (_MIGRATIONS / "versions").rglob("[0-9]*.py"))
