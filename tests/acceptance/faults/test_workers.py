"""`vouchgate serve --workers N`: several processes that are one service, from its start to its end."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.acceptance.cli_program import cli, complaint, talking
from tests.acceptance.site import without_promises
from tests.conftest import in_memory
from tests.running.invariants import look
from tests.running.load import Caller, Where, claim
from tests.running.patience import until
from tests.running.service import Running, children, make_token, serve, workers_of
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.people import Role

WORKERS = 2  # as many as it takes
AGAIN = re.compile(r"starting it again in (\S+) s$", re.M)


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A SQLite file: what is tested here is not about the database."""
    return f"sqlite:///{tmp_path}/vouchgate.db"


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where the service puts what is temporary: with a short name, as the path of a socket may have 107 characters."""
    with tempfile.TemporaryDirectory(prefix="gg-", dir=in_memory()) as made:
        yield Path(made)


@contextmanager
def serving(url: str, folder: Path, policy: Path | None = None, *, anew: bool = False) -> Iterator[Running]:
    """The service with WORKERS processes; none of them and nothing temporary is left when it has ended."""
    environment = {"TMPDIR": str(folder)}
    with serve(url, policy=policy, workers=WORKERS, environment=environment, anew=anew) as running:
        yield running
        known = workers_of(running)
    assert [pid for pid in known if alive(pid)] == []
    assert list(folder.iterdir()) == []


def alive(pid: int) -> bool:
    """Whether this process runs; one that only waits to be noticed does not."""
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


def agent_token(url: str) -> str:
    """For an agent whose word counts for what the user said, for any owner."""
    return make_token(url, Role.AGENT, any_owner=True, sources=frozenset({Source.USER}))


def statuses(running: Running, token: str, numbers: range) -> list[int]:
    """Sends claims, each over a connection of its own, many at once; the status of each."""

    def send(number: int) -> int:
        return post(running, token, number)[0]

    with ThreadPoolExecutor(12) as pool:
        return list(pool.map(send, numbers))


def post(running: Running, token: str, number: int) -> tuple[int, str]:
    """Sends a claim over a connection of its own."""
    connection = http.client.HTTPConnection(urlsplit(running.url).netloc, timeout=60)
    try:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        body = json.dumps(claim(number, "ann", "user"))
        connection.request("POST", "/v1/claims", body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def counted(running: Running) -> float:
    """How many decisions the page of metrics tells of; counters and histogram must agree."""
    with running.client() as client:
        page = client.get("/metrics").text
    total = sum(float(value) for value in re.findall(r"^vouchgate_claims_total\{.*\} (\S+)$", page, re.M))
    (histogram,) = re.findall(r"^vouchgate_claim_seconds_count (\S+)$", page, re.M)
    assert total == float(histogram)
    assert "pid=" not in page
    return total


@contextmanager
def write_lock(tmp_path: Path) -> Iterator[None]:
    """Somebody else is in the middle of a transaction, so that no claim can be written."""
    other = sqlite3.connect(tmp_path / "vouchgate.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


def test_all_workers_answer_and_count_together_and_one_that_dies_is_replaced(url: str, folder: Path) -> None:
    token = agent_token(url)
    with serving(url, folder, anew=True) as running:
        first = workers_of(running)
        assert len(first) == WORKERS
        assert set(statuses(running, token, range(100, 160))) == {201}
        while len(list(folder.glob("*/counter_*.db"))) < WORKERS:  # until each has decided something
            statuses(running, token, range(100, 160))
        everything = counted(running)
        assert everything >= 60
        assert {counted(running) for _ in range(20)} == {everything}
        for pid in first:
            os.kill(pid, signal.SIGKILL)
            until(lambda gone=pid: not alive(gone))  # type: ignore[misc]  # a lambda with a default
        until(lambda: len(workers_of(running) - first) == WORKERS)
        # Nobody who connects meanwhile is turned away; the new ones answer when they are ready.
        assert set(statuses(running, token, range(200, 230))) == {201}
        assert counted(running) == everything + 30  # what the dead ones counted stays
    assert sum(line.startswith("listening on") for line in running.output) == 1
    assert [told[1] for line in running.output if (told := AGAIN.search(line))] == ["0.5"] * WORKERS
    kept, broken = look(url)
    assert broken == []
    assert (len(kept.memories), len(kept.decisions)) == (90, everything + 30)


def test_a_rate_limit_holds_for_all_together_and_workers_that_cannot_start_end_the_service(
    url: str, folder: Path, tmp_path: Path
) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text("[limits]\nclaims_per_minute = 20\n")
    one, other = agent_token(url), agent_token(url)
    with serving(url, folder, policy) as running:
        begin = time.monotonic()
        for token in (one, other):
            answers = Counter(statuses(running, token, range(100, 150)))
            refilled = (time.monotonic() - begin) * 20 / 60
            assert 20 <= answers[201] + answers[409] <= 20 + refilled + 1, answers
            assert answers[429] == 50 - answers[201] - answers[409]
        policy.write_text("[limits]\nclaims_per_hour = 20\n")
        os.kill(min(workers_of(running)), signal.SIGKILL)
        assert running.process.wait(200) == 1
        until(lambda: "could not be started 5 times in a row" in running.output[-1])
        assert running.output[-1].startswith("vouchgate: worker ")
        assert "claims_per_hour" in running.output[-1]
        pauses = [float(told[1]) for line in running.output if (told := AGAIN.search(line))]
    assert [pause / pauses[0] for pause in pauses] == [1, 1, 2, 4, 8]  # the first is of one that was ready


def test_a_bad_part_stops_the_start_before_any_worker(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text("[limits]\nclaims_per_hour = 20\n")
    done = cli("serve", "--port", "0", "--workers", "2", "--policy", "policy.toml", cwd=tmp_path)
    assert "claims_per_hour" in complaint(done)
    assert done.stdout == b""
    for bad in ("0", "65", "many"):
        complaint(cli("serve", "--workers", bad, cwd=tmp_path), 2)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_start_that_nobody_reads_of_any_more_serves(url: str, tmp_path: Path, workers: str) -> None:
    """As when a launcher reads the first line alone, or the disk is full that the output goes to."""
    agent_token(url)  # so that it is no first start
    options = ("--port", "0", "--workers", workers, "--database-url", url)
    with talking("serve", *options, cwd=tmp_path) as begun:
        begun.told.close()
        warned = next(
            line.decode() for line in begun.errors if b"listening on" in line or b"Traceback" in line
        )
        (address,) = re.findall(r"listening on (\S+), which standard output does not take", warned)
        assert httpx.get(f"{address}/readyz").status_code == 200
        begun.program.send_signal(signal.SIGTERM)
        assert begun.program.wait(60) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_signal_lets_requests_under_way_finish(
    url: str, folder: Path, tmp_path: Path, number: signal.Signals
) -> None:
    token = agent_token(url)
    with serving(url, folder) as running, ThreadPoolExecutor(12) as pool:
        statuses(running, token, range(100, 130))
        with write_lock(tmp_path):
            under_way = [pool.submit(post, running, token, n) for n in range(200, 212)]
            until_taken(running, len(under_way))
            running.process.send_signal(number)
            time.sleep(0.5)
            assert running.process.poll() is None
        assert [future.result()[0] for future in under_way] == [201] * 12
        assert running.process.wait(120) == 0
    kept, broken = look(url)
    assert broken == []
    assert len(kept.memories) == 42
    for future in under_way:
        text = future.result()[1]
        assert kept.decisions[json.loads(text)["decision_id"]].answer == without_promises(text)


def until_taken(running: Running, requests: int) -> None:
    """Waits until so many connections are with a worker, not in the socket's queue, and were read."""
    port = urlsplit(running.url).port
    assert port is not None

    def taken() -> bool:
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        here = [row for row in rows if int(row[1].split(":")[1], 16) == port and row[3] == "01"]
        # The inode is 0 before somebody accepted; the second number is what waits to be read.
        return sum(row[9] != "0" and int(row[4].split(":")[1], 16) == 0 for row in here) >= requests

    until(taken)
    time.sleep(0.3)


