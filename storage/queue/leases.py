"""Work that comes due too late: a process whose clock was ahead leased it or said when it is next, and nobody would
get it before then."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Connection, Table, and_, or_, select, update
from sqlmodel import SQLModel

from vouchgate.ingest.policy import Policy
from vouchgate.storage.log.tree import TREE
from vouchgate.storage.queue import rechecks
from vouchgate.storage.store import Store

_LONGEST_LEASE = timedelta(hours=1)  # the longest is of ten minutes
# The tree's next batch, leased or not, and what was never tried, is never further away than this.
_SOON = timedelta(minutes=1)
# What is not leased waits for so long at most: for the next try, or a receiver that asked for a day. Sources are read
# again as the policy says (`rechecks.bring_back`).
_LONGEST_WAIT = {
    "delivery": timedelta(days=2),
    "document": timedelta(hours=1),
    "tree": _SOON,
    "webhook": timedelta(days=2),
}
_DUE_AT_ONCE = ("delivery", "webhook")
# A digest that was begun keeps its lease until its next hour, a week later at most, and so long it waits without.
_OF_MAIL = timedelta(days=9)
_WITNESSES = TREE.c.witnesses_due_at


def end_impossible(store: Store, policy: Policy, now: datetime) -> int:
    """Has such work come due now, and of the sources that are to be read again some; how many pieces. Looks without a
    lock, and writes only when there are some. Raises StorageError."""
    leased = [each for each in SQLModel.metadata.tables.values() if {"lease", "due_at"} <= set(each.c.keys())]
    late = [(each.c.due_at, _is_too_late(each, now)) for each in leased]
    late.append((_WITNESSES, _WITNESSES > now + _SOON))
    with store.read() as connection:
        found = [
            (due, is_late)
            for due, is_late in late
            if connection.scalar(select(due).where(is_late).limit(1)) is not None
        ]
        sources = rechecks.too_late(connection, policy, now)

    def work(connection: Connection) -> int:
        return rechecks.bring_back(connection, sources, now) + sum(
            connection.execute(update(due.table).where(is_late).values({due.name: now})).rowcount
            for due, is_late in found
        )

    return store.writer.run((), work, always=True).result() if found or sources else 0


def _is_too_late(table: Table, now: datetime) -> ColumnElement[bool]:
    if table.name == "mail":
        return table.c.due_at > now + _OF_MAIL
    late = and_(table.c.lease.is_not(None), table.c.due_at > now + _LONGEST_LEASE)
    if (wait := _LONGEST_WAIT.get(table.name)) is not None:
        late = or_(late, table.c.due_at > now + wait)
    if table.name in _DUE_AT_ONCE:
        never_tried = and_(table.c.lease.is_(None), table.c.attempts == 0, table.c.last_error.is_(None))
        late = or_(late, and_(never_tried, table.c.due_at > now + _SOON))
    return and_(table.c.state == "waiting", late) if "state" in table.c else late
