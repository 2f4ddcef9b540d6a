"""Webhooks that are told of chosen events: those of table `sink`, which got every memory, become some of them.

Revision: 0007
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

MEMORIES = "memory.stored memory.removed"


def upgrade() -> None:
    """Adds a column, and moves what is in one table into another."""
    op.add_column(
        "webhook", sa.Column("events", sa.String(), nullable=False, server_default="review.waiting")
    )
    op.execute(
        "INSERT INTO webhook (owner_id, id, url, secret, created_at, told_seq, due_at, attempts, events) "  # noqa: S608
        f"SELECT owner_id, id, url, secret, created_at, 0, created_at, 0, '{MEMORIES}' FROM sink"
    )
    op.drop_table("sink")


def downgrade() -> None:
    """Moves them back. One that is told of what waits as well is no more."""
    op.create_table(
        "sink",
        sa.Column("owner_id", sa.String(), primary_key=True),
        sa.Column("id", sa.String(), primary_key=True),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("secret", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
    )
    columns = "owner_id, id, url, secret, created_at"
    op.execute(
        f"INSERT INTO sink ({columns}) SELECT {columns} FROM webhook WHERE events LIKE '%memory.%'"  # noqa: S608
    )
    op.execute("DELETE FROM webhook WHERE events LIKE '%memory.%'")
    op.drop_column("webhook", "events")
