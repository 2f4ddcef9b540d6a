"""The places of the queue are counted by token, too: by the index that counts them by owner and token, turned round.

Revision: 0028
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None

_NAME, _WAITS = "pending_places", "status = 'pending' AND lane = 'agent'"


def upgrade() -> None:
    """Builds the index anew, the token first."""
    _index(["submitted_by", "owner_id"])


def downgrade() -> None:
    """Builds it with the owner first."""
    _index(["owner_id", "submitted_by"])


def _index(columns: list[str]) -> None:
    op.drop_index(_NAME, "pending")
    condition = sa.text(_WAITS)
    op.create_index(_NAME, "pending", columns, sqlite_where=condition, postgresql_where=condition)
