"""What is similar to a claim, from the answer to the reviewer who rules on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.cli_program import cli
from tests.acceptance.site import Site, claim, queue, store, submit
from vouchgate.ingest.claims.people import Role

pytestmark = pytest.mark.on("sqlite")

STORED = "The invoice service retries a failed upload three times"
NEAR = "The invoice service retries a failed download three times"


def test_the_reviewer_sees_what_the_agent_was_shown(site: Site, owner: str, tmp_path: Path) -> None:
    agent, (_, token) = site.agent(owner), site.token(Role.REVIEWER, owner)
    memory_id = store(agent, STORED)
    expected = [{"memory_id": memory_id, "similarity": 0.8, "content": STORED}]
    answer = submit(agent, claim(NEAR, "ai_synthesis"), 202)
    assert answer.similar is not None
    assert [one.model_dump() for one in answer.similar] == expected
    reviewer = site.caller(token)
    item = reviewer.get(f"/v1/reviews/{answer.queue_id}").json()
    assert item["similar"] == expected
    (listed,) = reviewer.get("/v1/reviews").json()["items"]
    assert {
        name: value for name, value in item.items() if name not in ("similar", "priority", "needed")
    } == listed
    show = ("review", "show", str(answer.queue_id), "--database-url", site.url, "--token", token)
    printed = cli(*show, cwd=tmp_path).stdout.decode()
    assert f"similar   80 % {memory_id}: {STORED}" in printed


def test_nothing_similar_is_an_empty_list_and_not_looked_for_is_null(
    site: Site, owner: str, tmp_path: Path
) -> None:
    agent, (_, token) = site.agent(owner), site.token(Role.REVIEWER, owner)
    assert submit(agent, claim("I think the harbour lights are out"), 422).similar is None
    assert submit(agent, claim(STORED), 201).similar is None
    other = queue(agent, "Harbour lights are switched at dusk")
    assert site.caller(token).get(f"/v1/reviews/{other}").json()["similar"] == []
    show = ("review", "show", other, "--database-url", site.url, "--token", token)
    assert "similar   nothing found" in cli(*show, cwd=tmp_path).stdout.decode()


def test_rows_of_a_batch_and_a_check_are_shown_the_same(site: Site, owner: str) -> None:
    agent = site.agent(owner)
    memory_id = store(agent, STORED)
    rows = [claim(NEAR, "ai_synthesis"), claim("Harbour lights are switched at dusk", "ai_synthesis")]
    near, far = agent.post("/v1/claims/batch", json={"claims": rows}).json()["results"]
    assert [one["memory_id"] for one in near["similar"]] == [memory_id]
    assert far["similar"] == []
    checked = agent.post("/v1/claims/check", json=claim(NEAR + " a day")).json()
    assert [one["memory_id"] for one in checked["similar"]] == [memory_id]
