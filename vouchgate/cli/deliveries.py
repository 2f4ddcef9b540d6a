"""`vouchgate delivery`: what became of what stores behind the gate were told, or are to be."""
# ruff: noqa: PLC0415  (a command loads what it needs when it runs)

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vouchgate.cli import operator
from vouchgate.cli.identity.tokens import ACTOR
from vouchgate.cli.output import FAILED, USAGE, Failure, complain, hint, one_line, say, show_table, write_json

if TYPE_CHECKING:
    from vouchgate.storage.outgoing.deliveries import DeliveryRecord

Ids = Annotated[list[str], typer.Argument(metavar="ID…", help="As in `delivery list`.")]

delivery = typer.Typer(
    name="delivery", help="What stores behind the gate were told, or are to be.", rich_markup_mode=None
)


def register(app: typer.Typer) -> None:
    """Adds these commands."""
    app.add_typer(delivery)


@delivery.command("list", epilog="Example: vouchgate delivery list --state dead")
def show(
    *,
    owner: Annotated[str | None, typer.Option(metavar="ID", help="Of this owner only.")] = None,
    sink: Annotated[str | None, typer.Option(metavar="NAME", help="To this sink only.")] = None,
    state: Annotated[
        str | None, typer.Option(metavar="STATE", help="waiting, delivered, dead or skipped.")
    ] = None,
    most: Annotated[int, typer.Option(min=1, metavar="N", help="How many are shown.")] = 100,
    database_url: operator.DatabaseUrl = None,
    as_json: operator.Json = False,
) -> None:
    """Show deliveries, the newest of an owner first."""
    from vouchgate.cli.database import open_store, refuse_unknown_owner
    from vouchgate.storage.outgoing import deliveries
    from vouchgate.storage.outgoing.deliveries import DeliveryFilter, DeliveryState

    wanted = DeliveryFilter(
        owners=None if owner is None else frozenset({owner}),
        sink=sink,
        state=None if state is None else operator.word(state, DeliveryState, "--state"),
        limit=most,
    )
    with (
        open_store(operator.settings_from(database_url=database_url)) as store,
        store.read() as connection,
    ):
        refuse_unknown_owner(connection, owner)
        found = deliveries.search(connection, wanted)
    if as_json:
        for record in found:
            write_json(record.model_dump(mode="json"))
    elif not found:
        hint("There is no such delivery.")
    else:
        headings = ("id", "owner", "sink", "place", "op", "state")
        show_table(headings, [(*_names(record), record.op.value, _state(record)) for record in found])


def _names(record: DeliveryRecord) -> tuple[str, str, str, str]:
    return record.id, one_line(record.owner_id), record.sink, one_line(record.place)


def _state(record: DeliveryRecord) -> str:
    tries = "" if not record.attempts else f", failed {record.attempts}x"
    next_try = f", next try {record.due_at:%Y-%m-%d %H:%M:%S}Z" if record.due_at and record.attempts else ""
    error = f": {record.last_error}" if record.last_error else ""
    return f"{record.state.value}{tries}{next_try}{error}"


@delivery.command("sinks", epilog="Example: vouchgate delivery sinks")
def show_consumers(database_url: operator.DatabaseUrl = None, as_json: operator.Json = False) -> None:
    """Show the sinks that claims name, and the token that serves each."""
    from vouchgate.cli.database import open_store
    from vouchgate.storage.outgoing import sink_consumers

    with (
        open_store(operator.settings_from(database_url=database_url)) as store,
        store.read() as connection,
    ):
        found = sink_consumers.listing(connection)
    if as_json:
        for one in found:
            write_json(one.model_dump(mode="json"))
    elif not found:
        hint("No claim has named a sink yet.")
    else:
        rows = [
            (
                one_line(one.owner_id),
                one.sink,
                one.token_id,
                one.token_name or "?",
                f"{one.since:%Y-%m-%d %H:%M}Z",
            )
            for one in found
        ]
        show_table(("owner", "sink", "token", "name", "since"), rows, whole=3)


