"""`vouchgate webhook`: where owners are told of what waits. A new secret is the only thing on standard output."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

from vouchgate.cli.database import open_store
from vouchgate.cli.output import FAILED, USAGE, Failure, hint, say, show_table, write_json
from vouchgate.cli.tokens import ACTOR
from vouchgate.ingest.policy import load_policy
from vouchgate.service import open_webhooks
from vouchgate.settings import Settings
from vouchgate.storage.outgoing import webhooks
from vouchgate.storage.outgoing.webhooks import Webhook
from vouchgate.workers.webhooks import POST_SECONDS, decide_retry, describe_outcome
from vouchgate.workers.webhooks import SendResult as Sent


def create(settings: Settings, *, owner: str, url: str) -> int:
    """Makes a webhook and prints its secret, this once."""
    with open_store(settings) as store:
        try:
            made, secret = webhooks.create(store, owner_id=owner, url=url, actor=ACTOR, now=datetime.now(UTC))
        except ValueError as error:
            raise Failure(str(error), USAGE) from error
    print(secret, flush=True)
    hint(
        f"Webhook {made.id} made for the owner {made.owner_id}. The secret is shown this once; the receiver needs "
        "it to know that messages are real."
    )
    if made.told_seq == 1:
        hint("Nothing has ever happened for this owner. If that is a surprise, the id may be mistyped.")
    if made.url.startswith("http:"):
        hint("The URL is not https: whoever is on the way can read the messages.")
    if settings.offline:
        hint("The service is set to be offline: as long as it is, nothing is sent.")
    hint(f"Try it: vouchgate webhook test {made.id}")
    return 0


def show(settings: Settings, *, as_json: bool) -> int:
    """Every webhook without its secret, oldest first."""
    with open_store(settings) as store, store.read() as connection:
        found = webhooks.listing(connection)
    if as_json:
        for hook in found:
            write_json(_fields(hook, settings))
        return 0
    if not found:
        hint("There is no webhook. Make one: vouchgate webhook create --owner ID --url URL")
        return 0
    rows = [(hook.id, hook.owner_id, hook.url, _state(hook, settings)) for hook in found]
    show_table(("id", "owner", "url", "state"), rows)
    return 0


def _fields(hook: Webhook, settings: Settings) -> dict[str, Any]:
    return hook.model_dump(mode="json") | {"state": _state(hook, settings)}


def _state(hook: Webhook, settings: Settings) -> str:
    if hook.due_at is None:
        tries = "1 try" if hook.attempts == 1 else f"{hook.attempts} tries"
        return f"given up after {tries} since {_time(hook.failing_since)}: {hook.last_error}"
    if settings.offline:
        return "not sent: offline"
    if hook.failing_since is not None:
        return (
            f"not answered since {_time(hook.failing_since)}, "
            f"next try {_time(hook.due_at)}: {hook.last_error}"
        )
    return "well"


def _time(at: datetime | None) -> str:
    return "-" if at is None else f"{at:%Y-%m-%d %H:%M}Z"


def remove(settings: Settings, webhook_id: str) -> int:
    """Ends a webhook. Raises Failure when there is none of this id."""
    with open_store(settings) as store:
        known = webhooks.remove(store, webhook_id, actor=ACTOR, now=datetime.now(UTC))
    if not known:
        raise _unknown(webhook_id)
    hint(f"Webhook {webhook_id} is removed. A message under way at this moment may still arrive.")
    return 0


def resume(settings: Settings, webhook_id: str) -> int:
    """Has a webhook try again. Raises Failure when there is none of this id."""
    with open_store(settings) as store:
        known = webhooks.resume(store, webhook_id, datetime.now(UTC))
    if not known:
        raise _unknown(webhook_id)
    hint(f"Webhook {webhook_id} tries again, from where it stopped, as soon as a service runs.")
    return 0


def test(settings: Settings, webhook_id: str) -> int:
    """Sends a message without content now, and prints what came of it. Raises Failure when there is no webhook
    of this id, or nothing can be sent."""
    if settings.offline:
        raise Failure("nothing is sent, because the setting VOUCHGATE_OFFLINE is on")
    policy = load_policy(settings.policy)
    with open_store(settings) as store:
        with store.read() as connection:
            to = webhooks.endpoint(connection, webhook_id)
        if to is None:
            raise _unknown(webhook_id)
        sender = open_webhooks(settings, policy, store)
        hint(f"Sending, and waiting {POST_SECONDS:g} seconds at most.")
        outcome = asyncio.run(sender.test(to))
    if decide_retry(outcome, "", 0, datetime.now(UTC)).result is Sent.TOLD:
        say(f"Taken in: {describe_outcome(outcome)}.")
        return 0
    say(f"Not taken in: {describe_outcome(outcome)}.")
    return FAILED


def _unknown(webhook_id: str) -> Failure:
    return Failure(f"there is no webhook {webhook_id!r}; vouchgate webhook list shows the ids")
