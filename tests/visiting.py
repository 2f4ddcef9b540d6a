"""What the tests of the pages ask of every answer, seen as a browser sees it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from http.cookies import Morsel, SimpleCookie

import httpx
from lxml import html

from vouchgate.server.headers import HEADERS, PAGES
from vouchgate.web.session import COOKIE

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
    for name, value in (HEADERS | {"Content-Security-Policy": PAGES}).items():
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
        (value,) = set(page.xpath("//header//input[@name='csrf']/@value"))
        return str(value)
