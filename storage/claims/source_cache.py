"""What was read of cited things outside the repositories, kept so that the next claim that cites them need not
ask again. It belongs to no owner: a page says the same to everybody.

Only what was found out is kept: that a thing is there, or that it is not. A claim that is answered from here is
judged on the same text as the one for which it was read.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Annotated

from pydantic import Field, TypeAdapter
from sqlalchemy import Connection, Table, bindparam, delete, select, text

from vouchgate.ingest.claims.bounds import TEXT_CHARACTERS
from vouchgate.ingest.claims.source import Found, Missing
from vouchgate.storage.claims.memories import storable
from vouchgate.storage.columns import UtcTime
from vouchgate.storage.sql import among
from vouchgate.storage.tables.claims import SourceRow

log = logging.getLogger(__name__)

MOST_KEPT = 5_000  # readings; with their texts a gigabyte at the very most, whatever agents cite

TABLE: Table = SourceRow.metadata.tables["source"]
_READING: TypeAdapter[Found | Missing] = TypeAdapter(Annotated[Found | Missing, Field(discriminator="kind")])

# What was read later than so long from now has the time of a clock that was ahead, and would be good until then.
_AHEAD = timedelta(minutes=5)
_GET = select(TABLE.c.reading, TABLE.c.text).where(
    TABLE.c.key == bindparam("wanted"),
    TABLE.c.expires_at > bindparam("now"),
    TABLE.c.checked_at <= bindparam("latest"),
)
# Of two readings the later one stays, whichever is written last.
_KEEP = text(
    "INSERT INTO source (key, reading, text, checked_at, expires_at) "
    "VALUES (:key, :reading, :text, :checked_at, :expires_at) "
    "ON CONFLICT (key) DO UPDATE SET reading = excluded.reading, text = excluded.text, "
    "checked_at = excluded.checked_at, expires_at = excluded.expires_at "
    "WHERE source.checked_at <= excluded.checked_at OR source.checked_at > :latest"
).bindparams(
    bindparam("checked_at", type_=UtcTime),
    bindparam("expires_at", type_=UtcTime),
    bindparam("latest", type_=UtcTime),
)
# Those that another process is forgetting or renewing are left to it: two that wait for each other's rows would
# never get them.
_OLD = (
    select(TABLE.c.key)
    .where(TABLE.c.expires_at <= bindparam("now"))
    .order_by(TABLE.c.expires_at)
    .limit(bindparam("most"))
    .with_for_update(skip_locked=True)
)
_OVER = select(TABLE.c.expires_at).order_by(TABLE.c.expires_at.desc()).offset(bindparam("kept")).limit(1)
_ANY_OLD = select(TABLE.c.key).where(TABLE.c.expires_at <= bindparam("now")).limit(1)
_FORGET = delete(TABLE).where(among(TABLE.c.key, "keys"))


def get(connection: Connection, key: str, now: datetime) -> Found | Missing | None:
    """What was read of the thing with this citation key, if that is still good at `now`.

    Its `citation` is that of the claim it was read for: whoever asks puts the own one in its place. A row that
    cannot be understood is as none, and a line in the log.
    """
    asked = {"wanted": _digest(key), "now": now, "latest": now + _AHEAD}
    row = connection.execute(_GET, asked).one_or_none()
    if row is None:
        return None
    try:
        reading = _READING.validate_json(row.reading)
    except ValueError:
        log.exception("what was kept of %a cannot be understood; it is read again", key)
        return None
    if reading.citation.key != key:
        log.error("what was kept of %a is about %a; it is read again", key, reading.citation.key)
        return None
    return reading.model_copy(update={"text": row.text}) if isinstance(reading, Found) else reading


def keeping(
    key: str, reading: Found | Missing, *, checked_at: datetime, expires_at: datetime
) -> Callable[[Connection], bool]:
    """The work of one write transaction: keeps a reading in place of any older one. It gives False when a
    database cannot hold this text; then nothing is kept, and the next claim reads it again.

    What was made of the text for one claim (passages, a judgement) is not kept with it.
    """
    found = reading.text[:TEXT_CHARACTERS] if isinstance(reading, Found) else ""
    row = {
        "key": _digest(key),
        "reading": _plain(reading),
        "text": found,
        "checked_at": checked_at,
        "expires_at": expires_at,
        "latest": checked_at + _AHEAD,
    }

    def work(connection: Connection) -> bool:
        if row["reading"] is None or not storable(found):
            log.warning("what was read of %a cannot be kept: it has characters that no database holds", key)
            return False
        connection.execute(_KEEP, row)
        return True

    return work


def has_old(connection: Connection, now: datetime, kept: int = MOST_KEPT) -> bool:
    """Whether `forget_old` has something to do."""
    return connection.execute(_ANY_OLD, {"now": _until(connection, now, kept)}).first() is not None


def forget_old(connection: Connection, now: datetime, limit: int, kept: int = MOST_KEPT) -> int:
    """Deletes up to `limit` readings that are not good any more, and of the others those over `kept`, the oldest
    first; how many. Nothing rests on them: what a decision was based on is in its evidence."""
    keys = list(connection.scalars(_OLD, {"now": _until(connection, now, kept), "most": limit}))
    if keys:
        connection.execute(_FORGET, {"keys": keys})
    return len(keys)


def _until(connection: Connection, now: datetime, kept: int) -> datetime:
    """Readings that are good until then, or not as long, are to be forgotten."""
    over = connection.scalar(_OVER, {"kept": kept})
    return now if over is None else max(now, over)


def _digest(key: str) -> str:
    """Citation keys may be of any length and hold anything; this is what they are kept under."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def _plain(reading: Found | Missing) -> str | None:
    """The reading as JSON, without its text and what belongs to one claim; None when it cannot be written."""
    own: dict[str, object] = {"took_ms": None}
    if isinstance(reading, Found):
        own |= {"excerpt": "", "judgement": None}
    try:
        return reading.model_copy(update=own).model_dump_json()
    except ValueError:  # a lone surrogate
        return None
