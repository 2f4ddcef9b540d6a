"""What auditors see of claims, decided: a list of decisions, one claim from first to last, and entries of the log."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from vouchgate.ingest.claims.decision import Tier, ValidationResult
from vouchgate.ingest.claims.log import Action, LogEntry
from vouchgate.ingest.policy import Policy
from vouchgate.review.pages.delivery import DeliveryView, delivery_views
from vouchgate.review.pages.findings import FindingView, deciding, finding_views
from vouchgate.review.pages.item import Fact, facts_of
from vouchgate.review.pages.source import SourceView, source_views
from vouchgate.review.pages.wording.text import Pieces, opening_pieces, pieces, plain_line
from vouchgate.review.pages.wording.times import Moment, moment
from vouchgate.review.reading import parse_decision
from vouchgate.storage.log.story import Story
from vouchgate.storage.outgoing.deliveries import DeliveryRecord

PATH = "/review/audit"
HAS_STORY = re.compile(r"(?:dec|mem|rev)_[0-9a-f]{32}")
_HEADINGS = {
    Action.CLAIM_RECHECKED: "Checked again",
    Action.CLAIM_PROMOTED: "Checked again",
    Action.REVIEW_EDITED: "As its reviewer wrote it",
}
_UNREAD = {False: "The record of this decision cannot be shown.", True: "It was erased."}
_MARKS = {Tier.STORED: "good", Tier.QUEUED: "doubt", Tier.BLOCKED: "bad"}


@dataclass(frozen=True, slots=True)
class FoundRow:
    """One decision in the list."""

    id: str
    owner: Pieces
    claim: Pieces
    tier: str
    mark: str
    rule: str
    by: Pieces
    when: Moment


def found_rows(rows: Iterable[Any], names: Mapping[str, str], now: datetime) -> list[FoundRow]:
    """Rows of decisions as a list shows them; `names` has what tokens are called."""
    found = []
    for row in rows:
        answer = parse_decision(row.answer)
        found.append(
            FoundRow(
                row.id,
                pieces(row.owner_id),
                opening_pieces(answer.evidence.claim.content) if answer is not None else (),
                Tier(row.tier).name.lower(),
                _MARKS[Tier(row.tier)],
                str(row.rule),
                pieces(names.get(row.principal_id, row.principal_id)),
                moment(row.created_at, now),
            )
        )
    return found


@dataclass(frozen=True, slots=True)
class EntryRow:
    """One entry of the log: who did what to which thing, when."""

    seq: int
    action: str
    by: Pieces
    subject: Pieces
    href: str  # of the story of what it is about; empty: it has none
    when: Moment
    digest: str


def entry_rows(entries: Iterable[LogEntry], names: Mapping[str, str], now: datetime) -> list[EntryRow]:
    """Entries as pages show them."""
    return [
        EntryRow(
            entry.seq,
            entry.action.value,
            pieces(names.get(entry.actor, entry.actor)),
            pieces(entry.subject_id),
            f"{PATH}/{entry.subject_id}" if HAS_STORY.fullmatch(entry.subject_id) else "",
            moment(entry.at, now),
            entry.digest,
        )
        for entry in entries
    ]


@dataclass(frozen=True, slots=True)
class DecisionView:
    """One decision of a story, with the evidence as it was. `claim` is empty, and `reason` says so, where the answer
    cannot be read."""

    id: str
    heading: str
    when: Moment
    tier: str
    mark: str
    rule: str
    reason: Pieces
    claim: Pieces
    policy: str
    sources: tuple[SourceView, ...]
    findings: tuple[FindingView, ...]
    metadata: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class Said:
    """What a person said about it: a vote, a question, a note."""

    who: Pieces
    words: str
    text: Pieces


@dataclass(frozen=True, slots=True)
class StoryView:
    """One claim from first to last. `became` is what there is of it now."""

    owner: Pieces
    title: str
    became: tuple[str, ...]
    decisions: tuple[DecisionView, ...]
    said: tuple[Said, ...]
    entries: tuple[EntryRow, ...]
    deliveries: tuple[DeliveryView, ...]


def story_view(
    story: Story,
    *,
    names: Mapping[str, str],
    policy: Policy,
    deliveries: Sequence[DeliveryRecord],
    now: datetime,
) -> StoryView:
    """A story as its page shows it."""
    headings = {entry.subject_id: _HEADINGS.get(entry.action, "Decided") for entry in story.entries}
    decisions = tuple(_decision(row, headings.get(row.id, "Decided"), policy, now) for row in story.decisions)
    text = story.memory.content if story.memory is not None else ""
    text = text or (story.item.content if story.item is not None else "")
    return StoryView(
        owner=pieces(story.owner_id),
        title=plain_line(text, 80) or story.decisions[0].id,
        became=tuple(_became(story)),
        decisions=decisions,
        said=tuple(_said(story, names)),
        entries=tuple(entry_rows(story.entries, names, now)),
        deliveries=delivery_views(deliveries, now),
    )


def _decision(row: Any, heading: str, policy: Policy, now: datetime) -> DecisionView:
    answer = parse_decision(row.answer)
    return DecisionView(
        id=row.id,
        heading=heading,
        when=moment(row.created_at, now),
        tier=Tier(row.tier).name.lower(),
        mark=_MARKS[Tier(row.tier)],
        rule=str(row.rule),
        reason=pieces(_UNREAD[not row.answer] if answer is None else answer.reason),
        claim=() if answer is None else pieces(answer.evidence.claim.content),
        policy=row.policy_digest,
        sources=() if answer is None else source_views(answer, policy, now),
        findings=() if answer is None else _findings(answer, policy),
        metadata=() if answer is None else facts_of(answer.evidence.metadata),
    )


def _findings(answer: ValidationResult, policy: Policy) -> tuple[FindingView, ...]:
    """Those that no source of it is shown with."""
    sources = {reading.citation.key for reading in answer.evidence.sources}
    rest = [f for f in answer.findings if f.citation is None or f.citation.key not in sources]
    return finding_views(rest, deciding(answer, policy))


def _became(story: Story) -> Iterable[str]:
    if story.item is not None:
        yield f"Item {story.item.id}: {story.item.status.value.replace('_', ' ')}."
    memory = story.memory
    if memory is None:
        gone = any(not row.answer for row in story.decisions)
        yield "What came of it was erased." if gone else "No memory came of it."
        return
    yield f"Memory {memory.id}: {memory.status.value}, {memory.label.value}, {memory.confidence.value} confidence."
    if memory.stale_reason:
        yield f"Stale: {plain_line(memory.stale_reason, 300)}"
    if memory.lowered_reason:
        yield f"Lowered: {plain_line(memory.lowered_reason, 300)}"
    if memory.superseded_by:
        yield f"Replaced by memory {memory.superseded_by}."


def _said(story: Story, names: Mapping[str, str]) -> Iterable[Said]:
    for vote in story.votes:
        words = "approved" if vote.verdict == "approve" else "objected"
        yield Said(pieces(vote.name or vote.person_id), words, pieces(vote.note or ""))
    item, memory = story.item, story.memory
    if item is not None and item.question:
        yield Said((), "asked the agent", pieces(item.question))
    if item is not None and item.decided_by:
        yield Said(
            pieces(names.get(item.decided_by, item.decided_by)), item.status.value, pieces(item.note or "")
        )
    if memory is not None and memory.retracted_reason:
        yield Said((), "took it out of force", pieces(memory.retracted_reason))
