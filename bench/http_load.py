"""POST /v1/claims under 16 connections on SQLite and PostgreSQL, beside two endpoints of the same framework.

(a) does nothing: what the framework and the wire cost. (b) inserts one row and commits it with the same
durability: what keeping something costs the plain way, once with nothing but the driver and once (b') through
SQLModel, as most services would write it. Every server runs in a process of its own on loopback;
the client is one more process, so on two cores server and client do not share one; where two processes of the gate
share a port and a database, all three share two cores.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import secrets
import socket
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import psycopg

from bench.postgres import postgresql
from vouchgate.wire import ClaimIn

if TYPE_CHECKING:
    from vouchgate.settings import Settings

Serve = Callable[[socket.socket, str], None]

CONNECTIONS = 16
REQUESTS = 6_000
ROUNDS = 3
OWNERS = 8


def serve_app(app: object, listener: socket.socket) -> None:
    import uvicorn

    config = uvicorn.Config(app, log_level="warning", access_log=False, loop="uvloop", http="httptools")  # type: ignore[arg-type]
    uvicorn.Server(config).run(sockets=[listener])


def _serve_nothing(listener: socket.socket, folder: str) -> None:
    from fastapi import FastAPI

    app = FastAPI()

    @app.post("/v1/claims", status_code=201)
    async def nothing(sent: ClaimIn) -> dict[str, str]:
        return {"outcome": "stored"}

    serve_app(app, listener)


def _serve_one_row(listener: socket.socket, folder: str) -> None:
    from fastapi import FastAPI

    url = _url_in(folder)
    sqlite = url.startswith("sqlite")
    connection: sqlite3.Connection | psycopg.Connection
    if sqlite:
        connection = sqlite3.connect(Path(folder) / "rows.db", isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
    else:
        connection = psycopg.connect(url.replace("+psycopg", ""), autocommit=True)
    connection.execute("CREATE TABLE one_row (id TEXT PRIMARY KEY, owner TEXT, content TEXT, at TEXT)")
    insert = "INSERT INTO one_row VALUES (?, ?, ?, ?)"
    if not sqlite:
        insert = insert.replace("?", "%s")
    app = FastAPI()

    @app.post("/v1/claims", status_code=201)
    async def one_row(sent: ClaimIn) -> dict[str, str]:
        row = (secrets.token_hex(16), sent.user_id, sent.content, datetime.now(UTC).isoformat())
        connection.execute("BEGIN IMMEDIATE" if sqlite else "BEGIN")
        connection.execute(insert, row)
        connection.execute("COMMIT")
        return {"outcome": "stored"}

    serve_app(app, listener)


def _serve_one_row_sqlmodel(listener: socket.socket, folder: str) -> None:
    from fastapi import FastAPI
    from sqlmodel import Field, Session, SQLModel

    from vouchgate.storage.engine import open_engine

    class OneRow(SQLModel, table=True):
        name: str = Field(primary_key=True)
        value: str

    url = _url_in(folder).replace("gate.db", "model.db")
    engine = open_engine(url).execution_options(vouchgate_write=True)
    SQLModel.metadata.create_all(engine)
    app = FastAPI()

    @app.post("/v1/claims", status_code=201)
    async def one_row(sent: ClaimIn) -> dict[str, str]:
        with Session(engine) as session:
            session.add(OneRow(name=secrets.token_hex(16), value=sent.content))
            session.commit()
        return {"outcome": "stored"}

    serve_app(app, listener)


def _serve_gate(listener: socket.socket, folder: str) -> None:
    from vouchgate.settings import Settings

    serve_service(listener, Settings(database_url=_url_in(folder), policy=unlimited(folder)))


def serve_service(listener: socket.socket, settings: Settings) -> None:
    """The gate as `vouchgate serve` serves it, until it is told to stop."""
    from vouchgate.cli.serve import server_for
    from vouchgate.server.app import create_app
    from vouchgate.server.interpreter import tune_interpreter
    from vouchgate.service import open_service

    with open_service(settings) as service:
        server = server_for(create_app(service), lambda: None, service.sources.stop_reading)
        tune_interpreter()
        server.serve_on(listener)


def _url_in(folder: str) -> str:
    """Of the database: the one that a file names, or a new one in the folder."""
    named = Path(folder) / "database-url"
    return named.read_text() if named.exists() else f"sqlite:///{folder}/gate.db"


def unlimited(folder: str, more: str = "") -> Path:
    """A policy that lets one token send as much as it likes, with what else is said of it."""
    policy = Path(folder) / "policy.toml"
    policy.write_text(f"[limits]\nclaims_per_minute = 0\n{more}")
    return policy


def token_for(folder: str) -> str:
    from vouchgate.ingest.claims.claim import Source
    from vouchgate.ingest.claims.people import Role
    from vouchgate.service import open_service
    from vouchgate.settings import Settings
    from vouchgate.storage.identity import tokens

    with open_service(Settings(database_url=_url_in(folder))) as service:
        _, secret = tokens.create(
            service.store,
            role=Role.AGENT,
            name="bench",
            owners=frozenset(),
            any_owner=True,
            new_owners=True,
            sources=frozenset({Source.USER}),
            expires_at=None,
            actor="bench",
            now=datetime.now(UTC),
        )
    return secret


def word(random: Random) -> str:
    """A word of two to four syllables: prose to every check, and new in nearly every claim."""
    return "".join(
        random.choice("bdfgklmnprstv") + random.choice("aeiou") for _ in range(random.randint(2, 4))
    )


def bodies_of(count: int, random: Random) -> Iterator[bytes]:
    """Claims that are all new: a template would make them near-duplicates of one another."""
    for number in range(count):
        words = [word(random) for _ in range(18)]
        yield json.dumps(
            {
                "content": f"The {' '.join(words)} writes one row for every event",
                "memory_type": "fact",
                "source": "user",
                "user_id": f"owner-{number % OWNERS}",
            }
        ).encode()


async def _connection(port: int, token: str, bodies: Iterator[bytes], taken: list[float]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = (
        f"POST /v1/claims HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
        "Content-Type: application/json\r\nContent-Length: "
    ).encode()
    for body in bodies:
        start = time.perf_counter()
        writer.write(head + str(len(body)).encode() + b"\r\n\r\n" + body)
        header = await reader.readuntil(b"\r\n\r\n")
        if not header.startswith(b"HTTP/1.1 201"):
            raise RuntimeError(f"unexpected answer: {header[:100]!r}")
        length = int(header.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
        taken.append(time.perf_counter() - start)
    writer.close()
    await writer.wait_closed()


async def _load(port: int, token: str, count: int, random: Random) -> tuple[float, float, float]:
    """Answers a second, median and 99th percentile in ms."""
    bodies = iter(list(bodies_of(count, random)))
    taken: list[float] = []
    start = time.perf_counter()
    await asyncio.gather(*(_connection(port, token, bodies, taken) for _ in range(CONNECTIONS)))
    seconds = time.perf_counter() - start
    cuts = statistics.quantiles(taken, n=100)
    return count / seconds, cuts[49] * 1000, cuts[98] * 1000


@contextmanager
def server(serve: Serve, folder: str, processes: int = 1) -> Iterator[int]:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(128)
    fork = multiprocessing.get_context("fork")
    running = [fork.Process(target=serve, args=(listener, folder), daemon=True) for _ in range(processes)]
    for process in running:
        process.start()
    try:
        yield listener.getsockname()[1]
    finally:
        for process in running:
            process.terminate()
            process.join(10)
            process.kill()  # one that has work left would find its database gone
            process.join()
        listener.close()


def run() -> None:
    """Prints for each database a row per server and the ratios, of the medians over the rounds."""
    print(f"\nPOST /v1/claims, {CONNECTIONS} connections, {REQUESTS} requests, {ROUNDS} rounds")
    _measure("SQLite", None)
    with postgresql() as databases, databases() as url:
        _measure("PostgreSQL", url)


def _measure(database: str, url: str | None) -> None:
    servers: dict[str, tuple[Serve, int]] = {
        "(a) does nothing": (_serve_nothing, 1),
        "(b) one row, one commit": (_serve_one_row, 1),
        "(b') the same, SQLModel": (_serve_one_row_sqlmodel, 1),
        "gate": (_serve_gate, 1),
        "gate, two processes": (_serve_gate, 2),
    }
    random = Random(25)  # the same claims in every run
    rates: dict[str, list[tuple[float, float, float]]] = {name: [] for name in servers}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as running:
        if url is not None:
            (Path(folder) / "database-url").write_text(url)
        token = token_for(folder)
        ports = {
            name: running.enter_context(server(serve[0], folder, serve[1])) for name, serve in servers.items()
        }
        for port in ports.values():
            asyncio.run(_load(port, token, 500, random))  # warm-up
        for _ in range(ROUNDS):
            for name, port in ports.items():
                rates[name].append(asyncio.run(_load(port, token, REQUESTS, random)))
    print(f" {database}")
    median = {name: statistics.median(rate for rate, _, _ in rows) for name, rows in rates.items()}
    for name, rows in rates.items():
        p50 = statistics.median(row[1] for row in rows)
        p99 = statistics.median(row[2] for row in rows)
        print(f"  {name:<24} {median[name]:7.0f}/s   p50 {p50:6.2f} ms   p99 {p99:6.2f} ms")
    nothing, one_row, one_model, gate, two = median.values()
    print(
        f"  gate / (a) {gate / nothing:.2f}   gate / (b) {gate / one_row:.2f}   gate / (b') {gate / one_model:.2f}"
        f"   two processes / one {two / gate:.2f}"
    )
