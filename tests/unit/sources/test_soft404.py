"""Answers that say 200 and are not the page that was asked for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vouchgate.ingest.sources.web.page import Page
from vouchgate.ingest.sources.web.soft404 import AnswerKind, judge_move, judge_page, load_words

WORDS = load_words()
LONG = "The proxy keeps every connection open until the far side has read all of it. " * 30
MIDDLE = "The proxy keeps every connection open until the far side has read all of it. " * 8


@pytest.mark.parametrize(
    ("asked", "final"),
    [
        ("https://a.example/x", "https://a.example/x"),
        ("http://a.example/docs/x", "https://a.example/docs/x"),
        ("https://a.example/docs/x", "https://www.a.example/docs/x/"),
        ("https://a.example/docs/X.html", "https://a.example/docs/x"),
        ("https://a.example/latest/pool.html", "https://a.example/3.12/pool.html"),
        ("https://a.example/pool", "https://a.example/en-US/docs/pool"),
        ("https://a.example/", "https://a.example/en/"),
        ("https://a.example", "https://www.a.example/index.html"),
        ("https://a.example/latest/", "https://a.example/en/3.2/"),
        ("https://a.example/?utm_source=mail", "https://a.example/"),
        ("https://a.example/?p=12", "https://a.example/2020/05/title/"),
        ("https://a.example/old/name", "https://b.example/new/name"),
        # it became a site of its own
        ("https://a.example/docs", "https://docs.a.example/"),
        ("https://code.example/p/tern/", "https://tern.dev/"),
        ("https://bit.ly/3abcde", "https://a.example/"),
        # it was asked for by that name
        ("https://a.example/login", "https://a.example/en/login"),
        ("https://a.example/status/404", "https://a.example/reference/status/404"),
        ("https://login.a.example/about", "https://login.a.example/about/"),
        ("https://a.example/guide/auth", "https://a.example/guide/auth/overview"),
        ("https://a.example/guide/sign", "https://a.example/guide/authorize"),
        ("https://dan.com/buy", "https://dan.com/buy/"),
        ("https://a.example/x", "https://[bad/"),
    ],
)
def test_a_redirect_that_keeps_the_page(asked: str, final: str) -> None:
    assert judge_move(asked, final, WORDS) is AnswerKind.PAGE


@pytest.mark.parametrize(
    ("asked", "final", "look"),
    [
        ("https://a.example/docs/pool.html", "https://a.example/", AnswerKind.HOME),
        ("https://a.example/docs/pool.html", "https://a.example", AnswerKind.HOME),
        ("https://a.example/docs/pool.html", "https://www.a.example/en/", AnswerKind.HOME),
        ("https://a.example/docs/pool.html", "https://a.example/home.aspx?lang=en", AnswerKind.HOME),
        ("https://a.example/3.1/pool.html", "https://a.example/3.2/", AnswerKind.HOME),
        ("https://a.example/?p=12", "https://a.example/", AnswerKind.HOME),
        ("https://old.example/blog/post", "https://buyer.example/", AnswerKind.HOME),
        ("https://a.example/x", "https://a.example/404.html", AnswerKind.NOT_FOUND),
        ("https://a.example/x", "https://a.example/errors/not-found", AnswerKind.NOT_FOUND),
        ("https://a.example/x", "https://a.example/login?next=%2Fx", AnswerKind.LOGIN),
        ("https://a.example/x", "https://a.example/users/sign_in", AnswerKind.LOGIN),
        ("https://a.example/x", "https://a.example/wp-login.php?redirect_to=x", AnswerKind.LOGIN),
        ("https://a.example/x", "https://login.vendor.example/common/step?client=1", AnswerKind.LOGIN),
        ("https://a.example/x", "https://a.example/oauth2/authorize?redirect_uri=x", AnswerKind.LOGIN),
        ("https://a.example/x", "https://www.hugedomains.com/domain_profile.cfm?d=a", AnswerKind.PARKED),
        ("https://a.example/x", "http://ww25.a.example/x?subid1=2", AnswerKind.PARKED),
        ("https://a.example/", "http://ww25.a.example/?subid1=2", AnswerKind.PARKED),
    ],
)
def test_a_redirect_to_something_else(asked: str, final: str, look: AnswerKind) -> None:
    assert judge_move(asked, final, WORDS) is look


@pytest.mark.parametrize(
    "page",
    [
        Page(title="Page not found | Tern"),
        Page(title="404 Not Found", text="nginx"),
        Page(title="Error 404"),
        Page(title="Tern", heading="Oops! That page can’t be found.", text=MIDDLE),
        Page(title="Tern", heading="404"),
        Page(title="Error 404 (Not Found)!!1"),
        Page(title="Tern", text="Sorry, the page you requested could not be found.\nGo back"),
        Page(title="Seite nicht gefunden – Tern", text=MIDDLE),
        Page(title="ページが見つかりません"),
    ],
)
def test_a_page_that_says_there_is_none(page: Page) -> None:
    assert judge_page("https://a.example/docs/pool", page, WORDS) is AnswerKind.NOT_FOUND


@pytest.mark.parametrize(
    ("asked", "page"),
    [
        # about such pages, by its length
        ("https://a.example/errors", Page(title="Page not found", heading="Page not found", text=LONG)),
        # by the address
        ("https://a.example/status/404", Page(title="404 Not Found - HTTP", heading="404 Not Found", text=MIDDLE)),
        ("https://a.example/custom-not-found-pages", Page(title="Page not found", text=MIDDLE)),
        ("https://a.example/captcha", Page(title="Captcha", text=MIDDLE)),
        ("https://a.example/login", Page(title="Log in", text="E-mail", asks_password=True)),
        ("https://a.example/sign-in/", Page(title="Sign in", text="E-mail", asks_password=True)),
        ("https://a.example/domains/for-sale", Page(title="Buy this domain", text="Buy this domain")),
        # by saying more than that
        ("https://a.example/x", Page(title="How to write a page not found handler", text="Return 404.")),
        ("https://a.example/x", Page(title="Gone fishing", text="The 404 error says that nothing was found here.")),
        ("https://a.example/x", Page(title="Log in to the cluster with a token", text="Run ferry login.")),
        ("https://a.example/x", Page(title="Log in", text=MIDDLE)),
        # words that are openers and say nothing
        ("https://a.example/x", Page(title="Status | Tern", text="Version 4.2 is current.")),
        ("https://a.example/x", Page(title="Code", text="x = 1")),
        ("https://a.example/x", Page()),
        ("https://a.example/x", Page(title="HTTP", heading="Errors", text="The server may answer 404.")),
        ("https://a.example/x", Page(title="Tern", text=f"{LONG} Enable JavaScript. This domain is for sale.")),
    ],
)  # fmt: skip
def test_a_real_page_that_talks_of_such_things(asked: str, page: Page) -> None:
    assert judge_page(asked, page, WORDS) is AnswerKind.PAGE


@pytest.mark.parametrize(
    ("page", "look"),
    [
        (Page(title="Sign in · Tern", asks_password=True, text=MIDDLE), AnswerKind.LOGIN),
        (Page(title="Tern", heading="Log in to your account", text="Continue with SSO"), AnswerKind.LOGIN),
        (Page(title="Just a moment..."), AnswerKind.WALL),
        (Page(title="Attention Required! | Shield", text=MIDDLE), AnswerKind.WALL),
        (Page(title="Tern", heading="Verify you are human"), AnswerKind.WALL),
        (Page(title="Before you continue", text=MIDDLE), AnswerKind.WALL),
        (
            Page(title="tern.example", text="The domain tern.example: this domain is for sale!"),
            AnswerKind.PARKED,
        ),
        (Page(title="Tern", text="You need to enable JavaScript to run this app."), AnswerKind.NEEDS_SCRIPT),
    ],
)
def test_what_else_a_page_can_be(page: Page, look: AnswerKind) -> None:
    assert judge_page("https://a.example/docs/pool", page, WORDS) is look


@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=60))
def test_any_text_is_judged(asked: str, final: str, text: str) -> None:
    assert judge_move(asked, final, WORDS) in AnswerKind
    assert judge_page(asked, Page(title=final, text=text, heading=text), WORDS) in AnswerKind


@given(
    st.sampled_from(["", "x/y", "docs/pool.html", "en/", "?p=1", "a?next=b"]), st.text("abc/.", max_size=12)
)
def test_an_address_that_did_not_change_is_the_page(path: str, more: str) -> None:
    url = f"https://a.example/{path}{more}"
    assert judge_move(url, url, WORDS) is AnswerKind.PAGE


def test_every_phrase_of_the_lists_can_match() -> None:
    """Phrases are written as texts are compared: lower case, no apostrophes, no signs."""
    phrases = [
        *WORDS.openers,
        *WORDS.not_found,
        *WORDS.not_found_words,
        *WORDS.parked,
        *WORDS.login,
        *WORDS.wall,
        *WORDS.needs_script,
    ]
    plain = [
        " ".join("".join(c if c.isalnum() else " " for c in each.casefold()).split()) for each in phrases
    ]
    assert phrases == plain
