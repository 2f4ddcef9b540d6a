"""`vouchgate numbers`: what came in and what was cleared, straight from the database."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection

from vouchgate.cli.database import open_store
from vouchgate.cli.output import Failure, one_line, say, show_table, write_json
from vouchgate.ingest.scoring.priority import span
from vouchgate.review.numbers import Flow, Numbers, NumbersCounter
from vouchgate.review.pages.numbers import COLUMNS
from vouchgate.settings import Settings
from vouchgate.storage.identity import owners

_SHOWN = ("came", "stored", "queued", "blocked", "cleared")
_AT_ONCE = 1000  # names of owners


def run(settings: Settings, *, owner: str | None, days: int, as_json: bool) -> int:
    """The figures of one owner, or of all together. Raises Failure for an owner that there is not."""
    now = datetime.now(UTC)
    with open_store(settings) as store, store.read() as connection:
        if owner is not None and not owners.is_known(connection, owner):
            raise Failure(f"there is no owner {owner!r}; vouchgate owners list shows them")
        named = list(_owners(connection)) if owner is None else [owner]
        numbers = NumbersCounter().numbers_of(connection, named, now, days)
    if as_json:
        write_json(numbers.model_dump(mode="json"))
    else:
        _show(numbers, now)
    return 0


def _owners(connection: Connection) -> Iterator[str]:
    last = ""
    while found := owners.names(connection, last, _AT_ONCE):
        yield from found
        last = found[-1]


def _show(numbers: Numbers, now: datetime) -> None:
    waiting, checks = numbers.waiting, numbers.spot_checks
    oldest = "" if waiting.oldest_at is None else f", the oldest for {span(now - waiting.oldest_at)}"
    say(f"Waiting  {waiting.items:,}{oldest}")
    medians = {"waits now": waiting.median_seconds, "was cleared": numbers.median_cleared_seconds}
    for what, seconds in medians.items():
        if seconds is not None:
            say(f"Median   of what {what}: {span(timedelta(seconds=seconds))}")
    if checks.right or checks.wrong:
        say(
            f"Checks   {checks.right:,} right, {checks.wrong:,} wrong: {checks.low:.0%} to {checks.high:.0%} right"
        )
    _table("Day (UTC)", [*((day.day.isoformat(), day) for day in numbers.days), ("in all", numbers.total)])
    _table("Agent", [(each.name, each) for each in numbers.agents])
    _table("Reason", [(each.rule or "not known", each) for each in numbers.reasons])
    for one in numbers.standing_rulings:
        did = one.did
        say(
            f"{one_line(one.name)}: stored {did.stored}, rejected {did.rejected}; {did.right} right, {did.wrong} wrong"
        )
    if not numbers.complete:
        say("So much happened that only the end of it is counted.")


def _table(first: str, lines: list[tuple[str, Flow]]) -> None:
    """The chief figures; --json has all."""
    say("")
    rows = [
        [one_line(name), *(str(getattr(flow, column)) for column in _SHOWN), _share(flow)]
        for name, flow in lines
    ]
    show_table([first, *(COLUMNS[column] for column in _SHOWN), "Approved"], rows, whole=1)


def _share(flow: Flow) -> str:
    return "" if flow.approved_share is None else f"{flow.approved_share:.0%}"
