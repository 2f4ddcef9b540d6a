"""From what the gate answers to what a model is shown. Pure.

Claims, excerpts, notes and titles are texts of others. Characters that nobody would see, in which instructions to a
model can be hidden, are given by their names, as on the review pages, and every text has an end.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from vouchgate.client import DocumentReport, OwnPending, Page, next_step
from vouchgate.client.models import DocumentClaim
from vouchgate.ingest.claims.decision import Evidence, ValidationResult
from vouchgate.ingest.claims.memory import Memory
from vouchgate.ingest.claims.source import Found, SourceReading
from vouchgate.ingest.corroboration.history import Corroborated, Outcome
from vouchgate.ingest.policy import MAX_CITATIONS, MAX_CONTENT_CHARACTERS
from vouchgate.mcp.tools import (
    MOST_CLAIMS,
    SHOWN_CHARACTERS,
    Checked,
    CitedSource,
    CorroboratedClaim,
    FoundMemories,
    FoundMemory,
    GatedClaim,
    GatedDocument,
    MemoryEvidence,
    PendingClaim,
    PendingClaims,
    ReadCitation,
    Saved,
    WeighedSource,
)
from vouchgate.review.pages.wording.text import UNSEEN, pieces

DECISION = "vouchgate/decision"  # the key of a decision in `_meta`

_SENTENCE = 500  # characters of a reason, a finding's detail or a note
_EXCERPT = 400  # of what a source says
_NAME = 300  # of an id, a citation or a title
_MOST_CHECKS = 20
_MOST_SOURCES = 5  # of one claim of a document
_GRAVEST = ("FALSE", "BROKEN_CITATION", "UNKNOWN", "PARTIAL", "UNCITED")
_MOST_UNSEEN = 40  # named in one text; of the rest there is only the number


def visible_text(given: str, most: int) -> str:
    """A text of others, lines and all: what cannot be seen is named as in `⟨U+202E⟩`, what is too long ends in …"""
    shown = "".join(
        f"⟨{piece.text}⟩" if UNSEEN in piece.marks else piece.text
        for piece in pieces(given[:most].replace("\r\n", "\n"), most=_MOST_UNSEEN)
    )
    return shown if len(given) <= most else shown + "…"


def _visible_or_none(given: str | None, most: int) -> str | None:
    return None if given is None else visible_text(given, most)


def _checks(failed: Iterable[str]) -> list[str]:
    return [visible_text(check, _SENTENCE) for check in list(failed)[:_MOST_CHECKS]]


def _rejected_before(verdict: ValidationResult) -> str | None:
    found = verdict.rejected_before
    return None if found is None else visible_text(found.reason, _SENTENCE)


def saved_result(verdict: ValidationResult, asked: OwnPending | None = None) -> Saved:
    """What became of a claim that was sent to be kept; `asked` is the waiting claim that it repeats, of this agent."""
    step = None if asked is None else _visible_or_none(asked.next_step, 2 * _SENTENCE)
    return Saved(
        outcome=verdict.outcome,
        reason=visible_text(verdict.reason, _SENTENCE),
        next_step=step or next_step(verdict),
        memory_id=verdict.memory_id,
        queue_id=verdict.queue_id,
        decision_id=verdict.decision_id,
        conflicting_memory_id=verdict.conflicting_memory_id,
        checks_failed=_checks(verdict.checks_failed),
        rejected_before=_rejected_before(verdict),
    )


def checked_result(verdict: ValidationResult) -> Checked:
    """What would become of a claim."""
    return Checked(
        outcome_if_saved=verdict.outcome,
        reason=visible_text(verdict.reason, _SENTENCE),
        next_step=next_step(verdict),
        conflicting_memory_id=verdict.conflicting_memory_id,
        checks_failed=_checks(verdict.checks_failed),
        rejected_before=_rejected_before(verdict),
    )


def decision_metadata(verdict: ValidationResult) -> dict[str, Any]:
    """The decision for programs, for `_meta`: without any text of the claim."""
    about = {
        "decision_id": verdict.decision_id,
        "tier": verdict.tier.value,
        "outcome": verdict.outcome.value,
        "rule": verdict.rule,
        "policy_digest": verdict.policy_digest,
        "memory_id": verdict.memory_id,
        "queue_id": verdict.queue_id,
    } | ({} if verdict.held is None else {"held": verdict.held})
    return {DECISION: about}


def corroborated_result(found: Corroborated) -> CorroboratedClaim:
    """What sources that the model brought say together."""
    return CorroboratedClaim(
        outcome=found.outcome.value if isinstance(found.outcome, Outcome) else found.outcome,
        label=found.label,
        why=visible_text(found.why, _SENTENCE),
        sources=[
            WeighedSource(
                stance=hit.stance,
                weight=hit.weight,
                group=hit.group,
                quotation=visible_text(hit.quotation, _EXCERPT),
            )
            for hit in found.hits
        ],
    )


def gated_result(report: DocumentReport) -> GatedDocument:
    """Whether a document holds up, and what in it does not yet, the gravest first."""
    claims = [claim for document in report.documents for claim in document.claims]
    open_ = sorted(
        (claim for claim in claims if claim.verdict in _GRAVEST),
        key=lambda claim: _GRAVEST.index(claim.verdict),
    )
    return GatedDocument(
        passed=report.passed,
        reasons=[visible_text(reason, _SENTENCE) for reason in report.reasons],
        counts=report.counts,
        claims=[_gated_claim(claim) for claim in open_[:MOST_CLAIMS]],
        not_shown=max(0, len(open_) - MOST_CLAIMS),
    )


def _gated_claim(claim: DocumentClaim) -> GatedClaim:
    return GatedClaim(
        line=claim.line,
        verdict=claim.verdict,
        text=visible_text(claim.text, _EXCERPT),
        message=visible_text(claim.message, _SENTENCE),
        missing=[visible_text(word, 40) for word in claim.missing[:_MOST_CHECKS]],
        sources=[
            ReadCitation(
                citation=visible_text(source.cited, _NAME),
                state=visible_text(source.state, _NAME),
                stance=source.stance,
                quotation=visible_text(source.quotation, _EXCERPT),
            )
            for source in claim.sources[:_MOST_SOURCES]
        ],
    )


def memories_result(page: Page[Memory]) -> FoundMemories:
    """A page of memories."""
    return FoundMemories(memories=[_memory_result(memory) for memory in page.items], next_cursor=page.next)


def _memory_result(memory: Memory) -> FoundMemory:
    return FoundMemory(
        memory_id=memory.id,
        text=visible_text(memory.content, SHOWN_CHARACTERS),
        memory_type=memory.memory_type,
        label=memory.label,
        confidence=memory.confidence,
        source_id=_visible_or_none(memory.source_id, _NAME),
        created_at=memory.created_at,
        stale=_visible_or_none(memory.stale_reason, _SENTENCE),
    )


def evidence_result(memory: Memory, known: Evidence) -> MemoryEvidence:
    """A memory and what it rests on."""
    return MemoryEvidence(
        memory_id=memory.id,
        text=visible_text(memory.content, MAX_CONTENT_CHARACTERS),
        memory_type=memory.memory_type,
        status=memory.status,
        label=memory.label,
        confidence=memory.confidence,
        source_id=_visible_or_none(memory.source_id, _NAME),
        approved_by_owner=memory.approved_by is not None,
        decided_at=known.capture_time,
        decision_id=memory.decision_id,
        stale=_visible_or_none(memory.stale_reason, _SENTENCE),
        sources=[_source_result(reading) for reading in known.sources[:MAX_CITATIONS]],
    )


def _source_result(reading: SourceReading) -> CitedSource:
    read = reading if isinstance(reading, Found) else None
    return CitedSource(
        citation=visible_text(reading.citation.value, _NAME),
        found=reading.kind,
        detail=visible_text(reading.detail, _SENTENCE),
        source_id=None if read is None else visible_text(read.source_id, _NAME),
        standing=None if read is None else read.standing,
        title=None if read is None else visible_text(read.title, _NAME) or None,
        excerpt=None if read is None else visible_text(read.excerpt, _EXCERPT) or None,
    )


def pending_result(page: Page[OwnPending]) -> PendingClaims:
    """A page of the caller's own claims."""
    return PendingClaims(claims=[_pending_item(item) for item in page.items], next_cursor=page.next)


def _pending_item(item: OwnPending) -> PendingClaim:
    return PendingClaim(
        queue_id=item.queue_id,
        text=visible_text(item.content, SHOWN_CHARACTERS),
        memory_type=item.memory_type,
        status=item.status,
        reason=visible_text(item.reason, _SENTENCE),
        created_at=item.created_at,
        decided_at=item.decided_at,
        note=_visible_or_none(item.note, _SENTENCE),
        memory_id=item.memory_id,
        question=_visible_or_none(item.question, _SENTENCE),
        next_step=_visible_or_none(item.next_step, 2 * _SENTENCE),
    )
