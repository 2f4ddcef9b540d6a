"""One waiting claim as a page shows it: what it says, why it waits, what it rests on, and what approving will do.

Pure: whatever is shown comes in as a value, the time too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from pydantic import JsonValue

from vouchgate.ingest.checks import dedup, statements
from vouchgate.ingest.claims.claim import Finding, Source
from vouchgate.ingest.claims.decision import Looked, RejectedBefore, Suggested, ValidationResult
from vouchgate.ingest.claims.delivery import DeliveryOp
from vouchgate.ingest.claims.likeness import ItemKind, SimilarMemory
from vouchgate.ingest.claims.memory import Memory
from vouchgate.ingest.claims.source import Stance
from vouchgate.ingest.claims.waiting import PendingMemory, ReviewStatus
from vouchgate.ingest.dedup import paraphrase
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.rules import Rule
from vouchgate.ingest.scoring import priority
from vouchgate.review.pages.claim import Legend, claim_pieces
from vouchgate.review.pages.earlier import (
    ConflictView,
    EarlierClaim,
    SimilarView,
    earlier_claim,
    similar_views,
)
from vouchgate.review.pages.effect import Effect, effect_of
from vouchgate.review.pages.findings import FindingView, deciding, finding_views
from vouchgate.review.pages.source import SourceView, source_views
from vouchgate.review.pages.wording.text import Pieces, pieces, plain_line
from vouchgate.review.pages.wording.times import Moment, moment, moment_or_none

_TITLE = 80  # characters of a claim that stand for all of it


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A document that nobody cited, and that may say so or otherwise."""

    document: str
    says: str
    quotation: str


@dataclass(frozen=True, slots=True)
class RejectedView:
    """The item of the same words that was rejected lately."""

    id: str
    reason: Pieces
    when: Moment


@dataclass(frozen=True, slots=True)
class ItemOutcome:
    """What became of an item that does not wait any more; `undo_words` is empty when that cannot be taken back."""

    status: str
    words: Pieces
    memory_id: str | None
    reason: Pieces
    when: Moment | None
    undo_words: str


@dataclass(frozen=True, slots=True)
class Fact:
    """One entry of the metadata that the agent sent along."""

    name: Pieces
    value: Pieces


@dataclass(frozen=True, slots=True)
class ItemView:
    """One item. A `str` has our own words, numbers and ids; what comes from others is in pieces, but for
    `claim_text`, the claim exactly as sent, which is for an edit box. `waiting` says whether it can be acted on."""

    id: str
    version: int
    status: str
    waiting: bool
    memory_type: str
    title: str
    claim: Pieces
    claim_text: str
    legend: tuple[Legend, ...]
    why: Pieces
    rule: str
    findings: tuple[FindingView, ...]
    sources: tuple[SourceView, ...]
    conflict: ConflictView | None
    similar: tuple[SimilarView, ...]
    similar_note: str
    suggested: tuple[Suggestion, ...]
    looked: tuple[str, ...]  # where the gate looked for what could vouch for it
    waited: str
    created: Moment
    expires: Moment
    seen: int
    sent_by: Pieces
    priority: tuple[str, ...]
    next_check: Moment | None
    valid_until: Moment | None
    rejected: RejectedView | None
    effect: Effect
    metadata: tuple[Fact, ...]
    removal: bool  # it asks for something to go, so there is no text to edit
    became: ItemOutcome | None
    decision_id: str


