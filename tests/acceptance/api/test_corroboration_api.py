"""Sources that a caller brings, weighed over HTTP: advice, and nothing is kept of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.acceptance.site import Site, is_problem

pytestmark = pytest.mark.on("sqlite")

CLAIM = "The lighthouse at Skagen has 210 steps."
SOURCES = [
    {
        "id": "a",
        "text": "Whoever climbs it counts: the lighthouse at Skagen has 210 steps.",
        "url": "https://www.bbc.com/a",
    },
    {
        "id": "b",
        "text": "The lighthouse at Skagen has 210 steps, and no lift.",
        "url": "https://www.reuters.com/b",
    },
]


def test_two_voices_make_a_fact_that_is_stored_nowhere(site: Site) -> None:
    owner = site.owner()
    agent = site.agent(owner)
    answer = agent.post("/v1/claims/corroborate", json={"claim": CLAIM, "sources": SOURCES}).json()
    assert (answer["label"], answer["verified"]) == ("FACT", False)
    assert sorted(answer["groups"]) == [["a"], ["b"]]
    assert agent.get("/v1/memories").json()["items"] == []
    assert agent.get("/v1/claims/pending").json()["items"] == []


def test_a_search_is_told_where_to_look_next_and_when_it_is_over(site: Site) -> None:
    agent = site.agent(site.owner())
    body: dict[str, Any] = {"claim": CLAIM, "sources": SOURCES[:1], "attempts": 0, "max_attempts": 2}
    first = agent.post("/v1/decide", json=body).json()
    assert (first["kind"], first["path"]) == ("need_more_search", "corpus")
    tried = [{"path": first["path"], "query": first["query"], "found": 0}]
    assert (
        agent.post("/v1/decide", json=body | {"attempts": 1, "tried": tried}).json()["path"] == "repository"
    )
    over = agent.post("/v1/decide", json=body | {"attempts": 2, "tried": tried}).json()
    assert (over["kind"], over["result"]["outcome"]) == ("final", "Invalid")
    assert "## Gaps" in over["result"]["proof"]


def test_what_is_too_much_is_refused(site: Site) -> None:
    agent = site.agent(site.owner())
    many = {"claim": CLAIM, "sources": [{"text": "x"}] * 65}
    assert is_problem(agent.post("/v1/claims/corroborate", json=many), 422, "invalid_request")
    backwards = {"claim": CLAIM, "sources": [], "attempts": -1, "max_attempts": 1}
    assert is_problem(agent.post("/v1/decide", json=backwards), 422, "invalid_request")
