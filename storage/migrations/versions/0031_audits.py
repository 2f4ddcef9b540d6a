"""Audits of memories that owners clear.

Revision: 0031
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from vouchgate.storage.columns import UtcTime

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None

_KINDS = {
    **{"total": sa.Integer, "created_at": UtcTime, "kept_until": UtcTime, "position": sa.BigInteger},
    **{"reason": sa.Text, "text": sa.Text, "claim": sa.JSON, "act": sa.BigInteger},
}


def upgrade() -> None:
    """Makes the two tables."""
    _table("memory_audit", ["owner_id", "id"], "name total token_id created_at kept_until")
    row = "name label reason other text claim state act acted_by"
    _table("audited_row", ["owner_id", "audit_id", "position"], row)
    op.create_index("memory_audit_old", "memory_audit", ["kept_until"])
    for by in ("name", "state position", "label state position", "act state acted_by"):
        name = f"audited_row_by_{by.split()[0]}"
        op.create_index(name, "audited_row", ["owner_id", "audit_id", *by.split()])


def downgrade() -> None:
    """Takes them away."""
    op.drop_table("audited_row")
    op.drop_table("memory_audit")


def _table(name: str, keys: list[str], others: str) -> None:
    empty = ("other", "act", "acted_by")
    columns = [
        sa.Column(n, _KINDS.get(n, sa.String)(), nullable=n in empty) for n in [*keys, *others.split()]
    ]
    op.create_table(name, *columns, sa.PrimaryKeyConstraint(*keys))
