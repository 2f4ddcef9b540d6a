"""Where an agent reads what became of its own claims that had to wait."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Self

from fastapi import APIRouter, Depends, Query, Request
from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from vouchgate.api.base import (
    MAX_PAGE,
    JsonRoute,
    caller,
    erased_or_not_found,
    limit_rate,
    owners_in_scope,
    problem_responses,
)
from vouchgate.api.claims import respond, verdict_or_problem, verdict_response
from vouchgate.api.problems import ProblemError
from vouchgate.gate.incoming import owner_for
from vouchgate.ingest.claims.claim import MemoryType
from vouchgate.ingest.claims.people import Principal
from vouchgate.ingest.claims.waiting import PendingMemory, ReviewStatus
from vouchgate.review.answers import NotFound
from vouchgate.review.attending.answering import Answered, AnswerRefused, step_of
from vouchgate.review.rules import Act
from vouchgate.server import answering
from vouchgate.server.state import service_of
from vouchgate.storage.claims.submit import Decided
from vouchgate.storage.queue import pending
from vouchgate.storage.queue.pending import QueueFilter
from vouchgate.wire import AnswerIn, OwnerId, WireOut

router = APIRouter(prefix="/v1", route_class=JsonRoute, tags=["claims"])

Submitter = Annotated[Principal, Depends(caller(Act.READ_OWN_PENDING))]
Answerer = Annotated[Principal, Depends(caller(Act.SUBMIT))]


class OwnPending(WireOut):
    """A queued claim as its agent may see it: not who decided, and not what the owner is shown beside it.

    `content` is the text as the agent sent it, also where the owner stored another one (`memory_id` has that).
    `seen` is how often the claim came while it waited, from anybody. `note` is what its owner said to it. `question` is
    what a reviewer asks of the agent, and `next_step` what the agent does about it; left out while nothing is asked.
    """

    queue_id: str
    content: str
    memory_type: MemoryType
    reason: str
    status: ReviewStatus
    seen: int
    created_at: datetime
    decided_at: datetime | None
    note: str | None
    memory_id: str | None
    question: str | None = Field(default=None, exclude_if=lambda asked: asked is None)
    next_step: str | None = Field(default=None, exclude_if=lambda step: step is None)

    @classmethod
    def of(cls, item: PendingMemory) -> Self:
        """The agent's view of an item."""
        step = step_of(item)
        told = {name: value for name, value in item if name in cls.model_fields}
        return cls(
            **told | {"queue_id": item.id, "question": item.question if step else None, "next_step": step}
        )


class OwnPendingPage(WireOut):
    """Items of one status, newest first; `next` is the `after` of the following page, null on the last."""

    items: list[OwnPending]
    next: str | None


@router.get("/claims/pending", responses=problem_responses())
def list_own_pending(
    request: Request,
    principal: Submitter,
    *,
    user_id: Annotated[OwnerId | None, Query()] = None,
    status: ReviewStatus = ReviewStatus.PENDING,
    after: Annotated[str | None, Query(pattern=r"^rev_[0-9a-f]{32}$")] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 50,
) -> OwnPendingPage:
    """Claims that this very token submitted and that had to wait. A token for any owner has to say whose."""
    owners = owners_in_scope(principal, user_id)
    wanted = QueueFilter(
        # An index leads from an owner to a sender's items, and none from a sender to those of every owner.
        owners=frozenset({owner_for(principal, user_id)}) if owners is None else owners,
        status=status,
        sender=principal.id,
        order="newest",
        away=True,
        after=after,
        limit=limit,
    )
    with service_of(request).store.browse() as connection:
        items = pending.search(connection, wanted)
    return OwnPendingPage(
        items=[OwnPending.of(item) for item in items],
        next=items[-1].id if len(items) == limit else None,
    )


@router.get("/claims/pending/{queue_id}", responses=problem_responses(404, 410))
async def get_own_pending(request: Request, queue_id: str, principal: Submitter) -> OwnPending:
    """One of these, and what is asked of its agent."""
    item = await run_in_threadpool(answering.own_item, service_of(request), principal, queue_id)
    if item is None:
        raise await run_in_threadpool(erased_or_not_found, request, principal, queue_id, "claim")
    return OwnPending.of(item)


@router.post(
    "/claims/pending/{queue_id}/answer",
    response_class=Response,
    responses={
        **problem_responses(404, 410, 429, body=True),
        201: verdict_response("Stored: something other than the model vouches for it now."),
        202: verdict_response("Before its owner again, as the same item."),
        409: verdict_or_problem(
            "Blocked: a duplicate. As a problem: nothing is asked, or nothing new was sent."
        ),
        422: verdict_or_problem("Blocked. As a problem: the claim cannot be looked at as sent."),
    },
    status_code=201,
)
async def answer_question(request: Request, queue_id: str, sent: AnswerIn, principal: Answerer) -> Response:
    """Answers what a reviewer asked: the claim is decided again, with what is sent in place of its text and of the
    citations beside it."""
    limit_rate(request, principal)
    found = await answering.answer(service_of(request), principal, queue_id, sent)
    match found:
        case Answered():
            return respond(request, principal, Decided(found.answer, found.text))
        case AnswerRefused():
            raise ProblemError(409, found.code, found.message)
        case NotFound():
            raise await run_in_threadpool(erased_or_not_found, request, principal, queue_id, "claim")
