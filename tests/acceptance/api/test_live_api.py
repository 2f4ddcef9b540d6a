"""The stream of events that keeps an open page up to date, over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import Message, Receive, Scope, Send

from tests.acceptance.site import Site, queue
from tests.running.patience import until
from tests.running.service import THRESHOLD, make_token, serve, workers_of
from vouchgate.ingest.claims.people import Role
from vouchgate.server.app import create_app
from vouchgate.server.live import MOST_FOR_ONE, Hub
from vouchgate.service import open_service
from vouchgate.settings import Settings
from vouchgate.storage.identity import sessions, tokens
from vouchgate.storage.store import Store
from vouchgate.web.live import CROWDED_MS
from vouchgate.web.session import COOKIE

pytestmark = pytest.mark.on("sqlite")

BROWSER = {"Accept": "text/event-stream"}  # what every browser says when a page opens a stream


def signed_in(store: Store, token: str) -> dict[str, str]:
    """The header of a browser that this reviewer's token has signed in."""
    secret = sessions.start(store, token, now=datetime.now(UTC))
    assert isinstance(secret, str)
    return {"Cookie": f"{COOKIE}={secret}"} | BROWSER


@contextmanager
def listening(site: Site, owner: str) -> Iterator[Iterator[dict[str, Any]]]:
    """An open page of the owner, and what it is told: the data of one event after the other."""
    headers = signed_in(site.store, site.token(Role.REVIEWER, owner)[1])
    with site.caller().stream("GET", "/review/events", headers=headers) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-accel-buffering"] == "no"
        yield (
            json.loads(line.removeprefix("data: ")) for line in answer.iter_lines() if line.startswith("data")
        )


def open_streams(anybody: httpx.Client) -> float:
    """What the page of metrics says."""
    lines = anybody.get("/metrics").text.splitlines()
    (line,) = [line for line in lines if line.startswith("vouchgate_event_streams ")] or ["none 0"]
    return float(line.split(" ")[1])


def test_who_is_not_signed_in_is_told_nothing_and_not_sent_elsewhere(site: Site, owner: str) -> None:
    agent = site.token(Role.AGENT, owner)[1]
    for headers in ({}, {"Cookie": f"{COOKIE}={'x' * 43}"}, {"Authorization": f"Bearer {agent}"}):
        answer = site.caller().get("/review/events", headers=headers | BROWSER)
        assert answer.status_code == 401
        assert "event:" not in answer.text


def test_a_page_hears_of_its_own_queue_alone(site: Site, owner: str) -> None:
    other = site.owner()
    with listening(site, owner) as told, listening(site, other) as told_other:
        assert next(told) == next(told_other) == {"waiting": 0, "seq": 0}
        item = queue(site.agent(owner), "The attic is cold")
        assert next(told) == {"waiting": 1, "seq": 1}
        answer = site.reviewer(owner).post(f"/v1/reviews/{item}/reject", json={"version": 1, "reason": "no"})
        assert answer.status_code == 200
        assert next(told) == {"waiting": 0, "seq": 2}
        queue(site.agent(other), "The barn is cold")
        assert next(told_other) == {
            "waiting": 1,
            "seq": 1,
        }  # and nothing before: the id and count are its own


def test_a_page_that_goes_away_leaves_nothing_behind(site: Site, owner: str) -> None:
    anybody = site.caller()
    until(lambda: open_streams(anybody) == 0)
    with listening(site, owner) as told, listening(site, owner) as again:
        assert next(told) == next(again)
        assert open_streams(anybody) == 2
    until(lambda: open_streams(anybody) == 0)


def test_the_ninth_page_of_an_owner_ends_the_first(site: Site, owner: str) -> None:
    headers = signed_in(site.store, site.token(Role.REVIEWER, owner)[1])

    async def work() -> str:
        async with (
            httpx.AsyncClient(base_url=site.running.url, headers=headers, timeout=20) as page,
            AsyncExitStack() as opened,
        ):
            answers = [
                await opened.enter_async_context(page.stream("GET", "/review/events"))
                for _ in range(MOST_FOR_ONE + 1)
            ]
            assert {answer.status_code for answer in answers} == {200}
            return (await answers[0].aread()).decode()

    assert asyncio.run(work()).endswith(f"retry: {CROWDED_MS}\n\n")


