"""Taking an approval or a rejection back: the item waits again as it was queued, and what its approval stored or
replaced is as it was before.

`undo_deadline`, `undo_refusal` and `same_claim` decide without I/O. `undo` runs as the functions of `review.acts` do:
inside a write transaction that holds the owner's lock, on an item just read in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection

from vouchgate.ingest.checks import dedup
from vouchgate.ingest.claims.claim import Verdict
from vouchgate.ingest.claims.likeness import (
    DedupFacts,
    DedupUnavailable,
    Embedding,
    ItemKind,
    Neighbour,
    Neighbours,
)
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.memory import Memory, MemoryStatus
from vouchgate.ingest.claims.waiting import PendingMemory, ReviewStatus
from vouchgate.ingest.dedup.compare import Comparisons
from vouchgate.ingest.dedup.signature import signature_keys
from vouchgate.ingest.language.words import tokens
from vouchgate.ingest.policy import Policy
from vouchgate.review import acts, record
from vouchgate.review.answers import NotUndoable, Undone
from vouchgate.storage.claims import memories
from vouchgate.storage.dedup import index, similar, vectors
from vouchgate.storage.errors import RecordUnreadable, StorageError
from vouchgate.storage.identity import owners
from vouchgate.storage.outgoing.outbox import Outbox
from vouchgate.storage.queue import pending, rechecks
from vouchgate.storage.queue.capacity import QueueCapacity

TAKEN_BACK = "approval taken back"  # the reason that the memory of an approval is retracted with


@dataclass(frozen=True, slots=True)
class UndoRequest:
    """One request to take a decision back, with all that must be the same when the unit is run again."""

    by: str  # principal id of the reviewer
    now: datetime
    bands: Mapping[str, tuple[int, ...]]  # storage.dedup.similar.keys_of memories that may be restored, by id
    embeddings: Mapping[str, Embedding]  # of the item and of what is restored, by id
    known: Mapping[str, Comparisons]  # of these texts with what the owner had shortly before, by id


def undo_deadline(item: PendingMemory, policy: Policy) -> datetime | None:
    """When the last moment to take an item's decision back is over; None for one that no reviewer decided. Past
    its own time an item cannot wait again."""
    if item.status not in pending.BY_REVIEWERS or item.decided_at is None:
        return None
    return min(item.decided_at + timedelta(minutes=policy.queue.undo_minutes), item.expires_at)


def undo_refusal(item: PendingMemory, policy: Policy, now: datetime) -> NotUndoable | None:
    """What the item itself says against it."""
    if item.status is ReviewStatus.PENDING:
        return NotUndoable("waiting", "The item waits for a decision: there is nothing to take back.", item)
    if item.decided_at is None or item.status not in pending.BY_REVIEWERS:
        message = f"The item is {item.status.value}: no reviewer decided, so nothing can be taken back."
        return NotUndoable("not_reviewed", message, item)
    if item.expires_at <= now:
        message = "The time that the item could wait is over, so it cannot wait again."
        return NotUndoable("expired", message, item)
    if item.decided_at + timedelta(minutes=policy.queue.undo_minutes) <= now:
        minutes = f"{policy.queue.undo_minutes:g}"
        message = (
            f"A decision can be taken back for {minutes} minutes; this one fell at {_time(item.decided_at)}."
        )
        return NotUndoable("too_late", message, item)
    if item.removal_of is not None and item.status is ReviewStatus.APPROVED:
        message = "What was removed may be gone from the store that held it, so this cannot be taken back."
        return NotUndoable("removal", message, item)
    return None


def same_claim(
    item: PendingMemory,
    content: str,
    facts: DedupFacts,
    policy: Policy,
    leaving: str | None,
    *,
    known: Comparisons | None = None,
) -> NotUndoable | None:
    """What the owner has by now says against this text being in force, or waiting, again. `leaving` is the memory
    that goes with the approval, `known` what was compared before."""
    if not isinstance(facts, DedupUnavailable):
        others = tuple(neighbour for neighbour in facts.items if neighbour.id != leaving)
        facts = Neighbours(items=others, complete=facts.complete)
    finding, nearest = dedup.judge(content, facts, policy.threshold, policy.values, known)
    if nearest is not None and not nearest.changed:
        found = nearest.neighbour
        became = "stored" if found.kind is ItemKind.MEMORY else "queued"
        message = f"The same claim has been {became} meanwhile, as {found.id}."
        return NotUndoable("duplicate", message, item, found.id)
    if finding.verdict is Verdict.UNKNOWN:
        message = (
            f"It could not be found out whether the same claim is there by now: {finding.message} Try again."
        )
        return NotUndoable("dedup_unavailable", message, item)
    return None


def undo(
    connection: Connection, item: PendingMemory, asked: UndoRequest, policy: Policy
) -> Undone | NotUndoable:
    """Has the item wait again. A refusal writes nothing."""
    refused = undo_refusal(item, policy, asked.now)
    if refused is not None:
        return refused
    stored = restored = None
    if item.status is ReviewStatus.APPROVED:
        stored = memories.get(connection, item.memory_id or "", asked.now, owners=frozenset({item.owner_id}))
        if stored is None:
            raise StorageError(f"memory {item.memory_id} of item {item.id} cannot be read back")
        if stored.status is not MemoryStatus.ACTIVE:
            message = f"Memory {stored.id}, which the approval stored, is {stored.status.value} by now."
            return NotUndoable("memory_gone", message, item)
        restored = memories.replaced_by(connection, item.owner_id, stored.id, asked.now)
    there = None if restored is None else _memory_in_its_place(connection, restored, asked.now)
    if restored is not None and there not in (None, item.memory_id):
        message = f"{restored.id}, which it replaced, cannot come back: {there} is at its place by now."
        return NotUndoable("place_taken", message, item)
    back: list[PendingMemory | Memory] = [] if item.removal_of is not None else [item]
    back += [] if restored is None else [restored]
    refused = _conflicting_items(connection, item, back, asked, policy)
    if refused is not None:
        return refused
    state = owners.lock_owners(connection, [item.owner_id])[item.owner_id]
    places = QueueCapacity(connection, lock_total=True)
    full = places.reserve(state, policy.queue, item.submitted_by, item.lane)
    if full is not None:
        message = f"There is no place for it: {full.sentence}. Decide others first."
        return NotUndoable("queue_full", message, item)
    _wait_again(connection, item, asked, policy)
    if stored is not None:
        acts.retract(connection, stored, by=asked.by, reason=TAKEN_BACK, now=asked.now)
    if stored is not None and restored is not None:
        _restore(connection, restored, stored, asked, policy)
    places.write()
    return Undone(
        acts.reload(connection, item),
        retracted=None if stored is None else stored.id,
        restored=None if restored is None else restored.id,
    )


def _memory_in_its_place(connection: Connection, restored: Memory, now: datetime) -> str | None:
    """The memory that is in force where `restored` would be put back."""
    return acts.memory_at_place(connection, acts.stored_answer(connection, restored).evidence.claim, now)


def _conflicting_items(
    connection: Connection,
    item: PendingMemory,
    back: list[PendingMemory | Memory],
    asked: UndoRequest,
    policy: Policy,
) -> NotUndoable | None:
    """What stands against these being found again by their words and, if the policy asks for that, meaning."""
    if policy.dedup_method == "vector" and not all(one.id in asked.embeddings for one in back):
        message = "No vector could be made of what would be back, so later claims would miss it. Try again."
        return NotUndoable("not_embedded", message, item)
    for one in back:
        keys = signature_keys(tokens(one.content), one.memory_type.value, policy.threshold)
        known = asked.known.get(one.id) or Comparisons(one.content, policy.threshold, policy.values)
        facts = index.find_neighbours(
            connection, item.owner_id, keys, asked.now, known=known, allowance=index.new_allowance()
        )
        refused = same_claim(item, one.content, facts, policy, item.memory_id, known=known)
        if refused is not None:
            return refused
    return None


def _wait_again(connection: Connection, item: PendingMemory, asked: UndoRequest, policy: Policy) -> None:
    if not pending.reopen(connection, item):
        raise StorageError(f"item {item.id} changed although its owner was locked")
    if item.removal_of is None:  # a removal says nothing that another claim could repeat
        _index(connection, item, ItemKind.PENDING, asked, policy)
        with suppress(RecordUnreadable):  # what cannot be read can wait, and cannot be looked at again
            answer = acts.stored_answer(connection, item)
            rechecks.add(connection, rechecks.waiting_row(policy, answer, item.id, asked.now))
    document = record.document(item=item.id, memory=item.memory_id)
    record.entry(
        connection, item.owner_id, Action.REVIEW_UNDONE, item.id, document, by=asked.by, now=asked.now
    )


def _restore(
    connection: Connection, memory: Memory, replaced_by: Memory, asked: UndoRequest, policy: Policy
) -> None:
    """Puts a memory back in force, and wherever it was before it was replaced."""
    sources = acts.stored_answer(connection, memory).evidence.sources
    if not memories.restore(connection, memory.owner_id, memory.id, superseded_by=replaced_by.id):
        raise StorageError(f"memory {memory.id} changed although its owner was locked")
    _index(connection, memory, ItemKind.MEMORY, asked, policy)
    bands = asked.bands.get(memory.id)
    if bands is None:
        bands = similar.keys_of(memory.content, memory.memory_type.value)
    similar.add(connection, memory.owner_id, memory.id, bands)
    row = rechecks.memory_row(
        policy, memory.owner_id, memory.id, sources, asked.now, memory_type=memory.memory_type
    )
    rechecks.add(connection, row)
    outbox = Outbox(connection)
    outbox.note_restored(memory.owner_id, memory.id, asked.now)
    outbox.write()
    document = record.document(memory=memory.id, superseded_by=replaced_by.id)
    record.entry(
        connection, memory.owner_id, Action.MEMORY_RESTORED, memory.id, document, by=asked.by, now=asked.now
    )


def _index(
    connection: Connection, one: PendingMemory | Memory, kind: ItemKind, asked: UndoRequest, policy: Policy
) -> None:
    neighbour = Neighbour(kind=kind, id=one.id, content=one.content)
    index.add(connection, one.owner_id, neighbour, one.memory_type.value)
    if policy.dedup_method == "vector":
        vectors.add(connection, one.owner_id, kind, one.id, asked.embeddings[one.id])


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M}Z"
