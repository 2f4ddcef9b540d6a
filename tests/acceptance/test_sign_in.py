"""Signing in to the pages and out again, as a browser does it, and as those do who should not get in."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.cookies import Morsel, SimpleCookie
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from lxml import html

from groundgate.api.app import create_app
from groundgate.service import open_service
from groundgate.settings import Settings
from groundgate.web.app import HEADERS
from groundgate.web.session import BULK_BYTES, COOKIE, FORM_COOKIE, SINGLE_BYTES
from groundgate.web.sign_in import ALL_ATTEMPTS_PER_MINUTE, ATTEMPTS_PER_MINUTE, Attempts
from ingest.types import Action, Principal, Role
from review.pages.render import STATIC, asset
from storage import log, sessions, tokens
from storage.store import Store
from tests.acceptance.site import Site, is_problem, queue
from tests.service import make_token

SIGN_IN = "/review/sign-in"
SIGN_OUT = "/review/sign-out"
SECRET = re.compile(r"[A-Za-z0-9_-]{43}")


def is_page(answer: httpx.Response, status: int) -> str:
    """The text that a page shows, which must have this status and every header that pages have."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    has_headers(answer)
    assert "<script>" not in answer.text
    shown: str = html.fromstring(answer.text).text_content()
    return " ".join(shown.split())


def has_headers(answer: httpx.Response) -> None:
    """Every header that an answer under /review has."""
    for name, value in HEADERS.items():
        assert answer.headers.get_list(name) == [value], (name, answer.headers)


def cookie(answer: httpx.Response, name: str) -> Morsel[str] | None:
    """The cookie of this name that an answer sets, or None."""
    found: SimpleCookie = SimpleCookie()
    for header in answer.headers.get_list("set-cookie"):
        found.load(header)
    return found.get(name)


def hidden(answer: httpx.Response) -> dict[str, str]:
    """The hidden fields of the page's form."""
    page = html.fromstring(answer.text)
    return {each.get("name"): each.get("value") for each in page.xpath("//main//input[@type='hidden']")}


@dataclass
class Browser:
    """Somebody's browser: a client with cookies of its own, at an address of its own."""

    client: httpx.Client
    site: Site

    def fields(self, path: str = SIGN_IN) -> dict[str, str]:
        """The hidden fields of the form at `path`."""
        answer = self.client.get(path)
        is_page(answer, 200)
        return hidden(answer)

    def sign_in(self, token: str, path: str = SIGN_IN, **headers: str) -> httpx.Response:
        """What is answered to the filled-in form."""
        return self.client.post(SIGN_IN, data=self.fields(path) | {"token": token}, headers=headers)

    def follow(self, code: str) -> httpx.Response:
        """What is answered to the button behind a link."""
        path = f"{SIGN_IN}/{code}"
        return self.client.post(path, data=self.fields(path))

    def is_in(self) -> bool:
        """Whether it is signed in: then there is no form to be seen."""
        answer = self.client.get(SIGN_IN)
        assert answer.status_code in (200, 303), answer.text
        return answer.status_code == 303

    @property
    def secret(self) -> str:
        """What the session's cookie holds."""
        return self.client.cookies[COOKIE]

    def keep(self, secret: str) -> None:
        """Has it bring this secret along, as if the service had given it that."""
        self.client.cookies.set(COOKIE, secret, domain=self.client.base_url.host, path="/review")

    def csrf(self) -> str:
        """What a form of the page says, for whoever is signed in."""
        page = html.fromstring(self.client.get("/review/history").text)
        (value,) = page.xpath("//header//input[@name='csrf']/@value")
        return str(value)


@dataclass
class Addresses:
    """Hands out addresses, so that no test uses up the attempts of another. The service believes a proxy on its
    own machine who says where a request comes from."""

    last: int = 0

    def next(self) -> str:
        """One that nobody has had."""
        self.last += 1
        return f"203.0.113.{self.last}"


