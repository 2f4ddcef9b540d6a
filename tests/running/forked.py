"""Tests in several processes, forked from one that has loaded and collected them all, which takes ten seconds.

`pytest --processes 4` does this. A file is run by one of them, so that what its tests share is made once; who is
through with a file asks for the next, in the order of the rooms.
"""

from __future__ import annotations

import gc
import os
import random
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.running.processes import share, start_ahead

File = Sequence[pytest.Item]


@dataclass
class Worker:
    """A process that runs tests, as the one that forked it knows it."""

    number: int
    pid: int
    at: tuple[str, Any] | None = None  # the test that it runs, and where that is
    told_to_stop: bool = False


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `--processes`."""
    parser.addoption("--processes", type=int, default=1, help="run the tests in so many processes")


def _shares(config: pytest.Config) -> bool:
    return config.getoption("processes") > 1 and not config.option.collectonly


def pytest_configure(config: pytest.Config) -> None:
    """What the programs of the tests are forked from loads while the tests are collected."""
    if _shares(config):
        start_ahead()


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> object:
    """Runs the tests of a session in so many processes, and reports each here as if it had been run here. One whose
    process dies has failed, and what was left of its file is not run."""
    if not _shares(session.config) or session.testsfailed:
        return None
    files = [list(items) for _, items in groupby(session.items, key=lambda item: item.path)]
    left = iter(range(len(files)))
    config, running = session.config, dict[Connection, Worker]()
    reporter = config.pluginmanager.getplugin("terminalreporter")
    if reporter is not None and config.get_verbosity() <= 0:
        reporter.showfspath = False  # the files take turns
    try:
        for number in range(min(config.getoption("processes"), len(files))):
            _fork(session, files, running, number)
        while running and not session.shouldfail:
            for connection in wait(list(running)):
                assert isinstance(connection, Connection)
                _hear(session, files, running, left, connection)
    finally:
        for connection, worker in running.items():
            _tell(connection, worker, None)
            with suppress(EOFError, ConnectionError):
                while True:
                    connection.recv()
            os.waitpid(worker.pid, 0)
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    return True


def _hear(
    session: pytest.Session,
    files: Sequence[File],
    running: dict[Connection, Worker],
    left: Iterator[int],
    connection: Connection,
) -> None:
    worker = running[connection]
    try:
        reports, begun = connection.recv()
    except (EOFError, ConnectionError):
        del running[connection]
        connection.close()
        _ended(session, worker)
        if not worker.told_to_stop:
            _fork(session, files, running, worker.number)
        return
    _report(session.config, worker, reports)
    if begun is None:
        _tell(connection, worker, next(left, None))
    else:
        nodeid, location = worker.at = begun
        session.config.hook.pytest_runtest_logstart(nodeid=nodeid, location=location)


def _report(config: pytest.Config, worker: Worker, reports: Sequence[Any]) -> None:
    if worker.at is None:
        return
    for data in reports:
        report = config.hook.pytest_report_from_serializable(config=config, data=data)
        config.hook.pytest_runtest_logreport(report=report)
    nodeid, location = worker.at
    config.hook.pytest_runtest_logfinish(nodeid=nodeid, location=location)
    worker.at = None


def _tell(connection: Connection, worker: Worker, following: int | None) -> None:
    """The file to run next; None to come to an end, after which nothing else is heard."""
    if not worker.told_to_stop:
        worker.told_to_stop = following is None
        with suppress(BrokenPipeError):  # it is dead, which is found out next
            connection.send(following)


def _ended(session: pytest.Session, worker: Worker) -> None:
    status = os.waitstatus_to_exitcode(os.waitpid(worker.pid, 0)[1])
    if status == 0 and worker.at is None:
        return
    place, location = worker.at or ("the end of the tests", ("", None, ""))
    session.config.hook.pytest_runtest_logreport(
        report=pytest.TestReport(
            nodeid=place,
            location=location,
            keywords={},
            outcome="failed",
            longrepr=f"the process of tests ended with {status} at {place}",
            when="call",
        )
    )


def _fork(
    session: pytest.Session, files: Sequence[File], running: dict[Connection, Worker], number: int
) -> None:
    ours, theirs = Pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    if pid := os.fork():
        theirs.close()
        running[ours] = Worker(number, pid)
        return
    status = 1
    try:
        for connection in (ours, *running):
            connection.close()
        _become(session.config, number)
        _run(session, files, theirs)
        status = 0
    except KeyboardInterrupt:  # all processes have got it, and one tells of it
        raise
    except BaseException:
        os.write(2, traceback.format_exc().encode())
        raise
    finally:
        os._exit(status)


def _become(config: pytest.Config, number: int) -> None:
    """Parts from the process that this one was forked from: it has a folder and captures of its own, and the other one
    writes on the terminal."""
    random.seed()
    share()
    gc.set_threshold(50_000, 20, 20)  # as the commands have it: garbage is looked for less often
    capture = config.pluginmanager.getplugin("capturemanager")
    assert capture is not None
    capture.stop_global_capturing()
    capture.start_global_capturing()
    capture.suspend_global_capture()
    reporter = config.pluginmanager.unregister(name="terminalreporter")
    if reporter is not None:
        # What is written when a test takes too long.
        config.pluginmanager.register(SimpleNamespace(_tw=reporter._tw), "terminalreporter")
    factory = config._tmp_path_factory  # type: ignore[attr-defined]
    own: Path = factory.getbasetemp() / f"p{number}"
    own.mkdir(mode=0o700, exist_ok=True)
    factory._basetemp = own
    os.environ["MEM0_DIR"] = str(own / "mem0")


def _run(session: pytest.Session, files: Sequence[File], told: Connection) -> None:
    sending = _Sending(session.config, told)
    session.config.pluginmanager.register(sending)
    try:
        while True:
            sending.ask()
            if (number := told.recv()) is None:
                return
            items = files[number]
            for item, following in zip(items, [*items[1:], session], strict=True):
                # After the session, as what comes next, only what is the session's is left.
                session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if told.poll():
                    return
    finally:
        session._setupstate.teardown_exact(None)


class _Sending:
    """Tells the process that reports."""

    def __init__(self, config: pytest.Config, told: Connection) -> None:
        self._config, self._told = config, told
        self._reports: list[Any] = []

    def pytest_runtest_logstart(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        self._told.send((self._done(), (nodeid, location)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._reports.append(
            self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        )

    def ask(self) -> None:
        """For the file to run next."""
        self._told.send((self._done(), None))

    def _done(self) -> list[Any]:
        """What the test before came to, which is told with what comes next: each word costs both processes time."""
        reports, self._reports = self._reports, []
        return reports
