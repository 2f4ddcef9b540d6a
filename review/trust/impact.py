"""What rests on a source, and what can be done about all of it at once: have it looked at again, or propose to its
owners that it be retracted."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from itertools import chain
from typing import NamedTuple

from pydantic import JsonValue

from vouchgate.ingest.citations import names
from vouchgate.ingest.citations.names import Wanted
from vouchgate.ingest.claims.claim import Claim, Source
from vouchgate.ingest.claims.delivery import OWN_SINK, DeliveryOp, DeliveryTarget
from vouchgate.ingest.claims.impact import Impact
from vouchgate.ingest.claims.memory import Memory, MemoryStatus
from vouchgate.ingest.claims.waiting import PendingMemory
from vouchgate.ingest.dedup.signature import signature_keys
from vouchgate.ingest.language.words import tokens
from vouchgate.ingest.pipeline import Inspected, examine
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.rules import Rule
from vouchgate.storage.claims import lineage, memories
from vouchgate.storage.claims.memories import MemoryFilter
from vouchgate.storage.claims.submit import Decided, Submission
from vouchgate.storage.errors import StorageError
from vouchgate.storage.ids import new_id_suffix
from vouchgate.storage.queue import pending, rechecks
from vouchgate.storage.queue.capacity import QueueFull
from vouchgate.storage.queue.pending import QueueFilter
from vouchgate.storage.store import Store

PAGE = 200
_MEMORY = memories.TABLE


def impact_of(
    store: Store,
    owner_id: str,
    source: str,
    now: datetime,
    *,
    after: str | None = None,
    limit: int = PAGE,
    found: Sequence[Memory] | None = None,
) -> Impact:
    """What of an owner's rests on a source, in any spelling. `found` are the memories of the page, where they were
    looked up already."""
    wanted, own = names.wanted(source), frozenset({owner_id})
    told = {
        "stale": _MEMORY.c.stale_since.is_not(None),
        "lowered": _MEMORY.c.lowered_at.is_not(None),
        "confirmed": _MEMORY.c.confirmed_at > _MEMORY.c.created_at,
    }
    every = MemoryFilter(
        owners=own, source_id=source, statuses=frozenset(MemoryStatus), after=after, limit=limit
    )
    with store.read() as connection:
        kept = lineage.counts(connection, _MEMORY, owner_id, wanted, told)
        waits = lineage.counts(connection, pending.TABLE, owner_id, wanted, {}).get("pending", {})
        stored = memories.search(connection, every, now) if found is None else found
        waiting = pending.search(connection, _waiting(owner_id, wanted, limit)) if after is None else []
        both: list[PendingMemory | Memory] = [*waiting, *stored]
        decided = {one.decision_id for one in both}
        alone = lineage.alone(connection, owner_id, wanted, decided)
    active = kept.get("active", {})
    counts = {status: count["all"] for status, count in kept.items()} | {"pending": waits.get("all", 0)}
    counts |= {name: active.get(name, 0) for name in told}
    return Impact(
        owner_id=owner_id,
        source=source,
        names=tuple(sorted(wanted.names)),
        counts=counts | {"alone": active.get("alone", 0) + waits.get("alone", 0)},
        alone=tuple(one.id for one in both if one.decision_id in alone),
        waiting=tuple(waiting),
        memories=tuple(stored),
        next=stored[-1].id if len(stored) == limit else None,
    )


def _waiting(owner_id: str, wanted: Wanted, limit: int = PAGE) -> QueueFilter:
    own = frozenset({owner_id})
    return QueueFilter(owners=own, rests_on=wanted, order="newest", away=True, limit=limit)


def _in_force(store: Store, owner_id: str, source: str, now: datetime) -> Iterator[list[Memory]]:
    """The memories in force that rest on a source, a page at a time."""
    wanted = MemoryFilter(owners=frozenset({owner_id}), source_id=source, limit=PAGE)
    while True:
        with store.read() as connection:
            page = memories.search(connection, wanted, now)
        if not page:
            return
        yield page
        wanted = wanted.model_copy(update={"after": page[-1].id})


def recheck(store: Store, owner_id: str, source: str, now: datetime) -> int:
    """Has the sources of all of an owner's that rests on this one read again as soon as a worker is free; of how many.
    What waits is looked at again only where that could change anything (`storage.queue.rechecks`). A page is a
    transaction."""
    with store.read() as connection:
        waiting = pending.search(connection, _waiting(owner_id, names.wanted(source)))
    brought = 0
    pages: Iterator[Sequence[PendingMemory | Memory]] = chain(
        [waiting], _in_force(store, owner_id, source, now)
    )
    for page in pages:
        bring = partial(rechecks.bring_now, owner_id=owner_id, item_ids=[one.id for one in page], now=now)
        brought += store.writer.run([owner_id], bring).result()
    return brought


class Proposed(NamedTuple):
    """What became of a proposal to retract: how many were asked for now, how many before; and why no more could be, a
    sentence, when the owner's queue is full."""

    asked: int
    before: int
    refused: str = ""


def propose_retraction(
    store: Store, owner_id: str, source: str, policy: Policy, *, by: str, reason: str, now: datetime
) -> Proposed:
    """Asks an owner to retract each memory in force that rests on a source: an item in the queue for each, as where an
    agent asks for a removal. Nothing goes out of force by that."""
    store.save_policy(policy, now)
    asked, before = 0, 0
    about: dict[str, JsonValue] = {"reason": reason, "rests_on": source}
    for page in _in_force(store, owner_id, source, now):
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


def _removal(one: Memory, about: dict[str, JsonValue], policy: Policy, by: str, now: datetime) -> Submission:
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
