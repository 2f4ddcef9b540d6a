"""`vouchgate audit` of many memories: on a Dask cluster of two processes on this machine, beside one process.

Each run is a process of its own, from its start to its end, offline and without a repository. What a row costs is given
relative to the smallest file, where 1.0 at every size is what is aimed at; memory is the most that all processes of a
run had together, sampled, and processor time is that of all of them. One row in five says again what an earlier one
said, near or far before it.
"""

from __future__ import annotations

import filecmp
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from random import Random
from typing import NamedTuple

import psutil

from bench.claims import Generator

SIZES = (100_000, 300_000, 1_000_000, 5_000_000)
ONE_PROCESS = 100_000  # rows, at most: it has all of them in memory
WORKERS = 2
REPEATS = 0.2
OWNERS = 8
REMEMBERED = 50_000  # texts that may be said again


class Ran(NamedTuple):
    """Wall seconds, seconds of the processor, and bytes at most."""

    seconds: float
    processor: float
    memory: int


def run(rows: int = 1_000_000) -> None:
    """Measures each size once, up to so many rows."""
    print(
        f"\nbulk: memories of {OWNERS} owners as JSON lines, {REPEATS:.0%} repeats, {WORKERS} worker processes"
    )
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        first: dict[str, tuple[float, float]] = {}
        for size in [size for size in SIZES if size < rows] + [rows]:
            file = folder / f"{size}.jsonl"
            again = _write(file, size)
            reports = {}
            for way in ("one process", f"local={WORKERS}"):
                if way == "one process" and size > ONE_PROCESS:
                    continue
                options = () if way == "one process" else ("--dask", way)
                reports[way] = folder / f"{way}.jsonl"
                ran = _audit(file, reports[way], *options)
                costs = (ran.seconds / size, ran.processor / size)
                by = [cost / least for cost, least in zip(costs, first.setdefault(way, costs), strict=True)]
                print(
                    f"  {size:>9,} rows, {way:<12} {size / ran.seconds:>6,.0f} rows/s, a row {by[0]:.2f} of the least;"
                    f" {costs[1] * 1000:.2f} ms of the processor a row, {by[1]:.2f}; {ran.memory / 2**20:>6,.0f} MiB",
                    flush=True,
                )
            told = list(reports.values())
            same = filecmp.cmp(told[0], told[1], shallow=False) if len(told) == 2 else None
            _check(told[-1], again, same=same)
            file.unlink()


def _write(file: Path, rows: int) -> int:
    """How many of them say an earlier one again, word for word."""
    generator, random = Generator("bulk"), Random("bulk")
    told: list[str] = []
    again = 0
    with file.open("w") as stream:
        for number in range(rows):
            if told and random.random() < REPEATS:
                text = random.choice(told)
                again += 1
            else:
                text = generator.claim()
                if len(told) < REMEMBERED:
                    told.append(text)
                else:
                    told[random.randrange(REMEMBERED)] = text
            owner = f"owner-{hash_of(text) % OWNERS}"  # of one owner, or it would be no repeat
            stream.write(json.dumps({"content": text, "user_id": owner, "id": number}) + "\n")
    return again


def hash_of(text: str) -> int:
    """The same in every process."""
    return sum(text.encode())


def _audit(file: Path, report: Path, *options: str) -> Ran:
    command = [
        sys.executable,
        "-m",
        "vouchgate.cli",
        "audit",
        str(file),
        "--offline",
        "--report",
        str(report),
        *options,
    ]
    started, before = time.perf_counter(), _processor()
    with subprocess.Popen(
        command, cwd=file.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        most = [0]
        sampling = threading.Thread(target=_sample, args=(process.pid, most))
        sampling.start()
        _, errors = process.communicate()
        sampling.join()
    if process.returncode:
        raise RuntimeError(errors)
    return Ran(time.perf_counter() - started, _processor() - before, most[0])


def _processor() -> float:
    """Seconds of all processes that have ended below this one."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _sample(pid: int, most: list[int]) -> None:
    """The most memory that the process and those below it have together, until it ends."""
    while psutil.pid_exists(pid):
        try:
            process = psutil.Process(pid)
            if process.status() == psutil.STATUS_ZOMBIE:
                return
            together = [process, *process.children(recursive=True)]
            most[0] = max(most[0], sum(each.memory_info().rss for each in together))
        except psutil.NoSuchProcess:
            continue
        time.sleep(0.25)


def _check(report: Path, again: int, *, same: bool | None) -> None:
    with report.open() as lines:
        found = sum('"label": "repeat"' in line for line in lines)
    says = "" if same is None else f"; both ways answer {'the same' if same else 'DIFFERENTLY'}"
    print(f"             {again:,} rows were made repeats, {found:,} are called so{says}", flush=True)
