"""Three gates on one PostgreSQL database: what one of them is told all know, and what one leaves undone when it is
killed another does."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.acceptance.faults.test_durability import check_told
from tests.claims import NOW
from tests.running.invariants import look
from tests.running.load import Caller, Ledger, Load, Where, claim
from tests.running.patience import until
from tests.running.service import THRESHOLD, Running, make_token, serve
from tests.web import Answer, WebServer, web_server
from vouchgate.cli.app import run
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.people import Role
from vouchgate.storage.log import tree
from vouchgate.storage.outgoing import webhooks
from vouchgate.storage.store import Store
from vouchgate.workers.sequencer import LEASE_SECONDS

OWNERS = [f"owner-{number}" for number in range(200)]
FIRST = 10**6  # claims from this number on are those of the test itself
TOLD = OWNERS[FIRST % len(OWNERS)]
TOTAL = 100  # places in the queue of all


@dataclass
class Gates:
    """Three of them, each with who calls it, and the receiver of one owner's webhook."""

    url: str
    running: list[Running]
    places: list[Where]
    agents: list[str]
    reviewer: str
    receiver: WebServer

    def kill(self, number: int) -> None:
        """Ends this gate at once. Whoever calls it in a load finds the last one there, as behind a proxy."""
        self.running[number].process.send_signal(signal.SIGKILL)
        self.running[number].process.wait(120)
        self.places[number].set(self.running[-1].url)

    @contextmanager
    def caller(self, number: int) -> Iterator[Caller]:
        """An agent at this gate."""
        place = Where(self.running[number].url)
        try:
            yield Caller(place, self.agents[number])
        finally:
            place.close()


@pytest.fixture
def gates(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gates]:
    """All with one key of the log and one policy."""
    policy = tmp_path / "policy.toml"
    policy.write_text(
        f"[limits]\nclaims_per_minute = 0\n[queue]\nper_agent = {TOTAL}\nper_owner = {TOTAL}\ntotal = {TOTAL}\n"
    )
    agents = [
        make_token(database_url, Role.AGENT, any_owner=True, sources=frozenset({Source.USER}))
        for _ in range(3)
    ]
    reviewer = make_token(database_url, Role.REVIEWER, OWNERS[:30])
    environment = {
        "VOUCHGATE_LOG_KEY": str(tmp_path / "log-key"),
        "VOUCHGATE_ALLOW_NETWORKS": "127.0.0.0/8",
    }
    for name, value in {**environment, "VOUCHGATE_DATABASE_URL": database_url}.items():
        monkeypatch.setenv(name, value)
    with ExitStack() as stack:
        receiver = stack.enter_context(web_server({"/hook": Answer()}))
        running = [
            stack.enter_context(serve(database_url, policy=policy, environment=environment)) for _ in agents
        ]
        places = [Where(each.url) for each in running]
        yield Gates(database_url, running, places, agents, reviewer, receiver)
        for place in places:
            place.close()
    for each in running:
        assert "unexpected error" not in "".join(each.output), each.output


@pytest.mark.on("postgresql")
def test_three_gates_are_one_and_the_last_one_left_does_what_the_others_did(gates: Gates) -> None:
    # The same claims for the same owners at all three at once, while one of the three is killed.
    loads = [
        Load(place, [agent], [gates.reviewer], OWNERS)
        for place, agent in zip(gates.places, gates.agents, strict=True)
    ]
    with ExitStack() as stack:
        for load in loads:
            stack.enter_context(load)
        for load in loads:
            load.wait_for(25)
        gates.kill(0)
        for load in loads:
            load.wait_for(12)
        ledgers = [load.finish() for load in loads]
    kept, broken = look(gates.url)
    assert broken == []
    assert kept.total <= TOTAL
    assert len({decision.owner_id for decision in kept.decisions.values()}) > 50
    told = Ledger()
    for ledger in ledgers:
        told.answered += ledger.answered
        told.ruled += ledger.ruled
        told.failures += ledger.failures
    check_told(told, kept)
    store = Store.open(gates.url, threshold=THRESHOLD)
    webhooks.create(store, owner_id=TOLD, url=f"{gates.receiver.url}/hook", actor="test", now=NOW)
    the_queue_is_one(gates, kept.total)
    gates.kill(1)
    the_last_one_does_the_work(gates, store)
    store.close()


def the_queue_is_one(gates: Gates, waiting: int) -> None:
    """The places in it are as many as ever, whoever is asked in turn."""
    numbers = range(FIRST, FIRST + TOTAL - waiting + 6)
    with gates.caller(1) as one, gates.caller(2) as other:
        sent = [
            (one, other)[number % 2].ask(
                "POST", "/v1/claims", claim(number, OWNERS[number % len(OWNERS)], "ai_synthesis")
            )
            for number in numbers
        ]
    assert [reply.status for reply in sent] == [202] * (TOTAL - waiting) + [429] * 6


def the_last_one_does_the_work(gates: Gates, store: Store) -> None:
    """Receipts, though a process that was killed holds the sequencer's lease; and what an owner is told."""
    now = datetime.now(UTC) + timedelta(seconds=LEASE_SECONDS)  # whoever may hold it now, in good health
    assert store.writer.run((), lambda c: tree.lease(c, "killed", now, -LEASE_SECONDS / 2)).result()
    with gates.caller(2) as last:
        stored = last.ask("POST", "/v1/claims", claim(2 * FIRST, OWNERS[0], "user")).json["decision_id"]
        until(lambda: last.ask("GET", f"/v1/receipts/{stored}").status == 200)
    until(lambda: gates.receiver.asked)
    assert [len(json.loads(asked.body)["data"]["queued"]) for asked in gates.receiver.asked] == [1]
    assert run(["log", "verify"]) == 0
