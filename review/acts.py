"""What an act on one item writes. Every function here runs inside a write transaction that holds the lock
of the item's owner, on an item just read in it; raising rolls all of it back.

The unit may be run again after a rollback (`storage.writer`), so nothing here makes an id or reads a clock.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from pydantic import ValidationError
from sqlalchemy import Connection, insert

from vouchgate.ingest.claims.types import (
    Action,
    Claim,
    DedupFacts,
    DeliveryTarget,
    ItemKind,
    Memory,
    MemoryStatus,
    Neighbour,
    PendingMemory,
    Principal,
    ReviewStatus,
    SourceReading,
    Tier,
    ValidationResult,
)
from vouchgate.ingest.dedup.compare import Comparisons
from vouchgate.ingest.dedup.signature import signature_keys
from vouchgate.ingest.language.words import tokens
from vouchgate.ingest.pipeline import Examined
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.scoring.priority import head_start
from vouchgate.review import record
from vouchgate.review.answers import AlreadyGone, ApprovalRefused, Approved, Rejected, Retracted
from vouchgate.review.approval import check_conflicts, edit_problem, horizon_problem, stored_only
from vouchgate.storage import ids
from vouchgate.storage.claims import decisions, memories, source_texts
from vouchgate.storage.dedup import contradicting, index, similar, vectors
from vouchgate.storage.errors import RecordUnreadable, StorageError
from vouchgate.storage.outgoing.outbox import Outbox
from vouchgate.storage.queue import pending, rechecks, spot_checks

_INSERT_DECISION = insert(decisions.TABLE)

SERVICE = "service"  # the actor of what nobody asked for: what runs out of time, or is checked again
MOST_REASON = 2000  # characters of a reason that is shown beside an item or a memory


@dataclass(frozen=True, slots=True)
class Approval:
    """One approval as asked for, with all that must be the same when the unit is run again."""

    principal: Principal
    now: datetime
    suffix: str  # of the ids this approval makes
    note: str | None
    supersede: bool | None
    edited: Examined | None
    bands: tuple[int, ...]  # storage.dedup.similar.keys_of what is to be stored
    known: Comparisons  # of what is to be stored with what the owner had shortly before


@dataclass(frozen=True, slots=True)
class NewDecision:
    """A decision on a waiting item's claim that was made again. Its answer names its own id, and the memory or
    the item that the claim now is."""

    answer: ValidationResult
    decision_id: str
    reason: str  # what the item then shows; the answer has the router's own
    now: datetime
    readings: tuple[SourceReading, ...] = ()  # that it was made on, with their texts


def approve(
    connection: Connection, item: PendingMemory, asked: Approval, policy: Policy
) -> Approved | ApprovalRefused:
    """Stores the item's claim, or the edited one, as an owner-vouched memory. A refusal writes nothing.

    Raises ValueError when the edit is about another owner or memory type, or was examined under another
    policy.
    """
    answer = stored_answer(connection, item)
    claim = answer.evidence.claim
    delivery = claim.delivery
    at_place = memory_at_place(connection, claim, asked.now)
    if asked.edited is not None:
        claim = asked.edited.claim
        if (claim.owner_id, claim.memory_type) != (item.owner_id, item.memory_type):
            raise ValueError("an edit changes the text of a claim, not its owner or memory type")
        if asked.edited.policy.digest != policy.digest:
            raise ValueError("the edit was examined under another policy than the queue's")
        problem = edit_problem(asked.edited)
        if problem is not None:
            return problem
    over = horizon_problem(claim.validity_horizon, asked.now)
    if over is not None:
        return over
    keys = signature_keys(tokens(claim.content), claim.memory_type.value, policy.threshold)
    allowance = index.new_allowance()
    every = index.find_neighbours(
        connection, item.owner_id, keys, asked.now, known=asked.known, allowance=allowance
    )
    if allowance.used_up:
        return ApprovalRefused("dedup_unavailable", "Many claims like this one came just now. Try again.")
    facts, content, known = stored_only(every), claim.content, asked.known
    looked_up = contradicting.look_up(
        connection, item.owner_id, content, claim.memory_type.value, known, now=asked.now, allowance=allowance
    )
    facts = stored_only(contradicting.together(facts, looked_up))
    recorded = _recorded_conflict(connection, item, asked.now)
    settled = check_conflicts(
        content, facts, policy, supersede=asked.supersede, recorded=recorded, at_place=at_place, known=known
    )
    if isinstance(settled, ApprovalRefused):
        return settled
    decision_id = item.decision_id
    if asked.edited is not None:
        decision_id = ids.decision_id(asked.suffix)
        placed = claim.model_copy(update={"delivery": delivery})
        edited = replace(asked.edited, claim=placed, known=asked.known)
        answer = _decide_edit(connection, item, asked, edited, facts)
    memory = memories.from_answer(
        answer,
        decision_id=decision_id,
        memory_id=ids.memory_id(asked.suffix),
        created_at=asked.now,
        approved_by=asked.principal.id,
    )
    _store_approved(connection, item, memory, asked, delivery)
    _schedule(connection, memory, answer, policy)
    if settled.replaces is not None:
        _replace(connection, settled.replaces, memory, delivery)
    return Approved(reload(connection, item), memory, settled.replaces)


def reject(connection: Connection, item: PendingMemory, *, by: str, reason: str, now: datetime) -> Rejected:
    """Ends the wait without a memory."""
    end_wait(connection, item, ReviewStatus.REJECTED, by=by, now=now, note=reason)
    digest = record.digest(item=item.id, note=reason)
    record.entry(connection, item.owner_id, Action.REVIEW_REJECTED, item.id, digest, by=by, now=now)
    return Rejected(reload(connection, item))


def expire(connection: Connection, item: PendingMemory, now: datetime) -> None:
    """Ends the wait of an item whose time is over; nobody decided."""
    end_wait(connection, item, ReviewStatus.EXPIRED, by=SERVICE, now=now)
    digest = record.digest(item=item.id)
    record.entry(connection, item.owner_id, Action.REVIEW_EXPIRED, item.id, digest, by=SERVICE, now=now)


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
    _store(connection, memory, bands, outbox)
    _schedule(connection, memory, made.answer, policy)
    digest = _keep_decision(
        connection, made.answer, Action.CLAIM_PROMOTED, made.readings, policy, by=SERVICE, now=made.now
    )
    spot_checks.ROWS.write(connection, spot_checks.rows_of(made.answer, digest, policy, made.now))
    return memory


def redecide(connection: Connection, item: PendingMemory, made: NewDecision, policy: Policy) -> None:
    """Gives the item its new decision, under which it goes on waiting, and takes it out of the schedule."""
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
    _keep_decision(
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
    digest = record.digest(memory=memory.id, note=said)
    record.entry(connection, memory.owner_id, Action.MEMORY_STALE, memory.id, digest, by=SERVICE, now=now)
    return True


def mark_fresh(connection: Connection, memory: Memory, now: datetime) -> bool:
    """Takes that note back. False, and nothing is written: there was none."""
    if memory.stale_since is None:
        return False
    if not memories.mark_fresh(connection, memory.owner_id, memory.id):
        raise StorageError(f"memory {memory.id} changed although its owner was locked")
    digest = record.digest(memory=memory.id)
    record.entry(connection, memory.owner_id, Action.MEMORY_FRESH, memory.id, digest, by=SERVICE, now=now)
    return True


def expire_memory(connection: Connection, owner_id: str, memory_id: str, now: datetime) -> bool:
    """Ends the force of a memory whose horizon has passed. False, and nothing is written: it was out of force
    already."""
    if not memories.expire(connection, owner_id, memory_id, now):
        return False
    digest = record.digest(memory=memory_id)
    record.entry(connection, owner_id, Action.MEMORY_EXPIRED, memory_id, digest, by=SERVICE, now=now)
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
    digest = record.digest(memory=memory.id, note=reason)
    record.entry(connection, owner_id, Action.MEMORY_RETRACTED, memory.id, digest, by=by, now=now)
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


def _recorded_conflict(connection: Connection, item: PendingMemory, now: datetime) -> str | None:
    """The memory the item names as conflicting, if it is still in force."""
    if item.conflicting_memory_id is None:
        return None
    memory = memories.get(connection, item.conflicting_memory_id, now, owners=frozenset({item.owner_id}))
    return memory.id if memory is not None and memory.status is MemoryStatus.ACTIVE else None


def memory_at_place(connection: Connection, claim: Claim, now: datetime) -> str | None:
    """The memory in force at the place where the claim is to be written."""
    outbox = Outbox(connection)
    outbox.load([claim])
    there = outbox.find_at_place(claim, now)
    return None if there is None or there.memory is None else there.memory.id


def _decide_edit(
    connection: Connection, item: PendingMemory, asked: Approval, edited: Examined, facts: DedupFacts
) -> ValidationResult:
    """Writes the decision on the edited text: what the checks alone make of it. Where they would queue it,
    the answer names the item whose approval stores it. `took_ms` is 0: the gate timed the examining.
    """
    edited = edited.knowing(dedup=facts)
    decision = edited.decide()
    stored = decision.tier is Tier.STORED
    answer = edited.answer(
        decision,
        decision_id=ids.decision_id(asked.suffix),
        memory_id=ids.memory_id(asked.suffix) if stored else None,
        queue_id=None if stored else item.id,
        took_ms=0.0,
    )
    by, now = asked.principal.id, asked.now
    _keep_decision(connection, answer, Action.REVIEW_EDITED, edited.readings, edited.policy, by=by, now=now)
    return answer


def _keep_decision(
    connection: Connection,
    answer: ValidationResult,
    action: Action,
    readings: Sequence[SourceReading],
    policy: Policy,
    *,
    by: str,
    now: datetime,
) -> str:
    """Writes a decision, the texts it rests on, and its log entry; the digest of what was written."""
    text = answer.model_dump_json()
    connection.execute(_INSERT_DECISION, decisions.row_of(answer, text, principal_id=by, at=now))
    digest = hashlib.sha256(text.encode()).hexdigest()
    owner_id, decision_id = answer.evidence.claim.owner_id, str(answer.decision_id)
    source_texts.write(connection, source_texts.rows_of(owner_id, readings, policy, now))
    record.entry(connection, owner_id, action, decision_id, digest, by=by, now=now)
    return digest


def _store(connection: Connection, memory: Memory, bands: tuple[int, ...], outbox: Outbox) -> None:
    """Writes the memory that an item became, puts it into every index but that of vectors, and has it delivered as it
    was noted in the outbox."""
    memories.insert(connection, memory)
    one = Neighbour(kind=ItemKind.MEMORY, id=memory.id, content=memory.content)
    index.add(connection, memory.owner_id, one, memory.memory_type.value)
    similar.add(connection, memory.owner_id, memory.id, bands)
    outbox.write()


def _schedule(connection: Connection, memory: Memory, answer: ValidationResult, policy: Policy) -> None:
    """Has the memory's sources read again in time."""
    sources = answer.evidence.sources
    row = rechecks.memory_row(
        policy, memory.owner_id, memory.id, sources, memory.created_at, memory_type=memory.memory_type
    )
    rechecks.add(connection, row)


