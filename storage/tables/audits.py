"""The tables of audits of memories that were handed over to be cleared; see `storage.queue.audits`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, Index, Text
from sqlmodel import Field

from vouchgate.storage.columns import UtcTime
from vouchgate.storage.tables.row import Row


class MemoryAuditRow(Row, table=True):
    """An audit of a memory."""

    __tablename__ = "memory_audit"
    __table_args__ = (Index("memory_audit_old", "kept_until"),)
    owner_id: str = Field(primary_key=True)
    id: str = Field(primary_key=True)  # aud_…, from the digest of its rows
    name: str  # of the file
    total: int  # rows that it is to have
    token_id: str  # the principal as which its rows go to the gate
    created_at: datetime = Field(sa_type=UtcTime)
    kept_until: datetime = Field(sa_type=UtcTime)


class AuditedRow(Row, table=True):
    """A row of the memory, what the audit said of it, and what became of it."""

    __tablename__ = "audited_row"
    __table_args__ = (
        Index("audited_row_by_name", "owner_id", "audit_id", "name"),
        Index("audited_row_by_state", "owner_id", "audit_id", "state", "position"),
        Index("audited_row_by_label", "owner_id", "audit_id", "label", "state", "position"),
        Index("audited_row_by_act", "owner_id", "audit_id", "act", "state", "acted_by"),
    )
    owner_id: str = Field(primary_key=True)
    audit_id: str = Field(primary_key=True)
    position: int = Field(primary_key=True, sa_type=BigInteger)  # 1, 2, … in the order of the memory
    name: str  # where it stands there: a number, or file and line
    label: str
    reason: str = Field(sa_type=Text)
    other: str | None = None  # the name of the row that it is about, too
    text: str = Field(sa_type=Text)
    claim: dict[str, Any] = Field(sa_type=JSON)  # what the claim has beside its text
    state: str = "open"  # storage.queue.audits.RowState
    act: int | None = Field(
        default=None, sa_type=BigInteger
    )  # microseconds since 1970, when it was put there
    acted_by: str | None = None
