"""Processes of the tests, forked from one that has loaded the packages: loading takes longer than most of them live.

Each is a process like any other: its own streams, directory, environment, signals and exit status. How the interpreter
starts and ends is not tested with them; for that `vouchgate` is started as its users do (`PROGRAM` in
`tests.acceptance.cli_program`).
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import TextIOWrapper
from itertools import pairwise
from multiprocessing import forkserver, util
from multiprocessing.reduction import DupFd
from pathlib import Path
from typing import IO, Any, TextIO

from prometheus_client import values

# The process to fork from is started with the first of the others, or ahead, and ends with those that run the tests.
FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(["tests.running.loaded"])
_spawned = util.spawnv_passfds  # what starts an interpreter for multiprocessing


def start_ahead() -> None:
    """Starts the process to fork from, for all that run tests: it loads while this one collects them."""
    forkserver.ensure_running()


def share() -> None:
    """Forks from what the process has started that this one was forked from. It need not run: nobody but its parent
    could see whether it does."""
    forkserver._forkserver.ensure_running = lambda: None  # type: ignore[method-assign]


class Program:
    """One run of `vouchgate`, or of another module, with these arguments. Its standard streams are open files or
    descriptors."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        directory: Path,
        environment: Mapping[str, str],
        streams: Sequence[int | IO[Any]],
        module: str = "vouchgate.cli",
    ) -> None:
        given = [_Descriptor(stream if isinstance(stream, int) else stream.fileno()) for stream in streams]
        self._process = FORKED.Process(
            target=_run,
            args=(module, list(arguments), str(directory), dict(environment), given),
            name="vouchgate",
        )
        self._process.start()
        assert self._process.pid is not None
        self.pid: int = self._process.pid
        self.sentinel: int = (
            self._process.sentinel
        )  # ready, for `multiprocessing.connection.wait`, once it has ended

    def poll(self) -> int | None:
        """Its exit status, minus the number of the signal that ended it; None while it runs."""
        return self._process.exitcode

    def wait(self, seconds: float) -> int:
        """Its exit status, once there is one. Raises subprocess.TimeoutExpired."""
        self._process.join(seconds)
        if (status := self.poll()) is None:
            raise subprocess.TimeoutExpired("vouchgate", seconds)
        return status

    def send_signal(self, number: int) -> None:
        """Nothing happens when it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Asks it to stop."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Ends it at once."""
        self.send_signal(signal.SIGKILL)


class _Descriptor:
    """An open file that travels to a process that is being started."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __getstate__(self) -> Any:
        return DupFd(self.number)

    def __setstate__(self, travelled: Any) -> None:
        self.number = travelled.detach()


def _run(
    module: str,
    arguments: list[str],
    directory: str,
    environment: dict[str, str],
    streams: list[_Descriptor],
) -> None:
    # Whoever started the tests in the background may have had it ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    tempfile.tempdir = None  # so that it looks where the environment says now
    for number, stream in enumerate(streams):
        os.dup2(stream.number, number)
    for opened in {stream.number for stream in streams}:
        os.close(opened)
    sys.stdin = _reopened(sys.__stdin__, 0, "r")
    sys.stdout = _reopened(sys.__stdout__, 1, "w")
    sys.stderr = _reopened(sys.__stderr__, 2, "w")
    sys.argv = ["vouchgate", *arguments]
    if "PYTHONPATH" in environment:
        sys.path[:0] = environment["PYTHONPATH"].split(os.pathsep)
    util.spawnv_passfds = _forked  # type: ignore[assignment]  # called with these alone
    from tests.running.haste import make_haste  # who starts programs need not load it

    make_haste()
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _forked(path: bytes, arguments: Sequence[Any], kept: Sequence[int]) -> int:
    """In place of a new interpreter, for the process that a service forks its workers from: it has loaded all that this
    one has, and is otherwise as a new one would be. One test has a service start it as it does (`anew` of `serve`)."""
    if "forkserver" not in arguments[-1]:
        return _spawned(path, arguments, kept)
    if pid := os.fork():
        return pid
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        for low, high in pairwise([2, *sorted(kept), os.sysconf("SC_OPEN_MAX")]):
            os.closerange(low + 1, high)
        # What the library of the metrics does when it is loaded.
        values.ValueClass = values.get_value_class()  # type: ignore[no-untyped-call]
        exec(arguments[-1], {})  # noqa: S102  (what the interpreter would be told to run)
    finally:
        os._exit(0)


def _reopened(former: TextIO | None, number: int, mode: str) -> TextIOWrapper:
    """A standard stream over what its descriptor is now, read or written as the interpreter decided at its start."""
    assert former is not None
    raw = os.fdopen(number, f"{mode}b")
    return TextIOWrapper(raw, former.encoding, former.errors)
