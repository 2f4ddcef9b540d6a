"""The MCP client of the official SDK, called from tests that are no coroutines, and `vouchgate mcp` to talk to."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import httpx2
from anyio.from_thread import BlockingPortal, start_blocking_portal
from jsonschema import Draft202012Validator
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, Tool

from tests.acceptance.cli_program import clean_environment
from tests.running.processes import Program

Mode = Literal["auto", "legacy"]  # the handshake of 2026, or the one of before


@dataclass
class McpSession:
    """A client that is connected. `tools` are those it was told of."""

    portal: BlockingPortal
    client: Client
    tools: dict[str, Tool]

    def call(self, name: str, arguments: Mapping[str, Any]) -> CallToolResult:
        """The result of a tool, an error or not. The client itself refuses one that is not what the tool promised."""
        return self.portal.call(partial(self.client.call_tool, name, dict(arguments)))

    def result(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """What a tool answers, which must be no error, and be valid and told in words too."""
        return self.whole(tool, **arguments)[0]

    def whole(self, tool: str, /, **arguments: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """As `result`, and the `_meta` of the answer."""
        answer = self.call(tool, arguments)
        assert not answer.is_error, answer.content
        found: dict[str, Any] = answer.structured_content
        schema = self.tools[tool].output_schema
        assert schema is not None
        Draft202012Validator(schema).validate(found)
        (block,) = answer.content
        assert block.type == "text"
        assert json.loads(block.text) == _without_nulls(found)
        return found, dict(answer.meta or {})

    def error(self, tool: str, /, **arguments: Any) -> str:
        """The sentence of a tool that must fail, and say nothing else."""
        answer = self.call(tool, arguments)
        assert answer.is_error, answer.structured_content
        assert answer.structured_content is None
        (block,) = answer.content
        assert block.type == "text"
        assert block.text.endswith("."), block.text
        assert "Traceback" not in block.text
        return block.text


def _without_nulls(part: Any) -> Any:
    if isinstance(part, list):
        return [_without_nulls(item) for item in part]
    if isinstance(part, dict):
        return {name: _without_nulls(item) for name, item in part.items() if item is not None}
    return part


@contextmanager
def over_stdio(
    gate: str, token: str, *, mode: Mode = "auto", programs: Path | None = None
) -> Iterator[McpSession]:
    """A session with a `vouchgate mcp` that the client starts: in an interpreter that starts for it, or from a folder
    of programs that need not be loaded anew."""
    program = (sys.executable, "-m", "vouchgate.cli") if programs is None else (str(programs / "vouchgate"),)
    server = StdioServerParameters(
        command=program[0],
        args=[*program[1:], "mcp", "--url", gate],
        env=clean_environment({"VOUCHGATE_TOKEN": token}),
    )
    # Its own default is what stood there when it was loaded.
    with _session(Client(stdio_client(server, errlog=sys.stderr), mode=mode)) as session:
        yield session


@contextmanager
def over_http(url: str, token: str, *, mode: Mode = "auto") -> Iterator[McpSession]:
    """A session with a `vouchgate mcp --http` at a URL."""
    http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, trust_env=False)
    with _session(Client(streamable_http_client(url, http_client=http), mode=mode), http) as session:
        yield session


@contextmanager
def _session(client: Client, http: httpx2.AsyncClient | None = None) -> Iterator[McpSession]:
    with start_blocking_portal() as portal:
        try:
            with portal.wrap_async_context_manager(client) as connected:
                tools = portal.call(connected.list_tools).tools
                yield McpSession(portal, connected, {tool.name: tool for tool in tools})
        finally:
            if http is not None:
                portal.call(http.aclose)


@contextmanager
def http_server(gate: str, *options: str, environment: Mapping[str, str] | None = None) -> Iterator[str]:
    """The URL of a `vouchgate mcp --http` on a free port of this machine, stopped at the end."""
    theirs, ours = os.pipe()
    with os.fdopen(theirs, encoding="utf-8") as output, Path(os.devnull).open("r+b") as nothing:
        try:
            process = Program(
                ["mcp", "--url", gate, "--http", "0", *options],
                directory=Path.cwd(),
                environment=clean_environment(environment),
                streams=(nothing, ours, nothing),
            )
        finally:
            os.close(ours)
        try:
            said = output.readline()
            assert said.startswith("listening on "), said
            yield said.split()[-1]
            process.terminate()
            assert process.wait(120) == 0
        finally:
            process.kill()
