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
from typing import NamedTuple

from vouchgate.ingest.citations import given_citation
from vouchgate.ingest.claims.types import Citation, CitationType, Found, Looked, Stance, Standing, Suggested
from vouchgate.ingest.corroboration.hits import quotation_of, stance_of
from vouchgate.ingest.corroboration.queries import queries_of
from vouchgate.ingest.language.terms import Kind, words_of
from vouchgate.ingest.sources.git.repository import SourceError
from vouchgate.ingest.sources.git.source import GitSource
from vouchgate.ingest.sources.passage_index import Passage
from vouchgate.ingest.support.holding import hold

log = logging.getLogger(__name__)

PATH = "repository"
MOST_PASSAGES = 12  # that are looked at
MOST_HELD = 5  # that the claim is held against; a passage takes some three milliseconds
# Of the claim's telling words, for a passage to be held against it: that is ten times the work of counting them.
LEAST_SHARED = 0.5
MOST_FOUND = 3  # documents that are read for a claim, and that are suggested
MOST_QUOTED = 300  # characters of a suggestion
_TELLING = (Stance.STATES, Stance.SPEAKS, Stance.REFUTES)


class Harvested(NamedTuple):
    """What was found for a claim."""

    citations: tuple[Citation, ...]  # of documents that seem to state it
    suggested: tuple[Suggested, ...]  # for people to look at
    looked: tuple[Looked, ...]


class RepositorySearch:
    """Looks in threads of its own, so that a repository that hangs holds nothing else up. Close it when done."""

    def __init__(self, git: GitSource) -> None:
        self._git = git
        self._pool = ThreadPoolExecutor(max_workers=2, thread_name_prefix="harvest")

    def close(self) -> None:
        """Waits for searches under way."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    async def find(self, claim: str, seconds: float) -> Harvested:
        """Citations of the documents of which a passage states the claim, and documents that have something to say of
        it, the best first; nothing when there is nothing, or it could not be found out in time, which is said, and
        a line in the log."""
        found = asyncio.get_running_loop().run_in_executor(self._pool, self._find, claim, seconds)
        try:
            return await asyncio.wait_for(found, seconds)
        except TimeoutError:
            failure = f"It took longer than {seconds:.3g} s."
            log.warning("the repositories could not be searched for a claim: %s", failure)
        except SourceError as error:
            failure = error.detail
            log.warning("the repositories could not be searched for a claim: %s", failure)
        except Exception:
            failure = "The search itself failed."
            log.exception("the repositories could not be searched for a claim")
        return Harvested((), (), (Looked(path=PATH, query=queries_of(claim)[0], found=0, failure=failure),))

    def _find(self, claim: str, seconds: float) -> Harvested:
        query = queries_of(claim)[0]
        passages = self._git.search(query, MOST_PASSAGES, seconds)
        held = sorted(_held(claim, passages), key=lambda one: -one.score)
        states = dict.fromkeys(one.path for one in held if one.stance is Stance.STATES)
        citations = tuple(citation for path in states if (citation := citation_of(path)))
        suggested = {one.path: one for one in reversed(held) if one.stance in _TELLING}
        return Harvested(
            citations[:MOST_FOUND],
            tuple(
                Suggested(citation=one.path, stance=one.stance, quotation=one.quotation)
                for one in sorted(suggested.values(), key=lambda one: -one.score)[:MOST_FOUND]
            ),
            (Looked(path=PATH, query=query, found=len(suggested)),),
        )


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


def _nearest(claim: str, passages: list[tuple[str, Passage]]) -> list[tuple[str, Passage]]:
    """The passages that share most telling words with the claim; of those that share as many, the ones that have most
    of its other words, numbers included."""
    kinds = {word.key: word.kind for word in words_of(claim)}
    telling = {key for key, kind in kinds.items() if kind not in (Kind.FUNCTION, Kind.COMMON)}
    shares: list[tuple[int, int, int, tuple[str, Passage]]] = []
    for one in passages:
        has = {word.key for word in words_of(f"{one[1].heading}\n{one[1].text}")}
        if (shared := len(telling & has)) >= LEAST_SHARED * len(telling):
            shares.append((-shared, -len(kinds.keys() & has), len(shares), one))
    return [one for *_, one in sorted(shares)[:MOST_HELD]]


class _Held(NamedTuple):
    path: str
    stance: Stance
    score: float
    quotation: str


def _held(claim: str, passages: list[tuple[str, Passage]]) -> Iterator[_Held]:
    for project, passage in _nearest(claim, passages):
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
        held = hold(claim, (), found).held or ()
        stance, score = stance_of(held), min((one.score for one in held), default=0.0)
        quotation = quotation_of(held, stance, passage.text)[:MOST_QUOTED]
        yield _Held(passage.document, stance, score, quotation)