@pytest.fixture(scope="module")
def addresses() -> Addresses:
    """Of this module."""
    return Addresses()


@pytest.fixture
def new_browser(site: Site, addresses: Addresses) -> Callable[[], Browser]:
    """Opens a browser."""

    def opened() -> Browser:
        client = site.caller()
        client.headers["X-Forwarded-For"] = addresses.next()
        return Browser(client, site)

    return opened


@pytest.fixture
def browser(new_browser: Callable[[], Browser]) -> Browser:
    """One that nobody is signed in with."""
    return new_browser()


@pytest.fixture
def reviewer(site: Site, owner: str) -> tuple[Principal, str]:
    """The owner's reviewer and its token."""
    return site.token(Role.REVIEWER, owner)


@pytest.fixture
def signed_in(browser: Browser, site: Site, reviewer: tuple[Principal, str]) -> Browser:
    """A browser with a session, which took no attempt."""
    secret = sessions.start(site.store, reviewer[1], now=datetime.now(UTC))
    assert isinstance(secret, str)
    browser.keep(secret)
    return browser


def logged(site: Site, principal: Principal) -> list[Action]:
    """What the service's own log says of this principal's sign-ins."""
    with site.store.read() as connection:
        found = log.events(connection, frozenset({""}), after=None, limit=10_000)
    return [e.action for e in found if e.subject_id == principal.id and e.action is not Action.TOKEN_CREATED]


def new_link(site: Site, principal: Principal) -> str:
    """The code of a link for this reviewer."""
    return sessions.create_link(site.store, principal.id, actor="test", now=datetime.now(UTC))


def test_a_reviewer_s_token_signs_in(browser: Browser, site: Site, reviewer: tuple[Principal, str]) -> None:
    assert not browser.is_in()
    answer = browser.sign_in(f"  {reviewer[1]}\n")  # as it is pasted
    assert (answer.status_code, answer.headers["location"]) == (303, "/review")
    has_headers(answer)
    session = cookie(answer, COOKIE)
    assert session is not None
    assert SECRET.fullmatch(session.value)
    assert (session["path"], session["max-age"], session["samesite"]) == ("/review", "604800", "lax")
    assert session["httponly"] is True
    assert not session["secure"]  # this browser came over http
    assert not session["domain"]
    before = cookie(answer, FORM_COOKIE)
    assert before is not None
    assert (before.value, before["max-age"]) == ("", "0")
    assert browser.is_in()
    assert logged(site, reviewer[0]) == [Action.SESSION_STARTED]


def test_over_https_the_cookies_are_for_https_alone(
    browser: Browser, reviewer: tuple[Principal, str]
) -> None:
    browser.client.headers["X-Forwarded-Proto"] = "https"
    shown = browser.client.get(SIGN_IN)
    form_cookie = cookie(shown, FORM_COOKIE)
    assert form_cookie is not None
    assert form_cookie["secure"] is form_cookie["httponly"] is True
    assert (form_cookie["path"], form_cookie["samesite"]) == (SIGN_IN, "strict")
    answer = browser.client.post(
        SIGN_IN,
        data=hidden(shown) | {"token": reviewer[1]},
        headers={"Cookie": f"{FORM_COOKIE}={form_cookie.value}"},
    )
    session = cookie(answer, COOKIE)
    assert session is not None
    assert session["secure"] is True


@pytest.mark.parametrize("role", [Role.AGENT, Role.AUDITOR, Role.ADMIN])
def test_nobody_but_a_reviewer_signs_in_and_is_told_why(
    browser: Browser, site: Site, owner: str, role: Role
) -> None:
    principal, token = site.token(role, owner)
    answer = browser.sign_in(token)
    assert "not a reviewer's, so it cannot sign in" in is_page(answer, 403)
    assert token not in answer.text
    assert cookie(answer, COOKIE) is None
    assert not browser.is_in()
    assert logged(site, principal) == []


