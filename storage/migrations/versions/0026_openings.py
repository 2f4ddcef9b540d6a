"""When people first had waiting claims before them; rulings are found by their time.

Revision: 0026
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None

_RULED = (
    "action IN ('review.approved', 'review.rejected', 'review.let_go', 'review.voted', 'review.objected')"
)


def upgrade() -> None:
    """Adds the table, which is empty, and an index of the entries that are rulings."""
    op.create_table(
        "opening",
        sa.Column("owner_id", sa.String(), primary_key=True),
        sa.Column("item_id", sa.String(), primary_key=True),
        sa.Column("viewer", sa.String(), primary_key=True),
        sa.Column("opened_at", sa.DateTime(timezone=True), nullable=False),
        sqlite_with_rowid=False,
    )
    where = sa.text(_RULED)
    op.create_index(
        "log_entry_rulings", "log_entry", ["owner_id", "at"], sqlite_where=where, postgresql_where=where
    )


def downgrade() -> None:
    """Drops them."""
    op.drop_index("log_entry_rulings", "log_entry")
    op.drop_table("opening")
