"""The review queue: owners see what waits for them, approve, reject, and take back what was stored.

Claims enter it in `storage.submit`, in the transaction that decides them. Every act here is one write
transaction too, under the owner's lock: all of it is on disk, or nothing is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from pydantic import ValidationError
from sqlalchemy import Connection

from ingest.pipeline import Examined
from ingest.policy import Policy
from ingest.types import PendingMemory, Principal, ReviewStatus, ValidationResult
from review import acts
from review.answers import (
    AlreadyDecided,
    AlreadyGone,
    Approved,
    NotFound,
    Refused,
    Rejected,
    Retracted,
    Stale,
)
from review.rules import Act, is_owner, may, may_rule_on
from storage import decisions, ids, memories, pending, rechecks, similar, sources
from storage.store import Store

log = logging.getLogger(__name__)

MAX_PAGE = 200
_AT_ONCE = 50  # memories that one transaction expires: others wait some 30 ms for it

T = TypeVar("T")


class ReviewQueue:
    """The queues of all owners in a store. Safe to share between threads, and between processes."""

    def __init__(self, store: Store, policy: Policy) -> None:
        self._store = store
        self._policy = policy

    def get_pending(
        self,
        principal: Principal,
        *,
        after: str | None = None,
        limit: int = 50,
        status: ReviewStatus = ReviewStatus.PENDING,
    ) -> list[PendingMemory]:
        """Items of the reviewer's own queue in one status, oldest first; none for any other principal.

        `after` is the id of the last item of the page before; `limit` is cut to 1 to 200. An item past its
        time is listed until `expire` meets it, but cannot be approved any more.
        """
        owners = _own(principal, Act.READ_REVIEWS)
        if not owners:
            return []
        most = min(max(limit, 1), MAX_PAGE)
        with self._store.read() as connection:
            return pending.page(connection, owners, status=status, after=after, limit=most)

    def get_by_id(self, principal: Principal, item_id: str) -> PendingMemory | None:
        """The item in whatever status; None when it is not in the principal's own queue."""
        owners = _own(principal, Act.READ_REVIEWS)
        if not owners:
            return None
        with self._store.read() as connection:
            return pending.get(connection, item_id, owners=owners)

    def decision_of(self, item: PendingMemory) -> ValidationResult | None:
        """The decision that queued an item which `get_by_id` gave, to show. None, and a line in the log, when
        it is not there or cannot be understood: the item can be looked at all the same."""
        with self._store.read() as connection:
            found = decisions.get(connection, item.decision_id, owners=frozenset({item.owner_id}))
        try:
            return ValidationResult.model_validate_json(found or "")
        except ValidationError:
            log.exception("decision %s of item %s cannot be read", item.decision_id, item.id)
            return None

    def next_check(self, item: PendingMemory) -> datetime | None:
        """When the sources of an item that `get_by_id` gave are read again by themselves; None when they are
        not. While that is under way: when it will be taken for lost."""
        with self._store.read() as connection:
            return rechecks.due_of(connection, item.owner_id, item.id)

    def approve(
        self,
        principal: Principal,
        item_id: str,
        *,
        version: int,
        note: str | None = None,
        supersede: bool | None = None,
        edited: Examined | None = None,
        now: datetime,
    ) -> Approved | NotFound | Stale | AlreadyDecided | Refused:
        """Stores the item's claim as a memory that this reviewer vouches for.

        `supersede` says what becomes of a memory it conflicts with: True replaces it, False keeps both,
        None is refused when there is one (which one is replaced: `review.approval.settle`). `edited` is the
        reviewer's own wording, examined by the gate: it is stored instead, with a decision of its own; the
        item keeps the text that was queued. Raises StorageError when nothing could be written, ValueError
        when `edited` is not about this item's owner and memory type under the queue's policy; after either
        the item waits on, unchanged.
        """
        seen = self.get_by_id(principal, item_id)
        if seen is None:
            return NotFound()
        content = seen.content if edited is None else edited.claim.content
        bands = similar.keys_of(content, seen.memory_type.value)
        asked = acts.Approval(principal, now, ids.new_id_suffix(now), note, supersede, edited, bands)

        def work(connection: Connection, item: PendingMemory) -> Approved | Refused:
            return acts.approve(connection, item, asked, self._policy)

        return self._act(principal, item_id, version, now, work)

    def reject(
        self, principal: Principal, item_id: str, *, version: int, reason: str, now: datetime
    ) -> Rejected | NotFound | Stale | AlreadyDecided:
        """Ends the wait without a memory. `reason` is kept with the item; ValueError when it is blank."""
        if not reason.strip():
            raise ValueError("a rejection needs a reason")

        def work(connection: Connection, item: PendingMemory) -> Rejected:
            return acts.reject(connection, item, by=principal.id, reason=reason, now=now)

        return self._act(principal, item_id, version, now, work)

    def expire(self, now: datetime, limit: int = 500) -> int:
        """The service's own act: up to `limit` items whose time is over become EXPIRED, each owner's in a
        transaction of its own. Returns how many this call ended; several processes may sweep at once."""
        with self._store.read() as connection:
            overdue = pending.due(connection, now, limit)
        by_owner: dict[str, list[str]] = {}
        for owner_id, item_id in overdue:
            by_owner.setdefault(owner_id, []).append(item_id)
        futures = [
            self._store.writer.run([owner_id], _sweep(frozenset({owner_id}), item_ids, now))
            for owner_id, item_ids in by_owner.items()
        ]
        return sum(future.result() for future in futures)

    def expire_memories(self, now: datetime, limit: int = 500) -> int:
        """As `expire`, of memories whose horizon has passed. Reads leave them out since then; this takes them
        out of the indexes and logs it, a few in a transaction."""
        with self._store.read() as connection:
            overdue = memories.due(connection, now, limit)
        by_owner: dict[str, list[str]] = {}
        for owner_id, memory_id in overdue:
            by_owner.setdefault(owner_id, []).append(memory_id)
        futures = [
            self._store.writer.run(
                [owner_id], _sweep_memories(owner_id, memory_ids[start : start + _AT_ONCE], now)
            )
            for owner_id, memory_ids in by_owner.items()
            for start in range(0, len(memory_ids), _AT_ONCE)
        ]
        return sum(future.result() for future in futures)

    def forget_readings(self, now: datetime, limit: int = 500) -> int:
        """Deletes up to `limit` kept readings of sources that are too old to be used; how many."""
        with self._store.read() as connection:
            if not sources.has_old(connection, now):
                return 0
        return self._store.writer.run((), lambda c: sources.forget_old(c, now, limit)).result()

    def retract(
        self, principal: Principal, memory_id: str, *, reason: str, now: datetime
    ) -> Retracted | NotFound | AlreadyGone:
        """Withdraws a stored memory of the reviewer's own; an expired one may be withdrawn too. `reason` is
        kept with it; ValueError when it is blank."""
        if not reason.strip():
            raise ValueError("a retraction needs a reason")
        owners = _own(principal, Act.RETRACT)
        if not owners:
            return NotFound()
        with self._store.read() as connection:
            seen = memories.get(connection, memory_id, now, owners=owners)
        if seen is None:
            return NotFound()
        memory = seen

        def work(connection: Connection) -> Retracted | AlreadyGone:
            return acts.retract(connection, memory, by=principal.id, reason=reason, now=now)

        return self._store.writer.run([memory.owner_id], work).result()

    def _act(
        self,
        principal: Principal,
        item_id: str,
        version: int,
        now: datetime,
        act: Callable[[Connection, PendingMemory], T],
    ) -> T | NotFound | Stale | AlreadyDecided:
        """Runs `act` in one transaction on an item that is the principal's to rule on, waits, and is in the
        version named. An item past its time is expired on the spot: for everybody it is over, swept or not.
        """
        found = self.get_by_id(principal, item_id)
        if found is None or not may_rule_on(principal, found):
            return NotFound()
        seen = found

        def work(connection: Connection) -> T | Stale | AlreadyDecided:
            item = acts.reload(connection, seen)
            if item.status is not ReviewStatus.PENDING:
                return AlreadyDecided(item)
            if item.expires_at <= now:
                acts.expire(connection, item, now)
                return AlreadyDecided(acts.reload(connection, item))
            if item.version != version:
                return Stale(item)
            return act(connection, item)

        return self._store.writer.run([seen.owner_id], work).result()


def _own(principal: Principal, act: Act) -> frozenset[str]:
    """The owners this principal *is*, as far as it may do `act` at all."""
    if not may(principal, act):
        return frozenset()
    return frozenset(owner_id for owner_id in principal.owners if is_owner(principal, owner_id))


def _sweep(owners: frozenset[str], item_ids: list[str], now: datetime) -> Callable[[Connection], int]:
    def work(connection: Connection) -> int:
        items = [pending.get(connection, item_id, owners=owners) for item_id in item_ids]
        waiting = [item for item in items if item is not None and item.status is ReviewStatus.PENDING]
        for item in waiting:
            acts.expire(connection, item, now)
        return len(waiting)

    return work


def _sweep_memories(owner_id: str, memory_ids: list[str], now: datetime) -> Callable[[Connection], int]:
    def work(connection: Connection) -> int:
        return sum(acts.expire_memory(connection, owner_id, memory_id, now) for memory_id in memory_ids)

    return work
