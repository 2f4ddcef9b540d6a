"""The page of figures in a browser, and the same over the API, the command line and the metrics."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.api.test_modes_api import in_mode
from tests.acceptance.cli_program import cli
from tests.acceptance.site import Site, claim, is_problem, open_site, queue, store, submit
from tests.browser import Chromium, is_for_everybody, moved, sign_in_with
from vouchgate.ingest.claims.modes import Mode
from vouchgate.ingest.claims.people import Role


@pytest.fixture(scope="module", params=["sqlite"])
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("numbers")
    with open_site(f"sqlite:///{folder}/vouchgate.db") as opened:
        yield opened


@pytest.fixture(scope="module")
def owner(site: Site) -> str:
    """Of whom two claims were stored, one was blocked, two wait and two were ruled on."""
    owner = site.owner("ann")
    agent, reviewer = site.agent(owner), site.reviewer(owner)
    store(agent, "The hall is cold")
    store(agent, "The barn is dry")
    submit(agent, claim("I guess the hall is haunted"), 422)
    names = ("north", "south", "east", "west")
    items = [queue(agent, f"The {name} cellar is dry, as anybody can see") for name in names]
    for item, act in ((items[0], "approve"), (items[1], "reject")):
        body = {"version": 1} | ({"reason": "Not true"} if act == "reject" else {})
        assert reviewer.post(f"/v1/reviews/{item}/{act}", json=body).status_code == 200
    return owner


def test_the_page_says_it_at_a_glance(site: Site, owner: str, windows: Chromium) -> None:
    other = site.owner("bob")
    queue(site.agent(other), "The attic is dark by day")
    token = site.token(Role.REVIEWER, owner, other)[1]
    for javascript in (True, False):
        window = windows.window(site.running.url, javascript=javascript)
        sign_in_with(site, window, token)
        page = window.go("/review/numbers?days=7")
        figures = page.locator(".figures b").all_inner_texts()
        assert figures[:4] == ["2", "7", "2", "0 minutes"]
        assert page.locator("nav a[aria-current]").inner_text() == "Numbers"
        assert page.locator(".chart g").count() == 7
        assert (
            "7 in, 2 stored, 4 queued, 1 blocked, 2 cleared"
            in page.locator(".chart title").all_text_contents()[-1]
        )
        page.get_by_role("link", name="all of my owners").click()
        assert page.locator(".figures b").all_inner_texts()[:2] == ["3", "8"]
    page = windows.windows[0].page
    page.get_by_role("link", name="30 days").click()
    assert page.locator(".chart g").count() == 30
    assert page.locator(".figures b").all_inner_texts()[:2] == ["3", "8"]
    page.get_by_text("The same as a table").click()
    assert page.get_by_role("row").filter(has_text="In").first.get_by_role("columnheader").count() == 15
    is_for_everybody(page)
    assert moved(windows.windows[0].go("/review/numbers")) == []
    windows.windows[0].expect("422")
    assert "7, 14, 30 or 90" in windows.windows[0].go("/review/numbers?days=8").locator("main").inner_text()


def test_what_was_let_through_has_its_part_of_each_bar(site: Site, windows: Chromium, tmp_path: Path) -> None:
    owner = site.owner("dora")
    agent = site.agent(owner)
    store(agent, "The mill is old")
    with in_mode(site, owner, Mode.OBSERVE):
        for room in ("north", "south", "east"):
            submit(agent, claim(f"The {room} room is dry, as anybody can see", "ai_synthesis"), 202)
    window = windows.window(site.running.url)
    sign_in_with(site, window, site.token(Role.REVIEWER, owner)[1])
    page = window.go("/review/numbers?days=7")
    heights = {
        kind: page.locator(f".chart rect.{kind}").get_attribute("height")
        for kind in ("stored", "let-through")
    }
    assert heights == {"stored": "25.0", "let-through": "75.0"}
    assert page.locator(".lying").first.locator("rect.let-through").get_attribute("width") == "75.0"
    assert "let through" in page.locator(".legend").inner_text()
    assert page.locator("table.six").first.locator("tbody td").all_inner_texts() == [
        "4",
        "1",
        "0",
        "0",
        "3",
        "–",
    ]
    assert "1 stored at once, 0 queued, 3 let through" in page.locator(".figures").inner_text()
    is_for_everybody(page)
    told = cli("numbers", "--owner", owner, "--database-url", site.url, cwd=tmp_path).stdout.decode()
    assert "Let through" in told


def test_the_api_says_the_same_to_the_owner_alone(site: Site, owner: str) -> None:
    reviewer = site.reviewer(owner)
    found = reviewer.get("/v1/numbers", params={"days": 1}).json()
    assert (found["owners"], found["waiting"]["items"], len(found["days"])) == ([owner], 2, 1)
    expected = {"came": 7, "stored": 2, "queued": 4, "blocked": 1, "cleared": 2, "approved": 1, "rejected": 1}
    assert expected.items() <= found["total"].items()
    assert found["total"]["approved_share"] == 0.5
    (agent,) = found["agents"]
    assert (agent["name"], agent["came"]) == ("a test's agent", 7)
    is_problem(reviewer.get("/v1/numbers", params={"user_id": site.owner("bob")}), 403, "owner_not_allowed")
    for days in (0, 91):
        assert reviewer.get("/v1/numbers", params={"days": days}).status_code == 422


def test_the_command_and_the_metrics_say_it_too(site: Site, owner: str, tmp_path: Path) -> None:
    def numbers(*options: str) -> tuple[int, str]:
        done = cli("numbers", "--database-url", site.url, *options, cwd=tmp_path)
        return done.returncode, (done.stdout + done.stderr).decode()

    status, document = numbers("--owner", owner, "--json")
    assert (status, json.loads(document)["total"]["came"]) == (0, 7)
    _, shown = numbers()
    assert "Waiting now" in shown
    assert "Ungrounded" in shown
    status, refused = numbers("--owner", "nobody-at-all")
    assert status == 1
    assert "there is no owner" in refused
    metrics = site.caller().get("/metrics").text
    assert 'vouchgate_review_wait_seconds_bucket{le="60.0"} 2.0' in metrics


def test_an_auditor_sees_how_people_rule(site: Site, owner: str, windows: Chromium, tmp_path: Path) -> None:
    token = site.token(Role.REVIEWER, owner)[1]
    window = windows.window(site.running.url)
    sign_in_with(site, window, token)
    with window.page.expect_response("**/opened") as told:  # what is in sight beside the list
        window.go("/review")
    assert told.value.status == 204
    item = window.page.locator(".row[aria-current]").get_attribute("data-id")
    body = {"version": 1, "reason": '=HYPERLINK("http://evil.example")'}
    assert site.caller(token).post(f"/v1/reviews/{item}/reject", json=body).status_code == 200
    done = cli("audit", "reviews", "--owner", owner, "--database-url", site.url, cwd=tmp_path)
    rows = list(csv.DictReader(done.stdout.decode().splitlines()))
    assert [row["what"] for row in rows] == ["approved", "rejected", "rejected"], done.stderr
    assert [row["item_id"] for row in rows if row["look_seconds"]] == [item]
    assert rows[-1]["note"].startswith("'=")
    for wrong in (("--from", "soon"), ("--format", "xml"), ("--owner", "nobody-at-all")):
        assert cli("audit", "reviews", "--database-url", site.url, *wrong, cwd=tmp_path).returncode != 0
    auditor = windows.window(site.running.url)
    sign_in_with(site, auditor, site.token(Role.AUDITOR, owner)[1])
    page = auditor.go("/review/audit/rulings")
    lines = page.locator("tbody tr").all_inner_texts()
    cells = [line.split("\t")[1:6] for line in lines]
    assert [each[:4] for each in cells] == [["2", "1", "1", "0"], ["1", "0", "1", "0"]]
    assert [each[4] == "not known" for each in cells] == [True, False]
    assert page.locator("nav a[aria-current]").inner_text() == "Rulings"
    is_for_everybody(page)
    auditor.expect("404")
    assert (
        "no such owner for you" in auditor.go("/review/audit/rulings?owner=bob").locator("main").inner_text()
    )
