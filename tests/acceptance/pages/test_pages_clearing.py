"""People clear their queue in a real browser: with the keyboard and in bulk, two at a time, while it changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.acceptance.site import Site, queue
from tests.browser import POLL, Chromium, Window, sign_in, waits
from tests.running.waiting import (
    CONFLICT,
    HEDGED,
    REFUTED,
    UNCHECKED,
    UNGROUNDED,
    Waiting,
    fill,
    names,
    open_desk,
)

pytestmark = pytest.mark.on("postgresql")


@pytest.fixture(scope="module")
def site(module_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with open_desk(module_database_url, tmp_path_factory.mktemp("desk")) as opened:
        yield opened


class Desk:
    """The queue page of one person, and what is on it."""

    def __init__(self, site: Site, windows: Chromium, owner: str, **options: Any) -> None:
        self.site, self.owner = site, owner
        self.window: Window = windows.window(site.running.url, **options)
        sign_in(site, self.window, owner)
        self.page: Page = self.window.go("/review")

    def press(self, *keys: str) -> None:
        """Presses keys one after another, as fast as they go."""
        for key in keys:
            self.page.keyboard.press(key)

    def waits(self, count: int) -> None:
        """Waits until the badge says so."""
        waits(self.page, count)

    def listed(self) -> list[str]:
        """The ids of the rows, in order; a row that is left only to say what became of it is none."""
        found: list[str] = self.page.eval_on_selector_all(
            "#queue > .row:not(.gone)", "rows => rows.map(row => row.dataset.id)"
        )
        return found

    def chosen(self) -> str | None:
        """The id of the chosen row, which must be the one in which the focus is."""
        found: str | None = self.page.evaluate(
            """() => {
                const row = document.querySelector('#queue > .row[aria-current="true"]');
                return row && row.contains(document.activeElement) ? row.dataset.id : null;
            }"""
        )
        return found

    def chooses(self, item_id: str) -> None:
        """Waits until this row is the chosen one."""
        chosen = (
            "id => document.querySelector(`.row[data-id='${id}']`)?.getAttribute('aria-current') === 'true'"
        )
        self.page.wait_for_function(chosen, arg=item_id, polling=POLL)
        assert self.chosen() == item_id

    def says(self, text: str) -> None:
        """Waits until this is said over the list, and aloud to those who do not see it."""
        said = (
            "text => ['.said', '#live'].every(at => document.querySelector(at)?.textContent.includes(text))"
        )
        self.page.wait_for_function(said, arg=text, polling=POLL)

    def looks_at(self, *item_ids: str) -> None:
        """Chooses these rows, one after the other, and has all of each claim in sight beside the list."""
        for item_id in item_ids:
            self.page.locator(f'.row[data-id="{item_id}"] a.open').focus()
            self.page.locator(f'#pane.seen [data-for^="{item_id}:"]').wait_for()

    def place(self) -> float:
        """How far the chosen row is from the top of the window, in CSS pixels."""
        top: float = self.page.evaluate(
            """document.querySelector('#queue > .row[aria-current="true"]').getBoundingClientRect().top"""
        )
        return top


def reviews(site: Site, owner: str, status: str) -> dict[str, dict[str, Any]]:
    """The owner's items of this status by id, as the API has them."""
    answer = site.reviewer(owner).get("/v1/reviews", params={"status": status, "limit": 200})
    assert answer.status_code == 200, answer.text
    return {item["id"]: item for item in answer.json()["items"]}


def memories(site: Site, owner: str) -> dict[str, dict[str, Any]]:
    """The owner's memories by id, in force or not."""
    everything: dict[str, Any] = {"limit": 200, "status": ["active", "superseded", "retracted", "expired"]}
    answer = site.reviewer(owner).get("/v1/memories", params=everything)
    assert answer.status_code == 200, answer.text
    return {item["id"]: item for item in answer.json()["items"]}


def of_rule(waiting: list[Waiting], rule: str) -> list[Waiting]:
    return [one for one in waiting if one.rule == rule]


