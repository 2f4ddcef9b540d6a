"""Signing in at a provider: out to it with the browser, and back. What goes wrong ends with a page that says so, and
nobody is signed in by it."""

from __future__ import annotations

import hmac
import logging
import re
import shlex
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from vouchgate.server.oidc import CALLBACK, OidcClient, SignInFailed
from vouchgate.server.state import service_of
from vouchgate.storage.identity import identities, sessions
from vouchgate.storage.identity.identities import FLOW_LIFETIME, SignInFlow, derived
from vouchgate.web.pages import PageProblem, html
from vouchgate.web.session import (
    HOME,
    SIGN_IN,
    browser_of,
    is_secure,
    own_path,
    refuse_other_sites,
    session_secret,
    set_session,
)
from vouchgate.web.sign_in import attempts_of, client_of

log = logging.getLogger(__name__)

router = APIRouter(include_in_schema=False)

PATH = f"{SIGN_IN}/oidc"
COOKIE = "vg_sign_in"  # of a sign-in that is under way
LONGEST_CODE = 4096
LONGEST_NEXT = 2_000  # characters of where it leads: the cookie says it, and browsers keep no more than 4,096

_ERROR = re.compile(r"[a-z_]{1,40}")
_OTHER_BROWSER = (
    "This sign-in was not begun in this browser, or its cookie is gone. Nobody is signed in: begin anew."
)
_OVER = "This sign-in was used already, or took longer than ten minutes. Begin anew."
_NOT_PROVED = (
    "The provider's answer did not prove who you are, so nobody is signed in by it. Try again; if it happens again, "
    "whoever runs the service finds the reason in its log."
)
_UNREACHABLE = (
    "The provider cannot be asked at the moment. Try again in a while, or sign in with a token or a link."
)


# Not a form: where those may lead, our Content-Security-Policy says, and the provider is elsewhere.
@router.get(PATH)
async def go(
    request: Request,
    next_path: Annotated[str | None, Query(alias="next")] = None,
    again: Annotated[str | None, Query()] = None,
) -> Response:
    """Sends the browser to the provider, with what the answer must fit to."""
    provider = _provider(request)
    refuse_other_sites(request)
    leads_to = own_path(next_path)
    flow = SignInFlow(leads_to if len(leads_to) <= LONGEST_NEXT else HOME, again == "1")
    store = service_of(request).store
    try:
        secret = await run_in_threadpool(identities.begin_flow, store, flow, now=datetime.now(UTC))
        address = await provider.address(secret, again=flow.again)
    except SignInFailed as error:
        raise _problem(error) from error
    answer = RedirectResponse(address, 303)
    answer.set_cookie(
        COOKIE,
        secret,
        max_age=int(FLOW_LIFETIME.total_seconds()),
        path=PATH,
        secure=is_secure(request),
        httponly=True,
        samesite="lax",  # the provider's page leads back here
    )
    return answer


@router.get(CALLBACK)
async def come_back(
    request: Request,
    state: str = "",
    code: str = "",
    error: str = "",
    iss: str | None = None,
) -> Response:
    """Starts a session for whoever the provider says is back, if this browser was sent there and the operator has
    linked them to a person."""
    provider, store = _provider(request), service_of(request).store
    secret = request.cookies.get(COOKIE, "")
    if not secret or not hmac.compare_digest(state.encode(), derived(secret, "state").encode()):
        raise PageProblem(403, _OTHER_BROWSER)
    attempts_of(request).came_back(client_of(request))
    flow = await run_in_threadpool(identities.end_flow, store, secret, now=datetime.now(UTC))
    if flow is None:
        raise PageProblem(410, _OVER)
    if error or not 0 < len(code) <= LONGEST_CODE:
        said = f" ({error})" if _ERROR.fullmatch(error) else ""
        raise PageProblem(403, f"The provider did not sign you in{said}.")
    try:
        proof = await provider.prove(secret, code=code, said_issuer=iss, again=flow.again)
    except SignInFailed as failed:
        raise _problem(failed) from failed
    if not await run_in_threadpool(identities.use_up, store, secret, now=datetime.now(UTC)):
        raise PageProblem(410, _OVER)
    started = await run_in_threadpool(
        lambda: sessions.start_as(
            store,
            provider.issuer,
            proof.sub,
            proved_at=proof.proved_at,
            now=datetime.now(UTC),
            instead_of=session_secret(request),
            browser=browser_of(request),
        )
    )
    if started is None:
        command = f"vouchgate person link NAME --issuer {shlex.quote(provider.issuer)} --sub {shlex.quote(proof.sub)}"
        answer = html(request, "not_known.html", 403, command=command)
    else:
        answer = RedirectResponse(own_path(flow.next_path), 303)
        set_session(request, answer, started)
    answer.delete_cookie(COOKIE, path=PATH, secure=is_secure(request), httponly=True, samesite="lax")
    return answer


def _provider(request: Request) -> OidcClient:
    provider: OidcClient | None = request.app.state.oidc
    if provider is None:
        raise HTTPException(404)
    return provider


def _problem(error: SignInFailed) -> PageProblem:
    log.warning("nobody was signed in by the provider: %.500s", error)
    return PageProblem(503, _UNREACHABLE) if error.unreachable else PageProblem(403, _NOT_PROVED)
