"""Where an agent reads what became of its own claims that had to wait."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Self

from fastapi import APIRouter, Depends, Query, Request
from pydantic import BaseModel

from vouchgate.api.base import MAX_PAGE, JsonRoute, caller, owners_in_scope, problem_responses
from vouchgate.gate.incoming import owner_for
from vouchgate.ingest.claims.types import MemoryType, PendingMemory, Principal, ReviewStatus
from vouchgate.review.rules import Act
from vouchgate.server.state import service_of
from vouchgate.storage.queue import pending
from vouchgate.storage.queue.pending import QueueFilter
from vouchgate.wire import OwnerId

router = APIRouter(prefix="/v1", route_class=JsonRoute, tags=["claims"])

Submitter = Annotated[Principal, Depends(caller(Act.READ_OWN_PENDING))]


class OwnPending(BaseModel):
    """A queued claim as its agent may see it: not who decided, and not what the owner is shown beside it.

    `content` is the text as the agent sent it, also where the owner stored another one (`memory_id` has that).
    `seen` is how often the claim came while it waited, from anybody. `note` is what its owner said to it.
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

    @classmethod
    def of(cls, item: PendingMemory) -> Self:
        """The agent's view of an item."""
        return cls(queue_id=item.id, **{name: value for name, value in item if name in cls.model_fields})


class OwnPendingPage(BaseModel):
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
        after=after,
        limit=limit,
    )
    with service_of(request).store.read() as connection:
        items = pending.search(connection, wanted)
    return OwnPendingPage(
        items=[OwnPending.of(item) for item in items],
        next=items[-1].id if len(items) == limit else None,
    )
