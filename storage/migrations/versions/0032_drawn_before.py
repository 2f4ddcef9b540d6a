"""What the memories that were drawn before revision 0020 cite first, and whose agent they are of.

Revision: 0032
"""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None

_DRAWN = sa.text(
    "SELECT s.owner_id, s.memory_id, d.principal_id, d.answer, (SELECT max(p.submitted_by) FROM pending p"
    " WHERE p.owner_id = s.owner_id AND p.memory_id = s.memory_id AND p.removal_of IS NULL) AS sent_by"
    " FROM spot_check s JOIN memory m ON m.owner_id = s.owner_id AND m.id = s.memory_id"
    " JOIN decision d ON d.owner_id = m.owner_id AND d.id = m.decision_id WHERE s.kind IS NULL"
)
_FILL = sa.text(
    "UPDATE spot_check SET agent = :agent, kind = :kind, publisher = :publisher"
    " WHERE owner_id = :owner_id AND memory_id = :memory_id"
)


def upgrade() -> None:
    """Fills them from the evidence of the decision, as it is kept with what is drawn now."""
    bind = op.get_bind()
    found = bind.execute(_DRAWN, execution_options={"yield_per": 500})
    rows = [values for row in found if (values := _filled(row)) is not None]
    if rows:
        bind.execute(_FILL, rows)


def _filled(row: sa.Row[Any]) -> dict[str, Any] | None:
    """None for a decision that was erased or cannot be understood."""
    try:
        sources = json.loads(row.answer)["evidence"]["sources"]
        first = sources[0] if sources else {"citation": {"type": "none"}}
        said = {"kind": first["citation"]["type"], "publisher": first.get("site") or None}
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    by_service = row.principal_id == "service" and row.sent_by is not None  # promoted without anybody's act
    agent = row.sent_by if by_service else row.principal_id
    return {"owner_id": row.owner_id, "memory_id": row.memory_id, "agent": agent, **said}


def downgrade() -> None:
    """Leaves them: they are as true as before."""
