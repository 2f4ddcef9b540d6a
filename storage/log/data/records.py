"""Records, whose words go when their time is over or they are erased; what is left is what the log says."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import select

from vouchgate.ingest.claims.log import Action
from vouchgate.storage.claims.records import TABLE, committed, holds
from vouchgate.storage.log.data.differences import Kind, Look


def records(look: Look) -> None:
    """Every record is as it was put down, or has gone for a reason."""
    wanted, now = select(TABLE).where(TABLE.c.owner_id == look.owner_id), datetime.now(UTC)
    for key, rows, entries in look.side_by_side(wanted, TABLE.c.id, (Action.RECORD_KEPT,)):
        made = entries[0] if entries else None
        if not rows or made is None:
            look.note(Kind.EXTRA if rows else Kind.MISSING, TABLE.name, key, entry=made)
            continue
        row = rows[0]
        look.compare(TABLE.name, key, row, {"created_at": made.at, "submitted_by": made.actor}, made)
        if key in look.erased:
            look.uncovered["the kind, times and digest of a record that was erased"] += 1
        elif not made.commits_to(**committed(row._mapping)):
            look.note(Kind.ALTERED, TABLE.name, key, "kind, said_at, kept_until or digest", made)
        elif row.salt is None:
            if row.kept_until > now or row.text:
                why = "its words are gone before their time, and nobody erased it"
                look.note(Kind.ALTERED, TABLE.name, key, "text", made, why=why)
        elif not holds(row):
            look.note(Kind.ALTERED, TABLE.name, key, "who, conversation, text or masked", made)
