"""What a soak measures from outside of the service, and what it has to say of that: a table, slopes and a picture."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from bench.dedup_picture import GRID, INK, PAPER
from tests.running.traffic import Told

MIB = 2**20
# By figure, its unit, and what it may be at most: of all processes of a service of two workers together.
BOUNDS: Mapping[str, tuple[str, float]] = {
    "rate": ("answers/s", float("inf")),
    "p99": ("ms", float("inf")),
    "memory": ("MiB", 1024.0),  # what processes share is counted once
    "fds": ("descriptors", 600.0),
    "threads": ("threads", 300.0),
    "db": ("MiB", float("inf")),
    "wal": ("MiB", 256.0),  # PostgreSQL keeps about max_wal_size, 64 MiB here, and at times more
}
SQLITE_WAL = 128.0  # MiB; an erasure writes a database of up to 32 MiB anew through it
LEVEL = ("memory", "fds", "threads", "wal")
STEADY_SECONDS = 300.0  # less is warming up
GROWTH = 0.15  # of the first half of the steady time, that the second may have more
END = "the end"  # of the load; a mark like those of kills


@dataclass
class Gauges:
    """One row every `tick` seconds within the block; `marks` are what was killed when."""

    told: Told
    sizes: Callable[[], tuple[float, float]]  # MiB of the database, and of its write-ahead log
    tick: float
    pid: int | None = None  # of the service, while there is one
    rows: list[dict[str, float]] = field(default_factory=list)
    marks: list[tuple[float, str]] = field(default_factory=list)
    _begin: float = field(default_factory=time.monotonic)
    _over: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Gauges:
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def mark(self, what: str) -> None:
        """Something is killed now."""
        self.marks.append((time.monotonic() - self._begin, what))

    def _watch(self) -> None:
        before = self._begin
        while not self._over.wait(self.tick):
            answers, self.told.seconds = self.told.seconds, []
            now = time.monotonic()
            p99 = 1000 * (statistics.quantiles(answers, n=100)[98] if len(answers) > 1 else sum(answers))
            row = {"at": now - self._begin, "rate": len(answers) / (now - before), "p99": p99}
            self.rows.append(row | dict(zip(("db", "wal"), self.sizes(), strict=True)) | self._processes())
            before = now

    def _processes(self) -> dict[str, float]:
        """Of the service and all below it; zeros while it is being killed."""
        try:
            service = [psutil.Process(self.pid)] if self.pid is not None else []
            everyone = service + [child for one in service for child in one.children(recursive=True)]
            return {
                "memory": sum(one.memory_full_info().pss for one in everyone) / MIB,
                "fds": sum(one.num_fds() for one in everyone),
                "threads": sum(one.num_threads() for one in everyone),
            }
        except psutil.Error:
            return {"memory": 0.0, "fds": 0.0, "threads": 0.0}

    def loaded(self, *, steady: bool = False) -> list[dict[str, float]]:
        """The rows under load, while there was a service; `steady`: since the last kill, without the first tenth, in
        which caches fill."""
        end = next((at for at, what in self.marks if what == END), float("inf"))
        begin = max((at for at, what in self.marks if what != END), default=0.0) if steady else 0.0
        rows = [row for row in self.rows if begin < row["at"] < end and row["memory"]]
        return rows[len(rows) // 10 :] if steady else rows

    def slopes(self) -> dict[str, str]:
        """Of each figure, by how much it grows in an hour of the steady time."""
        rows = self.loaded(steady=True)
        if len(rows) < 3:
            return dict.fromkeys(BOUNDS, "-")
        at = [row["at"] / 3600 for row in rows]
        found = {name: statistics.linear_regression(at, [row[name] for row in rows]) for name in BOUNDS}
        return {name: f"{line.slope:+.1f}" for name, line in found.items()}

    def not_flat(self, *, sqlite: bool) -> Iterable[str]:
        """One sentence for each figure that went beyond its bound, or that grows."""
        for name, (unit, most) in BOUNDS.items():
            bound = SQLITE_WAL if sqlite and name == "wal" else most
            if (peak := max((row[name] for row in self.rows), default=0.0)) > bound:
                yield f"{name} reached {peak:.0f} {unit}, more than {bound:.0f}"
        rows = self.loaded(steady=True)
        if not rows or rows[-1]["at"] - rows[0]["at"] < STEADY_SECONDS:
            return
        halves = rows[: len(rows) // 2], rows[len(rows) // 2 :]
        for name in LEVEL:
            first, second = (statistics.median(row[name] for row in half) for half in halves)
            if second > first * (1 + GROWTH) + 8:
                yield f"{name} grows: {first:.0f} {BOUNDS[name][0]}, later {second:.0f}"

    def table(self) -> Iterable[str]:
        """Each figure under load, at its median, highest and last, and its slope."""
        yield f"  {'':<10}{'median':>10}{'highest':>10}{'last':>10}{'an hour more':>15}"
        for (name, (unit, _)), slope in zip(BOUNDS.items(), self.slopes().values(), strict=True):
            values = [row[name] for row in self.loaded()] or [0.0]
            figures = f"{statistics.median(values):>10.1f}{max(values):>10.1f}{values[-1]:>10.1f}"
            yield f"  {name:<10}{figures}{slope:>15}  {unit}"


def draw(soaks: Mapping[str, Gauges], path: Path) -> None:
    """Draws the figures over the time, a column for each database, to a file of the kind that its name ends in (.svg or
    .png). What was killed is a line down."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    colours = {"kill": "#b3261e", "term": "#d9730d", "worker": "#8e44ad", "database": "#1f5fbf", END: INK}
    style = {"font.size": 8, "text.color": INK, "axes.facecolor": PAPER, "figure.facecolor": PAPER}
    with mpl.rc_context(style | {"savefig.facecolor": PAPER}):
        shape, size = (len(BOUNDS), len(soaks)), (7 * len(soaks), 11)
        figure, axes = pyplot.subplots(
            *shape, figsize=size, sharex="col", squeeze=False, layout="constrained"
        )
        for column, (database, gauges) in enumerate(soaks.items()):
            slopes = gauges.slopes()
            for row, (name, (unit, _)) in enumerate(BOUNDS.items()):
                one, rows = axes[row][column], gauges.rows
                one.plot([each["at"] for each in rows], [each[name] for each in rows], color="#0b7a75")
                for at, what in gauges.marks:
                    one.axvline(at, color=colours[what], linewidth=0.7, label=what)
                title = f"{database}: {name} ({unit}), {slopes[name]} an hour when left alone"
                one.set_title(title, loc="left", fontsize=8)
                one.set_ylim(bottom=0)
                one.grid(color=GRID, linewidth=0.6)
            axes[-1][column].set_xlabel("seconds")
        lines = {line.get_label(): line for column in axes[0] for line in column.get_lines()[1:]}
        figure.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=5, frameon=False)
        figure.savefig(path)
        pyplot.close(figure)
