"""Queries that a reviewer keeps under names of their own."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, Table, bindparam, delete, func, insert, select, update

from vouchgate.storage.tables.claims import SavedViewRow

MOST_VIEWS = 50  # of one reviewer: as many as anybody looks through

_TABLE: Table = SavedViewRow.metadata.tables["saved_view"]
_MINE = _TABLE.c.principal_id == bindparam("of_principal")
_ALL = select(_TABLE.c.name, _TABLE.c.query).where(_MINE).order_by(_TABLE.c.name)
_COUNT = select(func.count()).select_from(_TABLE).where(_MINE)
_THIS = (_MINE, _TABLE.c.name == bindparam("of_name"))


@dataclass(frozen=True, slots=True)
class SavedView:
    """A query under a name."""

    name: str
    query: str


def listing(connection: Connection, principal_id: str) -> list[SavedView]:
    """A reviewer's views by name."""
    return [
        SavedView(row.name, row.query) for row in connection.execute(_ALL, {"of_principal": principal_id})
    ]


def save(connection: Connection, principal_id: str, view: SavedView, now: datetime) -> bool:
    """Keeps a view in place of one of the same name; False, and nothing, when there are MOST_VIEWS already."""
    named = {"of_principal": principal_id, "of_name": view.name}
    if connection.execute(update(_TABLE).where(*_THIS).values(query=view.query), named).rowcount == 1:
        return True
    if (connection.scalar(_COUNT, {"of_principal": principal_id}) or 0) >= MOST_VIEWS:
        return False
    row = {"principal_id": principal_id, "name": view.name, "query": view.query, "created_at": now}
    connection.execute(insert(_TABLE), row)
    return True


def remove(connection: Connection, principal_id: str, name: str) -> bool:
    """Forgets a view; whether there was one."""
    named = {"of_principal": principal_id, "of_name": name}
    return connection.execute(delete(_TABLE).where(*_THIS), named).rowcount == 1
