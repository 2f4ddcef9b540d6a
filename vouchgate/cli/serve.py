"""`vouchgate serve`: one port, one process or several, until it is told to stop."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import secrets
import signal
import socket
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from fastapi import FastAPI
from sqlalchemy import make_url

from vouchgate.cli.identity.tokens import link_url
from vouchgate.cli.output import Failure, quiet_stdout, say
from vouchgate.cli.progress import of_the_index
from vouchgate.gate.signing import key_file
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.people import Principal, Role
from vouchgate.ingest.transparency.verifier import ED25519, NotProven, parse_keys
from vouchgate.server.app import create_app
from vouchgate.server.connections import Server
from vouchgate.server.headers import SecureHeaders
from vouchgate.server.interpreter import tune_interpreter
from vouchgate.server.processes import Supervisor
from vouchgate.server.witness import Witness, WitnessError, create_witness
from vouchgate.service import Service, open_service, open_to_serve
from vouchgate.settings import PREFIX, Settings
from vouchgate.storage.disk.check import database_file
from vouchgate.storage.errors import StorageError
from vouchgate.storage.identity import sessions, tokens
from vouchgate.storage.store import Store

log = logging.getLogger(__name__)

OWNER = "me"  # whose gate a first start sets up, as a gate inside a program does
BACKLOG = 2048
GRACE_SECONDS = 20  # for requests under way when the service is told to stop
LAND_SECONDS = 10  # of these after which nobody waits for a page any more: a claim that does is queued then


def run(settings: Settings) -> int:
    """Serves until SIGTERM or SIGINT, then finishes what is under way. Raises Failure when it cannot start."""
    _log_to_stderr()
    with bind(settings.host, settings.port) as listener:
        address = address_of(listener)

        key = key_file(settings)
        made = key is not None and not key.exists()

        def ready() -> None:
            try:
                _say_ready(settings, address, key, made=made)
            except OSError as error:  # nobody reads it any more, or its disk is full: neither ends a service
                quiet_stdout()
                log.warning("listening on %s, which standard output does not take: %s", address, error)

        with of_the_index() as progress, open_to_serve(settings, progress) as service:
            progress.close()
            with _undisturbed():
                _first_start(service, address, port_of(listener))
            listen(listener)
            if settings.workers == 1:
                _serve(create_app(service), listener, ready)
                return 0
        gc.enable()
        # All is well and closed again: the workers open what they need, this process keeps nothing but the port.
        return Supervisor(settings, listener, work, ready).run()


def _say_ready(settings: Settings, address: str, key: Path | None, *, made: bool) -> None:
    say(f"listening on {address}")
    if key is None and settings.log_key is None:
        say(f"The log is not signed: {PREFIX}LOG_KEY names no file for its key.")
    elif made:
        say(f"The log is signed with a new key, in {key}: keep a copy of it in another place.")


def run_witness(logs: Sequence[str], folder: Path, name: str | None, host: str, port: int) -> int:
    """A witness, until SIGTERM or SIGINT. Raises Failure when it cannot start."""
    _log_to_stderr()
    try:
        witness = Witness(folder, parse_keys(logs, ED25519), name or f"witness-{secrets.token_hex(4)}")
    except (WitnessError, NotProven, OSError) as error:
        raise Failure(str(error)) from error
    with bind(host, port) as listener:
        listen(listener)
        say(f"witness {witness.key}\nlistening on {address_of(listener)}")
        app = SecureHeaders(create_witness(witness))
        Server(app, lambda: None, GRACE_SECONDS).serve_on(listener)
    return 0


def work(settings: Settings, listener: socket.socket, shared: Path, ready: Callable[[], None]) -> None:
    """What each of several workers does: serves on a socket that the others have too, until SIGTERM."""
    _log_to_stderr()
    with open_service(settings, shared=shared) as service:
        _serve(create_app(service, shared), listener, ready)


def _serve(app: FastAPI, listener: socket.socket, ready: Callable[[], None]) -> None:
    server = server_for(app, ready, app.state.service.sources.stop_reading)
    tune_interpreter()
    server.serve_on(listener)


def _log_to_stderr() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("alembic").setLevel(logging.WARNING)


def bind(host: str, port: int) -> socket.socket:
    """A socket bound to host and port (0: any free one), not listening yet. Raises Failure."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError) as error:
        raise Failure(
            f"cannot listen on {host}: it is no address of this machine; try --host 127.0.0.1"
        ) from error
    family, kind, protocol, _, where = found[0]
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(where)
    except OSError as error:
        made.close()
        raise Failure(_cannot_listen(host, port, error)) from error
    return made


def listen(listener: socket.socket) -> None:
    """From here on connections queue up. Raises Failure when another process came first."""
    try:
        listener.listen(BACKLOG)
    except OSError as error:
        host, port = listener.getsockname()[:2]
        raise Failure(_cannot_listen(host, port, error)) from error


def _cannot_listen(host: str, port: int, error: OSError) -> str:
    return f"cannot listen on {host} port {port}: {error.strerror}; try another --port, or --port 0 for a free one"


