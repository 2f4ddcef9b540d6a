"""Waiting for PostgreSQL: who waits for a server that does not run is told so, and the service goes on when it does."""

from __future__ import annotations

import asyncio
import signal

import pytest
from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient
from sqlalchemy import text

from tests.claims import examined, submission_of
from tests.conftest import THRESHOLD, Postgresql
from vouchgate.api import operations
from vouchgate.server.app import create_app
from vouchgate.service import open_service
from vouchgate.settings import Settings
from vouchgate.storage import waiting
from vouchgate.storage.errors import StorageError, StoreBusy
from vouchgate.storage.store import Store

_MEMORIES = text("SELECT count(*) FROM decision")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a server on the same machine."""
    monkeypatch.setattr(waiting, "SILENT_SECONDS", 0.1)


@pytest.mark.on("postgresql")
@pytest.mark.usefixtures("impatient")
def test_nobody_waits_for_good_for_a_server_that_is_frozen(
    request: pytest.FixtureRequest, database_url: str, postgresql: Postgresql
) -> None:
    url = f"{database_url}&connect_timeout=2"
    store, ended = (Store.open(url, threshold=THRESHOLD) for _ in range(2))

    def claim(number: int) -> None:
        store.writer.submit(submission_of(examined(f"Lamp {number} hangs over door {number}."))).result()

    claim(1)
    with store.read() as idle:
        with pytest.raises(StorageError, match="does not answer any more"), store.read() as asked:
            assert asked.scalar(_MEMORIES) == 1
            postgresql.signal(signal.SIGSTOP)
            request.addfinalizer(lambda: postgresql.signal(signal.SIGCONT))
            asked.scalar(_MEMORIES)
        with pytest.raises(StoreBusy):
            claim(2)
        ended.close()
        postgresql.signal(signal.SIGCONT)
        assert idle.scalar(_MEMORIES) == 1  # who asked nothing meanwhile goes on
    claim(2)
    with store.read() as connection:
        assert connection.scalar(_MEMORIES) == 2
    store.close()


@pytest.mark.on("postgresql")
def test_who_asks_whether_the_service_is_ready_does_not_wait_for_one_that_is_frozen(
    request: pytest.FixtureRequest,
    database_url: str,
    postgresql: Postgresql,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def ask(app: FastAPI) -> None:
        async with AsyncClient(transport=ASGITransport(app), base_url="http://gate") as client:
            assert (await client.get("/readyz")).status_code == 200
            monkeypatch.setattr(operations, "LOOK_SECONDS", 0.1)
            postgresql.signal(signal.SIGSTOP)
            request.addfinalizer(lambda: postgresql.signal(signal.SIGCONT))
            late = await asyncio.gather(*(client.get("/readyz") for _ in range(3)))
            postgresql.signal(signal.SIGCONT)
            for answer in late:
                assert answer.status_code == 503
                assert "the database has not answered for" in answer.json()["detail"]
            monkeypatch.setattr(operations, "LOOK_SECONDS", 60)
            assert (await client.get("/readyz")).status_code == 200  # what was begun for the others

    with open_service(Settings(database_url=database_url, offline=True)) as service:
        asyncio.run(ask(create_app(service)))


@pytest.mark.on("postgresql")
@pytest.mark.usefixtures("impatient")
def test_a_statement_may_take_longer_than_that(database_url: str) -> None:
    store = Store.open(database_url, threshold=THRESHOLD)
    with store.read() as connection:
        assert connection.scalar(text("SELECT 1 FROM pg_sleep(0.5)")) == 1
    store.close()
