"""Signing in, with a reviewer's or an auditor's token or with a one-time link, and out again."""

from __future__ import annotations

import hashlib
import ipaddress
import re
import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, TypeVar
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from vouchgate.ingest.net.turns import Turns
from vouchgate.server.auth import RateLimit
from vouchgate.server.state import service_of
from vouchgate.storage.identity import sessions
from vouchgate.web.pages import PageProblem, html
from vouchgate.web.session import (
    HOME,
    SIGN_IN,
    Anybody,
    Form,
    SignedIn,
    SignInNeeded,
    browser_of,
    csrf_of,
    forget_session,
    form,
    form_secret,
    own_path,
    read_form,
    see_other,
    session_secret,
    set_form_secret,
    set_session,
    visitor_of,
)

router = APIRouter(include_in_schema=False)

T = TypeVar("T")

FORM_BYTES = 4 * 1024  # a token and where to go afterwards
# Nobody guesses 32 random bytes, however fast. This keeps strangers from making the service busy, and takes nothing
# from who presents what is right: what is wrong is counted for its address and for all, what is right for itself.
ATTEMPTS_PER_MINUTE = 10  # from one address, and of one token
ALL_ATTEMPTS_PER_MINUTE = 60
LOOKING_UP = 2  # attempts that are looked up at the same time; addresses take turns
ADDRESS_SLOTS = (
    4096  # that attempts are counted for: others share one of these, so that no list grows with strangers
)

_CODE = re.compile(r"[A-Za-z0-9_-]{43}")
_UNKNOWN = "This token is not known, or it is expired or revoked."
_NOT_A_VISITOR = (
    "This token is not a reviewer's or an auditor's, so it cannot sign in: whoever sends claims does not rule on "
    "them. Sign in with the token of the owner's reviewer."
)
_NO_COOKIE = (
    "Your browser sent no cookie with this form. Allow cookies for this site, open it by the address that its "
    "operator names, and try again."
)
_LINK_IS_OVER = (
    "This link has signed somebody in already, or its time is over. A new one is printed by: "
    "vouchgate token link ID"
)


