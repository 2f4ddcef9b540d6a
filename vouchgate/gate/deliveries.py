"""What is done about deliveries, for the API and the commands: taken, reported, put back, given up. The rules are in
`storage.outgoing.deliveries`; here each act gets its transaction."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from sqlalchemy import Connection

from vouchgate.ingest.claims.types import Action
from vouchgate.ingest.policy import canonical_json
from vouchgate.storage.ids import new_id_suffix
from vouchgate.storage.log import chain as log
from vouchgate.storage.outgoing import deliveries
from vouchgate.storage.outgoing import streams as delivery_streams
from vouchgate.storage.outgoing.deliveries import DeliveryRecord, DeliveryState, LeasedDelivery
from vouchgate.storage.store import Store


@dataclass(frozen=True, slots=True)
class LeaseNotHeld:
    """The lease is not the caller's (any more), so nothing was noted. `record` is the delivery as it is."""

    record: DeliveryRecord


@dataclass(frozen=True, slots=True)
class NotDeadLetter:
    """It is no dead letter, so there is nothing to put back."""

    record: DeliveryRecord


@dataclass(frozen=True, slots=True)
class Outdated:
    """The same place was told something later, which this one would undo."""

    record: DeliveryRecord


R = TypeVar("R")
Owners = frozenset[str] | None  # None: of any


def lease_deliveries(
    store: Store, sink: str, owners: Owners, now: datetime, most: int
) -> list[LeasedDelivery]:
    """Leases up to `most` deliveries to a sink, in order per owner: of the owner first whose have waited longest.
    Raises StorageError."""
    name = new_id_suffix(now)
    while True:
        with store.read() as connection:
            owner_ids = delivery_streams.owners_due(connection, sink, owners, now, most)
        if not owner_ids:
            return []

        def work(connection: Connection, owner_ids: list[str] = owner_ids) -> list[LeasedDelivery]:
            taken: list[LeasedDelivery] = []
            for owner_id in owner_ids:
                if room := most - len(taken):
                    taken += deliveries.lease(connection, owner_id, sink, now, most=room, name=name)
            return taken

        # Empty: others took it meanwhile, or none of it was needed any more. Either way those are not due now.
        if taken := store.writer.run(owner_ids, work).result():
            return taken


def mark_done(
    store: Store, owners: Owners, delivery_id: str, lease: str, now: datetime
) -> DeliveryRecord | LeaseNotHeld | None:
    """The sink has it. None: there is no such delivery of these owners. Raises StorageError."""

    def work(connection: Connection, record: DeliveryRecord) -> LeaseNotHeld | None:
        return None if deliveries.mark_done(connection, record, lease, now) else LeaseNotHeld(record)

    return _locked(store, owners, delivery_id, work)


def mark_failed(
    store: Store, owners: Owners, delivery_id: str, lease: str, now: datetime, *, error: str, final: bool
) -> DeliveryRecord | LeaseNotHeld | None:
    """A try came to nothing; with `final` no other one is made. Else as `mark_done`."""

    def work(connection: Connection, record: DeliveryRecord) -> LeaseNotHeld | None:
        due_at = None if final else deliveries.next_try(record.attempts, now)
        tried = record.attempts + 1
        held = deliveries.mark_failed(
            connection, record, lease, now, error=error, attempts=tried, due_at=due_at
        )
        return None if held else LeaseNotHeld(record)

    return _locked(store, owners, delivery_id, work)


def retry(
    store: Store, owners: Owners, delivery_id: str, *, actor: str, now: datetime
) -> DeliveryRecord | NotDeadLetter | Outdated | None:
    """Puts a dead letter back, to be tried again as often as a new one; what was delivered meanwhile has overtaken it.
    None: there is no such delivery of these owners. Raises StorageError."""

    def work(connection: Connection, record: DeliveryRecord) -> NotDeadLetter | Outdated | None:
        if record.state is not DeliveryState.DEAD:
            return NotDeadLetter(record)
        if deliveries.is_outdated(connection, record):
            return Outdated(record)
        deliveries.put_back(connection, record, now)
        _log(connection, record, Action.DELIVERY_RETRIED, actor, now)
        return None

    return _locked(store, owners, delivery_id, work)


def drop(
    store: Store, owners: Owners, delivery_id: str, *, actor: str, now: datetime
) -> DeliveryRecord | NotDeadLetter | None:
    """Gives a dead letter up for good. Else as `retry`."""

    def work(connection: Connection, record: DeliveryRecord) -> NotDeadLetter | None:
        if record.state is not DeliveryState.DEAD:
            return NotDeadLetter(record)
        deliveries.drop(connection, record, f"Dropped. Before that: {record.last_error}")
        _log(connection, record, Action.DELIVERY_DROPPED, actor, now)
        return None

    return _locked(store, owners, delivery_id, work)


def _locked(
    store: Store, owners: Owners, delivery_id: str, work: Callable[[Connection, DeliveryRecord], R | None]
) -> DeliveryRecord | R | None:
    """Does `work` on a delivery under its owner's lock. What that gives is why it was not done; else the delivery as it
    is then. None: none of `owners` has it."""
    with store.read() as connection:
        known = deliveries.get(connection, delivery_id, owners=owners)
    if known is None:
        return None
    whose = frozenset({known.owner_id})

    def locked(connection: Connection) -> DeliveryRecord | R | None:
        record = deliveries.get(connection, delivery_id, owners=whose)
        if record is None:
            return None
        refused = work(connection, record)
        return deliveries.get(connection, delivery_id, owners=whose) if refused is None else refused

    return store.writer.run([known.owner_id], locked).result()


def _log(connection: Connection, record: DeliveryRecord, action: Action, actor: str, now: datetime) -> None:
    about = {"id": record.id, "sink": record.sink, "place": record.place}
    log.append(
        connection,
        record.owner_id,
        at=now,
        actor=actor,
        action=action,
        subject_id=record.id,
        content_digest=hashlib.sha256(canonical_json(about).encode()).hexdigest(),
    )
