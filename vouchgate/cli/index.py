"""`vouchgate index …` and `vouchgate expire`: what an operator does to the indexes while the service runs."""
# ruff: noqa: PLC0415  (a command loads what it needs when it runs)

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from vouchgate.cli import operator
from vouchgate.cli.output import FAILED, complain, say
from vouchgate.cli.progress import Progress, of_the_index

if TYPE_CHECKING:
    from vouchgate.storage.dedup.upkeep import Checked

Owner = Annotated[str | None, typer.Option(metavar="ID", help="Only this owner's. [default: all owners]")]

index = typer.Typer(
    name="index", help="The index that finds earlier claims: look, check, mend, build.", rich_markup_mode=None
)


def register(app: typer.Typer) -> None:
    """Adds these commands."""
    app.add_typer(index)
    app.command(epilog="Example: vouchgate expire --database-url sqlite:///vouchgate.db")(expire)


@index.command("status", epilog="Example: vouchgate index status --database-url sqlite:///vouchgate.db")
def status(database_url: operator.DatabaseUrl = None) -> None:
    """Show what the index was built for, how large it is, and whether another is under way."""
    from vouchgate.cli.database import open_existing
    from vouchgate.ingest.dedup.signature import VERSION
    from vouchgate.storage.dedup import upkeep
    from vouchgate.storage.engine import reading

    engine = open_existing(operator.settings_from(database_url=database_url))
    try:
        with reading(engine) as connection:
            found = upkeep.status(connection)
    finally:
        engine.dispose()
    threshold = "none, or another version's" if found.threshold is None else f"{float(found.threshold):g}"
    say(f"threshold   {threshold}")
    say(f"version     {VERSION}")
    say(f"generation  {'-' if found.generation is None else found.generation}")
    say(f"rows        {found.rows:,}")
    say(f"templates   {found.templates:,}")
    say(f"items       {found.items:,}")
    goes_on = "`vouchgate index build` goes on with it"
    if found.building is not None:
        asked, done = found.building
        say(f"building    one for {float(asked):g}: {done:,} of {found.items:,} items; {goes_on}")
    if found.cleaning is not None:
        say(f"cleaning    generation {found.cleaning}; {goes_on}")


@index.command("build", epilog="Example: vouchgate index build --policy strict.toml")
def build(database_url: operator.DatabaseUrl = None, policy: operator.PolicyFile = None) -> None:
    """Build the index for the policy's threshold.

    For a change of threshold ahead of a restart. It may be stopped at any time and goes on next time. A service
    that still runs with the old threshold queues every claim from the moment the new index is in use.
    """
    from vouchgate.cli.database import open_existing
    from vouchgate.ingest.data.policy_file import load_policy
    from vouchgate.storage.dedup.reindex import reindex

    settings = operator.settings_from(database_url=database_url, policy=policy)
    threshold = load_policy(settings.policy).threshold
    engine = open_existing(settings)
    try:
        with of_the_index() as progress:
            reindex(engine, threshold, progress)
    finally:
        engine.dispose()
    say(f"The dedup index is built for the threshold {float(threshold):g}.")


@index.command("verify", epilog="Example: vouchgate index verify --owner ada")
def verify(owner: Owner = None, database_url: operator.DatabaseUrl = None) -> None:
    """Check that the index fits what is stored.

    Every active memory and every waiting item must be found by each of its keys, and nothing else may be in it.
    Prints the first faults; the exit status is 1 when there is one. The service may go on meanwhile.
    """
    from vouchgate.cli.database import open_store, refuse_unknown_owner
    from vouchgate.storage.dedup import upkeep

    settings = operator.settings_from(database_url=database_url)
    with open_store(settings) as store:
        with store.read() as connection:
            refuse_unknown_owner(connection, owner)
        with Progress("rows and items looked at") as progress:
            checked = upkeep.verify(store, owner, lambda so_far: progress(so_far.rows + so_far.items))
    _show(checked)
    if checked.faults:
        complain(f"the dedup index has {checked.faults:,} faults; run `vouchgate index repair`")
        raise typer.Exit(FAILED)
    say("The dedup index fits what is stored.")


@index.command("repair", epilog="Example: vouchgate index repair --owner ada")
def repair(owner: Owner = None, database_url: operator.DatabaseUrl = None) -> None:
    """Put into the index what is missing, and take out what should not be there.

    The index of similar memories and that of the words of memories are made anew too. The service may go on meanwhile.
    """
    import logging

    from vouchgate.cli.database import open_store, refuse_unknown_owner
    from vouchgate.storage.dedup import upkeep
    from vouchgate.storage.dedup.upkeep import FaultKind
    from vouchgate.workers.word_index import rebuild

    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    with open_store(operator.settings_from(database_url=database_url)) as store:
        with store.read() as connection:
            refuse_unknown_owner(connection, owner)
        with Progress("rows and items looked at") as progress:
            mended, left = upkeep.repair(store, owner, lambda so_far: progress(so_far.rows + so_far.items))
        with Progress("memories in the similar index") as progress:
            similar = upkeep.rebuild_similar(store, owner, progress)
        with Progress("entries of the log whose memories are in the index of words") as progress:
            rebuild(store, owner, progress)
    say(
        f"Put in {mended[FaultKind.MISSING]:,} items, took out {mended[FaultKind.STRAY]:,} rows "
        f"and {mended[FaultKind.TEMPLATE]:,} templates."
    )
    say(f"Made the similar index anew for {similar:,} memories, and the index of their words.")
    _show(left)
    if left.faults:
        complain(f"the dedup index still has {left.faults:,} faults; run `vouchgate index repair` again")
        raise typer.Exit(FAILED)


def expire(database_url: operator.DatabaseUrl = None) -> None:
    """End what is past its time: waiting items, and memories whose horizon has passed.

    The service does the same every minute.
    """
    from vouchgate.cli.database import open_store
    from vouchgate.ingest.data.policy_file import load_policy
    from vouchgate.review.ending import expiry
    from vouchgate.review.queue import ReviewQueue

    settings = operator.settings_from(database_url=database_url)
    with open_store(settings) as store:
        done = expiry.expire(ReviewQueue(store, load_policy(settings.policy)), datetime.now(UTC))
    expired = f"Expired {done.items:,} waiting items and {done.memories:,} memories"
    say(f"{expired}; forgot {done.readings:,} readings of sources.")


def _show(checked: Checked) -> None:
    for fault in checked.first:
        say(str(fault))
    if checked.faults > len(checked.first):
        say(f"and {checked.faults - len(checked.first):,} more")
    say(f"Looked at {checked.items:,} items, {checked.rows:,} rows and {checked.templates:,} templates.")
