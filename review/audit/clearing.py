"""Clearing what an audit found in a memory: its owner takes rows out of what goes to the gate, says that others were
found wrongly, and takes either back. Nothing here stores a claim. Rights are those of the review queue."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from sqlalchemy import Connection

from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.people import Principal
from vouchgate.review import record
from vouchgate.review.answers import NotFound
from vouchgate.review.reading import own_owners
from vouchgate.review.rules import Act
from vouchgate.storage.queue import audits, proposers
from vouchgate.storage.queue.audits import AT_ONCE, Audit, Chosen, RowState
from vouchgate.storage.store import Store

_ACTIONS = {
    RowState.CLEARED: Action.AUDIT_CLEARED,
    RowState.KEPT: Action.AUDIT_KEPT,
    RowState.OPEN: Action.AUDIT_UNDONE,
}
_FROM = {to: [each.value for each in _ACTIONS if each is not to] for to in _ACTIONS}


def listing(store: Store, principal: Principal, act: Act = Act.READ_RULINGS) -> Sequence[Audit]:
    """The audits on which this principal may do this, the newest first."""
    with store.read() as connection:
        return audits.listing(connection, own_owners(principal, act))


def move(
    store: Store, principal: Principal, audit_id: str, to: RowState, chosen: Chosen, *, now: datetime
) -> int | NotFound:
    """Puts rows into another state, as one act, or in place of an update that is cleared the row that it replaces; to
    RowState.OPEN takes the chosen act back. How many rows it was. Those at the gate stay as they are. Many are done in
    steps, each of which is whole and in the log."""
    audit = next((each for each in listing(store, principal, Act.CLEAR) if each.id == audit_id), None)
    if audit is None:
        return NotFound()
    number = None if to is RowState.OPEN else int(now.timestamp() * 1_000_000)
    chosen = {"state": _FROM[to], **chosen}
    with store.read() as reading:
        every = audits.positions(reading, audit, chosen)

    def step(connection: Connection, some: Sequence[int]) -> int:
        if not proposers.may_still_rule(connection, principal, audit.owner_id, now):
            return 0
        by = None if number is None else principal.id
        moved = audits.move(connection, audit, to, {**chosen, "position": some}, act=number, acted_by=by)
        if moved:
            act = str(number or max(chosen["act"]))
            about = record.document(audit=audit_id, act=act, rows=str(moved))
            record.entry(connection, audit.owner_id, _ACTIONS[to], audit_id, about, by=principal.id, now=now)
        return moved

    steps = (partial(step, some=every[at : at + AT_ONCE]) for at in range(0, len(every), AT_ONCE))
    return sum(store.writer.run([audit.owner_id], each).result() for each in steps)
