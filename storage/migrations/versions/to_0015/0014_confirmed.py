"""When a memory was last confirmed, and what its owner confirmed it in spite of.

Revision: 0014
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds two columns; a memory from before was confirmed when it was stored."""
    op.add_column("memory", sa.Column("confirmed_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("memory", sa.Column("confirmed_despite", sa.Text(), nullable=True))


def downgrade() -> None:
    """Drops them."""
    op.drop_column("memory", "confirmed_despite")
    op.drop_column("memory", "confirmed_at")