def item_view(
    item: PendingMemory,
    answer: ValidationResult | None,
    *,
    conflict: Memory | None,
    similar: Sequence[SimilarMemory] | None,
    sender: str | None,
    decider: str | None = None,
    next_check: datetime | None,
    rejected: RejectedBefore | None,
    policy: Policy,
    now: datetime,
    undo_until: datetime | None,
    approvals: int = 1,
) -> ItemView:
    """Everything a page shows of an item.

    `answer` is the decision under which it waits, None when that cannot be read; `conflict` the memory that an
    approval is held against now; `similar` what is stored near it, None when that is not known; `sender` and
    `decider` the names of the tokens that sent it and decided it; `rejected` the rejection of the same words that
    the item names; `undo_until` when its decision can be taken back last, None when it cannot;
    `approvals` how many an approval takes.
    """
    findings = () if answer is None else tuple(_beside_similar(f, similar) for f in answer.findings)
    decided = () if answer is None else deciding(answer, policy)
    earlier = None if answer is None else earlier_claim(item.content, answer, conflict, policy, now)
    claim, legend = _marked(item, findings, earlier)
    waits = item.status is ReviewStatus.PENDING and item.expires_at > now
    like = tuple(similar_views(item.content, similar or ()))
    near = next((one.id for one in like[:1] if one.close), None)
    return ItemView(
        id=item.id,
        version=item.version,
        status=item.status.value,
        waiting=waits,
        memory_type=item.memory_type.value,
        title=plain_line(item.content, _TITLE),
        claim=claim,
        claim_text=item.content,
        legend=legend,
        why=pieces(_explain_wait(item, answer, decided, policy)),
        rule=item.rule,
        findings=finding_views(findings, decided),
        sources=() if answer is None else source_views(answer, policy, now),
        conflict=None if earlier is None else earlier.view,
        similar=like,
        similar_note=_similar_note(similar),
        suggested=() if answer is None else tuple(map(_suggestion, answer.suggested)),
        looked=() if answer is None else tuple(map(_look, answer.looked)),
        waited=_waited(item, now),
        created=moment(item.created_at, now),
        expires=moment(item.expires_at, now),
        seen=item.seen,
        sent_by=pieces(_sent_by(item, answer, sender)),
        priority=tuple(priority.explain(item, policy.queue.head_start_days, now)) if waits else (),
        next_check=moment_or_none(next_check, now) if waits else None,
        valid_until=moment_or_none(item.validity_horizon, now),
        rejected=_rejected(rejected, now),
        effect=effect_of(
            item, answer, conflict, policy, now, near=near if earlier is None else None, approvals=approvals
        ),
        metadata=facts_of(item.metadata | _delivery(answer)),
        removal=item.removal_of is not None,
        became=_item_outcome(item, decider, undo_until, now),
        decision_id=item.decision_id,
    )


def _beside_similar(finding: Finding, similar: Sequence[SimilarMemory] | None) -> Finding:
    """The finding in words that hold beside what is shown as similar: unique is what repeats nothing."""
    if finding.check != dedup.CHECK or finding.code != dedup.UNIQUE.code or not similar:
        return finding
    message = "It repeats nothing that is stored, and no rule finds that it contradicts any of it."
    return finding.model_copy(update={"message": message})


_PLACES = {
    "corpus": "In the folders",
    "repository": "In the repositories",
    "official_api": "At official services",
    "web_search": "On the web",
}


def _look(look: Looked) -> str:
    """Where the gate looked, and what came of it."""
    what = (
        f"{look.found} document{'' if look.found == 1 else 's'} that may speak of it"
        if look.found
        else "nothing"
    )
    place, query = _PLACES.get(look.path, look.path), plain_line(look.query, _TITLE)
    failed = plain_line(look.failure, _TITLE)
    return f"{place}, for “{query}”: {f'not found out. {failed}' if failed else what}"


def _suggestion(found: Suggested) -> Suggestion:
    says = {Stance.STATES: "may state it", Stance.REFUTES: "may say otherwise"}
    return Suggestion(found.citation, says.get(found.stance, "speaks of it"), found.quotation)


def _marked(
    item: PendingMemory, findings: Sequence[Finding], earlier: EarlierClaim | None
) -> tuple[Pieces, tuple[Legend, ...]]:
    """The claim with the deciding words marked, and the legend. Against one that may say the same in other words,
    every word would be."""
    if earlier is None or earlier.view.paraphrase:
        return claim_pieces(item.content, findings, beside=None, changed=())
    return claim_pieces(item.content, findings, beside=earlier.content, changed=earlier.changed)


def _explain_wait(
    item: PendingMemory, answer: ValidationResult | None, decided: Sequence[Finding], policy: Policy
) -> str:
    """Why it waits, in a sentence or two. What was written on the item since its decision is newer, and counts."""
    if (
        answer is None
        or answer.rule != item.rule
        or not item.reason.startswith(answer.reason.removesuffix("."))
    ):
        return item.reason
    more = item.reason.removeprefix(answer.reason.removesuffix(".")).removeprefix(".").strip()
    said = " ".join(finding.message for finding in decided)
    because = _explain_rule(item, said, decided, answer, policy)
    return " ".join(filter(None, (because, more))) if because else item.reason


def _explain_rule(
    item: PendingMemory, said: str, decided: Sequence[Finding], answer: ValidationResult, policy: Policy
) -> str:
    """The rule in the words of a person, with what the findings `said` that decided; empty when they do not tell."""
    if item.rule == Rule.UNGROUNDED:
        cites = any(finding.citation is not None for finding in decided)
        return said if cites else _ungrounded(answer, policy)
    if not decided:
        return ""
    match item.rule:
        case Rule.CONFLICT:
            kind = decided[0].facts.get("kind")
            what = "a claim that waits too" if kind == ItemKind.PENDING else "a stored memory"
            changed = decided[0].facts.get("changed")
            words = ", ".join(map(str, changed)) if isinstance(changed, list) else ""
            return f"It says nearly the same as {what}, with other words: {words}."
        case Rule.DEDUP_UNKNOWN if decided[0].code != paraphrase.CODE:
            return f"It could not be found out whether the same is stored already. {said}"
        case Rule.CITATION_UNKNOWN:
            return f"What it cites could not be checked yet. {said}"
        case _:
            return said