def test_unknown_expired_and_revoked_tokens_get_one_answer(
    new_browser: Callable[[], Browser], site: Site, owner: str
) -> None:
    revoked, revoked_token = site.token(Role.REVIEWER, owner)
    tokens.revoke(site.store, revoked.id, actor="test", now=datetime.now(UTC))
    then = datetime.now(UTC) - timedelta(hours=1)
    _, expired_token = tokens.create(
        site.store,
        role=Role.AGENT,
        name="over",
        owners=[owner],
        expires_at=then + timedelta(minutes=1),
        actor="test",
        now=then,
    )
    texts = set()
    for token in (revoked_token, expired_token, "gg_" + "0" * 16 + "_" + "A" * 43, "hunter2", "", "\u202e"):
        answer = new_browser().sign_in(token)
        assert cookie(answer, COOKIE) is None
        texts.add(is_page(answer, 403))
    (text,) = texts
    assert "not known, or it is expired or revoked" in text


def test_signing_in_again_ends_the_session_before(
    signed_in: Browser, site: Site, reviewer: tuple[Principal, str]
) -> None:
    old, other = signed_in.secret, site.token(Role.REVIEWER, site.owner())
    answer = signed_in.follow(new_link(site, other[0]))
    assert answer.status_code == 303
    assert signed_in.secret != old
    assert signed_in.is_in()
    signed_in.keep(old)
    assert not signed_in.is_in()
    assert logged(site, reviewer[0]) == [Action.SESSION_STARTED, Action.SESSION_ENDED]
    assert logged(site, other[0]) == [Action.LINK_CREATED, Action.SESSION_STARTED]


def test_a_form_that_was_open_when_somebody_signed_in_ends_that_session_too(
    signed_in: Browser, site: Site, reviewer: tuple[Principal, str]
) -> None:
    fields, old = signed_in.fields(f"{SIGN_IN}/{'A' * 43}"), signed_in.secret
    answer = signed_in.client.post(SIGN_IN, data=fields | {"token": reviewer[1]})
    assert answer.status_code == 303
    assert signed_in.is_in()
    signed_in.keep(old)
    assert not signed_in.is_in()
    assert logged(site, reviewer[0])[1:] == [Action.SESSION_ENDED, Action.SESSION_STARTED]


def test_a_session_that_somebody_else_chose_is_not_taken_over(
    browser: Browser, reviewer: tuple[Principal, str]
) -> None:
    chosen = "A" * 43
    browser.keep(chosen)
    answer = browser.sign_in(reviewer[1])
    session = cookie(answer, COOKIE)
    assert session is not None
    assert session.value != chosen
    browser.keep(chosen)
    assert not browser.is_in()


def test_signing_out_ends_the_session_and_not_only_the_cookie(
    signed_in: Browser, site: Site, reviewer: tuple[Principal, str]
) -> None:
    secret = signed_in.secret
    answer = signed_in.client.post(SIGN_OUT, data={"csrf": signed_in.csrf()})
    assert (answer.status_code, answer.headers["location"]) == (303, SIGN_IN)
    has_headers(answer)
    gone = cookie(answer, COOKIE)
    assert gone is not None
    assert (gone.value, gone["max-age"], gone["path"]) == ("", "0", "/review")
    assert not signed_in.is_in()
    signed_in.keep(secret)
    assert not signed_in.is_in()
    assert logged(site, reviewer[0]) == [Action.SESSION_STARTED, Action.SESSION_ENDED]


def test_a_revoked_token_ends_its_session_at_the_next_request(
    signed_in: Browser, site: Site, reviewer: tuple[Principal, str]
) -> None:
    csrf = signed_in.csrf()
    tokens.revoke(site.store, reviewer[0].id, actor="test", now=datetime.now(UTC))
    answer = signed_in.client.get("/review/history?status=rejected&q=a%20b")
    assert answer.status_code == 303
    assert (
        answer.headers["location"] == f"{SIGN_IN}?next=%2Freview%2Fhistory%3Fstatus%3Drejected%26q%3Da%2520b"
    )
    refused = signed_in.client.post(SIGN_OUT, data={"csrf": csrf})
    assert "You are not signed in, or no longer" in is_page(refused, 401)
    assert refused.headers["www-authenticate"].startswith("Cookie ")
    assert not signed_in.is_in()


