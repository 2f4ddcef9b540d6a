"""The served gate checks again by itself: what waited for an unreachable source is promoted, what lost its source
is marked, and an owner who approves is told what changed meanwhile."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import update

from tests.acceptance.cli_program import cli
from tests.acceptance.site import Site, claim, is_problem, submit
from tests.repos import TestRepository
from tests.running.patience import until
from tests.running.service import THRESHOLD, serve
from tests.web import Answer, Asked, web_server
from vouchgate.ingest.claims.decision import Evidence
from vouchgate.ingest.claims.memory import Memory
from vouchgate.ingest.claims.people import Role
from vouchgate.storage.log import chain as log
from vouchgate.storage.queue.rechecks import TABLE
from vouchgate.storage.store import Store

HOUSE = (
    "The archive is open on Mondays",
    "Parcels leave from the north gate",
    "Visitors sign a book",
    "The pump runs at night",
    "Bicycles stand behind the barn",
    "Lamps are switched off at ten",
    "Bells ring twice before a deployment",
    "Milk is bought in Graz",
    "Letters are opened by Ida",
)
ADR = (
    "# ADR-0001: The gateway's port\n\nStatus: {}\n\nThe gateway listens on port 8080, and nothing else does.\n\n"
    + "".join(f"- {sentence}.\n" for sentence in HOUSE)
)
SAYS = "Per ADR-0001 the gateway listens on port 8080."
POLICY = """
deadline_seconds = {deadline}
official_domains = ["127.0.0.1"]
[recheck]
first_seconds = {first}
growth = 1
attempts = 20
memory_days = {days}
"""


@dataclass
class Grounding:
    """A repository that can be taken out of the service's reach."""

    repository: TestRepository

    def adr(self, status: str) -> None:
        """Commits ADR-0001 in this status."""
        self.repository.commit(status, {"docs/adrs/0001-port.md": ADR.format(status)})

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Out of reach for the length of the block."""
        path, away = self.repository.path, self.repository.path.with_name("away")
        path.rename(away)
        try:
            yield
        finally:
            away.rename(path)


@pytest.fixture
def grounding(tmp_path: Path) -> Grounding:
    """With ADR-0001 in force."""
    made = Grounding(TestRepository(tmp_path / "grounding"))
    made.adr("Accepted")
    return made


@contextmanager
def served(
    url: str,
    grounding: Grounding,
    *,
    first: float = 0.5,
    days: float = 7,
    deadline: float = 5,
    **more: Any,
) -> Iterator[Site]:
    """The gate with these waits; at the end the log is whole and no error was logged."""
    policy = grounding.repository.path.with_name("policy.toml")
    policy.write_text(POLICY.format(first=first, days=days, deadline=deadline))
    store = Store.open(url, threshold=THRESHOLD)
    try:
        with serve(url, repos=[grounding.repository.path], policy=policy, **more) as running:
            site = Site(url, running, store)
            try:
                yield site
            finally:
                site.transport.close()
            with store.read() as connection:
                assert log.verify(connection) == []
        assert "Traceback" not in "".join(running.output), "".join(running.output)
    finally:
        store.close()


def vouchgate(*arguments: str) -> str:
    """The output of a command that must succeed."""
    done = cli(*arguments, cwd=Path.cwd())
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.decode()


def wait_for_promotion(reviewer: httpx.Client, item_id: str) -> dict[str, Any]:
    """The item, once it is promoted."""

    def look() -> dict[str, Any] | None:
        item: dict[str, Any] = reviewer.get(f"/v1/reviews/{item_id}").json()
        return item if item["status"] == "promoted" else None

    found: dict[str, Any] = until(look)
    return found


def test_a_killed_service_goes_on_with_what_was_due_and_promotes_what_its_source_is_back_for(
    database_url: str, grounding: Grounding
) -> None:
    database = ("--database-url", database_url)
    with served(database_url, grounding, first=10) as site, grounding.hidden():
        owner = site.owner()
        agent, (_, token) = site.agent(owner), site.token(Role.REVIEWER, owner)
        sent = submit(agent, claim(SAYS, "ai_synthesis"), 202)
        assert sent.rule == "citation_unknown"
        rows = [claim(f"{sentence} (ADR-0001).", "ai_synthesis") for sentence in HOUSE]
        results = agent.post("/v1/claims/batch", json={"claims": rows}).json()["results"]
        items = [str(sent.queue_id), *(row["queue_id"] for row in results)]
        assert {row["rule"] for row in results} == {"citation_unknown"}
        shown = site.caller(token).get(f"/v1/reviews/{items[0]}").json()
        assert datetime.fromisoformat(shown["next_check"]) > sent.evidence.capture_time
        said = vouchgate("review", "show", items[0], "--token", token, *database)
        assert "checked   again by itself at " in said
        site.running.process.send_signal(signal.SIGKILL)
        site.running.process.wait(120)
        now = datetime.now(UTC)  # as if the time had come
        site.store.writer.run((), lambda c: c.execute(update(TABLE).values(due_at=now))).result()
    with served(database_url, grounding, first=10, workers=2) as site:
        agent, reviewer = site.agent(owner), site.caller(token)
        item, *_ = [wait_for_promotion(reviewer, item_id) for item_id in items]
        actions = site.actions(owner)
        assert actions.count("claim.promoted") == len(items) == actions.count("claim.queued")
        assert len(actions) == 2 * len(items)
        assert "next_check" not in item
        memory = Memory.model_validate(agent.get(f"/v1/memories/{item['memory_id']}").json())
        assert (memory.content, memory.approved_by, memory.label) == (SAYS, None, "FACT")
        evidence = agent.get(f"/v1/memories/{memory.id}/evidence").json()
        assert Evidence.model_validate(evidence).sources[0].kind == "found"
        body = is_problem(reviewer.post(f"/v1/reviews/{items[0]}/approve", json={"version": 1}), 409)
        assert (body["code"], body["current"]["status"]) == ("already_decided", "promoted")
        promoted = reviewer.get("/v1/reviews", params={"status": "promoted"}).json()["items"]
        assert {one["id"] for one in promoted} == {*items}
        listed = vouchgate("review", "list", "--status", "promoted", "--token", token, *database)
        assert items[0] in listed
        vouchgate("replay", "--all", *database)
        vouchgate("log", "verify", *database)


@pytest.mark.on("sqlite")
def test_a_page_that_did_not_answer_is_asked_again(database_url: str, grounding: Grounding) -> None:
    says = "<html><head><title>Pump</title></head><body><article><h1>The pump</h1>{}</article></body></html>"
    text = (
        "<p>The blue pump in the cellar runs at 1450 turns a minute. It was built for that in Graz.</p>" * 3
    )
    back = threading.Event()

    def late(_asked: Asked) -> Answer:
        back.wait(60)
        return Answer("busy", 503)

    with (
        web_server({"/pump": late}) as web,
        served(
            *(database_url, grounding),
            deadline=1,
            environment={"VOUCHGATE_CITATION_NETWORKS": web.place},
        ) as site,
    ):
        owner = site.owner()
        content = f"The blue pump in the cellar runs at 1450 turns a minute, see {web.url}/pump"
        sent = submit(site.agent(owner), claim(content, "ai_synthesis"), 202)
        assert (sent.rule, sent.reason) == ("citation_unknown", "Citation could not be checked yet")
        decided = site.auditor(owner).get(f"/v1/decisions/{sent.decision_id}").json()
        (source,) = decided["evidence"]["sources"]
        assert (source["kind"], source["code"]) == ("unreachable", "timeout")
        web.routes["/pump"] = Answer(says.format(text))
        back.set()
        reviewer = site.reviewer(owner)
        item = wait_for_promotion(reviewer, str(sent.queue_id))
        memory = reviewer.get(f"/v1/memories/{item['memory_id']}").json()
        assert memory["source_id"] == f"{web.url}/pump"


@pytest.mark.on("postgresql")
def test_a_memory_whose_source_went_away_is_marked_and_stays(database_url: str, grounding: Grounding) -> None:
    with served(database_url, grounding, days=0.5 / 86_400) as site:
        owner = site.owner()
        agent = site.agent(owner)
        stored = submit(agent, claim(SAYS, "ai_synthesis"), 201)
        other = submit(agent, claim("The lamp in the hall is green."), 201)
        path = f"/v1/memories/{stored.memory_id}"
        before = agent.get(f"{path}/evidence").json()
        assert (agent.get(path).json()["stale_since"], "stale_since" in before) == (None, False)
        grounding.adr("Rejected")
        marked = until(lambda: (m := agent.get(path).json())["stale_since"] and m)
        assert marked["status"] == "active"
        assert "Rejected" in marked["stale_reason"]
        evidence = agent.get(f"{path}/evidence").json()
        noted = {name: marked[name] for name in ("stale_since", "stale_reason")}
        assert evidence == before | noted
        for asked, expected in (("true", [stored.memory_id]), ("false", [other.memory_id])):
            page = agent.get("/v1/memories", params={"stale": asked}).json()["items"]
            assert [one["id"] for one in page] == expected
        is_problem(agent.get("/v1/memories", params={"stale": "perhaps"}), 422)
        assert agent.get(f"/v1/decisions/{stored.decision_id}").json()["evidence"] == before
        grounding.adr("Accepted")
        until(lambda: agent.get(path).json()["stale_since"] is None)
        assert agent.get(f"{path}/evidence").json() == before
        assert site.actions(owner) == ["claim.stored", "claim.stored", "memory.stale", "memory.fresh"]


@pytest.mark.on("sqlite")
def test_an_approval_looks_at_the_sources_again(database_url: str, grounding: Grounding) -> None:
    with served(database_url, grounding) as site:
        owner = site.owner()
        agent, reviewer = site.agent(owner), site.reviewer(owner)
        rows = [
            claim(f"Per ADR-0001 gateway number g{n}g probably listens on port 8080.", "ai_synthesis")
            for n in range(4)
        ]
        results = agent.post("/v1/claims/batch", json={"claims": rows}).json()["results"]
        assert {row["rule"] for row in results} == {"technical_hedge"}
        one, two, three, edited = (row["queue_id"] for row in results)
        assert reviewer.post(f"/v1/reviews/{one}/approve", json={"version": 1}).status_code == 200
        grounding.adr("Rejected")
        stranger, agents_word = site.reviewer(site.owner()), {"version": 1}
        is_problem(stranger.post(f"/v1/reviews/{two}/approve", json=agents_word), 404)
        is_problem(reviewer.post(f"/v1/reviews/{two}/approve", json={"version": 7}), 409, "stale_version")
        assert reviewer.get(f"/v1/reviews/{two}").json()["version"] == 1
        acts = [{"action": "approve", "id": item, "version": 1} for item in (two, three)]
        acts.append(acts[0] | {"id": edited, "content": "The gateway of house g3g listens on port 8080."})
        answer = reviewer.post("/v1/reviews/batch", json={"items": acts}).json()["results"]
        assert [row.get("code") for row in answer] == ["stale_version", "stale_version", None]
        assert "Rejected" in answer[0]["current"]["reason"]
        assert answer[0]["current"]["version"] == 2
        decision = agent.get(f"/v1/decisions/{answer[0]['current']['decision_id']}").json()
        assert any(finding["code"] == "citation_not_in_force" for finding in decision["findings"])
        # The owner's word counts, once it has been seen.
        done = reviewer.post(f"/v1/reviews/{two}/approve", json={"version": 2})
        assert done.status_code == 200, done.text
        assert done.json()["memory"]["decision_id"] == decision["decision_id"]
        with grounding.hidden():
            done = reviewer.post(f"/v1/reviews/{three}/approve", json={"version": 2})
        assert done.status_code == 200, done.text
        assert site.actions(owner).count("claim.rechecked") == 2