def test_a_second_signal_ends_all_at_once(url: str, folder: Path, tmp_path: Path) -> None:
    token = agent_token(url)
    with serving(url, folder) as running, ThreadPoolExecutor(1) as pool:
        statuses(running, token, range(100, 130))
        known = workers_of(running)
        with write_lock(tmp_path):
            under_way = pool.submit(post, running, token, 200)
            until_taken(running, 1)
            running.process.send_signal(signal.SIGTERM)
            until(lambda: not listens(running))
            running.process.send_signal(signal.SIGTERM)
            assert running.process.wait(15) == 1
            assert [pid for pid in known if alive(pid)] == []
            assert isinstance(under_way.exception(120), http.client.HTTPException | OSError)
        until(lambda: "second signal" in running.output[-1])
    assert look(url)[1] == []


def listens(running: Running) -> bool:
    """Whether the service still takes connections."""
    where = urlsplit(running.url)
    connection = http.client.HTTPConnection(where.netloc, timeout=5)
    try:
        connection.connect()
    except OSError:
        return False
    finally:
        connection.close()
    return True


def test_workers_end_by_themselves_when_their_parent_is_killed(
    url: str, folder: Path, tmp_path: Path
) -> None:
    token = agent_token(url)
    with serving(url, folder) as running, ThreadPoolExecutor(1) as pool:
        statuses(running, token, range(100, 130))
        known = workers_of(running)
        with write_lock(tmp_path):
            under_way = pool.submit(post, running, token, 200)
            until_taken(running, 1)
            running.process.kill()
        assert under_way.result(120)[0] == 201
        until(lambda: not any(map(alive, known)))
        until(lambda: not any(folder.iterdir()))
    assert not listens(running)
    kept, broken = look(url)
    assert broken == []
    assert len(kept.memories) == 31


@pytest.mark.timeout(300)
def test_the_process_they_are_forked_from_may_die(url: str, folder: Path) -> None:
    """There is nobody left to say how they ended, so they make room for others, once they have answered."""
    token = agent_token(url)
    with serving(url, folder) as running:
        first = workers_of(running)
        (nursery,) = (child for child in children(running.process.pid) if children(child))
        os.kill(nursery, signal.SIGKILL)
        until(lambda: len(workers_of(running) - first) == WORKERS and not any(map(alive, first)), 100)
        assert set(statuses(running, token, range(100, 130))) == {201}
        assert counted(running) == 30
    kept, broken = look(url)
    assert broken == []
    assert len(kept.memories) == 30


def test_load_on_all_workers_has_no_lock_error(database_url: str, folder: Path) -> None:
    """Twelve agents at once, the same claims from each, in an order of its own: no 503, no 5xx."""
    token = agent_token(database_url)
    with serving(database_url, folder) as running:
        place = Where(running.url)
        callers = [Caller(place, token) for _ in range(12)]

        def send(number: int) -> list[int]:
            found = []
            for turn in range(24):
                one = 100 + (turn + number * 7) % 24
                reply = callers[number].send("POST", "/v1/claims", claim(one, "ann", "user"))
                assert reply is not None
                found.append(reply.status)
            return found

        with ThreadPoolExecutor(len(callers)) as pool:
            answers = Counter(status for found in pool.map(send, range(12)) for status in found)
        place.close()
        assert answers == {201: 24, 409: 264}
        assert counted(running) == 288
    assert look(database_url)[1] == []
