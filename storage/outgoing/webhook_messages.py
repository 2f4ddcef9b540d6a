"""What webhooks tell, each thing once and in order, whichever process sends it.

There is no outbox. An owner's log is written in the transaction of what it tells of and is numbered without gaps,
so one number says what a webhook has yet to tell (docs/adrs/0016-webhooks-follow-the-log.md). A message is made and
kept when it is first leased; until it is taken in, every try sends the same words under the same id. Leases are as
in `storage.queue.rechecks`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Connection, and_, bindparam, func, or_, select, update

from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.waiting import ReviewStatus
from vouchgate.ingest.rules import Rule
from vouchgate.storage import ids
from vouchgate.storage.identity.owners import TABLE as OWNER
from vouchgate.storage.log import chain as log
from vouchgate.storage.outgoing.tries import failed, readable
from vouchgate.storage.outgoing.webhooks import OF_ONE, TABLE, Endpoint, Event, endpoint_of
from vouchgate.storage.queue import pending
from vouchgate.storage.sql import among

MOST_ENTRIES = 100  # in one message, which is then some 15 KB; receivers want less than 20
GATHER = timedelta(seconds=5)  # from a message's first entry: what comes in a burst is told at once
# Webhooks looked at in one transaction. Most of them have nothing to tell but entries nobody waits for.
_LOOKED_AT = 100

# What an owner may have to act upon or will look for in vain. A repeat only raises the count of an item that was
# told already, and what owners do themselves is no news to them, but for what ended undecided.
TOLD = (
    Action.CLAIM_QUEUED,
    Action.CLAIM_PROMOTED,
    Action.REVIEW_EXPIRED,
    Action.REVIEW_LET_GO,
    Action.MEMORY_STALE,
)
# Why an item waits, by rule. Never the item's own reason: it may quote the claim, and messages go
# to places that may not see claims.
REASONS: Mapping[str, str] = {
    Rule.CONFLICT: "Conflicts with existing memory",
    Rule.TECHNICAL_HEDGE: "Contains technical hedges - needs verification",
    Rule.DEDUP_UNKNOWN: "May not be new",
    Rule.REFUTED: "A cited source does not hold",
    Rule.HIDDEN_TEXT: "Has text that nobody can see",
    Rule.INSTRUCTION: "Speaks to a model",
    Rule.PERSONAL_DATA: "Holds personal data",
    Rule.UNCOVERED: "Says more than its sources",
    Rule.DOUBTED: "Did not pass a check",
    Rule.CITATION_UNKNOWN: "Citation could not be checked yet",
    Rule.UNGROUNDED: "Ungrounded assertion needs verification",
    Rule.ECHO: "Submitted again and again",
    Rule.REMOVAL: "Changes or removes what is stored",
    Rule.PLACE_CHANGE: "Changes or removes what is stored",
}
_OTHER_REASON = "Needs verification"

_LOG = log.TABLE
_HELD = and_(OF_ONE, TABLE.c.lease == bindparam("of_lease"))
_WITH_OWNER = TABLE.join(OWNER, OWNER.c.owner_id == TABLE.c.owner_id)
_TO_TELL = and_(
    TABLE.c.events.contains(Event.WAITING.value),
    or_(TABLE.c.until_seq.is_not(None), OWNER.c.log_seq > TABLE.c.told_seq),
)
_NEXT = select(func.min(TABLE.c.due_at)).select_from(_WITH_OWNER).where(_TO_TELL)
_DUE = (
    select(TABLE, OWNER.c.log_seq, OWNER.c.pending.label("waiting"))
    .select_from(_WITH_OWNER)
    .where(_TO_TELL, TABLE.c.due_at <= bindparam("now"))
    .order_by(TABLE.c.due_at, TABLE.c.id)
    .limit(bindparam("most"))
    # What another process is taking at this moment is left to it, so that nobody waits for anybody here.
    .with_for_update(of=TABLE, skip_locked=True)
)
_ENTRIES = (
    select(_LOG.c.seq, _LOG.c.at, _LOG.c.action, _LOG.c.subject_id)
    .where(
        _LOG.c.owner_id == bindparam("of_owner"),
        _LOG.c.seq > bindparam("told"),
        _LOG.c.seq <= bindparam("end"),
        _LOG.c.action.in_([action.value for action in TOLD]),
    )
    .order_by(_LOG.c.seq)
    .limit(MOST_ENTRIES)
)
_STAND = select(pending.TABLE.c.id, pending.TABLE.c.rule).where(
    pending.TABLE.c.owner_id == bindparam("of_owner"),
    pending.TABLE.c.status == bindparam("in_status"),
    among(pending.TABLE.c.id, "item_ids"),
)
# By the time of the decision, for which there is an index: it is the entry's own.
_PROMOTED = select(pending.TABLE.c.id, pending.TABLE.c.memory_id, pending.TABLE.c.decision_id).where(
    pending.TABLE.c.owner_id == bindparam("of_owner"),
    pending.TABLE.c.decided_at >= bindparam("first"),
    pending.TABLE.c.decided_at <= bindparam("last"),
    among(pending.TABLE.c.decision_id, "decision_ids"),
)

_PASS_OVER = update(TABLE).where(OF_ONE).values(told_seq=bindparam("up_to"))
_WAIT = update(TABLE).where(OF_ONE).values(due_at=bindparam("next_due"))
_LEASE = update(TABLE).where(OF_ONE).values(due_at=bindparam("until"), lease=bindparam("name"))
_BEGIN = _LEASE.values(until_seq=bindparam("up_to"), message=bindparam("text"))
_TELL = (
    update(TABLE)
    .where(_HELD)
    .values(
        told_seq=TABLE.c.until_seq,
        until_seq=None,
        message=None,
        due_at=bindparam("next_due"),
        attempts=0,
        lease=None,
        failing_since=None,
        last_error=None,
    )
)
_FAIL = failed(TABLE, _HELD)


@dataclass(frozen=True, slots=True)
class Message:
    """A message that this process is to send, and nobody else until its lease ends. `attempts` is how often it
    was tried before; `resumed`: it failed, and counts as new since."""

    to: Endpoint
    id: str
    body: str
    attempts: int
    resumed: bool
    lease: str


class LeasedMessages(NamedTuple):
    """What one transaction leased, and how many webhooks it looked at: 0 when there was none left to look at."""

    messages: list[Message]
    looked_at: int


def next_due(connection: Connection) -> datetime | None:
    """When a webhook that may have something to tell can be looked at next; None when none has."""
    found: datetime | None = connection.scalar(_NEXT)
    return found


def lease_due(
    connection: Connection,
    now: datetime,
    most: int,
    lease_seconds: float,
    name: str,
    *,
    page: str | None = None,
) -> LeasedMessages:
    """Takes up to `most` messages that are due, for so long. `name` must be new each time; `page` is the address
    of the review page. In a write transaction of its own: it holds no owner's lock."""
    rows = connection.execute(_DUE, {"now": now, "most": _LOOKED_AT}).all()
    until = now + timedelta(seconds=lease_seconds)
    taken: list[Message] = []
    for row in rows:
        if len(taken) == most:
            break
        one = {"of_owner": row.owner_id, "of_id": row.id}
        leased = one | {"until": until, "name": name}
        if row.until_seq is not None:
            connection.execute(_LEASE, leased)
            taken.append(_message(row, row.until_seq, row.message, name))
            continue
        asked = {"of_owner": row.owner_id, "told": row.told_seq, "end": row.log_seq}
        entries = connection.execute(_ENTRIES, asked).all()
        full = len(entries) == MOST_ENTRIES
        # Clocks may differ: what seems to come from the future does not wait until it is past.
        if entries and not full and abs(now - entries[0].at) < GATHER:
            connection.execute(_WAIT, one | {"next_due": entries[0].at + GATHER})
            continue
        up_to = entries[-1].seq if full else row.log_seq
        told = _contents(connection, row.owner_id, entries)
        if not any(told.values()):
            connection.execute(_PASS_OVER, one | {"up_to": up_to})
            continue
        data = {"owner_id": row.owner_id, "waiting": row.waiting, **told, "url": page}
        text = body(Event.WAITING, entries[-1].at, data)
        connection.execute(_BEGIN, leased | {"up_to": up_to, "text": text})
        taken.append(_message(row, up_to, text, name))
    return LeasedMessages(taken, len(rows))


