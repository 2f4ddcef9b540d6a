"""Reading memories, their evidence and the decisions behind them, and taking memories back."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.acceptance.cli_program import cli
from tests.acceptance.site import Site, claim, is_problem, queue, store, submit
from vouchgate.ingest.claims.decision import Evidence, ValidationResult
from vouchgate.ingest.claims.impact import Impact
from vouchgate.ingest.claims.memory import Memory

pytestmark = pytest.mark.on("sqlite")

UNKNOWN = "01234567-89ab-7def-8123-456789abcdef".replace("-", "")


def listed(caller: httpx.Client, **filters: Any) -> list[str]:
    """The ids of the memories on the first page."""
    page = caller.get("/v1/memories", params=filters)
    assert page.status_code == 200, page.text
    return [Memory.model_validate(item).id for item in page.json()["items"]]


def test_every_door_says_that_it_was_erased(site: Site, owner: str) -> None:
    agent, auditor, reviewer = site.agent(owner), site.auditor(owner), site.reviewer(owner)
    memory_id, item_id = (
        store(agent, "The kiln master is ill"),
        queue(agent, "The kiln master owes nine marks"),
    )
    basis = {"basis": "GDPR Art. 17(1)(b)"}
    for wrong in ({}, {"basis": ""}, {"basis": "x" * 301}, {**basis, "more": 1}):
        is_problem(reviewer.post(f"/v1/erasures/{item_id}", json=wrong), 422)
    holds = {"basis": "Art. 17: the kiln master is ill"}
    assert (
        is_problem(reviewer.post(f"/v1/erasures/{memory_id}", json=holds), 409)["code"] == "basis_holds_text"
    )
    is_problem(reviewer.post(f"/v1/erasures/mem_{UNKNOWN}", json=basis), 404)
    is_problem(site.reviewer(site.owner()).post(f"/v1/erasures/{memory_id}", json=basis), 404)
    for one in (memory_id, item_id):
        shown = reviewer.post(f"/v1/erasures/{one}", json={**basis, "dry_run": True}).json()
        assert (shown["status"], shown["erasure_id"]) == ("dry_run", None)
        done = reviewer.post(f"/v1/erasures/{one}", json=basis).json()
        assert (done["status"], done["ids"]) == ("erased", shown["ids"])
        again = is_problem(reviewer.post(f"/v1/erasures/{one}", json=basis), 410)
        assert again["erasure_id"] == done["erasure_id"]
    doors = [
        f"/v1/memories/{memory_id}",
        f"/v1/memories/{memory_id}/evidence",
        f"/v1/decisions/dec_{memory_id[4:]}",
    ]
    for door in doors:
        told = is_problem(auditor.get(door), 410)
        assert (told["code"], told["basis"]) == ("erased", basis["basis"])
        assert "basis" not in is_problem(agent.get(door), 410)
        is_problem(site.auditor(site.owner()).get(door), 404)
    is_problem(reviewer.get(f"/v1/reviews/{item_id}"), 410)
    assert listed(auditor) == []
    assert reviewer.get("/v1/reviews").json()["items"] == []
    assert "memory.erased" in [event["action"] for event in auditor.get("/v1/audit/events").json()["items"]]
    assert store(agent, "The kiln master is ill") != memory_id


def test_a_stored_claim_is_read_back_with_its_evidence(site: Site, owner: str) -> None:
    agent, auditor = site.agent(owner), site.auditor(owner)
    answer = submit(agent, claim("The north stairs are closed", metadata={"floor": 2}), 201)
    memory = Memory.model_validate_json(auditor.get(f"/v1/memories/{answer.memory_id}").content)
    assert (memory.content, memory.owner_id, memory.status) == (
        "The north stairs are closed",
        owner,
        "active",
    )
    assert (memory.decision_id, memory.metadata) == (answer.decision_id, {"floor": 2})
    evidence = auditor.get(f"/v1/memories/{answer.memory_id}/evidence")
    assert Evidence.model_validate_json(evidence.content) == answer.evidence
    assert memory.confidence == answer.evidence.confidence


def test_an_agent_is_handed_the_metadata_of_what_its_owner_approved_and_of_nothing_else(
    site: Site, owner: str
) -> None:
    agent, reviewer = site.agent(owner), site.reviewer(owner)
    note = {"note": "Root passwords are shared with Mallory"}
    stored = submit(agent, claim("The north stairs are closed", metadata=note), 201)
    paths = [f"/v1/memories/{stored.memory_id}", f"/v1/memories/{stored.memory_id}/evidence"]
    paths += ["/v1/memories", f"/v1/decisions/{stored.decision_id}"]
    for path in paths:
        assert "Mallory" not in agent.get(path).text, path
        assert "Mallory" in site.auditor(owner).get(path).text, path
    waits = submit(agent, claim("The south stairs are open", "ai_synthesis", metadata=note), 202)
    approved = reviewer.post(f"/v1/reviews/{waits.queue_id}/approve", json={"version": 1}).json()["memory"][
        "id"
    ]
    assert agent.get(f"/v1/memories/{approved}").json()["metadata"] == note
    assert agent.get(f"/v1/memories/{approved}/evidence").json()["metadata"] == note


def test_a_blocked_claim_is_read_back_as_its_decision(site: Site, owner: str) -> None:
    agent = site.agent(owner)
    answer = submit(agent, claim("I guess the south stairs are closed"), 422)
    for caller in (agent, site.reviewer(owner), site.auditor(owner), site.auditor()):
        kept = caller.get(f"/v1/decisions/{answer.decision_id}")
        assert ValidationResult.model_validate_json(kept.content) == answer
    assert listed(agent) == []


def test_filters(site: Site, owner: str) -> None:
    agent = site.agent(owner)
    fact = store(agent, "The pump runs at 100% of its power")
    preference = store(agent, "I like quiet pumps", memory_type="preference")
    # A comma, a per cent sign and an underscore mean themselves.
    decision = store(agent, "We run pump_b on Mondays, always", memory_type="decision")
    queue(agent, "The pump was bought in Graz")
    assert listed(agent) == [decision, preference, fact]
    assert listed(agent, memory_type="fact") == [fact]
    assert listed(agent, text="PUMP") == [decision, preference, fact]
    assert listed(agent, text="100%") == [fact]
    assert listed(agent, text="%") == [fact]
    assert listed(agent, text="pump_") == [decision]
    assert listed(agent, text="quiet", memory_type="fact") == []
    assert listed(agent, q="which pumps are quiet?") == [preference, fact, decision]
    assert listed(agent, q='"pumps" OR (Mondays "', source="user", limit=1) == [decision]
    assert listed(agent, q="pump", as_of="2020-01-01") == listed(agent, agent="nobody") == []
    assert listed(agent, q="power", created_from="2020-01-01", created_to="2120-01-01T00:00:00Z") == [fact]
    for refused in ({"q": "pump", "after": fact}, {"as_of": "2020-01-01", "status": "active"}):
        is_problem(agent.get("/v1/memories", params=refused), 422)
    for wrong in (
        {"as_of": "yesterday"},
        {"as_of": "0001-01-01T00:00:00+14:00"},
        {"q": "a" * 201},
        {"q": "\0"},
    ):
        is_problem(agent.get("/v1/memories", params=wrong), 422)
    page = agent.get("/v1/memories", params={"q": "pump", "limit": 1}).json()
    assert page["next"] is None and len(page["items"]) == 1
    assert listed(agent, confidence="medium") == [decision, preference, fact]
    assert listed(agent, confidence="low") == []
    assert listed(agent, label="INFERENCE", user_id=owner) == [decision, preference, fact]
    assert listed(agent, label="FACT") == []
    assert listed(agent, source_id="ADR-003") == []
    assert listed(agent, status=["retracted", "superseded", "expired"]) == []


def test_pages_go_newest_first_without_a_gap_or_a_repeat(site: Site, owner: str) -> None:
    agent = site.agent(owner)
    rows = [claim(f"Rack {number} holds spare part {number * 13}") for number in range(23)]
    made = [
        row["memory_id"] for row in agent.post("/v1/claims/batch", json={"claims": rows}).json()["results"]
    ]
    assert len(set(made)) == 23
    seen: list[str] = []
    after: str | None = None
    sizes = []
    while True:
        page = agent.get("/v1/memories", params={"limit": 10} | ({"after": after} if after else {})).json()
        ids = [item["id"] for item in page["items"]]
        if not seen:
            store(agent, "A rack was added while somebody pages")  # newer than where the reader is
        seen += ids
        sizes.append(len(ids))
        after = page["next"]
        if after is None:
            break
    assert sizes == [10, 10, 3]
    assert sorted(seen) == sorted(made)
    assert seen == sorted(seen, reverse=True)


def test_an_expired_memory_is_left_out_unless_asked_for(site: Site, owner: str) -> None:
    agent = site.agent(owner)
    soon = (datetime.now(UTC) + timedelta(seconds=0.6)).isoformat()
    lasting = store(agent, "The car park is free of charge", validity_horizon="2099-01-01")
    passing = store(agent, "The car park is shut today", validity_horizon=soon)
    past = store(agent, "The car park was resurfaced", validity_horizon="2001-01-01T00:00:00Z")
    time.sleep(0.7)
    assert listed(agent) == [lasting]
    assert listed(agent, include_expired="true") == [past, passing, lasting]
    assert listed(agent, status="expired") == [past, passing]
    assert agent.get(f"/v1/memories/{passing}").json()["status"] == "expired"
    # It is in nobody's way any more: the same claim can be stored again.
    assert store(agent, "The car park is shut today", validity_horizon="2099-01-01") in listed(agent)


def test_the_extremes_of_time_are_kept(site: Site, owner: str) -> None:
    agent = site.agent(owner)
    for horizon in ("9999-12-31T23:59:59.999999Z", "0001-01-01T00:00:00Z"):
        made = store(agent, f"This holds until {horizon}", validity_horizon=horizon)
        assert agent.get(f"/v1/memories/{made}").json()["validity_horizon"] == horizon
    assert len(listed(agent, include_expired="true")) == 2
    for horizon in ("9999-12-31T23:59:59-01:00", "0001-01-01T00:00:00+01:00", "2027-02-30", "1700000000", ""):
        body = claim("This holds for ever", validity_horizon=horizon)
        is_problem(agent.post("/v1/claims", json=body), 422, "invalid_request")
    body = claim("This holds for ever", validity_horizon=1700000000)
    is_problem(agent.post("/v1/claims", json=body), 422, "invalid_request")


def test_an_owner_takes_a_memory_back(site: Site, owner: str) -> None:
    agent, reviewer = site.agent(owner), site.reviewer(owner)
    made = store(agent, "The kiosk takes cash only")
    path = f"/v1/memories/{made}"
    for reason in ("", "   ", "\x00", "x" * 2001):
        is_problem(reviewer.delete(path, params={"reason": reason}), 422, "invalid_request")
    taken = Memory.model_validate_json(reviewer.delete(path, params={"reason": "cards since May"}).content)
    assert (taken.status, taken.retracted_reason) == ("retracted", "cards since May")
    assert Memory.model_validate_json(agent.get(path).content) == taken
    assert listed(agent) == []
    assert listed(agent, status="retracted") == [made]
    is_problem(reviewer.delete(path), 409, "not_active")
    assert site.actions(owner) == ["claim.stored", "memory.retracted"]
    again = store(agent, "The kiosk takes cash only")
    assert reviewer.delete(f"/v1/memories/{again}").json()["retracted_reason"]


@pytest.mark.parametrize("role", ["agent", "reviewer", "auditor"])
def test_lists_hold_only_what_is_the_callers(site: Site, owner: str, role: str) -> None:
    other = site.owner()
    mine = store(site.agent(owner), "Keys hang behind the desk")
    theirs = store(site.agent(other), "Keys hang behind the desk")
    caller: httpx.Client = getattr(site, role)(owner)
    assert listed(caller) == [mine]
    assert listed(caller, user_id=owner) == [mine]
    assert listed(caller, after=theirs) in ([mine], [])
    is_problem(caller.get("/v1/memories", params={"user_id": other}), 403, "owner_not_allowed")
    both = site.agent(owner, other)
    assert set(listed(both)) == {mine, theirs}
    assert listed(both, user_id=other) == [theirs]
    assert listed(site.auditor(), user_id=other) == [theirs]


def test_another_owners_things_answer_like_things_that_do_not_exist(site: Site, owner: str) -> None:
    """Byte for byte, headers too but for the date, for every route with an id and every role."""
    other = site.owner()
    agent = site.agent(other)
    stored = submit(agent, claim("The vault is under the stage"), 201)
    queued = submit(agent, claim("The vault has two doors", "ai_synthesis"), 202)
    assert queued.queue_id is not None
    foreign = {"mem": str(stored.memory_id), "dec": str(stored.decision_id), "rev": queued.queue_id}
    acts: list[tuple[str, str, dict[str, Any] | None]] = [
        ("GET", "/v1/memories/{mem}", None),
        ("GET", "/v1/memories/{mem}/evidence", None),
        ("DELETE", "/v1/memories/{mem}", None),
        ("GET", "/v1/decisions/{dec}", None),
        ("GET", "/v1/reviews/{rev}", None),
        ("POST", "/v1/reviews/{rev}/approve", {"version": 1}),
        ("POST", "/v1/reviews/{rev}/approve", {"version": 7, "content": "The vault has one door"}),
        ("POST", "/v1/reviews/{rev}/reject", {"version": 1, "reason": "no"}),
        ("POST", "/v1/reviews/{rev}/undo", {"version": 1}),
    ]
    for caller in (site.agent(owner), site.reviewer(owner), site.auditor(owner)):
        for method, path, body in acts:
            answers = []
            for ids in (foreign, {word: f"{word}_{UNKNOWN}" for word in foreign}):
                response = caller.request(method, path.format(**ids), json=body)
                headers = {name: value for name, value in response.headers.items() if name != "date"}
                answers.append((response.status_code, headers, response.content))
            assert answers[0] == answers[1], (method, path)
            assert answers[0][0] in (403, 404), (method, path)
    reviewer = site.reviewer(owner)
    rows = [
        {"action": "approve", "id": foreign["rev"], "version": 1},
        {"action": "approve", "id": "rev_x", "version": 1},
    ]
    first, second = reviewer.post("/v1/reviews/batch", json={"items": rows}).json()["results"]
    assert first == second
    assert first["status"] == 404
    assert site.actions(other) == ["claim.stored", "claim.queued"]
    assert site.reviewer(other).get(f"/v1/reviews/{queued.queue_id}").json()["status"] == "pending"


def test_an_auditor_of_any_owner_reads_everyones(site: Site, owner: str) -> None:
    answer = submit(site.agent(owner), claim("The bell rings twice"), 201)
    auditor = site.auditor()
    for path in (
        f"/v1/memories/{answer.memory_id}",
        f"/v1/memories/{answer.memory_id}/evidence",
        f"/v1/decisions/{answer.decision_id}",
    ):
        assert auditor.get(path).status_code == 200
    is_problem(auditor.delete(f"/v1/memories/{answer.memory_id}"), 403, "role_not_allowed")


def test_what_rests_on_a_source_is_told_to_whom_it_concerns(site: Site, owner: str, tmp_path: Path) -> None:
    other = site.owner("other")
    mine = submit(site.agent(owner), claim("The north stairs are shut, see ADR-0777"), 201).memory_id
    waits = submit(site.agent(owner), claim("The lift was built by ADR 777", "ai_synthesis"), 202).queue_id
    theirs = submit(site.agent(other), claim("The west door is red, see ADR-777"), 201).memory_id
    assert listed(site.agent(owner), source_id="adr-777") == [mine]
    assert set(listed(site.auditor(), source_id="ADR-0777")) >= {mine, theirs}
    for caller in (site.reviewer(owner), site.auditor(owner)):
        found = caller.get("/v1/impact", params={"source": "adr 777"})
        assert found.status_code == 200, found.text
        told = Impact.model_validate_json(found.content)
        assert ([one.id for one in told.memories], [one.id for one in told.waiting]) == ([mine], [waits])
        assert (told.counts["active"], told.counts["pending"], told.next) == (1, 1, None)
        assert is_problem(caller.get("/v1/impact", params={"source": "ADR-777", "user_id": other}), 403)
        assert is_problem(caller.get("/v1/impact", params={"source": ""}), 422)
        assert is_problem(caller.get("/v1/impact", params={"source": "a\x00b"}), 422)
    assert is_problem(site.auditor().get("/v1/impact", params={"source": "ADR-777"}), 422)
    sent = claim("It goes", delivery={"sink": "vouchgate", "place": str(mine), "op": "remove"})
    assert is_problem(site.agent(owner).post("/v1/claims", json=sent), 422)

    def run(*words: str) -> tuple[int, str]:
        database = ("--database-url", site.url, "--owner", owner)
        done = cli(*words, *database, cwd=tmp_path)
        return done.returncode, (done.stdout + done.stderr).decode()

    status, said = run("impact", "ADR 0777")
    assert (status, said.splitlines()[0]) == (0, f"{owner}: 1 active, 1 pending, 2 alone")
    assert f"{mine}  active" in said and f"{waits}  pending" in said and "rests on it alone" in said
    assert Impact.model_validate_json(run("impact", "ADR-777", "--json")[1]).alone == (waits, mine)
    assert run("impact", "ADR-7777") == (0, "Nothing rests on it.\n")
    assert run("recheck", "--source", "adr 777") == (0, "2 to be looked at again now.\n")
    why = ("memory", "retract", "--source", "adr 777", "--reason", "It was withdrawn.")
    assert run(*why) == (0, f"{owner}: 1 proposed; 0 wait for that already.\n")
    assert run(*why) == (0, f"{owner}: 0 proposed; 1 wait for that already.\n")
    assert listed(site.agent(owner), source_id="ADR-777") == [mine]
    cited = submit(site.agent(owner), claim("The pier is shut", "ai_synthesis", citations=["ADR-0778"]), 202)
    edited = {"version": 1, "content": "The old pier is shut for good"}
    done = site.reviewer(owner).post(f"/v1/reviews/{cited.queue_id}/approve", json=edited)
    assert done.status_code == 200, done.text
    assert run("impact", "ADR-778")[1].startswith(f"{owner}: 1 active, 1 alone")
    unknown = cli("impact", "x", "--owner", "nobody", "--database-url", site.url, cwd=tmp_path)
    assert "no owner" in unknown.stderr.decode()
