"""What was answered is kept: the service and its database are killed in the middle of a load, again and again."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.site import without_promises
from tests.conftest import Postgresql
from tests.running.invariants import Kept, look
from tests.running.load import Caller, Ledger, Load, Where, seeded
from tests.running.service import make_token, serve
from tests.running.told import kept_though_refused, untrue, unvouched
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.people import Role

OWNERS = ("ann", "ben", "cem")
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL, signal.SIGKILL)
SAMPLE = 20  # of what is read back, or sent again, one by one


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
    policy.write_text(
        "[limits]\nclaims_per_minute = 0\n[queue]\nper_agent = 100000\nper_owner = 100000\ntotal = 100000\n"
    )
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
                load.wait_for(dice.randint(10, 40))
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
        load.wait_for(25)
        postgresql.crash()
        postgresql.start()
        load.wait_for(25)
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
        assert list(kept_though_refused(ledger, kept)) == []
        check_through_api(ledger, where, database_url)
    assert ledger.refused, "the crashes hit nothing"
    assert {reply.headers["retry-after"] for _, reply in ledger.refused} == {"1"}


def check_told(ledger: Ledger, kept: Kept) -> None:
    """Everything a caller was told is in the database, once, word for word."""
    assert list(untrue(ledger, kept)) == []
    assert list(unvouched(kept)) == []
    assert any(act == "approve" and reply.status == 200 for _, act, reply in ledger.ruled)
    assert any(reply.status == 201 for _, reply in ledger.answered)
    assert all(reply.status != 429 for _, reply in ledger.answered)


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
