"""Putting before its owner what was stored or rejected without them: it waits as if it came now."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection

from vouchgate.ingest.checks.hedge import HedgeDetector
from vouchgate.ingest.claims.decision import Decision, Tier, ValidationResult
from vouchgate.ingest.claims.likeness import ItemKind, Neighbour, Neighbours
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.waiting import Lane
from vouchgate.ingest.dedup.signature import signature_keys
from vouchgate.ingest.language.words import tokens
from vouchgate.ingest.pipeline import Examined, remake
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.rules import Rule
from vouchgate.ingest.scoring.priority import head_start
from vouchgate.review import acts
from vouchgate.storage import ids
from vouchgate.storage.claims import memories
from vouchgate.storage.claims.standing_rulings import RulingAct
from vouchgate.storage.dedup import index, vectors
from vouchgate.storage.queue import pending, rechecks


@dataclass(frozen=True, slots=True)
class Requeue:
    """What it takes to put claims of one owner into the queue, in a transaction that holds the owner's lock."""

    owner_id: str
    by: str
    policy: Policy
    detector: HedgeDetector
    now: datetime

    def retract(self, connection: Connection, act: RulingAct, reason: str) -> bool:
        """Takes back the memory that an act stored, if it is there; whether it was."""
        owned = frozenset({self.owner_id})
        memory = memories.get(connection, act.memory_id or "", self.now, owners=owned)
        if memory is not None:
            acts.retract(connection, memory, by=self.by, reason=reason, now=self.now)
        return memory is not None

    def decide_again(self, connection: Connection, act: RulingAct) -> tuple[Examined, Decision] | None:
        """What the claim comes to without the standing ruling, as things stand; None when there is nothing to wait for:
        it is stored or waits already, is blocked whatever its owner said, was erased, or cannot be decided. Its memory
        does not count."""
        if not act.answer:
            return None
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

    def wait(  # noqa: PLR0917  (what waits, under which id, and why)
        self,
        connection: Connection,
        act: RulingAct,
        suffix: str,
        examined: Examined,
        decision: Decision,
        because: str,
    ) -> None:
        """Has the claim wait under its new decision. Whatever its tier: it is for the owner to say."""
        policy, now = self.policy, self.now
        answer = examined.answer(
            decision,
            decision_id=ids.decision_id(suffix),
            memory_id=None,
            queue_id=ids.queue_id(suffix),
            took_ms=0,
        )
        item = pending.from_answer(
            answer,
            item_id=ids.queue_id(suffix),
            submitted_by=act.principal_id,
            limits=policy.queue,
            lane=Lane.AGENT,
        ).model_copy(
            update={
                "reason": f"{decision.reason} ({because})",
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
        rechecks.add(connection, rechecks.waiting_row(policy, answer, item.id, now))
        acts.keep_decision(connection, answer, Action.CLAIM_QUEUED, (), policy, by=self.by, now=now)
