"""Where owners clear their queue. Every act names the version it saw."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BaseModel, Field, TypeAdapter
from starlette.concurrency import run_in_threadpool

from groundgate.api.base import MAX_PAGE, JsonRoute, answers, caller, not_found, service_of
from groundgate.api.problems import Problem, ProblemError, refused, unavailable
from groundgate.incoming import ClaimRefused
from groundgate.service import Service
from groundgate.wire import ApproveIn, RejectIn, Text, Wire
from ingest.pipeline import Examined
from ingest.types import Memory, PendingMemory, Principal, ReviewStatus, SimilarMemory
from review.answers import AlreadyDecided, Approved, NotFound, Refused, Rejected, Stale
from review.rules import Act, may_rule_on
from storage.errors import StorageError

router = APIRouter(prefix="/v1/reviews", route_class=JsonRoute, tags=["reviews"])

Reader = Annotated[Principal, Depends(caller(Act.READ_REVIEWS))]
Reviewer = Annotated[Principal, Depends(caller(Act.REVIEW))]

MAX_ACTS = 100


class ReviewPage(BaseModel):
    """Items, oldest first; `next` is the cursor of the following page, null on the last."""

    items: list[PendingMemory]
    next: str | None


class ReviewOut(PendingMemory):
    """An item with the stored memories that were near its claim when it was sent, nearest first; null when
    that was not looked for or could not be found out. `next_check` is when its sources are read again by
    themselves, and left out when they are not."""

    similar: tuple[SimilarMemory, ...] | None
    next_check: datetime | None = Field(default=None, exclude_if=lambda time: time is None)


class ApprovedOut(BaseModel):
    """The item as it now is, and the memory it became."""

    item: PendingMemory
    memory: Memory


class RejectedOut(BaseModel):
    """The item as it now is."""

    item: PendingMemory


class ApproveRow(ApproveIn):
    """An approval in a batch."""

    action: Literal["approve"]
    id: Annotated[Text, Field(min_length=1, max_length=100)]


class RejectRow(RejectIn):
    """A rejection in a batch."""

    action: Literal["reject"]
    id: Annotated[Text, Field(min_length=1, max_length=100)]


class ReviewBatchIn(Wire):
    """Several acts; each stands for itself."""

    items: Annotated[
        list[Annotated[ApproveRow | RejectRow, Field(discriminator="action")]],
        Field(min_length=1, max_length=MAX_ACTS),
    ]


class ReviewBatchOut(BaseModel):
    """One entry an act, in the order sent: what the single call would have answered as its body."""

    results: list[ApprovedOut | RejectedOut | Problem]


Done = ApprovedOut | RejectedOut
_BATCH: TypeAdapter[ReviewBatchOut] = TypeAdapter(ReviewBatchOut)


@router.get("", responses=answers())
def list_reviews(
    request: Request,
    principal: Reader,
    status: ReviewStatus = ReviewStatus.PENDING,
    after: Annotated[str | None, Query(pattern=r"^rev_[0-9a-f]{32}$")] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 50,
) -> ReviewPage:
    """The owner's items, oldest first."""
    queue = service_of(request).queue
    items = queue.get_pending(principal, after=after, limit=limit, status=status)
    return ReviewPage(items=items, next=items[-1].id if len(items) == limit else None)


@router.get("/{item_id}", responses=answers(404))
def get_review(request: Request, item_id: str, principal: Reader) -> ReviewOut:
    """One item with the version an act must name, and what is similar. Its decision has the evidence."""
    queue = service_of(request).queue
    item = queue.get_by_id(principal, item_id)
    if item is None:
        raise not_found("review")
    decision = queue.decision_of(item)
    similar = None if decision is None else decision.similar
    return ReviewOut(**dict(item), similar=similar, next_check=queue.next_check(item))


@router.post("/{item_id}/approve", responses=answers(404, 409, body=True))
async def approve(request: Request, item_id: str, sent: ApproveIn, principal: Reviewer) -> ApprovedOut:
    """Stores the claim. Its sources are looked at again first, duplicates in the same transaction: an item
    whose source has turned out otherwise is stale."""
    service = service_of(request)
    await _look_before(service, principal, {item_id: sent})
    return await _approve(service, principal, item_id, sent)


