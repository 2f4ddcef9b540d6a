"""Imports wait in a lane of their own; items can be snoozed, assigned, looked at and sent back; saved views.

Revision: 0018
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0015"
branch_labels = None
depends_on = None

_TIMES = ("snoozed_until", "viewing_until", "sent_back_at")
_TEXTS = ("assigned_to", "viewer", "question", "asked_decision")
_INDEXES = {
    "pending_places": (["owner_id", "submitted_by"], "status = 'pending' AND lane = 'agent'"),
    "pending_assigned": (["owner_id", "assigned_to"], "status = 'pending' AND assigned_to IS NOT NULL"),
    "pending_away": (
        ["owner_id", "snoozed_until"],
        "status = 'pending' AND (snoozed_until IS NOT NULL OR sent_back_at IS NOT NULL)",
    ),
}


def upgrade() -> None:
    """Adds columns, indexes, a table and the count of the lane of imports. What waits already counts as sent by its
    agent."""
    op.add_column("owner", sa.Column("imported", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("queue_total", sa.Column("imported", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("pending", sa.Column("lane", sa.String(), nullable=False, server_default="agent"))
    for name in _TIMES:
        op.add_column("pending", sa.Column(name, sa.DateTime(timezone=True), nullable=True))
    for name in _TEXTS:
        op.add_column("pending", sa.Column(name, sa.Text(), nullable=True))
    for name, (columns, where) in _INDEXES.items():
        condition = sa.text(where)
        op.create_index(name, "pending", columns, sqlite_where=condition, postgresql_where=condition)
    op.create_table(
        "saved_view",
        sa.Column("principal_id", sa.String(), primary_key=True),
        sa.Column("name", sa.String(), primary_key=True),
        sa.Column("query", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
    )


def downgrade() -> None:
    """Drops them; items of imports count as sent by their agents again."""
    op.drop_table("saved_view")
    for name in _INDEXES:
        op.drop_index(name, "pending")
    for name in ("lane", *_TIMES, *_TEXTS):
        op.drop_column("pending", name)
    op.drop_column("queue_total", "imported")
    op.drop_column("owner", "imported")
