"""What tests of deliveries share: claims that name a place in a store behind the gate, and looks at what became of
their deliveries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from tests.claims import NOW, examined, submission_of
from vouchgate.gate import deliveries as acts
from vouchgate.gate.deliveries import NotServed
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.decision import ValidationResult
from vouchgate.ingest.claims.delivery import DeliveryOp, DeliveryTarget
from vouchgate.storage.claims.submit import Decided
from vouchgate.storage.outgoing import deliveries
from vouchgate.storage.outgoing.deliveries import DeliveryFilter, DeliveryRecord, LeasedDelivery
from vouchgate.storage.store import Store

SINK = "shelf"
ANN = frozenset({"ann"})
AGENT = "agent-1"  # who sends claims, and so serves their sinks
SECOND = timedelta(seconds=1)


def send(store: Store, content: str, place: str, **more: Any) -> ValidationResult:
    """Submits a claim that is to be written at this place; nothing but its source vouches for it."""
    wanted = DeliveryTarget(
        sink=more.pop("sink", SINK),
        place=place,
        op=more.pop("op", DeliveryOp.PUT),
        data=more.pop("data", {}),
    )
    token_id = more.pop("token_id", AGENT)
    one = examined(content, **more)
    one = replace(one, claim=one.claim.model_copy(update={"delivery": wanted}))
    answer = store.writer.submit(submission_of(one, principal_id=token_id)).result()
    assert isinstance(answer, Decided)
    return answer.answer


def put(store: Store, number: int, **more: Any) -> str:
    """Stores a memory with a place of its own; its id."""
    answer = send(store, f"Crate c{number}c stands in row r{number}r.", f"row {number}", **more)
    assert answer.memory_id is not None, answer.reason
    return answer.memory_id


def ask(store: Store, content: str, place: str, **more: Any) -> str:
    """Queues a claim with a place; the id of its item."""
    answer = send(store, content, place, source=Source.AI_SYNTHESIS, **more)
    assert answer.queue_id is not None, answer.reason
    return answer.queue_id


def take(
    store: Store,
    now: datetime = NOW,
    most: int = 20,
    *,
    sink: str = SINK,
    owners: frozenset[str] | None = ANN,
    token_id: str = AGENT,
) -> list[LeasedDelivery]:
    """Leases what is due, as the token that put it there."""
    found = acts.lease_deliveries(store, sink, owners, now, most, token_id=token_id)
    assert not isinstance(found, NotServed)
    return found


def done(store: Store, handed: LeasedDelivery, now: datetime = NOW) -> bool:
    """Reports it as delivered; whether that was noted."""
    answer = acts.mark_done(store, ANN, handed.record.id, handed.lease, now, token_id=AGENT)
    assert answer is not None
    return isinstance(answer, DeliveryRecord)


def fail(
    store: Store, handed: LeasedDelivery, now: datetime = NOW, *, final: bool = False
) -> DeliveryRecord | None:
    """Reports a failure; the delivery as it is then, None when it was not noted."""
    answer = acts.mark_failed(
        store,
        ANN,
        handed.record.id,
        handed.lease,
        now,
        error="the shelf is full",
        final=final,
        token_id=AGENT,
    )
    assert answer is not None
    return answer if isinstance(answer, DeliveryRecord) else None


def places(found: Sequence[LeasedDelivery]) -> list[str]:
    """Where they go, in order."""
    return [handed.record.place for handed in found]


def all_of(store: Store, owners: frozenset[str] | None = ANN, **wanted: Any) -> list[DeliveryRecord]:
    """Every delivery, oldest first."""
    with store.read() as connection:
        found = deliveries.search(connection, DeliveryFilter(owners=owners, limit=1000, **wanted))
    return found[::-1]


def states(store: Store, **wanted: Any) -> list[str]:
    """What became of every delivery, oldest first."""
    return [record.state.value for record in all_of(store, **wanted)]
