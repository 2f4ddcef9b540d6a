"""How the dedup bench takes times: every contender gets the same claims, and a row of figures for them."""

from __future__ import annotations

import gc
import itertools
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from multiprocessing.connection import Connection as Pipe
from pathlib import Path

from bench.dedup_ours import Ours, found, id_of, owner_id
from bench.dedup_rivals import Entry
from bench.dedup_work import Query, Work, sampled

INSERTS, FLOOD_INSERTS = 150, 40  # of each kind, one a transaction
GROUP, GROUPS = 64, 5  # claims that the writer commits together
FEWEST = 2  # claims that even the slowest contender gets
SIZED_FROM = 5_000  # texts of which the memory can be told from what the interpreter keeps in store
SCAN_SECONDS = 1.5  # for the naive scan through the store
WARMING = 50  # claims before the first that counts: statements are prepared, caches filled
_NEW_NUMBERS = itertools.count(
    10**9
)  # of the memories that the bench inserts; loaded ones have lower numbers


@dataclass
class Figures:
    """What one contender did. Times in seconds, of one claim. Over the `judged` claims, `true` duplicates there
    were, `given` were answered, and `hit` are in both."""

    name: str
    times: list[float] = field(default_factory=list)
    inserts: list[float] = field(default_factory=list)
    per_insert: int = 1  # claims behind each of `inserts`
    bytes_each: float | None = None
    build_seconds: float | None = None
    true: int = 0
    hit: int = 0
    given: int = 0
    judged: int = 0
    incomplete: int = 0
    note: str = ""

    def judge(self, truth: frozenset[int] | None, answer: Collection[int], *, complete: bool = True) -> None:
        """Counts an answer; one that brute force was not asked about says nothing."""
        if truth is None:
            return
        self.judged += 1
        self.true += len(truth)
        self.given += len(answer)
        self.hit += len(truth.intersection(answer))
        self.incomplete += not complete

    @property
    def recall(self) -> float | None:
        """Share of the true duplicates that were found; None when there were none."""
        return self.hit / self.true if self.true else None

    @property
    def precision(self) -> float | None:
        """Share of what was found that is true; None when nothing was found."""
        return self.hit / self.given if self.given else None


def quantiles(times: Sequence[float]) -> tuple[float, float]:
    """Median and 99th percentile; of fewer than 100 times the largest stands for it."""
    ordered = sorted(times)
    return statistics.median(ordered), ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def rival(entry: Entry, work: Work, owners: int, threshold: Fraction, seconds: float) -> Figures:
    """Measures one contender in a process of its own, so that its memory is its own."""
    if len(work.texts) > entry.most:
        return Figures(entry.name, note=f"not run: takes more than 6 GB for {len(work.texts):,}")
    context = multiprocessing.get_context("fork")
    receiving, sending = context.Pipe(duplex=False)

    def run(pipe: Pipe) -> None:
        pipe.send(_rival(entry, work, owners, threshold, seconds))

    process = context.Process(target=run, args=(sending,))
    process.start()
    sending.close()
    try:
        figures: Figures = receiving.recv()
    except EOFError:
        raise RuntimeError(f"{entry.name} ended with status {process.exitcode}") from None
    finally:
        process.join()
    return figures


def _rival(entry: Entry, work: Work, owners: int, threshold: Fraction, seconds: float) -> Figures:
    figures = Figures(entry.name)
    gc.collect()
    before, start = _resident(), time.perf_counter()
    mine = sorted(sampled(owners))
    indexes = {owner: entry.make(work.texts[owner::owners], threshold) for owner in mine}
    figures.build_seconds = time.perf_counter() - start
    held = sum(len(work.texts[owner::owners]) for owner in mine)
    if held >= SIZED_FROM:
        figures.bytes_each = (_resident() - before) / held
    gc.collect()
    gc.freeze()  # a collection of what never goes is no part of a look-up
    end = time.perf_counter() + seconds
    for count, query in enumerate(work.judged(frozenset(mine))):
        start = time.perf_counter()
        answer = indexes[query.owner].check(query.text)
        taken = time.perf_counter() - start
        if query.natural:
            figures.times.append(taken)
        figures.judge(query.truth, [query.owner + owners * number for number in answer])
        if time.perf_counter() > end and count >= FEWEST - 1 and figures.times:
            break
    if entry.grows:
        end = time.perf_counter() + seconds / 4
        for owner, text in [row for row in work.fresh if row[0] in indexes][:INSERTS]:
            start = time.perf_counter()
            indexes[owner].check(text)
            indexes[owner].insert(text)
            figures.inserts.append(time.perf_counter() - start)
            if time.perf_counter() > end:
                break
    return figures


