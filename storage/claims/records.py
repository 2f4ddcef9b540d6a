"""Records: what users said and tools returned, put down by a host with a token of role `recorder`.

The log commits to a record through a digest under a salt that lies in its row. When its time is over, or it is erased,
its words and that salt go: what is left still is what the log says, and nobody can guess the words from it.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

from sqlalchemy import Connection, Table, bindparam, exists, func, select, update

from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.source import RecordKind
from vouchgate.ingest.policy import RecordsPolicy, canonical_json
from vouchgate.ingest.support.texts import digest_of
from vouchgate.storage.claims import source_texts
from vouchgate.storage.log import chain
from vouchgate.storage.sql import BulkInsert, PreparedSelect
from vouchgate.storage.tables.doors import RecordRow


class Recorded(NamedTuple):
    """What a record says."""

    kind: RecordKind
    who: str
    said_at: datetime
    text: str


TABLE: Table = RecordRow.metadata.tables["record"]
# What is left of the words of one whose time is over, or that was erased.
EMPTY = {"who": "", "text": "", "conversation": None, "salt": None, "idempotency_key": None}
KEPT = TABLE.c.salt.is_not(None)
_WORDS = ("who", "conversation", "text", "masked")
_ROWS = BulkInsert(TABLE)
_OWN = TABLE.c.owner_id == bindparam("of_owner")
_COUNT = select(func.count()).select_from(TABLE).where(_OWN, KEPT)
_BY_KEY = select(TABLE).where(
    _OWN,
    TABLE.c.submitted_by == bindparam("of_principal"),
    TABLE.c.idempotency_key == bindparam("of_key"),
)
_SAID = [TABLE.c[name] for name in Recorded._fields]
_THIS = TABLE.c.id == bindparam("of_id")
_HOLDS = TABLE.c.kept_until > bindparam("now", type_=TABLE.c.kept_until.type)
_GET = PreparedSelect(select(*_SAID).where(_OWN, _THIS, KEPT, _HOLDS))
_OLD = (
    select(TABLE.c.owner_id, TABLE.c.id, TABLE.c.text)
    .where(KEPT, TABLE.c.kept_until <= bindparam("now"))
    .limit(bindparam("most"))
)
_DECIDED = timedelta(minutes=10)  # in which a claim is decided that has read one, and its text kept
_FORGET = update(TABLE).where(_OWN, _THIS, ~exists().where(source_texts.THIS)).values(**EMPTY)


def add(
    connection: Connection, sent: Mapping[str, Any], limits: RecordsPolicy, now: datetime
) -> tuple[Mapping[Any, Any], bool] | Literal["full", "key_used"]:
    """Keeps a record and logs it: its row, and whether it was kept before under its key. Nothing is written when the
    owner has as many as the policy allows, or another came with the key. `sent` has `owner_id`, `submitted_by`, `kind`,
    `who`, `conversation`, `text`, `masked`, `said_at` (None: now) and `idempotency_key`. The caller holds the lock."""
    owner_id, by, key = sent["owner_id"], sent["submitted_by"], sent["idempotency_key"]
    named = {"of_owner": owner_id, "of_principal": by, "of_key": key}
    known = connection.execute(_BY_KEY, named).mappings().first() if key else None
    if known is not None:
        differs = any(sent[name] not in (known[name], None) for name in ("kind", "said_at"))
        return "key_used" if differs or known["digest"] != _digest(known["salt"], sent) else (known, True)
    if (connection.scalar(_COUNT, {"of_owner": owner_id}) or 0) >= limits.kept:
        return "full"
    made = {
        "said_at": sent["said_at"] or now,
        "created_at": now,
        "kept_until": now + timedelta(days=limits.days),
    }
    salt = os.urandom(chain.SALT_BYTES)
    # Whoever can name a record can have it read, so its id is no time-ordered one.
    row = {
        **sent,
        **made,
        "id": f"rec_{secrets.token_hex(16)}",
        "salt": salt,
        "digest": _digest(salt, sent),
    }
    _ROWS.write(connection, [row])
    document = chain.document_of(committed(row))
    chain.append(connection, owner_id, Action.RECORD_KEPT, row["id"], document, by=by, now=now)
    return row, False


def get(connection: Connection, owner_id: str, wanted: str, now: datetime) -> Recorded | None:
    """What a record of this owner says. None for one that there is not, for another's, and for one whose time is over,
    which are not told apart."""
    rows = _GET.rows(connection, {"of_owner": owner_id, "of_id": wanted, "now": now})
    return Recorded(*rows[0]) if rows else None


def committed(row: Mapping[Any, Any]) -> dict[str, Any]:
    """What the log entry of a record commits to."""
    times = {name: row[name].isoformat() for name in ("said_at", "kept_until")}
    return {"record": row["id"], "kind": row["kind"], **times, "digest": row["digest"]}


def holds(row: Mapping[Any, Any]) -> bool:
    """Whether a row that has its words has those that its digest is of."""
    return bool(row["digest"] == _digest(row["salt"], row))


def has_old(connection: Connection, now: datetime) -> bool:
    """Whether `forget_old` has something to do."""
    return connection.execute(_OLD, {"now": now - _DECIDED, "most": 1}).first() is not None


def forget_old(connection: Connection, now: datetime, limit: int) -> int:
    """Takes the words out of some of the records whose time is over, up to `limit` and 100, and deletes the texts that
    decisions kept of them; how many. One whose text somebody writes just now is left for the next time."""
    most = {"now": now - _DECIDED, "most": min(limit, 100)}
    rows = connection.execute(_OLD.with_for_update(skip_locked=True), most).all()
    over = [{"of_owner": row.owner_id, "of_id": row.id, "of_digest": digest_of(row.text)} for row in rows]
    for statement in (source_texts.FORGET_FREE, _FORGET) if over else ():
        connection.execute(statement, over)
    return len(over)


def _digest(salt: bytes, record: Mapping[Any, Any]) -> str:
    return hashlib.sha256(salt + canonical_json({name: record[name] for name in _WORDS}).encode()).hexdigest()
