"""What came in and what was cleared, in figures."""

from __future__ import annotations

from datetime import UTC, datetime

from fastapi import APIRouter, Request
from starlette.responses import Response

from vouchgate.review.numbers import DAYS
from vouchgate.review.pages.numbers import CHOICES, COLUMNS, PATH, numbers_view
from vouchgate.server.state import service_of
from vouchgate.web.pages import PageProblem, html
from vouchgate.web.session import SignedIn, waiting_for

router = APIRouter(include_in_schema=False)


@router.get(PATH)
def numbers(request: Request, visitor: SignedIn) -> Response:
    """The figures of the visitor's owner, or of all their owners together."""
    service, now, asked = service_of(request), datetime.now(UTC), request.query_params
    days, every = asked.get("days", str(DAYS)), "all" in asked
    if days not in map(str, CHOICES):
        raise PageProblem(422, "This page tells of 7, 14, 30 or 90 days.")
    principal = visitor.principal
    if every:
        principal = principal.model_copy(update={"owners": frozenset(visitor.owners)})
    found = service.queue.numbers(principal, now, int(days))
    return html(
        request,
        "numbers.html",
        here="numbers",
        waiting=waiting_for(request, visitor),
        numbers=found,
        columns=COLUMNS,
        several=len(visitor.owners) > 1,
        view=numbers_view(found, every=every, now=now),
    )
