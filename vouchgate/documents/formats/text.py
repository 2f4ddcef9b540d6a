"""For people, like a compiler: one line for each claim that is not verified, and the answer last."""

from __future__ import annotations

import re
from collections.abc import Iterator

from vouchgate.documents.report import Lines, Report, counted, problems, shown

# What a runner of workflows takes for a command, wherever it is printed: the texts are those of others.
_COMMAND = re.compile(r"(?<=\A:)(?=:)|(?<=##)(?=\w*\[)")


def write(report: Report) -> str:
    """The report as lines, none of which is a command to the runner of a workflow."""
    return "".join(f"{_harmless(line)}\n" for line in _lines(report))


def _harmless(line: str) -> str:
    said = line.lstrip()
    return line[: len(line) - len(said)] + _COMMAND.sub(" ", said)


def _lines(report: Report) -> Iterator[str]:
    for checked in report.documents:
        lines = Lines(checked.document.text)
        for one in problems(checked):
            line, column = lines.at(one.claim.start)
            place = f"{shown(checked.document.name)}:{line}:{column}"
            entry = checked.accepted.get(checked.fingerprint_of(one))
            yield f"{place}: {one.verdict.value}{' (accepted)' if entry else ''}: {shown(one.message, 300)}"
            yield f"    {shown(one.claim.text)}"
            for source in one.sources:
                if source.quotation:
                    yield f"    {shown(source.address or source.cited, 100)}: “{shown(source.quotation)}”"
            if entry:
                yield f"    accepted until {entry.until}: {shown(entry.reason)}"
        for slip in checked.findings:
            line, column = lines.at(slip.start)
            yield f"{shown(checked.document.name)}:{line}:{column}: {slip.slip.value}: {shown(slip.text)}"
    counts = ", ".join(f"{n} {verdict}" for verdict, n in report.gated.counts.items() if n)
    yield f"{counted(report)}: {counts or 'none'}"
    yield "passed" if report.gated.passed else f"not passed: {'; '.join(report.gated.reasons)}"
