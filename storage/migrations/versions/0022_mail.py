"""Digests by mail.

Revision: 0022
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the table, which is empty."""
    time = sa.DateTime(timezone=True)
    op.create_table(
        "mail",
        sa.Column("id", sa.String(), primary_key=True),
        sa.Column("address", sa.String(), nullable=False),
        sa.Column("person_id", sa.String(), nullable=True),
        sa.Column("owners", sa.JSON(), nullable=False),
        sa.Column("schedule", sa.JSON(), nullable=False),
        sa.Column("created_at", time, nullable=False),
        sa.Column("told_at", time, nullable=False),
        sa.Column("sent_at", time, nullable=True),
        sa.Column("due_at", time, nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("lease", sa.String(), nullable=True),
        sa.Column("failing_since", time, nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
    )
    op.create_index("mail_due", "mail", ["due_at"])


def downgrade() -> None:
    """Drops it."""
    op.drop_table("mail")
