"""What an agent reads of its own claims that had to wait, and of itself, over HTTP and on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.acceptance.site import Site, claim, is_problem, open_site, queue, submit
from vouchgate import Client
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.people import Role
from vouchgate.ingest.claims.waiting import ReviewStatus

PENDING = "/v1/claims/pending"


@pytest.fixture(scope="module")
def site(module_database_url: str) -> Iterator[Site]:
    with open_site(module_database_url) as opened:
        yield opened


def page(agent: httpx.Client, **query: Any) -> dict[str, Any]:
    """One page as the agent reads it."""
    answer = agent.get(PENDING, params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_an_agent_sees_its_own_claims_wait_and_no_others(site: Site) -> None:
    owner, other_owner = site.owner(), site.owner()
    mine, other_agent = site.agent(owner, other_owner), site.agent(owner)
    first = queue(mine, "The cellar floods every March", user_id=owner)
    theirs = queue(other_agent, "The attic is dry all year")
    second = queue(mine, "The well has gone dry", user_id=other_owner)
    submit(
        other_agent, claim("The cellar floods every March", "ai_synthesis"), 202
    )  # a repeat, of another agent

    found = page(mine)
    assert [item["queue_id"] for item in found["items"]] == [second, first]
    assert found["next"] is None
    assert page(mine, user_id=owner)["items"] == [found["items"][1]]
    assert found["items"][1] | {"created_at": None} == {
        "queue_id": first,
        "content": "The cellar floods every March",
        "memory_type": "fact",
        "reason": "Ungrounded assertion needs verification",
        "status": "pending",
        "seen": 2,
        "created_at": None,
        "decided_at": None,
        "note": None,
        "memory_id": None,
    }
    assert [item["queue_id"] for item in page(other_agent)["items"]] == [theirs]
    is_problem(other_agent.get(PENDING, params={"user_id": other_owner}), 403, "owner_not_allowed")


@pytest.mark.on("sqlite")
def test_an_agent_sees_what_its_owner_decided(site: Site) -> None:
    owner = site.owner()
    agent, reviewer = site.agent(owner), site.reviewer(owner)
    kept, refused = queue(agent, "The gate is painted green"), queue(agent, "The gate is made of lead")
    yes = {"version": 1, "note": "I looked", "content": "The gate is painted dark green"}
    memory_id = reviewer.post(f"/v1/reviews/{kept}/approve", json=yes).json()["memory"]["id"]
    reviewer.post(f"/v1/reviews/{refused}/reject", json={"version": 1, "reason": "It is oak"})

    assert page(agent)["items"] == []
    (approved,) = page(agent, status="approved")["items"]
    assert (approved["queue_id"], approved["memory_id"], approved["note"]) == (kept, memory_id, "I looked")
    assert approved["content"] == "The gate is painted green"
    (rejected,) = page(agent, status="rejected")["items"]
    assert (rejected["queue_id"], rejected["memory_id"], rejected["note"]) == (refused, None, "It is oak")
    assert rejected["decided_at"] is not None


def test_pages_go_on_where_the_last_one_ended(site: Site) -> None:
    owner = site.owner()
    agent, reviewer = site.agent(owner), site.reviewer(owner)
    made = [queue(agent, f"Shelf {number} carries {number + 20} books") for number in range(5)]
    first = page(agent, limit=2)
    assert [item["queue_id"] for item in first["items"]] == made[:2:-1]
    # What is decided meanwhile does not move what follows.
    reviewer.post(f"/v1/reviews/{made[3]}/reject", json={"version": 1, "reason": "no"})
    second = page(agent, limit=2, after=first["next"])
    assert [item["queue_id"] for item in second["items"]] == [made[2], made[1]]
    third = page(agent, limit=2, after=second["next"])
    assert [item["queue_id"] for item in third["items"]] == [made[0]]
    assert third["next"] is None


@pytest.mark.on("sqlite")
def test_a_token_for_any_owner_says_whose_and_odd_queries_are_refused(site: Site) -> None:
    owner = site.owner()
    anybodys = site.agent()
    item = queue(anybodys, "The mill stands still", user_id=owner)
    assert [found["queue_id"] for found in page(anybodys, user_id=owner)["items"]] == [item]
    is_problem(anybodys.get(PENDING), 422, "user_id_missing")
    for query in ({"after": "x"}, {"status": "open"}, {"limit": "0"}, {"limit": "201"}, {"stat": "pending"}):
        is_problem(anybodys.get(PENDING, params={"user_id": owner} | query), 422)
    assert page(anybodys, user_id=owner, after="rev_" + "0" * 32)["items"] == []


@pytest.mark.on("sqlite")
def test_nobody_but_agents_has_claims_of_its_own(site: Site) -> None:
    owner = site.owner()
    for client in (site.reviewer(owner), site.auditor(owner), site.caller(site.token(Role.ADMIN, owner)[1])):
        is_problem(client.get(PENDING), 403, "role_not_allowed")
    is_problem(site.caller().get(PENDING), 401, "token_needed")


@pytest.mark.on("sqlite")
def test_the_python_client_reads_the_same(site: Site) -> None:
    owner = site.owner()
    principal, token = site.token(Role.AGENT, owner)
    made = [queue(site.caller(token), f"Tower {number} has {number + 3} bells") for number in range(2)]
    with Client(site.running.url, token) as client:
        first = client.pending(limit=1)
        assert [item.queue_id for item in first.items] == [made[1]]
        (second,) = client.pending(limit=1, after=first.next).items
        assert (second.queue_id, second.status, second.seen) == (made[0], ReviewStatus.PENDING, 1)
        who = client.whoami()
        assert (who.id, who.role, who.owners) == (principal.id, Role.AGENT, (owner,))


@pytest.mark.on("sqlite")
def test_a_token_can_be_asked_whose_it_is(site: Site) -> None:
    owner = site.owner()
    sources = frozenset({Source.USER, Source.CHAT})
    principal, token = site.token(Role.AGENT, owner, sources=sources)
    assert site.caller(token).get("/v1/whoami").json() == {
        "id": principal.id,
        "name": principal.name,
        "role": "agent",
        "owners": [owner],
        "any_owner": False,
        "sources": ["chat", "user"],
    }
    reviewer = site.reviewer(owner).get("/v1/whoami").json()
    assert (reviewer["role"], reviewer["owners"]) == ("reviewer", [owner])
    is_problem(site.caller("vg_0000000000000000_" + "x" * 43).get("/v1/whoami"), 401, "token_needed")
