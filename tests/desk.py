"""A reviewer at the pages, as HTTP and in this process, with the store at hand to see what is kept."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import httpx

from tests.claims import examined, submission_of
from tests.running.waiting import names
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.memory import Memory
from vouchgate.ingest.claims.people import Role
from vouchgate.ingest.claims.waiting import PendingMemory
from vouchgate.server.app import create_app
from vouchgate.service import Service
from vouchgate.storage.claims import memories
from vouchgate.storage.identity import sessions, tokens
from vouchgate.storage.queue import pending


def claim_words(number: int) -> str:
    """A claim that is like none of another number."""
    given = names(number)
    one, two, three, four = (next(given) for _ in range(4))
    return f"The {one} service keeps its {two} records in the {three} store, beside those of {four}."


@dataclass
class Desk:
    """A reviewer who is signed in to pages that run in this process."""

    service: Service
    owner: str
    http: httpx.AsyncClient
    csrf: str = ""

    async def get(self, path: str) -> httpx.Response:
        answer = await self.http.get(path, headers={"Accept": "text/html"})
        if found := re.search(r'data-csrf="([0-9a-f]+)"', answer.text):
            self.csrf = found[1]
        return answer

    async def post(self, path: str, accept: str = "text/html", **fields: Any) -> httpx.Response:
        if not self.csrf:
            await self.get("/review")
        return await self.http.post(path, data={"csrf": self.csrf, **fields}, headers={"Accept": accept})

    async def act(self, **fields: Any) -> dict[str, Any]:
        answer = await self.post("/review/act", "application/json", **fields)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def waiting(self) -> list[PendingMemory]:
        with self.service.store.read() as connection:
            wanted = pending.QueueFilter(owners=frozenset({self.owner}), limit=200)
            return pending.search(connection, wanted)

    def item(self, item_id: str) -> PendingMemory:
        with self.service.store.read() as connection:
            found = pending.get(connection, item_id, owners=None)
        assert found is not None
        return found

    def memories(self) -> list[Memory]:
        with self.service.store.read() as connection:
            wanted = memories.MemoryFilter(owners=frozenset({self.owner}), limit=200)
            return memories.search(connection, wanted, datetime.now(UTC))

    def fill(self, count: int, start: int = 0) -> None:
        for number in range(start, start + count):
            self.add(claim_words(number))

    def add(self, content: str, source: Source = Source.AI_SYNTHESIS) -> None:
        add(self.service, self.owner, content, source)


def add(service: Service, owner: str, content: str, source: Source = Source.AI_SYNTHESIS) -> None:
    """A claim that cites nothing: it waits, or is stored when a person said it."""
    one = examined(content, owner_id=owner, source=source, now=datetime.now(UTC))
    service.store.writer.submit(submission_of(one)).result()


def run(service: Service, owner: str, work: Callable[[Desk], Awaitable[None]], *also: str) -> None:
    """Has a new reviewer of this owner, and of others `also`, do some work."""
    now = datetime.now(UTC)
    _, token = tokens.create(
        service.store, role=Role.REVIEWER, name="the owner", owners=[owner, *also], actor="test", now=now
    )
    secret = sessions.start(service.store, token, now=now)
    assert isinstance(secret, str)

    async def main() -> None:
        transport = httpx.ASGITransport(app=create_app(service))
        cookies = {"vg_session": secret}
        async with httpx.AsyncClient(
            transport=transport, base_url="http://gate.test", cookies=cookies
        ) as http:
            await work(Desk(service, owner, http))

    asyncio.run(main())
