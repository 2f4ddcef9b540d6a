"""What the doors for agents need: deliveries to stores behind the gate, removals that wait, and echoes.

Revision: 0004
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Adds one column and three tables."""
    op.add_column("pending", sa.Column("removal_of", sa.Text(), nullable=True))
    removals = sa.text("status = 'pending' AND removal_of IS NOT NULL")
    op.create_index(
        "pending_removals",
        "pending",
        ["owner_id", "removal_of"],
        sqlite_where=removals,
        postgresql_where=removals,
    )
    op.create_table(
        "sink",
        sa.Column("owner_id", sa.String(), primary_key=True),
        sa.Column("id", sa.String(), primary_key=True),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("secret", sa.String(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
    )
    _deliveries()
    op.create_table(
        "echo",
        sa.Column("owner_id", sa.String(), primary_key=True),
        sa.Column("key", sa.String(), primary_key=True),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("first_at", TIME, nullable=False),
        sa.Column("last_at", TIME, nullable=False),
        sa.Column("first_by", sa.String(), nullable=False),
        sa.Column("agents", sa.JSON(), nullable=False),
        sa.Column("sources", sa.JSON(), nullable=False),
        sqlite_with_rowid=False,
    )


def _deliveries() -> None:
    op.create_table(
        "delivery",
        sa.Column("owner_id", sa.String(), primary_key=True),
        sa.Column("seq", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("sink", sa.String(), nullable=False),
        sa.Column("place", sa.Text(), nullable=False),
        sa.Column("op", sa.String(), nullable=False),
        sa.Column("memory_id", sa.String(), nullable=True),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("due_at", TIME, nullable=False),
        sa.Column("lease", sa.String(), nullable=True),
        sa.Column("delivered_at", TIME, nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
    )
    op.create_index("delivery_by_id", "delivery", ["id"], unique=True)
    op.create_index("delivery_by_place", "delivery", ["owner_id", "sink", "place", "seq"])
    op.create_index("delivery_by_memory", "delivery", ["owner_id", "memory_id"])
    waiting = sa.text("state = 'waiting'")
    op.create_index(
        "delivery_waiting",
        "delivery",
        ["owner_id", "sink", "seq"],
        sqlite_where=waiting,
        postgresql_where=waiting,
    )
    op.create_index("delivery_due", "delivery", ["state", "due_at"])


def downgrade() -> None:
    """Drops what `upgrade` added, and what it holds."""
    for table in ("echo", "delivery", "sink"):
        op.drop_table(table)
    op.drop_index("pending_removals", "pending")
    op.drop_column("pending", "removal_of")
