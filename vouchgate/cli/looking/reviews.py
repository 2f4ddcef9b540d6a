"""`vouchgate audit reviews`: who ruled on what, straight from the database."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection

from vouchgate.cli.database import open_store
from vouchgate.cli.output import USAGE, Failure, write_line
from vouchgate.settings import Settings
from vouchgate.storage.identity import owners as known_owners
from vouchgate.storage.queue import rulings
from vouchgate.storage.queue.rulings import Ruling, RulingFilter

COLUMNS = (*Ruling.model_fields, *Ruling.model_computed_fields)
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")  # what a spreadsheet takes for the beginning of one (OWASP)


def run(
    settings: Settings,
    *,
    since: str | None,
    until: str | None,
    owners: Sequence[str] | None,
    reviewer: str | None,
    form: str,
) -> int:
    """Prints them as they are read. Raises Failure for an owner that there is not, or a time that is none."""
    if form not in ("csv", "jsonl"):
        raise Failure(f"--format: {form!r} is unknown; known are csv, jsonl", USAGE)
    wanted = RulingFilter(
        owners=None if not owners else frozenset(owners),
        since=time_of(since, "--from"),
        until=time_of(until, "--to"),
        reviewer=reviewer,
    )
    with open_store(settings) as store, store.read() as connection:
        require_owners(connection, owners or ())
        if form == "csv":
            write_line(csv_line(COLUMNS))
        for together in rulings.walk(connection, wanted):
            for each in together:
                write_line(
                    each.model_dump_json()
                    if form == "jsonl"
                    else csv_line(each.model_dump(mode="json").values())
                )
    return 0


def time_of(text: str | None, option: str) -> datetime | None:
    """A day or a time, of UTC unless it says otherwise. Raises Failure."""
    try:
        at = None if text is None else datetime.fromisoformat(text)
        return at if at is None else at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise Failure(
            f"{option}: give a day or a time, such as 2026-10-01 or 2026-10-01T08:00Z", USAGE
        ) from error


def require_owners(connection: Connection, named: Sequence[str]) -> None:
    """Raises Failure for one that there is not."""
    for owner in named:
        if not known_owners.is_known(connection, owner):
            raise Failure(f"there is no owner {owner!r}; vouchgate owners list shows them")


def csv_line(values: Any) -> str:
    """One line of CSV (RFC 4180), in which no cell is a formula to a spreadsheet: an apostrophe stands before what
    would be one, and before what had one already, so that it can be taken away again."""
    out = io.StringIO()
    csv.writer(out).writerow(["" if each is None else cell(each) for each in values])
    return out.getvalue().removesuffix("\r\n")


def cell(value: Any) -> str:
    """A value as a cell."""
    text = value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else repr(value)
    return f"'{text}" if isinstance(value, str) and text.startswith((*_FORMULA, "'")) else text
