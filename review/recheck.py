"""What checking again comes to: a waiting claim whose citation verifies is promoted, a memory whose source went
away is marked.

Each `settle_…` here runs inside a write transaction that holds the lock of the owner, on work that was leased
(`storage.queue.rechecks`); the sources were read before it. As in `review.acts`, nothing here makes an id or reads a
clock.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from sqlalchemy import Connection

from vouchgate.ingest.claims.claim import Verdict
from vouchgate.ingest.claims.decision import Decision, RejectedBefore, Tier, ValidationResult
from vouchgate.ingest.claims.likeness import ItemKind, Neighbours, Paraphrases
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.memory import Memory, MemoryStatus
from vouchgate.ingest.claims.source import Found
from vouchgate.ingest.claims.standing_rulings import bearing
from vouchgate.ingest.claims.trust import RulingVerdict
from vouchgate.ingest.claims.waiting import PendingMemory, ReviewStatus
from vouchgate.ingest.dedup.signature import SignatureKeys
from vouchgate.ingest.pipeline import Examined
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.rules import BY_CITATION, Rule
from vouchgate.ingest.scoring.score import is_listed
from vouchgate.review import acts, record
from vouchgate.review.staleness import (
    Shown,
    SourceChanged,
    SourcesUnchanged,
    SourcesUnclear,
    Standings,
    lowered,
    overdue,
)
from vouchgate.storage import ids
from vouchgate.storage.claims import memories, standing_rulings
from vouchgate.storage.dedup import contradicting, index
from vouchgate.storage.erasing import tombstones
from vouchgate.storage.errors import StorageError
from vouchgate.storage.outgoing.outbox import Outbox
from vouchgate.storage.queue import pending, rechecks
from vouchgate.storage.queue.rechecks import LeasedRecheck


class RecheckResult(StrEnum):
    """What became of one piece of leased work."""

    PROMOTED = "promoted"  # the item is a memory now
    REDECIDED = "redecided"  # the item waits on, for another reason than before
    OVER = "over"  # tried as often as the policy says: the item is left to its owner
    STALE = "stale"  # the memory was marked
    FRESH = "fresh"  # the mark was taken back
    LOWERED = "lowered"  # the memory is in force, with a label or confidence that promises less
    SAME = "same"  # the memory is as it was
    AGAIN = "again"  # not found out; it is tried later
    GONE = "gone"  # it does not wait, or is not in force, any more
    LOST = "lost"  # the lease was lost, or the item changed meanwhile: nothing was written
    FAILED = "failed"  # nothing could be written; it is tried when the lease ends


@dataclass(frozen=True, slots=True)
class Reexamined:
    """A waiting claim examined once more, with all that must be the same when the unit is run again."""

    decision_id: str  # the decision that was looked at
    examined: Examined
    keys: SignatureKeys  # of the claim, for the policy's threshold
    bands: tuple[int, ...]  # storage.dedup.similar.keys_of the claim
    suffix: str  # of the ids that a new decision makes
    now: datetime
    took_ms: float
    rejected_before: RejectedBefore | None = None  # of the decision that was looked at


def decision_to_recheck(
    connection: Connection, due: LeasedRecheck, now: datetime
) -> tuple[str, ValidationResult] | None:
    """The decision to look at again, its id and itself; None when there is nothing to do any more.

    Raises StorageError when it cannot be read.
    """
    owners = frozenset({due.owner_id})
    if due.kind is ItemKind.PENDING:
        item = pending.get(connection, due.item_id, owners=owners)
        if item is None or item.status is not ReviewStatus.PENDING or item.expires_at <= now:
            return None
        return item.decision_id, acts.stored_answer(connection, item)
    memory = memories.get(connection, due.item_id, now, owners=owners)
    if memory is None or memory.status is not MemoryStatus.ACTIVE:
        return None
    return memory.decision_id, acts.stored_answer(connection, memory)


def settle_item(
    connection: Connection, due: LeasedRecheck, again: Reexamined | None, policy: Policy, now: datetime
) -> RecheckResult:
    """Promotes a waiting item, gives it a new decision, or puts it back into the schedule. `again` None: it
    could not even be examined, which counts as an attempt."""
    if not rechecks.hold_lease(connection, due):
        return RecheckResult.LOST
    item = pending.get(connection, due.item_id, owners=frozenset({due.owner_id}))
    if item is None or item.status is not ReviewStatus.PENDING:
        rechecks.remove(connection, due.owner_id, due.item_id)
        return RecheckResult.GONE
    if item.expires_at <= now:  # the sweep expires it, unless the clock went ahead
        return RecheckResult.GONE
    if again is None:
        return _try_later(connection, item, due, why="the check itself failed.", policy=policy, now=now)
    if item.decision_id != again.decision_id:
        return RecheckResult.LOST
    return _settle_waiting(connection, item, due, again, policy)


def _settle_waiting(
    connection: Connection, item: PendingMemory, due: LeasedRecheck, again: Reexamined, policy: Policy
) -> RecheckResult:
    again = not_erased(connection, again)
    examined, decision = decide_again(connection, item, again)
    if _is_open(decision):
        unknown = " ".join(f.message for f in decision.findings if f.verdict is Verdict.UNKNOWN)
        at = rechecks.not_before(again.now, examined.readings)
        return _try_later(connection, item, due, why=unknown, policy=policy, now=again.now, not_before=at)
    if decision.rule is Rule.UNGROUNDED and examined.suggested is not None:  # no document states it yet
        at = again.now + rechecks.memory_interval(policy.recheck, item.id)
        rechecks.postpone(connection, due, at, attempts=0)
        return RecheckResult.AGAIN
    if decision.tier is not Tier.STORED and examined.facts.standing_ruling is None:
        acts.redecide(connection, item, new_decision(item, again, examined, decision), policy)
        return RecheckResult.REDECIDED
    if reason := _keeps_out(item, examined, again.now):
        return _leave_to_owner(connection, item, reason)
    made = new_decision(item, again, examined, decision)
    acts.promote(connection, item, made, again.bands, policy)
    return RecheckResult.PROMOTED


def _keeps_out(item: PendingMemory, examined: Examined, now: datetime) -> str:
    """Why a claim that would be stored now is left to its owner, a sentence; empty when nothing keeps it out."""
    ruling, horizon = examined.facts.standing_ruling, item.validity_horizon
    if ruling is not None:
        return f"Its sources vouch for it now, and a standing ruling of its owner rejects it: {ruling.name}"
    if horizon is not None and horizon <= now:
        return f"The claim was to hold until {horizon.isoformat()}, which has passed."
    if not _may_promote(examined, item.created_at):
        return "What it cites is there now, on a page that may have been written after the claim."
    return ""


def settle_before_approval(connection: Connection, item: PendingMemory, again: Reexamined) -> bool:
    """Gives an item that its owner is about to approve the decision that its sources call for now, unless it
    changed since `item` was read. Whether it did: the approval then names a version that is not the item's."""
    current = acts.reload(connection, item)
    waits = current.status is ReviewStatus.PENDING and current.expires_at > again.now
    if not waits or (current.version, current.decision_id) != (item.version, again.decision_id):
        return False
    again = not_erased(connection, again)
    examined, decision = decide_again(connection, current, again)
    if decision.tier is Tier.STORED or examined.facts.standing_ruling is not None:
        return False
    made = new_decision(current, again, examined, decision)
    acts.redecide(connection, current, made, examined.policy)
    return True


