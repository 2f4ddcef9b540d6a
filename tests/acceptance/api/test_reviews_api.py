"""Owners clearing their queue: approving, rejecting, conflicts, races and batches."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier
from typing import Any

import httpx
import pytest
from sqlalchemy import Connection, update

from tests.acceptance.site import Site, claim, is_problem, queue, store, submit
from vouchgate.ingest.claims.decision import Evidence, ValidationResult
from vouchgate.ingest.claims.memory import Memory
from vouchgate.ingest.claims.people import Role
from vouchgate.ingest.claims.waiting import PendingMemory
from vouchgate.storage.queue import pending

pytestmark = pytest.mark.on("postgresql")

LONG = (
    "The bakery on the corner bakes rye bread in three ovens, sells what is left at half price after {},"
    " closes on Mondays and whenever flour runs short, and gives old loaves to a farm near town"
)

FIELDS = PendingMemory.model_fields  # an item shown alone has more


def item_of(reviewer: httpx.Client, item_id: str) -> PendingMemory:
    """The item as the API shows it."""
    answer = reviewer.get(f"/v1/reviews/{item_id}")
    assert answer.status_code == 200, answer.text
    return PendingMemory.model_validate({k: v for k, v in answer.json().items() if k in FIELDS})


def approve(reviewer: httpx.Client, item_id: str, version: int = 1, **more: Any) -> httpx.Response:
    """Asks for an approval."""
    return reviewer.post(f"/v1/reviews/{item_id}/approve", json={"version": version} | more)


def reject(reviewer: httpx.Client, item_id: str, version: int = 1, reason: str = "not so") -> httpx.Response:
    """Asks for a rejection."""
    return reviewer.post(f"/v1/reviews/{item_id}/reject", json={"version": version, "reason": reason})


def test_an_approved_item_is_a_memory_its_owner_vouches_for(site: Site, owner: str) -> None:
    agent = site.agent(owner)
    principal, token = site.token(Role.REVIEWER, owner)
    reviewer = site.caller(token)
    answer = submit(
        agent, claim("The tower clock is five minutes late", "ai_synthesis", metadata={"n": 1}), 202
    )
    item = item_of(reviewer, str(answer.queue_id))
    assert (item.status, item.version, item.seen, item.decision_id) == ("pending", 1, 1, answer.decision_id)
    assert item.expires_at - item.created_at == timedelta(days=30)
    done = approve(reviewer, item.id, note="checked at noon")
    assert done.status_code == 200
    memory = Memory.model_validate(done.json()["memory"])
    after = PendingMemory.model_validate(done.json()["item"])
    assert (after.status, after.version, after.memory_id) == ("approved", 2, memory.id)
    assert (after.decided_by, after.note) == (principal.id, "checked at noon")
    assert (memory.content, memory.approved_by, memory.metadata) == (item.content, principal.id, {"n": 1})
    assert memory.confidence == "medium"
    assert Memory.model_validate_json(agent.get(f"/v1/memories/{memory.id}").content) == memory
    evidence = agent.get(f"/v1/memories/{memory.id}/evidence")
    assert Evidence.model_validate_json(evidence.content) == answer.evidence
    assert item_of(reviewer, item.id) == after
    assert site.actions(owner) == ["claim.queued", "review.approved"]
    # What was stored is a memory for dedup, too.
    assert (
        submit(agent, claim("The tower clock is five minutes late"), 409).conflicting_memory_id == memory.id
    )


def test_a_rejected_item_stays_out(site: Site, owner: str) -> None:
    agent, reviewer = site.agent(owner), site.reviewer(owner)
    item_id = queue(agent, "The tower clock was built by elves")
    done = PendingMemory.model_validate(reject(reviewer, item_id, reason="a tale").json()["item"])
    assert (done.status, done.note, done.memory_id) == ("rejected", "a tale", None)
    assert agent.get("/v1/memories").json()["items"] == []
    assert site.actions(owner) == ["claim.queued", "review.rejected"]
    # It waits no more, so the same claim is a new item.
    assert queue(agent, "The tower clock was built by elves") != item_id


def test_every_act_names_the_version_it_saw(site: Site, owner: str) -> None:
    reviewer = site.reviewer(owner)
    item_id = queue(site.agent(owner), "The bridge carries ten tons")
    path = f"/v1/reviews/{item_id}"
    is_problem(reviewer.post(f"{path}/approve", json={}), 422, "invalid_request")
    is_problem(reviewer.post(f"{path}/reject", json={"reason": "r"}), 422, "invalid_request")
    for version in (0, -1, "1", 1.5, True, None, 2**31, 10**400):
        is_problem(reviewer.post(f"{path}/approve", json={"version": version}), 422, "invalid_request")
    for response in (approve(reviewer, item_id, 2), reject(reviewer, item_id, 2)):
        body = is_problem(response, 409, "stale_version")
        assert PendingMemory.model_validate(body["current"]) == item_of(reviewer, item_id)
    for reason in ("", "  ", "\x00", "x" * 2001):
        is_problem(reject(reviewer, item_id, reason=reason), 422, "invalid_request")
    for more in (
        {"note": "\x00"},
        {"content": " "},
        {"supersede": "yes"},
        {"bogus": 1},
        {"content": "x" * 8193},
    ):
        is_problem(approve(reviewer, item_id, **more), 422, "invalid_request")
    assert item_of(reviewer, item_id).version == 1
    assert site.actions(owner) == ["claim.queued"]


def test_what_is_decided_stays_decided(site: Site, owner: str) -> None:
    reviewer = site.reviewer(owner)
    item_id = queue(site.agent(owner), "The mill pond froze in January")
    assert approve(reviewer, item_id).status_code == 200
    for response in (
        approve(reviewer, item_id, 2),
        approve(reviewer, item_id, 1),
        reject(reviewer, item_id, 2),
    ):
        body = is_problem(response, 409, "already_decided")
        assert body["current"]["status"] == "approved"
    assert len(site.agent(owner).get("/v1/memories").json()["items"]) == 1


@pytest.mark.parametrize("acts", [("approve", "approve"), ("approve", "reject")])
def test_of_two_reviewers_one_wins(site: Site, owner: str, acts: tuple[str, str]) -> None:
    agent = site.agent(owner)
    reviewers = [site.reviewer(owner), site.reviewer(owner)]
    for number in range(8):
        item_id = queue(agent, f"Boat {number} needs {number * 3 + 1} new planks")
        ready = Barrier(2)

        def act(who: int, item_id: str = item_id, ready: Barrier = ready) -> httpx.Response:
            ready.wait()
            return (approve if acts[who] == "approve" else reject)(reviewers[who], item_id)

        with ThreadPoolExecutor(2) as pool:
            answers = list(pool.map(act, range(2)))
        assert sorted(answer.status_code for answer in answers) == [200, 409]
        lost = next(answer for answer in answers if answer.status_code == 409)
        assert is_problem(lost, 409)["code"] in ("already_decided", "stale_version")
    actions = site.actions(owner)
    approved = actions.count("review.approved")
    assert approved + actions.count("review.rejected") == 8
    assert len(agent.get("/v1/memories").json()["items"]) == approved


def test_an_approval_looks_for_duplicates_again(site: Site, owner: str) -> None:
    agent, reviewer = site.agent(owner), site.reviewer(owner)
    soup, soup_too = LONG.format("six"), LONG.format("six").replace("corner", "Corner")
    first = queue(agent, soup, memory_type="procedure")
    second = queue(agent, soup.replace("half price", "full price"), memory_type="procedure")
    assert approve(reviewer, first).status_code == 200
    stored = item_of(reviewer, first).memory_id
    body = is_problem(approve(reviewer, second, content=soup_too), 409, "duplicate")
    assert body["conflicting_memory_id"] == stored
    assert item_of(reviewer, second).status == "pending"
    assert site.actions(owner) == ["claim.queued", "claim.queued", "review.approved"]


@pytest.mark.parametrize("supersede", [True, False])
def test_a_conflict_is_resolved_in_words(site: Site, owner: str, supersede: bool) -> None:
    agent, reviewer = site.agent(owner), site.reviewer(owner)
    old = store(agent, LONG.format("17:00"))
    item_id = queue(agent, LONG.format("18:00"))
    assert item_of(reviewer, item_id).conflicting_memory_id == old
    body = is_problem(approve(reviewer, item_id), 409, "conflict_unresolved")
    assert body["conflicting_memory_id"] == old
    assert item_of(reviewer, item_id).version == 1
    new = approve(reviewer, item_id, supersede=supersede).json()["memory"]["id"]
    active = [memory["id"] for memory in agent.get("/v1/memories").json()["items"]]
    before = agent.get(f"/v1/memories/{old}").json()
    if supersede:
        assert (active, before["status"], before["superseded_by"]) == ([new], "superseded", new)
    else:
        assert (active, before["status"], before["superseded_by"]) == ([new, old], "active", None)


def test_an_owner_may_word_it_anew(site: Site, owner: str) -> None:
    agent, reviewer = site.agent(owner), site.reviewer(owner)
    item_id = queue(agent, "The quarry may close soon")
    is_problem(approve(reviewer, item_id, content="I think the quarry closes"), 409, "edit_hedged")
    is_problem(approve(reviewer, item_id, content="See " + "ADR-1 " * 3 + "x" * 8190), 422, "invalid_request")
    cited = " ".join(f"RFC {number}" for number in range(1000, 1021))
    is_problem(approve(reviewer, item_id, content=cited), 422, "too_many_citations")
    assert item_of(reviewer, item_id).version == 1
    done = approve(reviewer, item_id, content="The quarry closes on the last of June").json()
    assert done["memory"]["content"] == "The quarry closes on the last of June"
    assert done["item"]["content"] == "The quarry may close soon"
    kept = agent.get(f"/v1/decisions/{done['memory']['decision_id']}")
    evidence = ValidationResult.model_validate_json(kept.content).evidence
    assert evidence.claim.content == "The quarry closes on the last of June"


def test_an_item_past_its_time_is_expired_not_rejected(site: Site, owner: str) -> None:
    agent, reviewer = site.agent(owner), site.reviewer(owner)
    item_id = queue(agent, "The orchard has ninety trees")

    def age(connection: Connection) -> None:
        past = datetime.now(UTC) - timedelta(seconds=1)
        connection.execute(update(pending.TABLE).where(pending.TABLE.c.id == item_id).values(expires_at=past))

    site.store.writer.run([owner], age).result()
    body = is_problem(approve(reviewer, item_id), 409, "already_decided")
    assert body["current"]["status"] == "expired"
    events = site.events(owner)
    assert [(event["action"], event["actor"]) for event in events[1:]] == [("review.expired", "service")]
    expired = reviewer.get("/v1/reviews", params={"status": "expired"}).json()["items"]
    assert [item["id"] for item in expired] == [item_id]
    assert queue(agent, "The orchard has ninety trees") != item_id


def test_the_list_is_the_owners_in_pages(site: Site, owner: str) -> None:
    agent, reviewer = site.agent(owner), site.reviewer(owner)
    queue(site.agent(site.owner()), "Somebody else's barn is empty")
    made = [queue(agent, f"Barn {number} holds {number * 9} bales") for number in range(7)]
    seen: list[str] = []
    after: str | None = None
    while True:
        page = reviewer.get("/v1/reviews", params={"limit": 3} | ({"after": after} if after else {})).json()
        seen += [item["id"] for item in page["items"]]
        after = page["next"]
        if after is None:
            break
    assert seen == made
    approve(reviewer, made[0])
    reject(reviewer, made[1])
    for status, expected in (("pending", made[2:]), ("approved", made[:1]), ("rejected", made[1:2])):
        items = reviewer.get("/v1/reviews", params={"status": status}).json()["items"]
        assert [item["id"] for item in items] == expected


def test_a_batch_of_acts_is_answered_one_by_one(site: Site, owner: str) -> None:
    agent, reviewer = site.agent(owner), site.reviewer(owner)
    memory_id = store(agent, LONG.format("20:00"))
    made = [queue(agent, f"Kiln {number} burns {number * 5 + 2} logs") for number in range(3)]
    conflict = queue(agent, LONG.format("21:00"))
    foreign = queue(site.agent(site.owner()), "The forge is cold")
    rows: list[dict[str, Any]] = [
        {"action": "approve", "id": made[0], "version": 1},
        {"action": "approve", "id": made[0], "version": 1},
        {"action": "reject", "id": made[1], "version": 2, "reason": "r"},
        {"action": "approve", "id": foreign, "version": 1},
        {"action": "approve", "id": "\x01?", "version": 1},
        {"action": "approve", "id": conflict, "version": 1},
        {"action": "approve", "id": made[2], "version": 1, "content": "I guess the kiln is hot"},
        {"action": "approve", "id": conflict, "version": 1, "supersede": True},
        {"action": "reject", "id": made[1], "version": 1, "reason": "cold"},
    ]
    answer = reviewer.post("/v1/reviews/batch", json={"items": rows})
    assert answer.status_code == 200, answer.text
    found = answer.json()["results"]
    assert [row.get("code") or row["item"]["status"] for row in found] == [
        *("approved", "already_decided", "stale_version", "not_found", "not_found"),
        *("conflict_unresolved", "edit_hedged", "approved", "rejected"),
    ]
    assert (found[5]["status"], found[5]["conflicting_memory_id"]) == (409, memory_id)
    assert item_of(reviewer, made[2]).status == "pending"
    assert agent.get(f"/v1/memories/{memory_id}").json()["status"] == "superseded"


def test_a_batch_of_acts_must_have_its_shape(site: Site, owner: str) -> None:
    reviewer = site.reviewer(owner)
    item_id = queue(site.agent(owner), "The loom weaves linen")
    good = {"action": "approve", "id": item_id, "version": 1}
    for rows in (
        [],
        [good, {"action": "approve", "id": item_id}],
        [good, {"action": "destroy" * 1000, "id": item_id, "version": 1}],
        [good, {"action": "reject", "id": item_id, "version": 1}],
        [good, {"action": "approve", "id": "\x00", "version": 1}],
        [good] * 101,
        {"action": "approve"},
        None,
    ):
        refused = is_problem(reviewer.post("/v1/reviews/batch", json={"items": rows}), 422, "invalid_request")
        assert len(str(refused)) < 1500
    assert item_of(reviewer, item_id).version == 1


def undo(reviewer: httpx.Client, item_id: str, version: int = 2) -> httpx.Response:
    """Asks for a decision to be taken back."""
    return reviewer.post(f"/v1/reviews/{item_id}/undo", json={"version": version})


def listed(reviewer: httpx.Client, **parameters: Any) -> list[str]:
    """Ids of the items that match, in order."""
    answer = reviewer.get("/v1/reviews", params=parameters)
    assert answer.status_code == 200, answer.text
    return [item["id"] for item in answer.json()["items"]]


def test_the_list_has_an_order_and_groups(site: Site, owner: str) -> None:
    agent, reviewer = site.agent(owner), site.reviewer(owner)
    sender, token = site.token(Role.AGENT, owner)
    store(agent, LONG.format("17:00"))
    plain = queue(agent, "The lighthouse keeper is left-handed", memory_type="preference")
    hedged = queue(agent, "The harbour may silt up")
    cites = queue(agent, "The pier is of oak, see https://pier.example.com/oak")
    conflict = queue(site.caller(token), LONG.format("18:00"))
    assert listed(reviewer) == [conflict, hedged, plain, cites]
    assert listed(reviewer, order="oldest") == [plain, hedged, cites, conflict]
    assert listed(reviewer, order="newest") == [conflict, cites, hedged, plain]
    assert listed(reviewer, rule="technical_hedge") == [hedged]
    assert listed(reviewer, submitted_by=sender.id) == [conflict]
    key = item_of(reviewer, cites).cited
    assert listed(reviewer, cited=key) == [cites]
    assert listed(reviewer, memory_type="preference") == [plain]
    assert listed(reviewer, text="HARBOUR") == [hedged]
    assert listed(reviewer, text="harbour", rule="conflict") == []
    page = reviewer.get("/v1/reviews", params={"limit": 2}).json()
    assert page["next"].startswith(f"{hedged}@")
    assert listed(reviewer, after=hedged) == [plain, cites]
    assert listed(site.reviewer(site.owner()), after=hedged) == []
    why = reviewer.get(f"/v1/reviews/{conflict}").json()["priority"]
    assert why == ["conflicts with a stored memory: counts as 14 days of waiting", "waits 0 minutes"]


def test_an_approval_is_taken_back(site: Site, owner: str) -> None:
    agent, reviewer = site.agent(owner), site.reviewer(owner)
    old = store(agent, LONG.format("17:00"))
    item_id = queue(agent, LONG.format("18:00"))
    waiting = reviewer.get(f"/v1/reviews/{item_id}").json()
    assert "undo_until" not in waiting
    new = approve(reviewer, item_id, supersede=True).json()["memory"]["id"]
    decided = reviewer.get(f"/v1/reviews/{item_id}").json()
    left = datetime.fromisoformat(decided["undo_until"]) - datetime.fromisoformat(decided["decided_at"])
    assert left == timedelta(minutes=60)
    assert decided["priority"] == []
    is_problem(undo(reviewer, item_id, 1), 409, "stale_version")
    is_problem(undo(site.reviewer(site.owner()), item_id), 404, "not_found")
    done = undo(reviewer, item_id)
    assert done.status_code == 200, done.text
    assert done.json() == {"item": item_of(reviewer, item_id).model_dump(mode="json")} | {
        "retracted": new,
        "restored": old,
    }
    assert reviewer.get(f"/v1/reviews/{item_id}").json() == waiting | {"version": 3}
    assert [memory["id"] for memory in agent.get("/v1/memories").json()["items"]] == [old]
    problem = is_problem(undo(reviewer, item_id, 3), 409, "waiting")
    assert problem["current"]["version"] == 3
    for bad in ({}, {"version": "2"}, {"version": 2, "reason": "r"}):
        is_problem(reviewer.post(f"/v1/reviews/{item_id}/undo", json=bad), 422, "invalid_request")
    assert site.actions(owner)[-3:] == ["review.undone", "memory.retracted", "memory.restored"]


def test_a_decision_stands_when_the_same_claim_waits_again(site: Site, owner: str) -> None:
    agent, reviewer = site.agent(owner), site.reviewer(owner)
    item_id = queue(agent, "The granary has nine cats")
    reject(reviewer, item_id)
    again = queue(agent, "The granary has nine cats")
    problem = is_problem(undo(reviewer, item_id), 409, "duplicate")
    assert (problem["same_as"], problem["current"]["status"]) == (again, "rejected")


def test_a_repeat_of_a_rejected_claim_shows_the_rejection(site: Site, owner: str) -> None:
    agent, reviewer = site.agent(owner), site.reviewer(owner)
    text = "The tower clock was built by elves"
    assert "rejected_before" not in agent.post("/v1/claims", json=claim(text, "ai_synthesis")).json()
    (item_id,) = listed(reviewer)
    assert "rejection" not in reviewer.get(f"/v1/reviews/{item_id}").json()
    done = reject(reviewer, item_id, reason="a tale").json()["item"]
    told = {"queue_id": item_id, "reason": "a tale", "rejected_at": done["decided_at"]}
    repeat = claim("Built by elves, the tower clock was", "ai_synthesis")
    checked = agent.post("/v1/claims/check", json=repeat).json()
    assert (checked["outcome"], checked["rejected_before"]) == ("queued", told)
    assert (
        "rejected_before" not in agent.post("/v1/claims/check", json=claim(text)).json()
    )  # it would be stored
    answer = agent.post("/v1/claims", json=repeat).json()
    assert (answer["outcome"], answer["rejected_before"]) == ("queued", told)
    shown = reviewer.get(f"/v1/reviews/{answer['queue_id']}").json()
    assert (shown["rejected_before"], shown["rejection"]) == (item_id, told)
    kept = agent.get(f"/v1/decisions/{answer['decision_id']}").json()
    assert kept["rejected_before"] == told
    other = site.agent(site.owner()).post("/v1/claims/check", json=repeat).json()
    assert "rejected_before" not in other


def test_a_batch_takes_back_too_and_tells_foreign_from_unknown_nowhere(site: Site, owner: str) -> None:
    agent, reviewer, other = site.agent(owner), site.reviewer(owner), site.owner()
    foreign_agent, foreign_reviewer = site.agent(other), site.reviewer(other)
    mine, decided, theirs = (
        queue(agent, "The well is forty feet deep"),
        queue(foreign_agent, "The wind mill has four sails"),
        queue(foreign_agent, "The water mill has one wheel"),
    )
    approve(foreign_reviewer, decided)
    reject(reviewer, mine)
    unknown = "rev_" + "0" * 32
    acts: list[dict[str, Any]] = [
        {"action": "approve", "version": 1},
        {"action": "approve", "version": 1, "content": "The mill is closed"},
        {"action": "reject", "version": 1, "reason": "no"},
        {"action": "undo", "version": 2},
    ]
    rows = [act | {"id": name} for act in acts for name in (decided, theirs, unknown)]
    rows += [
        {"action": "undo", "id": mine, "version": 2},
        {"action": "undo", "id": mine, "version": 2},
        {"action": "approve", "id": mine, "version": 3},
    ]
    results = reviewer.post("/v1/reviews/batch", json={"items": rows}).json()["results"]
    *foreign, back, twice, stored = results
    assert {row["code"] for row in foreign} == {"not_found"}
    assert all(row == foreign[0] for row in foreign)
    assert (back["item"]["version"], back["retracted"], twice["code"]) == (3, None, "waiting")
    assert stored["item"]["status"] == "approved"
    assert site.actions(other) == ["claim.queued", "claim.queued", "review.approved"]
