"""The tables of the tree over all entries of the log; see `storage.log.tree`. Nothing that a claim waits for writes
them."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, Index, LargeBinary, SmallInteger, Text
from sqlmodel import Field

from vouchgate.storage.columns import UtcTime, partial_index
from vouchgate.storage.tables.row import Row


class TreeRow(Row, table=True):
    """A single row (id 1): how many leaves there are, and whose turn it is to add some."""

    __tablename__ = "tree"
    id: int = Field(primary_key=True)
    size: int = Field(default=0, sa_type=BigInteger)
    due_at: datetime = Field(sa_type=UtcTime)  # of the next batch; while it is leased, when the lease ends
    lease: str | None = None
    # when the newest checkpoint is shown to witnesses; while that is under way, when it may be tried again
    witnesses_due_at: datetime = Field(
        sa_type=UtcTime, sa_column_kwargs={"server_default": "2026-01-01 00:00:00"}
    )


class LeafRow(Row, table=True):
    """An entry of the log as it is in the tree, word for word: it stays when what it is about is erased."""

    __tablename__ = "log_leaf"
    __table_args__ = (
        Index("log_leaf_in_order", "number", unique=True),
        partial_index("log_leaf_by_decision", "decision_id", where="decision_id IS NOT NULL"),
    )
    owner_id: str = Field(primary_key=True)
    seq: int = Field(primary_key=True, sa_type=BigInteger)
    number: int = Field(sa_type=BigInteger)  # in the tree, from 0
    decision_id: str | None = None  # what it is about, if that is a decision
    data: str = Field(sa_type=Text)  # canonical JSON


class TileRow(Row, table=True):
    """A tile of hashes (tlog-tiles), as long as it has got; what was there once never changes."""

    __tablename__ = "log_tile"
    level: int = Field(primary_key=True, sa_type=SmallInteger)
    number: int = Field(primary_key=True, sa_type=BigInteger)
    hashes: bytes = Field(sa_type=LargeBinary)


class CheckpointRow(Row, table=True):
    """A head of the tree that the log signed. Receipts rest on published ones alone."""

    __tablename__ = "log_checkpoint"
    size: int = Field(primary_key=True, sa_type=BigInteger)
    note: str = Field(sa_type=Text)  # the signed note, and what witnesses add to it
    signed_at: datetime = Field(sa_type=UtcTime)
    published_at: datetime | None = Field(default=None, sa_type=UtcTime)


class LogKeyRow(Row, table=True):
    """The public half of a key that signs or signed the log."""

    __tablename__ = "log_key"
    id: str = Field(primary_key=True)  # 8 hex digits
    verifier: str = Field(sa_type=Text)  # name+id+base64
    added_at: datetime = Field(sa_type=UtcTime)
    retired_at: datetime | None = Field(default=None, sa_type=UtcTime)
