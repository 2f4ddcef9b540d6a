"""What became of claims that waited."""

from __future__ import annotations

from datetime import UTC, datetime

from fastapi import APIRouter, Request
from starlette.responses import Response

from vouchgate.ingest.claims.types import ReviewStatus
from vouchgate.review.pages.history import PATH, filter_choices, rows_of
from vouchgate.server.state import service_of
from vouchgate.storage.identity import tokens
from vouchgate.web.pages import PageProblem, html
from vouchgate.web.session import SignedIn

router = APIRouter(include_in_schema=False)

PAGE = 50


@router.get(PATH)
def history(request: Request, visitor: SignedIn) -> Response:
    """Items that do not wait any more, the last decided first."""
    service, now = service_of(request), datetime.now(UTC)
    text = request.query_params.get("status", "")
    if text and (text not in set(ReviewStatus) or text == ReviewStatus.PENDING):
        raise PageProblem(422, "This address names an ending that there is not.")
    status = ReviewStatus(text) if text else None
    after = request.query_params.get("after")
    items = service.queue.history(visitor.principal, status=status, after=after, limit=PAGE)
    with service.store.read() as connection:
        names = tokens.names(connection, {item.decided_by or "" for item in items})
    more = f"{PATH}?{'status=' + text + '&' if text else ''}after={items[-1].id}" if items else ""
    return html(
        request,
        "history.html",
        here="history",
        waiting=service.queue.facets(visitor.principal).waiting,
        kinds=filter_choices(status),
        rows=rows_of(items, names=names, policy=service.policy, now=now),
        next_href=more if len(items) == PAGE else None,
    )
