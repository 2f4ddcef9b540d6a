"""What auditors see: decisions found by anything, one claim from first to last, the log; and that they only read."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from playwright.sync_api import Route
from sqlalchemy import Connection, update

from tests.acceptance.site import Site, claim, is_problem, queue, submit
from tests.browser import Chromium, is_for_everybody, sign_in_with
from tests.running.patience import until
from tests.visiting import Browser, is_page
from vouchgate.ingest.claims.modes import Mode, ModeSwitch
from vouchgate.ingest.claims.people import Role
from vouchgate.review.trust import modes
from vouchgate.storage.claims import decisions

NARROW = (320, 640)  # WCAG 2.2, 1.4.10
SAID = "Café opens at “9:30” on Sundays"


def audits(site: Site, *owners: str) -> Browser:
    browser = Browser(site.caller())
    answer = browser.sign_in(site.token(Role.AUDITOR, *owners, any_owner=not owners)[1])
    assert answer.status_code == 303, answer.text
    return browser


def told(browser: Browser, path: str, status: int = 200, **query: str) -> str:
    return is_page(browser.client.get(path, params=query), status)


def observe(site: Site, owner: str, mode: Mode = Mode.OBSERVE) -> str:
    """The gate only observes for an owner, or is in another mode; what the pages say of it."""
    now = datetime.now(UTC)
    switch = ModeSwitch(owner_id=owner, agent="", mode=mode, reason="a trial", by="op", since=now)
    modes.switch(site.store, switch)
    return switch.sentence


def test_an_auditor_finds_a_claim_by_anything_and_reads_all_of_it_and_nothing_of_others(site: Site) -> None:
    owner, other = site.owner(), site.owner()
    agent, reviewer = site.agent(owner), site.reviewer(owner)
    decision = submit(agent, claim(SAID, "ai_synthesis", metadata={"topic": "opening hours"}), 202)
    edited = {"version": 1, "content": "The café opens at 9:30 on Sundays", "note": "Looked at the door"}
    stored = reviewer.post(f"/v1/reviews/{decision.queue_id}/approve", json=edited).json()["memory"]["id"]
    gone = reviewer.request("DELETE", f"/v1/memories/{stored}", params={"reason": "They moved out"})
    assert gone.status_code == 200, gone.text
    queue(site.agent(other), "The moon base has a canteen")
    browser = audits(site, owner)
    for query in (SAID, "CAFé OPENS", "opening hours", "a", str(decision.decision_id)[4:]):
        assert "opens at" in told(browser, "/review/audit", q=query), query
    queue(agent, "The pier is closed in winter (ADR-7)")
    assert "The pier" in told(browser, "/review/audit", q="adr 0007")
    found = browser.client.get("/review/audit", params={"q": stored})
    assert (found.status_code, found.headers["location"]) == (303, f"/review/audit/{stored}")
    assert "No decision fits" in told(browser, "/review/audit", q="moon base")
    assert "No decision fits" in told(browser, "/review/audit", q="%")
    assert "opens at" in told(browser, "/review/audit", agent="a test's agent", tier="queued")
    assert "No decision fits" in told(browser, "/review/audit", tier="blocked")
    assert "No decision fits" in told(browser, "/review/audit", until="2001-01-01")
    for one in (decision.decision_id, str(decision.queue_id), stored):
        page = told(browser, f"/review/audit/{one}")
        for part in (
            "Decided queued",
            "As its reviewer wrote it",
            "The café opens at 9:30 on Sundays",
            "Looked at the door",
            "They moved out",
            "claim.queued",
            "review.edited",
            "review.approved",
            "memory.retracted",
            f"Memory {stored}: retracted",
            "opening hours",
        ):
            assert part in page, part
    told(audits(site, other), f"/review/audit/{stored}", 404)
    told(audits(site, other), "/review/audit", 404, owner=owner)
    assert "moon base" in told(audits(site), "/review/audit", q="moon base", owner=other)


@pytest.mark.on("sqlite")  # which has a list of erasures unasked
def test_of_what_was_erased_is_said_when_and_why(site: Site) -> None:
    owner = site.owner()
    item = queue(site.agent(owner), "The lift is serviced in May")
    first = item.replace("rev_", "dec_")
    erased = site.reviewer(owner).post(f"/v1/erasures/{item}", json={"basis": "GDPR 17", "dry_run": False})
    assert erased.status_code == 200, erased.text
    browser, other = audits(site, owner), audits(site, site.owner())
    for one in (item, first, f"receipts/{first}"):
        assert "(GDPR 17)" in told(browser, f"/review/audit/{one}", 410)
        told(other, f"/review/audit/{one}", 404)


def test_the_log_has_what_auditors_read_and_they_can_do_nothing(site: Site) -> None:
    owner = site.owner()
    decision = submit(site.agent(owner), claim("The lift is serviced in May", "ai_synthesis"), 202)
    browser = audits(site, owner)
    assert "claim.queued" in told(browser, "/review/audit/log")
    told(browser, "/review/audit/log", 404, owner=site.owner())
    for number in ("9" * 23, "-1", "x"):
        told(browser, "/review/audit/log", 422, before=number)
    told(browser, "/review/audit", 422, until="9999-12-31")
    assert browser.client.get(f"/review/items/{decision.queue_id}").headers["location"] == (
        f"/review/audit/{decision.queue_id}"
    )
    assert browser.client.get("/review").headers["location"] == "/review/audit"
    listed = browser.client.get("/review/memories", params={"source": "ADR 7"})
    assert listed.headers["location"] == "/review/audit?q=ADR+7"
    told(browser, "/review/sessions")
    fields = browser.fields("/review/sessions") or {"csrf": ""}
    refused = browser.client.post(f"/review/items/{decision.queue_id}/approve", data=fields)
    assert "Auditors read; nothing was done." in is_page(refused, 403)
    reviewing = Browser(site.caller())
    reviewing.sign_in(site.token(Role.REVIEWER, owner)[1])
    told(reviewing, "/review/audit", 403)

    everything = audits(site)
    why = observe(site, owner)
    for auditor in (browser, everything):
        for path in ("/review/audit", f"/review/audit/{decision.decision_id}", "/review/sessions"):
            assert why in told(auditor, path)
    assert why not in told(audits(site, site.owner()), "/review/audit")
    observe(site, owner, Mode.ENFORCE)
    assert why not in told(browser, "/review/audit")
    told(everything, f"/review/audit/{decision.decision_id}")
    caller = site.auditor(owner)
    assert caller.get(f"/v1/decisions/{decision.decision_id}").status_code == 200
    is_problem(caller.get("/v1/numbers"), 403)
    log = told(everything, "/review/audit/log")
    for path in (f"/review/audit/{decision.decision_id}", f"/v1/decisions/{decision.decision_id}"):
        assert f"audit.read{path}" in log
    assert "/v1/numbers" not in log


@pytest.mark.on("sqlite")  # what a page looks like does not depend on the database
def test_the_pages_read_well_on_every_screen(site: Site, windows: Chromium) -> None:
    owner = site.owner("an-owner-with-rather-a-long-name")
    decision = submit(site.agent(owner), claim("The bridge is closed in June", "ai_synthesis"), 202)
    window = windows.window(site.running.url, calm=True)
    sign_in_with(site, window, site.token(Role.AUDITOR, owner)[1])
    for path in ("/review/audit", f"/review/audit/{decision.decision_id}", "/review/audit/log"):
        is_for_everybody(window.go(path), NARROW)


@pytest.mark.on("sqlite")  # where the log is signed without being told to
def test_the_browser_recomputes_the_receipt_and_sees_an_answer_that_was_altered(
    site: Site, windows: Chromium
) -> None:
    owner = site.owner()
    agent = site.agent(owner)
    first = submit(agent, claim("The pool opens in May", "ai_synthesis"), 202).decision_id
    second = submit(agent, claim("The sauna opens in May", "ai_synthesis"), 202).decision_id
    reader = site.auditor(owner)
    until(lambda: reader.get(f"/v1/receipts/{second}").status_code == 200)
    window = windows.window(site.running.url, calm=True)
    sign_in_with(site, window, site.token(Role.AUDITOR, owner)[1])
    page = window.go(f"/review/audit/{first}")
    said = page.locator(f"[data-decision={first}]")
    said.locator(".chip").wait_for()
    assert said.locator(".chip.good").inner_text() == "✓ proven"
    assert "recomputed in this browser" in said.inner_text()

    def alter(connection: Connection) -> None:
        answer = decisions.get(connection, str(second), owners=None)
        changed = str(answer).replace("in May", "in June")
        connection.execute(
            update(decisions.TABLE).where(decisions.TABLE.c.id == second).values(answer=changed)
        )

    site.store.writer.run([owner], alter).result()
    page = window.go(f"/review/audit/{second}")
    said = page.locator(f"[data-decision={second}]")
    said.locator(".chip").wait_for()
    assert said.locator(".chip.bad").inner_text() == "not proven"
    assert "not the one that was given" in said.inner_text()
    log = told(audits(site, owner), "/review/audit/log")
    assert "whole Every entry continues the one before it" in log
    log = told(audits(site, owner), "/review/audit/log", check="1")
    assert "Something is not as it should be." in log
    assert f"decision '{second}'" in log


@pytest.mark.on("sqlite")  # what a page looks like does not depend on the database
def test_the_page_of_the_api_runs_its_own_script_alone(site: Site, windows: Chromium) -> None:
    """Its Content-Security-Policy names that script by what is in it: the browser would tell of any other. It is shown
    a part of what there is, which it takes seconds to draw."""
    window = windows.window(site.running.url)

    def shorten(route: Route) -> None:
        answer = route.fetch()
        document = answer.json()
        document["paths"] = {"/v1/claims": document["paths"]["/v1/claims"]}
        document["components"]["schemas"] = {}  # which are looked up where one is unfolded
        route.fulfill(response=answer, json=document)

    window.page.route("**/openapi.json", shorten)
    window.go("/docs")
    window.page.wait_for_selector("#operations-claims-submit_claim_v1_claims_post")
