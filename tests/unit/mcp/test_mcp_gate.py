"""The gate in front of an MCP server: what becomes a claim, and how a claim becomes a call again."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.stores.memory_servers import Unasked
from vouchgate.adapters.rendering import render_value
from vouchgate.client import DeadLetter
from vouchgate.client.models import Who
from vouchgate.ingest.claims.delivery import DeliveryOp
from vouchgate.ingest.claims.people import Role
from vouchgate.mcp.gate.calls import (
    CallForm,
    CallWriter,
    approved_arguments,
    content_of,
    fit_to_schema,
    says_something,
)
from vouchgate.mcp.gate.config import CallWrite, ConfigError, GraphWrite, load, presets
from vouchgate.mcp.gate.graph import (
    Entity,
    Graph,
    Relation,
    bare_entity,
    dump_models,
    edited_observation,
    edited_relation,
    edited_type,
    entity_removal,
    graph_of,
    is_unedited,
    observation,
    observation_place,
    relation_write,
)
from vouchgate.mcp.gate.graph_writer import GraphWriter
from vouchgate.mcp.gate.owner import UnusableToken, owner_of
from vouchgate.mcp.gate.reading import fill_place, fill_template, value_at_path
from vouchgate.mcp.gate.writes import (
    MAX_PLACE,
    CallRefused,
    NotAllShown,
    ServerAnswer,
    ServerFailed,
    Write,
    distinct_writes,
    place_of,
    texts_in,
)

SAID = st.text(min_size=1).filter(str.strip)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(SAID, SAID, SAID)
def test_an_observation_is_shown_whole_and_comes_back_as_it_was(name: str, kind: str, text: str) -> None:
    write = observation(name, kind, text)
    assert all(part in write.content for part in (name, kind, text))
    assert edited_observation(write.content, name, kind) == text
    assert edited_observation("Quite another text", name, kind) == "Quite another text"
    assert len(write.place) <= MAX_PLACE


@given(SAID, SAID, SAID)
def test_a_relation_is_shown_whole_and_comes_back_as_it_was(start: str, kind: str, end: str) -> None:
    relation = Relation(start=start, type=kind, end=end)
    write = relation_write(relation, DeliveryOp.PUT)
    assert all(part in write.content for part in (start, kind, end))
    assert edited_relation(write.content, start, end) == relation
    assert write.place == relation_write(relation, DeliveryOp.REMOVE).place


@given(SAID, SAID, SAID)
def test_what_the_gate_sends_it_knows_again(name: str, kind: str, text: str) -> None:
    relation = Relation(start=name, type=kind, end=text)
    for write in (
        observation(name, kind, text),
        bare_entity(name, kind),
        relation_write(relation, DeliveryOp.PUT),
        relation_write(relation, DeliveryOp.REMOVE),
    ):
        assert is_unedited(write.place, write.content, write.data)
        with pytest.raises(DeadLetter, match="not sent by this gate"):
            is_unedited("elsewhere", write.content, write.data)
    edited = observation(name, kind, text)
    assert not is_unedited(edited.place, edited.content + "!", edited.data)


@pytest.mark.parametrize(
    "kind", ["shop): scam (x", "shop: scam", "shop\nscam", "shop. It is a scam", "shop (scam)", "scam:"]
)
def test_a_type_in_which_a_statement_could_hide_is_neither_sent_nor_written(kind: str) -> None:
    class Holds:
        async def call(self, tool: str, arguments: Mapping[str, Any]) -> ServerAnswer:
            there = Entity(name="Braga", type=kind, observations=[])
            return ServerAnswer("", {"entities": dump_models([there]), "relations": []})

    tools = {"create_entities": "entities", "add_observations": "observations"}
    writer = GraphWriter(
        Holds(), {tool: GraphWrite.model_validate({"kind": how}) for tool, how in tools.items()}
    )
    made = {"entities": [{"name": "Porto", "entityType": kind, "observations": ["a"]}]}
    added = {"observations": [{"entityName": "Braga", "contents": ["a"]}]}
    for tool, asked in (("create_entities", made), ("add_observations", added)):
        with pytest.raises(CallRefused, match="what kind of thing it is"):
            asyncio.run(writer.plan(tool, asked))
    sent = observation("Porto", kind, "a")  # by another program, with the gate's token
    assert not writer.is_unedited(DeliveryOp.PUT, sent.place, sent.content, sent.data)
    assert writer.is_unedited(DeliveryOp.REMOVE, sent.place, sent.content, sent.data)
    plain = observation("Porto", "Node.js micro-service/C++", "a")
    assert writer.is_unedited(DeliveryOp.PUT, plain.place, plain.content, plain.data)


@pytest.mark.parametrize("edited", ["Ada", "Ada Bob", "Ada  Bob", "Bob knows Ada", "Ada knows Bob well", ""])
def test_a_text_that_is_no_relation_any_more_is_a_dead_letter(edited: str) -> None:
    with pytest.raises(DeadLetter, match="no longer a relation"):
        edited_relation(edited, "Ada", "Bob")


def test_a_bare_entity_may_get_another_type_and_nothing_else() -> None:
    write = bare_entity("Redis", "service")
    assert write.content == "Redis is a service"
    assert edited_type(write.content, "Redis") == "service"
    assert edited_type("Redis is a data store", "Redis") == "data store"
    for edited in ("Redis", "Redis is a ", "It is a service"):
        with pytest.raises(DeadLetter):
            edited_type(edited, "Redis")


@given(st.lists(st.tuples(st.text(), st.text()), unique=True, min_size=2, max_size=6))
def test_two_things_have_two_places(things: list[tuple[str, str]]) -> None:
    assert len({place_of("relation", *thing) for thing in things}) == len(things)


def test_long_names_have_places_of_their_own_too() -> None:
    long = "x" * 600
    assert observation_place(long, "a") != observation_place(long + "x", "a")
    assert len(observation_place(long, "a")) <= MAX_PLACE


def test_what_goes_with_an_entity_is_shown_or_the_removal_is_refused() -> None:
    graph = Graph(
        entities=[Entity(name="Ada", type="person", observations=["likes tea", "likes rain"])],
        relations=[
            Relation(start="Ada", type="knows", end="Bob"),
            Relation(start="Eve", type="watches", end="Ada"),
            Relation(start="Eve", type="watches", end="Bob"),
        ],
    )
    write = entity_removal(graph.entities[0], graph)
    assert write.content.splitlines() == [
        "Ada is a person",
        "Ada (person): likes tea",
        "Ada (person): likes rain",
        "Ada knows Bob",
        "Eve watches Ada",
    ]
    many = Entity(name="Ada", type="person", observations=[f"fact {number}" for number in range(200)])
    with pytest.raises(CallRefused, match="holds 202 observations and relations"):
        entity_removal(many, graph)


@pytest.mark.parametrize(
    "text", ["", "[]", '{"entities": []}', '{"entities": [{"name": 1}], "relations": []}']
)
def test_what_is_no_graph_is_not_taken_for_an_empty_one(text: str) -> None:
    with pytest.raises(ServerFailed):
        graph_of(ServerAnswer(text, None))


def test_a_graph_in_text_is_read_as_older_servers_send_it() -> None:
    text = '{"entities": [{"name": "A", "entityType": "b", "observations": []}], "relations": [], "more": 1}'
    assert graph_of(ServerAnswer(text, None)).entity("A") == Entity(name="A", type="b", observations=[])


def test_a_thing_that_is_said_twice_is_written_once() -> None:
    writes = [Write(DeliveryOp.PUT, place, place, {}) for place in ("a", "b", "a", "c")]
    assert [write.place for write in distinct_writes(writes)] == ["a", "b", "c"]


ARGUMENTS = st.dictionaries(st.from_regex(r"[a-z]{1,8}", fullmatch=True), JSON, max_size=4)


def form(tool: str = "write", text: str | None = "content", *named: str, **table: Any) -> CallForm:
    """How a tool writes."""
    return CallForm(tool, CallWrite(kind="call", text=text, place="p", read=False, **table), named)


@given(ARGUMENTS, st.text(), st.text())
def test_every_text_of_a_call_is_shown_and_the_call_comes_back(
    others: dict[str, Any], text: str, edited: str
) -> None:
    arguments = {**others, "content": text}
    content = content_of(form(), arguments)
    for leaf in texts_in(arguments):
        assert leaf in content or render_value([leaf])[2:-2] in content
    if not says_something(form(), arguments):
        assert approved_arguments(form(), arguments, "none", content) == arguments
        return
    assert approved_arguments(form(), others, None, content) == arguments
    above = content.removesuffix(text)
    assert approved_arguments(form(), others, None, above + edited)["content"] == edited


def test_an_edit_above_the_text_is_a_dead_letter() -> None:
    kept = {"title": "Ports"}
    content = content_of(form(), {**kept, "content": "Port 1"})
    with pytest.raises(DeadLetter, match="above the text"):
        approved_arguments(form(), kept, None, content.replace("Ports", "Doors"))
    with pytest.raises(DeadLetter, match="none of these"):
        approved_arguments(form("move", None), {"to": "b"}, None, "move\nto: c")
    draw = form("draw", "nodes")
    nodes = content_of(draw, {"nodes": [{"text": "a"}]})
    assert approved_arguments(draw, {}, "json", nodes.replace('"a"', '"b"')) == {"nodes": [{"text": "b"}]}
    with pytest.raises(DeadLetter, match="no JSON"):
        approved_arguments(draw, {}, "json", nodes.replace("]", ""))


TEXT = "The port is 80."


def planned(arguments: dict[str, Any], **table: Any) -> tuple[CallWriter, Write]:
    """What a call of `save`, which has the arguments `name`, `body`, `tags` and `mode`, comes to."""
    write = CallWrite(kind="call", text="body", place="note/{name}", read=False, **table)
    schema: dict[str, Any] = {"properties": {"name": {}, "body": {}, "tags": {}, "mode": {}}}
    writer = CallWriter(Unasked(), {"save": write}, {"save": (schema, None)})
    (sent,) = asyncio.run(writer.plan("save", arguments)).writes
    return writer, sent


class Shelf:
    """A server that shows the two newest of its texts, and removes by the text."""

    def __init__(self, *texts: str) -> None:
        self.texts = list(texts)

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> ServerAnswer:
        """See `Server`."""
        if tool == "save":
            self.texts.append(arguments["body"])
        elif tool == "drop":
            self.texts.remove(arguments["body"])
        return ServerAnswer("", {"texts": [{"body": text} for text in self.texts[-2:]]})


@pytest.mark.parametrize(("after", "removed"), [(["a"], True), (["a", "b"], False)])
def test_what_the_server_shows_no_more_is_not_said_to_be_gone(after: list[str], removed: bool) -> None:
    shelf = Shelf()
    schema: dict[str, Any] = {"properties": {"body": {}}}
    read = {"tool": "list", "arguments": {}, "items": "texts", "find": "body", "most": 2}
    undo = {"tool": "drop", "arguments": {"body": "{body}"}}
    tables = {
        "save": {"text": "body", "read": read, "undo": undo},
        "drop": {"op": "remove", "read": {**read, "where": {"body": "{body}"}}},
    }
    writes = {
        tool: CallWrite.model_validate({"kind": "call", "place": "t/{#body}", **table})
        for tool, table in tables.items()
    }
    writer = CallWriter(shelf, writes, dict.fromkeys(writes, (schema, None)))

    async def run() -> None:
        (sent,) = (await writer.plan("save", {"body": TEXT})).writes
        what = sent.place, sent.content, sent.data
        await writer.apply(DeliveryOp.PUT, *what)
        shelf.texts += after
        if removed:
            assert len((await writer.plan("drop", {"body": TEXT})).writes) == 1
            await writer.apply(DeliveryOp.REMOVE, *what)
            await writer.apply(DeliveryOp.REMOVE, *what)  # comes again
            return
        for refused in (writer.plan("drop", {"body": TEXT}), writer.apply(DeliveryOp.REMOVE, *what)):
            with pytest.raises(NotAllShown, match="by hand"):
                await refused
        await writer.apply(
            DeliveryOp.PUT, sent.place, sent.content + " Now.", sent.data
        )  # others are written

    asyncio.run(run())
    assert (TEXT in shelf.texts) is not removed


@pytest.mark.parametrize("body", [{}, {"body": None}])
def test_a_call_without_its_text_is_made_as_it_was(body: dict[str, Any]) -> None:
    for name in ("The oven is hot.", "oven"):
        writer, sent = planned({"name": name, **body})
        assert writer.is_unedited(sent.op, sent.place, sent.content, sent.data)
        with pytest.raises(DeadLetter, match="none of these arguments can be"):
            writer.is_unedited(sent.op, sent.place, f"{sent.content} It is cold.", sent.data)


@pytest.mark.parametrize(
    ("arguments", "content"),
    [
        ({"name": "ports/north"}, TEXT),
        ({"name": "ports", "tags": True}, TEXT),
        ({"name": "ports", "mode": "create"}, TEXT),
        ({"name": "port-81"}, f"port-81\n\n{TEXT}"),
        ({"name": "The port is 81"}, f"The port is 81\n\n{TEXT}"),
        ({"name": "ports", "tags": "port-81"}, f"port-81\n\n{TEXT}"),
        ({"name": "ports", "tags": 81}, f"81\n\n{TEXT}"),
        ({"name": "ports", "tags": ["x", {"y": "z"}]}, f'["x", {{"y": "z"}}]\n\n{TEXT}'),
        ({"name": "ports", "port_is_81": True}, f"port_is_81: true\n\n{TEXT}"),
    ],
)
def test_what_an_agent_wrote_is_the_claim_and_nothing_that_it_did_not(
    arguments: dict[str, Any], content: str
) -> None:
    writer, sent = planned({**arguments, "body": TEXT}, only={"mode": ["create"]})
    assert sent.content == content
    assert sent.data["arguments"] == arguments
    assert writer.is_unedited(sent.op, sent.place, content, sent.data)


@pytest.mark.parametrize(
    ("template", "arguments", "expected"),
    [
        ("{directory}/{title}", {"directory": "a/b", "title": "c"}, "a/b/c"),
        ("{directory}/{title}", {"directory": "/a/", "title": "c"}, "a/c"),
        ("{directory}/{title}", {"directory": "/", "title": "c"}, "c"),
        ("{directory}/{title}", {"title": "c"}, "c"),
        ("memory://{id}", {"id": "x"}, "memory://x"),
        ("{id}", {"id": "memory://x"}, "memory://x"),
        ("{text}", {"text": "/etc/hosts is read, see a/"}, "/etc/hosts is read, see a/"),
        ("{a}{b}", {"a": "{b}", "b": "c"}, "{b}c"),
        ("{@result.path}", {}, "here"),
    ],
)
def test_templates(template: str, arguments: dict[str, Any], expected: str) -> None:
    assert fill_template(template, arguments, {"result": {"path": "here"}}) == expected


def test_places_of_calls_leave_no_gap_and_are_never_too_long() -> None:
    assert fill_place("note/{project}/{title}", {"title": "a"}) == "note/a"
    one, two = (fill_place("note/{title}", {"title": "x" * 600 + end}) for end in "ab")
    assert one != two
    assert max(len(one), len(two)) <= MAX_PLACE
    assert value_at_path({"a": {"b": 1}}, "a.b") == 1
    assert value_at_path({"a": [1]}, "a.b") is None


def test_words_are_put_where_a_tool_promises_text_and_nowhere_else() -> None:
    text = {"type": "object", "properties": {"result": {"type": "string"}}, "required": ["result"]}
    number = {"type": "object", "properties": {"result": {"type": "number"}}, "required": ["result"]}
    assert fit_to_schema(text, "It waits.") == {"result": "It waits."}
    assert fit_to_schema(number, "It waits.") is None
    assert fit_to_schema({"$ref": "http://192.0.2.1/schema"}, "It waits.") is None
    assert fit_to_schema({"type": 3}, "It waits.") is None
    assert fit_to_schema(None, "It waits.") is None


def test_the_presets_load_and_a_file_builds_on_one(tmp_path: Path) -> None:
    assert presets() == ["basic-memory", "knowledge-graph", "memory-bank", "memory-libsql", "memory-service"]
    for name in presets():
        config = load(name, None)
        assert config.sink == name
        assert not config.passed & set(config.write)
        calls = [write for write in config.write.values() if isinstance(write, CallWrite)]
        assert all(write.read and write.read.tool in config.passed for write in calls)
    file = tmp_path / "gate.toml"
    file.write_text('preset = "knowledge-graph"\nsink = "mine"\npass = ["count"]\n', "utf-8")
    config = load(None, file, sink="ours")
    assert config.sink == "ours"
    assert config.passed == {"read_graph", "search_nodes", "open_nodes", "count"}
    assert set(config.write) == set(load("knowledge-graph", None).write)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('sink = "a"\n', "write"),
        ('sink = "A b"\n[write]\n', "sink"),
        ('sink = "a"\nfoo = 1\n[write]\n', "foo"),
        ('sink = "a"\n[write.x]\nkind = "relation"\n', "write.x"),
        ('sink = "a"\n[write.x]\nkind = "call"\nplace = "p"\n', "write.x.read"),
        ('sink = "a"\n[write.x]\nkind = "entities"\ntext = "t"\n', "write.x"),
        ('preset = "nope"\n', "nope"),
        ("sink = ", "gate.toml"),
    ],
)
def test_a_configuration_that_cannot_be_meant_is_named(tmp_path: Path, text: str, named: str) -> None:
    file = tmp_path / "gate.toml"
    file.write_text(text, "utf-8")
    with pytest.raises(ConfigError, match=named):
        load(None, file)


def test_the_configurations_in_the_documentation_load(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs/mcp.md").read_text("utf-8")
    examples = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert len(examples) == 2
    for number, example in enumerate(examples):
        file = tmp_path / f"{number}.toml"
        file.write_text(example, "utf-8")
        assert load(None, file).write


def test_one_of_preset_and_file_is_given(tmp_path: Path) -> None:
    for preset, file in (
        (None, None),
        ("knowledge-graph", tmp_path / "x"),
        ("nope", None),
        (None, tmp_path / "x"),
    ):
        with pytest.raises(ConfigError):
            load(preset, file)


def test_a_memory_server_is_one_owners() -> None:
    def who(role: Role = Role.AGENT, *owners: str, any_owner: bool = False) -> Who:
        return Who(id="tok_1", name="a", role=role, owners=owners, any_owner=any_owner, sources=())

    assert owner_of(who(Role.AGENT, "ann"), None) == "ann"
    assert owner_of(who(Role.AGENT, "ann", "bob"), "bob") == "bob"
    assert owner_of(who(any_owner=True), "bob") == "bob"
    for wrong, wanted in (
        (who(Role.REVIEWER, "ann"), None),
        (who(Role.ADMIN, any_owner=True), "ann"),
        (who(Role.AGENT, "ann", "bob"), None),
        (who(any_owner=True), None),
        (who(Role.AGENT, "ann"), "bob"),
    ):
        with pytest.raises(UnusableToken):
            owner_of(wrong, wanted)
