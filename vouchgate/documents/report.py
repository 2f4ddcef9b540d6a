"""The answer about documents, as one value that every format is written from."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import date, datetime
from functools import cached_property
from typing import Literal

from pydantic import JsonValue

from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.claims.source import Stance
from vouchgate.ingest.documents.gate import CheckedDocument, Gated
from vouchgate.ingest.documents.types import Slip
from vouchgate.ingest.documents.verdict import CheckedClaim, ClaimVerdict

FORMAT: Literal[1] = 1  # of the JSON
DANGLING = "It refers to an entry that is missing"  # outside of claims: within one it makes the verdict


@dataclass(frozen=True)
class Report:
    """What was checked, when, under which policy, and what came of it."""

    documents: tuple[CheckedDocument, ...]
    gated: Gated
    at: datetime
    policy_digest: str

    def as_json(self) -> dict[str, JsonValue]:
        """As `--format json` has it; docs/gate-doc.schema.json describes every field."""
        told = ReportJson(
            passed=self.gated.passed,
            status=self.gated.status,
            reasons=self.gated.reasons,
            counts=self.gated.counts,
            at=self.at,
            policy_digest=self.policy_digest,
            documents=tuple(map(_document, self.documents)),
        )
        found: dict[str, JsonValue] = told.model_dump(mode="json")
        return found


class Lines:
    """Where in a text a character stands."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(at + 1 for at, sign in enumerate(self._text) if sign == "\n")]

    def at(self, offset: int) -> tuple[int, int]:
        """Line and column of a character, both from 1."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1


def problems(document: CheckedDocument) -> Iterator[CheckedClaim]:
    """Claims that are not verified, in the order of the document."""
    good = (ClaimVerdict.VERIFIED, ClaimVerdict.EXEMPT)
    return (one for one in document.claims if one.verdict not in good)


def shown(text: str, most: int = 160) -> str:
    """A text on one line, not too long, without control characters that a terminal would act upon."""
    line = "".join(c if c.isprintable() else "\ufffd" for c in " ".join(text.split()))
    return line if len(line) <= most else f"{line[: most - 1]}…"


class AcceptedJson(Frozen):
    """Why a claim is let pass, and until which day."""

    reason: str
    until: date


class CitationJson(Frozen):
    """A reference of a claim, and where in the text it stands."""

    target: str
    start: int
    end: int
    dangling: bool


class SourceJson(Frozen):
    """A source as it was read; `place` is where its quotation stands in its text."""

    cited: str
    kind: str
    state: str
    detail: str
    address: str
    title: str
    digest: str
    dated: datetime | None
    stance: Stance | None
    score: float | None
    official: bool
    harvested: bool
    quotation: str
    place: tuple[int, int] | None
    private: bool


class ClaimJson(Frozen):
    """A claim with its verdict. `start` and `end` are characters of the text; lines and columns begin at 1. `lead` is
    the sentence that leads in to its list."""

    verdict: ClaimVerdict
    message: str
    missing: tuple[str, ...]
    line: int
    column: int
    start: int
    end: int
    text: str
    lead: str
    section: tuple[str, ...]
    marked: str
    fingerprint: str
    citations: tuple[CitationJson, ...]
    sources: tuple[SourceJson, ...]
    accepted: AcceptedJson | None


class SlipJson(Frozen):
    """What is wrong with the references of a document, whatever their sources say."""

    kind: Slip
    line: int
    start: int
    end: int
    text: str


class DocumentJson(Frozen):
    """A document; `lowest_score` is the worst of its sources', None where none was read."""

    file: str
    lowest_score: float | None
    claims: tuple[ClaimJson, ...]
    slips: tuple[SlipJson, ...]


class ReportJson(Frozen):
    """What `vouchgate gate-doc --format json` writes."""

    format: Literal[1] = FORMAT
    passed: bool
    status: int
    reasons: tuple[str, ...]
    counts: dict[str, int]
    at: datetime
    policy_digest: str
    documents: tuple[DocumentJson, ...]


def _document(checked: CheckedDocument) -> DocumentJson:
    lines = Lines(checked.document.text)
    return DocumentJson(
        file=checked.document.name,
        lowest_score=checked.lowest_score,
        claims=tuple(_claim(checked, one, lines) for one in checked.claims),
        slips=tuple(
            SlipJson(
                kind=each.slip,
                line=lines.at(each.start)[0],
                start=each.start,
                end=each.end,
                text=each.text,
            )
            for each in checked.findings
        ),
    )


def _claim(checked: CheckedDocument, one: CheckedClaim, lines: Lines) -> ClaimJson:
    claim, name = one.claim, checked.fingerprint_of(one)
    line, column = lines.at(claim.start)
    entry = checked.accepted.get(name)
    return ClaimJson(
        verdict=one.verdict,
        message=one.message,
        missing=one.missing,
        line=line,
        column=column,
        start=claim.start,
        end=claim.end,
        text=claim.text,
        lead=claim.lead,
        section=claim.section,
        marked=claim.marked,
        fingerprint=name,
        citations=tuple(
            CitationJson(target=each.target, start=each.start, end=each.end, dangling=each.dangling)
            for each in claim.references
        ),
        sources=tuple(SourceJson.model_validate(asdict(each)) for each in one.sources),
        accepted=None if entry is None else AcceptedJson(reason=entry.reason, until=entry.until),
    )


def counted(report: Report) -> str:
    """How many claims were checked, as a phrase."""
    claims, files = sum(len(each.claims) for each in report.documents), len(report.documents)
    return f"{claims:,} claim{'' if claims == 1 else 's'} in {files} document{'' if files == 1 else 's'}"
