"""The answer about documents, as one value that every format is written from."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from pydantic import JsonValue

from vouchgate.ingest.documents.gate import CheckedDocument, Gated
from vouchgate.ingest.documents.types import Finding
from vouchgate.ingest.documents.verdict import CheckedClaim, ClaimVerdict, SourceSeen

FORMAT = 1  # of the JSON


@dataclass(frozen=True)
class Report:
    """What was checked, when, under which policy, and what came of it."""

    documents: tuple[CheckedDocument, ...]
    gated: Gated
    at: datetime
    policy_digest: str

    def as_json(self) -> dict[str, JsonValue]:
        """As `--format json` has it; docs/documents.md names every field."""
        return {
            "format": FORMAT,
            "passed": self.gated.passed,
            "status": self.gated.status,
            "reasons": list(self.gated.reasons),
            "counts": dict(self.gated.counts),
            "at": self.at.isoformat(),
            "policy_digest": self.policy_digest,
            "documents": [_document(each) for each in self.documents],
        }


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
    """A text on one line, not too long."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _document(checked: CheckedDocument) -> dict[str, JsonValue]:
    lines = Lines(checked.document.text)
    return {
        "file": checked.document.name,
        "lowest_score": checked.lowest_score,
        "claims": [_claim(checked, one, lines) for one in checked.claims],
        "slips": [_slip(each, lines) for each in checked.findings],
    }


def _claim(checked: CheckedDocument, one: CheckedClaim, lines: Lines) -> dict[str, JsonValue]:
    claim, name = one.claim, checked.fingerprint_of(one)
    line, column = lines.at(claim.start)
    fields: dict[str, JsonValue] = {
        "verdict": one.verdict.value,
        "message": one.message,
        "missing": list(one.missing),
        "line": line,
        "column": column,
        "start": claim.start,
        "end": claim.end,
        "text": claim.text,
        "lead": claim.lead,
        "section": list(claim.section),
        "marked": claim.marked,
        "fingerprint": name,
        "citations": [
            {"target": each.target, "start": each.start, "end": each.end, "dangling": each.dangling}
            for each in claim.references
        ],
        "sources": [_source(each) for each in one.sources],
    }
    if (entry := checked.accepted.get(name)) is not None:
        fields["accepted"] = {"reason": entry.reason, "until": entry.until.isoformat()}
    return fields


def _slip(finding: Finding, lines: Lines) -> dict[str, JsonValue]:
    return {
        "kind": finding.slip.value,
        "line": lines.at(finding.start)[0],
        "start": finding.start,
        "end": finding.end,
        "text": finding.text,
    }


def _source(seen: SourceSeen) -> dict[str, JsonValue]:
    return {
        "cited": seen.cited,
        "kind": seen.kind,
        "state": seen.state,
        "detail": seen.detail,
        "address": seen.address,
        "title": seen.title,
        "digest": seen.digest,
        "dated": None if seen.dated is None else seen.dated.isoformat(),
        "stance": None if seen.stance is None else seen.stance.value,
        "score": seen.score,
        "official": seen.official,
        "harvested": seen.harvested,
        "quotation": seen.quotation,
        "place": None if seen.place is None else list(seen.place),
    }


def total(documents: Sequence[CheckedDocument]) -> int:
    """How many claims were checked."""
    return sum(len(document.claims) for document in documents)
