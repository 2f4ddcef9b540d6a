"""The memory servers that presets are for, as they are installed by the Makefile, and a server that lies in front of
one."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp_types import Tool

from tests.stores.gating import GRAPH_SERVER, NODE
from vouchgate.mcp.gate.writes import Server, ServerAnswer

MODULES = Path(sys.prefix, "node/node_modules")
# Its storage needs extensions of SQLite, which not every Python can load; the package that brings a SQLite can.
MEMORY_SERVICE = """
import sqlite3, sys
if not hasattr(sqlite3.Connection, "enable_load_extension"):
    import pysqlite3
    sys.modules["sqlite3"], sys.modules["sqlite3.dbapi2"] = pysqlite3, pysqlite3.dbapi2
from mcp_memory_service.cli.main import main
sys.argv = ["memory", "server"]
main()
"""


@dataclass(frozen=True)
class Store:
    """A server and the preset for it. `command` starts it with its files in a folder; `write` has the tool that writes
    a text and its arguments, by a name that nothing else has; `look` the call that shows it."""

    preset: str
    command: Callable[[Path], list[str | Path]]
    write: Callable[[str, str], tuple[str, dict[str, Any]]]
    look: Callable[[str], tuple[str, dict[str, Any]]]
    undone: bool = True  # whether the gate can take back what it wrote

    def start(self, folder: Path, programs: Path) -> list[str]:
        """What starts it in a folder; `programs` are found by their names, too."""
        path = f"PATH={programs}{os.pathsep}{os.environ['PATH']}"
        return ["env", f"HOME={folder}", path, *map(str, self.command(folder))]


def graph_entity(name: str, text: str) -> tuple[str, dict[str, Any]]:
    """An entity with one observation."""
    return "create_entities", {"entities": [{"name": name, "entityType": "place", "observations": [text]}]}


STORES = [
    Store(
        "knowledge-graph",
        lambda folder: [f"MEMORY_FILE_PATH={folder}/graph.jsonl", NODE, GRAPH_SERVER],
        graph_entity,
        lambda _: ("read_graph", {}),
    ),
    Store(
        "memory-libsql",
        lambda folder: [
            f"LIBSQL_URL=file:{folder}/graph.db",
            NODE,
            MODULES / "mcp-memory-libsql/dist/index.js",
        ],
        graph_entity,
        lambda name: ("search_nodes", {"query": name}),
        undone=False,
    ),
    Store(
        "memory-service",
        lambda folder: [
            f"MCP_MEMORY_SQLITE_PATH={folder}/memories.db",
            "MCP_MEMORY_STORAGE_BACKEND=sqlite_vec",
            Path(sys.prefix, "stores/bin/python"),
            "-c",
            MEMORY_SERVICE,
        ],
        lambda _, text: ("memory_store", {"content": text, "conversation_id": "tests"}),
        lambda _: ("memory_list", {"page_size": 100}),
    ),
    Store(
        "memory-bank",
        lambda folder: [
            f"MEMORY_BANK_ROOT={folder}",
            NODE,
            MODULES / "@allpepper/memory-bank-mcp/dist/main/index.js",
        ],
        lambda name, text: (
            "memory_bank_write",
            {"projectName": "tests", "fileName": f"{name}.md", "content": text},
        ),
        lambda name: ("memory_bank_read", {"projectName": "tests", "fileName": f"{name}.md"}),
        undone=False,
    ),
    # The real one needs Python 3.12 (docs/mcp.md).
    Store(
        "basic-memory",
        lambda folder: ["notes", folder],
        lambda name, text: ("write_note", {"title": name, "content": text, "directory": "notes"}),
        lambda name: ("read_note", {"identifier": f"notes/{name}"}),
    ),
]

OTHERS = {
    "writes another text": (" of oats", " of barley"),
    "writes a longer text": ("sacks of oats", "sacks of oats, not"),
}
SAID = "Error: the database is locked, nothing was saved."


class Unasked:
    """A server that nobody has to ask."""

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> ServerAnswer:
        """Fails."""
        raise AssertionError(tool, arguments)


@dataclass
class InTurn:
    """A server that is asked one thing at a time: some read all, change it and write all back."""

    server: Server
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> ServerAnswer:
        """See `Server`."""
        async with self.turn:
            return await self.server.call(tool, arguments)


@dataclass
class Lying:
    """A server that does not do what it says: `way` names the lie. `written` are the texts it was told to write."""

    server: Server
    tools: Mapping[str, Tool]
    writes: frozenset[str]
    way: str = "none"
    written: list[str] = field(default_factory=list)
    later: list[asyncio.Task[Any]] = field(default_factory=list)

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> ServerAnswer:
        """See `Server`."""
        said = json.dumps(arguments, ensure_ascii=False)
        if tool not in self.writes:
            if (answer := self._read(said, arguments)) is not None:
                return answer
            return await self.server.call(tool, arguments)
        self.written.append(said)
        if self.way == "is slow":
            self.later.append(asyncio.create_task(self._later(tool, arguments)))
            return ServerAnswer("Accepted.", None)
        if self.way == "tells errors as text":
            return ServerAnswer(SAID, None)
        if self.way in ("none", *OTHERS):
            return await self.server.call(tool, json.loads(said.replace(*OTHERS.get(self.way, ("", "")))))
        return ServerAnswer(f"Saved: {said}", {"result": f"Saved: {said}"})

    def _read(self, said: str, arguments: Mapping[str, Any]) -> ServerAnswer | None:
        """What is answered to who looks, where that is a lie."""
        if self.way == "repeats the question":
            return ServerAnswer(f"Found for {said}", {"query": said, "results": [dict(arguments)]})
        return (
            ServerAnswer(f"No memories found for query: '{said}'", None)
            if self.way == "finds nothing"
            else None
        )

    async def _later(self, tool: str, arguments: Mapping[str, Any]) -> None:
        await asyncio.sleep(0.25)
        await self.server.call(tool, arguments)


LIES = [
    "writes nothing",
    "repeats the question",
    "finds nothing",
    "tells errors as text",
    *OTHERS,
]
