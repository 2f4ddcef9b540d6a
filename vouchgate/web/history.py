"""What became of claims that waited."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from fastapi import APIRouter, Request
from starlette.responses import Response

from vouchgate.ingest.claims.waiting import ReviewStatus
from vouchgate.review.pages.history import PATH, filter_choices, href, rows_of
from vouchgate.review.pages.wording.text import pieces
from vouchgate.server.state import service_of
from vouchgate.storage.claims import memories
from vouchgate.storage.claims.memories import storable
from vouchgate.storage.identity import tokens
from vouchgate.storage.queue.history import HistoryFilter
from vouchgate.storage.queue.query import NO_QUERY, Query
from vouchgate.web.listing import MOST_KEY, parse_typed
from vouchgate.web.pages import PageProblem, html
from vouchgate.web.session import SignedIn, waiting_for

router = APIRouter(include_in_schema=False)

PAGE = 50
_FIELDS = ("q", "by", "since", "until", "status")


@router.get(PATH)
def history(request: Request, visitor: SignedIn) -> Response:
    """Items that do not wait any more, the last decided first."""
    service, now = service_of(request), datetime.now(UTC)
    query = {name: request.query_params.get(name, "").strip() for name in _FIELDS}
    terms, fault = parse_typed(query["q"], now)
    wanted = _wanted(query, terms or NO_QUERY, now)
    after = request.query_params.get("after")
    items = []
    if terms is not None:
        items = service.queue.history(visitor.principal, wanted=wanted, after=after, limit=PAGE + 1)
    items, more = items[:PAGE], len(items) > PAGE
    deciders = service.queue.deciders(visitor.principal)
    with service.store.browse() as connection:
        names = tokens.names(connection, {*deciders, *(item.decided_by or "" for item in items)})
        became = {item.memory_id for item in items if item.memory_id is not None}
        stored = memories.by_ids(connection, visitor.owner_id, became, now)
    return html(
        request,
        "history.html",
        422 if fault else 200,
        here="history",
        waiting=waiting_for(request, visitor),
        kinds=filter_choices(wanted.status, query),
        query=query,
        fault=pieces(fault),
        reviewers=[(one, names[one]) for one in deciders if one in names],
        rows=rows_of(items, names=names, stored=stored, policy=service.policy, now=now),
        next_href=href(query, after=items[-1].id) if more else None,
    )


def _wanted(query: Mapping[str, str], terms: Query, now: datetime) -> HistoryFilter:
    """What an address asks for. Raises PageProblem (422) for a value that makes no sense."""
    status = query["status"]
    if status and (status not in set(ReviewStatus) or status == ReviewStatus.PENDING):
        raise PageProblem(422, "This address names an ending that there is not.")
    if len(query["by"]) > MOST_KEY or not storable(query["by"]):
        raise PageProblem(422, "This address names nobody who can have decided anything.")
    return HistoryFilter(
        status=ReviewStatus(status) if status else None,
        by=query["by"] or None,
        since=day_of(query["since"]),
        until=day_of(query["until"], later=1),
        query=terms,
        now=now,
    )


def day_of(text: str, *, later: int = 0) -> datetime | None:
    """The beginning of a day (UTC), or of the one so many days `later`; None for no text. Raises PageProblem (422),
    also for one that the calendar does not have."""
    if not text:
        return None
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC) + timedelta(days=later)
    except (ValueError, OverflowError) as error:
        raise PageProblem(422, "A day is written like 2026-11-22, and lies before the year 10000.") from error
