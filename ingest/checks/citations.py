"""Which citations a claim has, and what was found of each. The pure half: readings come in as facts."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from vouchgate.ingest.check import Check
from vouchgate.ingest.claims.citation import Citation, CitationType
from vouchgate.ingest.claims.claim import Finding, Span, Verdict
from vouchgate.ingest.claims.source import Found, Missing, SourceReading, Standing, Unreachable
from vouchgate.ingest.scoring.reputation import is_banned, is_below
from vouchgate.ingest.scoring.sites import site_of

DETECT = "citation_detect"
VERIFY = "citation_verify"

# What a standing other than in force says about the claim that cites it.
_NOT_SUPPORT = {
    Standing.PROPOSED: "citation_not_in_force",
    Standing.SUPERSEDED: "citation_not_in_force",
    Standing.REJECTED: "citation_not_in_force",
    Standing.DEPRECATED: "citation_not_in_force",
    Standing.REVERTED: "citation_not_in_force",
    Standing.DETACHED: "citation_not_in_force",
    Standing.MEMORY: "citation_not_in_force",
    Standing.HINT: "citation_not_in_force",
    Standing.AMBIGUOUS: "citation_ambiguous",
    Standing.NOT_MERGED: "citation_not_merged",
}


NO_CITATION = Finding(
    check=DETECT,
    verdict=Verdict.DOUBT,
    code="no_citation",
    message="The claim cites nothing that can be checked.",
)


def judge_detected(citations: Sequence[Citation]) -> Finding:
    """One finding on whether the claim cites anything. No citation is a doubt, never a verified one."""
    if not citations:
        return NO_CITATION
    shown = ", ".join(dict.fromkeys(citation.value for citation in citations))
    return Finding(
        check=DETECT,
        verdict=Verdict.PASS,
        code="citations_detected",
        message=f"The claim cites {shown}.",
        spans=tuple(
            Span(start=c.start, end=c.end) for c in citations if c.start is not None and c.end is not None
        ),
    )


def judge_reading(reading: SourceReading, banned: frozenset[str]) -> Finding:
    """One finding per cited thing. A banned site (`Policy.banned`), named or only led to, fails before anything
    that was read of it counts."""
    citation = reading.citation
    if _names_banned(citation, banned):
        return _finding(reading, Verdict.FAIL, "citation_banned", f"{citation.value} is on the banned list.")
    if isinstance(reading, Found) and is_banned(reading, banned):
        where = "a page" if reading.private else reading.site or reading.source_id
        message = f"{citation.value} leads to {where}, which is on the banned list."
        return _finding(reading, Verdict.FAIL, "citation_banned", message)
    # A message goes where the evidence does not, such as the reason that an agent reads of its waiting claim.
    said = _describe_private(reading) if reading.private else reading.detail
    match reading:
        case Missing():
            return _finding(reading, Verdict.FAIL, "citation_missing", said)
        case Unreachable():
            return _finding(reading, Verdict.UNKNOWN, "citation_unchecked", said, because=reading.code)
        case Found(vouches=True):
            return _finding(reading, Verdict.PASS, "citation_verified", said)
        case Found():
            # What is not merged may be soon, and is asked again.
            verdict = Verdict.UNKNOWN if reading.standing is Standing.NOT_MERGED else Verdict.FAIL
            code = _NOT_SUPPORT[reading.standing]
            return _finding(reading, verdict, code, said, because=reading.standing.value)


def _describe_private(reading: SourceReading) -> str:
    """What is said of a page in a private network, without a word of it."""
    verbs = {"found": "exists", "missing": "does not exist", "unreachable": "could not be read"}
    status = "" if reading.status is None else f" (HTTP status {reading.status})"
    return f"{reading.citation.value} {verbs[reading.kind]}{status}, in a private network."


def _names_banned(citation: Citation, banned: frozenset[str]) -> bool:
    """Whether a cited URL's host is a banned domain or below one, or its account is; a host that cannot be read
    is neither, and is never asked."""
    if citation.type is not CitationType.URL or not banned:
        return False
    try:
        host = (urlsplit(citation.value).hostname or "").rstrip(".")
    except ValueError:
        return False
    return is_below(host, banned) or site_of(citation.value) in banned


def _finding(
    reading: SourceReading, verdict: Verdict, code: str, message: str, because: str | None = None
) -> Finding:
    citation = reading.citation
    span = (
        ()
        if citation.start is None or citation.end is None
        else (Span(start=citation.start, end=citation.end),)
    )
    return Finding(
        check=VERIFY,
        verdict=verdict,
        code=code,
        message=message,
        citation=citation,
        spans=span,
        facts={} if because is None else {"because": because},
        took_ms=reading.took_ms,
    )


CHECKS = (
    Check(
        name=DETECT,
        title="Citations",
        codes={"citations_detected": Verdict.PASS, NO_CITATION.code: Verdict.DOUBT},
        order=30,
        judge=lambda read: (judge_detected(read.citations),),
    ),
    Check(
        name=VERIFY,
        title="Citation",
        codes={
            "citation_verified": Verdict.PASS,
            "citation_missing": Verdict.FAIL,
            "citation_banned": Verdict.FAIL,
            **dict.fromkeys(_NOT_SUPPORT.values(), Verdict.FAIL),
            "citation_unchecked": Verdict.UNKNOWN,
            "citation_not_merged": Verdict.UNKNOWN,
        },
        order=40,
        judge=lambda read: [judge_reading(each, read.policy.banned) for each in read.readings],
    ),
)
