"""An owner hands an audit over, clears it in a real browser, takes it back, and sends the rest to the gate."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import expect

from tests.acceptance.cli_program import cli, complaint
from tests.acceptance.site import Site, is_problem, open_site
from tests.browser import Chromium, faults_of_access, overflow, sign_in_with
from vouchgate.ingest.claims.people import Role

pytestmark = pytest.mark.on("postgresql")

KEY = "sk-ant-api03-" + "a8Kd0_fQ2" * 10 + "AA"
NOTES = [
    {"memory": "The office in Oslo opens at 8:00.", "agent_id": "desk"},
    {"memory": "The office in Oslo opens at 8:00."},
    {"memory": "The office in Oslo opens at 9:00."},
    {"memory": "The lift <script>alert(1)</script> was painted on Monday.", "tags": ["house"]},
    {"memory": "I think the roof leaks somewhere, maybe."},
    {"memory": f"The key of the printer is {KEY}."},
    {"memory": "The printer stands on the second floor."},
]


@pytest.fixture(scope="module")
def site(module_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    policy = tmp_path_factory.mktemp("policy") / "policy.toml"
    policy.write_text("[queue]\nimports_per_owner = 2\n")
    with open_site(module_database_url, policy=policy) as opened:
        yield opened


def test_an_owner_clears_a_memory(site: Site, windows: Chromium, tmp_path: Path) -> None:
    owner, file = site.owner(), tmp_path / "notes.jsonl"
    principal, token = site.token(Role.REVIEWER, owner)
    file.write_text("".join(json.dumps(each) + "\n" for each in NOTES))
    options = ("import", "--dry-run", file, "--url", site.running.url, "--offline")
    done = cli(*options, cwd=tmp_path, env={"VOUCHGATE_TOKEN": token})
    assert done.returncode == 0, done.stderr
    assert KEY not in done.stdout.decode()
    address = done.stdout.decode().split("Clear it: ")[1].strip().removeprefix(site.running.url)
    again = cli(*options, cwd=tmp_path, env={"VOUCHGATE_TOKEN": token})
    assert address in again.stdout.decode()  # the same audit
    agents = site.token(Role.AGENT, owner)[1]
    refused = cli(*options, cwd=tmp_path, env={"VOUCHGATE_TOKEN": agents})
    assert "role" in complaint(refused)

    window = windows.window(site.running.url)
    sign_in_with(site, window, token)
    page = window.go("/review/memory-audits")
    page.screenshot(path="/tmp/one.png", full_page=True)
    print(page.inner_text("main"))
