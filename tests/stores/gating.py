"""A real `vouchgate mcp-gate` in front of a real MCP server, called by real MCP clients."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import httpx
import psutil
from anyio.from_thread import BlockingPortal, start_blocking_portal
from jsonschema import Draft202012Validator
from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.stdio import stdio_client
from mcp_types import CallToolResult, TextContent, Tool

from tests.web import ManyAtOnce

NODE = Path(sys.prefix) / "bin" / "node"
GRAPH_SERVER = (
    Path(sys.prefix)
    / "node/node_modules/@modelcontextprotocol/server-memory/dist/index.js"  # see the Makefile
)
PATIENCE = 120  # seconds until what an owner decided must have come about
GATE = (sys.executable, "-m", "vouchgate.cli", "mcp-gate")


def environment(**more: str) -> dict[str, str]:
    """What programs get here: enough to run, and nothing of whoever runs the tests."""
    kept = {name: value for name, value in os.environ.items() if name in ("HOME", "PATH", "TMPDIR", "LANG")}
    return {**kept, **more}


@dataclass
class Caller:
    """An MCP client that is connected to a program over its standard streams."""

    portal: BlockingPortal
    client: Client
    tools: dict[str, Tool]
    errors: Path  # what the program said on standard error

    def call(self, tool: str, /, **arguments: Any) -> CallToolResult:
        """One call; what comes back must keep to what the tool promises."""
        return self.many([(tool, arguments)])[0]

    def many(self, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> list[CallToolResult]:
        """Calls that are under way together."""

        async def together() -> list[CallToolResult]:
            return list(
                await asyncio.gather(*(self.client.call_tool(name, dict(sent)) for name, sent in calls))
            )

        answers: list[CallToolResult] = self.portal.call(together)
        for (name, _), answer in zip(calls, answers, strict=True):
            promised = self.tools[name].output_schema if name in self.tools else None
            if promised is not None and not answer.is_error:
                Draft202012Validator(promised).validate(answer.structured_content)
        return answers


@contextmanager
def connected(
    command: Sequence[str | Path],
    errors: Path,
    settings: Mapping[str, str],
    *,
    mode: Any = "auto",
    handler: Any = None,
) -> Iterator[Caller]:
    """Starts a program that speaks MCP, in the folder of `errors`, where it keeps what it remembers too, and ends it
    with the block."""
    program, *arguments = map(str, command)
    with start_blocking_portal("asyncio") as portal, errors.open("a") as log:
        parameters = StdioServerParameters(
            command=program,
            args=arguments,
            env=environment(**settings, XDG_STATE_HOME=str(errors.parent)),
            cwd=errors.parent,
        )
        opened = Client(stdio_client(parameters, errlog=log), mode=mode, message_handler=handler)
        with portal.wrap_async_context_manager(opened) as client:
            listed = portal.call(client.list_tools)
            yield Caller(portal, client, {tool.name: tool for tool in listed.tools}, errors)


def words(answer: CallToolResult) -> str:
    """All text of an answer."""
    return "\n".join(block.text for block in answer.content if isinstance(block, TextContent))


def verdicts(answer: CallToolResult) -> list[dict[str, Any]]:
    """What became of each thing that the call wanted written."""
    found: list[dict[str, Any]] = (answer.meta or {}).get("vouchgate/verdicts", [])
    return found


def states(answer: CallToolResult) -> list[str]:
    """The same, a word each."""
    return [verdict["state"] for verdict in verdicts(answer)]


def running(*named: str) -> list[psutil.Process]:
    """The programs below this process whose command line has all of these in it."""
    found = list[psutil.Process]()
    for process in psutil.Process().children(recursive=True):
        try:
            line = process.cmdline()
        except psutil.Error:
            continue
        if all(any(name in part for part in line) for name in named):
            found.append(process)
    return found


@dataclass
class Way:
    """A way to the gate that a test watches and can close: `on(path)` says of each request whether it goes on."""

    url: str = ""
    on: Callable[[str], bool] = field(default=lambda _: True)


@contextmanager
def way_to(address: str) -> Iterator[Way]:
    """Passes requests on to the service at this address. One that may not go on gets no answer."""
    way = Way()
    onward = httpx.Client(base_url=address, timeout=120, trust_env=False)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def _pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if not way.on(self.path):
                self.close_connection = True
                return
            kept = {name: value for name, value in self.headers.items() if name.lower() != "host"}
            answer = onward.request(self.command, self.path, headers=kept, content=body)
            try:
                self.send_response(answer.status_code)
                for name in ("Content-Type", "Retry-After"):
                    if name in answer.headers:
                        self.send_header(name, answer.headers[name])
                self.send_header("Content-Length", str(len(answer.content)))
                self.end_headers()
                self.wfile.write(answer.content)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        do_GET = do_POST = _pass_on  # noqa: N815  (the names that http.server calls)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Says nothing."""

    server = ManyAtOnce(("127.0.0.1", 0), Handler)
    way.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield way
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        onward.close()


def eventually(holds: Callable[[], object]) -> None:
    """Waits until something is so."""
    until = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < until, "it has not become so"
        time.sleep(0.05)
