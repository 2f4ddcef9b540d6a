"""Everything an owner does works in a browser with JavaScript off, from signing in to signing out."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.acceptance.site import Site, queue, submit
from tests.acceptance.site import claim as body
from tests.browser import Chromium, Window
from tests.running.waiting import CONFLICT, HEDGED, REFUTED, UNGROUNDED, fill, open_desk
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.people import Role
from vouchgate.storage.identity import sessions
from vouchgate.web.session import COOKIE

pytestmark = pytest.mark.on("sqlite")


@pytest.fixture(scope="module")
def site(module_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with open_desk(module_database_url, tmp_path_factory.mktemp("desk")) as opened:
        yield opened


def link_of(site: Site, token_id: str) -> str:
    """The path of a new one-time link for a reviewer's token."""
    code = sessions.create_link(site.store, token_id, actor="test", now=datetime.now(UTC))
    return f"/review/sign-in/{code}"


def press(page: Page, name: str) -> None:
    """Presses the first button or link of exactly this name."""
    page.get_by_role("button", name=name).or_(page.get_by_role("link", name=name)).first.click()


def waits(page: Page, count: int) -> None:
    expect(page.locator("#badge")).to_have_attribute("data-waiting", str(count))


def item(site: Site, owner: str, item_id: str) -> dict[str, Any]:
    """The item as the API has it."""
    found: dict[str, Any] = site.reviewer(owner).get(f"/v1/reviews/{item_id}").json()
    return found


def memory(site: Site, owner: str, item_id: str) -> dict[str, Any]:
    """The memory that an item became, as the API has it."""
    found: dict[str, Any] = (
        site.reviewer(owner).get(f"/v1/memories/{item(site, owner, item_id)['memory_id']}").json()
    )
    return found


def test_signing_in_with_a_token_or_a_link_and_out(site: Site, windows: Chromium) -> None:
    owner = site.owner()
    fill(site, owner, 1, rules=(UNGROUNDED,))
    principal, token = site.token(Role.REVIEWER, owner)
    _, agents = site.token(Role.AGENT, owner, sources=frozenset({Source.USER}))
    window = windows.window(site.running.url, javascript=False)
    window.expect("status of 403", "status of 410")
    page = window.go("/review/memories?type=fact")
    for wrong, why in (("vg_nonsense", "not known"), (agents, "not a reviewer's")):
        page.get_by_label("Reviewer's token").fill(wrong)
        press(page, "Sign in")
        expect(page.get_by_role("alert")).to_contain_text(why)
    page.get_by_label("Reviewer's token").fill(token)
    press(page, "Sign in")
    page.wait_for_url("**/review/memories?type=fact")  # where it was to go
    waits(page, 1)
    (cookie,) = [one for one in window.context.cookies() if one["name"] == COOKIE]
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Lax"
    before = cookie["value"]
    press(page, "Sign out")
    page.wait_for_url("**/review/sign-in**")
    assert [one for one in window.context.cookies() if one["name"] == COOKIE] == []
    window.go("/review")
    page.wait_for_url("**/review/sign-in**")

    link = link_of(site, principal.id)
    window.go(link)
    window.go(link)  # opening it uses nothing up
    press(page, "Sign in")
    page.wait_for_url("**/review")
    waits(page, 1)
    (cookie,) = [one for one in window.context.cookies() if one["name"] == COOKIE]
    assert cookie["value"] != before
    other = windows.window(site.running.url, javascript=False)
    other.expect("status of 410")
    press(other.go(link), "Sign in")
    expect(other.page.locator("main")).to_contain_text("signed somebody in already")
    assert [one for one in other.context.cookies() if one["name"] == COOKIE] == []


def signed_in(site: Site, windows: Chromium, owner: str) -> Window:
    """A window without JavaScript whose reviewer came by a link."""
    window = windows.window(site.running.url, javascript=False)
    principal, _ = site.token(Role.REVIEWER, owner)
    press(window.go(link_of(site, principal.id)), "Sign in")
    window.page.wait_for_url("**/review")
    return window


