"""The list with the chosen claim beside it, in a real browser: what is in sight, and what it costs to clear a queue."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.acceptance.site import Site, open_site
from tests.acceptance.site import claim as body
from tests.browser import Chromium, Window, faults_of_access, moved, overflow, sign_in, waits
from tests.repos import TestRepository
from tests.running.waiting import names

pytestmark = pytest.mark.on("sqlite")

POLICY = "[queue]\nper_agent = 400\nper_owner = 400\ntotal = 1000\n"
ADR = "# 1. Orders\n\n## Status\n\nAccepted\n\n## Decision\n\nOrders are rows in PostgreSQL.\n"
WRONG = re.compile(r"by Zed|ADR-9|may time out|moon")  # what the person of these tests knows to be so
DEPOT = (
    "Shipping of {0} happens from the {1} depot.",
    "The {1} depot ships {0}.",
    "{0} are shipped from the {1} depot.",
    "{0} ship from the depot in {1}.",
)


@pytest.fixture(scope="module")
def site(module_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("desk")
    repository = TestRepository(folder / "repository")
    repository.commit("Write down where orders are kept", {"docs/adrs/0001-orders.md": ADR})
    policy = Path(folder / "policy.toml")
    policy.write_text(POLICY)
    with open_site(module_database_url, repos=[repository.path], policy=policy) as opened:
        yield opened


def send(site: Site, owner: str, texts: list[str], source: str = "ai_synthesis") -> Counter[str]:
    """Sends claims; how many were decided by which rule."""
    agent = site.agent(owner)
    rules: Counter[str] = Counter()
    for start in range(0, len(texts), 50):
        claims = [body(text, source) for text in texts[start : start + 50]]
        answer = agent.post("/v1/claims/batch", json={"claims": claims})
        assert answer.status_code == 200, answer.text
        rules.update(row["rule"] for row in answer.json()["results"])
    return rules


def open_queue(site: Site, windows: Chromium, owner: str, **options: Any) -> Window:
    window = windows.window(site.running.url, **options)
    sign_in(site, window, owner)
    width, height = (390, 844) if options.get("phone") else (1280, 900)
    window.page.set_viewport_size({"width": width, "height": height})
    window.go("/review")
    return window


def statuses(site: Site, owner: str) -> dict[str, str]:
    """What became of each claim of the owner's, by its text."""
    found = {}
    for status in ("pending", "approved", "rejected"):
        params: dict[str, Any] = {"status": status, "limit": 200}
        while params:
            page = site.reviewer(owner).get("/v1/reviews", params=params).json()
            found.update({item["content"]: status for item in page["items"]})
            params = params | {"after": page["next"]} if page.get("next") else {}
    return found


def held_back(page: Page) -> list[Route]:
    """The requests for what stands beside the list, none of which is answered yet."""
    late: list[Route] = []

    def hold(route: Route) -> None:
        late.append(route)

    page.route("**/pane?**", hold)
    return late