def test_a_page_hears_no_more_once_its_token_is_revoked(database_url: str) -> None:
    """In this process, so that the heartbeats come faster."""
    token = make_token(database_url, Role.REVIEWER, ["ann"])

    async def work() -> str:
        with open_service(Settings(database_url=database_url, offline=True)) as service:
            app = create_app(service)
            app.state.hub = Hub(service.store, look_seconds=0.02, heartbeat_seconds=0.05)
            beats = asyncio.Event()

            async def noting(scope: Scope, receive: Receive, send: Send) -> None:
                async def sending(message: Message) -> None:
                    if b"still there" in message.get("body", b""):
                        beats.set()
                    await send(message)

                await app(scope, receive, sending)

            page = httpx.AsyncClient(
                transport=httpx.ASGITransport(app=noting),
                base_url="http://gate",
                headers=signed_in(service.store, token),
            )
            async with page:
                stream = asyncio.create_task(page.get("/review/events"))  # answered when it has ended
                await asyncio.wait_for(beats.wait(), 120)
                assert not stream.done()
                token_id = token.split("_")[1]
                await asyncio.to_thread(
                    tokens.revoke, service.store, token_id, actor="test", now=datetime.now(UTC)
                )
                answer = await asyncio.wait_for(stream, 120)
                assert (await page.get("/review/events")).status_code == 401
                return answer.text

    text = asyncio.run(work())
    assert text.count("event: queue") == 1
    assert text.endswith(": still there\n\n")


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A SQLite file: what is tested with it is not about the database."""
    return f"sqlite:///{tmp_path}/vouchgate.db"


def cookie_for(url: str) -> dict[str, str]:
    """As `signed_in`, for a reviewer in a database that nobody has open."""
    token = make_token(url, Role.REVIEWER, ["ann"])
    store = Store.open(url, threshold=THRESHOLD)
    try:
        return signed_in(store, token)
    finally:
        store.close()


def hears(answer: httpx.Response) -> Iterator[str]:
    """The lines that follow the data of the first event."""
    lines = answer.iter_lines()
    assert next(line for line in lines if line.startswith("data")) == 'data: {"waiting": 0, "seq": 0}'
    return lines


@pytest.mark.parametrize("workers", [1, 2])
def test_an_open_page_does_not_keep_the_service_from_stopping(url: str, workers: int, tmp_path: Path) -> None:
    headers = cookie_for(url)
    # So long a path that no socket fits in it: there each worker is started in an interpreter of its own.
    far = tmp_path / ("far" * 40)
    far.mkdir()
    with serve(url, workers=workers, environment={"TMPDIR": str(far)}) as running, running.client() as page:
        with page.stream("GET", "/review/events", headers=headers) as answer:
            lines = hears(answer)
            running.process.send_signal(signal.SIGTERM)
            assert [line for line in lines if line] == ["id: 0"]  # ended in good form, not broken off
        # It would wait for the page for 20 seconds, and then say that it did.
        assert running.process.wait(120) == 0
        assert not [line for line in running.output if "exceeded" in line or "Traceback" in line]
    assert sum("start more slowly" in line for line in running.output) == workers - 1
    assert list(far.iterdir()) == []


def test_the_pages_of_a_worker_that_died_are_not_counted_any_more(url: str) -> None:
    headers = cookie_for(url)
    with serve(url, workers=2) as running, running.client() as page, running.client() as anybody:
        with page.stream("GET", "/review/events", headers=headers) as answer:
            lines = hears(answer)
            assert open_streams(anybody) == 1
            for pid in workers_of(running):
                os.kill(pid, signal.SIGKILL)
            with pytest.raises(httpx.HTTPError):
                list(lines)
        anybody.close()
        with running.client() as somebody:
            until(lambda: answers(somebody) and open_streams(somebody) == 0)


def answers(anybody: httpx.Client) -> bool:
    """Whether a worker is there."""
    try:
        return anybody.get("/healthz").status_code == 200
    except httpx.HTTPError:
        return False
