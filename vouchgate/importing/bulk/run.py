"""The audit of one file on a cluster: which task follows which, and what they found as one answer.

Every task is made again from the file when the worker that did it, or has what it gave, is lost.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import accumulate
from operator import itemgetter

import numpy as np
from distributed import Client, Future, as_completed
from distributed.client import FutureCancelledError
from distributed.comm import CommClosedError
from distributed.scheduler import KilledWorker

from vouchgate.importing.bulk import tasks
from vouchgate.importing.bulk.joining import Numbers, Pairs, components, joined
from vouchgate.importing.bulk.parts import Part
from vouchgate.importing.bulk.tasks import Judged, Plan, number_of
from vouchgate.importing.findings import Audit, merge
from vouchgate.importing.rows import BadRow

PARTS_OF_A_PLACE = 2  # parts whose keys are joined in one place


class BulkError(Exception):
    """The cluster cannot be used, or was lost. One sentence."""


@contextmanager
def audit(
    client: Client, plan: Plan, parts: Sequence[Part], tell: Callable[[int, int], None], *, answers: bool
) -> Iterator[tuple[Audit, int, list[BadRow], Iterator[str]]]:
    """What an auditor who is shown all rows of the file, in order, would find; how many cannot be used, the first of
    these; and the answers to all others as lines of JSON, where they are wanted. `tell` is told how many of all tasks
    are done. Raises BulkError, Unreadable, or another error of a task."""
    with closing(sqlite3.connect("")) as kept:  # a file without a name: no process has all answers in memory
        kept.execute("CREATE TABLE answer (number INTEGER PRIMARY KEY, line BLOB)")
        found: list[Judged] = []
        with _told():
            for judged in _judged(client, plan, parts, tell, answers=answers):
                lines = ((number_of(row), row.as_line().encode(errors="replace")) for row in judged.rows)
                kept.executemany("INSERT INTO answer VALUES (?, ?)", lines)
                found.append(replace(judged, rows=[]))
        bad = sorted((row for one in found for row in one.bad), key=number_of)[: tasks.MOST_TOLD]
        owners = set[str]().union(*(one.owners for one in found))
        told = kept.execute("SELECT line FROM answer ORDER BY number")
        whole, bad_count = (
            merge([one.audit for one in found], len(owners)),
            sum(one.bad_count for one in found),
        )
        yield whole, bad_count, bad, (line.decode() for (line,) in told)


def _judged(
    client: Client, plan: Plan, parts: Sequence[Part], tell: Callable[[int, int], None], *, answers: bool
) -> Iterator[Judged]:
    """What was found in rows that were judged together, as it comes."""
    count = 1 + len(parts) // PARTS_OF_A_PLACE
    every, done = 3 * len(parts) + count, 0

    def results(futures: list[Future]) -> Iterator[Future]:
        nonlocal done
        for future in as_completed(futures, loop=client.loop):
            yield future
            done += 1
            tell(done, every)

    def wait(futures: list[Future]) -> list[Future]:
        for future in results(futures):
            if future.status != "finished":
                future.result()  # raises what it failed with
        return futures

    def items(futures: list[Future], item: int) -> list[Future]:
        return [client.submit(itemgetter(item), future) for future in futures]

    scanned = wait([client.submit(tasks.scan, plan, part, count, pure=False) for part in parts])
    *starts, lines = accumulate(client.gather(items(scanned, 0)), initial=0)
    size, parts = lines + 1, [replace(part, before=start) for part, start in zip(parts, starts, strict=True)]
    places = [items(scanned, 1 + place) for place in range(count)]
    joins = wait([client.submit(tasks.join, parts, place, pure=False) for place in places])
    pieces = [items(joins, 1 + at) for at in range(len(parts))]
    compared = wait([client.submit(tasks.compare, plan, parts, size, each, pure=False) for each in pieces])
    chosen = joined(client.gather(compared))
    home = _homes(joined([*client.gather(items(joins, 0)), chosen]), parts, size)
    del scanned, places, joins, pieces, compared
    judged = []
    for at in range(len(parts)):
        of = home[chosen.row] == at
        numbers, own = np.flatnonzero(home == at), Pairs(chosen.row[of], chosen.other[of])
        judged.append(client.submit(tasks.judge, plan, parts, numbers, own, answers=answers, pure=False))
    for future in results(judged):
        yield future.result()
        future.release()


def _homes(pairs: Pairs, parts: Sequence[Part], size: int) -> Numbers:
    """In which part each row is judged: in its own, or all that have to do with it together in one that follows from
    their first row, so that each part has its share of them."""
    root, last = components(pairs, size), np.arange(size)
    np.maximum.at(last, root, np.arange(size))
    home = np.searchsorted([part.before for part in parts], np.arange(size)) - 1
    spread = home[root] != home[last[root]]
    home[spread] = root[spread] % len(parts)
    return home


@contextmanager
def _told() -> Iterator[None]:
    """Makes a sentence of what Dask raises."""
    try:
        yield
    except KilledWorker as error:
        raise BulkError(
            f"workers were lost at one task ({error.task}) again and again, most likely for want of memory: give them "
            "more, or have fewer of them on a machine"
        ) from error
    except (FutureCancelledError, CommClosedError, TimeoutError) as error:
        raise BulkError("the Dask scheduler was lost; nothing was written, so run it again") from error
