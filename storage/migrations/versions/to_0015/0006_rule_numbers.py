"""The change of what is at a place gets a number of its own: 16. Until now it shared 15 with a removal.

Revision: 0006
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

# How an answer is written down that gave the reason of a change.
CHANGED = '%"rule":15,"reason":"Changes what is stored"%'


def upgrade() -> None:
    """Renumbers what waits, and the decisions; the text of an answer stays as it was given."""
    op.execute("UPDATE pending SET rule = 16 WHERE rule = 15 AND removal_of IS NULL")
    statement = sa.text("UPDATE decision SET rule = 16 WHERE rule = 15 AND answer LIKE :changed")
    op.execute(statement.bindparams(changed=CHANGED))


def downgrade() -> None:
    """Gives both the number that they shared."""
    op.execute("UPDATE pending SET rule = 15 WHERE rule = 16")
    op.execute("UPDATE decision SET rule = 15 WHERE rule = 16")
