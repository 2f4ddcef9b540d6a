"""`vouchgate demo`: a gate of its own, sample claims over real HTTP, and what became of each."""

from __future__ import annotations

import logging
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from rich.console import Console

from vouchgate.cli.demo.samples import CARRIER_SECONDS, GRANTED, HANDBOOK, PAGES, SAMPLES, make_repository
from vouchgate.cli.demo.table import DemoTable
from vouchgate.cli.output import Failure, console, ended_as_by_hand
from vouchgate.cli.serve import address_of, bind, listen, make_link, make_token, port_of, server_for
from vouchgate.client import Client, VouchgateError
from vouchgate.ingest.claims.people import Role
from vouchgate.server.app import create_app
from vouchgate.service import Service, open_service
from vouchgate.settings import Settings
from vouchgate.storage.identity import sessions

START_SECONDS = 30
HOST = "127.0.0.1"


def run(*, once: bool, port: int) -> int:
    """Shows the demo; keeps serving until it is told to stop, unless `once`."""
    logging.basicConfig(level=logging.ERROR)
    try:
        with ended_as_by_hand(), tempfile.TemporaryDirectory(prefix="vouchgate-demo-") as folder:
            _show(Path(folder), once=once, port=port)
    except KeyboardInterrupt:
        return 0
    return 0


def _show(folder: Path, *, once: bool, port: int) -> None:
    try:
        commits = make_repository(folder / "shop")
    except (OSError, subprocess.CalledProcessError) as error:
        raise Failure(f"the demo's repository cannot be made: git is needed, and failed: {error}") from error
    handbook = folder / "handbook"
    handbook.mkdir()
    for name, text in HANDBOOK.items():
        (handbook / name).write_text(text, "utf-8")
    policy = folder / "policy.toml"
    policy.write_text(f'official_domains = ["{HOST}"]\n', "utf-8")  # the shop's website
    # Not read from the environment or vouchgate.toml: the demo is the same wherever it runs.
    settings = Settings.model_construct(
        database_url=f"sqlite:///{folder / 'demo.db'}",
        policy=policy,
        repo=(folder / "shop",),
        corpora={"handbook": handbook},
        official_corpora=("handbook",),
        host=HOST,
        port=port,
    )
    screen = console()
    with _website() as site:
        # A gate lets no claim cite a private address without this.
        settings = settings.model_copy(update={"citation_networks": (site.removeprefix("http://"),)})
        _serve_and_send(settings, screen, {**commits, "site": site}, once=once)


def _serve_and_send(settings: Settings, screen: Console, named: dict[str, str], *, once: bool) -> None:
    with open_service(settings) as service:
        _, agent = make_token(service.store, Role.AGENT, "demo agent", sources=GRANTED)
        owner, reviewer = make_token(service.store, Role.REVIEWER, "demo reviewer")
        with _serving(service, settings.port) as (listener, stopped):
            address = address_of(listener)
            screen.print(
                f"A gate at {address}, with an empty database, a small git repository, a handbook and a website at "
                f"{named['site']}."
            )
            _send(screen, address, agent, reviewer, named)
            if not once:
                link = make_link(service, owner, port_of(listener))
                _say_more(screen, address, link, reviewer, settings.database_url)
                stopped.wait()


@contextmanager
def _serving(service: Service, port: int) -> Iterator[tuple[socket.socket, threading.Event]]:
    """Serves in a thread of this process; stops gracefully at the end. The event tells that it has stopped: a `join`
    that Ctrl-C breaks off would take the thread for ended (CPython before 3.13)."""
    with bind(HOST, port) as listener:
        listen(listener)
        ready = threading.Event()
        server = server_for(create_app(service), ready.set, service.sources.stop_reading)
        stopped = threading.Event()

        def serve() -> None:
            try:
                server.run([listener])
            finally:
                stopped.set()

        thread = threading.Thread(target=serve, name="server")
        thread.start()
        try:
            if not ready.wait(START_SECONDS):
                raise Failure("the demo's server did not start")
            yield listener, stopped
        finally:
            server.should_exit = True
            stopped.wait()
            thread.join()


@contextmanager
def _website() -> Iterator[str]:
    """Serves the pages that the samples cite; gives the address."""
    opened = time.monotonic()

    class Pages(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = PAGES.get(self.path)
            status = HTTPStatus.OK if page is not None else HTTPStatus.NOT_FOUND
            if self.path == "/carrier" and time.monotonic() < opened + CARRIER_SECONDS:
                status, page = HTTPStatus.SERVICE_UNAVAILABLE, None
            body = (page or "<!doctype html><title>Nothing here</title>").encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815  (the name that http.server calls)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """The demo's screen is for decisions."""

    server = ThreadingHTTPServer((HOST, 0), Pages)
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), name="website")
    thread.start()
    try:
        yield f"http://{HOST}:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _send(screen: Console, address: str, agent: str, reviewer: str, named: dict[str, str]) -> None:
    """Sends each claim as the agent, and shows its decision as the reviewer, who is shown what private pages say."""
    table = DemoTable(screen)
    table.head()
    with Client(address, agent) as gate, Client(address, reviewer) as owner:
        for sample in SAMPLES:
            content = sample.content.format_map(named)
            started = time.perf_counter()
            try:
                verdict = gate.save(content, memory_type=sample.memory_type.value, source=sample.source.value)
                took_ms = (time.perf_counter() - started) * 1000
                answer = owner.decision(verdict.decision_id or "")
            except VouchgateError as error:
                raise Failure(f"no verdict came back: {error}") from error
            table.row(sample, answer, took_ms)
    table.foot()


def _say_more(screen: Console, address: str, link: str, reviewer: str, database_url: str) -> None:
    screen.print(
        f"""
Look further while this runs (end it with Ctrl-C):

The review page, where its owner clears what waits: {address}/review
This link signs you in there, once, within {sessions.LINK_LIFETIME // timedelta(minutes=1)} minutes:

  {link}

The API, described and to try out: {address}/docs

What waits, in another terminal:""",
        soft_wrap=True,
    )
    screen.print(
        f"""  export VOUCHGATE_TOKEN={reviewer}
  export VOUCHGATE_DATABASE_URL={database_url}
  vouchgate review list
  vouchgate review show ID""",
        soft_wrap=True,
    )
