"""The real service in a process of its own, and tokens to call it with."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import TextIO

import httpx

from tests.running.processes import Program
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.people import Role
from vouchgate.storage.identity import tokens
from vouchgate.storage.store import Store

THRESHOLD = Fraction(23, 25)
ALL_SOURCES = frozenset(Source) - {Source.AI_SYNTHESIS}


def make_token(
    database_url: str,
    role: Role,
    owners: Sequence[str] = (),
    *,
    any_owner: bool = False,
    sources: frozenset[Source] = frozenset(),
    expires_at: datetime | None = None,
) -> str:
    """A new token in the database of this URL."""
    store = Store.open(database_url, threshold=THRESHOLD)
    try:
        _, secret = tokens.create(
            store,
            role=role,
            name=f"test {role.value}",
            owners=list(owners),
            any_owner=any_owner,
            new_owners=any_owner and role is Role.AGENT,
            sources=sources,
            expires_at=expires_at,
            actor="test",
            now=datetime.now(UTC),
        )
    finally:
        store.close()
    return secret


@dataclass
class Running:
    """A served gate. `client(token)` calls it; the process may be killed by the test."""

    url: str
    process: Program | subprocess.Popen[bytes]
    output: list[str]

    def client(self, token: str | None = None) -> httpx.Client:
        """An HTTP client, without TLS; close it."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=120, verify=False)  # noqa: S501


@contextmanager
def serve(
    database_url: str,
    *,
    repos: Sequence[Path] = (),
    policy: Path | None = None,
    workers: int = 1,
    environment: Mapping[str, str] | None = None,
    anew: bool = False,
    port: int = 0,
) -> Iterator[Running]:
    """`vouchgate serve` on a free port of this machine, stopped at the end; with `anew` in an interpreter that starts
    for it."""
    arguments = ["serve", "--port", str(port), "--database-url", database_url]
    for repo in repos:
        arguments += ["--repo", str(repo)]
    if policy is not None:
        arguments += ["--policy", str(policy)]
    if workers > 1:
        arguments += ["--workers", str(workers)]
    theirs, ours = os.pipe()
    said = os.fdopen(theirs, encoding="utf-8")
    folder = tempfile.mkdtemp(prefix="serve-")  # what a first start leaves there goes with it
    variables = {**os.environ, **(environment or {})}
    process: Program | subprocess.Popen[bytes]
    try:
        with Path(os.devnull).open() as nothing:
            if anew:
                process = subprocess.Popen(
                    [sys.executable, "-m", "vouchgate.cli", *arguments],
                    cwd=folder,
                    env=variables,
                    stdin=nothing,
                    stdout=ours,
                    stderr=ours,
                )
            else:
                process = Program(
                    arguments, directory=Path(folder), environment=variables, streams=(nothing, ours, ours)
                )
    finally:
        os.close(ours)
    output: list[str] = []
    try:
        yield Running(_address(said, output), process, output)
    finally:
        process.terminate()
        try:
            process.wait(120)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(120)
            raise
        finally:
            said.close()
            shutil.rmtree(folder)


def _address(said: TextIO, output: list[str]) -> str:
    for line in said:
        output.append(line)
        if line.startswith("listening on "):
            # Whatever it says later is kept for the test, and must not fill the pipe.
            threading.Thread(target=_keep, args=(said, output), daemon=True).start()
            return line.removeprefix("listening on ").strip()
    raise RuntimeError(f"the server did not start: {''.join(output)}")


def _keep(lines: Iterator[str], output: list[str]) -> None:
    try:
        output.extend(lines)
    except ValueError:
        return  # the test is over and has closed the pipe


def workers_of(running: Running) -> set[int]:
    """The ids of the processes of a service with several workers as they are now; none when it has ended."""
    return {worker for child in children(running.process.pid) for worker in children(child)}


def children(parent: int) -> set[int]:
    """The processes that this one has started: of the service, the one that its workers are forked from, and another
    of Python's own that has none."""
    return {
        int(pid)
        for task in Path(f"/proc/{parent}/task").glob("*/children")
        if task.exists()
        for pid in task.read_text().split()
    }
