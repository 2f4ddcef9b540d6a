"""`vouchgate import` of many claims without citations, beside a plain loop over the same file that inserts and commits
500 rows at a time into one table, on SQLite with the same durability.

The loop keeps the texts and nothing else. The import checks each claim for credentials, hedges, citations, duplicates
and conflicts, decides, and keeps memory, evidence, decision, dedup and similarity keys, and a chained log entry.
Every import is a process of its own, from its start to its end.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.claims import Generator
from bench.http_load import token_for
from vouchgate.ingest.citations import detect_citations

ROWS = 100_000
COMMIT_EVERY = 500
OWNERS = 8


def run(rows: int = ROWS) -> None:
    """Measures once each, and prints claims a second and the ratio."""
    print(f"\nimport: {rows:,} claims without citations, SQLite, commits on disk")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        file = folder / "memories.jsonl"
        _write(file, rows)
        plain = rows / _plain(file, folder / "plain.db")
        print(f"  a plain loop, {COMMIT_EVERY} rows a commit   {plain:>10,.0f} rows/s")
        environment = {
            **os.environ,
            "VOUCHGATE_TOKEN": token_for(made),
            "VOUCHGATE_DATABASE_URL": f"sqlite:///{folder}/gate.db",
            "VOUCHGATE_OFFLINE": "true",
        }
        first = rows / _import(file, environment, "--source", "user")
        _line("vouchgate import", first, plain)
        _line("again, all of it done before", rows / _import(file, environment, "--source", "user"), plain)
        _line("vouchgate import --dry-run", rows / _import(file, environment, "--dry-run"), plain)
        _check(folder / "gate.db", rows)


def _line(name: str, rate: float, plain: float) -> None:
    print(f"  {name:<31} {rate:>10,.0f} claims/s, 1/{plain / rate:,.0f} of the plain loop")


def _write(file: Path, rows: int) -> None:
    generator = Generator("import")
    with file.open("w") as stream:
        written = 0
        while written < rows:
            text = generator.claim()
            if detect_citations(text):
                continue
            row = {"content": text, "user_id": f"owner-{written % OWNERS}", "id": written}
            stream.write(json.dumps(row) + "\n")
            written += 1


def _plain(file: Path, database: Path) -> float:
    """Seconds of the loop that most would write."""
    started = time.perf_counter()
    connection = sqlite3.connect(database, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE memory (id INTEGER PRIMARY KEY, user_id TEXT, content TEXT)")
    with file.open() as stream:
        waiting: list[tuple[object, ...]] = []
        for line in stream:
            row = json.loads(line)
            waiting.append((row["id"], row["user_id"], row["content"]))
            if len(waiting) == COMMIT_EVERY:
                _insert(connection, waiting)
                waiting.clear()
        if waiting:
            _insert(connection, waiting)
    connection.close()
    return time.perf_counter() - started


def _insert(connection: sqlite3.Connection, rows: list[tuple[object, ...]]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany("INSERT INTO memory VALUES (?, ?, ?)", rows)
    connection.execute("COMMIT")


def _import(file: Path, environment: dict[str, str], *options: str) -> float:
    """Seconds of one run. A full queue is no failure here: what is hedged waits for owners who never come."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "vouchgate.cli", "import", str(file), *options]
    done = subprocess.run(
        command, cwd=file.parent, env=environment, capture_output=True, check=False, text=True
    )
    seconds = time.perf_counter() - started
    if done.returncode and "review queue" not in done.stderr:
        raise RuntimeError(done.stderr)
    return seconds


def _check(database: Path, rows: int) -> None:
    connection = sqlite3.connect(database)
    (stored,) = connection.execute("SELECT count(*) FROM memory").fetchone()
    (decided,) = connection.execute("SELECT count(*) FROM decision").fetchone()
    connection.close()
    print(f"  {stored:,} stored; of {rows:,} rows {decided:,} have a decision")
