"""What is decided about a claim, and why."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Self

from pydantic import Field, JsonValue, model_validator

from vouchgate.ingest.claims.claim import Claim, Finding
from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.claims.leased import Delivery
from vouchgate.ingest.claims.likeness import (
    AtPlace,
    DedupFacts,
    EchoFacts,
    Neighbour,
    ParaphraseFacts,
    SimilarMemory,
)
from vouchgate.ingest.claims.log import Promise
from vouchgate.ingest.claims.modes import Mode
from vouchgate.ingest.claims.source import Found, SourceReading, Stance
from vouchgate.ingest.claims.trust import AppliedRuling, OwnPublishers, Track
from vouchgate.ingest.rules import CHANGE_REASON, Rule, RuleName


class Tier(StrEnum):
    """Where a claim goes."""

    STORED = "tier_1"
    QUEUED = "tier_2"
    BLOCKED = "tier_3"


class Outcome(StrEnum):
    """The tier in a word, for the answer."""

    STORED = "stored"
    QUEUED = "queued"
    BLOCKED = "blocked"


class Confidence(StrEnum):
    """How well a claim is supported; a rule output, never a model's own number."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Label(StrEnum):
    """FACT needs one official source or two independent ones; all else is INFERENCE. UNVOUCHED is only a memory's that
    was let through while the gate observed: nobody vouches for it, and it vouches for nothing."""

    FACT = "FACT"
    INFERENCE = "INFERENCE"
    UNVOUCHED = "UNVOUCHED"


class Decision(Frozen):
    """Tier and reason, with the findings that set them. Pure function of claim, facts and policy."""

    tier: Tier
    rule: Rule  # that matched
    reason: str
    findings: tuple[Finding, ...]
    decided_by: tuple[
        Finding, ...
    ]  # the findings the rule rests on; empty for those that go by the source the caller asserts
    confidence: Confidence
    confidence_score: float | None  # 0 to 1, None when no source was verified
    label: Label
    source_id: str | None
    similarity_score: float | None = None  # word Jaccard with the nearest item at or over the threshold
    nearest: Neighbour | None = None  # that item: what it duplicates or conflicts with
    policy_digest: str

    @model_validator(mode="after")
    def _fact_has_a_source(self) -> Self:
        if self.label is Label.FACT and not self.source_id:
            raise ValueError("a FACT needs the id of its evidence")
        return self


class Evidence(Frozen):
    """The record a decision rests on: with the policy of its digest, enough to make it again offline."""

    claim: Claim
    capture_time: datetime
    confidence: Confidence
    confidence_score: float | None
    source_id: str | None
    sources: tuple[SourceReading, ...]
    dedup: DedupFacts
    # None, and left out of the JSON, unless the policy asks for vectors.
    paraphrases: ParaphraseFacts | None = Field(default=None, exclude_if=lambda facts: facts is None)
    at_place: AtPlace | None = Field(default=None, exclude_if=lambda found: found is None)
    echo: EchoFacts | None = Field(default=None, exclude_if=lambda found: found is None)
    # With the policy of `policy_digest` it decided; None when none of its owner's bears on it.
    standing_ruling: AppliedRuling | None = Field(default=None, exclude_if=lambda found: found is None)
    # By which it was drawn for a spot check, or not; None when nobody judged any of these.
    track: Track | None = Field(default=None, exclude_if=lambda found: found is None)
    # What its owner said of publishers that it cites: laid over the policy of `policy_digest`, it decided.
    publishers: OwnPublishers = Field(default=OwnPublishers(), exclude_if=lambda own: own == OwnPublishers())
    validity_horizon: datetime | None
    label: Label
    metadata: dict[str, JsonValue]

    @model_validator(mode="after")
    def _fact_has_a_source(self) -> Self:
        if self.label is Label.FACT and not any(
            isinstance(source, Found) and source.source_id == self.source_id for source in self.sources
        ):
            raise ValueError("a FACT needs the id of its evidence, among the sources that were found")
        return self


