"""The sessions of the visitor: which there are, and ending others."""

from __future__ import annotations

from datetime import UTC, datetime

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from vouchgate.review.pages.wording.times import moment
from vouchgate.server.state import service_of
from vouchgate.storage.identity import sessions
from vouchgate.web.pages import PageProblem, html
from vouchgate.web.session import Anybody, form, require_recent, see_other, waiting_for

router = APIRouter(include_in_schema=False)

PATH = "/review/sessions"
# How a session began, in words; None: before it was kept.
HOW = {"token": "with a token", "link": "with a link", "oidc": "at the provider", None: "in a way not known"}


@router.get(PATH)
def listing(request: Request, visitor: Anybody) -> Response:
    """All that are open, whoever's token of the same person began them."""
    service, now = service_of(request), datetime.now(UTC)
    with service.store.read() as connection:
        found = sessions.listing(connection, now, visitor.principal)
    return html(
        request,
        "sessions.html",
        here="sessions",
        waiting=waiting_for(request, visitor),
        rows=found,
        this=sessions.session_id(visitor.secret),
        how=HOW,
        since=moment,
        now=now,
    )


@router.post(PATH)
async def end(request: Request, visitor: Anybody) -> Response:
    """Ends one other session, or all others."""
    fields, visitor = await form(request, visitor)
    store, now = service_of(request).store, datetime.now(UTC)
    require_recent(visitor, PATH)
    wanted = fields.get("end", "")
    only = None if wanted == "others" else wanted
    ended = await run_in_threadpool(
        lambda: sessions.end_others(store, visitor.principal, visitor.secret, only=only, now=now)
    )
    if only is not None and not ended:
        raise PageProblem(404, "There is no such session of yours, or not any more.")
    return see_other(request, PATH)
