"""A credential in a claim blocks it, and is found afterwards nowhere: not in the database, not in its files, not in an
answer or in what the server says, and no host that the claim cites is asked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import MetaData, make_url, select

from tests.acceptance.site import Site, claim, open_site, submit
from tests.unit.secrets.credentials import made
from tests.web import Answer, WebServer, web_server
from vouchgate.ingest.checks.hedge import HedgeDetector
from vouchgate.ingest.claims.decision import ValidationResult
from vouchgate.ingest.claims.source import Unreachable
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.pipeline import replay
from vouchgate.wire import ClaimIn

TOKEN = "ghp_" + made(36)
PASSWORD = "qu1etHarbour"  # short enough to be guessed from a digest
PLACES: list[dict[str, Any]] = [
    {"content": f"The build uses {TOKEN} since May, see {{url}}"},
    {"content": f"The staging password is {PASSWORD}, see {{url}}"},
    {"content": "The build logs in by itself, see {url}", "metadata": {"login": {"password": PASSWORD}}},
    {"content": "The build logs in by token, see {url}", "metadata": {"notes": [{TOKEN: True}]}},
    {"content": "The build logs in as said here: {url}", "citations": [f"{{url}}?token={TOKEN}", "{url}/b"]},
    {
        "content": "The build logs in with a key that is kept elsewhere",
        "delivery": {"sink": "kg", "place": f"logins/{TOKEN}", "data": {"api_key": TOKEN}},
    },
    # What a store keeps as {"password": …} is the text alone, and the name beside it.
    {"content": PASSWORD, "delivery": {"sink": "kg", "place": "logins/1", "data": {"path": ["password"]}}},
    {"content": PASSWORD, "delivery": {"sink": "kg", "place": '["logins", "password"]'}},
    {
        "content": PASSWORD,
        "metadata": {"token": TOKEN},
        "delivery": {"sink": "kg", "place": "logins/password"},
    },
]


@pytest.fixture(scope="module")
def web() -> Iterator[WebServer]:
    with web_server(
        {"/page": Answer("<html><body><p>The build uses it since May.</p></body></html>")}
    ) as server:
        yield server


@pytest.fixture(scope="module")
def gate(module_database_url: str, web: WebServer) -> Iterator[Site]:
    """A gate that may ask the hosts of this machine."""
    with open_site(module_database_url, environment={"VOUCHGATE_CITATION_NETWORKS": web.place}) as opened:
        yield opened


def bodies(url: str) -> list[dict[str, Any]]:
    """The claims, citing the page."""
    return [claim(**json.loads(json.dumps(place).replace("{url}", url))) for place in PLACES]


def everything_kept(site: Site) -> str:
    """All that any table holds, as text, and the files of a database that is one."""
    tables = MetaData()
    found = []
    with site.store.read() as connection:
        tables.reflect(connection)
        for table in tables.sorted_tables:
            found += [str(tuple(row)) for row in connection.execute(select(table))]
    path = make_url(site.url).database
    if site.store.dialect == "sqlite" and path is not None:
        files = Path(path).parent.glob(f"{Path(path).name}*")
        found += [file.read_bytes().decode("latin-1") for file in files]
    return "\n".join(found)


def assert_nowhere(text: str) -> None:
    for secret in (TOKEN, PASSWORD):
        assert secret not in text


def test_it_is_blocked_wherever_it_stands_and_kept_nowhere(gate: Site, web: WebServer) -> None:
    owner = gate.owner()
    agent, url = gate.agent(owner), f"{web.url}/page"
    sent = bodies(url)
    answers = [submit(agent, body, 422, key=f"key-{n}") for n, body in enumerate(sent)]
    batch = agent.post("/v1/claims/batch", json={"claims": sent}, headers={"Idempotency-Key": "batch"})
    answers += [ValidationResult.model_validate(each) for each in batch.json()["results"]]
    answers += [
        ValidationResult.model_validate(agent.post("/v1/claims/check", json=body).json()) for body in sent
    ]
    for answer in answers:
        assert (answer.rule, answer.tier.value, answer.reason) == (
            "credential",
            "tier_3",
            "Contains a credential",
        )
        assert answer.checks_failed[0].startswith("credential: ")
        assert (answer.memory_id, answer.queue_id) == (None, None)
        assert all(isinstance(r, Unreachable) and r.code == "not_asked" for r in answer.evidence.sources)
        assert_nowhere(answer.model_dump_json())
    assert any(answer.evidence.sources for answer in answers)
    assert web.asked == []
    # An Idempotency-Key still answers the same again, and its digest is not one of what was sent.
    assert submit(agent, sent[1], 422, key="key-1") == answers[1]
    kept = everything_kept(gate)
    assert owner in kept
    assert_nowhere(kept)
    assert_nowhere("".join(gate.running.output))
    for body in sent:
        assert hashlib.sha256(ClaimIn.model_validate(body).model_dump_json().encode()).hexdigest() not in kept
    assert set(gate.actions(owner)) <= {"token.created", "claim.blocked"}


@pytest.mark.on("sqlite")
def test_the_decision_can_be_made_again_from_what_is_kept(gate: Site, web: WebServer) -> None:
    agent = gate.agent(gate.owner())
    policy = load_policy()
    for body in bodies(f"{web.url}/page"):
        answer = submit(agent, body, 422)
        kept = agent.get(f"/v1/decisions/{answer.decision_id}")
        stored = ValidationResult.model_validate_json(kept.content)
        assert replay(stored, policy, HedgeDetector(policy.lexicon)) == ()
        (first, *_) = stored.evidence.claim.secrets
        assert first.where.split(".")[0].split("[")[0] in ("content", "metadata", "citations", "delivery")


@pytest.mark.on("sqlite")
def test_an_owner_cannot_write_one_into_a_memory_either(gate: Site) -> None:
    owner = gate.owner()
    agent, reviewer = gate.agent(owner), gate.reviewer(owner)
    waits = submit(agent, claim("The depot opens at seven", "ai_synthesis"), 202)
    answer = reviewer.post(
        f"/v1/reviews/{waits.queue_id}/approve",
        json={"version": 1, "content": f"The depot opens at seven with the password {PASSWORD}!9"},
    )
    assert (answer.status_code, answer.json()["code"]) == (409, "edit_secret")
    assert "password" in answer.json()["detail"]
    assert_nowhere(answer.text)
    assert_nowhere(everything_kept(gate))
    assert_nowhere("".join(gate.running.output))
    assert reviewer.get(f"/v1/reviews/{waits.queue_id}").json()["status"] == "pending"


@pytest.mark.on("sqlite")
def test_it_is_no_name_by_which_something_is_found(gate: Site) -> None:
    anybody, body = gate.agent(), claim("The depot opens at eight")
    for more, key in (({"user_id": TOKEN}, "k"), ({"user_id": gate.owner()}, TOKEN)):
        named = {"Idempotency-Key": key}
        for path, sent in (("claims", body | more), ("claims/batch", {"claims": [body | more]})):
            answer = anybody.post(f"/v1/{path}", json=sent, headers=named)
            assert "holds a credential" in answer.text, answer.text
            assert answer.status_code in (200, 422)
            assert_nowhere(answer.text)
    assert_nowhere(everything_kept(gate))
    assert_nowhere("".join(gate.running.output))


def test_the_error_of_a_store_is_kept_without_its_password(gate: Site) -> None:
    agent = gate.agent(gate.owner())
    submit(agent, claim("The depot opens at nine", delivery={"sink": "kg", "place": "hours/1"}), 201)
    (taken,) = agent.post("/v1/deliveries/lease", json={"sink": "kg"}).json()["deliveries"]
    error = f"OperationalError: postgresql://kg:{PASSWORD}@db.example/kg is not there, password={PASSWORD}"
    told = agent.post(f"/v1/deliveries/{taken['id']}/failed", json={"lease": taken["lease"], "error": error})
    assert told.status_code == 200, told.text
    assert "is not there" in told.json()["last_error"]
    assert_nowhere(told.text)
    assert_nowhere(everything_kept(gate))


def test_what_holds_one_can_be_asked_to_go(gate: Site) -> None:
    owner = gate.owner()
    agent, reviewer = gate.agent(owner), gate.reviewer(owner)
    removal = {"sink": "kg", "place": "logins/1", "op": "remove"}
    waits = submit(agent, claim(f"The build uses {TOKEN}", "ai_synthesis", delivery=removal), 202)
    assert waits.rule == "removal"
    assert waits.evidence.claim.content == f"The build uses {'*' * len(TOKEN)}"
    assert [f.verdict.value for f in waits.findings if f.code == "credential"] == ["DOUBT"]
    assert reviewer.get(f"/v1/reviews/{waits.queue_id}").status_code == 200
    assert_nowhere(everything_kept(gate))


def test_a_card_number_is_masked_and_what_is_left_goes_on(gate: Site) -> None:
    owner = gate.owner()
    agent, reviewer = gate.agent(owner), gate.reviewer(owner)
    written = "4532 0151 1283 0366"
    said = "Ada pays for the depot by card {}."
    body = claim(
        said.format(written),
        metadata={"card": int(written.replace(" ", "")), "ssn": "219456789"},
        citations=[f"https://pay.example/{written.replace(' ', '-')}"],
        delivery={"sink": "cards", "place": "cards/ada", "data": {"pan": written}},
    )
    for _ in range(2):  # asked again under its key, it is the same
        stored = submit(agent, body, 201, key="masked")
    masked = said.format("*" * len(written))
    assert stored.evidence.claim.content == masked
    assert [match.where for match in stored.evidence.claim.personal] == [
        *("content", "metadata.card", "metadata.ssn", "citations[0]", "delivery.data.pan"),
    ]
    assert any(each.startswith("personal_data_masked") for each in stored.checks_passed)
    assert replay(stored, load_policy(), HedgeDetector(load_policy().lexicon)) == ()
    assert agent.get(f"/v1/memories/{stored.memory_id}").json()["content"] == masked
    (taken,) = agent.post("/v1/deliveries/lease", json={"sink": "cards"}).json()["deliveries"]
    assert (taken["content"], taken["data"]) == (masked, {"pan": "*" * len(written)})
    # Said with another number it is the same, as far as is kept.
    again = submit(agent, claim(said.format("5105 1051 0510 5100")), 409)
    assert (again.rule, again.evidence.claim.content) == ("duplicate", masked)
    waits = submit(agent, claim("The depot opens at ten", "ai_synthesis"), 202)
    edited = {"version": 1, "content": f"The depot opens at ten for card {written}"}
    answer = reviewer.post(f"/v1/reviews/{waits.queue_id}/approve", json=edited)
    assert answer.status_code == 200, answer.text
    everything = everything_kept(gate) + "".join(gate.running.output) + answer.text
    for number in (written, written.replace(" ", ""), written.replace(" ", "-"), "219456789", "5105 1051"):
        assert number not in everything
    waiting = submit(agent, claim("The depot is paid to DE89 3704 0044 0532 0130 00"), 202)
    assert (waiting.rule, waiting.reason) == ("personal_data", "Holds personal data")
