"""What a ranked search of memories reads. It is empty for old databases, and filled while they are used.

Revision: 0029
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from vouchgate.storage.columns import Words
from vouchgate.storage.tables.partitions import cut, partitions

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None

_LEFT = "action IN ('memory.superseded', 'memory.retracted', 'memory.restored')"


def upgrade() -> None:
    """Makes the table of words with its index, and an index of when memories left."""
    op.create_table(
        "memory_words",
        sa.Column("owner_id", sa.String(), nullable=False),
        sa.Column("memory_id", sa.String(), nullable=False),
        sa.Column("words", Words(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("owner_id", "memory_id"),
    )
    _partial("memory_words_by_number", "memory_words", ["number"], "number IS NOT NULL")
    _partial("log_entry_left", "log_entry", ["owner_id", "subject_id"], _LEFT)
    if op.get_bind().dialect.name == "postgresql":
        at_once = {"fastupdate": "off"}
        op.create_index(
            "memory_words_found", "memory_words", ["words"], postgresql_using="gin", postgresql_with=at_once
        )
        if parts := partitions(op.get_bind()).get("memory"):  # where the large tables are cut already
            cut(op.get_bind(), "memory_words", parts)
    else:
        op.execute(
            "CREATE VIRTUAL TABLE memory_fts USING fts5(words, content = 'memory_words', content_rowid = 'number', "
            "tokenize = 'unicode61 remove_diacritics 0')"
        )
    op.add_column("owner", sa.Column("word_seq", sa.BigInteger(), nullable=False, server_default="0"))


def downgrade() -> None:
    """Takes them away; they are made anew from the memories."""
    if op.get_bind().dialect.name == "sqlite":
        op.execute("DROP TABLE memory_fts")
    op.drop_column("owner", "word_seq")
    op.drop_index("log_entry_left", "log_entry")
    op.drop_table("memory_words")


def _partial(name: str, table: str, columns: list[str], condition: str) -> None:
    where = sa.text(condition)
    op.create_index(name, table, columns, sqlite_where=where, postgresql_where=where)
