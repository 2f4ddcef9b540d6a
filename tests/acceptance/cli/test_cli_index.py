"""`vouchgate index …` and `vouchgate expire` as programs, and the progress of a start that has to re-index."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import delete, insert, select

from tests.acceptance.cli_program import cli, complaint, serving, talking
from tests.claims import NOW, examined, policy, submission_of
from tests.conftest import THRESHOLD
from tests.reviews import history, stored, waiting
from vouchgate.ingest.claims.log import Action
from vouchgate.storage.claims import memories
from vouchgate.storage.dedup import similar
from vouchgate.storage.dedup.upkeep import KEYS
from vouchgate.storage.store import Store

TEXTS = [
    f"Room {number} of the house is painted in colour c{number} by team t{number}" for number in range(40)
]


@pytest.fixture
def filled(database_url: str) -> str:
    """A database with forty memories and two waiting items."""
    store = Store.open(database_url, threshold=THRESHOLD)
    for future in [store.writer.submit(submission_of(examined(text))) for text in TEXTS]:
        future.result()
    waiting(store, "The hall is cold", owner_id="bob")
    waiting(store, "The roof leaks")
    store.close()
    return database_url


def run(url: str, *arguments: str | Path, folder: Path) -> subprocess.CompletedProcess[bytes]:
    return cli(*arguments, "--database-url", url, cwd=folder)


def a_policy(folder: Path, threshold: float) -> Path:
    path = folder / f"policy{threshold}.toml"
    path.write_text(f"duplicate_threshold = {threshold}\n")
    return path


def shown(url: str, folder: Path) -> dict[str, str]:
    """What `index status` says."""
    done = run(url, "index", "status", folder=folder)
    assert (done.returncode, done.stderr) == (0, b"")
    return dict(re.split(r"\s{2,}", line, maxsplit=1) for line in done.stdout.decode().splitlines())


@pytest.mark.on("sqlite")
def test_status_verify_and_repair(filled: str, tmp_path: Path) -> None:
    status = shown(filled, tmp_path)
    assert (status["threshold"], status["generation"], status["items"]) == ("0.92", "1", "42")
    assert int(status["rows"]) >= 42
    assert set(status) == {"threshold", "version", "generation", "rows", "templates", "items"}
    fine = run(filled, "index", "verify", folder=tmp_path)
    assert fine.returncode == 0
    assert b"The dedup index fits what is stored." in fine.stdout

    store = Store.open(filled, threshold=THRESHOLD)
    with store.read() as connection:
        lost = connection.scalars(select(memories.TABLE.c.id).order_by(memories.TABLE.c.id)).all()[3]
    stray = {"owner_id": "bob", "key": 5, "item_id": "mem_nowhere", "generation": 1}
    store.writer.run([], lambda c: c.execute(delete(KEYS).where(KEYS.c.item_id == lost))).result()
    store.writer.run([], lambda c: c.execute(insert(KEYS), stray)).result()
    store.writer.run([], lambda c: c.execute(delete(similar.TABLE))).result()
    waiting(store, "The barn is dry", owner_id="cid")
    store.close()

    broken = run(filled, "index", "verify", folder=tmp_path)
    assert f"owner ann, {lost}: is not found by all its keys" in broken.stdout.decode()
    assert "owner bob, mem_nowhere: has the key 5, which it should not have" in broken.stdout.decode()
    assert broken.returncode == 1
    assert "the dedup index has 2 faults; run `vouchgate index repair`" in broken.stderr.decode()
    assert run(filled, "index", "verify", "--owner", "cid", folder=tmp_path).returncode == 0
    assert run(filled, "index", "verify", "--owner", "bob", folder=tmp_path).returncode == 1

    mended = run(filled, "index", "repair", folder=tmp_path)
    assert mended.returncode == 0, mended.stderr
    assert b"Put in 1 items, took out 1 rows and 0 templates." in mended.stdout
    assert b"Made the similar index anew for 40 memories, and the index of their words." in mended.stdout
    assert f"{lost}: is not found by all its keys" in mended.stderr.decode()  # the log of what was mended
    assert run(filled, "index", "verify", folder=tmp_path).returncode == 0


@pytest.mark.on("sqlite")
def test_many_faults_are_counted_and_twenty_shown(filled: str, tmp_path: Path) -> None:
    store = Store.open(filled, threshold=THRESHOLD)
    store.writer.run([], lambda c: c.execute(delete(KEYS))).result()
    store.close()
    broken = run(filled, "index", "verify", folder=tmp_path)
    assert broken.stdout.decode().count("is not found by all its keys") == 20
    assert b"and 22 more" in broken.stdout
    assert b"has 42 faults" in broken.stderr
    assert run(filled, "index", "repair", folder=tmp_path).returncode == 0
    assert run(filled, "index", "verify", folder=tmp_path).returncode == 0


def test_build_ahead_of_a_restart_while_the_service_runs(filled: str, tmp_path: Path) -> None:
    """Built beside a running service; a start with the new policy then has nothing to do."""
    strict = a_policy(tmp_path, 0.8)
    with serving("--database-url", filled, cwd=tmp_path):
        built = run(filled, "index", "build", "--policy", strict, folder=tmp_path)
        assert built.returncode == 0, built.stderr
        assert b"built for the threshold 0.8" in built.stdout
        assert b"goes on next time" in built.stderr
        assert b"items in the new index: " in built.stderr
        assert shown(filled, tmp_path)["threshold"] == "0.8"
        assert run(filled, "index", "verify", folder=tmp_path).returncode == 0
    with serving("--database-url", filled, "--policy", strict, cwd=tmp_path) as service:
        code, said = service.stop()
        assert (code, said.count("\n")) == (0, 1)
        assert "the policy is another than at the last start" in said
    again = run(filled, "index", "build", "--policy", strict, folder=tmp_path)
    assert (again.returncode, again.stderr) == (0, b"")


@pytest.mark.on("sqlite")
def test_a_start_with_another_threshold_shows_how_far_it_is(filled: str, tmp_path: Path) -> None:
    with serving("--database-url", filled, "--policy", a_policy(tmp_path, 0.8), cwd=tmp_path) as service:
        status, errors = service.stop()
    assert status == 0
    assert "Building the dedup index for the policy's threshold. It may be stopped at any time" in errors
    assert "items in the new index: 42 of 42 (100 %)" in errors
    assert run(filled, "index", "verify", folder=tmp_path).returncode == 0


def test_a_build_that_was_interrupted_is_told_and_goes_on(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/vouchgate.db"
    store = Store.open(url, threshold=THRESHOLD)
    room = policy(per_owner=10**6, total=10**6)
    sent = [
        store.writer.submit(submission_of(examined(f"{text} on day d{day}", under=room)))
        for text in TEXTS
        for day in range(12)
    ]
    assert all(future.result() for future in sent)
    store.close()
    strict = a_policy(tmp_path, 0.8)
    words = ("index", "build", "--policy", str(strict), "--database-url", url)
    with talking(*words, cwd=tmp_path) as build:
        while "items in the new index" not in build.errors.readline().decode():
            assert build.program.poll() is None
        build.program.send_signal(signal.SIGINT)
        assert build.program.wait(120) == 130
    status = shown(url, tmp_path)
    assert status["threshold"] == "0.92"
    found = re.match(r"one for 0\.8: ([\d,]+) of [\d,]+ items", status["building"])
    assert found
    done = int(found[1].replace(",", ""))
    assert done >= 200
    assert run(url, "token", "list", folder=tmp_path).returncode == 0  # other commands leave it alone
    assert shown(url, tmp_path) == status
    again = run(url, "index", "build", "--policy", strict, folder=tmp_path)
    assert again.returncode == 0
    first = re.search(r"items in the new index: ([\d,]+)", again.stderr.decode())
    assert first
    assert int(first[1].replace(",", "")) == done + 200
    assert run(url, "index", "verify", folder=tmp_path).returncode == 0


@pytest.mark.on("sqlite")
def test_expire_ends_what_is_over(filled: str, tmp_path: Path) -> None:
    store = Store.open(filled, threshold=THRESHOLD)
    brief = stored(store, "The bridge is closed", validity_horizon=NOW + timedelta(hours=1))
    try:
        first = run(filled, "expire", folder=tmp_path)
        # the two waiting items are of a day that lies more or less than their time back
        assert re.fullmatch(
            rb"Expired \d waiting items and 1 memories; forgot 0 readings of sources\.\n", first.stdout
        )
        again = run(filled, "expire", folder=tmp_path)
        assert again.stdout == b"Expired 0 waiting items and 0 memories; forgot 0 readings of sources.\n"
        ended = [entry.subject_id for entry in history(store) if entry.action is Action.MEMORY_EXPIRED]
        assert ended == [brief.id]
    finally:
        store.close()


@pytest.mark.on("sqlite")
def test_the_service_expires_memories_by_itself(filled: str, tmp_path: Path) -> None:
    store = Store.open(filled, threshold=THRESHOLD)
    brief = stored(store, "The bridge is closed", validity_horizon=NOW + timedelta(hours=1))
    try:
        with serving("--database-url", filled, cwd=tmp_path):
            end = time.monotonic() + 120
            while time.monotonic() < end:
                ended = [
                    entry.subject_id for entry in history(store) if entry.action is Action.MEMORY_EXPIRED
                ]
                if ended:
                    break
                time.sleep(0.1)
        assert ended == [brief.id]
    finally:
        store.close()


@pytest.mark.on("sqlite")
def test_an_index_of_a_job_for_another_policy_is_one_line(filled: str, tmp_path: Path) -> None:
    assert "duplicate_threshold" in complaint(
        run(filled, "index", "build", "--policy", a_policy(tmp_path, 0.3), folder=tmp_path)
    )
