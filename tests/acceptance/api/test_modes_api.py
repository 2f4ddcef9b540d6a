"""The gate only observes, is read-only, or takes nothing of somebody: switched by another process than the one that
serves, and counting with the next claim."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.acceptance.site import Site, claim, is_problem, queue, store, submit
from tests.claims import policy as built_in
from vouchgate.client import Client, Halted
from vouchgate.ingest.checks.hedge import HedgeDetector
from vouchgate.ingest.claims.decision import Tier
from vouchgate.ingest.claims.modes import Mode, ModeSwitch
from vouchgate.ingest.claims.people import Role
from vouchgate.ingest.pipeline import replay
from vouchgate.review.trust import modes
from vouchgate.storage.identity import persons, tokens
from vouchgate.storage.log.data.walk import Walk

SAYS = "The kiln of the north hall cools for nine hours."


def set_mode(site: Site, owner: str, mode: Mode, agent: str = "") -> None:
    """As the operator, from this process."""
    switch = ModeSwitch(
        owner_id=owner, agent=agent, mode=mode, reason="a test", by="op", since=datetime.now(UTC)
    )
    modes.switch(site.store, switch)


@contextmanager
def in_mode(site: Site, owner: str, mode: Mode) -> Iterator[None]:
    """And back."""
    set_mode(site, owner, mode)
    try:
        yield
    finally:
        set_mode(site, owner, Mode.ENFORCE)


def is_clean(site: Site, owner: str) -> None:
    """The rows of an owner are what the log says."""
    assert list(Walk(site.store.read, owner).differences()) == []


def test_what_is_let_through_while_the_gate_observes_counts_for_nothing(site: Site, owner: str) -> None:
    agent, reviewer = site.agent(owner), site.reviewer(owner)
    with in_mode(site, owner, Mode.OBSERVE):
        assert agent.post("/v1/claims/check", json=claim(SAYS, "ai_synthesis")).json()["held"] is False
        through = submit(agent, claim(SAYS, "ai_synthesis"), 202)
        assert (through.tier, through.rule, through.held, through.mode) == (
            Tier.QUEUED, "ungrounded", False, Mode.OBSERVE,
        )  # fmt: skip
        assert through.passed
        assert (through.queue_id, through.approved) == (None, False)
        secret = submit(agent, claim("The pass" + "word is hunter2-Xk9qPz77Lm, keep it."), 422)
        assert (secret.rule, secret.held, secret.memory_id) == ("credential", True, None)
        guessed = submit(agent, claim("I think the kiln is maybe of brick."), 422)
        assert (guessed.tier, guessed.held) == (Tier.BLOCKED, False)
        assert guessed.memory_id
        vouched = submit(agent, claim("The shed holds nine bicycles."), 201)
        assert (vouched.held, vouched.evidence.label) == (False, "INFERENCE")
        submit(agent, claim("The shed holds nine bicycles."), 409)  # is there, so it need not come again
        # Not as what it repeats, and not as what a claim with another value conflicts with.
        again = submit(agent, claim(SAYS, "ai_synthesis"), 202)
        assert again.rule == "ungrounded"
    memory = agent.get(f"/v1/memories/{through.memory_id}").json()
    assert (memory["label"], memory["confidence"], memory["approved_by"]) == ("UNVOUCHED", "low", None)
    assert "UNVOUCHED" in {one["label"] for one in agent.get("/v1/memories").json()["items"]}
    other = submit(agent, claim(SAYS.replace("nine", "ten")), 201)
    assert (other.rule, other.held) == ("trusted_source", None)
    waits = submit(agent, claim("The kiln of the south hall has a door of iron.", "ai_synthesis"), 202)
    assert waits.held is None
    assert waits.queue_id
    numbers = reviewer.get("/v1/numbers").json()["total"]
    assert (numbers["let_through"], numbers["stored"]) == (3, 2)
    detector = HedgeDetector(built_in().lexicon)
    policy = site.store.load_policy(through.policy_digest)
    assert policy is not None
    for each in (through, guessed, secret, vouched, other):
        assert replay(each, policy, detector) == ()
    forged = through.model_copy(update={"held": True})
    assert replay(forged, policy, detector) == ("held: was True, is now False",)
    is_clean(site, owner)
    done = modes.review_unvouched(
        site.store, owner, policy=policy, detector=detector, by="op", now=datetime.now(UTC)
    )
    # One of the two that say the same waits; it conflicts now with what somebody vouched for. The guess is blocked.
    assert (done.queued, done.gone, done.left, done.full) == (1, 2, 0, False)
    item = next(one for one in reviewer.get("/v1/reviews").json()["items"] if one["content"] == SAYS)
    assert "let through while the gate only observed" in item["reason"]
    assert agent.get(f"/v1/memories/{through.memory_id}").json()["status"] == "retracted"
    approved = reviewer.post(f"/v1/reviews/{item['id']}/approve", json={"version": 1, "supersede": False})
    assert approved.json()["memory"]["label"] == "INFERENCE"
    is_clean(site, owner)
    assert site.actions(owner).count("claim.let_through") == 3
    assert {"mode.set"} <= set(site.actions(owner))


@pytest.mark.on("sqlite")
def test_an_agent_without_places_keeps_what_others_sent_from_no_queue(site: Site, owner: str) -> None:
    one, other = site.agent(owner), site.agent(owner)
    with in_mode(site, owner, Mode.OBSERVE):
        for content in ("The barn is of brick", "A loom stands in the attic", "Wool is dyed in May"):
            submit(one, claim(content, "ai_synthesis"), 202)
        submit(other, claim("The orchard has nine pear trees", "ai_synthesis"), 202)
    small, now = built_in(per_agent=2), datetime.now(UTC)
    site.store.save_policy(small, now)
    detector = HedgeDetector(small.lexicon)
    done = modes.review_unvouched(site.store, owner, policy=small, detector=detector, by="op", now=now)
    assert (done.queued, done.gone, done.left, done.full) == (3, 0, 1, True)
    is_clean(site, owner)


def test_nothing_of_an_owner_is_written_while_it_is_read_only(site: Site, owner: str) -> None:
    agent, reviewer, other = site.agent(owner), site.reviewer(owner), site.owner()
    memory_id, item_id = store(agent, "The door is oak"), queue(agent, "The door is two metres high")
    with in_mode(site, owner, Mode.READ_ONLY):
        refused = agent.post("/v1/claims", json=claim("The sill is of stone"))
        problem = is_problem(refused, 503, "read_only")
        assert "Retry-After" not in refused.headers  # nobody knows when it ends
        assert problem["detail"] == f"Owner {owner} is read-only: a test"
        batch = agent.post("/v1/claims/batch", json={"claims": [claim("The sill is of stone")]})
        assert [each["code"] for each in batch.json()["results"]] == ["read_only"]
        for path in (f"/v1/reviews/{item_id}/approve", "/v1/documents"):
            body: dict[str, Any] = {"version": 1} if "reviews" in path else {"content": "The door is open."}
            who = reviewer if "reviews" in path else agent
            is_problem(who.post(path, json=body), 503, "read_only")
        retract = reviewer.delete(f"/v1/memories/{memory_id}", params={"reason": "no"})
        is_problem(retract, 503, "read_only")
        assert agent.get(f"/v1/memories/{memory_id}").json()["status"] == "active"
        assert [one["id"] for one in reviewer.get("/v1/reviews").json()["items"]] == [item_id]
        store(site.agent(other), "The sill is of stone")
        with (
            Client(str(agent.base_url), token=agent.headers["Authorization"][7:]) as client,
            pytest.raises(Halted) as caught,
        ):
            client.save("The sill is of stone", source="user")
        assert caught.value.code == "read_only"
    store(agent, "The sill is of stone")
    is_clean(site, owner)


def test_a_stop_counts_at_once_for_an_agent_an_owner_or_all(site: Site, owner: str) -> None:
    reviewer, other = site.reviewer(owner), site.owner()
    principal, secret = site.token(Role.AGENT, owner, other)
    agent, second = site.caller(secret), site.agent(owner)
    one, two = claim("The sill is of stone", "ai_synthesis"), claim("The roof is of slate", "ai_synthesis")
    stop = {"agent": principal.id, "reason": "it writes nonsense"}
    done = reviewer.post("/v1/stops", json=stop).json()
    assert (done["owner_id"], done["stopped"]) == (owner, True)
    problem = is_problem(agent.post("/v1/claims", json=one | {"user_id": owner}), 403, "stopped")
    assert "it writes nonsense" in problem["detail"]
    assert problem["next_step"]
    is_problem(agent.post("/v1/documents", json={"content": "It is so.", "user_id": owner}), 403, "stopped")
    submit(agent, one | {"user_id": other}, 202)  # that is another owner's to say
    submit(second, one, 202)
    assert agent.get("/v1/memories", params={"user_id": owner}).status_code == 200
    is_problem(reviewer.post("/v1/stops", json=stop | {"user_id": other}), 403)
    is_problem(reviewer.post("/v1/stops", json=stop | {"agent": "nobody"}), 422, "agent_unknown")
    anybody, nobody = site.caller(site.token(Role.ADMIN, any_owner=True)[1]), site.owner()
    is_problem(anybody.post("/v1/stops", json={"reason": "slip", "user_id": nobody}), 403, "owner_unknown")
    assert [each["stopped"] for each in reviewer.get("/v1/modes").json()["items"]] == [True]
    assert reviewer.post("/v1/stops", json=stop | {"stopped": False}).status_code == 200
    submit(agent, two | {"user_id": owner}, 202)
    # All agents of the owner; then a person behind a token; then everybody.
    reviewer.post("/v1/stops", json={"reason": "stocktaking"})
    is_problem(second.post("/v1/claims", json=two), 403, "stopped")
    reviewer.post("/v1/stops", json={"reason": "done", "stopped": False})
    now = datetime.now(UTC)
    ann = persons.create(site.store, f"ann-{owner}", actor="test", now=now)
    token = tokens.create(
        site.store, role=Role.AGENT, name="t", owners=[owner], person=ann.id, actor="test", now=now
    )
    hers, admin = site.caller(token[1]), site.caller(site.token(Role.ADMIN, any_owner=True)[1])
    said = {"reason": "she asked for it", "agent": ann.id}
    assert admin.post("/v1/stops", json=said).json()["owner_id"] == ""
    is_problem(hers.post("/v1/claims", json=two), 403, "stopped")
    assert reviewer.get("/v1/modes").json()["items"][0]["owner_id"] == owner  # not of agents of all owners
    admin.post("/v1/stops", json=said | {"stopped": False, "agent": ann.name})  # by name it is the same stop
    submit(hers, claim("The loft is of pine", "ai_synthesis"), 202)
    assert reviewer.post("/v1/stops", json=said | {"agent": ann.name}).json()["agent"] == ann.id
    is_problem(hers.post("/v1/claims", json=two), 403, "stopped")
    reviewer.post("/v1/stops", json=said | {"stopped": False, "agent": ann.name})
    admin.post("/v1/stops", json={"reason": "fire"})
    try:
        detail = is_problem(second.post("/v1/claims", json=two), 403, "stopped")["detail"]
        assert detail == "The whole service is stopped: fire"
        ready = second.get("/readyz").json()
        assert (ready["degraded"][0], ready["scopes"]["stopped"]) == ("The whole service is stopped.", 1)
        assert 'vouchgate_scopes{state="stopped"} 1.0' in second.get("/metrics").text
    finally:
        admin.post("/v1/stops", json={"reason": "out", "stopped": False})
    submit(hers, two | {"content": "The roof of the barn is of slate"}, 202)
    is_clean(site, owner)
    is_clean(site, "")


@pytest.mark.on("sqlite")
def test_pages_and_figures_say_loudly_that_the_gate_only_observes(site: Site, owner: str) -> None:
    agent = site.agent(owner)
    with in_mode(site, "", Mode.OBSERVE):
        ready = agent.get("/readyz").json()
        assert ready["mode"] == "observe"
        assert "let through, unvouched" in ready["degraded"][0]
        kept = submit(agent, claim(SAYS, "ai_synthesis"), 202)
        figures = agent.get("/metrics").text
        assert 'vouchgate_claims_let_through_total{rule="ungrounded",tier="tier_2"}' in figures
        assert "vouchgate_memories_unvouched 0.0" not in figures
        set_mode(site, owner, Mode.ENFORCE)  # what is said of an owner goes before what is said of all
        assert submit(agent, claim("The vat is of oak", "ai_synthesis"), 202).queue_id
    assert agent.get("/readyz").json()["mode"] == "enforce"
    assert kept.memory_id
