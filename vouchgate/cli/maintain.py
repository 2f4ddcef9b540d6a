"""`vouchgate index …` and `vouchgate expire`: what an operator does to the indexes while the service runs."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from fractions import Fraction

from vouchgate.cli.database import open_store
from vouchgate.cli.output import FAILED, complain, say
from vouchgate.cli.progress import Progress, of_the_index
from vouchgate.ingest.dedup.signature import VERSION
from vouchgate.ingest.policy import load_policy
from vouchgate.review import expiry
from vouchgate.review.queue import ReviewQueue
from vouchgate.settings import Settings, database_to_open
from vouchgate.storage.dedup import repair as repairs
from vouchgate.storage.dedup import upkeep
from vouchgate.storage.dedup.reindex import reindex
from vouchgate.storage.dedup.upkeep import Checked, IndexStatus
from vouchgate.storage.engine import migrate, open_engine, reading


def status(settings: Settings) -> int:
    """What the dedup index is, and whether another is under way. Builds nothing."""
    engine = open_engine(database_to_open(settings))
    try:
        migrate(engine)
        with reading(engine) as connection:
            found = upkeep.status(connection)
    finally:
        engine.dispose()
    for line in _status_lines(found):
        say(line)
    return 0


def _status_lines(found: IndexStatus) -> list[str]:
    threshold = "none, or another version's" if found.threshold is None else _number(found.threshold)
    lines = [
        f"threshold   {threshold}",
        f"version     {VERSION}",
        f"generation  {'-' if found.generation is None else found.generation}",
        f"rows        {found.rows:,}",
        f"templates   {found.templates:,}",
        f"items       {found.items:,}",
    ]
    if found.building is not None:
        asked, done = found.building
        share = f"{done:,} of {found.items:,} items"
        lines.append(
            f"building    one for {_number(asked)}: {share}; `vouchgate index build` goes on with it"
        )
    if found.cleaning is not None:
        lines.append(f"cleaning    generation {found.cleaning}; `vouchgate index build` goes on with it")
    return lines


def _number(threshold: Fraction) -> str:
    return f"{float(threshold):g}"


def build(settings: Settings) -> int:
    """Builds the index for the policy's threshold and makes it the one in use."""
    threshold = load_policy(settings.policy).threshold
    engine = open_engine(database_to_open(settings))
    try:
        migrate(engine)
        with of_the_index() as progress:
            reindex(engine, threshold, progress)
    finally:
        engine.dispose()
    say(f"The dedup index is built for the threshold {_number(threshold)}.")
    return 0


def verify(settings: Settings, owner_id: str | None) -> int:
    """Compares index and rows; the first faults are a line each."""
    with open_store(settings) as store, Progress("rows and items looked at") as progress:
        checked = upkeep.verify(store, owner_id, lambda so_far: progress(so_far.rows + so_far.items))
    _show_faults(checked)
    say(_check_summary(checked))
    if checked.faults:
        complain(f"the dedup index has {checked.faults:,} faults; run `vouchgate index repair`")
        return FAILED
    say("The dedup index fits what is stored.")
    return 0


def repair(settings: Settings, owner_id: str | None) -> int:
    """Mends the dedup index, then makes the similar index anew."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    with open_store(settings) as store:
        with Progress("rows and items looked at") as progress:
            done = repairs.repair(
                store, owner_id, lambda so_far: progress(so_far.left.rows + so_far.left.items)
            )
        with Progress("memories in the similar index") as progress:
            similar = repairs.rebuild_similar(store, owner_id, progress)
    mended = done.mended
    say(
        f"Put in {mended.missing:,} items, took out {mended.strays:,} rows and {mended.templates:,} templates."
    )
    say(f"Made the similar index anew for {similar:,} memories.")
    say(_check_summary(done.left))
    if done.left.faults:
        _show_faults(done.left)
        complain(f"the dedup index still has {done.left.faults:,} faults; run `vouchgate index repair` again")
        return FAILED
    return 0


def expire(settings: Settings) -> int:
    """Ends what is past its time now."""
    with open_store(settings) as store:
        done = expiry.expire(ReviewQueue(store, load_policy(settings.policy)), datetime.now(UTC))
    expired = f"Expired {done.items:,} waiting items and {done.memories:,} memories"
    say(f"{expired}; forgot {done.readings:,} readings of sources.")
    return 0


def _check_summary(checked: Checked) -> str:
    return f"Looked at {checked.items:,} items, {checked.rows:,} rows and {checked.templates:,} templates."


def _show_faults(checked: Checked) -> None:
    for fault in checked.first:
        say(str(fault))
    if checked.faults > len(checked.first):
        say(f"and {checked.faults - len(checked.first):,} more")
