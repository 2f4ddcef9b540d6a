"""SARIF 2.1.0: what code hosts show beside the lines."""

from __future__ import annotations

import json
from importlib.metadata import version
from urllib.parse import quote

from pydantic import JsonValue

from vouchgate.documents.report import DANGLING, Lines, Report, problems, shown
from vouchgate.ingest.documents.gate import WRONG, CheckedDocument
from vouchgate.ingest.documents.types import Finding, Slip
from vouchgate.ingest.documents.verdict import CheckedClaim, ClaimVerdict

MOST = 5000  # results that code hosts show of one run; the rest is counted in a notification
_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_SAYS: dict[ClaimVerdict | Slip, str] = {
    ClaimVerdict.PARTIAL: "Its sources do not state all of it",
    ClaimVerdict.FALSE: "A source of it says otherwise",
    ClaimVerdict.BROKEN_CITATION: "What it cites vouches for nothing",
    ClaimVerdict.UNCITED: "It cites nothing",
    ClaimVerdict.UNKNOWN: "It could not be found out",
    Slip.DANGLING: DANGLING,
}


def write(report: Report) -> str:
    """The report as one run."""
    results = [
        found
        for checked in report.documents
        for lines in (Lines(checked.document.text),)
        for found in (
            *(_result(checked, one, lines) for one in problems(checked)),
            *(_dangling(checked, each, lines) for each in checked.loose),
        )
    ]
    driver: dict[str, JsonValue] = {
        "name": "vouchgate",
        "version": version("vouchgate"),
        "rules": [{"id": name.value, "shortDescription": {"text": text}} for name, text in _SAYS.items()],
    }
    notes: list[JsonValue] = [
        {"level": "error", "message": {"text": reason}} for reason in report.gated.reasons
    ]
    if len(results) > MOST:
        more = f"There are {len(results):,} results; the first {MOST:,} are here."
        notes.append({"level": "warning", "message": {"text": more}})
    run: dict[str, JsonValue] = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": results[:MOST],
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": notes}],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _result(checked: CheckedDocument, one: CheckedClaim, lines: Lines) -> JsonValue:
    claim, name = one.claim, checked.fingerprint_of(one)
    found: dict[str, JsonValue] = {
        "ruleId": one.verdict.value,
        "level": "error" if one.verdict in WRONG else "warning",
        "message": {"text": f"{shown(one.message, 1000)} — {shown(claim.text)}"},
        "locations": [_place(checked, claim.start, claim.end, lines)],
        "partialFingerprints": {"vouchgate/v1": name},
    }
    if (entry := checked.accepted.get(name)) is not None:
        why = f"{entry.reason} (until {entry.until})"
        found["suppressions"] = [{"kind": "external", "justification": why}]
    return found


def _dangling(checked: CheckedDocument, each: Finding, lines: Lines) -> JsonValue:
    return {
        "ruleId": each.slip.value,
        "level": "error",
        "message": {"text": f"{DANGLING} — {shown(each.text)}"},
        "locations": [_place(checked, each.start, each.end, lines)],
    }


def _place(checked: CheckedDocument, start: int, end: int, lines: Lines) -> JsonValue:
    (line, column), (last, until) = lines.at(start), lines.at(end)
    uri = quote(checked.document.name, errors="surrogateescape")  # a file's name need not be UTF-8
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": uri},
            "region": {"startLine": line, "startColumn": column, "endLine": last, "endColumn": until},
        }
    }
