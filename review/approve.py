"""Approving an item: it becomes a memory that its owner vouches for. Runs as the functions of `review.acts` do; what
decides is in `review.approval`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import Connection

from vouchgate.ingest.claims.claim import Claim
from vouchgate.ingest.claims.decision import Tier, ValidationResult
from vouchgate.ingest.claims.delivery import DeliveryTarget
from vouchgate.ingest.claims.likeness import DedupFacts, ItemKind, Neighbours
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.memory import Memory, MemoryStatus
from vouchgate.ingest.claims.people import Principal
from vouchgate.ingest.claims.waiting import PendingMemory, ReviewStatus
from vouchgate.ingest.dedup.compare import Comparisons
from vouchgate.ingest.dedup.signature import signature_keys
from vouchgate.ingest.language.words import tokens
from vouchgate.ingest.pipeline import Examined
from vouchgate.ingest.policy import Policy
from vouchgate.review import acts, record
from vouchgate.review.answers import ApprovalRefused, Approved
from vouchgate.review.approval import (
    ApprovalAllowed,
    check_conflicts,
    edit_problem,
    horizon_problem,
    says_nearly,
    stored_only,
)
from vouchgate.storage import ids
from vouchgate.storage.claims import memories
from vouchgate.storage.dedup import contradicting, index, vectors
from vouchgate.storage.erasing import tombstones
from vouchgate.storage.errors import StorageError
from vouchgate.storage.outgoing.outbox import Outbox


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
    votes: str | None = None  # review.vouching.voting.evidence_of those that it rests on
    beside: frozenset[str] = (
        frozenset()
    )  # memories of the same act: values that differ from theirs are meant to
    over: str | None = None  # the memory to replace that says nearly the same, where none conflicts


@dataclass(frozen=True, slots=True)
class Approvable:
    """What would be stored: the decision it rests on, what is stored that is near it, and the memory it replaces."""

    answer: ValidationResult
    facts: DedupFacts
    replaces: str | None


def check(
    connection: Connection, item: PendingMemory, asked: Approval, policy: Policy
) -> Approvable | ApprovalRefused:
    """What stands against an approval as things are. Writes nothing.

    Raises ValueError when the edit is about another owner or memory type, or was examined under another
    policy.
    """
    answer = acts.stored_answer(connection, item)
    claim = answer.evidence.claim
    at_place = acts.memory_at_place(connection, claim, asked.now)
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
    settled, facts = _settle(connection, item, claim, asked, policy=policy, at_place=at_place)
    return settled if isinstance(settled, ApprovalRefused) else Approvable(answer, facts, settled.replaces)


def approve(
    connection: Connection, item: PendingMemory, asked: Approval, policy: Policy
) -> Approved | ApprovalRefused:
    """Stores the item's claim, or the edited one, as an owner-vouched memory. A refusal writes nothing. Raises as
    `check` does."""
    checked = check(connection, item, asked, policy)
    if isinstance(checked, ApprovalRefused):
        return checked
    answer, facts = checked.answer, checked.facts
    delivery = answer.evidence.claim.delivery
    decision_id = item.decision_id
    if asked.edited is not None:
        decision_id = ids.decision_id(asked.suffix)
        placed = asked.edited.claim.model_copy(update={"delivery": delivery})
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
    acts.schedule(connection, memory, answer, policy)
    if checked.replaces is not None:
        _replace(connection, checked.replaces, memory, delivery)
    return Approved(acts.reload(connection, item), memory, checked.replaces)


def _settle(
    connection: Connection,
    item: PendingMemory,
    claim: Claim,
    asked: Approval,
    *,
    policy: Policy,
    at_place: str | None,
) -> tuple[ApprovalAllowed | ApprovalRefused, DedupFacts]:
    """The claim held against what its owner has by now, and what that was held against."""
    content, kind, known = claim.content, claim.memory_type.value, asked.known
    keys = signature_keys(tokens(content), kind, policy.threshold)
    allowance = index.new_allowance()
    facts = stored_only(
        index.find_neighbours(connection, item.owner_id, keys, asked.now, known=known, allowance=allowance)
    )
    if allowance.used_up:
        many = ApprovalRefused("dedup_unavailable", "Many claims like this one came just now. Try again.")
        return many, facts
    looked_up = contradicting.look_up(
        connection, item.owner_id, content, kind, known, now=asked.now, allowance=allowance
    )
    facts = stored_only(contradicting.together(facts, looked_up))
    recorded = _recorded_conflict(connection, item, asked.now)

    def settle(against: DedupFacts) -> ApprovalAllowed | ApprovalRefused:
        return check_conflicts(
            content,
            against,
            policy,
            supersede=asked.supersede,
            recorded=recorded,
            at_place=at_place,
            known=known,
        )

    settled = settle(facts)
    asks = isinstance(settled, ApprovalRefused) and settled.code == "conflict_unresolved"
    if asks and asked.beside and isinstance(facts, Neighbours):
        others = tuple(one for one in facts.items if one.id not in asked.beside)
        settled = settle(Neighbours(items=others, complete=facts.complete))
    if asked.over is not None and asked.supersede and isinstance(settled, ApprovalAllowed):
        settled = _replace_near(connection, item, content, asked, settled)
    return settled, facts


def _replace_near(
    connection: Connection, item: PendingMemory, content: str, asked: Approval, settled: ApprovalAllowed
) -> ApprovalAllowed | ApprovalRefused:
    """Replaces the memory that the reviewer was shown, or none."""
    shown = memories.get(connection, asked.over or "", asked.now, owners=frozenset({item.owner_id}))
    fits = (
        shown is not None
        and shown.status is MemoryStatus.ACTIVE
        and shown.memory_type is item.memory_type
        and says_nearly(content, shown.content)
    )
    if shown is not None and settled.replaces in (None, shown.id) and fits:
        return ApprovalAllowed(shown.id)
    message = (
        "What it was to replace does not say nearly the same any more, or something else does. Look again."
    )
    return ApprovalRefused("not_alike", message, settled.replaces)


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
    edited = tombstones.without_erased(connection, edited).knowing(dedup=facts)
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
    acts.keep_decision(
        connection, answer, Action.REVIEW_EDITED, edited.readings, edited.policy, by=by, now=now
    )
    return answer


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
    acts.end_wait(
        connection, item, ReviewStatus.APPROVED, by=by, now=now, note=asked.note, memory_id=memory.id
    )
    outbox = Outbox(connection)
    outbox.note_stored(memory.owner_id, memory.id, delivery, memory.created_at)
    acts.store(connection, memory, asked.bands, outbox)
    about = {"item": item.id, "note": asked.note, "content": memory.content}
    document = record.document(**about, **({} if asked.votes is None else {"votes": asked.votes}))
    record.entry(connection, memory.owner_id, Action.REVIEW_APPROVED, item.id, document, by=by, now=now)


def _replace(connection: Connection, old_id: str, memory: Memory, delivery: DeliveryTarget | None) -> None:
    at = memory.created_at
    if not memories.supersede(connection, memory.owner_id, old_id, by=memory.id, at=at, but=delivery):
        raise StorageError(f"memory {old_id} changed although its owner was locked")
    record.entry(
        connection,
        memory.owner_id,
        Action.MEMORY_SUPERSEDED,
        old_id,
        record.document(memory=old_id, superseded_by=memory.id),
        by=memory.approved_by or acts.SERVICE,
        now=memory.created_at,
    )
