"""What tables cut by owner cost: look-ups that name the owner, and such that do not, beside the whole table."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import psycopg
from sqlalchemy import text

from bench.postgres import postgresql
from vouchgate.storage.engine import migrate, open_engine, writing
from vouchgate.storage.tables.partitions import partition

ROWS, OWNERS = 200_000, 1_000
PARTS = (0, 16, 64)
ROUNDS, AT_ONCE = 15, 100
_INSERT = (
    "INSERT INTO memory (owner_id, id, memory_type, content, source, status, confidence, label, created_at, "
    "decision_id, details) "
)
_REST = "'fact', 'a text of some words', 'user', 'active', 'high', 'FACT', now(), 'dec_1', '{}'"
_FILL = text(
    f"{_INSERT} SELECT 'owner-' || g % :owners, 'mem_' || g, {_REST} FROM generate_series(0, :rows - 1) g"  # noqa: S608
)
_ADD = f"{_INSERT} VALUES (%s, %s, {_REST})".encode()
_BY: dict[str, tuple[bytes, Callable[[int], tuple[Any, ...]]]] = {
    "by owner and id": (
        b"SELECT content FROM memory WHERE owner_id = %s AND id = %s",
        lambda g: (f"owner-{g % OWNERS}", f"mem_{g}"),
    ),
    "by id alone": (b"SELECT content FROM memory WHERE id = %s", lambda g: (f"mem_{g}",)),
    "of a list of owners": (
        b"SELECT content FROM memory WHERE owner_id = ANY(%s) AND id = %s",
        lambda g: ([f"owner-{g % OWNERS}"], f"mem_{g}"),
    ),
}


def run() -> None:
    """Prints times of each kind in multiples of the whole table's; medians of rounds that take turns."""
    print(f"\nPartitions: {ROWS:,} memories of {OWNERS:,} owners, in multiples of the whole table")
    dice = random.Random(1)
    times: dict[tuple[str, int], list[float]] = {}
    with postgresql() as databases, ExitStack() as opened:
        connections = {parts: _filled(opened.enter_context(databases()), parts) for parts in PARTS}
        for number in range(ROUNDS):
            for parts, connection in connections.items():
                for name, (statement, parameters) in _BY.items():
                    asked = [parameters(dice.randrange(ROWS)) for _ in range(AT_ONCE)]
                    times.setdefault((name, parts), []).append(_seconds(connection, statement, asked))
                rows = [(f"owner-{g % OWNERS}", f"new_{number}_{g}") for g in range(AT_ONCE)]
                times.setdefault(("one row inserted", parts), []).append(_seconds(connection, _ADD, rows))
        for connection in connections.values():
            connection.close()
    for name in [*_BY, "one row inserted"]:
        took = {parts: statistics.median(times[name, parts]) for parts in PARTS}
        told = ", ".join(f"{parts} partitions {took[parts] / took[0]:.1f}" for parts in PARTS[1:])
        print(f"  {name:<20} {told}   (whole: {took[0] / AT_ONCE * 1e6:.0f} µs)")


def _filled(url: str, parts: int) -> psycopg.Connection:
    engine = open_engine(url)
    migrate(engine)
    with writing(engine) as connection:
        connection.execute(_FILL, {"owners": OWNERS, "rows": ROWS})
    if parts:
        begun = time.perf_counter()
        engine.dispose()
        with writing(engine) as connection:
            partition(connection, parts)
        print(f"  cut into {parts}: {time.perf_counter() - begun:.1f} s")
    engine.dispose()
    opened = psycopg.connect(url, autocommit=True, prepare_threshold=0)
    opened.execute(b"VACUUM ANALYZE memory")
    opened.execute(b"SET plan_cache_mode = force_generic_plan")
    return opened


def _seconds(connection: psycopg.Connection, statement: bytes, asked: list[tuple[Any, ...]]) -> float:
    begun = time.perf_counter()
    for parameters in asked:
        connection.execute(statement, parameters)
    return time.perf_counter() - begun
