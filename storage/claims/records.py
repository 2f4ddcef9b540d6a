"""Records: what users said and tools returned, put down by a host with a token of role `recorder`.

The log commits to a record through a digest under a salt that lies in its row. When its time is over, or it is erased,
its words and that salt go: what is left still is what the log says, and nobody can guess the words from it.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from sqlalchemy import Connection, Row, Table, bindparam, func, select, tuple_, update

from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.source import RecordKind
from vouchgate.ingest.policy import RecordsPolicy, canonical_json
from vouchgate.storage.ids import record_id
from vouchgate.storage.log import chain
from vouchgate.storage.sql import BulkInsert, PreparedSelect
from vouchgate.storage.tables.doors import RecordRow

TABLE: Table = RecordRow.metadata.tables["record"]
# What is left of the words of one whose time is over, or that was erased.
EMPTY: Mapping[str, Any] = {
    "who": "",
    "conversation": None,
    "text": "",
    "salt": None,
    "idempotency_key": None,
}
_ROWS = BulkInsert(TABLE)
KEPT = TABLE.c.salt.is_not(None)
_COUNT = select(func.count()).select_from(TABLE).where(TABLE.c.owner_id == bindparam("of_owner"), KEPT)
_BY_KEY = select(TABLE).where(
    TABLE.c.owner_id == bindparam("of_owner"),
    TABLE.c.submitted_by == bindparam("of_principal"),
    TABLE.c.idempotency_key == bindparam("of_key"),
)
_GET = PreparedSelect(
    select(TABLE.c.kind, TABLE.c.who, TABLE.c.said_at, TABLE.c.text).where(
        TABLE.c.owner_id == bindparam("of_owner"),
        TABLE.c.id == bindparam("of_id"),
        KEPT,
        TABLE.c.kept_until > bindparam("now", type_=TABLE.c.kept_until.type),
    )
)
_IS_OLD = (KEPT, TABLE.c.kept_until <= bindparam("now"))
_ANY_OLD = select(TABLE.c.id).where(*_IS_OLD).limit(1)
_OLD = (
    select(TABLE.c.owner_id, TABLE.c.id)
    .where(*_IS_OLD)
    .limit(bindparam("most"))
    .with_for_update(skip_locked=True)
)
_FORGET = (
    update(TABLE)
    .where(tuple_(TABLE.c.owner_id, TABLE.c.id) == tuple_(bindparam("of_owner"), bindparam("of_id")))
    .values(**EMPTY)
)


@dataclass(frozen=True, slots=True)
class NewRecord:
    """A record as it is to be kept: masked, its time known. `given_time` is what the host said of it, if it did."""

    owner_id: str
    submitted_by: str
    kind: RecordKind
    who: str
    conversation: str | None
    text: str
    masked: bool
    given_time: datetime | None
    idempotency_key: str | None


@dataclass(frozen=True, slots=True)
class Kept:
    """The row of a record that is kept. `repeated`: it was before, under the same key."""

    row: Mapping[str, Any]
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class NotKept:
    """Nothing was written: the owner has as many records as the policy allows, or the Idempotency-Key came with
    another record before."""

    why: Literal["full", "key_used"]


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a record says."""

    kind: RecordKind
    who: str
    said_at: datetime
    text: str


def add(connection: Connection, new: NewRecord, limits: RecordsPolicy, now: datetime) -> Kept | NotKept:
    """Keeps a record and logs it, unless it is kept already under its key. The caller holds the owner's lock."""
    named = {"of_owner": new.owner_id, "of_principal": new.submitted_by, "of_key": new.idempotency_key}
    known = connection.execute(_BY_KEY, named).mappings().first() if new.idempotency_key else None
    if known is not None:
        same = known["digest"] == _digest(known["salt"], _words(new)) and known["kind"] == new.kind
        if not same or new.given_time not in (None, known["said_at"]):
            return NotKept("key_used")
        return Kept(known, repeated=True)
    if connection.scalar(_COUNT, {"of_owner": new.owner_id}) >= limits.kept:
        return NotKept("full")
    salt, words = os.urandom(chain.SALT_BYTES), _words(new)
    row = {
        "owner_id": new.owner_id,
        "id": record_id(secrets.token_hex(16)),  # whoever can name a record can have it read
        "kind": new.kind,
        "said_at": new.given_time or now,
        "created_at": now,
        "kept_until": now + timedelta(days=limits.days),
        "submitted_by": new.submitted_by,
        "digest": _digest(salt, words),
        "salt": salt,
        **words,
        "idempotency_key": new.idempotency_key,
    }
    _ROWS.write(connection, [row])
    document = chain.document_of(committed(row))
    chain.append(
        connection, new.owner_id, Action.RECORD_KEPT, row["id"], document, by=new.submitted_by, now=now
    )
    return Kept(row)


def get(connection: Connection, owner_id: str, wanted: str, now: datetime) -> Recorded | None:
    """What a record of this owner says. None for one that there is not, for another's, and for one whose time is
    over, which cannot be told apart here."""
    rows = _GET.rows(connection, {"of_owner": owner_id, "of_id": wanted, "now": now})
    return Recorded(*rows[0]) if rows else None


def committed(row: Mapping[str, Any]) -> dict[str, Any]:
    """What the log entry of a record commits to."""
    times = {name: row[name].isoformat() for name in ("said_at", "kept_until")}
    return {"record": row["id"], "kind": row["kind"], **times, "digest": row["digest"]}


def holds(row: Row[Any]) -> bool:
    """Whether a row that has its words has those that its digest is of."""
    return bool(row.digest == _digest(row.salt, _words(row)))


def has_old(connection: Connection, now: datetime) -> bool:
    """Whether `forget_old` has something to do."""
    return connection.execute(_ANY_OLD, {"now": now}).first() is not None


def forget_old(connection: Connection, now: datetime, limit: int) -> int:
    """Takes the words out of up to `limit` records whose time is over; how many."""
    rows = connection.execute(_OLD, {"now": now, "most": limit}).all()
    if rows:
        connection.execute(_FORGET, [{"of_owner": row.owner_id, "of_id": row.id} for row in rows])
    return len(rows)


def _words(record: NewRecord | Row[Any]) -> dict[str, Any]:
    return {name: getattr(record, name) for name in ("who", "conversation", "text", "masked")}


def _digest(salt: bytes, words: Mapping[str, Any]) -> str:
    return hashlib.sha256(salt + canonical_json(words).encode()).hexdigest()
