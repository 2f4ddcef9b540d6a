"""The page that `gate-doc --format html` writes, in a browser: what it shows, by keyboard, in both themes, on paper."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser import DESKTOP, Chromium, faults_of_access, overflow
from tests.unit.documents.checks import FALSE, LOG, PARTLY, TRUE, report
from tests.web import Answer, WebServer, web_server
from vouchgate.documents.formats import html

TEXT = f"""# Kilns

{TRUE} {FALSE}

| kiln | <script>alert(1)</script> | built |
|------|------|-------|
| Vester | red | 1935 [book]({LOG}) |

{PARTLY}

The bowls are sold in Ribe [7].

A name that turns \u202eround is red.

{"The bowls of Vester are sold in Ribe, in Tonder and in many other towns. " * 30}
"""


@pytest.fixture(scope="module")
def served() -> Iterator[WebServer]:
    page = html.write(report(TEXT))
    with web_server({"/": Answer(page), "/favicon.ico": Answer("")}) as server:
        yield server


def cards(page: Page, verdict: str) -> int:
    return page.locator(f"article[data-verdict={verdict}]:visible").count()


def test_the_page_has_the_claims_coloured_and_the_passage_beside_each(
    windows: Chromium, served: WebServer
) -> None:
    page = windows.window(served.url).go("/")
    expect(page.locator("h1")).to_have_text("Not passed")
    expect(page.locator(".reasons")).to_contain_text("false")
    true = page.locator("a.v.good").first
    expect(true).to_contain_text("reaches 1,300 degrees")
    card = page.locator("article[data-verdict=FALSE]").first
    expect(card).to_contain_text("“1935”")
    expect(card.locator("blockquote")).to_contain_text("It was built in 1921 by Oda Brandt.")
    expect(card.locator(f'a[href="{LOG}"]')).to_have_count(1)
    expect(card).to_contain_text(LOG)
    words = page.locator("a.v.bad").first.bounding_box()
    beside = card.bounding_box()
    assert words is not None and beside is not None
    assert beside["x"] > words["x"] + 300 and abs(beside["y"] - words["y"]) < 500
    assert "\u202e" not in page.content()
    assert served.paths() == ["GET /"]


def test_verdicts_are_chosen_and_claims_are_walked_through_by_keyboard(
    windows: Chromium, served: WebServer
) -> None:
    page = windows.window(served.url).go("/")
    assert cards(page, "FALSE") >= 1 and cards(page, "UNCITED") >= 1
    page.get_by_role("checkbox", name="UNCITED").uncheck()
    page.get_by_role("checkbox", name="PARTIAL").uncheck()
    assert (cards(page, "UNCITED"), cards(page, "PARTIAL")) == (0, 0)
    page.locator("h1").click()
    seen = []
    for key in "jjk":
        page.keyboard.press(key)
        seen.append(page.evaluate("document.activeElement.dataset.verdict"))
    assert seen == ["VERIFIED", "FALSE", "VERIFIED"]
    expect(page.locator("a.v.here")).to_contain_text("1,300 degrees")
    for _ in range(9):
        page.keyboard.press("j")
        card = page.locator("article:focus").bounding_box()
        assert card is not None
        assert card["y"] > 60 and card["y"] + card["height"] < DESKTOP[1] - 60, "it is at the edge"
    page.locator("a.v.bad").first.click()
    assert page.evaluate("document.activeElement.dataset.verdict") == "FALSE"


@pytest.mark.parametrize(("dark", "phone"), [(False, False), (True, False), (False, True)])
def test_everybody_can_read_it(windows: Chromium, served: WebServer, dark: bool, phone: bool) -> None:
    page = windows.window(served.url, dark=dark, phone=phone).go("/")
    assert faults_of_access(page, looks_only=dark) == []
    assert overflow(page) == 0


def test_it_is_whole_without_scripts_and_on_paper(windows: Chromium, served: WebServer) -> None:
    page = windows.window(served.url, javascript=False).go("/")
    assert cards(page, "FALSE") >= 1
    expect(page.locator(".filter input").first).to_be_hidden()
    page.emulate_media(media="print")
    expect(page.locator("header.top")).to_be_hidden()
    expect(page.locator("article[data-verdict=FALSE]").first).to_be_visible()
