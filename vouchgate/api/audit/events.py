"""Where auditors read the log."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request

from vouchgate.api.base import MAX_PAGE, JsonRoute, caller, owners_in_scope, problem_responses
from vouchgate.ingest.claims.log import LogEntry
from vouchgate.ingest.claims.people import Principal
from vouchgate.review.rules import Act
from vouchgate.server.state import service_of
from vouchgate.storage.identity.names import MAX_NAME_CHARACTERS
from vouchgate.storage.log import chain as log
from vouchgate.storage.queue import rulings
from vouchgate.storage.queue.rulings import Ruling, RulingFilter
from vouchgate.wire import OwnerId, Text, Time, WireOut

router = APIRouter(prefix="/v1/audit", route_class=JsonRoute, tags=["audit"])

_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
Auditor = Annotated[Principal, Depends(caller(Act.READ_EVENTS))]


class EventPage(WireOut):
    """Log entries by owner and number. `next` is where to go on: it is set on the last page too, so that a
    reader who follows one owner can come back for what was added since; null only when nothing came."""

    items: list[LogEntry]
    next: str | None


def _cursor(text: str | None) -> tuple[str, int] | None:
    """(owner id, number) of the last entry seen; of rulings the number is a time in microseconds."""
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
    with service_of(request).store.browse() as connection:
        items = log.events(connection, owners, after=_cursor(after), limit=limit)
    return EventPage(items=items, next=f"{items[-1].seq}:{items[-1].owner_id}" if items else None)


class RulingPage(WireOut):
    """Rulings by owner and time; `next` is where to go on, null when nothing follows. What one act did is on one page,
    so a page can be longer than asked for."""

    items: list[Ruling]
    next: str | None


@router.get("/reviews", responses=problem_responses())
def list_rulings(
    request: Request,
    principal: Auditor,
    *,
    user_id: Annotated[OwnerId | None, Query()] = None,
    since: Annotated[Time | None, Query(alias="from")] = None,
    until: Annotated[Time | None, Query(alias="to")] = None,
    reviewer: Annotated[Text | None, Query(max_length=MAX_NAME_CHARACTERS)] = None,
    after: Annotated[str | None, Query(max_length=300, pattern=r"^[0-9]{1,17}:[^\x00]*$")] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 100,
) -> RulingPage:
    """Who approved, rejected, voted on or let go of what, when, after how long a look, alone or in bulk, and what
    became of it. Of all the owners that the caller audits, unless one is named."""
    last = _cursor(after)
    wanted = RulingFilter(
        owners=owners_in_scope(principal, user_id),
        since=since,
        until=until,
        reviewer=reviewer,
        after=None if last is None else (last[0], _EPOCH + _MICROSECOND * last[1]),
    )
    items: list[Ruling] = []
    with service_of(request).store.browse() as connection:
        for together in rulings.walk(connection, wanted):
            if len(items) >= limit:
                at = (items[-1].at - _EPOCH) // _MICROSECOND
                return RulingPage(items=items, next=f"{at}:{items[-1].owner_id}")
            items += together
    return RulingPage(items=items, next=None)
