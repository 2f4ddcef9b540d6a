"""What an agent can learn of the operator's network by citing it: nothing of what was not opened to citations, and of a
page that was, that it is there and whether it speaks of the claim, but no word of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp_types import CallToolResult

from tests.acceptance.site import Site, claim, open_site
from tests.stores.mcp_session import McpSession, over_stdio
from tests.web import Answer, Asked, WebServer, web_server
from vouchgate.ingest.claims.people import Role

PAGE = """<!doctype html><html lang="en"><head><title>Saffron notes</title></head><body><main>
<h1>Ports of the gateway</h1><p>The gateway exports its metrics on port 9410, for the porcupine in the attic.</p>
<p>Certificates are read again every 12 hours. The marmalade is for
<a href="http://hexagonal.example.org/">friends</a>.</p>
</main></body></html>"""
# Words of the pages, of their titles, links, headers and redirects, that no claim has.
SECRETS = ("saffron", "porcupine", "attic", "marmalade", "hexagonal", "friends", "9410", "walrus", "zeppelin")
POLICY = """deadline_seconds = 60
[web]
spacing_seconds = 0
[judge]
enabled = true
"""


def judged(asked: Asked) -> Answer:
    """A judge that quotes what it read."""
    said = {
        "quote": "The gateway exports its metrics on port 9410, for the porcupine in the attic.",
        "contains": "yes" if "Prometheus" not in asked.body.decode() else "partly",
        "attributed": "yes",
    }
    message = {"role": "assistant", "content": json.dumps(said)}
    body = {"id": "c-1", "object": "chat.completion", "created": 1, "model": "m"}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    return Answer(json.dumps(body | {"choices": choices}), headers={"Content-Type": "application/json"})


@pytest.fixture(scope="module")
def admin() -> Iterator[WebServer]:
    """Something of the operator's that no citation may reach, although its network is open to the judge."""
    with web_server({"/": Answer(PAGE), "/ports": Answer(PAGE)}) as opened:
        yield opened


@pytest.fixture(scope="module")
def wiki(admin: WebServer) -> Iterator[WebServer]:
    """The operator's wiki, which citations may reach."""
    to = {
        "/moved": "/walrus-zeppelin",
        "/lost": "/walrus-lost",
        "/login": "/walrus/signin?next=zeppelin",
        "/inside": f"{admin.url}/ports",
    }
    routes: dict[str, Any] = {
        path: Answer(status=302, headers={"Location": there}) for path, there in to.items()
    }
    routes |= {
        "/ports": Answer(PAGE),
        "/walrus-zeppelin": Answer(PAGE),
        "/sent-on": Answer(
            '<!doctype html><html><head><meta http-equiv="refresh" content="0; url=/walrus-lost">'
            "<title>Zeppelin</title></head><body>Saffron</body></html>"
        ),
        "/broken": Answer("porcupine", 500, {"Retry-After": "zeppelin", "Content-Type": "text/walrus"}),
    }
    with web_server(routes) as opened:
        yield opened


@pytest.fixture(scope="module")
def judge() -> Iterator[WebServer]:
    """A model on the operator's own machine."""
    with web_server({"/chat/completions": judged}) as opened:
        yield opened


