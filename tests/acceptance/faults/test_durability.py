"""What was answered is kept: the service and its database are killed in the middle of a load, again and again."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.site import without_promises
from tests.conftest import Postgresql
from tests.running.invariants import Kept, look
from tests.running.load import Caller, Ledger, Load, Where, seeded
from tests.running.service import make_token, serve
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.people import Role
from vouchgate.ingest.claims.waiting import ReviewStatus

OWNERS = ("ann", "ben", "cem")
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL, signal.SIGKILL)
STATUS = {"stored": {201}, "queued": {202}, "blocked": {409, 422}}
SAMPLE = 40  # of what is read back, or sent again, one by one


@pytest.fixture
def where() -> Iterator[Where]:
    """Where the server of this test is; its callers are closed at the end."""
    place = Where()
    yield place
    place.close()


@pytest.fixture
def roomy(tmp_path: Path) -> Path:
    """A policy whose queues are never full."""
    policy = tmp_path / "policy.toml"
    policy.write_text("[queue]\nper_agent = 100000\nper_owner = 100000\ntotal = 100000\n")
    return policy


def start_load(database_url: str, where: Where) -> Load:
    """Four agents for all owners, two reviewers."""
    agents = [
        make_token(database_url, Role.AGENT, any_owner=True, sources=frozenset({Source.USER}))
        for _ in range(2)
    ]
    reviewers = [make_token(database_url, Role.REVIEWER, [owner]) for owner in OWNERS[:2]]
    return Load(where, agents * 2, reviewers, OWNERS)


def test_a_killed_service_keeps_all_it_answered_and_leaves_nothing_half_written(
    database_url: str, roomy: Path, where: Where
) -> None:
    dice = seeded("kills")
    with start_load(database_url, where) as load:
        for number in SIGNALS:
            with serve(database_url, policy=roomy) as running:
                where.set(running.url)
                load.wait_for(dice.randint(10, 80))
                # That was just after an answer; let it be any moment of the next transactions.
                time.sleep(dice.uniform(0, 0.03))
                running.process.send_signal(number)
                where.set(None)
                code = running.process.wait(120)
                assert code == (0 if number == signal.SIGTERM else -signal.SIGKILL), running.output
        with serve(database_url, policy=roomy) as running:
            where.set(running.url)
            load.wait_for(20)
            ledger = load.finish()
            kept, broken = look(database_url)
            assert broken == []
            check_told(ledger, kept)
            check_through_api(ledger, where, database_url)
    assert ledger.retried, "no kill hit a request under way"
    assert not ledger.refused, ledger.refused[:3]


def test_a_database_server_that_crashes_under_load_costs_answers_but_nothing_answered(
    postgresql: Postgresql, roomy: Path, where: Where, request: pytest.FixtureRequest
) -> None:
    name = "crashing"
    postgresql.run(f"CREATE DATABASE {name} TEMPLATE migrated")
    request.addfinalizer(lambda: postgresql.run(f"DROP DATABASE {name} WITH (FORCE)"))
    database_url = postgresql.url(name)
    load = start_load(database_url, where)
    with serve(database_url, policy=roomy) as running, load:
        where.set(running.url)
        for more in (40, 25):
            load.wait_for(more)
            postgresql.crash()
            postgresql.start()
        load.wait_for(40)
        # A server that is back soon enough may have cost no answer: this one stays away until it has.
        before, until = len(load.ledger.refused), time.monotonic() + 120
        postgresql.crash()
        while len(load.ledger.refused) == before and time.monotonic() < until:
            time.sleep(0.05)
        postgresql.start()
        load.wait_for(25)
        ledger = load.finish()
        kept, broken = look(database_url)
        assert broken == []
        check_told(ledger, kept)
        check_refused(ledger, kept)
        check_through_api(ledger, where, database_url)
    assert ledger.refused, "the crashes hit nothing"
    assert {reply.headers["retry-after"] for _, reply in ledger.refused} == {"1"}


def check_told(ledger: Ledger, kept: Kept) -> None:
    """Everything a caller was told is in the database, once, word for word."""
    assert ledger.failures == []
    stored_for: dict[str, str] = {}
    for sent, reply in ledger.answered:
        if not sent.batch:
            rows = [reply.json]
            assert reply.status in STATUS[rows[0]["outcome"]], reply
            assert without_promises(reply.body) == kept.decisions[rows[0]["decision_id"]].answer
        else:
            assert reply.status == 200, reply
            rows = reply.json["results"]
            texts = [kept.decisions[row["decision_id"]].answer for row in rows]
            assert without_promises(reply.body) == f'{{"results":[{",".join(texts)}]}}'
        for asked, row in zip(sent.rows, rows, strict=True):
            check_row(asked, row, kept)
            if row["memory_id"] is not None:
                assert stored_for.setdefault(row["memory_id"], row["decision_id"]) == row["decision_id"]
    approved: set[str] = set()
    for item_id, act, reply in ledger.ruled:
        item = kept.pending[item_id]
        if reply.status == 503:
            continue
        if reply.status == 409:  # an earlier act whose answer was lost
            assert reply.json["code"] == "already_decided", reply
            continue
        assert reply.status == 200, reply
        if act == "reject":
            assert item.status == ReviewStatus.REJECTED
            continue
        memory = reply.json["memory"]
        assert (item.status, item.memory_id) == (ReviewStatus.APPROVED, memory["id"])
        assert kept.memories[memory["id"]].content == memory["content"] == item.content
        assert item_id not in approved, "one item was approved twice"
        approved.add(item_id)
    assert len({m.decision_id for m in kept.memories.values()}) == len(kept.memories)
    assert approved
    assert stored_for


def check_refused(ledger: Ledger, kept: Kept) -> None:
    """Where the answer said that nothing was kept, nothing was: for claims that were sent only once."""
    everything = [*(sent for sent, _ in ledger.answered + ledger.refused), *ledger.lost]
    times = Counter(row["content"] for sent in everything for row in sent.rows)
    decided = {answer.evidence.claim.content for answer in kept.answers.values()}
    for sent, reply in ledger.refused:
        if sent.key is None and times[content := sent.rows[0]["content"]] == 1:
            assert content not in decided or "may have been kept" in reply.json["detail"], reply


def check_row(asked: dict[str, Any], row: dict[str, Any], kept: Kept) -> None:
    """One verdict and what it says became of the claim."""
    claim = row["evidence"]["claim"]
    assert (claim["content"], claim["owner_id"]) == (asked["content"], asked["user_id"])
    match row["outcome"]:
        case "stored":
            assert kept.memories[row["memory_id"]].content == asked["content"]
        case "queued":
            assert kept.pending[row["queue_id"]].content == asked["content"]
        case "blocked" if row["rule"] == "duplicate":
            assert kept.memories[row["conflicting_memory_id"]].content == asked["content"]


def check_through_api(ledger: Ledger, where: Where, database_url: str) -> None:
    """The same through the API, for a sample; and a request sent again gets its first answer."""
    dice = seeded("sample")
    auditor = Caller(where, make_token(database_url, Role.AUDITOR, any_owner=True))
    singles = [(sent, reply) for sent, reply in ledger.answered if not sent.batch]
    for _, reply in dice.sample(singles, min(SAMPLE, len(singles))):
        assert auditor.ask("GET", f"/v1/decisions/{reply.json['decision_id']}").body == without_promises(
            reply.body
        )
        if (memory_id := reply.json["memory_id"]) is not None:
            read = auditor.ask("GET", f"/v1/memories/{memory_id}")
            assert read.json["content"] == reply.json["evidence"]["claim"]["content"]
    keyed = [(sent, reply) for sent, reply in ledger.answered if sent.key is not None]
    retried = [pair for pair in keyed if pair[0].key in set(ledger.retried)]
    callers = {token: Caller(where, token) for token in {sent.token for sent, _ in keyed}}
    for sent, reply in [*retried, *dice.sample(keyed, min(SAMPLE, len(keyed)))]:
        answer = callers[sent.token].ask("POST", sent.path, sent.body, sent.key)
        assert (answer.status, without_promises(answer.body)) == (reply.status, without_promises(reply.body))
        assert sent.batch or answer.headers["idempotency-replayed"] == "true"
