"""The policies that ever decided or were in force, and the files of owner rules, each whole under its digest."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, Table, bindparam, not_, select, text

from vouchgate.storage.columns import UtcTime
from vouchgate.storage.tables.claims import PolicyRow

TABLE: Table = PolicyRow.metadata.tables["policy"]
_SAVE = text(
    "INSERT INTO policy (digest, document, first_used_at) VALUES (:digest, :document, :at) ON CONFLICT DO NOTHING"
).bindparams(bindparam("at", type_=UtcTime))
_DOCUMENT = select(TABLE.c.document).where(TABLE.c.digest == bindparam("wanted"))
_POLICIES = select(TABLE.c.digest, TABLE.c.first_used_at).where(
    not_(TABLE.c.document.startswith('{"owner_rules":', autoescape=True))
)


def save(connection: Connection, digest: str, document: str, now: datetime) -> None:
    """Keeps a document; once for every digest."""
    connection.execute(_SAVE, {"digest": digest, "document": document, "at": now})


def document(connection: Connection, digest: str) -> str | None:
    """The document of this digest; None when it was never kept."""
    found: str | None = connection.scalar(_DOCUMENT, {"wanted": digest})
    return found


def known(connection: Connection, prefix: str) -> list[str]:
    """The digests of policies that begin so."""
    wanted = _POLICIES.where(TABLE.c.digest.startswith(prefix, autoescape=True)).order_by(TABLE.c.digest)
    return [row.digest for row in connection.execute(wanted)]


def first_used_before(connection: Connection, at: datetime) -> tuple[str | None, datetime | None]:
    """The policy that was first used last before a time, and when; None when there is none."""
    wanted = _POLICIES.where(TABLE.c.first_used_at <= at).order_by(TABLE.c.first_used_at.desc()).limit(1)
    row = connection.execute(wanted).one_or_none()
    return (None, None) if row is None else (row.digest, row.first_used_at)
