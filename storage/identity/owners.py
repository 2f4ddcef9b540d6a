"""The owner rows: what a writer locks, and where each owner's log and queue count end."""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Table, bindparam, select, text, update

from vouchgate.storage.sql import PreparedSelect, among, fetch
from vouchgate.storage.tables.claims import OwnerRow

SERVICE_OWNER = ""  # whose log chain tells of tokens and of the service itself; no claim can have this owner
TABLE: Table = OwnerRow.metadata.tables["owner"]
_WANTED = among(TABLE.c.owner_id, "owner_ids")
_KNOWN = select(TABLE.c.owner_id).where(_WANTED)
_ENDS = select(TABLE.c.owner_id, TABLE.c.log_seq, TABLE.c.pending).where(_WANTED)
_END = PreparedSelect(select(TABLE.c.log_seq).where(TABLE.c.owner_id == bindparam("of_owner")))
_SAID = update(TABLE).where(TABLE.c.owner_id == bindparam("of_owner")).values(said=TABLE.c.said + 1)
_CREATE = text(
    "INSERT INTO owner (owner_id, log_seq, log_head, pending, pseudonym) "
    "VALUES (:owner_id, 0, :log_head, 0, :pseudonym) "
    "ON CONFLICT DO NOTHING"
)
# Straight to the driver, as both run for every group of claims; the owners come sorted. On SQLite a join,
# because for an IN it builds a table of the list, which takes longer than to look the owners up.
_LOCK = {
    "sqlite": "SELECT o.owner_id, o.log_seq, o.log_head, o.pending, o.imported, o.said, o.pseudonym, o.similar_seq "
    "FROM json_each(?) AS wanted CROSS JOIN owner AS o ON o.owner_id = wanted.value",
    "postgresql": "SELECT owner_id, log_seq, log_head, pending, imported, said, pseudonym, similar_seq FROM owner "
    "WHERE owner_id = ANY(%s::text[]) ORDER BY owner_id FOR UPDATE",
}
_SAVE = {
    "sqlite": "UPDATE owner SET log_seq = ?, log_head = ?, pending = ?, imported = ? WHERE owner_id = ?",
    "postgresql": "UPDATE owner SET log_seq = %s, log_head = %s, pending = %s, imported = %s WHERE owner_id = %s",
}

CHAIN_START = "0" * 64  # what the first entry of a chain names as the one before


@dataclass(slots=True)
class OwnerState:
    """An owner's row as it stands in this transaction. Changes count once `save` wrote them."""

    owner_id: str
    log_seq: int
    log_head: str
    pending: int
    imported: int  # of these, by imports
    said: int = 0  # how often what its owner says changed; see `storage.claims.sayings`
    pseudonym: str = ""
    similar_seq: int = 0  # where `storage.dedup.similar` has come to in the log


def lock_owners(
    connection: Connection, owner_ids: Sequence[str], *, may_make: Collection[str] | None = None
) -> dict[str, OwnerState]:
    """Locks the owners' rows until the transaction ends, and makes those that are not there yet; of `may_make` only, if
    that is given, and others that are not there are left out.

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
        missing = [owner for owner in wanted if owner not in known]
        if missing := [owner for owner in missing if may_make is None or owner in may_make]:
            connection.execute(_CREATE, [_new(owner) for owner in missing])
        states = _lock(connection, wanted)
    return states


def _new(owner_id: str) -> dict[str, str]:
    return {"owner_id": owner_id, "log_head": CHAIN_START, "pseudonym": secrets.token_hex(16)}


def _lock(connection: Connection, wanted: list[str]) -> dict[str, OwnerState]:
    dialect = connection.dialect.name
    rows = fetch(connection, _LOCK[dialect], (json.dumps(wanted) if dialect == "sqlite" else wanted,))
    return {owner_id: OwnerState(owner_id, *state) for owner_id, *state in rows}


def log_ends(connection: Connection, owner_ids: Collection[str]) -> dict[str, tuple[int, int]]:
    """By owner: the number of the last log entry, and how many items wait. Nothing is locked. An owner about whom
    nothing was ever written is left out."""
    rows = connection.execute(_ENDS, {"owner_ids": owner_ids})
    return {row.owner_id: (row.log_seq, row.pending) for row in rows}


def names(connection: Connection, after: str, limit: int) -> list[str]:
    """Owners in order, from the one after `after`; the service itself is none."""
    wanted = select(TABLE.c.owner_id).where(TABLE.c.owner_id > after).order_by(TABLE.c.owner_id).limit(limit)
    return list(connection.scalars(wanted))


def is_known(connection: Connection, owner_id: str) -> bool:
    """Whether there is such an owner."""
    return bool(_END.rows(connection, {"of_owner": owner_id}))


def log_end(connection: Connection, owner_id: str) -> int:
    """The number of an owner's last log entry, 0 when there is none. Nothing is locked."""
    rows = _END.rows(connection, {"of_owner": owner_id})
    return int(rows[0][0]) if rows else 0


def save(connection: Connection, states: Iterable[OwnerState]) -> None:
    """Writes the rows of locked owners back."""
    rows = [(s.log_seq, s.log_head, s.pending, s.imported, s.owner_id) for s in states]
    if rows:
        connection.exec_driver_sql(_SAVE[connection.dialect.name], rows)


def note_said(connection: Connection, owner_id: str) -> None:
    """Counts a change of what an owner says (`storage.claims.sayings`). The caller holds the owner's lock."""
    connection.execute(_SAID, {"of_owner": owner_id})
