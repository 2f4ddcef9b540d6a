"""`vouchgate mcp-gate`: a server that is another server, but for the tools that write.

Tools, resources, prompts, completions, subscriptions, notifications and errors are passed on both ways (`fastmcp`'s
proxy, and what it leaves out in `gate_relay`). A tool that writes goes through `MemoryGate`; one that the configuration
does not name is refused, and one that is not as it was pinned is withheld (`pins`), so that what a newer version of the
server adds or changes is no way round.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import anyio
from anyio import ClosedResourceError
from fastmcp import FastMCP
from fastmcp.client.transports import StdioTransport
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.server.providers.proxy import ProxyClient, ProxyMetadataMiddleware, ProxyProvider
from fastmcp.tools.base import Tool, ToolResult
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolRequestParams, ListToolsRequest, TextContent
from mcp_types import Tool as ListedTool
from pydantic import ValidationError

from vouchgate.client import AsyncClient, VouchgateError
from vouchgate.mcp.gate.config import Config
from vouchgate.mcp.gate.memory_gate import MemoryGate
from vouchgate.mcp.gate.owner import Owner, UnusableToken
from vouchgate.mcp.gate.pins import Pins
from vouchgate.mcp.gate.relay import Relay
from vouchgate.mcp.gate.replies import GatedAnswer, as_text
from vouchgate.mcp.gate.writes import ServerAnswer, ServerDeclined, ServerFailed, ServerLost

VERDICTS = "vouchgate/verdicts"  # in an answer's `_meta`
GRACE = 5.0  # seconds for what is being written when the client leaves
SECONDS = 60.0  # for one call of the server that the gate makes itself
TAUGHT = (
    "Each text goes through Vouchgate before it is written: state one thing each, plainly, and cite in the text what"
    " says so (an ADR, commit, issue or URL). What nothing vouches for waits for its owner."
)
TAUGHT_REMOVAL = "What is to go waits for its owner, who is asked by Vouchgate."

Say = Callable[[str], None]


class PinnedClient(ProxyClient[StdioTransport]):
    """A client of the server behind to which it has those tools alone that are as they were pinned. `schemas` has their
    input and output schemas as they were listed last."""

    def __init__(self, transport: StdioTransport, relay: Relay, pins: Pins) -> None:
        # "auto" asks for the newest protocol first and falls back to the handshake that older servers speak.
        super().__init__(transport, mode="auto", message_handler=relay)
        self.pins, self.schemas = pins, dict[str, Any]()

    async def list_tools(self, *arguments: Any, **options: Any) -> list[ListedTool]:
        """All but those that are withheld. Raises PinsUnusable."""
        tools = self.pins.admit(await super().list_tools(*arguments, **options))
        self.schemas.update({tool.name: (tool.input_schema, tool.output_schema) for tool in tools})
        return tools


class Downstream:
    """The server behind the gate: one process, started again when it has ended. It is not given our settings, so that
    it does not hold the token."""

    def __init__(self, command: Sequence[str], relay: Relay, pins: Pins) -> None:
        program, *arguments = command
        environment = {name: value for name, value in os.environ.items() if not name.startswith("VOUCHGATE_")}
        self.transport = StdioTransport(program, arguments, env=environment, cwd=str(Path.cwd()))
        self.client = PinnedClient(self.transport, relay, pins)
        self.pins = pins
        relay.client = self.client

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> ServerAnswer:
        """Calls a tool that is as it was pinned: it is listed before each call, as the server may have been started
        again, or have changed. Raises Declined when it answers with an error, Lost when it does not answer, and
        Failed when nothing was sent or the tool is withheld."""
        sent = False
        try:
            with _server_deadline():
                async with self.client:
                    await self.client.list_tools()
                    if (withheld := self.pins.refusal(tool)) is not None:
                        raise ServerFailed(withheld)
                    sent = True
                    result = await self.client.call_tool_mcp(tool, dict(arguments))
        except ServerFailed as error:
            raise ServerLost(str(error)) if sent else error from None
        text = "\n".join(block.text for block in result.content if isinstance(block, TextContent))
        if result.is_error:
            raise ServerDeclined(f"The memory server refused {tool}: {text}")
        return ServerAnswer(text, result.structured_content, tuple(result.content))

    async def tools(self) -> list[ListedTool]:
        """Its tools, without those that are withheld. Raises Failed."""
        with _server_deadline():
            async with self.client:
                return await self.client.list_tools()

    async def all_tools(self) -> list[ListedTool]:
        """Its tools, as it lists them. Raises Failed."""
        with _server_deadline():
            async with self.client:
                return await ProxyClient.list_tools(self.client)


@contextmanager
def _server_deadline() -> Iterator[None]:
    """Bounds the time of what is asked of the server, and makes of every way not to answer a Failed."""
    try:
        with anyio.fail_after(SECONDS):
            yield
    except (MCPError, RuntimeError, OSError, ClosedResourceError, ValidationError) as error:
        first = (str(error).splitlines() or [""])[0] or type(error).__name__
        raise ServerFailed(f"The memory server does not answer ({first}).") from error


class GateMiddleware(Middleware):
    """Decides of each call of a tool whether it is passed on, goes through the gate, or is refused."""

    def __init__(self, gate: MemoryGate, config: Config, downstream: Downstream, relay: Relay) -> None:
        self._gate, self._config, self._downstream, self._relay = gate, config, downstream, relay

    async def on_message(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Remembers whom to pass notifications on to."""
        if context.fastmcp_context is not None and context.fastmcp_context.request_context is not None:
            self._relay.front = context.fastmcp_context.session
        return await call_next(context)

    async def on_list_tools(
        self,
        context: MiddlewareContext[ListToolsRequest],
        call_next: CallNext[ListToolsRequest, Sequence[Tool]],
    ) -> Sequence[Tool]:
        """Lists all that are not withheld, and says of those that write what to expect."""
        return [self._taught(tool) for tool in await call_next(context)]

    def _taught(self, tool: Tool) -> Tool:
        write = self._config.write.get(tool.name)
        if write is None:
            return tool
        removes = write.kind.startswith("remove") or getattr(write, "op", None) == "remove"
        said = f"{tool.description or tool.name}\n\n{TAUGHT_REMOVAL if removes else TAUGHT}"
        return tool.model_copy(update={"description": said})

    async def on_call_tool(
        self,
        context: MiddlewareContext[CallToolRequestParams],
        call_next: CallNext[CallToolRequestParams, ToolResult],
    ) -> ToolResult:
        """Passes it on, gates it, or refuses it."""
        name, arguments = context.message.name, context.message.arguments or {}
        gated = name in self._config.write
        try:
            listed = {tool.name for tool in await self._downstream.tools()}
        except ServerFailed as error:
            if not gated:
                return _refusal(str(error))
            listed = set(
                self._downstream.client.schemas
            )  # a write waits in the outbox until the server answers
        if (withheld := self._downstream.pins.refusal(name)) is not None:
            return _refusal(withheld)
        if name not in listed:
            return _refusal(f"Unknown tool: {name!r}")
        if gated:
            return result_of(await self._gate.write(name, arguments))
        if name not in self._config.passed:
            return _refusal(
                f"Vouchgate refuses {name}: the configuration of vouchgate mcp-gate does not name it, and what the"
                f" server says of it is not enough. Whoever runs it can allow it there, if it only reads, with"
                f' pass = ["{name}"], or have it checked, with [write.{name}].'
            )
        return await call_next(context)


