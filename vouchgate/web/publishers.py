"""Publishers that the visitor trusts or bans, and the form for one more."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from vouchgate.ingest.claims.trust import PublisherTrust, Trust
from vouchgate.ingest.scoring.reputation import parse_publisher
from vouchgate.review.answers import ApprovalRefused
from vouchgate.review.pages.publishers import DAYS, PATH, TIERS, preview_view, publisher_views
from vouchgate.review.trust import publishers
from vouchgate.review.trust.publishers import MOST, TooManyPublishers
from vouchgate.server.state import service_of
from vouchgate.web.pages import PageProblem, html
from vouchgate.web.session import SignedIn, form, require_recent, see_other, waiting_for

router = APIRouter(include_in_schema=False)


@router.get(PATH)
def listing(request: Request, visitor: SignedIn) -> Response:
    """What the visitor says of publishers; of one that is named, what that would bear on."""
    service, now = service_of(request), datetime.now(UTC)
    wanted, seen = request.query_params.get("publisher"), None
    if wanted is not None:
        publisher = _parse(wanted)
        seen = preview_view(
            publisher,
            publishers.preview(
                service.store,
                visitor.principal,
                visitor.owner_id,
                publisher,
                policy=service.policy,
                detector=service.gate.examiner.detector,
                now=now,
            ),
        )
    said = publishers.listing(service.store, visitor.principal, now)
    return html(
        request,
        "publishers.html",
        here="publishers",
        waiting=waiting_for(request, visitor),
        preview=seen,
        days=DAYS,
        tiers=TIERS,
        rows=publisher_views([one for one in said if one.owner_id == visitor.owner_id], now),
    )


@router.post(PATH)
async def decide(request: Request, visitor: SignedIn) -> Response:
    """Trusts or bans a publisher, or takes that back."""
    fields, visitor = await form(request, visitor)
    store, policy, now = service_of(request).store, service_of(request).policy, datetime.now(UTC)
    publisher, trust, days = (
        _parse(fields.get("publisher", "")),
        fields.get("trust", ""),
        fields.get("days", ""),
    )
    who, owner_id = visitor.principal, visitor.owner_id
    require_recent(visitor, f"{PATH}?{urlencode({'publisher': publisher})}")
    if trust != "none" and not (trust in tuple(Trust) and days in map(str, DAYS)):
        raise PageProblem(422, "A publisher is trusted or banned, for a number of days that the page offers.")

    def work() -> TooManyPublishers | ApprovalRefused | PublisherTrust | bool:
        if trust == "none":
            return publishers.clear(store, who, owner_id, publisher, now)
        said = Trust(trust)
        return publishers.decide(
            store, who, owner_id, publisher, said, days=int(days), policy=policy, now=now
        )

    try:
        said = await run_in_threadpool(work)
    except PermissionError as error:
        raise PageProblem(403, str(error)) from error
    if isinstance(said, TooManyPublishers):
        raise PageProblem(409, f"You say something of {MOST} publishers already. Take one back first.")
    if isinstance(said, ApprovalRefused):
        raise PageProblem(409, said.message)
    return see_other(request, PATH)


def _parse(text: str) -> str:
    try:
        return parse_publisher(text)
    except ValueError as error:
        raise PageProblem(422, f"There is no such publisher: {error}.") from error
