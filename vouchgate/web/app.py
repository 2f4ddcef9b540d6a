"""The pages as an application of their own, which answers whatever is asked under /review. Apart from the API, because
all of it is for people: an error is a page too."""

from __future__ import annotations

import logging
from http import HTTPStatus
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.datastructures import State
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import RedirectResponse, Response
from starlette.routing import Match
from starlette.types import Scope

from vouchgate.gate.incoming import ClaimRefused
from vouchgate.storage.errors import ReadOnly, StorageError, StoreUnknown
from vouchgate.web import (
    attention,
    history,
    items,
    live,
    memories,
    numbers,
    oidc,
    pages,
    publishers,
    queue,
    sessions,
    sign_in,
    spot_checks,
    standing_rulings,
    views,
)
from vouchgate.web.audit import clearing
from vouchgate.web.audit import pages as audit
from vouchgate.web.audit import rulings as audit_rulings
from vouchgate.web.audit.access import own_page
from vouchgate.web.pages import PageProblem, html
from vouchgate.web.session import (
    HOME,
    SIGN_IN,
    AuditorsPage,
    SignInAgain,
    SignInNeeded,
    see_other,
    sign_in_address,
    sign_in_again_address,
)
from vouchgate.web.sign_in import Attempts

log = logging.getLogger(__name__)

_TITLES = {
    400: "That cannot be read",
    401: "Sign in first",
    403: "Not allowed",
    404: "Nothing here",
    405: "Not in this way",
    409: "Not as things stand",
    410: "Not here any more",
    413: "Too large",
    415: "Not in this form",
    422: "Not understood",
    429: "Too many attempts",
    500: "Something went wrong",
    503: "Not at the moment",
}
# What a page says that ends without a sentence of its own. Whether something exists is never part of it.
_SENTENCES = {
    400: "The request could not be read.",
    404: "There is no such page, or it is not yours to see.",
    405: "This address cannot be used in this way.",
    422: "The request does not have the form that was expected.",
    500: "Something went wrong here. The service's log has the cause.",
}


_ROUTERS = tuple(
    part.router
    for part in (
        pages,
        oidc,  # before what takes any word for a link
        sign_in,
        sessions,
        live,
        queue,
        items,
        attention,
        memories,
        history,
        spot_checks,
        publishers,
        standing_rulings,
        numbers,
        views,
        clearing,
        audit_rulings,  # before what takes any word for an id
        audit,
    )
)


def create_pages(state: State, shared: Path | None) -> FastAPI:
    """The application of the pages; it shares the state of the API's. In the folder several processes that serve one
    port count attempts to sign in together."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    app.state = state
    if state.sign_in_attempts is None:
        state.sign_in_attempts = Attempts(shared)
    _install_errors(app)
    for router in _ROUTERS:
        app.include_router(router)
    return app


def _allowed(scope: Scope) -> str:
    """Every method of an address; the framework itself names those of one of its routes only."""
    routes = [route for router in _ROUTERS for route in router.routes if isinstance(route, APIRoute)]
    fitting = [route for route in routes if route.matches(scope)[0] is not Match.NONE]
    return ", ".join(sorted({method for route in fitting for method in route.methods or ()}))


def _problem(
    request: Request,
    status: int,
    sentence: str,
    headers: dict[str, str] | None = None,
    onward: tuple[str, str] = ("To the queue", HOME),
) -> Response:
    title = _TITLES.get(status) or HTTPStatus(status).phrase
    return html(
        request, "problem.html", status, headers=headers, title=title, sentence=sentence, onward=onward
    )


def _install_errors(app: FastAPI) -> None:
    """Turns every error into a page."""

    @app.exception_handler(SignInNeeded)
    async def _sign_in(request: Request, error: SignInNeeded) -> Response:
        accepts = request.headers.get("accept", "")
        if request.method in ("GET", "HEAD") and not accepts.startswith("text/event-stream"):
            return RedirectResponse(sign_in_address(request), 303)
        sentence = "You are not signed in, or no longer. Nothing was done. Sign in, then repeat it."
        # RFC 9110 wants a challenge with a 401. There is none for cookies: this one says where the form is.
        challenge = {"WWW-Authenticate": f'Cookie form-action="{SIGN_IN}"'}
        return _problem(request, 401, sentence, challenge, ("Sign in", sign_in_address(request)))

    @app.exception_handler(AuditorsPage)
    async def _auditor(request: Request, error: AuditorsPage) -> Response:
        if request.method in ("GET", "HEAD"):
            return RedirectResponse(own_page(request), 303)
        return _problem(request, 403, "Auditors read; nothing was done.")

    @app.exception_handler(SignInAgain)
    async def _again(request: Request, error: SignInAgain) -> Response:
        return see_other(request, sign_in_again_address(error.back))

    @app.exception_handler(HTTPException)
    async def _http(request: Request, error: HTTPException) -> Response:
        status = error.status_code
        own = error.sentence if isinstance(error, PageProblem) else None
        sentence = own or _SENTENCES.get(status) or str(error.detail)
        headers = dict(error.headers or {}) | ({"Allow": _allowed(request.scope)} if status == 405 else {})
        return _problem(request, status, sentence, headers)

    @app.exception_handler(ClaimRefused)
    async def _refused(request: Request, error: ClaimRefused) -> Response:
        return _problem(request, error.status, str(error))

    @app.exception_handler(RequestValidationError)
    async def _invalid(request: Request, error: RequestValidationError) -> Response:
        return _problem(request, 422, _SENTENCES[422])

    @app.exception_handler(StorageError)
    async def _storage(request: Request, error: StorageError) -> Response:
        if isinstance(error, ReadOnly):
            return _problem(request, 503, f"Nothing was done. {error}")
        log.error("storage: %s", error)
        sentence = "The database did not take this now; nothing was done. Load the page again in a moment."
        if isinstance(error, StoreUnknown):
            sentence = "The database broke off; this may have been done. Load the page again to see."
        return _problem(request, 503, sentence, {"Retry-After": "1"})

    @app.exception_handler(ClientDisconnect)
    async def _gone(request: Request, error: ClientDisconnect) -> Response:
        return _problem(request, 400, _SENTENCES[400])  # nobody reads it

    @app.exception_handler(Exception)
    async def _unexpected(request: Request, error: Exception) -> Response:
        # The application around this one logs the error, which goes on to it.
        return _problem(request, 500, _SENTENCES[500])
