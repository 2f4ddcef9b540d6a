"""`groundgate index …` and `groundgate expire`: what an operator does to the indexes while the service runs."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from fractions import Fraction

from groundgate.cli.database import open_store
from groundgate.cli.output import FAILED, complain, say
from groundgate.cli.progress import Progress, of_the_index
from groundgate.settings import Settings
from ingest.policy import load_policy
from ingest.signature import VERSION
from review import expiry
from review.queue import ReviewQueue
from storage import repair as repairs
from storage import upkeep
from storage.engine import migrate, open_engine, reading
from storage.reindex import reindex
from storage.upkeep import Checked, IndexStatus


def status(settings: Settings) -> int:
    """What the dedup index is, and whether another is under way. Builds nothing."""
    engine = open_engine(settings.database_url)
    try:
        migrate(engine)
        with reading(engine) as connection:
            found = upkeep.status(connection)
    finally:
        engine.dispose()
    for line in _described(found):
        say(line)
    return 0


def _described(found: IndexStatus) -> list[str]:
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
            f"building    one for {_number(asked)}: {share}; `groundgate index build` goes on with it"
        )
    if found.cleaning is not None:
        lines.append(f"cleaning    generation {found.cleaning}; `groundgate index build` goes on with it")
    return lines


def _number(threshold: Fraction) -> str:
    return f"{float(threshold):g}"


def build(settings: Settings) -> int:
    """Builds the index for the policy's threshold and makes it the one in use."""
    threshold = load_policy(settings.policy).threshold
    engine = open_engine(settings.database_url)
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
    say(_looked_at(checked))
    if checked.faults:
        complain(f"the dedup index has {checked.faults:,} faults; run `groundgate index repair`")
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
    say(_looked_at(done.left))
    if done.left.faults:
        _show_faults(done.left)
        complain(
            f"the dedup index still has {done.left.faults:,} faults; run `groundgate index repair` again"
        )
        return FAILED
    return 0


def expire(settings: Settings) -> int:
    """Ends what is past its time now."""
    with open_store(settings) as store:
        done = expiry.expire(ReviewQueue(store, load_policy(settings.policy)), datetime.now(UTC))
    expired = f"Expired {done.items:,} waiting items and {done.memories:,} memories"
    say(f"{expired}; forgot {done.readings:,} readings of sources.")
    return 0


def _looked_at(checked: Checked) -> str:
    return f"Looked at {checked.items:,} items, {checked.rows:,} rows and {checked.templates:,} templates."


def _show_faults(checked: Checked) -> None:
    for fault in checked.first:
        say(str(fault))
    if checked.faults > len(checked.first):
        say(f"and {checked.faults - len(checked.first):,} more")
