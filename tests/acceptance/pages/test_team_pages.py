"""The pages of a team: people in browsers of their own, several owners, and claims that need two approvals."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from playwright.sync_api import expect

from tests.acceptance.site import Site, open_site, queue
from tests.browser import Chromium, is_for_everybody, sign_in_with, waits
from vouchgate.ingest.claims.people import Role
from vouchgate.storage.identity import persons, tokens

NARROW = (320, 640)  # WCAG 2.2, 1.4.10


@pytest.fixture(scope="module", params=["sqlite"])
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("team")
    (folder / "OWNERS").write_text("* 2\n")
    environment = {"VOUCHGATE_OFFLINE": "true", "VOUCHGATE_OWNER_RULES": str(folder / "OWNERS")}
    with open_site(f"sqlite:///{folder}/vouchgate.db", environment=environment) as opened:
        yield opened


def token(site: Site, name: str, role: Role, *owners: str) -> tuple[str, str]:
    """The id and the text of a new token of this person, who is made when they are not there."""
    now = datetime.now(UTC)
    with site.store.read() as connection:
        found = persons.find(connection, name)
    person = found or persons.create(site.store, name, actor="test", now=now)
    principal, secret = tokens.create(
        site.store, role=role, name="t", owners=owners, person=person.id, actor="test", now=now
    )
    return principal.id, secret


def test_two_people_agree_in_two_browsers_and_nobody_on_their_own_agents_claim(
    site: Site, windows: Chromium
) -> None:
    first, second = site.owner("a-team-with-rather-a-long-name"), site.owner("b")
    agent = site.caller(token(site, "dana", Role.AGENT, first)[1])
    item = queue(agent, "The canteen serves soup on Thursdays")
    desks = {}
    for name in ("bea", "cleo", "dana"):
        desks[name] = windows.window(site.running.url, calm=True)
        sign_in_with(site, desks[name], token(site, name, Role.REVIEWER, first, second)[1])
    address = f"/review/items/{item}"
    own = desks["dana"].go(address)
    assert own.locator("#approve-form").count() == 0
    assert "You are the person behind the agent" in own.locator("#decide").inner_text()
    page = desks["bea"].go(address)
    assert page.locator("#votes h2").inner_text() == "0 of 2 approved; 2 more are needed"
    page.locator("#approve-form button.approve").click()
    page.wait_for_url("**/review?done=*")
    page = desks["bea"].go(address)
    assert page.locator("#votes h2").inner_text() == "1 of 2 approved; 1 more is needed"
    is_for_everybody(page, NARROW)
    other = desks["cleo"].go(address)
    other.locator("#approve-form button.approve").click()
    other.wait_for_url("**/review?done=*")
    page = desks["bea"].go(address)
    assert page.locator("#votes h2").inner_text() == "2 of 2 approved"
    assert page.locator("#votes li").count() == 2
    page.get_by_label("Whose memories to show").select_option(second)
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**/review")
    assert page.get_by_label("Whose memories to show").input_value() == second
    # What another tab shows is that one's: a list keeps to its own owner, and so do its acts.
    tab = desks["bea"].go("/review", desks["bea"].tab())
    tab.get_by_label("Whose memories to show").select_option(first)
    tab.locator("header").get_by_role("button", name="Show").click()
    theirs = queue(site.agent(first), "The garden is watered on Mondays")
    tab.locator(f"#queue > .row[data-id='{theirs}']").wait_for()
    mine = queue(site.agent(second), "The library closes at noon on Fridays")
    page.locator(f"#queue > .row[data-id='{mine}']").wait_for()
    waits(page, 1)
    expect(page.locator(".row")).to_have_count(1)
    expect(page.locator("#pane .claim").first).to_contain_text("The library closes")
    page.keyboard.press("a")
    expect(page.locator(".toast")).to_contain_text("Approved by 1 of 2")
    # The button takes back what it stands beside, the key what was done last: both are votes.
    tab.keyboard.press("a")
    expect(tab.locator(".toast")).to_contain_text("The garden is watered")
    page.locator(".toast").get_by_role("button", name="Undo").click()
    expect(page.locator(".toast")).to_contain_text("Taken back: “The library closes")
    tab.keyboard.press("u")
    expect(tab.locator(".toast")).to_contain_text("Taken back: “The garden is watered")
    expect(tab.locator(".row")).to_have_count(1)
    assert page.get_by_label("Whose memories to show").input_value() == second
