"""Several processes that answer at one port, and the one that starts them, looks after them and ends them.

uvicorn has such a supervisor too. It does not fit: it asks for the state of its workers twice a second instead
of being told, starts one that dies at once again without an end, does not know a second signal, and its workers
live on when it is killed.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import (
    Pipe,
    connection,
    current_process,
    forkserver,
    get_context,
    parent_process,
    resource_tracker,
)
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, SpawnContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from socket import socket
from types import FrameType

from prometheus_client.multiprocess import mark_process_dead

from vouchgate.cli.output import FAILED, Failure, hint
from vouchgate.server.metrics import SHARED
from vouchgate.settings import Settings

log = logging.getLogger(__name__)

STARTS = 5  # in a row that fail, then something is wrong that another start does not mend
# Before a worker's next start, in seconds, doubled with every failure: all five take under ten seconds.
PAUSE_SECONDS = 0.5
END_SECONDS = 45  # uvicorn's 20 for requests under way, then the writer's last attempts

# What one process loads only when it is first needed. Several share what was loaded before they were forked.
LATE = (
    "vouchgate.web.app",
    "vouchgate.ingest.net.transport",
    "vouchgate.ingest.documents.reading",
    "vouchgate.documents.formats.html",
    "git",
    "yaml",
)

_STOP = (signal.SIGTERM, signal.SIGINT)
Serve = Callable[[Settings, socket, Path, Callable[[], None]], None]


@dataclass
class _Worker:
    """One of the places for a worker, and the process that has it now, if any."""

    number: int
    process: BaseProcess | None = None
    pipe: Connection | None = None  # the process says here that it accepts connections, or why it cannot
    ready: bool = False
    failures: int = 0  # starts in a row that did not come to `ready`
    why: str = "it ended without a word"
    not_before: float = 0.0  # time.monotonic() of the next start


@dataclass
class Supervisor:
    """Runs `count` workers until it is told to stop. `serve` is what a worker does; it is found by name in the
    new process, so it must be a function of a module. `ready` is called once, when all accept connections."""

    settings: Settings
    listener: socket
    serve: Serve
    ready: Callable[[], None]
    told: list[int] = field(default_factory=list)  # signals

    def run(self) -> int:
        """0 after a signal and a graceful end; 1 after a second signal. Raises Failure when a worker cannot be
        started. No worker is left behind."""
        self._workers = [_Worker(number + 1) for number in range(self.settings.workers)]
        self._said_ready = False
        self._wake_receive, self._wake_send = Pipe(duplex=False)
        resource_tracker.ensure_running()  # it unblocks the signals that `_blocked` blocks
        for number in _STOP:
            signal.signal(number, self._signalled)
        with tempfile.TemporaryDirectory(prefix="vouchgate-") as folder, _environment(SHARED, folder):
            self._context = _context(self.serve, folder)
            try:
                while not self.told:
                    self._look_after(Path(folder))
                return self._end()
            except Failure:
                self._end()
                raise
            finally:
                self._kill()

    def _signalled(self, number: int, _frame: FrameType | None) -> None:
        self.told.append(number)
        self._wake_send.send_bytes(b".")

    def _look_after(self, folder: Path) -> None:
        """One turn: starts whoever is due, then waits until something happens."""
        now = time.monotonic()
        for worker in self._workers:
            if worker.process is None and worker.not_before <= now:
                self._start(worker, folder)
        due = [worker.not_before - now for worker in self._workers if worker.process is None]
        self._wait(max(0.0, min(due)) if due else None)
        if not self._said_ready and all(worker.ready for worker in self._workers):
            self._said_ready = True
            self.ready()

    def _start(self, worker: _Worker, folder: Path) -> None:
        worker.pipe, theirs = Pipe(duplex=False)
        worker.ready = False
        worker.process = self._context.Process(
            target=_work,
            args=(self.serve, self.settings, self.listener, folder, theirs),
            name=f"worker {worker.number}",
            daemon=True,
        )
        with _blocked():
            worker.process.start()
        theirs.close()

    def _wait(self, seconds: float | None) -> None:
        """Waits for a signal, a word of a worker or the end of one, for so long at most, and takes note."""
        running = [(worker, process) for worker in self._workers if (process := worker.process) is not None]
        pipes = [worker.pipe for worker, _ in running if worker.pipe is not None]
        happened = connection.wait(
            [self._wake_receive, *pipes, *(process.sentinel for _, process in running)], seconds
        )
        if self._wake_receive in happened:
            self._wake_receive.recv_bytes()
        for worker, process in running:
            if worker.pipe in happened:
                self._hear(worker)
            if process.sentinel in happened:
                self._ended(worker, process)

    def _hear(self, worker: _Worker) -> None:
        if worker.pipe is None:
            return
        try:
            why = worker.pipe.recv()
        except EOFError:
            worker.pipe.close()
            worker.pipe = None
            return
        if why is None:
            worker.ready, worker.failures = True, 0
        else:
            worker.why = why

    def _ended(self, worker: _Worker, process: BaseProcess) -> None:
        if worker.pipe is not None and worker.pipe.poll():
            self._hear(worker)  # its last word may have come after the wait
        if worker.pipe is not None:
            worker.pipe.close()
        process.join()
        if process.pid is not None:
            mark_process_dead(process.pid)  # type: ignore[no-untyped-call]  # its open pages are gone with it
        worker.process = worker.pipe = None
        if self.told:
            return
        pause = PAUSE_SECONDS
        if not worker.ready:
            worker.failures += 1
            if worker.failures == STARTS:
                raise Failure(
                    f"worker {worker.number} could not be started {STARTS} times in a row: {worker.why}"
                )
            pause *= 2 ** (worker.failures - 1)
        worker.ready = False
        worker.not_before = time.monotonic() + pause
        log.warning(
            "worker %d ended (exit status %s); starting it again in %g s",
            worker.number,
            process.exitcode,
            pause,
        )
        process.close()

    def _end(self) -> int:
        """Stops accepting, lets the workers answer what is under way; at a second signal ends them at once."""
        self.listener.close()
        first = len(self.told)
        if not self.told:
            self.told.append(signal.SIGTERM)  # so that nobody who ends is started again
            first = 1
        for worker in self._workers:
            if worker.process is not None:
                worker.process.terminate()
        end = time.monotonic() + END_SECONDS
        while any(worker.process is not None for worker in self._workers):
            left = end - time.monotonic()
            if len(self.told) > first or left <= 0:
                why = "a second signal" if left > 0 else f"{END_SECONDS} s"
                hint(f"vouchgate: ended after {why}; requests under way were not answered")
                return FAILED
            self._wait(left)
        return 0

    def _kill(self) -> None:
        for worker in self._workers:
            if worker.process is not None:
                worker.process.kill()
                worker.process.join()


def _context(serve: Serve, folder: str) -> ForkServerContext | SpawnContext:
    """How workers are started. On Linux they are forked from a process that has loaded what `serve` needs and has
    opened nothing; elsewhere libraries of the system may not survive a fork, and each starts an interpreter. None is
    forked from this process: a fork of a process with threads may copy a lock that is held."""
    if sys.platform != "linux":
        return get_context("spawn")
    context = get_context("forkserver")
    context.set_forkserver_preload([serve.__module__, *LATE])
    vars(current_process())["_config"]["tempdir"] = (
        folder  # for its socket, which goes when the directory goes
    )
    try:
        with _blocked():
            forkserver.ensure_running()
    except OSError as error:  # the path of a socket may have 107 characters
        log.warning(
            "workers start more slowly, because no process to fork them from could be started: %s", error
        )
        return get_context("spawn")
    return context


@contextmanager
def _blocked() -> Iterator[None]:
    """Ctrl-C goes to every process of a terminal. One that is started meanwhile gets it once it knows what to do
    then."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOP)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP)


@contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    """Sets a variable for the processes started meanwhile."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _work(serve: Serve, settings: Settings, listener: socket, folder: Path, pipe: Connection) -> None:
    """The life of a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # until the server has its own handlers
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP)
    orphan = threading.Event()
    threading.Thread(target=_watch_parent, args=(orphan,), daemon=True).start()
    try:
        serve(settings, listener, folder, lambda: pipe.send(None))
    except Exception as error:
        pipe.send(f"{error}" or type(error).__name__)
        log.exception("a worker failed")
        raise SystemExit(FAILED) from error
    finally:
        parent = parent_process()
        if orphan.is_set() and parent is not None and not _runs(parent.pid):
            shutil.rmtree(folder, ignore_errors=True)  # whoever made it is gone


def _runs(pid: int | None) -> bool:
    """Whether there is such a process."""
    try:
        os.kill(pid or 0, 0)
    except ProcessLookupError:
        return False
    return True


def _watch_parent(orphan: threading.Event) -> None:
    """Ends this worker, gracefully, when the process that looks after it is gone."""
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        orphan.set()
        os.kill(os.getpid(), signal.SIGTERM)
