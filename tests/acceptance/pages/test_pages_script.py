"""What the script of the pages does where hands, keyboards, networks and other tabs do not do what was expected."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.acceptance.site import Site, queue
from tests.browser import Chromium, Window, sign_in, waits
from tests.running.waiting import UNGROUNDED, fill, open_desk
from vouchgate.ingest.claims.people import Role
from vouchgate.storage.identity import sessions
from vouchgate.web.session import COOKIE

pytestmark = pytest.mark.on("sqlite")

EXPORT = (
    "The nightly alpha export starts at 02:00 UTC, writes one compressed beta file per customer to the gamma archive"
    " bucket, and must finish before the delta billing run begins at {}."
)
COMES_BACK = (
    "dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))"  # from the browser's own cache
)


@pytest.fixture(scope="module")
def site(module_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with open_desk(module_database_url, tmp_path_factory.mktemp("desk")) as opened:
        yield opened


def open_queue(site: Site, windows: Chromium, owner: str, count: int) -> Window:
    """The queue page of an owner, with so many claims that wait."""
    if count:
        fill(site, owner, count, rules=(UNGROUNDED,))
    window = windows.window(site.running.url)
    sign_in(site, window, owner)
    window.go("/review")
    return window


def rows(page: Page) -> list[str]:
    found: list[str] = page.eval_on_selector_all(
        "#queue > .row:not(.gone, .leaving)", "rows => rows.map(row => row.dataset.id)"
    )
    return found


def centre(button: Locator) -> tuple[float, float]:
    box = button.bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def statuses(site: Site, owner: str) -> dict[str, int]:
    """How many of the owner's items are in each status that a test of one owner may end in."""
    reviewer = site.reviewer(owner)
    return {
        status: len(reviewer.get("/v1/reviews", params={"status": status, "limit": 200}).json()["items"])
        for status in ("pending", "approved", "rejected")
    }


def reject(site: Site, owner: str, item_id: str) -> None:
    """The owner rules on a claim elsewhere, in its first version."""
    answer = site.reviewer(owner).post(
        f"/v1/reviews/{item_id}/reject", json={"version": 1, "reason": "Not true"}
    )
    assert answer.status_code == 200, answer.text


def test_two_clicks_and_a_held_key_are_one_act(site: Site, windows: Chromium, owner: str) -> None:
    page = open_queue(site, windows, owner, 6).page
    page.keyboard.press("a")
    expect(page.locator(".row")).to_have_count(5)
    place = centre(page.locator(".row .approve").first)
    page.mouse.click(*place)
    waits(page, 4)
    expect(page.locator(".row")).to_have_count(4)
    # The second half of a double click, on the button that has moved under the pointer.
    assert page.evaluate(
        "place => document.elementFromPoint(...place).closest('.approve') !== null", list(place)
    )
    page.mouse.down(click_count=2)
    page.mouse.up(click_count=2)
    for _ in range(3):
        page.keyboard.down("a")  # pressed once, and held
    page.keyboard.up("a")
    waits(page, 3)
    # The same on the page of a claim: whoever presses twice is not told that it was approved before.
    page.keyboard.press("o")
    page.wait_for_url("**/items/**")
    page.evaluate(
        "() => { for (let at = 0; at < 3; at++) document.querySelector('#approve-form').requestSubmit(); }"
    )
    page.wait_for_url("**/items/*?done=*")
    expect(page.locator("main .said").first).to_contain_text("Approved")
    expect(page.locator("#problem")).to_have_count(0)
    assert statuses(site, owner) == {"pending": 2, "approved": 4, "rejected": 0}


def test_keys_are_found_with_capslock_and_in_other_scripts(site: Site, windows: Chromium, owner: str) -> None:
    page = open_queue(site, windows, owner, 4).page
    press = """key => document.activeElement.dispatchEvent(
        new KeyboardEvent('keydown', {bubbles: true, cancelable: true, ...key}))"""
    for left, key in ((3, {"key": "A", "code": "KeyA"}), (2, {"key": "ф", "code": "KeyA"})):
        page.evaluate(press, key)
        waits(page, left)
    # A letter of the same script as ours counts as itself, wherever it is; with Shift nothing is meant.
    page.evaluate(press, {"key": "q", "code": "KeyA"})
    page.evaluate(press, {"key": "A", "code": "KeyA", "shiftKey": True})
    page.evaluate(press, {"key": "A", "code": "KeyQ"})
    waits(page, 1)


