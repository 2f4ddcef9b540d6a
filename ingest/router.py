"""The router: one table, first match wins, pure. What the rules are called is in `ingest.rules`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from vouchgate.ingest.check import Findings
from vouchgate.ingest.claims.claim import Finding, MemoryType, Source, Verdict
from vouchgate.ingest.claims.decision import Tier
from vouchgate.ingest.claims.hedges import BLOCKING_HEDGES
from vouchgate.ingest.claims.trust import AppliedRuling, RulingVerdict, Track, TrackRecord
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.rules import CHANGE_REASON, Rule
from vouchgate.ingest.scoring.sampling import interval

UNCLEAR = "support_unclear"  # the source was read, and the rules cannot tell whether it speaks of the claim
ECHO_REASON = "Sent again and again"
UNREADABLE = "support_unreadable"  # the source is there, and has no text to hold a claim against
# Checks whose findings have rules of their own here; so have all that are on a thing cited.
HAVE_RULES = frozenset(
    {
        "hedge",
        "citation_detect",
        "dedup",
        "place",
        "secrets",
        "echo",
        "statements",
        "hidden",
        "instruction",
        "personal",
        "corroboration",
    }
)
ASKING_AGAIN_IS_NO_USE = frozenset({UNCLEAR, UNREADABLE, "quote_unread"})


@dataclass(frozen=True)  # no slots: what rules ask for again and again is kept
class Case:
    """What the router sees: findings and the few facts of the claim that rules ask for."""

    findings: Findings
    score: float | None  # lowest score of the verified sources
    source: Source  # what counts, after grants
    memory_type: MemoryType
    by_statements: bool = True  # as of `ingest.pipeline.examine`
    standing_ruling: AppliedRuling | None = None  # that bears on the claim
    track: Track | None = None  # how often such claims were right

    @cached_property
    def hedge(self) -> Finding:
        """Whether the writer stands behind it. Raises KeyError when that was not asked."""
        return self.findings["hedge"][0]

    @cached_property
    def dedup(self) -> Finding:
        """Whether it is new. Raises KeyError when that was not asked."""
        return self.findings["dedup"][0]

    @cached_property
    def place(self) -> Finding | None:
        """Of the place that the claim names, when something is there or is to go."""
        return self.findings.one("place")

    @cached_property
    def echo(self) -> Finding | None:
        """When it was sent again and again."""
        return self.findings.one("echo")

    @cached_property
    def citations(self) -> tuple[Finding, ...]:
        """Of each cited thing whether it is there, and whether it speaks of the claim."""
        return self.findings.cited

    @cached_property
    def harvested(self) -> tuple[Finding, ...]:
        """The same of what the gate itself cited for it."""
        return tuple(f for f in self.citations if f.citation is not None and f.citation.harvested)

    @cached_property
    def statements(self) -> Finding | None:
        """Of a claim whose sources could all be read, what they do to its statements together."""
        return self.findings.one("statements")

    @cached_property
    def secrets(self) -> Finding | None:
        """When it held a credential."""
        return self.findings.one("secrets")


@dataclass(frozen=True, slots=True)
class Ruling:
    """Where the claim goes, by which rule, and the findings the rule rests on."""

    rule: Rule
    tier: Tier
    reason: str
    decided_by: tuple[Finding, ...]


Match = Callable[[Case, Policy], Ruling | None]


def _credential(case: Case, policy: Policy) -> Ruling | None:
    """Before all others: what holds a credential is not even compared with what is stored."""
    secrets = case.secrets
    if secrets is not None and secrets.verdict is Verdict.FAIL:
        return Ruling(Rule.CREDENTIAL, Tier.BLOCKED, "Contains a credential", (secrets,))
    return None


def _speculation(case: Case, policy: Policy) -> Ruling | None:
    if case.hedge.code in BLOCKING_HEDGES:
        return Ruling(Rule.SPECULATION, Tier.BLOCKED, "Contains personal speculation", (case.hedge,))
    return None


def _duplicate(case: Case, policy: Policy) -> Ruling | None:
    if case.dedup.code == "duplicate":
        return Ruling(Rule.DUPLICATE, Tier.BLOCKED, "Duplicate of existing memory", (case.dedup,))
    return None


def _echo(case: Case, policy: Policy) -> Ruling | None:
    if case.echo is not None and policy.echo.action == "block":
        return Ruling(Rule.ECHO, Tier.BLOCKED, ECHO_REASON, (case.echo,))
    return None


def _conflict(case: Case, policy: Policy) -> Ruling | None:
    if case.dedup.code == "conflict":
        return Ruling(Rule.CONFLICT, Tier.QUEUED, "Conflicts with existing memory", (case.dedup,))
    return None


def _already_pending(case: Case, policy: Policy) -> Ruling | None:
    if case.dedup.code == "already_pending":
        return Ruling(Rule.ALREADY_PENDING, Tier.QUEUED, "Already waiting for review", (case.dedup,))
    return None


def _removal(case: Case, policy: Policy) -> Ruling | None:
    """Before all that is asked of a text: what is to go was looked at when it came."""
    if case.place is not None and case.place.code == "removal_waits":
        return Ruling(Rule.ALREADY_PENDING, Tier.QUEUED, "Already waiting for review", (case.place,))
    if case.place is not None and case.place.code == "removal":
        return Ruling(Rule.REMOVAL, Tier.QUEUED, "Asks to remove what is stored", (case.place,))
    return None


def _change(case: Case, policy: Policy) -> Ruling | None:
    """Whatever vouches for the new text: an agent cannot take a memory away by writing over it."""
    if case.place is not None and case.place.code == "place_taken":
        return Ruling(Rule.PLACE_CHANGE, Tier.QUEUED, CHANGE_REASON, (case.place,))
    return None


def _technical_hedge(case: Case, policy: Policy) -> Ruling | None:
    # Whatever is not a clean pass is at least a doubt: an unknown code must not slip through.
    if case.hedge.verdict is not Verdict.PASS:
        return Ruling(
            Rule.TECHNICAL_HEDGE, Tier.QUEUED, "Contains technical hedges - needs verification", (case.hedge,)
        )
    return None


def _dedup_unknown(case: Case, policy: Policy) -> Ruling | None:
    if case.dedup.code == "paraphrase":
        reason = "May say the same as an earlier claim in other words"
        return Ruling(Rule.DEDUP_UNKNOWN, Tier.QUEUED, reason, (case.dedup,))
    if case.dedup.verdict is not Verdict.PASS:
        return Ruling(
            Rule.DEDUP_UNKNOWN, Tier.QUEUED, "Dedup check failed - cannot verify uniqueness", (case.dedup,)
        )
    return None


def _citation_refuted(case: Case, policy: Policy) -> Ruling | None:
    refuted = tuple(f for f in case.citations if f.verdict in (Verdict.FAIL, Verdict.DOUBT))
    if not refuted:
        return None
    missing = [f for f in refuted if f.code == "citation_missing"]
    tier = policy.missing_citation_tier if missing else Tier.QUEUED
    return Ruling(Rule.REFUTED, tier, " ".join(finding.message for finding in refuted), refuted)


def _doubted(case: Case, policy: Policy) -> Ruling | None:
    """A check without a rule of its own: whatever it could not let pass is for the owner."""
    against = tuple(
        finding
        for finding in case.findings.every
        if finding.verdict is not Verdict.PASS
        and finding.citation is None
        and finding.check not in HAVE_RULES
    )
    if against:
        return Ruling(Rule.DOUBTED, Tier.QUEUED, " ".join(finding.message for finding in against), against)
    return None


def _hidden(case: Case, policy: Policy) -> Ruling | None:
    found = tuple(f for f in case.findings.of("hidden") if f.verdict is not Verdict.PASS)
    return Ruling(Rule.HIDDEN_TEXT, Tier.QUEUED, "Has text that nobody can see", found) if found else None


def _instruction(case: Case, policy: Policy) -> Ruling | None:
    found = tuple(f for f in case.findings.of("instruction") if f.verdict is not Verdict.PASS)
    return Ruling(Rule.INSTRUCTION, Tier.QUEUED, "Speaks to a model", found) if found else None


def _personal(case: Case, policy: Policy) -> Ruling | None:
    found = tuple(f for f in case.findings.of("personal") if f.verdict is not Verdict.PASS)
    return Ruling(Rule.PERSONAL_DATA, Tier.QUEUED, "Holds personal data", found) if found else None


def _uncovered(case: Case, policy: Policy) -> Ruling | None:
    """What somebody granted vouches for needs no source; all else must not say more than its sources do."""
    found = case.statements
    if found is None or found.code != "uncovered" or case.source is not Source.AI_SYNTHESIS:
        return None
    return Ruling(Rule.UNCOVERED, Tier.QUEUED, found.message, (found,))


def _covered(case: Case, policy: Policy, code: str) -> tuple[Finding, ...] | None:
    """What speaks for a claim whose statements what it cites covers in this way; None when something speaks against it:
    a source that does not vouch, a score under the floor, a policy that stores nothing a model says."""
    found = case.statements
    if found is None or found.code != code or case.harvested or _is_opposed(case.citations, case, policy):
        return None
    return (*case.citations, found)


def _is_opposed(cited: tuple[Finding, ...], case: Case, policy: Policy) -> bool:
    return (
        any(_stands_against(finding, policy) for finding in cited)
        or case.score is None
        or case.score < policy.confidence_floor
        or (case.source is Source.AI_SYNTHESIS and not policy.auto_approve_ai_synthesis)
    )


def _corroborated(case: Case, policy: Policy) -> Ruling | None:
    """By what the gate found. What was cited beside it could not be read, or a rule before this one had it."""
    said, found = case.findings.one("corroboration"), case.harvested
    if not found or _is_opposed(found, case, policy):
        return None
    if said is None:  # official, and all there is
        said = case.statements
        if said is None or said.code != "stated":
            return None
    if said.verdict is not Verdict.PASS:
        return None
    tier, whose = Tier.STORED, "an official source"
    if said.code == "independent":
        tier = Tier.STORED if policy.corroboration.independent == "store" else Tier.QUEUED
        whose = "independent sources"
    return Ruling(Rule.CORROBORATED, tier, f"Stated by {whose} that the gate found", (*found, said))


def _stated(case: Case, policy: Policy) -> Ruling | None:
    found = _covered(case, policy, "stated")
    as_read = ", as the entailment model reads it" if found and found[-1].spans else ""
    return Ruling(Rule.STATED, Tier.STORED, f"Stated by its source{as_read}", found) if found else None


def _spoken_of(case: Case, policy: Policy) -> Ruling | None:
    found = _covered(case, policy, "spoken_of") if policy.spoken_of == "store" else None
    if not found:
        return None
    shown, _ = interval(case.track.agent if case.track else TrackRecord())
    if shown < policy.spoken_of_floor:
        reason = "Only spoken of by its source, and its agent is not shown to be right often enough"
        return Ruling(Rule.SPOKEN_OF, Tier.QUEUED, reason, found)
    return Ruling(Rule.SPOKEN_OF, Tier.STORED, "Spoken of by its source", found)


def _pointer(case: Case, policy: Policy) -> Ruling | None:
    found = _covered(case, policy, "pointer")
    return Ruling(Rule.POINTER, Tier.STORED, "Points at what is there", found) if found else None


def _citation_verified(case: Case, policy: Policy) -> Ruling | None:
    """Only of decisions of before statements were held against sources one by one, which are made again as then."""
    if case.by_statements or not case.citations or _is_opposed(case.citations, case, policy):
        return None
    return Ruling(Rule.CITATION_VERIFIED, Tier.STORED, "Has verified citation", case.citations)


def _stands_against(finding: Finding, policy: Policy) -> bool:
    """Whatever is no PASS does. Before statements were held against sources, a text that can be read and of which the
    rules could not tell whether it speaks of the claim did so only under a policy that required relevance."""
    if finding.code == UNCLEAR and policy.require_relevance is False:
        return False
    return finding.verdict is not Verdict.PASS


def _trusted_source(case: Case, policy: Policy) -> Ruling | None:
    if case.source in policy.trusted_sources:
        return Ruling(Rule.TRUSTED_SOURCE, Tier.STORED, "From trusted source", ())
    return None


def _in_conversation(case: Case, policy: Policy) -> Ruling | None:
    if case.source not in policy.stated_in_conversation.get(case.memory_type, ()):
        return None
    preference = case.memory_type is MemoryType.PREFERENCE
    reason = "Preference stated by user" if preference else "Decision stated in conversation"
    return Ruling(Rule.STATED_IN_CONVERSATION, Tier.STORED, reason, ())


def _citation_unknown(case: Case, policy: Policy) -> Ruling | None:
    unknown = tuple(
        f for f in case.citations if f.verdict is Verdict.UNKNOWN and f.code not in ASKING_AGAIN_IS_NO_USE
    )
    if unknown:
        return Ruling(Rule.CITATION_UNKNOWN, Tier.QUEUED, "Citation could not be checked yet", unknown)
    return None


def _ungrounded(case: Case, policy: Policy) -> Ruling:
    unclear = tuple(f for f in case.citations if f.code in ASKING_AGAIN_IS_NO_USE)
    return Ruling(Rule.UNGROUNDED, Tier.QUEUED, "Ungrounded assertion needs verification", unclear)


# What waits already stands before a conflict in effect: `ingest.checks.dedup` calls a claim a conflict only when it
# does not repeat a pending item, so that a repeated conflict is not queued twice (ADR-0005).
RULES: tuple[Match, ...] = (
    _credential,
    _removal,
    _speculation,
    _duplicate,
    _echo,
    _already_pending,
    _change,
    _conflict,
    _hidden,
    _instruction,
    _personal,
    _technical_hedge,
    _dedup_unknown,
    _citation_refuted,
    _doubted,
    _uncovered,
    _corroborated,
    _stated,
    _spoken_of,
    _pointer,
    _citation_verified,
    _trusted_source,
    _in_conversation,
    _citation_unknown,
)


def route(case: Case, policy: Policy) -> Ruling:
    """The first rule that matches; the last takes what none of them took. Then what its owner said of such claims, and
    what policy says of echoes."""
    found = (ruling for matches in RULES if (ruling := matches(case, policy)) is not None)
    ruling = next(found, None) or _ungrounded(case, policy)
    return _unless_echo(case, policy, _by_owner(case, policy, ruling))


def _by_owner(case: Case, policy: Policy, ruling: Ruling) -> Ruling:
    """What the standing ruling of its owner makes of it (ADR-0042). One that rejects keeps out whatever would be stored
    or wait. One that stores outranks that nothing shown vouches for all of the claim, and nothing else: whatever speaks
    against it, or could not be found out, goes to its owner still."""
    standing = case.standing_ruling
    if standing is None:
        return ruling
    if standing.verdict is RulingVerdict.REJECT:
        if ruling.tier is Tier.BLOCKED:
            return ruling
        return Ruling(
            Rule.STANDING_RULING,
            Tier.BLOCKED,
            f"Rejected by a standing ruling of its owner: {standing.name}",
            (),
        )
    if not _only_unvouched(case, policy, ruling):
        return ruling
    reason = f"Stored by a standing ruling of its owner: {standing.name}"
    return Ruling(Rule.STANDING_RULING, Tier.STORED, reason, ruling.decided_by)


def _only_unvouched(case: Case, policy: Policy, ruling: Ruling) -> bool:
    """Whether a claim waits for nothing but that no source vouches for all of it, nothing is left to be found out, and
    the operator lets standing rulings store such claims."""
    if not policy.standing_rulings.store or (
        case.source is Source.AI_SYNTHESIS and not policy.auto_approve_ai_synthesis
    ):
        return False
    if any(finding.verdict is Verdict.UNKNOWN for finding in case.findings.every):
        return False
    return ruling.rule in (Rule.UNCOVERED, Rule.UNGROUNDED)


def _unless_echo(case: Case, policy: Policy, ruling: Ruling) -> Ruling:
    """What would be stored waits when it is an echo and the policy says so; what would not be is left as it is, so
    that a citation that is unknown is still asked again."""
    if ruling.tier is Tier.STORED and case.echo is not None and policy.echo.action == "queue":
        return Ruling(Rule.ECHO, Tier.QUEUED, ECHO_REASON, (case.echo,))
    return ruling
