"""Who rules in the stead of another, and until when.

Revision: 0024
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0020"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)
_OLD = "member_id, role, owner_id, since"


def upgrade() -> None:
    """Gives memberships whom they stand in for, which is a part of their key, and an end; and votes whose they are."""
    acts_for = sa.Column("acts_for", sa.String(), primary_key=True)
    _make_anew(f"{_OLD}, acts_for", f"{_OLD}, ''", acts_for, sa.Column("until", TIME, nullable=True))
    op.add_column("vote", sa.Column("acts_for", sa.String(), nullable=False, server_default=""))


def downgrade() -> None:
    """Drops them, and with them the rights of those who stand in."""
    op.execute("DELETE FROM membership WHERE acts_for <> ''")
    _make_anew(_OLD, _OLD)
    op.drop_column("vote", "acts_for")


def _make_anew(names: str, values: str, *more: sa.Column[Any]) -> None:
    """The table with another key, which SQLite cannot change."""
    op.create_table(
        "membership_anew",
        sa.Column("member_id", sa.String(), primary_key=True),
        sa.Column("role", sa.String(), primary_key=True),
        sa.Column("owner_id", sa.String(), primary_key=True),
        sa.Column("since", TIME, nullable=False),
        *more,
        sqlite_with_rowid=False,
    )
    op.execute(f"INSERT INTO membership_anew ({names}) SELECT {values} FROM membership")  # noqa: S608
    op.drop_table("membership")
    op.rename_table("membership_anew", "membership")
    op.create_index("membership_by_owner", "membership", ["owner_id", "role", "member_id"])