def test_after_signing_in_one_is_back_where_one_wanted_to_be(
    browser: Browser, reviewer: tuple[Principal, str]
) -> None:
    wanted = "/review/history?status=rejected&q=a%20b"
    sent = browser.client.get(wanted)
    assert sent.status_code == 303
    has_headers(sent)
    answer = browser.sign_in(reviewer[1], sent.headers["location"])
    assert (answer.status_code, answer.headers["location"]) == (303, wanted)
    again = browser.client.get(sent.headers["location"])  # somebody signed in who opens the form's address
    assert (again.status_code, again.headers["location"]) == (303, wanted)


@pytest.mark.parametrize(
    "wanted",
    [
        *(
            "https://evil.example/",
            "//evil.example/review",
            "/\\evil.example/review",
            "/review//evil.example",
        ),
        *("/review\\@evil.example", "/review/../../evil", "/review/..", "/review@evil.example", "/reviewer"),
        *("/review.evil.example", "javascript:alert(1)", "/review\r\nSet-Cookie: a=b", "/review/\t/evil"),
        *("/review?next=%0d%0aLocation:%20//evil\r\n", "review", "", "/", "/v1/reviews", "/review/é"),
        *("/review?q=\u202e", "/review#//evil", "/review/sign-in?next=/review", "/review/sign-in"),
        *(" /review", "/review ", "/review\x00", "/%72eview", "/review/%2e%2e/x", "/review?%zz"),
        "/review?q=" + "a" * 3000,
    ],
)
def test_signing_in_leads_nowhere_else(signed_in: Browser, wanted: str) -> None:
    answer = signed_in.client.get(SIGN_IN, params={"next": wanted})
    assert (answer.status_code, answer.headers["location"]) == (303, "/review")


def test_the_form_too_leads_nowhere_else(browser: Browser, reviewer: tuple[Principal, str]) -> None:
    shown = browser.client.get(SIGN_IN, params={"next": "https://evil.example/"})
    fields = hidden(shown)
    assert fields["next"] == "/review"
    fields |= {"token": reviewer[1], "next": "//evil.example/"}
    assert browser.client.post(SIGN_IN, data=fields).headers["location"] == "/review"


def test_a_form_without_the_visitor_s_own_token_does_nothing(
    signed_in: Browser, new_browser: Callable[[], Browser], site: Site, reviewer: tuple[Principal, str]
) -> None:
    other = new_browser()
    secret = sessions.start(site.store, reviewer[1], now=datetime.now(UTC))  # of the same person, even
    assert isinstance(secret, str)
    other.keep(secret)
    own, before = signed_in.csrf(), logged(site, reviewer[0])
    wrong = [other.csrf(), own.upper(), own[:-1], own + "0", "", "é", "0" * 64, signed_in.secret]
    for fields in ({"other": "field"}, {"CSRF": own}, *({"csrf": each} for each in wrong)):
        text = is_page(signed_in.client.post(SIGN_OUT, data=fields), 403)
        assert "Nothing was done" in text
    is_page(signed_in.client.post(f"{SIGN_OUT}?csrf={own}"), 415)
    assert signed_in.is_in()
    assert logged(site, reviewer[0]) == before