def _store_approved(
    connection: Connection,
    item: PendingMemory,
    memory: Memory,
    asked: Approval,
    delivery: DeliveryTarget | None,
) -> None:
    by, now = asked.principal.id, asked.now
    if asked.edited is None:
        vectors.become_memory(connection, item.owner_id, item.id, memory.id)
    else:
        embedding = asked.edited.embedding
        vectors.add(connection, item.owner_id, ItemKind.MEMORY, memory.id, embedding)
    end_wait(connection, item, ReviewStatus.APPROVED, by=by, now=now, note=asked.note, memory_id=memory.id)
    outbox = Outbox(connection)
    outbox.note_stored(memory.owner_id, memory.id, delivery, memory.created_at)
    _store(connection, memory, asked.bands, outbox)
    digest = record.digest(item=item.id, note=asked.note, content=memory.content)
    record.entry(connection, memory.owner_id, Action.REVIEW_APPROVED, item.id, digest, by=by, now=now)


def _replace(connection: Connection, old_id: str, memory: Memory, delivery: DeliveryTarget | None) -> None:
    at = memory.created_at
    if not memories.supersede(connection, memory.owner_id, old_id, by=memory.id, at=at, but=delivery):
        raise StorageError(f"memory {old_id} changed although its owner was locked")
    record.entry(
        connection,
        memory.owner_id,
        Action.MEMORY_SUPERSEDED,
        old_id,
        record.digest(memory=old_id, superseded_by=memory.id),
        by=memory.approved_by or SERVICE,
        now=memory.created_at,
    )


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
