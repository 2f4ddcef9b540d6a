"""Building the dedup index for another threshold while everybody goes on reading and writing.

The new index grows beside the one in use: writers put what is new into both (`storage.submit`), and this job
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

from sqlalchemy import Connection, Engine, Table, and_, bindparam, delete, func, select, tuple_, update
from sqlalchemy.exc import DBAPIError

from ingest.checks.dedup import tokens
from ingest.signature import signature_keys
from ingest.types import ItemKind, MemoryStatus, Neighbour, ReviewStatus
from storage.builds import BUILT, META, NEXT, OLD, Build, build_of
from storage.engine import is_busy, reading, writing
from storage.errors import StorageError, StoreBusy
from storage.tables import DedupKeyRow, DedupTemplateRow, MemoryRow, PendingRow
from storage.window import Candidate, Window

BATCH = 500  # items in one transaction: other writers wait some 50 ms for it
CLEAN_BATCH = 5000  # rows of the old index taken out in one transaction
ATTEMPTS = 30  # of a transaction that other writers were in the way of
ANOTHER_JOB = timedelta(
    seconds=60
)  # an unfinished job for another threshold is dropped when it rested so long

_KEYS: Table = DedupKeyRow.metadata.tables["dedup_key"]
_TEMPLATES: Table = DedupTemplateRow.metadata.tables["dedup_template"]
_ACTIVE = {
    ItemKind.MEMORY: (MemoryRow.metadata.tables["memory"], MemoryStatus.ACTIVE.value),
    ItemKind.PENDING: (PendingRow.metadata.tables["pending"], ReviewStatus.PENDING.value),
}
_STATE = select(META.c.name, META.c.value).where(META.c.name.in_([BUILT, NEXT, OLD])).with_for_update()
_SET = update(META).where(META.c.name == bindparam("of_name")).values(value=bindparam("to_value"))

Report = Callable[[int, int], None]  # items done, items in all


class _Job(NamedTuple):
    """What the row of an index that is being built says: which, how far, and when it last went on."""

    build: Build
    kind: ItemKind
    owner_id: str
    item_id: str
    done: int
    at: datetime

    def __str__(self) -> str:
        place = [self.kind.value, self.owner_id, self.item_id, self.done, self.at.isoformat()]
        return f"{self.build} {json.dumps(place)}"


def is_ready(connection: Connection, threshold: Fraction) -> bool:
    """Whether the index in use is for this threshold and nothing is left to do."""
    state = dict(tuple(row) for row in connection.execute(select(META.c.name, META.c.value)))
    built = build_of(state.get(BUILT))
    return built is not None and built.threshold == threshold and not state.get(NEXT) and not state.get(OLD)


def reindex(engine: Engine, threshold: Fraction, report: Report = lambda done, total: None) -> None:
    """Makes the index one for `threshold`, from wherever an earlier job left off.

    Raises StoreBusy when other writers never let it in, StorageError when another process builds one for
    another threshold, or when the database fails.
    """
    with reading(engine) as connection:
        total = sum(_count(connection, kind) for kind in ItemKind)
    step: int | None = 0
    while step is not None:
        step = _one_step(engine, threshold)
        if step is not None:
            report(min(step, total), total)


def _one_step(engine: Engine, threshold: Fraction) -> int | None:
    """One transaction of the job: how many items are done, None when there is nothing left to do."""
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(min(1.0, 0.05 * attempt))
        try:
            with writing(engine) as connection:
                return _step(connection, threshold, datetime.now(UTC))
        except DBAPIError as error:
            if not is_busy(error):
                raise StorageError(f"the dedup index could not be built: {error.orig}") from error
            busy = error
    raise StoreBusy("other processes keep the database busy; start again to go on") from busy


def _step(connection: Connection, threshold: Fraction, now: datetime) -> int | None:
    state = dict(tuple(row) for row in connection.execute(_STATE))
    built, job = build_of(state[BUILT]), _job(state[NEXT])
    if state[NEXT] and (job is None or job.build.threshold != threshold):
        if job is not None and now - job.at < ANOTHER_JOB:
            raise StorageError(
                f"another process is building the index for the threshold {float(job.build.threshold):g};"
                " stop it, or wait until it has finished"
            )
        if not state[OLD]:
            _set(connection, OLD, _old(state[NEXT]))
            _set(connection, NEXT, "")
            return 0
    if state[OLD]:
        return _clean(connection, state[OLD])
    if built is not None and built.threshold == threshold:
        return None
    if job is None:
        build = Build(threshold, (_generation(state[BUILT]) + 1) % 10_000)
        job = _Job(build, ItemKind.MEMORY, "", "", 0, now)
    finished, job = _batch(connection, job, now)
    if not finished:
        _set(connection, NEXT, str(job))
        return job.done
    _set(connection, BUILT, str(job.build))
    _set(connection, NEXT, "")
    if not state[BUILT]:
        return None
    _set(connection, OLD, _old(state[BUILT]))
    return job.done


def _job(value: str) -> _Job | None:
    build = build_of(value)
    if build is None:
        return None
    kind, owner_id, item_id, done, at = json.loads(value.split(" ", 1)[1])
    return _Job(build, ItemKind(kind), owner_id, item_id, done, datetime.fromisoformat(at))


def _generation(value: str) -> int:
    """Of a build of whatever version; 0 when there is none."""
    return int(value.split(" ", maxsplit=1)[0].rsplit(":", 1)[1]) if value else 0


def _batch(connection: Connection, job: _Job, now: datetime) -> tuple[bool, _Job]:
    """Puts the next items into the new index; whether those were the last."""
    window = Window(connection, job.build)
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
    table, status = _ACTIVE[kind]
    return (
        select(table.c.owner_id, table.c.id, table.c.memory_type, table.c.content)
        .where(
            table.c.status == status,
            tuple_(table.c.owner_id, table.c.id) > tuple_(bindparam("owner"), bindparam("item")),
        )
        .order_by(table.c.owner_id, table.c.id)
        .limit(bindparam("most"))
    )


def _count(connection: Connection, kind: ItemKind) -> int:
    table, status = _ACTIVE[kind]
    return connection.scalar(select(func.count()).select_from(table).where(table.c.status == status)) or 0


def _old(value: str) -> str:
    """What is to be cleaned: the generation, then the last key that is done."""
    return f"{_generation(value)} {json.dumps(['', -(2**63), ''])}"


def _clean(connection: Connection, old: str) -> int:
    """Takes out some rows of an index that is not in use."""
    generation, place = int(old.split(" ", 1)[0]), json.loads(old.split(" ", 1)[1])
    columns = (_KEYS.c.owner_id, _KEYS.c.key, _KEYS.c.item_id)
    after = and_(_KEYS.c.generation == generation, tuple_(*columns) > tuple_(*place))
    chunk = connection.execute(select(*columns).where(after).order_by(*columns).limit(CLEAN_BATCH)).all()
    if chunk:
        last = [chunk[-1].owner_id, chunk[-1].key, chunk[-1].item_id]
        connection.execute(delete(_KEYS).where(after, tuple_(*columns) <= tuple_(*last)))
        _set(connection, OLD, f"{generation} {json.dumps(last)}")
    else:
        connection.execute(delete(_TEMPLATES).where(_TEMPLATES.c.generation == generation))
        _set(connection, OLD, "")
    return 0


def _set(connection: Connection, name: str, value: str) -> None:
    connection.execute(_SET, {"of_name": name, "to_value": value})
