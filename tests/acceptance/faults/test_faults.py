"""What goes wrong around a running gate: full disks, held locks, lost repositories, rude clients, a stop signal.

The answer is a problem document that says to come again, nothing is half written, and the service goes on.
"""

from __future__ import annotations

import http.client
import itertools
import json
import resource
import shutil
import signal
import socket
import sqlite3
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.acceptance.site import without_promises
from tests.conftest import Postgresql
from tests.repos import TestRepository
from tests.running.invariants import look
from tests.running.load import Caller, Reply, Where, claim
from tests.running.service import Running, make_token, serve
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.people import Role


@pytest.fixture
def where() -> Iterator[Where]:
    """Where the server of this test is; its callers are closed at the end."""
    place = Where()
    yield place
    place.close()


def agent_for(database_url: str, where: Where) -> Caller:
    """An agent whose word counts for what the user said."""
    return Caller(
        where, make_token(database_url, Role.AGENT, any_owner=True, sources=frozenset({Source.USER}))
    )


def reviewer_for(database_url: str, where: Where) -> Caller:
    """Ann."""
    return Caller(where, make_token(database_url, Role.REVIEWER, ["ann"]))


def assert_come_again(reply: Reply | None) -> None:
    """A 503 problem with Retry-After."""
    assert reply is not None
    assert reply.status == 503, reply
    assert reply.headers["content-type"] == "application/problem+json"
    assert int(reply.headers["retry-after"]) >= 1
    assert reply.json["code"] == "storage_unavailable"


def assert_nothing_crashed(running: Running) -> None:
    """No exception reached the end of a request."""
    assert "unexpected error" not in "".join(running.output), running.output


