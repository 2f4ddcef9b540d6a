"""The served OpenAPI document: that it is true, and that every operation is guarded."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.acceptance.site import Site, claim, is_problem, queue, store
from vouchgate.ingest.claims.people import Membership, Role
from vouchgate.storage.identity import memberships, persons, tokens

pytestmark = pytest.mark.on("sqlite")

TOMORROW = datetime.now(UTC) + timedelta(days=1)
# Who may use each operation, and a body that has its shape. An operation that is not here fails the test.
EVERYBODY = set(Role) - {Role.RECORDER}  # who puts down records, and reads nothing
RULING = {"verdict": "reject", "terms": {"template": "the door is of *"}}  # what a standing ruling is about
ALLOWED: dict[tuple[str, str], tuple[set[Role], dict[str, Any] | None]] = {
    ("POST", "/v1/claims"): ({Role.AGENT}, claim("The door is open", "ai_synthesis")),
    ("POST", "/v1/claims/check"): ({Role.AGENT}, claim("The door is open", "ai_synthesis")),
    ("POST", "/v1/claims/batch"): ({Role.AGENT}, {"claims": [claim("The door is open", "ai_synthesis")]}),
    ("POST", "/v1/claims/corroborate"): ({Role.AGENT}, {"claim": "The door is open", "sources": []}),
    ("POST", "/v1/decide"): (
        {Role.AGENT},
        {"claim": "The door is open", "sources": [], "attempts": 0, "max_attempts": 1},
    ),
    ("POST", "/v1/documents/check"): ({Role.AGENT}, {"content": "The door is open."}),
    ("POST", "/v1/documents"): ({Role.AGENT}, {"content": "The door is open."}),
    ("GET", "/v1/documents"): (EVERYBODY, None),
    ("GET", "/v1/documents/{document_id}"): (EVERYBODY, None),
    ("DELETE", "/v1/documents/{document_id}"): ({Role.AGENT, Role.REVIEWER}, None),
    ("GET", "/v1/documents/{document_id}/report.html"): (EVERYBODY, None),
    ("GET", "/v1/documents/{document_id}/report.sarif"): (EVERYBODY, None),
    ("POST", "/v1/documents/{document_id}/claims"): ({Role.AGENT}, {}),
    ("POST", "/v1/records"): ({Role.RECORDER}, {"kind": "turn", "text": "I prefer tabs.", "who": "ann"}),
    ("GET", "/v1/claims/pending"): ({Role.AGENT}, None),
    ("GET", "/v1/claims/pending/{queue_id}"): ({Role.AGENT}, None),
    ("POST", "/v1/claims/pending/{queue_id}/answer"): ({Role.AGENT}, {"content": "The door is 2 m high"}),
    ("GET", "/v1/decisions/{decision_id}"): (EVERYBODY, None),
    ("GET", "/v1/receipts/{decision_id}"): (EVERYBODY, None),
    ("GET", "/v1/memories"): (EVERYBODY, None),
    ("GET", "/v1/memories/{memory_id}"): (EVERYBODY, None),
    ("GET", "/v1/memories/{memory_id}/evidence"): (EVERYBODY, None),
    ("POST", "/v1/memories/{memory_id}/confirm"): ({Role.REVIEWER}, None),
    ("DELETE", "/v1/memories/{memory_id}"): ({Role.REVIEWER}, None),
    ("POST", "/v1/erasures/{item_id}"): ({Role.REVIEWER}, {"basis": "GDPR Art. 17"}),
    ("GET", "/v1/reviews"): ({Role.REVIEWER, Role.AUDITOR}, None),
    ("GET", "/v1/reviews/{item_id}"): ({Role.REVIEWER, Role.AUDITOR}, None),
    ("POST", "/v1/reviews/{item_id}/approve"): ({Role.REVIEWER}, {"version": 1}),
    ("POST", "/v1/reviews/{item_id}/reject"): ({Role.REVIEWER}, {"version": 1, "reason": "no"}),
    ("POST", "/v1/reviews/{item_id}/undo"): ({Role.REVIEWER}, {"version": 2}),
    ("POST", "/v1/reviews/{item_id}/snooze"): ({Role.REVIEWER}, {"until": TOMORROW.isoformat()}),
    ("POST", "/v1/reviews/{item_id}/resume"): ({Role.REVIEWER}, None),
    ("POST", "/v1/reviews/{item_id}/assign"): ({Role.REVIEWER}, {"to": "me"}),
    ("POST", "/v1/reviews/{item_id}/look"): ({Role.REVIEWER}, {}),
    ("POST", "/v1/reviews/{item_id}/send-back"): (
        {Role.REVIEWER},
        {"version": 1, "question": "Who says so?"},
    ),
    ("POST", "/v1/reviews/let-go"): ({Role.REVIEWER}, {"q": "door", "reason": "no source"}),
    ("GET", "/v1/reviews/views"): ({Role.REVIEWER}, None),
    ("POST", "/v1/reviews/views"): ({Role.REVIEWER}, {"name": "doors", "q": "door"}),
    ("DELETE", "/v1/reviews/views"): ({Role.REVIEWER}, None),
    ("POST", "/v1/reviews/batch"): (
        {Role.REVIEWER},
        {"items": [{"action": "approve", "id": "x", "version": 1}]},
    ),
    ("GET", "/v1/impact"): ({Role.REVIEWER, Role.AUDITOR, Role.ADMIN}, None),
    ("GET", "/v1/modes"): ({Role.REVIEWER, Role.AUDITOR, Role.ADMIN}, None),
    ("POST", "/v1/stops"): ({Role.REVIEWER, Role.ADMIN}, {"stopped": False, "reason": "over"}),
    ("GET", "/v1/numbers"): ({Role.REVIEWER}, None),
    ("GET", "/v1/gaps"): ({Role.REVIEWER}, None),
    ("GET", "/v1/spot-checks/records"): ({Role.REVIEWER}, None),
    ("GET", "/v1/spot-checks"): ({Role.REVIEWER}, None),
    ("POST", "/v1/spot-checks/{memory_id}"): ({Role.REVIEWER}, {"verdict": "right"}),
    ("POST", "/v1/memory-audits"): (
        {Role.REVIEWER},
        {"name": "memory.jsonl", "digest": "0" * 64, "total": 1},
    ),
    ("GET", "/v1/publishers"): ({Role.REVIEWER}, None),
    ("GET", "/v1/publishers/preview"): ({Role.REVIEWER}, None),
    ("POST", "/v1/publishers"): ({Role.REVIEWER}, {"publisher": "example.com", "trust": "trusted"}),
    ("DELETE", "/v1/publishers"): ({Role.REVIEWER}, None),
    ("GET", "/v1/standing-rulings"): ({Role.REVIEWER}, None),
    ("GET", "/v1/standing-rulings/proposal/{item_id}"): ({Role.REVIEWER}, None),
    ("POST", "/v1/standing-rulings/preview"): ({Role.REVIEWER}, RULING),
    ("POST", "/v1/standing-rulings"): ({Role.REVIEWER}, RULING | {"name": "of doors"}),
    ("POST", "/v1/standing-rulings/{ruling_id}/end"): ({Role.REVIEWER}, {"then": "keep"}),
    ("GET", "/v1/deliveries"): (EVERYBODY, None),
    ("POST", "/v1/deliveries/lease"): ({Role.AGENT}, {"sink": "shelf"}),
    ("POST", "/v1/deliveries/{delivery_id}/done"): ({Role.AGENT}, {"lease": "filled in"}),
    ("POST", "/v1/deliveries/{delivery_id}/failed"): ({Role.AGENT}, {"lease": "filled in", "error": "no"}),
    ("POST", "/v1/deliveries/{delivery_id}/retry"): ({Role.REVIEWER}, None),
    ("GET", "/v1/audit/events"): ({Role.AUDITOR, Role.ADMIN}, None),
    ("GET", "/v1/audit/reviews"): ({Role.AUDITOR, Role.ADMIN}, None),
    ("GET", "/v1/members"): ({Role.REVIEWER, Role.AUDITOR, Role.ADMIN}, None),
    ("POST", "/v1/members"): ({Role.ADMIN}, {"member": "filled in", "role": "auditor"}),
    ("DELETE", "/v1/members"): ({Role.ADMIN}, None),
    ("POST", "/v1/stand-ins"): ({Role.REVIEWER, Role.ADMIN}, {"member": "filled in"}),
    ("DELETE", "/v1/stand-ins"): ({Role.REVIEWER, Role.ADMIN}, None),
    ("GET", "/v1/persons"): ({Role.ADMIN}, None),
    ("POST", "/v1/persons"): ({Role.ADMIN}, {"name": "filled in"}),
    ("GET", "/v1/whoami"): (set(Role), None),
}
# What they need to be named.
NAMING = {
    ("GET", "/v1/impact"): "source=ADR-1",
    ("GET", "/v1/publishers/preview"): "publisher=example.com",
    ("DELETE", "/v1/publishers"): "publisher=example.com",
    ("DELETE", "/v1/members"): "member={person}&role=reviewer",
    ("DELETE", "/v1/stand-ins"): "member={person}&acts_for={person}-away",
    ("DELETE", "/v1/reviews/views"): "name=doors",
}
OPEN = {("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/metrics")}
OPEN |= {("GET", "/log/checkpoint"), ("GET", "/log/tile/{level}/{path}")}


@pytest.fixture(scope="module")
def document(site: Site) -> dict[str, Any]:
    """The document as served."""
    found: dict[str, Any] = site.caller().get("/openapi.json").json()
    return found


def operations(document: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """Every operation by its method and path."""
    return {
        (method.upper(), path): operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }


def test_every_operation_is_in_the_table(document: dict[str, Any]) -> None:
    assert set(operations(document)) == set(ALLOWED) | OPEN


@pytest.mark.parametrize(("method", "path"), ALLOWED)
def test_every_role_may_do_its_own_and_no_more(  # noqa: PLR0912  (what each operation needs to be there)
    site: Site, owner: str, method: str, path: str
) -> None:
    """On a real memory, decision and item of the owner: what is not allowed would work otherwise."""
    allowed, body = ALLOWED[method, path]
    agent = site.agent(owner)
    memory_id, item_id = store(agent, "The door is oak"), queue(agent, "The door is two metres high")
    if path.endswith("/undo"):
        decided = {"version": 1, "reason": "it is of iron"}
        assert site.reviewer(owner).post(f"/v1/reviews/{item_id}/reject", json=decided).status_code == 200
    if path.endswith("/answer"):
        asked = {"version": 1, "question": "Who measured it?"}
        assert site.reviewer(owner).post(f"/v1/reviews/{item_id}/send-back", json=asked).status_code == 200
    if path.startswith("/v1/spot-checks/"):
        site.draw(owner, memory_id)
    delivery_id = ""
    if "{delivery_id}" in path:
        delivery_id, lease = leased(agent, dead=path.endswith("/retry"))
        body = None if body is None else body | {"lease": lease}
    filled = path.format(
        memory_id=memory_id,
        item_id=item_id,
        queue_id=item_id,
        decision_id=memory_id.replace("mem", "dec"),
        delivery_id=delivery_id,
        ruling_id=made_ruling(site.reviewer(owner)) if "{ruling_id}" in path else "",
        document_id=checked_document(agent) if "{document_id}" in path else "",
    )
    person = f"p{uuid.uuid4().hex[:12]}"
    if path == "/v1/persons" and body is not None:
        body = {"name": person}
    elif path == "/v1/members":
        persons.create(site.store, person, actor="test", now=datetime.now(UTC))
        body = None if body is None else body | {"member": person}
    if (method, path) in NAMING:
        filled += "?" + NAMING[method, path].format(person=person)
    before = site.events(owner)
    callers: dict[Role, httpx.Client] = {
        Role.AGENT: agent,
        Role.RECORDER: site.caller(site.token(Role.RECORDER, owner)[1]),
        Role.REVIEWER: site.reviewer(owner),
        Role.AUDITOR: site.auditor(owner),
        Role.ADMIN: site.caller(site.token(Role.ADMIN, owner)[1]),
    }
    if path == "/v1/stand-ins":
        persons.create(site.store, person, actor="test", now=datetime.now(UTC))
        callers[Role.REVIEWER] = away(site, owner, f"{person}-away")
        until = (datetime.now(UTC) + timedelta(days=9)).isoformat()
        body = {"member": person, "acts_for": f"{person}-away", "until": until}
        before = site.events(owner)
    for role in Role:
        if role not in allowed:
            is_problem(callers[role].request(method, filled, json=body), 403, "role_not_allowed")
    is_problem(site.caller().request(method, filled, json=body), 401, "token_needed")
    assert site.events(owner) == before
    for role in Role:
        if role in allowed:
            if (method, path) == ("DELETE", "/v1/documents/{document_id}"):  # each has one to delete
                filled = f"/v1/documents/{checked_document(agent)}"
            answer = callers[role].request(method, filled, json=body)
            assert answer.status_code in (200, 201, 202), (role, answer.text)


def away(site: Site, owner: str, name: str) -> httpx.Client:
    """A reviewer of the owner by name."""
    now = datetime.now(UTC)
    person = persons.create(site.store, name, actor="test", now=now).id
    wanted = Membership(owner_id=owner, member_id=person, role=Role.REVIEWER, since=now)
    assert memberships.grant(site.store, wanted, actor="test")
    _, secret = tokens.create(site.store, role=Role.REVIEWER, name="t", person=person, actor="test", now=now)
    return site.caller(secret)


def made_ruling(reviewer: httpx.Client) -> str:
    """A standing ruling in force."""
    made: str = reviewer.post("/v1/standing-rulings", json=RULING | {"name": "of doors"}).json()["id"]
    return made


def checked_document(agent: httpx.Client) -> str:
    """A document whose report is there."""
    document_id: str = agent.post("/v1/documents", json={"content": "The door is open."}).json()["id"]
    end = time.monotonic() + 60
    while agent.get(f"/v1/documents/{document_id}").json()["state"] != "checked":
        assert time.monotonic() < end
        time.sleep(0.05)
    return document_id


def leased(agent: httpx.Client, *, dead: bool) -> tuple[str, str]:
    """A delivery and its lease; a dead letter's is over."""
    store(agent, "The door has a brass knob", delivery={"sink": "shelf", "place": "door"})
    (one,) = agent.post("/v1/deliveries/lease", json={"sink": "shelf"}).json()["deliveries"]
    if dead:
        said = {"lease": one["lease"], "error": "no door", "final": True}
        assert agent.post(f"/v1/deliveries/{one['id']}/failed", json=said).status_code == 200
    return one["id"], one["lease"]


