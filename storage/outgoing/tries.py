"""What a try that failed leaves in the row of what is to be sent again: a webhook's message, or a digest by mail."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Table, Update, bindparam, func, update

from vouchgate.storage.columns import UtcTime

_MOST_ERROR = 500  # characters of what went wrong


def failed(table: Table, held: ColumnElement[bool]) -> Update:
    """Notes a try that failed `at` then with an `error`, the one `tried` times, and when it is due again (`next_due`);
    the lease of whoever holds it (`held`) ends."""
    values: dict[str, Any] = {
        "due_at": bindparam("next_due"),
        "attempts": bindparam("tried"),
        "lease": None,
        "failing_since": func.coalesce(table.c.failing_since, bindparam("at", type_=UtcTime)),
        "last_error": bindparam("error"),
    }
    return update(table).where(held).values(values)


def readable(error: str) -> str:
    """So much of it as is kept, with a mark in place of each character that a database cannot hold."""
    held = error.replace("\x00", "?").encode("utf-8", "replace").decode("utf-8")
    return held[:_MOST_ERROR]
