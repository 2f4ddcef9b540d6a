"""`vouchgate mcp-gate` in front of the real knowledge-graph memory server."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import EmptyResult, SubscribeRequest, SubscribeRequestParams, Tool

from tests.acceptance.site import Site
from tests.running.waiting import names, open_desk
from tests.stores.gating import (
    GRAPH_SERVER,
    NODE,
    PATIENCE,
    connected,
    eventually,
    running,
    states,
    verdicts,
    words,
)
from tests.stores.graphs import MADE_UP, Graph, observe, open_graph, ungrounded


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, migrated_file: Path) -> Iterator[Site]:
    """A gate with a repository that has one ADR. On SQLite only: the database is tested with deliveries."""
    folder = tmp_path_factory.mktemp("desk")
    file = folder / "vouchgate.db"
    file.write_bytes(migrated_file.read_bytes())
    with open_desk(f"sqlite:///{file}", folder, islice(names(7), 150)) as opened:  # the first of MADE_UP
        yield opened


@pytest.fixture(scope="module")
def graph(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    """One gate for the tests here, each with entities of its own."""
    with open_graph(site, tmp_path_factory.mktemp("graph")) as opened:
        yield opened


def reads(tool: Tool) -> bool:
    """Whether the server says that it only reads."""
    return tool.annotations is not None and tool.annotations.read_only_hint is True


GROUNDED = "Orders are rows in PostgreSQL, as ADR-1 says."


def test_everything_else_is_passed_on(graph: Graph, tmp_path: Path) -> None:
    file = tmp_path / "memory.jsonl"
    with connected([NODE, GRAPH_SERVER], tmp_path / "errors", {"MEMORY_FILE_PATH": str(file)}) as bare:
        writers = {name for name, tool in bare.tools.items() if not reads(tool)}
        assert list(graph.caller.tools) == list(bare.tools)
        for name, tool in bare.tools.items():
            ours = graph.caller.tools[name]
            assert ours.input_schema == tool.input_schema
            assert ours.output_schema == tool.output_schema
            assert ours.annotations == tool.annotations
            assert ours.title == tool.title
            assert tool.description is not None
            assert ours.description is not None
            assert ours.description.startswith(tool.description)
            assert (ours.description == tool.description) is (name not in writers)
        assert bare.call("read_graph").structured_content == {"entities": [], "relations": []}
    name = next(MADE_UP)
    assert observe(graph, name, GROUNDED).is_error is False
    read = graph.caller.call("open_nodes", names=[name])
    assert read.structured_content is not None
    assert [one["name"] for one in read.structured_content["entities"]] == [name]
    assert json.loads(words(read)) == read.structured_content
    wrong = graph.caller.call("search_nodes", query=7)
    assert wrong.is_error
    assert "query" in words(wrong)
    portal, client = graph.caller.portal, graph.caller.client
    assert [str(one.uri) for one in portal.call(client.list_resources).resources] == [
        "memory://knowledge-graph"
    ]
    assert name in str(portal.call(client.read_resource, "memory://knowledge-graph").contents[0])
    assert portal.call(client.list_prompts).prompts == []
    assert client.server_info is not None
    assert client.server_info.name == "memory-server"


def test_what_has_a_verified_citation_is_written_and_read_back(graph: Graph) -> None:
    name = next(MADE_UP)
    answer = observe(graph, name, f"Orders of {name} are rows in PostgreSQL, see ADR-1.")
    assert states(answer) == ["written"]
    assert answer.structured_content == {
        "entities": [
            {
                "name": name,
                "entityType": "service",
                "observations": [f"Orders of {name} are rows in PostgreSQL, see ADR-1."],
            }
        ]
    }
    assert verdicts(answer)[0]["reason"] == "Stated by its source"
    assert "Written" in words(answer)
    stored = graph.entity(name)
    assert stored is not None
    assert stored["observations"] == [f"Orders of {name} are rows in PostgreSQL, see ADR-1."]
    again = graph.caller.call(
        "add_observations", observations=[{"entityName": name, "contents": stored["observations"]}]
    )
    assert again.structured_content == {"results": [{"entityName": name, "addedObservations": []}]}
    assert "already" in words(again)
    link = {"from": name, "to": "PostgreSQL", "relationType": "keeps its orders as rows, see ADR-1, in"}
    first, second = (graph.caller.call("create_relations", relations=[link]) for _ in range(2))
    assert (states(first), first.structured_content) == (["written"], {"relations": [link]})
    assert (states(second), second.structured_content) == (["there"], {"relations": []})


def test_what_is_blocked_or_waits_is_nowhere_behind_the_gate(graph: Graph) -> None:
    name, waits = next(MADE_UP), ungrounded("router")
    guess = f"I think the {name} cache is probably too small"
    answer = observe(graph, name, guess, waits)
    assert answer.is_error is False
    assert states(answer) == ["blocked", "queued"]
    assert answer.structured_content == {"entities": []}
    assert "waits for its owner" in words(answer)
    assert "do not save" in words(answer).lower()
    relation = {"from": name, "to": f"the {next(MADE_UP)} queue", "relationType": "may write to"}
    assert states(graph.caller.call("create_relations", relations=[relation])) == ["queued"]
    for text in (guess, waits, name, relation["to"]):
        assert text.encode() not in graph.bytes()
    blank = graph.caller.call("create_relations", relations=[{"from": name, "to": name, "relationType": " "}])
    assert blank.is_error
    assert "empty" in words(blank)
    missing = graph.caller.call("add_observations", observations=[{"entityName": name, "contents": ["More"]}])
    assert missing.is_error
    assert f"Entity with name {name} not found" in words(missing)


def test_who_sends_deliveries_past_the_gate_gets_nothing_written_that_was_not_checked(graph: Graph) -> None:
    """With the gate's own token, straight to the API: what vouches for the text says nothing of names beside it."""
    name, unseen = next(MADE_UP), "I think Faro"
    kept = f"Orders of {name} are rows in PostgreSQL, see ADR-1."
    place = verdicts(observe(graph, name, kept))[0]["place"]

    def send(where: str, content: str, op: str = "put", **data: str) -> str:
        delivery = {"sink": "knowledge-graph", "place": where, "op": op, "data": data}
        body = {"content": content, "memory_type": "fact", "source": "ai_synthesis", "delivery": delivery}
        answer = graph.agent.post("/v1/claims", json=body)
        assert answer.status_code == (202 if op == "remove" else 201), answer.text
        return str(answer.json()["queue_id"])

    def vouched() -> str:
        return f"Orders of {next(MADE_UP)} are rows in PostgreSQL, see ADR-1."

    send("1", vouched(), tool="add_observations", name=unseen, type="service")
    send(json.dumps(["observation", unseen, "x"]), vouched(), tool="add_observations", name=unseen, type="x")
    send(json.dumps(["entity", unseen]), vouched(), tool="create_entities", name=unseen, type="service")
    relation = {"tool": "create_relations", "from": unseen, "type": "feeds", "to": "Search"}
    send(json.dumps(["relation", unseen, "feeds", "Search"]), vouched(), **relation)
    # The same observation under another place, from which it could be taken away again.
    send("2", f"{name} (database): {kept}", tool="add_observations", name=name, type="database")
    send("3", vouched(), tool="reboot")
    # The owner is asked for something else than what is to go.
    gone = {"tool": "delete_observations", "name": name, "digest": json.loads(place)[2]}
    graph.settle(send("4", "An old note about nothing", "remove", **gone))
    eventually(lambda: graph.delivery("4")["state"] == "dead")
    items = graph.reviewer.get("/v1/deliveries", params={"state": "dead", "limit": 200}).json()["items"]
    assert len([item for item in items if unseen in item["place"] or len(item["place"]) == 1]) == 7
    assert b"Faro" not in graph.bytes()
    entity = graph.entity(name)
    assert entity is not None
    assert entity["observations"] == [kept]


