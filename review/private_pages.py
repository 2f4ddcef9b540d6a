"""What an agent is not told: the words of pages in networks that only the operator opened.

The agent chose the address, so whatever it is shown of the page is a way to read the operator's network. Reviewers and
auditors see all of it, and what is stored is whole: this is a view, made when something is handed to an agent.
Messages and reasons need none, because checks quote no private page in them.
"""

from __future__ import annotations

from vouchgate.ingest.claims.types import (
    Evidence,
    Finding,
    Found,
    NotJudged,
    Principal,
    Role,
    SourceReading,
    ValidationResult,
)

WITHHELD = "Text of a private page: shown to reviewers."

_MARK = '"private":true'  # as `private` is written in stored decisions
_FACTS = frozenset({"because", "rule", "score", "disagree", "model", "contains", "attributed", "code"})


def sees_private_pages(principal: Principal) -> bool:
    """Whether this principal is shown what private pages say."""
    return principal.role is not Role.AGENT


def answer_for(principal: Principal, answer: ValidationResult) -> ValidationResult:
    """A decision as this principal may read it."""
    evidence = evidence_for(principal, answer.evidence)
    if evidence is answer.evidence:
        return answer
    private = {reading.citation.key for reading in evidence.sources if reading.private}
    findings = tuple(_finding(each) if _is_about(each, private) else each for each in answer.findings)
    return answer.model_copy(update={"evidence": evidence, "findings": findings})


def json_for(principal: Principal, stored: str) -> str:
    """A stored decision as this principal may read it: the same text when nothing is withheld."""
    if sees_private_pages(principal) or _MARK not in stored:
        return stored
    answer = ValidationResult.model_validate_json(stored)
    shown = answer_for(principal, answer)
    return stored if shown is answer else shown.model_dump_json()


def evidence_for(principal: Principal, evidence: Evidence) -> Evidence:
    """Evidence as this principal may read it; the same object when nothing is withheld."""
    if sees_private_pages(principal) or not any(reading.private for reading in evidence.sources):
        return evidence
    return evidence.model_copy(update={"sources": tuple(map(_reading, evidence.sources))})


def _is_about(finding: Finding, private: set[str]) -> bool:
    return finding.citation is not None and finding.citation.key in private


def _reading(reading: SourceReading) -> SourceReading:
    if not reading.private:
        return reading
    if not isinstance(reading, Found):
        return reading.model_copy(update={"detail": WITHHELD})
    judgement = reading.judgement
    if judgement is not None:
        quoting = "detail" if isinstance(judgement, NotJudged) else "quote"
        judgement = judgement.model_copy(update={quoting: ""})
    nothing = {"title": "", "excerpt": "", "digest": "", "site": "", "links": (), "successor": None}
    nothing |= {
        "held": None,
        "text_digest": "",
        "quoted": (),
    }  # where the page says what, and a way to guess at it
    return reading.model_copy(update={**nothing, "detail": WITHHELD, "judgement": judgement})


def _finding(finding: Finding) -> Finding:
    """Without the source's words, and without where they stand in it."""
    return finding.model_copy(
        update={"facts": {name: value for name, value in finding.facts.items() if name in _FACTS}}
    )
