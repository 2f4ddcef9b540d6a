"""What came of a task is not written out where nobody reads it."""

from __future__ import annotations

from asyncio import base_futures
from types import SimpleNamespace


def leave_results_unwritten() -> None:
    """From now on a finished task names the kind of its result, and not all of it. `asyncio.run` has it written twice:
    it sets a handler of interrupts that knows the task, and the interpreter, which asks whether the handler is one of
    its own numbers, makes an error of it that is thrown away. For the examination of a claim that takes 5 ms."""
    vars(base_futures)["reprlib"] = SimpleNamespace(repr=lambda result: f"<{type(result).__name__}>")
