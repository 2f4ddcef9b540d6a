"""How far an import is, on standard error: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import os
import sys
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from vouchgate.cli.output import hint
from vouchgate.cli.progress import EVERY_SECONDS

_RATE_OVER = (
    20.0  # seconds that the rate is of, at most: what a slow host cost a minute ago tells nothing now
)


class ImportProgress:
    """Use it in a `with` statement. `size` is that of the file in bytes, where it is known."""

    def __init__(self, what: str, size: int | None) -> None:
        self._what = what
        self._size = size
        self._started = time.monotonic()
        self._marks: list[tuple[float, int]] = [(self._started, 0)]
        self._said_at = self._started
        terminal = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._bar = self._open_bar() if terminal else None

    def _open_bar(self) -> Progress:
        shown = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %" if self._size else ""),
            TextColumn("{task.fields[rows]:,} rows, {task.fields[rate]:,.0f}/s"),
            TimeRemainingColumn(),
            console=Console(stderr=True, markup=False, emoji=False, highlight=False),
        )
        self._task = shown.add_task(self._what, total=self._size, rows=0, rate=0.0)
        return shown

    def __call__(self, rows: int, position: int) -> None:
        """`rows` are done, and so many bytes of the file."""
        now = time.monotonic()
        rate = self._rate(now, rows)
        if self._bar is not None:
            self._bar.update(self._task, completed=position if self._size else None, rows=rows, rate=rate)
        elif now - self._said_at >= EVERY_SECONDS:
            self._said_at = now
            hint(f"{self._what}: {rows:,} rows, {rate:,.0f} a second{self._left(now, position)}")

    def say(self, line: str) -> None:
        """A line above the bar."""
        if self._bar is not None:
            self._bar.console.print(line)
        else:
            hint(line)

    def _rate(self, now: float, rows: int) -> float:
        if now - self._marks[-1][0] >= 1.0:
            self._marks.append((now, rows))
            while len(self._marks) > 2 and now - self._marks[1][0] > _RATE_OVER:
                del self._marks[0]
        then, before = self._marks[0]
        return (rows - before) / max(now - then, 1e-6)

    def _left(self, now: float, position: int) -> str:
        if not self._size or not position:
            return ""
        share = min(1.0, position / self._size)
        left = (now - self._started) * (1 - share) / share
        return f", {share:.0%} of the file, {left:,.0f} s left"

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