def test_ruling_on_claims(site: Site, windows: Chromium) -> None:
    owner = site.owner()
    waiting = fill(site, owner, 12, rules=(CONFLICT, HEDGED, REFUTED, UNGROUNDED))
    by_rule = {
        rule: [one for one in waiting if one.rule == rule] for rule in (CONFLICT, HEDGED, REFUTED, UNGROUNDED)
    }
    window = signed_in(site, windows, owner)
    window.expect("status of 409", "status of 422")
    page = window.page
    waits(page, 12)
    assert page.locator(".js-only").first.is_hidden()

    # From the list, and taken back.
    one, two, three = (each.id for each in by_rule[UNGROUNDED])
    page.locator(f"#{one}").get_by_role("button", name="Approve").click()
    waits(page, 11)
    expect(page.get_by_role("status").first).to_contain_text("Approved")
    assert item(site, owner, one)["status"] == "approved"
    press(page, "Undo")
    waits(page, 12)
    assert item(site, owner, one)["status"] == "pending"

    # Rejected: not without a reason, then with a canned one and own words.
    window.go("/review")
    page.locator(f"#{one}").get_by_role("link", name="Reject").click()
    page.locator("#reject button").click()
    expect(page.locator("main")).to_contain_text("needs a reason")
    assert item(site, owner, one)["status"] == "pending"
    window.go(f"/review/items/{one}")
    page.locator("#reject").get_by_label("Not true").check()
    page.locator("#reject").get_by_label("In your own words").fill("It is the <other> store.")
    page.locator("#reject button").click()
    waits(page, 11)
    assert item(site, owner, one)["note"] == "Not true: It is the <other> store."

    # Edited, then approved. What conflicts with the other text is told, and nothing typed is lost.
    window.go("/review")
    page.locator(f"#{two}").get_by_role("link", name="Edit").click()
    page.locator("#edit > summary").click()
    kept = by_rule[CONFLICT][0].content.replace("06:30", "05:30")
    page.get_by_label("Your wording").fill(kept)
    press(page, "Approve this wording")
    expect(page.get_by_role("alert")).to_contain_text("It was not done")
    assert page.get_by_label("Your wording").input_value() == kept
    page.get_by_label("Your wording").fill("The archive of orders is read once a week.")
    press(page, "Approve this wording")
    waits(page, 10)
    assert memory(site, owner, two)["content"] == "The archive of orders is read once a week."
    assert item(site, owner, two)["content"] == by_rule[UNGROUNDED][1].content

    # A conflict says which holds.
    conflict = by_rule[CONFLICT][0]
    window.go("/review")
    page.locator(f"#{conflict.id}").get_by_role("link", name="Decide").click()
    page.locator("#approve-form").get_by_label("Replace").check()
    page.locator("#approve-form button.main").click()
    waits(page, 9)
    old = site.reviewer(owner).get(f"/v1/memories/{conflict.conflicts_with}").json()
    assert old["superseded_by"] == item(site, owner, conflict.id)["memory_id"]

    # Several at once: those that are ticked, then those of a group.
    window.go("/review")
    page.locator("#bulk > summary").click()
    for each in by_rule[HEDGED][:2]:
        page.locator(f"#{each.id}").get_by_role("checkbox").check()
    page.locator("#bulk-reason").select_option("Out of date")
    press(page, "Reject ticked")
    expect(page.locator("#results > [data-result=rejected]")).to_have_count(2)
    waits(page, 7)
    assert [item(site, owner, each.id)["note"] for each in by_rule[HEDGED]] == ["Out of date"] * 2 + [None]
    press(page, "Back to the queue")
    page.get_by_role("navigation", name="Groups").get_by_role("link", name="Citation does not hold").click()
    expect(page.locator(".row")).to_have_count(3)
    page.locator("#bulk > summary").click()
    press(page, "Approve all 3 listed")
    expect(page.locator("#results > [data-result=approved]")).to_have_count(3)
    waits(page, 4)
    # One that is stale spoils no other.
    window.go("/review")
    page.locator("#bulk > summary").click()
    late = by_rule[HEDGED][2].id
    answer = site.reviewer(owner).post(
        f"/v1/reviews/{late}/reject", json={"version": 1, "reason": "meanwhile, over the API"}
    )
    assert answer.status_code == 200
    page.locator("#bulk-supersede").select_option("false")
    press(page, "Approve all 4 listed")
    expect(page.locator("#results > [data-result=approved]")).to_have_count(3)
    expect(page.locator("#results > :not([data-result=approved])")).to_contain_text("rejected already")
    waits(page, 0)
    window.go("/review")
    expect(page.locator("#empty")).to_contain_text("Nothing waits for you")

    # Beside each button stands all that it approves.
    agent = site.agent(owner)
    queue(agent, f"The staging cluster has three nodes.\nThe root key may be shared{' with everybody' * 30}.")
    for number in (510, 511, 512):
        queue(agent, f"Build {number} of the harbour app passed all tests.")
    window.go("/review")
    expect(page.locator(".row .approve")).to_have_count(2)
    assert (
        page.evaluate(
            """[...document.querySelectorAll('.row a.open, .row .group li')].map(
            node => node.checkVisibility() && node.scrollHeight <= node.clientHeight + 1)"""
        )
        == [True] * 5
    )
    assert item(site, owner, three)["status"] == "approved"


