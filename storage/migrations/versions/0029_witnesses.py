"""Whose turn it is to show the log to witnesses.

Revision: 0029
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds when that is due, which is at once."""
    due = sa.Column(
        "witnesses_due_at", sa.DateTime(timezone=True), nullable=False, server_default="2026-01-01 00:00:00"
    )
    op.add_column("tree", due)


def downgrade() -> None:
    """Drops it."""
    op.drop_column("tree", "witnesses_due_at")