@router.post("/{item_id}/reject", responses=answers(404, 409, body=True))
async def reject(request: Request, item_id: str, sent: RejectIn, principal: Reviewer) -> RejectedOut:
    """Keeps the claim out, with the reason."""
    return await _reject(service_of(request), principal, item_id, sent)


@router.post("/batch", responses=answers(body=True), response_model=ReviewBatchOut)
async def review_batch(request: Request, sent: ReviewBatchIn, principal: Reviewer) -> Response:
    """Acts on several items. A stale, decided, foreign or unknown one spoils no other."""
    service = service_of(request)
    await _look_before(service, principal, {row.id: row for row in sent.items if isinstance(row, ApproveRow)})
    results: list[Done | Problem] = []
    for row in sent.items:
        try:
            if isinstance(row, ApproveRow):
                results.append(await _approve(service, principal, row.id, row))
            else:
                results.append(await _reject(service, principal, row.id, row))
        except ProblemError as error:
            results.append(Problem.model_validate(error.body))
        except ClaimRefused as error:
            results.append(Problem.model_validate(refused(error)))
        except StorageError as error:
            results.append(Problem.model_validate(unavailable(error)))
    text = _BATCH.dump_json(ReviewBatchOut(results=results))
    return Response(text, media_type="application/json")


async def _look_before(service: Service, principal: Principal, sent: Mapping[str, ApproveIn]) -> None:
    """Has the sources looked at of those items that would be approved as they are. Where that cannot be done,
    the approval itself says so, or does without."""
    items = await run_in_threadpool(_approvable, service, principal, sent)
    await service.rechecker.before_approval(*items)


def _approvable(service: Service, principal: Principal, sent: Mapping[str, ApproveIn]) -> list[PendingMemory]:
    """Items that wait, are this principal's to rule on, in the version named, and keep their wording."""
    try:
        items = [
            service.queue.get_by_id(principal, name) for name, act in sent.items() if act.content is None
        ]
    except StorageError:
        return []
    return [
        item
        for item in items
        if item is not None
        and item.status is ReviewStatus.PENDING
        and item.version == sent[item.id].version
        and may_rule_on(principal, item)
    ]


async def _approve(service: Service, principal: Principal, item_id: str, sent: ApproveIn) -> ApprovedOut:
    edited: Examined | None = None
    if sent.content is not None:
        item = await run_in_threadpool(service.queue.get_by_id, principal, item_id)
        if item is None:
            raise not_found("review")
        edited = await service.gate.examine_edit(item, sent.content)
    answer = await run_in_threadpool(
        lambda: service.queue.approve(
            principal,
            item_id,
            version=sent.version,
            note=sent.note,
            supersede=sent.supersede,
            edited=edited,
            now=datetime.now(UTC),
        )
    )
    match answer:
        case Approved():
            return ApprovedOut(item=answer.item, memory=answer.memory)
        case Refused():
            raise ProblemError(
                409, answer.code, answer.message, conflicting_memory_id=answer.conflicting_memory_id
            )
        case NotFound() | Stale() | AlreadyDecided():
            raise _not_done(answer)


async def _reject(service: Service, principal: Principal, item_id: str, sent: RejectIn) -> RejectedOut:
    answer = await run_in_threadpool(
        lambda: service.queue.reject(
            principal, item_id, version=sent.version, reason=sent.reason, now=datetime.now(UTC)
        )
    )
    match answer:
        case Rejected():
            return RejectedOut(item=answer.item)
        case NotFound() | Stale() | AlreadyDecided():
            raise _not_done(answer)


def _not_done(answer: NotFound | Stale | AlreadyDecided) -> ProblemError:
    match answer:
        case NotFound():
            return not_found("review")
        case Stale():
            detail = "The item has changed since it was looked at; look again and name its present version."
            return ProblemError(409, "stale_version", detail, current=answer.current.model_dump(mode="json"))
        case AlreadyDecided():
            detail = f"The item is {answer.current.status.value} already."
            return ProblemError(
                409, "already_decided", detail, current=answer.current.model_dump(mode="json")
            )