def _refusal(words: str) -> ToolResult:
    return ToolResult(content=[TextContent(type="text", text=words)], is_error=True)


def result_of(told: GatedAnswer) -> ToolResult:
    """The answer to a gated call: what the server said or would have said, what became of each thing, in words and in
    `_meta`."""
    blocks: list[Any] = [] if told.answer is None else list(told.answer.blocks)
    named = told.structured is not None and told.words in told.structured.values()
    if told.structured is not None and not (blocks or named or told.is_error):
        blocks.append(TextContent(type="text", text=as_text(told.structured)))
    blocks.append(TextContent(type="text", text=told.words))
    return ToolResult(
        content=blocks,
        structured_content=told.structured,
        meta={VERDICTS: list(told.verdicts)} if told.verdicts else None,
        is_error=told.is_error,
    )


async def run(
    client: AsyncClient,
    config: Config,
    command: Sequence[str],
    *,
    owner: Owner,
    pins: Pins,
    poll: float,
    say: Say,
) -> None:
    """Serves over standard input and output until the client closes it. What owners approve meanwhile is written
    every `poll` seconds. `say` is for the person who runs it. Raises Failed when the server cannot be started."""
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    relay = Relay()
    downstream = Downstream(command, relay, pins)
    gate = MemoryGate(client, downstream, config, downstream.client.schemas, owner)
    try:
        tools = await downstream.all_tools()
        pins.pin_first(tools)
        _say_what_is_refused(tools, config, say)
        await downstream.tools()
        server = _server(downstream, relay, GateMiddleware(gate, config, downstream, relay))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_keep_delivering, gate, poll, say)
            await server.run_stdio_async(show_banner=False, log_level="WARNING")
            tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await gate.wait_for_writes(GRACE)
            await downstream.transport.disconnect()  # type: ignore[no-untyped-call]  # of fastmcp


async def listed_tools(command: Sequence[str], pins: Pins) -> list[ListedTool]:
    """The tools of the server that this command starts, which is ended again. Raises Failed."""
    downstream = Downstream(command, Relay(), pins)
    try:
        return await downstream.all_tools()
    finally:
        with anyio.CancelScope(shield=True):
            await downstream.transport.disconnect()  # type: ignore[no-untyped-call]  # of fastmcp


def _server(downstream: Downstream, relay: Relay, gate: Middleware) -> FastMCP[Any]:
    # Nothing is remembered of what it lists: a tool that changes must not be known by what it said before.
    provider = ProxyProvider(lambda: downstream.client, cache_ttl=0)
    server: FastMCP[Any] = FastMCP(
        "vouchgate mcp-gate",
        version=version("vouchgate"),
        providers=[provider],
        middleware=[ProxyMetadataMiddleware(provider, identity="upstream"), gate],
        resource_security=None,  # the server behind decides what of its own may be read
    )
    server.provider_error_strategy = "raise"
    relay.register(server)
    return server


def _say_what_is_refused(tools: Sequence[ListedTool], config: Config, say: Say) -> None:
    names = {tool.name for tool in tools}
    if missing := sorted(set(config.write) - names):
        say(f"The server has no {', '.join(missing)}: is it the one that this configuration is for?")
    if refused := sorted(names - config.passed - set(config.write)):
        say(
            f"Refused, because the configuration does not name them: {', '.join(refused)} (pass = [...] allows"
            " those that only read)."
        )


async def _keep_delivering(gate: MemoryGate, poll: float, say: Say) -> None:
    """Writes what owners approved, for ever. What cannot be asked or written is told once, and tried again."""
    told = ""
    while True:
        try:
            delivered = await gate.deliver_pending()
            problem = (
                f"{delivered.failed + delivered.dead} could not be written"
                if delivered.failed + delivered.dead
                else ""
            )
        except (VouchgateError, UnusableToken) as error:
            problem = str(error)
        if problem and problem != told:
            say(f"Deliveries: {problem}; see vouchgate delivery list.")
        told = problem
        await anyio.sleep(poll)
