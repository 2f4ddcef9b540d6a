"""The earlier claims that a waiting one is shown beside: the one it conflicts with, and what is near it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from vouchgate.ingest.checks import dedup
from vouchgate.ingest.claims.claim import Finding
from vouchgate.ingest.claims.decision import Label, ValidationResult
from vouchgate.ingest.claims.likeness import ItemKind, Neighbours, Paraphrases, SimilarMemory
from vouchgate.ingest.claims.memory import Memory, MemoryStatus
from vouchgate.ingest.dedup import paraphrase
from vouchgate.ingest.dedup.compare import changed_values
from vouchgate.ingest.policy import Policy
from vouchgate.review.approval import says_nearly
from vouchgate.review.pages.wording.diff import DiffView, word_diff
from vouchgate.review.pages.wording.text import Pieces, pieces
from vouchgate.review.pages.wording.times import Moment, moment

LABELS = {Label.FACT: "a fact", Label.INFERENCE: "an inference"}
_WAITS = "It waits for review too, and meets this one when its turn comes."
_OVER = {
    MemoryStatus.SUPERSEDED: "It has been replaced since.",
    MemoryStatus.RETRACTED: "Its owner has withdrawn it since.",
    MemoryStatus.EXPIRED: "Its time is over.",
}


@dataclass(frozen=True, slots=True)
class ConflictView:
    """The earlier claim that this one conflicts with, or may say the same as (`paraphrase`).

    `kind` is `memory`, or `pending` for an item that waits too. `status` is how that memory stands now; `pending` for
    an item, `unknown` when it cannot be found. `changed` are the words that differ. In `diff` the old text is the
    earlier one.
    """

    id: str
    kind: str
    paraphrase: bool
    status: str
    note: str
    similarity: str
    changed: tuple[Pieces, ...]
    text: Pieces
    diff: DiffView
    stored: Moment | None


@dataclass(frozen=True, slots=True)
class SimilarView:
    """A stored memory near the claim, which says something else. In `diff` the old text is the memory's; `close`: a
    word or two is all that one of them has and the other has not, so it is looked at before the claim is stored too."""

    id: str
    similarity: str
    text: Pieces
    diff: DiffView
    close: bool = False


@dataclass(frozen=True, slots=True)
class EarlierClaim:
    """An earlier claim: its text, and the words in which the waiting one differs, as the dedup check names them."""

    view: ConflictView
    content: str
    changed: tuple[str, ...]


def earlier_claim(
    content: str, answer: ValidationResult, conflict: Memory | None, policy: Policy, now: datetime
) -> EarlierClaim | None:
    """The earlier claim that the dedup check of an answer found; None when it found none, or its text is nowhere.

    `conflict` is the memory that an approval is held against now: it counts even where the check says nothing of it.
    """
    finding = next((f for f in answer.findings if f.check == dedup.CHECK and "id" in f.facts), None)
    if conflict is not None and conflict.id not in (answer.conflicting_memory_id, _id(finding)):
        finding = None  # the memory was stored since
    named = _id(finding)
    memory = conflict if conflict is not None and named in ("", conflict.id) else None
    text = memory.content if memory is not None else _recorded(answer, named)
    if text is None:
        return None
    pending = finding is not None and finding.facts.get("kind") == ItemKind.PENDING
    alike = finding is not None and finding.code == paraphrase.CODE
    changed = () if alike else changed_values(content, text, policy.values)
    view = ConflictView(
        id=named if memory is None else memory.id,
        kind=(ItemKind.PENDING if pending else ItemKind.MEMORY).value,
        paraphrase=alike,
        status="pending" if pending else "unknown" if memory is None else memory.status.value,
        note=_WAITS if pending else _note(memory, gone=named == answer.conflicting_memory_id),
        similarity="" if finding is None else _similarity(finding),
        changed=tuple(pieces(word) for word in changed),
        text=pieces(text),
        diff=word_diff(text, content, changed),
        stored=None if memory is None else moment(memory.created_at, now),
    )
    return EarlierClaim(view, text, changed)


def similar_views(content: str, similar: Sequence[SimilarMemory]) -> Iterator[SimilarView]:
    """What is near the claim, in the order given."""
    for near in similar:
        diff = word_diff(near.content, content)
        close = says_nearly(content, near.content)
        yield SimilarView(near.memory_id, percent(near.similarity), pieces(near.content), diff, close)


def percent(share: float) -> str:
    """A share with four places in whole percent, rounded down: what is below a threshold is shown below it."""
    return f"{round(share * 10_000) // 100} %"


def _recorded(answer: ValidationResult, named: str) -> str | None:
    """The text of an earlier claim as the decision's evidence has it."""
    evidence = answer.evidence
    texts: dict[str, str] = {}
    if isinstance(evidence.paraphrases, Paraphrases):
        texts |= {one.id: one.content for one in evidence.paraphrases.items}
    if isinstance(evidence.dedup, Neighbours):
        texts |= {one.id: one.content for one in evidence.dedup.items}
    return texts.get(named)


def _id(finding: Finding | None) -> str:
    """Whom a finding of the dedup check is about."""
    return "" if finding is None else str(finding.facts["id"])


def _similarity(finding: Finding) -> str:
    for fact, words in (("similarity", "of the words"), ("cosine", "by meaning")):
        share = finding.facts.get(fact)
        if isinstance(share, (int, float)):
            return f"{percent(share)} {words}"
    return ""


def _note(memory: Memory | None, *, gone: bool) -> str:
    """How a memory stands. Where it was not looked at, all that is known is what it said then."""
    if memory is None:
        return "It cannot be found any more." if gone else "As it was when the claim was sent."
    held = (
        f"Held as {LABELS[memory.label]} of {memory.confidence.value} confidence, from {memory.source.value}."
    )
    return " ".join(filter(None, (held, _OVER.get(memory.status, ""), _stale(memory))))


def _stale(memory: Memory) -> str:
    return "A source of it has gone away or changed." if memory.stale_since is not None else ""
