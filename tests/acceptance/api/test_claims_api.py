"""Submitting, checking and batches: what is answered, and that exactly this is on disk."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import pytest

from tests.acceptance.site import Site, claim, is_problem, queue, store, submit, without_promises
from tests.running.service import THRESHOLD
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.decision import ValidationResult
from vouchgate.ingest.claims.people import Role
from vouchgate.storage.store import Store

pytestmark = pytest.mark.on("sqlite")

LONG = (
    "The parcel sorter reads forty labels a minute, drops torn ones into the grey bin, prints a list of them"
    " every evening at {}, and mails this list to the morning shift of the same hall"
)


def test_each_verdict_has_its_status_and_is_kept_word_for_word(site: Site, owner: str) -> None:
    agent = site.agent(owner)
    for body, status, outcome in (
        (claim("The lift stops on every floor"), 201, "stored"),
        (claim("The lift was serviced twice this year", "ai_synthesis"), 202, "queued"),
        (claim("the lift  stops on EVERY floor"), 409, "blocked"),
        (claim("I believe the lift needs new cables"), 422, "blocked"),
    ):
        response = agent.post("/v1/claims", json=body)
        assert response.status_code == status, response.text
        assert response.headers["content-type"] == "application/json"
        answer = ValidationResult.model_validate_json(response.content)
        assert answer.outcome == outcome
        assert answer.approved is (status == 201)
        kept = agent.get(f"/v1/decisions/{answer.decision_id}")
        assert (kept.status_code, kept.content) == (200, without_promises(response.content))
    assert site.actions(owner) == ["claim.stored", "claim.queued", "claim.blocked", "claim.blocked"]


def test_a_duplicate_and_a_conflict_name_the_memory(site: Site, owner: str) -> None:
    agent = site.agent(owner)
    memory_id = store(agent, LONG.format("18:30"))
    duplicate = submit(agent, claim(LONG.format("18:30"), "ai_synthesis"), 409)
    conflict = submit(agent, claim(LONG.format("19:30"), "ai_synthesis"), 202)
    assert (duplicate.conflicting_memory_id, conflict.conflicting_memory_id) == (memory_id, memory_id)
    assert duplicate.similarity_score == 1.0
    assert conflict.rule == "conflict"
    assert conflict.similarity_score is not None
    assert 0.92 <= conflict.similarity_score < 1
    other_owner = site.owner()
    assert submit(site.agent(other_owner), claim(LONG.format("18:30")), 201).rule == "trusted_source"


def test_a_repeat_names_the_waiting_item_and_is_counted(site: Site, owner: str) -> None:
    agent = site.agent(owner)
    first = queue(agent, "The printer on floor two is out of toner")
    again = submit(agent, claim("the printer on floor two is out of TONER", "ai_synthesis"), 202)
    assert (again.rule, again.queue_id) == ("already_pending", first)
    item = site.reviewer(owner).get(f"/v1/reviews/{first}").json()
    assert (item["seen"], item["version"]) == (2, 1)
    assert site.actions(owner) == ["claim.queued", "claim.repeated"]


def test_an_unusable_dedup_index_queues_what_would_be_stored(site: Site, owner: str) -> None:
    agent = site.agent(owner)
    body = claim("The archive door opens inwards")
    Store.open(site.url, threshold=Fraction(4, 5)).close()  # another process rebuilds the index otherwise
    try:
        assert submit(agent, body, 202).rule == "dedup_unknown"
    finally:
        Store.open(site.url, threshold=THRESHOLD).close()


def test_check_decides_and_writes_nothing(site: Site, owner: str) -> None:
    agent = site.agent(owner)
    stored = store(agent, "The canteen opens at eleven")
    before = site.events(owner)
    for body, tier in (
        (claim("The canteen closes at three"), "tier_1"),
        (claim("The canteen sells soup", "ai_synthesis"), "tier_2"),
        (claim("the canteen opens at eleven"), "tier_3"),
        (claim("Maybe we could open a second canteen"), "tier_3"),
    ):
        response = agent.post("/v1/claims/check", json=body)
        answer = ValidationResult.model_validate_json(response.content)
        assert (response.status_code, answer.tier) == (200, tier)
        assert (answer.decision_id, answer.memory_id, answer.queue_id) == (None, None, None)
    assert site.events(owner) == before
    assert [memory["id"] for memory in agent.get("/v1/memories").json()["items"]] == [stored]
    assert site.reviewer(owner).get("/v1/reviews").json()["items"] == []
    # What was only checked is no duplicate of what comes after.
    assert submit(agent, claim("The canteen closes at three"), 201).rule == "trusted_source"


def test_type_and_source_may_be_left_out_and_nothing_passes_by_it(site: Site, owner: str) -> None:
    """Of an agent that may speak for every source: the claim would be stored, had it named one."""
    agent, left_out = site.agent(owner), {"content": "The lift has room for nine"}
    assert agent.post("/v1/claims/check", json=left_out | {"source": "user"}).json()["outcome"] == "stored"
    checked = agent.post("/v1/claims/check", json=left_out).json()
    first = submit(agent, left_out, 202, key="lift")
    for shown in (checked["evidence"]["claim"], first.evidence.claim.model_dump(mode="json")):
        assert (shown["memory_type"], shown["source"], shown["asserted_source"]) == (
            "fact",
            "ai_synthesis",
            "ai_synthesis",
        )
    named = claim("The lift has room for nine", "ai_synthesis")
    assert submit(agent, named, 202, key="lift").decision_id == first.decision_id, "the same claim"
    rows = agent.post("/v1/claims/batch", json={"claims": [left_out, {"memory_type": "fact"}]}).json()[
        "results"
    ]
    assert [row.get("rule", row.get("code")) for row in rows] == ["already_pending", "invalid_request"]


@pytest.mark.parametrize("source", sorted(set(Source) - {Source.AI_SYNTHESIS}))
def test_a_source_that_is_not_granted_counts_as_the_models_own(
    site: Site, owner: str, source: Source
) -> None:
    body = claim("Coffee beans are stored in the left cupboard", source, "preference")
    without = submit(site.agent(owner, sources=frozenset(Source) - {source}), body, 202)
    assert without.rule == "ungrounded"
    assert (without.evidence.claim.asserted_source, without.evidence.claim.source) == (source, "ai_synthesis")
    granted = submit(site.agent(site.owner(), sources=frozenset({source})), body, 201)
    assert (granted.evidence.claim.asserted_source, granted.evidence.claim.source) == (source, source)


def test_the_owner_is_named_allowed_or_understood(site: Site) -> None:
    one, other = site.owner(), site.owner()
    single, double, every = site.agent(one), site.agent(one, other), site.agent()
    body = claim("The bicycle shed has forty places")
    assert submit(single, body, 201).evidence.claim.owner_id == one
    assert submit(double, body | {"user_id": other}, 201).evidence.claim.owner_id == other
    assert submit(every, body | {"user_id": one}, 409).conflicting_memory_id is not None
    for path in ("/v1/claims", "/v1/claims/check"):
        is_problem(single.post(path, json=body | {"user_id": other}), 403, "owner_not_allowed")
        is_problem(double.post(path, json=body), 422, "user_id_missing")
        is_problem(every.post(path, json=body), 422, "user_id_missing")
    batch = double.post("/v1/claims/batch", json={"claims": [body, body | {"user_id": "somebody"}]}).json()
    assert [row["code"] for row in batch["results"]] == ["user_id_missing", "owner_not_allowed"]


def test_the_same_key_and_body_give_the_same_answer(site: Site, owner: str) -> None:
    agent = site.agent(owner)
    body = claim("The boiler was replaced", metadata={"room": 4, "tags": ["heat"]})
    first = agent.post("/v1/claims", json=body, headers={"Idempotency-Key": "boiler 1"})
    spaced = json.dumps(dict(reversed(body.items())), indent=3)
    headers = {"Idempotency-Key": "boiler 1", "Content-Type": "application/json"}
    again = agent.post("/v1/claims", content=spaced, headers=headers)
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.content == without_promises(first.content)
    assert "Idempotency-Replayed" not in first.headers
    assert again.headers["Idempotency-Replayed"] == "true"
    assert site.actions(owner) == ["claim.stored"]
    other = claim("The boiler was repaired")
    is_problem(
        agent.post("/v1/claims", json=other, headers={"Idempotency-Key": "boiler 1"}),
        409,
        "idempotency_key_reused",
    )
    # Keys belong to the token: another one with the same key is another request.
    assert submit(site.agent(owner), other, 201, key="boiler 1").rule == "trusted_source"
    # Without a key the same body is a duplicate.
    assert submit(agent, body, 409).rule == "duplicate"


@pytest.mark.parametrize(("content", "status"), [("The roof leaks", 202), ("I guess the roof leaks", 422)])
def test_every_verdict_is_repeated_under_its_key(site: Site, owner: str, content: str, status: int) -> None:
    agent = site.agent(owner)
    answers = [submit(agent, claim(content, "ai_synthesis"), status, key="k") for _ in range(3)]
    assert answers[0] == answers[1] == answers[2]
    assert len(site.events(owner)) == 1


def test_one_key_sent_by_eight_at_once_is_decided_once(site: Site, owner: str) -> None:
    agent = site.agent(owner)
    body = claim("The west gate is locked at ten")

    def send(_: int) -> tuple[int, bytes]:
        response = agent.post("/v1/claims", json=body, headers={"Idempotency-Key": "gate"})
        return response.status_code, without_promises(response.content)

    with ThreadPoolExecutor(8) as pool:
        answers = set(pool.map(send, range(24)))
    assert len(answers) == 1
    assert next(iter(answers))[0] == 201
    assert site.actions(owner) == ["claim.stored"]


def test_equal_claims_sent_by_eight_at_once_are_stored_once(site: Site, owner: str) -> None:
    agent = site.agent(owner)

    def send(number: int) -> int:
        text = "The east gate is locked at nine"
        return agent.post("/v1/claims", json=claim(text if number % 2 else text.upper())).status_code

    with ThreadPoolExecutor(8) as pool:
        statuses = sorted(pool.map(send, range(16)))
    assert statuses == [201] + [409] * 15
    assert site.actions(owner).count("claim.stored") == 1


def results(response: Any) -> list[dict[str, Any]]:
    """The rows of a batch answer."""
    assert response.status_code == 200, response.text
    found: list[dict[str, Any]] = response.json()["results"]
    return found


def test_a_batch_answers_every_row_in_order_as_if_sent_one_after_another(site: Site, owner: str) -> None:
    agent = site.agent(owner)
    rows: list[Any] = [
        claim("Trucks enter through the south gate"),
        claim("trucks enter through the SOUTH gate"),
        claim("Trucks leave before noon", "ai_synthesis"),
        "not a claim",
        claim("trucks leave before noon", "ai_synthesis"),
        claim("I think trucks are late today"),
        claim("   "),
        claim("Trucks carry steel", bogus=1),
        None,
        claim("Trucks carry glass", citations=["no citation at all"]),
        claim("Trucks carry sand", metadata={"x": "y" * 5000}),
        claim("Trucks are weighed at the gate"),
    ]
    found = results(agent.post("/v1/claims/batch", json={"claims": rows}))
    shown = [row.get("rule", row.get("code")) for row in found]
    invalid = "invalid_request"
    assert shown == [
        *("trusted_source", "duplicate", "ungrounded", invalid, "already_pending", "speculation"),
        *(invalid, invalid, invalid, "citation_malformed", "metadata_too_large", "trusted_source"),
    ]
    assert found[1]["conflicting_memory_id"] == found[0]["memory_id"]
    assert found[4]["queue_id"] == found[2]["queue_id"]
    for row in found:
        if "rule" in row:
            assert ValidationResult.model_validate(row).decision_id is not None
        else:
            assert (row["status"], row["title"]) == (422, "Unprocessable Entity")
    assert site.actions(owner) == [
        *("claim.stored", "claim.blocked", "claim.queued", "claim.repeated", "claim.blocked", "claim.stored")
    ]


def test_a_batch_under_a_key_can_be_sent_again(site: Site, owner: str) -> None:
    agent, headers = site.agent(owner), {"Idempotency-Key": "b" * 255}
    rows = [claim("Palette one is red"), claim("Palette one is red"), claim("I guess palette two is blue")]
    first = agent.post("/v1/claims/batch", json={"claims": rows}, headers=headers)
    again = agent.post("/v1/claims/batch", json={"claims": rows}, headers=headers)
    assert [row["rule"] for row in results(first)] == ["trusted_source", "duplicate", "speculation"]
    assert again.content == without_promises(first.content)
    assert len(site.events(owner)) == 3
    rows[2] = claim("Palette three is green")
    codes = [
        row.get("code")
        for row in results(agent.post("/v1/claims/batch", json={"claims": rows}, headers=headers))
    ]
    assert codes == [None, None, "idempotency_key_reused"]
    assert len(site.events(owner)) == 3


def test_the_keys_of_rows_are_not_those_of_single_calls(site: Site, owner: str) -> None:
    agent = site.agent(owner)
    batch = agent.post(
        "/v1/claims/batch", json={"claims": [claim("Shelf A is full")]}, headers={"Idempotency-Key": "s"}
    )
    assert results(batch)[0]["rule"] == "trusted_source"
    for number, key in enumerate(("s", "s#0", "s0", "s 0")):
        assert (
            submit(agent, claim(f"Shelf number {number} holds paint"), 201, key=key).rule == "trusted_source"
        )


def test_five_hundred_rows_are_taken_and_one_more_is_not(site: Site, owner: str) -> None:
    agent = site.agent(owner)
    rows = [claim(f"Locker {number} belongs to team {number * 7}") for number in range(501)]
    is_problem(agent.post("/v1/claims/batch", json={"claims": rows}), 422, "invalid_request")
    is_problem(agent.post("/v1/claims/batch", json={"claims": []}), 422, "invalid_request")
    assert site.events(owner) == []
    found = results(agent.post("/v1/claims/batch", json={"claims": rows[:500]}))
    assert {row["outcome"] for row in found} == {"stored"}
    assert [row["evidence"]["claim"]["content"] for row in found] == [row["content"] for row in rows[:500]]
    assert site.actions(owner) == ["claim.stored"] * 500


def test_what_a_claim_brings_along_is_in_its_evidence(site: Site, owner: str) -> None:
    agent = site.agent(owner)
    body = claim(
        "Der Fahrstuhl hält „überall“ 🛗 <b>&amp;</b>",
        validity_horizon="2031-05-06T08:00:00+02:00",
        metadata={"ünï": [1, 2.5, None, True, {"k": "v"}], "big": 10**400},
        citations=[{"type": "url", "value": "https://handbook.invalid/lift"}],
    )
    answer = submit(agent, body, 201)
    sent = answer.evidence.claim
    assert (sent.content, sent.metadata) == (body["content"], body["metadata"])
    assert answer.evidence.validity_horizon is not None
    assert answer.evidence.validity_horizon.isoformat() == "2031-05-06T06:00:00+00:00"
    assert [source.kind for source in answer.evidence.sources] == ["unreachable"]
    memory = site.auditor(owner).get(f"/v1/memories/{answer.memory_id}").json()
    assert (memory["content"], memory["metadata"]) == (body["content"], body["metadata"])
    assert memory["validity_horizon"] == "2031-05-06T06:00:00Z"


def test_an_agent_of_another_role_is_no_agent(site: Site, owner: str) -> None:
    body = claim("The fence is two metres high")
    for role in (Role.REVIEWER, Role.AUDITOR, Role.ADMIN):
        caller = site.caller(site.token(role, owner)[1])
        is_problem(caller.post("/v1/claims", json=body), 403, "role_not_allowed")
    assert site.events(owner) == []