def test_a_person_clears_a_queue_of_all_sorts(site: Site, windows: Chromium) -> None:
    owner = site.owner()
    waiting = fill(site, owner, 40)
    by_id = {one.id: one for one in waiting}
    desk = Desk(site, windows, owner)
    page = desk.page
    desk.waits(40)
    expect(page.locator("#waiting")).to_have_text("40 claims wait for you")
    listed = desk.listed()
    assert len(listed) == 40
    # What is riskier stands first: conflicts, then citations that do not hold, then hedges.
    rules = [by_id[item].rule for item in listed]
    assert rules[:24] == [CONFLICT] * 8 + [REFUTED] * 8 + [HEDGED] * 8
    done: dict[str, str] = {}  # what this test did with each item

    # A conflict asks what becomes of the stored memory. Escape leaves everything as it was.
    desk.press("j", "a")
    dialog = page.locator("#conflict-dialog")
    expect(dialog).to_be_visible()
    desk.press("Escape")
    expect(dialog).to_be_hidden()
    desk.chooses(listed[1])
    desk.press("k", "a", "1")
    desk.waits(39)
    desk.says("Approved")
    desk.chooses(listed[1])
    desk.press("a", "2")
    desk.waits(38)
    done |= {listed[0]: "replaces", listed[1]: "keeps both"}

    # The same on the page of the item, and then back at the list.
    desk.chooses(listed[2])
    desk.press("Enter")
    expect(page.locator("del").first).to_be_visible()
    desk.press("a", "1", "Enter")
    desk.waits(37)
    done[listed[2]] = "replaces"

    # Rejected with a canned reason, then with one in own words, which is taken back and given again.
    page.goto(f"{desk.window.origin}/review")
    desk.press("r", "2", "Enter")
    desk.waits(36)
    desk.says("Rejected")
    done[listed[3]] = "Out of date"
    desk.chooses(listed[4])
    desk.press("r")
    page.get_by_label("In your own words").fill("Nobody may say this.")
    desk.press("Enter")
    desk.waits(35)
    desk.chooses(listed[5])
    desk.press("u")
    desk.waits(36)
    desk.says("Taken back")
    desk.chooses(listed[4])
    desk.press("r", "1", "Tab")
    page.keyboard.type("the billing run moved")
    desk.press("Enter")
    desk.waits(35)
    done[listed[4]] = "Not true: the billing run moved"

    # Edited, so that it conflicts with nothing any more.
    desk.chooses(listed[5])
    desk.press("e")
    wording = page.get_by_label("Your wording")
    expect(wording).to_be_focused()
    expect(wording).to_have_value(by_id[listed[5]].content)
    wording.fill("On Sundays nothing of this is exported.")
    page.get_by_role("button", name="Approve this wording").click()
    desk.waits(34)
    done[listed[5]] = "edited"

    # As fast as the claims come into sight: six are approved, and they are the next six.
    page.goto(f"{desk.window.origin}/review?rule={UNGROUNDED}")
    fast = desk.listed()
    assert {by_id[item].rule for item in fast} == {UNGROUNDED}
    assert len(fast) == 8
    for item in fast[:6]:
        page.locator(f'#pane [data-for^="{item}:"]').wait_for()
        desk.press("a")
    desk.waits(28)
    for key, at in (("s", 7), ("k", 6), ("j", 7)):
        desk.press(key)
        desk.chooses(fast[at])
    done |= dict.fromkeys(fast[:6], "stored")

    # In bulk: one is ticked, then all that wait for the same reason.
    desk.press("g")
    page.wait_for_url("**/review")
    page.locator(f'.row[data-rule="{UNCHECKED}"] input').first.focus()
    desk.press("x")
    page.get_by_role("button", name="Tick all 8 for the same reason").click()
    page.locator("#bulk-reason").select_option("Cannot be verified")
    page.get_by_role("button", name="Reject ticked").click()
    desk.waits(20)
    expect(page.locator("#results > [data-result=rejected]")).to_have_count(8)
    done |= {one.id: "Cannot be verified" for one in of_rule(waiting, UNCHECKED)}

    # Those of one agent, conflicts among them: they are left, each with why, until it is said what holds.
    page.locator(".row").first.locator("input").check()
    page.locator("#groups [data-group=sender]").click()
    agent = page.locator(".row").first.get_attribute("data-sender")
    mine = page.eval_on_selector_all(
        f'.row[data-sender="{agent}"]', "rows => rows.map(row => [row.dataset.id, row.dataset.rule])"
    )
    conflicts = [item for item, rule in mine if rule == str(CONFLICT)]
    assert 0 < len(conflicts) < len(mine)
    desk.looks_at(*(item for item, _ in mine))
    page.get_by_role("button", name="Approve ticked").click()
    desk.waits(20 - len(mine) + len(conflicts))
    expect(page.locator("#results > [data-result=approved]")).to_have_count(len(mine) - len(conflicts))
    expect(page.locator("#results > :not([data-result=approved])")).to_have_count(len(conflicts))
    left = page.locator(f'.row[data-id="{conflicts[0]}"]')
    expect(left).to_contain_text("say whether it replaces that one")
    done |= {item: "stored" for item, _ in mine if item not in conflicts}

    # All the rest at once; what conflicts keeps both.
    page.get_by_label("A conflict").select_option("false")
    rest = desk.listed()
    desk.looks_at(*rest)
    page.get_by_role("button", name=f"Approve all {len(rest)} listed").click()
    desk.waits(0)
    expect(page.locator("#empty")).to_contain_text("Nothing waits for you")
    done |= {item: "keeps both" if by_id[item].rule == CONFLICT else "stored" for item in rest}

    # The database says the same of every one.
    assert set(done) == set(by_id)
    assert reviews(site, owner, "pending") == {}
    approved, rejected = reviews(site, owner, "approved"), reviews(site, owner, "rejected")
    stored = memories(site, owner)
    for item_id, what in done.items():
        one = by_id[item_id]
        if item_id in rejected:
            assert rejected[item_id]["note"] == what
            continue
        became = stored[approved[item_id]["memory_id"]]
        assert became["status"] == "active"
        expected = "On Sundays nothing of this is exported." if what == "edited" else one.content
        assert became["content"] == expected
        if one.conflicts_with is not None:
            status = "superseded" if what == "replaces" else "active"
            assert stored[one.conflicts_with]["status"] == status
    assert Counter(what for what in done.values())["replaces"] == 2
    assert len(approved) + len(rejected) == 40


