"""What was erased, when and on which legal basis.

Revision: 0028
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Makes the table."""
    op.create_table(
        "erased",
        sa.Column("owner_id", sa.String(), primary_key=True),
        sa.Column("item_id", sa.String(), primary_key=True),
        sa.Column("erasure_id", sa.String(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("by", sa.String(), nullable=False),
        sa.Column("basis", sa.Text(), nullable=False),
    )
    op.create_index("erased_by_id", "erased", ["item_id"])
    op.create_index("erased_together", "erased", ["owner_id", "erasure_id"])


def downgrade() -> None:
    """Drops it."""
    op.drop_table("erased")
