"""What a gate costs that nobody asks: how long it takes to start, its share of a core, its memory, with no owners and
with 10,000. `vouchgate serve` on SQLite, in a process of its own, beside the start of a bare framework."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

OWNERS = 10_000
SECONDS = 60.0
_BARE = "import fastapi, httpx, sqlmodel, uvicorn; fastapi.FastAPI(); print('listening on', flush=True)"
_SERVE = ("-m", "vouchgate.cli", "serve", "--port", "0")


def _started(*arguments: str, folder: str) -> tuple[subprocess.Popen[str], float, float]:
    """The program once it listens, and how many seconds that took: by the clock, and of the processor."""
    began = time.perf_counter()
    settings = os.environ | {"VOUCHGATE_DATABASE_URL": f"sqlite:///{folder}/gate.db"}
    program = subprocess.Popen(
        [sys.executable, *arguments],
        env=settings,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    if program.stdout is None or not any("listening on" in line for line in program.stdout):
        raise RuntimeError("it did not start")
    seconds = time.perf_counter() - began
    return program, seconds, _processor(program)


def _processor(program: subprocess.Popen[str]) -> float:
    try:
        times = psutil.Process(program.pid).cpu_times()
        return float(times.user + times.system)
    except psutil.NoSuchProcess:
        return float("nan")


def _fill(folder: str, owners: int) -> None:
    """Gives the database so many owners, of whom nothing is known."""
    from bench.http_load import token_for
    from vouchgate.storage.engine import open_engine, writing
    from vouchgate.storage.identity.owners import lock_owners

    token_for(folder)
    engine = open_engine(f"sqlite:///{folder}/gate.db")
    with writing(engine) as connection:
        lock_owners(connection, [f"owner-{number:05}" for number in range(owners)])
    engine.dispose()


def run() -> None:
    """Prints a row for each number of owners."""
    print(f"\nvouchgate serve, SQLite, nobody asks for {SECONDS:.0f} s")
    with tempfile.TemporaryDirectory() as folder:
        bare, seconds, _ = _started("-c", _BARE, folder=folder)
        bare.wait()
        print(f"  the framework alone starts in {seconds:.2f} s")
    for owners in (0, OWNERS):
        with tempfile.TemporaryDirectory() as folder:
            _fill(folder, owners)
            _stop(_started(*_SERVE, folder=folder)[0])  # what is compiled and made once, is
            program, seconds, started = _started(*_SERVE, folder=folder)
            time.sleep(5)
            before = _processor(program)
            time.sleep(SECONDS)
            idle = (_processor(program) - before) / SECONDS
            memory = psutil.Process(program.pid).memory_info().rss / 2**20
            size = Path(folder, "gate.db").stat().st_size / 2**20
            print(
                f"  {owners:6} owners ({size:.0f} MiB)   start {seconds:.2f} s ({started:.2f} s of the processor)"
                f"   idle {idle:.2%} of a core   {memory:.0f} MiB"
            )
            _stop(program)


def _stop(program: subprocess.Popen[str]) -> None:
    program.send_signal(signal.SIGTERM)
    program.wait(60)
