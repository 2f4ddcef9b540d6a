"""What an approval comes to, decided without I/O: may the text be stored now, and what does it replace?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from vouchgate.ingest.checks import dedup
from vouchgate.ingest.checks.citations import VERIFY
from vouchgate.ingest.claims.claim import Verdict
from vouchgate.ingest.claims.hedges import BLOCKING_HEDGES
from vouchgate.ingest.claims.likeness import DedupFacts, DedupUnavailable, ItemKind, Neighbours
from vouchgate.ingest.dedup.compare import Comparisons, compare, contradicting
from vouchgate.ingest.language.words import tokens
from vouchgate.ingest.pipeline import Examined
from vouchgate.ingest.policy import Policy
from vouchgate.review.answers import ApprovalRefused

CLOSE = 2  # words; of claims that share a form each has more of its own


def says_nearly(content: str, other: str) -> bool:
    """Whether one of two like texts says, but for a word or two, all that the other does."""
    one, two = tokens(content), tokens(other)
    return min(len(one - two), len(two - one)) <= CLOSE


@dataclass(frozen=True, slots=True)
class ApprovalAllowed:
    """Nothing stands against storing it. `replaces` is the id of the memory it supersedes, if any."""

    replaces: str | None


def stored_only(facts: DedupFacts) -> DedupFacts:
    """The neighbours that are memories. Other waiting items say nothing against an approval: when their
    turn comes, they meet the memory this one became."""
    if isinstance(facts, DedupUnavailable):
        return facts
    return Neighbours(items=tuple(item for item in facts.items if item.kind is ItemKind.MEMORY))


def check_conflicts(
    content: str,
    facts: DedupFacts,
    policy: Policy,
    *,
    supersede: bool | None,
    recorded: str | None,
    at_place: str | None = None,
    known: Comparisons | None = None,
) -> ApprovalAllowed | ApprovalRefused:
    """Holds the text against the stored memories as they are now; `known` is what of that was done before. `at_place`
    is the memory over which it would be written in a store behind the gate: that one is replaced, and no other.

    `recorded` is the conflicting memory that the item names, None when it is not in force any more. One
    approval replaces at most one memory, the one the reviewer was shown: `recorded` while it conflicts,
    else the nearest that does; other conflicting memories stay in force. When the text conflicts with
    nothing (any more), `supersede=True` still replaces `recorded`: the reviewer asked for that.
    """
    known = known or Comparisons(content, policy.threshold, policy.values)
    if at_place is not None:
        return _settle_over(at_place, content, facts, policy, supersede=supersede, known=known)
    finding, nearest = dedup.judge(content, facts, policy.threshold, policy.values, known)
    if isinstance(facts, DedupUnavailable) or finding.verdict is Verdict.UNKNOWN:
        return ApprovalRefused(
            "dedup_unavailable",
            f"It could not be found out whether this is stored already: {finding.message}"
            " The item waits on; try again.",
        )
    if nearest is None:
        return ApprovalAllowed(recorded if supersede else None)
    if not nearest.changed:
        same = nearest.neighbour.id
        return ApprovalRefused(
            "duplicate",
            f"The same claim has been stored meanwhile, as {same}. Reject this item, or approve it with"
            " edited content.",
            same,
        )
    conflicts = (
        *compare(content, facts.items, policy.threshold, policy.values, known),
        *contradicting(content, facts.items, policy.threshold, policy.values, known),
    )
    target = next((c for c in conflicts if c.neighbour.id == recorded), nearest)
    if supersede is None:
        return ApprovalRefused(
            "conflict_unresolved",
            f"Memory {target.neighbour.id} says otherwise in nearly the same words"
            f" ({', '.join(target.changed[:8])}). Say which holds: replace it (supersede true), or keep"
            " both (supersede false).",
            target.neighbour.id,
        )
    return ApprovalAllowed(target.neighbour.id if supersede else None)


def _settle_over(
    at_place: str,
    content: str,
    facts: DedupFacts,
    policy: Policy,
    *,
    supersede: bool | None,
    known: Comparisons,
) -> ApprovalAllowed | ApprovalRefused:
    others = facts
    if isinstance(facts, Neighbours):
        others = facts.model_copy(update={"items": tuple(i for i in facts.items if i.id != at_place)})
    settled = check_conflicts(content, others, policy, supersede=supersede, recorded=None, known=known)
    if isinstance(settled, ApprovalRefused):
        return settled
    if settled.replaces is not None:
        message = f"It is written over {at_place}, so it cannot replace {settled.replaces} too. Keep that one"
        return ApprovalRefused(
            "one_place", f"{message} (supersede false), or reject this item.", settled.replaces
        )
    nothing_else = dedup.judge(content, others, policy.threshold, policy.values, known)[1] is None
    if supersede is False and nothing_else:
        message = f"It is written over {at_place}: both cannot be kept. Approve it to replace that one, or reject it."
        return ApprovalRefused("one_place", message, at_place)
    return ApprovalAllowed(at_place)


def horizon_problem(horizon: datetime | None, now: datetime) -> ApprovalRefused | None:
    """What stands against a claim that was to hold until `horizon` only (None: for good), when that has passed."""
    if horizon is None or horizon > now:
        return None
    message = f"The claim was to hold until {horizon.isoformat()}, which has passed. Reject this item."
    return ApprovalRefused("no_longer_valid", message)


def edit_problem(edited: Examined) -> ApprovalRefused | None:
    """What stands against a reviewer's own wording whatever is stored: speculation, or a citation shown to
    be false. The owner's word replaces missing support, not a check that failed."""
    if edited.claim.secrets:
        kinds = ", ".join(dict.fromkeys(match.kind for match in edited.claim.secrets))
        return ApprovalRefused(
            "edit_secret", f"The edited text cannot be stored: it holds a credential ({kinds})."
        )
    hedge = edited.findings["hedge"][0]
    if hedge.code in BLOCKING_HEDGES:
        return ApprovalRefused("edit_hedged", f"The edited text cannot be stored: {hedge.message}")
    refuted = [f.message for f in edited.findings.of(VERIFY) if f.verdict in (Verdict.FAIL, Verdict.DOUBT)]
    if refuted:
        return ApprovalRefused(
            "edit_citation_refuted", f"The edited text cannot be stored: {' '.join(refuted)}"
        )
    return None
