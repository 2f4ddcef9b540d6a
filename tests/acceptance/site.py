"""A served gate that the tests of a module share, and callers to talk to it."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, AnyStr

import httpx

from tests.running.service import ALL_SOURCES, THRESHOLD, Running, serve
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.decision import ValidationResult
from vouchgate.ingest.claims.people import Principal, Role
from vouchgate.storage.identity import tokens
from vouchgate.storage.log import chain as log
from vouchgate.storage.queue import spot_checks
from vouchgate.storage.sql import BulkInsert
from vouchgate.storage.store import Store

PROBLEM = "application/problem+json"


@dataclass
class Site:
    """A gate in a process of its own, and the store it writes to, opened here a second time."""

    url: str
    running: Running
    store: Store
    # Without TLS, which nothing here speaks: reading all the authorities takes 50 ms.
    transport: httpx.HTTPTransport = field(default_factory=lambda: httpx.HTTPTransport(verify=False))

    def owner(self, name: str = "owner") -> str:
        """An owner nobody else uses."""
        return f"{name}-{uuid.uuid4().hex[:12]}"

    def token(
        self,
        role: Role,
        *owners: str,
        any_owner: bool = False,
        sources: frozenset[Source] = frozenset(),
        expires_at: datetime | None = None,
    ) -> tuple[Principal, str]:
        """A new principal and its token."""
        return tokens.create(
            self.store,
            role=role,
            name=f"a test's {role.value}",
            owners=owners,
            any_owner=any_owner,
            new_owners=any_owner and role is Role.AGENT,
            sources=sources,
            expires_at=expires_at,
            actor="test",
            now=datetime.now(UTC),
        )

    def caller(self, token: str | None = None) -> httpx.Client:
        """A client that presents this token. Its connections are the site's: it need not be closed."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return httpx.Client(
            base_url=self.running.url, headers=headers, transport=self.transport, timeout=120, trust_env=False
        )

    def agent(self, *owners: str, sources: frozenset[Source] = ALL_SOURCES) -> httpx.Client:
        """An agent for these owners, for any when there are none."""
        return self.caller(self.token(Role.AGENT, *owners, any_owner=not owners, sources=sources)[1])

    def reviewer(self, owner: str) -> httpx.Client:
        """The owner's reviewer."""
        return self.caller(self.token(Role.REVIEWER, owner)[1])

    def auditor(self, *owners: str) -> httpx.Client:
        """An auditor of these owners, of all when there are none."""
        return self.caller(self.token(Role.AUDITOR, *owners, any_owner=not owners)[1])

    def events(self, owner: str) -> list[dict[str, Any]]:
        """The owner's whole log, as its auditor reads it."""
        auditor, found, after = self.auditor(owner), list[dict[str, Any]](), None
        while True:
            page = auditor.get(
                "/v1/audit/events", params={"limit": 200} | ({"after": after} if after else {})
            )
            assert page.status_code == 200, page.text
            if not page.json()["items"]:
                return found
            found += page.json()["items"]
            after = page.json()["next"]

    def draw(self, owner: str, memory_id: str) -> None:
        """Puts a memory on the list of spot checks, where chance may have put it already."""
        row = {"owner_id": owner, "memory_id": memory_id, "rule": "stated", "created_at": datetime.now(UTC)}
        row |= dict.fromkeys(("agent", "kind", "publisher", "verdict", "decided_at", "decided_by"))
        rows = BulkInsert(spot_checks.TABLE, known_ok=True)
        self.store.writer.run([owner], lambda connection: rows.write(connection, [row])).result()

    def actions(self, owner: str) -> list[str]:
        """What the owner's log says happened, in order."""
        return [event["action"] for event in self.events(owner)]


@contextmanager
def open_site(
    url: str,
    *,
    repos: Sequence[Path] = (),
    policy: Path | None = None,
    environment: Mapping[str, str] | None = None,
    port: int = 0,
) -> Iterator[Site]:
    """Serves the database until the end, then looks whether the log is whole and no error was logged. Without an
    `environment` of its own it asks nothing but git."""
    environment = {"VOUCHGATE_OFFLINE": "true"} if environment is None else environment
    store = Store.open(url, threshold=THRESHOLD)
    try:
        with serve(url, repos=repos, policy=policy, environment=environment, port=port) as running:
            site = Site(url, running, store)
            try:
                yield site
            finally:
                site.transport.close()
            with store.read() as connection:
                assert log.verify(connection) == []
        assert "Traceback" not in "".join(running.output), "".join(running.output)
    finally:
        store.close()


def claim(content: str, source: str = "user", memory_type: str = "fact", **more: Any) -> dict[str, Any]:
    """The body of a submit. A granted `user` is stored, `ai_synthesis` waits."""
    return {"content": content, "memory_type": memory_type, "source": source, **more}


def without_promises(content: AnyStr) -> AnyStr:
    """An answer as it is kept: what the log promises goes out with it once."""
    if isinstance(content, bytes):
        return re.sub(rb',"promise":\{[^}]*\}', b"", content)
    return re.sub(r',"promise":\{[^}]*\}', "", content)


def submit(
    agent: httpx.Client, body: dict[str, Any], status: int, *, key: str | None = None
) -> ValidationResult:
    """Sends a claim, which must be answered with this status and a whole ValidationResult; as it is kept."""
    answer = agent.post("/v1/claims", json=body, headers={} if key is None else {"Idempotency-Key": key})
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    return ValidationResult.model_validate_json(without_promises(answer.text))


def store(agent: httpx.Client, content: str, **more: Any) -> str:
    """Stores a claim; gives the id of its memory."""
    memory_id = submit(agent, claim(content, **more), 201).memory_id
    assert memory_id is not None
    return memory_id


def approve(agent: httpx.Client, reviewer: httpx.Client, content: str, **more: Any) -> str:
    """Has the owner approve a claim that must wait; gives the id of its memory."""
    item_id = submit(agent, claim(content, **more), 202).queue_id
    answer = reviewer.post(f"/v1/reviews/{item_id}/approve", json={"version": 1})
    assert answer.status_code == 200, answer.text
    memory_id: str = answer.json()["memory"]["id"]
    return memory_id


def queue(agent: httpx.Client, content: str, **more: Any) -> str:
    """Queues a claim; gives the id of its item."""
    queue_id = submit(agent, claim(content, "ai_synthesis", **more), 202).queue_id
    assert queue_id is not None
    return queue_id


def is_problem(answer: httpx.Response, status: int, code: str | None = None) -> dict[str, Any]:
    """The problem document of an answer, which must be one with this status (and code)."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == PROBLEM, answer.text
    body: dict[str, Any] = answer.json()
    assert body["status"] == status
    assert body["type"] == f"urn:vouchgate:problem:{body['code']}"
    assert body["title"]
    assert body["detail"]
    if code is not None:
        assert body["code"] == code, body
    return body
