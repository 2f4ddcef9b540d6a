"""A gate inside a program: the client's answers without a server, and a database that a service opens as well."""

from __future__ import annotations

import asyncio
import inspect
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.cli_program import serving
from tests.repos import TestRepository
from tests.running.service import make_token, serve
from vouchgate import ApiError, AsyncGate, CannotOpen, Client, Gate, GateClosed, Reviews, Unreachable
from vouchgate.client.in_process import URL
from vouchgate.ingest.claims.decision import ValidationResult
from vouchgate.ingest.claims.people import Role
from vouchgate.ingest.claims.waiting import ReviewStatus
from vouchgate.storage.identity import tokens

ROOT = Path(__file__).parents[3]
ADR = "# ADR-0007: Exports\n\nStatus: Accepted\n\n## Decision\n\nThe export job writes its files at two in the night.\n"
TRUE = "The export job writes its files at two in the night, see ADR-0007."
LIE = "The export job writes its files at nine in the night, see ADR-0007."


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = TestRepository(tmp_path_factory.mktemp("embedded") / "repo")
    pages = {f"docs/adrs/{page.name}": page.read_text() for page in (ROOT / "docs/adrs").glob("0029*.md")}
    made.commit("Decide", pages | {"docs/adrs/0007-exports.md": ADR})
    return made.path


@pytest.fixture
def gate(database_url: str, repo: Path) -> Iterator[Gate]:
    with Gate.open(database_url, repo=repo, offline=True) as opened:
        yield opened


def without_ids(verdict: ValidationResult) -> str:
    """A verdict without what is new each time, and without its owner."""
    text = verdict.model_dump_json(exclude={"promise"})
    news = r"(mem|rev|dec)_[0-9a-f]{32}|\d{4}-\d\d-\d\dT[\d:.]+|(?<=took_ms\":)[\d.]+|(?<=owner_id\":\")\w+"
    return re.sub(news, "", text)


def test_claims_are_decided_and_ruled_on_as_at_the_service(gate: Gate, database_url: str, repo: Path) -> None:
    stored, lie = gate.submit(TRUE, memory_type="decision"), gate.submit(LIE)
    assert (stored.stored, stored.rule, lie.stored, lie.rule) == (True, "stated", False, "refuted")
    assert gate.memory(stored.memory_id or "").content == TRUE
    (item,) = gate.reviews.list().items
    assert item.id == lie.queue_id and item.submitted_by == gate.whoami().id
    shown = gate.reviews.show(item.id)
    assert shown.priority and shown.needed == 1 and shown.version == item.version
    edited = gate.reviews.edit(shown, "The export job runs at night.", note="roughly")
    assert edited.memory is not None and edited.memory.content == "The export job runs at night."
    again = gate.reviews.undo(edited.item)
    assert again.item.status is ReviewStatus.PENDING and again.memory is None
    with pytest.raises(ApiError) as stale:
        gate.reviews.approve(shown)
    assert stale.value.code == "stale_version"
    assert gate.reviews.reject(again.item, "It is two.").item.status is ReviewStatus.REJECTED
    waits = gate.submit("The cellar floods in March.")
    approved = gate.reviews.approve(gate.reviews.show(waits.queue_id or ""))
    assert approved.memory is not None and approved.item.decided_by != gate.whoami().id
    (rejected,) = gate.pending(status="rejected").items
    assert rejected.note == "It is two."
    # A service on the same database, at the same time: the same answers, memories and items, over HTTP.
    token = make_token(database_url, Role.AGENT, ["bea"])
    reviewer = make_token(database_url, Role.REVIEWER, ["me"])
    with serve(database_url, repos=[repo], environment={"VOUCHGATE_OFFLINE": "true"}) as running:
        with Client(running.url, token) as client:
            assert without_ids(client.save(TRUE, memory_type="decision")) == without_ids(stored)
        with Reviews(running.url, reviewer) as reviews:
            (seen,) = reviews.list(status="approved").items
            assert seen == approved.item
    # Opened again it is the same two who call, and their memories are there.
    gate.close()
    with Gate.open(database_url, repo=repo, offline=True) as second:
        assert {memory.content for memory in second.memories().items} == {TRUE, "The cellar floods in March."}
        with second._running._service.store.read() as connection:
            inside = [each for each in tokens.listing(connection) if each.embedded]
    assert sorted(each.role for each in inside) == [Role.AGENT, Role.REVIEWER]