def test_what_is_in_sight_stays_in_sight(site: Site, windows: Chromium, owner: str) -> None:
    name = names(3)
    send(site, owner, ["The Oslo shop opens at 8:00."], "user")
    send(site, owner, ["The Oslo shop opens at 7:00."])
    send(
        site,
        owner,
        [f"The {next(name)} desk keeps {next(name)} beside the {next(name)} till." for _ in range(30)],
    )
    window = open_queue(site, windows, owner)
    page = window.page
    assert moved(page) == []
    assert faults_of_access(page) == []
    rows = "[...document.querySelectorAll('.row')].filter(row => row.getBoundingClientRect().bottom <= innerHeight)"
    assert page.evaluate(f"{rows}.length") >= 12
    lined = "row => getComputedStyle(row).outlineStyle === 'solid'"
    page.emulate_media(forced_colors="active")
    assert (
        page.evaluate(f"[...document.querySelectorAll('.row')].filter({lined}).length") == 1
    )  # where neither washes nor shadows are drawn, the chosen one has a line
    page.emulate_media(forced_colors="none")
    # The pane has the neighbour with its difference, and Enter works before anything else was pressed.
    expect(page.locator("#pane del.changed")).to_have_text("8:00")
    expect(page.locator("#pane")).to_contain_text("It conflicts with what is stored")
    page.keyboard.press("Enter")
    page.wait_for_url("**/review/items/**")
    window.go("/review")

    # `a` offers what fits; what was done and the way back stay in sight, however far down.
    page.keyboard.press("a")
    expect(page.locator("#conflict-dialog del.changed")).to_have_text("8:00")
    page.keyboard.press("2")
    waits(page, 30)
    for _ in range(25):
        page.keyboard.press("j")
    toast = page.locator(".toast")
    expect(toast).to_be_in_viewport(ratio=1)
    expect(toast.get_by_role("button", name="Undo")).to_be_in_viewport(ratio=1)
    assert page.evaluate("scrollY") > 300
    assert faults_of_access(page, within=".toast", looks_only=True) == []

    # The next row is there at once: what is beside it was read before it was asked for.
    page.keyboard.press("k")
    expect(page.locator("#pane")).to_contain_text(page.locator(".row[aria-current] a.open").inner_text())
    took = page.evaluate(
        """async () => {
            const times = [];
            for (let at = 0; at < 5; at++) {
                await new Promise(done => setTimeout(done, 150));
                const start = performance.now();
                document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'k', bubbles: true}));
                const id = document.querySelector('.row[aria-current]').dataset.id;
                while (!document.querySelector(`#pane article[data-for^="${id}"]`))
                    await new Promise(done => setTimeout(done));
                times.push(performance.now() - start);
            }
            return times.sort((a, b) => a - b)[2];
        }"""
    )
    assert took < 50

    # What was done is known to the service: `u` takes it back after a reload, and says when there is nothing more.
    page.reload()
    page.keyboard.press("u")
    waits(page, 31)
    expect(page.locator(".toast")).to_contain_text("Taken back")
    page.keyboard.press("u")
    expect(page.locator(".toast")).to_contain_text("nothing of yours to take back")


def test_on_a_phone_there_is_one_claim_with_its_buttons_under_the_thumb(
    site: Site, windows: Chromium, owner: str
) -> None:
    send(site, owner, ["The Oslo shop opens at 8:00."], "user")
    send(
        site, owner, ["The Oslo shop opens at 7:00.", "The pantry may be locked.", "Bea keeps the spare key."]
    )
    window = open_queue(site, windows, owner, phone=True, dark=True)
    page = window.page
    assert moved(page) == []
    assert overflow(page) == 0
    assert faults_of_access(page) == []
    assert (
        page.locator("#pane p.claim").first.evaluate("node => node.getBoundingClientRect().bottom") < 844 / 3
    )
    assert page.locator(".row:visible a.open:visible").count() == 0
    for width in (320, 375, 390):
        page.set_viewport_size({"width": width, "height": 844})
        for button in ("Replace", "Keep both", "Reject…", "Next"):
            expect(page.locator("#pane").get_by_role("button", name=button)).to_be_in_viewport(ratio=1)
        bar = page.locator("#pane > .acts").evaluate("bar => bar.getBoundingClientRect().height")
        assert bar < 70, width  # one line
    page.locator("#pane").get_by_role("button", name="Next").click()
    expect(page.locator("#pane .claim").first).to_have_text("The pantry may be locked.")
    page.locator("#pane").get_by_role("button", name="Approve").click()
    waits(page, 2)
    expect(page.locator("#pane .claim").first).to_have_text("Bea keeps the spare key.")
    undo = page.locator(".toast").get_by_role("button", name="Undo")
    expect(undo).to_be_in_viewport(ratio=1)
    undo.click()
    waits(page, 3)
    expect(page.locator("#pane .claim").first).to_have_text("The pantry may be locked.")
    assert faults_of_access(page, looks_only=True) == []


