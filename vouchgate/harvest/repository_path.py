"""The path `repository`: documents of the repositories at their protected refs, found by words and read whole."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from vouchgate.harvest.paths import Look
from vouchgate.harvest.repository import MOST_PASSAGES, citation_of
from vouchgate.harvest.search import reading_of
from vouchgate.ingest.corroboration.hits import Reading
from vouchgate.ingest.sources.answers import utc_now
from vouchgate.ingest.sources.git.repository import SourceError
from vouchgate.ingest.sources.git.source import GitSource

MOST_DOCUMENTS = 5  # of one look


class RepositoryPath:
    """Looks in a thread of its own."""

    name = "repository"

    def __init__(self, git: GitSource) -> None:
        self._git = git
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="documents")

    def close(self) -> None:
        """Waits for a look under way."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    async def look(self, query: str, seconds: float) -> Look:
        """As of `SearchPath`."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._look, query, seconds)

    def _look(self, query: str, seconds: float) -> Look:
        try:
            passages = self._git.search(query, MOST_PASSAGES, seconds)
        except SourceError as error:
            return Look(failures=(error.detail.removesuffix("."),))
        readings: list[Reading] = []
        failures: list[str] = []
        documents = list(dict.fromkeys(passage.document for _, passage in passages))[:MOST_DOCUMENTS]
        for citation in filter(None, map(citation_of, documents)):
            read = reading_of(self._git.read(citation), citation.value, utc_now())
            if isinstance(read, Reading):  # who writes one file of a repository writes the others
                readings.append(replace(read, site=f"repository:{read.project}"))
            else:
                failures.append(read)
        return Look(tuple(readings), tuple(failures))
