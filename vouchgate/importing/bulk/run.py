"""The audit of one file on a cluster: which task follows which, and what they found as one answer.

Every task is made again from the file when the worker that did it, or has what it gave, is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import accumulate
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TextIO

import numpy as np
from distributed import Client, Future, as_completed
from distributed.client import FutureCancelledError
from distributed.comm import CommClosedError
from distributed.scheduler import KilledWorker

from vouchgate.importing.bulk import tasks
from vouchgate.importing.bulk.joining import Numbers, Pairs, components, joined
from vouchgate.importing.bulk.parts import Part
from vouchgate.importing.bulk.tasks import Judged, Plan
from vouchgate.importing.findings import Audit, merge
from vouchgate.importing.rows import BadRow

PARTS_OF_A_PLACE = 2  # parts whose keys are joined in one place


class BulkError(Exception):
    """The cluster cannot be used, or was lost. One sentence."""


def audit(
    client: Client,
    plan: Plan,
    parts: Sequence[Part],
    *,
    lines: TextIO | None = None,
    tell: Callable[[int, int], None] = lambda _done, _of: None,
) -> tuple[Audit, Sequence[BadRow], int]:
    """What an auditor who is shown all rows of the file, in order, would find; the first rows that cannot be used, and
    how many these are. The answers to all rows go to `lines`, and `tell` is told how many of all tasks are done. Raises
    BulkError, and Unreadable or another error of a task."""
    places = 1 + len(parts) // PARTS_OF_A_PLACE
    with (
        _told(),
        _Steps(3 * len(parts) + places, tell) as steps,
        TemporaryDirectory(prefix="vouchgate-") as kept,
    ):
        scanned = [client.submit(tasks.scan, plan, part, places, pure=False) for part in parts]
        steps.wait(scanned)
        *starts, size = accumulate(client.gather(_items(client, scanned, 0)), initial=0)
        parts = [replace(part, before=start) for part, start in zip(parts, starts, strict=True)]
        joins = [
            client.submit(tasks.join, parts, _items(client, scanned, 1 + place), pure=False)
            for place in range(places)
        ]
        steps.wait(joins)
        del scanned
        compared = [
            client.submit(tasks.compare, plan, parts, size, _items(client, joins, 1 + at), pure=False)
            for at in range(len(parts))
        ]
        links: list[Pairs] = client.gather(_items(client, joins, 0))
        steps.wait(compared)
        chosen = joined(client.gather(compared))
        del joins, compared
        judged = []
        home = _homes(joined([*links, chosen]), parts, size)
        for at in range(len(parts)):
            own = np.flatnonzero(home == at)
            of_own = home[chosen.row] == at
            asked = Pairs(chosen.row[of_own], chosen.other[of_own])
            judged.append(
                client.submit(tasks.judge, plan, parts, own, asked, lines=lines is not None, pure=False)
            )
        answers = _Answers(Path(kept), starts)
        found = []
        for one in steps.results(judged):
            answers.keep(one)
            found.append(one)
        if lines is not None:
            answers.write(lines)
    owners = set[str]().union(*(one.owners for one in found))
    bad = sorted((each for one in found for each in one.bad), key=itemgetter(0))[: tasks.MOST_TOLD]
    whole = merge([one.audit for one in found], len(owners))
    return whole, [row for _, row in bad], sum(one.bad_count for one in found)


def _items(client: Client, futures: Sequence[Future], item: int) -> list[Future]:
    """One item of what each of them gives."""
    return [client.submit(itemgetter(item), future) for future in futures]


def _homes(pairs: Pairs, parts: Sequence[Part], size: int) -> Numbers:
    """In which part each row is judged: in its own, with all that have to do with it where these are of several. Which
    part that is follows from their first row, so that each has its share of them."""
    root = components(pairs, size)
    last = np.arange(size)
    np.maximum.at(last, root, np.arange(size))
    of = np.repeat(np.arange(len(parts)), np.diff([*(part.before for part in parts), size]))
    spread = of[root] != of[last[root]]
    of[spread] = root[spread] % len(parts)
    return of


class _Steps:
    """Waits for tasks, and tells how many are done. What is left is given up at the end."""

    def __init__(self, of: int, tell: Callable[[int, int], None]) -> None:
        self._of, self._tell, self._done = of, tell, 0
        self._asked: list[Future] = []

    def wait(self, futures: Sequence[Future]) -> None:
        for future in self._completed(futures):
            if future.status != "finished":
                future.result()  # which raises what it failed with

    def results(self, futures: Sequence[Future]) -> Iterator[Judged]:
        for future in self._completed(futures):
            yield future.result()
            future.release()

    def _completed(self, futures: Sequence[Future]) -> Iterator[Future]:
        self._asked = list(futures)
        for future in as_completed(futures, loop=futures[0].client.loop):
            yield future
            self._done += 1
            self._tell(self._done, self._of)

    def __enter__(self) -> _Steps:
        return self

    def __exit__(self, *_exception: object) -> None:
        for future in self._asked:
            if not future.done():
                future.cancel()


class _Answers:
    """The answers to rows as they come, in files of a folder, and then in the order of the rows."""

    def __init__(self, folder: Path, starts: Sequence[int]) -> None:
        self._folder, self._starts = folder, np.array(starts)

    def keep(self, judged: Judged) -> None:
        """Keeps the answers, and has them no longer in memory."""
        by_part: dict[int, list[str]] = {}
        numbers = [number for number, _ in judged.lines]
        parts = np.searchsorted(self._starts, numbers, side="right").tolist()
        for at, (number, line) in zip(parts, judged.lines, strict=True):
            by_part.setdefault(at, []).append(f"{number:020} {line}\n")
        for at, lines in by_part.items():
            with (self._folder / str(at)).open("a", encoding="utf-8", errors="replace") as file:
                file.writelines(lines)
        judged.lines = []

    def write(self, lines: TextIO) -> None:
        """Writes them in order, those of one part in memory at a time."""
        for file in sorted(self._folder.iterdir(), key=lambda each: int(each.name)):
            with file.open(encoding="utf-8", newline="\n") as kept:
                lines.writelines(line[21:] for line in sorted(kept))


@contextmanager
def _told() -> Iterator[None]:
    """Makes a sentence of what Dask raises."""
    try:
        yield
    except KilledWorker as error:
        raise BulkError(
            f"workers were lost at one task ({error.task}) again and again, most likely for want of memory: "
            "give them more, or have fewer of them on a machine"
        ) from error
    except (FutureCancelledError, CommClosedError, TimeoutError) as error:
        raise BulkError("the Dask scheduler was lost; nothing was written, so run it again") from error
