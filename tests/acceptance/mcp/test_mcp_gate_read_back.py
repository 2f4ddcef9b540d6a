"""`vouchgate mcp-gate` says Written only of what it has read back, and no answer that repeats the question counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from sqlalchemy import update

from tests.acceptance.site import Site, open_site
from tests.running.service import ALL_SOURCES
from tests.stores.gating import Caller, connected, eventually, states, words
from vouchgate.ingest.claims.people import Role
from vouchgate.storage.outgoing import deliveries
from vouchgate.storage.store import Store

WAYS = {
    "by_text": 'tool = "search", arguments = { query = "{content}" }',
    "by_text_missing": 'tool = "search", arguments = { query = "{content}" }, missing = "No memories found"',
    "by_listing": 'tool = "list_all", arguments = {}',
    "by_field": 'tool = "look_up", arguments = { query = "{content}" }, find = "memory.content"',
    "by_question": 'tool = "look_up", arguments = { query = "{content}" }, find = "query"',
    "by_wrapping": 'tool = "recall", arguments = { query = "{content}" }, find = "result"',
}
CONFIG = 'sink = "recall"\nsource = "user"\n' + "".join(
    f"""
[write.{tool}]
kind = "call"
text = "content"
place = "{tool}/{{#content}}"
read = {{ {read} }}
undo = {{ tool = "forget", arguments = {{ content = "{{content}}" }} }}
"""
    for tool, read in WAYS.items()
)
CONFIG += """
[write.by_nothing]
kind = "call"
place = "by_nothing/{#content}"
read = { tool = "recall", arguments = { query = "of it" } }
"""
CONFIG += "".join(
    f"""
