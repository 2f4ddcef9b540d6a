"""What one owner's worst costs another: single claims of a quiet owner alone, and while another sends batches of long
near-duplicates, checks such texts from eight connections, and cites hosts that answer after five seconds.

The quiet owner cites nothing in most claims, and in every tenth a page of a host that answers at once. Site, gate and
each side's client run in processes of their own; no rate limit stands in the way.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import socket
import statistics
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from itertools import count
from random import Random

from bench.http_load import serve_service, server, token_for, unlimited, word

QUIET = 500  # claims of the quiet owner on each side of the comparison
PAUSE = 0.005  # seconds between two of them: a person's agent, not a flood
BATCH = 200  # texts of one batch
CHARACTERS = 2_000  # of each
CHECKERS, BATCHES, CITERS = 8, 2, 8  # connections of the other owner
SLOW_SECONDS = 5.0
HOSTS = 200  # slow ones; 20 in a claim


async def _answer(seconds: float, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(seconds)
        page = b"<html><title>Gate</title><p>The gate writes one row for every event.</p></html>"
        head = (
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
        )
        writer.write(head % len(page) + page)
        await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass  # the gate's time was over
    finally:
        writer.close()


def _serve_site(listener: socket.socket, folder: str) -> None:
    """The slow hosts, and on the next address one that answers at once; all at one port."""

    async def serve() -> None:
        port = listener.getsockname()[1]
        slow = [f"127.0.1.{number + 1}" for number in range(HOSTS)]
        await asyncio.start_server(partial(_answer, SLOW_SECONDS), slow, port, backlog=1024)
        quick = await asyncio.start_server(partial(_answer, 0.0), ["127.0.2.1"], port, backlog=1024)
        await quick.serve_forever()

    asyncio.run(serve())


def _serve_gate(listener: socket.socket, folder: str, site: int) -> None:
    from vouchgate.settings import Settings

    policy = unlimited(
        folder, "[queue]\nper_agent = 100000\nper_owner = 100000\n[web]\nspacing_seconds = 0.0\n"
    )
    networks = (f"127.0.0.0/8:{site}",)
    settings = Settings(database_url=f"sqlite:///{folder}/gate.db", citation_networks=networks, policy=policy)
    serve_service(listener, settings)


def _claim(owner: str, content: str, source: str = "ai_synthesis") -> dict[str, object]:
    return {"content": content, "memory_type": "fact", "source": source, "user_id": owner}


def _long(random: Random, words: list[str]) -> str:
    """One of many texts that share most of their words."""
    text = words.copy()
    for _ in range(len(text) // 12):
        text[random.randrange(len(text))] = word(random)
    return " ".join(text)[:CHARACTERS]


def _quiet(random: Random, number: int, site: int) -> dict[str, object]:
    words = " ".join(word(random) for _ in range(18))
    cites = f" (http://127.0.2.1:{site}/{number})" if number % 10 == 0 else ""
    return _claim("quiet", f"The {words} writes one row for every event{cites}", "user")


async def _send(
    port: int, token: str, path: str, bodies: Iterator[dict[str, object]], *, pause: float = 0.0
) -> list[tuple[float, bytes]]:
    """One kept connection: the seconds that each answer took, and the answers."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
        "Content-Type: application/json\r\nContent-Length: "
    ).encode()
    taken = []
    for body in bodies:
        sent = json.dumps(body).encode()
        start = time.perf_counter()
        writer.write(head + str(len(sent)).encode() + b"\r\n\r\n" + sent)
        header = await reader.readuntil(b"\r\n\r\n")
        length = int(header.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        answer = await reader.readexactly(length)
        taken.append((time.perf_counter() - start, answer))
        await asyncio.sleep(pause)
    writer.close()
    return taken


def _attack(port: int, token: str, site: int) -> None:
    """Sends without end what costs most, as the owner "loud"."""
    random = Random(2)
    words = [word(random) for _ in range(CHARACTERS // 5)]

    def text() -> dict[str, object]:
        return _claim("loud", _long(random, words))

    def citing() -> dict[str, object]:
        hosts = random.sample(range(HOSTS), 20)
        urls = [f"http://127.0.1.{host + 1}:{site}/{random.random()}" for host in hosts]
        return _claim("loud", f"The {' '.join(word(random) for _ in range(12))} is described") | {
            "citations": urls
        }

    async def send() -> None:
        forever = partial(_send, port, token)
        await asyncio.gather(
            *(
                forever("/v1/claims/batch", ({"claims": [text() for _ in range(BATCH)]} for _ in count()))
                for _ in range(BATCHES)
            ),
            *(forever("/v1/claims/check", (text() for _ in count())) for _ in range(CHECKERS)),
            *(forever("/v1/claims", (citing() for _ in count())) for _ in range(CITERS)),
        )

    asyncio.run(send())


def _measure(port: int, token: str, site: int, name: str, first: int) -> tuple[float, float]:
    random = Random(first)
    bodies = [_quiet(random, first + number, site) for number in range(QUIET)]
    taken = asyncio.run(_send(port, token, "/v1/claims", iter(bodies), pause=PAUSE))
    plain = [seconds * 1000 for at, (seconds, _) in enumerate(taken) if at % 10]
    citing = [seconds * 1000 for at, (seconds, _) in enumerate(taken) if at % 10 == 0]
    late = sum(b'"timeout"' in answer for _, answer in taken)
    refused = sum(b'"tier"' not in answer for _, answer in taken)
    p50, p99 = (statistics.quantiles(plain, n=100)[at] for at in (49, 98))
    print(
        f"  {name:<14} p50 {p50:8.2f} ms   p99 {p99:8.2f} ms   longest {max(plain):8.2f} ms;   citing a page: median"
        f" {statistics.median(citing):8.2f} ms, {late} of {len(citing)} not read in time; {refused} refused"
    )
    return p50, p99


def run() -> None:
    """Prints the quiet owner's latencies alone, beside the other, and their ratios."""
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder, server(_serve_site, folder) as site:
        token = token_for(folder)
        with server(partial(_serve_gate, site=site), folder) as port:
            print(f"\n{QUIET} single claims of a quiet owner, alone and beside one who sends the worst")
            _measure(port, token, site, "warm-up", 0)
            alone = _measure(port, token, site, "alone", QUIET)
            loud = context.Process(target=_attack, args=(port, token, site), daemon=True)
            loud.start()
            time.sleep(3.0)  # until all of it is under way
            beside = _measure(port, token, site, "under attack", 2 * QUIET)
            loud.kill()
            loud.join(10)
    print(f"  under attack / alone   p50 {beside[0] / alone[0]:.2f}   p99 {beside[1] / alone[1]:.2f}")


if __name__ == "__main__":
    run()
