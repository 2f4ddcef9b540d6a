"""`vouchgate impact`, `recheck` and `memory retract`: what rests on a source, and what an operator does about all of
it, straight on the database."""
# ruff: noqa: PLC0415  (a command loads what it needs when it runs)

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from vouchgate.cli import operator
from vouchgate.cli.identity.tokens import ACTOR
from vouchgate.cli.output import FAILED, complain, one_line, say, write_json

if TYPE_CHECKING:
    from vouchgate.ingest.claims.impact import Impact
    from vouchgate.ingest.claims.memory import Memory
    from vouchgate.ingest.claims.waiting import PendingMemory
    from vouchgate.settings import Settings
    from vouchgate.storage.store import Store

_HELP = "A citation in any spelling, a commit, an address, a host, a publisher, a repository."
SourceText = Annotated[str, typer.Argument(metavar="SOURCE", help=_HELP)]
Named = Annotated[str, typer.Option("--source", metavar="SOURCE", help=_HELP)]
Owner = Annotated[str | None, typer.Option(metavar="ID", help="Of this owner alone. [default: of each]")]

memory = typer.Typer(name="memory", help="What is stored.", rich_markup_mode=None)


def register(app: typer.Typer) -> None:
    """Adds these commands."""
    app.command(epilog="Example: vouchgate impact ADR-0006")(impact)
    app.command(epilog="Example: vouchgate recheck --source docs.example.org")(recheck)
    app.add_typer(memory)


@contextmanager
def _opened(settings: Settings, owner: str | None) -> Iterator[tuple[Store, list[str]]]:
    """The store, and the owners that are meant. Raises Failure for one that there is not."""
    from vouchgate.cli.database import open_store, refuse_unknown_owner
    from vouchgate.cli.looking.numbers import all_owners

    with open_store(settings) as store:
        with store.read() as connection:
            refuse_unknown_owner(connection, owner)
            named = list(all_owners(connection)) if owner is None else [owner]
        yield store, named


def impact(
    source: SourceText,
    *,
    owner: Owner = None,
    limit: Annotated[int, typer.Option(min=1, max=200, metavar="N", help="At most so many of each.")] = 50,
    after: Annotated[str | None, typer.Option(metavar="ID", help="Memories before this one.")] = None,
    database_url: operator.DatabaseUrl = None,
    as_json: operator.Json = False,
) -> None:
    """Say what rests on a source, alone or with others, and what was done since.

    It reads the database and needs no token. Status 0 also where nothing rests on it.
    """
    from vouchgate.review.trust.impact import impact_of

    with _opened(operator.settings_for_texts(database_url=database_url), owner) as (store, owners):
        now = datetime.now(UTC)
        every = [impact_of(store, each, source, now, after=after, limit=limit) for each in owners]
    found = [one for one in every if any(one.counts.values())]
    for one in found:
        write_json(one.model_dump(mode="json")) if as_json else say("\n".join(_lines(one)))
    if not found and not as_json:
        say("Nothing rests on it.")


def _lines(found: Impact) -> Iterator[str]:
    counted = (f"{many} {what}" for what, many in found.counts.items() if many)
    yield f"{one_line(found.owner_id)}: {', '.join(counted)}"
    both: list[PendingMemory | Memory] = [*found.waiting, *found.memories]
    for one in both:
        rests = "alone" if one.id in found.alone else "with others"
        yield f"{one.id}  {one.status}, since {one.created_at:%Y-%m-%d}, rests on it {rests}"
        yield f"  {one_line(one.content)}"
        yield from (f"  {one_line(why)}" for why in _since(one) if why)
    if found.next is not None:
        yield f"There may be more: --owner {one_line(found.owner_id)} --after {found.next}"


def _since(one: PendingMemory | Memory) -> tuple[str | None, ...]:
    """What was done about it, in words."""
    names = ("stale_reason", "lowered_reason", "retracted_reason")
    return tuple(getattr(one, name, None) for name in names)


def recheck(*, source: Named, owner: Owner = None, database_url: operator.DatabaseUrl = None) -> None:
    """Have the sources of all that rests on this one read again now, by the running service."""
    from vouchgate.review.trust import impact as acts

    with _opened(operator.settings_for_texts(database_url=database_url), owner) as (store, owners):
        due = sum(acts.recheck(store, each, source, datetime.now(UTC)) for each in owners)
    say(f"{due} to be looked at again now.")


@memory.command("retract", epilog="Example: vouchgate memory retract --source ADR-0006 --reason 'withdrawn'")
def retract(
    *,
    source: Named,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Its owner is shown it.")],
    owner: Owner = None,
    database_url: operator.DatabaseUrl = None,
    policy: operator.PolicyFile = None,
) -> None:
    """Propose to its owner that each memory in force that rests on a source be retracted.

    Nothing goes out of force by that: each waits in its owner's queue as a removal. Status 1: a queue is full.
    """
    from vouchgate.ingest.data.policy_file import load_policy
    from vouchgate.review.trust.impact import propose_retraction

    settings = operator.settings_for_texts(database_url=database_url, policy=policy)
    rules, now, full = load_policy(settings.policy), datetime.now(UTC), False
    with _opened(settings, owner) as (store, owners):
        for each in owners:
            done = propose_retraction(store, each, source, rules, by=ACTOR, reason=reason, now=now)
            if done.asked or done.before or done.refused:
                say(f"{one_line(each)}: {done.asked} proposed; {done.before} wait for that already.")
            if done.refused:
                full = True
                complain(f"not all could be proposed to {one_line(each)}: {done.refused}")
    if full:
        raise typer.Exit(FAILED)
