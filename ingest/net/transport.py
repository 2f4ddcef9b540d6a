"""One request over one connection to an address that was checked, within bounds.

httpcore speaks HTTP here and asks this module for the connection, so that the URL keeps its name: the Host header,
the name in the TLS greeting and the name the certificate must have all follow from it.
"""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
import zlib
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Any

import httpcore
import httpx

from vouchgate.ingest.net.addresses import Address, Target
from vouchgate.ingest.net.fetched import HopFailure

CONNECT_SECONDS = 5.0  # for one address, and again for the TLS greeting
HEADERS = 256  # lines; the largest sites send about 60
HEADER_BYTES = 65_536
_HEAD_BYTES = (
    2 * HEADER_BYTES
)  # read before the header must have ended; the first reads bring some of the body
_ADDRESSES = 4  # tried one after the other
_PIECES = 20_000  # of a body of 1 MB; a server that sends every byte by itself costs time, not bytes
_BREATH = 64  # pieces after which others may run

Dial = Callable[[str, int], Awaitable[httpcore.AsyncNetworkStream]]


async def dial_tcp(address: str, port: int) -> httpcore.AsyncNetworkStream:
    """Connects to an address, which no resolver is asked about. Raises httpcore.ConnectError, ConnectTimeout."""
    return await httpcore.AnyIOBackend().connect_tcp(address, port, timeout=CONNECT_SECONDS)


class WrongPeer(Exception):
    """The connection ended up at another address than the one that was checked."""


class _Bounded(httpcore.AsyncNetworkStream):
    """A connection from which no more than `left[0]` bytes are read."""

    def __init__(self, inner: httpcore.AsyncNetworkStream, left: list[int]) -> None:
        self._inner = inner
        self._left = left

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data = await self._inner.read(max_bytes, timeout)
        self._left[0] -= len(data)
        if self._left[0] < 0:
            raise httpcore.RemoteProtocolError("it goes on and on")
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        await self._inner.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        inner = await self._inner.start_tls(ssl_context, server_hostname, CONNECT_SECONDS)
        return _Bounded(inner, self._left)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class _PinnedBackend(httpcore.AsyncNetworkBackend):
    """Connects to the checked addresses, whatever name it is asked for."""

    def __init__(self, addresses: Sequence[Address], own: Callable[[Address], bool], dial: Dial) -> None:
        self._addresses = addresses[:_ADDRESSES]
        self._own = own
        self._dial = dial
        self.left = [_HEAD_BYTES]
        self.opened: list[httpcore.AsyncNetworkStream] = []

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        problem: Exception = httpcore.ConnectError("no address")
        for address in self._addresses:
            try:
                stream = await self._dial(str(address), port)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                problem = error
                continue
            self.opened.append(stream)
            self._verify(stream, address)
            return _Bounded(stream, self.left)
        raise problem

    def _verify(self, stream: httpcore.AsyncNetworkStream, address: Address) -> None:
        peer, here = (_end(stream, end) for end in ("server_addr", "client_addr"))
        if peer != address:
            raise WrongPeer(f"the connection to {address} ended up at {peer}")
        if here == address and not self._own(address):
            raise WrongPeer(f"{address} is an address of this machine")


def _end(stream: httpcore.AsyncNetworkStream, end: str) -> Address | None:
    try:
        return ipaddress.ip_address(stream.get_extra_info(end)[0])
    except (TypeError, ValueError, IndexError, KeyError):
        return None


