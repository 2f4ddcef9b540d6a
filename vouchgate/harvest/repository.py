"""Documents of the repositories that state a claim which cites nothing.

What is found becomes a citation of the claim, marked as the gate's own, and is read, held against and watched like any
other: the search only says where to look.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

from vouchgate.ingest.citations import given_citation
from vouchgate.ingest.claims.types import Citation, CitationType, Found, Stance, Standing
from vouchgate.ingest.corroboration.hits import stance_of
from vouchgate.ingest.corroboration.queries import queries_of
from vouchgate.ingest.language.terms import Kind, words_of
from vouchgate.ingest.sources.git.repository import SourceError
from vouchgate.ingest.sources.git.source import GitSource
from vouchgate.ingest.sources.passage_index import Passage
from vouchgate.ingest.support.holding import hold

log = logging.getLogger(__name__)

MOST_PASSAGES = 12  # that a claim is held against; a passage takes some three milliseconds
LEAST_SHARED = (
    0.5  # of the claim's telling words, for a passage to be held against it: that is ten times the work
)
MOST_FOUND = 3  # documents that a claim is given as citations


class RepositorySearch:
    """Looks in threads of its own, so that a repository that hangs holds nothing else up. Close it when done."""

    def __init__(self, git: GitSource) -> None:
        self._git = git
        self._pool = ThreadPoolExecutor(max_workers=2, thread_name_prefix="harvest")

    def close(self) -> None:
        """Waits for searches under way."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    async def find(self, claim: str, seconds: float) -> tuple[Citation, ...]:
        """Citations of the documents of which a passage states the claim, the best first; none when there are none, or
        it could not be found out in time, which is a line in the log."""
        found = asyncio.get_running_loop().run_in_executor(self._pool, self._find, claim, seconds)
        try:
            return await asyncio.wait_for(found, seconds)
        except TimeoutError:
            log.warning("the repositories could not be searched for a claim within %.3g s", seconds)
        except SourceError as error:
            log.warning("the repositories could not be searched for a claim: %s", error.detail)
        except Exception:
            log.exception("the repositories could not be searched for a claim")
        return ()

    def _find(self, claim: str, seconds: float) -> tuple[Citation, ...]:
        passages = self._git.search(queries_of(claim)[0], MOST_PASSAGES, seconds)
        paths = dict.fromkeys(_stating(claim, passages))
        return tuple(citation for path in paths if (citation := citation_of(path)))[:MOST_FOUND]


@contextmanager
def open_harvest(git: GitSource) -> Iterator[RepositorySearch | None]:
    """The search of these repositories while it is needed; None when there are none."""
    if not git.has_repositories:
        yield None
        return
    with closing(RepositorySearch(git)) as search:
        yield search


def citation_of(path: str) -> Citation | None:
    """The citation of a file that the gate found by itself; None for one whose name cannot be cited."""
    try:
        citation = given_citation(CitationType.PATH, path)
    except ValueError:
        return None
    return citation.model_copy(update={"harvested": True})


def _stating(claim: str, passages: list[tuple[str, Passage]]) -> Iterator[str]:
    telling = {word.key for word in words_of(claim) if word.kind not in (Kind.FUNCTION, Kind.COMMON)}
    for project, passage in passages:
        has = {word.key for word in words_of(f"{passage.heading}\n{passage.text}")}
        if len(telling & has) < LEAST_SHARED * len(telling):
            continue
        found = Found(
            citation=Citation(type=CitationType.PATH, value="", key=""),
            source_id=passage.document,
            standing=Standing.IN_FORCE,
            detail="",
            title=passage.heading,
            text=passage.text,
            form="file",
            project=project,
        )
        if stance_of(hold(claim, (), found).held or ()) is Stance.STATES:
            yield passage.document
