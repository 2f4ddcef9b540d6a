"""Keeping what is searched for under a name, and forgetting it."""

from __future__ import annotations

from datetime import UTC, datetime

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from vouchgate.review.attending import views
from vouchgate.review.attending.views import TooManyViews
from vouchgate.server.state import service_of
from vouchgate.storage.queue.query import QueryError
from vouchgate.storage.queue.views import MOST_VIEWS
from vouchgate.web.pages import PageProblem
from vouchgate.web.session import SignedIn, form, own_path, see_other

router = APIRouter(include_in_schema=False)

MOST_NAME = 60  # characters, as over the API


@router.post("/review/views")
async def change_views(request: Request, visitor: SignedIn) -> Response:
    """Keeps the search under the name that was typed, or forgets what has the name; then back to the list."""
    (fields, visitor), store = await form(request, visitor), service_of(request).store
    said, name = fields.get("do", ""), fields.get("name", "").strip()
    if said not in ("save", "forget") or not 0 < len(name) <= MOST_NAME:
        raise PageProblem(422, f"A name for a search has 1 to {MOST_NAME} characters.")
    if said == "forget":
        await run_in_threadpool(views.remove, store, visitor.principal, name)
    else:
        query, now = fields.get("q", ""), datetime.now(UTC)
        try:
            saved = await run_in_threadpool(views.save, store, visitor.principal, name, query, now)
        except QueryError as error:
            raise PageProblem(422, str(error)) from error
        if isinstance(saved, TooManyViews):
            raise PageProblem(409, f"You have {MOST_VIEWS} searches with a name; forget one first.")
    return see_other(request, own_path(fields.get("back")))