[write.{tool}]
kind = "call"
text = "content"
place = "{tool}/{{#content}}"
read = false
"""
    for tool in ("by_breaking", "by_dying")
)


@dataclass
class Recall:
    """A gate of one owner in front of a server of this kind."""

    caller: Caller
    folder: Path
    keeps: bool
    reviewer: httpx.Client
    store: Store

    def calls(self, text: str) -> int:
        """How often the server was told a text."""
        file = self.folder / "calls"
        return file.read_text("utf-8").splitlines().count(text) if file.exists() else 0

    def state(self, tool: str) -> str:
        """Where the newest delivery of what this tool wrote stands."""
        items = self.reviewer.get("/v1/deliveries", params={"limit": 200}).json()["items"]
        found = next(item for item in items if item["place"].startswith(f"{tool}/"))
        return f"{found['op']} {found['state']}"

    def becomes(self, tool: str, state: str) -> bool:
        """Whether it stands there, which it comes to without the seconds that the service waits after each try."""
        now = update(deliveries.TABLE).values(due_at=datetime.now(UTC)).where(deliveries.TABLE.c.attempts > 0)
        self.store.writer.run([], lambda connection: connection.execute(now)).result()
        return self.state(tool) == state

    def memory(self, text: str) -> str:
        """The id of the memory that says it."""
        (found,) = self.reviewer.get("/v1/memories", params={"text": text}).json()["items"]
        memory_id: str = found["id"]
        return memory_id


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, migrated_file: Path) -> Iterator[Site]:
    file = tmp_path_factory.mktemp("site") / "vouchgate.db"
    file.write_bytes(migrated_file.read_bytes())
    with open_site(f"sqlite:///{file}") as opened:
        yield opened


@pytest.fixture(scope="module", params=["keep", "forget"])
def recall(
    request: pytest.FixtureRequest, site: Site, programs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Recall]:
    here, owner = tmp_path_factory.mktemp("gate"), site.owner()
    (here / "kept").mkdir()
    (here / "gate.toml").write_text(CONFIG, "utf-8")
    token = site.token(Role.AGENT, owner, sources=ALL_SOURCES)[1]
    settings = {"VOUCHGATE_URL": site.running.url, "VOUCHGATE_TOKEN": token}
    server: list[str | Path] = [programs / "recall", "--breaks", here / "kept", request.param]
    command = [programs / "vouchgate", "mcp-gate", "--config", "gate.toml", "--poll", "0.2", "--", *server]
    with connected(command, here / "errors", settings) as caller:
        yield Recall(caller, here / "kept", request.param == "keep", site.reviewer(owner), site.store)


@pytest.mark.parametrize("tool", ["by_text", "by_question", "by_wrapping", "by_nothing"])
def test_what_only_repeats_the_question_confirms_nothing(recall: Recall, tool: str) -> None:
    text = f"The tide mill of {tool} grinds 40 sacks a day."
    answer = recall.caller.call(tool, content=text)
    assert states(answer) == ["failed"], words(answer)
    assert answer.is_error
    assert "Written" not in words(answer)
    assert "Sent, not confirmed" in words(answer)
    assert recall.state(tool) == "put dead"
    assert recall.calls(text) == 1  # sent again it might be there twice
    assert len(list(recall.folder.glob("*.memory"))) > 0 or not recall.keeps


@pytest.mark.parametrize("recall", ["keep"], indirect=True)
@pytest.mark.parametrize("tool", ["by_breaking", "by_dying"])
def test_what_cannot_be_read_back_is_sent_once_whatever_is_answered(recall: Recall, tool: str) -> None:
    text = f"The sail loft of {tool} has nine windows."
    answer = recall.caller.call(tool, content=text)
    assert states(answer) == ["failed"]
    assert "Sent, not confirmed" in words(answer)
    assert recall.state(tool) == "put dead"
    assert recall.calls(text) == 1
    again = recall.caller.call(tool, content=text)
    assert (states(again), again.is_error, recall.calls(text)) == (["failed"], True, 1)
    assert "Sent, not confirmed" in words(again)


@pytest.mark.parametrize("tool", ["by_listing", "by_field"])
def test_what_a_listing_or_a_field_shows_is_written_and_nothing_else(recall: Recall, tool: str) -> None:
    text = f"The rope walk of {tool} is 300 metres long."
    answer = recall.caller.call(tool, content=text)
    if recall.keeps:
        assert states(answer) == ["written"], words(answer)
        assert recall.state(tool) == "put delivered"
        assert recall.calls(text) == 1
    else:
        assert states(answer) == ["failed"], words(answer)
        assert "not there when it is read back" in words(answer)
        again = recall.caller.call(tool, content=text)
        assert states(again) in (["on_its_way"], ["failed"]), "which it comes to with the third try"
        assert "taken out" not in words(again)
        eventually(lambda: recall.becomes(tool, "put dead"))
        assert recall.calls(text) == 3


def test_what_cannot_be_confirmed_is_not_taken_back_in_silence(recall: Recall) -> None:
    text = "The ice house holds 20 tons."
    recall.caller.call("by_text", content=text)
    gone = recall.reviewer.delete(f"/v1/memories/{recall.memory(text)}")
    assert gone.status_code == 200
    eventually(lambda: recall.becomes("by_text", "remove dead"))


@pytest.mark.parametrize("recall", ["keep"], indirect=True)
def test_what_was_confirmed_is_taken_back(recall: Recall) -> None:
    text = "The boat house holds 12 boats."
    recall.caller.call("by_field", content=text)
    assert recall.reviewer.delete(f"/v1/memories/{recall.memory(text)}").status_code == 200
    eventually(lambda: recall.becomes("by_field", "remove delivered"))
    assert all(text not in file.read_text("utf-8") for file in recall.folder.glob("*.memory"))


def test_an_answer_that_says_there_is_nothing_is_believed_though_it_is_no_error(recall: Recall) -> None:
    text = "The lime kiln burns for 30 hours."
    answer = recall.caller.call("by_text_missing", content=text)
    assert states(answer) == ["failed"], words(answer)
    expected = "Sent, not confirmed" if recall.keeps else "not there when it is read back"
    assert expected in words(answer)
