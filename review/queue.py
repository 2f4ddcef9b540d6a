"""The review queue: owners see what waits for them, approve, reject, and take back what was stored.

Claims enter it in `storage.claims.submit`, in the transaction that decides them. Every act here is one write
transaction too, under the owner's lock: all of it is on disk, or nothing is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from types import MappingProxyType
from typing import Protocol, TypeVar

from sqlalchemy import Connection

from vouchgate.ingest.claims.likeness import Embedding
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.memory import Memory
from vouchgate.ingest.claims.people import Principal
from vouchgate.ingest.claims.waiting import PendingMemory, ReviewStatus
from vouchgate.ingest.dedup.compare import Comparisons
from vouchgate.ingest.pipeline import Examined
from vouchgate.ingest.policy import Policy
from vouchgate.review import acts, removal
from vouchgate.review import approve as approving
from vouchgate.review import undo as undoing
from vouchgate.review.answers import (
    AlreadyDecided,
    AlreadyGone,
    ApprovalRefused,
    Approved,
    ItemChanged,
    NotFound,
    NotUndoable,
    Objected,
    Rejected,
    Removed,
    Retracted,
    Undone,
    Voted,
)
from vouchgate.review.reading import QueueReader, own_owners
from vouchgate.review.rules import Act, may_rule_on
from vouchgate.review.vouching import four_eyes, voting
from vouchgate.review.vouching.owner_rules import NO_RULES, OwnerRules
from vouchgate.storage import ids
from vouchgate.storage.claims import memories
from vouchgate.storage.dedup import contradicting, index, similar
from vouchgate.storage.queue import pending, proposers
from vouchgate.storage.store import Store

_NONE: Mapping[str, Embedding] = MappingProxyType({})
_ONE_REPLACES = (
    "More than one person must approve this, and they say together only what a conflict comes to. Keep both."
)
_AT_ONCE = 50  # memories that one transaction expires: others wait some 30 ms for it

T = TypeVar("T")
ReviewListener = Callable[[Action, int, timedelta | None], None]


class Kept(Protocol):
    """What is kept for a time only: a module of `storage`."""

    def has_old(self, connection: Connection, now: datetime, /) -> bool: ...
    def forget_old(self, connection: Connection, now: datetime, limit: int, /) -> int: ...


class ReviewQueue(QueueReader):
    """The queues of all owners in a store. Safe to share between threads, and between processes."""

    def __init__(self, store: Store, policy: Policy, rules: OwnerRules = NO_RULES) -> None:
        super().__init__(store, policy, rules)
        self._told: ReviewListener = lambda action, items, waited: None

    def add_listener(self, told: ReviewListener) -> None:
        """From now on `told` is called, in whatever thread, with every review that this object has written: what
        the log calls it, of how many items, and how long one had waited that was approved or rejected."""
        self._told = told

    def tell(self, action: Action, items: int) -> None:
        """Tells the listener of a review of so many items; of none it is not told."""
        if items:
            self._told(action, items, None)

    def approve(
        self,
        principal: Principal,
        item_id: str,
        *,
        version: int,
        note: str | None = None,
        supersede: bool | None = None,
        edited: Examined | None = None,
        beside: frozenset[str] = frozenset(),
        over: str | None = None,
        now: datetime,
    ) -> Approved | Removed | Voted | NotFound | ItemChanged | AlreadyDecided | ApprovalRefused:
        """Stores the item's claim as a memory that this reviewer vouches for; of an item that asks for a removal,
        has it removed. Where more must approve than did, it counts this approval.

        `supersede` says what becomes of a memory it conflicts with: True replaces it, False keeps both,
        None is refused when there is one (which one is replaced: `review.approval.check_conflicts`). `edited` is the
        reviewer's own wording, examined by the gate: it is stored instead, with a decision of its own; the
        item keeps the text that was queued. `beside` are memories that the same act stored: to differ from them in
        a value is no conflict. `over`: the memory that `supersede` replaces where none conflicts, which must say nearly
        the same. Raises StorageError when nothing could be written, ValueError
        when `edited` is not about this item's owner and memory type under the queue's policy; after either
        the item waits on, unchanged.
        """
        seen = self.get_by_id(principal, item_id)
        if seen is None:
            return NotFound()
        content = seen.content if edited is None else edited.claim.content
        bands = similar.keys_of(content, seen.memory_type.value)
        with self._store.read() as connection:
            known = self._compared(connection, seen, content, now)
        suffix = ids.new_id_suffix(now)
        asked = approving.Approval(
            principal, now, suffix, note, supersede, edited, bands, known, beside=beside, over=over
        )

        def work(connection: Connection, item: PendingMemory) -> Approved | Removed | Voted | ApprovalRefused:
            barred = four_eyes.find_problem(
                connection, principal, item.submitted_by, item.owner_id, policy=self._policy, now=now
            )
            if barred is not None:
                return ApprovalRefused(four_eyes.CODE, barred)
            required = self._required(connection, item, now)
            if required.approvals > 1 and over is not None and supersede:
                return ApprovalRefused("replace_votes", _ONE_REPLACES)
            if (
                required.approvals > 1 and item.removal_of is None
            ):  # so that each of them is asked what the last one is
                checked = approving.check(connection, item, asked, self._policy)
                if isinstance(checked, ApprovalRefused):
                    return checked
            ballot = voting.Ballot(principal, required, note, supersede, edited is not None, now)
            given = voting.cast(connection, item, ballot)
            if isinstance(given, Voted | ApprovalRefused):
                return given
            sealed = replace(asked, votes=voting.evidence_of(given, required))
            answer: Approved | Removed | ApprovalRefused
            if item.removal_of is not None:
                answer = removal.approve(connection, item, sealed)
            else:
                answer = approving.approve(connection, item, sealed, self._policy)
            if not isinstance(answer, ApprovalRefused):
                voting.seal(connection, item, given)
            return answer

        return self.act(principal, item_id, version, now, work)

    def reject(
        self, principal: Principal, item_id: str, *, version: int, reason: str, now: datetime
    ) -> Rejected | Objected | NotFound | ItemChanged | AlreadyDecided:
        """Ends the wait without a memory, or, where others approved, returns it to the queue. `reason` is kept with the
        item; ValueError when it is blank."""
        if not reason.strip():
            raise ValueError("a rejection needs a reason")

        def work(connection: Connection, item: PendingMemory) -> Rejected | Objected:
            objected = voting.object_to(
                connection, item, principal, self._required(connection, item, now), reason=reason, now=now
            )
            if objected is not None:
                return objected
            return acts.reject(connection, item, by=principal.id, reason=reason, now=now)

        return self.act(principal, item_id, version, now, work)

    def undo(
        self,
        principal: Principal,
        item_id: str,
        *,
        version: int,
        now: datetime,
        embeddings: Mapping[str, Embedding] = _NONE,
    ) -> Undone | NotFound | ItemChanged | NotUndoable:
        """Takes an approval or a rejection back, whichever reviewer of the owner decided, for `undo_minutes` of
        the policy: the item waits again as it was queued, in the next version; the memory that it became is
        retracted, and the one that this had replaced is in force again. Of an item that waits for others, it takes
        this reviewer's approval back.

        `embeddings` are those that `to_embed` asks for. Raises StorageError when nothing could be written.
        """
        found = self.get_by_id(principal, item_id)
        if found is None or not may_rule_on(principal, found):
            return NotFound()
        seen = found
        restored = self._replaced(seen, now)
        bands = {memory.id: similar.keys_of(memory.content, memory.memory_type.value) for memory in restored}
        with self._store.read() as connection:
            back: list[PendingMemory | Memory] = [seen, *restored]
            known = {one.id: self._compared(connection, one, one.content, now) for one in back}
        asked = undoing.UndoRequest(principal.id, now, bands, dict(embeddings), known)

        def work(connection: Connection) -> Undone | ItemChanged | NotUndoable | NotFound:
            if not proposers.may_still_rule(connection, principal, seen.owner_id, now):
                return NotFound()
            item = acts.reload(connection, seen)
            waits = item.status is ReviewStatus.PENDING
            if item.version != version and not waits:
                return ItemChanged(item)
            if waits and item.version == version and voting.withdraw(connection, item, principal, now):
                return Undone(item)
            barred = four_eyes.find_problem(
                connection, principal, item.submitted_by, item.owner_id, policy=self._policy, now=now
            )
            if barred is not None:
                return NotUndoable(four_eyes.CODE, barred, item)
            return undoing.undo(connection, item, asked, self._policy)

        answer = self._store.writer.run([seen.owner_id], work).result()
        self._tell(answer, now)
        return answer

    def _compared(
        self, connection: Connection, one: PendingMemory | Memory, content: str, now: datetime
    ) -> Comparisons:
        """What is to be in force held against what its owner has, before others have to wait for it."""
        kind = one.memory_type.value
        known = index.compared(connection, one.owner_id, content, kind, self._policy, now=now)
        contradicting.look_up(connection, one.owner_id, content, kind, known, now=now)
        return known

    def undo_until(self, item: PendingMemory) -> datetime | None:
        """When it is too late to take an item's decision back; None for one that no reviewer decided."""
        return undoing.undo_deadline(item, self._policy)

    def to_embed(self, principal: Principal, item_id: str) -> dict[str, str]:
        """The texts, by id, whose vectors `undo` of this item needs; none unless the policy asks for vectors."""
        if self._policy.dedup_method != "vector":
            return {}
        item = self.get_by_id(principal, item_id)
        if item is None or undoing.undo_deadline(item, self._policy) is None:
            return {}
        restored = self._replaced(item, item.created_at)  # whether it is still valid makes no difference
        return {item.id: item.content} | {memory.id: memory.content for memory in restored}

    def _replaced(self, item: PendingMemory, now: datetime) -> list[Memory]:
        """The memory that an item's approval replaced, if there is one."""
        if item.status is not ReviewStatus.APPROVED or item.memory_id is None:
            return []
        with self._store.read() as connection:
            memory = memories.replaced_by(connection, item.owner_id, item.memory_id, now)
        return [] if memory is None else [memory]

    def expire(self, now: datetime, limit: int = 500) -> int:
        """The service's own act: up to `limit` items whose time is over become EXPIRED, each owner's in a
        transaction of its own. Returns how many this call ended; several processes may sweep at once."""
        with self._store.read() as connection:
            overdue = pending.due(connection, now, limit)
        ended = self.sweep(overdue, partial(_expire_item, now=now), limit)
        self.tell(Action.REVIEW_EXPIRED, ended)
        return ended

    def expire_memories(self, now: datetime, limit: int = 500) -> int:
        """As `expire`, of memories whose horizon has passed. Reads leave them out since then; this takes them
        out of the indexes and logs it, a few in a transaction."""
        with self._store.read() as connection:
            overdue = memories.due(connection, now, limit)
        return self.sweep(overdue, partial(acts.expire_memory, now=now))

    def sweep(
        self, overdue: Iterable[tuple[str, str]], end: Callable[..., bool], at_once: int = _AT_ONCE
    ) -> int:
        """Ends each of these, given by owner and id, `at_once` of one owner in a transaction; how many were not ended
        already. `end` gets the connection, the owner and the id."""
        by_owner: dict[str, list[str]] = {}
        for owner_id, one in overdue:
            by_owner.setdefault(owner_id, []).append(one)

        def work(connection: Connection, owner_id: str, some: list[str]) -> int:
            return sum(end(connection, owner_id, one) for one in some)

        futures = [
            self._store.writer.run(
                [owner_id], partial(work, owner_id=owner_id, some=every[start : start + at_once])
            )
            for owner_id, every in by_owner.items()
            for start in range(0, len(every), at_once)
        ]
        return sum(future.result() for future in futures)

    def forget(self, kept: Kept, now: datetime, limit: int = 500) -> int:
        """Deletes up to `limit` rows whose time is over, of what a module of `storage` keeps; how many."""
        with self._store.read() as connection:
            if not kept.has_old(connection, now):
                return 0
        return int(self._store.writer.run((), lambda c: kept.forget_old(c, now, limit)).result())

    def retract(
        self, principal: Principal, memory_id: str, *, reason: str, now: datetime
    ) -> Retracted | NotFound | AlreadyGone:
        """Withdraws a stored memory of the reviewer's own; an expired one may be withdrawn too. `reason` is
        kept with it; ValueError when it is blank."""
        if not reason.strip():
            raise ValueError("a retraction needs a reason")
        owners = own_owners(principal, Act.RETRACT)
        if not owners:
            return NotFound()
        with self._store.read() as connection:
            seen = memories.get(connection, memory_id, now, owners=owners)
        if seen is None:
            return NotFound()
        memory = seen

        def work(connection: Connection) -> Retracted | NotFound | AlreadyGone:
            if not proposers.may_still_rule(connection, principal, memory.owner_id, now):
                return NotFound()
            return acts.retract(connection, memory, by=principal.id, reason=reason, now=now)

        return self._store.writer.run([memory.owner_id], work).result()

    def act(
        self,
        principal: Principal,
        item_id: str,
        version: int | None,
        now: datetime,
        act: Callable[[Connection, PendingMemory], T],
    ) -> T | NotFound | ItemChanged | AlreadyDecided:
        """Runs `act` in one transaction on an item that is the principal's to rule on, waits, and is in the
        version named (None: whatever version). An item past its time is expired on the spot: for everybody it is
        over, swept or not.
        """
        found = self.get_by_id(principal, item_id)
        if found is None or not may_rule_on(principal, found):
            return NotFound()
        seen = found

        def work(connection: Connection) -> T | ItemChanged | AlreadyDecided | NotFound:
            if not proposers.may_still_rule(connection, principal, seen.owner_id, now):
                return NotFound()
            item = acts.reload(connection, seen)
            if item.status is not ReviewStatus.PENDING:
                return AlreadyDecided(item)
            if item.expires_at <= now:
                acts.expire(connection, item, now)
                return AlreadyDecided(acts.reload(connection, item))
            if version not in (None, item.version):
                return ItemChanged(item)
            return act(connection, item)

        answer = self._store.writer.run([seen.owner_id], work).result()
        self._tell(answer, now)
        return answer

    def _tell(self, answer: object, now: datetime) -> None:
        match answer:
            case Approved(item) | Removed(item):
                self._told(Action.REVIEW_APPROVED, 1, now - item.created_at)
            case Rejected(item):
                self._told(Action.REVIEW_REJECTED, 1, now - item.created_at)
            case Undone():
                self.tell(Action.REVIEW_UNDONE, 1)
            case AlreadyDecided(item) if item.status is ReviewStatus.EXPIRED and item.decided_at == now:
                self.tell(Action.REVIEW_EXPIRED, 1)  # on the spot


def _expire_item(connection: Connection, owner_id: str, item_id: str, now: datetime) -> bool:
    item = pending.get(connection, item_id, owners=frozenset({owner_id}))
    if item is None or item.status is not ReviewStatus.PENDING:
        return False
    acts.expire(connection, item, now)
    return True