def test_a_sign_in_form_is_bound_to_the_browser_that_was_shown_it(
    browser: Browser, new_browser: Callable[[], Browser], site: Site, reviewer: tuple[Principal, str]
) -> None:
    """Or somebody could sign others in as himself, and read what they do."""
    others = new_browser().fields()
    code = new_link(site, reviewer[0])
    for path in (SIGN_IN, f"{SIGN_IN}/{code}"):
        fields = others | {"token": reviewer[1]}
        assert "sent no cookie" in is_page(browser.client.post(path, data=fields), 403)
        browser.fields(path)
        for each in (fields, {"token": reviewer[1]}, fields | {"csrf": ""}):
            assert "not from a page of yours" in is_page(browser.client.post(path, data=each), 403)
        browser.client.cookies.clear()
    assert logged(site, reviewer[0]) == [Action.LINK_CREATED]


def test_two_tabs_with_the_form_do_not_spoil_one_another(
    browser: Browser, reviewer: tuple[Principal, str]
) -> None:
    first, second = browser.fields(), browser.fields("/review/sign-in?next=/review/history")
    assert first["csrf"] == second["csrf"]
    assert browser.client.post(SIGN_IN, data=first | {"token": reviewer[1]}).status_code == 303


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site", "Origin": "{own}"},
        {"Sec-Fetch-Site": "odd"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "{own}.evil.example"},
        {"Origin": "http://evil.example@{host}"},
        {"Origin": ""},
    ],
)
def test_what_another_site_sends_does_nothing(
    signed_in: Browser, site: Site, headers: dict[str, str], reviewer: tuple[Principal, str]
) -> None:
    fields = {"csrf": signed_in.csrf(), "token": reviewer[1]}
    host = httpx.URL(site.running.url).netloc.decode()
    sent = {name: value.format(own=site.running.url, host=host) for name, value in headers.items()}
    assert "Another site sent this" in is_page(
        signed_in.client.post(SIGN_OUT, data=fields, headers=sent), 403
    )
    assert signed_in.is_in()
    signed_in.client.cookies.clear()
    fields |= signed_in.fields()
    assert "Another site sent this" in is_page(signed_in.client.post(SIGN_IN, data=fields, headers=sent), 403)
    assert logged(site, reviewer[0]) == [Action.SESSION_STARTED]


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "same-origin", "Origin": "{own}"},
        {"Sec-Fetch-Site": "same-origin", "Origin": "https://the.name.outside"},  # a proxy wrote another Host
        {"Sec-Fetch-Site": "none"},
        {"Origin": "{own}"},
    ],
)
def test_what_our_own_pages_send_is_taken(signed_in: Browser, site: Site, headers: dict[str, str]) -> None:
    sent = {name: value.format(own=site.running.url) for name, value in headers.items()}
    answer = signed_in.client.post(SIGN_OUT, data={"csrf": signed_in.csrf()}, headers=sent)
    assert answer.status_code == 303


def test_a_link_is_used_up_by_its_button_and_not_by_being_opened(
    browser: Browser, new_browser: Callable[[], Browser], site: Site, reviewer: tuple[Principal, str]
) -> None:
    code = new_link(site, reviewer[0])
    scanner = site.caller()
    for _ in range(3):
        is_page(scanner.get(f"{SIGN_IN}/{code}"), 200)
    scanner.head(f"{SIGN_IN}/{code}")
    answer = browser.follow(code)
    assert (answer.status_code, answer.headers["location"]) == (303, "/review")
    assert cookie(answer, COOKIE) is not None
    assert browser.is_in()
    text = is_page(new_browser().follow(code), 410)
    assert "has signed somebody in already, or its time is over" in text
    assert "groundgate token link ID" in text
    assert logged(site, reviewer[0]) == [Action.LINK_CREATED, Action.SESSION_STARTED]


def test_of_two_who_press_the_button_at_once_one_gets_in(
    new_browser: Callable[[], Browser], site: Site, reviewer: tuple[Principal, str]
) -> None:
    code = new_link(site, reviewer[0])
    browsers = [new_browser(), new_browser()]
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda browser: browser.follow(code), browsers))
    assert sorted(answer.status_code for answer in answers) == [303, 410]
    assert [browser.is_in() for browser in browsers].count(True) == 1


