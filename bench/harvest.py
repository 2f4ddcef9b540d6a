"""A claim that cites nothing, looked up in a corpus of 100,000 passages, beside one full-text query for its words and
the reading of the documents that this query names.

The query is what a program would ask that knows nothing of words: any of the claim's telling ones, the best first. Half
of the claims stand in a document word for word, half stand nowhere.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from bench.claims import Generator
from vouchgate.harvest.documents import CORPUS, MOST_PASSAGES, DocumentSearch
from vouchgate.ingest.citations import given_citation
from vouchgate.ingest.claims.citation import CitationType
from vouchgate.ingest.corroboration.queries import queries_of
from vouchgate.ingest.sources.corpus.folder import list_folder
from vouchgate.ingest.sources.corpus.source import Corpus, CorpusSource
from vouchgate.ingest.sources.web.extractor import Extractor

PASSAGES = 100_000
OF_ONE = 10  # passages of a document
SENTENCES = 6  # of a passage
CLAIMS = 100
ROUNDS = 3
FOREVER = 3_600.0  # seconds


def run(passages: int = PASSAGES) -> None:
    """Prints the times, and the ratio of the medians."""
    with tempfile.TemporaryDirectory() as made, closing(Extractor()) as extractor:
        folder = Path(made)
        claims = _write(folder, passages)
        listing = _seconds(lambda: list_folder(folder, time.monotonic() + FOREVER))
        corpora = CorpusSource([Corpus("bench", folder, official=True)], extractor)
        with closing(corpora), closing(DocumentSearch(CORPUS, corpora, CitationType.CORPUS)) as search:
            first = _seconds(lambda: corpora.search("anything", 1, FOREVER))
            print(
                f"harvest: {passages:,} passages in {passages // OF_ONE:,} documents; "
                f"listed in {listing:.2f} s, indexed in {first:.1f} s"
            )
            _measure(corpora, search, claims)


def _measure(corpora: CorpusSource, search: DocumentSearch, claims: Sequence[str]) -> None:
    with asyncio.Runner() as runner:
        times: dict[str, list[float]] = {"query": [], "query and reading": [], "harvest": [], "its query": []}
        found = 0
        for _ in range(ROUNDS):
            for claim in claims:
                words = queries_of(claim)[0]
                began = time.perf_counter()
                documents = _plain_query(corpora, words)
                asked = time.perf_counter()
                for document in documents:
                    corpora.read(given_citation(CitationType.CORPUS, document))
                read = time.perf_counter()
                found += bool(runner.run(search.find(claim, FOREVER)).citations)
                done = time.perf_counter()
                corpora.search(words, MOST_PASSAGES, FOREVER)
                took = (asked - began, read - began, done - read, time.perf_counter() - done)
                for name, seconds in zip(times, took, strict=True):
                    times[name].append(seconds)
    medians = {name: statistics.median(each) * 1000 for name, each in times.items()}
    slowest = {name: statistics.quantiles(each, n=20)[-1] * 1000 for name, each in times.items()}
    for name, median in medians.items():
        print(f"  {name}: {median:.1f} ms, 95 % within {slowest[name]:.1f} ms")
    ratio = medians["harvest"] / medians["query and reading"]
    print(f"  harvest / query and reading: {ratio:.2f}; found {found / ROUNDS:.0f} of {len(claims) // 2}")


def _plain_query(corpora: CorpusSource, words: str) -> list[str]:
    """The documents of one query for any of the words, the best first."""
    (shelf,) = corpora._shelves.values()
    quoted = " OR ".join(f'"{word}"' for word in words.split())
    rows = shelf._index._database.execute(
        "SELECT document FROM passage WHERE passage MATCH ? ORDER BY rank LIMIT ?", (quoted, MOST_PASSAGES)
    )
    return list(dict.fromkeys(f"corpus:bench/{name}" for (name,) in rows))


def _write(folder: Path, passages: int) -> list[str]:
    """Writes the corpus, and gives the claims."""
    generator = Generator(14)
    stated: list[str] = []
    documents = passages // OF_ONE
    for number in range(documents):
        texts = [[_sentence(generator) for _ in range(SENTENCES)] for _ in range(OF_ONE)]
        if number % (2 * documents // CLAIMS) == 0:
            stated.append(texts[number % OF_ONE][number % SENTENCES])
        file = folder / f"{number % 100:02}" / f"{number}.md"
        file.parent.mkdir(exist_ok=True)
        parts = (f"## Part {part}\n\n{' '.join(each)}\n" for part, each in enumerate(texts))
        file.write_text("\n".join((f"# Document {number}\n", *parts)), "utf-8")
    return [*stated[: CLAIMS // 2], *(_sentence(generator) for _ in range(CLAIMS // 2))]


def _sentence(generator: Generator) -> str:
    text = generator.claim().strip().rstrip(".")
    return f"{text[:1].upper()}{text[1:]}."


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
