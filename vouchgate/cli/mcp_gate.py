"""`vouchgate mcp-gate`: its options; what it does is in `vouchgate.mcp.gate.proxy`."""
# ruff: noqa: PLC0415  (a command loads what it needs when it runs, and this one needs an extra)

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vouchgate.cli import operator, output
from vouchgate.cli.mcp import GateUrl, TokenFile, agent_token
from vouchgate.extras import mismatch

if TYPE_CHECKING:
    from vouchgate.mcp.gate.config import Config
    from vouchgate.mcp.gate.pins import Pins

_EXAMPLE = (
    "Example: vouchgate mcp-gate --preset knowledge-graph -- npx -y @modelcontextprotocol/server-memory"
)
_RETRIES = 2  # a model, and somebody who waits for it, sit at the other end


def register(app: typer.Typer) -> None:
    """Adds this command."""
    app.command("mcp-gate", epilog=_EXAMPLE)(mcp_gate)


def mcp_gate(
    command: Annotated[
        list[str], typer.Argument(metavar="COMMAND…", help="What starts the MCP server, after --.")
    ],
    *,
    preset: Annotated[
        str | None, typer.Option(metavar="NAME", help="knowledge-graph or basic-memory.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A TOML file that names the tools that write; see docs/mcp.md."),
    ] = None,
    sink: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The outbox of this store. Each store of an owner needs a name of its own."
        ),
    ] = None,
    owner: Annotated[
        str | None, typer.Option(metavar="ID", help="Whose memory it is, when the token is for several.")
    ] = None,
    url: GateUrl = None,
    token_file: TokenFile = None,
    poll: Annotated[
        float,
        typer.Option(min=0.1, metavar="SECONDS", help="How often what owners approved is looked for."),
    ] = 3.0,
    pins: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Where the server's tools are pinned. [default: beside --config; with a preset in"
            " ~/.local/state/vouchgate/mcp-gate]",
        ),
    ] = None,
    accept: Annotated[
        bool,
        typer.Option(
            "--accept", help="Show which tools are not as they were pinned, and accept them; no more."
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --accept: do not ask.")] = False,
) -> None:
    """Be another MCP memory server, with the gate before every tool that writes.

    COMMAND is started, and everything passed on to it; what writes goes through the gate first, and what waits is
    written when its owner approves. A tool that the configuration does not name is refused, and one that is not as it
    was when the server was first seen is withheld, until you --accept it.
    """
    if (problem := mismatch("mcp-gate", "mcp", "fastmcp")) is not None:
        raise output.Failure(problem, output.USAGE)
    from vouchgate.mcp.gate.config import ConfigError, load
    from vouchgate.mcp.gate.pins import Pins, default_file

    try:
        loaded = load(preset, config, sink=sink)
    except ConfigError as error:
        raise output.Failure(str(error)) from error
    pinned = Pins(pins or default_file(config, loaded.sink, os.environ), output.complain)
    if accept:
        raise typer.Exit(_accept(command, pinned, yes=yes))
    raise typer.Exit(_run(loaded, command, pinned, poll, (*settings_of(url, token_file), owner)))


def _accept(command: list[str], pins: Pins, *, yes: bool) -> int:
    """Shows what is not as it was pinned, and pins that. Raises Failure."""
    import anyio

    from vouchgate.mcp.gate.proxy import listed_tools
    from vouchgate.mcp.gate.writes import ServerFailed

    try:
        tools = anyio.run(listed_tools, command, pins)
        pins.pin_first(tools)
        if not (lines := list(pins.differences(tools))):
            output.say("All tools of the server are as they were pinned.")
            return 0
        for line in lines:
            indent = len(line) - len(line[1:].lstrip())
            output.say(f"{line[:indent]}{output.one_line(line[indent:])}")
        if not yes:
            if not sys.stdin.isatty():
                raise output.Failure("somebody has to look at this: say --yes when you have", output.USAGE)
            typer.confirm("Accept this?", abort=True)
        pins.accept(tools)
    except (ServerFailed, OSError) as error:
        raise output.Failure(str(error)) from error
    output.say("Accepted.")
    return 0


def settings_of(url: str | None, token_file: Path | None) -> tuple[str, str]:
    """Where the gate is, and the agent's token. Raises Failure when there is none."""
    from vouchgate.client.config import DEFAULT_URL

    settings = operator.settings_from(url=url)
    return settings.url or DEFAULT_URL, agent_token(settings, token_file)


def _run(config: Config, command: list[str], pins: Pins, poll: float, at: tuple[str, str, str | None]) -> int:
    import anyio

    from vouchgate.client import AsyncClient, Unreachable, VouchgateError
    from vouchgate.mcp.gate.owner import Owner, UnusableToken
    from vouchgate.mcp.gate.writes import ServerFailed

    address, token, owner = at

    async def serve() -> None:
        async with AsyncClient(address, token, retries=_RETRIES) as client:
            whose = Owner(client, owner)
            try:
                await whose.id()
            except Unreachable as error:
                output.complain(f"{error}. Until the gate at {address} can be reached, nothing is written.")
            from vouchgate.mcp.gate.proxy import run  # which takes a second, and is not needed for a refusal

            await run(client, config, command, owner=whose, pins=pins, poll=poll, say=output.complain)

    try:
        anyio.run(serve)
    except (ServerFailed, VouchgateError, UnusableToken, ValueError) as error:
        raise output.Failure(str(error)) from error
    return 0
