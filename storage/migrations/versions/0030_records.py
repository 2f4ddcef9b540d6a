"""What users said and tools returned.

Revision: 0030
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None

_TYPES: dict[Any, tuple[str, ...]] = {
    sa.String(): ("kind", "submitted_by", "digest"),
    sa.DateTime(timezone=True): ("said_at", "created_at", "kept_until"),
    sa.Text(): ("who", "text"),
    sa.Boolean(): ("masked",),
}
_INDEXES = (
    ("record_kept", ["owner_id"], "salt IS NOT NULL"),
    ("record_due", ["kept_until"], "salt IS NOT NULL"),
    ("record_by_key", ["owner_id", "submitted_by", "idempotency_key"], "idempotency_key IS NOT NULL"),
)


def upgrade() -> None:
    """Adds the table, which is empty."""
    op.create_table(
        "record",
        sa.Column("owner_id", sa.String(), primary_key=True),
        sa.Column("id", sa.String(), primary_key=True),
        *(sa.Column(name, each, nullable=False) for each, names in _TYPES.items() for name in names),
        sa.Column("salt", sa.LargeBinary(), nullable=True),
        sa.Column("conversation", sa.Text(), nullable=True),
        sa.Column("idempotency_key", sa.String(), nullable=True),
    )
    for name, columns, condition in _INDEXES:
        where = sa.text(condition)
        op.create_index(name, "record", columns, sqlite_where=where, postgresql_where=where)


def downgrade() -> None:
    """Takes it away, with what is in it."""
    op.drop_table("record")
