"""Audits of memories that owners clear.

Revision: 0031
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from vouchgate.storage.columns import UtcTime

revision = "0031"
down_revision = "0029"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Makes the two tables."""
    _table(
        "memory_audit",
        "owner_id id",
        "name token_id",
        total=sa.Integer,
        created_at=UtcTime,
        kept_until=UtcTime,
    )
    kinds = {
        "position": sa.BigInteger,
        "reason": sa.Text,
        "text": sa.Text,
        "claim": sa.JSON,
        "act": sa.BigInteger,
    }
    _table("audited_row", "owner_id audit_id position", "name label state other acted_by", **kinds)
    op.create_index("memory_audit_old", "memory_audit", ["kept_until"])
    for by in ("name", "state position", "label state position", "act state acted_by"):
        columns = ["owner_id", "audit_id", *by.split()]
        op.create_index(f"audited_row_by_{by.split()[0]}", "audited_row", columns)


def downgrade() -> None:
    """Takes them away."""
    op.drop_table("audited_row")
    op.drop_table("memory_audit")


def _table(name: str, keys: str, texts: str, **kinds: Any) -> None:
    empty = ("other", "act", "acted_by")
    every = {**dict.fromkeys([*keys.split(), *texts.split()], sa.String), **kinds}
    columns = [sa.Column(each, kind(), nullable=each in empty) for each, kind in every.items()]
    op.create_table(name, *columns, sa.PrimaryKeyConstraint(*keys.split()))