def test_a_swipe_asks_what_the_buttons_ask(site: Site, windows: Chromium, owner: str) -> None:
    send(site, owner, ["The Oslo shop opens at 8:00."], "user")
    send(
        site, owner, ["The Oslo shop opens at 7:00.", "The pantry may be locked.", "Bea keeps the spare key."]
    )
    page = open_queue(site, windows, owner, phone=True).page
    session = page.context.new_cdp_session(page)

    def swipe(x: int, y: int = 0, *, check: str = "") -> None:
        box = page.locator("#pane p.claim").first.bounding_box()
        assert box is not None
        start = (195, box["y"] + box["height"] / 2)
        kinds = [("touchStart", 0.0), ("touchMove", 0.3), ("touchMove", 0.6), ("touchMove", 1.0)]
        for kind, share in kinds:
            point = {"x": start[0] + x * share, "y": start[1] + y * share}
            session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [point]})
        if check:
            moved_so = "wanted => document.querySelector('#pane > article').style.transform === wanted"
            page.wait_for_function(moved_so, arg=check)  # moves are told once a frame
        session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})

    expect(page.locator("#pane .swipe")).to_be_visible()
    swipe(150)  # it conflicts: which holds is asked
    expect(page.locator("#conflict-dialog")).to_be_visible()
    page.get_by_role("button", name="Cancel").click()
    swipe(-150)
    expect(page.locator("#reject-dialog")).to_be_visible()
    page.locator("#reject-dialog").get_by_role("button", name="Cancel").click()
    page.locator("#pane").get_by_role("button", name="Next").click()
    page.wait_for_selector("#pane.seen")
    swipe(60)  # too short, and too steep
    swipe(100, 90)
    waits(page, 3)
    swipe(120, check="translateX(120px)")
    waits(page, 2)
    expect(page.locator(".toast").get_by_role("button", name="Undo")).to_be_in_viewport(ratio=1)
    # The same for who wants nothing to move.
    page.emulate_media(reduced_motion="reduce")
    expect(page.locator("#pane.seen p.claim").first).to_have_text("Bea keeps the spare key.")
    swipe(120)
    waits(page, 1)
    found = statuses(site, owner)
    assert {text: found[text] for text in found if found[text] == "approved"} == dict.fromkeys(
        ("The pantry may be locked.", "Bea keeps the spare key."), "approved"
    )


@pytest.mark.parametrize("phone", [False, True])
def test_the_chosen_claim_is_shown_however_late_its_answer_is(
    site: Site, windows: Chromium, owner: str, phone: bool
) -> None:
    texts = ["Bea keeps the spare key.", "The pantry may be locked.", "The Oslo till closes at noon."]
    send(site, owner, texts)
    page = open_queue(site, windows, owner, phone=phone).page
    late = held_back(page)
    page.reload()
    claim = page.locator("#pane .claim").first
    expect(claim).to_have_text(page.locator(".row a.open").first.inner_text())
    if phone:  # the button that was pressed has the focus, and is in the pane
        page.locator("#pane").get_by_role("button", name="Next").click()
    else:
        page.keyboard.press("j")
    expect(page.locator("#pane")).to_have_class(re.compile("waiting"))
    chosen = page.locator(".row[aria-current] a.open").text_content()
    assert len(late) >= 2
    for route in late:
        route.continue_()
    expect(claim).to_have_text(chosen or "")


def test_who_goes_on_into_the_pane_before_its_answer_came_stays_in_it(
    site: Site, windows: Chromium, owner: str
) -> None:
    send(site, owner, ["Bea keeps the spare key.", "The pantry may be locked."])
    page = open_queue(site, windows, owner).page
    late = held_back(page)
    page.reload()
    pane = page.locator("#pane")
    page.keyboard.press("j")
    expect(pane).to_have_class(re.compile("waiting"))
    pane.locator("a, button").last.focus()
    chosen = page.locator(".row[aria-current] a.open").text_content()
    for route in late:
        route.continue_()
    expect(pane.locator(".claim").first).to_have_text(chosen or "")
    expect(pane).to_be_focused()
    page.keyboard.press("Tab")
    expect(pane.locator("a, button, summary, [tabindex='0']").first).to_be_focused()


def test_what_comes_after_the_last_one_was_decided_is_chosen(
    site: Site, windows: Chromium, owner: str
) -> None:
    send(site, owner, ["Bea keeps the spare key."])
    page = open_queue(site, windows, owner).page
    late: list[Route] = []
    holding = True

    def hold(route: Route) -> None:
        if holding:
            late.append(route)
        else:
            route.continue_()

    page.route(re.compile("/review$"), hold)  # the list as it is by now
    page.keyboard.press("a")
    expect(page.locator(".row")).to_have_count(0)
    send(site, owner, ["The pantry may be locked."])
    waits(page, 1)
    holding = False
    for route in late:
        route.continue_()
    expect(page.locator(".row[aria-current] a.open")).to_have_text("The pantry may be locked.")
    expect(page.locator("#pane.seen .claim").first).to_have_text("The pantry may be locked.")


