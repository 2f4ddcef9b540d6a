"""The append-only log: one hash chain per owner, so that owners never wait for one another."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import (
    Connection,
    Row,
    Table,
    and_,
    bindparam,
    or_,
    select,
    update,
)

from vouchgate.ingest.claims.log import Action, LogEntry
from vouchgate.ingest.policy import canonical_json
from vouchgate.storage.columns import as_it_lies, read_time
from vouchgate.storage.identity.owners import CHAIN_START, OwnerState
from vouchgate.storage.identity.owners import TABLE as OWNER
from vouchgate.storage.sql import BulkInsert, among
from vouchgate.storage.tables.claims import LogRow

TABLE: Table = LogRow.metadata.tables["log_entry"]
_ROWS = BulkInsert(TABLE)
_END = select(OWNER.c.log_seq, OWNER.c.log_head).where(OWNER.c.owner_id == bindparam("of_owner"))
_MOVE_END = (
    update(OWNER)
    .where(OWNER.c.owner_id == bindparam("of_owner"))
    .values(log_seq=bindparam("seq"), log_head=bindparam("head"))
)
SHOWN = [column for column in TABLE.c if column.name != "salt"]
_IN_ORDER = select(*SHOWN).order_by(TABLE.c.owner_id, TABLE.c.seq).limit(bindparam("most"))
_AFTER = or_(
    TABLE.c.owner_id > bindparam("last_owner"),
    and_(TABLE.c.owner_id == bindparam("last_owner"), TABLE.c.seq > bindparam("last_seq")),
)
_OF_OWNERS = among(TABLE.c.owner_id, "owner_ids")
_CHAINS = (
    select(
        OWNER.c.owner_id.label("chain"),
        OWNER.c.log_seq,
        OWNER.c.log_head,
        *(c for c in TABLE.c if c.name != "at"),
        as_it_lies(TABLE.c.at),
    )
    .select_from(OWNER.outerjoin(TABLE, TABLE.c.owner_id == OWNER.c.owner_id))
    .order_by(OWNER.c.owner_id, TABLE.c.seq)
)
_ORPHANS = (
    select(TABLE.c.owner_id)
    .distinct()
    .where(~select(OWNER.c.owner_id).where(OWNER.c.owner_id == TABLE.c.owner_id).exists())
)


SALT_BYTES = 16


class Document(NamedTuple):
    """What an entry is about, as the bytes that it commits to. A later `form` commits to more than the first did
    (ADR-0047)."""

    content: bytes
    form: int = 1

    def commitment(self, salt: bytes | None) -> str:
        """sha256 hex over salt and content, after the form and `s` for salted: `1s:`, `2s:`. Without a salt, as entries
        were once made, it is the digest alone, or after `2:` (ADR-0049)."""
        digest = hashlib.sha256((salt or b"") + self.content).hexdigest()
        if salt is not None:
            return f"{self.form}s:{digest}"
        return digest if self.form == 1 else f"{self.form}:{digest}"


def document_of(about: Mapping[str, Any], *, form: int = 1) -> Document:
    """What an entry is about, as canonical JSON."""
    return Document(canonical_json(about).encode(), form)


def form_of(commitment: str) -> int:
    """In which form the document is that this commits to."""
    mark, colon, _ = commitment.partition(":")
    return int(mark.removesuffix("s")) if colon else 1


def new_salts(count: int) -> Iterator[bytes]:
    """So many, from one call of the system's generator, which gives up the interpreter for each."""
    drawn = os.urandom(SALT_BYTES * count)
    return (drawn[start : start + SALT_BYTES] for start in range(0, len(drawn), SALT_BYTES))


def next_entry(
    state: OwnerState,
    *,
    at: datetime,
    actor: str,
    action: Action,
    subject_id: str,
    document: Document,
    salt: bytes,
) -> dict[str, Any]:
    """The row that continues this owner's chain, and moves `state` to it. `write` puts it on disk."""
    state.log_seq += 1
    row: dict[str, Any] = {
        "owner_id": state.owner_id,
        "seq": state.log_seq,
        "at": at.astimezone(UTC),
        "actor": actor,
        "action": action.value,
        "subject_id": subject_id,
        "content_digest": document.commitment(salt),
        "previous": state.log_head,
        "salt": salt,
    }
    row["digest"] = state.log_head = _digest(row)
    return row


