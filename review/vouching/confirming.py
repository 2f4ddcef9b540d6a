"""An owner says that a memory still holds: it is confirmed, and stale no more for what is known against it by now."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection

from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.memory import Memory, MemoryStatus
from vouchgate.ingest.claims.people import Principal
from vouchgate.ingest.policy import Policy
from vouchgate.review import record
from vouchgate.review.answers import AlreadyGone, ApprovalRefused, NotFound
from vouchgate.review.reading import own_owners
from vouchgate.review.rules import Act
from vouchgate.review.vouching import four_eyes
from vouchgate.storage.claims import memories
from vouchgate.storage.errors import StorageError
from vouchgate.storage.queue.proposers import proposer_of
from vouchgate.storage.store import Store


def confirm(
    store: Store, principal: Principal, memory_id: str, policy: Policy, now: datetime
) -> Memory | NotFound | AlreadyGone | ApprovalRefused:
    """Notes and logs that an active memory of the reviewer's own still holds. What made it stale does so no more; what
    is found later, does. Raises StorageError when nothing could be written."""
    owners = own_owners(principal, Act.REVIEW)
    with store.read() as connection:
        seen = memories.get(connection, memory_id, now, owners=owners) if owners else None
    if seen is None:
        return NotFound()
    owner_id = seen.owner_id

    def work(connection: Connection) -> Memory | AlreadyGone | ApprovalRefused:
        memory = _reload(connection, owner_id, memory_id, now)
        if memory.status is not MemoryStatus.ACTIVE:
            return AlreadyGone(memory)
        proposer = proposer_of(connection, memory)
        barred = four_eyes.find_problem(connection, principal, proposer, owner_id, policy=policy, now=now)
        if barred is not None:
            return ApprovalRefused(four_eyes.CODE, barred)
        despite = memory.stale_reason or memory.confirmed_despite
        if not memories.confirm(connection, owner_id, memory_id, at=now, despite=despite):
            raise StorageError(f"memory {memory_id} changed although its owner was locked")
        document = record.document(memory=memory_id, despite=despite or "")
        record.entry(
            connection, owner_id, Action.MEMORY_CONFIRMED, memory_id, document, by=principal.id, now=now
        )
        return _reload(connection, owner_id, memory_id, now)

    return store.writer.run([owner_id], work).result()


def _reload(connection: Connection, owner_id: str, memory_id: str, now: datetime) -> Memory:
    found = memories.get(connection, memory_id, now, owners=frozenset({owner_id}))
    if found is None:
        raise StorageError(f"memory {memory_id} cannot be read back")
    return found