def test_what_is_like_a_memory_or_alike_is_not_approved_before_it_was_in_sight(
    site: Site, windows: Chromium, owner: str
) -> None:
    send(site, owner, ["Refunds above 500 euros wait for a manager of the Bergen desk."], "user")
    near = "Refunds above 500 euros wait for a manager of the Bergen desk, and are paid on Mondays."
    builds = [f"Build {number} of the harbour app passed all tests." for number in (510, 511, 512)]
    send(site, owner, ["Bea keeps the spare key.", near, *builds])
    page = open_queue(site, windows, owner).page
    page.keyboard.press("a")
    page.keyboard.press("a")  # of what nobody can have read in no time
    expect(page.locator("#conflict-dialog")).to_contain_text("It says nearly what is stored")
    page.get_by_role("button", name="Cancel").click()
    waits(page, 4)
    expect(page.locator("#pane ins").first).to_contain_text("and are paid on Mondays")
    page.wait_for_selector("#pane.seen")
    page.keyboard.press("a")
    expect(page.locator("#conflict-dialog ins").first).to_contain_text("and are paid on Mondays")
    page.keyboard.press("1")
    waits(page, 3)
    expect(page.locator(".toast")).to_contain_text("It replaced the stored memory")
    page.wait_for_selector("#pane.seen .members li:nth-child(3)")
    page.locator("#pane .members input").nth(1).uncheck()
    page.keyboard.press("a")
    waits(page, 1)
    expect(page.locator(".row a.open")).to_have_text(builds[1])


def test_of_several_that_are_one_row_none_comes_back_half_decided_or_ticked_anew(
    site: Site, windows: Chromium, owner: str
) -> None:
    builds = [f"Build {number} of the harbour app passed all tests." for number in range(510, 515)]
    send(site, owner, ["Bea keeps the spare key.", *builds, "The attic was painted blue."])
    page = open_queue(site, windows, owner).page
    late: list[Route] = []

    def hold(route: Route) -> None:
        if "approve" in (route.request.post_data or ""):
            late.append(route)
        else:
            route.continue_()

    page.route("**/review/act", hold)
    page.reload()  # what a page has loaded may ask past a route that is set afterwards

    def elsewhere(text: str) -> None:
        """Somebody else approves one, and the page has heard of it."""
        (item,) = [
            item
            for item in site.reviewer(owner).get("/v1/reviews", params={"limit": 200}).json()["items"]
            if item["content"] == text
        ]
        was = int(page.locator("#badge").get_attribute("data-waiting") or 0)
        answer = site.reviewer(owner).post(
            f"/v1/reviews/{item['id']}/approve", json={"version": item["version"]}
        )
        assert answer.status_code == 200, answer.text
        expect(page.locator("#act input[name=listed]")).to_have_count(was - 1)

    page.keyboard.press("j")
    members = page.locator("#pane.seen .members li")
    expect(members).to_have_count(5)
    members.filter(has_text=builds[1]).locator("input").uncheck()
    expect(page.locator("#pane [data-act=approve]")).to_contain_text("Approve 4")
    # It is not forgotten when something else is looked at and done, and no act on several takes it along.
    page.keyboard.press("k")
    expect(page.locator("#pane .claim").first).to_have_text("Bea keeps the spare key.")
    page.keyboard.press("r")
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    waits(page, 6)
    expect(page.locator("#bulk [value=approve-listed]")).to_have_text("Approve all 5 listed")
    elsewhere(builds[4])
    expect(members).to_have_count(4)
    expect(members.locator("input:not(:checked)")).to_have_count(1)
    expect(members.filter(has_text=builds[1]).locator("input")).not_to_be_checked()

    page.keyboard.press("a")
    expect(page.locator(".row:not(.leaving)")).to_have_count(1)
    elsewhere(builds[3])  # as if it were the first of those that are decided one after another
    expect(page.locator(".row:not(.leaving)")).to_have_count(1)
    (route,) = late
    route.continue_()
    waits(page, 2)
    expect(page.locator(".row:not(.leaving)")).to_have_count(2)
    expect(page.locator(".row a.open", has_text=builds[1])).to_be_visible()
    assert {text: statuses(site, owner)[text] for text in builds} == {
        text: "pending" if text == builds[1] else "approved" for text in builds
    }


