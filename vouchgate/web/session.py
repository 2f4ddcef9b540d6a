"""From a cookie to a visitor, and which forms are taken: those of our own pages, of this visitor, and small.

Three things each keep another site from acting in a visitor's name: the cookie is not sent with its POSTs
(SameSite), the browser says where a POST comes from, and a form has a token that only our pages know.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Annotated
from urllib.parse import parse_qsl, quote, unquote, urlencode

from fastapi import Depends, Request
from starlette.datastructures import ImmutableMultiDict
from starlette.responses import RedirectResponse, Response

from vouchgate.ingest.claims.people import Principal, Role
from vouchgate.server.oidc import LATELY
from vouchgate.server.state import service_of
from vouchgate.storage import modes
from vouchgate.storage.identity import sessions
from vouchgate.web import mount
from vouchgate.web.pages import PageProblem

COOKIE = "vg_session"
OWNER_COOKIE = "vg_owner"  # of several owners the one whose pages are shown
FORM_COOKIE = "vg_form"  # before anybody is signed in: what the sign-in forms are bound to
HOME = mount.HOME
SIGN_IN = "/review/sign-in"
# A claim of 8,192 characters and a note of 2,000, each of four bytes, each byte three characters in a form: 120 KB.
SINGLE_BYTES = 128 * 1024
BULK_BYTES = 256 * 1024  # some thousands of ids

_LABEL = b"vouchgate review form"
_SECRET = re.compile(r"[A-Za-z0-9_-]{43}")
# Where a sign-in may lead: our own pages, spelt in characters of which no browser makes another place.
_OWN_PATH = re.compile(r"/review(/[A-Za-z0-9_-]+)*(\?([A-Za-z0-9_.,~:/=&+*-]|%[0-9A-Fa-f]{2})*)?")

# In this order: each calls itself by the names of those below, too.
_BROWSERS = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
_SYSTEMS = (
    *(("Android", "Android"), ("iPhone", "iPhone"), ("iPad", "iPad"), ("Windows", "Windows")),
    *(("Mac OS", "macOS"), ("CrOS", "ChromeOS"), ("Linux", "Linux")),
)

_LONGEST_PATH = 4000  # longer than any page's own, be its search 200 characters of four bytes each

_MOST_TOLD = 10  # modes and stops of which every page says so: an auditor may have a thousand owners

_FORM_OF_OTHERS = (
    "This form is not from a page of yours, or you have signed in again since, or do not rule any more for the owner "
    "whose page it was. Nothing was done. "
    "Load the page again and repeat what you did."
)

Form = ImmutableMultiDict[str, str]


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who is signed in. A reviewer is before the pages of one of their owners: `principal` is nobody's but this
    owner's; `owners` are all, sorted. An auditor is before those of all their owners together: `owner_id` is empty.
    `csrf` goes into the hidden field `csrf` of every form, and names the owner: see `form`."""

    principal: Principal
    owner_id: str
    owners: tuple[str, ...]
    csrf: str = field(repr=False)
    secret: str = field(repr=False)
    proved_at: datetime | None = None  # when they last showed who they are, if that is known

    @property
    def audits(self) -> bool:
        """Whether this is an auditor, who has pages of their own, and rules on nothing."""
        return self.principal.role is Role.AUDITOR

    def of(self, owner_id: str) -> Visitor:
        """The same person before the pages of another of their owners."""
        principal = self.principal.model_copy(update={"owners": frozenset({owner_id})})
        csrf = csrf_of(self.secret, owner_id)
        return replace(self, principal=principal, owner_id=owner_id, csrf=csrf)


class SignInNeeded(Exception):
    """Nobody is signed in, or the session is over."""


class SignInAgain(Exception):
    """What was asked for weighs more than this session carries. `back` is the page to come back to."""

    def __init__(self, back: str) -> None:
        super().__init__(back)
        self.back = back


def require_recent(visitor: Visitor, back: str) -> None:
    """Raises SignInAgain when the visitor signed in too long ago for what weighs more than one ruling: whoever finds
    a browser open, or a cookie, cannot do it."""
    if visitor.proved_at is None or abs(datetime.now(UTC) - visitor.proved_at) > LATELY:
        raise SignInAgain(back)


class AuditorsPage(Exception):
    """An auditor asked for a page of reviewers: they are sent to their own."""


def visitor_of(request: Request) -> Visitor:
    """A dependency: who is signed in, looked up anew for every request. Without anybody a GET is sent to the
    sign-in page and comes back afterwards; anything else is a 401."""
    secret = session_secret(request)
    if secret is None:
        raise SignInNeeded
    with service_of(request).store.read() as connection:
        found = sessions.find(connection, secret, datetime.now(UTC))
        owners = () if found is None else tuple(sorted(found.principal.owners))
        every = found is not None and found.principal.any_owner
        stand = modes.everything(connection) if every else modes.in_force(connection, owners)
    if found is None:
        raise SignInNeeded
    principal = found.principal
    if principal.role is Role.AUDITOR:
        visitor = Visitor(principal, "", owners, csrf_of(secret, ""), secret, found.proved_at)
    elif not owners:
        raise PageProblem(403, "You rule for no owner at present. Whoever runs the service can change that.")
    else:
        visitor = Visitor(principal, "", owners, "", secret, found.proved_at).of(_chosen(request, owners))
    request.state.modes = stand
    _show(request, visitor)
    return visitor


