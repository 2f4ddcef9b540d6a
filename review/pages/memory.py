"""The pages of stored memories, decided: which filters, which rows, and one memory with its evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from vouchgate.ingest.claims.claim import MemoryType
from vouchgate.ingest.claims.decision import Confidence, Label, ValidationResult
from vouchgate.ingest.claims.impact import Impact
from vouchgate.ingest.claims.memory import Memory, MemoryStatus
from vouchgate.ingest.policy import Policy
from vouchgate.review.pages.delivery import DeliveryView, delivery_views
from vouchgate.review.pages.findings import FindingView, deciding, finding_views
from vouchgate.review.pages.item import Fact, facts_of
from vouchgate.review.pages.source import SourceView, source_views
from vouchgate.review.pages.wording.text import Piece, opening_pieces, pieces, plain_line
from vouchgate.review.pages.wording.times import Moment, moment, moment_or_none
from vouchgate.storage.outgoing.deliveries import DeliveryRecord

PATH = "/review/memories"

# What can be asked for, and the fields of `storage.claims.memories.MemoryFilter` that it stands for.
_STATES: dict[str, tuple[str, dict[str, Any]]] = {
    "": ("in force", {}),
    "ending": ("in force, ends within 30 days", {"validity": "ending"}),
    "expired": ("ended", {"statuses": frozenset({MemoryStatus.EXPIRED})}),
    "superseded": ("replaced by another", {"statuses": frozenset({MemoryStatus.SUPERSEDED})}),
    "retracted": ("taken out of force", {"statuses": frozenset({MemoryStatus.RETRACTED})}),
    "all": ("everything", {"statuses": frozenset(MemoryStatus)}),
}
_STALE: dict[str, tuple[str, dict[str, Any]]] = {
    "": ("as may be", {}),
    "yes": ("stale only", {"stale": True}),
    "no": ("not stale", {"stale": False}),
}
_LOWERED: dict[str, tuple[str, dict[str, Any]]] = {
    "": ("as may be", {}),
    "yes": ("lowered since", {"lowered": True}),
    "no": ("as decided", {"lowered": False}),
}


@dataclass(frozen=True, slots=True)
class Select:
    """A choice in the form over the list."""

    name: str
    label: str
    options: tuple[tuple[str, str], ...]  # value and what it is called
    chosen: str


@dataclass(frozen=True, slots=True)
class MemoryListQuery:
    """What the address asks for. A value that no choice has is kept, and refused by the filter."""

    q: str
    source: str
    as_of: str  # a day or a time, as ISO 8601
    values: Mapping[str, str]  # of the selects, by name

    @property
    def filtered(self) -> bool:
        """Whether anything was asked for."""
        return bool(self.q or self.source or self.as_of or any(self.values.values()))

    @property
    def fields(self) -> dict[str, Any]:
        """As fields of `storage.claims.memories.MemoryFilter`."""
        found: dict[str, Any] = {
            "q": self.q or None,
            "as_of": self.as_of or None,
            "source_id": self.source or None,
            "memory_type": self.values["type"] or None,
            "confidence": self.values["confidence"] or None,
            "label": self.values["label"] or None,
        }
        for name, known in (("state", _STATES), ("stale", _STALE), ("lowered", _LOWERED)):
            value = self.values[name]
            found |= known[value][1] if value in known else {"stale": f"no such choice: {value}"}
        return found

    @property
    def selects(self) -> tuple[Select, ...]:
        """The choices, with what is chosen."""
        return tuple(
            Select(name, label, options, self.values[name])
            for name, label, options in (
                ("type", "Type", _any(MemoryType)),
                ("confidence", "Confidence", _any(Confidence)),
                ("label", "Label", _any(Label)),
                ("state", "Validity", tuple((value, words) for value, (words, _) in _STATES.items())),
                ("stale", "Stale", tuple((value, words) for value, (words, _) in _STALE.items())),
                ("lowered", "Promise", tuple((value, words) for value, (words, _) in _LOWERED.items())),
            )
        )

    def href(self, **more: str) -> str:
        """The address of this choice."""
        given = {"q": self.q, "source": self.source, "as_of": self.as_of, **self.values, **more}
        return f"{PATH}?{urlencode({name: value for name, value in given.items() if value})}"


@dataclass(frozen=True, slots=True)
class RestsView:
    """What else is known where memories of one source are listed: those that rest on nothing else, and what waits."""

    alone: frozenset[str]
    waiting: int
    waiting_href: str


def rests_view(found: Impact) -> RestsView:
    """What is said beside the list of what rests on a source."""
    query = 'source:"' + found.source.replace('"', "") + '"'
    href = f"/review?{urlencode({'q': query})}"
    return RestsView(frozenset(found.alone), found.counts.get("pending", 0), href)


def _any(kind: type[MemoryType | Confidence | Label]) -> tuple[tuple[str, str], ...]:
    return (("", "any"), *((one.value, one.value) for one in kind))


def parse_query(query: Mapping[str, str]) -> MemoryListQuery:
    """What the fields of an address ask for."""
    names = ("type", "confidence", "label", "state", "stale", "lowered")
    return MemoryListQuery(
        query.get("q", "").strip(),
        query.get("source", "").strip(),
        query.get("as_of", "").strip(),
        {name: query.get(name, "") for name in names},
    )


@dataclass(frozen=True, slots=True)
class MemoryListRow:
    """One memory in the list."""

    id: str
    claim: tuple[Piece, ...]
    label: str
    status: str
    stale: str
    lowered: str
    confidence: str
    memory_type: str
    source: tuple[Piece, ...]
    source_href: str
    stored: Moment
    until: Moment | None


def rows_of(found: Sequence[Memory], now: datetime) -> list[MemoryListRow]:
    """The memories as rows."""
    return [
        MemoryListRow(
            id=memory.id,
            claim=opening_pieces(memory.content),
            label=memory.label.value,
            status=memory.status.value,
            stale=plain_line(memory.stale_reason or "", 200),
            lowered=plain_line(memory.lowered_reason or "", 200),
            confidence=memory.confidence.value,
            memory_type=memory.memory_type.value,
            source=pieces(memory.source_id or ""),
            source_href=f"{PATH}?{urlencode({'source': memory.source_id or ''})}",
            stored=moment(memory.created_at, now),
            until=moment_or_none(memory.validity_horizon, now),
        )
        for memory in found
    ]


@dataclass(frozen=True, slots=True)
class MemoryView:
    """One memory with its evidence. `vouched` says who or what vouches for it."""

    id: str
    title: str
    claim: tuple[Piece, ...]
    label: str
    confidence: str
    score: str
    memory_type: str
    status: str
    stored: Moment
    confirmed: Moment
    until: Moment | None
    superseded_by: str | None
    retracted: tuple[Piece, ...]
    stale: tuple[Piece, ...]
    stale_since: Moment | None
    lowered: tuple[Piece, ...]
    lowered_at: Moment | None
    vouched: str
    source: tuple[Piece, ...]
    asserted: str
    findings: tuple[FindingView, ...]
    sources: tuple[SourceView, ...]
    deliveries: tuple[DeliveryView, ...]
    metadata: tuple[Fact, ...]
    decision_id: str
    policy: str
    item_href: str | None
    may_retract: bool


def memory_view(
    memory: Memory,
    answer: ValidationResult | None,
    *,
    names: Mapping[str, str],
    policy: Policy,
    now: datetime,
    deliveries: Sequence[DeliveryRecord] = (),
) -> MemoryView:
    """A memory as its page shows it; `answer` is the decision that stored it, None when it cannot be read."""
    score = memory.confidence_score
    return MemoryView(
        id=memory.id,
        title=plain_line(memory.content, 80),
        claim=pieces(memory.content),
        label=memory.label.value,
        confidence=memory.confidence.value,
        score="" if score is None else f"{score:.2f}",
        memory_type=memory.memory_type.value,
        status=memory.status.value,
        stored=moment(memory.created_at, now),
        confirmed=moment(memory.confirmed_at or memory.created_at, now),
        until=moment_or_none(memory.validity_horizon, now),
        superseded_by=memory.superseded_by,
        retracted=pieces(memory.retracted_reason or ""),
        stale=pieces(memory.stale_reason or ""),
        stale_since=moment_or_none(memory.stale_since, now),
        lowered=pieces(memory.lowered_reason or ""),
        lowered_at=moment_or_none(memory.lowered_at, now),
        vouched=_vouching_party(memory, answer, names),
        source=pieces(memory.source_id or "none: nothing that it cites was verified"),
        asserted=memory.source.value,
        findings=() if answer is None else finding_views(answer.findings, deciding(answer, policy)),
        sources=() if answer is None else source_views(answer, policy, now),
        deliveries=delivery_views(deliveries, now),
        metadata=facts_of(memory.metadata),
        decision_id=memory.decision_id,
        policy="" if answer is None else answer.policy_digest[:16],
        item_href=_item_href(memory, answer),
        may_retract=memory.status in (MemoryStatus.ACTIVE, MemoryStatus.EXPIRED),
    )


def _vouching_party(memory: Memory, answer: ValidationResult | None, names: Mapping[str, str]) -> str:
    if memory.approved_by is not None:
        approver = plain_line(names.get(memory.approved_by, memory.approved_by), 80)
        return f"Its owner vouches for it: approved by {approver}."
    return "" if answer is None else f"{answer.reason.removesuffix('.')}."


def _item_href(memory: Memory, answer: ValidationResult | None) -> str | None:
    if memory.approved_by is None or answer is None or answer.queue_id is None:
        return None
    return f"/review/items/{answer.queue_id}"