def ours_checks(ours: Ours, work: Work, some_number: Callable[[int], int]) -> list[Figures]:
    """The bare look-up and the check, in turn for every claim, in one read transaction that is open already.

    `some_number` gives the number of some memory of an owner. Which of the two comes first changes from claim
    to claim, as the first finds the processor's caches colder.
    """
    bare = Figures(f"{ours.label}, bare look-up by key")
    whole = Figures(f"{ours.label}, bare look-up, whole row")
    ready = Figures(f"{ours.label}, gate's index, keys made before")
    check = Figures(f"{ours.label}, gate's index")
    clock = time.perf_counter
    for count, query in enumerate([*work.queries[:WARMING], *work.queries]):
        owner = owner_id(query.owner)
        one, other = id_of(some_number(query.owner)), id_of(some_number(query.owner))
        with ours.reading() as connection:
            for turn in (0, 1):
                if turn == count % 2:
                    start = clock()
                    ours.bare(connection, owner, one)
                    between = clock()
                    ours.whole(connection, owner, other)
                    bare_time, whole_time = between - start, clock() - between
                else:
                    start = clock()
                    keys = ours.keys(query.text)
                    between = clock()
                    facts = ours.check(connection, owner, keys)
                    end = clock()
                    ready_time, check_time = end - between, end - start
        if count < WARMING:
            continue
        if query.natural:
            for figures, taken in zip(
                (bare, whole, ready, check), (bare_time, whole_time, ready_time, check_time), strict=True
            ):
                figures.times.append(taken)
        answer, complete = found(facts)
        check.judge(query.truth, answer, complete=complete)
    return [bare, whole, ready, check]


def ours_scan(ours: Ours, queries: Sequence[Query]) -> Figures:
    """The naive scan through the store, for as long as it may take."""
    figures = Figures(f"{ours.label}, naive scan")
    end = time.perf_counter() + SCAN_SECONDS
    for count, query in enumerate(queries):
        with ours.reading() as connection:
            start = time.perf_counter()
            answer = ours.scan(connection, owner_id(query.owner), query.text)
            figures.times.append(time.perf_counter() - start)
        figures.judge(query.truth, answer)
        if time.perf_counter() > end and count >= FEWEST - 1:
            break
    return figures


def ours_inserts(ours: Ours, fresh: Sequence[tuple[int, str]], count: int) -> list[Figures]:
    """Check-and-insert, in turn with the insert of a bare row, each committed and on disk."""
    bare = Figures(f"{ours.label}, bare row and commit")
    dedup = Figures(f"{ours.label}, look-up, index and row")
    alone = Figures(f"{ours.label}, gate, one a commit")
    group = Figures(f"{ours.label}, gate, {GROUP} a commit", per_insert=GROUP)
    claims = iter(fresh)
    for _ in range(count):
        bare.inserts.append(ours.insert_row(*_numbered(next(claims))))
        dedup.inserts.append(ours.insert_deduplicated(*_numbered(next(claims))))
        alone.inserts.append(ours.submit([next(claims)]))
    for _ in range(GROUPS):
        group.inserts.append(ours.submit([next(claims) for _ in range(GROUP)]) / GROUP)
    return [bare, dedup, alone, group]


def _numbered(claim: tuple[int, str]) -> tuple[int, int, str]:
    return claim[0], next(_NEW_NUMBERS), claim[1]