def test_space_and_enter_keep_their_meaning(site: Site, windows: Chromium, owner: str) -> None:
    page = open_queue(site, windows, owner, 3).page
    box = page.locator(".row input").nth(1)
    box.focus()
    page.keyboard.press("Space")
    expect(box).to_be_checked()
    page.keyboard.press("Enter")
    # Whatever it did would be told before this.
    page.keyboard.press("x")
    expect(box).not_to_be_checked()
    page.locator(".row .reject").nth(1).focus()
    page.keyboard.press("Enter")
    dialog = page.locator("#reject-dialog")
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    page.locator(".row .approve").nth(1).focus()
    page.keyboard.press("Space")
    waits(page, 2)
    assert statuses(site, owner) == {"pending": 2, "approved": 1, "rejected": 0}


def test_a_rejection_without_a_reason_asks_for_it(site: Site, windows: Chromium, owner: str) -> None:
    window = open_queue(site, windows, owner, 2)
    page = window.page
    first, second = rows(page)
    page.keyboard.press("r")
    page.keyboard.press("Enter")
    dialog = page.locator("#reject-dialog")
    expect(dialog.get_by_role("alert")).to_contain_text("Choose a reason")
    page.keyboard.press("2")
    page.keyboard.press("Enter")
    waits(page, 1)
    window.go(f"/review/items/{second}")
    page.keyboard.press("r")
    page.keyboard.press("Enter")
    expect(page.locator("#reject").get_by_role("alert")).to_contain_text("Choose a reason")
    page.keyboard.press("3")
    page.keyboard.press("Enter")
    page.wait_for_url("**/review?done=*")
    notes = {item: site.reviewer(owner).get(f"/v1/reviews/{item}").json()["note"] for item in (first, second)}
    assert notes == {first: "Out of date", second: "Cannot be verified"}


def test_what_conflicts_by_now_is_asked_and_is_taken_back_in_order(
    site: Site, windows: Chromium, owner: str
) -> None:
    agent = site.agent(owner)
    for time in ("05:30", "06:30", "07:30"):
        queue(agent, EXPORT.format(time))
    page = open_queue(site, windows, owner, 0).page
    waits(page, 3)
    page.locator("#bulk summary").click()
    page.get_by_label("A conflict").select_option("true")
    # Of what is longer than its line, only what was in sight beside the list.
    page.get_by_role("button", name="Approve all 3 listed").click()
    expect(page.locator(".toast")).to_contain_text(
        "1 approved. 2 left waiting, as not all of them was in sight"
    )
    expect(page.locator(".row .outcome")).to_have_count(2)
    waits(page, 2)
    page.keyboard.press("u")
    waits(page, 3)
    expect(page.locator(".row:not(.gone, .leaving)")).to_have_count(3)
    for row in rows(page):
        page.locator(f'.row[data-id="{row}"] a.open').focus()
        page.locator(f'#pane.seen [data-for^="{row}:"]').wait_for()
    # One after the other, each in place of the one before; undone together, the last first.
    page.get_by_role("button", name="Approve all 3 listed").click()
    waits(page, 0)
    page.keyboard.press("u")
    expect(page.locator(".said")).to_contain_text("3 taken back")
    waits(page, 3)
    expect(page.locator(".row:not(.gone, .leaving)")).to_have_count(3)
    # The first to be stored was sent when nothing was; the list asks once it knows of a conflict.
    oldest = min(rows(page))
    page.locator(f'.row[data-id="{oldest}"] a.open').focus()
    page.locator(f'#pane [data-for^="{oldest}:"]').wait_for()
    page.keyboard.press("a")
    waits(page, 2)
    page.reload()
    page.locator(".row").first.locator("a.open").focus()
    page.keyboard.press("a")
    page.keyboard.press("2")
    waits(page, 1)
    assert statuses(site, owner) == {"pending": 1, "approved": 2, "rejected": 0}


def test_a_service_out_of_reach_loses_nothing(site: Site, windows: Chromium, owner: str) -> None:
    window = open_queue(site, windows, owner, 3)
    page = window.page
    window.expect("ERR_INTERNET_DISCONNECTED", "ERR_NETWORK_CHANGED")
    before = rows(page)
    window.context.set_offline(True)
    page.keyboard.press("a")
    expect(page.locator(".said")).to_contain_text("cannot be reached")
    expect(page.locator(".row:not(.leaving)")).to_have_count(3)
    window.context.set_offline(False)
    page.locator(".row .approve").first.click()
    waits(page, 2)
    expect(page.locator(".row")).to_have_count(2)
    # An undo that did not arrive can be repeated.
    window.context.set_offline(True)
    page.keyboard.press("u")
    expect(page.locator(".said")).to_contain_text("cannot be reached")
    window.context.set_offline(False)
    page.keyboard.press("u")
    expect(page.locator(".said")).to_contain_text("Taken back")
    waits(page, 3)
    expect(page.locator(".row:not(.gone, .leaving)")).to_have_count(3)
    assert sorted(rows(page)) == sorted(before)


