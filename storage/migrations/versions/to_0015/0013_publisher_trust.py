"""What owners say of publishers.

Revision: 0013
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds one table, which is empty: nobody has said anything yet."""
    op.create_table(
        "publisher_trust",
        sa.Column("owner_id", sa.String(), primary_key=True),
        sa.Column("publisher", sa.String(), primary_key=True),
        sa.Column("trust", sa.String(), nullable=False),
        sa.Column("until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("decided_by", sa.String(), nullable=False),
    )


def downgrade() -> None:
    """Drops it. Decisions keep in their evidence what they rested on."""
    op.drop_table("publisher_trust")
