"""Which token serves each sink, and kept readings made anew, so that pages of private networks are marked as such.

Revision: 0005
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds one table. Sinks that claims named before get their token when it asks next
    (`storage.outgoing.sink_consumers`)."""
    op.create_table(
        "sink_consumer",
        sa.Column("owner_id", sa.String(), primary_key=True),
        sa.Column("sink", sa.String(), primary_key=True),
        sa.Column("token_id", sa.String(), nullable=False),
        sa.Column("since", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_index("sink_consumer_by_token", "sink_consumer", ["sink", "token_id"])
    op.execute("DELETE FROM source")


def downgrade() -> None:
    """Drops what `upgrade` added, and what it holds."""
    op.drop_table("sink_consumer")
