"""A real Chromium for tests of the pages, and windows in it that complain about whatever went wrong in them.

The browser is driven through playwright's synchronous half, which keeps an event loop running in the thread of the
test. One browser serves all modules of a test process, because it takes a second of the processor to start; its loop
counts as running only while a module has the browser, so that tests of other modules can have loops of their own
(`Chromium.awake`). What is run is what the environment variable CHROMIUM names, or else Debian's
`chromium-headless-shell`, which is the same engine without a window around it and takes a quarter less of the
processor, or else its `chromium`; nothing is downloaded here.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Error,
    Page,
    Request,
    WebError,
    expect,
    sync_playwright,
)

from tests.acceptance.site import Site
from vouchgate.ingest.claims.people import Role
from vouchgate.storage.identity import sessions
from vouchgate.web.session import COOKIE

PROGRAMS = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)
# Of the browser itself, nothing of a page: suggestions under the address, which are two more pages of its own for every
# window, and processes that it starts ahead. The rest is what playwright switches off, in place of whose list
# this one is.
OFF = (
    "WebUIOmniboxPopup",
    "WebUIOmniboxAimPopup",
    "SpareRendererForSitePerProcess",
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsUpgrades",
    "HttpsFirstBalancedModeAutoEnable",
    "LensOverlay",
    "MediaRouter",
    "PaintHolding",
    "ThirdPartyStoragePartitioning",
    "AvoidCorsURLLoaderRestartOnRedirect",
    "OptimizationHints",
    "NetworkTimeServiceQuerying",
    "AimEnabled",
    "PreconnectToSearch",
)
FLAGS = (
    "--no-sandbox",  # tests may run as root, where Chromium refuses to start with it
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--renderer-process-limit=1",  # of each window: what it opens, and it itself once it leaves its empty page, is one
    f"--disable-features={','.join(OFF)}",
    "--js-flags=--single-threaded",  # scripts this short gain nothing from threads that compile and tidy up ahead
)
PHONE = (390, 844)
DESKTOP = (1280, 800)
SECONDS = 60  # for what a page is waited for; far over what it takes, because other tests run beside
POLL = 20  # milliseconds between two looks whether something is there
AXE_TAGS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa")
# Of what axe calls best practice, what is serious or worse where it is not kept.
AXE_PRACTICES = (
    *("accesskeys", "aria-dialog-name", "aria-text", "aria-treeitem-name", "frame-tested"),
    *("label-title-only", "tabindex"),
)
# What can differ from one theme or width to another, beside contrast; the rest is in the document, whichever way it is
# shown.
AXE_LOOKS = ("link-in-text-block", "scrollable-region-focusable", "target-size")

# Runs before any script of a page: says every breach of the Content-Security-Policy aloud, and notes what moves. What
# moves just after the window got its size counts too, which the web's score leaves out.
_WATCH = """
addEventListener('securitypolicyviolation', event => console.error(
  'Content-Security-Policy:', event.violatedDirective, event.blockedURI, event.sourceFile, event.lineNumber));
