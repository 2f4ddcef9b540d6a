"""What is done about deliveries, for the API and the commands: taken, reported, put back, given up. The rules are in
`storage.outgoing.deliveries`; here each act gets its transaction."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from sqlalchemy import Connection

from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.people import Role
from vouchgate.storage.identity import tokens
from vouchgate.storage.identity.names import valid_owner_id
from vouchgate.storage.ids import new_id_suffix
from vouchgate.storage.log import chain as log
from vouchgate.storage.outgoing import deliveries, sink_consumers
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


@dataclass(frozen=True, slots=True)
class NotServed:
    """Another token serves the sink, so nothing was handed out or noted."""

    sink: str


R = TypeVar("R")
Owners = frozenset[str] | None  # None: of any


def lease_deliveries(
    store: Store, sink: str, owners: Owners, now: datetime, most: int, *, token_id: str
) -> list[LeasedDelivery] | NotServed:
    """Leases up to `most` deliveries to a sink, in order per owner: of the owner first whose have waited longest, and
    only of those for whom this token serves the sink. Fewer than `most`: no more is due. Raises StorageError."""
    name = new_id_suffix(now)
    taken: list[LeasedDelivery] = []
    while room := most - len(taken):
        with store.read() as connection:
            owner_ids = delivery_streams.owners_due(connection, sink, owners, now, room, token_id=token_id)
            if not owner_ids:
                refused = not taken and sink_consumers.is_refused(connection, sink, owners, token_id)
                return NotServed(sink) if refused else taken

        def work(
            connection: Connection, owner_ids: list[str] = owner_ids, room: int = room
        ) -> list[LeasedDelivery]:
            leased: list[LeasedDelivery] = []
            for owner_id in owner_ids:
                left = room - len(leased)
                if left and sink_consumers.serves(connection, owner_id, sink, token_id, now):
                    leased += deliveries.lease(connection, owner_id, sink, now, most=left, name=name)
            return leased

        # Nothing, or not enough: others took it meanwhile, or it is another token's by now, or what was looked at need
        # not be told any more. In any case those are not due now, and others may be.
        taken += store.writer.run(owner_ids, work).result()
    return taken


def mark_done(
    store: Store, owners: Owners, delivery_id: str, lease: str, now: datetime, *, token_id: str
) -> DeliveryRecord | LeaseNotHeld | NotServed | None:
    """The sink has it. None: there is no such delivery of these owners. Raises StorageError."""

    def work(connection: Connection, record: DeliveryRecord) -> LeaseNotHeld | NotServed | None:
        if not sink_consumers.serves(connection, record.owner_id, record.sink, token_id, now):
            return NotServed(record.sink)
        return None if deliveries.mark_done(connection, record, lease, now) else LeaseNotHeld(record)

    return _locked(store, owners, delivery_id, work)


def mark_failed(
    store: Store,
    owners: Owners,
    delivery_id: str,
    lease: str,
    now: datetime,
    *,
    error: str,
    final: bool,
    token_id: str,
) -> DeliveryRecord | LeaseNotHeld | NotServed | None:
    """A try came to nothing; with `final` no other one is made. Else as `mark_done`."""

    def work(connection: Connection, record: DeliveryRecord) -> LeaseNotHeld | NotServed | None:
        if not sink_consumers.serves(connection, record.owner_id, record.sink, token_id, now):
            return NotServed(record.sink)
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
        deliveries.drop(connection, record, f"Dropped. Before that: {record.last_error}", now)
        _log(connection, record, Action.DELIVERY_DROPPED, actor, now)
        return None

    return _locked(store, owners, delivery_id, work)


def hand_over(
    store: Store, keys: Collection[tuple[str, str]], token_id: str, *, actor: str, now: datetime
) -> int:
    """Has a token serve these sinks (owner and name), whoever did; how many it did not serve before. What the old token
    has leased comes to the new one when the lease ends. Raises ValueError, with a sentence for the person who asked,
    when the token cannot serve one of them: then nothing is changed. StorageError when it could not be written."""
    with store.read() as connection:
        found = next((one for one in tokens.listing(connection) if one.id == token_id), None)
    if found is None or found.role is not Role.AGENT:
        raise ValueError(f"There is no agent's token {token_id!r}.")
    if found.revoked_at is not None or (found.expires_at is not None and found.expires_at <= now):
        raise ValueError(f"The token {token_id} was revoked or has expired.")
    for owner_id in sorted({owner for owner, _ in keys}):
        if not valid_owner_id(owner_id) or not (found.any_owner or owner_id in found.owners):
            raise ValueError(f"The token {token_id} does not act for the owner {owner_id!r}.")

    def work(connection: Connection) -> int:
        changed = 0
        for owner_id, sink in sorted(keys):
            before = sink_consumers.hand_over(connection, (owner_id, sink), token_id, now)
            if before != token_id:
                changed += 1
                about = {"sink": sink, "from": before, "to": token_id}
                log.append(
                    connection,
                    owner_id,
                    Action.SINK_HANDED_OVER,
                    sink,
                    log.document_of(about),
                    by=actor,
                    now=now,
                )
        return changed

    return store.writer.run(sorted({owner_id for owner_id, _ in keys}), work).result()


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
    log.append(connection, record.owner_id, action, record.id, log.document_of(about), by=actor, now=now)