class PinnedTransport(httpx.AsyncBaseTransport):
    """Sends one request to `place` at one of its checked addresses. `own` says whether an address may be one of
    this machine. To be closed, whatever came of the request."""

    def __init__(
        self,
        place: Target,
        addresses: Sequence[Address],
        *,
        tls: ssl.SSLContext | None,  # needed for https
        own: Callable[[Address], bool],
        dial: Dial,
    ) -> None:
        self._place = place
        self._backend = _PinnedBackend(addresses, own, dial)
        self._url = httpcore.URL(
            scheme=place.scheme.encode(),
            host=place.host.encode(),
            port=place.port,
            target=place.target.encode(),
        )
        self._connection = httpcore.AsyncHTTPConnection(
            self._url.origin, ssl_context=tls, http1=True, http2=False, network_backend=self._backend
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """The answer, its body still to be read. Raises what httpcore raises, and WrongPeer."""
        answer = await self._connection.handle_async_request(
            httpcore.Request(request.method, self._url, headers=request.headers.raw, content=request.stream)
        )
        assert isinstance(answer.stream, AsyncIterable)  # noqa: S101  (for mypy; httpcore's type has both kinds)
        return httpx.Response(answer.status, headers=answer.headers, stream=_Body(answer.stream))

    def expect(self, bytes_more: int) -> None:
        """After the header: how much may still be read."""
        self._backend.left[0] = bytes_more

    async def aclose(self) -> None:
        """Closes the connection at once."""
        for stream in self._backend.opened:
            await stream.aclose()


class _Body(httpx.AsyncByteStream):
    def __init__(self, stream: AsyncIterable[bytes]) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            yield piece


def odd_header(response: httpx.Response) -> str:
    """What is over a bound in a header, or ambiguous; "" when nothing is."""
    lines = response.headers.raw
    if len(lines) > HEADERS:
        return f"the header has more than {HEADERS} lines"
    if sum(len(name) + len(value) for name, value in lines) > HEADER_BYTES:
        return f"the header has more than {HEADER_BYTES:,} bytes"
    if len(response.headers.get_list("location")) > 1:
        return "the header names more than one location"
    return ""


async def read_body(response: httpx.Response, max_bytes: int) -> tuple[bytes, bool] | HopFailure:
    """The decoded body, cut at `max_bytes`, and whether that is all of it."""
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding not in ("", "identity", "gzip", "x-gzip", "deflate"):
        return HopFailure("odd_answer", "the body is encoded in a way that was not offered")
    unpack = Unpack(encoding, max_bytes)
    pieces = 0
    async for piece in response.aiter_raw():
        pieces += 1
        if pieces > _PIECES * (1 + max_bytes // 1_000_000):
            return HopFailure("odd_answer", "the body comes in too many pieces")
        if pieces % _BREATH == 0:
            await asyncio.sleep(0)
        try:
            if not unpack.add(piece):
                break
        except zlib.error:
            return HopFailure("odd_answer", f"the body is not the {encoding} it is said to be")
    if unpack.cut_short and response.status_code != 206:  # a range of a packed body may well end anywhere
        return HopFailure("odd_answer", f"the {encoding} of the body ends too early")
    return bytes(unpack.body), unpack.whole and not unpack.cut_short


class Unpack:
    """Decodes a body piece by piece, and never makes more than `room` bytes and one of it, however small the
    piece: a bomb is cut like any long body. Only one layer is taken off."""

    def __init__(self, encoding: str, room: int) -> None:
        self.body = bytearray()
        self.whole = True
        self._room = room
        self._encoding = encoding
        self._begun = False
        self._head = b""  # the first bytes, which say what `deflate` means here
        self._decoder: zlib._Decompress | None = None
        if encoding in ("gzip", "x-gzip"):
            self._decoder = zlib.decompressobj(16 + zlib.MAX_WBITS)

    @property
    def cut_short(self) -> bool:
        """Whether a packed body ended before its own end."""
        packed = self._encoding not in ("", "identity")
        ended = self._decoder is not None and self._decoder.eof
        return self.whole and packed and self._begun and not ended

    def add(self, piece: bytes) -> bool:
        """Takes the next piece; False when no more are wanted. Raises zlib.error."""
        self._begun = self._begun or bool(piece)
        if self._encoding == "deflate" and self._decoder is None:
            self._head += piece
            if len(self._head) < 2:
                return True
            piece, self._head = self._head, b""
            # With the header of zlib, as RFC 9110 says, or without, as some servers send it.
            zlib_header = piece[0] & 0x0F == 8 and int.from_bytes(piece[:2], "big") % 31 == 0
            self._decoder = zlib.decompressobj(zlib.MAX_WBITS if zlib_header else -zlib.MAX_WBITS)
        if self._decoder is not None:
            piece = self._decoder.decompress(piece, self._room + 1 - len(self.body))
        self.body += piece[: self._room + 1 - len(self.body)]
        if len(self.body) > self._room:
            del self.body[self._room :]
            self.whole = False
        return self.whole and not (self._decoder is not None and self._decoder.eof)
