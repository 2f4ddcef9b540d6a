"""`vouchgate mcp-gate`: its options; what it does is in `vouchgate.mcp.gate.proxy`."""
# ruff: noqa: PLC0415  (a command loads what it needs when it runs, and this one needs an extra)

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vouchgate.cli import operator, output
from vouchgate.cli.mcp import GateUrl, TokenFile, agent_token
from vouchgate.extras import mismatch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_types import Tool

    from vouchgate.mcp.gate.config import Config
    from vouchgate.mcp.gate.guessing import ToolRole
    from vouchgate.mcp.gate.pins import Pins

_EXAMPLE = (
    "Example: vouchgate mcp-gate --preset knowledge-graph -- npx -y @modelcontextprotocol/server-memory"
)
_INIT_EXAMPLE = "Example: vouchgate mcp-gate init --config gate.toml -- npx -y some-memory-server"
_RETRIES = 2  # a model, and somebody who waits for it, sit at the other end


def register(app: typer.Typer) -> None:
    """Adds this command."""
    app.command("mcp-gate", epilog=_EXAMPLE)(mcp_gate)
    app.command("mcp-gate init", epilog=_INIT_EXAMPLE)(init)


def mcp_gate(
    command: Annotated[
        list[str], typer.Argument(metavar="COMMAND…", help="What starts the MCP server, after --.")
    ],
    *,
    preset: Annotated[
        str | None, typer.Option(metavar="NAME", help="One of those in docs/mcp.md, such as knowledge-graph.")
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


def init(
    command: Annotated[
        list[str], typer.Argument(metavar="COMMAND…", help="What starts the MCP server, after --.")
    ],
    *,
    config: Annotated[Path, typer.Option(metavar="FILE", help="The file to write.")] = Path("gate.toml"),
    sink: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The outbox of this store. [default: the preset's, or memory]"),
    ] = None,
    tool: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOOL=ROLE",
            help="What a tool does: reads, writes, writes:ARGUMENT (which is the text), removes, refused. Repeat it.",
        ),
    ] = None,
    leave_probe: Annotated[
        bool, typer.Option("--leave-probe", help="Write a probe also where it may not be removed again.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
) -> None:
    """Make the configuration for a memory server, by what it says of its tools and by trying them.

    Each tool that writes is given a probe, which is read back and removed again. What cannot be known is asked on a
    terminal; without one, it is said what is missing, and no file is written. It needs no token and no gate.
    """
    if (problem := mismatch("mcp-gate", "mcp", "fastmcp")) is not None:
        raise output.Failure(problem, output.USAGE)
    if config.exists() and not force:
        raise output.Failure(f"{config} is there already: --force writes over it", output.USAGE)
    import anyio

    from vouchgate.mcp.gate.config import ConfigError, load
    from vouchgate.mcp.gate.guessing import render
    from vouchgate.mcp.gate.writes import ServerFailed

    try:
        made, notes = anyio.run(_configure, command, sink, tool or [], leave_probe)
        text = render(made, notes, "Made by vouchgate mcp-gate init; docs/mcp.md says what the keys mean.")
        draft = config.with_name(f"{config.name}.draft")
        draft.write_bytes(text.encode("utf-8", "replace"))
        try:
            load(None, draft)
            draft.replace(config)
        finally:
            draft.unlink(missing_ok=True)
    except (ServerFailed, ConfigError, OSError) as error:
        raise output.Failure(str(error)) from error
    for name, note in notes.items():
        output.say(output.one_line(f"{name}: {note}"))
    output.say(f"Wrote {config}. Look at it, then start: vouchgate mcp-gate --config {config} -- …")


async def _configure(
    command: list[str], sink: str | None, said: list[str], leave_probe: bool
) -> tuple[dict[str, Any], dict[str, str]]:
    """Starts the server and tries it. Raises Failure for what has to be said first, and ServerFailed."""
    import tempfile

    import anyio

    from vouchgate.mcp.gate.pins import Pins
    from vouchgate.mcp.gate.proxy import Downstream
    from vouchgate.mcp.gate.relay import Relay
    from vouchgate.mcp.gate.trial import Trial

    def may_leave(why: str) -> bool:
        if leave_probe or not sys.stdin.isatty():
            return leave_probe
        return typer.confirm(output.one_line(f"{why}. Write it all the same?"))

    with tempfile.TemporaryDirectory() as folder:
        # The gate pins at its first start; until then the file is all that was looked at.
        downstream = Downstream(command, Relay(), Pins(Path(folder) / "pins.json", lambda _: None))
        try:
            tools = {each.name: each for each in await downstream.all_tools()}
            downstream.pins.pin_first(list(tools.values()))
            roles, texts = _roles(tools, said)
            return await Trial(downstream, tools, roles, may_leave).configure(sink, texts)
        finally:
            with anyio.CancelScope(shield=True):
                await downstream.transport.disconnect()  # type: ignore[no-untyped-call]  # of fastmcp


def _roles(tools: Mapping[str, Tool], said: list[str]) -> tuple[dict[str, ToolRole], dict[str, str]]:
    """What each tool does, and which argument is the text of one that writes: as was said, else as it seems, else as
    is answered on a terminal. Raises Failure for what nobody said."""
    from vouchgate.mcp.gate.guessing import ToolRole, arguments_of, guess_preset, guess_role, guess_text

    told = {name: role for name, _, role in (one.rpartition("=") for one in said)}
    if unknown := [name for name in told if name not in tools]:
        raise output.Failure(f"the server has no {unknown[0]}, only {', '.join(tools)}", output.USAGE)
    fits, roles, texts, missing = guess_preset(set(tools)) is not None, dict[str, ToolRole](), {}, list[str]()
    for name, tool in tools.items():
        guessed, text = guess_role(tool), guess_text(tool)
        known = guessed is not None and (guessed is not ToolRole.WRITES or text is not None)
        answer = told.get(name, f"{guessed}:{text or ''}" if known else "refused" if fits else "")
        if not answer and sys.stdin.isatty():
            output.say(
                output.one_line(f"{name}({', '.join(arguments_of(tool))}): {tool.description or ''}"[:400])
            )
            answer = typer.prompt(
                "Is it reads, removes, refused, or writes:ARGUMENT, which is the text?", "refused"
            )
        role, _, argument = answer.partition(":")
        if role not in list(ToolRole) or (role == ToolRole.WRITES and not (argument or text)):
            missing.append(name)
            continue
        roles[name], texts[name] = ToolRole(role), argument or text or ""
    if missing:
        raise output.Failure(
            f"nothing was written, because nobody knows what these do: {', '.join(missing)}. Say for each --tool"
            " NAME=reads, removes, refused, or writes:ARGUMENT, which is the text",
            output.USAGE,
        )
    return roles, texts