def _show(request: Request, visitor: Visitor) -> None:
    """Has the pages that this request leads to be those of the visitor's owner, or of all that an auditor has, also one
    that tells of an error."""
    request.state.visitor = visitor
    whose = visitor.owners if visitor.audits else (visitor.owner_id,)
    every = visitor.audits and visitor.principal.any_owner
    # Of another owner's, or of an agent that acts for others too, nobody else is told here.
    concerned = [
        one
        for one in request.state.modes
        if every or one.owner_id in whose or not (one.owner_id or one.agent)
    ]
    told = [
        one.sentence
        for one in sorted(concerned, key=lambda one: (bool(one.agent), one.owner_id))
        if one.matters
    ]
    more = len(told) - _MOST_TOLD
    request.state.standing = told[:_MOST_TOLD] + (
        [f"And {more} more: GET /v1/modes lists all of them."] if more > 0 else []
    )


def _chosen(request: Request, owners: tuple[str, ...]) -> str:
    """The owner that the address names, as those do that a page's script asks for, or else the cookie."""
    named = request.query_params.get("owner")
    if named is not None and named not in owners:
        raise PageProblem(403, "You do not rule for the owner of this page, or not any more.")
    chosen = named or unquote(request.cookies.get(OWNER_COOKIE, ""))
    return chosen if chosen in owners else owners[0]


Anybody = Annotated[Visitor, Depends(visitor_of)]


def signed_in(visitor: Anybody) -> Visitor:
    """A dependency: the reviewer who is signed in; see `visitor_of`. Raises AuditorsPage for an auditor."""
    if visitor.audits:
        raise AuditorsPage
    return visitor


SignedIn = Annotated[Visitor, Depends(signed_in)]


def waiting_for(request: Request, visitor: Visitor) -> int | None:
    """How many claims wait, which pages show beside the way to the queue; None for an auditor, who has none."""
    return None if visitor.audits else service_of(request).queue.facets(visitor.principal).waiting


def session_secret(request: Request) -> str | None:
    """The secret of the session cookie, if it has the shape of one."""
    return _well_formed(request.cookies.get(COOKIE))


def _well_formed(secret: str | None) -> str | None:
    return secret if secret is not None and _SECRET.fullmatch(secret) else None


def csrf_of(secret: str, owner_id: str) -> str:
    """What a form says that belongs to the holder of this secret and is of a page of this owner, and does not give the
    secret away."""
    return hmac.new(secret.encode(), _LABEL + owner_id.encode(), hashlib.sha256).hexdigest()


async def form(request: Request, visitor: Visitor, *, limit: int = SINGLE_BYTES) -> tuple[Form, Visitor]:
    """The fields of a form that one of our pages sent for this visitor; line ends are `\\n`. And the visitor before the
    pages of the owner whose page it was: in another tab they may have gone on to those of another.

    Raises PageProblem: 403 when another site sent it or its token is not the visitor's, 413 over `limit` bytes,
    415 when it is not `application/x-www-form-urlencoded`, 400 when it cannot be read.
    """
    known = {csrf_of(visitor.secret, owner): owner for owner in visitor.owners if not visitor.audits}
    fields = await read_form(request, (visitor.csrf, *known), limit=limit)
    owner_id = known.get(fields["csrf"], visitor.owner_id)
    if owner_id != visitor.owner_id:
        visitor = visitor.of(owner_id)
        _show(request, visitor)
    return fields, visitor


async def read_form(request: Request, known: Iterable[str], *, limit: int) -> Form:
    """As `form`, for a form whose token must be one of those that are `known`."""
    refuse_other_sites(request)
    fields = _parse(await _body(request, limit))
    given = fields.get("csrf", "").encode()
    if not any(hmac.compare_digest(csrf.encode(), given) for csrf in known):
        raise PageProblem(403, _FORM_OF_OTHERS)
    return fields


