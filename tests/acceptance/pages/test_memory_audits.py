"""An owner hands an audit over, clears it in a real browser, takes it back, and has the rest sent to the gate."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.acceptance.cli_program import cli
from tests.acceptance.site import Site, is_problem, open_site
from tests.browser import Chromium, faults_of_access, overflow, sign_in_with
from vouchgate.ingest.claims.people import Role

pytestmark = pytest.mark.on("postgresql")

KEY = "sk-ant-api03-" + "a8Kd0_fQ2" * 10 + "AA"
NOTES: list[dict[str, Any]] = [
    {
        "memory": "The office in Oslo opens at 8:00.",
        "agent_id": "desk",
        "citations": ["ADR-001"],
        "validity_horizon": "2031-01-01T00:00:00Z",
    },
    {"memory": "The office in Oslo opens at 8:00."},
    {"memory": "The office in Oslo opens at 9:00."},
    {"memory": "The lift <script>alert(1)</script> was painted on Monday.", "tags": ["house"]},
    {"memory": "I think the roof leaks somewhere, maybe."},
    {"memory": f"The key of the printer is {KEY}."},
    {"memory": "The printer stands on the second floor."},
    {
        "memory": "The kitchen has a blue table.",
        "metadata": {"source": "manual", "user_id": "bob", "validity_horizon": "2020-01-01", "text": "?"},
    },
]


@pytest.fixture(scope="module")
def site(module_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    policy = tmp_path_factory.mktemp("policy") / "policy.toml"
    policy.write_text("[queue]\nimports_per_owner = 3\n")
    with open_site(module_database_url, policy=policy) as opened:
        yield opened


def numbers(page: Page) -> dict[str, str]:
    """What stands beside each label and state."""
    rows = page.locator("nav.side li").all_inner_texts()
    return dict(row.split("\n") for row in rows if "\n" in row)


def handed(rows: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """The body that hands these rows over."""
    digest = hashlib.sha256(json.dumps(rows).encode()).hexdigest()
    return {"name": "notes\u202e\n.jsonl", "digest": digest, "total": len(rows), "rows": rows} | more


def test_an_owner_clears_a_memory(site: Site, windows: Chromium, tmp_path: Path) -> None:
    owner, file = site.owner(), tmp_path / "notes.jsonl"
    _, token = site.token(Role.REVIEWER, owner)
    file.write_text("".join(json.dumps(each) + "\n" for each in NOTES))
    options = ("import", "--dry-run", file, "--url", site.running.url, "--offline")
    done = cli(*options, cwd=tmp_path, env={"VOUCHGATE_TOKEN": token})
    assert done.returncode == 0, done.stderr
    home = done.stdout.decode().split("Clear it: ")[1].strip().removeprefix(site.running.url)

    window = windows.window(site.running.url)
    sign_in_with(site, window, token)
    page = window.go("/review/memory-audits")
    expect(page.locator("nav.side a").first).to_have_attribute("href", f"{home}?label=credential&state=open")
    expect(page.locator("h1")).to_have_text("notes.jsonl: credential")  # the gravest comes first
    assert KEY not in page.content()
    expect(page.locator("#badge")).to_have_attribute("data-waiting", "0")  # as on every page of an owner
    assert numbers(page) == {
        **{"Credential": "1 of 1", "Repeat": "1 of 1", "Speculation": "1 of 1", "Contradiction": "1 of 1"},
        **{"Fine": "4 of 4", "Open": "8"},
    }
    # With the keyboard: the first row, cleared.
    page.keyboard.press("j")
    page.keyboard.press("c")
    expect(page.locator(".acted li").first).to_contain_text("1 cleared by a test's reviewer")
    # In bulk: all with a label; and what it contradicts stands beside it, with the words marked that differ.
    page.get_by_role("link", name="Contradiction").click()
    expect(page.locator(".sides del")).to_have_text("8:00")
    expect(page.locator(".sides ins")).to_have_text("9:00")
    assert faults_of_access(page) == []
    page.get_by_role("button", name="Clear all 1").click()
    expect(page.locator(".acted li")).to_have_count(2)
    page.keyboard.press("u")
    expect(page.locator(".acted li")).to_have_count(1)
    assert numbers(page)["Contradiction"] == "1 of 1"
    page.locator("#rows input").check()
    page.get_by_role("button", name="Keep ticked").click()
    expect(page.locator(".acted li").first).to_contain_text("1 kept")
    for label in ("Repeat", "Speculation"):
        page.get_by_role("link", name=label).click()
        page.get_by_role("button", name="Clear all 1").click()
        expect(page.locator(".acted li").first).to_contain_text("1 cleared")
    page.get_by_role("link", name="Fine").click()
    expect(page.locator("#rows")).to_contain_text("The lift <script>alert(1)</script> was painted")
    assert (numbers(page)["Cleared"], numbers(page)["Kept"], numbers(page)["Open"]) == ("3", "1", "4")
    said = site.actions(owner)
    told = [each for each in said if each.startswith("audit.")]
    assert told == [
        "audit.cleared",
        "audit.cleared",
        "audit.undone",
        "audit.kept",
        "audit.cleared",
        "audit.cleared",
    ]

    cleaned = [
        json.loads(line)
        for line in page.request.get(f"{window.origin}{home}/cleaned.jsonl").text().split("\n")
        if line
    ]
    assert [row["content"] for row in cleaned] == [NOTES[at]["memory"] for at in (0, 2, 3, 6, 7)]
    assert cleaned[0]["citations"][0]["value"] == "ADR-001"
    assert cleaned[0]["validity_horizon"].startswith("2031-01-01T00:00:00")
    assert (cleaned[0]["agent_id"], cleaned[2]["metadata"]) == ("desk", {"tags": ["house"]})
    # What was metadata asserts nothing when it is imported again: not whose it is, nor what vouches for it.
    assert cleaned[4] == {
        "content": NOTES[7]["memory"],
        "metadata": NOTES[7]["metadata"],
        "user_id": owner,
    }
    gone = [
        json.loads(line)
        for line in page.request.get(f"{window.origin}{home}/cleared.jsonl").text().split("\n")
        if line
    ]
    assert {row["label"] for row in gone} == {"credential", "repeat", "speculation"}
    assert all(row["cleared_by"] for row in gone)
    assert KEY not in json.dumps(gone)

    # Three may wait, so it stops politely, and goes on once there is room; nothing goes there twice.
    page.get_by_role("button", name="Send what is left to the gate").click()
    expect(page.locator(".said")).to_contain_text("The queue has no room")
    reviewer = site.caller(token)
    items = reviewer.get("/v1/reviews").json()["items"]
    assert len(items) == 3
    for item in items:
        answer = reviewer.post(
            f"/v1/reviews/{item['id']}/approve", json={"version": item["version"], "supersede": False}
        )
        assert answer.status_code == 200, answer.text
    page.get_by_role("button", name="Send what is left to the gate").click()
    expect(page.locator(".said")).to_contain_text("All that was left is at the gate")
    assert numbers(page)["Queued"] == "5"
    assert (
        "kept" not in page.locator(".acted").inner_text()
    )  # they are at the gate, so there is nothing to undo
    page.get_by_role("link", name="5 queued").click()
    page.locator("#rows a").last.click()
    expect(page.locator("h1")).to_be_visible()
    assert "/review/items/rev_" in page.url
    items = reviewer.get("/v1/reviews").json()["items"]
    assert len(items) == 2

    # Guesses need no place, so that a browser sends all of them by itself, some at a time.
    rows = [
        {
            "row": at,
            "text": f"I think the roof of house {at} leaks, maybe.",
            "label": "speculation",
            "reason": "-",
        }
        for at in range(1, 121)
    ]
    reviewer.post("/v1/memory-audits", json=handed(rows)).raise_for_status()
    page = window.go("/review/memory-audits")
    page.get_by_role("link", name="Next page").click()
    expect(page.locator("#row-51")).to_be_visible()
    page.get_by_role("button", name="Send what is left to the gate").click()
    expect(page.locator(".said")).to_contain_text("All that was left is at the gate")
    assert numbers(page)["Blocked"] == "120"

    # Of an update the earlier row is cleared, as the later one takes its place.
    pair = [
        {"row": 1, "text": "Ada lives in Paris.", "label": "fine", "reason": "-"},
        {"row": 2, "text": "Ada lives in Lyon now.", "label": "update", "other_row": 1, "reason": "-"},
        {"row": 2, "text": "Ada lives in Rome now.", "label": "update", "other_row": 2, "reason": "-"},
    ]
    reviewer.post("/v1/memory-audits", json=handed(pair)).raise_for_status()
    page = window.go("/review/memory-audits")
    page.get_by_role("link", name="Update").click()
    page.locator("#rows input").first.check()
    page.get_by_role("button", name="Clear ticked").click()
    expect(page.locator(".sides").first).to_contain_text("line 1, earlier, cleared")
    page.get_by_role("button", name="Clear all 2").click()
    expect(page.locator("#row-3")).to_contain_text("line 2, earlier, cleared")
    assert (numbers(page)["Fine"], numbers(page)["Update"]) == ("0 of 1", "1 of 2")

    phone = windows.window(site.running.url, phone=True)
    sign_in_with(site, phone, token)
    page = phone.go(f"{home}?label=contradiction&state=queued")
    expect(page.locator("#rows")).to_be_visible()
    assert overflow(page) == 0


def test_what_is_not_the_owners(site: Site, windows: Chromium) -> None:
    owner = site.owner()
    reviewer, row = (
        site.reviewer(owner),
        {"row": 1, "text": "Tea is at four.", "label": "fine", "reason": "-"},
    )
    sent = handed([row, row | {"row": "a.md:3", "other_row": 1, "text": f"The key is {KEY}"}])
    for body, field in (
        (sent | {"digest": "no"}, "digest"),
        (sent | {"rows": [row | {"label": "odd"}]}, "label"),
        (sent | {"rows": [row] * 201}, "rows"),
    ):
        assert field in json.dumps(is_problem(reviewer.post("/v1/memory-audits", json=body), 422)["errors"])
    is_problem(reviewer.post("/v1/memory-audits", json=sent | {"name": KEY}), 422, "credential")
    is_problem(site.agent(owner).post("/v1/memory-audits", json=sent), 403, "role_not_allowed")
    is_problem(reviewer.post("/v1/memory-audits", json=sent | {"user_id": site.owner()}), 403)
    first = reviewer.post("/v1/memory-audits", json=sent | {"rows": sent["rows"][:1]}).json()
    assert first["taken"] == 1
    for after, taken in (
        (0, 1),
        (5, 1),
        (1, 2),
        (2, 2),
    ):  # again, too early, in turn, and more than there are
        more = {
            "after": after,
            "rows": [sent["rows"][1]],
            "total": 300_000,
        }  # more than it was to have at first
        answer = reviewer.post("/v1/memory-audits", json=sent | more)
        assert answer.json() == {"id": first["id"], "taken": taken}
    is_problem(reviewer.post("/v1/memory-audits", json=handed([row], total=300_000)), 429, "too_many_audits")

    home = f"/review/memory-audits/{first['id']}"
    plain = windows.window(site.running.url, javascript=False)
    sign_in_with(site, plain, site.token(Role.REVIEWER, owner)[1])
    page = plain.go(f"{home}?label=fine")
    page.get_by_role("button", name="Clear all").click()
    expect(page.locator(".acted")).to_contain_text("cleared")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#rows")).to_contain_text("Tea is at four.")
    window = windows.window(site.running.url)
    window.expect("status of 404", "status of 403", "status of 422")
    sign_in_with(site, window, site.token(Role.REVIEWER, site.owner())[1])
    for path in (home, f"{home}/cleaned.jsonl"):
        assert window.page.request.get(window.origin + path).status == 404
    window = windows.window(site.running.url)
    sign_in_with(site, window, site.token(Role.AUDITOR, owner)[1])
    page = window.go(home)
    expect(page.locator("#rows")).to_contain_text("Tea is at four.")
    expect(page.locator("#rows")).to_contain_text("fine")
    assert KEY not in page.content()
    assert page.get_by_role("button", name="Clear").count() == 0
    assert page.request.get(f"{window.origin}{home}/odd.jsonl").status == 404
    for path in (home, f"{home}/feed"):
        assert (
            page.request.post(window.origin + path, form={"do": "clear:all", "label": "fine"}).status == 403
        )
    for query in ("label=odd", "label=open", "state=odd", "state=fine", "after=x", "after=-1"):
        assert page.request.get(f"{window.origin}{home}?{query}").status == 422
