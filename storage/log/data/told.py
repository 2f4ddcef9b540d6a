"""What others are told: webhooks, sinks, deliveries."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import Row, Table, select

from vouchgate.ingest.claims.delivery import DeliveryOp
from vouchgate.ingest.claims.log import Action
from vouchgate.storage.log.data.claims import DELIVERY
from vouchgate.storage.log.data.differences import LOG, MEMORY, PENDING, Entry, Kind, Look, batched
from vouchgate.storage.outgoing.deliveries import DeliveryState
from vouchgate.storage.outgoing.webhooks import Event
from vouchgate.storage.sql import among
from vouchgate.storage.tables.doors import SinkConsumerRow, WebhookRow

WEBHOOK: Table = WebhookRow.metadata.tables["webhook"]
SINK: Table = SinkConsumerRow.metadata.tables["sink_consumer"]
_IN_AND_OUT = [
    action.value
    for action in (
        Action.MEMORY_RESTORED,
        Action.MEMORY_SUPERSEDED,
        Action.MEMORY_RETRACTED,
        Action.MEMORY_EXPIRED,
    )
]
_EVENT = {DeliveryOp.PUT.value: Event.MEMORY_STORED, DeliveryOp.REMOVE.value: Event.MEMORY_REMOVED}
_HOOK = (Action.WEBHOOK_CREATED, Action.WEBHOOK_REMOVED, Action.SINK_CREATED, Action.SINK_REMOVED)
_MADE = (Action.WEBHOOK_CREATED, Action.SINK_CREATED)


def webhooks(look: Look) -> None:
    """Where the owner is told, and who serves the sinks that the operator handed over."""
    wanted = select(WEBHOOK).where(WEBHOOK.c.owner_id == look.owner_id)
    for key, rows, entries in look.side_by_side(wanted, WEBHOOK.c.id, _HOOK):
        made = next((e for e in entries if e.action in _MADE), None)
        if made is None or any(e.action not in _MADE for e in entries):
            if rows:
                look.note(Kind.EXTRA, WEBHOOK.name, key, entry=entries[-1] if entries else None)
            continue
        if not rows:
            look.note(Kind.MISSING, WEBHOOK.name, key, entry=made)
            continue
        row = rows[0]
        look.compare(WEBHOOK.name, key, row, {"created_at": made.at}, made)
        about = {"id": key, "owner_id": row.owner_id, "url": row.url, "events": row.events}
        before = {name: about[name] for name in ("id", "owner_id", "url")}  # without the events
        if made.commits_to(2, **about, secret=hashlib.sha256(row.secret.encode()).hexdigest()):
            continue
        if made.commits_to(**about) or (made.form == 1 and made.commits_to(**before)):
            look.uncovered["the secret of a webhook (made before version 2 of its entry)"] += 1
        else:
            look.note(Kind.ALTERED, WEBHOOK.name, key, "url, events or secret", made)
    served = select(SINK).where(SINK.c.owner_id == look.owner_id)
    for key, rows, entries in look.side_by_side(served, SINK.c.sink, (Action.SINK_HANDED_OVER,)):
        if not entries:
            look.uncovered["who serves a sink that was handed to nobody: the first whose claim named it"] += 1
        elif not rows:
            look.note(Kind.MISSING, SINK.name, key, entry=entries[-1])
        elif not any(_handed(entries[-1], key, before, rows[0].token_id) for before in _before(look)):
            look.note(Kind.ALTERED, SINK.name, key, "token_id", entries[-1])


def _handed(entry: Entry, sink: str, before: str | None, after: str) -> bool:
    return entry.commits_to(**{"sink": sink, "from": before, "to": after})


def _before(look: Look) -> list[str | None]:
    """Who may have served it before: nobody, or any token that ever was."""
    tokens = select(LOG.c.subject_id).where(LOG.c.owner_id == "", LOG.c.action == Action.TOKEN_CREATED.value)
    return [None, *look.connection.scalars(tokens)]


class _Life(NamedTuple):
    """When a memory came into force, first and again, and when it went out of it."""

    decision_id: str
    horizon: datetime | None
    came: set[datetime]
    went: set[datetime]


def _lives(look: Look, memory_ids: Collection[str]) -> dict[str, _Life]:
    """Of these memories, by id."""
    asked = {"wanted": list(memory_ids)}
    rows = select(MEMORY.c.id, MEMORY.c.decision_id, MEMORY.c.validity_horizon, MEMORY.c.created_at).where(
        MEMORY.c.owner_id == look.owner_id, among(MEMORY.c.id, "wanted")
    )
    entries = select(LOG.c.subject_id, LOG.c.action, LOG.c.at).where(
        LOG.c.owner_id == look.owner_id, among(LOG.c.subject_id, "wanted"), LOG.c.action.in_(_IN_AND_OUT)
    )
    lives = {
        row.id: _Life(row.decision_id, row.validity_horizon, {row.created_at}, set())
        for row in look.connection.execute(rows, asked)
    }
    for row in look.connection.execute(entries, asked):
        if (life := lives.get(row.subject_id)) is not None:
            (life.came if row.action == Action.MEMORY_RESTORED else life.went).add(row.at)
    return lives


def deliveries(look: Look) -> None:
    """What sinks are told is what claims named: numbered without gaps, each about a memory that came into force then or
    went out of it, or an approved removal."""
    wanted = select(DELIVERY).where(DELIVERY.c.owner_id == look.owner_id).order_by(DELIVERY.c.seq)
    moved = {}
    for entry in look.entries((Action.DELIVERY_RETRIED, Action.DELIVERY_DROPPED)):
        moved[entry.subject_id] = entry
    last = 0
    of_hooks = select(WEBHOOK.c.id, WEBHOOK.c.events).where(WEBHOOK.c.owner_id == look.owner_id)
    hooks = {row.id: row.events.split() for row in look.connection.execute(of_hooks)}
    asked_for = select(PENDING.c.removal_of, PENDING.c.decided_at, PENDING.c.decision_id).where(
        PENDING.c.owner_id == look.owner_id, PENDING.c.removal_of.is_not(None), PENDING.c.status == "approved"
    )
    removals = {
        (row.removal_of, row.decided_at): row.decision_id for row in look.connection.execute(asked_for)
    }
    for batch in batched(look.rows(wanted)):
        lives = _lives(look, {row.memory_id for row in batch} - {None})
        asked = {row.id: removals.get((f"{row.sink} {row.place}", row.created_at)) for row in batch}
        answers = look.answers(
            {life.decision_id for life in lives.values()} | {each for each in asked.values() if each}
        )
        for row in batch:
            for missing in range(last + 1, row.seq):
                look.note(
                    Kind.MISSING, DELIVERY.name, str(missing), why="the owner's deliveries have no gaps"
                )
            last = row.seq
            if row.memory_id in look.erased:
                moved.pop(row.id, None)
                continue
            life = lives.get(row.memory_id)
            removal = asked[row.id] is not None
            made_it = asked[row.id] or (life.decision_id if life else "")
            _, answer = answers.get(made_it, (None, None))
            _delivery(look, row, answer, moved.pop(row.id, None), removal)
            told = not row.sink.startswith("sink_") or _EVENT.get(row.op) in hooks.get(row.sink, ())
            _told(look, row, life, removal, told)
    for key, entry in moved.items():
        look.note(Kind.MISSING, DELIVERY.name, key, entry=entry)


def _delivery(look: Look, row: Row[Any], answer: Any, moved: Entry | None, removal: bool) -> None:
    key = row.id
    if key != "dlv_" + hashlib.sha256(f"{row.seq} {row.owner_id}".encode()).hexdigest()[:32]:
        look.note(Kind.ALTERED, DELIVERY.name, key, "id or seq")
    named = answer and answer["evidence"]["claim"].get("delivery")
    if row.sink.startswith("sink_"):  # a webhook that is told of memories
        expected = {"place": row.memory_id, "data": {}}
        if answer is None:
            look.note(Kind.EXTRA, DELIVERY.name, key, why="it tells of no memory")
    elif named is not None:
        expected = {"sink": named["sink"], "place": named["place"], "data": named.get("data", {})}
    else:
        expected = {}
        if not removal:
            look.note(Kind.EXTRA, DELIVERY.name, key, why="no claim named this place")
    if expected:
        look.compare(DELIVERY.name, key, row, expected)
    dropped = (row.last_error or "").startswith("Dropped.") and row.state == "skipped"
    if dropped != (moved is not None and moved.action == Action.DELIVERY_DROPPED):
        look.note(Kind.ALTERED, DELIVERY.name, key, "state", moved)


def _told(look: Look, row: Row[Any], life: _Life | None, removal: bool, asked: bool) -> None:
    """Whether the sink is to put or to remove, and whether it need not be told; `asked`: it is told of such things, and
    still there."""
    at, put = row.created_at, row.op == DeliveryOp.PUT.value
    went = life is not None and (at in life.went or (life.horizon is not None and life.horizon <= at))
    if not (life is not None and at in life.came if put else removal or went):
        look.note(Kind.ALTERED, DELIVERY.name, row.id, "op")
    left = put and life is not None and (life.went or (life.horizon and life.horizon <= datetime.now(UTC)))
    given_up = (row.last_error or "").startswith("Dropped.")  # which its entry says, or not
    if row.state == DeliveryState.SKIPPED.value and asked and not (left or given_up):
        look.note(Kind.ALTERED, DELIVERY.name, row.id, "state", why="nothing ended what it tells of")
