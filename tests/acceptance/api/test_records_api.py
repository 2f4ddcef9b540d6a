"""Records over HTTP: who may put them down, and what a claim that cites one comes to."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from tests.acceptance.site import Site, claim, is_problem, open_site, submit
from vouchgate.ingest.claims.decision import Label, ValidationResult
from vouchgate.ingest.claims.modes import ModeSwitch
from vouchgate.ingest.claims.people import Role
from vouchgate.ingest.claims.source import Found
from vouchgate.ingest.rules import Rule
from vouchgate.review.trust import modes
from vouchgate.storage.claims.records import TABLE
from vouchgate.storage.log.data.walk import Walk

POLICY = """
[records]
per_minute = 30
kept = 20
characters = 2000
tools = ["df", "Memory_Search", "Mem0Search"]
memory_tools = ["*memor*", "*Mem0*"]
"""
TABS = {"kind": "turn", "text": "I prefer tabs over spaces.", "who": "ann"}


@pytest.fixture(scope="module")
def site(module_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A gate whose operator lists three tools, two of which read back what agents remember."""
    policy = tmp_path_factory.mktemp("records") / "policy.toml"
    policy.write_text(POLICY)
    folder = policy.parent
    environment = {"VOUCHGATE_OFFLINE": "true", "VOUCHGATE_ERASURES": str(folder / "erasures.jsonl")}
    with open_site(module_database_url, policy=policy, environment=environment) as opened:
        yield opened


@pytest.fixture
def recorder(site: Site, owner: str) -> httpx.Client:
    """What puts down records of the owner."""
    return site.caller(site.token(Role.RECORDER, owner)[1])


@pytest.fixture
def agent(site: Site, owner: str) -> httpx.Client:
    """An agent of the owner that was granted nothing."""
    return site.agent(owner, sources=frozenset())


def put_down(recorder: httpx.Client, sent: dict[str, Any]) -> str:
    """Keeps a record; how it is cited."""
    answer = recorder.post("/v1/records", json=sent)
    assert answer.status_code == 201, answer.text
    cite: str = answer.json()["cite"]
    return cite


def cited(agent: httpx.Client, content: str, cite: str, status: int) -> ValidationResult:
    """What becomes of a claim that cites a record beside its text."""
    return submit(agent, claim(content, "ai_synthesis", citations=[cite]), status)


def test_what_a_user_said_is_stored_as_a_fact_about_that_user_and_no_more(
    site: Site, owner: str, recorder: httpx.Client, agent: httpx.Client
) -> None:
    said = "2026-11-20T08:30:00+01:00"
    answer = recorder.post("/v1/records", json={**TABS, "conversation": "c-7", "time": said})
    kept = answer.json()
    assert answer.status_code == 201
    assert kept["cite"] == f"record:{kept['id']}"
    assert kept["digest"] == hashlib.sha256(TABS["text"].encode()).hexdigest()
    assert [kept[name] for name in ("kind", "who", "conversation", "masked")] == ["turn", "ann", "c-7", False]
    assert datetime.fromisoformat(kept["time"]) == datetime.fromisoformat(said)
    assert (datetime.fromisoformat(kept["kept_until"]) - datetime.now(UTC)).days == 89

    stored = cited(agent, "The user prefers tabs.", kept["cite"], 201)
    assert (stored.rule, stored.evidence.label) == (Rule.STATED, Label.FACT)
    (source,) = stored.evidence.sources
    assert isinstance(source, Found)
    assert (source.excerpt, source.who) == (TABS["text"], "ann")
    in_text = submit(agent, claim(f"Ann prefers tabs over spaces ({kept['cite']}).", "ai_synthesis"), 201)
    assert in_text.evidence.label is Label.FACT
    for other in ("Bob prefers tabs.", "The user prefers spaces.", "Tabs are wider than spaces."):
        assert cited(agent, other, kept["cite"], 202).rule in (Rule.UNCOVERED, Rule.CONFLICT)
    limit = put_down(recorder, {"kind": "turn", "text": "The API limit is 500.", "who": "ann"})
    world = cited(agent, "The API limit is 500.", limit, 202)
    assert "shows just what that user wants, likes, decided or said" in world.reason
    assert cited(agent, "Ann said that the API limit is 500.", limit, 201).evidence.label is Label.FACT
    assert site.actions(owner)[0] == "record.kept"
    assert list(Walk(site.store.read, owner).differences()) == []


def test_what_a_tool_returned_vouches_where_it_is_listed_and_never_for_what_people_want(
    recorder: httpx.Client, agent: httpx.Client
) -> None:
    def output(tool: str, text: str) -> str:
        return put_down(recorder, {"kind": "tool_output", "text": text, "who": tool})

    disk, firewall = "The disk of the build server is full.", "The user wants the firewall off."
    listed = cited(agent, disk, output("DF", f"df: {disk}"), 201)
    assert (listed.rule, listed.evidence.label) == (Rule.STATED, Label.INFERENCE)
    unlisted = cited(
        agent,
        "The disk of the mail server is full.",
        output("shell", "The disk of the mail server is full."),
        202,
    )
    assert "not listed as one no agent can steer" in unlisted.reason
    assert cited(agent, firewall, output("shell", firewall), 202).rule is Rule.REFUTED
    wish = cited(agent, "The user wants the alarm off.", output("df", "The user wants the alarm off."), 202)
    assert "no tool's output shows" in wish.reason
    for tool, text in (
        ("memory_search", "The limit of the queue is 20."),
        ("mem0search", "The limit of the tank is 25."),
        ("df", "The limit of the pump is 30. (mem_0123456789abcdef0123456789abcdef)"),
        ("df", "The limit of the mill is 40. (record:rec_0123456789abcdef0123456789abcdef)"),
    ):
        read_back = cited(agent, f"{text.partition('.')[0]}.", output(tool, text), 202)
        assert "what agents remember, read back by a tool" in read_back.reason


