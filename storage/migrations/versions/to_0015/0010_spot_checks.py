"""The list of spot checks: memories that were drawn for their owners to judge.

Revision: 0010
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds one table, for what is stored from now on."""
    op.create_table(
        "spot_check",
        sa.Column("owner_id", sa.String(), primary_key=True),
        sa.Column("memory_id", sa.String(), primary_key=True),
        sa.Column("rule", sa.SmallInteger(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("verdict", sa.String()),
        sa.Column("decided_at", sa.DateTime(timezone=True)),
        sa.Column("decided_by", sa.String()),
    )
    nobody_said = sa.text("verdict IS NULL")
    op.create_index(
        "spot_check_open",
        "spot_check",
        ["owner_id", "memory_id"],
        sqlite_where=nobody_said,
        postgresql_where=nobody_said,
    )
    op.create_index("spot_check_by_rule", "spot_check", ["rule", "verdict"])


def downgrade() -> None:
    """Drops it, and what owners said."""
    op.drop_table("spot_check")