def address_of(listener: socket.socket) -> str:
    """The URL of a bound socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if listener.family is socket.AF_INET6 else f"http://{host}:{port}"


def port_of(listener: socket.socket) -> int:
    """The port of a bound socket."""
    port: int = listener.getsockname()[1]
    return port


class _Server(Server):
    """One that does not wait for open pages when it stops."""

    def __init__(self, app: FastAPI, ready: Callable[[], None], land: Callable[[], Awaitable[None]]) -> None:
        super().__init__(app, ready, GRACE_SECONDS)
        self._land = land
        self._hang_up = app.state.hub.close

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._hang_up()
        landing = asyncio.create_task(self._land_soon())
        try:
            await super().shutdown(sockets)
        finally:
            landing.cancel()

    async def _land_soon(self) -> None:
        await asyncio.sleep(LAND_SECONDS)
        await self._land()


def server_for(app: FastAPI, ready: Callable[[], None], land: Callable[[], Awaitable[None]]) -> Server:
    """A server that calls `ready` once it accepts connections. It logs warnings only: what was decided about
    each claim is in the database."""
    return _Server(app, ready, land)


def make_token(store: Store, role: Role, name: str, sources: Iterable[Source] = ()) -> tuple[Principal, str]:
    """A principal for the owner of a first start, and its token."""
    now = datetime.now(UTC)
    return tokens.create(
        store, role=role, name=name, owners=[OWNER], sources=sources, actor="service", now=now
    )


def make_link(service: Service, reviewer: Principal, port: int) -> str:
    """A link that signs this reviewer in, once, to the service at this port."""
    now = datetime.now(UTC)
    code = sessions.create_link(service.store, reviewer.id, actor="service", now=now)
    return link_url(service.settings.model_copy(update={"port": port}).pages_url, code)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """SIGTERM and Ctrl-C come after this: of first tokens that were made nobody would have the text, and a later start
    makes none."""
    told: list[int] = []
    stops = signal.SIGTERM, signal.SIGINT
    before = [signal.signal(number, lambda number, _frame: told.append(number)) for number in stops]
    try:
        yield
    finally:
        for number, handler in zip(stops, before, strict=True):
            signal.signal(number, handler)
    for each in told[:1]:
        signal.raise_signal(each)


def _first_start(service: Service, address: str, port: int) -> None:
    """Makes the first tokens, and a link to sign in with, when the database has none. A terminal shows them; otherwise,
    as what is printed may be kept in a log, a file that nobody else can read has them, and its name is printed.
    Raises Failure."""
    with service.store.read() as connection:
        if any(not token.embedded for token in tokens.listing(connection)):
            return
    terminal = next((stream for stream in (sys.stderr, sys.stdout) if stream.isatty()), None)
    if terminal is not None:
        print(_made_first(service, address, port), file=terminal, flush=True)
        return
    database = database_file(service.settings.database_url)
    folder = Path() if database is None else database.parent
    try:
        descriptor, name = tempfile.mkstemp(".txt", "vouchgate-first-start-", folder)  # with the mode 0600
    except OSError as error:
        raise Failure(
            f"no file for the first tokens can be made in {folder.absolute()}: {error.strerror}; "
            "start once in a terminal"
        ) from error
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(_made_first(service, address, port))
    except OSError as error:
        Path(name).unlink()
        raise Failure(
            f"the first tokens could not be written to {name}: {error.strerror}; make others with "
            "vouchgate token create"
        ) from error
    except BaseException:  # there is nothing in it
        Path(name).unlink()
        raise
    say(f"First start: tokens, and a link to sign in with, are in {name}. Read it, then delete it.")


def _made_first(service: Service, address: str, port: int) -> str:
    """As `_first_tokens`. Raises Failure: of some that were made nobody has the text, and a later start makes none."""
    try:
        return _first_tokens(service, address, port)
    except StorageError as error:
        raise Failure(
            f"the first tokens could not all be made: {error}. Then start again; if that shows none, make them with "
            "vouchgate token create, for an agent and for a reviewer"
        ) from error


def _first_tokens(service: Service, address: str, port: int) -> str:
    """Makes them, and says what each is for."""
    _, agent = make_token(service.store, Role.AGENT, "first agent")
    _, user = make_token(
        service.store, Role.AGENT, "first program for the user's words", sources=[Source.USER]
    )
    owner, reviewer = make_token(service.store, Role.REVIEWER, "first reviewer")
    url = make_url(service.settings.database_url).render_as_string(hide_password=True)
    minutes = sessions.LINK_LIFETIME // timedelta(minutes=1)
    return f"""First start: three tokens for the owner "{OWNER}". They are shown this once.

  agent     {agent}
  user      {user}
  reviewer  {reviewer}

A program that hears you yourself, and no model, gets the user's token: what it sends with the source "user" are
your own words. So this is stored:

  curl {address}/v1/claims -H "Authorization: Bearer {user}" \\
    -H "Content-Type: application/json" \\
    -d '{{"content": "I prefer tea in the morning", "memory_type": "preference", "source": "user"}}'

Your agent gets the agent's token. It may assert no source: what it sends is stored when what it cites says so, or a
record in force that the gate finds itself; a guess is blocked, and all else waits for you.

The reviewer, that is you, sees what waits, and approves or rejects it. Open this within {minutes} minutes; it signs
you in once (another one: vouchgate token link {owner.id}):

  {make_link(service, owner, port)}

The same in a terminal:

  export VOUCHGATE_TOKEN={reviewer}
  vouchgate review list --database-url {url}

The API is described at {address}/docs
"""
