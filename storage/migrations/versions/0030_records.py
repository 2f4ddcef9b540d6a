"""What users said and tools returned.

Revision: 0030
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the table, which is empty."""
    op.create_table(
        "record",
        sa.Column("owner_id", sa.String(), primary_key=True),
        sa.Column("id", sa.String(), primary_key=True),
        sa.Column("kind", sa.String(), nullable=False),
        *(
            sa.Column(name, sa.DateTime(timezone=True), nullable=False)
            for name in ("said_at", "created_at", "kept_until")
        ),
        sa.Column("submitted_by", sa.String(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("salt", sa.LargeBinary(), nullable=True),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("conversation", sa.Text(), nullable=True),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("masked", sa.Boolean(), nullable=False),
        sa.Column("idempotency_key", sa.String(), nullable=True),
    )
    op.create_index("record_by_id", "record", ["id"])
    _partial("record_kept", ["owner_id"], "salt IS NOT NULL")
    _partial("record_due", ["kept_until"], "salt IS NOT NULL")
    _partial("record_by_key", ["owner_id", "submitted_by", "idempotency_key"], "idempotency_key IS NOT NULL")


def downgrade() -> None:
    """Takes it away, with what is in it."""
    op.drop_table("record")


def _partial(name: str, columns: list[str], condition: str) -> None:
    where = sa.text(condition)
    op.create_index(name, "record", columns, sqlite_where=where, postgresql_where=where)
