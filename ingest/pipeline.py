"""The path of one claim, without I/O: what is in its text, and what follows from the facts about it.

    text = inspect(claim, detector)          # hedges and citations in the text
    ... the gate gathers a reading per citation ...
    readings = focus(text, readings)         # of each source the passages the claim is held against
    examined = examine(text, readings, policy, capture_time)
    ... storage gathers the neighbours under the owner's lock ...
    decision = examined.decide(neighbours)
    answer = examined.answer(decision, ...)

Replaying a stored answer is the same three steps with the stored facts (`replay`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from vouchgate.ingest.checks import citations as citation_checks
from vouchgate.ingest.checks import dedup as dedup_check
from vouchgate.ingest.checks import echo as echo_check
from vouchgate.ingest.checks import hedge as hedge_check
from vouchgate.ingest.checks import judgement as judgement_check
from vouchgate.ingest.checks import place as place_check
from vouchgate.ingest.checks import secrets as secrets_check
from vouchgate.ingest.checks import support as support_check
from vouchgate.ingest.checks.dedup import Comparison, Comparisons
from vouchgate.ingest.checks.hedge import HedgeDetector
from vouchgate.ingest.citations import detect_citations
from vouchgate.ingest.claims.types import (
    TEXT_CHARACTERS,
    AtPlace,
    Citation,
    Claim,
    Decision,
    DedupFacts,
    DeliveryOp,
    EchoFacts,
    Embedding,
    Evidence,
    Finding,
    Found,
    HedgeMatch,
    ItemKind,
    Neighbour,
    Neighbours,
    Outcome,
    ParaphraseFacts,
    RejectedBefore,
    SimilarMemory,
    SourceReading,
    Standing,
    Tier,
    ValidationResult,
    Verdict,
)
from vouchgate.ingest.dedup import paraphrase
from vouchgate.ingest.language.normalise import normalise
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.router import Case, route
from vouchgate.ingest.scoring import score
from vouchgate.ingest.support import passages

log = logging.getLogger(__name__)

# Mentions of one type in one claim. Twenty things may be cited (policy), some of them several times; a text
# over this is a list, and reading it to its end would only cost time.
MAX_MENTIONS = 100

OUTCOMES = {Tier.STORED: Outcome.STORED, Tier.QUEUED: Outcome.QUEUED, Tier.BLOCKED: Outcome.BLOCKED}


@dataclass(frozen=True, slots=True)
class Inspected:
    """A claim with what its text holds. `citations` are those in the text, then those given beside it."""

    claim: Claim
    hedges: tuple[HedgeMatch, ...]
    citations: tuple[Citation, ...]

    def naming(self, key: str) -> tuple[Citation, ...]:
        """Every citation of the thing with this key."""
        return tuple(citation for citation in self.citations if citation.key == key)

    def cited(self) -> tuple[Citation, ...]:
        """Each cited thing once: the first citation of every key."""
        first: dict[str, Citation] = {}
        for citation in self.citations:
            first.setdefault(citation.key, citation)
        return tuple(first.values())


def inspect(claim: Claim, detector: HedgeDetector) -> Inspected:
    """Runs the pure text checks; linear in the length of the text. A text that is to be removed is not asked
    anything: it was looked at when it came.

    Raises TooManyCitations for a text that names more than MAX_MENTIONS things of one type.
    """
    if removes(claim):
        return Inspected(claim, (), ())
    citations = detect_citations(claim.content, MAX_MENTIONS)
    hedges = detector.detect_normalised(claim.content, normalise(claim.content))
    return Inspected(claim, hedges, citations + claim.citations)


def removes(claim: Claim) -> bool:
    """Whether the claim asks for something to go, instead of saying something."""
    return claim.delivery is not None and claim.delivery.op is DeliveryOp.REMOVE


@dataclass(frozen=True, slots=True)
class Examined:
    """A claim with everything known about it but its neighbours, which the write transaction adds."""

    claim: Claim
    policy: Policy
    capture_time: datetime
    readings: tuple[SourceReading, ...]
    hedge: Finding
    detected: Finding
    verified: tuple[Finding, ...]  # one for each cited thing: whether it is there and holds
    supported: tuple[
        Finding, ...
    ]  # one for each that does: whether it speaks of the claim, and what a judge said
    similar: tuple[SimilarMemory, ...] | None = None  # to show; `decide` never looks at it
    paraphrases: ParaphraseFacts | None = None  # None: nobody looked, see `ingest.dedup.paraphrase.weigh`
    embedding: Embedding | None = None  # kept with the item; `decide` never looks at it
    # What was compared before, and need not be again; no answer depends on it. None: nothing was.
    known: Comparisons | None = field(default=None, compare=False, repr=False)

    def repeats(self, dedup: DedupFacts) -> Neighbour | None:
        """The earlier claim that this one is again, with no value changed; None when it is none, or nobody knows."""
        if not isinstance(dedup, Neighbours) or not dedup.items:
            return None
        _, nearest = self._judge(dedup)
        return None if nearest is None or nearest.changed else nearest.neighbour

    def comparing(self) -> Examined:
        """The same, remembering from now on what it is compared with."""
        if self.known is not None:
            return self
        return replace(self, known=Comparisons(self.claim.content, self.policy.threshold, self.policy.values))

    def _judge(self, dedup: DedupFacts) -> tuple[Finding, Comparison | None]:
        return dedup_check.judge(
            self.claim.content, dedup, self.policy.threshold, self.policy.values, self.known
        )

    def decide(
        self, dedup: DedupFacts, at_place: AtPlace | None = None, echo: EchoFacts | None = None
    ) -> Decision:
        """The decision that follows. Pure: the same claim, facts and policy give the same decision. `at_place` is
        what is known of the place that the claim names, if anything is, and `echo` of how often it was sent."""
        finding, comparison = self._judge(dedup)
        finding = paraphrase.weigh(finding, self.paraphrases, self.policy)
        cited = (*self.verified, *self.supported)
        good = self._sources_without(cited, Verdict.FAIL)
        sure = self._sources_without(cited, Verdict.FAIL, Verdict.DOUBT, Verdict.UNKNOWN)
        lowest = score.claim_score(good, self.policy, self.capture_time)
        place = place_check.judge(self.claim, at_place)
        secrets = secrets_check.judge(self.claim.secrets, removes=removes(self.claim))
        source, memory_type = self.claim.source, self.claim.memory_type
        again = echo_check.judge(echo, self.policy.echo)
        case = Case(self.hedge, finding, cited, lowest, source, memory_type, place, secrets, again)
        ruling = route(case, self.policy)
        label = score.label_of(sure, self.policy)
        findings = (self.hedge, self.detected, *cited, finding)
        nearest = None if comparison is None else comparison.neighbour
        if place is not None:
            findings = (place,) if removes(self.claim) else (*findings, place)
            if place in ruling.decided_by:
                nearest = place_check.nearest_at_place(self.claim, at_place)
        if secrets is not None:
            findings = (secrets, *findings)
        if again is not None:
            findings = (*findings, again)
        return Decision(
            tier=ruling.tier,
            rule=ruling.rule,
            reason=ruling.reason,
            findings=findings,
            decided_by=ruling.decided_by,
            confidence=score.confidence_of(label, lowest, vouched=ruling.tier is Tier.STORED or bool(good)),
            confidence_score=lowest,
            label=label,
            source_id=min((source.source_id for source in good), default=None),
            similarity_score=None if comparison is None else round(float(comparison.similarity), 4),
            nearest=nearest,
            policy_digest=self.policy.digest,
        )

    def _sources_without(self, cited: Sequence[Finding], *verdicts: Verdict) -> list[Found]:
        """The sources that are there, in force, and of which no check says one of these."""
        out = {f.citation.key for f in cited if f.citation and f.verdict in verdicts}
        there = [r for r in self.readings if isinstance(r, Found) and r.standing is Standing.IN_FORCE]
        return [source for source in there if source.citation.key not in out]

    def answer(
        self,
        decision: Decision,
        dedup: DedupFacts,
        *,
        decision_id: str | None,
        memory_id: str | None,
        queue_id: str | None,
        took_ms: float,
        rejected_before: RejectedBefore | None = None,
        at_place: AtPlace | None = None,
        echo: EchoFacts | None = None,
    ) -> ValidationResult:
        """The answer for the caller, which is also the record that is kept. `rejected_before` is only shown, as
        `similar` is."""
        return ValidationResult(
            tier=decision.tier,
            outcome=OUTCOMES[decision.tier],
            approved=decision.tier is Tier.STORED,
            rule=decision.rule,
            reason=decision.reason,
            checks_passed=tuple(_label(f) for f in decision.findings if f.verdict is Verdict.PASS),
            checks_failed=tuple(_label(f) for f in decision.findings if f.verdict is not Verdict.PASS),
            findings=decision.findings,
            evidence=Evidence(
                claim=self.claim,
                capture_time=self.capture_time,
                confidence=decision.confidence,
                confidence_score=decision.confidence_score,
                source_id=decision.source_id,
                sources=self.readings,
                dedup=dedup,
                paraphrases=self.paraphrases,
                at_place=at_place,
                echo=echo,
                validity_horizon=self.claim.validity_horizon,
                label=decision.label,
                metadata=self.claim.metadata,
            ),
            similarity_score=decision.similarity_score,
            conflicting_memory_id=_nearest_memory(decision),
            similar=self.similar,
            rejected_before=rejected_before,
            memory_id=memory_id,
            queue_id=queue_id,
            decision_id=decision_id,
            policy_digest=decision.policy_digest,
            took_ms=round(took_ms, 3),
        )


def focus(inspected: Inspected, readings: Sequence[SourceReading]) -> tuple[SourceReading, ...]:
    """The readings as they are kept: of a source's whole text only the passages that bear on the claim."""
    return tuple(_focused(inspected, reading) for reading in readings)


