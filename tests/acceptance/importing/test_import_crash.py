"""An import that is interrupted or killed in the middle: run again, it goes on, and every row is decided once."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import func, select

from tests.acceptance.cli_program import cli, lines
from tests.conftest import THRESHOLD
from tests.running.invariants import look
from tests.running.processes import Program
from tests.running.service import make_token
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.people import Role
from vouchgate.storage.claims import decisions
from vouchgate.storage.identity import tokens
from vouchgate.storage.store import Store

ROWS = 1_200  # many more than are under way when it is stopped
SECONDS = 60  # for what the program is waited for; far over what it takes


def rows(count: int) -> str:
    """So many rows of three owners, in which every tenth repeats the one before it word for word."""
    found = []
    for number in range(count):
        of = number - 1 if number % 10 == 9 else number
        found.append({"text": f"The lamp of room {of} has {of % 7} bulbs.", "user_id": f"owner-{of % 3}"})
    return lines(found)


def decided(store: Store) -> int:
    """How many decisions are on disk."""
    with store.read() as connection:
        return connection.execute(select(func.count()).select_from(decisions.TABLE)).scalar_one()


def check(url: str) -> None:
    """Each row has one decision, and the repeats were found to be repeats."""
    kept, broken = look(url)
    assert broken == []
    contents = Counter(answer.evidence.claim.content for answer in kept.answers.values())
    assert len(kept.answers) == ROWS
    assert Counter(contents.values()) == {1: ROWS * 8 // 10, 2: ROWS // 10}
    assert Counter(answer.rule for answer in kept.answers.values())["duplicate"] >= ROWS // 10


class Importing:
    """An import that runs, on a database of its own that can be looked into."""

    def __init__(self, url: str, directory: Path, count: int = ROWS) -> None:
        self.file = directory / "memories.jsonl"
        self.file.write_text(rows(count))
        self.token = make_token(url, Role.AGENT, any_owner=True, sources=frozenset({Source.USER}))
        self.env = {
            "VOUCHGATE_TOKEN": self.token,
            "VOUCHGATE_DATABASE_URL": url,
            "VOUCHGATE_OFFLINE": "true",
        }
        self.store = Store.open(url, threshold=THRESHOLD)
        self._output = tempfile.TemporaryFile()  # noqa: SIM115  (closed with the store)
        with Path(os.devnull).open() as nothing:
            self.program = Program(
                ["import", str(self.file), "--source", "user"],
                directory=directory,
                environment={**os.environ, **self.env},
                streams=(nothing, self._output, self._output),
            )

    def wait_for(self, count: int) -> None:
        """Until so many decisions are on disk."""
        end = time.monotonic() + SECONDS
        while decided(self.store) < count and time.monotonic() < end:
            time.sleep(0.005)

    def end(self) -> tuple[int, str, int]:
        """Its exit status, what it said, and how many decisions are on disk then."""
        status = self.program.wait(SECONDS)
        self._output.seek(0)
        return status, self._output.read().decode(), decided(self.store)

    def close(self) -> None:
        """Ends it, whatever it does."""
        self.program.kill()
        self._output.close()
        self.store.close()

    def again(self) -> subprocess.CompletedProcess[bytes]:
        """A second run to its end."""
        return cli("import", self.file, "--source", "user", cwd=self.file.parent, env=self.env)


@pytest.fixture
def importing(database_url: str, tmp_path: Path) -> Iterator[Importing]:
    """One that has just been started."""
    started = Importing(database_url, tmp_path)
    yield started
    started.close()


def test_a_killed_import_goes_on_and_doubles_nothing(importing: Importing, database_url: str) -> None:
    importing.wait_for(ROWS // 16)
    importing.program.kill()
    status, said, before = importing.end()
    assert status == -signal.SIGKILL
    assert 0 < before < ROWS, said
    again = importing.again()
    assert again.returncode == 0, again.stderr
    assert _counts(again.stdout.decode())["done"] == before
    check(database_url)


@pytest.mark.on("sqlite")
def test_an_interrupted_import_says_what_it_did_and_goes_on(importing: Importing, database_url: str) -> None:
    importing.wait_for(ROWS // 16)
    importing.program.send_signal(signal.SIGINT)
    status, said, before = importing.end()
    assert status == 130, said
    assert "Run it again" in said
    assert sum(_counts(said).values()) == before < ROWS, said
    again = importing.again()
    assert again.returncode == 0, again.stderr
    assert _counts(again.stdout.decode())["done"] == before
    check(database_url)


def test_an_import_ends_when_its_token_is_revoked(tmp_path: Path, migrated_file: Path) -> None:
    (tmp_path / "gate.db").write_bytes(migrated_file.read_bytes())
    # So many that they are not done before the revocation has had its turn at writing.
    importing = Importing(f"sqlite:///{tmp_path / 'gate.db'}", tmp_path, 20_000)
    try:
        importing.wait_for(1)
        tokens.revoke(importing.store, importing.token.split("_")[1], actor="test", now=datetime.now(UTC))
        status, said, before = importing.end()
    finally:
        importing.close()
    assert status == 1, said
    assert "the token was revoked" in said
    assert "internal error" not in said
    assert before < 20_000


def _counts(table: str) -> Counter[str]:
    """The rows of a closing table, by the first word of the outcome."""
    found: Counter[str] = Counter()
    for row in table.splitlines():
        number = re.match(r"(stored|queued|blocked|done|not|bad)\b[a-z ]*?\s+([\d,]+)\s", row)
        if number:
            found[number[1]] += int(number[2].replace(",", ""))
    return found
