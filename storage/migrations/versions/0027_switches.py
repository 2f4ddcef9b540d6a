"""What was put in force when: policies, owner rules, words on publishers, modes and stops; and which memories nobody
vouches for.

Revision: 0027
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Makes the table. What was put in force before is known as far as the other tables tell."""
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
    where = sa.text("label = 'UNVOUCHED'")
    op.create_index(
        "memory_unvouched", "memory", ["owner_id", "id"], sqlite_where=where, postgresql_where=where
    )


def downgrade() -> None:
    """Drops it, and with it every mode and stop."""
    op.drop_index("memory_unvouched", "memory")
    op.drop_table("switch")
