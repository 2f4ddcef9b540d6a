"""Annotations of GitHub Actions: a command on standard output for each claim that is not verified."""

from __future__ import annotations

from collections.abc import Iterator

from vouchgate.documents.report import DANGLING, Lines, Report, problems, shown
from vouchgate.ingest.documents.gate import WRONG


def write(report: Report) -> str:
    """The report as workflow commands."""
    return "".join(f"{line}\n" for line in _lines(report))


def _lines(report: Report) -> Iterator[str]:
    for checked in report.documents:
        lines = Lines(checked.document.text)
        for one in problems(checked):
            accepted = checked.accepted.get(checked.fingerprint_of(one))
            level = "notice" if accepted else "error" if one.verdict in WRONG else "warning"
            line, column = lines.at(one.claim.start)
            last, _ = lines.at(max(one.claim.start, one.claim.end - 1))
            place = f"file={_value(checked.document.name)},line={line},endLine={last},col={column}"
            message = f"{shown(one.message, 500)} — {shown(one.claim.text)}"
            if accepted:
                message += f" — accepted until {accepted.until}: {shown(accepted.reason)}"
            yield f"::{level} {place},title={one.verdict.value}::{_text(message)}"
        for each in checked.loose:
            line, column = lines.at(each.start)
            place = f"file={_value(checked.document.name)},line={line},endLine={line},col={column}"
            yield f"::error {place},title={each.slip.value}::{_text(f'{DANGLING} — {shown(each.text)}')}"
    if not report.gated.passed:
        yield f"::error::{_text('; '.join(report.gated.reasons))}"


def _text(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _value(text: str) -> str:
    printable = "".join(sign if sign.isprintable() else "\ufffd" for sign in text)
    return _text(printable).replace(":", "%3A").replace(",", "%2C")
