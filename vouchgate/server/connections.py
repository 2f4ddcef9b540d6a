"""Serving HTTP to whoever connects: who sends too slowly, or nothing, does not keep a connection from others."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Callable
from types import FrameType
from typing import Any

import httptools
import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

log = logging.getLogger(__name__)

HEADER_SECONDS = 10.0  # for a request's header, from the connection or its first byte on
HEADER_BYTES = 65_536  # of a request's line and header; and of what comes with its body that is none
BODY_SECONDS = 30.0  # for the body after it, of 1.2 MB at most
TAKING_SECONDS = 30.0  # for taking some of an answer that is there
# Of one process. Below the 1,024 descriptors that most systems give one, with 200 requests to hosts beside them.
MAX_CONNECTIONS = 700
EVEN_WITHIN = 4  # connections by which processes at one port may differ: so many are taken without a pause
PAUSE_SECONDS = 0.001  # for each so many more; the least that a timer of the loop can do
MOST_PAUSE_SECONDS = 0.01
FULL_SECONDS = 1.0  # before it looks again whether one more can be taken, as asyncio waits itself

_END = b"Connection: close\r\nContent-Length: 0\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\r\n"
_FULL = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n" + _END
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\n" + _END


class _TooLargeError(Exception):
    """A request whose line and header are longer than they may be."""


class Connection(HttpToolsProtocol):
    """One connection. While its client is to send something, or to take it, it has so many seconds; while a request is
    worked on, or a stream is open, it has all the time it needs (uvicorn itself ends what is idle between requests).
    Over the most there may be, the one that has waited longest for its client is closed."""

    _timer: asyncio.TimerHandle | None = None
    _taking: asyncio.TimerHandle | None = None
    _left = 0  # bytes of an answer that it has not taken
    _heading = False  # whether it is within a request's line or header
    _bare = 0  # bytes that came in pieces with neither a request's beginning or end nor any of its body
    _since: float | None = None  # when it began to wait for its client, by the loop's clock

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS and not self._make_room():
            transport.write(_FULL)
            transport.close()
            return
        self._expect(HEADER_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._timer is None and (self.cycle is None or self.cycle.response_complete):
            self._expect(HEADER_SECONDS)
        self._unset_keepalive_if_required()
        while data:
            data = self._feed(data)

    def eof_received(self) -> bool:  # type: ignore[override]  # asyncio keeps what this is true of
        """Who has sent all that it will, and shuts that way down, is given its answer, and then no other."""
        if self._timer is not None or self.cycle is None or self.cycle.response_started:
            return False
        self.cycle.keep_alive = False  # of the last request that came: those before it are answered first
        return True

    def _feed(self, data: bytes) -> bytes:
        """Has it parsed, and gives what is to be parsed next."""
        self._bare += len(data)
        try:
            self.parser.feed_data(data)
            if self._bare > HEADER_BYTES:
                self._refuse_large()
        except httptools.HttpParserUpgrade as stopped:
            if self.parser.get_method() != b"CONNECT":
                return self._without_upgrade() + data[stopped.args[0] :]
            self.send_400_response("This is no proxy.")
        except httptools.HttpParserError as error:
            if isinstance(error.__context__, _TooLargeError):
                self._refuse_large()
            else:
                self.send_400_response("This is no HTTP request.")
        return b""

    def _refuse_large(self) -> None:
        if self._heading:
            self.transport.write(_TOO_LARGE)
        self.transport.close()

    def _without_upgrade(self) -> bytes:
        """The head that was read, as of a client that offers no other protocol. The parser takes what follows one that
        does for the other protocol, also where nobody speaks it, and so for no body."""
        head = [
            b"%s %s HTTP/%s" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())
        ]
        head += [b"%s: %s" % header for header in self.headers if header[0] != b"upgrade"]
        return b"\r\n".join([*head, b"", b""])

    def on_message_begin(self) -> None:
        self._heading, self._bare = True, 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._heading:  # those behind a body are not: who stands in front has not looked at them
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > HEADER_BYTES:
            raise _TooLargeError
        self._heading = False
        self._expect(BODY_SECONDS)
        if not self.parser.should_upgrade():
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._bare = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._bare = 0
        if not self.parser.should_upgrade():
            self._stop()
            super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._timer is None and not self.pipeline:
            self._since = self.loop.time()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._since = self.loop.time()
        self._wait_for_taking()

    def resume_writing(self) -> None:
        if self._taking is not None:
            self._taking.cancel()
            self._taking = self._since = None
        super().resume_writing()

    def _wait_for_taking(self) -> None:
        self._left = self.transport.get_write_buffer_size()
        self._taking = self.loop.call_later(TAKING_SECONDS, self._not_taken)

    def _not_taken(self) -> None:
        if self.transport.get_write_buffer_size() < self._left:
            self._wait_for_taking()
        else:
            self.transport.abort()

    def _expect(self, seconds: float) -> None:
        self._stop()
        self._since = self.loop.time()
        self._timer = self.loop.call_later(seconds, self._late, seconds)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._since = None

    def _late(self, seconds: float) -> None:
        if self.pipeline:  # we read nothing of it while the request before it is worked on
            self._expect(seconds)
        else:
            self.transport.abort()

    def _make_room(self) -> bool:
        """Whether a connection that waited for its client could be closed."""
        waiting = [one for one in self.connections if isinstance(one, Connection) and one._since is not None]
        if not waiting:
            return False
        longest = min(waiting, key=lambda one: one._since or 0.0)
        self.connections.discard(longest)
        longest.transport.abort()
        return True


class Accepting:
    """Takes connections from a listening socket that other processes may listen at, too, one at a time. A loop that is
    told to serve takes all that are there whenever it looks, and of several processes that are idle the kernel wakes
    the same one first, so that all connections of an agent that keeps them open would be at one. Here who has many
    waits a little before it takes one more, and who has fewer comes first."""

    def __init__(
        self,
        listener: socket.socket,
        make: Callable[[], asyncio.Protocol],
        count: Callable[[], int],
    ) -> None:
        """`make` makes what speaks on a connection; `count` says how many there are in this process."""
        self._loop = asyncio.get_running_loop()
        self._listener = listener
        self._make, self._count = make, count
        self._pausing: asyncio.TimerHandle | None = None
        self._starting: set[asyncio.Task[None]] = set()
        listener.setblocking(False)
        self._listen()

    def close(self) -> None:
        """Takes no more. The socket stays open."""
        self._loop.remove_reader(self._listener)
        if self._pausing is not None:
            self._pausing.cancel()

    async def wait_closed(self) -> None:
        """Until the last one that was taken has begun."""
        if self._starting:
            await asyncio.wait(self._starting)

    def _listen(self) -> None:
        self._pausing = None
        self._loop.add_reader(self._listener, self._come)

    def _come(self) -> None:
        """Somebody waits to be taken."""
        pause = min(MOST_PAUSE_SECONDS, self._count() // EVEN_WITHIN * PAUSE_SECONDS)
        if pause:
            self._pause(pause, self._take_later)
        else:
            self._take()

    def _pause(self, seconds: float, then: Callable[[], None]) -> None:
        self._loop.remove_reader(self._listener)  # which would call again at once
        self._pausing = self._loop.call_later(seconds, then)

    def _take_later(self) -> None:
        self._listen()
        self._take()

    def _take(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return  # another process took it, or its client has gone
        except OSError as error:  # no more descriptors, or no memory for one
            log.error("no connection can be taken: %s", error)
            self._pause(FULL_SECONDS, self._listen)
            return
        task = self._loop.create_task(self._start(connection))
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    async def _start(self, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._make, connection)
        except OSError as error:
            connection.close()
            log.warning("a connection could not be begun: %s", error)


class Server(uvicorn.Server):
    """Serves an application, and calls `ready` when it really accepts connections. It logs warnings only."""

    def __init__(self, app: ASGIApp, ready: Callable[[], None], grace_seconds: int, **options: Any) -> None:
        """`grace_seconds` are for requests under way when it is told to stop."""
        config = uvicorn.Config(
            self._ended_quietly(app),
            http=Connection,
            ws="none",
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=grace_seconds,
            **options,
        )
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=[])
        if self.started:
            self.servers = [  # uvicorn closes them, and waits until they are
                Accepting(  # type: ignore[misc]
                    listener, self._connection, lambda: len(self.server_state.connections)
                )
                for listener in sockets or ()
            ]
            self._ready()

    def _ended_quietly(self, app: ASGIApp) -> ASGIApp:
        """The application, of which what the end of the service cuts off is no error: uvicorn, which cancels requests
        and says how many, and cancels all else at a second Ctrl-C, would log each with all that was called for it."""

        async def call(scope: Scope, receive: Receive, send: Send) -> None:
            async def tell(message: Message) -> None:
                if message["type"] == "lifespan.shutdown.failed" and self.force_exit:
                    message = {"type": "lifespan.shutdown.complete"}
                await send(message)

            try:
                await app(scope, receive, send if scope["type"] == "http" else tell)
            except asyncio.CancelledError:
                if scope["type"] != "http":
                    raise

        return call

    def _connection(self) -> Connection:
        return Connection(self.config, self.server_state, self.lifespan.state)

    def serve_on(self, listener: socket.socket) -> None:
        """Serves on a socket that listens, until SIGTERM or SIGINT."""

        def stop(_signal: int, _frame: FrameType | None) -> None:
            self.should_exit = True

        # uvicorn has handlers of its own while it serves, and raises the signal again afterwards for these.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop)
        self.run(sockets=[listener])
