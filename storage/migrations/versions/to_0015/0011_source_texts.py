"""The whole texts of sources, kept beside the decisions that rest on them.

Revision: 0011
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds one table, for decisions from now on."""
    op.create_table(
        "source_text",
        sa.Column("owner_id", sa.String(), primary_key=True),
        sa.Column("digest", sa.String(), primary_key=True),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("kept_until", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_index("source_text_due", "source_text", ["kept_until"])


def downgrade() -> None:
    """Drops it, and the texts."""
    op.drop_table("source_text")