@pytest.mark.on("sqlite")
def test_who_submits_cannot_rule_and_ends_with_the_gate(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = gate.submit("The kiln cools for a day.")
    for wrong in (waits, waits.queue_id):
        with pytest.raises(TypeError, match="give an item"):
            gate.reviews.approve(wrong)  # type: ignore[arg-type]  # that is what is tried
    agent = gate.agent("planner", sources=["user"])
    assert type(agent) is Client and not [
        name for name in dir(agent) if "review" in name or "approve" in name
    ]
    assert agent.save("I like tea.", memory_type="preference", source="user").stored
    assert agent.whoami().name.startswith("planner") and agent.whoami().id != gate.whoami().id
    claimed = gate.submit("I like coffee.", memory_type="preference", source="user")
    assert (claimed.stored, claimed.evidence.claim.source) == (False, "ai_synthesis")
    item = gate.reviews.show(waits.queue_id or "")
    for caller in (agent, gate):
        with Reviews.over(caller._config) as tried, pytest.raises(ApiError) as not_allowed:
            tried.approve(item)
        assert not_allowed.value.code == "role_not_allowed"
    with pytest.raises(ApiError) as unknown:
        Client.over(type(gate._config)(URL, "vg_guessed", 5, 0, gate._config.transport)).whoami()
    assert unknown.value.status == 401
    with ThreadPoolExecutor(8) as pool:
        verdicts = list(pool.map(gate.check, [f"Shelf {number} is empty." for number in range(40)]))
    assert {verdict.outcome.value for verdict in verdicts} == {"queued"}
    hasty = Client.over(type(gate._config)(URL, gate._config.token, 1e-6, 0, gate._config.transport))
    with pytest.raises(Unreachable):
        hasty.save("The mill delivers flour on Mondays.")
    gate.close()
    gate.close()
    monkeypatch.setattr(threading.Thread, "is_alive", lambda _: True)  # as for a moment behind its last word
    gate.close()
    for ask in (
        agent.whoami,
        gate.whoami,
        gate.reviews.list,
        gate.agent,
        lambda: gate.agent("new"),
        gate.recorder,
    ):
        with pytest.raises(GateClosed, match="closed"):
            ask()


@pytest.mark.on("sqlite")
def test_an_agent_that_several_threads_ask_for_at_once_is_one(gate: Gate) -> None:
    """Else each had the places of an agent in the queue."""
    together = threading.Barrier(12)

    def ask(_: int) -> str:
        together.wait(30)
        return gate.agent("planner").whoami().id

    with ThreadPoolExecutor(12) as pool:
        assert len(set(pool.map(ask, range(12)))) == 1


def test_a_host_records_and_no_agent_does(gate: Gate, caplog: pytest.LogCaptureFixture) -> None:
    host, agent = gate.recorder(), gate.agent("planner", sources=["user"])
    said = host.record("I prefer tabs to spaces.", who="me", conversation="monday", idempotency_key="one")
    again = host.record("I prefer tabs to spaces.", who="me", conversation="monday", idempotency_key="one")
    assert said == again
    assert (said.kind, said.cite, said.masked) == ("turn", f"record:{said.id}", False)
    assert said.append_to("I prefer tabs.") == f"I prefer tabs.\n({said.cite})"
    stored = agent.save(f"The user prefers tabs to spaces ({said.cite})", memory_type="preference")
    assert (stored.stored, stored.evidence.label) == (True, "FACT")

    @host.recorded(who="look")
    def look(depot: str, *, most: int = 3) -> dict[str, object]:
        """What lies in a depot."""
        if depot == "B":
            raise KeyError(depot)
        return {"dépôt": depot, "most": most}

    text, _, line = look("A").rpartition("\n")
    assert (text, line[:12]) == ('{"dépôt":"A","most":3}', "(record:rec_")
    assert (look.__name__, look.__doc__) == ("look", "What lies in a depot.")
    assert list(inspect.signature(look).parameters) == ["depot", "most"]
    with pytest.raises(KeyError):
        look("B")
    for odd in ({1}, object, 1j, ["\ud800"]):  # the tool has run, so what it returned is not lost
        assert host.recorded(who="look")(lambda odd=odd: odd)().startswith(f"{odd}\n(record:rec_")
    for nobodys in (agent, gate):
        with pytest.raises(ApiError, match="role_not_allowed"):
            nobodys.record("I prefer spaces.", who="me")
        assert nobodys.recorded(who="look")(lambda: "Nine.")() == "Nine.", "without what a claim could cite"
    assert caplog.text.count("an output of look could not be put down: 403") == 2
    for way in (host.save, host.check):
        with pytest.raises(ApiError, match="role_not_allowed"):
            way("The user prefers spaces.")
    with pytest.raises(ApiError, match="role_not_allowed"):
        host.memories()


@pytest.mark.on("sqlite")
def test_the_async_twin_in_any_event_loop(database_url: str, repo: Path) -> None:
    async def opened() -> AsyncGate:
        return await AsyncGate.open(database_url, repo=repo, offline=True)

    async def work(gate: AsyncGate) -> None:
        assert (await gate.submit(TRUE)).stored
        lie = await gate.submit(LIE)
        ruling = await gate.reviews.reject(await gate.reviews.show(lie.queue_id or ""), "It is two.")
        assert ruling.item.status is ReviewStatus.REJECTED
        planner = await gate.agent("planner")
        host = await gate.recorder()
        said = await host.record("I prefer juniper tea.", who="me")
        assert (await planner.save(f"The user prefers juniper tea ({said.cite})")).stored

        async def look() -> str:
            return "Nine."

        assert re.fullmatch(r"Nine\.\n\(record:rec_\w+\)", await host.recorded(who="look")(look)())
        assert await planner.recorded(who="look")(look)() == "Nine."
        with pytest.raises(TypeError, match=r"recorded by Client\.recorded"):
            host.recorded(who="look")(lambda: "Nine.")  # type: ignore[arg-type, return-value]
        with pytest.raises(TypeError, match=r"recorded by AsyncClient\.recorded"):
            Client.over(host._config).recorded(who="look")(look)
        checked = await asyncio.gather(*(planner.check(f"Shelf {number} is empty.") for number in range(20)))
        assert {verdict.outcome.value for verdict in checked} == {"queued"}

    async def gone(gate: AsyncGate) -> None:
        left = asyncio.create_task(gate.save("The attic is dry."))
        await asyncio.sleep(0)
        left.cancel()

    async def end(gate: AsyncGate) -> None:
        async with gate:
            pass
        for ask in (gate.whoami, gate.reviews.list, gate.agent, lambda: gate.agent("new"), gate.recorder):
            with pytest.raises(GateClosed, match="closed"):
                await ask()

    async def unwanted() -> None:
        opening = asyncio.create_task(opened())
        await asyncio.sleep(0)
        (under_way,) = asyncio.all_tasks() - {opening, asyncio.current_task()}
        opening.cancel()
        await asyncio.wait({opening})
        nobodys = await under_way
        await asyncio.to_thread(nobodys._running._ended.result)  # it is closed by itself

    gate = asyncio.run(opened())
    for part in (work, gone, end):
        asyncio.run(part(gate))
    asyncio.run(unwanted())


def test_both_have_the_same_methods() -> None:
    for one, other in ((Gate, AsyncGate),):
        here = {name for name in vars(one) if not name.startswith("_")}
        assert {{"close": "aclose"}.get(name, name) for name in here} == {
            name for name in vars(other) if not name.startswith("_")
        }
    assert inspect.signature(Gate.open) == inspect.signature(AsyncGate.open)


def test_what_cannot_be_opened_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "policy.toml").write_text("nonsense = 1\n")
    (tmp_path / "torn.db").write_bytes(b"SQLite format 3\0" + b"torn" * 2000)
    for given, said in (
        ({"repo": tmp_path}, "git work tree"),
        ({"offlin": True}, "VOUCHGATE_OFFLIN"),
        ({"policy": tmp_path / "policy.toml"}, "nonsense"),
        ({"database": tmp_path / "torn.db"}, "damaged"),
        ({"database": tmp_path / "none" / "memory.db"}, "none"),
    ):
        arguments: dict[str, Any] = {"database": tmp_path / "memory.db", **given}
        with pytest.raises(CannotOpen, match=said):
            Gate.open(**arguments)
    with pytest.raises(ValueError, match="owner id"):
        Gate.open(tmp_path / "memory.db", owner="")
    for timeout in (0, -1, float("inf")):
        with pytest.raises(ValueError, match="timeout must be over 0"):
            Gate.open(tmp_path / "memory.db", timeout=timeout)


