"""Rules that owners make of their rulings, and what each did.

Revision: 0020
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds two tables, which are empty, and to each owner how often their rules changed."""
    op.add_column("owner", sa.Column("rules", sa.Integer(), nullable=False, server_default="0"))
    op.create_table(
        "owner_rule",
        sa.Column("owner_id", sa.String(), primary_key=True),
        sa.Column("id", sa.String(), primary_key=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("verdict", sa.String(), nullable=False),
        sa.Column("terms", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("confirmed_by", sa.String(), nullable=False),
        sa.Column("item_id", sa.String(), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_by", sa.String(), nullable=True),
    )
    op.create_table(
        "owner_rule_act",
        sa.Column("owner_id", sa.String(), primary_key=True),
        sa.Column("rule_id", sa.String(), primary_key=True),
        sa.Column("decision_id", sa.String(), primary_key=True),
        sa.Column("memory_id", sa.String(), nullable=True),
        sa.Column("settled", sa.Boolean(), nullable=False),
    )


def downgrade() -> None:
    """Drops them. Decisions keep in their evidence which rule they rested on."""
    op.drop_table("owner_rule_act")
    op.drop_table("owner_rule")
    op.drop_column("owner", "rules")
