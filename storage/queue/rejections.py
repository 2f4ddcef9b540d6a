"""What owners rejected lately: a claim in the same words is shown with that rejection. It decides nothing."""

from __future__ import annotations

import json
from collections.abc import Collection
from datetime import datetime, timedelta

from sqlalchemy import Connection

from vouchgate.ingest.claims.decision import RejectedBefore
from vouchgate.ingest.claims.waiting import PendingMemory, ReviewStatus
from vouchgate.storage.sql import fetch, time_of

Name = tuple[str, str]  # an owner, and the digest of a claim (`ingest.scoring.priority.words_digest`)

# The status in words: only so does either database see that the index `pending_rejected` fits. CROSS JOIN makes
# SQLite start with what is asked for.
_STATEMENT = {
    "sqlite": """
        SELECT p.owner_id, p.words_digest, p.id, p.note, p.decided_at FROM json_each(?1) AS w
        CROSS JOIN pending AS p ON p.owner_id = w.value->>0 AND p.words_digest = w.value->>1
        WHERE p.status = 'rejected'""",
    "postgresql": """
        SELECT p.owner_id, p.words_digest, p.id, p.note, p.decided_at
        FROM unnest(%(owners)s::text[], %(digests)s::text[]) AS w (owner_id, digest)
        JOIN pending AS p ON p.owner_id = w.owner_id AND p.words_digest = w.digest
        WHERE p.status = 'rejected'""",
}


def latest(connection: Connection, wanted: Collection[Name]) -> dict[Name, RejectedBefore]:
    """The last rejection of each claim that its owner rejected, however long ago; one statement for all."""
    if not wanted:
        return {}
    asked = sorted(wanted)
    dialect = connection.dialect.name
    if dialect == "sqlite":
        rows = fetch(connection, _STATEMENT[dialect], (json.dumps(asked),))
    else:
        owners, digests = (list(column) for column in zip(*asked, strict=True))
        rows = fetch(connection, _STATEMENT[dialect], {"owners": owners, "digests": digests})
    found: dict[Name, RejectedBefore] = {}
    for owner_id, digest, item_id, note, decided_at in rows:
        one = RejectedBefore(queue_id=item_id, reason=note or "", rejected_at=time_of(decided_at))
        known = found.get((owner_id, digest))
        if known is None or known.rejected_at < one.rejected_at:
            found[owner_id, digest] = one
    return found


def lately(found: RejectedBefore | None, at: datetime, days: int) -> RejectedBefore | None:
    """A rejection that fell less than so many days before `at`; no other."""
    return found if found is not None and found.rejected_at > at - timedelta(days=days) else None


def rejection_of(item: PendingMemory) -> RejectedBefore | None:
    """The rejection that ended an item's wait; None for one that was not rejected, or waits again."""
    if item.status is not ReviewStatus.REJECTED or item.decided_at is None:
        return None
    return RejectedBefore(queue_id=item.id, reason=item.note or "", rejected_at=item.decided_at)
