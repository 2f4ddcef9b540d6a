"""A search for evidence from its first look to its proof: a search engine over HTTP, pages of several hosts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.engines import ENGINE, JSON, Web, page, web
from tests.web import Answer
from vouchgate.gate.examiner import Examiner
from vouchgate.harvest.budget import Purse
from vouchgate.harvest.endpoints import Endpoint, EndpointPath
from vouchgate.harvest.network import NetworkSearch
from vouchgate.harvest.paths import Look, SearchPath
from vouchgate.harvest.search import Pages, Searched, World, harvest, search
from vouchgate.ingest.check import NOTHING_NEAR
from vouchgate.ingest.claims.citation import Citation, CitationType
from vouchgate.ingest.claims.claim import Claim, MemoryType, Source
from vouchgate.ingest.claims.decision import Label, Tier
from vouchgate.ingest.claims.source import Missing, SourceReading, Stance
from vouchgate.ingest.corroboration.decision import conclude
from vouchgate.ingest.corroboration.history import AgentResult, Attempt, Outcome, SearchTask
from vouchgate.ingest.corroboration.hits import Reading
from vouchgate.ingest.corroboration.queries import queries_of
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.net.client import Outbound
from vouchgate.ingest.policy import SearchBudget
from vouchgate.ingest.rules import Rule
from vouchgate.ingest.sources.git.source import GitSource
from vouchgate.ingest.sources.web.extractor import Extractor
from vouchgate.ingest.sources.web.source import WebSource
from vouchgate.sources.reader import Sources

POLICY = load_policy()
NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
CLAIM = "The archive in Lund holds 40 million pages."
TASK = SearchTask(claim=CLAIM)
STATED = (
    "Visitors learn that the archive in Lund holds 40 million pages, most of them letters.",
    "Since its last extension the archive in Lund holds 40 million pages.",
)
PLENTY = SearchBudget(looks=8, pages=12, seconds=120)
SEARX = Endpoint(
    kind="web_search",
    name="searx",
    address=f"http://{ENGINE}/search?q={{query}}&format=json",
    results="results",
    errors="unresponsive_engines",
    url="url",
    most=10,
)


@pytest.fixture(scope="module")
def extractor() -> Iterator[Extractor]:
    made = Extractor(workers=1)
    yield made
    made.close()


@pytest.fixture
def net() -> Iterator[Web]:
    with web() as made:
        yield made


class Searcher:
    """Searches along the paths that it is given, and reads pages with the reader of cited ones."""

    def __init__(self, extractor: Extractor) -> None:
        self._extractor = extractor

    def run(
        self, client: Outbound, *paths: SearchPath, budget: SearchBudget = PLENTY, above: Purse | None = None
    ) -> tuple[Searched, AgentResult]:
        """What was searched, and what it comes to."""
        reader = WebSource(client, self._extractor, lambda: NOW)

        async def read(address: str) -> Any:
            return await reader.read(Citation(type=CitationType.URL, value=address, key=f"url:{address}"))

        world = World({path.name: path for path in paths}, read, lambda: NOW)
        searched = asyncio.run(search(TASK, world, Purse(budget, "claim", above), POLICY))
        return searched, conclude(TASK, searched.history, POLICY)

    def on(self, net: Web, **options: Any) -> tuple[Searched, AgentResult]:
        """The same along the search engine, with whatever it finds."""
        client = net.client()
        return self.run(client, EndpointPath(client, SEARX, {}, clock=lambda: NOW), **options)


@pytest.fixture
def searcher(extractor: Extractor) -> Searcher:
    return Searcher(extractor)


class Shelf:
    """A path with these texts for any query."""

    def __init__(
        self, name: str, *texts: str, official: bool = False, wrong: Exception | None = None
    ) -> None:
        self.name = name
        self.queries: list[str] = []
        self._wrong = wrong
        self._readings = tuple(
            Reading(text=text, url=f"https://{name}{number}.example/", official=official, verified=True)
            for number, text in enumerate(texts)
        )

    async def look(self, query: str, seconds: float) -> Look:
        self.queries.append(query)
        if self._wrong is not None:
            raise self._wrong
        return Look(self._readings)


def test_the_next_path_is_asked_only_when_the_last_was_not_enough(searcher: Searcher, net: Web) -> None:
    empty, enough, never = Shelf("empty"), Shelf("enough", *STATED, official=True), Shelf("never", STATED[0])
    searched, result = searcher.run(net.client(), empty, enough, never)
    query = queries_of(CLAIM)[0]
    assert (empty.queries, enough.queries, never.queries) == ([query], [query], [])
    assert searched.history.attempts == (
        Attempt(path="empty", query=query, found=0),
        Attempt(path="enough", query=query, found=2),
    )
    assert (result.outcome, result.label) == (Outcome.TRUE, Label.FACT)
    assert "## Gaps" in result.proof


def test_what_goes_wrong_with_a_path_is_a_row_and_the_next_is_tried(searcher: Searcher, net: Web) -> None:
    broken = Shelf("broken", wrong=OSError("a secret"))
    searched, result = searcher.run(net.client(), broken, Shelf("good", *STATED, official=True))
    assert [(one.path, one.why) for one in searched.history.failures] == [("broken", "an unexpected OSError")]
    assert [one.path for one in searched.history.attempts] == ["good"]
    assert result.outcome is Outcome.TRUE
    assert "could not be looked for: an unexpected OSError" in result.proof and "a secret" not in result.proof


def test_a_path_that_answers_in_no_form_is_a_row(searcher: Searcher, net: Web) -> None:
    class Odd(Shelf):
        async def look(self, query: str, seconds: float) -> Any:
            return None

    searched, _ = searcher.run(net.client(), Odd("odd"))
    assert {one.why for one in searched.history.failures} == {"it answered in no form that is known"}


def test_pages_of_two_listed_publishers_make_a_fact_and_say_when_they_were_read(
    searcher: Searcher, net: Web
) -> None:
    for address, text in zip(("http://www.bbc.com/a", "http://www.reuters.com/b"), STATED, strict=True):
        net.pages[address] = page(text)
        net.found.append(address)
    searched, result = searcher.on(net)
    assert [(hit.stance, hit.verified, hit.read_at) for hit in searched.history.hits] == [
        (Stance.STATES, True, NOW),
        (Stance.STATES, True, NOW),
    ]
    assert (result.label, len(result.sources)) == (Label.FACT, 2)
    assert result.proof.count("read 2026-05-04") == 2
    read = [one for one in net.server.paths() if one.startswith("GET") and "/search" not in one]
    assert sorted(read) == ["GET /a", "GET /b"]  # once each, though every query found them


def test_one_look_by_itself(net: Web) -> None:
    net.found = ["http://www.bbc.com/a", "http://gone.example/"]
    asked: list[str] = []

    async def read(address: str) -> SourceReading:
        asked.append(address)
        citation = Citation(type=CitationType.URL, value=address, key=f"url:{address}")
        return Missing(citation=citation, detail=f"{address} does not exist.")

    path = EndpointPath(net.client(), SEARX, {})
    pages: Pages = {}
    world = World({path.name: path}, read, lambda: NOW)

    async def twice() -> list[Look | None]:
        purse = Purse(SearchBudget(looks=2, pages=9, seconds=90), "claim")
        return [await harvest(path.name, "Lund", world, purse, pages) for _ in range(3)]

    failed = Look(failures=tuple(f"{address} does not exist" for address in net.found))
    assert asyncio.run(twice()) == [failed, failed, None]
    assert asked == net.found == list(pages)  # once each; the third look found the purse empty


def test_a_snippet_is_no_evidence(searcher: Searcher, net: Web) -> None:
    net.snippet = CLAIM
    for address in ("http://www.bbc.com/a", "http://www.reuters.com/b"):
        net.pages[address] = page("The town council met on Tuesday to speak of bicycles and of bread.")
        net.found.append(address)
    searched, result = searcher.on(net)
    assert {hit.stance for hit in searched.history.hits} == {Stance.SILENT}
    assert (result.label, result.evidence) == (Label.INFERENCE, ())


@pytest.mark.parametrize("mirrored", [False, True], ids=["two sock puppets", "a mirror under ten domains"])
def test_many_sites_of_one_mind_make_no_fact(searcher: Searcher, net: Web, mirrored: bool) -> None:
    texts = [STATED[0]] * 10 if mirrored else list(STATED)
    for number, text in enumerate(texts):
        net.found.append(f"http://{'mirror' if mirrored else 'puppet'}{number}.example/p")
        net.pages[net.found[-1]] = page(text)
    searched, result = searcher.on(net)
    assert [hit.stance for hit in searched.history.hits] == [Stance.STATES] * len(texts)
    assert (result.label, result.outcome) == (Label.INFERENCE, Outcome.INVALID)
    assert result.debug["supporting_voices"] == (1 if mirrored else 2)


def test_a_page_that_links_to_the_other_is_one_voice_with_it(searcher: Searcher, net: Web) -> None:
    link = '<p>It was first told by <a href="http://www.reuters.com/b">a colleague</a> of ours in spring.</p>'
    html = f"<html><body><main><h1>Lund</h1><p>{STATED[0]}</p>{link}</main></body></html>"
    net.pages = {"http://www.bbc.com/a": Answer(html), "http://www.reuters.com/b": page(STATED[1])}
    net.found = list(net.pages)
    searched, result = searcher.on(net)
    assert [hit.stance for hit in searched.history.hits] == [Stance.STATES, Stance.STATES]
    assert (result.debug["supporting_voices"], result.label) == (1, Label.INFERENCE)


def results(*found: Any) -> Answer:
    return Answer(json.dumps({"results": list(found)}), headers=JSON)


def echoing(net: Web) -> None:
    """A page of a listed publisher that says whatever it is asked."""
    query = queries_of(CLAIM)[0]
    address = "http://www.bbc.com/find?q=" + query.replace(" ", "+")
    net.pages[address] = page(f"No pages for {CLAIM}")
    net.engine = results({"url": address}, {"url": f"http://{ENGINE}/about"})


def lying(*addresses: str) -> Callable[[Web], None]:
    def lie(net: Web) -> None:
        net.engine = results(*({"url": address, "content": CLAIM} for address in addresses))

    return lie


def answering(body: str, status: int = 200, **headers: str) -> Callable[[Web], None]:
    def answer(net: Web) -> None:
        net.engine = Answer(body, status, headers or JSON)

    return answer


@pytest.mark.parametrize(
    ("play", "why"),
    [
        (answering(f"<html>{CLAIM}</html>"), "something other than JSON"),
        (answering("[" * 100_000), "something other than JSON"),
        (answering(json.dumps({"answer": CLAIM})), "no list at results"),
        (
            answering(json.dumps({"results": [], "unresponsive_engines": [["x", "timeout"]]})),
            "everywhere: [[",
        ),
        (answering("x" * 1_000_001), "longer answer than is read"),
        (answering("{}", 500), "HTTP status 500"),
        (answering("{}", 302, Location="http://www.bbc.com/"), "HTTP status 302"),
        (answering("{}", 402), "HTTP status 402"),
        (answering("{}", 429), "fewer requests"),
        (lying(*(f"http://h{number}.example/" for number in range(10_000))), "10,000 results"),
        (lying("javascript:alert(1)"), "only http and https"),
        (lying("http://user@www.bbc.com/"), "an @ before its path"),
        (lying("http://10.0.0.5/admin"), "10.0.0.5 is a private address"),
        (lying("http://inside.example/"), "inside.example resolves to 192.168.1.1"),
        (lying("http://gone.example/"), "gone.example"),
        (echoing, "asks the same question"),
        (echoing, "of the search engine itself"),
    ],
)
def test_an_engine_that_fails_or_lies_is_a_row_and_makes_no_fact(
    searcher: Searcher, net: Web, play: Callable[[Web], None], why: str
) -> None:
    play(net)
    client = net.client({"inside.example": ["192.168.1.1"], "www.bbc.com": ["93.184.216.34"]})
    searched, result = searcher.run(client, EndpointPath(client, SEARX, {}, clock=lambda: NOW))
    assert any(why in one.why for one in searched.history.failures), searched.history.failures
    assert (searched.history.hits, searched.history.attempts) == ((), ())
    assert (result.label, result.outcome) == (Label.INFERENCE, Outcome.INVALID)
    assert "could not be looked for" in result.proof


def test_an_engine_that_hangs_costs_the_seconds_of_the_claim_and_no_more(
    searcher: Searcher, net: Web
) -> None:
    net.engine = Answer("{}", delay=30)
    searched, _ = searcher.on(net, budget=SearchBudget(looks=8, pages=1, seconds=0.5))
    first, *_, last = searched.history.failures
    assert "within 0.5 s" in first.why
    assert last.why == "the budget of the claim is spent (0.5 s)"
    assert len(net.queries) == 1


def test_after_a_refusal_an_engine_is_left_alone(searcher: Searcher, net: Web) -> None:
    net.engine = Answer("{}", 429, JSON)
    searched, _ = searcher.on(net)
    assert len(net.queries) == 1 < len(searched.history.failures)
    assert searched.history.failures[-1].why.startswith("it wants no requests for another")


def test_a_spent_budget_is_a_row_that_says_whose(searcher: Searcher, net: Web) -> None:
    shelves = [Shelf(f"s{number}") for number in range(4)]
    searched, _ = searcher.run(net.client(), *shelves, budget=SearchBudget(looks=2, pages=9, seconds=90))
    assert len(searched.history.attempts) == 2
    assert [one.why for one in searched.history.failures] == ["the budget of the claim is spent (2 looks)"]

    owner = Purse(SearchBudget(looks=3, pages=9, seconds=90), "owner")
    searcher.run(net.client(), *shelves[:2], budget=SearchBudget(looks=2, pages=9, seconds=90), above=owner)
    searched, _ = searcher.run(net.client(), *shelves, above=owner)
    assert [one.why for one in searched.history.failures] == ["the budget of the owner is spent (3 looks)"]


def test_pages_are_counted_one_by_one(searcher: Searcher, net: Web) -> None:
    for number in range(4):
        net.found.append(f"http://site{number}.example/p")
        net.pages[net.found[-1]] = page(f"Page {number} is about bicycles.")
    searched, _ = searcher.on(net, budget=SearchBudget(looks=1, pages=3, seconds=90))
    assert len(searched.readings) == 3
    assert searched.history.failures[0].why == "the budget of pages is spent: 1 that were named were not read"


OFFICIAL = Endpoint(
    kind="official_api",
    name="statistics",
    address="http://api.statistics.example/find/{words}",
    token="STATISTICS_TOKEN",
    header="X-Key",
    scheme="",
    results="data.records",
    url="page",
    title="name",
    text="note",
    date="published",
    domain="statistics.example",
    official=True,
)


def records(net: Web, *found: dict[str, str]) -> str:
    address = "http://api.statistics.example/find/" + queries_of(CLAIM)[0].replace(" ", "+")
    net.pages[address] = Answer(json.dumps({"data": {"records": found}}), headers=JSON)
    return address


def on_official(searcher: Searcher, net: Web) -> tuple[Searched, AgentResult]:
    client = net.client()
    path = EndpointPath(client, OFFICIAL, {"STATISTICS_TOKEN": "s3cret"}, clock=lambda: NOW)
    return searcher.run(client, path, budget=SearchBudget(looks=1, pages=0, seconds=90))


def test_a_record_of_an_official_interface_makes_a_fact_alone(searcher: Searcher, net: Web) -> None:
    record = {"page": "https://www.statistics.example/r/1", "name": "Archives", "note": STATED[1]}
    records(net, record | {"published": "2025-03-01"})
    searched, result = on_official(searcher, net)
    (hit,) = searched.history.hits
    assert (hit.official, hit.published, hit.site) == (
        True,
        datetime(2025, 3, 1, tzinfo=UTC),
        "statistics.example",
    )
    assert result.label is Label.FACT and result.evidence == (hit.id,)
    assert net.server.asked[0].headers["x-key"] == "s3cret"


@pytest.mark.parametrize(
    "record",
    [
        {"page": "https://www.bbc.com/r/1", "note": STATED[1]},
        {"page": "https://statistics.example.evil.example/r/1", "note": STATED[1]},
        {"page": "javascript:alert(1)", "note": STATED[1]},
        {"note": STATED[1]},
        {"page": "https://statistics.example/r/1"},
        {"page": "https://statistics.example/r/1", "note": queries_of(CLAIM)[0]},
    ],
    ids=["another publisher", "a name like it", "no address of the web", "no address", "no text", "an echo"],
)
def test_a_record_that_is_not_the_publishers_is_a_row(
    searcher: Searcher, net: Web, record: dict[str, str]
) -> None:
    records(net, record)
    searched, result = on_official(searcher, net)
    assert searched.history.hits == () and result.label is Label.INFERENCE
    assert "its result 1 is not read" in searched.history.failures[0].why


@pytest.mark.parametrize(
    ("official", "rule", "tier"),
    [(["one.example"], Rule.CORROBORATED, Tier.STORED), ([], Rule.UNGROUNDED, Tier.QUEUED)],
    ids=["official", "anybody's"],
)
def test_a_claim_is_looked_up_on_the_network_where_the_policy_says_so(
    extractor: Extractor, net: Web, official: list[str], rule: Rule, tier: Tier
) -> None:
    net.pages = {"http://one.example/a": page(STATED[0]), "http://two.example/b": page(STATED[1])}
    net.found = [*net.pages]
    client = net.client()
    policy = POLICY.model_copy(update={"harvest": "network", "official_domains": tuple(official)})
    reader = WebSource(client, extractor, lambda: NOW)
    endpoint = EndpointPath(client, SEARX, {}, clock=lambda: NOW)

    async def read(address: str) -> Any:
        return await reader.read(Citation(type=CitationType.URL, value=address, key=f"url:{address}"))

    world = World({endpoint.name: endpoint}, read, lambda: NOW)
    claim = Claim(
        content=CLAIM,
        memory_type=MemoryType.FACT,
        owner_id="ann",
        asserted_source=Source.AI_SYNTHESIS,
        source=Source.AI_SYNTHESIS,
    )
    with (
        closing(Sources(GitSource([]), {CitationType.URL: reader})) as sources,
        closing(Examiner(policy, sources, harvest=[NetworkSearch(world, policy)])) as examiner,
    ):
        examined = asyncio.run(examiner.examine(claim)).knowing(dedup=NOTHING_NEAR)
    decision = examined.decide()
    assert (decision.rule, decision.tier) == (rule, tier)
    assert [one.path for one in examined.looked] and net.queries
    if not official:  # two strangers: nobody listed either, so they only are hints
        assert {one.citation for one in examined.suggested or ()} == {*net.pages}
