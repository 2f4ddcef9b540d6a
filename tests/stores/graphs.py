"""A gate in front of the real knowledge-graph memory server, for the tests of a module."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from mcp_types import CallToolResult, ResourceUpdatedNotification

from tests.acceptance.site import Site
from tests.running.waiting import names
from tests.stores.gating import GATE, GRAPH_SERVER, NODE, Caller, Way, connected, way_to
from vouchgate.ingest.claims.people import Role

MADE_UP = names(7)
PORTS = iter(range(20_000, 60_000))


@dataclass
class Graph:
    """A gate of one owner in front of a memory file."""

    caller: Caller
    file: Path
    owner: str
    reviewer: httpx.Client
    agent: httpx.Client
    way: Way
    start: Callable[..., AbstractContextManager[Caller]]
    database: Path
    updated: list[str] = field(default_factory=list)  # resources that the server said have changed

    def bytes(self) -> bytes:
        """What is on disk."""
        return self.file.read_bytes() if self.file.exists() else b""

    def entity(self, name: str) -> dict[str, Any] | None:
        """An entity in the file."""
        lines = [json.loads(line) for line in self.bytes().decode().splitlines()]
        found = [one for one in lines if one["type"] == "entity" and one["name"] == name]
        assert len(found) <= 1, found
        return found[0] if found else None

    def relations(self, name: str) -> list[dict[str, Any]]:
        """The relations of an entity in the file."""
        lines = [json.loads(line) for line in self.bytes().decode().splitlines()]
        return [one for one in lines if one["type"] == "relation" and name in (one["from"], one["to"])]

    def settle(self, queue_id: str, how: str = "approve", **more: Any) -> None:
        """Has the owner decide."""
        version = self.reviewer.get(f"/v1/reviews/{queue_id}").json()["version"]
        answer = self.reviewer.post(f"/v1/reviews/{queue_id}/{how}", json={"version": version, **more})
        assert answer.status_code == 200, answer.text

    def hurry(self) -> None:
        """Has what was tried or leased be due now."""
        with sqlite3.connect(self.database, timeout=30) as database:
            database.execute(
                "UPDATE delivery SET due_at = '2020-01-01 00:00:00.000000' WHERE state = 'waiting'"
            )
        database.close()

    def delivery(self, place: str) -> dict[str, Any]:
        """The newest delivery to a place."""
        items = self.reviewer.get("/v1/deliveries", params={"limit": 200}).json()["items"]
        found: dict[str, Any] = next(item for item in items if item["place"] == place)
        return found


@contextmanager
def open_graph(site: Site, folder: Path) -> Iterator[Graph]:
    """A gate for an owner of its own, with the memory file in a folder. Its client speaks the older protocol."""
    file, owner, updated = folder / "memory.jsonl", site.owner(), list[str]()
    token = site.token(Role.AGENT, owner)[1]

    async def heard(message: object) -> None:
        if isinstance(message, ResourceUpdatedNotification):
            updated.append(str(message.params.uri))

    with way_to(site.running.url) as way:
        settings = {"VOUCHGATE_URL": way.url, "VOUCHGATE_TOKEN": token, "MEMORY_FILE_PATH": str(file)}

        def start(*, gate: Sequence[str | Path] = GATE, mode: str = "auto") -> AbstractContextManager[Caller]:
            given = ["--preset", "knowledge-graph", "--poll", "0.1", "--"]
            command: list[str | Path] = [*gate, *given, NODE, GRAPH_SERVER]
            return connected(command, folder / "errors", settings, mode=mode, handler=heard)

        with start(mode="legacy") as caller:
            yield Graph(
                caller,
                file,
                owner,
                site.reviewer(owner),
                site.caller(token),
                way,
                start,
                Path(site.url.removeprefix("sqlite:///")),
                updated,
            )


def observe(graph: Graph, name: str, *observations: str, caller: Caller | None = None) -> CallToolResult:
    """Creates an entity with these observations."""
    entity = {"name": name, "entityType": "service", "observations": list(observations)}
    return (caller or graph.caller).call("create_entities", entities=[entity])


def ungrounded(name: str) -> str:
    """Something that nothing vouches for, unlike all else here."""
    return (
        f"The {name} service keeps its {next(MADE_UP)} records on port {next(PORTS)}, beside {next(MADE_UP)}."
    )