def test_what_its_owner_approves_is_written_once_and_what_is_rejected_never(graph: Graph) -> None:
    name = next(MADE_UP)
    good, bad, changed = ungrounded("login"), ungrounded("export"), ungrounded("billing")
    answer = observe(graph, name, good, bad, changed)
    assert states(answer) == ["queued"] * 3
    first, second, third = (verdict["queue_id"] for verdict in verdicts(answer))
    graph.settle(second, "reject", reason="It is not so.")
    graph.settle(first)
    graph.settle(third, content=f"{name} (service): Billing of {name} runs at night.")
    eventually(lambda: b"runs at night" in graph.bytes())
    entity = graph.entity(name)
    assert entity is not None
    assert entity["observations"] == [good, f"Billing of {name} runs at night."]
    assert graph.bytes().count(good.encode()) == 1
    assert bad.encode() not in graph.bytes()
    assert changed.encode() not in graph.bytes()
    eventually(lambda: graph.delivery(verdicts(answer)[0]["place"])["state"] == "delivered")


def test_what_its_owner_takes_back_goes_from_the_server_too(graph: Graph) -> None:
    name, twin, text = next(MADE_UP), next(MADE_UP), ungrounded("payment")
    kept = f"Orders of {name} are rows in PostgreSQL, see ADR-1."
    answer = observe(graph, name, kept, text)
    assert states(answer) == ["written", "queued"]
    link = {"from": name, "to": "PostgreSQL", "relationType": "writes its orders as rows, as ADR-1 says, to"}
    bare = {
        "name": twin,
        "entityType": "copy of orders as rows in PostgreSQL, see ADR-1",
        "observations": [],
    }
    linked = graph.caller.call("create_relations", relations=[link])
    made = graph.caller.call("create_entities", entities=[bare])
    assert states(linked) == states(made) == ["written"]
    queue_id = verdicts(answer)[1]["queue_id"]
    graph.settle(queue_id)
    eventually(lambda: text.encode() in graph.bytes())
    graph.settle(queue_id, "undo")
    eventually(lambda: text.encode() not in graph.bytes())
    for told in (answer, linked, made):
        memory = verdicts(told)[0]["memory_id"]
        gone = graph.reviewer.request("DELETE", f"/v1/memories/{memory}", json={"reason": "It is not so."})
        assert gone.status_code == 200, gone.text
    eventually(lambda: graph.entity(twin) is None)
    assert kept.encode() not in graph.bytes()
    assert graph.relations(name) == []


