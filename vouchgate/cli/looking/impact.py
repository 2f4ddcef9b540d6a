"""`vouchgate impact`, `recheck` and `memory retract`: what rests on a source, and what an operator does about all of
it, straight on the database."""
# ruff: noqa: PLC0415  (a command loads what it needs when it runs)

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from vouchgate.cli import operator
from vouchgate.cli.identity.tokens import ACTOR
from vouchgate.cli.output import FAILED, Failure, complain, one_line, say, write_json

if TYPE_CHECKING:
    from vouchgate.ingest.claims.impact import ImpactCounts, Resting
    from vouchgate.storage.store import Store

_HELP = "A citation in any spelling, a commit, an address, a host, a publisher, a repository."
SourceText = Annotated[str, typer.Argument(metavar="SOURCE", help=_HELP)]
Named = Annotated[str, typer.Option("--source", metavar="SOURCE", help=_HELP)]
Owner = Annotated[str | None, typer.Option(metavar="ID", help="Of this owner alone. [default: of all]")]

memory = typer.Typer(name="memory", help="What is stored.", rich_markup_mode=None)


def register(app: typer.Typer) -> None:
    """Adds these commands."""
    app.command(epilog="Example: vouchgate impact ADR-0006")(impact)
    app.command(epilog="Example: vouchgate recheck --source docs.example.org")(recheck)
    app.add_typer(memory)


def _owners(store: Store, owner: str | None) -> frozenset[str] | None:
    from vouchgate.storage.identity import owners

    if owner is None:
        return None
    with store.read() as connection:
        if not owners.is_known(connection, owner):
            raise Failure(f"there is no owner {owner!r}; vouchgate owners list shows them")
    return frozenset({owner})


def impact(
    source: SourceText,
    *,
    owner: Owner = None,
    limit: Annotated[int, typer.Option(min=1, max=200, metavar="N", help="At most so many of each.")] = 50,
    after: Annotated[str | None, typer.Option(metavar="ID", help="Show what comes after this one.")] = None,
    database_url: operator.DatabaseUrl = None,
    as_json: operator.Json = False,
) -> None:
    """Say what rests on a source, alone or with others, and what was done since.

    It reads the database and needs no token. Exit status 0, also where nothing rests on it.
    """
    from vouchgate.cli.database import open_store
    from vouchgate.review.trust.impact import impact_of

    with open_store(operator.settings_from(database_url=database_url)) as store:
        found = impact_of(store, source, _owners(store, owner), datetime.now(UTC), after=after, limit=limit)
    if as_json:
        write_json(found.model_dump(mode="json"))
        return
    say(_summary(found.counts))
    for one in (*found.waiting, *found.memories):
        say("\n".join(_lines(one)))
    if found.next is not None:
        say(f"There may be more: --after {found.next}")


def _summary(counts: ImpactCounts) -> str:
    said = [f"{many} {what}" for what, many in counts.model_dump().items() if many]
    return f"{', '.join(said)}." if said else "Nothing rests on it."


def _lines(one: Resting) -> list[str]:
    others = {0: "on nothing else", 1: "and on one other"}.get(one.others, f"and on {one.others} others")
    lines = [
        f"{one.id}  {one.status}, since {one.created_at:%Y-%m-%d}, of {one_line(one.owner_id)}",
        f"  claim   {one_line(one.content)}",
        f"  rests   {'found by the gate, ' if one.harvested else ''}{others}",
    ]
    since = {
        "stale": one.stale_reason,
        "lowered": one.lowered_reason,
        "retracted": one.retracted_reason,
        "replaced": one.superseded_by and f"by {one.superseded_by}",
        "next": one.next_check and f"checked again at {one.next_check:%Y-%m-%d %H:%M}Z",
    }
    return lines + [f"  {word:7} {one_line(what)}" for word, what in since.items() if what]


def recheck(
    *,
    source: Named,
    owner: Owner = None,
    database_url: operator.DatabaseUrl = None,
) -> None:
    """Have the sources of all that rests on this one read again now, by the running service."""
    from vouchgate.cli.database import open_store
    from vouchgate.review.trust import impact as acts

    with open_store(operator.settings_from(database_url=database_url)) as store:
        due = acts.recheck(store, source, _owners(store, owner), datetime.now(UTC))
    say(f"{due} to be looked at again now.")


@memory.command("retract", epilog="Example: vouchgate memory retract --source ADR-0006 --reason 'withdrawn'")
def retract(
    *,
    source: Named,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Its owners are shown it.")],
    owner: Owner = None,
    database_url: operator.DatabaseUrl = None,
    policy: operator.PolicyFile = None,
) -> None:
    """Propose to their owners that each memory in force that rests on a source be retracted.

    Nothing goes out of force by that: each waits in its owner's queue as a removal. Exit status 1: an owner's queue is
    full, and the rest can be proposed later by the same command.
    """
    from vouchgate.cli.database import open_store
    from vouchgate.ingest.data.policy_file import load_policy
    from vouchgate.review.trust import impact as acts

    settings = operator.settings_from(database_url=database_url, policy=policy)
    with open_store(settings) as store:
        done = acts.propose_retraction(
            store,
            source,
            _owners(store, owner),
            load_policy(settings.policy),
            by=ACTOR,
            reason=reason,
            now=datetime.now(UTC),
        )
    say(f"{done.asked} proposed to be retracted; {done.before} wait for that already.")
    if done.refused:
        complain(f"not all could be proposed: {done.refused}")
        raise typer.Exit(FAILED)
