"""Ending a standing ruling of an owner, with all that it did: what it stored is retracted, or goes to
the queue with what it rejected, as if there had been no such standing ruling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from sqlalchemy import Connection

from vouchgate.ingest.checks.hedge import HedgeDetector
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.people import Principal
from vouchgate.ingest.claims.standing_rulings import StandingRuling
from vouchgate.ingest.claims.waiting import Lane
from vouchgate.ingest.policy import Policy
from vouchgate.review import record
from vouchgate.review.answers import NotFound
from vouchgate.review.reading import own_owners
from vouchgate.review.rules import Act
from vouchgate.review.trust.requeue import Requeue
from vouchgate.review.trust.standing_rulings import StandingRulings
from vouchgate.storage import ids
from vouchgate.storage.claims import standing_rulings
from vouchgate.storage.identity import owners
from vouchgate.storage.queue import proposers
from vouchgate.storage.queue.capacity import QueueCapacity, QueueFull

TAKEN_BACK = "the standing ruling that stored it was taken back"
_AT_ONCE = 50  # acts of a standing ruling that one transaction takes back: it holds the owner's lock


class Then(StrEnum):
    """What becomes of what a standing ruling did, when it is taken back."""

    KEEP = "keep"
    QUEUE = "queue"  # what it stored and what it rejected waits for its owner
    RETRACT = "retract"  # what it stored; what it rejected stays so


@dataclass(frozen=True, slots=True)
class RulingEnded:
    """The standing ruling counts for nothing any more. So many claims went to the queue (one does not when the same is
    stored or waits already), so many memories were retracted, those that wait now among them, and so many of its acts
    are left: `full` says that the queue has no more room for them. Taking the standing ruling back again goes on with
    them."""

    queued: int
    retracted: int
    left: int
    full: bool


@dataclass(slots=True)
class _Batch:
    queued: int = 0
    retracted: int = 0
    full: bool = False
    crowded: set[str] = field(default_factory=set)  # agents that have no place left
    done: list[str] = field(default_factory=list)


def take_back(
    book: StandingRulings, principal: Principal, ruling_id: str, then: Then, now: datetime
) -> RulingEnded | NotFound:
    """Ends a standing ruling of the reviewer's own, and does with what it did as `then` says. Of many acts some are
    taken back in each of several transactions, in all of which the standing ruling is over; with a standing ruling that
    is over already it goes on."""
    with book.store.read() as connection:
        ruling = standing_rulings.get(connection, own_owners(principal, Act.REVIEW), ruling_id)
    if ruling is None:
        return NotFound()
    queued = retracted = 0
    crowded = frozenset[str]()
    while True:
        suffixes = [ids.new_id_suffix(now) for _ in range(_AT_ONCE)]
        step = _Step(ruling, then, principal, book.policy, book.detector, now, suffixes, crowded)
        batch = book.store.writer.run([ruling.owner_id], step.work).result()
        queued, retracted = queued + batch.queued, retracted + batch.retracted
        crowded |= batch.crowded
        if batch.full or not (batch.done or batch.crowded):
            break
    left = next(did.open for each, did in book.listing(principal) if each.id == ruling_id)
    return RulingEnded(queued, retracted, left, batch.full or bool(crowded))


@dataclass(frozen=True, slots=True)
class _Step:
    """One transaction of taking a standing ruling back, but for what agents sent that are `crowded`; the suffixes are
    of the ids that it makes."""

    ruling: StandingRuling
    then: Then
    by: Principal
    policy: Policy
    detector: HedgeDetector
    now: datetime
    suffixes: Sequence[str]
    crowded: frozenset[str]

    def work(self, connection: Connection) -> _Batch:
        """Holds the owner's lock."""
        ruling, batch = self.ruling, _Batch()
        if not proposers.may_still_rule(connection, self.by, ruling.owner_id, self.now):
            return batch
        requeue = Requeue(ruling.owner_id, self.by.id, self.policy, self.detector, self.now)
        if standing_rulings.end(connection, ruling, by=self.by.id, at=self.now):
            document = record.document(ruling=ruling.id, then=self.then.value)
            record.entry(
                connection,
                ruling.owner_id,
                Action.STANDING_RULING_ENDED,
                ruling.id,
                document,
                by=self.by.id,
                now=self.now,
            )
        if self.then is Then.KEEP:
            return batch
        state = owners.lock_owners(connection, [ruling.owner_id])[ruling.owner_id]
        places = QueueCapacity(connection, lock_total=True, at_once=True)
        stored_only = self.then is Then.RETRACT
        found = standing_rulings.open_acts(
            connection, ruling, len(self.suffixes), stored_only=stored_only, without=self.crowded
        )
        for act, suffix in zip(found, self.suffixes, strict=False):
            if act.principal_id in batch.crowded:
                continue
            if self.then is Then.QUEUE:
                again = requeue.decide_again(connection, act)
                if again is not None:
                    reserved = places.reserve(state, self.policy.queue, act.principal_id, Lane.AGENT)
                    if isinstance(reserved, QueueFull) and reserved.which.of_sender:
                        batch.crowded.add(act.principal_id)
                        continue
                    if reserved is not None:
                        batch.full = True
                        break
                    did = "rejected" if act.memory_id is None else "stored"
                    because = f"a standing ruling {did} it that you took back: {ruling.name}"
                    requeue.wait(connection, act, suffix, *again, because)
                    batch.queued += 1
            batch.retracted += requeue.retract(connection, act, TAKEN_BACK)
            batch.done.append(act.decision_id)
        standing_rulings.settle(connection, ruling, batch.done)
        places.write()
        return batch
