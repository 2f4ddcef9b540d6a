"""Every kind of claim, in order, for one owner: tier, rule, status and what is on disk afterwards."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.site import Site, open_site
from tests.repos import TestRepository
from tests.running.service import ALL_SOURCES
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.decision import ValidationResult
from vouchgate.ingest.rules import Rule

ROWS: list[dict[str, Any]] = [
    json.loads(line) for line in (Path(__file__).parent / "examples.jsonl").read_text("utf-8").splitlines()
]
STATUS = {"tier_1": 201, "tier_2": 202, "tier_3": 422}


def adr(title: str, status: str, decision: str = "It is as the title says.") -> str:
    """A record in the form of adr-tools."""
    return f"# {title}\n\nDate: 2025-02-03\n\n## Status\n\n{status}\n\n## Decision\n\n{decision}\n"


CHARTS = """# 15. Charts

## Status

Accepted

## Considered Options

* Gnuplot
* Matplotlib

## Decision Outcome

Chosen option: "Matplotlib", because its charts render without a display. We render charts with it on the server.
"""
RECORDS = {
    "0004-serve-reports-from-read-replicas": adr(
        "4. Read replicas", "Accepted", "Reports are served from read replicas, one in each region."
    ),
    "0005-keep-sessions-in-the-database": adr(
        "5. Sessions in the database", "Superseded by [9. Sign cookies](0009-sign-session-cookies.md)"
    ),
    "0009-sign-session-cookies": adr(
        "9. Sign cookies",
        "Accepted",
        "Session data lives in signed cookies. Cookies are signed with Ed25519.",
    ),
    "0011-plugins-in-lua": adr("11. Plugins in Lua", "Proposed"),
    "0012-one-monorepo": adr("12. One monorepo", "Rejected"),
    "0013-mirror-the-package-index": adr("13. Mirror the index", "Deprecated"),
    "0014-plugins-read-no-secrets": adr("14. Plugins", "Accepted", "Plugins never read a secret."),
    "0015-charts": CHARTS,
    "0021-keep-logs-a-year": adr("21. Logs for a year", "Accepted"),
    "0021-keep-logs-a-month": adr("21. Logs for a month", "Accepted"),
}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A repository with what the examples cite, and the ids that stand for their placeholders."""
    repo = TestRepository(tmp_path_factory.mktemp("repository") / "work")
    records = {f"docs/adrs/{name}.md": text for name, text in RECORDS.items()}
    message = "Repair the flaky import test\n\nThe import test waits for the nightly import.\n"
    commit = repo.commit(message, {**records, "banner.txt": "Welcome\n"})
    gzip = repo.commit("Switch gzip on", {"server.conf": "gzip on;\n"})
    repo.revert(gzip)
    tree = repo.git("rev-parse", "HEAD^{tree}")
    ids = {
        "commit": commit[:12],
        "reverted": gzip[:12],
        "detached": repo.git("commit-tree", tree, "-m", "Prototype"),
        "blob": repo.git("rev-parse", "HEAD:banner.txt")[:12],
    }
    return repo.path, ids


@pytest.fixture(scope="module")
def site(module_database_url: str, repository: tuple[Path, dict[str, str]]) -> Iterator[Site]:
    """A gate that looks citations up in the repository."""
    with open_site(module_database_url, repos=[repository[0]]) as opened:
        yield opened


@pytest.mark.on("sqlite")
def test_every_example_gets_its_tier(site: Site, repository: tuple[Path, dict[str, str]], owner: str) -> None:
    callers = {
        "all": site.agent(owner),
        "no_user": site.agent(owner, sources=ALL_SOURCES - {Source.USER}),
    }
    agent_id = callers["all"].get("/v1/whoami").json()["id"]
    for verdict, terms in (
        ("store", {"agent": agent_id, "template": "desk * of the reading room is oak"}),
        ("reject", {"template": "the lamp over desk * flickered"}),
    ):
        ruling = {"verdict": verdict, "terms": terms, "name": "desks"}
        assert site.reviewer(owner).post("/v1/standing-rulings", json=ruling).status_code == 200
    wrong = []
    for row in ROWS:
        text = json.dumps(
            {name: row[name] for name in ("content", "memory_type", "source", "citations") if name in row}
        )
        for name, value in repository[1].items():
            text = text.replace(f"{{{name}}}", value)
        response = callers[row.get("token", "all")].post(
            "/v1/claims", content=text, headers={"Content-Type": "application/json"}
        )
        status = 409 if row["rule"] == "duplicate" else STATUS[row["tier"]]
        got = (response.status_code, response.json().get("tier"), response.json().get("rule"))
        if got != (status, row["tier"], row["rule"]):
            wrong.append((row["id"], got, response.json().get("reason")))
            continue
        answer = ValidationResult.model_validate_json(response.content)
        assert (answer.memory_id is not None) == (answer.tier == "tier_1")
        assert (answer.queue_id is not None) == (answer.tier == "tier_2")
        assert answer.evidence.claim.content == json.loads(text)["content"]
        assert answer.evidence.claim.asserted_source == row["source"]
    assert wrong == []
    actions = site.actions(owner)
    assert len(actions) == len(ROWS) + 2  # the standing rulings
    assert actions.count("claim.stored") == sum(row["tier"] == "tier_1" for row in ROWS)
    assert actions.count("claim.repeated") == sum(row["rule"] == "already_pending" for row in ROWS)
    assert actions.count("claim.blocked") == sum(row["tier"] == "tier_3" for row in ROWS)


def test_the_examples_cover_every_rule() -> None:
    # An unknown duplicate needs a database that fails in part, and is in test_claims_api.py; no check that is ours
    # lacks a rule of its own, so that nothing is doubted by one; and one rule is of decisions that were made before.
    assert {row["rule"] for row in ROWS} == set(Rule) - {
        "dedup_unknown",
        "doubted",
        "citation_verified",
        "credential",
        "echo",
        "removal",
        "place_change",
    }
    assert {row["source"] for row in ROWS} == set(Source)
