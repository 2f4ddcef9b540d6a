"""`vouchgate audit reviews`: who ruled on what, straight from the database."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import Any

from sqlalchemy import Connection

from vouchgate.cli.database import open_store, refuse_unknown_owner
from vouchgate.cli.output import USAGE, Failure, write_line
from vouchgate.review.rules import Act, is_allowed
from vouchgate.settings import Settings
from vouchgate.storage.identity import tokens
from vouchgate.storage.log.reads import note_read
from vouchgate.storage.queue import rulings
from vouchgate.storage.queue.rulings import Ruling, RulingFilter
from vouchgate.storage.store import Store

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
    times = period(since, until)
    with open_store(settings) as store, store.browse() as connection:
        wanted = RulingFilter(
            owners=scope(store, connection, settings, owners or (), "audit reviews"),
            reviewer=reviewer,
            **times,
        )
        if form == "csv":
            write_line(csv_line(COLUMNS))
        for each in chain.from_iterable(rulings.walk(connection, wanted)):
            write_line(
                each.model_dump_json() if form == "jsonl" else csv_line(each.model_dump(mode="json").values())
            )
    return 0


def period(since: str | None, until: str | None) -> dict[str, datetime | None]:
    """From when on and before when, None without a bound. Raises Failure for no times, and where nothing can be."""
    first, end = _time_of(since, "--from"), _time_of(until, "--to")
    if first is not None and end is not None and first >= end:
        raise Failure("nothing can be between --from and --to: give a later --to, which is not in it", USAGE)
    return {"since": first, "until": end}


def _time_of(text: str | None, option: str) -> datetime | None:
    """A day or a time, of UTC unless it says otherwise. Raises Failure."""
    try:
        at = None if text is None else datetime.fromisoformat(text)
        return at if at is None else at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise Failure(
            f"{option}: give a day or a time, such as 2026-10-01 or 2026-10-01T08:00Z", USAGE
        ) from error


def scope(
    store: Store, connection: Connection, settings: Settings, named: Sequence[str], what: str
) -> frozenset[str] | None:
    """The owners that are meant, None for every one: those that are named, of those that a token audits if one is
    given; then it is in the log `what` an auditor read. Raises Failure for an owner that there is not, or that the
    token does not act for."""
    for owner in named:
        refuse_unknown_owner(connection, owner)
    wanted = frozenset(named) or None
    if settings.token is None:
        return wanted
    principal = tokens.authenticate(connection, settings.token.get_secret_value(), datetime.now(UTC))
    if principal is None or not is_allowed(principal, Act.READ_EVENTS):
        raise Failure("this token is not one of an auditor or admin, or it is revoked or expired")
    for owner in named:
        if not principal.may_act_for(owner):
            raise Failure(f"this token does not act for {owner!r}")
    note_read(store, principal, what, now=datetime.now(UTC))
    return wanted or (None if principal.any_owner else principal.owners)


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
