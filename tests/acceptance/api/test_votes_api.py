"""Claims that need more than one approval, over the API, at the pages and in the terminal."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.acceptance.cli_program import cli, json_lines
from tests.acceptance.site import Site, is_problem, open_site, queue, store
from vouchgate.ingest.claims.people import Role
from vouchgate.storage.identity import persons, sessions, tokens

RULES = "@board = @bea @cleo\n*\ntype:decision @board 2\n"


@pytest.fixture(scope="module", params=["sqlite"])
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("votes")
    (folder / "OWNERS").write_text(RULES)
    environment = {"VOUCHGATE_OFFLINE": "true", "VOUCHGATE_OWNER_RULES": str(folder / "OWNERS")}
    with open_site(f"sqlite:///{folder}/vouchgate.db", environment=environment) as opened:
        for name in ("bea", "cleo"):
            persons.create(opened.store, name, actor="test", now=datetime.now(UTC))
        yield opened


def token(site: Site, name: str, owner: str) -> str:
    with site.store.read() as connection:
        found = persons.find(connection, name)
    assert found is not None
    now = datetime.now(UTC)
    return tokens.create(
        site.store, role=Role.REVIEWER, name="t", owners=[owner], person=found.id, actor="test", now=now
    )[1]


def test_two_approve_one_after_the_other_and_it_is_told_who(site: Site, owner: str) -> None:
    agent = site.agent(owner)
    item = queue(agent, "We tar the roof in June", memory_type="decision")
    bea, cleo = (site.caller(token(site, name, owner)) for name in ("bea", "cleo"))
    seen = bea.get(f"/v1/reviews/{item}").json()
    assert (seen["needed"], seen["asked"], "votes" in seen) == (2, ["bea", "cleo"], False)
    is_problem(
        site.reviewer(owner).post(f"/v1/reviews/{item}/approve", json={"version": 1}), 409, "not_asked"
    )
    first = bea.post(f"/v1/reviews/{item}/approve", json={"version": 1, "note": "agreed in May"})
    assert first.status_code == 200
    assert {key: first.json()[key] for key in ("given", "needed")} == {"given": 1, "needed": 2}
    back = site.reviewer(owner).post(f"/v1/reviews/{item}/reject", json={"version": 1, "reason": "In July."})
    assert (back.json()["given"], back.json()["item"]["version"]) == (0, 2)
    rows = [{"action": "approve", "id": item, "version": 2}]
    (voted,) = bea.post("/v1/reviews/batch", json={"items": rows}).json()["results"]
    assert voted["given"] == 1
    done = cleo.post(f"/v1/reviews/{item}/approve", json={"version": 2}).json()
    memory = done["memory"]["id"]
    auditor = site.auditor(owner)
    cast = auditor.get(f"/v1/memories/{memory}/evidence").json()["votes"]
    assert sorted((vote["version"], vote["name"] or "", vote["verdict"]) for vote in cast) == [
        (1, "", "object"),
        (1, "bea", "approve"),
        (2, "bea", "approve"),
        (2, "cleo", "approve"),
    ]
    assert "votes" not in agent.get(f"/v1/memories/{memory}/evidence").json()
    assert "votes" not in auditor.get(f"/v1/memories/{store(agent, 'The roof is flat')}/evidence").json()
    assert [action for action in site.actions(owner) if action.startswith("review")] == [
        "review.voted",
        "review.objected",
        "review.voted",
        "review.approved",
        "review.voted",
    ]


def test_a_standing_ruling_has_a_name_and_is_about_a_token_and_no_way_around_votes(
    site: Site, owner: str
) -> None:
    reviewer, agent = site.reviewer(owner), site.agent(owner).get("/v1/whoami").json()

    def confirm(named: str, name: str = "doors", **terms: str) -> httpx.Response:
        terms |= {"agent": named, "template": "door * is painted *"}
        return reviewer.post("/v1/standing-rulings", json={"verdict": "store", "terms": terms, "name": name})

    is_problem(confirm(agent["name"], memory_type="fact"), 422, "agent_unknown")
    is_problem(confirm(agent["id"], " ", memory_type="fact"), 409, "no_name")
    told = is_problem(confirm(agent["id"], memory_type="decision"), 409, "ruling_votes")
    assert "“type:decision @board 2”" in told["detail"]
    assert confirm(agent["id"], memory_type="fact").status_code == 200


def test_the_page_says_how_many_are_needed_and_takes_a_vote_back(site: Site, owner: str) -> None:
    item = queue(site.agent(owner), "We paint the door in red", memory_type="decision")
    secret = sessions.start(site.store, token(site, "bea", owner), now=datetime.now(UTC))
    assert isinstance(secret, str)
    address = f"/review/items/{item}"
    with httpx.Client(
        base_url=site.running.url, cookies={"vg_session": secret}, trust_env=False, follow_redirects=True
    ) as pages:

        def title() -> str:
            found = re.search(r'id="votes"><h2>([^<]+)', pages.get(address).text)
            assert found is not None
            return found[1]

        csrf = re.search(r'data-csrf="([0-9a-f]+)"', pages.get(address).text)
        assert csrf is not None
        fields = {"csrf": csrf[1], "version": "1"}
        assert title() == "0 of 2 approved; 2 more are needed"
        for page in (pages.get(address).text, pages.get("/review").text):
            assert "One of 2 approvals that it takes; with the last: stores it as" in page
            assert "Approve this wording" not in page  # which is refused
        other = sessions.start(site.store, site.token(Role.REVIEWER, owner)[1], now=datetime.now(UTC))
        barred = httpx.get(
            site.running.url + address, cookies={"vg_session": str(other)}, trust_env=False
        ).text
        assert "this is for others to approve: bea, cleo." in barred
        assert 'id="approve-form"' not in barred
        told = pages.post(f"{address}/approve", data={**fields, "back": "/review"}).text
        assert "Approved by 1 of 2:" in told
        assert title() == "1 of 2 approved; 1 more is needed"
        assert "Take your approval back" in pages.get(address).text
        pages.post(f"{address}/undo", data=fields)
        assert title() == "0 of 2 approved; 2 more are needed"
        row = {"csrf": csrf[1], "do": f"approve:{item}:1", "back": "/review"}
        act = pages.post("/review/act", data=row, headers={"Accept": "application/json"}).json()
        assert act["results"][0]["outcome"] == "voted"
        rejected = pages.post(f"{address}/reject", data={**fields, "reason": "Blue.", "back": "/review"})
        assert rejected.status_code == 200
        assert title() == "0 of 2 approved; 2 more are needed"
        assert "(counts no more)" not in pages.get(address).text  # her own, which she took back by objecting
        assert "Blue." in pages.get(address).text


def test_the_terminal_goes_by_the_same_rules(site: Site, owner: str, tmp_path: Path) -> None:
    item = queue(site.agent(owner), "We sweep the yard on Fridays", memory_type="decision")
    given = ("--database-url", site.url, "--latest")
    rules = site.url.removeprefix("sqlite:///").replace("vouchgate.db", "OWNERS")

    def review(name: str, *arguments: str) -> str:
        environment = {"VOUCHGATE_OWNER_RULES": rules, "VOUCHGATE_TOKEN": token(site, name, owner)}
        done = cli("review", *arguments, *given, cwd=tmp_path, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout.decode()

    assert "Approved by 1 of 2" in review("bea", "approve", item)
    assert "Returned" in review("cleo", "reject", item, "--reason", "On Mondays.")
    assert "Approved by 1 of 2" in review("bea", "approve", item)
    assert "Approved: stored" in review("cleo", "approve", item)


def test_what_has_a_fault_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "OWNERS").write_text("*\ntyp:decision 2\n")
    done = cli("serve", "--port", "0", cwd=tmp_path, env={"VOUCHGATE_OWNER_RULES": "OWNERS"})
    assert done.returncode == 1
    assert "line 2" in done.stderr.decode()
    assert "did you mean type?" in done.stderr.decode()


def test_the_file_is_checked_and_asked_beforehand(site: Site, owner: str, tmp_path: Path) -> None:
    item = queue(site.agent(owner), "We salt the steps in winter", memory_type="decision")
    (tmp_path / "OWNERS").write_text(RULES + "risk:low path:docs/* @beaa\n")
    rules = ("--rules", "OWNERS")
    checked = cli("owners", "check", "OWNERS", cwd=tmp_path)
    assert (checked.returncode, checked.stdout) == (0, b"")
    named = cli("owners", "check", "OWNERS", "--names", "--database-url", site.url, cwd=tmp_path)
    assert named.returncode == 1
    assert named.stdout.decode() == "OWNERS:4: There is no person beaa (did you mean bea?).\n"
    asked = cli("owners", "who", "--claim", item, *rules, "--database-url", site.url, cwd=tmp_path)
    board: dict[str, Any] = {
        "approvals": 2,
        "asked": ["bea", "cleo"],
        "line": 3,
        "rule": "type:decision @board 2",
    }
    board["stand_ins"] = []
    assert json_lines(asked.stdout) == [board]
    claims = [
        {"id": 1, "content": "We salt the steps in winter", "memory_type": "decision"},
        {"id": 2, "content": "The steps are of oak, see docs/steps.md", "memory_type": "fact"},
        {"id": 3, "content": "The steps are steep", "memory_type": "fact"},
    ]
    lines = "\n".join(map(json.dumps, claims))
    decided = cli("check", "--offline", cwd=tmp_path, stdin=lines)
    told = cli("owners", "who", *rules, cwd=tmp_path, stdin=decided.stdout + b"{}\n")
    first, second, third, bad = json_lines(told.stdout)
    assert told.returncode == 1
    assert first == {"id": 1, **board}
    assert (second["id"], second["asked"], second["line"]) == (2, ["beaa"], 4)
    assert (third["id"], third["approvals"], third["asked"]) == (3, 1, [])
    assert bad["error"]["code"] == "decision_invalid"
    assert cli("owners", "who", cwd=tmp_path).returncode == 2
    base = ("--owner", owner, "--database-url", site.url)
    assert cli("person", "create", "dana", "--database-url", site.url, cwd=tmp_path).returncode == 0
    until = ("--until", f"{datetime.now(UTC) + timedelta(days=9):%Y-%m-%d}")
    refused = cli("person", "stand-in", "bea", "dana", *until, *base, cwd=tmp_path)
    assert (refused.returncode, b"in their own right" in refused.stderr) == (1, True)
    assert cli("member", "grant", "bea", "--role", "reviewer", *base, cwd=tmp_path).returncode == 0
    assert cli("person", "stand-in", "bea", "dana", *base, cwd=tmp_path).returncode == 2
    assert cli("person", "stand-in", "bea", "dana", *until, *base, cwd=tmp_path).returncode == 0
    asked = cli("owners", "who", "--claim", item, *rules, "--database-url", site.url, cwd=tmp_path)
    assert json_lines(asked.stdout) == [board | {"stand_ins": [["dana", "bea"]]}]
    listed = json_lines(cli("member", "list", "--json", *base, cwd=tmp_path).stdout)
    assert [one["name"] for one in listed if "acts_for" in one] == ["dana"]
    assert cli("person", "stand-in", "bea", "dana", "--end", *base, cwd=tmp_path).returncode == 0
    assert cli("person", "stand-in", "bea", "dana", "--end", *base, cwd=tmp_path).returncode == 1
    missing = cli("owners", "who", "--claim", "rev_0", *rules, "--database-url", site.url, cwd=tmp_path)
    assert (missing.returncode, b"there is no item" in missing.stderr) == (1, True)
