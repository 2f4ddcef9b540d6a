"""Waiting items with the answers that the pipeline gives for them, for tests of what is shown of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from vouchgate.ingest.checks.hedge import HedgeDetector
from vouchgate.ingest.claims.claim import Claim, MemoryType, Source
from vouchgate.ingest.claims.decision import Confidence, Label, ValidationResult
from vouchgate.ingest.claims.likeness import (
    DedupFacts,
    ItemKind,
    Neighbour,
    Neighbours,
    Paraphrase,
    Paraphrases,
)
from vouchgate.ingest.claims.memory import Memory, MemoryStatus
from vouchgate.ingest.claims.source import Found, Missing, SourceReading, Standing, Unreachable
from vouchgate.ingest.claims.waiting import PendingMemory, ReviewStatus
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.pipeline import Inspected, examine, inspect
from vouchgate.ingest.policy import Policy
from vouchgate.review.pages.item import ItemView, item_view
from vouchgate.review.pages.source import SourceView
from vouchgate.review.pages.wording.text import Pieces

POLICY = load_policy()
DETECTOR = HedgeDetector(POLICY.lexicon)
SENT = datetime(2026, 3, 1, 12, tzinfo=UTC)
NOW = SENT + timedelta(days=3)

STORED = "the export job writes 5 lines for every finished invoice of the day into the ledger"
CHANGED = "the export job writes 6 lines for every finished invoice of the day into the ledger"
PAGE = "https://docs.example.com/shipping"
PAGE_CLAIM = f"Orders placed by 18:00 leave the warehouse the same day, as {PAGE} says."
PAGE_TEXT = (
    "We ship parcels and letters to every country of the union. " * 8
    + "Orders placed by 14:00 leave the warehouse the same day. "
    + "Returns are free of charge within thirty days of delivery. " * 8
)


def policy_with(**changes: object) -> Policy:
    return Policy.model_validate(POLICY.model_dump() | changes)


LOW = policy_with(duplicate_threshold=0.8)


def text(shown: Pieces) -> str:
    return "".join(piece.text for piece in shown)


def marked(shown: Pieces, mark: str) -> list[str]:
    return [piece.text for piece in shown if mark in piece.marks]


def read(inspected: Inspected, **more: Any) -> list[SourceReading]:
    """Every cited thing, found and in force."""
    base = {"source_id": "ADR-007", "standing": Standing.IN_FORCE, "detail": "It is there.", "official": True}
    return [
        Found.model_validate({"excerpt": inspected.claim.content} | base | {"citation": cited} | more)
        for cited in inspected.cited()
    ]


def claim_of(content: str, **more: Any) -> Claim:
    base = {"content": content, "memory_type": MemoryType.FACT, "owner_id": "ada"}
    source = {"source": Source.AI_SYNTHESIS, "asserted_source": Source.AI_SYNTHESIS}
    return Claim.model_validate(base | source | more)


def answer_of(
    claim: Claim,
    readings: list[SourceReading] | None = None,
    dedup: DedupFacts | None = None,
    policy: Policy = POLICY,
    paraphrases: Paraphrases | None = None,
) -> ValidationResult:
    inspected = inspect(claim, DETECTOR)
    known = read(inspected) if readings is None else readings
    examined = examine(inspected, known, policy, SENT).knowing(
        dedup=Neighbours() if dedup is None else dedup, paraphrases=paraphrases
    )
    decision = examined.decide()
    return examined.answer(decision, decision_id="dec_1", memory_id=None, queue_id="rev_1", took_ms=1.0)


def item_of(answer: ValidationResult, **more: Any) -> PendingMemory:
    claim = answer.evidence.claim
    base = {
        "id": "rev_1",
        "owner_id": claim.owner_id,
        "memory_type": claim.memory_type,
        "content": claim.content,
        "source": claim.source,
        "reason": answer.reason,
        "status": ReviewStatus.PENDING,
        "version": 1,
        "seen": 1,
        "created_at": SENT,
        "expires_at": SENT + timedelta(days=30),
        "decision_id": "dec_1",
        "submitted_by": "tok_1",
        "conflicting_memory_id": answer.conflicting_memory_id,
        "validity_horizon": claim.validity_horizon,
        "rule": answer.rule,
        "priority_at": SENT,
        "metadata": claim.metadata,
    }
    return PendingMemory.model_validate(base | more)


def view_of(answer: ValidationResult | None, item: PendingMemory | None = None, **more: Any) -> ItemView:
    given: dict[str, Any] = {
        "conflict": None,
        "similar": (),
        "sender": "first agent",
        "next_check": None,
        "rejected": None,
        "policy": POLICY,
        "now": NOW,
        "undo_until": None,
    }
    if item is None:
        assert answer is not None
        item = item_of(answer)
    return item_view(item, answer, **(given | more))


def memory_of(content: str = STORED, **more: Any) -> Memory:
    base = {
        "id": "mem_1",
        "owner_id": "ada",
        "memory_type": MemoryType.FACT,
        "content": content,
        "source": Source.USER,
        "status": MemoryStatus.ACTIVE,
        "confidence": Confidence.MEDIUM,
        "confidence_score": None,
        "label": Label.INFERENCE,
        "source_id": None,
        "created_at": SENT - timedelta(days=10),
        "validity_horizon": None,
        "decision_id": "dec_0",
    }
    return Memory.model_validate(base | more)


def near(kind: ItemKind = ItemKind.MEMORY) -> Neighbours:
    return Neighbours(items=(Neighbour(kind=kind, id="mem_1", content=STORED),))


def missing(content: str, **more: Any) -> ValidationResult:
    claim = claim_of(content)
    cited = inspect(claim, DETECTOR).cited()
    return answer_of(claim, [Missing(citation=c, detail="No ADR-999 exists.", **more) for c in cited])


def unreachable(content: str, code: str = "timeout", **more: Any) -> ValidationResult:
    claim = claim_of(content)
    cited = inspect(claim, DETECTOR).cited()
    readings = [Unreachable(citation=c, code=code, detail="It did not answer.", **more) for c in cited]
    return answer_of(claim, list(readings))


def page(content: str = PAGE_CLAIM, *, policy: Policy = POLICY, **more: Any) -> ValidationResult:
    claim = claim_of(content)
    base = {"source_id": PAGE, "official": False, "site": "example.com", "excerpt": PAGE_TEXT, "status": 200}
    return answer_of(claim, read(inspect(claim, DETECTOR), **(base | more)), policy=policy)


def only_source(view: ItemView) -> SourceView:
    (source,) = view.sources
    return source


VECTOR = policy_with(dedup_method="vector")


def paraphrase() -> ValidationResult:
    item = Paraphrase(kind=ItemKind.MEMORY, id="mem_1", content="Invoices are exported nightly", cosine=0.97)
    found = Paraphrases(model="m:M", items=(item,))
    return answer_of(
        claim_of("The ledger gets every invoice at night"),
        policy=VECTOR,
        paraphrases=found,
    )


UNCLEAR = "Public endpoints carry their version in the path, says ADR-0007."
