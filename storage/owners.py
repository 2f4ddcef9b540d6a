"""The owner rows: what a writer locks, and where each owner's log and queue count end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Table, bindparam, select, text, update

from storage.sql import among
from storage.tables import OwnerRow

TABLE: Table = OwnerRow.metadata.tables["owner"]
_WANTED = among(TABLE.c.owner_id, "owner_ids")
_KNOWN = select(TABLE.c.owner_id).where(_WANTED)
_CREATE = text(
    "INSERT INTO owner (owner_id, log_seq, log_head, pending) VALUES (:owner_id, 0, :log_head, 0) "
    "ON CONFLICT DO NOTHING"
)
_LOCK = select(TABLE).where(_WANTED).order_by(TABLE.c.owner_id).with_for_update()
_SAVE = (
    update(TABLE)
    .where(TABLE.c.owner_id == bindparam("of_owner"))
    .values(log_seq=bindparam("seq"), log_head=bindparam("head"), pending=bindparam("waiting"))
)

CHAIN_START = "0" * 64  # what the first entry of a chain names as the one before


@dataclass(slots=True)
class OwnerState:
    """An owner's row as it stands in this transaction. Changes count once `save` wrote them."""

    owner_id: str
    log_seq: int
    log_head: str
    pending: int


def lock_owners(connection: Connection, owner_ids: Sequence[str]) -> dict[str, OwnerState]:
    """Locks the owners' rows until the transaction ends, and makes those that are not there yet.

    Call it once in a transaction, with every owner it is about: two transactions then take their locks in
    one order and cannot wait for each other. For the same reason new rows are made, in order, before
    any old one is locked.
    """
    wanted = sorted(set(owner_ids))
    if not wanted:
        return {}
    states = {}
    if connection.dialect.name == "sqlite":  # the transaction holds the whole database: one look is enough
        states = _lock(connection, wanted)
    if len(states) < len(wanted):
        known = set(connection.scalars(_KNOWN, {"owner_ids": wanted}))
        if missing := [owner for owner in wanted if owner not in known]:
            connection.execute(_CREATE, [{"owner_id": owner, "log_head": CHAIN_START} for owner in missing])
        states = _lock(connection, wanted)
    return states


def _lock(connection: Connection, wanted: list[str]) -> dict[str, OwnerState]:
    rows = connection.execute(_LOCK, {"owner_ids": wanted})
    return {row.owner_id: OwnerState(row.owner_id, row.log_seq, row.log_head, row.pending) for row in rows}


def save(connection: Connection, states: Iterable[OwnerState]) -> None:
    """Writes the rows of locked owners back."""
    rows = [
        {"of_owner": state.owner_id, "seq": state.log_seq, "head": state.log_head, "waiting": state.pending}
        for state in states
    ]
    if rows:
        connection.execute(_SAVE, rows)
