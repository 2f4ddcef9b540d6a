"""The commands for stores behind the gate, and their options; what they do is in `vouchgate.cli.deliveries`."""
# ruff: noqa: PLC0415  (a command loads what it needs when it runs)

from __future__ import annotations

from typing import Annotated

import typer

from vouchgate.cli import operator

Ids = Annotated[list[str], typer.Argument(metavar="ID…", help="As in `delivery list`.")]

sink = typer.Typer(name="sink", help="Webhooks that get every memory of an owner.", rich_markup_mode=None)
delivery = typer.Typer(
    name="delivery", help="What stores behind the gate were told, or are to be.", rich_markup_mode=None
)


def register(app: typer.Typer) -> None:
    """Adds these commands."""
    app.add_typer(sink)
    app.add_typer(delivery)


@sink.command("create", epilog="Example: vouchgate sink create --owner me --url https://example.com/memories")
def sink_create(
    *,
    owner: Annotated[str, typer.Option(metavar="ID", help="Whose memories it gets.")],
    url: Annotated[str, typer.Option(metavar="URL", help="Where they are sent to: https://…")],
    database_url: operator.DatabaseUrl = None,
) -> None:
    """Have every memory of an owner sent to a URL, text and all.

    The secret that signs what is sent is printed alone on standard output, and is shown this once.
    """
    from vouchgate.cli import deliveries as command

    raise typer.Exit(command.create(operator.settings_from(database_url=database_url), owner=owner, url=url))


@sink.command("list", epilog="Example: vouchgate sink list --json")
def sink_list(database_url: operator.DatabaseUrl = None, as_json: operator.Json = False) -> None:
    """Show every sink of this kind, without its secret."""
    from vouchgate.cli import deliveries as command

    raise typer.Exit(command.show_sinks(operator.settings_from(database_url=database_url), as_json=as_json))


@sink.command("remove", epilog="Example: vouchgate sink remove ID")
def sink_remove(
    sink_id: Annotated[str, typer.Argument(metavar="ID", help="As in `sink list`.")],
    database_url: operator.DatabaseUrl = None,
) -> None:
    """End a sink. What it had yet to get is not sent."""
    from vouchgate.cli import deliveries as command

    raise typer.Exit(command.remove(operator.settings_from(database_url=database_url), sink_id))


@delivery.command("list", epilog="Example: vouchgate delivery list --state dead")
def delivery_list(
    *,
    owner: Annotated[str | None, typer.Option(metavar="ID", help="Of this owner only.")] = None,
    sink_name: Annotated[
        str | None, typer.Option("--sink", metavar="NAME", help="To this sink only.")
    ] = None,
    state: Annotated[
        str | None, typer.Option(metavar="STATE", help="waiting, delivered, dead or skipped.")
    ] = None,
    most: Annotated[int, typer.Option(min=1, metavar="N", help="How many are shown.")] = 100,
    database_url: operator.DatabaseUrl = None,
    as_json: operator.Json = False,
) -> None:
    """Show deliveries, the newest of an owner first."""
    from vouchgate.cli import deliveries as command
    from vouchgate.storage.outgoing.deliveries import DeliveryState

    wanted = None if state is None else operator.word(state, DeliveryState, "--state")
    settings = operator.settings_from(database_url=database_url)
    status = command.show(settings, owner=owner, sink=sink_name, state=wanted, most=most, as_json=as_json)
    raise typer.Exit(status)


@delivery.command("sinks", epilog="Example: vouchgate delivery sinks")
def delivery_sinks(database_url: operator.DatabaseUrl = None, as_json: operator.Json = False) -> None:
    """Show the sinks that claims name, and the token that serves each."""
    from vouchgate.cli import deliveries as command

    raise typer.Exit(
        command.show_consumers(operator.settings_from(database_url=database_url), as_json=as_json)
    )


@delivery.command("hand-over", epilog="Example: vouchgate delivery hand-over --from OLD --to NEW")
def delivery_hand_over(
    *,
    to: Annotated[str, typer.Option(metavar="TOKEN", help="The id of the token that serves from now on.")],
    former: Annotated[
        str | None, typer.Option("--from", metavar="TOKEN", help="All that the token of this id serves.")
    ] = None,
    owner: Annotated[str | None, typer.Option(metavar="ID", help="One sink, of this owner.")] = None,
    sink_name: Annotated[str | None, typer.Option("--sink", metavar="NAME", help="Its name.")] = None,
    database_url: operator.DatabaseUrl = None,
) -> None:
    """Have another agent's token serve a sink: one of an owner, or all of a token that is replaced.

    A sink that no claim has named yet can be given to a token ahead. The owner's log says so.
    """
    from vouchgate.cli import deliveries as command

    settings = operator.settings_from(database_url=database_url)
    raise typer.Exit(command.hand_over(settings, to=to, owner=owner, sink=sink_name, former=former))


@delivery.command("retry", epilog="Example: vouchgate delivery retry ID")
def delivery_retry(ids: Ids, database_url: operator.DatabaseUrl = None) -> None:
    """Put dead letters back, to be tried as often as new ones.

    They come after what was delivered meanwhile. One that would undo a later delivery to its place is refused.
    """
    from vouchgate.cli import deliveries as command

    raise typer.Exit(command.retry(operator.settings_from(database_url=database_url), ids))


@delivery.command("drop", epilog="Example: vouchgate delivery drop ID")
def delivery_drop(ids: Ids, database_url: operator.DatabaseUrl = None) -> None:
    """Give dead letters up for good: nobody is reminded of them any more."""
    from vouchgate.cli import deliveries as command

    raise typer.Exit(command.drop(operator.settings_from(database_url=database_url), ids))
