"""When a memory's label or confidence was lowered, and why.

Revision: 0012
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds two columns to memories, with an index on those that were lowered."""
    op.add_column("memory", sa.Column("lowered_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("memory", sa.Column("lowered_reason", sa.Text(), nullable=True))
    lowered = sa.text("lowered_at IS NOT NULL")
    op.create_index(
        "memory_lowered", "memory", ["owner_id", "id"], sqlite_where=lowered, postgresql_where=lowered
    )


def downgrade() -> None:
    """Drops them. Labels that were lowered stay so."""
    op.drop_index("memory_lowered", "memory")
    op.drop_column("memory", "lowered_reason")
    op.drop_column("memory", "lowered_at")
