"""Where owners are told of what they asked to be told of: their webhooks, and the events of each.

What waits, without a word of it, is told by following the owner's log (`storage.outgoing.webhook_messages`), as far
as the webhook's `told_seq` says. Memories, with their text, are deliveries to the webhook's id
(`storage.outgoing.outbox`).
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Table, and_, bindparam, delete, insert, select, update

from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.net.addresses import parse_url
from vouchgate.ingest.net.fetched import HopFailure
from vouchgate.storage import ids
from vouchgate.storage.identity.names import MAX_NAME_CHARACTERS, valid_name, valid_owner_id
from vouchgate.storage.log import chain as log
from vouchgate.storage.outgoing import deliveries
from vouchgate.storage.store import Store
from vouchgate.storage.tables.doors import WebhookRow

MOST_WEBHOOKS = (
    5  # of one owner for what waits, and for memories: each is one more request for all that happens
)

TABLE: Table = WebhookRow.metadata.tables["webhook"]
OF_ONE = and_(TABLE.c.owner_id == bindparam("of_owner"), TABLE.c.id == bindparam("of_id"))
_INSERT = insert(TABLE)
_BY_ID = select(TABLE).where(TABLE.c.id == bindparam("wanted"))
_ALL = select(TABLE).order_by(TABLE.c.created_at, TABLE.c.id)
_FAILING = _ALL.where(TABLE.c.failing_since.is_not(None))
_REMOVE = delete(TABLE).where(OF_ONE)
_RESUME = (
    update(TABLE)
    .where(OF_ONE, TABLE.c.lease.is_(None), TABLE.c.failing_since.is_not(None))
    .values(due_at=bindparam("next_due"), attempts=0)
)


class Event(StrEnum):
    """What a webhook can be told of: the type of its messages."""

    WAITING = "review.waiting"  # what waits, was promoted or expired, or lost its source; no word of a claim
    MEMORY_STORED = "memory.stored"  # a memory came into force, with its text
    MEMORY_REMOVED = "memory.removed"  # a memory that was sent is out of force


OF_MEMORIES = frozenset({Event.MEMORY_STORED, Event.MEMORY_REMOVED})


class Webhook(Frozen):
    """A webhook as it may be shown: everything but its secret. The rest is about messages on what waits: `due_at` None:
    given up. Else it is when the next try may be made, which means something only while `attempts` is not 0."""

    id: str  # if it is told of memories, also the sink of their deliveries
    owner_id: str
    url: str
    events: tuple[Event, ...]
    created_at: datetime
    told_seq: int
    due_at: datetime | None
    attempts: int
    failing_since: datetime | None
    last_error: str | None


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Whom messages are sent to, and what signs them: `whsec_` and base64."""

    id: str
    owner_id: str
    url: str
    events: tuple[Event, ...]
    secret: str = field(repr=False)


def create(
    store: Store,
    *,
    owner_id: str,
    url: str,
    events: Collection[Event] = (Event.WAITING,),
    actor: str,
    now: datetime,
) -> tuple[Webhook, str]:
    """Makes a webhook that tells what happens from now on, and its secret. Raises ValueError, with a sentence for
    the person who asked; StorageError when it could not be written."""
    if not valid_owner_id(owner_id):
        raise ValueError(f"An owner id has 1 to {MAX_NAME_CHARACTERS} printable characters.")
    place = parse_url(url)
    if isinstance(place, HopFailure):
        raise ValueError(f"Nothing can be sent to this URL: {place.reason}.")
    suffix = ids.new_id_suffix(now)
    webhook_id = ids.webhook_id(suffix) if OF_MEMORIES.isdisjoint(events) else ids.sink_id(suffix)
    secret = "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()
    kept = " ".join(event for event in Event if event in events)
    about = {"id": webhook_id, "owner_id": owner_id, "url": place.url, "events": kept}
    row = about | {"secret": secret, "created_at": now, "due_at": now, "attempts": 0}

    def work(connection: Connection) -> Webhook:
        others = listing(connection, owner_id)
        for kind in (OF_MEMORIES, set(Event) - OF_MEMORIES):
            like_it = [hook for hook in others if not kind.isdisjoint(hook.events)]
            if not kind.isdisjoint(events) and len(like_it) >= MOST_WEBHOOKS:
                raise ValueError(f"This owner has {MOST_WEBHOOKS} webhooks already, which is the most.")
        committed = about | {"secret": hashlib.sha256(secret.encode()).hexdigest()}
        document = log.document_of(committed, form=2)
        entry = log.append(
            connection, owner_id, Action.WEBHOOK_CREATED, webhook_id, document, by=actor, now=now
        )
        connection.execute(_INSERT, row | {"told_seq": entry.seq})
        return _shown(connection.execute(_BY_ID, {"wanted": webhook_id}).one())

    return store.writer.run([owner_id], work).result(), secret


