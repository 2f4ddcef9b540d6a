"""A recorded document beside its claims one by one, claims that share a long source beside each of them by itself,
and many links in flight beside those of the slowest host alone."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from bench.claims import claim_of
from tests.web import Answer, web_server
from vouchgate.documents import recording
from vouchgate.documents.checking import check_document, read_sources
from vouchgate.ingest.claims.source import Found, SourceReading, Standing
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.documents import Document, read_document
from vouchgate.ingest.documents.verdict import check_claim, cited_by, everything_cited
from vouchgate.ingest.pipeline import Inspected, examine
from vouchgate.settings import Settings
from vouchgate.sources.repositories import open_repositories
from vouchgate.sources.setup import open_sources

POLICY = load_policy()
NOW = datetime(2026, 3, 1, tzinfo=UTC)
CLAIMS, SOURCES, ROUNDS = 200, 20, 5
SHARING, LONG_SOURCE = 100, 100_000  # claims, and characters of the one text they cite
SLOW, OTHERS, HOSTS = 38, 18, 9  # links of the slowest host, of each other one, and how many of those


def run() -> None:
    """Prints all three."""
    _recorded()
    _one_long_source()
    _links()


def _recorded() -> None:
    text = "\n\n".join(
        f"The kiln of house {n} reaches {900 + n} degrees ([log](https://a.example/{n % SOURCES}))."
        for n in range(CLAIMS)
    )
    document = read_document("kilns.md", text.encode())
    page = " ".join(f"The kiln of house {n} reaches {900 + n} degrees." for n in range(CLAIMS))
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder)
        readings: dict[str, SourceReading] = {
            each.key: Found(
                citation=each, source_id=each.value, standing=Standing.IN_FORCE, detail="", text=page
            )
            for each in everything_cited([document])
        }
        recording.write(kept, readings, {}, NOW)
        whole = _best(lambda: _whole(text, kept))
        single = _best(lambda: _one_by_one(document, kept))
    print(f"\nA recorded document of {CLAIMS} claims and {SOURCES} sources, best of {ROUNDS} rounds\n")
    print(f"its claims one by one   {single * 1000:8.1f} ms")
    print(f"the document            {whole * 1000:8.1f} ms  {whole / single:.2f} of that")


def _one_long_source() -> None:
    page = "\n\n".join(
        f"House {n} of the potters of Vester stands by the river. Its kiln reaches {900 + n} degrees and burns "
        f"{('beech', 'oak', 'larch')[n % 3]} wood from valley {n % 17}."
        for n in range(LONG_SOURCE // 125)
    )
    text = "\n\n".join(
        f"The kiln of house {n} reaches {900 + n} degrees ([log](https://a.example/log))."
        for n in range(SHARING)
    )
    document = read_document("kilns.md", text.encode())
    (cited,) = everything_cited([document])
    found = Found(citation=cited, source_id=cited.value, standing=Standing.IN_FORCE, detail="", text=page)

    def each_alone() -> None:
        for claim in document.claims:
            check_claim(claim, {cited.key: found}, POLICY, NOW)

    single = _best(each_alone, rounds=2)
    shared = _best(lambda: check_document(document, {cited.key: found}, POLICY, NOW, baseline={}), rounds=2)
    print(f"\n{SHARING} claims that cite one text of {len(page) // 1000} KB, best of 2 rounds\n")
    print(f"each by itself          {single * 1000:8.1f} ms")
    print(f"as one document         {shared * 1000:8.1f} ms  {shared / single:.2f} of that")


def _whole(text: str, kept: Path) -> None:
    document = read_document("kilns.md", text.encode())
    cited = everything_cited([document])
    readings = asyncio.run(read_sources(recording.Replayed(kept), cited, per_host=2))
    check_document(document, readings, POLICY, NOW, baseline={})


def _one_by_one(document: Document, kept: Path) -> None:
    replayed = recording.Replayed(kept)
    for one in document.claims:
        claim = claim_of(one.text)
        cited = cited_by(one)
        read = [asyncio.run(replayed.read(each)) for each in cited]
        examine(Inspected(claim, (), cited), read, POLICY, NOW)


def _best(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


def _links() -> None:
    page = Answer("<html><body><p>The kiln of Vester is hot and dry.</p></body></html>", delay=0.05)
    with ExitStack() as opened:
        shares = [SLOW, *[OTHERS] * HOSTS]
        sites = [
            opened.enter_context(web_server({f"/{n}": page for n in range(share)}, f"127.0.0.{2 + at}"))
            for at, share in enumerate(shares)
        ]
        settings = Settings(citation_networks=tuple(site.place for site in sites))
        urls = [[f"{site.url}/{n}" for n in range(share)] for site, share in zip(sites, shares, strict=True)]
        slow = _read(settings, urls[0])
        every = _read(settings, [url for of_one in urls for url in of_one])
    print(f"\n{sum(shares)} links on {len(shares)} hosts, of which the slowest has {SLOW}\n")
    print(f"those of the slowest    {slow:8.2f} s")
    print(f"all                     {every:8.2f} s  {every / slow:.2f} of that")


def _read(settings: Settings, urls: Sequence[str]) -> float:
    text = "\n\n".join(f"The kiln is hot ([x]({url}))." for url in urls)
    cited = everything_cited([read_document("kilns.md", text.encode())])
    assert len(cited) == len(urls)
    with ExitStack() as opened:
        git = open_repositories(settings, needed=False)
        sources = opened.enter_context(open_sources(settings, POLICY, git))
        runner = opened.enter_context(asyncio.Runner())
        opened.callback(lambda: runner.run(sources.stop_reading()))
        started = time.perf_counter()
        readings = runner.run(read_sources(sources, cited, per_host=POLICY.web.per_host))
        took = time.perf_counter() - started
    assert all(isinstance(reading, Found) for reading in readings.values())
    return took
