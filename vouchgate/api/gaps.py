"""What was asked and not found: claims that wait because no document states them, with where was looked."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request

from vouchgate.api.base import MAX_PAGE, JsonRoute, caller, narrowed, problem_responses
from vouchgate.ingest.claims.claim import MemoryType
from vouchgate.ingest.claims.decision import Looked, Suggested
from vouchgate.ingest.claims.people import Principal
from vouchgate.ingest.rules import Rule
from vouchgate.review.rules import Act
from vouchgate.server.state import service_of
from vouchgate.storage.queue.pending import CURSOR, QueueFilter, cursor_of
from vouchgate.wire import OwnerId, WireOut

router = APIRouter(prefix="/v1/gaps", route_class=JsonRoute, tags=["gaps"])

ReviewReader = Annotated[Principal, Depends(caller(Act.READ_REVIEWS))]


class Gap(WireOut):
    """A claim that waits, the looks for what could vouch for it, and what came nearest."""

    queue_id: str
    content: str
    memory_type: MemoryType
    asked_at: datetime
    looked: tuple[Looked, ...]
    suggested: tuple[Suggested, ...]


class GapPage(WireOut):
    """Gaps in the order of the queue. `next` is the cursor of the following page, null on the last; a page may have
    fewer than asked for, because not every claim that waits was looked for."""

    items: list[Gap]
    next: str | None


@router.get("", responses=problem_responses())
def list_gaps(
    request: Request,
    principal: ReviewReader,
    *,
    user_id: Annotated[OwnerId | None, Query()] = None,
    rule: Literal["ungrounded", "citation_unknown"] = "ungrounded",
    after: Annotated[str | None, Query(pattern=CURSOR)] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 50,
) -> GapPage:
    """What was asked and not found, of claims that cite nothing, or of those whose citations could not be read."""
    queue = service_of(request).queue
    items = queue.search(narrowed(principal, user_id), QueueFilter(rule=Rule(rule), after=after, limit=limit))
    decided = [(item, queue.decision_of(item)) for item in items]
    gaps = [
        Gap(
            queue_id=item.id,
            content=item.content,
            memory_type=item.memory_type,
            asked_at=answer.evidence.capture_time,
            looked=answer.looked,
            suggested=answer.suggested,
        )
        for item, answer in decided
        if answer is not None and answer.looked
    ]
    return GapPage(items=gaps, next=cursor_of(items[-1], "priority") if len(items) == limit else None)
