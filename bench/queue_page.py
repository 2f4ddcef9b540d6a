"""The review page of somebody for whom 10,000 claims wait, beside those with 400, 100 and 10.

Everything is asked of the whole application in this process, so that statements can be counted. With 400, every page
that is asked for has as many rows as with 10,000: what differs between the two is what waits behind the page. With 10
there are fewer rows, and the rest of the difference is what a row costs; with 100 only the whole queue fills a page.
All queues are in one database, and are asked in turn.
"""

from __future__ import annotations

import asyncio
import logging
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
from sqlalchemy import Engine, event

from bench.claims import Generator
from bench.postgres import postgresql

ROUNDS = 30
BATCH = 500
ROWS = 100  # of a full page; see vouchgate.web.queue.PAGE
SIZES = {"short": 10, "hundred": 110, "middle": 400, "long": 10_000}  # a few of them are blocked
_POLICY = "[limits]\nclaims_per_minute = 0\n[queue]\nper_agent = 10000\nper_owner = 10000\ntotal = 20000\n"
# What is asked, and whether something happened to the owner since: then what waits is counted anew.
_ASKED = (
    ("the queue", "/review", False),
    ("the queue, after a change", "/review", True),
    ("those of one reason", "/review?rule=technical_hedge", False),
    ("the page after the first", "/review?after={last}", False),
    ("two words that no claim has", "/review?q=xyzzy+bowls", False),
    ("the claim beside the list", "/review/items/{last}/pane", False),
)


class _Statements:
    """Counts what the database is asked."""

    def __init__(self) -> None:
        self.count = 0

    def note(self, _connection: object, _cursor: object, statement: str, *_: object) -> None:
        self.count += statement.startswith("SELECT")


@contextmanager
def _gate(url: str, folder: Path) -> Iterator[Any]:
    """The service without its timers, so that nothing else is measured."""
    from vouchgate.service import open_service
    from vouchgate.settings import Settings

    policy = folder / "policy.toml"
    policy.write_text(_POLICY)
    with open_service(Settings(database_url=url, policy=policy, offline=True)) as service:
        yield service


def _sentences(count: int, generator: Generator) -> list[dict[str, str]]:
    """Claims that wait: a third cites what cannot be asked now, a third is hedged, a third has nothing."""
    ends = ("", " and may be slow", ", see https://{}.example.org/{}")
    return [
        {
            "content": text.rstrip(".") + ends[number % 3].format(f"site-{number % 7}", number),
            "memory_type": "fact",
            "source": "ai_synthesis",
        }
        for number, text in enumerate(generator.claims(count))
    ]


async def _fill(api: httpx.AsyncClient, owner: str, claims: list[dict[str, str]]) -> None:
    for start in range(0, len(claims), BATCH):
        sent = [claim | {"user_id": owner} for claim in claims[start : start + BATCH]]
        answer = await api.post("/v1/claims/batch", json={"claims": sent})
        answer.raise_for_status()
        # A few repeat one another's values by chance, and are blocked or queued as conflicts: as in real queues.


async def _change(api: httpx.AsyncClient, owner: str, number: int) -> None:
    """Something is written about the owner, and the queue stays as it is."""
    body = {
        "content": f"I think number {number} is odd",
        "memory_type": "fact",
        "source": "user",
        "user_id": owner,
    }
    assert (await api.post("/v1/claims", json=body)).status_code == 422


async def _measure(url: str, folder: Path) -> None:
    from vouchgate.ingest.claims.people import Role
    from vouchgate.server.app import create_app
    from vouchgate.storage.identity import sessions, tokens
    from vouchgate.web.session import COOKIE

    generator = Generator(5)
    with _gate(url, folder) as service:
        transport = httpx.ASGITransport(app=create_app(service))

        def token(role: Role, owner: str | None) -> str:
            return tokens.create(
                service.store,
                role=role,
                name=f"bench {role}",
                owners=[] if owner is None else [owner],
                any_owner=owner is None,
                new_owners=owner is None,
                actor="bench",
                now=datetime.now(UTC),
            )[1]

        headers = {"Authorization": f"Bearer {token(Role.AGENT, None)}"}
        async with httpx.AsyncClient(transport=transport, base_url="http://gate", headers=headers) as api:
            pages: dict[str, httpx.AsyncClient] = {}
            for owner, size in SIZES.items():
                await _fill(api, owner, _sentences(size, generator))
                secret = sessions.start(service.store, token(Role.REVIEWER, owner), now=datetime.now(UTC))
                cookie = {"Cookie": f"{COOKIE}={secret}"}
                pages[owner] = httpx.AsyncClient(transport=transport, base_url="http://gate", headers=cookie)
            await _report(service, api, pages)
            for page in pages.values():
                await page.aclose()


async def _report(service: Any, api: httpx.AsyncClient, pages: dict[str, httpx.AsyncClient]) -> None:
    from vouchgate.storage.identity import owners

    with service.store.read() as connection:
        ends = owners.log_ends(connection, list(pages))
    named = ", ".join(f"{owner} {ends[owner][1]:,}" for owner in pages)
    print(f"\nGET /review on {service.store.dialect}, median of {ROUNDS}; there wait: {named}")
    for what, address, changed in _ASKED:
        last = {owner: _last(service, owner) for owner in pages}
        taken: dict[str, list[float]] = {owner: [] for owner in pages}
        statements = dict.fromkeys(pages, 0)
        for number in range(ROUNDS + 2):
            for owner, page in pages.items():
                if changed:
                    await _change(api, owner, number)
                seen = _Statements()
                event.listen(Engine, "before_cursor_execute", seen.note)
                start = time.perf_counter()
                answer = await page.get(address.format(last=last[owner]))
                seconds = time.perf_counter() - start
                event.remove(Engine, "before_cursor_execute", seen.note)
                assert answer.status_code == 200, answer.text
                if number >= 2:  # the first are to warm up
                    taken[owner].append(seconds)
                statements[owner] = seen.count
        short, hundred, middle, long = (statistics.median(taken[owner]) * 1000 for owner in SIZES)
        print(
            f"  {what:26} {short:6.1f} {hundred:6.1f} {middle:6.1f} {long:6.1f} ms   long / middle {long / middle:5.2f}"
            f"   long / hundred {long / hundred:5.2f}   long / short {long / short:5.2f}"
            f"   statements {'/'.join(map(str, statements.values()))}"
        )


def _last(service: Any, owner: str) -> str:
    """The last item of the owner's first page, or of all the last but one."""
    from vouchgate.storage.queue import pending
    from vouchgate.storage.queue.pending import QueueFilter

    with service.store.read() as connection:
        found = pending.search(connection, QueueFilter(owners=frozenset({owner}), limit=ROWS))
    return found[-1].id if len(found) == ROWS else found[-2].id


def run() -> None:
    """Prints how long each page takes, as ratios, and how many statements it needs, on both databases."""
    logging.disable(logging.WARNING)  # that nothing of what is cited can be asked here
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_measure(f"sqlite:///{folder}/gate.db", Path(folder)))
        with postgresql() as databases, databases() as url:
            asyncio.run(_measure(url, Path(folder)))
