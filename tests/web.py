"""A local web server for tests: real sockets, answers written as functions."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Answer:
    """What a route answers with; a Content-Length is added."""

    body: bytes | str = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": "text/html; charset=utf-8"})
    delay: float = 0.0  # seconds before anything is sent, or until the end of the server


@dataclass(frozen=True)
class Asked:
    """One request that came."""

    method: str
    path: str
    headers: Mapping[str, str]  # names in lower case
    body: bytes
    at: float  # time.monotonic()


Route = Answer | Callable[[Asked], Answer]


class ManyAtOnce(ThreadingHTTPServer):
    """A server for tests that lets as many wait for a thread as a test can bring. With the five that http.server
    lets wait, the kernel drops a sixth, who asks again after seconds: by then a caller may have given up."""

    request_queue_size = 128
    daemon_threads = True

    def shutdown(self) -> None:
        """At once, without the wait for the next look at whether to go on."""
        self.socket.shutdown(socket.SHUT_RDWR)
        super().shutdown()


@dataclass
class WebServer:
    """`routes` maps a path (with its query) to an answer and may be changed while it serves; all else is a
    404. `asked` is every request in order; `most_at_once` how many were being answered together."""

    url: str
    routes: dict[str, Route]
    asked: list[Asked] = field(default_factory=list)
    most_at_once: int = 0

    @property
    def place(self) -> str:
        """Address and port, as VOUCHGATE_CITATION_NETWORKS takes them."""
        return self.url.removeprefix("http://")

    def paths(self) -> list[str]:
        """`METHOD /path` of every request in order."""
        return [f"{one.method} {one.path}" for one in self.asked]


@contextmanager
def web_server(routes: dict[str, Route] | None = None, host: str = "127.0.0.1") -> Iterator[WebServer]:
    """Serves until the end of the block, on a free port."""
    at_once = 0
    lock, over = threading.Lock(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # a body follows its header at once, and not after a delayed ACK

        def _answer(self) -> None:
            nonlocal at_once
            length = int(self.headers.get("Content-Length") or 0)
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Asked(self.command, self.path, headers, self.rfile.read(length), time.monotonic())
            with lock:
                site.asked.append(asked)
                at_once += 1
                site.most_at_once = max(site.most_at_once, at_once)
            try:
                route = site.routes.get(self.path, Answer("no such page", 404))
                answer = route if isinstance(route, Answer) else route(asked)
                over.wait(answer.delay)
                body = answer.body.encode() if isinstance(answer.body, str) else answer.body
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True
            finally:
                with lock:
                    at_once -= 1

        do_GET = do_HEAD = do_POST = _answer  # noqa: N815  (the names that http.server calls)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Says nothing: `asked` is the log."""

    server = ManyAtOnce((host, 0), Handler)
    site = WebServer(f"http://{host}:{server.server_address[1]}", routes if routes is not None else {})
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield site
    finally:
        over.set()
        server.shutdown()
        server.server_close()
        thread.join()
