"""Do the words that a claim quotes stand in what it cites? A quotation is easy to look up, and easy to get right for
whoever has read the source. One that is not there, stands in another source, or was put together from two places is
refuted.

Each quotation was looked up in each source when that was read (`Found.quoted`); here it is said which is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import JsonValue

from vouchgate.ingest.check import Check, ReadClaim, shorten
from vouchgate.ingest.claims.citation import Citation
from vouchgate.ingest.claims.claim import Finding, Span, Verdict
from vouchgate.ingest.claims.source import Found, Quoted
from vouchgate.ingest.support.quotation import LEAST_WORDS, Quotation, quotations_of

CHECK = "quote"
_FOUND = ("there", "title")


def judge(read: ReadClaim) -> Iterator[Finding]:
    """One finding for each quotation from a source that is there. No word of the source is shown: of a private page
    it is said whether the quotation is there, and no more."""
    if not read.by_statements:
        return
    sources = [reading for reading in read.readings if isinstance(reading, Found)]
    for number, quotation in enumerate(quotations_of(read.citations)):
        for source in sources:
            if source.citation.key == quotation.citation.key:
                yield _finding(number, quotation, source, sources)


def _finding(number: int, quotation: Quotation, source: Found, sources: list[Found]) -> Finding:
    quoted = _of(source, number)
    if quoted is None or quoted.found == "unread":
        message = (
            f"Whether {source.name} has the words “{shorten(quotation.text)}” could not be found out: not all of it "
            "is read."
        )
        return _said(Verdict.UNKNOWN, "quote_unread", message, quotation)
    if quoted.found not in _FOUND:
        return _refuted(number, quotation, source, sources, stitched=quoted.found == "stitched")
    if quotation.short:
        message = (
            f"“{shorten(quotation.text)}” is too short a quotation from {source.name}: it shows nothing with fewer "
            f"than {LEAST_WORDS} words."
        )
        return _said(Verdict.DOUBT, "quote_short", message, quotation)
    if quoted.part:
        message = (
            f"“{shorten(quotation.text)}” stands in the {quoted.part} of {source.name}, which vouches for nothing: "
            "quote what it decides."
        )
        return _said(Verdict.DOUBT, "quote_weighed", message, quotation)
    facts: dict[str, JsonValue] = {}
    if quoted.place is not None:
        facts = {"source_start": quoted.place[0], "source_end": quoted.place[1]}
    return _said(
        Verdict.PASS, "quote_there", f"{source.name} has the words that are quoted.", quotation, facts
    )


def _refuted(
    number: int, quotation: Quotation, source: Found, sources: list[Found], *, stitched: bool
) -> Finding:
    shown = f"“{shorten(quotation.text)}”"
    elsewhere = [other.name for other in sources if (found := _of(other, number)) and found.found in _FOUND]
    if elsewhere:
        message = f"{shown} stands in {elsewhere[0]}, and not in {source.name}."
        return _said(Verdict.FAIL, "quote_misattributed", message, quotation, {"found_in": elsewhere[0]})
    if stitched and not source.private:
        message = f"{shown} is put together from two places of {source.name}: quote one of them as it stands."
        return _said(Verdict.FAIL, "quote_stitched", message, quotation)
    return _said(Verdict.FAIL, "quote_missing", f"{shown} does not stand in {source.name}.", quotation)


def _of(source: Found, number: int) -> Quoted | None:
    return next((quoted for quoted in source.quoted if quoted.number == number), None)


def _said(
    verdict: Verdict, code: str, message: str, quotation: Quotation, facts: dict[str, JsonValue] | None = None
) -> Finding:
    """A doubt is about the quotation and not about the source, so it is a finding on the claim."""
    citation: Citation = quotation.citation
    place = () if citation.start is None or citation.end is None else (citation.start, citation.end)
    on_claim = verdict is Verdict.DOUBT
    return Finding(
        check=CHECK,
        verdict=verdict,
        code=code,
        message=message,
        citation=None if on_claim else citation.model_copy(update={"quote": ""}),
        spans=(Span(start=place[0], end=place[1]),) if place else (),
        facts=({"id": citation.value} if on_claim else {}) | (facts or {}),
    )


CHECKS = (
    Check(
        name=CHECK,
        title="Quotations",
        codes={
            "quote_there": Verdict.PASS,
            "quote_short": Verdict.DOUBT,
            "quote_weighed": Verdict.DOUBT,
            "quote_missing": Verdict.FAIL,
            "quote_misattributed": Verdict.FAIL,
            "quote_stitched": Verdict.FAIL,
            "quote_unread": Verdict.UNKNOWN,
        },
        order=45,
        judge=judge,
    ),
)