@delivery.command("hand-over", epilog="Example: vouchgate delivery hand-over --from OLD --to NEW")
def hand_over(
    *,
    to: Annotated[str, typer.Option(metavar="TOKEN", help="The id of the token that serves from now on.")],
    former: Annotated[
        str | None, typer.Option("--from", metavar="TOKEN", help="All that the token of this id serves.")
    ] = None,
    owner: Annotated[str | None, typer.Option(metavar="ID", help="One sink, of this owner.")] = None,
    sink: Annotated[str | None, typer.Option(metavar="NAME", help="Its name.")] = None,
    database_url: operator.DatabaseUrl = None,
) -> None:
    """Have another agent's token serve a sink: one of an owner, or all of a token that is replaced.

    A sink that no claim has named yet can be given to a token ahead. The owner's log says so.
    """
    from vouchgate.cli.database import open_store, refuse_unknown_owner
    from vouchgate.gate import deliveries
    from vouchgate.storage.outgoing import sink_consumers

    if (owner is None) != (sink is None) or (owner is None) == (former is None):
        raise Failure("give --owner and --sink, or --from", USAGE)
    keys = [] if owner is None else [(owner, _sink_name(sink))]
    with open_store(operator.settings_from(database_url=database_url)) as store:
        with store.read() as connection:
            refuse_unknown_owner(connection, owner)
            listed = sink_consumers.listing(connection)
        if former is not None:
            keys = [(one.owner_id, one.sink) for one in listed if one.token_id == former]
            if not keys:
                raise Failure(f"no sink is served by a token {former!r}; vouchgate delivery sinks shows them")
        try:
            handed = deliveries.hand_over(store, keys, to, actor=ACTOR, now=datetime.now(UTC))
        except ValueError as error:
            raise Failure(str(error), USAGE) from error
    hint(
        f"{handed} {'sink' if handed == 1 else 'sinks'} handed over. "
        f"What the old token has leased comes to {to} within a minute."
    )


def _sink_name(name: str | None) -> str:
    from pydantic import TypeAdapter

    from vouchgate.wire import SinkName

    try:
        return TypeAdapter[str](SinkName).validate_python(name)
    except ValueError:
        raise Failure(f"{name!r} is no name that a claim can give to a sink", USAGE) from None


@delivery.command("retry", epilog="Example: vouchgate delivery retry ID")
def retry(ids: Ids, database_url: operator.DatabaseUrl = None) -> None:
    """Put dead letters back, to be tried as often as new ones.

    They come after what was delivered meanwhile. One that would undo a later delivery to its place is refused.
    """
    from vouchgate.gate.deliveries import retry as act

    _each(ids, database_url, act, "is tried again")


@delivery.command("drop", epilog="Example: vouchgate delivery drop ID")
def drop(ids: Ids, database_url: operator.DatabaseUrl = None) -> None:
    """Give dead letters up for good: nobody is reminded of them any more."""
    from vouchgate.gate.deliveries import drop as act

    _each(ids, database_url, act, "is dropped")


def _each(ids: list[str], database_url: str | None, act: Any, done: str) -> None:
    from vouchgate.cli.database import open_store
    from vouchgate.gate.deliveries import NotDeadLetter, Outdated
    from vouchgate.storage.outgoing.deliveries import DeliveryRecord

    status = 0
    with open_store(operator.settings_from(database_url=database_url)) as store:
        for one in ids:
            answer: DeliveryRecord | NotDeadLetter | Outdated | None = act(
                store, None, one, actor=ACTOR, now=datetime.now(UTC)
            )
            match answer:
                case DeliveryRecord():
                    say(f"{one} {done}.")
                    continue
                case NotDeadLetter():
                    complain(f"{one} is {answer.record.state.value}, no dead letter")
                case Outdated():
                    complain(f"{one} would undo something that its place was told later; drop it instead")
                case None:
                    complain(f"there is no delivery {one!r}; vouchgate delivery list shows the ids")
            status = FAILED
    raise typer.Exit(status)
