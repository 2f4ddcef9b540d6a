"""Clients that say nothing, half of something, or take nothing, against a real server."""

from __future__ import annotations

import asyncio
import re
import resource
import selectors
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress

import pytest
from starlette.types import Receive, Scope, Send

from tests.running.patience import until
from vouchgate.api.problems import AnswerAtTheEnd
from vouchgate.cli.serve import bind, listen
from vouchgate.server import connections
from vouchgate.server.connections import Server

GET = b"GET /%s HTTP/1.1\r\nHost: gate\r\n\r\n"
LARGE = 30_000_000


class Unhurried(asyncio.SelectorEventLoop):
    """Whose timers wait for the sockets: its clock goes on only when nothing has come at any, however slow we are."""

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(Selector(self))

    def time(self) -> float:
        return self._now

    def nothing_came(self, seconds: float) -> None:
        self._now += seconds


class Selector(selectors.DefaultSelector):
    def __init__(self, loop: Unhurried) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        came = super().select(timeout and min(timeout, 0.002))
        if timeout and not came:
            self._loop.nothing_came(timeout)
        return came


class App:
    """Answers with the size of the body; `/wait` when it is told to, `/large` with more than sockets hold, `/names`
    with the names of what is in the header."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.broken = 0
        self.waiting = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.broken += 1
                return
            size, more = size + len(message["body"]), message["more_body"]
        body = b"%d" % size if scope["path"] != "/large" else b"x" * LARGE
        if scope["path"] == "/names":
            body = b" ".join(name for name, _ in scope["headers"])
        head = {"type": "http.response.start", "status": 200}
        length = [(b"content-length", b"%d" % len(body))]
        if scope["path"] == "/wait":
            self.waiting += 1
            await self.go.wait()
        if scope["path"] == "/stream":
            await send(head)
            await send({"type": "http.response.body", "body": b"begins", "more_body": True})
            await self.go.wait()
            await send({"type": "http.response.body", "body": b"ends"})
            return
        await send({**head, "headers": length})
        await send({"type": "http.response.body", "body": body})


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[App, Server, int]]:
    """A server with little patience, in a thread."""
    for name, most in {
        "HEADER_SECONDS": 0.5,
        "BODY_SECONDS": 0.5,
        "TAKING_SECONDS": 0.5,
        "MAX_CONNECTIONS": 12,
    }.items():
        monkeypatch.setattr(connections, name, most)
    app, ready = App(), threading.Event()
    with bind("127.0.0.1", 0) as listener:
        listen(listener)
        server = Server(AnswerAtTheEnd(app), ready.set, 1)
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        ready.wait(60)
        yield app, server, listener.getsockname()[1]
        server.should_exit = True
        thread.join(60)


def connect(port: int, *parts: bytes) -> socket.socket:
    """A connection on which this was sent."""
    made = socket.create_connection(("127.0.0.1", port), timeout=30)
    for part in parts:
        made.sendall(part)
    return made


def read_all(line: socket.socket) -> bytes:
    """What comes until the other side ends the connection."""
    got = b""
    try:
        while part := line.recv(65_536):
            got += part
    except ConnectionResetError:
        pass
    return got


def ask(port: int, path: bytes = b"") -> bytes:
    """The answer to an honest request."""
    with closing(connect(port, GET.replace(b"Host", b"Connection: close\r\nHost") % path)) as line:
        return read_all(line)


def test_who_does_not_send_is_not_waited_for(served: tuple[App, Server, int]) -> None:
    app, _, port = served
    post = b"POST / HTTP/1.1\r\nHost: gate\r\nContent-Length: 9\r\n\r\nhalf"
    chunked = b"POST / HTTP/1.1\r\nHost: gate\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"
    begun = ((), (b"\r\n",), (b"GET / HT",), (b"GET / HTTP/1.1\r\nHost:",), (post,), (chunked,))
    with ExitStack() as opened:
        lines = [opened.enter_context(closing(connect(port, *parts))) for parts in begun]
        for parts, line in zip(begun, lines, strict=True):
            assert read_all(line) == b"", parts
    until(lambda: app.broken == 2)
    # A header byte by byte has no more time than one at once; nor has one that comes after an answer.
    with closing(connect(port, GET % b"")) as line:
        assert b"200 OK" in line.recv(65_536)
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            for _ in range(40):
                line.sendall(b"X")
                threading.Event().wait(0.05)
            raise AssertionError("it is still open")


def test_what_is_worked_on_has_all_the_time_it_needs(served: tuple[App, Server, int]) -> None:
    app, server, port = served
    with (
        closing(connect(port, GET % b"wait", GET % b"")) as waits,
        closing(connect(port, GET % b"stream")) as streams,
    ):
        assert read_until(streams, b"begins")
        threading.Event().wait(1.2)  # over twice what a header or a body is waited for
        loop = next(iter(server.server_state.connections)).loop
        loop.call_soon_threadsafe(app.go.set)
        assert read_until(streams, b"ends")
        assert read_until(waits, b"\r\n\r\n0")


def test_what_is_not_done_when_the_server_ends_is_to_be_sent_again(
    served: tuple[App, Server, int], caplog: pytest.LogCaptureFixture
) -> None:
    app, server, port = served
    with closing(connect(port, GET % b"wait")) as waits, closing(connect(port, GET % b"stream")) as streams:
        assert read_until(streams, b"begins")
        until(lambda: app.waiting == 1)
        server.should_exit = True
        answer = read_all(waits)
        assert answer.startswith(b"HTTP/1.1 503 ") and b'"code":"stopping"' in answer
        assert b"retry-after: 1" in answer
        assert b"stopping" not in read_all(streams)
    assert "Cancel 2 running task(s)" in caplog.text
    assert not [record for record in caplog.records if record.exc_info]


def test_who_has_sent_all_and_shuts_that_way_down_gets_its_answers(served: tuple[App, Server, int]) -> None:
    app, server, port = served
    post = b"POST /wait HTTP/1.1\r\nHost: gate\r\nContent-Length: 4\r\n\r\n"
    with ExitStack() as opened:
        lines = [
            opened.enter_context(closing(connect(port, sent)))
            for sent in (GET % b"wait", post + b"body", GET % b"wait" + GET % b"names", post + b"bo", b"")
        ]
        for line in lines:
            line.shutdown(socket.SHUT_WR)
        assert [read_all(line) for line in lines[3:]] == [b"", b""]  # nothing was asked
        until(lambda: app.waiting == 3 and len(server.server_state.connections) == 3)
        next(iter(server.server_state.connections)).loop.call_soon_threadsafe(app.go.set)
        answers = [read_all(line) for line in lines[:3]]
    assert [re.findall(rb"HTTP/1.1 (\d+)", answer) for answer in answers] == [
        [b"200"],
        [b"200"],
        [b"200"] * 2,
    ]
    assert answers[2].endswith(b"host")
    assert all(b"connection: close" in answer for answer in answers)
    with closing(connect(port, GET % b"stream")) as gone:  # whoever has gone is not streamed to
        assert read_until(gone, b"begins")
    until(lambda: not server.server_state.connections)


def read_until(line: socket.socket, end: bytes) -> bytes:
    """What comes until this was in it."""
    got = b""
    while end not in got:
        part = line.recv(65_536)
        assert part, got
        got += part
    return got


OFFER = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: %s\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"


@pytest.mark.parametrize("protocol", [b"h2c", b"websocket", b"TLS/1.0, h2c"])
def test_what_offers_another_protocol_is_read_as_what_does_not(
    served: tuple[App, Server, int], protocol: bytes
) -> None:
    _, _, port = served
    inner, offer = GET % b"inner", OFFER % protocol
    post = b"POST / HTTP/1.1\r\nHost: gate\r\n%sContent-Length: %d\r\n\r\n" % (offer, len(inner))
    chunked = b"POST / HTTP/1.1\r\n%sTransfer-Encoding: chunked\r\nHost: gate\r\n\r\n" % offer
    chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (len(inner), inner)
    last = b"GET / HTTP/1.1\r\nHost: gate\r\nConnection: close\r\n\r\n"
    ways: list[list[bytes]] = [[post + inner + chunked + chunks + last]]  # at once; and in pieces
    ways += [
        [post, inner, chunked, chunks, last],
        [post[:70], post[70:] + inner[:5], inner[5:] + chunked + chunks, last],
    ]
    for parts in ways:
        with closing(connect(port)) as line:
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for part in parts:
                line.sendall(part)
                time.sleep(0.02 if len(parts) > 1 else 0)
            said = read_all(line)
        assert re.findall(rb"HTTP/1.1 (\d+)", said) == [b"200"] * 3
        assert re.findall(rb"\r\n\r\n(\d+)", said) == [b"%d" % len(inner), b"%d" % len(inner), b"0"]


def test_a_tunnel_is_refused_and_nothing_behind_it_is_read(served: tuple[App, Server, int]) -> None:
    _, _, port = served
    with closing(connect(port, b"CONNECT gate:1 HTTP/1.1\r\nHost: gate\r\n\r\n" + GET % b"")) as line:
        said = read_all(line)
    assert said.startswith(b"HTTP/1.1 400 ")
    assert said.count(b"HTTP/1.1") == 1


CHUNKED = b"POST /names HTTP/1.1\r\nHost: gate\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0"


@pytest.mark.parametrize(
    ("begun", "more", "status"),
    [
        (b"GET /", b"a", b"431"),
        (b"GET / HTTP/1.1\r\nHost: gate\r\nX: ", b"a", b"431"),
        (b"GET / HTTP/1.1\r\nHost: gate\r\n", b"X: a\r\n", b"431"),
        (CHUNKED + b";", b"a", b""),
        (CHUNKED + b"\r\nX: ", b"a", b""),
        (CHUNKED + b"\r\n", b"X: a\r\n", b""),
    ],
)
def test_a_header_that_does_not_end_is_not_read_for_long(
    served: tuple[App, Server, int],
    monkeypatch: pytest.MonkeyPatch,
    begun: bytes,
    more: bytes,
    status: bytes,
) -> None:
    for name in ("HEADER_SECONDS", "BODY_SECONDS"):
        monkeypatch.setattr(connections, name, 60.0)
    _, _, port = served
    with closing(connect(port, begun)) as line, pytest.raises((ConnectionResetError, BrokenPipeError)):
        said = b""
        line.settimeout(0.02)
        for _ in range(300):  # 20 MB, of which the sockets hold some
            line.sendall(more * (65_536 // len(more)))
            with suppress(TimeoutError):
                said += line.recv(1000)
            assert said[9:12] in (b"", status)


@pytest.mark.parametrize("piece", [1_000_000, 7_000])
def test_a_header_has_64_kilobytes_however_it_comes(served: tuple[App, Server, int], piece: int) -> None:
    _, _, port = served
    for size, status in ((60_000, b"200"), (70_000, b"431")):
        sent = b"GET / HTTP/1.1\r\nHost: gate\r\nConnection: close\r\nX: %s\r\n\r\n" % (b"a" * size)
        with closing(connect(port)) as line:
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for begin in range(0, len(sent), piece):
                line.sendall(sent[begin : begin + piece])
            assert read_all(line)[9:12] == status, size
    last = GET.replace(b"Host", b"Connection: close\r\nHost") % b""
    with closing(connect(port, GET % b"" * 5000 + last)) as line:  # of many, each has its own
        assert len(re.findall(rb"HTTP/1.1 200", read_all(line))) == 5001


def test_what_comes_behind_a_body_is_no_part_of_the_header(served: tuple[App, Server, int]) -> None:
    _, _, port = served
    last = GET.replace(b"Host", b"Connection: close\r\nHost") % b"names"
    with closing(connect(port, CHUNKED + b"\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n" + last)) as line:
        said = read_all(line)
    assert re.findall(rb"\r\n\r\n([a-z -]+)", said) == [b"host transfer-encoding", b"connection host"]


def test_who_takes_nothing_of_an_answer_is_not_waited_for(served: tuple[App, Server, int]) -> None:
    _, server, port = served
    with closing(connect(port, GET % b"large")) as idle, closing(connect(port, GET % b"large")) as slow:
        got = 0
        while got < LARGE:  # some of it at a time: as long as all of it takes
            got += len(slow.recv(1_000_000))
            threading.Event().wait(0.02)
        while len(server.server_state.connections) > 1:
            threading.Event().wait(0.05)
        assert len(read_all(idle)) < LARGE


def test_connections_are_bounded_and_those_that_wait_for_their_client_make_room(
    served: tuple[App, Server, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 60.0)
    app, server, port = served
    with ExitStack() as held:
        streams = held.enter_context(closing(connect(port, GET % b"stream")))
        assert read_until(streams, b"begins")
        for _ in range(40):
            held.enter_context(closing(connect(port, b"GET / HT")))
            assert b"200 OK" in ask(port)
        assert len(server.server_state.connections) <= connections.MAX_CONNECTIONS
        for _ in range(connections.MAX_CONNECTIONS - 1):
            held.enter_context(closing(connect(port, GET % b"wait")))
        while app.waiting < connections.MAX_CONNECTIONS - 1:
            threading.Event().wait(0.02)
        assert b"503 Service Unavailable" in ask(port)
        loop = next(iter(server.server_state.connections)).loop
        loop.call_soon_threadsafe(app.go.set)
        assert read_until(streams, b"ends")
        assert b"200 OK" in ask(port)


@pytest.mark.parametrize("first", ["busy", "idle"])
def test_of_those_who_listen_at_one_port_who_has_fewer_connections_takes_the_next(first: str) -> None:
    taken: list[str] = []

    def accepting(name: str, listener: socket.socket) -> connections.Accepting:
        def make() -> asyncio.Protocol:
            taken.append(name)
            return asyncio.Protocol()

        return connections.Accepting(listener, make, lambda: 20 if name == "busy" else taken.count(name))

    async def come(listener: socket.socket, other: socket.socket) -> None:
        second = "idle" if first == "busy" else "busy"
        both = accepting(first, listener), accepting(second, other)
        with ExitStack() as held:
            for number in range(16):
                line = held.enter_context(socket.socket())
                line.setblocking(False)
                await asyncio.get_running_loop().sock_connect(line, listener.getsockname())
                while len(taken) <= number or any(each._pausing for each in both):
                    await asyncio.sleep(0.001)
        for each in both:
            each.close()
            await each.wait_closed()

    with bind("127.0.0.1", 0) as listener, listener.dup() as other:
        listen(listener)
        with asyncio.Runner(loop_factory=Unhurried) as runner:
            runner.run(come(listener, other))
    assert taken == ["idle"] * 16


def test_a_connection_for_which_there_is_no_descriptor_is_taken_when_there_is(
    served: tuple[App, Server, int], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connections, "FULL_SECONDS", 0.1)
    *_, port = served
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    with socket.socket() as line:
        line.settimeout(30)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))
        try:
            line.connect(("127.0.0.1", port))
            line.sendall(GET % b"")
            until(lambda: "no connection can be taken" in caplog.text)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
        assert b"200 OK" in read_until(line, b"\r\n\r\n0")
