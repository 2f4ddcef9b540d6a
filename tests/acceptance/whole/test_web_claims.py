"""Claims that cite pages and issues, through the whole service, against real local servers."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.cli_program import cli
from tests.acceptance.site import Site, claim, is_problem, open_site, submit
from tests.web import Answer, Asked, WebServer, web_server
from vouchgate.ingest.claims.decision import Label, ValidationResult
from vouchgate.ingest.claims.source import Found, Missing, Unreachable

pytestmark = pytest.mark.on("sqlite")

PAGE = """<!doctype html><html lang="en"><head><title>Ports of the gateway</title></head><body><main>
<h1>Ports of the gateway</h1>
<p>The gateway exports its metrics on port 9410. The administration interface listens on port 9411 and is bound to
the loopback address.</p>
<p>Certificates are read again every 12 hours without a restart of the gateway.</p>
</main></body></html>"""
GARDEN = """<!doctype html><html lang="en"><head><title>Growing tomatoes</title></head><body><main>
<h1>Growing tomatoes on a balcony</h1>
<p>Tomatoes want six hours of sun a day, a deep pot, and water in the morning. Pinch out the side shoots.</p>
</main></body></html>"""
POLICY = """deadline_seconds = 60
official_domains = ["127.0.0.3"]
[recheck]
first_seconds = 1
growth = 1
attempts = 8
[web]
spacing_seconds = 0
"""


def issue(asked: Asked) -> Answer:
    """One issue, as GitHub's API shows it."""
    assert asked.headers["authorization"] == "Bearer forge-token"
    body = {
        "number": 7,
        "title": "Login page drops the session after a redirect",
        "state": "closed",
        "state_reason": "completed",
        "body": "The session cookie is lost when the login page redirects to another host.",
        "html_url": "https://github.com/acme/shop/issues/7",
        "created_at": "2026-01-02T10:00:00Z",
        "updated_at": "2026-02-03T10:00:00Z",
        "labels": [{"name": "bug"}],
        "user": {"login": "ada"},
    }
    return Answer(json.dumps(body), headers={"Content-Type": "application/json"})


@pytest.fixture(scope="module")
def web() -> Iterator[WebServer]:
    """The pages that claims cite."""
    pages: dict[str, Any] = {
        "/ports": Answer(PAGE),
        "/moved": Answer(status=301, headers={"Location": "/ports"}),
        "/tomatoes": Answer(GARDEN),
        "/private": Answer("who are you?", 403),
        "/api/repos/acme/shop/issues/7": issue,
        "/api/repos/acme/shop": Answer(
            '{"full_name": "acme/shop"}', headers={"Content-Type": "application/json"}
        ),
    }
    with web_server(pages) as opened:
        yield opened


@pytest.fixture(scope="module")
def busy() -> Iterator[WebServer]:
    """Another host, which wants fewer requests."""
    with web_server({"/ports": Answer("busy", 429, {"Retry-After": "120"})}, host="127.0.0.2") as opened:
        yield opened


@pytest.fixture(scope="module")
def official() -> Iterator[WebServer]:
    """A host that the policy lists as official."""
    with web_server({}, host="127.0.0.3") as opened:
        yield opened


@pytest.fixture(scope="module")
def site(
    module_database_url: str,
    web: WebServer,
    busy: WebServer,
    official: WebServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Site]:
    """A gate that may ask this machine, and whose forge is the same server."""
    policy = tmp_path_factory.mktemp("policy") / "policy.toml"
    policy.write_text(POLICY)
    environment = {
        "VOUCHGATE_ALLOW_NETWORKS": "127.0.0.0/8",
        "VOUCHGATE_CITATION_NETWORKS": f"{web.place},{busy.place},{official.place}",
        "VOUCHGATE_GITHUB_URL": f"{web.url}/api",
        "VOUCHGATE_GITHUB_REPO": "acme/shop",
        "VOUCHGATE_GITHUB_TOKEN": "forge-token",
    }
    with open_site(module_database_url, policy=policy, environment=environment) as opened:
        yield opened


def sent(site: Site, content: str, status: int, **more: Any) -> ValidationResult:
    """The decision on a claim of a new owner that nobody but its citation vouches for, as auditors read it."""
    owner = site.owner()
    answer = submit(site.agent(owner), claim(content, "ai_synthesis", **more), status)
    read = site.auditor(owner).get(f"/v1/decisions/{answer.decision_id}")
    return ValidationResult.model_validate_json(read.content)


def test_a_page_that_answers_carries_a_claim_that_only_points_at_it(site: Site, web: WebServer) -> None:
    answer = sent(site, f"See {web.url}/ports", 201)
    assert (answer.rule, answer.reason) == ("pointer", "Points at what is there")
    assert answer.evidence.source_id == f"{web.url}/ports"


