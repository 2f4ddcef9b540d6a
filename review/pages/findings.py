"""What each check concluded of a claim, in the order in which a person wants to read it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from vouchgate.ingest.check import Findings
from vouchgate.ingest.checks import citations, dedup, hedge, place
from vouchgate.ingest.claims.claim import Finding, Verdict
from vouchgate.ingest.claims.decision import ValidationResult
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.registry import title_of
from vouchgate.ingest.router import Case, route
from vouchgate.ingest.rules import Rule
from vouchgate.review.pages.wording.text import Pieces, pieces, plain_line

# The worst first: what one of several findings says against a thing outweighs what the others say.
_KINDS = {
    Verdict.FAIL: ("bad", "against it"),
    Verdict.DOUBT: ("doubt", "in doubt"),
    Verdict.UNKNOWN: ("unknown", "not known"),
    Verdict.PASS: ("good", "fine"),
}
_ORDER = list(_KINDS)


@dataclass(frozen=True, slots=True)
class FindingView:
    """One finding. `kind` is `good`, `doubt`, `bad` or `unknown`, `word` that in words, `check` what was asked,
    `citation` the cited thing it is about as written (none: about the claim); `decides`: the claim waits for it."""

    verdict: str
    kind: str
    word: str
    check: str
    says: Pieces
    citation: Pieces
    decides: bool


def finding_view(finding: Finding, *, decides: bool) -> FindingView:
    """One finding as it is shown."""
    kind, word = _KINDS[finding.verdict]
    return FindingView(
        verdict=finding.verdict.value,
        kind=kind,
        word=word,
        check=title_of(finding.check) or plain_line(finding.check, 40),
        says=pieces(finding.message),
        citation=pieces(finding.citation.value) if finding.citation is not None else (),
        decides=decides,
    )


def finding_views(findings: Iterable[Finding], deciding: Iterable[Finding]) -> tuple[FindingView, ...]:
    """Those that decided first, then from the worst to the best; equals stay as they are."""
    decided = list(deciding)
    views = [finding_view(finding, decides=finding in decided) for finding in findings]
    return tuple(sorted(views, key=lambda view: (not view.decides, _ORDER.index(Verdict(view.verdict)))))


def worst(findings: Iterable[Finding]) -> str:
    """The kind of the worst of them; `unknown` when there are none."""
    verdict = min((finding.verdict for finding in findings), key=_ORDER.index, default=Verdict.UNKNOWN)
    return _KINDS[verdict][0]


def deciding(answer: ValidationResult, policy: Policy) -> tuple[Finding, ...]:
    """The findings that an answer's rule rests on: those that the router names for them. None when the answer was
    made under a policy that decides otherwise, or some finding is not there."""
    if any(finding.code in (place.REMOVAL, place.REMOVAL_WAITS) for finding in answer.findings):
        return answer.findings
    found = Findings(answer.findings)
    if hedge.CHECK not in found or dedup.CHECK not in found:
        return ()
    claim = answer.evidence.claim
    case = Case(found, answer.evidence.confidence_score, claim.source, claim.memory_type)
    ruling = route(case, policy)
    if ruling.rule != answer.rule:
        return ()
    if ruling.rule is Rule.UNGROUNDED and not ruling.decided_by:
        return tuple(finding for finding in answer.findings if finding == citations.NO_CITATION)
    return ruling.decided_by