def _digest(row: dict[str, Any]) -> str:
    """sha256 hex over every field but itself and the salt, which may be erased; a JSON list, so that no two entries can
    spell the same text."""
    fields = [
        row["owner_id"],
        row["seq"],
        row["at"].isoformat(),
        row["actor"],
        row["action"],
        row["subject_id"],
        row["content_digest"],
        row["previous"],
    ]
    return hashlib.sha256(json.dumps(fields).encode()).hexdigest()


def write(connection: Connection, rows: list[dict[str, Any]]) -> None:
    """Puts rows made by `next_entry` on disk; their owners' states are saved with `storage.identity.owners.save`."""
    _ROWS.write(connection, rows)


def append(
    connection: Connection,
    owner_id: str,
    action: Action,
    subject_id: str,
    document: Document,
    *,
    by: str,
    now: datetime,
) -> LogEntry:
    """Adds one entry and moves the end of the owner's chain. The caller holds the owner's lock."""
    seq, head = connection.execute(_END, {"of_owner": owner_id}).one()
    state = OwnerState(owner_id, seq, head, 0, 0)
    row = next_entry(
        state,
        at=now,
        actor=by,
        action=action,
        subject_id=subject_id,
        document=document,
        salt=os.urandom(SALT_BYTES),
    )
    write(connection, [row])
    connection.execute(_MOVE_END, {"of_owner": owner_id, "seq": state.log_seq, "head": state.log_head})
    return LogEntry.model_validate({column.name: row[column.name] for column in SHOWN})


def events(
    connection: Connection, owners: frozenset[str] | None, *, after: tuple[str, int] | None, limit: int
) -> list[LogEntry]:
    """Entries by owner, then number. `after` is (owner id, seq) of the last one seen; within an owner no
    entry can appear behind it later. `owners` None means every owner, the service's own chain included."""
    statement = _IN_ORDER
    parameters: dict[str, Any] = {"most": limit}
    if owners is not None:
        statement = statement.where(_OF_OWNERS)
        parameters["owner_ids"] = sorted(owners)
    if after is not None:
        statement = statement.where(_AFTER)
        parameters["last_owner"], parameters["last_seq"] = after
    return [
        LogEntry.model_validate(dict(row)) for row in connection.execute(statement, parameters).mappings()
    ]


def verify(connection: Connection, owner_id: str | None = None) -> list[str]:
    """Walks every chain, or one; one sentence per break, none when all is whole. Needs a reading transaction, and
    memory for one batch of rows only."""
    chains = _CHAINS if owner_id is None else _CHAINS.where(OWNER.c.owner_id == owner_id)
    rows: Iterable[Row[Any]] = connection.execute(chains, execution_options={"yield_per": 1000})
    breaks = list(_breaks(rows))
    if owner_id is not None:
        return breaks
    breaks += [f"Log of owner {owner!r}: the owner's row is gone." for owner in connection.scalars(_ORPHANS)]
    return breaks


def _breaks(rows: Iterable[Row[Any]]) -> Iterator[str]:
    owner, seq, head, end = None, 0, CHAIN_START, (0, CHAIN_START)
    for row in rows:
        if row.chain != owner:
            yield from _end_break(owner, (seq, head), end)
            owner, seq, head, end = row.chain, 0, CHAIN_START, (row.log_seq, row.log_head)
        if row.seq is None:  # an owner without entries
            continue
        where = f"Log of owner {owner!r}, entry {row.seq}"
        if not isinstance(row.seq, int):
            yield f"{where}: was altered: that is no number."
            continue
        if row.seq != seq + 1:
            yield f"Log of owner {owner!r}: entry {seq + 1} is missing; the next one is {row.seq}."
        elif row.previous != head:
            yield f"{where}: does not continue the entry before it."
        if _digest_of_row(row) != row.digest:
            yield f"{where}: was altered."
        seq, head = row.seq, row.digest
    yield from _end_break(owner, (seq, head), end)


def _digest_of_row(row: Row[Any]) -> str | None:
    """None of an entry with something in it that nothing writes so."""
    try:
        return _digest(dict(row._mapping) | {"at": read_time(row.at)})
    except (ValueError, TypeError):
        return None


def _end_break(owner: str | None, last: tuple[int, str], end: tuple[Any, str]) -> Iterator[str]:
    if owner is None or last == end:
        return
    if not isinstance(end[0], int):
        yield f"Log of owner {owner!r}: the owner's row was altered: the number of its last entry is none."
    elif last[0] < end[0]:
        yield f"Log of owner {owner!r}: ends at entry {last[0]}, but entry {end[0]} was written."
    else:
        yield f"Log of owner {owner!r}: its last entry {last[0]} is not the one the owner's row names."
