"""The whole texts of the sources that an owner's decisions rest on, so that a replay holds statements against what was
read then. Each is kept once for an owner, however many decisions rest on it, and for a time after the last of them.

Written in the transaction of the decision. Nothing hands them to anybody: the pages show a reviewer the place in one.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Table, bindparam, delete, select, text, tuple_

from vouchgate.ingest.claims.source import Found, PackedText, SourceReading
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.support.texts import unpack
from vouchgate.storage.columns import UtcTime
from vouchgate.storage.sql import among
from vouchgate.storage.tables.claims import SourceTextRow

log = logging.getLogger(__name__)

# A text that is kept for longer than this less is not written again: one page may carry a thousand claims a day.
_RENEWED = timedelta(days=1)

TABLE: Table = SourceTextRow.metadata.tables["source_text"]
_KEEP = text(
    "INSERT INTO source_text (owner_id, digest, body, kept_until) VALUES (:owner_id, :digest, :body, :kept_until) "
    "ON CONFLICT (owner_id, digest) DO UPDATE SET kept_until = excluded.kept_until "
    "WHERE source_text.kept_until < :renewed_from"
).bindparams(bindparam("kept_until", type_=UtcTime), bindparam("renewed_from", type_=UtcTime))
_GET = select(TABLE.c.digest, TABLE.c.body).where(
    TABLE.c.owner_id == bindparam("of_owner"), among(TABLE.c.digest, "wanted")
)
_ANY_OLD = select(TABLE.c.digest).where(TABLE.c.kept_until <= bindparam("now")).limit(1)
# Those that another process is forgetting or renewing are left to it.
_OLD = (
    select(TABLE.c.owner_id, TABLE.c.digest)
    .where(TABLE.c.kept_until <= bindparam("now"))
    .order_by(TABLE.c.kept_until)
    .limit(bindparam("most"))
    .with_for_update(skip_locked=True)
)
_KEY = tuple_(TABLE.c.owner_id, TABLE.c.digest)
THIS = _KEY == tuple_(bindparam("of_owner"), bindparam("of_digest"))
_FORGET = delete(TABLE).where(THIS)
FORGET_FREE = delete(TABLE).where(  # unless another process has it: two that wait for each other's rows would
    _KEY.in_(select(TABLE.c.owner_id, TABLE.c.digest).where(THIS).with_for_update(skip_locked=True))
)


def rows_of(
    owner_id: str, readings: Iterable[SourceReading], policy: Policy, at: datetime
) -> list[dict[str, Any]]:
    """What `write` is to write of a decision made on these readings; nothing where the policy has nothing kept."""
    if policy.source_texts.days == 0:
        return []
    until = at + timedelta(days=policy.source_texts.days)
    return [
        {
            "owner_id": owner_id,
            "digest": packed.digest,
            "body": packed.body,
            "kept_until": until + _RENEWED,
            "renewed_from": until,
        }
        for reading in readings
        if isinstance(reading, Found)
        for packed in reading.packed
    ]


def write(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    """Keeps texts, and those that are kept already for longer. The caller holds the owners' locks."""
    once = {(row["owner_id"], row["digest"]): row for row in rows}
    if once:
        connection.execute(_KEEP, list(once.values()))


def load(connection: Connection, owner_id: str, digests: Collection[str]) -> dict[str, str]:
    """Those of these texts that are kept, by digest. One that is not what it was counts as not kept, and is a line in
    the log."""
    found: dict[str, str] = {}
    rows = connection.execute(_GET, {"of_owner": owner_id, "wanted": sorted(digests)}) if digests else ()
    for digest, body in rows:
        try:
            found[digest] = unpack(PackedText(digest=digest, body=body))
        except ValueError:
            log.exception("the source text %s of %a cannot be used", digest, owner_id)
    return found


def has_old(connection: Connection, now: datetime) -> bool:
    """Whether `forget_old` has something to do."""
    return connection.execute(_ANY_OLD, {"now": now}).first() is not None


def forget_old(connection: Connection, now: datetime, limit: int) -> int:
    """Deletes up to `limit` texts whose time is over, the oldest first; how many. Decisions stay as they are."""
    rows = connection.execute(_OLD, {"now": now, "most": limit}).all()
    if rows:
        connection.execute(_FORGET, [{"of_owner": row.owner_id, "of_digest": row.digest} for row in rows])
    return len(rows)