def settle_memory(
    connection: Connection, due: LeasedRecheck, found: Standings | None, policy: Policy, now: datetime
) -> RecheckResult:
    """Marks a memory, takes its mark back or leaves it as it is, lowers what it promises where too much was promised
    before statements were held against sources one by one, and says when it is looked at again. `found`
    None: its sources could not even be compared."""
    if not rechecks.hold_lease(connection, due):
        return RecheckResult.LOST
    memory = memories.get(connection, due.item_id, now, owners=frozenset({due.owner_id}))
    if memory is None or memory.status is not MemoryStatus.ACTIVE:
        rechecks.remove(connection, due.owner_id, due.item_id)
        return RecheckResult.GONE
    interval = rechecks.memory_interval(policy.recheck, memory.id)
    if found is None or isinstance(found, SourcesUnclear):
        learned, readings = (due.learned, ()) if found is None else (found.learned, found.readings)
        attempts = due.attempts + 1
        nothing = isinstance(found, SourcesUnclear) and not readings  # that could be read
        wait = interval if nothing else rechecks.next_wait(policy.recheck, attempts, interval)
        at = max(now + wait, rechecks.not_before(now, readings))
        rechecks.postpone(connection, due, at, attempts=attempts, learned=learned)
        late = overdue(policy.freshness, memory, (each.citation.type for each in readings), now)
        stale = late and acts.mark_stale(connection, memory, reason=late, now=now)
        return RecheckResult.STALE if stale else RecheckResult.AGAIN
    rechecks.postpone(connection, due, now + interval, attempts=0, learned=found.learned)
    less = found.shown is not None and _lower(connection, memory, found.shown, now)
    otherwise = RecheckResult.LOWERED if less else RecheckResult.SAME
    match found:
        case SourceChanged():
            noted = acts.mark_stale(connection, memory, reason=found.reason, now=now)
            return RecheckResult.STALE if noted else otherwise
        case SourcesUnchanged():
            return RecheckResult.FRESH if acts.confirm_by_sources(connection, memory, now) else otherwise


