"""Claims that cite nothing, from the agent to the owner's page: what the repository's documents state is stored, what
they speak of is shown."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.acceptance.site import Site, claim, open_site
from tests.repos import TestRepository
from tests.visiting import Browser, is_page
from vouchgate.ingest.claims.people import Role

pytestmark = pytest.mark.on("sqlite")

GLACIER = "Photos of glaciers are archived in Tromso for 30 years."
RECORD = f"# 2. Archive of photos\n\n## Status\n\nAccepted\n\n## Decision\n\n{GLACIER}\n"
LENSES = "The workshop grinds 14 lenses per week."


@pytest.fixture(scope="module")
def site(module_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A gate with a record in force, and a page of notes that is not official."""
    repository = TestRepository(tmp_path_factory.mktemp("grounding") / "project")
    repository.commit(
        "Start", {"docs/adr/0002-archive.md": RECORD, "docs/notes.md": f"# Notes\n\n{LENSES}\n"}
    )
    with open_site(module_database_url, repos=[repository.path]) as opened:
        yield opened


def test_what_a_record_states_is_stored_and_its_evidence_names_it(site: Site) -> None:
    agent = site.agent(site.owner())
    sent = agent.post("/v1/claims", json=claim(GLACIER, "ai_synthesis"))
    assert (sent.status_code, sent.json()["rule"]) == (201, "corroborated")
    evidence = agent.get(f"/v1/memories/{sent.json()['memory_id']}/evidence").json()
    assert evidence["label"] == "FACT" and evidence["sources"][0]["citation"]["harvested"]
    assert agent.post("/v1/claims", json=claim(GLACIER, "ai_synthesis")).json()["rule"] == "duplicate"


def test_nobody_can_send_a_citation_as_the_gates_own(site: Site) -> None:
    body = claim(LENSES, "ai_synthesis") | {"citations": [{"value": "docs/notes.md", "harvested": True}]}
    assert site.agent(site.owner()).post("/v1/claims", json=body).status_code == 422


def test_what_a_document_only_speaks_of_waits_and_is_shown_to_its_owner(site: Site) -> None:
    owner = site.owner()
    sent = site.agent(owner).post("/v1/claims", json=claim(LENSES, "ai_synthesis")).json()
    assert (sent["rule"], sent["suggested"][0]["citation"]) == ("ungrounded", "docs/notes.md")
    item = site.reviewer(owner).get(f"/v1/reviews/{sent['queue_id']}").json()
    assert item["suggested"] == sent["suggested"]
    (gap,) = site.reviewer(owner).get("/v1/gaps").json()["items"]
    assert (gap["queue_id"], gap["content"]) == (sent["queue_id"], LENSES)
    assert gap["looked"] == sent["looked"] == item["looked"]
    assert [(each["path"], each["found"]) for each in gap["looked"]] == [("repository", 1)]
    with httpx.Client(base_url=site.running.url, trust_env=False, follow_redirects=True) as client:
        browser = Browser(client)
        browser.sign_in(site.token(Role.REVIEWER, owner)[1])
        page = client.get(f"/review/items/{sent['queue_id']}")
        is_page(page, 200)
    assert "In the repositories, for" in page.text and "may state it" in page.text and LENSES in page.text