@pytest.fixture(scope="module")
def site(
    wiki: WebServer, judge: WebServer, migrated_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("private")
    (folder / "policy.toml").write_text(POLICY)
    file = folder / "vouchgate.db"
    file.write_bytes(migrated_file.read_bytes())
    environment = {
        "VOUCHGATE_ALLOW_NETWORKS": "127.0.0.0/8",
        "VOUCHGATE_CITATION_NETWORKS": wiki.place,
        "VOUCHGATE_JUDGE_URL": judge.url,
        "VOUCHGATE_JUDGE_MODEL": "small",
    }
    with open_site(f"sqlite:///{file}", policy=folder / "policy.toml", environment=environment) as opened:
        yield opened


@pytest.fixture(scope="module")
def mcp(site: Site, programs: Path) -> Iterator[McpSession]:
    """A program that asks over MCP, for whichever owner it names."""
    token = site.token(Role.AGENT, any_owner=True)[1]
    with over_stdio(site.running.url, token, programs=programs) as session:
        yield session


def test_the_operator_s_network_is_open_to_the_judge(site: Site, wiki: WebServer, judge: WebServer) -> None:
    content = claims_about(f"{wiki.url}/ports")[0]
    site.agent(site.owner()).post("/v1/claims/check", json=claim(content, "ai_synthesis")).raise_for_status()
    assert judge.asked


def claims_about(url: str) -> list[str]:
    """Claims that a page carries, does not speak of, and contradicts, and one that only points at it."""
    return [
        f"The gateway exports its metrics on a port of its own, see {url}",
        f"The gateway exports its metrics on port 9500, see {url}",
        f"Tomatoes want six hours of sun a day and a deep pot, see {url}",
        f"The gateway exports metrics for Prometheus, see {url}",
        f"See {url}",
    ]


def without_secrets(text: str) -> str:
    # A number by itself: four digits may stand in an id by chance.
    found = [
        secret for secret in SECRETS if re.search(rf"(?<![0-9a-f]){secret}(?![0-9a-f])", text.casefold())
    ]
    assert found == [], text
    return text


def answer(response: httpx.Response) -> dict[str, Any]:
    """What an agent was answered, in which no secret may be."""
    assert response.status_code < 500, response.text
    without_secrets(response.text)
    without_secrets(str(response.headers))
    body: dict[str, Any] = response.json()
    return body


def told(result: CallToolResult) -> None:
    """A program was told something, and no secret."""
    assert not result.is_error, result.content
    without_secrets(str(result))


@pytest.mark.parametrize("path", ["/ports", "/moved", "/lost", "/login", "/sent-on", "/broken", "/nothing"])
def test_no_word_of_a_private_page_reaches_an_agent(
    site: Site, wiki: WebServer, mcp: McpSession, path: str
) -> None:
    owner = site.owner()
    agent = site.caller(site.token(Role.AGENT, owner)[1])
    reviewer, auditor = site.reviewer(owner), site.auditor(owner)
    decisions = []
    for number, content in enumerate(claims_about(f"{wiki.url}{path}")):
        body, key = claim(content, "ai_synthesis"), {"Idempotency-Key": f"k{number}"}
        answer(agent.post("/v1/claims/check", json=body))
        decided = answer(agent.post("/v1/claims", json=body, headers=key))
        decided.pop("promise", None)  # goes out once
        assert answer(agent.post("/v1/claims", json=body, headers=key)) == decided
        assert answer(agent.get(f"/v1/decisions/{decided['decision_id']}")) == decided
        decisions.append(decided)
    batch = [claim(f"{content}, again", "ai_synthesis") for content in claims_about(f"{wiki.url}{path}")]
    for _ in range(2):
        answer(agent.post("/v1/claims/batch", json={"claims": batch}, headers={"Idempotency-Key": "b"}))
    waiting = answer(agent.get("/v1/claims/pending"))["items"]
    stored = answer(agent.get("/v1/memories"))["items"]
    assert len(waiting) + len(stored) > 0
    for item in reviewer.get("/v1/reviews").json()["items"]:
        reviewer.post(f"/v1/reviews/{item['id']}/approve", json={"version": item["version"]})
    for memory in answer(agent.get("/v1/memories"))["items"]:
        answer(agent.get(f"/v1/memories/{memory['id']}"))
        answer(agent.get(f"/v1/memories/{memory['id']}/evidence"))
    for content in claims_about(f"{wiki.url}{path}")[:2]:  # the same answers, at another door
        told(mcp.call("check_claim", {"content": f"{content} at noon", "user_id": owner}))
        told(mcp.call("save_memory", {"content": f"{content} at night", "user_id": owner}))
    told(mcp.call("list_my_pending", {"user_id": owner}))
    found = mcp.result("search_memories", user_id=owner)["memories"]
    assert found
    for memory in found:
        without_secrets(str(mcp.result("get_evidence", memory_id=memory["memory_id"])))
    # Those who answer for the memories see what they are held against.
    for reader in (reviewer, auditor):
        for decided in decisions:
            whole = reader.get(f"/v1/decisions/{decided['decision_id']}").json()
            (source,) = whole["evidence"]["sources"]
            assert source["private"] is True
            if path in ("/ports", "/moved"):
                assert "porcupine" in source["excerpt"]
                assert source["title"] == "Saffron notes"
            if path in ("/moved", "/lost", "/login"):
                assert "walrus" in source["detail"]


def test_what_an_agent_is_told_of_a_private_page(site: Site, wiki: WebServer) -> None:
    owner = site.owner()
    agent = site.agent(owner)
    body = claim(f"The gateway exports its metrics on port 9500, see {wiki.url}/ports", "ai_synthesis")
    decided = answer(agent.post("/v1/claims/check", json=body))
    (source,) = decided["evidence"]["sources"]
    assert (source["kind"], source["status"], source["standing"]) == ("found", 200, "in_force")
    assert source["detail"] == "Text of a private page: shown to reviewers."
    assert (source["title"], source["excerpt"], source["digest"]) == ("", "", "")
    assert decided["rule"] == "refuted"
    assert decided["reason"] == (f"{wiki.url}/ports says something else where the claim says “port 9500”.")


def test_what_is_not_opened_to_citations_is_not_asked(site: Site, wiki: WebServer, admin: WebServer) -> None:
    agent = site.agent(site.owner())
    for url in (f"{admin.url}/ports", f"{wiki.url}/inside", f"{site.running.url}/healthz"):
        decided = answer(agent.post("/v1/claims/check", json=claim(f"It is so, see {url}", "ai_synthesis")))
        (source,) = decided["evidence"]["sources"]
        assert (source["kind"], source["code"], decided["rule"]) == (
            "unreachable",
            "refused",
            "citation_unknown",
        )
    assert admin.asked == []
