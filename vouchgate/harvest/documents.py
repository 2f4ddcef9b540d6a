"""Documents of the corpora and the repositories, searched for what states a claim.

For a claim that cites nothing, what is found becomes a citation of it, marked as the gate's own, and is read, held
against and watched like any other: the search only says where to look. For a search in steps it is a path.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from typing import NamedTuple, Protocol, TypeVar

from vouchgate.harvest.paths import Look
from vouchgate.ingest.citations import given_citation
from vouchgate.ingest.claims.citation import Citation, CitationType
from vouchgate.ingest.claims.decision import Looked, Suggested
from vouchgate.ingest.claims.source import Found, SourceReading, Stance, Standing, Unreachable
from vouchgate.ingest.corroboration.hits import Reading, quotation_of, stance_of
from vouchgate.ingest.corroboration.queries import queries_of
from vouchgate.ingest.language.terms import Kind, words_of
from vouchgate.ingest.net.turns import Turns, asking
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.sources.answers import NoAnswer
from vouchgate.ingest.sources.corpus.source import CorpusSource
from vouchgate.ingest.sources.git.repository import SourceError
from vouchgate.ingest.sources.git.source import GitSource
from vouchgate.ingest.sources.passage_index import FoundPassage, Search
from vouchgate.ingest.support.holding import hold

log = logging.getLogger(__name__)

CORPUS, REPOSITORY = "corpus", "repository"  # as in the policy's `[corroboration] paths`
MOST_PASSAGES = 12  # that are looked at, of each corpus and repository
MOST_HELD = 5  # that the claim is held against; a passage takes some three milliseconds
# Of the claim's telling words, for a passage to be held against it: that is ten times the work of counting them.
LEAST_SHARED = 0.5
MOST_FOUND = 3  # documents that are read for a claim, and that are suggested
MOST_LOOKED = 5  # documents that one look along a path reads
MOST_QUOTED = 300  # characters of a suggestion
NOT_SEARCHED = "It could not be searched in time."
_TELLING = (Stance.STATES, Stance.SPEAKS, Stance.REFUTES)
# What a document may be worth to be looked at: a decision that is over says what is not so any more.
_COUNTED = (Standing.IN_FORCE, Standing.HINT)

T = TypeVar("T")


class Library(Protocol):
    """Documents that are searched and read, both blocking."""

    def search(self, words: str, most: int, seconds: float) -> Search:
        """The passages with most of the words, within this many seconds."""
        ...

    def read(self, citation: Citation) -> SourceReading:
        """A document. Never raises."""
        ...

    def digest(self, seconds: float) -> str:
        """What changes when any of the documents does. Raises when that could not be found out."""
        ...


class Harvested(NamedTuple):
    """What was found for a claim."""

    citations: tuple[Citation, ...]  # of documents that seem to state it
    suggested: tuple[Suggested, ...]  # for people to look at
    looked: tuple[Looked, ...]


class DocumentSearch:
    """Looks in threads of its own, so that a folder or repository that hangs holds nothing else up. Close it when done.
    `kind` is that of the citations of these documents."""

    def __init__(self, name: str, library: Library, kind: CitationType) -> None:
        self.name = name
        self._library = library
        self._kind = kind
        self._pool = ThreadPoolExecutor(max_workers=2, thread_name_prefix=name)
        self._turns = Turns(1, 2)

    def close(self) -> None:
        """Waits for searches under way."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    async def find(self, claim: str, seconds: float) -> Harvested:
        """Citations of the documents of which a passage states the claim, and documents that have something to say of
        it, the best first; nothing when there is nothing, or it could not be found out in time, which is said, and a
        line in the log."""
        found = await self._in_time(lambda: self._find(claim, seconds), seconds)
        return found or Harvested((), (), (self._looked(claim, 0, (NOT_SEARCHED,)),))

    async def look(self, query: str, seconds: float) -> Look:
        """The documents with the best passages for these words, as `SearchPath.look`."""
        looked = await self._in_time(lambda: self._look(query, seconds), seconds)
        return looked or Look(failures=(NOT_SEARCHED,))

    async def digest(self, seconds: float) -> str | None:
        """What changes when any of the documents does; None when that could not be found out."""
        return await self._in_time(lambda: self._library.digest(seconds), seconds)

    async def _in_time(self, work: Callable[[], T], seconds: float) -> T | None:
        """What the work comes to; None, and a line in the log, when that could not be found out."""
        try:
            return await asyncio.wait_for(self._turns.run(asking(), self._pool, work), seconds)
        except TimeoutError:
            log.warning("the %s could not be searched within %.3g s", self.name, seconds)
        except (NoAnswer, SourceError) as error:
            log.warning("the %s could not be searched: %s", self.name, error.detail)
        except Exception:
            log.exception("the %s could not be searched", self.name)
        return None

    def _find(self, claim: str, seconds: float) -> Harvested:
        passages, failures = self._library.search(queries_of(claim)[0], MOST_PASSAGES, seconds)
        for failure in failures:
            log.warning("the %s could not be searched: %s", self.name, failure)
        held = sorted(_held(claim, passages), key=lambda one: -one.score)
        states = dict.fromkeys(one.document for one in held if one.stance is Stance.STATES and one.may_vouch)
        citations = (self._citation_of(document) for document in states)
        suggested = {one.document: one for one in reversed(held) if one.stance in _TELLING}
        return Harvested(
            tuple(citation for citation in citations if citation)[:MOST_FOUND],
            tuple(
                Suggested(citation=one.document, stance=one.stance, quotation=one.quotation)
                for one in sorted(suggested.values(), key=lambda one: -one.score)[:MOST_FOUND]
            ),
            (self._looked(claim, min(len(suggested), MOST_FOUND), failures),),
        )

    def _looked(self, claim: str, found: int, failures: Sequence[str]) -> Looked:
        return Looked(path=self.name, query=queries_of(claim)[0], found=found, failure=" ".join(failures))

    def _look(self, query: str, seconds: float) -> Look:
        passages, missed = self._library.search(query, MOST_PASSAGES, seconds)
        readings: list[Reading] = []
        failures = list(missed)
        for document in list(dict.fromkeys(one.passage.document for one in passages))[:MOST_LOOKED]:
            citation = self._citation_of(document)
            read = None if citation is None else self._library.read(citation)
            if isinstance(read, Unreachable):
                failures.append(read.detail)
            elif isinstance(read, Found) and read.standing in _COUNTED:
                readings.append(_reading_of(document, read))
        return Look(tuple(readings), tuple(failures))

    def _citation_of(self, document: str) -> Citation | None:
        """The citation of a document that the gate found by itself; None for one whose name cannot be cited."""
        try:
            citation = given_citation(self._kind, document)
        except ValueError:
            return None
        return citation.model_copy(update={"harvested": True})


