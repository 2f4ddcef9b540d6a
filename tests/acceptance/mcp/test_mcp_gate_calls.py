"""`vouchgate mcp-gate` in front of a server of which each call writes one thing, by the preset for basic-memory. The
server is a stand-in (`tests/stores/notes_server.py`); the preset was tried with the real one by hand."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from mcp_types import CallToolResult, PromptReference

from tests.acceptance.cli_program import cli, complaint
from tests.acceptance.site import Site, open_site
from tests.repos import TestRepository
from tests.running.service import ALL_SOURCES
from tests.stores.gating import Caller, connected, eventually, states, verdicts, words
from tests.stores.memory_servers import Unasked
from vouchgate.ingest.claims.people import Role
from vouchgate.mcp.gate.calls import CallWriter
from vouchgate.mcp.gate.config import CallWrite, load

SERVER = Path(__file__).parents[2] / "stores" / "notes_server.py"
RECORD = (
    "# 1. Ports\n\nStatus: Accepted\n\n## Decision\n\nThe gateway listens on port 8443 in the Porto depot.\n"
)
CONFIG = """
preset = "basic-memory"
sink = "our-notes"
source = "user" # granted here, so that what is plain is stored
pass = ["count_notes"]
"""


@dataclass
class Notes:
    """A gate of one owner in front of a folder of notes."""

    caller: Caller
    folder: Path
    reviewer: httpx.Client
    agent: httpx.Client  # with the gate's own token

    def texts(self) -> str:
        """Everything on disk, with the names of the files."""
        return "\n".join(
            f"{file}\n{file.read_text('utf-8')}"
            for file in sorted(self.folder.rglob("*.*"))
            if file.is_file()
        )

    def note(self, path: str) -> str:
        """What a file holds."""
        return (self.folder / path).read_text("utf-8")

    def settle(self, answer: CallToolResult, how: str = "approve", **more: Any) -> None:
        """Has the owner decide on the one thing that a call wanted written."""
        (verdict,) = verdicts(answer)
        version = self.reviewer.get(f"/v1/reviews/{verdict['queue_id']}").json()["version"]
        done = self.reviewer.post(
            f"/v1/reviews/{verdict['queue_id']}/{how}", json={"version": version, **more}
        )
        assert done.status_code == 200, done.text

    def waiting(self) -> int:
        """How much waits for the owner."""
        return len(self.reviewer.get("/v1/reviews").json()["items"])

    def delivery(self, answer: CallToolResult) -> dict[str, Any]:
        """The newest delivery to the place of the one thing that a call wanted written."""
        (verdict,) = verdicts(answer)
        items = self.reviewer.get("/v1/deliveries", params={"limit": 200}).json()["items"]
        found: dict[str, Any] = next(item for item in items if item["place"] == verdict["place"])
        return found

    def write(self, title: str, content: str, **more: Any) -> CallToolResult:
        """Writes a note."""
        return self.caller.call("write_note", title=title, content=content, directory="plans", **more)


def command_of(process: psutil.Process) -> list[str]:
    """What a process was started with; nothing when it has ended."""
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, migrated_file: Path) -> Iterator[Site]:
    """A gate, on SQLite: the database does not matter here."""
    file = tmp_path_factory.mktemp("site") / "vouchgate.db"
    file.write_bytes(migrated_file.read_bytes())
    with open_site(f"sqlite:///{file}") as opened:
        yield opened


@pytest.fixture(scope="module")
def notes(site: Site, programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notes]:
    """One gate for the tests here, each with notes of its own. It speaks the newer protocol."""
    here, owner = tmp_path_factory.mktemp("gate"), site.owner()
    folder = here / "notes"
    folder.mkdir()
    (here / "gate.toml").write_text(CONFIG, "utf-8")
    token = site.token(Role.AGENT, owner, sources=ALL_SOURCES)[1]
    settings = {"VOUCHGATE_URL": site.running.url, "VOUCHGATE_TOKEN": token}
    command: list[str | Path] = [
        programs / "vouchgate",
        "mcp-gate",
        "--config",
        "gate.toml",
        "--poll",
        "0.2",
        "--",
        sys.executable,
        SERVER,
        folder,
    ]
    with connected(command, here / "errors", settings) as caller:
        yield Notes(caller, folder, site.reviewer(owner), site.caller(token))


def test_a_call_that_is_stored_is_made_and_answered_by_the_server(notes: Notes) -> None:
    answer = notes.write("Ports", "The queue listens on port 7411.", tags="a,b")
    assert states(answer) == ["written"]
    assert verdicts(answer)[0]["content"] == ("a,b\n\nThe queue listens on port 7411.")
    assert answer.structured_content == {"result": "# Created note\nfile_path: plans/Ports.md"}
    assert "# Created note" in words(answer)
    assert "Written: " in words(answer)
    assert notes.note("plans/Ports.md").endswith("\n\nThe queue listens on port 7411.")
    again = notes.write("Ports", "The queue listens on port 7411.", tags="a,b")
    assert states(again) == ["there"]


def test_what_an_agent_wrote_has_to_be_covered_and_what_the_gate_puts_there_has_not(
    tmp_path: Path, migrated_file: Path
) -> None:
    """The claims of calls that cite, sent as the gate sends them to a service that reads what they cite."""
    names = ("title", "directory", "tags", "project", "content")
    schema: dict[str, Any] = {"properties": {name: {} for name in names}}
    table = load("basic-memory", None).write["write_note"]
    assert isinstance(table, CallWrite)
    writer = CallWriter(Unasked(), {"write_note": table}, {"write_note": (schema, None)})
    repository = TestRepository(tmp_path / "repo")
    repository.commit("Decide", {"docs/adr/0001-ports.md": RECORD})
    (tmp_path / "vouchgate.db").write_bytes(migrated_file.read_bytes())
    cases: list[tuple[dict[str, Any], str]] = [
        ({"title": "ports", "directory": "plans"}, ""),
        ({"title": "The Porto depot", "directory": "plans"}, ""),
        ({"title": "The Faro depot", "directory": "plans"}, "faro"),
        ({"title": "ports", "directory": "plans", "tags": ["gateway", "9443"]}, "9443"),
        ({"title": "closes-soon", "directory": "all-our-depots"}, "closes-soon"),
    ]
    with open_site(f"sqlite:///{tmp_path / 'vouchgate.db'}", repos=[repository.path]) as vouching:
        for arguments, uncovered in cases:
            arguments["content"] = "The gateway listens on port 8443, as ADR-0001 says."
            (sent,) = asyncio.run(writer.plan("write_note", arguments)).writes
            owner = vouching.owner()
            delivery = {"sink": owner, "place": sent.place, "op": sent.op.value, "data": sent.data}
            body = {"content": sent.content, "delivery": delivery}
            answer = vouching.agent(owner, sources=frozenset()).post("/v1/claims", json=body).json()
            assert answer["outcome"] == ("queued" if uncovered else "stored"), answer["reason"]
            assert uncovered in answer["reason"].lower(), answer["reason"]


def test_what_is_blocked_or_waits_is_in_no_file(notes: Notes) -> None:
    guess = notes.write("Guess", "I think the cache is too small.")
    hidden = notes.write("Colours", "The menu is blue.", note_type="I think it should be green")
    titled = notes.write("I guess nobody reads titles", "The footer is grey.")
    assert [states(one) for one in (guess, hidden, titled)] == [["blocked"]] * 3
    waits = notes.write("Restart", "The importer may restart at night.")
    assert states(waits) == ["queued"]
    assert waits.is_error is False
    assert "waits for its owner" in words(waits)
    for text in ("too small", "menu is blue", "be green", "nobody reads", "at night"):
        assert text not in notes.texts()
    notes.settle(waits)
    eventually(lambda: "at night" in notes.texts())
    eventually(lambda: notes.delivery(waits)["state"] == "delivered")
    assert notes.texts().count("at night") == 1


def test_who_sends_deliveries_past_the_gate_gets_no_call_made_that_was_not_checked(notes: Notes) -> None:
    (notes.folder / "plans").mkdir(exist_ok=True)
    (notes.folder / "plans/Relic.md").write_text("---\ntags:\n---\n\nOlder than the gate", "utf-8")
    (notes.folder / "plans/Map.canvas").write_text("An old map", "utf-8")
    old, unseen = {"title": "Relic", "directory": "plans"}, {"title": "Faro may close", "directory": "plans"}
    over = {**old, "overwrite": True}

    def send(place: str, content: str, tool: str, arguments: dict[str, Any], **more: Any) -> None:
        data = {"tool": tool, "arguments": arguments, **more}
        body = {"content": content, "memory_type": "fact", "source": "user"}
        delivery = {"sink": "our-notes", "place": place, "data": data}
        answer = notes.agent.post("/v1/claims", json=body | {"delivery": delivery})
        assert answer.status_code == 201, answer.text

    send("note/plans/Faro may close.md", "The lamp is lit at six.", "write_note", unseen)
    send(
        "1",
        "The lamps are lit.",
        "write_note",
        {**unseen, "title": "Lit"},
    )
    send("note/plans/Relic.md", "The oven is hot at nine.", "write_note", over)
    drawn = {"title": "Map", "directory": "plans", "edges": []}
    send("canvas/plans/Map.canvas", '[]\n\n[{"text": "Harbours"}]', "canvas", drawn, text="json")
    wanted = {"note/plans/Faro may close.md", "1", "note/plans/Relic.md", "canvas/plans/Map.canvas"}

    def dead() -> set[str]:
        items = notes.reviewer.get("/v1/deliveries", params={"state": "dead", "limit": 200}).json()["items"]
        return wanted & {item["place"] for item in items}

    eventually(lambda: dead() == wanted)
    assert notes.note("plans/Relic.md").endswith("Older than the gate")
    assert notes.note("plans/Map.canvas") == "An old map"
    for text in ("Faro", "lamp", "oven", "Harbours"):
        assert text not in notes.texts()


def test_no_escape_of_json_hides_a_word_from_the_checks(notes: Notes) -> None:
    """In the JSON of a list a tab is `\\t`, and nobody finds "I think" in `I\\tthink`."""
    hidden = notes.write("Menu", "The menu has soups.", tags=["soup", "I\tthink it should be red"])
    drawn = [{"id": "a", "text": "I\nthink the harbour is too small"}]
    canvas = notes.caller.call("canvas", nodes=drawn, edges=[], title="Harbour", directory="plans")
    assert [states(one) for one in (hidden, canvas)] == [["blocked"]] * 2
    drawn = [{"id": "a", "text": 'The harbour\nhas two "basins".'}]
    canvas = notes.caller.call("canvas", nodes=drawn, edges=[], title="Harbour", directory="plans")
    assert states(canvas) == ["written"]


def test_the_owner_may_edit_the_text_and_nothing_above_it(notes: Notes) -> None:
    one, two = (
        notes.write("Backup", "Backups may be weekly."),
        notes.write("Copies", "Copies may be hourly.", tags="a,b"),
    )
    notes.settle(
        one,
        content=verdicts(one)[0]["content"].replace("Backups may be weekly", "Backups are made on Monday"),
    )
    notes.settle(two, content=verdicts(two)[0]["content"].replace("a,b", "a,c"))
    eventually(lambda: notes.delivery(two)["state"] == "dead")
    assert notes.note("plans/Backup.md").endswith("\n\nBackups are made on Monday.")
    assert "above the text" in notes.delivery(two)["last_error"]
    assert "hourly" not in notes.texts()


def test_another_text_for_a_note_replaces_it_only_when_the_owner_agrees(notes: Notes) -> None:
    assert states(notes.write("Sizes", "A parcel has at most two metres.")) == ["written"]
    other = notes.write("Sizes", "Parcels are no longer than a metre and a half.")
    assert states(other) == ["queued"]
    assert verdicts(other)[0]["reason"] == "Changes what is stored"
    assert "two metres" in notes.note("plans/Sizes.md")
    notes.settle(other, supersede=True)
    eventually(lambda: "metre and a half" in notes.note("plans/Sizes.md"))
    assert "two metres" not in notes.note("plans/Sizes.md")


def test_what_would_take_text_away_unasked_is_refused(notes: Notes) -> None:
    notes.write("Hours", "The shop opens at nine.")
    waiting, before = notes.waiting(), notes.texts()
    refused = [
        notes.write("Hours", "The shop opens at ten.", overwrite=True),
        notes.caller.call(
            "edit_note", identifier="plans/Hours", operation="find_replace", content="ten", find_text="nine"
        ),
        notes.caller.call("delete_note", identifier="plans", is_directory=True),
        notes.caller.call("write_note", title="Hours", content="No directory."),
        notes.caller.call("delete_project", project_name="main"),
    ]
    assert all(answer.is_error for answer in refused)
    assert "overwrite = true" in words(refused[0])
    assert "find_replace" in words(refused[1])
    assert "directory" in words(refused[3])
    assert 'pass = ["delete_project"]' in words(refused[4])
    assert (notes.waiting(), notes.texts()) == (waiting, before)


def test_adding_to_a_note_and_moving_it_go_through_the_gate(notes: Notes) -> None:
    notes.write("Staff", "Ada leads the depot.")
    added = notes.caller.call(
        "edit_note", identifier="plans/Staff", operation="append", content="Grace leads the fleet."
    )
    assert states(added) == ["written"], str(verdicts(added))
    assert added.structured_content == {"result": "# Edited note (append)"}
    vague = notes.caller.call(
        "edit_note", identifier="plans/Staff", operation="append", content="Perhaps Alan joins."
    )
    assert states(vague)[0] in ("queued", "blocked")
    assert notes.note("plans/Staff.md").endswith("Ada leads the depot.\nGrace leads the fleet.")
    moved = notes.caller.call("move_note", identifier="plans/Staff", destination_path="people/Staff.md")
    assert states(moved) == ["written"]
    assert "Grace" in notes.note("people/Staff.md")


def test_a_removal_shows_the_note_and_takes_that_note_only(notes: Notes) -> None:
    for title in ("Old", "Older"):
        notes.write(title, f"The {title.lower()} gate is painted green.")
    gone = notes.caller.call("delete_note", identifier="plans/Old")
    kept = notes.caller.call("delete_note", identifier="plans/Older")
    assert states(gone) == states(kept) == ["queued"]
    assert "The old gate is painted green." in verdicts(gone)[0]["content"]
    nothing = notes.caller.call("delete_note", identifier="plans/Oldest")
    assert verdicts(nothing) == []
    assert "nothing to remove" in words(nothing)
    file = notes.folder / "plans/Older.md"
    file.write_text(file.read_text("utf-8") + "\nSomebody added this by hand.", "utf-8")
    notes.settle(gone)
    notes.settle(kept)
    eventually(lambda: notes.delivery(kept)["state"] == "dead")
    assert not (notes.folder / "plans/Old.md").exists()
    assert "by hand" in notes.note("plans/Older.md")
    assert notes.reviewer.get("/v1/memories", params={"text": "The old gate"}).json()["items"] == []


def test_what_its_owner_takes_back_goes_too_and_nothing_beside_it(notes: Notes) -> None:
    one, two = notes.write("Keys", "Ada has the keys."), notes.write("Locks", "Grace changes the locks.")
    added = notes.caller.call(
        "edit_note", identifier="plans/Keys", operation="append", content="Eve has none."
    )
    file = notes.folder / "plans/Locks.md"
    file.write_text(file.read_text("utf-8") + "\nSomebody added this.", "utf-8")
    for answer in (added, one, two):
        memory = verdicts(answer)[0]["memory_id"]
        notes.reviewer.request("DELETE", f"/v1/memories/{memory}", json={"reason": "No."}).raise_for_status()
    eventually(lambda: notes.delivery(two)["state"] == "dead")
    assert "Eve has none" not in notes.texts()
    assert not (notes.folder / "plans/Keys.md").exists()
    assert "Grace changes the locks" in notes.texts()
    assert "more by now" in notes.delivery(two)["last_error"]


def test_a_canvas_is_shown_whole_and_replaces_none_unasked(notes: Notes) -> None:
    node = {"id": "1", "type": "text", "text": 'The "north" dock is closed.', "x": 0, "y": 0}
    drawn = notes.caller.call("canvas", nodes=[node], edges=[], title="Docks", directory="maps")
    assert states(drawn) == ["written"]
    assert "north" in verdicts(drawn)[0]["content"]
    assert "dock is closed" in notes.note("maps/Docks.canvas")
    (notes.folder / "maps/Mine.canvas").write_text("{}", "utf-8")
    over = notes.caller.call("canvas", nodes=[node], edges=[], title="Mine", directory="maps")
    assert over.is_error
    assert "already" in words(over)
    assert notes.note("maps/Mine.canvas") == "{}"


def test_what_the_configuration_passes_and_all_that_is_no_tool_goes_on(notes: Notes) -> None:
    assert notes.caller.call("count_notes").structured_content == {
        "result": len(list(notes.folder.rglob("*.md")))
    }
    portal, client = notes.caller.portal, notes.caller.client
    asked = portal.call(client.get_prompt, "summary", {"topic": "docks"})
    assert "Sum up what is known of docks." in str(asked.messages)
    templates = portal.call(client.list_resource_templates).resource_templates
    assert [one.uri_template for one in templates] == ["notes://{name}"]
    completed = portal.call(
        client.complete, PromptReference(name="summary"), {"name": "topic", "value": "ori"}
    )
    assert completed.completion.values == ["origins"]
    assert client.instructions == "Keep notes."
    started = [sys.executable, str(SERVER), str(notes.folder)]
    (server,) = [found for found in psutil.process_iter() if command_of(found) == started]
    held = server.environ()  # the token is not the server's to know
    assert held
    assert not [name for name in held if name.startswith("VOUCHGATE_")]
    told = notes.caller.errors.read_text("utf-8")
    assert "Refused, because the configuration does not name them: delete_project" in told


def test_it_does_not_start_with_what_it_must_not_be_given(site: Site, tmp_path: Path) -> None:
    url, owner = site.running.url, site.owner()

    def started(token: str, *options: str, status: int = 1) -> str:
        settings = {"VOUCHGATE_URL": url, "VOUCHGATE_TOKEN": token}
        return complaint(cli("mcp-gate", *options, "--", "cat", cwd=tmp_path, env=settings), status)

    preset = ("--preset", "knowledge-graph")
    assert "role reviewer" in started(site.token(Role.REVIEWER, owner)[1], *preset)
    several = site.token(Role.AGENT, owner, site.owner())[1]
    assert "--owner" in started(several, *preset)
    assert "not for the owner bob" in started(several, *preset, "--owner", "bob")
    assert "an agent's token is needed" in started("", *preset)
    assert "--preset" in started(several)
    (tmp_path / "gate.toml").write_text('sink = "x"\nwrites = 1\n[write]\n', "utf-8")
    assert "writes" in started(several, "--config", "gate.toml")
