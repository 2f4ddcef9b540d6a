"""What the review pages need: order and groups of the queue, who is signed in, and whom to tell.

Revision: 0003
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)
BY = ("priority_at", "id")
INDEXES = {
    "pending_by_priority": ["owner_id", "status", *BY],
    "pending_by_rule": ["owner_id", "status", "rule", *BY],
    "pending_by_sender": ["owner_id", "status", "submitted_by", *BY],
    "pending_by_cited": ["owner_id", "status", "cited", *BY],
}
COLUMNS = ("rejected_before", "words_digest", "priority_at", "cited", "rule")


def upgrade() -> None:
    """Adds the columns that order and group waiting items, and three tables. Items that wait already stand where
    their age puts them, under the rule of their decision."""
    op.add_column("pending", sa.Column("rule", sa.SmallInteger(), nullable=False, server_default="12"))
    op.add_column("pending", sa.Column("cited", sa.String(), nullable=True))
    op.add_column("pending", sa.Column("priority_at", TIME, nullable=True))
    op.add_column("pending", sa.Column("words_digest", sa.String(), nullable=True))
    op.add_column("pending", sa.Column("rejected_before", sa.String(), nullable=True))
    op.execute("UPDATE pending SET priority_at = created_at")
    op.execute(
        "UPDATE pending SET rule = d.rule FROM decision AS d "
        "WHERE d.owner_id = pending.owner_id AND d.id = pending.decision_id"
    )
    with op.batch_alter_table("pending") as pending:
        pending.alter_column("priority_at", existing_type=TIME, nullable=False)
        pending.alter_column("rule", existing_type=sa.SmallInteger(), server_default=None)
    for name, columns in INDEXES.items():
        op.create_index(name, "pending", columns)
    decided, rejected = sa.text("decided_at IS NOT NULL"), sa.text("status = 'rejected'")
    op.create_index(
        "pending_decided",
        "pending",
        ["owner_id", "decided_at", "id"],
        sqlite_where=decided,
        postgresql_where=decided,
    )
    op.create_index(
        "pending_rejected",
        "pending",
        ["owner_id", "words_digest"],
        sqlite_where=rejected,
        postgresql_where=rejected,
    )
    _index_sources("owner_id", "source_id", "id")
    replaced = sa.text("superseded_by IS NOT NULL")
    op.create_index(
        "memory_replaced",
        "memory",
        ["owner_id", "superseded_by"],
        sqlite_where=replaced,
        postgresql_where=replaced,
    )
    op.create_table(
        "session",
        sa.Column("digest", sa.String(), primary_key=True),
        sa.Column("token_id", sa.String(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
    )
    op.create_index("session_due", "session", ["expires_at"])
    op.create_index("session_by_token", "session", ["token_id"])
    op.create_table(
        "sign_in_link",
        sa.Column("digest", sa.String(), primary_key=True),
        sa.Column("token_id", sa.String(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.Column("used_at", TIME, nullable=True),
    )
    op.create_index("sign_in_link_due", "sign_in_link", ["expires_at"])
    op.create_table(
        "webhook",
        sa.Column("owner_id", sa.String(), primary_key=True),
        sa.Column("id", sa.String(), primary_key=True),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("secret", sa.String(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("told_seq", sa.BigInteger(), nullable=False),
        sa.Column("until_seq", sa.BigInteger(), nullable=True),
        sa.Column("message", sa.Text(), nullable=True),
        sa.Column("due_at", TIME, nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("lease", sa.String(), nullable=True),
        sa.Column("failing_since", TIME, nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
    )
    op.create_index("webhook_due", "webhook", ["due_at"])


def _index_sources(*columns: str) -> None:
    """Makes the index of memories by source anew."""
    cited = sa.text("source_id IS NOT NULL")
    op.drop_index("memory_by_source", "memory")
    op.create_index("memory_by_source", "memory", list(columns), sqlite_where=cited, postgresql_where=cited)


def downgrade() -> None:
    """Drops what `upgrade` added, and what it holds."""
    for table in ("webhook", "sign_in_link", "session"):
        op.drop_table(table)
    op.drop_index("memory_replaced", "memory")
    _index_sources("owner_id", "source_id")
    for name in ("pending_rejected", "pending_decided", *INDEXES):
        op.drop_index(name, "pending")
    for column in COLUMNS:
        op.drop_column("pending", column)
