"""What an act on one item writes. Every function here runs inside a write transaction that holds the lock
of the item's owner, on an item just read in it; raising rolls all of it back.

The unit may be run again after a rollback (`storage.writer`), so nothing here makes an id or reads a clock.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime

from pydantic import ValidationError
from sqlalchemy import Connection, insert

from ingest.checks.dedup import tokens
from ingest.pipeline import Examined
from ingest.policy import Policy, canonical_json
from ingest.signature import signature_keys
from ingest.types import (
    Action,
    DedupFacts,
    ItemKind,
    Memory,
    MemoryStatus,
    Neighbour,
    PendingMemory,
    Principal,
    ReviewStatus,
    Tier,
    ValidationResult,
)
from review.answers import AlreadyGone, Approved, Refused, Rejected, Retracted
from review.approval import edit_problem, settle, stored_only
from storage import decisions, ids, index, log, memories, pending, similar, vectors
from storage.errors import StorageError

_INSERT_DECISION = insert(decisions.TABLE)

SERVICE = "service"  # the actor of what nobody asked for: an item or a memory running out of time


@dataclass(frozen=True, slots=True)
class Approval:
    """One approval as asked for, with all that must be the same when the unit is run again."""

    principal: Principal
    now: datetime
    suffix: str  # of the ids this approval makes
    note: str | None
    supersede: bool | None
    edited: Examined | None
    bands: tuple[int, ...]  # storage.similar.keys_of what is to be stored


def approve(
    connection: Connection, item: PendingMemory, asked: Approval, policy: Policy
) -> Approved | Refused:
    """Stores the item's claim, or the edited one, as an owner-vouched memory. A refusal writes nothing.

    Raises ValueError when the edit is about another owner or memory type, or was examined under another
    policy.
    """
    answer = _stored_answer(connection, item)
    claim = answer.evidence.claim
    if asked.edited is not None:
        claim = asked.edited.claim
        if (claim.owner_id, claim.memory_type) != (item.owner_id, item.memory_type):
            raise ValueError("an edit changes the text of a claim, not its owner or memory type")
        if asked.edited.policy.digest != policy.digest:
            raise ValueError("the edit was examined under another policy than the queue's")
        problem = edit_problem(asked.edited)
        if problem is not None:
            return problem
    if claim.validity_horizon is not None and claim.validity_horizon <= asked.now:
        until = claim.validity_horizon.isoformat()
        message = f"The claim was to hold until {until}, which has passed. Reject this item."
        return Refused("no_longer_valid", message)
    keys = signature_keys(tokens(claim.content), claim.memory_type.value, policy.threshold)
    facts = stored_only(index.facts(connection, item.owner_id, keys, asked.now))
    recorded = _recorded_conflict(connection, item, asked.now)
    settled = settle(claim.content, facts, policy, supersede=asked.supersede, recorded=recorded)
    if isinstance(settled, Refused):
        return settled
    decision_id = item.decision_id
    if asked.edited is not None:
        decision_id = ids.decision_id(asked.suffix)
        answer = _decide_edit(connection, item, asked, asked.edited, facts)
    memory = memories.from_answer(
        answer,
        decision_id=decision_id,
        memory_id=ids.memory_id(asked.suffix),
        created_at=asked.now,
        approved_by=asked.principal.id,
    )
    _store(connection, item, memory, asked)
    if settled.replaces is not None:
        _replace(connection, settled.replaces, memory)
    return Approved(reload(connection, item), memory, settled.replaces)


def reject(connection: Connection, item: PendingMemory, *, by: str, reason: str, now: datetime) -> Rejected:
    """Ends the wait without a memory."""
    _end(connection, item, ReviewStatus.REJECTED, by=by, now=now, note=reason)
    digest = _digest(item=item.id, note=reason)
    _log(connection, item.owner_id, Action.REVIEW_REJECTED, item.id, digest, by=by, now=now)
    return Rejected(reload(connection, item))


def expire(connection: Connection, item: PendingMemory, now: datetime) -> None:
    """Ends the wait of an item whose time is over; nobody decided."""
    _end(connection, item, ReviewStatus.EXPIRED, by=SERVICE, now=now)
    digest = _digest(item=item.id)
    _log(connection, item.owner_id, Action.REVIEW_EXPIRED, item.id, digest, by=SERVICE, now=now)


def expire_memory(connection: Connection, owner_id: str, memory_id: str, now: datetime) -> bool:
    """Ends the force of a memory whose horizon has passed. False, and nothing is written: it was out of force
    already."""
    if not memories.expire(connection, owner_id, memory_id, now):
        return False
    digest = _digest(memory=memory_id)
    _log(connection, owner_id, Action.MEMORY_EXPIRED, memory_id, digest, by=SERVICE, now=now)
    return True


def retract(
    connection: Connection, memory: Memory, *, by: str, reason: str, now: datetime
) -> Retracted | AlreadyGone:
    """Withdraws a memory that is in force, or was until its horizon passed."""
    owner_id = memory.owner_id
    changed = memories.retract(connection, owner_id, memory.id, reason=reason)
    current = memories.get(connection, memory.id, now, owners=frozenset({owner_id}))
    if current is None:
        raise StorageError(f"memory {memory.id} cannot be read back")
    if not changed:
        return AlreadyGone(current)
    digest = _digest(memory=memory.id, note=reason)
    _log(connection, owner_id, Action.MEMORY_RETRACTED, memory.id, digest, by=by, now=now)
    return Retracted(current)


def reload(connection: Connection, item: PendingMemory) -> PendingMemory:
    """The item as it stands in this transaction. Items are never deleted, so it must be there."""
    current = pending.get(connection, item.id, owners=frozenset({item.owner_id}))
    if current is None:
        raise StorageError(f"item {item.id} cannot be read back")
    return current


def _stored_answer(connection: Connection, item: PendingMemory) -> ValidationResult:
    """The decision that queued the item, as it was written."""
    found = decisions.get(connection, item.decision_id, owners=frozenset({item.owner_id}))
    if found is None:
        raise StorageError(f"decision {item.decision_id} of item {item.id} cannot be read back")
    try:
        return ValidationResult.model_validate_json(found)
    except ValidationError as error:
        raise StorageError(f"decision {item.decision_id} of item {item.id} cannot be understood") from error


def _recorded_conflict(connection: Connection, item: PendingMemory, now: datetime) -> str | None:
    """The memory the item names as conflicting, if it is still in force."""
    if item.conflicting_memory_id is None:
        return None
    memory = memories.get(connection, item.conflicting_memory_id, now, owners=frozenset({item.owner_id}))
    return memory.id if memory is not None and memory.status is MemoryStatus.ACTIVE else None


def _decide_edit(
    connection: Connection, item: PendingMemory, asked: Approval, edited: Examined, facts: DedupFacts
) -> ValidationResult:
    """Writes the decision on the edited text: what the checks alone make of it. Where they would queue it,
    the answer names the item whose approval stores it. `took_ms` is 0: the gate timed the examining.
    """
    decision = edited.decide(facts)
    stored = decision.tier is Tier.STORED
    answer = edited.answer(
        decision,
        facts,
        decision_id=ids.decision_id(asked.suffix),
        memory_id=ids.memory_id(asked.suffix) if stored else None,
        queue_id=None if stored else item.id,
        took_ms=0.0,
    )
    text = answer.model_dump_json()
    row = decisions.row_of(answer, text, principal_id=asked.principal.id, at=asked.now)
    connection.execute(_INSERT_DECISION, row)
    digest = hashlib.sha256(text.encode()).hexdigest()
    decision_id = ids.decision_id(asked.suffix)
    by, now = asked.principal.id, asked.now
    _log(connection, item.owner_id, Action.REVIEW_EDITED, decision_id, digest, by=by, now=now)
    return answer


def _store(connection: Connection, item: PendingMemory, memory: Memory, asked: Approval) -> None:
    by, now = asked.principal.id, asked.now
    if asked.edited is None:
        vectors.become_memory(connection, item.owner_id, item.id, memory.id)
    else:
        embedding = asked.edited.embedding
        vectors.add(connection, item.owner_id, ItemKind.MEMORY, memory.id, embedding)
    _end(connection, item, ReviewStatus.APPROVED, by=by, now=now, note=asked.note, memory_id=memory.id)
    memories.insert(connection, memory)
    one = Neighbour(kind=ItemKind.MEMORY, id=memory.id, content=memory.content)
    index.add(connection, memory.owner_id, one, memory.memory_type.value)
    similar.add(connection, memory.owner_id, memory.id, asked.bands)
    digest = _digest(item=item.id, note=asked.note, content=memory.content)
    _log(connection, memory.owner_id, Action.REVIEW_APPROVED, item.id, digest, by=by, now=now)


def _replace(connection: Connection, old_id: str, memory: Memory) -> None:
    if not memories.supersede(connection, memory.owner_id, old_id, by=memory.id):
        raise StorageError(f"memory {old_id} changed although its owner was locked")
    _log(
        connection,
        memory.owner_id,
        Action.MEMORY_SUPERSEDED,
        old_id,
        _digest(memory=old_id, superseded_by=memory.id),
        by=memory.approved_by or SERVICE,
        now=memory.created_at,
    )


def _end(
    connection: Connection,
    item: PendingMemory,
    status: pending.Ending,
    *,
    by: str,
    now: datetime,
    note: str | None = None,
    memory_id: str | None = None,
) -> None:
    if not pending.finish(connection, item, status=status, at=now, by=by, note=note, memory_id=memory_id):
        raise StorageError(f"item {item.id} changed although its owner was locked")


def _log(
    connection: Connection,
    owner_id: str,
    action: Action,
    subject_id: str,
    content_digest: str,
    *,
    by: str,
    now: datetime,
) -> None:
    log.append(
        connection,
        owner_id,
        at=now,
        actor=by,
        action=action,
        subject_id=subject_id,
        content_digest=content_digest,
    )


def _digest(**about: str | None) -> str:
    """sha256 hex over the canonical JSON of what a log entry is about."""
    return hashlib.sha256(canonical_json(about).encode()).hexdigest()
