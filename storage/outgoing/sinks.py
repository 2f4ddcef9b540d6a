"""Webhooks that get every memory of an owner, with its text: as it comes into force, and again when it is out of force.
Those that only say that something waits, without its words, are in `storage.outgoing.webhooks`."""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Collection
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Table, and_, bindparam, delete, func, insert, select

from vouchgate.ingest.claims.types import Action, Frozen
from vouchgate.ingest.net.addresses import parse_url
from vouchgate.ingest.net.fetched import HopFailure
from vouchgate.ingest.policy import canonical_json
from vouchgate.storage import ids
from vouchgate.storage.identity.names import MAX_NAME_CHARACTERS, valid_name, valid_owner_id
from vouchgate.storage.log import chain as log
from vouchgate.storage.outgoing import deliveries
from vouchgate.storage.outgoing.webhooks import Endpoint, endpoint_of
from vouchgate.storage.store import Store
from vouchgate.storage.tables.doors import SinkRow

MOST_SINKS = 5  # of one owner: each is one more row and request for every memory

TABLE: Table = SinkRow.metadata.tables["sink"]
_OF_ONE = and_(TABLE.c.owner_id == bindparam("of_owner"), TABLE.c.id == bindparam("of_id"))
_COUNT = select(func.count()).select_from(TABLE).where(TABLE.c.owner_id == bindparam("of_owner"))
_BY_ID = select(TABLE).where(TABLE.c.id == bindparam("wanted"))
_ONE = select(TABLE).where(_OF_ONE)
_ALL = select(TABLE).order_by(TABLE.c.created_at, TABLE.c.id)
_REMOVE = delete(TABLE).where(_OF_ONE)


class Sink(Frozen):
    """A sink as it may be shown: everything but its secret."""

    id: str
    owner_id: str
    url: str
    created_at: datetime


def create(store: Store, *, owner_id: str, url: str, actor: str, now: datetime) -> tuple[Sink, str]:
    """Makes a sink that gets what is stored from now on, and its secret. Raises ValueError, with a sentence for the
    person who asked; StorageError when it could not be written."""
    if not valid_owner_id(owner_id):
        raise ValueError(f"An owner id has 1 to {MAX_NAME_CHARACTERS} printable characters.")
    place = parse_url(url)
    if isinstance(place, HopFailure):
        raise ValueError(f"Nothing can be sent to this URL: {place.reason}.")
    sink = Sink(id=ids.sink_id(ids.new_id_suffix(now)), owner_id=owner_id, url=place.url, created_at=now)
    secret = "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()

    def work(connection: Connection) -> None:
        if (connection.scalar(_COUNT, {"of_owner": owner_id}) or 0) >= MOST_SINKS:
            raise ValueError(f"This owner has {MOST_SINKS} sinks already, which is the most.")
        about = {"id": sink.id, "owner_id": owner_id, "url": sink.url}
        _log(connection, sink, Action.SINK_CREATED, about, actor=actor, now=now)
        connection.execute(insert(TABLE), sink.model_dump() | {"secret": secret})

    store.writer.run([owner_id], work).result()
    return sink, secret


def remove(store: Store, sink_id: str, *, actor: str, now: datetime) -> bool:
    """Ends a sink: what it had yet to get is skipped, but for a try that is under way. False when there is none of
    this id."""
    with store.read() as connection:
        known = get(connection, sink_id)
    if known is None:
        return False

    def work(connection: Connection) -> bool:
        if connection.execute(_REMOVE, {"of_owner": known.owner_id, "of_id": known.id}).rowcount != 1:
            return False
        deliveries.abandon(connection, known.owner_id, known.id, "Its sink was removed.")
        _log(connection, known, Action.SINK_REMOVED, {"id": known.id}, actor=actor, now=now)
        return True

    return store.writer.run([known.owner_id], work).result()


def _log(
    connection: Connection, sink: Sink, action: Action, about: dict[str, str], *, actor: str, now: datetime
) -> None:
    log.append(
        connection,
        sink.owner_id,
        at=now,
        actor=actor,
        action=action,
        subject_id=sink.id,
        content_digest=hashlib.sha256(canonical_json(about).encode()).hexdigest(),
    )


def get(connection: Connection, sink_id: str) -> Sink | None:
    """The sink of this id, whoever has it."""
    row = connection.execute(_BY_ID, {"wanted": sink_id}).one_or_none() if valid_name(sink_id) else None
    return None if row is None else _shown(row)


def endpoints(connection: Connection, wanted: Collection[tuple[str, str]]) -> dict[tuple[str, str], Endpoint]:
    """Where these sinks, by owner and id, get what they get; those that are there."""
    rows = [
        connection.execute(_ONE, {"of_owner": owner, "of_id": sink}).one_or_none() for owner, sink in wanted
    ]
    return {(row.owner_id, row.id): endpoint_of(row) for row in rows if row is not None}


def listing(connection: Connection) -> list[Sink]:
    """Every sink, oldest first."""
    return [_shown(row) for row in connection.execute(_ALL)]


def _shown(row: Any) -> Sink:
    return Sink(id=row.id, owner_id=row.owner_id, url=row.url, created_at=row.created_at)
