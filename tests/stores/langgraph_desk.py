"""A LangGraph store behind the served gate, with an agent and the owner at its two sides."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from sqlalchemy import update

from tests.acceptance.site import Site, open_site
from tests.running.service import ALL_SOURCES
from vouchgate import Client
from vouchgate.adapters.langgraph import GatedStore, NotWritten, WriteAnswer
from vouchgate.ingest.claims.people import Role
from vouchgate.storage.outgoing.outbox import TABLE as DELIVERIES

NAMESPACE = ("memories", "ada")
STORED = "The Lisbon office opens at nine on weekdays."
QUEUED = "The Porto warehouse keeps parcels for fourteen days."
BLOCKED = "I think the Faro branch may perhaps close in autumn."


@dataclass
class Desk:
    """One owner with a token of an agent and of a reviewer, and a store behind the gate."""

    site: Site
    owner: str
    token: str
    client: Client
    inner: BaseStore
    file: Path  # of the store, where it has one

    def gated(self, source: str = "user", **more: Any) -> GatedStore:
        """A granted `user` is stored at once; `ai_synthesis` waits for the owner."""
        return GatedStore(self.inner, self.client, source=source, **more)

    @property
    def waiting(self) -> GatedStore:
        """A gated store whose claims wait."""
        return self.gated("ai_synthesis")

    def decide(self, verb: str = "approve", **more: Any) -> None:
        """The owner's word on everything that waits."""
        reviewer = self.site.reviewer(self.owner)
        for item in reviewer.get("/v1/reviews").json()["items"]:
            body = {"version": item["version"], **more}
            answer = reviewer.post(f"/v1/reviews/{item['id']}/{verb}", json=body)
            assert answer.status_code == 200, answer.text

    def values(self) -> dict[str, Any]:
        """What the store behind the gate holds under NAMESPACE."""
        return {item.key: item.value for item in self.inner.search(NAMESPACE, limit=100)}

    def everywhere(self) -> bytes:
        """All that the store behind the gate has ever written down."""
        if isinstance(self.inner, InMemoryStore):
            return repr((self.inner._data, self.inner._vectors)).encode()
        return b"".join(file.read_bytes() for file in self.file.parent.glob(f"{self.file.name}*"))

    def due(self) -> None:
        """Lets leases end, and waits of failed deliveries, now."""

        def work(connection: Any) -> None:
            connection.execute(
                update(DELIVERIES)
                .where(DELIVERIES.c.owner_id == self.owner, DELIVERIES.c.state == "waiting")
                .values(due_at=datetime(2020, 1, 1, tzinfo=UTC), lease=None)
            )

        self.site.store.writer.run([self.owner], work).result()


@contextmanager
def desk_of(site: Site, inner: BaseStore, file: Path) -> Iterator[Desk]:
    """A desk with an owner nobody else uses."""
    owner = site.owner()
    token = site.token(Role.AGENT, owner, sources=ALL_SOURCES)[1]
    with Client(site.running.url, token) as client:
        yield Desk(site, owner, token, client, inner, file)


@contextmanager
def open_desks(directory: Path, migrated_file: Path) -> Iterator[Site]:
    """A served gate on SQLite, for the desks of a module."""
    file = directory / "vouchgate.db"
    shutil.copyfile(migrated_file, file)
    with open_site(f"sqlite:///{file}") as opened:
        yield opened


def refused(write: Callable[..., None], *args: Any, **more: Any) -> WriteAnswer:
    """The answer to a write that the gate does not let through."""
    with pytest.raises(NotWritten) as caught:
        write(*args, **more)
    (answer,) = caught.value.answers
    assert not answer.written
    assert str(caught.value) == str(answer)
    return answer
