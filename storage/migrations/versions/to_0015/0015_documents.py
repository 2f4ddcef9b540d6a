"""Documents that are to be checked, and reports of them.

Revision: 0015
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds one table, which is empty."""
    op.create_table(
        "document",
        sa.Column("owner_id", sa.String(), primary_key=True),
        sa.Column("id", sa.String(), primary_key=True),
        sa.Column("submitted_by", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("sent", sa.Text(), nullable=False),
        sa.Column("sent_digest", sa.String(), nullable=False),
        sa.Column("idempotency_key", sa.String(), nullable=True),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("lease", sa.String(), nullable=True),
        sa.Column("done_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("kept_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("report", sa.Text(), nullable=True),
        sa.Column("html", sa.Text(), nullable=True),
        sa.Column("sarif", sa.Text(), nullable=True),
    )
    op.create_index("document_by_id", "document", ["id"])
    waiting, old = sa.text("state = 'waiting'"), sa.text("kept_until IS NOT NULL")
    op.create_index("document_due", "document", ["due_at"], sqlite_where=waiting, postgresql_where=waiting)
    op.create_index("document_old", "document", ["kept_until"], sqlite_where=old, postgresql_where=old)


def downgrade() -> None:
    """Drops it, with what waits in it."""
    op.drop_table("document")
