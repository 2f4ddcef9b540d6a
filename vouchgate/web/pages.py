"""What every page shares: rendering it, the files beside it, and how it ends when it cannot be shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request
from sqlalchemy import Connection
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse, Response

from vouchgate.review.pages.render import STATIC, render
from vouchgate.storage.erasing import tombstones

FOR_EVER = "public, max-age=31536000, immutable"  # a year

router = APIRouter(include_in_schema=False)


class PageProblem(HTTPException):
    """Ends a request with a page that says in `sentence` what is wrong, and perhaps what to do."""

    def __init__(self, status: int, sentence: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status, sentence, dict(headers or {}))
        self.sentence = sentence


def gone(connection: Connection, item_id: str, owners: frozenset[str] | None, sentence: str) -> PageProblem:
    """That there is no such thing, in this sentence, or that it was erased, when and on which ground."""
    stone = tombstones.find(connection, item_id, owners=owners)
    return PageProblem(404, sentence) if stone is None else PageProblem(410, str(stone))


def html(
    request: Request,
    template: str,
    status: int = 200,
    *,
    headers: Mapping[str, str] | None = None,
    **context: Any,
) -> Response:
    """A page. Templates always have `visitor` (a `vouchgate.web.session.Visitor`, None when nobody is signed in),
    `standing` (what modes and stops say) and `asset`; all else is in `context`."""
    given = {"visitor": getattr(request.state, "visitor", None), "here": None, "waiting": None, **context}
    given["standing"] = getattr(request.state, "standing", ())
    return HTMLResponse(render(template, **given), status, dict(headers or {}))


@router.get("/review/")
async def home(request: Request) -> Response:
    """The queue, spelt in another way."""
    return RedirectResponse("/review", 303)


@router.get("/review/static/{name}")
async def static(request: Request, name: str) -> Response:
    """A file that pages refer to. Under the version in its address it never changes; under another, or none,
    it is asked for again each time, so that no cache keeps new content under an old address."""
    file = STATIC.get(name)
    if file is None:
        raise HTTPException(404)
    current = request.query_params.get("v") == file.version
    headers = {"Cache-Control": FOR_EVER if current else "no-cache"}
    return Response(file.content, media_type=file.media_type, headers=headers)