def test_a_link_of_a_revoked_token_or_past_its_time_or_made_up_lets_nobody_in(
    browser: Browser, site: Site, reviewer: tuple[Principal, str]
) -> None:
    now = datetime.now(UTC)
    other, _ = site.token(Role.REVIEWER, site.owner())
    revoked = new_link(site, other)
    tokens.revoke(site.store, other.id, actor="test", now=now)
    over = sessions.create_link(
        site.store, reviewer[0].id, lifetime=timedelta(minutes=1), actor="test", now=now - timedelta(hours=1)
    )
    pages = {is_page(browser.follow(code), 410) for code in (revoked, over, "A" * 43)}
    assert len(pages) == 1
    assert not browser.is_in()
    for odd in ("A" * 42, "A" * 44, "%3Cscript%3E", "..%5c", "é"):
        assert "not whole" in is_page(browser.client.get(f"{SIGN_IN}/{odd}"), 404)


CHUNK = b"a=" + b"b" * 8190 + b"&"


def huge() -> Iterator[bytes]:
    """A form without an end, nearly, which does not say how long it is."""
    for _ in range(200):
        yield CHUNK


FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.mark.parametrize(
    ("content", "headers", "status"),
    [
        (b"csrf=x&token=" + b"A" * SINGLE_BYTES, FORM, 413),
        (huge, FORM, 413),
        (b"csrf=%FF", FORM, 400),
        (b"csrf=\xff", FORM, 400),
        (b"csrf=%00", FORM, 400),
        (b"csrf=%ED%A0%80", FORM, 400),
        (b"csrf", FORM, 400),
        (b"&&&", FORM, 400),
        (b"", FORM, 403),
        (b"{}", {"Content-Type": "application/json"}, 415),
        (b"csrf=x", {"Content-Type": "text/plain"}, 415),
        (b"csrf=x", {}, 415),
        (
            b'--b\r\nContent-Disposition: form-data; name="csrf"\r\n\r\nx\r\n--b--\r\n',
            {"Content-Type": "multipart/form-data; boundary=b"},
            415,
        ),
        (b"csrf=x", {"Content-Type": "application/x-www-form-urlencoded;charset=utf-16"}, 403),
    ],
)
def test_a_body_that_no_page_sends_is_an_error_page(
    signed_in: Browser, content: Any, headers: dict[str, str], status: int
) -> None:
    body = content() if callable(content) else content
    is_page(signed_in.client.post(SIGN_OUT, content=body, headers=headers), status)
    assert signed_in.is_in()
    signed_in.client.cookies.delete(COOKIE)
    signed_in.fields()
    body = content() if callable(content) else content
    is_page(signed_in.client.post(SIGN_IN, content=body, headers=headers), status)


def test_the_lines_of_a_text_end_as_they_do_over_the_api(signed_in: Browser, site: Site, owner: str) -> None:
    """Browsers end every line of a form's text in two characters, also of one that came to them with one."""
    item = queue(site.agent(owner), "The cellar is damp")
    fields = {"csrf": signed_in.csrf(), "do": f"reject:{item}:1", "reason": "it is\r\ndry\r\n\nnow é +%"}
    assert signed_in.client.post("/review/act", data=fields).status_code == 303
    kept = site.reviewer(owner).get(f"/v1/reviews/{item}").json()
    assert (kept["status"], kept["note"]) == ("rejected", "it is\ndry\n\nnow é +%")


def test_the_bounds_of_forms_are_in_order() -> None:
    """A claim of the greatest length fits into a form whatever its letters are, and a list of ids is larger."""
    assert SINGLE_BYTES > 3 * 4 * (8192 + 2000)
    assert BULK_BYTES > 1000 * len("id=rev_" + "0" * 32 + "&version=rev_" + "0" * 32 + "%3A2147483647&")


