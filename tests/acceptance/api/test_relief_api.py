"""Questions to agents and their answers, limits that say what to do, and queries, over HTTP against a served gate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.acceptance.site import Site, claim, is_problem, open_site, queue, submit
from tests.repos import TestRepository
from vouchgate.ingest.claims.decision import Outcome, ValidationResult

ADR = """# ADR-007: Deploys stop on Fridays

Status: Accepted

## Decision

Deploys stop on Fridays at noon. Nothing is deployed on a weekend.
"""
QUESTION = "Which record says so?"


@pytest.fixture(scope="module")
def site(module_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A gate over a repository with one record, where an agent has three places."""
    folder = tmp_path_factory.mktemp("relief")
    TestRepository(folder / "repo").commit("Decide", {"docs/adrs/0007-fridays.md": ADR})
    policy = folder / "policy.toml"
    policy.write_text('harvest = "off"\n[queue]\nper_agent = 3\n')
    with open_site(module_database_url, repos=[folder / "repo"], policy=policy) as opened:
        yield opened


def send_back(reviewer: httpx.Client, item_id: str) -> dict[str, Any]:
    """The item, of which its agent is asked QUESTION."""
    version = reviewer.get(f"/v1/reviews/{item_id}").json()["version"]
    asked = {"version": version, "question": QUESTION}
    answer = reviewer.post(f"/v1/reviews/{item_id}/send-back", json=asked)
    assert answer.status_code == 200, answer.text
    item: dict[str, Any] = answer.json()["item"]
    return item


def listed(reviewer: httpx.Client, **query: str) -> list[str]:
    """The ids of what a reviewer is shown."""
    return [item["id"] for item in reviewer.get("/v1/reviews", params=query).json()["items"]]


def answered(agent: httpx.Client, item_id: str, status: int, **body: Any) -> ValidationResult:
    """What an answer to a question comes to."""
    found = agent.post(f"/v1/claims/pending/{item_id}/answer", json=body)
    assert found.status_code == status, found.text
    return ValidationResult.model_validate_json(found.content)


def test_a_question_is_answered_with_a_source_and_the_claim_stored_by_the_rules_alone(site: Site) -> None:
    owner = site.owner()
    agent, other, reviewer = site.agent(owner), site.agent(owner), site.reviewer(owner)
    item_id = queue(agent, "Deploys stop on Fridays at noon")
    sent = send_back(reviewer, item_id)
    assert listed(reviewer) == []
    assert listed(reviewer, q="is:sent-back fridays") == [item_id]
    (own,) = agent.get("/v1/claims/pending").json()["items"]
    assert own == agent.get(f"/v1/claims/pending/{item_id}").json()
    assert own["question"] == QUESTION
    assert own["next_step"].startswith(
        f"Its owner asks: “{QUESTION}” Send it again as the answer to {item_id}"
    )
    path = f"/v1/claims/pending/{item_id}/answer"
    is_problem(other.get(f"/v1/claims/pending/{item_id}"), 404)
    is_problem(other.post(path, json={"citations": ["ADR-007"]}), 404)
    is_problem(agent.post(path, json={}), 409, "nothing_new")
    # The rules decide as about any claim: speculation is blocked, and the question stands.
    blocked = answered(agent, item_id, 422, content="I think deploys stop on Fridays, see ADR-007")
    assert blocked.outcome is Outcome.BLOCKED
    assert listed(reviewer) == []
    # What the source does not cover is before the reviewer again, as the same item, with what was brought.
    first = answered(agent, item_id, 202, content="Deploys stop on Mondays at nine, see ADR-007")
    assert (first.queue_id, listed(reviewer)) == (item_id, [item_id])
    again = reviewer.get(f"/v1/reviews/{item_id}").json()
    assert (again["content"], again["version"]) == ("Deploys stop on Mondays at nine, see ADR-007", 2)
    assert (again["question"], again["cited"]) == (QUESTION, "adr:7")
    assert again["decision_id"] == first.decision_id != sent["decision_id"]
    is_problem(agent.post(path, json={"citations": ["ADR-007"]}), 409, "not_sent_back")
    assert "question" not in agent.get(f"/v1/claims/pending/{item_id}").json()
    send_back(reviewer, item_id)
    said = {"content": "Deploys stop on Fridays at noon, see ADR-007"}
    stored = answered(agent, item_id, 201, **said)
    assert stored.outcome is Outcome.STORED
    assert answered(agent, item_id, 201, **said) == stored  # an answer that comes again
    became = reviewer.get(f"/v1/reviews/{item_id}").json()
    assert (became["status"], became["memory_id"]) == ("promoted", stored.memory_id)
    memory = reviewer.get(f"/v1/memories/{stored.memory_id}").json()
    assert (memory["content"], memory["approved_by"]) == (said["content"], None)
    actions = site.actions(owner)
    assert actions.count("review.sent_back") == actions.count("claim.answered") == 2
    assert actions.count("claim.promoted") == actions.count("claim.rechecked") == 1
    # The texts that were replaced are in nobody's way, and the one that is stored is known.
    assert submit(agent, claim("Deploys stop on Mondays at nine", "ai_synthesis"), 202).rule == "ungrounded"
    assert submit(agent, claim(said["content"], "ai_synthesis"), 409).rule == "duplicate"


