"""What the indexes hold: active memories that somebody vouches for, and items that wait. An item that asks for a
removal is in none: it says nothing that another claim could repeat."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Table, and_

from vouchgate.ingest.claims.decision import Label
from vouchgate.ingest.claims.likeness import ItemKind
from vouchgate.ingest.claims.memory import MemoryStatus
from vouchgate.ingest.claims.waiting import ReviewStatus
from vouchgate.storage.tables.claims import MemoryRow, PendingRow

MEMORY: Table = MemoryRow.metadata.tables["memory"]
PENDING: Table = PendingRow.metadata.tables["pending"]

IN_FORCE: dict[ItemKind, tuple[Table, ColumnElement[bool]]] = {
    ItemKind.MEMORY: (
        MEMORY,
        and_(MEMORY.c.status == MemoryStatus.ACTIVE.value, MEMORY.c.label != Label.UNVOUCHED.value),
    ),
    ItemKind.PENDING: (
        PENDING,
        and_(PENDING.c.status == ReviewStatus.PENDING.value, PENDING.c.removal_of.is_(None)),
    ),
}