def test_what_is_not_yet_beside_the_list_is_not_approved(site: Site, windows: Chromium, owner: str) -> None:
    """The network is slow, and the claim before is still there with its buttons."""
    send(site, owner, ["The Oslo shop opens at 8:00.", "The Rome shop opens at 8:00."], "user")
    send(site, owner, ["The Oslo shop opens at 7:00.", "The Rome shop opens at 7:00."])
    long = (
        "Bea keeps the spare key of the attic in the pantry, " + "behind the flour " * 8 + "and no one else."
    )
    send(site, owner, [long])
    page = open_queue(site, windows, owner).page
    late = held_back(page)
    page.reload()
    replace = page.locator("#pane").get_by_role("button", name="Replace")
    replace.click()
    waits(page, 2)
    replace.click()  # of the claim before; it would replace what nobody saw
    expect(page.locator(".row")).to_have_count(2)
    rome, other = page.locator(".row").evaluate_all("rows => rows.map(row => row.dataset.id)")
    for route in [route for route in late if rome in route.request.url]:
        route.continue_()
    expect(page.locator("#conflict-dialog")).to_contain_text("7:00")
    page.keyboard.press("2")
    waits(page, 1)
    page.keyboard.press("a")
    expect(page.locator(".row .outcome")).to_have_text("Read all of it beside the list, then approve it.")
    page.locator("#pane").get_by_role("button", name="Approve").or_(replace).first.click()
    assert statuses(site, owner)[long] == "pending"
    for route in [route for route in late if other in route.request.url]:
        route.continue_()
    expect(page.locator("#pane")).to_contain_text(long)
    page.keyboard.press("a")
    waits(page, 0)
    texts = [memory["content"] for memory in site.reviewer(owner).get("/v1/memories").json()["items"]]
    assert sorted(texts) == sorted(
        [long, "The Oslo shop opens at 7:00.", "The Rome shop opens at 7:00.", "The Rome shop opens at 8:00."]
    )


def test_what_is_printed_is_whole(site: Site, windows: Chromium, owner: str) -> None:
    """Nobody can scroll on paper, or press what floats over it."""
    long = (
        "Bea keeps the spare key of the attic in the pantry, " + "behind the flour " * 8 + "and no one else."
    )
    send(site, owner, [long])
    window = open_queue(site, windows, owner)
    page = window.page
    cut = """all => [...document.querySelectorAll(all)].filter(
        node => node.scrollHeight > node.clientHeight + 1 && getComputedStyle(node).overflowY !== "visible").length"""
    assert page.evaluate(cut, ".row a.open") == 1
    page.emulate_media(media="print")
    assert page.evaluate(cut, "main .claim, main .claim a, #pane, blockquote") == 0
    expect(page.locator("#pane").get_by_role("button", name="Approve")).to_be_hidden()
    site.agent(owner).post(
        "/v1/claims", json=body("Orders are rows in MySQL.", citations=["docs/adrs/0001-orders.md"])
    )
    window.go("/review?q=mysql")
    page.emulate_media(media="screen")
    page.locator(".row a.open").click()
    page.emulate_media(media="print")
    quoted = page.locator("blockquote").first
    assert quoted.evaluate("node => getComputedStyle(node).maxHeight") == "none"
    expect(page.locator("#decide")).to_be_hidden()


def test_a_search_is_kept_and_the_pane_says_who_looks(site: Site, windows: Chromium, owner: str) -> None:
    send(site, owner, ["The pantry may be locked.", "Bea keeps the spare key."])
    page = open_queue(site, windows, owner).page
    search = page.get_by_label("Search the waiting claims")
    search.fill("reason:technical-hedge pantries")
    search.press("Enter")
    expect(page.locator(".row a.open")).to_have_text("The pantry may be locked.")
    page.get_by_label("Name for this search").fill("hedges")
    page.get_by_role("button", name="Keep this search").click()
    expect(page.locator("#views a[aria-current]")).to_have_text("hedges")
    assert faults_of_access(page) == []
    item = page.locator(".row").get_attribute("data-id")
    assert site.reviewer(owner).post(f"/v1/reviews/{item}/look", json={}).status_code == 200
    page.goto(f"{site.running.url}/review")
    page.get_by_role("link", name="hedges").click()
    expect(page.locator("#pane")).to_contain_text("is looking.")


# What the pane shows of the row that is chosen, once it has been in sight, read in one moment.
SEEN = """() => {
    const pane = document.querySelector("#pane.seen"), row = document.querySelector(".row[aria-current]");
    if (!pane || !row || !pane.dataset.shows?.startsWith(`${row.dataset.id}:${row.dataset.version}`)) return null;
    for (const toast of document.querySelectorAll(".toast")) toast.dataset.testRead = "";
    return {
        text: pane.querySelector("p.claim").innerText,
        members: [...pane.querySelectorAll(".members li")].map((member) => member.innerText),
        asks: Boolean(pane.querySelector("article[data-asks]")),
        waiting: document.querySelector("#badge").dataset.waiting,
        outcomes: document.querySelectorAll(".row .outcome").length,
    };
}"""
# Whether something came of the keys: a claim waits no more, or it is said why it still does, and it is looked at again.
ANSWERED = """({waiting, outcomes}) => document.querySelector("#badge").dataset.waiting !== waiting
    || document.querySelectorAll(".row .outcome").length > outcomes
    || document.querySelector(".toast:not([data-test-read])") !== null"""


