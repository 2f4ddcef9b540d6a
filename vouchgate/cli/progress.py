"""How far a long job is, on standard error: one line that changes on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import os
import sys
import time
from types import TracebackType
from typing import Self

from vouchgate.cli.output import hint

EVERY_SECONDS = 3.0  # between two lines that are not on a terminal

BUILDING = "Building the dedup index for the policy's threshold. It may be stopped at any time, and goes on next time."


class Progress:
    """Says nothing until it is called first. Close it, or use it in a `with` statement."""

    def __init__(self, what: str, announce: str | None = None) -> None:
        self._what = what
        self._announce = announce
        self._terminal = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._said_at: float | None = None

    def __call__(self, done: int, total: int | None = None) -> None:
        """`done` of `total`, or of an unknown number."""
        if self._said_at is None and self._announce is not None:
            hint(self._announce)
        share = f"{done:,}" if total is None else f"{done:,} of {total:,} ({100 * done // max(1, total)} %)"
        shown = f"{self._what}: {share}"
        now = time.monotonic()
        if self._terminal:
            print(f"\r\x1b[2K{shown}", end="", file=sys.stderr, flush=True)
        elif self._said_at is not None and now - self._said_at < EVERY_SECONDS:
            return
        else:
            hint(shown)
        self._said_at = now

    def close(self) -> None:
        """Leaves the line."""
        if self._terminal and self._said_at is not None:
            print(file=sys.stderr, flush=True)
        self._said_at = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def of_the_index() -> Progress:
    """For `Store.open`, which builds an index where it has to."""
    return Progress("items in the new index", BUILDING)
