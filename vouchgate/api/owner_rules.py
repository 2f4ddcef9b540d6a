"""Where owners make rules of their rulings, see what each did, and take them back."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from vouchgate.api.base import JsonRoute, caller, not_found, problem_responses
from vouchgate.api.problems import ProblemError
from vouchgate.gate.incoming import owner_for
from vouchgate.ingest.claims.owner_rules import OwnerRule, RuleDraft
from vouchgate.ingest.claims.types import Principal
from vouchgate.review.answers import NotFound
from vouchgate.review.rules import Act
from vouchgate.review.trust.owner_rules import DAYS, MOST_NAME, Proposal, RulePreview, RuleRefused
from vouchgate.review.trust.publishers import may_decide
from vouchgate.review.trust.taking_back import RuleEnded, Then, take_back
from vouchgate.server.state import service_of
from vouchgate.storage.claims.owner_rules import RuleCounts
from vouchgate.wire import Text, Wire

router = APIRouter(prefix="/v1/rules", route_class=JsonRoute, tags=["reviews"])

ReviewReader = Annotated[Principal, Depends(caller(Act.READ_REVIEWS))]
Reviewer = Annotated[Principal, Depends(caller(Act.REVIEW))]


class RuleOut(BaseModel):
    """A rule, and what it did."""

    rule: OwnerRule
    did: RuleCounts


class RuleList(BaseModel):
    """Every rule that the owner ever had, the newest first."""

    items: list[RuleOut]


class RuleIn(RuleDraft):
    """What a rule is about, and what it does with such claims. `user_id` may be left out by a token of one owner."""

    user_id: str | None = None


class RuleConfirmIn(RuleIn):
    """The same with a name, which is shown to whoever sends what the rule rejects, for so many days."""

    name: Annotated[Text, Field(min_length=1, max_length=MOST_NAME)]
    days: int = Field(default=DAYS, ge=1, le=3650)
    item_id: Annotated[Text, Field(max_length=100)] | None = None


class RuleEndIn(Wire):
    """What becomes of what the rule did."""

    then: Then = Then.KEEP


@router.get("", responses=problem_responses())
def list_rules(request: Request, principal: ReviewReader) -> RuleList:
    """The owner's rules, with the numbers of what each stored, rejected, and was found right or wrong with."""
    found = service_of(request).rules.listing(principal)
    return RuleList(items=[RuleOut(rule=rule, did=counts) for rule, counts in found])


@router.get("/proposal/{item_id}", responses=problem_responses(404))
def propose_rule(request: Request, item_id: str, principal: ReviewReader) -> Proposal:
    """What a rule could be about that does with claims like this one what was done with it. Nothing is changed."""
    found = service_of(request).rules.propose(principal, item_id)
    if isinstance(found, NotFound):
        raise not_found("item")
    return found


@router.post("/preview", responses=problem_responses(body=True))
async def preview_rule(request: Request, sent: RuleIn, principal: Reviewer) -> RulePreview:
    """What a rule would have stored or rejected in the last 90 days, and what was ruled otherwise. Nothing is
    changed."""
    owner_id, rules = _own(principal, sent.user_id), service_of(request).rules
    return await run_in_threadpool(rules.preview, principal, owner_id, sent, datetime.now(UTC))


@router.post("", responses=problem_responses(409, body=True))
async def confirm_rule(request: Request, sent: RuleConfirmIn, principal: Reviewer) -> OwnerRule:
    """Makes a rule, which counts for claims that are decided from now on. Nobody confirms one about an agent that they
    run."""
    owner_id, rules, now = _own(principal, sent.user_id), service_of(request).rules, datetime.now(UTC)
    made = await run_in_threadpool(
        lambda: rules.confirm(
            principal, owner_id, sent, name=sent.name, days=sent.days, item_id=sent.item_id, now=now
        )
    )
    if isinstance(made, RuleRefused):
        raise ProblemError(409, made.code, made.message)
    return made


@router.post("/{rule_id}/end", responses=problem_responses(404, body=True))
async def end_rule(request: Request, rule_id: str, sent: RuleEndIn, principal: Reviewer) -> RuleEnded:
    """Takes a rule back. `did.open` of the list says how many of its acts `queue` is about, `did.in_force` how many
    `retract` is. With a rule that is over it goes on."""
    rules, now = service_of(request).rules, datetime.now(UTC)
    ended = await run_in_threadpool(take_back, rules, principal, rule_id, sent.then, now)
    if isinstance(ended, NotFound):
        raise not_found("rule")
    return ended


def _own(principal: Principal, user_id: str | None) -> str:
    """The owner that the reviewer is. Raises ClaimRefused, and ProblemError for one that they only may act for."""
    owner_id = owner_for(principal, user_id)
    if not may_decide(principal, owner_id):
        raise ProblemError(403, "owner_not_allowed", "Only its owner makes rules of rulings.")
    return owner_id
