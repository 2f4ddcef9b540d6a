"""The commands that look after the indexes, and their options; what they do is in `vouchgate.cli.maintain`."""
# ruff: noqa: PLC0415  (a command loads what it needs when it runs)

from __future__ import annotations

from typing import Annotated

import typer

from vouchgate.cli import operator

Owner = Annotated[str | None, typer.Option(metavar="ID", help="Only this owner's. [default: all owners]")]

index = typer.Typer(
    name="index", help="The index that finds earlier claims: look, check, mend, build.", rich_markup_mode=None
)


def register(app: typer.Typer) -> None:
    """Adds these commands."""
    app.add_typer(index)
    app.command(epilog="Example: vouchgate expire --database-url sqlite:///vouchgate.db")(expire)


@index.command("status", epilog="Example: vouchgate index status --database-url sqlite:///vouchgate.db")
def index_status(database_url: operator.DatabaseUrl = None) -> None:
    """Show what the index was built for, how large it is, and whether another is under way."""
    from vouchgate.cli import maintain

    raise typer.Exit(maintain.status(operator.settings_from(database_url=database_url)))


@index.command("build", epilog="Example: vouchgate index build --policy strict.toml")
def index_build(database_url: operator.DatabaseUrl = None, policy: operator.PolicyFile = None) -> None:
    """Build the index for the policy's threshold.

    For a change of threshold ahead of a restart. It may be stopped at any time and goes on next time. A service
    that still runs with the old threshold queues every claim from the moment the new index is in use.
    """
    from vouchgate.cli import maintain

    raise typer.Exit(maintain.build(operator.settings_from(database_url=database_url, policy=policy)))


@index.command("verify", epilog="Example: vouchgate index verify --owner ada")
def index_verify(owner: Owner = None, database_url: operator.DatabaseUrl = None) -> None:
    """Check that the index fits what is stored.

    Every active memory and every waiting item must be found by each of its keys, and nothing else may be in it.
    Prints the first faults; the exit status is 1 when there is one. The service may go on meanwhile.
    """
    from vouchgate.cli import maintain

    raise typer.Exit(maintain.verify(operator.settings_from(database_url=database_url), owner))


@index.command("repair", epilog="Example: vouchgate index repair --owner ada")
def index_repair(owner: Owner = None, database_url: operator.DatabaseUrl = None) -> None:
    """Put into the index what is missing, and take out what should not be there.

    The index of similar memories is made anew too. The service may go on meanwhile.
    """
    from vouchgate.cli import maintain

    raise typer.Exit(maintain.repair(operator.settings_from(database_url=database_url), owner))


def expire(database_url: operator.DatabaseUrl = None) -> None:
    """End what is past its time: waiting items, and memories whose horizon has passed.

    The service does the same every minute.
    """
    from vouchgate.cli import maintain

    raise typer.Exit(maintain.expire(operator.settings_from(database_url=database_url)))