@contextmanager
def write_lock(database_url: str) -> Iterator[None]:
    """Somebody else is in the middle of a transaction, so that no claim of Ann's can be written."""
    if database_url.startswith("sqlite"):
        file = urlsplit(database_url).path.removeprefix("/")
        other = sqlite3.connect(f"/{file}", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            other.execute("ROLLBACK")
            other.close()
        return
    with psycopg.connect(database_url) as connection:
        locked = connection.execute("SELECT * FROM owner WHERE owner_id = 'ann' FOR UPDATE").fetchall()
        assert len(locked) == 1
        yield
        connection.rollback()


def test_a_full_disk_is_a_503_that_leaves_nothing_behind(tmp_path: Path, where: Where) -> None:
    file = tmp_path / "full.db"
    url = f"sqlite:///{file}"
    agent, ann = agent_for(url, where), reviewer_for(url, where)
    told, refused = [], []
    with serve(url) as running:
        where.set(running.url)
        waits = agent.ask("POST", "/v1/claims", claim(1, "ann", "ai_synthesis")).json["queue_id"]
        numbers = itertools.count(100)
        # A file may not grow past a limit. In turn: not at all, within a transaction, within a later one.
        for room in (0, 5_000, 60_000):
            size = (tmp_path / "full.db-wal").stat().st_size
            _limit_file_size(running, size + room)
            reply = None
            for number in itertools.islice(numbers, 200):
                sent = claim(number, "ann", "user")
                reply = agent.send("POST", "/v1/claims", sent, key=f"key-{number}")
                if reply is None or reply.status != 201:
                    break
                told.append(reply)
            assert_come_again(reply)
            refused.append((number, sent))
            if room == 0:  # else there may be room for something smaller
                for act, body in (("approve", {"version": 1}), ("reject", {"version": 1, "reason": "no"})):
                    assert_come_again(ann.send("POST", f"/v1/reviews/{waits}/{act}", body))
                both = {"claims": [claim(n, "ben", "user") for n in (5000, 6000)]}
                batch = agent.send("POST", "/v1/claims/batch", both)
                assert batch is not None
                assert [row["status"] for row in batch.json["results"]] == [503, 503]
                assert (
                    not_ready(agent) == "Claims are refused: the database refused the write: disk I/O error."
                )
            read = ann.send("GET", f"/v1/reviews/{waits}")
            assert read is not None
            assert read.json["status"] == "pending"
            kept, broken = look(url)
            assert broken == []
            assert {memory.content for memory in kept.memories.values()} == {_content(r) for r in told}
            _limit_file_size(running, resource.RLIM_INFINITY)
            told.append(agent.ask("POST", "/v1/claims", claim(number + 10_000, "ann", "user")))
            assert told[-1].status == 201
            assert readiness(agent)[0] == 200
        for number, sent in refused:
            again = agent.ask("POST", "/v1/claims", sent, key=f"key-{number}")
            assert again.status == 201
            assert "idempotency-replayed" not in again.headers
            told.append(again)
        assert ann.ask("POST", f"/v1/reviews/{waits}/approve", {"version": 1}).status == 200
        assert_nothing_crashed(running)
    kept, broken = look(url)
    assert broken == []
    assert all(
        kept.decisions[reply.json["decision_id"]].answer == without_promises(reply.body) for reply in told
    )
    assert len(kept.memories) == len(told) + 1


def readiness(caller: Caller) -> tuple[int, str | None]:
    """The status of `/readyz`, and what is wrong."""
    reply = caller.send("GET", "/readyz")
    assert reply is not None
    return reply.status, reply.json.get("detail")


def not_ready(caller: Caller) -> str:
    """What is wrong, as soon as `/readyz` says so: while the writer is busy, that is all it says."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        status, why = readiness(caller)
        if status == 503:
            return str(why)
        time.sleep(0.1)
    raise AssertionError("it is ready")


def _limit_file_size(running: Running, limit: int) -> None:
    hard = resource.prlimit(running.process.pid, resource.RLIMIT_FSIZE)[1]
    resource.prlimit(running.process.pid, resource.RLIMIT_FSIZE, (limit, hard))


def _content(reply: Reply) -> str:
    return str(reply.json["evidence"]["claim"]["content"])


def test_a_write_lock_held_for_too_long_is_a_503_while_reads_go_on(tmp_path: Path, where: Where) -> None:
    url = f"sqlite:///{tmp_path}/held.db"
    agent, ann = agent_for(url, where), reviewer_for(url, where)
    with serve(f"{url}?timeout=0.05") as running:
        where.set(running.url)
        stored = agent.ask("POST", "/v1/claims", claim(1, "ann", "user"))
        item = agent.ask("POST", "/v1/claims", claim(2, "ann", "ai_synthesis")).json["queue_id"]
        with write_lock(url):
            assert_come_again(agent.send("POST", "/v1/claims", claim(3, "ann", "user"), key="three"))
            assert_come_again(ann.send("POST", f"/v1/reviews/{item}/approve", {"version": 1}))
            for path in (f"/v1/memories/{stored.json['memory_id']}", "/readyz", "/healthz", "/metrics"):
                read = agent.send("GET", path)
                assert read is not None
                assert read.status == 200, read
            checked = agent.send("POST", "/v1/claims/check", claim(3, "ann", "user"))
            assert checked is not None
            assert (checked.status, checked.json["outcome"]) == (200, "stored")
        again = agent.send("POST", "/v1/claims", claim(3, "ann", "user"), key="three")
        assert again is not None
        assert (again.status, "idempotency-replayed" in again.headers) == (201, False)
        approved = ann.send("POST", f"/v1/reviews/{item}/approve", {"version": 1})
        assert approved is not None
        assert approved.status == 200
        assert_nothing_crashed(running)
    kept, broken = look(url)
    assert broken == []
    assert len(kept.memories) == 3


def test_a_database_that_becomes_read_only_is_a_503_and_then_forgotten(
    postgresql: Postgresql, request: pytest.FixtureRequest, where: Where
) -> None:
    postgresql.run("CREATE DATABASE frozen TEMPLATE migrated")
    request.addfinalizer(lambda: postgresql.run("DROP DATABASE frozen WITH (FORCE)"))
    url = postgresql.url("frozen")
    agent = agent_for(url, where)
    hang_up = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'frozen'"
    with serve(url) as running:
        where.set(running.url)
        first = agent.ask("POST", "/v1/claims", claim(1, "ann", "user"))
        postgresql.run("ALTER DATABASE frozen SET default_transaction_read_only = on")
        postgresql.run(hang_up)
        assert_come_again(agent.send("POST", "/v1/claims", claim(2, "ann", "user")))
        assert "read-only transaction" in not_ready(agent)
        read = agent.send("GET", f"/v1/memories/{first.json['memory_id']}")
        assert read is not None
        assert read.status == 200
        postgresql.run("ALTER DATABASE frozen RESET default_transaction_read_only")
        postgresql.run(hang_up)  # every kept connection is dead now: that costs time, not an answer
        after = agent.send("POST", "/v1/claims", claim(2, "ann", "user"))
        assert after is not None
        assert after.status == 201
        assert readiness(agent)[0] == 200
        assert_nothing_crashed(running)
    kept, broken = look(url)
    assert broken == []
    assert len(kept.memories) == 2


def test_a_log_that_is_removed_loses_nothing_that_was_answered(tmp_path: Path, where: Where) -> None:
    file = tmp_path / "gate.db"
    url = f"sqlite:///{file}"
    agent = agent_for(url, where)
    with serve(url) as running:
        where.set(running.url)
        told = [agent.ask("POST", "/v1/claims", claim(number, "ann", "user")) for number in range(3)]
        assert [reply.status for reply in told] == [201] * 3
        Path(f"{file}-wal").unlink()
        for number in range(10, 13):
            assert_come_again(agent.send("POST", "/v1/claims", claim(number, "ann", "user")))
        status, why = readiness(agent)
        assert status == 503
        assert (
            "gate.db-wal was removed or replaced under the running service; all that was answered is in"
            in str(why)
        )
        running.process.kill()
        running.process.wait(60)
    kept, broken = look(url)
    assert broken == []
    assert {memory.content for memory in kept.memories.values()} == {_content(reply) for reply in told}


def test_a_repository_that_disappears_makes_its_citations_unknown(tmp_path: Path, where: Where) -> None:
    repository = TestRepository(tmp_path / "repository")
    record = "# {n}. Use {what}\n\n## Status\n\nAccepted\n\n## Decision\n\nWe use {what}.\n"
    repository.commit(
        "Two records",
        {
            "docs/adrs/0001-use-postgresql.md": record.format(n=1, what="PostgreSQL"),
            "docs/adrs/0002-use-redis.md": record.format(n=2, what="Redis"),
        },
    )
    url = f"sqlite:///{tmp_path}/grounded.db"
    agent = agent_for(url, where)

    def decided(number: int, words: str) -> Reply:
        sent = claim(number, "ann", "ai_synthesis")
        return agent.ask("POST", "/v1/claims", sent | {"content": words})

    with serve(url, repos=[repository.path]) as running:
        where.set(running.url)
        before = decided(1, "We use PostgreSQL, as ADR-0001 says.")
        assert (before.status, before.json["tier"]) == (201, "tier_1")
        shutil.rmtree(repository.path)
        for number, words in (
            (2, "PostgreSQL is what we use for ledgers (ADR-0001)."),
            (3, "We use Redis, as ADR-0002 says."),
        ):
            after = decided(number, words)
            assert (after.status, after.json["tier"], after.json["rule"]) == (
                202,
                "tier_2",
                "citation_unknown",
            ), after
            assert "UNKNOWN" in {finding["verdict"] for finding in after.json["findings"]}
        ready = agent.send("GET", "/readyz")
        assert ready is not None
        assert ready.status == 200
        assert ready.json["degraded"]
        assert_nothing_crashed(running)
    assert look(url)[1] == []


def test_a_stop_signal_lets_requests_under_way_finish(database_url: str, where: Where) -> None:
    token = make_token(database_url, Role.AGENT, any_owner=True, sources=frozenset({Source.USER}))
    reviewer = make_token(database_url, Role.REVIEWER, ["ann"])
    agent = Caller(where, token)
    with serve(database_url) as running:
        where.set(running.url)
        item = agent.ask("POST", "/v1/claims", claim(1, "ann", "ai_synthesis")).json["queue_id"]
        with write_lock(database_url):
            submits = [_begin(running, "/v1/claims", token, claim(n, "ann", "user")) for n in range(2, 10)]
            rows = {"claims": [claim(n, "ann", "user") for n in range(20, 25)]}
            batch = _begin(running, "/v1/claims/batch", token, rows)
            approval = _begin(running, f"/v1/reviews/{item}/approve", reviewer, {"version": 1})
            for _ in range(3):  # what was sent before is under way when these are answered
                assert agent.ask("GET", "/v1/memories").json["items"] == []
            running.process.send_signal(signal.SIGTERM)
            time.sleep(0.3)
            assert running.process.poll() is None
        answers = [_finish(connection) for connection in submits]
        assert [answer[0] for answer in answers] == [201] * len(submits)
        results = json.loads(_finish(batch)[1])["results"]
        assert [row["outcome"] for row in results] == ["stored"] * 5
        assert _finish(approval)[0] == 200
        assert running.process.wait(120) == 0
        assert agent.send("GET", "/healthz") is None
        assert_nothing_crashed(running)
    kept, broken = look(database_url)
    assert broken == []
    assert len(kept.memories) == len(submits) + 5 + 1
    for _, text in answers:
        assert kept.decisions[json.loads(text)["decision_id"]].answer == without_promises(text)


def _begin(running: Running, path: str, token: str, body: object) -> http.client.HTTPConnection:
    """Sends a whole request and does not wait for the answer."""
    connection = http.client.HTTPConnection(urlsplit(running.url).netloc, timeout=30)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection.request("POST", path, json.dumps(body), headers)
    return connection


def _finish(connection: http.client.HTTPConnection) -> tuple[int, str]:
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def test_clients_that_hang_up_leave_whole_claims_or_none(database_url: str, where: Where) -> None:
    agent = agent_for(database_url, where)
    gone = range(100, 140)
    with serve(database_url) as running:
        where.set(running.url)
        assert agent.ask("POST", "/v1/claims", claim(1, "ann", "user")).status == 201
        with write_lock(database_url):
            for number in gone:
                text = _request(agent.token, claim(number, "ann", "user"))
                # Every other one breaks off in its body; every third is cut off, not closed.
                _hang_up(running, text if number % 2 else text[:-10], reset=number % 3 == 0)
            assert agent.ask("GET", "/healthz").status == 200
        assert agent.ask("POST", "/v1/claims", claim(2, "ann", "user")).status == 201
        answers = {n: agent.ask("POST", "/v1/claims", claim(n, "ann", "user")) for n in gone}
        assert_nothing_crashed(running)
    kept, broken = look(database_url)
    assert broken == []
    assert len(kept.memories) == len(gone) + 2
    assert [n for n in gone if n % 2 == 0 and answers[n].status != 201] == []
    assert {answers[n].status for n in gone} <= {201, 409}
    assert 409 in {answers[n].status for n in gone}, "no request that came whole was taken up"


def _request(token: str, body: object) -> bytes:
    text = json.dumps(body).encode()
    head = (
        f"POST /v1/claims HTTP/1.1\r\nHost: gate\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
    )
    return head.encode() + text


def _connect(running: Running) -> socket.socket:
    where = urlsplit(running.url)
    assert where.hostname is not None
    assert where.port is not None
    return socket.create_connection((where.hostname, where.port), timeout=30)


def _hang_up(running: Running, data: bytes, *, reset: bool) -> None:
    connection = _connect(running)
    connection.sendall(data)
    time.sleep(0.005)
    if reset:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def test_slow_senders_hold_up_nobody_else(tmp_path: Path, where: Where) -> None:
    url = f"sqlite:///{tmp_path}/slow.db"
    agent = agent_for(url, where)
    with serve(url) as running:
        where.set(running.url)
        agent.ask("GET", "/healthz")
        texts = [_request(agent.token, claim(number, "ben", "user")) for number in range(100, 200)]
        slow = [_connect(running) for _ in texts]
        try:
            for connection, text in zip(slow, texts, strict=True):
                connection.sendall(text[:-30])
            for number in range(30):
                for connection, text in zip(slow, texts, strict=True):
                    connection.sendall(text[number - 30 : number - 29 or None])
                if number < 29:  # before any of the slow ones has said all it has to say
                    assert agent.ask("POST", "/v1/claims", claim(number, "ann", "user")).status == 201
            for connection in slow:
                assert connection.recv(12) == b"HTTP/1.1 201"
        finally:
            for connection in slow:
                connection.close()
        assert_nothing_crashed(running)
    kept, broken = look(url)
    assert broken == []
    assert len(kept.memories) == 29 + len(texts)