def _focused(inspected: Inspected, reading: SourceReading) -> SourceReading:
    if not isinstance(reading, Found) or not reading.text:
        return reading
    citations = inspected.naming(reading.citation.key)
    try:
        excerpt = passages.focus(inspected.claim.content, citations, reading.title, reading.text)
    except Exception:
        log.exception("no passages could be chosen of %a", reading.source_id)
        excerpt = ""  # which no check takes for support
    cut = reading.cut or len(reading.text) >= TEXT_CHARACTERS
    return reading.model_copy(update={"excerpt": excerpt, "text": "", "cut": cut})


def examine(
    inspected: Inspected, readings: Sequence[SourceReading], policy: Policy, capture_time: datetime
) -> Examined:
    """Judges what was gathered. Raises ValueError when a cited thing has no reading: a missing answer must
    become an UNKNOWN reading where it went missing, never be left out."""
    read = {reading.citation.key for reading in readings}
    unread = [citation.value for citation in inspected.cited() if citation.key not in read]
    if unread:
        raise ValueError(f"no reading for {', '.join(unread)}")
    verified = tuple(citation_checks.judge_reading(r, policy.banned) for r in readings)
    return Examined(
        claim=inspected.claim,
        policy=policy,
        capture_time=capture_time,
        readings=tuple(readings),
        hedge=hedge_check.judge(inspected.hedges),
        detected=citation_checks.judge_detected(inspected.citations),
        verified=verified,
        supported=tuple(_supported(inspected, readings, verified)),
    )