@contextmanager
def open_harvest(
    policy: Policy, corpora: CorpusSource | None, git: GitSource
) -> Iterator[tuple[DocumentSearch, ...]]:
    """The searches that the policy wants for claims that cite nothing, in their order, while they are needed."""
    corpora = corpora if policy.harvest in ("local", "network") else None
    with open_searches(corpora, None if policy.harvest == "off" else git) as searches:
        yield searches


@contextmanager
def open_searches(
    corpora: CorpusSource | None, git: GitSource | None
) -> Iterator[tuple[DocumentSearch, ...]]:
    """A search of the corpora and one of the repositories, where there are any, while they are needed."""
    with ExitStack() as opened:
        searches: list[DocumentSearch] = []
        if corpora:
            searches.append(DocumentSearch(CORPUS, corpora, CitationType.CORPUS))
        if git:
            searches.append(DocumentSearch(REPOSITORY, git, CitationType.PATH))
        for search in searches:
            opened.callback(search.close)
        yield tuple(searches)


def _reading_of(document: str, found: Found) -> Reading:
    return Reading(
        text=found.text,
        url=document,
        title=found.title,
        published=found.dated,
        read_at=datetime.now(UTC),
        # Whoever writes one document of a repository or corpus writes the others.
        site=f"repository:{found.project}" if found.project else document.partition("/")[0],
        form=found.form,
        project=found.project,
        official=found.official,
        verified=True,
    )


def _nearest(claim: str, found: Sequence[FoundPassage], most: int) -> list[FoundPassage]:
    """The passages that share most telling words with the claim; of those that share as many, the ones that have most
    of its other words."""
    kinds = {word.key: word.kind for word in words_of(claim)}
    telling = {key for key, kind in kinds.items() if kind not in (Kind.FUNCTION, Kind.COMMON)}
    shares: list[tuple[int, int, int, FoundPassage]] = []
    for one in found:
        has = {word.key for word in words_of(f"{one.passage.heading}\n{one.passage.text}")}
        if (shared := len(telling & has)) >= LEAST_SHARED * len(telling):
            shares.append((-shared, -len(kinds.keys() & has), len(shares), one))
    return [one for *_, one in sorted(shares)[:most]]


class _Held(NamedTuple):
    document: str
    stance: Stance
    score: float
    quotation: str
    may_vouch: bool


def _held(claim: str, passages: Sequence[FoundPassage]) -> Iterator[_Held]:
    vouching = _nearest(claim, [one for one in passages if one.may_vouch], MOST_HELD)
    hints = _nearest(claim, [one for one in passages if not one.may_vouch], MOST_FOUND)
    for one in (*vouching, *hints):
        passage = one.passage
        found = Found(
            citation=Citation(type=CitationType.PATH, value="", key=""),
            source_id=passage.document,
            standing=Standing.IN_FORCE,
            detail="",
            title=passage.heading,
            text=passage.text,
            form="file",
            project=one.project,
        )
        held = hold(claim, (), found).held or ()
        stance, score = stance_of(held), min((one.score for one in held), default=0.0)
        quotation = quotation_of(held, stance, passage.text)[:MOST_QUOTED]
        yield _Held(passage.document, stance, score, quotation, one.may_vouch)