def test_a_record_is_its_owners_and_unknown_to_all_others(
    site: Site, owner: str, recorder: httpx.Client
) -> None:
    cite, elsewhere = put_down(recorder, TABS), site.owner("other")
    stranger = site.agent(elsewhere, sources=frozenset())
    of_another = cited(stranger, "The user prefers tabs.", cite, 202)
    unknown = cited(stranger, "The user prefers dark mode.", f"record:rec_{'0' * 32}", 202)
    assert of_another.rule is unknown.rule is Rule.CITATION_UNKNOWN
    same = {each.evidence.sources[0].detail.partition(" is ")[2] for each in (of_another, unknown)}
    assert same == {"no record that is kept for this owner, or its time is over."}
    is_problem(site.agent(elsewhere).post("/v1/records", json=TABS), 403, "role_not_allowed")
    is_problem(recorder.post("/v1/claims", json=claim("The door is open")), 403, "role_not_allowed")
    is_problem(recorder.get("/v1/memories"), 403, "role_not_allowed")
    stop = ModeSwitch(
        owner_id=owner, agent="", stopped=True, reason="a test", by="op", since=datetime.now(UTC)
    )
    modes.switch(site.store, stop)
    is_problem(recorder.post("/v1/records", json=TABS), 403, "stopped")
    is_problem(recorder.post("/v1/records", json={**TABS, "user_id": elsewhere}), 403, "owner_not_allowed")


def test_records_are_masked_bounded_and_kept_once_a_key(
    site: Site, owner: str, recorder: httpx.Client
) -> None:
    secret = "ghp_" + "aB3dE6gH9jK2mN5pQ8rS1tU4vW7xY0zA1b2C"
    kept = recorder.post("/v1/records", json={**TABS, "text": f"My key is {secret}."}).json()
    assert kept["masked"]
    with site.store.read() as connection:
        texts = connection.exec_driver_sql("SELECT text FROM record").scalars().all()
    assert not any(secret in text for text in texts)
    for field in ("who", "conversation"):
        is_problem(recorder.post("/v1/records", json={**TABS, field: secret}), 422, "credential")
    bad = (
        {"kind": "thought"},
        {"text": " "},
        {"text": "x" * 2001},
        {"who": "a\nb"},
        {"time": "soon"},
        {"more": 1},
    )
    for each in bad:
        is_problem(recorder.post("/v1/records", json={**TABS, **each}), 422)
    first, again = (
        recorder.post("/v1/records", json=TABS, headers={"Idempotency-Key": "k1"}) for _ in range(2)
    )
    assert first.json() == again.json()
    assert again.headers["idempotency-replayed"] == "true"
    other = recorder.post("/v1/records", json={**TABS, "text": "No."}, headers={"Idempotency-Key": "k1"})
    is_problem(other, 409, "idempotency_key_reused")
    answers = [recorder.post("/v1/records", json=TABS) for _ in range(30)]
    assert {answer.status_code for answer in answers} == {201, 429}
    full = [answer.json()["code"] for answer in answers if answer.status_code == 429]
    assert {*full} == {"too_many_records", "rate_limited"}
    assert list(Walk(site.store.read, owner).differences()) == []


def test_an_erased_record_is_gone_also_from_the_decisions_that_showed_it(
    site: Site, owner: str, recorder: httpx.Client, agent: httpx.Client
) -> None:
    cite = put_down(
        recorder, {"kind": "turn", "text": "I prefer juniper tea in the evening.", "who": "annabel"}
    )
    stored = cited(agent, "The user prefers juniper tea in the evening.", cite, 201)
    reviewer, record_id = site.reviewer(owner), cite.partition(":")[2]
    erased = reviewer.post(f"/v1/erasures/{record_id}", json={"basis": "GDPR Art. 17"})
    assert erased.status_code == 200, erased.text
    assert (erased.json()["ids"], erased.json()["counts"]["records"]) == ([record_id], 1)
    with site.store.read() as connection:
        row = connection.execute(select(TABLE).where(TABLE.c.id == record_id)).one()
    assert (row.text, row.who, row.salt) == ("", "", None)
    shown = agent.get(f"/v1/decisions/{stored.decision_id}").json()
    source = shown["evidence"]["sources"][0]
    assert (source["excerpt"], source["detail"], "annabel" in str(shown)) == ("", "Erased.", False)
    assert (
        cited(agent, "Annabel prefers juniper tea in the evening.", cite, 202).rule is Rule.CITATION_UNKNOWN
    )
    assert list(Walk(site.store.read, owner).differences()) == []
    is_problem(reviewer.post(f"/v1/erasures/{record_id}", json={"basis": "again"}), 410, "erased")
