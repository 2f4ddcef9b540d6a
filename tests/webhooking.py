"""What tests of webhooks share: a store, a receiver, the worker between them, and claims that wait."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from tests.claims import NOW, examined, policy, submission_of
from tests.hostile import LOOPBACK
from tests.rechecking import Clock
from tests.web import Answer, WebServer, web_server
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.net.client import Outbound
from vouchgate.storage.claims.submit import Decided
from vouchgate.storage.outgoing import webhooks
from vouchgate.storage.outgoing.webhook_messages import GATHER
from vouchgate.storage.outgoing.webhooks import Webhook
from vouchgate.storage.store import Store
from vouchgate.workers.webhooks import SendResult, Webhooks

READY = NOW + GATHER
# A round's clock goes on while it works, so what it leaves to do is due a moment after its beginning.
LATER = READY + timedelta(seconds=1)
PATH = "/hook/not-for-logs"
PAGE = "https://gate.example.org/review"


@dataclass
class Desk:
    """A store, a receiver, and the worker between them. Every message taken in counts."""

    store: Store
    site: WebServer
    clock: Clock = field(default_factory=Clock)

    def hook(self, owner_id: str = "ann", path: str = PATH) -> tuple[Webhook, str]:
        """A new webhook and its secret."""
        return webhooks.create(self.store, owner_id=owner_id, url=self.site.url + path, actor="test", now=NOW)

    def worker(self, outbound: Outbound | None = None) -> Webhooks:
        """One that may send to this machine."""
        client = outbound or Outbound(allow_networks=LOOPBACK, spacing_seconds=0)
        return Webhooks(self.store, client, page=PAGE, clock=self.clock)

    def work(self, now: datetime = READY, outbound: Outbound | None = None) -> Counter[SendResult]:
        """One round of the worker at this time."""
        self.clock.now = now
        return asyncio.run(self.worker(outbound).messages.run_once(now))

    def look(self, hook: Webhook) -> Webhook:
        """The webhook as it is now."""
        with self.store.read() as connection:
            found = webhooks.get(connection, hook.id)
        assert found is not None
        return found

    def said(self) -> list[dict[str, Any]]:
        """What every message that came said, in order."""
        return [json.loads(one.body)["data"] for one in self.site.asked]

    def queued(self) -> list[str]:
        """The items of every message that came, in order."""
        return [item["queue_id"] for data in self.said() for item in data["queued"]]


@contextmanager
def open_desk(store: Store) -> Iterator[Desk]:
    """With a receiver that takes everything in."""
    with web_server({PATH: Answer(), "/other": Answer()}) as site:
        yield Desk(store, site)


def queue(store: Store, count: int, owner_id: str = "ann", now: datetime = NOW, first: int = 0) -> list[str]:
    """Claims that wait, all of one moment; their ids in order."""
    limits = policy(per_owner=1000)
    futures = [
        store.writer.submit(
            submission_of(
                examined(
                    f"Valve v{number}v stands in cellar c{number}c.",
                    owner_id=owner_id,
                    source=Source.AI_SYNTHESIS,
                    under=limits,
                    now=now,
                )
            )
        )
        for number in range(first, first + count)
    ]
    answers = [future.result() for future in futures]
    ids = [str(one.answer.queue_id) for one in answers if isinstance(one, Decided)]
    assert len(ids) == count
    return ids


def store_one(store: Store, number: int, owner_id: str = "ann") -> None:
    """A claim that is stored: nothing an owner has to be told."""
    one = examined(f"The lamp l{number}l is green.", owner_id=owner_id)
    assert isinstance(store.writer.submit(submission_of(one)).result(), Decided)
