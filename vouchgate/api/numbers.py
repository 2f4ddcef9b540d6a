"""The figures of an owner's claims and queue."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request

from vouchgate.api.base import JsonRoute, caller, narrowed, problem_responses
from vouchgate.ingest.claims.people import Principal
from vouchgate.review.numbers import DAYS, MOST_DAYS, Numbers
from vouchgate.review.rules import Act
from vouchgate.server.state import service_of
from vouchgate.wire import OwnerId

router = APIRouter(prefix="/v1/numbers", route_class=JsonRoute, tags=["reviews"])


@router.get("", responses=problem_responses())
def get_numbers(
    request: Request,
    principal: Annotated[Principal, Depends(caller(Act.READ_REVIEWS))],
    *,
    user_id: Annotated[OwnerId | None, Query()] = None,
    days: Annotated[int, Query(ge=1, le=MOST_DAYS)] = DAYS,
) -> Numbers:
    """What came in and what was cleared, by day (UTC), agent and reason; how long it waited, what spot checks said and
    what standing rulings did. Of all the owners that the reviewer is, together, unless one is named."""
    return service_of(request).queue.numbers(narrowed(principal, user_id), datetime.now(UTC), days)
