"""Tells work that would never end from work that takes a while."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def given_up_after(seconds: float) -> Iterator[None]:
    """Raises TimeoutError in the block once this process has spent so many seconds of processor time in it.

    Not for measuring: the block gets far more work than the program ever does, so much that it takes a second or less
    when it grows with the length of a text, and far longer when it grows with the square. What else the machine does
    counts for nothing. Only in the main thread, as all signals.
    """

    def give_up(_signal: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"over {seconds:g} s of processor time")

    before = signal.signal(signal.SIGPROF, give_up)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
