"""The pages for everybody: axe-core finds no serious fault in either theme at either width, the keyboard reaches
everything and shows where it is, and nothing moves while a page loads."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from playwright.sync_api import Page, expect

from tests.acceptance.site import Site, claim, queue, submit
from tests.browser import DESKTOP, PHONE, Chromium, faults_of_access, moved, overflow, sign_in, widest
from tests.running.waiting import (
    CONFLICT,
    HEDGED,
    RULES,
    UNCHECKED,
    UNGROUNDED,
    Waiting,
    fill,
    open_desk,
)
from vouchgate.ingest.claims.people import Role
from vouchgate.storage.identity import sessions

APPROVED, REJECTED = 5, 7  # of what `waiting` made; the first of them replaced a stored memory
NARROW = (320, 640)  # the width at which nothing may have to be scrolled sideways: WCAG 2.2, 1.4.10
BETWEEN = 650  # of a phone and a desk


@pytest.fixture(
    scope="module", params=["sqlite"]
)  # how a page looks does not depend on where its rows were kept
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("desk")
    with open_desk(f"sqlite:///{folder}/vouchgate.db", folder) as opened:
        yield opened


@pytest.fixture(scope="module")
def owner(site: Site) -> str:
    """An owner with some of everything: claims that wait, were sent again, rejected before; memories of each kind."""
    return site.owner("ada")


@pytest.fixture(scope="module")
def waiting(site: Site, owner: str) -> list[Waiting]:
    """What waits for the owner, at least one of each rule."""
    found = fill(site, owner, 8)
    agent, reviewer = site.agent(owner), site.reviewer(owner)
    queue(agent, found[4].content)
    stored = submit(
        agent, claim("Orders are kept in PostgreSQL, see ADR-001.", "ai_synthesis", "decision"), 201
    )
    site.draw(owner, str(stored.memory_id))
    for index, act in ((APPROVED, "approve"), (6, "approve"), (REJECTED, "reject")):
        body = {"version": 1} | ({"reason": "Not true"} if act == "reject" else {})
        if found[index].rule == CONFLICT:
            body["supersede"] = True
        answer = reviewer.post(f"/v1/reviews/{found[index].id}/{act}", json=body)
        assert answer.status_code == 200, answer.text
    queue(agent, found[REJECTED].content)
    return found


def pages_of(site: Site, owner: str, waiting: list[Waiting]) -> list[str]:
    """The path of every page; of items, those that have what no other has."""
    rules = {one.rule: one for one in waiting[: len(RULES)]}
    items = [*(rules[rule] for rule in (CONFLICT, HEDGED, UNCHECKED)), waiting[APPROVED], waiting[REJECTED]]
    stored = (
        site.reviewer(owner).get("/v1/memories", params={"status": ["active", "superseded"]}).json()["items"]
    )
    cited = next(one["id"] for one in stored if one["source_id"] is not None)
    replaced = next(one["id"] for one in stored if one["status"] == "superseded")
    return [
        "/review",
        "/review?q=nothing+has+these+words",
        *(f"/review/items/{one.id}" for one in items),
        "/review/memories",
        f"/review/memories/{cited}",
        f"/review/memories/{replaced}",
        "/review/spot-checks",
        f"/review/memories/{cited}?wrong=1",
        "/review/publishers?publisher=example.com",
        f"/review/standing-rulings?item={waiting[REJECTED].id}&term=template&verdict=reject",
        "/review/history",
        "/review/sessions",
        "/review/nowhere",
    ]


def inspect(page: Page, within: str = "html") -> None:
    """Looks at the page, or a part of it, as it stands: light at a desk, then dark on a phone."""
    assert faults_of_access(page, within=within) == [], (page.url, "light")
    page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    page.emulate_media(color_scheme="dark")
    assert faults_of_access(page, within=within, looks_only=True) == [], (page.url, "dark")
    for width in (BETWEEN, NARROW[0]):
        page.set_viewport_size({"width": width, "height": NARROW[1]})
        assert overflow(page) == 0, (page.url, width, widest(page))
    page.set_viewport_size({"width": DESKTOP[0], "height": DESKTOP[1]})
    page.emulate_media(color_scheme="light")


def open_details(page: Page) -> None:
    page.eval_on_selector_all("main details", "all => all.forEach(details => { details.open = true; })")


def test_pages_have_no_serious_fault_stand_still_and_are_reached_by_the_keyboard(
    site: Site, windows: Chromium, owner: str, waiting: list[Waiting]
) -> None:
    desk = windows.window(site.running.url, calm=True)
    phone = windows.window(site.running.url, calm=True, phone=True, dark=True)
    for window in (desk, phone):
        window.expect("status of 404")
        sign_in(site, window, owner)
    paths = pages_of(site, owner, waiting)
    # The others are opened on a phone where their claims are hostile.
    alone = [path for path in paths[1:] if path not in ("/review/memories", "/review/history")]
    for path in paths:
        for window in (desk, phone) if path in alone else (desk,):
            assert moved(window.go(path)) == [], path
            assert overflow(window.page) == 0, (path, widest(window.page))
        assert desk.page.locator("h1").count() == 1, path
        open_details(desk.page)
        inspect(desk.page)
        walk(desk.page, past_header=path != paths[0])
    assert UNGROUNDED in {one.rule for one in waiting}


def test_nothing_moves_for_who_likes_motion(
    site: Site, windows: Chromium, owner: str, waiting: list[Waiting]
) -> None:
    window = windows.window(site.running.url)
    sign_in(site, window, owner)
    for path in ("/review", f"/review/items/{waiting[0].id}"):
        assert moved(window.go(path)) == [], path


def test_the_top_is_as_high_before_all_of_it_has_come(site: Site, windows: Chromium, owner: str) -> None:
    window = windows.window(site.running.url, phone=True)
    sign_in(site, window, owner)
    page = window.go("/review/numbers")
    top = "document.querySelector('header.top nav').getBoundingClientRect().top"
    whole = page.evaluate(top)
    page.evaluate("document.querySelector('header.top > form').remove()")
    assert page.evaluate(top) == whole


def test_signing_in_has_no_serious_fault(
    site: Site, windows: Chromium, owner: str, waiting: list[Waiting]
) -> None:
    window = windows.window(site.running.url, calm=True)
    window.expect("status of 403")
    principal, _ = site.token(Role.REVIEWER, owner)
    page = window.go("/review/sign-in")
    assert moved(page) == []
    walk(page)
    inspect(page)
    page.get_by_label("Reviewer's token").fill("vg_nonsense")
    page.keyboard.press("Enter")
    page.wait_for_selector("[role=alert]")
    inspect(page)
    code = sessions.create_link(site.store, principal.id, actor="test", now=datetime.now(UTC))
    inspect(window.go(f"/review/sign-in/{code}"))
    page.keyboard.press("Enter")
    page.wait_for_url("**/review")


def test_what_lies_over_the_list_has_no_serious_fault(
    site: Site, windows: Chromium, owner: str, waiting: list[Waiting]
) -> None:
    """And what an act leaves behind."""
    window = windows.window(site.running.url, calm=True)
    sign_in(site, window, owner)
    page = window.go("/review")
    assert page.locator(".row").first.evaluate("row => getComputedStyle(row).transitionDuration") == "0s"
    for key, name in (("?", "Keys"), ("a", "conflicts"), ("r", "Reject")):
        page.keyboard.press(key)
        expect(page.get_by_role("dialog")).to_contain_text(name)
        inspect(page, "dialog[open]")
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("x")
    page.get_by_role("button", name="Approve ticked").click()
    expect(page.locator("#results > li")).to_have_count(1)
    inspect(page, "section[aria-labelledby=waiting]")


def test_the_keyboard_is_led_past_what_is_the_same_and_gets_the_focus_back(
    site: Site, windows: Chromium, owner: str, waiting: list[Waiting]
) -> None:
    window = windows.window(site.running.url)
    sign_in(site, window, owner)
    page = window.page
    # The first stop leads past what is the same on every page.
    window.go("/review")
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.querySelector('main').contains(document.activeElement)")

    # The help lies over the page, keeps the focus, and gives it back.
    page.keyboard.press("j")
    before = page.evaluate("document.activeElement.outerHTML")
    for closing in ("Escape", "?"):
        page.keyboard.press("?")
        help_ = page.get_by_role("dialog")
        expect(help_).to_be_visible()
        for _ in range(4):
            page.keyboard.press("Tab")
            assert page.evaluate(
                "document.activeElement === document.body || document.activeElement.closest('dialog') !== null"
            )
        page.keyboard.press(closing)
        expect(help_).to_have_count(0)
        assert page.evaluate("document.activeElement.outerHTML") == before
    # So does the question for a reason.
    page.keyboard.press("r")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.outerHTML") == before

    # A letter that is typed into a field is a letter.
    count = page.locator("#badge").get_attribute("data-waiting")
    page.keyboard.press("/")
    expect(page.get_by_label("Search the waiting claims")).to_be_focused()
    page.keyboard.type("ajkreuxs?g/1")
    expect(page.get_by_label("Search the waiting claims")).to_have_value("ajkreuxs?g/1")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert page.locator("#badge").get_attribute("data-waiting") == count


def walk(page: Page, past_header: bool = False) -> None:
    """Goes through a page with the tab key: every control is met, in the order of the page, and each shows that it
    has the focus and is not hidden behind anything. `past_header` begins with the last control of what stands over
    every page."""
    open_details(page)
    page.evaluate(
        """pastHeader => {
            const controls = 'a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex="0"]';
            const there = node => node.checkVisibility() && !node.disabled;
            const all = [...document.querySelectorAll(controls)].filter(there);
            // Of the choices of a group one stop is enough: the arrow keys lead to the others.
            window.testStops = all.filter((node, at) => node.type !== 'radio' || all.findIndex(
                other => other.type === 'radio' && other.name === node.name && other.form === node.form) === at);
            if (pastHeader) window.testStops.splice(0, window.testStops.findLastIndex(node => node.closest('header')));
            window.testStops[0].focus();
            // What is beside the list is another claim's when the last row of the list is left.
            const follow = number => {
                if (window.testStops[number]?.isConnected) return;
                const now = [...document.querySelectorAll('#pane :is(a, button, input, [tabindex="0"])')].filter(there);
                window.testStops = [...window.testStops.slice(0, number), ...now];
            };
            // How many stops there are before the pane, which is waited for.
            window.testBefore = () => Math.max(0, window.testStops.findIndex(node => node.closest('#pane')));
            // How many stops there are and what is wrong with this one; false within the last one: a day is three
            // fields and a button.
            window.testStop = number => {
                const node = document.activeElement, words = node => node.outerHTML.slice(0, 150);
                if (number && node === window.testStops[number - 1] && node.type === 'date') return false;
                follow(number);
                const wanted = window.testStops[number], of = problem => [window.testStops.length, problem];
                if (node !== wanted) return of(`${words(node)} instead of ${words(wanted)}`);
                const style = getComputedStyle(node), box = node.getBoundingClientRect();
                if (style.outlineStyle === 'none' || parseFloat(style.outlineWidth) < 2)
                    return of(`no visible focus on ${words(node)}`);
                // WCAG 2.2, 2.4.11: not wholly behind something that stays where it is.
                const seen = [0.1, 0.5, 0.9].some(part => {
                    const at = document.elementFromPoint(box.left + box.width / 2, box.top + box.height * part);
                    return at && (node.contains(at) || at.contains(node));
                });
                return of(seen ? null : `out of sight: ${words(node)}`);
            };
            // Told once the key is up: by then the page has been scrolled to where the focus is.
            window.testTold = [];
            const tell = () => {
                const at = window.testTold.length;
                if (at && at >= window.testStops.length) return;
                const told = window.testStop(at);
                if (told) window.testTold.push(told);
            };
            addEventListener('keyup', event => { if (event.key === 'Tab') tell(); });
            tell();
        }""",
        past_header,
    )
    pressed = 0
    while True:
        told = page.evaluate("window.testTold")
        for number, (count, problem) in enumerate(told):
            assert count >= 2 - past_header
            assert problem is None, (page.url, number, problem)
        left = told[-1][0] - len(told)
        if left <= 0:
            return
        before_pane = page.evaluate("window.testBefore()") - len(told)
        if before_pane > 0:
            left = before_pane
        else:
            expect(page.locator("#pane.waiting")).to_have_count(0)
        assert pressed < 10 * told[-1][0], "the focus stays where it is"
        for _ in range(left):
            page.keyboard.press("Tab")
        pressed += left
