"""How people ruled, for auditors and admins. Nothing here writes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice

from fastapi import APIRouter, Request
from starlette.responses import Response

from vouchgate.gate.incoming import owner_for
from vouchgate.ingest.scoring.priority import span
from vouchgate.review.attending.reviewers import reviewers_of
from vouchgate.review.pages.history import FilterChoice
from vouchgate.review.pages.numbers import CHOICES
from vouchgate.review.rules import Act, is_allowed
from vouchgate.server.state import service_of
from vouchgate.storage.identity.names import valid_owner_id
from vouchgate.storage.queue import rulings
from vouchgate.storage.queue.rulings import RulingFilter
from vouchgate.web.pages import PageProblem, html
from vouchgate.web.session import AUDIT, Reading

router = APIRouter(include_in_schema=False)

_MOST = 100_000  # acts that one page counts: some 5 s


@router.get(AUDIT)
def reviewers(request: Request, visitor: Reading) -> Response:
    """Reviewers of the owners that the visitor audits, or of one of them, over so many days."""
    principal, asked, now = visitor.principal, request.query_params, datetime.now(UTC)
    if not is_allowed(principal, Act.READ_EVENTS):
        raise PageProblem(403, "This page is for auditors and admins.")
    days, owner = asked.get("days", str(CHOICES[-1])), asked.get("owner") or None
    if days not in map(str, CHOICES):
        raise PageProblem(422, "This page tells of 7, 14, 30 or 90 days.")
    if owner is not None and not valid_owner_id(owner):
        raise PageProblem(422, "No owner can have this name.")
    owners = None if principal.any_owner else principal.owners
    if owner is not None:
        owners = frozenset({owner_for(principal, owner)})
    with service_of(request).store.read() as connection:
        wanted = RulingFilter(owners=owners, since=now - timedelta(days=int(days)))
        acts = rulings.walk(connection, wanted)
        found, complete = reviewers_of(islice(acts, _MOST)), next(acts, None) is None
    return html(
        request,
        "audit.html",
        here="audit",
        reviewers=found,
        complete=complete,
        owner=owner,
        days=days,
        spans=tuple(FilterChoice(f"{each} days", str(each), str(each) == days) for each in CHOICES),
        look=lambda seconds: (
            "not known"
            if seconds is None
            else f"{seconds:.1f} s"
            if seconds < 60
            else span(timedelta(seconds=seconds))
        ),
    )