def test_two_people_rule_on_the_same_claims(site: Site, windows: Chromium) -> None:
    owner = site.owner()
    waiting = {one.id: one for one in fill(site, owner, 8, rules=(UNGROUNDED,))}
    rita, raul = Desk(site, windows, owner), Desk(site, windows, owner)
    for desk in (rita, raul):
        desk.window.expect("status of 409")
    ids = rita.listed()
    assert len(ids) == 8

    # Both press at the same moment, each on the page of the item.
    for item_id in ids[:3]:
        for desk in (rita, raul):
            desk.window.go(f"/review/items/{item_id}")
        raul.page.get_by_label("Not true").check()
        rita.page.evaluate("setTimeout(() => document.querySelector('#approve-form').requestSubmit())")
        raul.page.evaluate("setTimeout(() => document.querySelector('form#reject').requestSubmit())")
        for desk in (rita, raul):
            desk.page.wait_for_selector(".said")
        told = {
            desk: desk.page.locator("main").get_by_role("alert").filter(has_text="It was not done").count()
            for desk in (rita, raul)
        }
        assert sorted(told.values()) == [0, 1], told
        winner, loser = (rita, raul) if told[raul] else (raul, rita)
        status, other = ("approved", "rejected") if winner is rita else ("rejected", "approved")
        assert item_id in reviews(site, owner, status)
        assert item_id not in reviews(site, owner, other)
        # The one who was too late sees what became of it, and who did it.
        expect(loser.page.locator("main")).to_contain_text(f"It is {status} already")
        assert loser.page.locator("#approve-form").count() == 0

    # From the lists: what the other has done is told on the row, and the list goes on.
    for desk in (rita, raul):
        desk.window.go("/review")
        desk.waits(5)
    fourth, fifth = rita.listed()[:2]
    raul.press("r")
    expect(raul.page.locator("#reject-dialog")).to_be_visible()
    rita.press("a")
    rita.waits(4)
    raul.press("1", "Enter")
    raul.says("It is approved already")
    assert waiting[fourth].content in {one["content"] for one in memories(site, owner).values()}

    # What was typed for nothing is not lost.
    raul.window.go(f"/review/items/{fifth}")
    raul.press("e")
    raul.page.get_by_label("Your wording").fill("What Raul had written with much care.")
    rita.chooses(fifth)
    rita.press("a")
    rita.waits(3)
    raul.page.get_by_role("button", name="Approve this wording").click()
    expect(raul.page.get_by_role("alert")).to_contain_text("It is approved already")
    values = raul.page.eval_on_selector_all("textarea", "all => all.map(one => one.value)")
    assert values == ["What Raul had written with much care."]
    assert len(reviews(site, owner, "approved")) + len(reviews(site, owner, "rejected")) == 5