def test_a_changed_value_takes_the_place_of_the_old_one_when_its_owner_says_so(graph: Graph) -> None:
    name, made_up = next(MADE_UP), next(MADE_UP)
    text = (
        f"The nightly {made_up} export starts at 02:00 UTC, writes one compressed file per customer to the {name}"
        " archive bucket, and must finish before the billing run of the whole company begins at 05:30."
    )
    graph.settle(verdicts(observe(graph, name, text))[0]["queue_id"])
    eventually(lambda: text.encode() in graph.bytes())
    other = text.replace("05:30", "06:30")
    changed = graph.caller.call("add_observations", observations=[{"entityName": name, "contents": [other]}])
    assert verdicts(changed)[0]["reason"] == "Conflicts with existing memory"
    assert other.encode() not in graph.bytes()
    graph.settle(verdicts(changed)[0]["queue_id"], supersede=True)
    eventually(lambda: other.encode() in graph.bytes())
    eventually(lambda: text.encode() not in graph.bytes())


def test_a_relation_is_a_sentence_and_an_edit_must_leave_it_one(graph: Graph) -> None:
    one, two = next(MADE_UP), next(MADE_UP)
    asked = [{"from": one, "to": two, "relationType": kind} for kind in ("feeds", "watches")]
    answer = graph.caller.call("create_relations", relations=asked)
    assert [verdict["content"] for verdict in verdicts(answer)] == [
        f"{one} feeds {two}",
        f"{one} watches {two}",
    ]
    assert answer.structured_content == {"relations": []}
    graph.settle(verdicts(answer)[0]["queue_id"], content=f"{one} is fed by {two}")
    graph.settle(verdicts(answer)[1]["queue_id"], content="They know one another.")
    eventually(lambda: graph.delivery(verdicts(answer)[1]["place"])["state"] == "dead")
    assert [found["relationType"] for found in graph.relations(one)] == ["is fed by"]
    assert "no longer a relation" in graph.delivery(verdicts(answer)[1]["place"])["last_error"]


