"""The answers that were given, word for word."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection, Table, bindparam, select, tuple_

from storage.names import valid_name
from storage.tables import DecisionRow

TABLE: Table = DecisionRow.metadata.tables["decision"]
_BY_ID = select(TABLE.c.answer).where(TABLE.c.id == bindparam("wanted"))
_PAGE = (
    select(TABLE.c.owner_id, TABLE.c.id, TABLE.c.answer)
    .where(tuple_(TABLE.c.owner_id, TABLE.c.id) > tuple_(bindparam("last_owner"), bindparam("last_id")))
    .order_by(TABLE.c.owner_id, TABLE.c.id)
    .limit(bindparam("most"))
)


def get(connection: Connection, decision_id: str, *, owners: frozenset[str] | None) -> str | None:
    """The answer as JSON, or None when none of `owners` has a decision of this id (None: any owner)."""
    if not valid_name(decision_id):
        return None
    statement = _BY_ID if owners is None else _BY_ID.where(TABLE.c.owner_id.in_(owners))
    row = connection.execute(statement, {"wanted": decision_id}).one_or_none()
    return None if row is None else str(row.answer)


def walk(connection: Connection, *, batch: int = 500) -> Iterator[tuple[str, str]]:
    """(decision id, answer as JSON) of every decision, by owner and age, `batch` rows in memory at a time."""
    last = {"last_owner": "", "last_id": "", "most": batch}
    while rows := connection.execute(_PAGE, last).all():
        for row in rows:
            yield row.id, row.answer
        last |= {"last_owner": rows[-1].owner_id, "last_id": rows[-1].id}
