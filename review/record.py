"""What acts of reviewers, and of the service on what waits, leave in the owner's log."""

from __future__ import annotations

import hashlib
from datetime import datetime

from sqlalchemy import Connection

from vouchgate.ingest.claims.types import Action
from vouchgate.ingest.policy import canonical_json
from vouchgate.storage.log import chain as log


def entry(
    connection: Connection,
    owner_id: str,
    action: Action,
    subject_id: str,
    content_digest: str,
    *,
    by: str,
    now: datetime,
) -> None:
    """Adds an entry to the owner's chain. The caller holds the owner's lock."""
    log.append(
        connection,
        owner_id,
        at=now,
        actor=by,
        action=action,
        subject_id=subject_id,
        content_digest=content_digest,
    )


def digest(**about: str | None) -> str:
    """sha256 hex over the canonical JSON of what a log entry is about."""
    return hashlib.sha256(canonical_json(about).encode()).hexdigest()