def test_a_page_that_speaks_of_the_claim_carries_it(site: Site, web: WebServer) -> None:
    answer = sent(site, f"The gateway exports its metrics on port 9410, see {web.url}/ports", 201)
    assert answer.rule == "stated"
    assert {"support_states", "stated"} <= {finding.code for finding in answer.findings}
    assert answer.evidence.label is Label.INFERENCE  # one page, and no official one
    assert answer.evidence.confidence_score is not None
    (source,) = answer.evidence.sources
    assert isinstance(source, Found)
    assert (source.status, source.title) == (200, "Ports of the gateway")
    assert "port 9410" in source.excerpt
    assert "text" not in source.model_dump()


def test_an_owner_bans_and_trusts_the_publisher_of_a_page_and_takes_it_back(
    site: Site, web: WebServer
) -> None:
    owner = site.owner()
    agent, reviewer = site.agent(owner), site.reviewer(owner)
    said = {"publisher": "127.0.0.1", "trust": "banned", "days": 7}
    is_problem(agent.post("/v1/publishers", json=said), 403, "role_not_allowed")
    assert reviewer.post("/v1/publishers", json=said).json()["decided_by"] != ""
    body = claim(f"The gateway exports its metrics on port 9410, see {web.url}/ports", "ai_synthesis")
    banned = submit(agent, body, 202)
    assert (banned.rule, banned.evidence.publishers.banned) == ("refuted", ("127.0.0.1",))
    assert agent.post("/v1/claims/check", json=body).json()["rule"] == "already_pending"
    seen = reviewer.get("/v1/publishers/preview", params={"publisher": "127.0.0.1"}).json()
    assert (seen["waiting"], seen["would_store"], seen["memories"]) == (1, 1, 0)
    assert [move["decisions"] for move in seen["if_trusted"]["moves"]] == [1]
    assert seen["if_banned"]["moves"] == []
    answer = reviewer.delete("/v1/publishers", params={"publisher": "127.0.0.1"})
    assert answer.json() == {"cleared": True}
    assert reviewer.post("/v1/publishers", json=said | {"trust": "trusted"}).status_code == 200
    (now,) = reviewer.get("/v1/publishers").json()["items"]
    assert (now["publisher"], now["trust"], now["owner_id"]) == ("127.0.0.1", "trusted", owner)
    other = claim(f"The administration interface listens on port 9411, see {web.url}/ports", "ai_synthesis")
    stored = submit(agent, other, 201)
    assert (stored.rule, stored.evidence.publishers.trusted) == ("stated", ("127.0.0.1",))
    assert stored.evidence.label is Label.INFERENCE
    acts = [action for action in site.actions(owner) if action.startswith("publisher.")]
    assert acts == ["publisher.banned", "publisher.cleared", "publisher.trusted"]
    for wrong in ({"publisher": "docs.example.com"}, {"days": 0}, {"days": 4000}, {"trust": "loved"}):
        is_problem(reviewer.post("/v1/publishers", json=said | wrong), 422)
    other_owner = said | {"user_id": site.owner()}
    is_problem(reviewer.post("/v1/publishers", json=other_owner), 403, "owner_not_allowed")


def test_the_final_address_is_what_is_cited(site: Site, web: WebServer) -> None:
    answer = sent(site, f"The gateway exports its metrics on port 9410, see {web.url}/moved", 201)
    (source,) = answer.evidence.sources
    assert f"/moved redirects to {web.url}/ports, which exists" in source.detail
    # Where a private server leads to is for reviewers: a memory names what was cited.
    assert answer.evidence.source_id == f"{web.url}/moved"


def test_a_page_about_something_else_does_not_carry_it(site: Site, web: WebServer) -> None:
    answer = sent(site, f"The gateway exports its metrics on port 9410, see {web.url}/tomatoes", 202)
    assert answer.rule == "refuted"
    assert "support_off_topic" in {finding.code for finding in answer.findings}


def test_a_page_that_says_otherwise_does_not_carry_it(site: Site, web: WebServer) -> None:
    answer = sent(site, f"The gateway exports its metrics on port 9500, see {web.url}/ports", 202)
    assert answer.rule == "refuted"
    (conflict,) = (finding for finding in answer.findings if finding.code == "support_conflict")
    assert "9410" in str(conflict.facts["source_words"])
    assert "“port 9500”" in answer.reason


def test_a_made_up_link_is_caught(site: Site, web: WebServer) -> None:
    answer = sent(site, f"The gateway exports its metrics on port 9410, see {web.url}/metrics-guide", 202)
    assert answer.rule == "refuted"
    (source,) = answer.evidence.sources
    assert isinstance(source, Missing)
    assert source.status == 404


