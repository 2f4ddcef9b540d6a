"""How people ruled, for auditors."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice

from fastapi import APIRouter, Request
from starlette.responses import Response

from vouchgate.ingest.scoring.priority import span
from vouchgate.review.attending.reviewers import reviewers_of
from vouchgate.review.audit.story import PATH
from vouchgate.review.pages.history import FilterChoice
from vouchgate.review.pages.numbers import CHOICES
from vouchgate.server.state import service_of
from vouchgate.storage.claims.memories import storable
from vouchgate.storage.queue import rulings
from vouchgate.storage.queue.rulings import RulingFilter
from vouchgate.web.audit.access import Auditing, owners_of
from vouchgate.web.pages import PageProblem, html

router = APIRouter(include_in_schema=False)

_MOST = 100_000  # acts that one page counts: seconds


@router.get(f"{PATH}/rulings")
def reviewers(request: Request, visitor: Auditing, owner: str = "") -> Response:
    """Reviewers of the owners that the visitor audits, or of one of them, over so many days."""
    now, days = datetime.now(UTC), request.query_params.get("days", str(CHOICES[-1]))
    if days not in map(str, CHOICES) or not storable(owner):
        raise PageProblem(422, "This page tells of 7, 14, 30 or 90 days of an owner.")
    wanted = RulingFilter(owners=owners_of(visitor, owner), since=now - timedelta(days=int(days)))
    with service_of(request).store.browse() as connection:
        acts = rulings.walk(connection, wanted)
        found, complete = reviewers_of(islice(acts, _MOST)), next(acts, None) is None
    return html(
        request,
        "audit_rulings.html",
        here="audit-rulings",
        reviewers=found,
        complete=complete,
        owner=owner,
        spans=tuple(FilterChoice(f"{each} days", str(each), str(each) == days) for each in CHOICES),
        look=_look,
    )


def _look(seconds: float | None) -> str:
    if seconds is None:
        return "not known"
    return f"{seconds:.1f} s" if seconds < 60 else span(timedelta(seconds=seconds))