def _supported(
    inspected: Inspected, readings: Sequence[SourceReading], verified: Sequence[Finding]
) -> Iterator[Finding]:
    """What is asked of a source that is there and holds; of any other there is enough against it."""
    alone = len(readings) == 1
    for reading, finding in zip(readings, verified, strict=True):
        if not isinstance(reading, Found) or finding.verdict is not Verdict.PASS:
            continue
        try:
            citations = inspected.naming(reading.citation.key)
            yield support_check.judge(inspected.claim.content, citations, reading, alone=alone)
        except Exception:
            log.exception("the claim could not be held against %a", reading.source_id)
            yield support_check.failure_finding(reading)
        if (said := judgement_check.judge(reading)) is not None:
            yield said


def replay(stored: ValidationResult, policy: Policy, detector: HedgeDetector) -> tuple[str, ...]:
    """Makes a stored decision again from its evidence alone; each difference as a sentence, none when equal.

    Raises ValueError when the evidence lacks a reading that the claim's citations call for.
    """
    evidence = stored.evidence
    examined = examine(inspect(evidence.claim, detector), evidence.sources, policy, evidence.capture_time)
    examined = replace(examined, similar=stored.similar, paraphrases=evidence.paraphrases)
    decision = examined.decide(evidence.dedup, evidence.at_place, evidence.echo)
    again = examined.answer(
        decision,
        evidence.dedup,
        decision_id=stored.decision_id,
        memory_id=stored.memory_id,
        queue_id=stored.queue_id,
        took_ms=stored.took_ms,
        rejected_before=stored.rejected_before,
        at_place=evidence.at_place,
        echo=evidence.echo,
    )
    differences = []
    for name in ValidationResult.model_fields:
        was, now = getattr(stored, name), getattr(again, name)
        if was != now:
            differences.append(f"{name}: was {_difference_value(was)}, is now {_difference_value(now)}")
    return tuple(differences)


def _nearest_memory(decision: Decision) -> str | None:
    if decision.nearest is None:
        return None
    return decision.nearest.id if decision.nearest.kind is ItemKind.MEMORY else None


def _label(finding: Finding) -> str:
    if finding.check == hedge_check.CHECK and finding.verdict is not Verdict.PASS:
        words = finding.facts.get("words")
        return f"hedge_words_detected: {', '.join(map(str, words)) if isinstance(words, list) else ''}"
    if finding.check == secrets_check.CHECK:
        return f"{finding.code}: {', '.join(secrets_check.kinds_of(finding))}"
    if finding.citation is not None:
        return f"{finding.code}: {finding.citation.value}"
    if "id" in finding.facts:
        return f"{finding.code}: {finding.facts['id']}"
    return finding.code


def _difference_value(value: object) -> str:
    text = str(value)
    return text if len(text) <= 200 else text[:200] + "…"
