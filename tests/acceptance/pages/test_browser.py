"""The windows of the browser tests hear what goes wrong in a page: without that, silence would prove nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.browser import Chromium, Window, faults_of_access, moved, overflow
from tests.web import Answer, WebServer, web_server

HTML = {"Content-Type": "text/html; charset=utf-8"}
STRICT = HTML | {"Content-Security-Policy": "default-src 'none'; style-src 'self'"}


def page(body: str) -> str:
    return (
        f'<!doctype html><html lang="en"><head><title>A page</title></head><body><main><h1>A page</h1>{body}'
    )


PAGES = {
    "/favicon.ico": Answer(status=204),
    "/quiet": Answer(page("<p>Nothing happens here.</p>"), headers=STRICT),
    "/inline": Answer(page("<script>document.title = 'changed'</script>"), headers=STRICT),
    "/thrown": Answer(page("<script>setTimeout(() => { throw new Error('of the script') })</script>")),
    "/dialog": Answer(page("<script>alert('hello')</script>")),
    "/elsewhere": Answer(page('<img src="http://127.0.0.2:9/picture" alt="A picture">')),
    "/late": Answer(
        page(
            "<p id=a></p><p>Words.</p><script>setTimeout("
            "() => { document.getElementById('a').style.height = '300px' }, 300)</script>"
        )
    ),
    "/wide": Answer(page(f"<p>{'w' * 500}</p>")),
    "/pale": Answer(page('<p style="color: #ccc; background: #fff">Pale.</p><input>')),
}


@pytest.fixture(scope="module")
def pages() -> Iterator[WebServer]:
    with web_server(dict(PAGES)) as server:
        yield server


def heard(chromium: Chromium, window: Window, path: str) -> str:
    """What a window says that opens this page."""
    window.go(path)
    window.page.wait_for_load_state("load")
    return " | ".join(chromium.close())


def test_a_quiet_page_is_quiet(windows: Chromium, pages: WebServer) -> None:
    for javascript in (True, False):
        window = windows.window(pages.url, javascript=javascript)
        window.go("/quiet")
        assert overflow(window.page) == 0
        assert windows.close() == []


def test_what_goes_wrong_is_heard(windows: Chromium, pages: WebServer) -> None:
    assert "Content-Security-Policy: script-src-elem inline" in heard(
        windows, windows.window(pages.url), "/inline"
    )
    assert "script error: of the script" in heard(windows, windows.window(pages.url), "/thrown")
    assert "dialog alert: hello" in heard(windows, windows.window(pages.url), "/dialog")
    found = heard(windows, windows.window(pages.url), "/elsewhere")
    assert "request to another origin: GET http://127.0.0.2:9/picture" in found
    assert "request failed: GET http://127.0.0.2:9/picture" in found
    expecting = windows.window(pages.url)
    expecting.expect("404")
    assert heard(windows, expecting, "/nowhere") == ""
    assert "404" in heard(windows, windows.window(pages.url), "/nowhere")


def test_what_is_measured_is_there(windows: Chromium, pages: WebServer) -> None:
    window = windows.window(pages.url, phone=True)
    quiet = window.go("/quiet")
    assert moved(quiet) == []
    assert faults_of_access(quiet) == []
    late = window.go("/late")
    late.wait_for_function("document.getElementById('a').style.height === '300px'")
    assert moved(late)
    assert overflow(window.go("/wide")) > 1000
    for _ in range(2):  # what was found once is no less a fault
        faults = "\n".join(faults_of_access(window.go("/pale")))
        assert "serious color-contrast" in faults
        assert "critical label" in faults
    assert "serious color-contrast" in "\n".join(faults_of_access(window.page, looks_only=True))
