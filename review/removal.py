"""Approving an item that asks for a removal: what a store behind the gate holds at a place is to go from there, and
from the gate's own memories. Runs as the functions of `review.acts` do.
"""

from __future__ import annotations

from sqlalchemy import Connection

from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.memory import Memory
from vouchgate.ingest.claims.waiting import PendingMemory, ReviewStatus
from vouchgate.review import acts, record
from vouchgate.review.answers import ApprovalRefused, Removed
from vouchgate.review.approve import Approval
from vouchgate.storage.claims import memories
from vouchgate.storage.errors import RecordUnreadable, StorageError
from vouchgate.storage.outgoing.outbox import Outbox


def approve(connection: Connection, item: PendingMemory, asked: Approval) -> Removed | ApprovalRefused:
    """Has what the item names go: from its sink, and from the gate's own memories if it is one of them."""
    if asked.edited is not None:
        return ApprovalRefused(
            "removal_edited", "This asks for a removal: there is no text to edit. Reject it instead."
        )
    claim, by, now = acts.stored_answer(connection, item).evidence.claim, asked.principal.id, asked.now
    if claim.delivery is None:
        raise RecordUnreadable(f"the decision of removal {item.id} names no place")
    memory_id = acts.memory_at_place(connection, claim, now)
    if memory_id not in (None, item.conflicting_memory_id):
        message = f"{memory_id} came to that place after this was asked for. Reject this item; it can be asked again."
        return ApprovalRefused("other_memory", message, memory_id)
    acts.end_wait(
        connection, item, ReviewStatus.APPROVED, by=by, now=now, note=asked.note, memory_id=memory_id
    )
    gone: Memory | None = None
    if memory_id is not None:
        memory = memories.get(connection, memory_id, now, owners=frozenset({item.owner_id}))
        if memory is None:
            raise StorageError(f"memory {memory_id} cannot be read back")
        gone = acts.retract(
            connection, memory, by=by, reason=f"removal {item.id} approved", now=now, but=claim.delivery
        ).memory
    outbox = Outbox(connection)
    outbox.note_removal(item.owner_id, claim.delivery, memory_id, now)
    outbox.write()
    about = {"item": item.id, "note": asked.note, "memory": memory_id}
    document = record.document(**about, **({} if asked.votes is None else {"votes": asked.votes}))
    record.entry(connection, item.owner_id, Action.REVIEW_APPROVED, item.id, document, by=by, now=now)
    return Removed(acts.reload(connection, item), gone)
