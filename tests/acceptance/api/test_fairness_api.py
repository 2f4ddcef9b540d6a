"""What one caller does to the others, and what every answer says to browsers: the application without a server."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.running.service import make_token
from vouchgate.ingest import pipeline
from vouchgate.ingest.claims.people import Role
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.mcp.connection import GateConnection
from vouchgate.mcp.serving import http_app
from vouchgate.server.app import create_app
from vouchgate.server.headers import HEADERS, NOTHING, PAGES
from vouchgate.service import Service, open_service
from vouchgate.settings import Settings

LONG = ("1 " * 4096)[:8192]  # what takes the checks longest for its length


def claim(content: str, **more: Any) -> dict[str, Any]:
    return {"content": content, "memory_type": "fact", "source": "ai_synthesis", **more}


@pytest.fixture
def service(tmp_path: Path) -> Any:
    with open_service(Settings(database_url=f"sqlite:///{tmp_path}/gate.db", offline=True)) as opened:
        yield opened


def inside(app: Any, token: str = "") -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return httpx.AsyncClient(transport=transport, base_url="http://gate", headers=headers, timeout=60)


def test_long_texts_are_not_looked_at_in_the_event_loop(
    service: Service, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whatever they come in: while one is looked at, others are answered. Short ones are, a few at a time."""
    token = make_token(service.settings.database_url, Role.AGENT, ["ann"])
    threads: Counter[tuple[str, bool]] = Counter()
    looked_at = most = 0

    def noting(name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def noted(first: Any, *rest: Any, **more: Any) -> Any:
            nonlocal looked_at
            looked_at += name == "inspect"
            content = first.claim.content if hasattr(first, "claim") else first.content
            threads[name, threading.current_thread() is loop_thread] += len(content) > 400
            return work(first, *rest, **more)

        return noted

    monkeypatch.setattr("vouchgate.gate.examiner.inspect", noting("inspect", pipeline.inspect))
    monkeypatch.setattr("vouchgate.gate.examiner.examine", noting("examine", pipeline.examine))
    loop_thread = threading.current_thread()

    async def main() -> None:
        nonlocal most
        app = create_app(service)
        async with inside(app, token) as ann:
            for path, body in {
                "/v1/claims": claim(LONG),
                "/v1/claims/check": claim(f"{LONG[:-1]}2"),
                "/v1/claims/batch": {"claims": [claim(f"{LONG[:-9]}{n}") for n in range(20)]},
            }.items():
                answer = await ann.post(path, json=body)
                assert answer.status_code in (200, 202), answer.text
            assert threads == {("inspect", False): 22, ("examine", False): 22}

            rows = [claim(f"Gate {n} is closed at night.") for n in range(200)]
            batch = asyncio.create_task(ann.post("/v1/claims/batch", json={"claims": rows}))
            while not batch.done():
                before = looked_at
                await asyncio.sleep(0)  # one round of the loop, in which others are answered
                most = max(most, looked_at - before)
            assert batch.result().status_code == 200
            assert 0 < most <= 16

    asyncio.run(main())


def test_a_token_has_a_rate_by_default(service: Service) -> None:
    limits = load_policy().limits
    assert limits.claims_per_minute == 600 >= limits.batch_claims
    token = make_token(service.settings.database_url, Role.AGENT, ["ann"])

    async def main() -> None:
        async with inside(create_app(service), token) as ann:
            rows: list[Any] = [{}] * limits.batch_claims  # none of which costs more than its place
            assert (await ann.post("/v1/claims/batch", json={"claims": rows})).status_code == 200
            refused = await ann.post("/v1/claims/batch", json={"claims": rows})
            assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
            assert "600 claims a minute" in refused.json()["detail"]

    asyncio.run(main())


def test_every_answer_says_what_browsers_may_not_do_with_it(service: Service) -> None:
    app = create_app(service)

    @app.get("/fails")
    def fails() -> None:
        raise LookupError("on purpose")

    same = {name: value for name, value in HEADERS.items() if name != "Cache-Control"}

    def held(answer: httpx.Response, policy: str, cache: str = "no-store") -> None:
        expected = same | {"Content-Security-Policy": policy, "Cache-Control": cache}
        found = {name: answer.headers.get_list(name) for name in expected}
        assert found == {name: [value] for name, value in expected.items()}, answer.url

    async def main() -> None:
        async with inside(app) as anybody:
            for path, status in {
                **{"/": 303, "/healthz": 200, "/readyz": 200, "/metrics": 200, "/openapi.json": 200},
                **{"/v1/claims": 405, "/v1/memories": 401, "/nothing": 404, "/fails": 500, "/reviews": 404},
                **{"/log/tile/0/000": 404, "/static-offline-docs/swagger-ui.css": 200},
            }.items():
                answer = await anybody.get(path)
                assert answer.status_code == status, path
                held(answer, NOTHING)
            held(await anybody.post("/v1/claims", content=b"{"), NOTHING)
            for path in ("/review", "/review/sign-in", "/review/nothing"):
                held(await anybody.get(path), PAGES)
            held(await anybody.get("/review/static/review.css"), PAGES, "no-cache")
            docs = await anybody.get("/docs")
            held(docs, docs.headers["Content-Security-Policy"])
            assert "script-src 'self' 'sha256-" in docs.headers["Content-Security-Policy"]
        door = GateConnection("http://127.0.0.1:9", None)
        async with inside(http_app(door, ["gate"])) as client:
            for answer in (await client.get("/mcp"), await client.post("/mcp"), await client.get("/else")):
                held(answer, NOTHING)
        await door.close()

    asyncio.run(main())
