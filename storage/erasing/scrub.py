"""The free pages of the database's files, where what was deleted would stay: overwritten as it is deleted, and then
left behind by writing every table anew (ADR-0051).

That stops writers meanwhile, so it is done at once while the database is small, else in the night or when an operator
says so; until then table `meta` says since when it is due.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from sqlalchemy import Connection, Engine, bindparam, select, text
from sqlalchemy.exc import DBAPIError

from vouchgate.storage.dedup.builds import META
from vouchgate.storage.errors import StoreBusy

AT_ONCE = 32 * 1024 * 1024  # bytes of a database that is written anew at once: about a second
NIGHT = range(2, 4)  # hours (UTC) in which a larger one is
_WAIT_SECONDS = 5.0  # for whoever writes or reads
_DUE = "scrub_due"
# Every table that an erasure changes. `log_entry` too: its salts are gone.
TABLES = (
    *(
        "memory",
        "pending",
        "decision",
        "idempotency",
        "log_entry",
        "dedup_key",
        "dedup_template",
        "similar_key",
    ),
    *("embedding", "source", "source_text", "recheck", "spot_check", "standing_ruling", "echo", "delivery"),
    *("document", "vote", "lineage", "memory_words", "record", "audited_row"),
)
_NOTE = text(
    "INSERT INTO meta (name, value) VALUES (:name, :value) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)
_DONE = text("DELETE FROM meta WHERE name = :name AND value = :value")
_SIZE = {
    "sqlite": "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
    "postgresql": "SELECT pg_database_size(current_database())",
}


@contextmanager
def overwriting(connection: Connection) -> Iterator[None]:
    """Has SQLite write zeros over what is deleted. PostgreSQL has nothing like it."""
    if connection.dialect.name != "sqlite":
        yield
        return
    before = connection.exec_driver_sql("PRAGMA secure_delete").scalar_one()
    connection.exec_driver_sql("PRAGMA secure_delete = ON")
    yield  # after an error, the writer drops its connection
    connection.exec_driver_sql(f"PRAGMA secure_delete = {before}")


def note_due(connection: Connection, now: datetime) -> None:
    """Notes that something was erased, in the transaction that does."""
    connection.execute(_NOTE, {"name": _DUE, "value": now.isoformat()})


def due_since(connection: Connection) -> datetime | None:
    """Since when something that was erased may be in free pages; None: it is not."""
    found = connection.scalar(select(META.c.value).where(META.c.name == bindparam("name")), {"name": _DUE})
    return None if found is None else datetime.fromisoformat(found)


def may_now(connection: Connection, now: datetime) -> bool:
    """Whether the database is small enough to be written anew at any time, or it is night."""
    size: int = connection.exec_driver_sql(_SIZE[connection.dialect.name]).scalar_one()
    return size <= AT_ONCE or now.astimezone(UTC).hour in NIGHT


def scrub(engine: Engine) -> None:
    """Writes the tables anew and leaves the old pages behind. Outside of every transaction; nobody writes meanwhile.
    Raises StoreBusy when somebody is in the way: it stays due."""
    try:
        with engine.connect() as connection:
            due = due_since(connection)
        if engine.dialect.name == "sqlite":
            _scrub_sqlite(str(engine.url.database))
        else:
            with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                for table in TABLES:
                    connection.exec_driver_sql(f"VACUUM (FULL, ANALYZE) {table}")
        if due is not None:
            with engine.connect().execution_options(vouchgate_write=True) as connection, connection.begin():
                connection.execute(_DONE, {"name": _DUE, "value": due.isoformat()})
    except (sqlite3.OperationalError, DBAPIError) as error:
        raise StoreBusy(f"free pages could not be written over, and are tried again: {error}") from error


def _scrub_sqlite(path: str) -> None:
    connection = sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None)
    try:
        connection.execute("PRAGMA secure_delete = ON")
        # What was taken out of a full-text index stays in its pages until they are merged.
        connection.execute("INSERT INTO memory_fts (memory_fts) VALUES ('optimize')")
        connection.execute("VACUUM")
        busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    finally:
        connection.close()
    if busy:
        raise sqlite3.OperationalError("somebody reads in the write-ahead log")
