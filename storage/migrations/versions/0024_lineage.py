"""What each decision rests on, by every name of it.

Revision: 0024
"""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

from vouchgate.storage.claims import decisions, lineage

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

_LINEAGE = sa.table("lineage", *map(sa.column, ("owner_id", "name", "decision_id", "harvested", "others")))
_CITED = sa.text("source_id IS NOT NULL")


def upgrade() -> None:
    """Adds the table and fills it from the decisions, as they were written and some at a time; and drops what was kept
    of it before: all that a waiting item cites, and the order of an owner's memories by one source."""
    op.create_table(
        "lineage",
        sa.Column("owner_id", sa.String(), primary_key=True),
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("decision_id", sa.String(), primary_key=True),
        sa.Column("harvested", sa.Boolean(), nullable=False),
        sa.Column("others", sa.Integer(), nullable=False),
        sqlite_with_rowid=False,
    )
    op.drop_index("memory_by_source", table_name="memory")
    op.drop_column("pending", "cites")
    for table in ("memory", "pending"):
        op.create_index(f"{table}_by_decision", table, ["owner_id", "decision_id"])
    bind = op.get_bind()
    for _, answer in decisions.walk(bind):
        if rows := _rows_of(answer):
            bind.execute(sa.insert(_LINEAGE), rows)


def _rows_of(answer: str) -> list[dict[str, Any]]:
    """None for a decision that cannot be understood."""
    try:
        return lineage.rows_of_stored(json.loads(answer))
    except (ValueError, KeyError, TypeError):
        return []


def downgrade() -> None:
    """Drops it. What waits is found by what it cites first only."""
    for table in ("memory", "pending"):
        op.drop_index(f"{table}_by_decision", table_name=table)
    op.add_column("pending", sa.Column("cites", sa.Text(), nullable=True))
    op.create_index(
        "memory_by_source",
        "memory",
        ["owner_id", "source_id", "id"],
        sqlite_where=_CITED,
        postgresql_where=_CITED,
    )
    op.drop_table("lineage")
