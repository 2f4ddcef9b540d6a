"""The first tables.

Revision: 0001
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)

SQLITE_TRIGGERS = tuple(
    f"CREATE TRIGGER log_entry_no_{act.lower()} BEFORE {act} ON log_entry "
    "BEGIN SELECT RAISE(ABORT, 'log_entry is append-only'); END"
    for act in ("UPDATE", "DELETE")
)
POSTGRESQL_TRIGGERS = (
    "CREATE FUNCTION log_entry_refuse() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN RAISE EXCEPTION 'log_entry is append-only'; END $$",
    "CREATE TRIGGER log_entry_no_change BEFORE UPDATE OR DELETE ON log_entry "
    "FOR EACH ROW EXECUTE FUNCTION log_entry_refuse()",
    "CREATE TRIGGER log_entry_no_truncate BEFORE TRUNCATE ON log_entry "
    "FOR EACH STATEMENT EXECUTE FUNCTION log_entry_refuse()",
)
TABLES = (
    "owner",
    "queue_total",
    "memory",
    "pending",
    "dedup_key",
    "similar_key",
    "embedding",
    "decision",
    "policy",
    "idempotency",
    "log_entry",
    "token",
    "meta",
)


def upgrade() -> None:
    """Creates every table, the triggers that keep the log append-only, and the two rows that are locked."""
    _owners()
    _memories()
    _embeddings()
    _pending()
    _decisions()
    _log()
    _service()
    op.execute("INSERT INTO queue_total (id, pending) VALUES (1, 0)")
    for name in ("dedup_index", "dedup_index_next", "dedup_index_old"):  # built with nothing yet
        op.execute(f"INSERT INTO meta (name, value) VALUES ('{name}', '')")  # noqa: S608  (three fixed names)


def downgrade() -> None:
    """Drops every table, and what they hold."""
    for name in reversed(TABLES):
        op.drop_table(name)
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION log_entry_refuse()")


def _owners() -> None:
    op.create_table(
        "owner",
        sa.Column("owner_id", sa.String(), primary_key=True),
        sa.Column("log_seq", sa.BigInteger(), nullable=False),
        sa.Column("log_head", sa.String(), nullable=False),
        sa.Column("pending", sa.Integer(), nullable=False),
    )
    op.create_table(
        "queue_total",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("pending", sa.Integer(), nullable=False),
    )


def _memories() -> None:
    op.create_table(
        "memory",
        sa.Column("owner_id", sa.String(), primary_key=True),
        sa.Column("id", sa.String(), primary_key=True),
        sa.Column("memory_type", sa.String(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("confidence", sa.String(), nullable=False),
        sa.Column("confidence_score", sa.Float(), nullable=True),
        sa.Column("label", sa.String(), nullable=False),
        sa.Column("source_id", sa.String(), nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("validity_horizon", TIME, nullable=True),
        sa.Column("decision_id", sa.String(), nullable=False),
        sa.Column("approved_by", sa.String(), nullable=True),
        sa.Column("superseded_by", sa.String(), nullable=True),
        sa.Column("retracted_reason", sa.String(), nullable=True),
        sa.Column("details", sa.JSON(), nullable=False),
    )
    op.create_index("memory_by_id", "memory", ["id"])
    has_source = sa.text("source_id IS NOT NULL")
    op.create_index(
        "memory_by_source",
        "memory",
        ["owner_id", "source_id"],
        sqlite_where=has_source,
        postgresql_where=has_source,
    )
    may_expire = sa.text("status = 'active' AND validity_horizon IS NOT NULL")
    op.create_index(
        "memory_due",
        "memory",
        ["validity_horizon"],
        sqlite_where=may_expire,
        postgresql_where=may_expire,
    )
    op.create_table(
        "dedup_key",
        sa.Column("owner_id", sa.String(), primary_key=True),
        sa.Column("key", sa.BigInteger(), primary_key=True),
        sa.Column("item_id", sa.String(), primary_key=True),
        sa.Column("generation", sa.SmallInteger(), nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "dedup_template",
        sa.Column("owner_id", sa.String(), primary_key=True),
        sa.Column("key", sa.BigInteger(), primary_key=True),
        sa.Column("id", sa.String(), primary_key=True),
        sa.Column("words", sa.Text(), nullable=False),
        sa.Column("generation", sa.SmallInteger(), nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "similar_key",
        sa.Column("owner_id", sa.String(), primary_key=True),
        sa.Column("key", sa.BigInteger(), primary_key=True),
        sa.Column("memory_id", sa.String(), primary_key=True),
        sqlite_with_rowid=False,
    )


def _embeddings() -> None:
    op.create_table(
        "embedding",
        sa.Column("owner_id", sa.String(), primary_key=True),
        sa.Column("item_id", sa.String(), primary_key=True),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("vector", sa.LargeBinary().with_variant(sa.ARRAY(sa.REAL()), "postgresql"), nullable=False),
    )


def _pending() -> None:
    op.create_table(
        "pending",
        sa.Column("owner_id", sa.String(), primary_key=True),
        sa.Column("id", sa.String(), primary_key=True),
        sa.Column("memory_type", sa.String(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("seen", sa.Integer(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.Column("decision_id", sa.String(), nullable=False),
        sa.Column("submitted_by", sa.String(), nullable=False),
        sa.Column("conflicting_memory_id", sa.String(), nullable=True),
        sa.Column("decided_at", TIME, nullable=True),
        sa.Column("decided_by", sa.String(), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("memory_id", sa.String(), nullable=True),
        sa.Column("validity_horizon", TIME, nullable=True),
        sa.Column("details", sa.JSON(), nullable=False),
    )
    op.create_index("pending_by_id", "pending", ["id"])
    op.create_index("pending_by_status", "pending", ["owner_id", "status", "id"])
    op.create_index("pending_due", "pending", ["status", "expires_at"])


def _decisions() -> None:
    op.create_table(
        "decision",
        sa.Column("owner_id", sa.String(), primary_key=True),
        sa.Column("id", sa.String(), primary_key=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("principal_id", sa.String(), nullable=False),
        sa.Column("tier", sa.String(), nullable=False),
        sa.Column("rule", sa.Integer(), nullable=False),
        sa.Column("policy_digest", sa.String(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=False),
    )
    op.create_index("decision_by_id", "decision", ["id"])
    op.create_table(
        "policy",
        sa.Column("digest", sa.String(), primary_key=True),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("first_used_at", TIME, nullable=False),
    )
    op.create_table(
        "idempotency",
        sa.Column("principal_id", sa.String(), primary_key=True),
        sa.Column("key", sa.String(), primary_key=True),
        sa.Column("body_digest", sa.String(), nullable=False),
        sa.Column("owner_id", sa.String(), nullable=False),
        sa.Column("decision_id", sa.String(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
    )


def _log() -> None:
    op.create_table(
        "log_entry",
        sa.Column("owner_id", sa.String(), primary_key=True),
        sa.Column("seq", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("action", sa.String(), nullable=False),
        sa.Column("subject_id", sa.String(), nullable=False),
        sa.Column("content_digest", sa.String(), nullable=False),
        sa.Column("previous", sa.String(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
    )
    triggers = SQLITE_TRIGGERS if op.get_bind().dialect.name == "sqlite" else POSTGRESQL_TRIGGERS
    for statement in triggers:
        op.execute(statement)


def _service() -> None:
    op.create_table(
        "token",
        sa.Column("id", sa.String(), primary_key=True),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("owners", sa.JSON(), nullable=False),
        sa.Column("any_owner", sa.Boolean(), nullable=False),
        sa.Column("sources", sa.JSON(), nullable=False),
        sa.Column("secret_digest", sa.String(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME, nullable=True),
        sa.Column("revoked_at", TIME, nullable=True),
    )
    op.create_table(
        "meta",
        sa.Column("name", sa.String(), primary_key=True),
        sa.Column("value", sa.String(), nullable=False),
    )
