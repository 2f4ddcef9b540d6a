"""`vouchgate numbers`: what came in and what was cleared, straight from the database."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from sqlalchemy import Connection

from vouchgate.cli.database import open_store, refuse_unknown_owner
from vouchgate.cli.output import one_line, say, show_table, write_json
from vouchgate.review.numbers import Numbers, NumbersCounter
from vouchgate.review.pages.numbers import COLUMNS, numbers_view
from vouchgate.settings import Settings
from vouchgate.storage.identity import owners

_SHOWN = ("came", "stored", "queued", "blocked", "let_through", "cleared")  # --json has all
_AT_ONCE = 1000  # names of owners


def run(settings: Settings, *, owner: str | None, days: int, as_json: bool) -> int:
    """The figures of one owner, or of all together. Raises Failure for an owner that there is not."""
    now = datetime.now(UTC)
    with open_store(settings) as store, store.browse() as connection:
        refuse_unknown_owner(connection, owner)
        named = list(all_owners(connection)) if owner is None else [owner]
        numbers = NumbersCounter().numbers_of(connection, named, now, days)
    if as_json:
        write_json(numbers.model_dump(mode="json"))
    else:
        _show(numbers, now)
    return 0


def all_owners(connection: Connection) -> Iterator[str]:
    """Every owner, by name."""
    last = ""
    while found := owners.names(connection, last, _AT_ONCE):
        yield from found
        last = found[-1]


def _show(numbers: Numbers, now: datetime) -> None:
    view = numbers_view(numbers, every=True, now=now)
    for figure in view.figures:
        say(f"{figure.of:18} {figure.value:>10}  {figure.note}")
    shown = [name for name in _SHOWN if name != "let_through" or numbers.total.let_through]
    for first, lines in {"Day (UTC)": view.days, "Agent": view.agents, "Reason": view.reasons}.items():
        say("")
        rows = [
            [one_line(each.name), *(str(getattr(each.flow, name)) for name in shown), each.share]
            for each in lines
        ]
        show_table([first, *(COLUMNS[name] for name in shown), "Approved"], rows)
    for one in numbers.standing_rulings:
        did = one.did
        say(
            f"{one_line(one.name)}: stored {did.stored}, rejected {did.rejected}; {did.right} right, {did.wrong} wrong"
        )
    if not numbers.complete:
        say("So much happened that only the end of it is counted.")
