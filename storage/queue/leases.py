"""Leases that end too late: a process whose clock was ahead took them, and nobody else gets the work before then."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Connection, Table, select, update
from sqlmodel import SQLModel

from vouchgate.storage.store import Store

_LONGEST = timedelta(hours=1)  # the longest lease is of ten minutes
_OF_MAIL = timedelta(
    days=9
)  # but a digest that was begun keeps its lease until its next hour, a week later at most


def end_impossible(store: Store, now: datetime) -> int:
    """Has such work come due now; how many pieces. Looks without a lock, and writes only when there are some. Raises
    StorageError."""
    leased = [each for each in SQLModel.metadata.tables.values() if {"lease", "due_at"} <= set(each.c.keys())]
    with store.read() as connection:
        found = [
            table
            for table in leased
            if connection.scalar(select(table.c.due_at).where(_is_too_late(table, now)).limit(1)) is not None
        ]

    def work(connection: Connection) -> int:
        return sum(
            connection.execute(update(table).where(_is_too_late(table, now)).values(due_at=now)).rowcount
            for table in found
        )

    return store.writer.run((), work, always=True).result() if found else 0


def _is_too_late(table: Table, now: datetime) -> ColumnElement[bool]:
    late: ColumnElement[bool] = table.c.due_at > now + (_OF_MAIL if table.name == "mail" else _LONGEST)
    # The tree's next batch is never far away, leased or not; what else is not leased may wait for long.
    return late if table.name == "tree" else late & table.c.lease.is_not(None)