def test_who_is_signed_out_meanwhile_signs_in_and_is_back(site: Site, windows: Chromium, owner: str) -> None:
    window = open_queue(site, windows, owner, 2)
    page = window.page
    window.expect("status of 401")
    for leave in ("document.querySelector('.row .approve').click()", COMES_BACK):
        window.go("/review?order=newest")
        (cookie,) = [each for each in window.context.cookies() if each.get("name") == COOKIE]
        assert sessions.end(site.store, cookie.get("value", ""), now=datetime.now(UTC))
        page.evaluate(leave)
        page.wait_for_url("**/review/sign-in?next=*order%3Dnewest")
        assert page.locator(".row").count() == 0
        sign_in(site, window, owner)
    # Signed in anew in another tab: this one's forms are over, and it knows.
    window.expect("/opened:0)")  # it may be that this one still says what was looked at, which is refused
    window.go("/review")
    sign_in(site, window, owner)
    with page.expect_navigation():
        page.evaluate(COMES_BACK)
    page.keyboard.press("a")
    waits(page, 1)
    # What was typed for an act that was not done is there again.
    page.keyboard.press("r")
    page.keyboard.press("2")
    page.locator("#reject-reason").fill("As the minutes say")
    (cookie,) = [each for each in window.context.cookies() if each.get("name") == COOKIE]
    assert sessions.end(site.store, cookie.get("value", ""), now=datetime.now(UTC))
    page.keyboard.press("Enter")  # at once: a page that hears of it goes to sign in by itself
    page.wait_for_url("**/review/sign-in?next=*")
    sign_in(site, window, owner)
    window.go("/review")
    page.keyboard.press("r")
    expect(page.locator("#reject-reason")).to_have_value("As the minutes say")
    page.locator("#reject-dialog button[value=ok]").click()
    waits(page, 0)
    assert statuses(site, owner) == {"pending": 0, "approved": 1, "rejected": 1}


def test_what_was_typed_on_the_page_of_a_claim_outlasts_a_session(
    site: Site, windows: Chromium, owner: str
) -> None:
    window = open_queue(site, windows, owner, 2)
    page = window.page
    window.expect("status of 401", "status of 403")
    first, second = rows(page)

    def end_session() -> None:
        (cookie,) = [each for each in window.context.cookies() if each.get("name") == COOKIE]
        assert sessions.end(site.store, cookie.get("value", ""), now=datetime.now(UTC))

    window.go(f"/review/items/{first}")
    page.keyboard.press("e")
    page.get_by_label("Your wording").fill("The mill has four stones,\nas Ada counted.")
    end_session()
    page.get_by_role("button", name="Approve this wording").click()
    expect(page.get_by_role("heading", name="Sign in first")).to_be_visible()
    page.get_by_role("link", name="Sign in").click()
    page.get_by_label("Reviewer's token").fill(site.token(Role.REVIEWER, owner)[1])
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"**/review/items/{first}")
    expect(page.get_by_label("Your wording")).to_have_value("The mill has four stones,\nas Ada counted.")
    # Signed in once more in another tab: this page's forms are over.
    sign_in(site, window, owner)
    page.get_by_role("button", name="Approve this wording").click()
    expect(page.locator("main")).to_contain_text("you have signed in again since")
    window.go(f"/review/items/{first}")
    page.get_by_role("button", name="Approve this wording").click()
    page.wait_for_url(f"**/review/items/{second}?done={first}")

    page.keyboard.press("r")
    page.keyboard.press("2")
    page.locator("#reason").fill("As the minutes say")
    end_session()
    page.get_by_role("button", name="Reject").click()
    expect(page.get_by_role("heading", name="Sign in first")).to_be_visible()
    sign_in(site, window, owner)
    window.go(f"/review/items/{second}")
    expect(page.locator("#reason")).to_have_value("As the minutes say")
    page.get_by_role("button", name="Reject").click()
    waits(page, 0)
    window.go(f"/review/items/{second}")
    page.get_by_role("button", name="Undo").click()
    page.wait_for_url("**/items/*?done=*")
    expect(page.locator("#reason")).to_have_value("")  # of an act that was done
    (memory,) = site.reviewer(owner).get("/v1/memories").json()["items"]
    assert memory["content"] == "The mill has four stones,\nas Ada counted."


