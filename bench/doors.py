"""A write through a door, beside what it is made of: the same write to the bare store, and one POST of a claim.

The doors are `GatedStore` around LangGraph's SqliteStore, and `vouchgate mcp-gate` around two memory servers of other
people, one of files and one of SQLite. Every text is new, from a source that is granted, so all of it is stored. The
three take turns, one write each, with one owner and one connection; times are medians. What is aimed at is a gated
write of at most twice the bare store plus one POST.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from random import Random
from typing import TypeVar

from bench.http_load import _serve_gate, server, token_for, unlimited, word
from vouchgate.client import AsyncClient, Client
from vouchgate.ingest.claims.claim import Source

WRITES = 200
PRESETS = ("knowledge-graph", "memory-service")

T = TypeVar("T")
Times = defaultdict[str, list[float]]


def run() -> None:
    """Prints a row a door."""
    print(f"\na write through a door, one after another, medians of {WRITES}")
    with tempfile.TemporaryDirectory() as folder:
        unlimited(folder)
        token = token_for(folder)
        with server(_serve_gate, folder) as port:
            url = f"http://127.0.0.1:{port}"
            _print("LangGraph, SqliteStore", _langgraph(url, token, Path(folder)))
            for preset in PRESETS:
                taken = asyncio.run(_mcp(preset, url, token, Path(folder)))
                _print(f"mcp-gate, {preset}", taken)


def _print(door: str, taken: Times) -> None:
    bare, post, gated = (statistics.median(taken[what]) * 1000 for what in ("bare", "post", "gated"))
    print(
        f"  {door:<26} bare {bare:6.2f} ms   POST {post:6.2f} ms   gated {gated:6.2f} ms"
        f"   gated / (bare + POST) {gated / (bare + post):.2f}"
    )


def _texts() -> Iterator[str]:
    random = Random(19)
    for number in count():
        yield f"The {' '.join(word(random) for _ in range(12))} is kept in room {number}"


@contextmanager
def _timed(taken: Times, what: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    taken[what].append(time.perf_counter() - start)


async def _awaited(taken: Times, what: str, done: Awaitable[T]) -> T:
    with _timed(taken, what):
        return await done


def _langgraph(url: str, token: str, folder: Path) -> Times:
    from langgraph.store.sqlite import SqliteStore

    from vouchgate.adapters.langgraph import GatedStore

    taken, texts, namespace = Times(list), _texts(), ("memories", "ann")
    with SqliteStore.from_conn_string(str(folder / "store.db")) as inner, Client(url, token) as client:
        inner.setup()
        gated = GatedStore(inner, client, source=Source.USER, user_id="ann")
        for number in range(WRITES):
            with _timed(taken, "bare"):
                inner.put(namespace, f"bare {number}", {"content": next(texts)})
            with _timed(taken, "post"):
                _stored(client.save(next(texts), source=Source.USER, user_id="ann").stored)
            with _timed(taken, "gated"):
                gated.put(namespace, f"gated {number}", {"content": next(texts)})
    return taken


async def _mcp(preset: str, url: str, token: str, folder: Path) -> Times:
    from tests.stores.memory_servers import STORES
    from vouchgate.mcp.gate.config import load
    from vouchgate.mcp.gate.memory_gate import MemoryGate
    from vouchgate.mcp.gate.owner import Owner
    from vouchgate.mcp.gate.pins import Pins
    from vouchgate.mcp.gate.proxy import Downstream, result_of
    from vouchgate.mcp.gate.relay import Relay

    (store,) = (each for each in STORES if each.preset == preset)
    taken, texts = Times(list), _texts()
    command = store.start(folder, folder)  # neither is one of the tests' own programs
    downstream = Downstream(command, Relay(), Pins(folder / f"{preset}.json", lambda _: None))
    try:
        downstream.pins.pin_first(await downstream.all_tools())
        await downstream.tools()
        config = load(preset, None).model_copy(update={"source": Source.USER})
        async with AsyncClient(url, token) as client:
            gate = MemoryGate(client, downstream, config, downstream.client.schemas, Owner(client, preset))
            for number in range(WRITES):
                tool, arguments = store.write(f"bare {number}", next(texts))
                await _awaited(taken, "bare", downstream.call(tool, arguments))
                sent = client.save(next(texts), source=Source.USER, user_id=preset)
                _stored((await _awaited(taken, "post", sent)).stored)
                tool, arguments = store.write(f"gated {number}", next(texts))
                answer = result_of(await _awaited(taken, "gated", gate.write(tool, arguments)))
                _stored([each["state"] for each in (answer.meta or {})["vouchgate/verdicts"]] == ["written"])
    finally:
        await downstream.transport.disconnect()  # type: ignore[no-untyped-call]  # of fastmcp
    return taken


def _stored(whether: bool) -> None:
    if not whether:
        raise RuntimeError("a text was not stored, so nothing is measured")