@dataclass
class Person:
    """Somebody who looks at the claim beside the list, and rules by what it says."""

    page: Page
    keys: int = 0
    ruled: Counter[str] = field(default_factory=Counter)

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)
            self.keys += 1

    def answer(self, *keys: str) -> None:
        """Presses keys once something is asked."""
        expect(self.page.locator("dialog[open]")).to_be_visible()
        self.press(*keys)

    def rule(self) -> bool:
        """Rules on the chosen row; False when nothing waits."""
        page = self.page
        if page.locator("#empty").count():
            return False
        seen = page.wait_for_function(SEEN).json_value()
        text, members = seen["text"], seen["members"]
        wrong = [member for member in members or (text,) if WRONG.search(member)]
        if seen["asks"]:
            self.press("a")
            self.answer("1")
        elif len(wrong) == max(len(members), 1):
            self.press("r")
            self.answer("1", "Enter")
        else:
            for member in wrong:
                page.locator("#pane .members li").filter(has_text=member).locator("input").uncheck()
            self.press("a")
        page.wait_for_function(ANSWERED, arg=seen)
        page.wait_for_function(  # the list has what the badge says, or is full
            """() => { const waiting = Number(document.querySelector('#badge').dataset.waiting);
                const listed = document.querySelectorAll('#act input[name=listed]').length;
                return listed === Math.min(waiting, 100) || (!waiting && document.querySelector('#empty')); }"""
        )
        self.ruled[text.split()[0]] += 1
        return True


def test_many_mixed_claims_in_fewer_than_half_as_many_keys_and_none_ruled_on_wrongly(
    site: Site, windows: Chromium, owner: str
) -> None:
    """Two conflicts, 56 tickets (three by one who closes none), 24 builds, 8 that cite what is not there, 8 hedges,
    eight that are four wordings of two claims, and four of no kind, two of them nonsense: more than a page lists, so
    that the list fills up again. More of each would be more of the same."""
    name = names(11)
    shops = [next(name).capitalize() for _ in range(2)]
    send(site, owner, [f"The {shop} shop opens at 7:00." for shop in shops], "user")
    closers = ["Ann", "Bob", "Cy"]
    tickets = [
        f"Ticket #{48210 + n} was closed on {1 + n % 28} May by {'Zed' if n in (31, 32, 33) else closers[n % 3]}."
        for n in range(56)
    ]
    builds = [f"Build {500 + n} of the harbour app passed all tests." for n in range(24)]
    cites = [f"The {next(name)} ledger is kept for {2 + n} years, as ADR-{901 + n} says." for n in range(8)]
    hedged = [f"The {next(name)} importer may time out on files of {10 + n} MB." for n in range(8)]
    goods = [(f"{next(name)}s", next(name).capitalize()) for _ in range(2)]
    wordings = [[wording.format(thing, town) for wording in DEPOT] for thing, town in goods]
    plain = [f"The {next(name)} desk keeps {next(name)} beside the {next(name)} till." for _ in range(2)]
    nonsense = [f"The {next(name)} of the {next(name)} is made of moon {next(name)}." for _ in range(2)]
    mixed = [f"The {shop} shop opens at 8:00." for shop in shops]
    columns = [tickets, builds, cites, hedged, [text for four in wordings for text in four], plain, nonsense]
    while any(columns):  # as agents send them: a few of this, a few of that
        for column in columns:
            mixed += [column.pop(0) for _ in range(min(len(column), 4))]
    wrong = {text for text in mixed if WRONG.search(text)}
    assert len(mixed) == len(set(mixed)) == 110
    send(site, owner, mixed)
    page = open_queue(site, windows, owner).page
    waits(page, len(mixed))
    person = Person(page)
    while person.rule():
        assert person.keys < 33, person.ruled
    found = statuses(site, owner)
    known = {text for four in wordings for text in four}
    assert {text for text, status in found.items() if status == "rejected" and text not in known} == wrong
    for four in wordings:  # one of them is kept
        assert Counter(found[text] for text in four) == {"approved": 1, "rejected": 3}
    assert {status for text, status in found.items() if text not in wrong | known} == {"approved"}
    print(f"{person.keys} keys: {dict(person.ruled)}")
