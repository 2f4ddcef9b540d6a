"""When people first had waiting claims before them; what was put in force when; what was erased.

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
    """Adds the tables, which are empty (what was in force before is known as far as the other tables tell), and indexes
    of the entries that are rulings and of the memories that nobody vouches for."""
    op.create_table(
        "opening",
        sa.Column("owner_id", sa.String(), primary_key=True),
        sa.Column("item_id", sa.String(), primary_key=True),
        sa.Column("viewer", sa.String(), primary_key=True),
        sa.Column("opened_at", sa.DateTime(timezone=True), nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "switch",
        sa.Column("owner_id", sa.String(), primary_key=True),
        sa.Column("seq", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("by", sa.String(), nullable=False),
    )
    op.create_index("switch_by_kind", "switch", ["kind", "owner_id", "subject", "seq"])
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
    _index("log_entry_rulings", "log_entry", ["owner_id", "at"], _RULED)
    _index("memory_unvouched", "memory", ["owner_id", "id"], "label = 'UNVOUCHED'")


def _index(name: str, table: str, columns: list[str], where: str) -> None:
    op.create_index(name, table, columns, sqlite_where=sa.text(where), postgresql_where=sa.text(where))


def downgrade() -> None:
    """Drops them, and with them every mode and stop."""
    op.drop_index("memory_unvouched", "memory")
    op.drop_index("log_entry_rulings", "log_entry")
    for table in ("erased", "switch", "opening"):
        op.drop_table(table)
