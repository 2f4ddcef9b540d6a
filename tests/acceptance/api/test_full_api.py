"""What happens at the limits of the queue and of a token's rate."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.acceptance.site import Site, claim, is_problem, open_site, queue, submit

PER_OWNER, TOTAL, PER_MINUTE = 3, 7, 12

POLICY = f"""
[queue]
per_owner = {PER_OWNER}
total = {TOTAL}
retry_after_seconds = 77

[limits]
claims_per_minute = {PER_MINUTE}
"""


@pytest.fixture
def site(database_url: str, tmp_path: Path) -> Iterator[Site]:
    """A gate with a very small queue, for each test: the total is everybody's."""
    policy = tmp_path / "small.toml"
    policy.write_text(POLICY, "utf-8")
    with open_site(database_url, policy=policy) as opened:
        yield opened


def test_a_full_queue_takes_nothing_until_its_owner_decides(site: Site) -> None:
    owner = site.owner()
    agent, reviewer = site.agent(owner), site.reviewer(owner)
    made = [queue(agent, f"Barrel {number} holds {number + 50} litres") for number in range(PER_OWNER)]
    one_more = claim("Barrel nine leaks a little", "ai_synthesis")
    before = site.events(owner)
    full = agent.post("/v1/claims", json=one_more, headers={"Idempotency-Key": "nine"})
    assert str(PER_OWNER) in is_problem(full, 429, "queue_full")["detail"]
    assert full.headers["Retry-After"] == "77"
    assert site.events(owner) == before
    # What needs no place in the queue is still decided.
    assert submit(agent, claim("Barrel 1 holds 51 litres", "ai_synthesis"), 202).queue_id == made[1]
    assert submit(agent, claim("Barrels are made of oak"), 201).rule == "trusted_source"
    assert submit(agent, claim("I guess barrels are cheap"), 422).rule == "speculation"
    batch = agent.post("/v1/claims/batch", json={"claims": [one_more, claim("Lids are made of pine")]})
    assert [row.get("code") or row["rule"] for row in batch.json()["results"]] == [
        "queue_full",
        "trusted_source",
    ]
    reviewer.post(f"/v1/reviews/{made[0]}/reject", json={"version": 1, "reason": "empty"})
    # The refusal was no decision: the same key may be tried again.
    assert submit(agent, one_more, 202, key="nine").rule == "ungrounded"


def test_the_whole_queue_has_a_limit_too(site: Site) -> None:
    owners = [site.owner() for _ in range(4)]
    statuses = []
    for owner in owners:
        agent = site.agent(owner)
        for number in range(2):
            body = claim(f"Crane {number} lifts {number + 4} tons", "ai_synthesis")
            statuses.append(agent.post("/v1/claims", json=body).status_code)
    assert statuses == [202] * TOTAL + [429]
    answer = site.agent(owners[0]).post("/v1/claims", json=claim("Crane 8 is rusty", "ai_synthesis"))
    is_problem(answer, 429, "queue_full")
    assert "Retry-After" in answer.headers


def test_the_limit_holds_when_many_come_at_once(site: Site) -> None:
    owner = site.owner()
    agents = [site.agent(owner), site.agent(owner)]

    def send(number: int) -> int:
        body = claim(f"Wagon {number} carries {number * 17} crates", "ai_synthesis")
        return agents[number % 2].post("/v1/claims", json=body).status_code

    with ThreadPoolExecutor(8) as pool:
        statuses = sorted(pool.map(send, range(16)))
    assert statuses == [202] * PER_OWNER + [429] * (16 - PER_OWNER)
    assert len(site.reviewer(owner).get("/v1/reviews").json()["items"]) == PER_OWNER


def test_a_token_has_a_rate(site: Site) -> None:
    owner = site.owner()
    agent = site.agent(owner)
    rows = [claim(f"Cart {number} has {number + 2} wheels") for number in range(PER_MINUTE)]
    assert agent.post("/v1/claims/batch", json={"claims": rows}).status_code == 200
    before = site.events(owner)
    given = {"claim": "Carts are blue", "sources": [{"text": "Carts are blue."}]}
    document = {"name": "carts.md", "content": "Carts are blue."}
    for path, body in (  # every door that costs work
        ("/v1/claims", rows[0]),
        ("/v1/claims/check", rows[0]),
        ("/v1/claims/batch", {"claims": rows}),
        ("/v1/claims/corroborate", given),
        ("/v1/decide", given | {"attempts": 0, "max_attempts": 1}),
        ("/v1/documents", document),
        ("/v1/documents/check", document),
    ):
        slow = agent.post(path, json=body)
        is_problem(slow, 429, "rate_limited")
        assert 1 <= int(slow.headers["Retry-After"]) <= 61
    assert site.events(owner) == before
    assert agent.get("/v1/memories").status_code == 200
    second = site.agent(owner)
    is_problem(second.post("/v1/claims/batch", json={"claims": [*rows, rows[0]]}), 422, "batch_too_large")
    # As many sources as a minute's worth, and more: such a document is checked, and what is above is owed.
    cites = "".join(f"Cart {number} is blue (ADR-{number}).\n\n" for number in range(1, PER_MINUTE + 6))
    assert second.post("/v1/documents/check", json={"content": cites}).status_code == 200
    for path, most in (("/v1/claims", 7), ("/v1/documents/check", 7)):
        slow = second.post(path, json=rows[0] if path == "/v1/claims" else {"content": cites})
        is_problem(slow, 429, "rate_limited")
        assert (most - 1) * 60 / PER_MINUTE < int(slow.headers["Retry-After"]) <= most * 60 / PER_MINUTE + 1
    assert submit(site.agent(owner), claim("Carts are blue"), 201).rule == "trusted_source"