def cite_what_comes_back(site: Site, server: WebServer, owner: str) -> tuple[str, dict[str, Any]]:
    """A claim that cites a page which is out of order when the claim is sent, and says so a moment later; the text
    of the claim, and its item once nobody looks at the page again."""
    server.routes["/back-soon"] = Answer("out of order", 503)
    content = f"Certificates are read again every 12 hours, see {server.url}/back-soon"
    answer = submit(site.agent(owner), claim(content, "ai_synthesis"), 202)
    assert answer.rule == "citation_unknown"
    server.routes["/back-soon"] = Answer(PAGE)
    reviewer = site.reviewer(owner)
    for _ in range(100):
        item: dict[str, Any] = reviewer.get(f"/v1/reviews/{answer.queue_id}").json()
        if item["status"] != "pending" or item["rule"] != answer.rule or item["reason"] != answer.reason:
            break
        time.sleep(0.2)
    return content, item


def test_what_is_unknown_is_asked_again_and_promoted(site: Site, official: WebServer) -> None:
    owner = site.owner()
    content, item = cite_what_comes_back(site, official, owner)
    reviewer = site.reviewer(owner)
    assert item["status"] == "promoted"
    memory = reviewer.get(f"/v1/memories/{item['memory_id']}").json()
    assert memory["content"] == content
    assert memory["approved_by"] is None
    assert site.actions(owner) == ["claim.queued", "claim.promoted"]


def test_a_page_of_nobody_in_particular_that_comes_back_is_for_the_owner(site: Site, web: WebServer) -> None:
    """Whoever wrote the claim may have written the page since."""
    owner = site.owner()
    _, item = cite_what_comes_back(site, web, owner)
    assert item["status"] == "pending"
    assert "may have been written after the claim" in item["reason"]
    assert site.actions(owner) == ["claim.queued"]


def test_what_could_not_be_found_out_waits(site: Site, web: WebServer) -> None:
    answer = sent(site, f"The gateway exports its metrics on port 9410, see {web.url}/private", 202)
    assert (answer.rule, answer.reason) == ("citation_unknown", "Citation could not be checked yet")
    (source,) = answer.evidence.sources
    assert isinstance(source, Unreachable)
    assert source.code == "forbidden"


def test_a_host_that_asks_for_peace_gets_it(site: Site, busy: WebServer) -> None:
    first = sent(site, f"The gateway exports its metrics on port 9410, see {busy.url}/ports", 202)
    (source,) = first.evidence.sources
    assert isinstance(source, Unreachable)
    assert (first.rule, source.code) == ("citation_unknown", "rate_limited")
    assert source.retry_after is not None
    assert 110 < (source.retry_after - first.evidence.capture_time).total_seconds() < 130
    asked = len(busy.asked)
    second = sent(site, f"The gateway restarts at night, see {busy.url}/nights", 202)
    assert second.rule == "citation_unknown"
    assert len(busy.asked) == asked


def test_an_address_that_is_not_safe_is_never_asked(site: Site) -> None:
    answer = sent(site, "The gateway exports its metrics, see http://10.1.2.3/ports", 202)
    (source,) = answer.evidence.sources
    assert isinstance(source, Unreachable)
    assert (answer.rule, source.code) == ("citation_unknown", "refused")
    assert source.detail.startswith("refused: ")


def test_one_good_page_does_not_carry_a_made_up_one(site: Site, web: WebServer) -> None:
    content = f"The gateway exports its metrics on port 9410 ({web.url}/ports, {web.url}/no-such-page)"
    assert sent(site, content, 202).rule == "refuted"


def test_an_issue_is_asked_of_the_forge(site: Site, web: WebServer) -> None:
    answer = sent(site, "The login page loses the session cookie when it redirects (#7)", 201)
    assert answer.evidence.source_id == "issue:acme/shop#7"
    assert sent(site, "The login page loses the session cookie when it redirects (#8)", 202).rule == "refuted"


def test_verify_says_what_each_address_is(web: WebServer, tmp_path: Path) -> None:
    addresses = [
        f"{web.url}/ports",
        f"{web.url}/nothing",
        f"{web.url}/private",
        "http://10.1.2.3/",
        "file:///etc/passwd",
    ]
    done = cli("verify", "--json", *addresses, cwd=tmp_path, env={"VOUCHGATE_CITATION_NETWORKS": web.place})
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["verdict"] for row in rows] == ["exists", "missing", "UNKNOWN", "refused", "refused"]
    assert all(row["reading"]["detail"].startswith("refused: ") for row in rows[3:])
    assert done.returncode == 1
    # Without leave to ask this machine, the same words.
    (row,) = [
        json.loads(line) for line in cli("verify", "--json", addresses[0], cwd=tmp_path).stdout.splitlines()
    ]
    assert row["verdict"] == "refused"
