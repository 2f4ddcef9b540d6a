"""What is read outside the repositories: kept readings, what is to be read again, and what is stale.

Revision: 0002
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Adds two columns to memories with an index on what is stale, and three tables."""
    op.add_column("memory", sa.Column("stale_since", TIME, nullable=True))
    op.add_column("memory", sa.Column("stale_reason", sa.Text(), nullable=True))
    is_stale = sa.text("stale_since IS NOT NULL")
    op.create_index(
        "memory_stale", "memory", ["owner_id", "id"], sqlite_where=is_stale, postgresql_where=is_stale
    )
    op.create_table(
        "source",
        sa.Column("key", sa.String(), primary_key=True),
        sa.Column("reading", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("checked_at", TIME, nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
    )
    op.create_index("source_due", "source", ["expires_at"])
    op.create_table(
        "recheck",
        sa.Column("owner_id", sa.String(), primary_key=True),
        sa.Column("item_id", sa.String(), primary_key=True),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("due_at", TIME, nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("lease", sa.String(), nullable=True),
        sa.Column("readings", sa.Text(), nullable=True),
    )
    op.create_index("recheck_due", "recheck", ["kind", "due_at"])
    op.create_table(
        "judge_day",
        sa.Column("day", sa.String(), primary_key=True),
        sa.Column("asked", sa.Integer(), nullable=False),
    )


def downgrade() -> None:
    """Drops what `upgrade` added, and what it holds."""
    for name in ("judge_day", "recheck", "source"):
        op.drop_table(name)
    op.drop_index("memory_stale", "memory")
    op.drop_column("memory", "stale_reason")
    op.drop_column("memory", "stale_since")
