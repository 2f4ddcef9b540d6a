"""Where owners say whether what rules stored is right, of the memories that were drawn for that."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal, Self

from fastapi import APIRouter, Depends, Query, Request
from starlette.concurrency import run_in_threadpool

from vouchgate.api.base import MAX_PAGE, JsonRoute, caller, narrowed, not_found, problem_responses
from vouchgate.api.problems import ProblemError
from vouchgate.ingest.claims.memory import Memory
from vouchgate.ingest.claims.people import Principal
from vouchgate.ingest.claims.waiting import SpotVerdict
from vouchgate.ingest.rules import Rule
from vouchgate.review.answers import ApprovalRefused, NotFound
from vouchgate.review.rules import Act
from vouchgate.review.trust import spot_checks
from vouchgate.review.trust.spot_checks import Drawn, Judged
from vouchgate.server.state import service_of
from vouchgate.wire import OwnerId, Wire, WireOut

router = APIRouter(prefix="/v1/spot-checks", route_class=JsonRoute, tags=["reviews"])

ReviewReader = Annotated[Principal, Depends(caller(Act.READ_REVIEWS))]
Reviewer = Annotated[Principal, Depends(caller(Act.REVIEW))]


class SpotCheckOut(WireOut):
    """A memory that was drawn, the rule that stored it, and what its owner says of it: null while nothing."""

    memory: Memory
    rule: Rule
    created_at: datetime
    verdict: SpotVerdict | None
    decided_at: datetime | None
    decided_by: str | None

    @classmethod
    def of(cls, drawn: Drawn) -> Self:
        """The same, as it is told."""
        told = {name: value for name, value in drawn.check if name in cls.model_fields}
        return cls(memory=drawn.memory, **told)


class SpotCheckPage(WireOut):
    """Spot checks, the newest memory first; `next` is the cursor of the following page, null on the last. `counts`
    has, by rule, how many there are of each verdict and how many are `open`, whatever was asked for."""

    items: list[SpotCheckOut]
    next: str | None
    counts: dict[Rule, dict[str, int]]


class SpotVerdictIn(Wire):
    """What the owner says of the memory."""

    verdict: SpotVerdict


@router.get("", responses=problem_responses())
def list_spot_checks(
    request: Request,
    principal: ReviewReader,
    *,
    user_id: Annotated[OwnerId | None, Query()] = None,
    verdict: SpotVerdict | Literal["open"] = "open",
    after: Annotated[str | None, Query(pattern=r"^mem_[0-9a-f]{32}$")] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 50,
) -> SpotCheckPage:
    """The owner's memories that were drawn, of which nothing was said yet unless a verdict is asked for."""
    store, now = service_of(request).store, datetime.now(UTC)
    principal = narrowed(principal, user_id)
    found = spot_checks.search(store, principal, now, verdict=verdict, after=after, limit=limit)
    return SpotCheckPage(
        items=[SpotCheckOut.of(drawn) for drawn in found],
        next=found[-1].memory.id if len(found) == limit else None,
        counts={rule: dict(times) for rule, times in spot_checks.counts(store, principal).items()},
    )


class JudgedList(WireOut):
    """How often claims were right, by agent, kind of the first thing cited (`none`: nothing) and publisher of that."""

    items: list[Judged]


@router.get("/records", responses=problem_responses())
def list_records(
    request: Request,
    principal: ReviewReader,
    user_id: Annotated[OwnerId | None, Query()] = None,
) -> JudgedList:
    """The latest verdicts of the owner, 100 at most for each, with the 95 % interval (Wilson) of the share that is
    right. Nothing that an agent says of itself enters it."""
    return JudgedList(items=spot_checks.records(service_of(request).store, narrowed(principal, user_id)))


@router.post("/{memory_id}", responses=problem_responses(404, 409, body=True))
async def answer_spot_check(
    request: Request, memory_id: str, sent: SpotVerdictIn, principal: Reviewer
) -> SpotCheckOut:
    """Notes what the owner says of a memory that was drawn, in place of what was said before. The memory stays as it
    is: one that is wrong can be retracted (`DELETE /v1/memories/{memory_id}`)."""
    service, now = service_of(request), datetime.now(UTC)
    drawn = await run_in_threadpool(
        lambda: spot_checks.answer(
            service.store, principal, memory_id, sent.verdict, now, policy=service.policy
        )
    )
    if isinstance(drawn, NotFound):
        raise not_found("spot check")
    if isinstance(drawn, ApprovalRefused):
        raise ProblemError(409, drawn.code, drawn.message)
    return SpotCheckOut.of(drawn)
