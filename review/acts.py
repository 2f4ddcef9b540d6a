"""What an act on one item writes. Every function here runs inside a write transaction that holds the lock
of the item's owner, on an item just read in it; raising rolls all of it back.

The unit may be run again after a rollback (`storage.writer`), so nothing here makes an id or reads a clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pydantic import ValidationError
from sqlalchemy import Connection, insert

from vouchgate.ingest.claims.claim import Claim
from vouchgate.ingest.claims.decision import ValidationResult
from vouchgate.ingest.claims.delivery import DeliveryTarget
from vouchgate.ingest.claims.likeness import ItemKind, Neighbour
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.memory import Memory
from vouchgate.ingest.claims.source import SourceReading
from vouchgate.ingest.claims.waiting import PendingMemory, ReviewStatus
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.scoring.priority import head_start
from vouchgate.review import record
from vouchgate.review.answers import AlreadyGone, Rejected, Retracted
from vouchgate.storage.claims import decisions, lineage, memories, source_texts
from vouchgate.storage.dedup import index, similar, vectors
from vouchgate.storage.errors import RecordUnreadable, StorageError
from vouchgate.storage.outgoing.outbox import Outbox
from vouchgate.storage.queue import pending, rechecks, spot_checks

_INSERT_DECISION = insert(decisions.TABLE)

SERVICE = "service"  # the actor of what nobody asked for: what runs out of time, or is checked again
MOST_REASON = 2000  # characters of a reason that is shown beside an item or a memory


@dataclass(frozen=True, slots=True)
class NewDecision:
    """A decision on a waiting item's claim that was made again. Its answer names its own id, and the memory or
    the item that the claim now is."""

    answer: ValidationResult
    decision_id: str
    reason: str  # what the item then shows; the answer has the router's own
    now: datetime
    readings: tuple[SourceReading, ...] = ()  # that it was made on, with their texts


def reject(connection: Connection, item: PendingMemory, *, by: str, reason: str, now: datetime) -> Rejected:
    """Ends the wait without a memory."""
    end_wait(connection, item, ReviewStatus.REJECTED, by=by, now=now, note=reason)
    document = record.document(item=item.id, note=reason)
    record.entry(connection, item.owner_id, Action.REVIEW_REJECTED, item.id, document, by=by, now=now)
    return Rejected(reload(connection, item))


def let_go(
    connection: Connection, item: PendingMemory, *, by: str, reason: str, now: datetime, together: int
) -> None:
    """Ends the wait of an item that cannot be decided well, one of so many that go `together`."""
    end_wait(connection, item, ReviewStatus.LET_GO, by=by, now=now, note=reason)
    document = record.document(item=item.id, note=reason, together=str(together))
    record.entry(connection, item.owner_id, Action.REVIEW_LET_GO, item.id, document, by=by, now=now)


def expire(connection: Connection, item: PendingMemory, now: datetime) -> None:
    """Ends the wait of an item whose time is over; nobody decided."""
    end_wait(connection, item, ReviewStatus.EXPIRED, by=SERVICE, now=now)
    document = record.document(item=item.id)
    record.entry(connection, item.owner_id, Action.REVIEW_EXPIRED, item.id, document, by=SERVICE, now=now)


def promote(
    connection: Connection, item: PendingMemory, made: NewDecision, bands: tuple[int, ...], policy: Policy
) -> Memory:
    """Stores the item's claim on the strength of its new decision alone: nobody vouches for it."""
    memory = memories.from_answer(
        made.answer,
        decision_id=made.decision_id,
        memory_id=str(made.answer.memory_id),
        created_at=made.now,
    )
    vectors.become_memory(connection, item.owner_id, item.id, memory.id)
    end_wait(
        connection,
        item,
        ReviewStatus.PROMOTED,
        by=SERVICE,
        now=made.now,
        memory_id=memory.id,
        decision_id=made.decision_id,
    )
    outbox, claim = Outbox(connection), made.answer.evidence.claim
    outbox.load([claim])
    outbox.note_stored_claim(claim, memory.id, memory.created_at)
    store(connection, memory, bands, outbox)
    schedule(connection, memory, made.answer, policy)
    commitment = keep_decision(
        connection, made.answer, Action.CLAIM_PROMOTED, made.readings, policy, by=SERVICE, now=made.now
    )
    drawn = spot_checks.rows_of(made.answer, commitment, policy, item.submitted_by, made.now)
    spot_checks.ROWS.write(connection, drawn)
    return memory


