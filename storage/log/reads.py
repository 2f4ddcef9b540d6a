"""What auditors read, in the log like everything else."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import quote

from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.people import Principal, Role
from vouchgate.storage.identity.tokens import SERVICE_OWNER
from vouchgate.storage.log import chain as log
from vouchgate.storage.store import Store

_MOST = 300  # characters of an address


def note_read(store: Store, principal: Principal, path: str, *, now: datetime) -> None:
    """Writes down what an auditor asks for, before it is answered; of anybody else nothing. What was searched for is
    not kept: it may be the words of somebody's memory. Raises StorageError: what cannot be written down is not read."""
    if principal.role is not Role.AUDITOR:
        return
    shown = quote(path)[:_MOST]
    about = log.document_of({"read": shown})
    store.writer.run(
        [SERVICE_OWNER],
        lambda c: log.append(c, SERVICE_OWNER, Action.AUDIT_READ, shown, about, by=principal.id, now=now),
    ).result()