def test_every_error_under_review_is_a_page_and_every_other_a_problem_document(
    browser: Browser, signed_in: Browser
) -> None:
    client = browser.client
    unknown = is_page(client.get("/review/nothing"), 404)
    assert "There is no such page, or it is not yours to see." in unknown
    wrong_method = client.put("/review/sign-in")
    is_page(wrong_method, 405)
    assert set(wrong_method.headers["allow"].split(", ")) == {"GET", "POST"}
    is_page(client.get("/review/static/none.css"), 404)
    assert client.get("/review/").headers["location"] == "/review"
    for path in ("/reviewer", "/v1/nothing", "/v1/review", "/Review"):
        problem = client.get(path)
        is_problem(problem, 404)
        assert "content-security-policy" not in problem.headers
    home = client.get("/")
    assert (home.status_code, home.headers["location"]) == (303, "/review")
    assert not [path for path in client.get("/openapi.json").json()["paths"] if path.startswith("/review")]


def test_static_files_are_kept_by_their_version_and_nothing_else_is_served(browser: Browser) -> None:
    assert {"review.css", "icon.svg"} <= set(STATIC)
    for name, file in STATIC.items():
        versioned = browser.client.get(asset(name))
        assert versioned.status_code == 200
        assert versioned.content == file.content
        assert versioned.headers["content-type"] == file.media_type
        assert versioned.headers["cache-control"] == "public, max-age=31536000, immutable"
        for query in ("", "?v=", "?v=000000000000"):
            other = browser.client.get(f"/review/static/{name}{query}")
            assert other.content == file.content
            assert other.headers["cache-control"] == "no-cache"
        assert {**versioned.headers, "cache-control": "no-store"}.items() >= {
            name.lower(): value for name, value in HEADERS.items()
        }.items()
    for name in (
        "../render.py",
        "..%2frender.py",
        "..%2f..%2f..%2fpyproject.toml",
        "review.css%00",
        "",
        "%2e%2e",
    ):
        assert browser.client.get(f"/review/static/{name}").status_code == 404


# From here on the application is called without a server, with settings and faults of its own.


@dataclass
class Inside:
    """The whole application in this process, and browsers whose addresses the test chooses."""

    app: FastAPI
    store: Store
    now: float = 0.0  # of the clock by which attempts are counted, in seconds

    def browser(self, address: str, base_url: str = "http://gate") -> httpx.AsyncClient:
        """A browser at this address."""
        transport = httpx.ASGITransport(self.app, client=(address, 1), raise_app_exceptions=False)
        return httpx.AsyncClient(transport=transport, base_url=base_url)

    async def attempt(self, address: str, token: str | None = None, **headers: str) -> httpx.Response:
        """One attempt to sign in, with a token that is none unless one is given."""
        async with self.browser(address) as client:
            fields = hidden(await client.get(SIGN_IN))
            return await client.post(SIGN_IN, data=fields | {"token": token or "none"}, headers=headers)


@contextmanager
def inside(url: str, shared: Path | None = None, **settings: Any) -> Iterator[Inside]:
    """The application over this database."""
    with open_service(Settings(database_url=url, offline=True, **settings)) as service:
        gate = Inside(create_app(service), service.store)
        gate.app.state.sign_in_attempts = Attempts(shared, lambda: gate.now)
        yield gate