def test_deletes_wait_for_the_owner_who_sees_all_that_goes(graph: Graph) -> None:
    name = next(MADE_UP)
    kept = f"Orders of {name} are rows in PostgreSQL, see ADR-1."
    gone = f"Refunds of {name} wait for a manager, see ADR-0001."
    observe(graph, name, kept, gone)
    link = {"from": name, "to": "PostgreSQL", "relationType": "keeps orders as rows, as ADR-1 says, in"}
    assert states(graph.caller.call("create_relations", relations=[link])) == ["written"]
    one = graph.caller.call(
        "delete_observations", deletions=[{"entityName": name, "observations": [gone, "No"]}]
    )
    assert one.structured_content is not None
    assert one.structured_content["success"] is False
    assert "waits for its owner" in one.structured_content["message"]
    assert "has no such observation: No" in one.structured_content["message"]
    assert states(one) == ["queued"]
    assert verdicts(one)[0]["content"] == f"{name} (service): {gone}"
    assert gone.encode() in graph.bytes()
    graph.settle(verdicts(one)[0]["queue_id"])
    eventually(lambda: gone.encode() not in graph.bytes())
    assert kept.encode() in graph.bytes()
    memories = graph.reviewer.get("/v1/memories", params={"text": gone}).json()["items"]
    assert memories == []

    everything = graph.caller.call("delete_entities", entityNames=[name])
    shown = verdicts(everything)[0]["content"].splitlines()
    assert shown == [
        f"{name} is a service",
        f"{name} (service): {kept}",
        f"{name} keeps orders as rows, as ADR-1 says, in PostgreSQL",
    ]
    graph.settle(verdicts(everything)[0]["queue_id"])
    eventually(lambda: graph.entity(name) is None)
    assert graph.relations(name) == []
    again = observe(graph, name, kept)
    assert states(again) == ["gone"]
    assert again.structured_content == {"entities": []}
    assert kept.encode() not in graph.bytes()


def test_what_the_gate_knows_from_elsewhere_is_written_where_it_never_was(graph: Graph) -> None:
    name = next(MADE_UP)
    text = f"Orders of {name} are rows in PostgreSQL, see ADR-1."
    body = {"content": f"{name} (service): {text}", "memory_type": "fact", "source": "ai_synthesis"}
    assert graph.agent.post("/v1/claims", json=body).status_code == 201
    answer = observe(graph, name, text)
    assert states(answer) == ["there"]
    entity = graph.entity(name)
    assert entity is not None
    assert entity["observations"] == [text]


def test_an_entity_that_grew_since_its_owner_was_asked_is_left(graph: Graph) -> None:
    name = next(MADE_UP)
    observe(graph, name, f"Orders of {name} are rows in PostgreSQL, see ADR-1.")
    asked = graph.caller.call("delete_entities", entityNames=[name])
    more = f"Refunds of {name} wait for a manager, see ADR-1."
    added = graph.caller.call("add_observations", observations=[{"entityName": name, "contents": [more]}])
    assert states(added) == ["written"]
    graph.settle(verdicts(asked)[0]["queue_id"])
    eventually(lambda: graph.delivery(verdicts(asked)[0]["place"])["state"] == "dead")
    assert graph.entity(name) is not None
    assert "more by now" in graph.delivery(verdicts(asked)[0]["place"])["last_error"]


def test_writes_that_come_together_all_arrive(graph: Graph) -> None:
    chosen = [next(MADE_UP) for _ in range(50)]
    texts = [f"Orders of {name} are rows in PostgreSQL, see ADR-1." for name in chosen]
    calls = [
        ("create_entities", {"entities": [{"name": name, "entityType": "shop", "observations": [text]}]})
        for name, text in zip(chosen, texts, strict=True)
    ]
    answers = graph.caller.many(calls)
    assert [states(answer) for answer in answers] == [["written"]] * len(calls), [
        words(answer) for answer in answers if states(answer) != ["written"]
    ]
    for name, text in zip(chosen, texts, strict=True):
        entity = graph.entity(name)
        assert entity is not None, name
        assert entity["observations"] == [text]


def test_subscribers_are_told_of_what_is_written(graph: Graph) -> None:
    request = SubscribeRequest(params=SubscribeRequestParams(uri="memory://knowledge-graph"))
    session = graph.caller.client.session
    graph.caller.portal.call(session.send_request, request, EmptyResult)
    graph.updated.clear()
    name = next(MADE_UP)
    observe(graph, name, f"Orders of {name} are rows in PostgreSQL, see ADR-1.")
    eventually(lambda: "memory://knowledge-graph" in graph.updated)


def test_nothing_is_written_when_the_gate_cannot_be_reached(graph: Graph) -> None:
    before, name = graph.bytes(), next(MADE_UP)
    graph.way.on = lambda _: False
    try:
        answer = observe(graph, name, f"Orders of {name} are rows in PostgreSQL, see ADR-1.")
        assert graph.caller.call("read_graph").is_error is False
    finally:
        graph.way.on = lambda _: True
    assert answer.is_error
    assert "could not be asked" in words(answer)
    assert graph.bytes() == before


