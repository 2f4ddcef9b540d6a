"""What approving an item will do, said before it is done. The rules are those of `review.approval`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from vouchgate.ingest.claims.decision import ValidationResult
from vouchgate.ingest.claims.delivery import OWN_SINK
from vouchgate.ingest.claims.likeness import ItemKind, Neighbour, Neighbours
from vouchgate.ingest.claims.memory import Memory, MemoryStatus
from vouchgate.ingest.claims.source import Found
from vouchgate.ingest.claims.waiting import PendingMemory, ReviewStatus
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.scoring.score import confidence_of
from vouchgate.review.answers import ApprovalRefused
from vouchgate.review.approval import check_conflicts, horizon_problem
from vouchgate.review.pages.earlier import LABELS
from vouchgate.review.pages.wording.text import plain_line

_MOST_PLACE = 600  # characters: a place has at most 512


@dataclass(frozen=True, slots=True)
class Option:
    """One way to approve: `label` for its button, `line` says what it will do, `supersede` is what the approval is to
    say of a conflicting memory."""

    label: str
    line: str
    supersede: bool | None
    over: str = ""  # the memory that is replaced though it does not conflict


@dataclass(frozen=True, slots=True)
class Effect:
    """The ways in which an item can be approved as it stands; `blocked` says why there is none, `before` what happens
    first, `several` that the text is voted on as it is."""

    options: tuple[Option, ...]
    before: str
    blocked: str
    several: bool = False


def effect_of(
    item: PendingMemory,
    answer: ValidationResult | None,
    conflict: Memory | None,
    policy: Policy,
    now: datetime,
    *,
    near: str | None = None,
    approvals: int = 1,
) -> Effect:
    """What an approval comes to as far as it can be told now: other memories may be stored before it is made. `near` is
    the memory that says nearly the same, `approvals` how many it takes."""
    effect = _effect(item, answer, conflict, policy, now, near=near if approvals == 1 else None)
    if approvals == 1:
        return effect
    start = f"One of {approvals} approvals that it takes; with the last: "
    options = (replace(one, line=f"{start}{one.line[:1].lower()}{one.line[1:]}") for one in effect.options)
    return replace(effect, options=tuple(options), several=True)


def _effect(
    item: PendingMemory,
    answer: ValidationResult | None,
    conflict: Memory | None,
    policy: Policy,
    now: datetime,
    *,
    near: str | None,
) -> Effect:
    if item.status is not ReviewStatus.PENDING:
        return Effect((), "", "")
    blocked = _blocked(item, answer, now)
    if blocked or answer is None:
        return Effect((), "", blocked)
    if item.removal_of is not None:
        return Effect((Option("Approve the removal", _removes(item.removal_of, answer), None),), "", "")
    active = conflict if conflict is not None and conflict.status is MemoryStatus.ACTIVE else None
    recorded = None if active is None else active.id
    stored = Neighbours(items=tuple(_neighbours(active)))
    over = _memory_at_place(answer)
    written_over = recorded if over is not None and over.id == recorded else None
    settled = check_conflicts(
        item.content, stored, policy, supersede=None, recorded=recorded, at_place=written_over
    )
    if isinstance(settled, ApprovalRefused) and settled.code != "conflict_unresolved":
        return Effect((), "", settled.message)
    options: tuple[Option, ...] = (Option("Approve", f"{_stores(answer)}.", None),)
    if active is None and near is not None and answer.evidence.claim.delivery is None:
        options = (
            Option("Approve and replace", f"{_stores(answer)}, in place of {near}.", True, near),
            Option("Approve and keep both", f"{_stores(answer)}, and keeps {near} too.", False),
        )
    elif active is not None:
        options = (
            Option("Approve and replace", f"{_stores(answer)}, in place of {active.id}.", True),
            Option("Approve and keep both", f"{_stores(answer)}, and keeps {active.id} too.", False),
        )
    if written_over is not None:
        options = options[:1]
    found = any(isinstance(reading, Found) for reading in answer.evidence.sources)
    return Effect(options, "Its sources are looked at again first." if found else "", "")


def _blocked(item: PendingMemory, answer: ValidationResult | None, now: datetime) -> str:
    if item.expires_at <= now:
        return "Its time is over: it can be neither approved nor rejected any more."
    if answer is None:
        return "Its decision cannot be read, so it cannot be approved. Reject it, or ask whoever runs the service."
    over = horizon_problem(answer.evidence.claim.validity_horizon, now)
    return "" if over is None else over.message


def _neighbours(memory: Memory | None) -> Iterable[Neighbour]:
    if memory is not None:
        yield Neighbour(kind=ItemKind.MEMORY, id=memory.id, content=memory.content)


def _stores(answer: ValidationResult) -> str:
    evidence = answer.evidence
    confidence = confidence_of(evidence.label, evidence.confidence_score, vouched=True)
    horizon = evidence.claim.validity_horizon
    until = "" if horizon is None else f" until {horizon:%Y-%m-%d}"
    return f"Stores it as {LABELS[evidence.label]} of {confidence.value} confidence that you vouch for{until}"


def _memory_at_place(answer: ValidationResult) -> Neighbour | None:
    """The memory that was found where the claim is to be written, or from where something is to go."""
    found = answer.evidence.at_place
    return None if found is None else found.memory


def _removes(name: str, answer: ValidationResult) -> str:
    known = _memory_at_place(answer)
    sink, _, place = (plain_line(part, _MOST_PLACE) for part in name.partition(" "))
    if sink == OWN_SINK:
        return f"Retracts {place}. This cannot be taken back."
    retracts = "" if known is None else f", and retracts {known.id}"
    return f"Has {place} removed from {sink}{retracts}. This cannot be taken back."
