"""Documents over HTTP: checked at once, or kept and checked later, and their verified claims offered to the gate."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.acceptance.site import Site, is_problem, open_site
from tests.repos import TestRepository
from tests.web import Answer, WebServer, web_server
from vouchgate.ingest.claims.people import Role

ADR = """# ADR-007: Deploys stop on Fridays

Status: Accepted

## Decision

Deploys stop on Fridays at noon. Nothing is deployed on a weekend.
"""
PAGE = """<!doctype html><html lang="en"><head><title>Saffron notes</title></head><body><main>
<h1>Ports of the gateway</h1><p>The gateway exports its metrics on port 9410, for the porcupine in the attic.</p>
</main></body></html>"""
REPORT = """# Deploys

Deploys stop on Fridays at noon (ADR-007).

Nothing is deployed on a weekend (ADR-007).

Deploys stop on Fridays at midnight (ADR-007).

Pods restart every night (ADR-999).
"""
GOOD = """Deploys stop on Fridays at noon (ADR-007).

Nothing is deployed on a weekend (ADR-007).
"""
POLICY = """deadline_seconds = 4
[web]
spacing_seconds = 0
[documents]
bytes = 400000
claims = 300
citations = 50
waiting = 3
"""


@pytest.fixture(scope="module")
def wiki() -> Iterator[WebServer]:
    """The operator's wiki, which citations may reach, and a page of it that never answers."""
    with web_server({"/ports": Answer(PAGE), "/hangs": Answer(PAGE, delay=600)}) as opened:
        yield opened