def mark_sent(connection: Connection, message: Message, now: datetime) -> bool:
    """Notes that a message was taken in; what comes after it is due. False when the lease was lost or the webhook
    is gone: then nothing is noted."""
    return connection.execute(_TELL, _message_key(message) | {"next_due": now}).rowcount == 1


def mark_failed(
    connection: Connection,
    message: Message,
    now: datetime,
    *,
    error: str,
    attempts: int,
    due_at: datetime | None,
) -> bool:
    """Notes that a try came to nothing. The message is due again at `due_at`; None gives it up, and the webhook
    with it, until it is resumed. Else as `mark_sent`."""
    values = {"at": now, "tried": attempts, "next_due": due_at, "error": readable(error)}
    return connection.execute(_FAIL, _message_key(message) | values).rowcount == 1


def body(kind: str, at: datetime, data: dict[str, Any]) -> str:
    """The text of a message, after the Standard Webhooks specification: plain ASCII, so that no two programs
    make other bytes of it."""
    whole = {"type": kind, "timestamp": at.astimezone(UTC).isoformat(), "data": data}
    return json.dumps(whole, separators=(",", ":"))


def _contents(connection: Connection, owner_id: str, entries: Iterable[Any]) -> dict[str, list[Any]]:
    """What entries tell, without a word of any claim. Claims that do not wait any more are left out: nobody has to
    come for them."""
    by: dict[str, list[Any]] = {action.value: [] for action in TOLD}
    for entry in entries:
        by[entry.action].append(entry)
    queued = [_queue_id(entry.subject_id) for entry in by[Action.CLAIM_QUEUED.value]]
    rules = _rules(connection, owner_id, queued, ReviewStatus.PENDING)
    gone = _subjects(by[Action.REVIEW_LET_GO.value])
    still_gone = _rules(connection, owner_id, gone, ReviewStatus.LET_GO)  # it may have been taken back
    return {
        "queued": [
            {"queue_id": item, "rule": rules[item], "reason": REASONS.get(rules[item], _OTHER_REASON)}
            for item in queued
            if item in rules
        ],
        "expired": _subjects(by[Action.REVIEW_EXPIRED.value]),
        "let_go": [item for item in gone if item in still_gone],
        "promoted": _promoted(connection, owner_id, by[Action.CLAIM_PROMOTED.value]),
        "stale": _subjects(by[Action.MEMORY_STALE.value]),
    }


