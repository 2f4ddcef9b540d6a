"""Salts of log entries, and names of owners that tell nobody who they are.

Revision: 0025
"""

from __future__ import annotations

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0023"
branch_labels = None
depends_on = None

_KEPT = ("owner_id", "seq", "at", "actor", "action", "subject_id", "content_digest", "previous", "digest")
_SQLITE = """CREATE TRIGGER log_entry_no_update BEFORE UPDATE ON log_entry
    {when} BEGIN SELECT RAISE(ABORT, 'log_entry is append-only'); END"""
_POSTGRESQL = """CREATE OR REPLACE FUNCTION log_entry_refuse() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN {but} RAISE EXCEPTION 'log_entry is append-only'; END $$"""


def upgrade() -> None:
    """Adds the salts, of what is written from now on, and a name for each owner. A salt alone may be erased."""
    op.add_column("log_entry", sa.Column("salt", sa.LargeBinary(), nullable=True))
    op.add_column("owner", sa.Column("pseudonym", sa.String(), nullable=False, server_default=""))
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


def downgrade() -> None:
    """Drops both: what was committed to with a salt cannot be shown any more."""
    if op.get_bind().dialect.name == "sqlite":
        op.execute("DROP TRIGGER log_entry_no_update")
        op.execute(_SQLITE.format(when=""))
    else:
        op.execute(_POSTGRESQL.format(but=""))
    op.drop_column("log_entry", "salt")
    op.drop_column("owner", "pseudonym")
