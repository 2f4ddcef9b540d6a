"""Ending a standing ruling of an owner, with all that it did: what it stored is retracted, or goes to
the queue with what it rejected, as if there had been no such standing ruling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from sqlalchemy import Connection

from vouchgate.ingest.checks.hedge import HedgeDetector
from vouchgate.ingest.claims.decision import Decision, Tier, ValidationResult
from vouchgate.ingest.claims.likeness import ItemKind, Neighbour, Neighbours
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.people import Principal
from vouchgate.ingest.claims.standing_rulings import StandingRuling
from vouchgate.ingest.claims.waiting import Lane
from vouchgate.ingest.dedup.signature import signature_keys
from vouchgate.ingest.language.words import tokens
from vouchgate.ingest.pipeline import Examined, remake
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.rules import Rule
from vouchgate.ingest.scoring.priority import head_start
from vouchgate.review import acts, record
from vouchgate.review.answers import NotFound
from vouchgate.review.reading import own_owners
from vouchgate.review.rules import Act
from vouchgate.review.trust.standing_rulings import StandingRulings
from vouchgate.storage import ids
from vouchgate.storage.claims import memories, standing_rulings
from vouchgate.storage.claims.standing_rulings import RulingAct
from vouchgate.storage.dedup import index, vectors
from vouchgate.storage.identity import owners
from vouchgate.storage.queue import pending, rechecks
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
    are left: `full` says that the queue has no more room. Taking the standing ruling back again goes on with them."""

    queued: int
    retracted: int
    left: int
    full: bool


@dataclass(slots=True)
class _Batch:
    queued: int = 0
    retracted: int = 0
    full: bool = False
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
    while True:
        suffixes = [ids.new_id_suffix(now) for _ in range(_AT_ONCE)]
        step = _Step(ruling, then, principal.id, book.policy, book.detector, now, suffixes)
        batch = book.store.writer.run([ruling.owner_id], step.work).result()
        queued, retracted = queued + batch.queued, retracted + batch.retracted
        if not batch.done or batch.full:
            break
    left = next(did.open for each, did in book.listing(principal) if each.id == ruling_id)
    return RulingEnded(queued, retracted, left, batch.full)


@dataclass(frozen=True, slots=True)
class _Step:
    """One transaction of taking a standing ruling back; the suffixes are of the ids that it makes."""

    ruling: StandingRuling
    then: Then
    by: str
    policy: Policy
    detector: HedgeDetector
    now: datetime
    suffixes: Sequence[str]

    def work(self, connection: Connection) -> _Batch:
        """Holds the owner's lock."""
        ruling, batch = self.ruling, _Batch()
        if standing_rulings.end(connection, ruling, by=self.by, at=self.now):
            document = record.document(ruling=ruling.id, then=self.then.value)
            record.entry(
                connection,
                ruling.owner_id,
                Action.STANDING_RULING_ENDED,
                ruling.id,
                document,
                by=self.by,
                now=self.now,
            )
        if self.then is Then.KEEP:
            return batch
        state = owners.lock_owners(connection, [ruling.owner_id])[ruling.owner_id]
        places = QueueCapacity(connection, lock_total=True)
        stored_only = self.then is Then.RETRACT
        found = standing_rulings.open_acts(connection, ruling, len(self.suffixes), stored_only=stored_only)
        for act, suffix in zip(found, self.suffixes, strict=False):
            if self.then is Then.QUEUE:
                again = self._decide_again(connection, act)
                if again is not None:
                    if isinstance(
                        places.reserve(state, self.policy.queue, act.principal_id, Lane.AGENT), QueueFull
                    ):
                        batch.full = True
                        break
                    self._wait(connection, act, suffix, *again)
                    batch.queued += 1
            batch.retracted += self._retract(connection, act)
            batch.done.append(act.decision_id)
        standing_rulings.settle(connection, ruling, batch.done)
        places.write()
        return batch

    def _retract(self, connection: Connection, act: RulingAct) -> bool:
        owned = frozenset({self.ruling.owner_id})
        memory = memories.get(connection, act.memory_id or "", self.now, owners=owned)
        if memory is not None:
            acts.retract(connection, memory, by=self.by, reason=TAKEN_BACK, now=self.now)
        return memory is not None

    def _decide_again(self, connection: Connection, act: RulingAct) -> tuple[Examined, Decision] | None:
        """What the claim comes to without the standing ruling, as things stand; None when there is nothing to wait for:
        it is stored or waits already, is blocked whatever its owner said, or cannot be decided. Its memory does not
        count."""
        kept = ValidationResult.model_validate_json(act.answer)
        claim, policy = kept.evidence.claim, self.policy.heeding(kept.evidence.publishers)
        try:
            examined = remake(kept, policy, self.detector)
        except ValueError:  # a decision of before, whose evidence lacks what is asked now
            return None
        keys = signature_keys(tokens(claim.content), claim.memory_type.value, policy.threshold)
        facts = index.find_neighbours(
            connection, claim.owner_id, keys, self.now, allowance=index.new_allowance()
        )
        if isinstance(facts, Neighbours):
            others = tuple(each for each in facts.items if each.id != act.memory_id)
            facts = facts.model_copy(update={"items": others})
        examined = examined.knowing(dedup=facts, standing_ruling=None)
        decision = examined.decide()
        known = decision.tier is Tier.BLOCKED or decision.rule is Rule.ALREADY_PENDING
        return None if known else (examined, decision)

    def _wait(
        self, connection: Connection, act: RulingAct, suffix: str, examined: Examined, decision: Decision
    ) -> None:
        """Has the claim wait under its new decision. Whatever its tier: it is for the owner to say."""
        policy, claim, now = self.policy, examined.claim, self.now
        answer = examined.answer(
            decision,
            decision_id=ids.decision_id(suffix),
            memory_id=None,
            queue_id=ids.queue_id(suffix),
            took_ms=0,
        )
        did = "rejected" if act.memory_id is None else "stored"
        item = pending.from_answer(
            answer,
            item_id=ids.queue_id(suffix),
            submitted_by=act.principal_id,
            limits=policy.queue,
            lane=Lane.AGENT,
        ).model_copy(
            update={
                "reason": f"{decision.reason} (a standing ruling {did} it that you took back: {self.ruling.name})",
                "created_at": now,
                "expires_at": now + timedelta(days=policy.queue.expire_days),
                "priority_at": now - head_start(decision.rule, policy.queue.head_start_days),
            }
        )
        pending.add(connection, item)
        neighbour = Neighbour(kind=ItemKind.PENDING, id=item.id, content=item.content)
        index.add(connection, item.owner_id, neighbour, item.memory_type.value)
        if act.memory_id is not None:
            vectors.become_item(connection, item.owner_id, act.memory_id, item.id)
        if decision.rule is Rule.CITATION_UNKNOWN:
            row = rechecks.pending_row(policy, claim.owner_id, item.id, examined.readings, now)
            rechecks.add(connection, row)
        acts.keep_decision(connection, answer, Action.CLAIM_QUEUED, (), policy, by=self.by, now=now)