class Attempts:
    """Counts attempts to sign in, over all workers of a service that share `folder`; see `RateLimit`."""

    def __init__(self, folder: Path | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._of_one = RateLimit(ATTEMPTS_PER_MINUTE, clock, folder)
        self._of_all = RateLimit(ALL_ATTEMPTS_PER_MINUTE, clock, folder)
        self._turns = Turns(1, LOOKING_UP)

    async def look_up(self, client: str | None, work: Callable[[], T]) -> T:
        """What is known of what somebody at this address presents; they wait for their turn, and are not counted."""
        async with self._turns.of(_address_slot(client)):
            return await run_in_threadpool(work)

    def right(self, token_id: str) -> None:
        """Raises PageProblem (429) when this token signed in too often: nobody else can bring that about."""
        self._refuse(self._of_one.wait(f"sign-in of {token_id}"))

    def wrong(self, client: str | None) -> None:
        """Raises PageProblem (429) when too much that is wrong came from this address, or from all together."""
        # In this order, so that one address cannot use up what is for all.
        self._refuse(
            self._of_one.wait(f"sign-in from {_address_slot(client)}") or self._of_all.wait("sign-in")
        )

    def came_back(self, client: str | None) -> None:
        """Raises PageProblem (429) when too many came back from the provider to this address: each has it asked, and
        its answer alone shows whose it is."""
        self._refuse(self._of_one.wait(f"sign-in at the provider from {_address_slot(client)}"))

    def _refuse(self, seconds: float) -> None:
        if seconds > 0:
            wait = int(seconds) + 1
            sentence = f"Too many attempts to sign in. Try again in {wait} seconds."
            raise PageProblem(429, sentence, headers={"Retry-After": str(wait)})


def _address_slot(client: str | None) -> int:
    """One of ADDRESS_SLOTS numbers for an address; of IPv6, for the /64 that one customer has (RFC 6177)."""
    try:
        address = ipaddress.ip_address(client or "")
    except ValueError:  # a Unix socket has none
        network = "none"
    else:
        network = str(ipaddress.ip_network((address, 64 if address.version == 6 else 32), strict=False))
    return int.from_bytes(hashlib.sha256(network.encode()).digest()[:4]) % ADDRESS_SLOTS


@router.get(SIGN_IN)
def show_sign_in(
    request: Request,
    next_path: Annotated[str | None, Query(alias="next")] = None,
    again: Annotated[str | None, Query()] = None,
) -> Response:
    """The form, for whoever is not signed in yet, or is to sign in `again`."""
    try:
        visitor_of(request)
    except SignInNeeded:
        return _sign_in_page(request, next_path, again=False)
    if again == "1":
        return _sign_in_page(request, next_path, again=True)
    return RedirectResponse(own_path(next_path), 303)


@router.post(SIGN_IN)
async def sign_in(request: Request) -> Response:
    """Starts a session for whoever presents a reviewer's or an auditor's token."""
    fields, attempts, client = await _read(request), attempts_of(request), client_of(request)
    store, now, token = service_of(request).store, datetime.now(UTC), fields.get("token", "").strip()
    holder = await attempts.look_up(client, lambda: sessions.holder(store, token, now))
    if not isinstance(holder, sessions.SignInRefusal):
        attempts.right(holder)
        holder = await run_in_threadpool(
            sessions.start,
            store,
            token,
            now=now,
            instead_of=session_secret(request),
            browser=browser_of(request),
        )
    else:
        attempts.wrong(client)
    goes_to, again = fields.get("next"), fields.get("again") == "1"
    match holder:
        case sessions.SignInRefusal.UNKNOWN:
            return _sign_in_page(request, goes_to, again=again, status=403, problem=_UNKNOWN)
        case sessions.SignInRefusal.NOT_A_VISITOR:
            return _sign_in_page(request, goes_to, again=again, status=403, problem=_NOT_A_VISITOR)
        case str(secret):
            return _signed_in(request, secret, own_path(goes_to))


@router.get(f"{SIGN_IN}/{{code}}")
async def show_link(request: Request, code: str) -> Response:
    """One button. Nothing is used up by opening a link: programs that scan mail open every one. Nor is it looked
    up, so that opening one costs and tells nothing."""
    if _CODE.fullmatch(code) is None:
        raise PageProblem(404, "This link is not whole: copy all of it.")
    return _with_form(request, "link.html", code=code)


@router.post(f"{SIGN_IN}/{{code}}")
async def follow_link(request: Request, code: str) -> Response:
    """Starts a session for whoever has the link, once."""
    await _read(request)
    attempts, client = attempts_of(request), client_of(request)
    store, now = service_of(request).store, datetime.now(UTC)
    token_id = await attempts.look_up(client, lambda: sessions.link_holder(store, code, now))
    if token_id is None:
        attempts.wrong(client)
        raise PageProblem(410, _LINK_IS_OVER)
    secret = await run_in_threadpool(
        sessions.redeem, store, code, now=now, instead_of=session_secret(request), browser=browser_of(request)
    )
    if secret is None:
        raise PageProblem(410, _LINK_IS_OVER)
    return _signed_in(request, secret, HOME)


@router.post("/review/owner")
async def choose_owner(request: Request, visitor: SignedIn) -> Response:
    """Shows the pages of another owner that the visitor rules for."""
    fields, visitor = await form(request, visitor)
    owner_id = fields.get("owner", "")
    if owner_id not in visitor.owners:
        raise PageProblem(404, "There is no such owner for you.")
    request.state.visitor = visitor.of(owner_id)
    return see_other(request, HOME)


@router.post("/review/sign-out")
async def sign_out(request: Request, visitor: Anybody) -> Response:
    """Ends the session, here and in the database."""
    await form(request, visitor)
    store = service_of(request).store
    await run_in_threadpool(sessions.end, store, visitor.secret, now=datetime.now(UTC))
    answer = RedirectResponse(SIGN_IN, 303)
    forget_session(request, answer)
    return answer


def attempts_of(request: Request) -> Attempts:
    """The service's counts."""
    attempts: Attempts = request.app.state.sign_in_attempts
    return attempts


def client_of(request: Request) -> str | None:
    """The address that a request comes from."""
    return request.client.host if request.client else None


async def _read(request: Request) -> Form:
    """A sign-in form of one of our pages. What other sites send is no attempt."""
    secret = form_secret(request)
    if secret is None:
        raise PageProblem(403, _NO_COOKIE)
    return await read_form(request, (csrf_of(secret, ""),), limit=FORM_BYTES)


def _sign_in_page(
    request: Request, next_path: str | None, *, again: bool, status: int = 200, problem: str | None = None
) -> Response:
    goes_to, provider = own_path(next_path), request.app.state.oidc
    elsewhere = None
    if provider is not None:
        asked = {"next": goes_to} | ({"again": "1"} if again else {})
        elsewhere = (f"{SIGN_IN}/oidc?{urlencode(asked)}", provider.label)
    return _with_form(
        request, "sign_in.html", status, next=goes_to, again=again, elsewhere=elsewhere, problem=problem
    )


def _with_form(request: Request, template: str, status: int = 200, **context: Any) -> Response:
    """A page with a sign-in form. A browser that has a cookie for these keeps it, so that a second tab does not
    spoil the first one's form."""
    secret = form_secret(request) or secrets.token_urlsafe(32)
    answer = html(request, template, status, csrf=csrf_of(secret, ""), **context)
    set_form_secret(request, answer, secret)
    return answer


def _signed_in(request: Request, secret: str, goes_to: str) -> Response:
    answer = RedirectResponse(goes_to, 303)
    set_session(request, answer, secret)
    return answer
