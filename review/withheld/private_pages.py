"""What an agent is not told: the words of pages in networks that only the operator opened.

The agent chose the address, so whatever it is shown of the page is a way to read the operator's network. Reviewers and
auditors see all of it, and what is stored is whole: this is a view, made when something is handed to an agent.
Messages and reasons need none, because checks quote no private page in them.
"""

from __future__ import annotations

from dataclasses import replace

from vouchgate.ingest.claims.claim import Finding
from vouchgate.ingest.claims.decision import Evidence, ValidationResult
from vouchgate.ingest.claims.people import Principal, Role
from vouchgate.ingest.claims.source import Found, NotJudged, SourceReading
from vouchgate.ingest.documents.gate import CheckedDocument
from vouchgate.ingest.documents.verdict import CheckedClaim, ClaimVerdict, SourceSeen

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


def document_for_anybody(checked: CheckedDocument) -> CheckedDocument:
    """A checked document without a word of private pages, whoever reads it: what can be told of them, which words of a
    claim they do not have too, is left out."""
    return replace(checked, claims=tuple(map(_checked_claim, checked.claims)))


def _checked_claim(one: CheckedClaim) -> CheckedClaim:
    if not any(source.private for source in one.sources):
        return one
    message = one.message
    if one.verdict in (ClaimVerdict.PARTIAL, ClaimVerdict.UNKNOWN):  # what these say may be of the page
        message = "A source of it is a private page, of which no word is told here."
    return replace(one, message=message, missing=(), sources=tuple(map(_seen, one.sources)))


def _seen(source: SourceSeen) -> SourceSeen:
    if not source.private:
        return source
    return replace(source, detail=WITHHELD, title="", digest="", dated=None, quotation="", place=None)


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
