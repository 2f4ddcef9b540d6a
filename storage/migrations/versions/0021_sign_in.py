"""What people sign in with elsewhere, sign-ins on their way there, and what sessions tell of themselves.

Revision: 0021
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds two tables, which are empty. Of sessions that there are it is not known how they began: what weighs more
    asks their people to sign in once more."""
    op.create_table(
        "identity",
        sa.Column("issuer", sa.String(), primary_key=True),
        sa.Column("sub", sa.String(), primary_key=True),
        sa.Column("token_id", sa.String(), nullable=False),
        sa.Column("linked_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_table(
        "sign_in_flow",
        sa.Column("digest", sa.String(), primary_key=True),
        sa.Column("next_path", sa.Text(), nullable=False),
        sa.Column("again", sa.Boolean(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_index("sign_in_flow_due", "sign_in_flow", ["expires_at"])
    op.add_column("session", sa.Column("method", sa.String(), nullable=True))
    op.add_column("session", sa.Column("browser", sa.String(), nullable=True))
    op.add_column("session", sa.Column("proved_at", sa.DateTime(timezone=True), nullable=True))


def downgrade() -> None:
    """Drops them: people sign in with tokens and links again."""
    for name in ("method", "browser", "proved_at"):
        op.drop_column("session", name)
    op.drop_table("sign_in_flow")
    op.drop_table("identity")
