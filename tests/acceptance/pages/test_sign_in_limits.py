"""Limits, faults and the public address of the pages: the application without a server, with settings, a clock and
faults of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from tests.running.service import make_token
from tests.visiting import SIGN_IN, cookie, hidden, is_page
from vouchgate.ingest.claims.people import Role
from vouchgate.server.app import create_app
from vouchgate.service import open_service
from vouchgate.settings import Settings
from vouchgate.storage.identity.sessions import create_link
from vouchgate.storage.store import Store
from vouchgate.web.session import COOKIE
from vouchgate.web.sign_in import ALL_ATTEMPTS_PER_MINUTE, ATTEMPTS_PER_MINUTE, Attempts


@dataclass
class Inside:
    """The whole application in this process, and browsers whose addresses the test chooses."""

    app: FastAPI
    store: Store
    now: float = 0.0  # of the clock by which attempts are counted, in seconds

    def browser(self, address: str, base_url: str = "http://gate") -> httpx.AsyncClient:
        """A browser at this address."""
        transport = httpx.ASGITransport(self.app, client=(address, 1), raise_app_exceptions=False)
        return httpx.AsyncClient(transport=transport, base_url=base_url)

    async def attempt(self, address: str, token: str | None = None, **headers: str) -> httpx.Response:
        """One attempt to sign in, with a token that is none unless one is given."""
        async with self.browser(address) as client:
            fields = hidden(await client.get(SIGN_IN))
            return await client.post(SIGN_IN, data=fields | {"token": token or "none"}, headers=headers)


@contextmanager
def inside(url: str, shared: Path | None = None, **settings: Any) -> Iterator[Inside]:
    """The application over this database."""
    with open_service(Settings(database_url=url, offline=True, **settings)) as service:
        gate = Inside(create_app(service), service.store)
        gate.app.state.sign_in_attempts = Attempts(shared, lambda: gate.now)
        yield gate


def run(work: Coroutine[Any, Any, None]) -> None:
    """Runs it to its end."""
    asyncio.run(work)


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A new SQLite file: what is looked at here is the same on both databases."""
    return f"sqlite:///{tmp_path}/vouchgate.db"


def test_what_is_wrong_is_limited_for_each_place_and_for_all_and_locks_nobody_out(url: str) -> None:
    token = make_token(url, Role.REVIEWER, ["ann"])
    agents = make_token(url, Role.AGENT, ["ann"])

    async def follow(gate: Inside, address: str, code: str) -> httpx.Response:
        async with gate.browser(address) as client:
            fields = hidden(await client.get(f"{SIGN_IN}/{code}"))
            return await client.post(f"{SIGN_IN}/{code}", data=fields)

    async def work(gate: Inside) -> None:
        for _ in range(20):
            answer = await gate.attempt("198.51.100.1", **{"Sec-Fetch-Site": "cross-site"})
            assert answer.status_code == 403  # takes none: or any site could shut a visitor out
        for _ in range(ATTEMPTS_PER_MINUTE - 1):
            assert "not known" in is_page(await gate.attempt("198.51.100.1"), 403)
        assert (await gate.attempt("198.51.100.1", agents)).status_code == 403
        refused = await gate.attempt("198.51.100.1")
        assert "Too many attempts" in is_page(refused, 429)
        assert refused.headers["retry-after"] == "7"  # ten a minute is one every six seconds
        is_page(await follow(gate, "198.51.100.1", "A" * 43), 429)  # links are counted with tokens
        left = ALL_ATTEMPTS_PER_MINUTE - ATTEMPTS_PER_MINUTE
        answers = [await gate.attempt(f"192.0.2.{n}") for n in range(left)]
        assert {answer.status_code for answer in answers} == {403}  # those refused before took none of all
        refused = await gate.attempt("198.51.100.2")
        assert "Too many attempts" in is_page(refused, 429)
        assert refused.headers["retry-after"] == "2"
        # Whoever has what is right gets in, from wherever, until they have used up what is their own.
        code = create_link(gate.store, token.split("_")[1], actor="test", now=datetime.now(UTC))
        assert (await follow(gate, "198.51.100.1", code)).status_code == 303
        for _ in range(ATTEMPTS_PER_MINUTE):
            assert (await gate.attempt("198.51.100.1", token)).status_code == 303
        assert "Too many attempts" in is_page(await gate.attempt("198.51.100.2", token), 429)
        gate.now += 7
        assert (await gate.attempt("198.51.100.1", token)).status_code == 303

    with inside(url) as gate:
        run(work(gate))


def test_addresses_of_one_network_of_ipv6_are_one_place(url: str) -> None:
    async def work(gate: Inside) -> None:
        for n in range(ATTEMPTS_PER_MINUTE):
            assert (await gate.attempt(f"2001:db8:0:1::{n:x}")).status_code == 403
        assert (await gate.attempt("2001:db8:0:1:ffff::1")).status_code == 429
        assert (await gate.attempt("2001:db8:0:2::1")).status_code == 403

    with inside(url) as gate:
        run(work(gate))


def test_workers_count_attempts_together_and_let_nobody_in_when_they_cannot(url: str, tmp_path: Path) -> None:
    token = make_token(url, Role.REVIEWER, ["ann"])
    shared = tmp_path / "shared"
    shared.mkdir()

    async def work(gates: tuple[Inside, Inside]) -> None:
        for n in range(ATTEMPTS_PER_MINUTE):
            assert (await gates[n % 2].attempt("198.51.100.1")).status_code == 403
        assert [(await gate.attempt("198.51.100.1")).status_code for gate in gates] == [429, 429]
        for file in shared.iterdir():
            file.unlink()
        shared.rmdir()
        failed = await gates[0].attempt("198.51.100.9", token)
        assert "Something went wrong here" in is_page(failed, 500)
        assert str(shared) not in failed.text
        assert cookie(failed, COOKIE) is None

    with inside(url, shared) as one, inside(url, shared) as other:
        run(work((one, other)))


def test_a_database_that_does_not_answer_is_a_page_too(url: str) -> None:
    token = make_token(url, Role.REVIEWER, ["ann"])

    async def work(gate: Inside) -> None:
        async with gate.browser("198.51.100.1") as client:
            fields = hidden(await client.get(SIGN_IN)) | {"token": token}
            gate.store.writer.close()
            answer = await client.post(SIGN_IN, data=fields)
        assert "The database did not take this now" in is_page(answer, 503)
        assert answer.headers["retry-after"] == "1"
        assert cookie(answer, COOKIE) is None

    with inside(url) as gate:
        run(work(gate))


def test_the_public_address_makes_cookies_secure_and_is_our_own_site(url: str) -> None:
    token = make_token(url, Role.REVIEWER, ["ann"])

    async def work(gate: Inside) -> None:
        async with gate.browser("198.51.100.1", "https://inner.name:8080") as client:
            fields = hidden(await client.get(SIGN_IN)) | {"token": token}
            foreign = await client.post(SIGN_IN, data=fields, headers={"Origin": "https://gate.example.com"})
            is_page(foreign, 403)
            answer = await client.post(SIGN_IN, data=fields, headers={"Origin": "https://gate.example.org"})
        session = cookie(answer, COOKIE)
        assert session is not None
        assert session["secure"] is True

    with inside(url, public_url="https://Gate.example.org/") as gate:
        run(work(gate))
