"""Two services on one database, and one of several workers: the same claims, keys and reviews at all of them,
and limits for all together."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest
from sqlalchemy import func, select

from tests.acceptance.site import without_promises
from tests.running.invariants import look
from tests.running.load import Caller, Reply, Where, claim, seeded
from tests.running.service import THRESHOLD, make_token, serve
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.people import Role
from vouchgate.storage.queue import pending
from vouchgate.storage.store import Store

T = TypeVar("T")

OWNERS = ("ann", "ben", "cem")
PER_OWNER, TOTAL = 8, 14


@dataclass
class Pair:
    """Both servers, or one twice that has several workers, and who calls them."""

    url: str
    places: Sequence[Where]
    agent: str
    reviewers: dict[str, str]

    def callers(self, token: str, each: int = 1) -> list[Caller]:
        """So many callers at each server."""
        return [Caller(place, token) for place in self.places for _ in range(each)]


@contextmanager
def opened(database_url: str, tmp_path: Path, *, services: int) -> Iterator[Pair]:
    """Two servers with small queues, or one with two workers."""
    policy = tmp_path / "policy.toml"
    policy.write_text(
        f"[limits]\nclaims_per_minute = 0\n"
        f"[queue]\nper_agent = {PER_OWNER}\nper_owner = {PER_OWNER}\ntotal = {TOTAL}\nretry_after_seconds = 77\n"
    )
    agent = make_token(database_url, Role.AGENT, any_owner=True, sources=frozenset({Source.USER}))
    reviewers = {owner: make_token(database_url, Role.REVIEWER, [owner]) for owner in OWNERS}
    with ExitStack() as stack:
        servers = [
            stack.enter_context(serve(database_url, policy=policy, workers=2 // services))
            for _ in range(services)
        ]
        places = [Where(servers[number % services].url) for number in range(2)]
        yield Pair(database_url, places, agent, reviewers)
        for place in places:
            place.close()
    for server in servers:
        assert "unexpected error" not in "".join(server.output), server.output


def all_at_once(callers: Sequence[Caller], act: Callable[[Caller, int], T]) -> list[T]:
    """`act(caller, number)` in a thread for each, all started together."""
    gate = threading.Barrier(len(callers))

    def run(number: int) -> T:
        gate.wait(120)
        return act(callers[number], number)

    with ThreadPoolExecutor(len(callers)) as pool:
        return list(pool.map(run, range(len(callers))))


@pytest.mark.on(
    "postgresql"
)  # on SQLite, which is locked as a whole, processes are those of one service below
def test_services_on_one_database_act_as_one(database_url: str, tmp_path: Path) -> None:
    with opened(database_url, tmp_path, services=2) as pair:
        act_as_one(pair)


def test_workers_of_a_service_act_as_one(database_url: str, tmp_path: Path) -> None:
    with opened(database_url, tmp_path, services=1) as pair:
        act_as_one(pair)


def act_as_one(pair: Pair) -> None:
    same_claims_are_stored_once(pair)
    one_key_is_one_request(pair)
    item = same_claims_wait_once(pair)
    one_item_is_approved_once(pair, item)
    queues_never_overflow(pair)
    kept, broken = look(pair.url)
    assert broken == []
    assert kept.total == TOTAL


def same_claims_are_stored_once(pair: Pair) -> None:
    numbers = range(100, 112)

    def send_all(caller: Caller, number: int) -> list[Reply]:
        order = list(numbers) if number % 2 else list(reversed(numbers))
        answers = {n: caller.ask("POST", "/v1/claims", claim(n, "ann", "user")) for n in order}
        return [answers[n] for n in numbers]

    answers = all_at_once(pair.callers(pair.agent, each=2), send_all)
    for of_claim in zip(*answers, strict=True):
        assert sorted(reply.status for reply in of_claim) == [201, 409, 409, 409]
        stored = next(reply.json["memory_id"] for reply in of_claim if reply.status == 201)
        others = [reply.json for reply in of_claim if reply.status == 409]
        assert {row["conflicting_memory_id"] for row in others} == {stored}


def one_key_is_one_request(pair: Pair) -> None:
    numbers = range(200, 208)

    def same_body(caller: Caller, _: int) -> list[Reply]:
        return [caller.ask("POST", "/v1/claims", claim(n, "ann", "user"), f"same-{n}") for n in numbers]

    for of_key in zip(*all_at_once(pair.callers(pair.agent, each=2), same_body), strict=True):
        assert {reply.status for reply in of_key} == {201}
        assert len({without_promises(reply.body) for reply in of_key}) == 1
        assert sum("idempotency-replayed" not in reply.headers for reply in of_key) == 1

    def other_owner(caller: Caller, number: int) -> list[Reply]:
        owner = OWNERS[number]
        return [
            caller.ask("POST", "/v1/claims", claim(n, owner, "user"), f"other-{n}") for n in range(300, 308)
        ]

    for of_key in zip(*all_at_once(pair.callers(pair.agent), other_owner), strict=True):
        assert sorted(reply.status for reply in of_key) == [201, 409]
        refused = next(reply for reply in of_key if reply.status == 409)
        assert refused.json["code"] == "idempotency_key_reused"


def same_claims_wait_once(pair: Pair) -> str:
    def send(caller: Caller, _: int) -> Reply:
        return caller.ask("POST", "/v1/claims", claim(400, "ann", "ai_synthesis"))

    answers = all_at_once(pair.callers(pair.agent, each=3), send)
    assert {reply.status for reply in answers} == {202}
    items = {reply.json["queue_id"] for reply in answers}
    assert len(items) == 1
    assert sorted(reply.json["rule"] for reply in answers) == ["already_pending"] * 5 + ["ungrounded"]
    return str(items.pop())


def one_item_is_approved_once(pair: Pair, item: str) -> None:
    def approve(caller: Caller, _: int) -> Reply:
        reply = caller.send("POST", f"/v1/reviews/{item}/approve", {"version": 1})
        assert reply is not None
        return reply

    answers = all_at_once(pair.callers(pair.reviewers["ann"], each=3), approve)
    assert sorted(reply.status for reply in answers) == [200] + [409] * 5
    assert {reply.json["code"] for reply in answers if reply.status == 409} == {"already_decided"}


def queues_never_overflow(pair: Pair) -> None:
    agents = pair.callers(pair.agent, each=2)
    reviewers = [Caller(place, token) for place in pair.places for token in pair.reviewers.values()]
    full = threading.Event()
    most: Counter[str] = Counter()

    def fill(number: int) -> list[Reply]:
        dice = seeded(number)
        try:
            return [
                agents[number].ask("POST", "/v1/claims", claim(n, dice.choice(OWNERS), "ai_synthesis"))
                for n in range(1000 * (number + 1), 1000 * (number + 1) + 20)
            ]
        finally:
            full.set()

    with ThreadPoolExecutor(len(reviewers) + 1) as pool:
        others = [pool.submit(reject, caller, full) for caller in reviewers]
        others.append(pool.submit(watch, pair.url, full, most))
        filled = all_at_once(agents, lambda _, number: fill(number))
        for other in others:
            other.result(120)
    # Now nobody reviews any more, and every place is taken.
    replies = [reply for of_agent in filled for reply in of_agent]
    for owner in OWNERS:
        sent = [claim(n, owner, "ai_synthesis") for n in range(9000, 9001 + PER_OWNER)]
        replies += [agents[n % 2 * 2].ask("POST", "/v1/claims", one) for n, one in enumerate(sent)]
    assert {reply.status for reply in replies} == {202, 429}
    refused = [reply for reply in replies if reply.status == 429]
    assert {(reply.headers["retry-after"], reply.json["code"]) for reply in refused} == {("77", "queue_full")}
    assert most["looks"] > 10
    assert 0 < most["owner"] <= PER_OWNER, most
    assert 0 < most["total"] <= TOTAL, most


def watch(url: str, stop: threading.Event, most: Counter[str]) -> None:
    """Counts what waits, as each moment of the database shows it."""
    waiting = select(pending.TABLE.c.owner_id, func.count()).where(pending.TABLE.c.status == "pending")
    store = Store.open(url, threshold=THRESHOLD)
    try:
        while not stop.is_set():
            with store.read() as connection:
                rows = connection.execute(waiting.group_by(pending.TABLE.c.owner_id)).all()
            counts = [count for _, count in rows]
            most["looks"] += 1
            most["owner"] = max([most["owner"], *counts])
            most["total"] = max(most["total"], sum(counts))
            stop.wait(0.005)
    finally:
        store.close()


def reject(caller: Caller, stop: threading.Event) -> None:
    """Makes room, now and then two reviewers at once."""
    seen = set()
    while not stop.is_set():
        for item in caller.ask("GET", "/v1/reviews?limit=3").json["items"]:
            body = {"version": item["version"], "reason": "it is not so"}
            reply = caller.send("POST", f"/v1/reviews/{item['id']}/reject", body)
            assert reply is not None
            seen.add(reply.status)
        stop.wait(0.05)
    assert seen <= {200, 409}, seen
