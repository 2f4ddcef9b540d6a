"""People, whom each token and person acts for, and their votes.

Revision: 0019
"""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)
CHAIN_START = "0" * 64


def upgrade() -> None:
    """Adds the tables. What a token was granted becomes memberships of its own, so it may do what it could; those of
    agents for any owner go on naming new ones. Nobody is known to be behind any token yet."""
    op.create_table(
        "person",
        sa.Column("id", sa.String(), primary_key=True),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("ended_at", TIME, nullable=True),
    )
    there = sa.text("ended_at IS NULL")
    op.create_index(
        "person_by_name", "person", ["name"], unique=True, sqlite_where=there, postgresql_where=there
    )
    op.create_table(
        "membership",
        sa.Column("member_id", sa.String(), primary_key=True),
        sa.Column("role", sa.String(), primary_key=True),
        sa.Column("owner_id", sa.String(), primary_key=True),
        sa.Column("since", TIME, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("membership_by_owner", "membership", ["owner_id", "role", "member_id"])
    op.create_table(
        "vote",
        sa.Column("owner_id", sa.String(), primary_key=True),
        sa.Column("item_id", sa.String(), primary_key=True),
        sa.Column("version", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("person_id", sa.String(), primary_key=True),
        sa.Column("verdict", sa.String(), nullable=False),
        sa.Column("by", sa.String(), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("supersede", sa.Boolean(), nullable=True),
    )
    op.add_column("token", sa.Column("person_id", sa.String(), nullable=True))
    op.add_column("token", sa.Column("new_owners", sa.Boolean(), nullable=False, server_default=sa.false()))
    became = sa.text("memory_id IS NOT NULL")
    op.create_index(
        "pending_became", "pending", ["owner_id", "memory_id"], sqlite_where=became, postgresql_where=became
    )
    _carry_over(op.get_bind())
    op.drop_column("token", "owners")


def _carry_over(bind: sa.Connection) -> None:
    rows = bind.execute(sa.text("SELECT id, role, owners, created_at FROM token")).mappings().all()
    grants = [
        {"member_id": row["id"], "role": row["role"], "owner_id": owner_id, "since": row["created_at"]}
        for row in rows
        for owner_id in _names(row["owners"])
    ]
    if grants:
        bind.execute(
            sa.text(
                "INSERT INTO membership (member_id, role, owner_id, since) "
                "VALUES (:member_id, :role, :owner_id, :since)"
            ),
            grants,
        )
        bind.execute(
            sa.text(
                "INSERT INTO owner (owner_id, log_seq, log_head, pending) VALUES (:owner_id, 0, :head, 0) "
                "ON CONFLICT DO NOTHING"
            ),
            [{"owner_id": name, "head": CHAIN_START} for name in sorted({row["owner_id"] for row in grants})],
        )
    bind.execute(sa.text("UPDATE token SET new_owners = any_owner WHERE role = 'agent'"))


def _names(kept: Any) -> list[str]:
    """A JSON column as the driver gives it."""
    return sorted(set(json.loads(kept) if isinstance(kept, str) else kept))


def downgrade() -> None:
    """Gives each token its owners back; what it acted for through a person is lost."""
    op.add_column("token", sa.Column("owners", sa.JSON(), nullable=False, server_default="[]"))
    bind = op.get_bind()
    owners: dict[str, list[str]] = {}
    for row in bind.execute(sa.text("SELECT member_id, owner_id FROM membership ORDER BY owner_id")):
        owners.setdefault(row.member_id, []).append(row.owner_id)
    for token_id, names in owners.items():
        values = {"token_id": token_id, "names": json.dumps(names)}
        cast = "CAST(:names AS JSON)" if bind.dialect.name == "postgresql" else ":names"
        bind.execute(sa.text(f"UPDATE token SET owners = {cast} WHERE id = :token_id"), values)  # noqa: S608
    op.drop_index("pending_became", "pending")
    op.drop_column("token", "new_owners")
    op.drop_column("token", "person_id")
    for table in ("vote", "membership", "person"):
        op.drop_table(table)
