"""The commands that have owners told of what waits, and their options; what they do is in `vouchgate.cli.webhooks`."""
# ruff: noqa: PLC0415  (a command loads what it needs when it runs)

from __future__ import annotations

from typing import Annotated

import typer

from vouchgate.cli import operator

Id = Annotated[str, typer.Argument(metavar="ID", help="As in `webhook list`.")]

webhook = typer.Typer(name="webhook", help="Where owners are told of what waits.", rich_markup_mode=None)


def register(app: typer.Typer) -> None:
    """Adds these commands."""
    app.add_typer(webhook)


@webhook.command(
    "create", epilog="Example: vouchgate webhook create --owner me --url https://example.com/hook"
)
def webhook_create(
    *,
    owner: Annotated[str, typer.Option(metavar="ID", help="Whose queue it tells of.")],
    url: Annotated[str, typer.Option(metavar="URL", help="Where messages are sent to: https://…")],
    database_url: operator.DatabaseUrl = None,
) -> None:
    """Have an owner told of what waits.

    The secret that signs the messages is printed alone on standard output, and is shown this once.
    """
    from vouchgate.cli import webhooks as command

    raise typer.Exit(command.create(operator.settings_from(database_url=database_url), owner=owner, url=url))


@webhook.command("list", epilog="Example: vouchgate webhook list --json")
def webhook_list(database_url: operator.DatabaseUrl = None, as_json: operator.Json = False) -> None:
    """Show every webhook, without its secret, and how it does."""
    from vouchgate.cli import webhooks as command

    raise typer.Exit(command.show(operator.settings_from(database_url=database_url), as_json=as_json))


@webhook.command("test", epilog="Example: vouchgate webhook test ID")
def webhook_test(
    webhook_id: Id, database_url: operator.DatabaseUrl = None, policy: operator.PolicyFile = None
) -> None:
    """Send a message that says nothing, now, and print what came of it."""
    from vouchgate.cli import webhooks as command

    raise typer.Exit(
        command.test(operator.settings_from(database_url=database_url, policy=policy), webhook_id)
    )


@webhook.command("resume", epilog="Example: vouchgate webhook resume ID")
def webhook_resume(webhook_id: Id, database_url: operator.DatabaseUrl = None) -> None:
    """Try again at a webhook that was given up, or that waits for its next try."""
    from vouchgate.cli import webhooks as command

    raise typer.Exit(command.resume(operator.settings_from(database_url=database_url), webhook_id))


@webhook.command("remove", epilog="Example: vouchgate webhook remove ID")
def webhook_remove(webhook_id: Id, database_url: operator.DatabaseUrl = None) -> None:
    """End a webhook. What it had yet to tell is not told."""
    from vouchgate.cli import webhooks as command

    raise typer.Exit(command.remove(operator.settings_from(database_url=database_url), webhook_id))
