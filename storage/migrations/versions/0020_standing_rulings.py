"""Standing rulings of owners, what each did, and whose claims spot checks are of.

Revision: 0020
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


_DRAWN_OF = ("agent", "kind", "publisher")


def upgrade() -> None:
    """Adds two tables, which are empty, to each owner how often what they say changed, and to spot checks whose claim
    it was: of those there are, the agent is known."""
    op.add_column("owner", sa.Column("said", sa.Integer(), nullable=False, server_default="0"))
    op.create_table(
        "standing_ruling",
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
        "standing_ruling_act",
        sa.Column("owner_id", sa.String(), primary_key=True),
        sa.Column("ruling_id", sa.String(), primary_key=True),
        sa.Column("decision_id", sa.String(), primary_key=True),
        sa.Column("memory_id", sa.String(), nullable=True),
        sa.Column("settled", sa.Boolean(), nullable=False),
    )
    for name in _DRAWN_OF:
        op.add_column("spot_check", sa.Column(name, sa.String(), nullable=True))
    said = "decided_at IS NOT NULL"
    op.create_index(
        "spot_check_said",
        "spot_check",
        ["owner_id", "decided_at"],
        sqlite_where=sa.text(said),
        postgresql_where=sa.text(said),
    )
    op.execute(
        "UPDATE spot_check SET agent = (SELECT d.principal_id FROM memory m JOIN decision d"
        " ON d.owner_id = m.owner_id AND d.id = m.decision_id"
        " WHERE m.owner_id = spot_check.owner_id AND m.id = spot_check.memory_id)"
    )


def downgrade() -> None:
    """Drops them. Decisions keep in their evidence which ruling they rested on."""
    op.drop_table("standing_ruling_act")
    op.drop_table("standing_ruling")
    op.drop_column("owner", "said")
    op.drop_index("spot_check_said", table_name="spot_check")
    for name in _DRAWN_OF:
        op.drop_column("spot_check", name)
