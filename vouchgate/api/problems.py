"""Errors as RFC 9457 problem documents. A verdict about a claim is never one of these."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vouchgate.gate.incoming import ClaimRefused
from vouchgate.ingest.language.validation import plain_message
from vouchgate.storage.errors import ReadOnly, StorageError, StoreUnknown

log = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
MOST_SHOWN = 200  # characters of anything in an error that may have come from the sender


class Problem(BaseModel):
    """An error: `code` is a stable word to act on, `detail` a sentence for a human."""

    model_config = ConfigDict(extra="allow", defer_build=True)

    type: str = Field(description="`urn:vouchgate:problem:` and the code.")
    title: str
    status: int
    detail: str
    code: str
    errors: list[dict[str, Any]] | None = Field(
        default=None, description="What is wrong in the body, one by one."
    )


class ProblemError(HTTPException):
    """Ends a request with a problem document."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(status, detail, dict(headers or {}))
        self.body = problem(status, code, detail, **more)


def problem(status: int, code: str, detail: str, **more: Any) -> dict[str, Any]:
    """The body of a problem document."""
    return {
        "type": f"urn:vouchgate:problem:{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
        **more,
    }


def validation_errors(
    errors: Sequence[Any], prefix: tuple[str, ...] = (), model: Any = None
) -> list[dict[str, Any]]:
    """Where and what, without the value that was sent: it may be huge, hostile or secret. `model` is what it should
    have been."""
    found = []
    for error in errors[:20]:
        place, kind = (*prefix, *error["loc"]), error["type"]
        what = plain_message({**error, "loc": place[1:]}, model)  # without "body"
        if kind in ("model_type", "model_attributes_type"):  # one thing to the sender
            kind = "object_type"
        where = ".".join(map(str, place))
        # A field's name and a tag are the sender's own words, too: they are told back in part.
        found.append({"where": where[:MOST_SHOWN], "what": what[:MOST_SHOWN], "type": kind})
    return found


def invalid(found: Sequence[Any], prefix: tuple[str, ...] = (), model: Any = None) -> dict[str, Any]:
    """The problem document of a request that has not the shape described."""
    errors = validation_errors(found, prefix, model)
    detail = "; ".join(f"{item['where']}: {item['what']}" for item in errors[:3])
    return problem(422, "invalid_request", detail, errors=errors)


def refused(error: ClaimRefused) -> dict[str, Any]:
    """The problem document of a claim that cannot be looked at as sent."""
    return problem(error.status, error.code, str(error))


def unavailable(error: StorageError) -> dict[str, Any]:
    """The problem document of what could not be read or written now."""
    if isinstance(error, ReadOnly):
        return problem(503, "read_only", str(error))
    detail = "The database did not take this now; nothing was kept. Send it again."
    if isinstance(error, StoreUnknown):
        detail = "The database broke off; this may have been kept. Send it again: nothing is kept twice."
    return problem(503, "storage_unavailable", detail)


def _response(body: dict[str, Any], headers: Mapping[str, str] | None = None) -> JSONResponse:
    return JSONResponse(body, status_code=body["status"], headers=dict(headers or {}), media_type=MEDIA_TYPE)


def _allowed(app: FastAPI, path: str) -> str | None:
    """Every method of a described path; the framework itself names those of one of its routes only."""
    paths: dict[str, dict[str, Any]] = app.openapi()["paths"]
    fitting = (t for t in paths if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", t), path))
    methods = paths.get(path) or paths.get(next(fitting, ""))
    return ", ".join(method.upper() for method in sorted(methods)) if methods else None


class AnswerAtTheEnd:
    """Answers what is not answered when the service ends. It was cancelled, and would come as an error of ours, after
    which no client sends again."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        begun = scope["type"] != "http"

        async def note_and_send(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, note_and_send)
        except asyncio.CancelledError:
            if not begun:
                detail = "The service stops; this may have been kept. Send it again: nothing is kept twice."
                answer = _response(problem(503, "stopping", detail), {"Retry-After": "1"})
                await answer(scope, receive, send)
            raise


def install(app: FastAPI) -> None:
    """Turns every error of the app into a problem document."""

    @app.exception_handler(ProblemError)
    async def _problem(request: Request, error: ProblemError) -> JSONResponse:
        return _response(error.body, error.headers)

    @app.exception_handler(ClaimRefused)
    async def _refused(request: Request, error: ClaimRefused) -> JSONResponse:
        return _response(refused(error))

    @app.exception_handler(StorageError)
    async def _storage(request: Request, error: StorageError) -> JSONResponse:
        if isinstance(error, ReadOnly):
            return _response(unavailable(error))
        log.error("storage: %s", error)
        return _response(unavailable(error), {"Retry-After": "1"})

    @app.exception_handler(ClientDisconnect)
    async def _gone(request: Request, error: ClientDisconnect) -> JSONResponse:
        # Nobody reads this. Without it, every client that breaks off would be logged as an error of ours.
        return _response(problem(400, "body_incomplete", "The connection was closed within the body."))

    @app.exception_handler(RequestValidationError)
    async def _invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        body = getattr(request.scope.get("route"), "body_field", None)
        return _response(invalid(error.errors(), model=body and body.field_info.annotation))

    @app.exception_handler(HTTPException)
    async def _http(request: Request, error: HTTPException) -> JSONResponse:
        code = HTTPStatus(error.status_code).phrase.lower().replace(" ", "_").replace("'", "")
        headers = dict(error.headers or {})
        if error.status_code == 405 and (allowed := _allowed(app, request.url.path)):
            headers = {"Allow": allowed}
        return _response(problem(error.status_code, code, str(error.detail)), headers)

    @app.exception_handler(Exception)
    async def _unexpected(request: Request, error: Exception) -> JSONResponse:
        log.error("unexpected error answering %s", request.url.path, exc_info=error)
        return _response(
            problem(500, "internal_error", "Something went wrong here; the service's log has the cause.")
        )
