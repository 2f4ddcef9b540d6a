"""Salts of log entries, names of owners that tell nobody who they are, and the tree over all entries.

Revision: 0025
"""

from __future__ import annotations

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

_TIME = sa.DateTime(timezone=True)
_KEPT = ("owner_id", "seq", "at", "actor", "action", "subject_id", "content_digest", "previous", "digest")
_SQLITE = """CREATE TRIGGER log_entry_no_update BEFORE UPDATE ON log_entry
    {when} BEGIN SELECT RAISE(ABORT, 'log_entry is append-only'); END"""
_POSTGRESQL = """CREATE OR REPLACE FUNCTION log_entry_refuse() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN {but} RAISE EXCEPTION 'log_entry is append-only'; END $$"""


def upgrade() -> None:
    """Adds the salts, of what is written from now on, a name for each owner, and a tree without leaves: the sequencer
    adds every entry that there is. A salt alone may be erased."""
    op.add_column("log_entry", sa.Column("salt", sa.LargeBinary(), nullable=True))
    op.add_column("owner", sa.Column("pseudonym", sa.String(), nullable=False, server_default=""))
    op.add_column("owner", sa.Column("sequenced", sa.BigInteger(), nullable=False, server_default="0"))
    _tree()
    bind = op.get_bind()
    owners = list(bind.scalars(sa.text("SELECT owner_id FROM owner")))
    if owners:
        named = [{"of_owner": owner, "name": secrets.token_hex(16)} for owner in owners]
        bind.execute(sa.text("UPDATE owner SET pseudonym = :name WHERE owner_id = :of_owner"), named)
    changed = " OR ".join(f"NEW.{name} <> OLD.{name}" for name in _KEPT)
    if bind.dialect.name == "sqlite":
        op.execute("DROP TRIGGER log_entry_no_update")
        op.execute(_SQLITE.format(when=f"WHEN NEW.salt IS NOT NULL OR {changed}"))
    else:
        erases = f"IF NEW.salt IS NULL AND NOT ({changed}) THEN RETURN NEW; END IF;"
        op.execute(_POSTGRESQL.format(but=f"IF TG_OP = 'UPDATE' THEN {erases} END IF;"))


def _tree() -> None:
    op.create_table(
        "tree",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("due_at", _TIME, nullable=False),
        sa.Column("lease", sa.String(), nullable=True),
        sa.Column("witnesses_due_at", _TIME, nullable=False, server_default="2026-01-01 00:00:00"),
    )
    op.execute("INSERT INTO tree (id, size, due_at) VALUES (1, 0, '2026-01-01 00:00:00')")
    op.create_table(
        "log_leaf",
        sa.Column("owner_id", sa.String(), primary_key=True),
        sa.Column("seq", sa.BigInteger(), primary_key=True),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("decision_id", sa.String(), nullable=True),
        sa.Column("data", sa.Text(), nullable=False),
    )
    op.create_index("log_leaf_in_order", "log_leaf", ["number"], unique=True)
    where = sa.text("decision_id IS NOT NULL")
    op.create_index(
        "log_leaf_by_decision", "log_leaf", ["decision_id"], sqlite_where=where, postgresql_where=where
    )
    op.create_table(
        "log_tile",
        sa.Column("level", sa.SmallInteger(), primary_key=True, autoincrement=False),
        sa.Column("number", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("hashes", sa.LargeBinary(), nullable=False),
    )
    op.create_table(
        "log_checkpoint",
        sa.Column("size", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("signed_at", _TIME, nullable=False),
        sa.Column("published_at", _TIME, nullable=True),
    )
    op.create_table(
        "log_key",
        sa.Column("id", sa.String(), primary_key=True),
        sa.Column("verifier", sa.Text(), nullable=False),
        sa.Column("added_at", _TIME, nullable=False),
        sa.Column("retired_at", _TIME, nullable=True),
    )


def downgrade() -> None:
    """Drops both: what was committed to with a salt cannot be shown any more."""
    if op.get_bind().dialect.name == "sqlite":
        op.execute("DROP TRIGGER log_entry_no_update")
        op.execute(_SQLITE.format(when=""))
    else:
        op.execute(_POSTGRESQL.format(but=""))
    for table in ("tree", "log_leaf", "log_tile", "log_checkpoint", "log_key"):
        op.drop_table(table)
    op.drop_column("owner", "sequenced")
    op.drop_column("log_entry", "salt")
    op.drop_column("owner", "pseudonym")