def test_the_page_follows_a_queue_that_changes(site: Site, windows: Chromium) -> None:
    owner = site.owner()
    fill(site, owner, 12, rules=(UNGROUNDED,))
    here, there = Desk(site, windows, owner), Desk(site, windows, owner)
    here.waits(12)
    ids = here.listed()
    opened = here.page.evaluate("performance.timeOrigin")
    here.press(*"jjjjj")
    here.chooses(ids[5])
    here.page.locator(f'.row[data-id="{ids[2]}"] input').check()
    here.page.locator(f'.row[data-id="{ids[5]}"] a.open').focus()
    place = here.place()

    # Another window rules on claims above and below the chosen one.
    there.press("a")
    there.waits(11)
    there.page.locator(f'.row[data-id="{ids[8]}"] button.approve').click()
    expect(there.page.locator(f'.row[data-id="{ids[8]}"]')).to_contain_text("Read all of it beside the list")
    there.looks_at(ids[8])
    there.page.locator(f'.row[data-id="{ids[8]}"] button.approve').click()
    there.waits(10)
    here.waits(10)
    expect(here.page.locator("#queue > .row")).to_have_count(10)
    here.chooses(ids[5])
    assert abs(here.place() - place) < 1
    expect(here.page.locator(f'.row[data-id="{ids[2]}"] input')).to_be_checked()

    # Agents go on: a conflict, which goes to the top, and a repeat, which is no new row.
    agent = site.agent(owner)
    fill(site, owner, 1, rules=(CONFLICT,), agents=1, seed=7)
    here.waits(11)
    expect(here.page.locator("#queue > .row").first).to_have_attribute("data-rule", str(CONFLICT))
    here.chooses(ids[5])
    assert abs(here.place() - place) < 1
    repeated = site.reviewer(owner).get(f"/v1/reviews/{ids[6]}").json()["content"]
    queue(agent, repeated)
    expect(here.page.locator(f'.row[data-id="{ids[6]}"]')).to_contain_text("sent 2 times")
    here.waits(11)
    assert len(here.listed()) == 11
    here.chooses(ids[5])

    # The chosen one itself is ruled on elsewhere: it says so, stays where it is, and can be left.
    there.looks_at(ids[5])
    there.page.locator(f'.row[data-id="{ids[5]}"] button.approve').click()
    here.waits(10)
    row = here.page.locator(f'.row[data-id="{ids[5]}"]')
    expect(row).to_contain_text("Decided elsewhere")
    assert abs(here.place() - place) < 1
    here.press("a")
    here.press("j")
    here.chooses(ids[6])
    assert set(reviews(site, owner, "approved")) == {ids[0], ids[8], ids[5]}
    assert here.page.evaluate("performance.timeOrigin") == opened  # it was not loaded again

    # The item's page follows too, and so does the end of the queue.
    here.press("o")
    here.page.wait_for_url("**/items/**")
    there.looks_at(*there.listed())
    there.page.locator("#bulk > summary").click()
    there.page.get_by_label("A conflict").select_option("true")
    there.page.get_by_role("button", name="Approve all 10 listed").click()
    there.waits(0)
    here.waits(0)
    here.press("g")
    here.page.wait_for_url("**/review**")
    expect(here.page.locator("#empty")).to_be_visible()
    name = names(99)
    queue(agent, f"The {next(name)} service keeps its {next(name)} records in the {next(name)} store.")
    here.waits(1)
    expect(here.page.locator("#queue > .row")).to_have_count(1)
