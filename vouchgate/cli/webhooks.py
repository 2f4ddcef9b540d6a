"""`vouchgate webhook`: where owners are told of what happens. A new secret is the only thing on standard output."""
# ruff: noqa: PLC0415  (a command loads what it needs when it runs)

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from vouchgate.cli import operator
from vouchgate.cli.identity.tokens import ACTOR
from vouchgate.cli.output import FAILED, USAGE, Failure, hint, say, show_table, write_json

if TYPE_CHECKING:
    from vouchgate.storage.outgoing.webhooks import Webhook

Id = Annotated[str, typer.Argument(metavar="ID", help="As in `webhook list`.")]

webhook = typer.Typer(name="webhook", help="Where owners are told of what happens.", rich_markup_mode=None)


def register(app: typer.Typer) -> None:
    """Adds these commands."""
    app.add_typer(webhook)


@webhook.command(
    "create", epilog="Example: vouchgate webhook create --owner me --url https://example.com/hook"
)
def create(
    *,
    owner: Annotated[str, typer.Option(metavar="ID", help="Whose claims and memories it tells of.")],
    url: Annotated[str, typer.Option(metavar="URL", help="Where messages are sent to: https://…")],
    event: Annotated[
        list[str] | None,
        typer.Option(
            metavar="EVENT",
            help="review.waiting, memory.stored or memory.removed. Repeat it for several. [default: review.waiting]",
        ),
    ] = None,
    database_url: operator.DatabaseUrl = None,
) -> None:
    """Have an owner told of what waits, or send every memory of an owner to a URL, text and all.

    The secret that signs the messages is printed alone on standard output, and is shown this once.
    """
    from vouchgate.cli.database import open_store, refuse_unknown_owner
    from vouchgate.storage.outgoing import webhooks
    from vouchgate.storage.outgoing.webhooks import OF_MEMORIES, Event

    settings = operator.settings_from(database_url=database_url)
    events = {operator.word(name, Event, "--event") for name in event or [Event.WAITING.value]}
    with open_store(settings) as store:
        with store.read() as connection:
            refuse_unknown_owner(connection, owner)
        try:
            made, secret = webhooks.create(
                store, owner_id=owner, url=url, events=events, actor=ACTOR, now=datetime.now(UTC)
            )
        except ValueError as error:
            raise Failure(str(error), USAGE) from error
    print(secret, flush=True)
    hint(
        f"Webhook {made.id} made for the owner {made.owner_id}. The secret is shown this once; the receiver needs "
        "it to know that messages are real."
    )
    if not OF_MEMORIES.isdisjoint(events):
        hint("It gets memories from now on, with their text.")
    if made.url.startswith("http:"):
        hint("The URL is not https: whoever is on the way can read the messages.")
    if settings.offline:
        hint("The service is set to be offline: as long as it is, nothing is sent.")
    hint(f"Try it: vouchgate webhook test {made.id}")


@webhook.command("list", epilog="Example: vouchgate webhook list --json")
def show(database_url: operator.DatabaseUrl = None, as_json: operator.Json = False) -> None:
    """Show every webhook, without its secret, and how it does."""
    from vouchgate.cli.database import open_store
    from vouchgate.storage.outgoing import webhooks

    settings = operator.settings_from(database_url=database_url)
    with open_store(settings) as store, store.read() as connection:
        found = [(hook, _state(hook, offline=settings.offline)) for hook in webhooks.listing(connection)]
    if as_json:
        for hook, state in found:
            write_json(hook.model_dump(mode="json") | {"state": state})
    elif not found:
        hint("There is no webhook. Make one: vouchgate webhook create --owner ID --url URL")
    else:
        rows = [(hook.id, hook.owner_id, hook.url, " ".join(hook.events), state) for hook, state in found]
        show_table(("id", "owner", "url", "events", "state"), rows)


def _state(hook: Webhook, *, offline: bool) -> str:
    if "review.waiting" not in hook.events:
        return "not sent: offline" if offline else "see `delivery list`"
    if hook.due_at is None:
        tries = "1 try" if hook.attempts == 1 else f"{hook.attempts} tries"
        return f"given up after {tries} since {_time(hook.failing_since)}: {hook.last_error}"
    if offline:
        return "not sent: offline"
    if hook.failing_since is not None:
        return (
            f"not answered since {_time(hook.failing_since)}, "
            f"next try {_time(hook.due_at)}: {hook.last_error}"
        )
    return "well"


def _time(at: datetime | None) -> str:
    return "-" if at is None else f"{at:%Y-%m-%d %H:%M}Z"


@webhook.command("test", epilog="Example: vouchgate webhook test ID")
def test(
    webhook_id: Id, database_url: operator.DatabaseUrl = None, policy: operator.PolicyFile = None
) -> None:
    """Send a message that says nothing, now, and print what came of it."""
    import asyncio

    from vouchgate.cli.database import open_store
    from vouchgate.ingest.data.policy_file import load_policy
    from vouchgate.service import open_webhooks
    from vouchgate.storage.outgoing import webhooks
    from vouchgate.workers.webhooks import POST_SECONDS, SendResult, decide_retry, describe_outcome

    settings = operator.settings_from(database_url=database_url, policy=policy)
    if settings.offline:
        raise Failure("nothing is sent, because the setting VOUCHGATE_OFFLINE is on")
    loaded = load_policy(settings.policy)
    with open_store(settings) as store:
        with store.read() as connection:
            to = webhooks.endpoint(connection, webhook_id)
        if to is None:
            raise _unknown(webhook_id)
        sender = open_webhooks(settings, loaded, store)
        hint(f"Sending, and waiting {POST_SECONDS:g} seconds at most.")
        outcome = asyncio.run(sender.test(to))
    if decide_retry(outcome, "", 0, datetime.now(UTC)).result is not SendResult.TOLD:
        say(f"Not taken in: {describe_outcome(outcome)}.")
        raise typer.Exit(FAILED)
    say(f"Taken in: {describe_outcome(outcome)}.")


@webhook.command("resume", epilog="Example: vouchgate webhook resume ID")
def resume(webhook_id: Id, database_url: operator.DatabaseUrl = None) -> None:
    """Try again at a webhook that was given up, or that waits for its next try.

    Memories that were given up are put back by `delivery retry`.
    """
    from vouchgate.cli.database import open_store
    from vouchgate.storage.outgoing import webhooks

    with open_store(operator.settings_from(database_url=database_url)) as store:
        resumed = webhooks.resume(store, webhook_id, datetime.now(UTC))
    if resumed is None:
        raise _unknown(webhook_id)
    if resumed:
        hint(f"Webhook {webhook_id} tries again, from where it stopped, as soon as a service runs.")
    else:
        hint(
            f"Nothing for webhook {webhook_id} waits for another try. Memories that were given up are in "
            f"`vouchgate delivery list --state dead`, and `delivery retry` puts them back."
        )


@webhook.command("remove", epilog="Example: vouchgate webhook remove ID")
def remove(webhook_id: Id, database_url: operator.DatabaseUrl = None) -> None:
    """End a webhook. What it had yet to tell is not told."""
    from vouchgate.cli.database import open_store
    from vouchgate.storage.outgoing import webhooks

    with open_store(operator.settings_from(database_url=database_url)) as store:
        known = webhooks.remove(store, webhook_id, actor=ACTOR, now=datetime.now(UTC))
    if not known:
        raise _unknown(webhook_id)
    hint(f"Webhook {webhook_id} is removed. A message under way at this moment may still arrive.")


def _unknown(webhook_id: str) -> Failure:
    return Failure(f"there is no webhook {webhook_id!r}; vouchgate webhook list shows the ids")