window.testMoved = [];
new PerformanceObserver(list => {
  for (const entry of list.getEntries())
    window.testMoved.push([entry.value, entry.sources.map(({node, previousRect, currentRect}) => [
      node && (node.outerHTML || node.data).slice(0, 80), JSON.stringify(previousRect), JSON.stringify(currentRect)])]);
}).observe({type: 'layout-shift', buffered: true});
"""


def program() -> str:
    """The path of the browser to run. Raises RuntimeError when there is none."""
    named = os.environ.get("CHROMIUM")
    for name in (named,) if named else PROGRAMS:
        if (path := shutil.which(name)) is not None:
            return path
    raise RuntimeError(
        f"no {named or 'chromium'} here; `make test` installs one, CHROMIUM=PATH names another"
    )


@dataclass
class Window:
    """One person's browser: cookies and storage of its own. `page` is its first tab."""

    origin: str
    context: BrowserContext
    page: Page
    faults: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)

    def expect(self, *parts: str) -> None:
        """From now on a fault that has one of these texts in it is none: Chromium logs an answer of 409 to a
        request of a page's script as an error, for one."""
        self.expected += parts

    def tab(self) -> Page:
        """A further tab of the same person."""
        return self.context.new_page()

    def go(self, path: str, page: Page | None = None) -> Page:
        """Opens a path of the served site, in the first tab unless said otherwise."""
        page = page or self.page
        page.goto(self.origin + path)
        return page

    def fault(self, text: str) -> None:
        """Notes what went wrong."""
        if not any(part in text for part in self.expected):
            self.faults.append(text)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning", "assert"):
            where = message.location
            self.fault(
                f"console {message.type}: {message.text} ({where.get('url')}:{where.get('lineNumber')})"
            )

    def _error(self, error: WebError) -> None:
        self.fault(f"script error: {error.error}")

    def _dialog(self, dialog: Dialog) -> None:
        # A page that asks before it is left is dismissed too: none of ours does.
        self.fault(f"dialog {dialog.type}: {dialog.message}")
        dialog.dismiss()

    def _request(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if f"{parts.scheme}://{parts.netloc}" != self.origin and parts.scheme not in ("data", "blob"):
            self.fault(f"request to another origin: {request.method} {request.url}")

    def _failed(self, request: Request) -> None:
        # What a page still loads or listens to is cut off when it is left.
        if request.resource_type != "document" and request.failure == "net::ERR_ABORTED":
            return
        self.fault(f"request failed: {request.method} {request.url} {request.failure}")


@dataclass
class Chromium:
    """The running browser, and the windows that the test at hand has opened."""

    browser: Browser
    loop: asyncio.AbstractEventLoop
    windows: list[Window] = field(default_factory=list)

    @contextmanager
    def awake(self) -> Iterator[None]:
        """In the block the browser can be driven, and no other event loop can run in this thread. Outside it is as if
        there were none: nothing is heard from the browser, and nothing may be asked of it."""
        asyncio._set_running_loop(self.loop)
        try:
            yield
        finally:
            asyncio._set_running_loop(None)

    def window(
        self,
        origin: str,
        *,
        javascript: bool = True,
        dark: bool = False,
        phone: bool = False,
        calm: bool = False,
    ) -> Window:
        """A new window for the site at this origin. `calm` asks for reduced motion."""
        width, height = PHONE if phone else DESKTOP
        context = self.browser.new_context(
            java_script_enabled=javascript,
            color_scheme="dark" if dark else "light",
            viewport={"width": width, "height": height},
            has_touch=phone,
            is_mobile=phone,
            device_scale_factor=1,
            reduced_motion="reduce" if calm else "no-preference",
            locale="en-GB",
            timezone_id="UTC",
        )
        context.set_default_timeout(SECONDS * 1000)
        if javascript:
            context.add_init_script(_WATCH)
        window = Window(origin.rstrip("/"), context, context.new_page())
        context.on("console", window._console)
        context.on("weberror", window._error)
        context.on("dialog", window._dialog)
        context.on("request", window._request)
        context.on("requestfailed", window._failed)
        self.windows.append(window)
        return window

    def close(self) -> list[str]:
        """Closes every window; what went wrong in them."""
        faults = []
        for window in self.windows:
            with suppress(Error):
                # What was said but not yet heard arrives before the answer to this does.
                window.page.evaluate("0")
            faults += window.faults
            window.context.close()
        self.windows.clear()
        return faults


@contextmanager
def open_chromium() -> Iterator[Chromium]:
    """Runs the browser until the end of the block, asleep: whoever wants windows wakes it."""
    expect.set_options(timeout=SECONDS * 1000)
    playwright = sync_playwright().start()
    opened = None
    try:
        browser = playwright.chromium.launch(executable_path=program(), args=list(FLAGS))
        opened = Chromium(browser, asyncio.get_running_loop())
        asyncio._set_running_loop(None)
        yield opened
    finally:
        if opened is not None:
            asyncio._set_running_loop(opened.loop)
            opened.browser.close()
        playwright.stop()


def sign_in(site: Site, window: Window, owner: str) -> None:
    """Has the owner's reviewer signed in here, as if by the form: only so many attempts a minute are taken there."""
    sign_in_with(site, window, site.token(Role.REVIEWER, owner)[1])


def sign_in_with(site: Site, window: Window, token: str) -> None:
    """The same with a reviewer's token that is there."""
    secret = sessions.start(site.store, token, now=datetime.now(UTC))
    assert isinstance(secret, str), secret
    host = urlsplit(window.origin).hostname or ""
    window.context.add_cookies(
        [{"name": COOKIE, "value": secret, "domain": host, "path": "/review", "httpOnly": True}]
    )


def waits(page: Page, count: int) -> None:
    """Waits until the badge says that so many claims wait. `expect` would look again only after 100 ms, then 250."""
    page.wait_for_function(
        """count => { const badge = document.querySelector('#badge');
            return badge?.dataset.waiting === count && badge.textContent.includes(count); }""",
        arg=str(count),
        polling=POLL,
    )


def moved(page: Page) -> list[Any]:
    """What has moved in a page since it was opened, which nobody has touched yet: a pair of how much (as the web's
    layout shift score counts it) and which elements each, from where to where."""
    page.wait_for_load_state("load")
    # Two frames later everything of the load has been drawn; when there is nothing else to do, the observer was told.
    page.evaluate(
        "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => requestIdleCallback(done))))"
    )
    found: list[Any] = page.evaluate("window.testMoved")
    return found


def overflow(page: Page) -> float:
    """By how many CSS pixels the page can be scrolled sideways: by how many it is wider than its window."""
    pixels: float = page.evaluate(
        """() => {
            const at = [scrollX, scrollY];
            scrollTo(1e6, scrollY);
            const reached = scrollX;
            scrollTo(...at);
            return reached;
        }"""
    )
    return pixels


def faults_of_access(page: Page, *, within: str = "html", looks_only: bool = False) -> list[str]:
    """What axe-core finds serious or critical in the page, a line for each fault with where it is; `within` is a
    selector of the part to look at. With `looks_only`, what can differ from one theme or width to another.

    Most of axe's time would go into contrast: of letters that had enough of it in this process, others that look the
    same have it too, wherever they stand."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    options: dict[str, Any] = {
        "runOnly": {"type": "rule", "values": AXE_LOOKS}
        if looks_only
        else {"type": "tag", "values": AXE_TAGS},
        "rules": {} if looks_only else {rule: {"enabled": True} for rule in AXE_PRACTICES},
        "resultTypes": ["violations"],
        "preload": False,  # of style sheets and sounds, at which no rule looks that is run and is serious
    }
    options["rules"]["color-contrast"] = {"enabled": False}
    found, good = page.evaluate(_FAULTS, [within, options, sorted(_ENOUGH_CONTRAST)])
    _ENOUGH_CONTRAST.update(good)
    return [
        f"{fault['impact']} {fault['id']}: {fault['help']} at {node['target']}: {node['html'][:200]}"
        for fault in found
        if fault["impact"] in ("serious", "critical")
        for node in fault["nodes"]
    ]


_ENOUGH_CONTRAST = set[str]()  # how letters look for which axe has found it
# How the letters of an element look: their colour and size, and the colours of what they are in.
_LOOK = """const look = node => {
    const {color, fontSize, fontWeight} = getComputedStyle(node);
    const found = new Set();
    for (let at = node; at; at = at.parentElement) {
        const {backgroundColor, backgroundImage, opacity} = getComputedStyle(at);
        found.add(`${backgroundColor} ${backgroundImage} ${opacity}`);
    }
    found.delete('rgba(0, 0, 0, 0) none 1');
    return [color, fontSize, fontWeight, ...found].join(' ');
};
const written = [...document.querySelectorAll('body, body *')].filter(node => node.checkVisibility() && (
    node.matches('input, select, textarea')
    || [...node.childNodes].some(({nodeType, data}) => nodeType === Node.TEXT_NODE && data.trim())));"""
_FAULTS = (
    f"async ([within, options, enough]) => {{ {_LOOK}"
    + """
    const part = document.querySelector(within), known = new Set(enough);
    const include = written.filter(node => part.contains(node) && !known.has(look(node)));
    const {violations} = await axe.run(part, options);
    if (!include.length) return [violations, []];
    const contrast = await axe.run({include}, {
        runOnly: ['color-contrast'], resultTypes: ['violations', 'passes'], elementRef: true});
    const [found, good] = [contrast.violations, contrast.passes].map(
        all => all.flatMap(({nodes}) => nodes.map(({element}) => look(element))));
    return [[...violations, ...contrast.violations], good.filter(one => !found.includes(one))];
}"""
)


def is_for_everybody(page: Page, narrow: tuple[int, int] = PHONE) -> None:
    """Looks at the page as it stands, in both themes, at a desk and in a narrow window: axe-core finds nothing serious,
    and nothing has to be scrolled sideways."""
    looks: dict[str, list[str]] = {}
    for size, theme in ((DESKTOP, "light"), (narrow, "light"), (narrow, "dark"), (DESKTOP, "dark")):
        page.set_viewport_size({"width": size[0], "height": size[1]})
        page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
        assert overflow(page) == 0, (page.url, size, widest(page))
        assert faults_of_access(page, looks_only=bool(looks)) == [], (page.url, size, theme)
        looks[theme] = page.evaluate(f"() => {{ {_LOOK} return written.map(look); }}")
    assert looks["light"] != looks["dark"], page.url


def widest(page: Page) -> list[str]:
    """The innermost elements that reach over the right edge of the window, or whose text reaches over their own, for
    the message of a test that failed."""
    found: list[str] = page.evaluate(
        """[...document.body.querySelectorAll('*')]
            .filter(node => node.checkVisibility() && getComputedStyle(node).overflowX === 'visible')
            .filter(node => node.getBoundingClientRect().right + scrollX > document.documentElement.clientWidth + 1
                || (node.clientWidth && node.scrollWidth > node.clientWidth + 8))
            .filter((node, at, all) => !all.some(other => other !== node && node.contains(other)))
            .map(node => `${node.outerHTML.slice(0, 100)} to ${node.getBoundingClientRect().right}`)"""
    )
    return found
