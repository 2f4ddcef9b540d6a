"""`vouchgate memory erase` and `vouchgate retention run`: what goes for good."""
# ruff: noqa: PLC0415  (a command loads what it needs when it runs)

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vouchgate.cli import operator
from vouchgate.cli.looking.impact import memory
from vouchgate.cli.output import USAGE, Failure, complain, say, show_table

if TYPE_CHECKING:
    from vouchgate.review.ending.erasing import Answer, Erasing
    from vouchgate.settings import Settings

retention = typer.Typer(name="retention", help="What is kept for a time only.", rich_markup_mode=None)


def register(app: typer.Typer) -> None:
    """Adds these commands."""
    app.add_typer(retention)


@contextmanager
def _opened(settings: Settings) -> Iterator[Erasing]:
    from vouchgate.cli.database import open_store
    from vouchgate.ingest.data.policy_file import load_policy
    from vouchgate.review.ending.erasing import Erasing
    from vouchgate.review.vouching.loading import load_rules
    from vouchgate.settings import erasures_file

    policy, rules = load_policy(settings.policy), load_rules(settings.owner_rules)
    with open_store(settings) as store:
        yield Erasing(store, policy, rules, erasures_file(settings))


@memory.command(
    "erase", epilog="Example: vouchgate memory erase mem_… --basis 'GDPR Art. 17(1)(b)' --owner ann"
)
def memory_erase(
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Memories, items or decisions.")
    ] = None,
    *,
    basis: Annotated[
        str, typer.Option(metavar="TEXT", help="The legal basis. It is kept, so without what is to go.")
    ] = "",
    owner: Annotated[
        str | None, typer.Option(metavar="ID", help="Whose it is; you act as the operator, without a token.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would go.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    again: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Erase what this list of erasures names, as after a restore."),
    ] = None,
    database_url: operator.DatabaseUrl = None,
    policy: operator.PolicyFile = None,
    token: operator.Token = None,
) -> None:
    """Erase for good what came of claims: texts, evidence, notes, copies, indexes. Proofs and counts stay.

    Nothing brings it back. Stores that got it are told. Where the owner's rules have several approve such a claim, as
    many must ask for it with the same words.
    """
    settings = operator.settings_from(database_url=database_url, policy=policy, token=token)
    if (again is None) != bool(ids and basis):
        raise typer.BadParameter("name what is to go and give --basis; or give --again FILE")
    with _opened(settings) as erasing:
        if again is not None:
            if not again.exists():
                raise Failure(f"there is no list {again}", USAGE)
            say(f"Erased again: {erasing.again(datetime.now(UTC), again)}.")
            for problem in erasing.problems():
                complain(problem)
            return
        found = _answer(erasing, settings, ids or [], basis, owner, dry_run=True)
        _show(found, "Would go", owner)
        if dry_run:
            return
        if not yes:
            if not sys.stdin.isatty():
                raise Failure("nothing brings it back: say --yes, or --dry-run first", USAGE)
            typer.confirm("Nothing brings it back. Erase it?", abort=True)
        _show(_answer(erasing, settings, ids or [], basis, owner, dry_run=False), "Gone", owner)


def _answer(
    erasing: Erasing, settings: Settings, ids: list[str], basis: str, owner: str | None, *, dry_run: bool
) -> Answer:
    from vouchgate.cli.review import open_review_session
    from vouchgate.review.ending.erasing import BY_OPERATOR

    now = datetime.now(UTC)
    if owner is not None:
        return erasing.erase([owner], ids, basis, BY_OPERATOR, now, dry_run=dry_run)
    with open_review_session(settings) as desk:
        principal = desk.principal
    return erasing.by_owner(principal, ids, basis, now, dry_run=dry_run)


def _show(answer: Answer, verb: str, owner: str | None) -> None:
    """Raises Failure for what was not done."""
    from vouchgate.review.ending.erasing import EraseAsked, Erased, ErasedBefore, EraseRefused

    match answer:
        case Erased():
            say(f"{verb}: " + ", ".join(f"{kind} {count}" for kind, count in answer.counts.items()) + ".")
            if answer.in_free_pages:
                complain(
                    "copies are in free pages of the database until tonight, or until `vouchgate db scrub`"
                )
        case EraseAsked(given, needed):
            say(f"Asked for: {given} of {needed}. Another person has to ask for it with the same words.")
        case ErasedBefore(tombstone):
            raise Failure(f"nothing is left of it. {tombstone}".rstrip("."))
        case EraseRefused(_, message):
            raise Failure(message.rstrip("."))
        case _ if owner is not None:
            raise Failure(f"the owner {owner!r} does not have all of this: look at the ids, and at --owner")
        case _:
            raise Failure(
                "one owner must have all of these, and you must be that owner or name it with --owner"
            )


@retention.command("run", epilog="Example: vouchgate retention run --dry-run --policy policy.toml")
def retention_run(
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count what would go.")] = False,
    database_url: operator.DatabaseUrl = None,
    policy: operator.PolicyFile = None,
) -> None:
    """Erase what the policy's [retention] keeps for a time only, as the service does by itself.

    The dry run counts source texts and documents as well, which have their days elsewhere in the policy.
    """
    with _opened(operator.settings_from(database_url=database_url, policy=policy)) as erasing:
        now = datetime.now(UTC)
        counts = erasing.expiring(now) if dry_run else erasing.retain(now)
        if not dry_run:
            erasing.scrub_if_due(now)
    show_table(("kind", "would go" if dry_run else "gone"), [(kind, str(n)) for kind, n in counts.items()])
