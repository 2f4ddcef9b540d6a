"""What a write transaction does to a database: its statements, and the rows that it writes, by table."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
from sqlalchemy import Connection, event, select
from sqlmodel import SQLModel

from vouchgate.storage.store import Store

_WRITES = re.compile(r"(?:INSERT(?: OR \w+)? INTO|UPDATE|DELETE FROM)\s+\"?(\w+)")


@dataclass
class Counted:
    """What was seen of one transaction. `size` are the bytes of its new rows, a number counted as 8."""

    reads: list[str] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    rows: Counter[str] = field(default_factory=Counter)
    size: int = 0
    _changes: int = 0
    _table: str = ""

    def statement(self, text: str) -> str:
        """Notes a statement; the table that it writes, or nothing."""
        words = " ".join(text.split())
        if words.startswith(("BEGIN", "COMMIT", "PRAGMA", "--")):
            return ""
        found = _WRITES.match(words)
        (self.reads if found is None else self.writes).append(words)
        return "" if found is None else found[1]

    def sqlite(self, connection: sqlite3.Connection, text: str = "") -> None:
        """Notes what the last statement changed, and the next one, which begins."""
        changed = connection.total_changes - self._changes
        if self._table and changed:
            self.rows[self._table] += changed
        self._changes, self._table = connection.total_changes, self.statement(text)


@contextmanager
def counting(store: Store) -> Iterator[Counted]:
    """Counts what the store's writer does in the block: in one transaction, or the sum of several."""
    seen = Counted()
    hooked: list[Any] = []

    class Cursor(psycopg.Cursor[Any]):
        def execute(self, query: Any, *rest: Any, **more: Any) -> Any:
            done = super().execute(query, *rest, **more)
            if table := seen.statement(str(query)):
                seen.rows[table] += self.rowcount
            return done

        def executemany(self, query: Any, *rest: Any, **more: Any) -> None:
            super().executemany(query, *rest, **more)
            if table := seen.statement(str(query)):
                seen.rows[table] += self.rowcount

    def hook(connection: Connection) -> None:
        if not connection.get_execution_options().get("vouchgate_write"):
            return
        driver: Any = connection.connection.driver_connection
        if driver in hooked:
            return
        hooked.append(driver)
        if isinstance(driver, sqlite3.Connection):
            seen._changes = driver.total_changes
            driver.set_trace_callback(lambda text: seen.sqlite(driver, text))
        else:
            driver.cursor_factory = Cursor

    before = _sizes(store)
    event.listen(store._engine, "begin", hook)
    try:
        yield seen
    finally:
        event.remove(store._engine, "begin", hook)
        for driver in hooked:
            if isinstance(driver, sqlite3.Connection):
                driver.set_trace_callback(None)
                seen.sqlite(driver)
            else:
                driver.cursor_factory = psycopg.Cursor
    seen.size = sum(size for key, size in _sizes(store).items() if key not in before)


def _sizes(store: Store) -> dict[tuple[Any, ...], int]:
    """The bytes of each row, by its table and key."""
    found = {}
    with store.read() as connection:
        for table in SQLModel.metadata.sorted_tables:
            for row in connection.execute(select(table)).mappings():
                key = (table.name, *(row[column.name] for column in table.primary_key))
                found[key] = sum(map(_size, row.values()))
    return found


def _size(value: Any) -> int:
    if value is None:
        return 0
    return len(value if isinstance(value, bytes) else value.encode()) if isinstance(value, str | bytes) else 8
