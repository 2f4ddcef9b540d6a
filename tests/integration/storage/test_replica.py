"""Reads from a real streaming standby: nobody misses what was answered before, and a standby that is behind, hangs, is
gone or was promoted costs nothing but its help."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import text

from tests.claims import examined, submission_of
from tests.conftest import THRESHOLD, Postgresql, signal_server
from tests.running.patience import until
from tests.running.service import serve
from vouchgate.storage import store as stores
from vouchgate.storage.errors import StorageError
from vouchgate.storage.store import Store


@dataclass
class Standby:
    """A standby of the tests' server, in a directory of its own."""

    server: Postgresql
    directory: Path

    def control(self, *arguments: str) -> None:
        """`pg_ctl`, as the user that the server runs as."""
        self._run("pg_ctl", "-D", str(self.directory), "-w", "-s", *arguments)

    def copy(self) -> None:
        """Copies the primary as it is, and starts to follow it."""
        self.directory.mkdir(mode=0o700)
        if self.server.user is not None:
            shutil.chown(self.directory, self.server.user)
        socket = str(self.server.data)
        self._run(
            "pg_basebackup", "-h", socket, "-U", "postgres", "-D", str(self.directory), "-R", "-c", "fast"
        )
        (self.directory / ".s.PGSQL.5432.lock").unlink()  # the primary's
        with (self.directory / "postgresql.auto.conf").open("a") as file:
            file.write(f"listen_addresses = ''\nunix_socket_directories = '{self.directory}'\n")
        self.start()

    def start(self) -> None:
        """Starts it, and waits until it can be read."""
        self.control("start", "-l", str(self.directory / "its-log"))

    def url(self, primary: str) -> str:
        """Of the same database there."""
        return primary.partition("?")[0] + f"?host={self.directory}"

    def ask(self, statement: str) -> Any:
        """The one value that a statement gives, in its own database."""
        with psycopg.connect(self.url(self.server.url("postgres")), autocommit=True) as connection:
            row = connection.execute(statement.encode()).fetchone()
            return None if row is None else row[0]

    def signal(self, number: signal.Signals) -> None:
        """To every process of it."""
        signal_server(self.directory, number)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self.server.programs / program), *arguments]
        subprocess.run(command, check=True, user=self.server.user, stdout=subprocess.DEVNULL)


@pytest.fixture
def standby(postgresql: Postgresql) -> Iterator[Standby]:
    """A standby that runs; stopped at the end."""
    made = Standby(postgresql, postgresql.data.parent / "standby")
    made.copy()
    yield made
    made.control("stop", "-m", "immediate")


def follows(store: Store) -> bool:
    """Whether this read went to the standby."""
    with store.browse() as connection:
        return bool(connection.scalar(text("SELECT pg_is_in_recovery()")))


def decided(store: Store) -> int:
    """How many decisions who looks at the pages would find."""
    with store.browse() as connection:
        return int(connection.scalar(text("SELECT count(*) FROM decision")) or 0)


def degraded(store: Store) -> str:
    """What /readyz would say of it."""
    return "".join(store.problems())


@pytest.mark.on("postgresql")
def test_what_was_written_is_read_whatever_becomes_of_the_standby(
    database_url: str, standby: Standby, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "CATCH_UP_SECONDS", 5.0)
    read_url = standby.url(database_url)
    store = Store.open(database_url, threshold=THRESHOLD, read_url=read_url)
    other = Store.open(database_url, threshold=THRESHOLD)  # another gate

    def write(number: int) -> None:
        other.writer.submit(submission_of(examined(f"Lamp {number} hangs over door {number}."))).result()

    for number in range(5):  # each is there at once, and read from the standby
        write(number)
        assert decided(store) == number + 1
        assert follows(store)
    assert degraded(store) == ""
    with store.read() as connection:  # tokens and all that writes rest on
        assert connection.scalar(text("SELECT pg_is_in_recovery()")) is False

    # Behind: what was just written is nowhere but on the primary.
    monkeypatch.setattr(stores, "CATCH_UP_SECONDS", 0.05)
    monkeypatch.setattr(stores, "ASIDE_SECONDS", 0.0)
    standby.ask("SELECT pg_wal_replay_pause()")
    write(5)
    assert (decided(store), follows(store)) == (6, False)
    assert "behind the primary" in degraded(store)
    standby.ask("SELECT pg_wal_replay_resume()")
    until(lambda: follows(store))
    assert degraded(store) == ""

    # It hangs: whoever asks waits once, and nobody while that is so.
    monkeypatch.setattr(stores, "ANSWER_SECONDS", 0.3)
    standby.signal(signal.SIGSTOP)
    try:
        assert (decided(store), follows(store)) == (6, False)
        assert "does not answer" in degraded(store)
    finally:
        standby.signal(signal.SIGCONT)
    monkeypatch.setattr(stores, "ANSWER_SECONDS", 10.0)
    until(lambda: follows(store))

    # A gate says so, and goes on; so does one that starts while it is gone.
    with (
        serve(database_url, environment={"VOUCHGATE_READ_URL": read_url}) as running,
        running.client() as client,
    ):
        until(lambda: client.get("/readyz").json()["degraded"] == [])
        standby.control("stop", "-m", "fast")
        assert "read replica" in client.get("/readyz").json()["degraded"][0]
    assert (decided(store), follows(store)) == (6, False)
    late = Store.open(database_url, threshold=THRESHOLD, read_url=read_url)
    assert (decided(late), follows(late)) == (6, False)
    standby.start()
    until(lambda: follows(late) and follows(store))

    # Promoted it has a life of its own, and knows nothing of this one.
    standby.control("promote")
    write(6)
    assert (decided(store), follows(store)) == (7, False)
    assert "no standby any more" in degraded(store)
    for opened in (store, other, late):
        opened.close()


@pytest.mark.on("sqlite")
def test_only_postgresql_has_one(database_url: str) -> None:
    with pytest.raises(StorageError, match="VOUCHGATE_READ_URL"):
        Store.open(database_url, threshold=THRESHOLD, read_url="postgresql://nobody@/nothing")
