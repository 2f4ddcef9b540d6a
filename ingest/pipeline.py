"""The path of one claim, without I/O: what is in its text, and what follows from the facts about it.

    text = inspect(claim, detector)          # hedges and citations in the text
    ... the gate gathers a reading per citation ...
    readings = focus(text, readings)         # of each source the passages the claim is held against
    examined = examine(text, readings, policy, capture_time)
    ... storage gathers the neighbours under the owner's lock ...
    examined = examined.knowing(dedup=neighbours, ...)
    decision = examined.decide()
    answer = examined.answer(decision, ...)

Replaying a stored answer is the same three steps with the stored facts (`replay`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from vouchgate.ingest.check import FACTS, NO_FACTS, NOTHING_NEAR, Facts, Findings, ReadClaim
from vouchgate.ingest.checks import citations as citation_checks
from vouchgate.ingest.checks import dedup as dedup_check
from vouchgate.ingest.checks.hedge import HedgeDetector
from vouchgate.ingest.citations import detect_citations
from vouchgate.ingest.claims.citation import Citation
from vouchgate.ingest.claims.claim import Claim, Finding, Verdict
from vouchgate.ingest.claims.decision import (
    Decision,
    Evidence,
    Looked,
    Outcome,
    RejectedBefore,
    Suggested,
    Tier,
    ValidationResult,
)
from vouchgate.ingest.claims.hedges import HedgeMatch
from vouchgate.ingest.claims.likeness import (
    DedupFacts,
    Embedding,
    ItemKind,
    Neighbour,
    Neighbours,
    SimilarMemory,
)
from vouchgate.ingest.claims.modes import ALWAYS_HELD, Mode
from vouchgate.ingest.claims.source import Found, SourceReading
from vouchgate.ingest.corroboration.independence import text_groups
from vouchgate.ingest.dedup.compare import Comparison, Comparisons, LookedUp
from vouchgate.ingest.language.normalise import normalise
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.registry import CHECKS, OF_CLAIMS, OF_FACTS, OF_FINDINGS, OF_SOURCES
from vouchgate.ingest.router import Case, route
from vouchgate.ingest.rules import Rule
from vouchgate.ingest.scoring import score
from vouchgate.ingest.support.holding import hold, states_all
from vouchgate.ingest.support.prepared import PreparedTexts
from vouchgate.ingest.support.quotation import quotations_of
from vouchgate.ingest.support.texts import unpack

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
        # What is quoted from it is kept with the claim, and not with all that is said of the source.
        return tuple(c.model_copy(update={"quote": ""}) if c.quote else c for c in first.values())


def inspect(claim: Claim, detector: HedgeDetector) -> Inspected:
    """Runs the pure text checks; linear in the length of the text. A text that is to be removed is not asked
    anything: it was looked at when it came.

    Raises TooManyCitations for a text that names more than MAX_MENTIONS things of one type.
    """
    if claim.removes:
        return Inspected(claim, (), ())
    citations = detect_citations(claim.content, MAX_MENTIONS)
    hedges = detector.detect_normalised(claim.content, normalise(claim.content))
    return Inspected(claim, hedges, citations + claim.citations)


@dataclass(frozen=True, slots=True)
class Examined:
    """A claim with everything known about it. What only the write transaction knows of it, `knowing` adds."""

    claim: Claim
    policy: Policy
    capture_time: datetime
    readings: tuple[SourceReading, ...]
    findings: Findings  # of the checks that need no facts
    similar: tuple[SimilarMemory, ...] | None = None  # to show; `decide` never looks at it
    suggested: tuple[Suggested, ...] | None = None  # to show, too; None: nobody looked for what it could cite
    looked: tuple[Looked, ...] = ()  # to show, too
    facts: Facts = NO_FACTS
    embedding: Embedding | None = None  # kept with the item; `decide` never looks at it
    # What was compared before, and need not be again; no answer depends on it. None: nothing was.
    known: Comparisons | None = field(default=None, compare=False, repr=False)
    by_statements: bool = True  # as of `examine`
    # What was decided before, and the facts it was decided with: with these `decide` need not do it again.
    foreseen: tuple[Facts, Decision] | None = field(default=None, compare=False, repr=False)
    looked_up: LookedUp | None = field(default=None, compare=False, repr=False)  # None: nothing was

    def knowing(self, **facts: Any) -> Examined:
        """The same with these facts, by the names of `Facts`."""
        return replace(self, facts=replace(self.facts, **facts))

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
        return replace(self, known=self._comparisons())

    def foreseeing(self) -> tuple[Examined, Tier]:
        """The same, with what is decided if its owner has stored nothing like it and nothing more is found out: most
        claims are new. And where it goes then; no earlier claim ever lets it do better."""
        alone = self.knowing(dedup=NOTHING_NEAR)
        decision = alone.decide()
        known = self.known or self._comparisons()
        return replace(self, known=known, foreseen=(alone.facts, decision)), decision.tier

    def _comparisons(self) -> Comparisons:
        return Comparisons(self.claim.content, self.policy.threshold, self.policy.values)

    def _judge(self, dedup: DedupFacts) -> tuple[Finding, Comparison | None]:
        return dedup_check.judge(
            self.claim.content, dedup, self.policy.threshold, self.policy.values, self.known
        )

    def decide(self) -> Decision:
        """The decision that follows. Pure: the same claim, facts and policy give the same decision."""
        if self.foreseen is not None and self.foreseen[0] == self.facts:
            return self.foreseen[1]
        findings = Findings((*self.findings.every, *self._of_facts()))
        cited = findings.cited
        good = self._sources_without(cited, Verdict.FAIL)
        sure = self._sources_without(cited, Verdict.FAIL, Verdict.DOUBT, Verdict.UNKNOWN)
        lowest = score.claim_score(good, self.policy, self.capture_time)
        claim, facts = self.claim, self.facts
        case = Case(
            findings,
            lowest,
            claim.source,
            claim.memory_type,
            self.by_statements,
            facts.standing_ruling,
            facts.track,
        )
        ruling = route(case, self.policy)
        by_owner = ruling.rule is Rule.STANDING_RULING and ruling.tier is Tier.STORED
        stated = sure if not self.by_statements else [source for source in sure if states_all(source)]
        label = score.label_of(() if by_owner else stated, self.policy, of_listed=self.by_statements)
        repeated = findings.one(dedup_check.CHECK)
        similarity = None if repeated is None else repeated.facts.get("similarity")
        return Decision(
            tier=ruling.tier,
            rule=ruling.rule,
            reason=ruling.reason,
            findings=findings.every,
            decided_by=ruling.decided_by,
            confidence=self.policy.standing_rulings.confidence
            if by_owner
            else score.confidence_of(
                label,
                lowest if stated and all(source.form == "page" for source in stated) else None,
                vouched=ruling.tier is Tier.STORED or bool(good),
            ),
            confidence_score=lowest,
            label=label,
            source_id=min((source.source_id for source in good), default=None),
            similarity_score=similarity if isinstance(similarity, float) else None,
            nearest=self._nearest(*ruling.decided_by, *(() if repeated is None else (repeated,))),
            policy_digest=self.policy.digest,
        )

    def _of_facts(self) -> Iterator[Finding]:
        removes = self.claim.removes
        for check, judge in OF_FACTS:
            if (check.of_removals or not removes) and (finding := judge(self)) is not None:
                yield finding

    def _nearest(self, *findings: Finding) -> Neighbour | None:
        """What the claim is nearest to, by the first of these findings whose check can tell."""
        for finding in findings:
            if (nearest := CHECKS[finding.check].nearest) is not None:
                return nearest(self, finding)
        return None

    def _sources_without(self, cited: Sequence[Finding], *verdicts: Verdict) -> list[Found]:
        """The sources that are there, in force, and of which no check says one of these."""
        out = {f.citation.key for f in cited if f.citation and f.verdict in verdicts}
        there = [r for r in self.readings if isinstance(r, Found) and r.vouches]
        return [source for source in there if source.citation.key not in out]

    def answer(
        self,
        decision: Decision,
        *,
        decision_id: str | None,
        memory_id: str | None,
        queue_id: str | None,
        took_ms: float,
        rejected_before: RejectedBefore | None = None,
        mode: Mode = Mode.ENFORCE,
    ) -> ValidationResult:
        """The answer for the caller, which is also the record that is kept. `rejected_before` is only shown, as
        `similar` is."""
        held = None if mode is Mode.ENFORCE else is_held(decision)
        return ValidationResult(
            tier=decision.tier,
            outcome=OUTCOMES[decision.tier],
            approved=decision.tier is Tier.STORED,
            rule=decision.rule,
            reason=decision.reason,
            checks_passed=tuple(
                CHECKS[f.check].label(f) for f in decision.findings if f.verdict is Verdict.PASS
            ),
            checks_failed=tuple(
                CHECKS[f.check].label(f) for f in decision.findings if f.verdict is not Verdict.PASS
            ),
            findings=decision.findings,
            evidence=Evidence(
                claim=self.claim,
                capture_time=self.capture_time,
                confidence=decision.confidence,
                confidence_score=decision.confidence_score,
                source_id=decision.source_id,
                sources=tuple(map(_as_kept, self.readings)),
                **{name: getattr(self.facts, name) for name in FACTS},
                publishers=self.policy.publishers,
                validity_horizon=self.claim.validity_horizon,
                label=decision.label,
                metadata=self.claim.metadata,
            ),
            similarity_score=decision.similarity_score,
            conflicting_memory_id=_nearest_memory(decision),
            similar=self.similar,
            suggested=self.suggested or (),
            looked=self.looked,
            rejected_before=rejected_before,
            memory_id=memory_id,
            queue_id=queue_id,
            decision_id=decision_id,
            policy_digest=decision.policy_digest,
            took_ms=round(took_ms, 3),
            mode=mode,
            held=held,
        )


def is_held(decision: Decision) -> bool:
    """Whether a claim is kept out of what agents read even while the gate only observes."""
    return decision.rule in ALWAYS_HELD and decision.tier is not Tier.STORED


def _as_kept(reading: SourceReading) -> SourceReading:
    """The reading without what waits to be kept beside the decision."""
    if isinstance(reading, Found) and reading.packed:
        return reading.model_copy(update={"packed": ()})
    return reading


def focus(
    inspected: Inspected, readings: Sequence[SourceReading], texts: PreparedTexts | None = None
) -> tuple[SourceReading, ...]:
    """The readings as they are kept: of a source's whole text only the passages that bear on the claim, and what it
    does to each statement of it. `texts` are those that other claims were held against."""
    return tuple(_focused(inspected, reading, texts) for reading in readings)


def _grouped(readings: Sequence[SourceReading], policy: Policy) -> tuple[SourceReading, ...]:
    """The readings, with which of those that state the whole claim have one text. Only they are asked whether they are
    independent, and only while their whole texts are here: a decision that is made again has it in its evidence."""
    stating = {
        at: reading
        for at, reading in enumerate(readings)
        if isinstance(reading, Found) and reading.packed and not reading.text_group and states_all(reading)
    }
    if len(stating) < 2:
        return tuple(readings)
    texts = [unpack(reading.packed[0]) for reading in stating.values()]
    digests = [reading.text_digest for reading in stating.values()]
    groups = dict(zip(stating, text_groups(texts, digests, policy.threshold), strict=True))
    return tuple(
        reading.model_copy(update={"text_group": groups[at]}) if at in groups else reading
        for at, reading in enumerate(readings)
    )


def _settled(reading: SourceReading, policy: Policy, at: datetime) -> SourceReading:
    return policy.reputation.settle(reading, at) if isinstance(reading, Found) else reading


def _focused(inspected: Inspected, reading: SourceReading, texts: PreparedTexts | None) -> SourceReading:
    if not isinstance(reading, Found) or reading.held is not None:
        return reading
    quotations = quotations_of(inspected.citations)
    named = inspected.naming(reading.citation.key)
    return hold(inspected.claim.stated, named, reading, quotations, texts)


def examine(
    inspected: Inspected,
    readings: Sequence[SourceReading],
    policy: Policy,
    capture_time: datetime,
    *,
    by_statements: bool = True,
    texts: PreparedTexts | None = None,
) -> Examined:
    """Judges what was gathered; `texts` as of `focus`. Raises ValueError when a cited thing has no reading: a missing
    answer must become an UNKNOWN reading where it went missing, never be left out. `by_statements` is false only for a
    decision of before sources were held against statements one by one, which is made again as it was made then."""
    known = {reading.citation.key for reading in readings}
    unread = [citation.value for citation in inspected.cited() if citation.key not in known]
    if unread:
        raise ValueError(f"no reading for {', '.join(unread)}")
    claim = inspected.claim
    readings = [_settled(reading, policy, capture_time) for reading in readings]
    held = _grouped(focus(inspected, readings, texts), policy) if by_statements else tuple(readings)
    read = ReadClaim(claim, inspected.hedges, inspected.citations, held, policy, by_statements)
    found = Findings(_of_text(read))
    if by_statements and not claim.removes:
        found = Findings((*found.every, *(said for judge in OF_FINDINGS for said in judge(read, found))))
    return Examined(claim, policy, capture_time, read.readings, found, by_statements=by_statements)


def _of_text(read: ReadClaim) -> Iterator[Finding]:
    verified: set[str] = set()
    removes = read.claim.removes
    for check, judge in OF_CLAIMS:
        if check.of_removals or not removes:
            for finding in judge(read):
                if (
                    finding.check == citation_checks.VERIFY
                    and finding.verdict is Verdict.PASS
                    and finding.citation
                ):
                    verified.add(finding.citation.key)
                yield finding
    if read.claim.context:  # no source has to say it
        read = replace(read, claim=read.claim.model_copy(update={"content": read.claim.stated}))
    for reading in read.readings:
        if isinstance(reading, Found) and reading.citation.key in verified:
            for judge_source in OF_SOURCES:
                if (said := judge_source(read, reading)) is not None:
                    yield said


def remake(stored: ValidationResult, policy: Policy, detector: HedgeDetector) -> Examined:
    """A stored decision's claim with all that was known of it then, to be decided by this policy. Raises ValueError as
    `examine`."""
    evidence = stored.evidence
    by_statements = not any(isinstance(source, Found) and source.held is None for source in evidence.sources)
    examined = examine(
        inspect(evidence.claim, detector),
        evidence.sources,
        policy,
        evidence.capture_time,
        by_statements=by_statements,
    )
    known = Facts(**{name: getattr(evidence, name) for name in FACTS})
    return replace(
        examined, similar=stored.similar, suggested=stored.suggested, looked=stored.looked, facts=known
    )


def replay(stored: ValidationResult, policy: Policy, detector: HedgeDetector) -> tuple[str, ...]:
    """Makes a stored decision again from its evidence alone; each difference as a sentence, none when equal.

    Raises ValueError when the evidence lacks a reading that the claim's citations call for.
    """
    examined = remake(stored, policy.heeding(stored.evidence.publishers), detector)
    again = examined.answer(
        examined.decide(),
        decision_id=stored.decision_id,
        memory_id=stored.memory_id,
        queue_id=stored.queue_id,
        took_ms=stored.took_ms,
        rejected_before=stored.rejected_before,
        mode=stored.mode,
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


def _difference_value(value: object) -> str:
    text = str(value)
    return text if len(text) <= 200 else text[:200] + "…"
