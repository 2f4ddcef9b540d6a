"""Claims, sources and names that would harm a careless page: every page shows them as text, and stays usable."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.acceptance.site import Site, approve, claim, open_site, submit
from tests.browser import Chromium, Window, moved, overflow, sign_in, widest
from tests.web import Answer, WebServer, web_server

# Everything here is told apart by what it would do: set `testHarm`, open a dialog, ask another host, leave its place.
CLAIMS = {
    "script": "<script>window.testHarm = 1; alert(1)</script><img src=//127.0.0.9/x onerror=alert(2)> "
    "\"' onmouseover=alert(3) autofocus onfocus=\"window.testHarm = 4\" style='position:fixed' x=",
    "closing": "</textarea></title></style></script></p></li></main><svg onload=alert(5)><base href=//127.0.0.9/> "
    "<iframe src=//127.0.0.9/></iframe><meta http-equiv=refresh content=0;url=//127.0.0.9/><form>",
    "entities": "&lt;img src=x&gt; &#x3C;script&#x3E;alert(6)&#x3C;/script&#x3E; &nbsp;&amp;amp; &notanentity; "
    "{{ 7 * 7 }} {% for x in y %} ${alert(7)} #{alert(8)} <%= 1 %> %3Cscript%3E \\u003cscript\\u003e "
    "Read javascript:alert(9) or data:text/html,<script>alert(10)</script> or vbscript:msgbox(1)",
    "unseen": "The account \u202e0001 si rebmun ehT\u202c is \u2066closed\u2069 \u200ffor good\u202d \u2067today by "
    "the ad\u200bmin\u2060istr\u00adator\ufeff of the \u180eold\u034f ser\U000e0041vice \u3164 \x1b[31m \x07",
    "right to left": "خدمة الأرشيف تحفظ السجلات في المخزن الشمالي كل ليلة. השירות שומר את הרשומות במחסן הצפוני.",
    "piled up": "The z"
    + "\u0301\u0336\u0489" * 120
    + "one is guarded by the 👩‍👩‍👧‍👦 family 🏳️‍🌈 for 5 € a month 🧾.",
    "no space": "w" * 8192,
    "lines": "First line\r\nsecond line\n\n\n\n\tand a tab" + "\n" * 200 + "and the last one",
    "many marks": "\u202e" * 4000 + "end",
}
# What nobody would see is named where it stands.
NAMED = (
    *("U+202E", "U+202C", "U+2066", "U+2069", "U+200F", "U+202D", "U+2067"),
    *("U+200B", "U+2060", "U+00AD", "U+FEFF", "U+E0041", "U+3164", "U+001B", "U+0007"),
)
NAME = "<img src=x onerror=alert(11)>\"'"  # of an owner
PAGE = """<!doctype html><html lang="en"><head><title>Ports &lt;script&gt;alert(12)&lt;/script&gt; \u202eof</title>
</head><body><main><h1>Ports of the gateway</h1>
<p>The gateway exports its metrics on port 9410 &lt;/blockquote&gt;&lt;script&gt;alert(13)&lt;/script&gt; \u202eand.
The administration interface listens on port 9411 and is bound to the loopback address.</p>
<p>{}</p></main></body></html>""".format("o" * 3000)
_TEMPLATE = (
    "The nightly {} export starts at 02:00 UTC, writes one compressed file per customer to the {} archive <b>bucket</b>"
    " \u202eand must\u202c finish before the {} billing run begins at {}."
)


@pytest.fixture(scope="module")
def web() -> Iterator[WebServer]:
    """The pages that claims cite; one leads to another host."""
    with web_server({"/ports": Answer(PAGE), "/visited": Answer(PAGE)}, "127.0.0.2") as other:
        there = f"{other.url}/ports"
        routes: dict[str, Any] = {
            "/moved": Answer(status=301, headers={"Location": there}),
            "/ports": Answer(PAGE),
        }
        with web_server(routes) as server:
            yield server


@pytest.fixture(scope="module", params=["sqlite"])  # what is shown does not depend on where it was kept
def site(tmp_path_factory: pytest.TempPathFactory, web: WebServer) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("database")
    url, policy = f"sqlite:///{folder}/vouchgate.db", folder / "policy.toml"
    policy.write_text("[web]\nspacing_seconds = 0\n")
    leads = web.routes["/moved"]
    assert isinstance(leads, Answer)
    networks = f"{web.place},{urlsplit(leads.headers['Location']).netloc}"
    environment = {"VOUCHGATE_CITATION_NETWORKS": networks}
    with open_site(url, policy=policy, environment=environment) as opened:
        yield opened


def no_harm(page: Page) -> None:
    """Nothing of what was shown has become more than text, nothing is wider than the window, and what one works with
    is there to be pressed."""
    found = page.evaluate(
        r"""() => {
            const bad = [], addresses = ['href', 'src', 'action', 'formaction'];
            const controls = 'button, .button, input:not([type=hidden]), select, textarea';
            if (window.testHarm !== undefined) bad.push('a script ran');
            for (const node of document.querySelectorAll('*')) {
                for (const {name, value} of node.attributes) {
                    if (/^(on.*|style|srcdoc)$/.test(name)) bad.push(`${node.nodeName} ${name}`);
                    if (addresses.includes(name) && !/^(\/review|#|https?:\/\/)/.test(value))
                        bad.push(`${node.nodeName} ${name}=${value.slice(0, 80)}`);
                }
            }
            for (const name of ['iframe', 'object', 'embed', 'base', 'svg', 'style', 'main img', 'meta[http-equiv]'])
                if (document.querySelector(name)) bad.push(name);
            if (document.querySelectorAll('script').length !== 1) bad.push('scripts');
            const width = document.documentElement.clientWidth;
            for (const node of document.querySelectorAll(controls)) {
                if (!node.checkVisibility() || node.closest('dialog')) continue;
                const box = node.getBoundingClientRect();
                if (box.width < 12 || box.height < 12 || box.left < 0 || box.right > width + 1)
                    bad.push(`${node.outerHTML.slice(0, 120)} is at ${box.left} to ${box.right} of ${width}`);
            }
            return bad;
        }"""
    )
    assert found == [], page.url
    assert overflow(page) == 0, (page.url, widest(page))
    # Only what says it leads elsewhere does, and it does not tell where from.
    for link in page.eval_on_selector_all(
        "a[href^=http]", "all => all.map(a => [a.href, a.rel, a.target, a.parentElement.textContent])"
    ):
        href, rel, target, around = link
        assert {"noreferrer", "noopener"} <= set(rel.split()), link
        assert target == "_blank", link
        host = urlsplit(href).hostname
        assert host
        assert host in around, link


def unfold(page: Page) -> None:
    page.eval_on_selector_all("main details", "all => all.forEach(details => { details.open = true; })")


def look_around(window: Window, paths: list[str]) -> None:
    for path in paths:
        page = window.go(path)
        assert moved(page) == [], path
        unfold(page)
        no_harm(page)


def test_hostile_claims_do_no_harm(site: Site, windows: Chromium, web: WebServer) -> None:
    owner = site.owner(NAME)
    agent = site.agent(owner)
    ids = {}
    for name, content in CLAIMS.items():
        body = claim(
            content, "ai_synthesis", metadata={f"{name}<b>": content[:500], "w" * 300: ["</dl>", NAME]}
        )
        ids[name] = submit(agent, body, 202).queue_id
    parts = "<script>alert(14)</script>", "</del><svg onload=alert(15)>", "w" * 900
    approve(agent, site.reviewer(owner), _TEMPLATE.format(*parts, "05:30"))
    ids["conflict"] = submit(agent, claim(_TEMPLATE.format(*parts, "06:30"), "ai_synthesis"), 202).queue_id
    paths = ["/review", f"/review?q={quote(CLAIMS['script'][:60])}&order=newest"]
    paths.append(f"/review/memories?q={quote(CLAIMS['closing'][:60])}")
    phone, desktop = (windows.window(site.running.url, phone=small) for small in (True, False))
    for window in (phone, desktop):
        sign_in(site, window, owner)
    look_around(phone, paths)
    look_around(desktop, [f"/review/items/{ids['no space']}", f"/review/items/{ids['conflict']}", paths[0]])
    expect(desktop.page.locator(".row")).to_have_count(len(ids))

    # In a form each is the text that was sent, and so it is as a memory.
    acts = []
    for name, item_id in ids.items():
        page = phone.go(f"/review/items/{item_id}")
        shown = page.locator("p.claim").first
        if name == "script":
            assert CLAIMS[name] in shown.inner_text()
        elif name == "unseen":
            assert [mark for mark in NAMED if mark not in shown.inner_text()] == []
            assert not {*shown.inner_text()} & {*"\u202e\u202c\u2066\u2069\u200f\u202d\u2067"}
        elif name == "right to left":
            assert shown.evaluate("node => getComputedStyle(node).direction") == "rtl"
        assert moved(page) == [], name
        unfold(page)
        no_harm(page)
        typed = page.get_by_label("Your wording").input_value()
        assert name == "conflict" or typed == CLAIMS[name].replace("\r\n", "\n")
        acts.append({"action": "approve", "id": item_id, "version": 1, "supersede": False})
    page.get_by_label("Keep both").first.check()
    page.locator("#approve-form button.main").click()
    page.wait_for_selector(".said[role=status]")
    no_harm(page)
    done = site.reviewer(owner).post("/v1/reviews/batch", json={"items": acts[:-1]}).json()["results"]
    assert {one["memory"]["content"] for one in done} == set(CLAIMS.values())
    kept = [one["memory"]["id"] for one in done]
    look_around(phone, ["/review/memories", "/review/history", *(f"/review/memories/{one}" for one in kept)])

    # What the owner types is no less hostile.
    memory = desktop.go(f"/review/memories/{kept[0]}")
    memory.locator("summary").last.click()
    memory.get_by_label("Why?").fill(CLAIMS["closing"] + CLAIMS["unseen"])
    memory.get_by_role("button", name="Retract").click()
    expect(memory.locator(".said.bad")).to_contain_text("U+202E")
    no_harm(memory)


def test_what_is_cited_is_shown_as_text_with_its_real_host(
    site: Site, windows: Chromium, web: WebServer
) -> None:
    owner = site.owner()
    agent = site.agent(owner)
    host = urlsplit(web.url).netloc
    cited = {
        "conflict": f"{web.url}/ports",
        "moved": f"{web.url}/moved",
        "user": f"http://example.org@{host}/ports",
        "letters": "https://аррlе.invalid/login",
        "script": f"{web.url}/onfocus=alert(16)?'style=x",
        "long": f"{web.url}/{'w' * 1500}",
    }
    ids = {}
    for name, url in cited.items():
        body = claim(f"The gateway exports its {name} metrics on port 9500.", "ai_synthesis", citations=[url])
        ids[name] = submit(agent, body, 202).queue_id
    # No link can be made of these; the gate says so at once, or shows them as text.
    for value in ("javascript:alert(17)", "data:text/html,<script>alert(18)</script>"):
        body = claim(
            "The gateway is documented.", "ai_synthesis", citations=[{"type": "url", "value": value}]
        )
        assert agent.post("/v1/claims", json=body).status_code == 422
    items = [f"/review/items/{item_id}" for item_id in ids.values()]
    for phone, paths in ((True, ["/review", *items]), (False, ["/review", items[-1]])):
        window = windows.window(site.running.url, phone=phone)
        sign_in(site, window, owner)
        look_around(window, paths)
    page = window.go(f"/review/items/{ids['moved']}")
    source = page.locator(".source").first
    expect(source).to_contain_text("127.0.0.2")
    expect(source).to_contain_text("<script>alert(12)</script>")
    expect(source).to_contain_text("port 9410")
    expect(window.go(f"/review/items/{ids['letters']}").locator(".source").first).to_contain_text("xn--")
    page = window.go(f"/review/items/{ids['user']}")
    assert page.locator("a[href^='http'][href*='example.org']").count() == 0

    # Opened, the source is told nothing: not which page it was, and no way back to it.
    window.expect("request to another origin: GET http://127.0.0.", "favicon.ico")
    page = window.go(f"/review/items/{ids['conflict']}")
    before = len(web.asked)
    with window.context.expect_page() as opened:
        page.locator(".source a[target=_blank]").first.click()
    opened.value.wait_for_load_state()
    assert opened.value.evaluate("[window.opener, document.referrer]") == [None, ""]
    (asked,) = [one for one in web.asked[before:] if one.path == "/ports"]
    assert "referer" not in asked.headers
    assert "cookie" not in asked.headers
