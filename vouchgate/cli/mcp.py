"""`vouchgate mcp`: its options; what it does is in `vouchgate.mcp.serving`."""
# ruff: noqa: PLC0415  (a command loads what it needs when it runs, and this one needs an extra)

from __future__ import annotations

import signal
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vouchgate.cli import operator, output
from vouchgate.extras import mismatch

if TYPE_CHECKING:
    from vouchgate.mcp.connection import GateConnection
    from vouchgate.settings import Settings

GateUrl = Annotated[
    str | None,
    typer.Option(
        metavar="URL", help="Where the gate is; or set VOUCHGATE_URL. [default: http://127.0.0.1:8080]"
    ),
]
TokenFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="A file with the agent's token; or set VOUCHGATE_TOKEN."),
]

TOKEN_BYTES = 1000  # of a file that holds a token, and white space around it


def register(app: typer.Typer) -> None:
    """Adds this command."""
    app.command("mcp", epilog="Example: VOUCHGATE_TOKEN=vg_… vouchgate mcp --url http://127.0.0.1:8080")(mcp)


def mcp(
    *,
    url: GateUrl = None,
    token_file: TokenFile = None,
    http: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Serve over HTTP at /mcp; a port alone listens on 127.0.0.1. Every client brings a token.",
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="With --http: a further name that clients call it by. Repeat it for several."
        ),
    ] = None,
) -> None:
    """Be an MCP server whose tools save and read memories through a running gate.

    Over standard input and output it uses an agent's token of its own; a token that is not an agent's is refused. Over
    HTTP it has none, and passes on what each client brings.
    """
    if (problem := mismatch("mcp", "mcp")) is not None:
        raise output.Failure(problem, output.USAGE)
    if http is None and allow_host:
        raise typer.BadParameter("it goes with --http", param_hint="--allow-host")
    if http is not None and token_file is not None:
        raise typer.BadParameter("with --http every client brings its own token", param_hint="--token-file")
    settings = operator.settings_from(url=url)
    raise typer.Exit(
        _stdio(settings, token_file) if http is None else _http(settings, http, allow_host or [])
    )


def _stdio(settings: Settings, token_file: Path | None) -> int:
    import anyio

    from vouchgate.client import OddAnswer
    from vouchgate.mcp.connection import TokenRefused
    from vouchgate.mcp.serving import log_to_stderr, serve_stdio

    log_to_stderr()
    door = _gate_connection(settings, agent_token(settings, token_file))
    if sys.stdin.isatty():
        output.hint(
            "This speaks MCP over standard input and output: an MCP client starts it, see docs/mcp.md."
        )
    # A read of standard input cannot be broken off: without this, Ctrl-C would wait for the next line.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        anyio.run(serve_stdio, door, output.complain)
    except (TokenRefused, OddAnswer) as error:
        raise output.Failure(f"{error} (asked: {door.url})") from error
    return 0


def _http(settings: Settings, where: str, hosts: list[str]) -> int:
    from vouchgate.mcp.serving import PATH, log_to_stderr, serve_http

    host, port = _parse_listen_address(where)
    log_to_stderr()
    door = _gate_connection(settings, None)
    if settings.token is not None:
        output.hint("VOUCHGATE_TOKEN is not used here: over HTTP every client brings its own token.")
    with _listen(host, port) as listener:
        shown, port = listener.getsockname()[:2]
        address = (
            f"http://[{shown}]:{port}" if listener.family is socket.AF_INET6 else f"http://{shown}:{port}"
        )
        if host not in ("127.0.0.1", "::1", "localhost"):
            output.hint("Other machines can connect, and tokens come in clear text: put TLS in front of it.")
            hosts = [host, *hosts]
        serve_http(door, listener, hosts, lambda: output.say(f"listening on {address}{PATH}"))
    return 0


def _gate_connection(settings: Settings, token: str | None) -> GateConnection:
    from vouchgate.client.config import DEFAULT_URL
    from vouchgate.mcp.connection import GateConnection

    try:
        return GateConnection(settings.url or DEFAULT_URL, token)
    except ValueError as error:
        raise output.Failure(str(error)) from error


def agent_token(settings: Settings, file: Path | None) -> str:
    """The token of a setting or a file. Raises Failure when none is given."""
    from vouchgate.mcp.connection import MAKE_ONE

    if file is not None:
        try:
            with file.open(encoding="ascii") as opened:
                token = opened.read(TOKEN_BYTES).strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no token"
            raise output.Failure(f"the token cannot be read from {file}: {reason}") from error
        if token:
            return token
        raise output.Failure(f"there is no token in {file}; {MAKE_ONE}")
    if settings.token is None:
        raise output.Failure(
            f"an agent's token is needed: set VOUCHGATE_TOKEN or give --token-file; {MAKE_ONE}"
        )
    return settings.token.get_secret_value()


def _parse_listen_address(text: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT` or `PORT`. Raises BadParameter."""
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdecimal() and int(port) <= 65535) or (
        not host and text.startswith(":")
    ):
        raise typer.BadParameter("it must be like 127.0.0.1:8090", param_hint="--http")
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(port)


def _listen(host: str, port: int) -> socket.socket:
    """A socket that listens. Raises Failure."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        return socket.create_server(found[0][4][:2], family=found[0][0])
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no address of this machine"
        raise output.Failure(f"cannot listen on {host} port {port}: {reason}") from error
