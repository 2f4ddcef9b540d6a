"""Signing in to the pages and out again, as a browser does it, and as those do who should not get in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from tests.acceptance.site import Site, is_problem, queue
from tests.visiting import SECRET, SIGN_IN, SIGN_OUT, Browser, cookie, has_headers, hidden, is_page
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.people import Principal, Role
from vouchgate.review.pages.render import STATIC, asset
from vouchgate.server.headers import HEADERS, NOTHING, PAGES
from vouchgate.storage.identity import sessions, tokens
from vouchgate.storage.log import chain as log
from vouchgate.web.session import BULK_BYTES, COOKIE, FORM_COOKIE, SINGLE_BYTES

pytestmark = pytest.mark.on("sqlite")


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
        return Browser(client)

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


@pytest.mark.parametrize("role", [Role.AGENT, Role.RECORDER, Role.ADMIN])
def test_nobody_without_pages_signs_in_and_is_told_why(
    browser: Browser, site: Site, owner: str, role: Role
) -> None:
    principal, token = site.token(role, owner)
    answer = browser.sign_in(token)
    assert "not a reviewer's or an auditor's, so it cannot sign in" in is_page(answer, 403)
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
    for token in (revoked_token, expired_token, "vg_" + "0" * 16 + "_" + "A" * 43, "hunter2", "", "\u202e"):
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
        "/review?q=" + "a" * 5000,
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
    assert "vouchgate token link ID" in text
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
        assert problem.headers["content-security-policy"] == NOTHING
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
        assert versioned.headers["content-security-policy"] == PAGES
    for name in (
        "../render.py",
        "..%2frender.py",
        "..%2f..%2f..%2fpyproject.toml",
        "review.css%00",
        "",
        "%2e%2e",
    ):
        assert browser.client.get(f"/review/static/{name}").status_code == 404


def test_without_a_provider_there_is_no_way_to_one(browser: Browser) -> None:
    assert "Sign in with" not in browser.client.get(SIGN_IN).text
    for path in ("/oidc", "/oidc/back?code=a&state=b"):
        is_page(browser.client.get(SIGN_IN + path), 404)
