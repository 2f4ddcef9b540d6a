"""Serves the MCP server: over standard input and output for one client, or over HTTP for several.

Over HTTP the server has no token. Whoever can connect brings an agent's, which is passed on, and can do what that
token can and no more.
"""

from __future__ import annotations

import logging
import socket
import sys
from collections.abc import Callable, Sequence

import anyio
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from vouchgate.client import OddAnswer, VouchgateError
from vouchgate.mcp.connection import GateConnection, TokenRefused
from vouchgate.mcp.server import bearer, build_server
from vouchgate.server.connections import Server
from vouchgate.server.headers import SecureHeaders

log = logging.getLogger(__name__)

PATH = "/mcp"
MAX_BODY_BYTES = 1024 * 1024  # as the gate takes
ADMIT_SECONDS = (
    5.0  # for the gate to say whose a token is; then the call itself asks again, within its own time
)
GRACE_SECONDS = 5  # for calls under way when the server is told to stop

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


def log_to_stderr() -> None:
    """Everything that is logged, warnings and worse: over standard output goes the protocol."""
    logging.basicConfig(
        level=logging.WARNING, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )


async def serve_stdio(door: GateConnection, warn: Callable[[str], None]) -> None:
    """Serves one client until it closes standard input.

    Raises NotAdmitted when the token is not an agent's, and OddAnswer when what answers is no gate. A gate that cannot
    be reached yet is a warning: programs that start this one do not wait for it, and every call asks again.
    """
    try:
        try:
            await door.check_token()
        except OddAnswer:
            raise
        except VouchgateError as error:
            warn(f"the gate at {door.url} cannot be reached yet ({error}); every call says so until it can")
        server = build_server(door)
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
    finally:
        await door.close()


def serve_http(
    door: GateConnection, listener: socket.socket, hosts: Sequence[str], ready: Callable[[], None]
) -> None:
    """Serves on a socket that listens, until SIGTERM or SIGINT; then calls under way are answered. `hosts` are the
    names, beside those of this machine, by which clients may call it."""
    Server(http_app(door, hosts), ready, GRACE_SECONDS).serve_on(listener)


def http_app(door: GateConnection, hosts: Sequence[str]) -> ASGIApp:
    """The application at `/mcp`. It keeps no sessions, so that there is none to steal: every request stands for itself
    and has its own token. Requests with an unknown Host (a name somebody made point here) or from a page in a browser
    are refused; see docs/mcp.md."""
    allowed = [*_LOOPBACK, *hosts]
    app = build_server(door).streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        stateless_http=True,
        max_request_body_size=MAX_BODY_BYTES,
        transport_security=TransportSecuritySettings(
            enable_dns_rebinding_protection=True,
            allowed_hosts=[*allowed, *(f"{host}:*" for host in allowed)],
            allowed_origins=[],
        ),
    )
    return SecureHeaders(OwnTokens(app, door))


class OwnTokens:
    """Lets in requests that bring an agent's token. When the gate cannot say whose a token is, a request is let in too:
    no tool does anything before the gate has said so, and its answer tells the model why."""

    def __init__(self, app: ASGIApp, door: GateConnection) -> None:
        self._app = app
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        app = self._app
        if scope["type"] == "http":
            refused = await self._refused(scope["method"], Headers(scope=scope))
            app = self._app if refused is None else refused
        await app(scope, receive, send)

    async def _refused(self, method: str, headers: Headers) -> Response | None:
        if method != "POST":  # a GET would wait for messages, and this server has none of its own
            return JSONResponse({"error": "Only POST is answered here."}, 405, {"Allow": "POST"})
        try:
            with anyio.move_on_after(ADMIT_SECONDS):
                await self._door.check_token(bearer(headers.get("authorization")))
        except TokenRefused as error:
            more = {"WWW-Authenticate": "Bearer"} if error.status == 401 else {}
            return JSONResponse({"error": str(error)}, error.status, more)
        except VouchgateError as error:
            log.warning("whose a token is could not be found out: %s", error)
        return None