def redecide(connection: Connection, item: PendingMemory, made: NewDecision, policy: Policy) -> None:
    """Gives the item its new decision, under which it goes on waiting, and has it looked at again when that decision
    calls for it."""
    rule = made.answer.rule
    changed = pending.redecide(
        connection,
        item,
        decision_id=made.decision_id,
        reason=storable_text(made.reason),
        conflicting_memory_id=made.answer.conflicting_memory_id,
        rule=rule,
        priority_at=item.created_at - head_start(rule, policy.queue.head_start_days),
    )
    if not changed:
        raise StorageError(f"item {item.id} changed although its owner was locked")
    rechecks.remove(connection, item.owner_id, item.id)
    rechecks.add(connection, rechecks.waiting_row(policy, made.answer, item.id, made.now))
    keep_decision(
        connection, made.answer, Action.CLAIM_RECHECKED, made.readings, policy, by=SERVICE, now=made.now
    )


def mark_stale(connection: Connection, memory: Memory, *, reason: str, now: datetime) -> bool:
    """Notes that a source of an active memory went away or changed. False, and nothing is written: that was
    noted already."""
    said = storable_text(reason)
    if said in (memory.stale_reason, memory.confirmed_despite):
        return False
    since = memory.stale_since or now
    if not memories.mark_stale(connection, memory.owner_id, memory.id, since=since, reason=said):
        raise StorageError(f"memory {memory.id} changed although its owner was locked")
    document = record.document(memory=memory.id, note=said)
    record.entry(connection, memory.owner_id, Action.MEMORY_STALE, memory.id, document, by=SERVICE, now=now)
    return True


def confirm_by_sources(connection: Connection, memory: Memory, now: datetime) -> bool:
    """Notes that the sources of an active memory say what they said. Whether it was stale, which it is not any more."""
    despite = memory.confirmed_despite
    if not memories.confirm(connection, memory.owner_id, memory.id, at=now, despite=despite):
        raise StorageError(f"memory {memory.id} changed although its owner was locked")
    if memory.stale_since is None:
        return False
    document = record.document(memory=memory.id)
    record.entry(connection, memory.owner_id, Action.MEMORY_FRESH, memory.id, document, by=SERVICE, now=now)
    return True


def expire_memory(connection: Connection, owner_id: str, memory_id: str, now: datetime) -> bool:
    """Ends the force of a memory whose horizon has passed. False, and nothing is written: it was out of force
    already."""
    if not memories.expire(connection, owner_id, memory_id, now):
        return False
    document = record.document(memory=memory_id)
    record.entry(connection, owner_id, Action.MEMORY_EXPIRED, memory_id, document, by=SERVICE, now=now)
    return True


def retract(
    connection: Connection,
    memory: Memory,
    *,
    by: str,
    reason: str,
    now: datetime,
    but: DeliveryTarget | None = None,
) -> Retracted | AlreadyGone:
    """Withdraws a memory that is in force, or was until its horizon passed. `but` is a place that the caller
    tells of it."""
    owner_id = memory.owner_id
    changed = memories.retract(connection, owner_id, memory.id, reason=reason, at=now, but=but)
    current = memories.get(connection, memory.id, now, owners=frozenset({owner_id}))
    if current is None:
        raise StorageError(f"memory {memory.id} cannot be read back")
    if not changed:
        return AlreadyGone(current)
    document = record.document(memory=memory.id, note=reason)
    record.entry(connection, owner_id, Action.MEMORY_RETRACTED, memory.id, document, by=by, now=now)
    return Retracted(current)


