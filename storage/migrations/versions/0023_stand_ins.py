"""Who rules in the stead of another, and until when; and everything that a waiting claim cites.

Revision: 0023
"""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)
_WAITING = """SELECT p.owner_id, p.id, d.answer FROM pending p JOIN decision d
    ON d.owner_id = p.owner_id AND d.id = p.decision_id WHERE p.status = 'pending' AND p.cited IS NOT NULL"""
_CITE = "UPDATE pending SET cites = :cites WHERE owner_id = :owner AND id = :id"
_OLD = "member_id, role, owner_id, since"


def upgrade() -> None:
    """Gives memberships whom they stand in for, which is a part of their key, and an end; votes whose they are;
    and what waits all that it cites."""
    acts_for = sa.Column("acts_for", sa.String(), primary_key=True)
    _make_anew(f"{_OLD}, acts_for", f"{_OLD}, ''", acts_for, sa.Column("until", TIME, nullable=True))
    op.add_column("vote", sa.Column("acts_for", sa.String(), nullable=False, server_default=""))
    op.add_column("pending", sa.Column("cites", sa.Text(), nullable=True))
    bind = op.get_bind()
    for item in bind.execute(sa.text(_WAITING)).all():
        values = {"cites": _cites(item.answer), "owner": item.owner_id, "id": item.id}
        bind.execute(sa.text(_CITE), values)


def _cites(answer: str) -> str | None:
    """As `storage.queue.pending.cites_of`; None for a decision that cannot be understood."""
    try:
        cited = [source["citation"] for source in json.loads(answer)["evidence"]["sources"]]
        lines = dict.fromkeys(text for one in cited for text in (one["key"], one["value"]))
    except (ValueError, KeyError, TypeError):
        return None
    return "\n".join(["", *lines, ""]) if lines else None


def downgrade() -> None:
    """Drops them, and with them the rights of those who stand in."""
    op.execute("DELETE FROM membership WHERE acts_for <> ''")
    _make_anew(_OLD, _OLD)
    op.drop_column("vote", "acts_for")
    op.drop_column("pending", "cites")


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
