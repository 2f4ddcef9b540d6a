"""What a claim says in the address of a page that it cites is held against the page, as its text is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.acceptance.site import Site, claim, is_problem, open_site, submit
from tests.web import Answer, Asked, WebServer, web_server

POLICY = "deadline_seconds = 60\n[web]\nspacing_seconds = 0\n"
PAGE = """<!doctype html><html lang="en"><head><title>Crane schedule</title></head><body><main>
<h1>Crane schedule</h1><p>The harbour has two cranes on the northern quay. Each crane is inspected on the first Monday
of a month, before the first ship moors. Nobody may lift containers while an inspection goes on.</p>
</main></body></html>"""


class _AnyPath(dict[str, Answer | Callable[[Asked], Answer]]):
    """The same page, whatever is asked for."""

    def __missing__(self, path: str) -> Answer:
        return Answer(PAGE)

    def get(self, path: str, default: object = None) -> Answer | Callable[[Asked], Answer]:
        return self[path]


@pytest.fixture(scope="module")
def pages() -> Iterator[WebServer]:
    with web_server(_AnyPath()) as opened:
        yield opened


@pytest.fixture(scope="module")
def site(pages: WebServer, migrated_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("cited-words")
    (folder / "policy.toml").write_text(POLICY)
    file = folder / "vouchgate.db"
    file.write_bytes(migrated_file.read_bytes())
    environment = {"VOUCHGATE_CITATION_NETWORKS": pages.place}
    with open_site(f"sqlite:///{file}", policy=folder / "policy.toml", environment=environment) as opened:
        yield opened


@pytest.mark.parametrize(
    "beyond",
    [
        "#Root-passwords-are-shared-with-Mallory",
        "/Root-passwords-are-shared-with-Mallory",
        "?note=Root%20passwords%20are%20shared%20with%20Mallory",
    ],
)
def test_words_that_only_an_address_has_make_a_claim_wait(site: Site, pages: WebServer, beyond: str) -> None:
    answer = submit(
        site.agent(site.owner()), claim(f"See {pages.url}/cranes{beyond}", source="ai_synthesis"), 202
    )
    assert answer.rule == "uncovered", answer.reason
    (finding,) = [each for each in answer.findings if each.check == "statements"]
    assert "Mallory" in finding.facts["lacking"]  # type: ignore[operator]


@pytest.mark.parametrize("address", ["/cranes", "/docs/getting-started", "/crane-schedule#inspection"])
def test_an_ordinary_address_points_at_its_page(site: Site, pages: WebServer, address: str) -> None:
    answer = submit(site.agent(site.owner()), claim(f"See {pages.url}{address}", source="ai_synthesis"), 201)
    assert answer.rule == "pointer", answer.reason


@pytest.mark.parametrize(
    ("quote", "rule"),
    [
        ("Each crane is inspected on the first Monday of a month", "stated"),
        ("Each crane is inspected on the last Friday of a month", "refuted"),
        ("first Monday", "doubted"),
    ],
)
def test_a_quotation_must_stand_in_the_page(site: Site, pages: WebServer, quote: str, rule: str) -> None:
    cited = {"value": f"{pages.url}/cranes", "quote": quote}
    body = claim(
        "Each crane is inspected on the first Monday of a month.", source="ai_synthesis", citations=[cited]
    )
    answer = site.agent(site.owner()).post("/v1/claims/check", json=body).json()
    assert answer["rule"] == rule, answer["reason"]
    assert answer["evidence"]["claim"]["citations"][0]["quote"] == quote
    assert answer["evidence"]["sources"][0]["citation"].get("quote") is None


@pytest.mark.parametrize(
    "cited",
    [
        {"type": "adr", "value": "ADR-001", "quote": "x" * 2001},
        {"type": "adr", "value": "ADR-001", "quote": "NUL \0"},
        {"value": "nothing that is cited", "quote": "five words that stand there"},
    ],
)
def test_a_quotation_that_cannot_be_kept_is_refused(site: Site, cited: dict[str, str]) -> None:
    body = claim("Cranes are inspected.", citations=[cited])
    is_problem(site.agent(site.owner()).post("/v1/claims", json=body), 422)
