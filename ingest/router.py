"""The router: one table, first match wins, pure. Rule numbers are those of design section 3."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from vouchgate.ingest.claims.types import BLOCKING_HEDGES, Finding, MemoryType, Source, Tier, Verdict
from vouchgate.ingest.policy import Policy

UNCLEAR = "support_unclear"  # the source was read, and the rules cannot tell whether it speaks of the claim
ECHO_REASON = "Sent again and again"
UNREADABLE = "support_unreadable"  # the source is there, and has no text to hold a claim against
ASKING_AGAIN_IS_NO_USE = frozenset({UNCLEAR, UNREADABLE})


@dataclass(frozen=True, slots=True)
class Case:
    """What the router sees: findings and the few facts of the claim that rules ask for."""

    hedge: Finding
    dedup: Finding
    citations: Sequence[
        Finding
    ]  # of each cited thing whether it is there, and whether it speaks of the claim
    score: float | None  # lowest score of the verified sources
    source: Source  # what counts, after grants
    memory_type: MemoryType
    place: Finding | None = None  # of the place that the claim names, when something is there or is to go
    secrets: Finding | None = None  # when it held a credential
    echo: Finding | None = None  # when it was sent again and again


@dataclass(frozen=True, slots=True)
class Ruling:
    """Where the claim goes, by which rule, and the findings the rule rests on."""

    rule: int
    tier: Tier
    reason: str
    decided_by: tuple[Finding, ...]


Rule = Callable[[Case, Policy], Ruling | None]


def _credential(case: Case, policy: Policy) -> Ruling | None:
    """Before all others: what holds a credential is not even compared with what is stored."""
    if case.secrets is not None and case.secrets.verdict is Verdict.FAIL:
        return Ruling(13, Tier.BLOCKED, "Contains a credential", (case.secrets,))
    return None


def _speculation(case: Case, policy: Policy) -> Ruling | None:
    if case.hedge.code in BLOCKING_HEDGES:
        return Ruling(1, Tier.BLOCKED, "Contains personal speculation", (case.hedge,))
    return None


def _duplicate(case: Case, policy: Policy) -> Ruling | None:
    if case.dedup.code == "duplicate":
        return Ruling(2, Tier.BLOCKED, "Duplicate of existing memory", (case.dedup,))
    return None


def _echo(case: Case, policy: Policy) -> Ruling | None:
    if case.echo is not None and policy.echo.action == "block":
        return Ruling(14, Tier.BLOCKED, ECHO_REASON, (case.echo,))
    return None


def _conflict(case: Case, policy: Policy) -> Ruling | None:
    if case.dedup.code == "conflict":
        return Ruling(3, Tier.QUEUED, "Conflicts with existing memory", (case.dedup,))
    return None


def _already_pending(case: Case, policy: Policy) -> Ruling | None:
    if case.dedup.code == "already_pending":
        return Ruling(4, Tier.QUEUED, "Already waiting for review", (case.dedup,))
    return None


def _removal(case: Case, policy: Policy) -> Ruling | None:
    """Before all that is asked of a text: what is to go was looked at when it came."""
    if case.place is not None and case.place.code == "removal_waits":
        return Ruling(4, Tier.QUEUED, "Already waiting for review", (case.place,))
    if case.place is not None and case.place.code == "removal":
        return Ruling(15, Tier.QUEUED, "Asks to remove what is stored", (case.place,))
    return None


def _change(case: Case, policy: Policy) -> Ruling | None:
    """Whatever vouches for the new text: an agent cannot take a memory away by writing over it."""
    if case.place is not None and case.place.code == "place_taken":
        return Ruling(15, Tier.QUEUED, "Changes what is stored", (case.place,))
    return None


def _technical_hedge(case: Case, policy: Policy) -> Ruling | None:
    # Whatever is not a clean pass is at least a doubt: an unknown code must not slip through.
    if case.hedge.verdict is not Verdict.PASS:
        return Ruling(5, Tier.QUEUED, "Contains technical hedges - needs verification", (case.hedge,))
    return None


def _dedup_unknown(case: Case, policy: Policy) -> Ruling | None:
    if case.dedup.code == "paraphrase":
        reason = "May say the same as an earlier claim in other words"
        return Ruling(6, Tier.QUEUED, reason, (case.dedup,))
    if case.dedup.verdict is not Verdict.PASS:
        return Ruling(6, Tier.QUEUED, "Dedup check failed - cannot verify uniqueness", (case.dedup,))
    return None


def _citation_refuted(case: Case, policy: Policy) -> Ruling | None:
    refuted = tuple(f for f in case.citations if f.verdict in (Verdict.FAIL, Verdict.DOUBT))
    if not refuted:
        return None
    missing = [f for f in refuted if f.code == "citation_missing"]
    tier = policy.missing_citation_tier if missing else Tier.QUEUED
    return Ruling(7, tier, " ".join(finding.message for finding in refuted), refuted)


def _citation_verified(case: Case, policy: Policy) -> Ruling | None:
    if not case.citations or any(_stands_against(finding, policy) for finding in case.citations):
        return None
    if case.score is None or case.score < policy.confidence_floor:
        return None
    if case.source is Source.AI_SYNTHESIS and not policy.auto_approve_ai_synthesis:
        return None
    return Ruling(8, Tier.STORED, "Has verified citation", tuple(case.citations))


def _stands_against(finding: Finding, policy: Policy) -> bool:
    """Whatever is no PASS does, but for a text that can be read and of which the rules cannot tell whether it
    speaks of the claim: only a policy that requires relevance minds that."""
    if finding.code == UNCLEAR and not policy.require_relevance:
        return False
    return finding.verdict is not Verdict.PASS


def _trusted_source(case: Case, policy: Policy) -> Ruling | None:
    if case.source in policy.trusted_sources:
        return Ruling(9, Tier.STORED, "From trusted source", ())
    return None


def _stated(case: Case, policy: Policy) -> Ruling | None:
    if case.source not in policy.stated_in_conversation.get(case.memory_type, ()):
        return None
    preference = case.memory_type is MemoryType.PREFERENCE
    reason = "Preference stated by user" if preference else "Decision stated in conversation"
    return Ruling(10, Tier.STORED, reason, ())


def _citation_unknown(case: Case, policy: Policy) -> Ruling | None:
    unknown = tuple(
        f for f in case.citations if f.verdict is Verdict.UNKNOWN and f.code not in ASKING_AGAIN_IS_NO_USE
    )
    if unknown:
        return Ruling(11, Tier.QUEUED, "Citation could not be checked yet", unknown)
    return None


def _ungrounded(case: Case, policy: Policy) -> Ruling:
    unclear = tuple(f for f in case.citations if f.code in ASKING_AGAIN_IS_NO_USE)
    return Ruling(12, Tier.QUEUED, "Ungrounded assertion needs verification", unclear)


# Rule 4 stands before rule 3 in effect: `ingest.checks.dedup` calls a claim a conflict only when it does not
# repeat a pending item, so that a repeated conflict is not queued twice (ADR-0005).
RULES: tuple[Rule, ...] = (
    _credential,
    _removal,
    _speculation,
    _duplicate,
    _echo,
    _already_pending,
    _change,
    _conflict,
    _technical_hedge,
    _dedup_unknown,
    _citation_refuted,
    _citation_verified,
    _trusted_source,
    _stated,
    _citation_unknown,
)


def route(case: Case, policy: Policy) -> Ruling:
    """The first rule that matches; rule 12 takes what none of them took."""
    for rule in RULES:
        ruling = rule(case, policy)
        if ruling is not None:
            return _unless_echo(case, policy, ruling)
    return _ungrounded(case, policy)


def _unless_echo(case: Case, policy: Policy, ruling: Ruling) -> Ruling:
    """What would be stored waits when it is an echo and the policy says so; what would not be is left as it is, so
    that rule 11 still asks again."""
    if ruling.tier is Tier.STORED and case.echo is not None and policy.echo.action == "queue":
        return Ruling(14, Tier.QUEUED, ECHO_REASON, (case.echo,))
    return ruling