def test_the_same_words_with_a_citation_are_an_answer_too(site: Site) -> None:
    owner = site.owner()
    agent, other, reviewer = site.agent(owner), site.agent(owner), site.reviewer(owner)
    words = "Nothing is deployed on a weekend"
    item_id = queue(agent, words)
    send_back(reviewer, item_id)
    plain = submit(agent, claim(words, "ai_synthesis"), 202)
    assert (plain.rule, plain.queue_id) == ("already_pending", item_id)
    with_source = claim(words, "ai_synthesis", citations=["ADR-007"])
    assert submit(other, with_source, 202).rule == "already_pending"  # it is not that agent's to answer
    assert listed(reviewer) == []
    stored = submit(agent, with_source, 201, key="weekend")
    assert stored.memory_id is not None
    assert submit(agent, with_source, 201, key="weekend") == stored
    assert reviewer.get(f"/v1/reviews/{item_id}").json()["status"] == "promoted"
    assert listed(reviewer, status="promoted", q="weekends deploying") == [item_id]


def test_a_row_of_a_batch_is_an_answer_too(site: Site) -> None:
    owner = site.owner()
    agent, reviewer = site.agent(owner), site.reviewer(owner)
    words = "Nothing is deployed on a weekend"
    send_back(reviewer, item_id := queue(agent, words))
    rows = [claim(words, "ai_synthesis"), claim(words, "ai_synthesis", citations=["ADR-007"])]
    for _ in range(2):  # sent again under its key, it is answered as before
        answer = agent.post("/v1/claims/batch", json={"claims": rows}, headers={"Idempotency-Key": "both"})
        plain, stored = answer.json()["results"]
        assert (plain["rule"], plain["queue_id"]) == ("already_pending", item_id)
        assert stored["outcome"] == "stored", stored
    assert reviewer.get(f"/v1/reviews/{item_id}").json()["status"] == "promoted"


def test_a_full_queue_says_which_limit_and_what_to_do(site: Site) -> None:
    owner = site.owner()
    agent, other, reviewer = site.agent(owner), site.agent(owner), site.reviewer(owner)
    for name in ("door", "table", "roof"):
        queue(agent, f"The {name} of the mill is oak")
    full = agent.post("/v1/claims", json=claim("The floor of the mill is oak", "ai_synthesis"))
    body = is_problem(full, 429, "queue_full")
    assert body["detail"].startswith("3 claims of this agent wait for their owner, which is the limit.")
    assert (body["limit"], body["waiting"]) == ("per_agent", 3)
    assert "a reviewer of this owner" in body["cleared_by"]
    assert "tell the user" in body["next_step"]
    queue(other, "The floor of the mill is oak")  # it has places of its own
    # Snoozed or sent back, a claim keeps its place; let go, it does not.
    is_problem(reviewer.post("/v1/reviews/let-go", json={"q": " ", "reason": "old"}), 422)
    wrong = reviewer.post("/v1/reviews/let-go", json={"q": "agnet:x", "reason": "old"})
    assert "did you mean agent:?" in is_problem(wrong, 422, "invalid_query")["detail"]
    what = {"q": "oak door", "reason": "no source"}
    counted = reviewer.post("/v1/reviews/let-go", json=what | {"dry_run": True}).json()
    assert counted == {"found": 1, "let_go": 0, "left": 0}
    is_problem(reviewer.post("/v1/reviews/let-go", json=what | {"expect": 4}), 409, "other_number")
    done = reviewer.post("/v1/reviews/let-go", json=what | {"expect": 1}).json()
    assert done == {"found": 1, "let_go": 1, "left": 0}
    queue(agent, "The stairs of the mill are oak")
    (gone,) = agent.get("/v1/claims/pending", params={"status": "let_go"}).json()["items"]
    assert gone["note"] == "no source"


def test_views_and_queries_that_make_no_sense(site: Site) -> None:
    reviewer = site.reviewer(site.owner())
    assert reviewer.post("/v1/reviews/views", json={"name": "old", "q": "before:7d"}).status_code == 200
    assert reviewer.get("/v1/reviews/views").json() == {"views": [{"name": "old", "q": "before:7d"}]}
    is_problem(reviewer.post("/v1/reviews/views", json={"name": "x", "q": "is:lost"}), 422, "invalid_query")
    is_problem(reviewer.get("/v1/reviews", params={"q": "\x00"}), 422, "invalid_query")
    is_problem(reviewer.get("/v1/reviews", params={"q": "w " * 300}), 422, "invalid_query")
    assert reviewer.request("DELETE", "/v1/reviews/views", params={"name": "old"}).json() == {"views": []}
    unknown = "/v1/reviews/rev_" + "0" * 32
    for act, body in (
        ("snooze", {"until": "2027-01-01"}),
        ("resume", None),
        ("assign", {"to": "me"}),
        ("look", {}),
    ):
        is_problem(reviewer.post(f"{unknown}/{act}", json=body), 404)