def _ungrounded(answer: ValidationResult, policy: Policy) -> str:
    """Why nothing vouches for a claim against which nothing was found."""
    cited = any(finding.citation is not None for finding in answer.findings)
    score = answer.evidence.confidence_score
    if not cited:
        return "Nothing but the agent vouches for it: it cites nothing that can be checked."
    if score is not None and score < policy.confidence_floor:
        needed = policy.confidence_floor
        return f"What it cites counts too little: its score is {score:.2f}, and {needed:.2f} is needed."
    if answer.evidence.claim.source is Source.AI_SYNTHESIS and not policy.auto_approve_ai_synthesis:
        return (
            "It cites what was found, and the policy leaves what a model concluded to its owner all the same."
        )
    said = (f for f in answer.findings if f.check == statements.CHECK and f.code in ("spoken_of", "unlisted"))
    return next((finding.message for finding in said), "")


def _similar_note(similar: Sequence[SimilarMemory] | None) -> str:
    if similar is None:
        return "What is stored near it is not known."
    return "" if similar else "Nothing near it is stored."


def _waited(item: PendingMemory, now: datetime) -> str:
    waits = item.status is ReviewStatus.PENDING
    until = now if item.decided_at is None else item.decided_at
    time = until - item.created_at
    parts = [f"{'waits' if waits else 'waited'} {priority.span(time)}"]
    if waits and time < timedelta(minutes=1):
        parts = ["just sent"]
    if waits:
        left = item.expires_at - now
        parts.append(
            f"expires in {priority.span_left(left)}" if item.expires_at > now else "its time is over"
        )
    if item.seen > 1:
        parts.append(f"sent {item.seen} times")
    return ", ".join(parts)


def _sent_by(item: PendingMemory, answer: ValidationResult | None, sender: str | None) -> str:
    who = f"token {item.submitted_by}" if sender is None else f"agent “{sender}”"
    asserted = item.source if answer is None else answer.evidence.claim.asserted_source
    if asserted is item.source:
        return f"{who}, as {item.source.value}"
    return f"{who}, as {item.source.value}: it said {asserted.value}, which it may not"


def _rejected(before: RejectedBefore | None, now: datetime) -> RejectedView | None:
    if before is None:
        return None
    return RejectedView(before.queue_id, pieces(before.reason), moment(before.rejected_at, now))


def _item_outcome(
    item: PendingMemory, decider: str | None, undo_until: datetime | None, now: datetime
) -> ItemOutcome | None:
    who = decider or item.decided_by
    by = f" by {who}" if who else ""
    match item.status:
        case ReviewStatus.PENDING:
            return None
        case ReviewStatus.APPROVED:
            removed = item.removal_of is not None
            words = f"Approved{by}: {'it is to be removed.' if removed else 'it is a memory now.'}"
        case ReviewStatus.REJECTED:
            words = f"Rejected{by}: it will not be stored."
        case ReviewStatus.EXPIRED:
            words = "Its time ran out, and nobody decided."
        case ReviewStatus.LET_GO:
            words = f"Let go{by}: it could not be decided well."
        case ReviewStatus.PROMOTED:
            words = "Stored by itself: what it cites was found when it was looked at again."
    undo = undo_until is not None and undo_until > now
    return ItemOutcome(
        status=item.status.value,
        words=pieces(words),
        memory_id=item.memory_id,
        reason=() if item.note is None else pieces(item.note),
        when=moment_or_none(item.decided_at, now),
        undo_words=f"can be taken back for {priority.span_left(undo_until - now)}"
        if undo and undo_until
        else "",
    )


def _delivery(answer: ValidationResult | None) -> dict[str, JsonValue]:
    """Where the claim is to be written, by the names under which it is shown."""
    delivery = None if answer is None else answer.evidence.claim.delivery
    if delivery is None:
        return {}
    where = "Removed from" if delivery.op is DeliveryOp.REMOVE else "Written to"
    shown: dict[str, JsonValue] = {where: f"{delivery.sink}: {delivery.place}"}
    return shown | {f"{delivery.sink}: {name}": value for name, value in delivery.data.items()}


def facts_of(metadata: Mapping[str, JsonValue]) -> tuple[Fact, ...]:
    """What was sent along with a claim, by name; values that are no text as JSON. Whole: who approves the
    claim approves what came with it."""
    found = []
    for name, value in sorted(metadata.items()):
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
        found.append(Fact(pieces(name), pieces(text)))
    return tuple(found)
