"""What was put in force when: policies, files of owner rules, owners' words on publishers, modes and stops.

A row a change, beside the entry of the log that commits to it. Rows are never altered or deleted, so any time can be
asked for; what is in force is the last one of each subject.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Table, func, insert, select

from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.policy import canonical_json
from vouchgate.storage.log import chain
from vouchgate.storage.tables.claims import SwitchRow

TABLE: Table = SwitchRow.metadata.tables["switch"]
FORM = 2  # of the documents of entries that a row goes with; words on publishers had a first form, and no row


class Kind(StrEnum):
    """What is put in force."""

    POLICY = "policy"
    OWNER_RULES = "owner_rules"
    PUBLISHER = "publisher"
    MODE = "mode"
    STOP = "stop"


KIND_OF: Mapping[Action, Kind] = {
    Action.POLICY_IN_FORCE: Kind.POLICY,
    Action.OWNER_RULES_IN_FORCE: Kind.OWNER_RULES,
    Action.PUBLISHER_TRUSTED: Kind.PUBLISHER,
    Action.PUBLISHER_BANNED: Kind.PUBLISHER,
    Action.PUBLISHER_CLEARED: Kind.PUBLISHER,
    Action.MODE_SET: Kind.MODE,
    Action.STOPPED: Kind.STOP,
    Action.RESUMED: Kind.STOP,
}


class Switch(Frozen):
    """One change, as it was made."""

    owner_id: str  # empty: of the whole service
    seq: int
    at: datetime
    subject: str
    about: dict[str, Any]
    by: str


def put(
    connection: Connection,
    owner_id: str,
    action: Action,
    subject: str,
    about: Mapping[str, Any],
    *,
    by: str,
    now: datetime,
) -> Switch:
    """Logs a change and keeps it. The caller holds the lock of the owner whose chain it is."""
    entry = chain.append(
        connection, owner_id, action, subject, chain.document_of(about, form=FORM), by=by, now=now
    )
    row = {"owner_id": owner_id, "seq": entry.seq, "at": now.astimezone(UTC), "subject": subject, "by": by}
    document = canonical_json(about)
    connection.execute(insert(TABLE).values(**row, kind=KIND_OF[action].value, document=document))
    return Switch(**row, about=json.loads(document))


def in_force(
    connection: Connection, kind: Kind, *, at: datetime | None = None, owners: frozenset[str] | None = None
) -> list[Switch]:
    """The last change of each subject, at a time or now, by owner and subject; of these owners, or of all."""
    earlier = TABLE.alias("earlier")
    last = select(func.max(earlier.c.seq)).where(
        earlier.c.kind == TABLE.c.kind,
        earlier.c.owner_id == TABLE.c.owner_id,
        earlier.c.subject == TABLE.c.subject,
    )
    if at is not None:
        last = last.where(earlier.c.at <= at)
    wanted = select(TABLE).where(TABLE.c.kind == kind.value, TABLE.c.seq == last.scalar_subquery())
    if owners is not None:
        wanted = wanted.where(TABLE.c.owner_id.in_(owners))
    rows = connection.execute(wanted.order_by(TABLE.c.owner_id, TABLE.c.subject)).mappings()
    return [
        Switch(
            about=json.loads(row["document"]),
            **{name: row[name] for name in ("owner_id", "seq", "at", "subject", "by")},
        )
        for row in rows
    ]