def _lower(connection: Connection, memory: Memory, shown: Shown, now: datetime) -> bool:
    """Lowers the label or confidence of an active memory that promises more than is shown. False, and nothing is
    written: it does not. Nothing is ever raised."""
    worth = lowered(memory, shown)
    if worth is None:
        return False
    label, confidence = worth
    said = acts.storable_text(
        f"It was {memory.label.value} with {memory.confidence.value} confidence. {shown.why}"
    )
    owner_id, name = memory.owner_id, memory.id
    if not memories.lower(
        connection, owner_id, name, label=label, confidence=confidence, at=now, reason=said
    ):
        raise StorageError(f"memory {name} changed although its owner was locked")
    document = record.document(memory=name, label=label.value, confidence=confidence.value, note=said)
    record.entry(connection, owner_id, Action.MEMORY_RELABELLED, name, document, by=acts.SERVICE, now=now)
    return True


def not_erased(connection: Connection, again: Reexamined) -> Reexamined:
    """Without what was erased since the decision that was looked at was read. The caller holds the owner's lock."""
    examined, before = tombstones.without_erased(connection, again.examined), again.rejected_before
    if before is not None and tombstones.known(connection, examined.claim.owner_id, [before.queue_id]):
        before = None
    return replace(again, examined=examined, rejected_before=before)


