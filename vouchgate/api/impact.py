"""What rests on a source."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request

from vouchgate.api.base import MAX_PAGE, JsonRoute, caller, problem_responses
from vouchgate.gate.incoming import owner_for
from vouchgate.ingest.claims.impact import Impact
from vouchgate.ingest.claims.people import Principal
from vouchgate.review.rules import Act
from vouchgate.review.trust.impact import impact_of
from vouchgate.server.state import service_of
from vouchgate.wire import OwnerId, Text

router = APIRouter(prefix="/v1/impact", route_class=JsonRoute, tags=["audit"])


@router.get("", responses=problem_responses())
def get_impact(
    request: Request,
    principal: Annotated[Principal, Depends(caller(Act.READ_IMPACT))],
    *,
    source: Annotated[Text, Query(min_length=1, max_length=2048)],
    user_id: Annotated[OwnerId | None, Query()] = None,
    after: Annotated[str | None, Query(pattern=r"^mem_[0-9a-f]{32}$")] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 50,
) -> Impact:
    """The memories and the waiting claims of one owner that rest on a source, alone or with others, and what was done
    since. A source is a citation in any spelling, a commit by its first seven digits or more, the address of a page as
    it was cited or where it ended, a host, a publisher, or a repository."""
    store, owner_id = service_of(request).store, owner_for(principal, user_id)
    return impact_of(store, owner_id, source, datetime.now(UTC), after=after, limit=limit)
