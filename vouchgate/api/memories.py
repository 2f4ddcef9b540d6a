"""Where memories and their evidence are read, and where an owner takes one back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Self

from fastapi import APIRouter, Depends, Query, Request
from pydantic import Field
from sqlalchemy import Connection
from starlette.concurrency import run_in_threadpool

from vouchgate.api.base import (
    MAX_PAGE,
    JsonRoute,
    caller,
    erased_or_not_found,
    not_found,
    owners_in_scope,
    problem_responses,
)
from vouchgate.api.problems import ProblemError
from vouchgate.ingest.claims.claim import MemoryType, Source
from vouchgate.ingest.claims.decision import Confidence, Evidence, Label, ValidationResult
from vouchgate.ingest.claims.memory import Memory, MemoryStatus
from vouchgate.ingest.claims.people import Principal, Role
from vouchgate.review.answers import AlreadyGone, ApprovalRefused, NotFound, Retracted
from vouchgate.review.rules import Act
from vouchgate.review.vouching.confirming import confirm
from vouchgate.review.withheld import metadata
from vouchgate.review.withheld.private_pages import evidence_for
from vouchgate.server.state import service_of
from vouchgate.storage.claims import decisions, memories, searching
from vouchgate.storage.outgoing import deliveries
from vouchgate.storage.outgoing.deliveries import DeliveryRecord
from vouchgate.storage.queue import votes
from vouchgate.storage.queue.votes import Vote
from vouchgate.wire import OwnerId, Reason, Text, Time, WireOut

MOST_QUERY = 200  # characters

router = APIRouter(prefix="/v1/memories", route_class=JsonRoute, tags=["memories"])

MemoryReader = Annotated[Principal, Depends(caller(Act.READ_MEMORY))]
ConfirmingOwner = Annotated[Principal, Depends(caller(Act.REVIEW))]
RetractingOwner = Annotated[Principal, Depends(caller(Act.RETRACT))]


class MemoryOut(Memory):
    """A memory with what stores behind the gate were told of it, or are to be, oldest first; left out where that is
    nothing. See `/v1/deliveries`."""

    deliveries: tuple[DeliveryRecord, ...] = Field(default=(), exclude_if=lambda found: not found)

    @classmethod
    def of(cls, connection: Connection, principal: Principal, found: Sequence[Memory]) -> list[Self]:
        """The memories with their deliveries, in the order given, as the principal may read them."""
        by_memory = deliveries.of_memories(connection, found)
        shown = [metadata.memory_for(principal, memory) for memory in found]
        return [cls(**dict(memory), deliveries=by_memory[memory.id]) for memory in shown]


class MemoryPage(WireOut):
    """Memories, newest first, or the best of a search; `next` is the cursor of the following page, null on the last."""

    items: list[MemoryOut]
    next: str | None


class EvidenceOut(Evidence):
    """The evidence as it was when the memory was decided, and what is known since of its sources and of what they are
    shown to say; and the votes by which its owner's people let it in, for everybody but agents. These fields are left
    out while there is nothing."""

    stale_since: datetime | None = Field(default=None, exclude_if=lambda value: value is None)
    stale_reason: str | None = Field(default=None, exclude_if=lambda value: value is None)
    lowered_at: datetime | None = Field(default=None, exclude_if=lambda value: value is None)
    lowered_reason: str | None = Field(default=None, exclude_if=lambda value: value is None)
    votes: tuple[Vote, ...] = Field(default=(), exclude_if=lambda cast: not cast)


@router.get("", responses=problem_responses())
async def list_memories(
    request: Request,
    principal: MemoryReader,
    *,
    user_id: Annotated[OwnerId | None, Query()] = None,
    memory_type: MemoryType | None = None,
    confidence: Confidence | None = None,
    label: Label | None = None,
    source: Source | None = None,
    source_id: Annotated[Text | None, Query(max_length=2048)] = None,
    agent: Annotated[Text | None, Query(max_length=100)] = None,
    created_from: Time | None = None,
    created_to: Time | None = None,
    as_of: Time | None = None,
    q: Annotated[Text | None, Query(max_length=MOST_QUERY)] = None,
    text: Annotated[Text | None, Query(max_length=200)] = None,
    stale: bool | None = None,
    lowered: bool | None = None,
    status: Annotated[list[MemoryStatus] | None, Query()] = None,
    include_expired: bool = False,
    after: Annotated[str | None, Query(pattern=r"^mem_[0-9a-f]{32}$")] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 50,
) -> MemoryPage:
    """Active memories of the owners this token acts for, unless another status is asked for, or what was in force
    `as_of` a time. `q` ranks them by the words of a question, best first, in one page; else the newest are first."""
    if as_of is not None and (status or include_expired):
        raise ProblemError(
            422, "invalid_query", "`as_of` asks for what was in force then: leave `status` out."
        )
    if q is not None and after is not None:
        raise ProblemError(
            422, "invalid_query", "What `q` finds is one page, best first: ask for more with `limit`."
        )
    statuses = frozenset(status or [MemoryStatus.ACTIVE])
    if include_expired:
        statuses |= {MemoryStatus.EXPIRED}
    wanted = memories.MemoryFilter(
        owners=owners_in_scope(principal, user_id),
        memory_type=memory_type,
        confidence=confidence,
        label=label,
        source=source,
        source_id=source_id,
        agent=agent,
        created_from=created_from,
        created_to=created_to,
        as_of=as_of,
        q=q,
        text=text,
        stale=stale,
        lowered=lowered,
        statuses=statuses,
        after=after,
        limit=limit,
    )
    service = service_of(request)
    meaning = await service.gate.embed(q)

    def read() -> list[MemoryOut]:
        with service.store.browse() as connection:
            found = searching.find(connection, wanted, datetime.now(UTC), meaning)
            return MemoryOut.of(connection, principal, found)

    try:
        items = await run_in_threadpool(read)
    except searching.TooManyOwners as error:
        raise ProblemError(422, "invalid_query", str(error)) from error
    return MemoryPage(items=items, next=items[-1].id if len(items) == limit and q is None else None)


def _memory(request: Request, memory_id: str, principal: Principal) -> Memory:
    with service_of(request).store.browse() as connection:
        memory = memories.get(
            connection, memory_id, datetime.now(UTC), owners=owners_in_scope(principal, None)
        )
    if memory is None:
        raise erased_or_not_found(request, principal, memory_id, "memory")
    return memory


@router.get("/{memory_id}", responses=problem_responses(404, 410))
def get_memory(request: Request, memory_id: str, principal: MemoryReader) -> MemoryOut:
    """One memory, whatever its status."""
    memory = _memory(request, memory_id, principal)
    with service_of(request).store.browse() as connection:
        return MemoryOut.of(connection, principal, [memory])[0]


@router.get("/{memory_id}/evidence", responses=problem_responses(404, 410))
def get_evidence(request: Request, memory_id: str, principal: MemoryReader) -> EvidenceOut:
    """What the decision that let this memory in rests on, and whether a source went away or changed since."""
    memory = _memory(request, memory_id, principal)
    with service_of(request).store.browse() as connection:
        found = decisions.get(connection, memory.decision_id, owners=frozenset({memory.owner_id}))
        cast = votes.of_memory(connection, memory.owner_id, memory.id)
    if found is None:
        raise not_found("evidence")
    evidence = evidence_for(principal, ValidationResult.model_validate_json(found).evidence)
    evidence = metadata.evidence_for(principal, evidence, memory)
    since = ("stale_since", "stale_reason", "lowered_at", "lowered_reason")
    shown = () if principal.role is Role.AGENT else tuple(cast)
    return EvidenceOut(**dict(evidence), votes=shown, **{name: getattr(memory, name) for name in since})


@router.post("/{memory_id}/confirm", responses=problem_responses(404, 409))
async def confirm_memory(request: Request, memory_id: str, principal: ConfirmingOwner) -> Memory:
    """Says that a memory still holds: it is confirmed now, and not stale any more for what is known by now."""
    store, policy = service_of(request).store, service_of(request).policy
    answer = await run_in_threadpool(lambda: confirm(store, principal, memory_id, policy, datetime.now(UTC)))
    return _done(answer)


@router.delete("/{memory_id}", responses=problem_responses(404, 409))
async def retract_memory(
    request: Request,
    memory_id: str,
    principal: RetractingOwner,
    reason: Annotated[Reason, Query()] = "retracted by its owner",
) -> Memory:
    """Takes a memory back. It stays readable as retracted, with the reason; nothing is deleted."""
    queue = service_of(request).queue
    answer = await run_in_threadpool(
        lambda: queue.retract(principal, memory_id, reason=reason, now=datetime.now(UTC))
    )
    return _done(answer.memory if isinstance(answer, Retracted) else answer)


def _done(answer: Memory | NotFound | AlreadyGone | ApprovalRefused) -> Memory:
    """The memory that was acted on. Raises ProblemError when nothing was done."""
    match answer:
        case Memory():
            return answer
        case NotFound():
            raise not_found("memory")
        case ApprovalRefused():
            raise ProblemError(409, answer.code, answer.message)
        case AlreadyGone():
            raise ProblemError(409, "not_active", f"The memory is {answer.memory.status.value} already.")