def test_errors_are_documented_as_problems_and_open_calls_as_open(document: dict[str, Any]) -> None:
    problem = {"schema": {"$ref": "#/components/schemas/Problem"}}
    for (method, path), operation in operations(document).items():
        guarded = (method, path) in ALLOWED
        assert bool(operation.get("security")) is guarded
        answers = operation["responses"]
        assert {"401", "403", "422", "500", "503"} <= set(answers) or not guarded
        assert ({"400", "413", "415"} <= set(answers)) is ("requestBody" in operation)
        assert ("404" in answers) is ("{" in path)
        for status, answer in answers.items():
            assert answer["description"]
            if int(status) >= 400:
                assert answer["content"]["application/problem+json"] == problem, (method, path, status)
        assert operation["description"]
    both = operations(document)["POST", "/v1/claims"]["responses"]
    for status in ("409", "422"):
        assert set(both[status]["content"]) == {"application/json", "application/problem+json"}
    assert "HTTPValidationError" not in document["components"]["schemas"]


# What each token is tried on: the operations its role may use, and those anybody may. What it may not use is
# held to 403 above. Memories are read with the token that may also retract them.
TRIED = {
    Role.AGENT: ("claims", "deliveries", "documents"),
    Role.REVIEWER: ("reviews", "memories"),
    Role.AUDITOR: ("audit", "operations"),
}
# 4 random requests for each operation, beside the boundary values, which are always tried. A schema cannot say
# all that makes a claim (sizes in bytes, printable owners, known citations), and the 422 of a blocked claim is a
# verdict: so data that fits the schema may be refused, and that one check is left out.
OPTIONS = {
    "--phases": "examples,coverage,fuzzing",
    "--checks": "all",
    "--exclude-checks": "positive_data_acceptance",
    "--max-examples": "4",
    "--suppress-health-check": "all",
    "--request-timeout": "20",
    "--warnings": "off",
}
# Their bodies are those of the calls that do it: boundary values are tried on these.
SAME_BODY = {
    "POST /v1/claims/check": "POST /v1/claims",
    "POST /v1/standing-rulings/preview": "POST /v1/standing-rulings",
}
CONFIG = "".join(
    f'[[operations]]\ninclude-name = "{name}"\nphases.coverage.enabled = false\n' for name in SAME_BODY
)


