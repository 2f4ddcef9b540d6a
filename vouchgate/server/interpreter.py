"""Fits the interpreter to its work; loads nothing else."""

from __future__ import annotations

import gc
import sys


def tune_interpreter() -> None:
    """Fits the interpreter to a server whose work is many short-lived objects in two threads.

    The writer thread gives the interpreter up and asks for it again many times a transaction; at Python's
    5 ms a request every claim of its group can wait for the event loop to run dry. And what was loaded at the
    start lives until the end, so the garbage collector need not walk it: that alone is worth a sixth more
    claims a second in the load bench. Nor is it walked once for the half megabyte of garbage in it, which
    would be a twentieth of a start. Call it once everything is open.
    """
    sys.setswitchinterval(0.0005)
    gc.enable()
    gc.freeze()
    gc.set_threshold(20_000, 50, 50)