def refuse_other_sites(request: Request) -> None:
    """Raises PageProblem (403) when the browser says that another site sent this. What says nothing, such as an
    old browser or a program, is held to the form's token alone."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        own = site in ("same-origin", "none")  # none: the person themselves, such as by loading it again
    else:
        origin = request.headers.get("origin")
        own = origin is None or _is_own(request, origin)
    if not own:
        raise PageProblem(403, "Another site sent this, and only pages of this one may. Nothing was done.")


def _is_own(request: Request, origin: str) -> bool:
    if origin == service_of(request).settings.public_url:
        return True
    # The scheme is left out: behind a proxy that ends TLS, this service does not see it.
    host = request.headers.get("host")
    return bool(host) and origin.partition("://")[2] == host


async def _body(request: Request, limit: int) -> bytes:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise PageProblem(415, "This is not how the forms of these pages are sent.")
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            # The rest is not read, so the connection cannot be used again.
            raise PageProblem(413, f"This form is over {limit} bytes.", headers={"Connection": "close"})
        chunks.append(chunk)
    return b"".join(chunks)


def _parse(body: bytes) -> Form:
    try:
        # Strictly UTF-8 both before and after the percent signs are read: nothing is replaced or left out.
        pairs = parse_qsl(body.decode(), keep_blank_values=True, strict_parsing=bool(body), errors="strict")
    except ValueError as error:
        raise PageProblem(400, "This form cannot be read.") from error
    if any("\x00" in text for pair in pairs for text in pair):  # no database text may hold it
        raise PageProblem(400, "This form holds the NUL character, which no text may.")
    # Browsers send every line end as CR LF, whatever the text had that they were given.
    return Form([(name, value.replace("\r\n", "\n")) for name, value in pairs])


def own_path(path: str | None) -> str:
    """`path` if it is one of the pages to come back to, else the queue: nobody is sent to another site."""
    if path is None or len(path) > _LONGEST_PATH or _OWN_PATH.fullmatch(path) is None:
        return HOME
    if path.startswith(SIGN_IN):
        return HOME
    return path


def sign_in_address(request: Request) -> str:
    """Where to sign in to come back to what was asked for, or to the claim or memory that an act was on."""
    query = request.scope["query_string"].decode("latin-1")
    asked = request.scope["path"] + (f"?{query}" if query else "")
    if request.method == "POST":
        asked = request.scope["path"].rpartition("/")[0]
        asked = asked if asked.startswith(("/review/items/", "/review/memories/")) else HOME
    path = own_path(asked)
    return SIGN_IN if path == HOME else f"{SIGN_IN}?{urlencode({'next': path})}"


def sign_in_again_address(back: str) -> str:
    """Where to sign in once more, to come back to a page."""
    return f"{SIGN_IN}?{urlencode({'again': '1', 'next': own_path(back)})}"


def browser_of(request: Request) -> str:
    """What a browser calls itself, roughly, such as "Firefox on Linux"; to tell sessions apart, and no more."""
    agent = request.headers.get("user-agent", "")
    name = next((name for mark, name in _BROWSERS if mark in agent), "Another browser")
    system = next((f" on {name}" for mark, name in _SYSTEMS if mark in agent), "")
    return name + system


def is_secure(request: Request) -> bool:
    """Whether cookies are to be sent over HTTPS only: that is how visitors come here."""
    public = service_of(request).settings.public_url or ""
    return public.startswith("https:") or bool(request.scope["scheme"] == "https")


def set_session(request: Request, response: Response, secret: str) -> None:
    """Signs the browser in. The cookie is Lax, not Strict: a link in a message opens the page it names, signed in,
    and every form has a token besides."""
    response.set_cookie(
        COOKIE,
        secret,
        max_age=int(sessions.SESSION_LIFETIME.total_seconds()),
        path=HOME,
        secure=is_secure(request),
        httponly=True,
        samesite="lax",
    )
    response.delete_cookie(FORM_COOKIE, path=SIGN_IN)


def set_owner(request: Request, response: Response, owner_id: str) -> None:
    """Has the browser show this owner's pages, for as long as a session lasts."""
    response.set_cookie(
        OWNER_COOKIE,
        quote(owner_id),
        max_age=int(sessions.SESSION_LIFETIME.total_seconds()),
        path=HOME,
        secure=is_secure(request),
        httponly=True,
        samesite="lax",
    )


def see_other(request: Request, location: str) -> Response:
    """On to another page, which is one of the owner whose pages this request was about."""
    answer = RedirectResponse(location, 303)
    visitor: Visitor | None = getattr(request.state, "visitor", None)
    if visitor is not None and visitor.owner_id and len(visitor.owners) > 1:
        set_owner(request, answer, visitor.owner_id)
    return answer


def forget_session(request: Request, response: Response) -> None:
    """Has the browser drop its cookie; see `storage.identity.sessions.end` for the session itself."""
    response.delete_cookie(COOKIE, path=HOME, secure=is_secure(request), httponly=True, samesite="lax")


def form_secret(request: Request) -> str | None:
    """What the sign-in forms of this browser are bound to; None when it sent no such cookie."""
    return _well_formed(request.cookies.get(FORM_COOKIE))


def set_form_secret(request: Request, response: Response, secret: str) -> None:
    """Has the browser keep it for an hour. Strict: nothing but our own forms is to bring it along."""
    response.set_cookie(
        FORM_COOKIE,
        secret,
        max_age=3600,
        path=SIGN_IN,
        secure=is_secure(request),
        httponly=True,
        samesite="strict",
    )
