"""Servers that misbehave, on real local sockets, and a way to reach them under public names and addresses.

A server here is a function that is given the connection and the request's header, and does with them what it likes.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import httpcore

from vouchgate.ingest.net.client import Outbound
from vouchgate.ingest.net.fetched import Fetched, FetchFailed
from vouchgate.ingest.net.transport import Dial, dial_tcp

LOOPBACK = [ipaddress.ip_network("127.0.0.0/8")]
PUBLIC = "93.184.216.34"
TLS = ssl.create_default_context()  # one for all, because reading all the authorities takes a while


class Line:
    """One connection as the server has it."""

    def __init__(self, connection: socket.socket, over: threading.Event) -> None:
        self._connection = connection
        self._over = over

    def send(self, *parts: bytes) -> None:
        """Sends at once."""
        for part in parts:
            self._connection.sendall(part)

    def drip(self, data: bytes, every: float) -> None:
        """Sends byte by byte, until the client or the test has had enough."""
        for byte in data:
            if self._over.wait(every):
                return
            self._connection.sendall(bytes([byte]))

    def hang(self) -> None:
        """Says nothing until the end of the test."""
        self._over.wait(30)

    def reset(self) -> None:
        """Ends the connection with a reset instead of an end."""
        self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        self._connection.close()


Behaviour = Callable[[Line, bytes], None]


@dataclass
class Hostile:
    """`heads` are the requests that came, in order."""

    port: int
    heads: list[bytes] = field(default_factory=list)
    started: list[float] = field(default_factory=list)  # time.monotonic() of each


@contextmanager
def hostile(behave: Behaviour, tls: ssl.SSLContext | None = None) -> Iterator[Hostile]:
    """Serves on 127.0.0.1 until the end of the block. With `tls` it asks for a secure connection first."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    server = Hostile(listener.getsockname()[1])
    over = threading.Event()
    lock = threading.Lock()

    def serve(connection: socket.socket) -> None:
        with suppress(OSError), connection:
            connection.settimeout(30)
            if tls is not None:
                connection = tls.wrap_socket(connection, server_side=True)
            with connection:
                head = b""
                while b"\r\n\r\n" not in head:
                    more = connection.recv(65536)
                    if not more:
                        return
                    head += more
                with lock:
                    server.heads.append(head)
                    server.started.append(time.monotonic())
                behave(Line(connection, over), head)

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                thread = threading.Thread(target=serve, args=(connection,), daemon=True)
                threads.append(thread)
                thread.start()

    threads: list[threading.Thread] = []
    door = threading.Thread(target=accept, daemon=True)
    door.start()
    try:
        yield server
    finally:
        over.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        door.join()
        for thread in threads:
            thread.join(5)


def answer(body: bytes = b"", *, status: str = "200 OK", headers: Sequence[str] = ()) -> bytes:
    """A well-formed answer."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


class _Claimed(httpcore.AsyncNetworkStream):
    """A connection to a local server that says it is one to the address it stands for."""

    def __init__(self, inner: httpcore.AsyncNetworkStream, address: str) -> None:
        self._inner = inner
        self._address = address

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return await self._inner.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        await self._inner.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        return await self._inner.start_tls(ssl_context, server_hostname, timeout)

    def get_extra_info(self, info: str) -> Any:
        return (self._address, 0) if info == "server_addr" else self._inner.get_extra_info(info)


def played(dialled: list[tuple[str, int]], *, http: int | None = None, https: int | None = None) -> Dial:
    """Connects to local ports in place of public addresses, below all checks: to `https` for 443 and 8443, to
    `http` for others, nowhere without one. `dialled` gets what was to be connected to, in order."""

    async def dial(address: str, port: int) -> httpcore.AsyncNetworkStream:
        dialled.append((address, port))
        local = https if port in (443, 8443) else http
        if local is None:
            raise httpcore.ConnectError(f"nobody plays {address} port {port}")
        return _Claimed(await dial_tcp("127.0.0.1", local), address)

    return dial


def client_of(**options: Any) -> Outbound:
    """A client that may contact public addresses only, and need not wait between requests."""
    return Outbound(**{"spacing_seconds": 0.0, "tls": TLS, **options})


def local(**options: Any) -> Outbound:
    """The same, but it may contact this machine."""
    return client_of(**{"allow_networks": LOOPBACK, **options})


def get(url: str, client: Outbound | None = None, **options: Any) -> Fetched | FetchFailed:
    return asyncio.run((client or local()).fetch(url, **options))


def fetched(outcome: Fetched | FetchFailed) -> Fetched:
    assert isinstance(outcome, Fetched), outcome
    return outcome


def failed(outcome: Fetched | FetchFailed, code: str) -> FetchFailed:
    assert isinstance(outcome, FetchFailed), outcome
    assert outcome.code == code, outcome
    assert outcome.detail.startswith(code.replace("_", " ") + ": ")
    return outcome


def names(
    table: Mapping[str, Sequence[str]], asked: list[str] | None = None
) -> Callable[[str], Sequence[str]]:
    """A resolver that knows these names only."""

    def resolve(host: str) -> Sequence[str]:
        if asked is not None:
            asked.append(host)
        if host not in table:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return table[host]

    return resolve
