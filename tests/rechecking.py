"""What tests of checking again share: a repository that can be taken away, a web server whose pages change, and
claims that cite them."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
from sqlalchemy import select

from tests.claims import NOW, submission_of
from tests.claims import policy as built_in_policy
from tests.repos import TestRepository
from tests.reviews import reviewer
from vouchgate.gate.examiner import Examiner
from vouchgate.ingest.citations import parse_citation
from vouchgate.ingest.claims.citation import IN_REPOSITORIES, Citation
from vouchgate.ingest.claims.claim import Claim, MemoryType, Source
from vouchgate.ingest.claims.decision import ValidationResult
from vouchgate.ingest.claims.source import Found, Missing, SourceReading, Standing, Unreachable
from vouchgate.ingest.claims.standing_rulings import RulingDraft, StandingRuling
from vouchgate.ingest.claims.trust import OwnPublishers
from vouchgate.ingest.claims.waiting import PendingMemory
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.scoring.sites import site_of
from vouchgate.ingest.sources.git.source import GitSource
from vouchgate.ingest.sources.web.page import header_date
from vouchgate.review.trust.standing_rulings import StandingRulings
from vouchgate.storage.claims import publishers
from vouchgate.storage.claims.submit import Decided
from vouchgate.storage.queue import pending, rechecks
from vouchgate.storage.store import Store
from vouchgate.workers.recheck import Rechecker

CONTENT = "Per ADR-0001 the gateway listens on port 8080."
ADR = "# ADR-0001: The gateway's port\n\nStatus: {}\n\n{}\n"
SAYS = "The gateway listens on port 8080, and nothing else of ours does. Its old proxies are gone."


@dataclass(frozen=True, slots=True)
class RecheckCounts:
    """How many pieces of work came to what; the names are those of `review.recheck.RecheckResult`."""

    promoted: int = 0
    redecided: int = 0
    over: int = 0
    stale: int = 0
    fresh: int = 0
    lowered: int = 0
    same: int = 0
    again: int = 0
    gone: int = 0
    lost: int = 0
    failed: int = 0


NO_CHECKS = RecheckCounts()


class World:
    """Reads ADRs from a real repository and pages from a real web server. No repository: it is out of reach."""

    def __init__(self, repository: Path) -> None:
        self.git = GitSource([repository], ["docs/adrs"])

    async def read(self, citation: Citation, *, fresh: bool = False) -> SourceReading:
        """What the citation points at; nothing is kept, so it is always read."""
        if citation.type in IN_REPOSITORIES:
            return await asyncio.to_thread(self.git.read, citation)
        url = citation.value
        try:
            async with httpx.AsyncClient(trust_env=False, timeout=5) as client:
                answer = await client.get(url)
        except httpx.HTTPError as error:
            return Unreachable(citation=citation, code="connection", detail=f"{url}: {type(error).__name__}.")
        if answer.status_code == 404:
            return Missing(citation=citation, detail=f"{url} answered 404.", status=404)
        if answer.status_code != 200:
            return Unreachable(citation=citation, code="server_error", detail=f"{url} answered an error.")
        return Found(
            citation=citation,
            source_id=url,
            standing=Standing.IN_FORCE,
            detail=f"{url} was read.",
            digest=hashlib.sha256(answer.content).hexdigest(),
            text=answer.text,
            site=site_of(url),
            revised=header_date(answer.headers.get("last-modified", "")),
            status=200,
        )


@dataclass
class Clock:
    """A clock that tests move."""

    now: datetime = NOW

    def __call__(self) -> datetime:
        return self.now


@dataclass
class Bench:
    """A store, a world and a worker that reads it. `repository` may be moved away and back."""

    store: Store
    repository: TestRepository
    policy: Policy
    clock: Clock
    world: World
    examiner: Examiner
    rechecker: Rechecker
    away: Path = field(init=False)

    def __post_init__(self) -> None:
        self.away = self.repository.path.with_name("away")

    def hide(self) -> None:
        """Takes the repository out of reach."""
        self.repository.path.rename(self.away)

    def show(self) -> None:
        """Puts it back."""
        self.away.rename(self.repository.path)

    def adr(self, status: str = "Accepted", says: str = SAYS) -> None:
        """Commits ADR-0001."""
        self.repository.commit("An ADR", {"docs/adrs/0001-port.md": ADR.format(status, says)})

    def houses(self, count: int) -> list[str]:
        """Commits ADR-0001 with so much to claim, and gives the claims."""
        said = [f"the gateway of house h{n}h listens on port 8080." for n in range(count)]
        self.adr(says="\n\n".join(each.capitalize() for each in said))
        return [f"Per ADR-0001 {each}" for each in said]

    def send(self, content: str = CONTENT, **more: Any) -> ValidationResult:
        """Submits a claim, examined as the gate does it."""
        return send(self.store, self.examiner, content, **more)

    def work(self, now: datetime) -> RecheckCounts:
        """One round of the worker at this time."""
        self.clock.now = now
        came = asyncio.run(self.rechecker.job.run_once(now))
        return RecheckCounts(**{result.value: count for result, count in came.items()})

    def before_approval(self, *items: PendingMemory, now: datetime) -> None:
        """What the service does before an approval."""
        self.clock.now = now
        asyncio.run(self.rechecker.before_approval(*items))

    def item(self, item_id: str | None) -> PendingMemory:
        """The item of this id, whoever has it."""
        with self.store.read() as connection:
            found = pending.get(connection, str(item_id), owners=None)
        assert found is not None
        return found

    def schedule(self) -> list[Any]:
        """Every row of the schedule, next first."""
        with self.store.read() as connection:
            return list(connection.execute(select(rechecks.TABLE).order_by(rechecks.TABLE.c.due_at)))


def send(
    store: Store,
    examiner: Examiner,
    content: str = CONTENT,
    *,
    owner_id: str = "ann",
    source: Source = Source.AI_SYNTHESIS,
    cites: tuple[str, ...] = (),
    **more: Any,
) -> ValidationResult:
    """Submits a claim, examined by this examiner."""
    claim = Claim(
        content=content,
        memory_type=MemoryType.FACT,
        asserted_source=source,
        source=source,
        owner_id=owner_id,
        citations=tuple(parse_citation(text) for text in cites),
        **more,
    )
    examined = asyncio.run(examiner.examine(claim))
    answer = store.writer.submit(submission_of(examined)).result()
    assert isinstance(answer, Decided), answer
    return answer.answer


def reject_like(here: Bench, **terms: str) -> None:
    """Has the owner reject all claims like these from now on."""
    draft = RulingDraft.model_validate({"verdict": "reject", "terms": terms})
    rulings = StandingRulings(here.store, here.policy)
    made = rulings.confirm(reviewer(), "ann", draft, name="none of these", days=30, now=NOW)
    assert isinstance(made, StandingRuling), made


def policy_with(**recheck: float) -> Policy:
    """The built-in policy with another table `recheck`."""
    built_in = built_in_policy()
    changed = built_in.recheck.model_dump() | recheck
    return Policy.model_validate(built_in.model_dump() | {"recheck": changed})


@contextmanager
def bench(store: Store, directory: Path, policy: Policy | None = None, **parts: Any) -> Iterator[Bench]:
    """A bench with ADR-0001 in force, under the built-in policy unless another is given."""
    under = policy or built_in_policy()
    store.save_policy(under, NOW)
    repository = TestRepository(directory / "grounding")
    clock = Clock()
    world = World(repository.path)

    def own_publishers(owner_id: str, names: Collection[str], now: datetime) -> OwnPublishers:
        with store.read() as connection:
            return publishers.said_of(connection, owner_id, names, now)

    examiner = Examiner(under, world, publishers=own_publishers, clock=clock)
    examine: Callable[..., Any] = parts.get("examine", examiner.examine)
    rechecker = Rechecker(store, under, examine, world.read, clock=clock)
    made = Bench(store, repository, under, clock, world, examiner, rechecker)
    made.adr()
    try:
        yield made
    finally:
        examiner.close()
