"""Where owners make standing rulings, see what each did, and take them back."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from pydantic import ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from vouchgate.api.base import JsonRoute, caller, not_found, problem_responses
from vouchgate.api.problems import ProblemError
from vouchgate.gate.incoming import owner_for
from vouchgate.ingest.claims.people import Principal
from vouchgate.ingest.claims.standing_rulings import RulingDraft, StandingRuling
from vouchgate.review.answers import NotFound
from vouchgate.review.rules import Act
from vouchgate.review.trust.publishers import may_decide
from vouchgate.review.trust.standing_rulings import (
    DAYS,
    MOST_NAME,
    Proposal,
    RulingPreview,
    RulingRefused,
    StandingRulings,
)
from vouchgate.review.trust.taking_back import RulingEnded, Then, take_back
from vouchgate.server.state import service_of
from vouchgate.storage.claims.standing_rulings import RulingCounts
from vouchgate.storage.identity import tokens
from vouchgate.wire import Text, Wire, WireOut

router = APIRouter(prefix="/v1/standing-rulings", route_class=JsonRoute, tags=["reviews"])

ReviewReader = Annotated[Principal, Depends(caller(Act.READ_REVIEWS))]
Reviewer = Annotated[Principal, Depends(caller(Act.REVIEW))]


class RulingOut(WireOut):
    """A standing ruling, and what it did."""

    ruling: StandingRuling
    did: RulingCounts


class RulingList(WireOut):
    """Every standing ruling that the owner ever had, the newest first."""

    items: list[RulingOut]


class RulingIn(RulingDraft):
    """What a standing ruling is about, and what it does with such claims. `user_id` may be left out by a token of one
    owner."""

    model_config = ConfigDict(defer_build=False)  # a body's: see `WireOut`

    user_id: str | None = None


class RulingConfirmIn(RulingIn):
    """The same with a name, which is shown to whoever sends what the standing ruling rejects, for so many days."""

    name: Annotated[Text, Field(min_length=1, max_length=MOST_NAME)]
    days: int = Field(default=DAYS, ge=1, le=3650)
    item_id: Annotated[Text, Field(max_length=100)] | None = None


class RulingEndIn(Wire):
    """What becomes of what the standing ruling did."""

    then: Then = Then.KEEP


@router.get("", responses=problem_responses())
def list_rulings(request: Request, principal: ReviewReader) -> RulingList:
    """The owner's standing rulings, with how much each stored, rejected, and was found right or wrong with."""
    found = service_of(request).standing_rulings.listing(principal)
    return RulingList(items=[RulingOut(ruling=ruling, did=counts) for ruling, counts in found])


@router.get("/proposal/{item_id}", responses=problem_responses(404))
def propose_ruling(request: Request, item_id: str, principal: ReviewReader) -> Proposal:
    """What a standing ruling could be about that does with claims like this one what was done with it. Nothing is
    changed."""
    found = service_of(request).standing_rulings.propose(principal, item_id)
    if isinstance(found, NotFound):
        raise not_found("item")
    return found


@router.post("/preview", responses=problem_responses(body=True))
async def preview_ruling(request: Request, sent: RulingIn, principal: Reviewer) -> RulingPreview:
    """What a standing ruling would have stored or rejected in the last 90 days, and what was ruled otherwise. Nothing
    is changed."""
    owner_id, rulings = _own(principal, sent.user_id), service_of(request).standing_rulings
    await run_in_threadpool(_refuse_unknown_agent, rulings, sent)
    return await run_in_threadpool(rulings.preview, principal, owner_id, sent, datetime.now(UTC))


@router.post("", responses=problem_responses(409, body=True))
async def confirm_ruling(request: Request, sent: RulingConfirmIn, principal: Reviewer) -> StandingRuling:
    """Makes a standing ruling, which counts for claims that are decided from now on. Nobody confirms one about an agent
    that they run."""
    owner_id, rulings, now = (
        _own(principal, sent.user_id),
        service_of(request).standing_rulings,
        datetime.now(UTC),
    )
    await run_in_threadpool(_refuse_unknown_agent, rulings, sent)
    made = await run_in_threadpool(
        lambda: rulings.confirm(
            principal, owner_id, sent, name=sent.name, days=sent.days, item_id=sent.item_id, now=now
        )
    )
    if isinstance(made, RulingRefused):
        raise ProblemError(409, made.code, made.message)
    return made


@router.post("/{ruling_id}/end", responses=problem_responses(404, body=True))
async def end_ruling(request: Request, ruling_id: str, sent: RulingEndIn, principal: Reviewer) -> RulingEnded:
    """Takes a standing ruling back. `did.open` of the list says how many of its acts `queue` is about, `did.in_force`
    how many `retract` is. With a standing ruling that is over it goes on."""
    rulings, now = service_of(request).standing_rulings, datetime.now(UTC)
    ended = await run_in_threadpool(take_back, rulings, principal, ruling_id, sent.then, now)
    if isinstance(ended, NotFound):
        raise not_found("standing ruling")
    return ended


def _refuse_unknown_agent(rulings: StandingRulings, sent: RulingDraft) -> None:
    """Raises ProblemError for an agent that is no token's id, such as its name: the ruling would be about nothing."""
    with rulings.store.read() as connection:
        if sent.terms.agent is None or tokens.names(connection, {sent.terms.agent}):
            return
    detail = "No token has this id. The `agent` of a standing ruling is a token's id, not its name."
    raise ProblemError(422, "agent_unknown", detail)


def _own(principal: Principal, user_id: str | None) -> str:
    """The owner that the reviewer is. Raises ClaimRefused, and ProblemError for one that they only may act for."""
    owner_id = owner_for(principal, user_id)
    if not may_decide(principal, owner_id):
        raise ProblemError(403, "owner_not_allowed", "Only its owner makes standing rulings.")
    return owner_id