class Suggested(Frozen):
    """A document that was found for a claim which cites nothing, and that may say so, or say otherwise: something to
    look at, and to cite. No decision rests on it."""

    citation: str  # as it would be cited
    stance: Stance  # of one of its passages
    quotation: str  # the place that comes nearest, in its own words


class Looked(Frozen):
    """One look for what could vouch for a claim that cites nothing, or nothing that could be read."""

    path: str  # where, as in the policy's `[corroboration] paths`
    query: str
    found: int = Field(ge=0)  # documents that have something to say of it
    failure: str = Field(
        default="", exclude_if=lambda why: not why
    )  # why it could not be found out, a sentence


class RejectedBefore(Frozen):
    """An owner's rejection of an earlier claim in the same words. No decision rests on it."""

    queue_id: str
    reason: str
    rejected_at: datetime


class ValidationResult(Frozen):
    """The answer to every submit, stored as it was given. Exactly one of `memory_id` and `queue_id` is set
    when the claim was stored or queued; neither when it was blocked or only checked. The decision of a re-check
    names the item that waits on, whatever its tier.

    While the gate observes, `tier` and `outcome` say what would have become of it. What is not `held` went through:
    `memory_id` is then that of a memory that nobody vouches for."""

    tier: Tier
    outcome: Outcome
    approved: bool
    rule: RuleName
    reason: str
    checks_passed: tuple[str, ...]
    checks_failed: tuple[str, ...]  # like `hedge_words_detected: maybe`
    findings: tuple[Finding, ...]
    evidence: Evidence
    similarity_score: float | None
    conflicting_memory_id: str | None  # the stored memory it duplicates or conflicts with
    similar: tuple[SimilarMemory, ...] | None = None  # nearest first; None: not looked for, or not known
    suggested: tuple[Suggested, ...] = Field(default=(), exclude_if=lambda found: not found)  # nearest first
    looked: tuple[Looked, ...] = Field(default=(), exclude_if=lambda looks: not looks)
    # The latest rejection of these words; looked for unless the claim is stored. Left out of the JSON when None.
    rejected_before: RejectedBefore | None = Field(default=None, exclude_if=lambda found: found is None)
    memory_id: str | None
    queue_id: str | None
    decision_id: str | None  # None when only checked: nothing was written
    policy_digest: str
    took_ms: float
    mode: Mode = Field(default=Mode.ENFORCE, exclude_if=lambda mode: mode is Mode.ENFORCE)
    held: bool | None = Field(default=None, exclude_if=lambda held: held is None)  # None: the gate enforced
    # Told with the answer and not kept with it: it is about the entry that commits to the answer.
    promise: Promise | None = Field(default=None, exclude_if=lambda promise: promise is None)
    # As little kept: what the caller asked to be handed over with the answer, if it was.
    delivery: Delivery | None = Field(default=None, exclude_if=lambda handed: handed is None)

    @property
    def stored(self) -> bool:
        """Whether the decision is to store it, as `outcome` says; while the gate observes, `passed` may say more."""
        return self.outcome is Outcome.STORED

    @property
    def passed(self) -> bool:
        """Whether it went through: stored, or let through because the gate only observed."""
        return self.approved or self.held is False

    @property
    def as_sent(self) -> bool:
        """Whether it went through word for word: a door that writes the sender's own text may do so. Not where personal
        data was masked, of which that text still has all."""
        return self.passed and all(finding.code != "personal_data_masked" for finding in self.findings)

    @model_validator(mode="after")
    def _rule_by_its_reason(self) -> Self:
        """An old answer may have a number with two meanings, of which the reason tells."""
        if self.rule is Rule.REMOVAL and self.reason == CHANGE_REASON:
            self.__dict__["rule"] = Rule.PLACE_CHANGE
        return self