def reload(connection: Connection, item: PendingMemory) -> PendingMemory:
    """The item as it stands in this transaction. Items are never deleted, so it must be there."""
    current = pending.get(connection, item.id, owners=frozenset({item.owner_id}))
    if current is None:
        raise StorageError(f"item {item.id} cannot be read back")
    return current


def stored_answer(connection: Connection, of: PendingMemory | Memory) -> ValidationResult:
    """The decision under which an item waits or a memory was stored, as it was written. Raises
    RecordUnreadable."""
    found = decisions.get(connection, of.decision_id, owners=frozenset({of.owner_id}))
    if found is None:
        raise RecordUnreadable(f"decision {of.decision_id} of {of.id} cannot be read back")
    try:
        return ValidationResult.model_validate_json(found)
    except ValidationError as error:
        raise RecordUnreadable(f"decision {of.decision_id} of {of.id} cannot be understood") from error


def storable_text(text: str) -> str:
    """The text with a mark in place of each character that a database cannot hold, and not longer than anybody
    would read. Sources say what they like."""
    held = text.replace("\x00", "?").encode("utf-8", "replace").decode("utf-8")
    return held if len(held) <= MOST_REASON else held[:MOST_REASON] + "…"


def memory_at_place(connection: Connection, claim: Claim, now: datetime) -> str | None:
    """The memory in force at the place where the claim is to be written."""
    outbox = Outbox(connection)
    outbox.load([claim])
    there = outbox.find_at_place(claim, now)
    return None if there is None or there.memory is None else there.memory.id


def keep_decision(
    connection: Connection,
    answer: ValidationResult,
    action: Action,
    readings: Sequence[SourceReading],
    policy: Policy,
    *,
    by: str,
    now: datetime,
) -> str:
    """Writes a decision, the texts it rests on, and its log entry; what that commits to them with."""
    text = answer.model_dump_json()
    connection.execute(_INSERT_DECISION, decisions.row_of(answer, text, principal_id=by, at=now))
    lineage.ROWS.write(connection, lineage.rows_of(answer))
    owner_id, decision_id = answer.evidence.claim.owner_id, str(answer.decision_id)
    source_texts.write(connection, source_texts.rows_of(owner_id, readings, policy, now))
    document = record.Document(text.encode())
    return record.entry(connection, owner_id, action, decision_id, document, by=by, now=now).content_digest


def store(connection: Connection, memory: Memory, bands: tuple[int, ...], outbox: Outbox) -> None:
    """Writes the memory that an item became, puts it into every index but that of vectors, and has it delivered as it
    was noted in the outbox."""
    memories.insert(connection, memory)
    one = Neighbour(kind=ItemKind.MEMORY, id=memory.id, content=memory.content)
    index.add(connection, memory.owner_id, one, memory.memory_type.value)
    similar.add(connection, memory.owner_id, memory.id, bands)
    outbox.write()


def schedule(connection: Connection, memory: Memory, answer: ValidationResult, policy: Policy) -> None:
    """Has the memory's sources read again in time."""
    sources = answer.evidence.sources
    row = rechecks.memory_row(
        policy, memory.owner_id, memory.id, sources, memory.created_at, memory_type=memory.memory_type
    )
    rechecks.add(connection, row)


def end_wait(
    connection: Connection,
    item: PendingMemory,
    status: pending.Ending,
    *,
    by: str,
    now: datetime,
    note: str | None = None,
    memory_id: str | None = None,
    decision_id: str | None = None,
) -> None:
    """Ends the item's wait; StorageError when it is not as it was read any more."""
    if not pending.finish(
        connection,
        item,
        status=status,
        at=now,
        by=by,
        note=note,
        memory_id=memory_id,
        decision_id=decision_id,
    ):
        raise StorageError(f"item {item.id} changed although its owner was locked")
