"""How far the similar index has come in each owner's log, and the keys of memories that are not in it yet.

Revision: 0027
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the columns. All that was stored before is in the index."""
    op.add_column("memory", sa.Column("bands", sa.LargeBinary()))
    op.add_column("owner", sa.Column("similar_seq", sa.BigInteger(), nullable=False, server_default="0"))
    op.execute("UPDATE owner SET similar_seq = log_seq")


def downgrade() -> None:
    """Drops them: what was stored lately has to be put into the index with `vouchgate index repair`."""
    op.drop_column("owner", "similar_seq")
    op.drop_column("memory", "bands")