def test_what_was_stored_is_written_once_the_server_takes_it_again(graph: Graph) -> None:
    name = next(MADE_UP)
    link = {"from": name, "to": "PostgreSQL", "relationType": "has its rows of orders, see ADR-1, in"}
    aside = graph.file.rename(graph.file.with_suffix(".aside"))
    graph.file.mkdir()
    try:
        answer = graph.caller.call("create_relations", relations=[link])
    finally:
        graph.file.rmdir()
        aside.rename(graph.file)
    assert answer.is_error
    assert states(answer) == ["failed"]
    assert "not in the memory server" in words(answer)
    graph.hurry()  # the second after the first try
    eventually(lambda: graph.relations(name) != [])
    assert len(graph.relations(name)) == 1


def test_a_call_that_is_given_up_leaves_nothing_held_up(graph: Graph) -> None:
    name = next(MADE_UP)
    entity = {
        "name": name,
        "entityType": "service",
        "observations": [f"Orders of {name} are rows in PostgreSQL, see ADR-1."],
    }
    sent, begun, goes_on = threading.Event(), threading.Event(), threading.Event()

    def hold(path: str) -> bool:
        if path.startswith("/v1/claims"):
            sent.set()
        # What is to be written came with the answer; a lease is one that asks what owners approved meanwhile.
        if path.endswith("/done") and sent.is_set():
            begun.set()
            goes_on.wait(PATIENCE)
        return True

    graph.way.on = hold
    try:
        arguments = {"entities": [entity]}
        call = graph.caller.portal.start_task_soon(
            graph.caller.client.call_tool, "create_entities", arguments
        )
        assert begun.wait(PATIENCE)
        call.cancel()
    finally:
        graph.way.on = lambda _: True
        goes_on.set()
    eventually(lambda: graph.entity(name) is not None)
    twin = next(MADE_UP)
    assert states(observe(graph, twin, f"Orders of {twin} are rows in PostgreSQL: ADR-1.")) == ["written"]


def test_a_server_that_ended_is_started_again(graph: Graph) -> None:
    (server,) = [found for found in running(str(GRAPH_SERVER)) if not found.children()]  # not what started it
    server.kill()
    server.wait(120)
    name = next(MADE_UP)
    with suppress(MCPError):  # a call that is under way ends with the server
        graph.caller.call("read_graph")
    assert states(observe(graph, name, f"Orders of {name} are rows in PostgreSQL, see ADR-1.")) == ["written"]


def test_a_gate_that_was_killed_before_it_could_say_so_writes_nothing_twice(
    graph: Graph, programs: Path
) -> None:
    name, text = next(MADE_UP), ungrounded("search")
    queued = observe(graph, name, text)
    killed = list[str]()

    def kill(path: str) -> bool:
        if not path.endswith("/done"):
            return True
        if not killed:
            killed.append(path)
            for process in running("mcp-gate"):
                os.kill(process.pid, signal.SIGKILL)
        return False

    graph.way.on = kill
    try:
        graph.settle(verdicts(queued)[0]["queue_id"])
        eventually(lambda: killed)
        eventually(lambda: not running("mcp-gate"))
    finally:
        graph.way.on = lambda _: True
    assert graph.bytes().count(text.encode()) == 1
    place = verdicts(queued)[0]["place"]
    assert graph.delivery(place)["state"] == "waiting"
    graph.hurry()  # the minute that the dead gate's lease lasts
    with graph.start(gate=(programs / "vouchgate", "mcp-gate")) as anew:
        assert anew.client.protocol_version >= "2026"
        with anew.portal.wrap_async_context_manager(
            anew.client.listen(resource_subscriptions=["memory://knowledge-graph"])
        ) as changes:
            other = next(MADE_UP)
            observe(graph, other, f"Orders of {other} are rows in PostgreSQL, see ADR-1.", caller=anew)
            assert "knowledge-graph" in str(anew.portal.call(changes.__anext__))
        eventually(lambda: graph.delivery(place)["state"] == "delivered")
        assert graph.bytes().count(text.encode()) == 1
        assert graph.entity(name) == {
            "type": "entity",
            "name": name,
            "entityType": "service",
            "observations": [text],
        }