def test_looking_things_up(site: Site, windows: Chromium) -> None:
    owner = site.owner()
    waiting = fill(site, owner, 6, rules=(CONFLICT, UNGROUNDED), agents=1)
    agent = site.agent(owner)
    decided = submit(agent, body("Orders are kept in PostgreSQL, see ADR-001.", "adr", "decision"), 201)
    window = signed_in(site, windows, owner)
    page = window.page

    # The queue: searched, ordered, by agent.
    words = waiting[1].content.split()
    page.get_by_label("Search the waiting claims").fill(words[1])
    press(page, "Show")
    expect(page.locator(".row")).to_have_count(1)
    expect(page.locator(".row")).to_have_attribute("data-id", waiting[1].id)
    window.go("/review")
    page.get_by_label("Order").select_option("newest")
    press(page, "Show")
    page.wait_for_url("**order=newest*")
    newest = page.eval_on_selector_all(".row", "rows => rows.map(row => row.dataset.id)")
    window.go("/review?order=oldest")
    assert page.eval_on_selector_all(".row", "rows => rows.map(row => row.dataset.id)") == newest[::-1]
    page.locator(f"#{waiting[1].id}").get_by_role("link", name="a test's agent").click()
    expect(page.locator(".row")).to_have_count(6)

    # Memories: by text, label and type; one with its evidence; taken out of force.
    press(page, "Memories")
    expect(page.locator("main .list > li")).to_have_count(4)
    page.get_by_label("Type").select_option("decision")
    page.get_by_label("Label").select_option("FACT")
    press(page, "Show")
    expect(page.locator("main .list > li")).to_have_count(1)
    page.get_by_role("link", name="Orders are kept in PostgreSQL").click()
    expect(page.locator(".source").first).to_contain_text("Keep orders in PostgreSQL")
    expect(page.locator("main")).to_contain_text(decided.decision_id or "")
    page.get_by_text("Take it out of force").click()
    page.get_by_label("Why?").fill("We have moved.")
    press(page, "Retract")
    expect(page.locator("main")).to_contain_text("We have moved.")
    retracted = site.reviewer(owner).get(f"/v1/memories/{decided.memory_id}").json()
    assert (retracted["status"], retracted["retracted_reason"]) == ("retracted", "We have moved.")
    press(page, "Memories")
    expect(page.locator("main .list > li")).to_have_count(3)
    page.get_by_label("Validity").select_option("retracted")
    press(page, "Show")
    expect(page.locator("main .list > li")).to_have_count(1)

    # History: what was decided, and from there taken back.
    window.go("/review")
    page.locator(f"#{waiting[1].id}").get_by_role("button", name="Approve").click()
    press(page, "History")
    expect(page.locator("main .list > li")).to_have_count(1)
    press(page, "Undo")
    waits(page, 6)
    assert item(site, owner, waiting[1].id)["status"] == "pending"
    # Nobody else's item, and none that there is not, is told of.
    others = fill(site, site.owner(), 1, rules=(UNGROUNDED,), agents=1, seed=5)[0]
    window.expect("status of 404")
    said = [window.go(f"/review/items/{one}").inner_text("main") for one in (others.id, "rev_" + "0" * 32)]
    assert said[0] == said[1]
