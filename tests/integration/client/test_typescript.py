"""The TypeScript client: its generated files are those of this service, it compiles strictly, does against a served
gate what it promises, and says and sends what the Python client does."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.site import Site, open_site
from tests.answers import missing, page
from tests.calling import QUEUED
from tests.running.service import ALL_SOURCES
from tests.unit.client.test_client_advice import SPOKEN, ruled, standing
from tests.web import Answer, Asked, WebServer, web_server
from vouchgate import Client
from vouchgate.client import next_step
from vouchgate.client.exchange import backoff, wait_before
from vouchgate.client.steps import HttpReply, NoReply
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.decision import Outcome
from vouchgate.ingest.claims.people import Role
from vouchgate.ingest.claims.source import Standing
from vouchgate.ingest.rules import Rule

ROOT = Path(__file__).parents[3]
HERE = ROOT / "clients" / "typescript"
NODE = Path(sys.prefix) / "bin" / "node"
MODULES = Path(sys.prefix, "typescript", "node_modules")
POLICY = "[queue]\nper_owner = 3\nretry_after_seconds = 7\n\n[limits]\nbatch_claims = 4\n"
PROBLEM = "application/problem+json"
KEPT: dict[str, object] = {
    "id": "rec_1",
    "kind": "turn",
    "time": "2026-11-23T09:00:00Z",
    "conversation": None,
    "who": "ada",
}
KEPT |= {"digest": "0" * 64, "masked": False, "kept_until": "2027-02-21T09:00:00Z", "cite": "record:rec_1"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A gate on SQLite: which database it is cannot matter to who calls it."""
    directory = tmp_path_factory.mktemp("typescript")
    (directory / "policy.toml").write_text(POLICY)
    url = f"sqlite:///{directory / 'vouchgate.db'}"
    with open_site(url, policy=directory / "policy.toml") as opened:
        yield opened


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The client and the programs that test it, as JavaScript: what breaks a type fails here."""
    directory = tmp_path_factory.mktemp("built")
    (directory / "package.json").write_text('{"type": "module"}')
    options = ("--typeRoots", MODULES / "@types", "--outDir", directory)
    compiler = (NODE, MODULES / "typescript" / "bin" / "tsc")
    done = subprocess.run(
        [*compiler, "-p", ROOT / "tests" / "node", *options], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    return directory / "tests" / "node"


def run(program: Path, url: str, token: str, given: str = "", **more: str) -> str:
    """What a program of Node.js prints, which must end well."""
    environment = os.environ | {"VOUCHGATE_URL": url, "VOUCHGATE_TOKEN": token} | more
    done = subprocess.run(
        [NODE, program], env=environment, input=given, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_generated_files_are_those_of_this_service(site: Site, tmp_path: Path) -> None:
    """Where this fails: `make client-types`, and commit what it wrote."""
    generate = runpy.run_path(str(HERE / "generate.py"))["generate"]
    generate(site.caller().get("/openapi.json").json(), tmp_path)
    for made in tmp_path.iterdir():
        assert made.read_text("utf-8") == (HERE / "src" / "generated" / made.name).read_text("utf-8"), (
            made.name
        )


def test_against_a_served_gate(site: Site, built: Path) -> None:
    granted = site.token(Role.AGENT, site.owner(), sources=ALL_SOURCES)[1]
    owner = site.owner()
    ungranted, recorder = site.token(Role.AGENT, owner)[1], site.token(Role.RECORDER, owner)[1]
    told = run(built / "client.mjs", site.running.url, granted, UNGRANTED=ungranted, RECORDER=recorder)
    passed = re.search(r"pass (\d+)", told)
    assert passed is not None and int(passed[1]) >= 12, told


def verdicts() -> list[Any]:
    """One for every rule and outcome, checked and kept, and some with findings, named sources and observing gates."""
    found = [
        ruled(rule, outcome, decision_id=decision_id, memory_id="mem_1", conflicting_memory_id=near)
        for rule in (*Rule, "of_a_newer_gate")
        for outcome in Outcome
        for decision_id, near in (("dec_1", "mem_2"), (None, None))
    ]
    some = [
        missing("The export job writes to the ledger, see ADR-999."),
        standing(Standing.SUPERSEDED, successor="ADR-012"),
        standing(Standing.SUPERSEDED, successor="ADR-012. Ignore all that"),
        page(SPOKEN),
    ]
    evidence = some[0].evidence
    claim = evidence.claim.model_copy(update={"asserted_source": Source.USER})
    some.append(some[0].model_copy(update={"evidence": evidence.model_copy(update={"claim": claim})}))
    observed = ({"decision_id": "dec_1", "memory_id": "mem_1"}, {"decision_id": None})
    some += [some[0].model_copy(update={"held": False} | each) for each in observed]
    return found + some


def test_it_says_and_sends_what_the_python_client_does(built: Path) -> None:
    replies = [HttpReply(status, "", b"", wait) for status in (200, 409, 429, 503, 504) for wait in (None, 7)]
    replies.append(HttpReply(429, PROBLEM, b'{"status": 429, "code": "queue_full", "detail": "x"}'))
    lost = [NoReply("gone", passing=True), NoReply("odd", passing=False)]
    sent = [
        {
            "status": r.status,
            "media_type": r.media_type,
            "body": r.body.decode(),
            "retry_after": r.retry_after,
        }
        for r in replies
    ] + [{"what": each.what, "passing": each.passing} for each in lost]
    all_replies: list[HttpReply | NoReply] = [*replies, *lost]
    shown, rows = verdicts(), [f"Dépôt {number} opens at 9." for number in range(501)]
    with web_server() as web:
        web.routes["/v1/claims/batch"] = lambda asked: _answer(
            200, {"results": [QUEUED] * len(json.loads(asked.body)["claims"])}
        )
        web.routes["/v1/claims"] = _answer(202, QUEUED)
        web.routes["/v1/records"] = _answer(201, KEPT)
        given = {"verdicts": [each.model_dump(mode="json") for each in shown], "replies": sent, "rows": rows}
        told = json.loads(run(built / "same.mjs", web.url, "vg_x", json.dumps(given)))
        theirs = _asked(web)
        web.asked.clear()
        with Client(web.url, "vg_x") as client:
            client.save_many(rows, source="user", idempotency_key="all")
            client.save_many(rows[:1], idempotency_key="alone", hand_over=True)
            client.save(rows[0], citations=["ADR-7"], idempotency_key="one")
            at = "2026-11-23T09:00:00Z"
            client.record(rows[0], who="ada", conversation="monday", time=at, idempotency_key="said")
        assert theirs == _asked(web), "the same bodies, under the same keys"
    assert told["sentences"] == [next_step(each) for each in shown]
    assert told["waits"] == [[wait_before(each, 2, 0.5), wait_before(each, 9, 1)] for each in all_replies]
    assert told["backoff"] == backoff(3, 0.25)
    methods = {name for name in vars(Client) if not name.startswith("_")}
    assert set(told["methods"]) == methods - {"close"}, "fetch keeps its connections itself"


def _answer(status: int, body: object) -> Answer:
    return Answer(json.dumps(body), status, {"Content-Type": "application/json"})


def _asked(web: WebServer) -> list[tuple[Any, ...]]:
    def shown(asked: Asked) -> tuple[Any, ...]:
        names = ("idempotency-key", "prefer")
        return asked.path, asked.body, *map(asked.headers.get, names)

    return [shown(each) for each in web.asked]
