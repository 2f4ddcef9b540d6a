"""What sources that a caller brings say together. Advice: nothing is read, kept or stored for it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from pydantic import Field

from vouchgate.api.base import JsonRoute, caller, limit_rate, problem_responses
from vouchgate.ingest.claims.people import Principal
from vouchgate.ingest.corroboration.decision import decide_from_history
from vouchgate.ingest.corroboration.given import GivenClaim, corroborate, history_of
from vouchgate.ingest.corroboration.history import Attempt, Corroborated, Failure, Next
from vouchgate.review.rules import Act
from vouchgate.server.state import service_of

router = APIRouter(prefix="/v1", route_class=JsonRoute, tags=["corroboration"])

Checker = Annotated[Principal, Depends(caller(Act.CHECK))]


class DecideIn(GivenClaim):
    """A claim with the history of a search for it. `attempts` of `max_attempts` are spent."""

    attempts: int = Field(ge=0, le=1000)
    max_attempts: int = Field(ge=0, le=1000)
    tried: tuple[Attempt, ...] = Field(default=(), max_length=1000)
    failures: tuple[Failure, ...] = Field(default=(), max_length=1000)


@router.post("/claims/corroborate", responses=problem_responses(429, body=True), status_code=200)
async def corroborate_claim(request: Request, sent: GivenClaim, principal: Checker) -> Corroborated:
    """What the sources say together: independent voices, votes, label and proof."""
    limit_rate(request, principal)
    gate = service_of(request).gate
    return await gate.weigh(principal, lambda: corroborate(sent, gate.policy))


@router.post("/decide", responses=problem_responses(429, body=True), status_code=200)
async def decide(request: Request, sent: DecideIn, principal: Checker) -> Next:
    """True, False or Invalid with its proof, or what to look for next."""
    limit_rate(request, principal)
    gate = service_of(request).gate

    def work() -> Next:
        task, history = history_of(sent, gate.policy)
        history = history.model_copy(update={"attempts": sent.tried, "failures": sent.failures})
        return decide_from_history(task, history, sent.attempts, sent.max_attempts, gate.policy)

    return await gate.weigh(principal, work)