def run(work: Coroutine[Any, Any, None]) -> None:
    """Runs it to its end."""
    asyncio.run(work)


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A new SQLite file: what is looked at here is the same on both databases."""
    return f"sqlite:///{tmp_path}/groundgate.db"


def test_attempts_are_limited_for_each_place_and_for_all(url: str) -> None:
    token = make_token(url, Role.REVIEWER, ["ann"])

    async def work(gate: Inside) -> None:
        for _ in range(20):
            answer = await gate.attempt("198.51.100.1", **{"Sec-Fetch-Site": "cross-site"})
            assert answer.status_code == 403  # takes none: or any site could shut a visitor out
        for _ in range(ATTEMPTS_PER_MINUTE):
            assert "not known" in is_page(await gate.attempt("198.51.100.1"), 403)
        refused = await gate.attempt("198.51.100.1", token)
        assert "Too many attempts" in is_page(refused, 429)
        assert refused.headers["retry-after"] == "7"  # ten a minute is one every six seconds
        async with gate.browser("198.51.100.1") as client:  # links are counted with tokens
            fields = hidden(await client.get(f"{SIGN_IN}/{'A' * 43}"))
            is_page(await client.post(f"{SIGN_IN}/{'A' * 43}", data=fields), 429)
        left = ALL_ATTEMPTS_PER_MINUTE - ATTEMPTS_PER_MINUTE
        answers = [await gate.attempt(f"192.0.2.{n}") for n in range(left)]
        assert {answer.status_code for answer in answers} == {403}  # those refused before took none of all
        refused = await gate.attempt("198.51.100.2", token)
        assert "Too many attempts" in is_page(refused, 429)
        assert refused.headers["retry-after"] == "2"
        gate.now += 7
        assert (await gate.attempt("198.51.100.1", token)).status_code == 303

    with inside(url) as gate:
        run(work(gate))


def test_addresses_of_one_network_of_ipv6_are_one_place(url: str) -> None:
    async def work(gate: Inside) -> None:
        for n in range(ATTEMPTS_PER_MINUTE):
            assert (await gate.attempt(f"2001:db8:0:1::{n:x}")).status_code == 403
        assert (await gate.attempt("2001:db8:0:1:ffff::1")).status_code == 429
        assert (await gate.attempt("2001:db8:0:2::1")).status_code == 403

    with inside(url) as gate:
        run(work(gate))


def test_workers_count_attempts_together_and_let_nobody_in_when_they_cannot(url: str, tmp_path: Path) -> None:
    token = make_token(url, Role.REVIEWER, ["ann"])
    shared = tmp_path / "shared"
    shared.mkdir()

    async def work(gates: tuple[Inside, Inside]) -> None:
        for n in range(ATTEMPTS_PER_MINUTE):
            assert (await gates[n % 2].attempt("198.51.100.1")).status_code == 403
        assert [(await gate.attempt("198.51.100.1")).status_code for gate in gates] == [429, 429]
        for file in shared.iterdir():
            file.unlink()
        shared.rmdir()
        failed = await gates[0].attempt("198.51.100.9", token)
        assert "Something went wrong here" in is_page(failed, 500)
        assert str(shared) not in failed.text
        assert cookie(failed, COOKIE) is None

    with inside(url, shared) as one, inside(url, shared) as other:
        run(work((one, other)))


def test_a_database_that_does_not_answer_is_a_page_too(url: str) -> None:
    token = make_token(url, Role.REVIEWER, ["ann"])

    async def work(gate: Inside) -> None:
        async with gate.browser("198.51.100.1") as client:
            fields = hidden(await client.get(SIGN_IN)) | {"token": token}
            gate.store.writer.close()
            answer = await client.post(SIGN_IN, data=fields)
        assert "The database did not take this now" in is_page(answer, 503)
        assert answer.headers["retry-after"] == "1"
        assert cookie(answer, COOKIE) is None

    with inside(url) as gate:
        run(work(gate))


def test_the_public_address_makes_cookies_secure_and_is_our_own_site(url: str) -> None:
    token = make_token(url, Role.REVIEWER, ["ann"])

    async def work(gate: Inside) -> None:
        async with gate.browser("198.51.100.1", "https://inner.name:8080") as client:
            fields = hidden(await client.get(SIGN_IN)) | {"token": token}
            foreign = await client.post(SIGN_IN, data=fields, headers={"Origin": "https://gate.example.com"})
            is_page(foreign, 403)
            answer = await client.post(SIGN_IN, data=fields, headers={"Origin": "https://gate.example.org"})
        session = cookie(answer, COOKIE)
        assert session is not None
        assert session["secure"] is True

    with inside(url, public_url="https://Gate.example.org/") as gate:
        run(work(gate))