def test_calls_that_are_tried_for_others_ask_for_all_that_these_do(document: dict[str, Any]) -> None:
    def body(name: str) -> dict[str, Any]:
        method, path = name.split()
        schema = operations(document)[method, path]["requestBody"]["content"]["application/json"]["schema"]
        found: dict[str, Any] = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        return found

    for name, tried in SAME_BODY.items():
        assert body(name)["properties"].items() <= body(tried)["properties"].items()
        assert body(name)["additionalProperties"] is body(tried)["additionalProperties"] is False
        assert set(body(name)["required"]) <= set(body(tried)["required"])


# One interpreter for all roles: loading it, and what it makes of all characters, is the same for each. It keeps most of
# what it makes: looking through it for garbage, again and again, is a fifth of its time.
RUN = """
import gc, json, sys
gc.disable()
from schemathesis.cli import schemathesis
for arguments in json.loads(sys.argv[1]):
    try:
        schemathesis(arguments)
    except SystemExit as ended:
        print("ended with", ended.code, flush=True)
"""


@pytest.fixture(scope="module")
def reports(site: Site, tmp_path_factory: pytest.TempPathFactory) -> dict[Role, str]:
    """What is said of each role's operations, the status last."""
    runs = []
    for role, tags in TRIED.items():
        owner = site.owner(role.value)
        agent = site.agent(owner)
        for number in range(3):
            store(agent, f"Room {number} has {number + 4} windows")
            queue(agent, f"Room {number} has {number + 5} lamps")
        caller: httpx.Client = getattr(site, role.value)(owner)
        run = ["run", f"{site.running.url}/openapi.json", "--generation-deterministic", "--no-color"]
        run += ["--header", f"Authorization: {caller.headers['Authorization']}"]
        run += [f"--include-tag={tag}" for tag in tags]
        runs.append([*run, *(f"{name}={value}" for name, value in OPTIONS.items())])
        if role == Role.AGENT:
            before = len(site.events(owner))
            sent = owner
    folder = tmp_path_factory.mktemp("schemathesis")
    Path(folder, "schemathesis.toml").write_text(CONFIG)
    done = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps(runs)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
        timeout=500,
        check=False,
    )
    assert len(site.events(sent)) > before  # claims of the right shape really came through
    found = re.findall(r".*?^ended with .*?$", done.stdout, re.DOTALL | re.MULTILINE)
    assert len(found) == len(TRIED), done.stdout
    return dict(zip(TRIED, found, strict=True))


@pytest.mark.on("postgresql")  # the one that takes fewer texts and smaller numbers
@pytest.mark.parametrize("role", TRIED)
def test_schemathesis_finds_no_answer_that_is_not_documented(reports: dict[Role, str], role: Role) -> None:
    report = reports[role]
    assert report.endswith("ended with 0"), report
    assert re.search(r"[1-9]\d* passed", report), report
