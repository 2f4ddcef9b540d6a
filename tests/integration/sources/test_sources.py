"""Everything a citation may point at, read through one door, and what becomes of it when the service ends."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.hostile import hostile, local
from vouchgate.ingest.citations import parse_citation
from vouchgate.ingest.claims.citation import CitationType
from vouchgate.ingest.claims.source import SourceReading, Unreachable
from vouchgate.ingest.sources.answers import utc_now
from vouchgate.ingest.sources.git.source import GitSource
from vouchgate.ingest.sources.web.extractor import Extractor
from vouchgate.ingest.sources.web.source import WebSource
from vouchgate.sources.reader import Sources


def test_whoever_waits_when_it_ends_is_told_that_nobody_knows(tmp_path: Path) -> None:
    async def main(url: str) -> tuple[list[SourceReading], list[bytes]]:
        page = parse_citation(url)
        waiting = [asyncio.create_task(sources.read(page)) for _ in range(2)]
        left = asyncio.create_task(sources.read(page))
        while not slow.heads:
            await asyncio.sleep(0.01)
        left.cancel()
        with pytest.raises(asyncio.CancelledError):
            await left
        await sources.stop_reading()
        seen = list(slow.heads)
        return [*await asyncio.gather(*waiting), await sources.read(page)], seen

    extractor = Extractor()
    sources = Sources(
        GitSource([tmp_path], ["docs"]), {CitationType.URL: WebSource(local(), extractor, utc_now)}
    )
    try:
        with hostile(lambda line, _: line.hang()) as slow:
            readings, seen = asyncio.run(main(f"http://127.0.0.1:{slow.port}/page"))
            assert slow.heads == seen
    finally:
        sources.close()
        extractor.close()
    for reading in readings:
        assert isinstance(reading, Unreachable)
        assert (reading.code, "ending" in reading.detail) == ("timeout", True)
