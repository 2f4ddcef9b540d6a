"""Where auditors read the log."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from pydantic import BaseModel

from vouchgate.api.base import MAX_PAGE, JsonRoute, caller, owners_in_scope, problem_responses
from vouchgate.ingest.claims.log import LogEntry
from vouchgate.ingest.claims.people import Principal
from vouchgate.review.rules import Act
from vouchgate.server.state import service_of
from vouchgate.storage.log import chain as log
from vouchgate.wire import OwnerId

router = APIRouter(prefix="/v1/audit", route_class=JsonRoute, tags=["audit"])

Auditor = Annotated[Principal, Depends(caller(Act.READ_EVENTS))]


class EventPage(BaseModel):
    """Log entries by owner and number. `next` is where to go on: it is set on the last page too, so that a
    reader who follows one owner can come back for what was added since; null only when nothing came."""

    items: list[LogEntry]
    next: str | None


def _cursor(text: str | None) -> tuple[str, int] | None:
    """(owner id, number) of the last entry seen."""
    number, _, owner = (text or "").partition(":")
    return (owner, int(number)) if text else None


@router.get("/events", responses=problem_responses())
def list_events(
    request: Request,
    principal: Auditor,
    user_id: Annotated[OwnerId | None, Query()] = None,
    after: Annotated[str | None, Query(max_length=300, pattern=r"^[0-9]{1,18}:[^\x00]*$")] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 100,
) -> EventPage:
    """The append-only log. Each owner's entries are numbered without a gap and chained by digest."""
    owners = owners_in_scope(principal, user_id)
    with service_of(request).store.read() as connection:
        items = log.events(connection, owners, after=_cursor(after), limit=limit)
    return EventPage(items=items, next=f"{items[-1].seq}:{items[-1].owner_id}" if items else None)
