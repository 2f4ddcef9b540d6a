"""Building the dedup index for another threshold while everybody goes on reading and writing.

The new index grows beside the one in use: writers put what is new into both (`storage.claims.submit`), and this job
adds what was there before, a batch a transaction. Its place is kept in the database, so a job that was
stopped goes on where it was, and several processes may work at it. When all is in, one transaction makes
the new index the one in use; the rows of the old one are taken out afterwards.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any, NamedTuple

from sqlalchemy import Connection, Engine, Table, bindparam, delete, func, select, tuple_, update
from sqlalchemy.exc import DBAPIError

from vouchgate.ingest.claims.likeness import ItemKind, Neighbour
from vouchgate.ingest.dedup.signature import signature_keys
from vouchgate.ingest.language.words import tokens
from vouchgate.storage.dedup.builds import BUILT, META, NEXT, OLD, Build, build_of, hold_alone
from vouchgate.storage.dedup.in_force import IN_FORCE
from vouchgate.storage.dedup.window import Candidate, DedupIndexView
from vouchgate.storage.engine import is_busy, reading, writing
from vouchgate.storage.errors import StorageError, StoreBusy
from vouchgate.storage.tables.claims import DedupKeyRow, DedupTemplateRow

BATCH = 200  # items in one transaction: other writers wait some 50 ms for it
CLEAN_BATCH = 5000  # rows that one transaction looks through for those of the old index
ATTEMPTS = 30  # of a transaction that other writers were in the way of
# The part of a step's time that the job then leaves to others, and the least of it in seconds. SQLite's writers
# ask for the lock every 2 to 20 ms (`storage.engine`), so without a pause they would hardly ever find it free.
REST, LEAST_REST = 0.5, 0.02
ANOTHER_JOB = timedelta(
    seconds=60
)  # an unfinished job for another threshold is dropped when it rested so long

_KEYS: Table = DedupKeyRow.metadata.tables["dedup_key"]
_TEMPLATES: Table = DedupTemplateRow.metadata.tables["dedup_template"]
_STATE = select(META.c.name, META.c.value).where(META.c.name.in_([BUILT, NEXT, OLD]))
_SET = update(META).where(META.c.name == bindparam("of_name")).values(value=bindparam("to_value"))

_ALL = 2**63  # as many items as there are

Report = Callable[[int, int], None]  # items done, items in all


class BuildJob(NamedTuple):
    """What the row of an index that is being built says: which, how far, and when it last went on. Items up to
    (`owner_id`, `item_id`) are in, of this kind; memories come before pending items."""

    build: Build
    kind: ItemKind
    owner_id: str
    item_id: str
    done: int
    at: datetime

    def __str__(self) -> str:
        place = [self.kind.value, self.owner_id, self.item_id, self.done, self.at.isoformat()]
        return f"{self.build} {json.dumps(place)}"


class IndexState(NamedTuple):
    """The index in use, the job that builds another, and the generation that is being taken out. None: there
    is none, or it is of another version of the program."""

    built: Build | None
    job: BuildJob | None
    old: int | None


class _Step(NamedTuple):
    """What one transaction did. `done` is how many items are in; None when that is no news."""

    over: bool
    done: int | None = None


def state_of(connection: Connection) -> IndexState:
    """How far the indexes are."""
    state = dict(tuple(row) for row in connection.execute(_STATE))
    old = int(state[OLD].split(" ", 1)[0]) if state.get(OLD) else None
    return IndexState(build_of(state.get(BUILT)), _job(state.get(NEXT, "")), old)


def is_ready(connection: Connection, threshold: Fraction) -> bool:
    """Whether the index in use is for this threshold and no old one is left to take out. One that is being
    built for another threshold, ahead of a change of policy, is left in peace."""
    built, _, old = state_of(connection)
    return built is not None and built.threshold == threshold and old is None


def count_items(connection: Connection) -> int:
    """How many items an index has to have: active memories and what waits."""
    return sum(_count(connection, kind) for kind in ItemKind)


def reindex(engine: Engine, threshold: Fraction, report: Report = lambda done, total: None) -> None:
    """Makes the index one for `threshold`, from wherever an earlier job left off.

    An unfinished job for another threshold is dropped. Raises StoreBusy when other writers never let it in,
    StorageError when another process is at such a job, or when the database fails.
    """
    try:
        with reading(engine) as connection:
            total = count_items(connection)
    except DBAPIError as error:
        raise StorageError(f"the dedup index could not be built: {error.orig}") from error
    done = 0
    while True:
        begun = time.monotonic()
        step = _one_step(engine, threshold)
        if step.over:
            return
        done = done if step.done is None else min(step.done, total)
        report(done, total)
        time.sleep(max(LEAST_REST, REST * (time.monotonic() - begun)))


def _one_step(engine: Engine, threshold: Fraction) -> _Step:
    """One transaction of the job."""
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(min(1.0, 0.05 * attempt))
        try:
            with writing(engine) as connection:
                hold_alone(connection)
                return _step(connection, threshold, datetime.now(UTC))
        except DBAPIError as error:
            if not is_busy(error):
                raise StorageError(f"the dedup index could not be built: {error.orig}") from error
            busy = error
    raise StoreBusy("other processes keep the database busy; start again to go on") from busy


def _step(connection: Connection, threshold: Fraction, now: datetime) -> _Step:
    state = dict(tuple(row) for row in connection.execute(_STATE))
    built, job = build_of(state[BUILT]), _job(state[NEXT])
    if state[OLD]:
        _clean(connection, state[OLD])
        return _Step(over=False, done=_ALL if built is not None and built.threshold == threshold else None)
    if state[NEXT] and (job is None or job.build.threshold != threshold):
        if job is not None and now - job.at < ANOTHER_JOB:
            raise StorageError(
                f"another process is building the index for the threshold {float(job.build.threshold):g};"
                " wait until it has finished, or stop it and start again a minute later"
            )
        _set(connection, OLD, _old(state[NEXT]))
        _set(connection, NEXT, "")
        return _Step(over=False)
    if built is not None and built.threshold == threshold:
        return _Step(over=True)
    if job is None:
        build = Build(threshold, (_generation(state[BUILT]) + 1) % 10_000)
        job = BuildJob(build, ItemKind.MEMORY, "", "", 0, now)
    finished, job = _batch(connection, job, now)
    if not finished:
        _set(connection, NEXT, str(job))
        return _Step(over=False, done=job.done)
    _set(connection, BUILT, str(job.build))
    _set(connection, NEXT, "")
    if not state[BUILT]:
        return _Step(over=True)
    _set(connection, OLD, _old(state[BUILT]))
    return _Step(over=False, done=job.done)


def _job(value: str) -> BuildJob | None:
    build = build_of(value)
    if build is None:
        return None
    kind, owner_id, item_id, done, at = json.loads(value.split(" ", 1)[1])
    return BuildJob(build, ItemKind(kind), owner_id, item_id, done, datetime.fromisoformat(at))


def _generation(value: str) -> int:
    """Of a build of whatever version; 0 when there is none."""
    return int(value.split(" ", maxsplit=1)[0].rsplit(":", 1)[1]) if value else 0


def _batch(connection: Connection, job: BuildJob, now: datetime) -> tuple[bool, BuildJob]:
    """Puts the next items into the new index; whether those were the last."""
    window = DedupIndexView(connection, job.build)
    room = BATCH
    while True:
        rows = connection.execute(
            _page(job.kind), {"owner": job.owner_id, "item": job.item_id, "most": room}
        ).all()
        claims = [
            (row, signature_keys(tokens(row.content), row.memory_type, job.build.threshold)) for row in rows
        ]
        window.prepare((row.owner_id, keys) for row, keys in claims)
        for row, keys in claims:
            neighbour = Neighbour(kind=job.kind, id=row.id, content=row.content)
            window.add(row.owner_id, Candidate(neighbour), keys)
        job = job._replace(done=job.done + len(rows), at=now)
        if rows:
            job = job._replace(owner_id=rows[-1].owner_id, item_id=rows[-1].id)
        room -= len(rows)
        if not room or job.kind is ItemKind.PENDING:
            window.write()
            return room > 0, job
        job = job._replace(kind=ItemKind.PENDING, owner_id="", item_id="")


def _page(kind: ItemKind) -> Any:
    table, in_force = IN_FORCE[kind]
    return (
        select(table.c.owner_id, table.c.id, table.c.memory_type, table.c.content)
        .where(
            in_force,
            tuple_(table.c.owner_id, table.c.id) > tuple_(bindparam("owner"), bindparam("item")),
        )
        .order_by(table.c.owner_id, table.c.id)
        .limit(bindparam("most"))
    )


def _count(connection: Connection, kind: ItemKind) -> int:
    table, in_force = IN_FORCE[kind]
    return connection.scalar(select(func.count()).select_from(table).where(in_force)) or 0


def _old(value: str) -> str:
    """What is to be cleaned: the generation, then the place up to which it is done."""
    return f"{_generation(value)} {json.dumps(['', -(2**63), ''])}"


def _clean(connection: Connection, old: str) -> None:
    """Takes the rows of an index that is not in use out of the next part of the table."""
    generation, place = int(old.split(" ", 1)[0]), json.loads(old.split(" ", 1)[1])
    columns = tuple_(_KEYS.c.owner_id, _KEYS.c.key, _KEYS.c.item_id)
    rest = columns > tuple_(*place)
    end = connection.execute(
        select(*columns.clauses).where(rest).order_by(*columns.clauses).offset(CLEAN_BATCH).limit(1)
    ).one_or_none()
    part = delete(_KEYS).where(_KEYS.c.generation == generation, rest)
    if end is not None:
        connection.execute(part.where(columns <= tuple_(*end)))
        _set(connection, OLD, f"{generation} {json.dumps(list(end))}")
    else:
        connection.execute(part)
        connection.execute(delete(_TEMPLATES).where(_TEMPLATES.c.generation == generation))
        _set(connection, OLD, "")


def _set(connection: Connection, name: str, value: str) -> None:
    connection.execute(_SET, {"of_name": name, "to_value": value})