def decide_again(connection: Connection, item: PendingMemory, again: Reexamined) -> tuple[Examined, Decision]:
    """The decision that follows now. The item itself is no neighbour of its claim; what else waits is, as it
    was when the claim was sent. A standing ruling bears on it only where it keeps out what would be stored."""
    before = again.examined.known
    allowance = index.new_allowance()
    facts = index.find_neighbours(
        connection, item.owner_id, again.keys, again.now, known=before, allowance=allowance
    )
    if before is not None:
        kind = item.memory_type.value
        looked_up = contradicting.look_up(
            connection,
            item.owner_id,
            again.examined.claim.content,
            kind,
            before,
            now=again.now,
            allowance=allowance,
        )
        facts = contradicting.together(facts, looked_up)
    if isinstance(facts, Neighbours):
        others = tuple(neighbour for neighbour in facts.items if neighbour.id != item.id)
        facts = facts.model_copy(update={"items": others})
    examined = again.examined
    paraphrases = examined.facts.paraphrases
    if isinstance(paraphrases, Paraphrases):
        near = tuple(one for one in paraphrases.items if one.id != item.id)
        paraphrases = paraphrases.model_copy(update={"items": near})
    claim = examined.claim
    outbox = Outbox(connection)
    outbox.load([claim])
    at_place = outbox.find_at_place(claim, again.now)
    examined = examined.knowing(dedup=facts, paraphrases=paraphrases, at_place=at_place)
    decision = examined.decide()
    if decision.tier is not Tier.STORED:
        return examined, decision
    rulings = standing_rulings.in_force(connection, item.owner_id)
    ruling = bearing(rulings, claim, item.submitted_by, examined.readings, again.now)
    if ruling is None or ruling.verdict is not RulingVerdict.REJECT:
        return examined, decision
    examined = examined.knowing(standing_ruling=ruling)
    return examined, examined.decide()


def _is_open(decision: Decision) -> bool:
    """Whether asking again may bring an answer: a citation or the look-up of earlier claims is still UNKNOWN. A
    claim that another rule would store now, under a changed policy, is not promoted by that."""
    if decision.tier is Tier.STORED:
        return decision.rule not in BY_CITATION
    if decision.rule is Rule.CITATION_UNKNOWN:
        return True
    return any(f.check == "dedup" and f.verdict is Verdict.UNKNOWN for f in decision.decided_by)


def _may_promote(examined: Examined, sent: datetime) -> bool:
    """Whether every source is of a publisher that somebody listed, and stood as it is before the claim was sent.
    Whoever wrote the claim may have written a page of any other since."""
    policy = examined.policy
    sources = (reading for reading in examined.readings if isinstance(reading, Found))
    return all(is_listed(policy.reputation.settle(source, sent), policy) for source in sources)


def new_decision(
    item: PendingMemory, again: Reexamined, examined: Examined, decision: Decision
) -> acts.NewDecision:
    """The decision as it is kept. Whatever its tier, a claim that is not promoted goes on waiting, so the answer
    names the item."""
    decision_id = ids.decision_id(again.suffix)
    stored = decision.tier is Tier.STORED
    answer = examined.answer(
        decision,
        decision_id=decision_id,
        memory_id=ids.memory_id(again.suffix) if stored else None,
        queue_id=None if stored else item.id,
        took_ms=again.took_ms,
        rejected_before=None if stored else again.rejected_before,
    )
    # A rule that comes before the citations may have decided; what was found of them is said all the same.
    refuted = [
        f.message
        for f in decision.findings
        if f.citation is not None
        and f.verdict in (Verdict.FAIL, Verdict.DOUBT)
        and f not in decision.decided_by
    ]
    reason = ". ".join([decision.reason.removesuffix("."), *refuted]) if refuted else decision.reason
    return acts.NewDecision(answer, decision_id, reason, again.now, examined.readings)


def _try_later(
    connection: Connection,
    item: PendingMemory,
    due: LeasedRecheck,
    *,
    why: str,
    policy: Policy,
    now: datetime,
    not_before: datetime | None = None,
) -> RecheckResult:
    attempts = due.attempts + 1
    if attempts >= policy.recheck.attempts:
        times = "once" if attempts == 1 else f"{attempts} times"
        return _leave_to_owner(
            connection, item, f"Could not be verified: tried again {times}, at last: {why}"
        )
    at = now + rechecks.next_wait(policy.recheck, attempts, item.expires_at - item.created_at)
    rechecks.postpone(connection, due, max(at, not_before or at), attempts=attempts)
    return RecheckResult.AGAIN


def _leave_to_owner(connection: Connection, item: PendingMemory, reason: str) -> RecheckResult:
    """Leaves the item to its owner, and says why."""
    pending.explain(connection, item, acts.storable_text(reason))
    rechecks.remove(connection, item.owner_id, item.id)
    return RecheckResult.OVER
