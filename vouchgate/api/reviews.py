"""Where owners clear their queue. Every act names the version it saw; what an act does is in
`vouchgate.server.rulings`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal, Self

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import Field, TypeAdapter

from vouchgate.api.base import (
    MAX_PAGE,
    JsonRoute,
    caller,
    erased_or_not_found,
    narrowed,
    not_found,
    problem_responses,
)
from vouchgate.api.problems import Problem, ProblemError, refused, unavailable
from vouchgate.gate.incoming import ClaimRefused
from vouchgate.ingest.claims.claim import MemoryType
from vouchgate.ingest.claims.decision import Looked, RejectedBefore, Suggested
from vouchgate.ingest.claims.likeness import SimilarMemory
from vouchgate.ingest.claims.memory import Memory
from vouchgate.ingest.claims.people import Principal
from vouchgate.ingest.claims.waiting import PendingMemory, ReviewStatus
from vouchgate.ingest.rules import Rule
from vouchgate.ingest.scoring.priority import explain
from vouchgate.review.answers import (
    AlreadyDecided,
    ApprovalRefused,
    Approved,
    ItemChanged,
    NotFound,
    NotUndoable,
    Objected,
    Rejected,
    Removed,
    Undone,
    Voted,
)
from vouchgate.review.rules import Act
from vouchgate.server import rulings as acts
from vouchgate.server.state import service_of
from vouchgate.service import Service
from vouchgate.storage.errors import StorageError
from vouchgate.storage.identity.names import MAX_NAME_CHARACTERS
from vouchgate.storage.queue.pending import CURSOR, Order, QueueFilter, cursor_of
from vouchgate.storage.queue.query import Query as ItemQuery
from vouchgate.storage.queue.query import QueryError, parse
from vouchgate.storage.queue.votes import Vote
from vouchgate.wire import ApproveIn, OwnerId, RejectIn, Text, UndoIn, Wire, WireOut

router = APIRouter(prefix="/v1/reviews", route_class=JsonRoute, tags=["reviews"])

ReviewReader = Annotated[Principal, Depends(caller(Act.READ_REVIEWS))]
RulingReader = Annotated[Principal, Depends(caller(Act.READ_RULINGS))]
Reviewer = Annotated[Principal, Depends(caller(Act.REVIEW))]


def query_of(typed: str | None, text: str | None = None) -> ItemQuery:
    """The query that was typed, with all words of `text`. Raises a problem (422) that says what is wrong with it."""
    now = datetime.now(UTC)
    try:
        return ItemQuery(parse(typed or "", now).terms + parse(text or "", now, keys=False).terms)
    except QueryError as error:
        raise ProblemError(422, "invalid_query", str(error)) from error


ItemId = Annotated[Text, Field(min_length=1, max_length=100)]


class ReviewPage(WireOut):
    """Items in the order asked for; `next` is the cursor of the following page, null on the last."""

    items: list[PendingMemory]
    next: str | None


class ReviewOut(PendingMemory):
    """An item with what a reviewer wants to know of it.

    `similar`: the stored memories that were near its claim when it was sent, nearest first; null when that was
    not looked for or could not be found out. `suggested`: documents of the repositories that may say so, or say
    otherwise, of a claim that cites nothing; `looked`: where such were looked for. `priority`: why it stands where it
    does in the queue, the weightiest first; empty once it is decided. `needed`: how many must approve it; `votes` has
    every vote, of which those of the item's `version` count, `asked` the names of those whose approvals do, if not
    every reviewer's, and `stand_ins` who approves in the stead of whom of these. Left out where there is none: these
    three; `suggested` and `looked`; `next_check`, when its sources
    are read again by themselves; `rejection`, which its owner gave a claim in the same words (`rejected_before`);
    `undo_until`, from when on the decision cannot be taken back.
    """

    similar: tuple[SimilarMemory, ...] | None
    needed: int
    asked: tuple[str, ...] = Field(exclude_if=lambda names: not names)
    stand_ins: tuple[tuple[str, str], ...] = Field(exclude_if=lambda pairs: not pairs)
    votes: tuple[Vote, ...] = Field(exclude_if=lambda cast: not cast)
    suggested: tuple[Suggested, ...] = Field(default=(), exclude_if=lambda found: not found)
    looked: tuple[Looked, ...] = Field(default=(), exclude_if=lambda looks: not looks)
    priority: tuple[str, ...]
    next_check: datetime | None = Field(default=None, exclude_if=lambda time: time is None)
    rejection: RejectedBefore | None = Field(default=None, exclude_if=lambda found: found is None)
    undo_until: datetime | None = Field(default=None, exclude_if=lambda time: time is None)

    @classmethod
    def of(cls, service: Service, item: PendingMemory, now: datetime) -> Self:
        """The item with what is known of it now."""
        queue, policy = service.queue, service.policy.queue
        decision, until = queue.decision_of(item), queue.undo_until(item)
        waits, cast = item.status is ReviewStatus.PENDING, queue.votes_of(item, now)
        return cls(
            **dict(item),
            needed=cast.required.approvals,
            asked=cast.required.asked,
            stand_ins=cast.required.stand_ins,
            votes=cast.votes,
            similar=None if decision is None else decision.similar,
            suggested=() if decision is None else decision.suggested,
            looked=() if decision is None else decision.looked,
            priority=tuple(explain(item, policy.head_start_days, now)) if waits else (),
            next_check=queue.next_check(item),
            rejection=queue.rejected_before(item),
            undo_until=until if until is not None and until > now else None,
        )


class ApprovedOut(WireOut):
    """The item as it now is, and the memory it became; of a removal the memory that was retracted, null when the
    gate never had it."""

    item: PendingMemory
    memory: Memory | None


class VotedOut(WireOut):
    """The item, which waits on: `given` of the `needed` approvals are there. Of an objection, `given` is 0."""

    item: PendingMemory
    given: int
    needed: int


class RejectedOut(WireOut):
    """The item as it now is."""

    item: PendingMemory


class UndoneOut(WireOut):
    """The item, which waits again, with the ids of the memory that was `retracted` and of the one that is in force
    again (`restored`), null where there was none."""

    item: PendingMemory
    retracted: str | None
    restored: str | None


class ApproveRow(ApproveIn):
    """An approval in a batch."""

    action: Literal["approve"]
    id: ItemId


class RejectRow(RejectIn):
    """A rejection in a batch."""

    action: Literal["reject"]
    id: ItemId


class UndoRow(UndoIn):
    """A decision taken back in a batch."""

    action: Literal["undo"]
    id: ItemId


class ReviewBatchIn(Wire):
    """Several acts; each stands for itself."""

    items: Annotated[
        list[Annotated[ApproveRow | RejectRow | UndoRow, Field(discriminator="action")]],
        Field(min_length=1, max_length=acts.MOST),
    ]


DoneOut = ApprovedOut | UndoneOut | VotedOut | RejectedOut


class ReviewBatchOut(WireOut):
    """One entry an act, in the order sent: what the single call would have answered as its body."""

    results: list[DoneOut | Problem]


_BATCH: TypeAdapter[ReviewBatchOut] = TypeAdapter(ReviewBatchOut)


@router.get("", responses=problem_responses())
def list_reviews(
    request: Request,
    principal: RulingReader,
    *,
    user_id: Annotated[OwnerId | None, Query()] = None,
    status: ReviewStatus = ReviewStatus.PENDING,
    order: Order = "priority",
    rule: Rule | None = None,
    submitted_by: Annotated[Text | None, Query(max_length=MAX_NAME_CHARACTERS)] = None,
    cited: Annotated[Text | None, Query(max_length=4096)] = None,
    memory_type: MemoryType | None = None,
    text: Annotated[Text | None, Query(max_length=200)] = None,
    q: Annotated[str | None, Query(description="A query: docs/review.md, Finding items.")] = None,
    after: Annotated[str | None, Query(pattern=CURSOR)] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 50,
) -> ReviewPage:
    """The items of every owner that the caller rules for or audits by name, or of the one that `user_id` names; what
    presses most first unless another order is asked for. What is snoozed or sent back is left out, unless `q`
    asks for it."""
    wanted = QueueFilter(
        status=status,
        rule=rule,
        sender=submitted_by,
        cited=cited,
        memory_type=memory_type,
        query=query_of(q, text),
        order=order,
        after=after,
        limit=limit,
    )
    if principal.any_owner and user_id is None:
        raise ProblemError(422, "owner_needed", "Name the owner whose items to list, with `user_id`.")
    items = service_of(request).queue.search(narrowed(principal, user_id), wanted)
    return ReviewPage(items=items, next=cursor_of(items[-1], order) if len(items) == limit else None)


@router.get("/{item_id}", responses=problem_responses(404, 410))
def get_review(request: Request, item_id: str, principal: RulingReader) -> ReviewOut:
    """One item with the version an act must name, why it stands where it does, and what is similar. Its decision
    has the evidence."""
    service = service_of(request)
    item = service.queue.get_by_id(principal, item_id)
    if item is None:
        raise erased_or_not_found(request, principal, item_id, "review")
    return ReviewOut.of(service, item, datetime.now(UTC))


@router.post(
    "/{item_id}/approve",
    responses=problem_responses(404, 409, body=True),
    response_model=ApprovedOut | VotedOut,
)
async def approve(request: Request, item_id: str, sent: ApproveIn, principal: Reviewer) -> DoneOut:
    """Stores the claim, or counts the approval where more than one is needed. Its sources are looked at again first,
    duplicates in the same transaction: an item whose source has turned out otherwise is stale."""
    row = acts.Approve(item_id, sent.version, sent.note, sent.supersede, sent.content, sent.over)
    return await _act(request, principal, row)


@router.post(
    "/{item_id}/reject",
    responses=problem_responses(404, 409, body=True),
    response_model=VotedOut | RejectedOut,
)
async def reject(request: Request, item_id: str, sent: RejectIn, principal: Reviewer) -> DoneOut:
    """Keeps the claim out, with the reason; where others approved it, voids their approvals instead."""
    return await _act(request, principal, acts.Reject(item_id, sent.version, sent.reason))


@router.post("/{item_id}/undo", responses=problem_responses(404, 409, body=True), response_model=UndoneOut)
async def undo(request: Request, item_id: str, sent: UndoIn, principal: Reviewer) -> DoneOut:
    """Takes an approval or a rejection back, for as long as the policy says: the item waits again."""
    return await _act(request, principal, acts.Undo(item_id, sent.version))


@router.post("/batch", responses=problem_responses(body=True), response_model=ReviewBatchOut)
async def review_batch(request: Request, sent: ReviewBatchIn, principal: Reviewer) -> Response:
    """Acts on several items. A stale, decided, foreign or unknown one spoils no other."""
    rows = [_row(row) for row in sent.items]
    answered = await acts.apply_acts(service_of(request), principal, rows)
    text = _BATCH.dump_json(ReviewBatchOut(results=[_act_result(answer) for answer in answered]))
    return Response(text, media_type="application/json")


def _row(sent: ApproveRow | RejectRow | UndoRow) -> acts.ReviewAct:
    match sent:
        case ApproveRow():
            return acts.Approve(sent.id, sent.version, sent.note, sent.supersede, sent.content, sent.over)
        case RejectRow():
            return acts.Reject(sent.id, sent.version, sent.reason)
        case UndoRow():
            return acts.Undo(sent.id, sent.version)


async def _act(request: Request, principal: Principal, row: acts.ReviewAct) -> DoneOut:
    (answer,) = await acts.apply_acts(service_of(request), principal, [row])
    return _done(answer)


def _act_result(answer: acts.ActOutcome) -> DoneOut | Problem:
    try:
        return _done(answer)
    except ClaimRefused as error:
        return Problem.model_validate(refused(error))
    except StorageError as error:
        return Problem.model_validate(unavailable(error))
    except ProblemError as error:
        return Problem.model_validate(error.body)


def _done(answer: acts.ActOutcome) -> DoneOut:
    """What was done; raises what stood against it."""
    match answer:
        case Approved() | Removed():
            return ApprovedOut(item=answer.item, memory=answer.memory)
        case Rejected():
            return RejectedOut(item=answer.item)
        case Voted():
            return VotedOut(item=answer.item, given=answer.given, needed=answer.needed)
        case Objected():
            return VotedOut(item=answer.item, given=0, needed=answer.needed)
        case Undone():
            return UndoneOut(item=answer.item, retracted=answer.retracted, restored=answer.restored)
        case ClaimRefused() | StorageError():
            raise answer
        case _:
            raise not_done(answer)


def not_done(
    answer: ApprovalRefused | NotUndoable | NotFound | ItemChanged | AlreadyDecided,
) -> ProblemError:
    """Why an act was not done. Nothing tells an item of another owner from one that does not exist."""
    match answer:
        case NotFound():
            return not_found("review")
        case ItemChanged():
            detail = "The item has changed since it was looked at; look again and name its present version."
            return ProblemError(409, "stale_version", detail, current=answer.current.model_dump(mode="json"))
        case AlreadyDecided():
            detail = f"The item is {answer.current.status.value} already."
            return ProblemError(
                409, "already_decided", detail, current=answer.current.model_dump(mode="json")
            )
        case ApprovalRefused():
            return ProblemError(
                409, answer.code, answer.message, conflicting_memory_id=answer.conflicting_memory_id
            )
        case NotUndoable():
            current = answer.current.model_dump(mode="json")
            return ProblemError(409, answer.code, answer.message, current=current, same_as=answer.same_as)