def _rules(
    connection: Connection, owner_id: str, item_ids: list[str], status: ReviewStatus
) -> dict[str, Rule]:
    """By id the rules of those of the items that stand so."""
    if not item_ids:
        return {}
    asked = {"of_owner": owner_id, "in_status": status.value, "item_ids": item_ids}
    return {row.id: row.rule for row in connection.execute(_STAND, asked)}


def _promoted(connection: Connection, owner_id: str, entries: list[Any]) -> list[dict[str, str]]:
    if not entries:
        return []
    times = [entry.at for entry in entries]
    asked = {"of_owner": owner_id, "first": min(times), "last": max(times)}
    asked["decision_ids"] = [entry.subject_id for entry in entries]
    rows = {row.decision_id: row for row in connection.execute(_PROMOTED, asked)}
    found = [rows[entry.subject_id] for entry in entries if entry.subject_id in rows]
    return [{"queue_id": row.id, "memory_id": row.memory_id} for row in found]


def _subjects(entries: Iterable[Any]) -> list[str]:
    return list(dict.fromkeys(entry.subject_id for entry in entries))


def _queue_id(decision_id: str) -> str:
    """The item that a decision queued, which shares its suffix."""
    return ids.queue_id(decision_id.partition("_")[2])


def _message(row: Any, until_seq: int, text: str, lease: str) -> Message:
    resumed = row.failing_since is not None and row.attempts == 0
    return Message(endpoint_of(row), message_id(row.id, str(until_seq)), text, row.attempts, resumed, lease)


def message_id(webhook_id: str, which: str) -> str:
    """The same for every try of one message, and for no other message."""
    return f"msg_{hashlib.sha256(f'{webhook_id}.{which}'.encode()).hexdigest()[:32]}"


def _message_key(message: Message) -> dict[str, Any]:
    return {"of_owner": message.to.owner_id, "of_id": message.to.id, "of_lease": message.lease}