def test_an_opening_that_is_interrupted_leaves_no_gate_behind(tmp_path: Path) -> None:
    def begun() -> list[threading.Thread]:
        return [each for each in threading.enumerate() if each.name == "vouchgate-gate" and each.is_alive()]

    def interrupt() -> None:
        while not begun():
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGINT)

    assert begun() == []
    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        Gate.open(tmp_path / "gate.db", offline=True)
    for each in begun():
        each.join(60)
    assert begun() == []
    with Gate.open(tmp_path / "gate.db", offline=True) as gate:
        assert gate.whoami().owners == ("me",)


def test_a_program_that_does_not_close_it_ends_and_loses_nothing(tmp_path: Path, repo: Path) -> None:
    program = f"""
import multiprocessing, os, sys, threading, warnings
from vouchgate import Gate, VouchgateError
gate = Gate.open('memory.db', repo={str(repo)!r})
print(gate.submit({TRUE!r}).stored)
warnings.simplefilter('ignore', DeprecationWarning)  # of whoever forks beside threads
with multiprocessing.get_context('fork').Pool(1) as pool:  # whose processes end, although the gate is not in them
    pool.close()
    pool.join()
if (child := os.fork()) == 0:
    try:
        gate.agent('new')
    except VouchgateError:
        sys.exit(0)
    sys.exit(1)
print(os.waitpid(child, 0)[1])

def work():
    try:
        while gate.check('The attic is dry.'):
            pass
    except VouchgateError as error:
        print(error)

threading.Thread(target=work).start()
"""
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "True\n0\nthis gate is closed\n", "")
    with Gate.open(tmp_path / "memory.db") as gate:
        assert [memory.content for memory in gate.memories().items] == [TRUE]
    # Tokens that nobody has the text of are none for the first start of a service.
    with serving("--database-url", f"sqlite:///{tmp_path / 'memory.db'}", cwd=tmp_path) as service:
        assert 'three tokens for the owner "me"' in service.first_start()


def test_the_examples_of_the_page_run(
    tmp_path: Path, repo: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "embedded.md").read_text("utf-8").replace('repo="."', f"repo={str(repo)!r}")
    names: dict[str, object] = {}
    examples = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    for example in examples:
        exec(compile(example, "docs/embedded.md", "exec"), names)  # noqa: S102  (that is what is tested)
    said = capsys.readouterr().out.splitlines()
    for example in examples:  # whoever tries them again has the memories of the first time
        exec(compile(example, "docs/embedded.md", "exec"), names)  # noqa: S102
    assert (said[0], said[1], said[-1]) == ("a memory now", "('ann',)", "True")
    assert "The cellar floods in spring." in said
