"""What rests on a source, and what can be done about all of it at once: have it looked at again, or propose to its
owners that it be retracted."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import groupby
from operator import attrgetter

from pydantic import JsonValue

from vouchgate.ingest.citations import names
from vouchgate.ingest.claims.claim import Claim, Source
from vouchgate.ingest.claims.delivery import OWN_SINK, DeliveryOp, DeliveryTarget
from vouchgate.ingest.claims.impact import Impact, Resting
from vouchgate.ingest.claims.memory import MemoryStatus
from vouchgate.ingest.dedup.signature import signature_keys
from vouchgate.ingest.language.words import tokens
from vouchgate.ingest.pipeline import Inspected, examine
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.rules import Rule
from vouchgate.storage.claims import impact
from vouchgate.storage.claims.submit import Decided, Submission
from vouchgate.storage.errors import StorageError
from vouchgate.storage.ids import new_id_suffix
from vouchgate.storage.queue import rechecks
from vouchgate.storage.queue.capacity import QueueFull
from vouchgate.storage.store import Store


def impact_of(
    store: Store,
    source: str,
    owners: frozenset[str] | None,
    now: datetime,
    *,
    after: str | None = None,
    limit: int = impact.MOST,
) -> Impact:
    """What of these owners (None: of all) rests on a source, in any spelling."""
    wanted = names.wanted(source)
    with store.read() as connection:
        counts = impact.counts_of(connection, wanted, owners, now)
        waiting = impact.waiting_on(connection, wanted, owners, limit=limit) if after is None else []
        stored = impact.memories_on(connection, wanted, owners, now, after=after, limit=limit)
    return Impact(
        source=source,
        names=tuple(sorted(wanted.names)),
        counts=counts,
        waiting=tuple(waiting),
        memories=tuple(stored),
        next=stored[-1].id if len(stored) == limit else None,
    )


def resting(
    store: Store, source: str, owners: frozenset[str] | None, now: datetime, *, waiting: bool = True
) -> Iterator[list[Resting]]:
    """All that rests on a source and is in force, or waits, a page at a time."""
    wanted, after = names.wanted(source), None
    while True:
        with store.read() as connection:
            page = impact.memories_on(connection, wanted, owners, now, after=after)
        if active := [one for one in page if one.status == MemoryStatus.ACTIVE]:
            yield active
        if len(page) < impact.MOST:
            break
        after = page[-1].id
    after = None
    while waiting:
        with store.read() as connection:
            page = impact.waiting_on(connection, wanted, owners, after=after)
        if page:
            yield page
        if len(page) < impact.MOST:
            break
        after = page[-1].id


def recheck(store: Store, source: str, owners: frozenset[str] | None, now: datetime) -> int:
    """Has the sources of all that rests on this one read again as soon as a worker is free; of how many. What waits is
    looked at again only where that could change anything (`storage.queue.rechecks`). A page is a transaction."""
    brought = 0
    for page in resting(store, source, owners, now):
        for owner_id, of_owner in groupby(sorted(page, key=attrgetter("owner_id")), attrgetter("owner_id")):
            bring = partial(
                rechecks.bring_now, owner_id=owner_id, items=[(one.id, one.kind) for one in of_owner], now=now
            )
            brought += store.writer.run([owner_id], bring).result()
    return brought


@dataclass(frozen=True, slots=True)
class Proposed:
    """What became of a proposal to retract: how many were asked for now, and how many were before; and what else could
    not be, a sentence, when an owner's queue is full."""

    asked: int
    before: int
    refused: str = ""


def propose_retraction(
    store: Store,
    source: str,
    owners: frozenset[str] | None,
    policy: Policy,
    *,
    by: str,
    reason: str,
    now: datetime,
) -> Proposed:
    """Asks the owners to retract each memory in force that rests on a source: an item in their queue for each, as where
    an agent asks for a removal. Nothing goes out of force by that."""
    store.save_policy(policy, now)
    asked, before = 0, 0
    about: dict[str, JsonValue] = {"reason": reason, "rests_on": source}
    for page in resting(store, source, owners, now, waiting=False):
        sent = [store.writer.submit(_removal(one, about, policy, by, now)) for one in page]
        for answer in [each.result() for each in sent]:
            if isinstance(answer, Decided):
                repeats = answer.answer.rule is Rule.ALREADY_PENDING
                asked, before = asked + (not repeats), before + repeats
            elif isinstance(answer, QueueFull):
                return Proposed(asked, before, answer.sentence)
            else:
                raise StorageError("a removal could not be asked for")
    return Proposed(asked, before)


def _removal(one: Resting, about: dict[str, JsonValue], policy: Policy, by: str, now: datetime) -> Submission:
    claim = Claim(
        content=one.content,
        memory_type=one.memory_type,
        asserted_source=Source.AI_SYNTHESIS,
        source=Source.AI_SYNTHESIS,
        owner_id=one.owner_id,
        metadata=about,
        delivery=DeliveryTarget(sink=OWN_SINK, place=one.id, op=DeliveryOp.REMOVE),
    )
    return Submission(
        examined=examine(Inspected(claim, (), ()), (), policy, now),
        principal_id=by,
        suffix=new_id_suffix(now),
        keys=signature_keys(tokens(claim.content), claim.memory_type.value, policy.threshold),
        idempotency=None,
        started=time.perf_counter(),
        new_owners=False,
    )
