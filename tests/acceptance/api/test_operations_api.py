"""Health, readiness and counters, and what is left when a part of the service goes away."""

from __future__ import annotations

import re
import shutil
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.acceptance.site import Site, claim, is_problem, open_site, queue, submit
from tests.conftest import Postgresql
from tests.repos import TestRepository
from tests.running.service import make_token, serve
from vouchgate.ingest.claims.people import Role

pytestmark = pytest.mark.on("sqlite")

RECORD = "# 7. Heat with wood\n\n## Status\n\nAccepted\n\n## Decision\n\nThe house is heated with wood.\n"


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository that a test may delete; `site` is given it anew for each database."""
    return tmp_path_factory.mktemp("operations") / "work"


@pytest.fixture(scope="module")
def site(module_database_url: str, repository: Path) -> Iterator[Site]:
    """A gate with a repository."""
    repo = TestRepository(repository)
    repo.commit("Heat with wood", {"docs/adrs/0007-heat-with-wood.md": RECORD})
    with open_site(module_database_url, repos=[repository]) as opened:
        yield opened


def counters(site: Site) -> dict[str, float]:
    """Every counter by its name and labels."""
    page = site.caller().get("/metrics")
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/plain")
    lines = [line for line in page.text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def test_anybody_may_ask_whether_it_runs(site: Site) -> None:
    anybody = site.caller()
    assert anybody.get("/healthz").json() == {"status": "ok"}
    ready = anybody.get("/readyz")
    assert (ready.status_code, ready.json()["degraded"]) == (200, [])
    assert re.fullmatch(r"[0-9a-f]{64}", ready.json()["policy_digest"])


def test_the_page_of_the_api_asks_no_other_server(site: Site) -> None:
    anybody = site.caller()
    page = anybody.get("/docs")
    assert page.status_code == 200
    needed = re.findall(r"""(?:src|href)=["']([^"']+)""", page.text)
    assert any(path.endswith(".js") for path in needed)
    for path in needed:
        assert path.startswith("/")
        assert anybody.get(path).status_code == 200


def test_the_policy_in_force_is_the_one_in_the_decisions(site: Site, owner: str) -> None:
    answer = submit(site.agent(owner), claim("The attic was insulated"), 201)
    assert site.caller().get("/readyz").json()["policy_digest"] == answer.policy_digest


def test_every_decision_is_counted_and_a_repeat_of_one_is_not(site: Site, owner: str) -> None:
    agent = site.agent(owner)
    before = counters(site)
    submit(agent, claim("The cellar is dry"), 201, key="cellar")
    submit(agent, claim("The cellar is dry"), 201, key="cellar")
    submit(agent, claim("The cellar is dry"), 409)
    submit(agent, claim("I guess the cellar is wet"), 422)
    queue(agent, "The cellar has two rooms")
    agent.post("/v1/claims/batch", json={"claims": [claim("The cellar is cold"), {}]})
    agent.post("/v1/claims/check", json=claim("The cellar is warm"))
    after = counters(site)
    changed = {
        name: after[name] - before.get(name, 0)
        for name in after
        if name.startswith(
            ("vouchgate_claims_total", "vouchgate_claim_seconds_count", "vouchgate_queue_items")
        )
        and after[name] != before.get(name, 0)
    }
    assert changed == {
        'vouchgate_claims_total{rule="trusted_source",tier="tier_1"}': 2,
        'vouchgate_claims_total{rule="duplicate",tier="tier_3"}': 1,
        'vouchgate_claims_total{rule="speculation",tier="tier_3"}': 1,
        'vouchgate_claims_total{rule="ungrounded",tier="tier_2"}': 1,
        "vouchgate_claim_seconds_count": 5,
        "vouchgate_queue_items": 1,
        'vouchgate_queue_items_by_age{age="under_1h"}': 1,
    }
    assert after["vouchgate_queue_oldest_seconds"] >= 0


def test_what_becomes_of_waiting_claims_is_counted_and_queues_are_measured(site: Site, owner: str) -> None:
    agent, reviewer = site.agent(owner), site.reviewer(owner)
    before = counters(site)
    approved, rejected, left = (queue(agent, f"Shelf {number} is full") for number in (1, 2, 3))
    assert counters(site)["vouchgate_queue_owners"] == before["vouchgate_queue_owners"] + 1
    assert counters(site)["vouchgate_queue_largest_items"] >= 3
    for item, act, body in (
        (approved, "approve", {"version": 1}),
        (approved, "reject", {"version": 1, "reason": "too late"}),  # decided: nothing to count
        (rejected, "reject", {"version": 1, "reason": "no"}),
        (rejected, "undo", {"version": 2}),
        (left, "approve", {"version": 7}),
        ("rev_" + "0" * 32, "approve", {"version": 1}),
    ):
        reviewer.post(f"/v1/reviews/{item}/{act}", json=body)
    after = counters(site)
    acts = {name: after[name] for name in after if name.startswith("vouchgate_reviews_total")}
    assert {name: count - before.get(name, 0) for name, count in acts.items()} == {
        'vouchgate_reviews_total{action="approved"}': 1,
        'vouchgate_reviews_total{action="rejected"}': 1,
        'vouchgate_reviews_total{action="undone"}': 1,
    }
    ages = [after[name] for name in after if name.startswith("vouchgate_queue_items_by_age")]
    assert len(ages) == 4
    assert sum(ages) == after["vouchgate_queue_items"]
    assert after["vouchgate_queue_expiring_items"] == 0


def test_counters_tell_nothing_about_anybody(site: Site, owner: str) -> None:
    principal, token = site.token(Role.AGENT, owner)
    submit(site.caller(token), claim("Quince jam is on shelf nine", "ai_synthesis"), 202)
    page = site.caller().get("/metrics").text
    for secret in (owner, principal.id, token, "Quince"):
        assert secret not in page


def test_a_repository_that_goes_away_degrades_and_never_passes(
    site: Site, owner: str, repository: Path
) -> None:
    """Last in the module for each database: afterwards the repository is gone."""
    agent = site.agent(owner)
    body = claim("By ADR-7 the house is heated with wood", "ai_synthesis", "decision")
    assert submit(agent, body, 201).rule == "stated"
    shutil.rmtree(repository)
    ready = site.caller().get("/readyz")
    assert (ready.status_code, ready.json()["status"]) == (200, "ready")
    assert len(ready.json()["degraded"]) == 1
    other = claim("By ADR-7 the barn is heated with wood too", "ai_synthesis", "decision")
    answer = submit(agent, other, 202)
    assert answer.rule == "citation_unknown"
    assert [source.kind for source in answer.evidence.sources] == ["unreachable"]


def test_a_database_that_goes_away_is_a_503(postgresql: Postgresql) -> None:
    name = f"gone_{uuid.uuid4().hex}"
    postgresql.run(f"CREATE DATABASE {name} TEMPLATE migrated")
    agent_token = make_token(postgresql.url(name), Role.AGENT, ["ada"])
    reviewer_token = make_token(postgresql.url(name), Role.REVIEWER, ["ada"])
    with (
        serve(postgresql.url(name)) as running,
        running.client(agent_token) as agent,
        running.client(reviewer_token) as reviewer,
        running.client() as anybody,
    ):
        kept = submit(agent, claim("The barn has a new roof", "ai_synthesis"), 202)
        assert anybody.get("/readyz").status_code == 200
        postgresql.run(f"DROP DATABASE {name} WITH (FORCE)")
        start = datetime.now(UTC)
        for answer in (
            anybody.get("/readyz"),
            agent.post("/v1/claims", json=claim("The barn is red", "ai_synthesis")),
            agent.post("/v1/claims/check", json=claim("The barn is red", "ai_synthesis")),
            agent.post("/v1/claims/batch", json={"claims": [claim("The barn is red", "ai_synthesis")]}),
            agent.get("/v1/memories"),
            agent.get(f"/v1/decisions/{kept.decision_id}"),
            reviewer.post(f"/v1/reviews/{kept.queue_id}/approve", json={"version": 1}),
        ):
            if answer.status_code == 200:  # a batch answers row by row
                assert [row["code"] for row in answer.json()["results"]] == ["storage_unavailable"]
                continue
            is_problem(answer, 503, "storage_unavailable")
            assert int(answer.headers["Retry-After"]) > 0
            assert name not in answer.text
        assert (datetime.now(UTC) - start).total_seconds() < 30
        assert anybody.get("/healthz").status_code == 200
        page = anybody.get("/metrics").text
        assert "vouchgate_queue_items -1.0" in page
        assert "vouchgate_queue_owners" not in page