def remove(store: Store, webhook_id: str, *, actor: str, now: datetime) -> bool:
    """Ends a webhook: nothing more is sent to it, but for a try that is under way. False when there is none of
    this id."""
    with store.read() as connection:
        known = get(connection, webhook_id)
    if known is None:
        return False
    where = {"of_owner": known.owner_id, "of_id": known.id}

    def work(connection: Connection) -> bool:
        if connection.execute(_REMOVE, where).rowcount != 1:
            return False
        deliveries.abandon(connection, known.owner_id, known.id, "Its webhook was removed.")
        document = log.document_of({"id": known.id})
        log.append(connection, known.owner_id, Action.WEBHOOK_REMOVED, known.id, document, by=actor, now=now)
        return True

    return store.writer.run([known.owner_id], work).result()


def resume(store: Store, webhook_id: str, now: datetime) -> bool | None:
    """Has what failed, a message or the first memory of those that wait, tried at once, and as often as a new one.
    False when nothing waits for its next try, or one is being made, which is left alone. None when there is no webhook
    of this id."""
    with store.read() as connection:
        known = get(connection, webhook_id)
    if known is None:
        return None
    hook = known

    def work(connection: Connection) -> bool:
        values = {"of_owner": hook.owner_id, "of_id": hook.id, "next_due": now}
        message = connection.execute(_RESUME, values).rowcount == 1
        return deliveries.try_now(connection, hook.owner_id, hook.id, now) or message

    return store.writer.run([hook.owner_id], work).result()


def get(connection: Connection, webhook_id: str) -> Webhook | None:
    """The webhook of this id, whoever has it."""
    row = connection.execute(_BY_ID, {"wanted": webhook_id}).one_or_none() if valid_name(webhook_id) else None
    return None if row is None else _shown(row)


def endpoint(connection: Connection, webhook_id: str) -> Endpoint | None:
    """Where the webhook of this id sends, with its secret."""
    row = connection.execute(_BY_ID, {"wanted": webhook_id}).one_or_none() if valid_name(webhook_id) else None
    return None if row is None else endpoint_of(row)


def listing(connection: Connection, owner_id: str | None = None) -> list[Webhook]:
    """Every webhook (of this owner), oldest first."""
    return _of(connection, _ALL, owner_id)


def failing(connection: Connection, owner_id: str | None = None) -> list[Webhook]:
    """Those (of this owner) whose last try failed, oldest first."""
    return _of(connection, _FAILING, owner_id)


def _of(connection: Connection, statement: Any, owner_id: str | None) -> list[Webhook]:
    if owner_id is not None:
        statement = statement.where(TABLE.c.owner_id == owner_id)
    return [_shown(row) for row in connection.execute(statement)]


def _shown(row: Any) -> Webhook:
    fields = {name: getattr(row, name) for name in Webhook.model_fields}
    return Webhook.model_validate(fields | {"events": row.events.split()})


def endpoint_of(row: Any) -> Endpoint:
    """Where the webhook of this row sends."""
    return Endpoint(row.id, row.owner_id, row.url, tuple(map(Event, row.events.split())), row.secret)
