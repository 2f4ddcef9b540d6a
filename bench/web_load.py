"""What slow and popular hosts cost: claims without URLs while hundreds wait for pages, and a flood on one host.

The site answers on many loopback addresses, each of which is a host of its own to the gate. Site, gate and
client run in processes of their own.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import socket
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from multiprocessing.connection import Connection
from random import Random

from bench.http_load import bodies_of, serve_service, server, token_for, unlimited, word

IN_FLIGHT = 500  # claims that wait for a page
HOSTS = 250  # two of them at each
SLOW_SECONDS = 5.0
PLAIN = 3_000  # claims without a URL, on each side of the comparison
FLOOD = 200  # claims that name one host, each another page of it
FLOOD_SECONDS = 12.0

_PAGE = "<html><head><title>{0}</title></head><body><p>{0} writes one row for every event.</p></body></html>"


class _Site:
    """The pages, and how they were asked for."""

    def __init__(self) -> None:
        self.delay = SLOW_SECONDS
        self.now: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.starts: dict[str, list[float]] = {}

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request, one answer."""
        host = writer.get_extra_info("sockname")[0]
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            self.now[host] += 1
            self.most[host] = max(self.most[host], self.now[host])
            self.starts.setdefault(host, []).append(time.monotonic())
            await asyncio.sleep(self.delay)
            self.now[host] -= 1
            path = head.split(b" ")[1].decode()
            body = _PAGE.format(path).encode()
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\nContent-Length: "
                + str(len(body)).encode()
                + b"\r\n\r\n"
                + (b"" if head.startswith(b"HEAD") else body)
            )
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the gate went away: its deadline has passed
        finally:
            writer.close()


def _serve_site(commands: Connection) -> None:
    """Serves until told otherwise; a number sets the delay, None asks for the figures of every host."""

    async def serve() -> None:
        site = _Site()
        hosts = [f"127.0.{1 + number // 200}.{1 + number % 200}" for number in range(HOSTS)]
        with socket.socket() as probe:
            probe.bind((hosts[0], 0))
            port = probe.getsockname()[1]
        await asyncio.start_server(site.answer, hosts, port, backlog=1024)
        commands.send((hosts, port))
        while True:
            command = await asyncio.to_thread(commands.recv)
            if command is None:
                commands.send((dict(site.most), dict(site.starts)))
                site.most.clear()
                site.starts.clear()
            else:
                site.delay = command

    asyncio.run(serve())


def _serve_gate(listener: socket.socket, folder: str, site_port: int) -> None:
    from vouchgate.settings import Settings

    settings = Settings(
        database_url=f"sqlite:///{folder}/gate.db",
        policy=unlimited(folder),
        citation_networks=(f"127.0.0.0/8:{site_port}",),
    )
    serve_service(listener, settings)


def _naming(urls: Iterator[str], random: Random) -> Iterator[bytes]:
    for url in urls:
        words = " ".join(word(random) for _ in range(12))
        yield json.dumps(
            {
                "content": f"The {words} is described at {url}",
                "memory_type": "fact",
                "source": "ai_synthesis",
                "user_id": f"owner-{random.randrange(40)}",
            }
        ).encode()


async def _post(port: int, token: str, bodies: Iterator[bytes], taken: list[float]) -> None:
    """One kept connection; every body is one claim. The seconds each took are noted."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = (
        f"POST /v1/claims HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
        "Content-Type: application/json\r\nContent-Length: "
    ).encode()
    try:
        for body in bodies:
            start = time.perf_counter()
            writer.write(head + str(len(body)).encode() + b"\r\n\r\n" + body)
            header = await reader.readuntil(b"\r\n\r\n")
            length = int(header.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            taken.append(time.perf_counter() - start)
    finally:
        writer.close()


async def _plain(port: int, token: str, random: Random) -> list[float]:
    bodies = iter(list(bodies_of(PLAIN, random)))
    taken: list[float] = []
    await asyncio.gather(*(_post(port, token, bodies, taken) for _ in range(4)))
    return taken


async def _beside_slow(port: int, token: str, urls: list[str], random: Random) -> tuple[list[float], int]:
    """Claims without URLs while IN_FLIGHT others wait; how many of those waited at the end."""
    waiting = [asyncio.create_task(_post(port, token, _naming(iter([url]), random), [])) for url in urls]
    await asyncio.sleep(1.0)  # until all have been read
    taken = await _plain(port, token, random)
    left = sum(not task.done() for task in waiting)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    return taken, left


async def _flood(port: int, token: str, urls: list[str], random: Random) -> None:
    tasks = [asyncio.create_task(_post(port, token, _naming(iter([url]), random), [])) for url in urls]
    await asyncio.wait(tasks, timeout=FLOOD_SECONDS)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _percentiles(taken: list[float]) -> tuple[float, float]:
    cuts = statistics.quantiles(taken, n=100)
    return cuts[49] * 1000, cuts[98] * 1000


def run() -> None:
    """Prints the latency of claims without URLs alone and beside the waiting ones, and what one host was sent."""
    random = Random(26)
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    site = context.Process(target=_serve_site, args=(theirs,), daemon=True)
    site.start()
    hosts, site_port = ours.recv()
    with tempfile.TemporaryDirectory() as folder:
        token = token_for(folder)
        with server(partial(_serve_gate, site_port=site_port), folder) as port:
            asyncio.run(_plain(port, token, random))  # warm-up
            alone = asyncio.run(_plain(port, token, random))
            urls = [f"http://{hosts[n % HOSTS]}:{site_port}/page-{n}" for n in range(IN_FLIGHT)]
            beside, left = asyncio.run(_beside_slow(port, token, urls, random))
            ours.send(None)
            ours.recv()
            ours.send(1.0)
            asyncio.run(
                _flood(
                    port, token, [f"http://{hosts[0]}:{site_port}/flood-{n}" for n in range(FLOOD)], random
                )
            )
            ours.send(None)
            most, starts = ours.recv()
    site.terminate()
    site.join(10)
    before, after = _percentiles(alone), _percentiles(beside)
    print(
        f"\nClaims without URLs, 4 connections, alone and beside {IN_FLIGHT} whose pages take {SLOW_SECONDS:g} s"
    )
    print(f"  alone    p50 {before[0]:6.2f} ms   p99 {before[1]:6.2f} ms")
    print(f"  beside   p50 {after[0]:6.2f} ms   p99 {after[1]:6.2f} ms   ({left} still waited at the end)")
    print(f"  beside / alone   p50 {after[0] / before[0]:.2f}   p99 {after[1] / before[1]:.2f}")
    asked = starts.get(hosts[0], [])
    gaps = [later - earlier for earlier, later in pairwise(asked)]
    print(f"{FLOOD} claims that name pages of one host, within {FLOOD_SECONDS:g} s")
    print(
        f"  the host was sent {len(asked)} requests, at most {most.get(hosts[0], 0)} at once,"
        f" median gap {statistics.median(gaps) if gaps else 0:.2f} s"
    )