@pytest.fixture(scope="module")
def site(wiki: WebServer, migrated_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """On SQLite alone: what is asked of SQL, the tests of `storage` ask of both."""
    folder = tmp_path_factory.mktemp("documents")
    TestRepository(folder / "repo").commit("Decide", {"docs/adrs/0007-fridays.md": ADR})
    (folder / "policy.toml").write_text(POLICY)
    file = folder / "vouchgate.db"
    file.write_bytes(migrated_file.read_bytes())
    environment = {"VOUCHGATE_CITATION_NETWORKS": wiki.place}
    repos, policy = [folder / "repo"], folder / "policy.toml"
    with open_site(f"sqlite:///{file}", repos=repos, policy=policy, environment=environment) as opened:
        yield opened


@pytest.fixture
def agent(site: Site, owner: str) -> httpx.Client:
    """An agent of the test's own owner."""
    return site.agent(owner)


def check(agent: httpx.Client, content: str, **more: Any) -> dict[str, Any]:
    """The report of a document that is checked at once."""
    answer = agent.post("/v1/documents/check", json={"content": content, **more})
    assert answer.status_code == 200, answer.text
    report: dict[str, Any] = answer.json()
    return report


def verdicts(report: dict[str, Any]) -> list[str]:
    """What the claims of the only document came to."""
    (document,) = report["documents"]
    return [claim["verdict"] for claim in document["claims"]]


def send(agent: httpx.Client, content: str, **more: Any) -> str:
    """Sends a document to be kept; gives its address."""
    answer = agent.post("/v1/documents", json={"content": content, **more})
    assert answer.status_code == 202, answer.text
    assert answer.json()["state"] == "waiting"
    assert answer.headers["location"] == f"/v1/documents/{answer.json()['id']}"
    return str(answer.headers["location"])


def checked(agent: httpx.Client, address: str) -> dict[str, Any]:
    """The document once it was checked."""
    end = time.monotonic() + 60
    while True:
        found = agent.get(address)
        assert found.status_code == 200, found.text
        body: dict[str, Any] = found.json()
        if body["state"] != "waiting":
            return body
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_document_is_checked_at_once_and_nothing_is_kept(
    site: Site, agent: httpx.Client, owner: str
) -> None:
    report = check(agent, REPORT, name="report.md")
    assert verdicts(report) == ["VERIFIED", "VERIFIED", "FALSE", "BROKEN_CITATION"]
    assert (report["format"], report["status"], report["passed"]) == (1, 1, False)
    first = report["documents"][0]["claims"][0]
    assert (first["line"], first["sources"][0]["cited"]) == (3, "ADR-007")
    assert first["sources"][0]["quotation"] == "Deploys stop on Fridays at noon."
    assert check(agent, GOOD)["passed"] is True
    assert site.events(owner) == []
    assert agent.get("/v1/memories").json()["items"] == []


def test_options_and_formats(agent: httpx.Client) -> None:
    assert check(agent, REPORT, fail_on=["unknown"])["passed"] is True
    assert check(agent, "# Nothing", allow_no_claims=True)["passed"] is True
    assert check(agent, "# Nothing")["passed"] is False
    marked = check(agent, f"{GOOD}\nThe sea is green [citation needed].\n", only_marked=True)
    assert verdicts(marked) == ["UNCITED"]
    page = "<h1>Deploys</h1><p>Deploys stop on Fridays at noon (ADR-007).</p>"
    assert verdicts(check(agent, page, format="html", name="x")) == ["VERIFIED"]


def test_links_to_files_are_read_where_the_document_lies_and_not_in_itself(agent: httpx.Client) -> None:
    linked = "Deploys stop on Fridays at noon ([rule](../docs/adrs/0007-fridays.md)).\n"
    assert verdicts(check(agent, linked, name="guide/deploys.md")) == ["VERIFIED"]
    assert verdicts(check(agent, linked, name="/etc/deploys.md")) == ["UNKNOWN"]
    own = "Deploys stop on Fridays at noon ([rule](0007-fridays.md)).\n"
    assert verdicts(check(agent, own, name="docs/adrs/0007-fridays.md")) == ["BROKEN_CITATION"]


def test_a_source_that_hangs_is_unknown_in_time(agent: httpx.Client, wiki: WebServer) -> None:
    before = time.monotonic()
    report = check(agent, f"The gateway exports metrics ({wiki.url}/hangs).\n\n{GOOD}")
    assert time.monotonic() - before < 60  # it would hang for 600
    assert verdicts(report) == ["UNKNOWN", "VERIFIED", "VERIFIED"]
    assert report["status"] == 3


def test_no_word_of_a_private_page_is_told(
    site: Site, agent: httpx.Client, owner: str, wiki: WebServer
) -> None:
    content = (
        f"The gateway exports its metrics on port 9410 ({wiki.url}/ports).\n\n"
        f"The gateway exports its metrics on port 9410 and restarts every night ({wiki.url}/ports).\n\n"
        f"The gateway exports its metrics on port 1234 ({wiki.url}/ports).\n"
    )
    report = check(agent, content)
    assert verdicts(report)[0] == "VERIFIED"
    assert set(verdicts(report)) & {"PARTIAL", "FALSE"}
    assert [claim["missing"] for claim in report["documents"][0]["claims"]] == [[], [], []]
    address = send(agent, content)
    kept = checked(agent, address)
    told = [json.dumps(report), json.dumps(kept)]
    told += [agent.get(f"{address}/report{ending}").text for ending in (".html", ".sarif")]
    for text in told:
        assert "1234" in text  # of the document
        for secret in ("porcupine", "attic", "Saffron"):
            assert secret not in text
    shown = site.reviewer(owner).get(address)
    assert "porcupine" not in shown.text


def test_a_document_is_kept_checked_and_read_in_every_form(
    site: Site, agent: httpx.Client, owner: str
) -> None:
    address = send(agent, REPORT, name="<script>alert(1)</script>.md")
    found = checked(agent, address)
    assert found["state"] == "checked"
    assert verdicts(found["report"]) == ["VERIFIED", "VERIFIED", "FALSE", "BROKEN_CITATION"]
    page = agent.get(f"{address}/report.html")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert "<script>alert" not in page.text
    assert "&lt;script&gt;alert(1)" in page.text
    sarif = agent.get(f"{address}/report.sarif")
    assert sarif.headers["content-type"] == "application/sarif+json"
    assert [each["ruleId"] for each in sarif.json()["runs"][0]["results"]] == ["FALSE", "BROKEN_CITATION"]
    for caller in (site.reviewer(owner), site.auditor(owner)):
        assert caller.get(address).json() == found


def test_nobody_else_can_tell_that_it_is_there(site: Site, agent: httpx.Client, owner: str) -> None:
    address = send(agent, GOOD)
    stranger = site.owner()
    others = [site.agent(owner), site.agent(stranger), site.reviewer(stranger), site.auditor(stranger)]
    for path in (address, f"{address}/report.html", f"{address}/report.sarif"):
        for other in others:
            is_problem(other.get(path), 404, "not_found")
    for other in others[:2]:
        is_problem(other.post(f"{address}/claims", json={}), 404, "not_found")
    is_problem(
        agent.post("/v1/documents", json={"content": GOOD, "user_id": stranger}), 403, "owner_not_allowed"
    )
    is_problem(agent.post("/v1/documents/check", json={"content": GOOD, "user_id": stranger}), 403)


def test_documents_are_listed_for_whoever_may_read_them_newest_first(
    site: Site, agent: httpx.Client, owner: str
) -> None:
    addresses = [send(agent, f"{GOOD}\nThis is number {number}.\n") for number in range(2)]
    other = site.agent(owner)
    theirs = send(other, GOOD)

    def listed(caller: httpx.Client, query: str = "") -> tuple[list[str], str | None]:
        answer = caller.get(f"/v1/documents{query}")
        assert answer.status_code == 200, answer.text
        page = answer.json()
        assert all("report" not in each for each in page["items"])
        return [f"/v1/documents/{each['id']}" for each in page["items"]], page["next"]

    first, cursor = listed(agent, "?limit=1")
    assert first == [addresses[1]]
    assert listed(agent, f"?limit=2&after={cursor}") == ([addresses[0]], None)
    assert listed(other) == ([theirs], None)
    for caller in (site.reviewer(owner), site.auditor(owner)):
        assert listed(caller) == ([theirs, *reversed(addresses)], None)
    stranger = site.owner()
    assert listed(site.agent(stranger)) == listed(site.reviewer(stranger)) == ([], None)
    is_problem(agent.get(f"/v1/documents?user_id={stranger}"), 403, "owner_not_allowed")
    is_problem(agent.get("/v1/documents?after=doc_1"), 422, "invalid_request")


def test_a_deleted_document_is_gone_with_its_report_and_that_is_in_the_log(
    site: Site, agent: httpx.Client, owner: str
) -> None:
    address, waiting = send(agent, REPORT), send(agent, GOOD)
    checked(agent, address)
    stranger = site.owner()
    for other in (site.agent(owner), site.agent(stranger), site.reviewer(stranger)):
        is_problem(other.delete(address), 404, "not_found")
    for caller in (site.auditor(owner), site.caller(site.token(Role.ADMIN, owner)[1])):
        is_problem(caller.delete(address), 403, "role_not_allowed")
    assert agent.get(address).json()["state"] == "checked"
    assert agent.delete(address).json() == {"deleted": address.rpartition("/")[2]}
    for path in (address, f"{address}/report.html", f"{address}/report.sarif"):
        is_problem(agent.get(path), 404, "not_found")
    is_problem(agent.post(f"{address}/claims", json={}), 404, "not_found")
    is_problem(agent.delete(address), 404, "not_found")
    assert site.reviewer(owner).delete(waiting).status_code == 200
    assert agent.get("/v1/documents").json()["items"] == []
    assert site.actions(owner) == ["document.deleted", "document.deleted"]


def test_too_many_that_wait_are_refused_and_those_before_are_not_lost(
    agent: httpx.Client, wiki: WebServer
) -> None:
    slow = f"The gateway exports metrics ({wiki.url}/hangs).\n"
    addresses = [send(agent, slow) for _ in range(3)]
    refused = agent.post("/v1/documents", json={"content": GOOD})
    assert is_problem(refused, 429, "too_many_documents_waiting")["detail"]
    assert int(refused.headers["retry-after"]) > 0
    is_problem(agent.get(f"{addresses[0]}/report.html"), 409, "not_checked_yet")
    is_problem(agent.post(f"{addresses[0]}/claims", json={}), 409, "not_checked_yet")
    assert [agent.get(address).json()["state"] for address in addresses] == ["waiting"] * 3


def test_a_slow_document_keeps_nobody_waiting(site: Site, agent: httpx.Client, wiki: WebServer) -> None:
    for sender in (
        agent,
        *(site.agent(site.owner()) for _ in range(9)),
    ):  # each has its place until it is given up
        send(sender, f"The gateway exports metrics ({wiki.url}/hangs).\n")
    other = site.agent(site.owner())
    assert checked(other, send(other, GOOD))["report"]["passed"] is True


def test_the_same_key_is_the_same_document(agent: httpx.Client) -> None:
    def posted(content: str) -> httpx.Response:
        return agent.post("/v1/documents", json={"content": content}, headers={"Idempotency-Key": "once"})

    first, again = posted(GOOD), posted(GOOD)
    assert first.json()["id"] == again.json()["id"]
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    is_problem(posted(REPORT), 409, "idempotency_key_reused")


def test_verified_claims_go_through_the_gate_like_any_other(
    site: Site, agent: httpx.Client, owner: str
) -> None:
    address = send(agent, REPORT)
    claims = checked(agent, address)["report"]["documents"][0]["claims"]
    verified = [claim["fingerprint"] for claim in claims if claim["verdict"] == "VERIFIED"]
    wrong = next(claim["fingerprint"] for claim in claims if claim["verdict"] == "FALSE")
    is_problem(agent.post(f"{address}/claims", json={"fingerprints": [wrong]}), 422, "not_verified")
    one = agent.post(f"{address}/claims", json={"fingerprints": verified[1:]}).json()
    assert one["fingerprints"] == verified[1:]
    (stored,) = one["results"]
    assert (stored["outcome"], stored["rule"]) == ("stored", "stated")
    claim = stored["evidence"]["claim"]
    assert (claim["source"], claim["owner_id"]) == ("ai_synthesis", owner)
    assert claim["citations"][0]["value"] == "ADR-007"
    assert claim["citations"][0]["quote"] == "Nothing is deployed on a weekend."
    both = agent.post(f"{address}/claims", json={}).json()
    assert [(each["outcome"], each["rule"]) for each in both["results"]] == [
        ("stored", "stated"),
        ("blocked", "duplicate"),
    ]
    assert site.actions(owner) == ["claim.stored", "claim.stored", "claim.blocked"]


def test_a_lead_in_goes_with_the_claim_that_rests_on_it(agent: httpx.Client) -> None:
    address = send(agent, "Deploys stop on:\n\n- Fridays at noon (ADR-007)\n")
    claims = checked(agent, address)["report"]["documents"][0]["claims"]
    verified = [claim["fingerprint"] for claim in claims if claim["verdict"] == "VERIFIED"]
    offered = agent.post(f"{address}/claims", json={}).json()
    assert offered["fingerprints"] == verified
    assert (
        offered["results"][-1]["evidence"]["claim"]["content"] == "Deploys stop on: Fridays at noon (ADR-007)"
    )


def test_a_credential_in_a_document_is_kept_nowhere(site: Site, agent: httpx.Client, owner: str) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"  # in parts, so that no scanner flags it
    content = f"The deploy key is {secret} (ADR-007).\n"
    assert secret not in json.dumps(check(agent, content))
    address = send(agent, content)
    checked(agent, address)
    assert secret not in agent.get(f"{address}/report.html").text


HOSTILE: list[tuple[str, bytes, int, str]] = [
    ("6 MB", b'{"content":"' + b"a" * 6_000_000 + b'"}', 413, "body_too_large"),
    ("over the policy", b'{"content":"' + b"a" * 400_001 + b'"}', 413, "document_too_large"),
    ("nested JSON", b'{"content":' + b"[" * 100_000, 400, "malformed_json"),
    ("NUL", b'{"content":"a\\u0000b"}', 422, "invalid_request"),
    ("NUL in the name", b'{"content":"a","name":"a\\u0000b"}', 422, "invalid_request"),
    ("a lone surrogate", b'{"content":"a\\ud800b"}', 400, "malformed_json"),
    ("empty", b'{"content":" \\n"}', 422, "document_unreadable"),
    ("an unknown field", b'{"content":"a","url":"x"}', 422, "invalid_request"),
    ("an unknown kind", b'{"content":"a","fail_on":["all"]}', 422, "invalid_request"),
    ("no kind, so that all would pass", b'{"content":"a","fail_on":[]}', 422, "invalid_request"),
    (
        "10,000 links",
        json.dumps(
            {"content": " ".join(f"https://x.example/{n}" for n in range(10_000)) + " is so."}
        ).encode(),
        422,
        "too_many_citations",
    ),
    (
        "many claims",
        json.dumps({"content": "\n\n".join(["The sea is green."] * 400)}).encode(),
        422,
        "too_many_claims",
    ),
]


@pytest.mark.parametrize(
    ("body", "status", "code"), [row[1:] for row in HOSTILE], ids=[row[0] for row in HOSTILE]
)
@pytest.mark.parametrize("path", ["/v1/documents/check", "/v1/documents"])
def test_what_cannot_be_checked_whole_is_refused(
    agent: httpx.Client, path: str, body: bytes, status: int, code: str
) -> None:
    answer = agent.post(path, content=body, headers={"Content-Type": "application/json"})
    is_problem(answer, status, code)


def test_nested_markdown_and_long_lines_are_read(agent: httpx.Client) -> None:
    for content in (">" * 5_000 + " a", "[" * 50_000, "a " * 90_000, "- " * 3_000 + "The sea is green."):
        assert check(agent, content)["passed"] is False


def test_only_agents_send_documents(site: Site, owner: str) -> None:
    for role in set(Role) - {Role.AGENT}:
        caller = site.caller(site.token(role, owner)[1])
        is_problem(caller.post("/v1/documents/check", json={"content": GOOD}), 403, "role_not_allowed")