def test_a_claim_of_many_emoji_can_be_edited(site: Site, windows: Chromium, owner: str) -> None:
    """A browser counts each as two characters."""
    claim = "🚢" * 4200 + " are in the harbour."
    queue(site.agent(owner), claim)
    window = open_queue(site, windows, owner, 0)
    window.expect("status of 422")
    page = window.page
    page.keyboard.press("a")  # it is longer than the list shows
    page.wait_for_url("**/review/items/*")
    page.keyboard.press("e")
    page.keyboard.press("Control+End")
    page.keyboard.press("Backspace")
    page.keyboard.type("!")
    page.get_by_role("button", name="Approve this wording").click()
    waits(page, 0)
    (memory,) = site.reviewer(owner).get("/v1/memories").json()["items"]
    assert memory["content"] == claim[:-1] + "!"
    # One that is too long is told, and is still there.
    queue(site.agent(owner), "The attic is dry.")
    page.goto(f"{site.running.url}/review")
    page.keyboard.press("e")
    wording = page.get_by_label("Your wording")
    expect(wording).to_be_focused()
    wording.fill("x " * 4097)
    page.get_by_role("button", name="Approve this wording").click()
    expect(page.locator("#problem")).to_contain_text("1 to 8192 characters")
    expect(wording).to_have_value("x " * 4097)


def test_what_cannot_be_taken_back_is_asked_first(site: Site, windows: Chromium, owner: str) -> None:
    agent = site.agent(owner)
    queue(agent, "Bea keeps the spare key")
    queue(agent, "The barn is locked", delivery={"sink": "kg", "place": "barn", "op": "remove"})
    page = open_queue(site, windows, owner, 0).page
    page.locator(".row a.open", has_text="Bea").focus()
    page.keyboard.press("a")
    page.keyboard.press("a")
    dialog = page.locator("#removal-dialog")
    expect(dialog).to_contain_text("Has barn removed from kg. This cannot be taken back.")
    waits(page, 1)
    page.keyboard.press("Escape")
    expect(page.locator("#pane [data-act=approve]")).to_contain_text("Remove…")
    page.locator("#bulk summary").click()
    page.get_by_role("button", name="Approve all 1 listed").click()
    expect(page.locator("#results")).to_contain_text("Approve it by itself")
    page.locator(".row a.open").focus()
    page.keyboard.press("o")
    page.wait_for_url("**/items/**")
    page.keyboard.press("a")
    expect(page.get_by_role("button", name="Approve the removal")).to_be_focused()
    page.go_back()
    page.keyboard.press("a")
    page.keyboard.press("1")
    waits(page, 0)
    assert statuses(site, owner) == {"pending": 0, "approved": 2, "rejected": 0}


def test_what_was_fetched_before_an_act_does_not_undo_it_on_the_page(
    site: Site, windows: Chromium, owner: str
) -> None:
    window = open_queue(site, windows, owner, 3)
    page = window.page
    gone, *left = rows(page)
    old = window.context.request.get(f"{window.origin}/review").text()
    page.evaluate(
        """() => {
            window.testAdded = [];
            const seen = new MutationObserver(changes => changes.forEach(change => change.addedNodes.forEach(
                node => node.id && window.testAdded.push(node.id))));
            seen.observe(document.querySelector('#queue'), {childList: true});
        }"""
    )
    held: list[Route] = []

    def hold(route: Route) -> None:
        if held:
            route.continue_()
        held.append(route)

    page.route("**/review", hold)
    with page.expect_request("**/review"):
        page.evaluate(COMES_BACK)
    page.locator(f'.row[data-id="{gone}"] a.open').focus()
    page.keyboard.press("a")
    waits(page, 2)
    with page.expect_response("**/review"):
        held[0].fulfill(body=old, content_type="text/html")
    with page.expect_response("**/review"):
        page.evaluate(COMES_BACK)
    page.unroute_all(behavior="wait")
    assert rows(page) == left
    assert page.evaluate("window.testAdded") == []


def test_many_tabs_are_open_and_each_catches_up_when_it_is_looked_at(
    site: Site, windows: Chromium, owner: str
) -> None:
    """A browser opens six connections to a site; with a stream in each tab the seventh page would never come."""
    window = open_queue(site, windows, owner, 4)
    items = rows(window.page)
    tabs = [window.go("/review", window.tab()) for _ in range(3)]
    tabs += [window.go(f"/review/items/{item}", window.tab()) for item in items]
    for tab in tabs:
        waits(tab, 4)
    # A tab that nobody looks at lets go of its stream; back in sight it is told how things are.
    tab = tabs[-1]
    look = """hidden => {
        Object.defineProperty(document, 'hidden', {configurable: true, get: () => hidden});
        document.dispatchEvent(new Event('visibilitychange'));
    }"""
    tab.evaluate(look, True)
    reject(site, owner, items[0])
    with tab.expect_request("**/review/events"):
        tab.evaluate(look, False)
    waits(tab, 3)
    # So is one that the browser had put aside as a whole.
    window.page.evaluate("dispatchEvent(new PageTransitionEvent('pagehide', {persisted: true}))")
    reject(site, owner, items[1])
    with window.page.expect_request("**/review/events"):
        window.page.evaluate(COMES_BACK)
    expect(window.page.locator(".row:not(.gone)")).to_have_count(2)
    waits(window.page, 2)
