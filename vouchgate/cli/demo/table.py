"""The demo's table, row by row as the answers come in: what was decided, by which words, and why."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.style import Style
from rich.table import Table
from rich.text import Text

from vouchgate.cli.demo.samples import Sample
from vouchgate.ingest.claims.claim import Finding, Verdict
from vouchgate.ingest.claims.decision import Looked, Outcome, ValidationResult
from vouchgate.ingest.claims.source import Found
from vouchgate.ingest.rules import BY_CITATION, Rule

WIDE = 100  # columns from which the source has a column of its own
_COLOURS = {Outcome.STORED: "green", Outcome.QUEUED: "yellow", Outcome.BLOCKED: "red"}
_OUTCOME, _SOURCE, _GAP = (
    7,
    13,
    2,
)  # widths in columns: the longest outcome and source, and what parts columns
# Which findings' words a rule rests on: the checks, and the verdicts that count.
_CITED = frozenset({"citation_verify", "support"})
_DECIDING: dict[str, tuple[frozenset[str], frozenset[Verdict]]] = {
    Rule.SPECULATION: (frozenset({"hedge"}), frozenset({Verdict.FAIL, Verdict.DOUBT})),
    Rule.TECHNICAL_HEDGE: (frozenset({"hedge"}), frozenset({Verdict.FAIL, Verdict.DOUBT})),
    Rule.REFUTED: (_CITED, frozenset({Verdict.FAIL, Verdict.DOUBT})),
    Rule.STATED: (frozenset({"citation_verify"}), frozenset({Verdict.PASS})),
    Rule.SPOKEN_OF: (frozenset({"citation_verify"}), frozenset({Verdict.PASS})),
    Rule.POINTER: (frozenset({"citation_verify"}), frozenset({Verdict.PASS})),
    Rule.UNCOVERED: (frozenset({"statements"}), frozenset({Verdict.DOUBT})),
    Rule.CITATION_UNKNOWN: (_CITED, frozenset({Verdict.UNKNOWN})),
}


class DemoTable:
    """Prints a heading, then one row an answer. Without colours the deciding words stand in brackets."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._wide = console.width >= WIDE
        self._styled = console.is_terminal and not console.is_dumb_terminal
        self._answers: list[ValidationResult] = []
        self._milliseconds: list[float] = []

    def head(self) -> None:
        """The headings, and what is to be seen below them."""
        marked = "highlighted" if self._styled else "in [brackets]"
        self._console.print(f"The words that decided are {marked}.\n")
        cells = ["outcome", "source", "claim", "why"] if self._wide else ["outcome", "claim", "why"]
        self._print([Text(cell, "bold") for cell in cells])
        self._console.print("─" * self._console.width, style="dim")

    def row(self, sample: Sample, answer: ValidationResult, milliseconds: float) -> None:
        """One answer, and how long it took over HTTP."""
        self._answers.append(answer)
        self._milliseconds.append(milliseconds)
        outcome = Text(answer.outcome.value, Style(color=_COLOURS[answer.outcome], bold=True))
        source = Text(sample.source.value, "dim")
        cells = [outcome, source] if self._wide else [Text("\n").join((outcome, source))]
        self._print([*cells, self._claim(answer), self._why(sample, answer)])

    def foot(self) -> None:
        """How many went where, and how fast."""
        line = Text("\n")
        for outcome, colour in _COLOURS.items():
            count = sum(answer.outcome is outcome for answer in self._answers)
            line.append(f"{count} {outcome.value}", Style(color=colour, bold=True))
            line.append(", " if outcome is not Outcome.BLOCKED else "")
        median = statistics.median(self._milliseconds)
        line.append(f"; {len(self._answers)} claims, median {median:.1f} ms each over HTTP, kept on disk.")
        self._console.print(line)

    def _print(self, cells: Sequence[Text]) -> None:
        fixed = [_OUTCOME, _SOURCE] if self._wide else [_SOURCE]
        gaps = _GAP * (len(cells) - 1)
        left = self._console.width - sum(fixed) - gaps
        claim = left * 11 // 20
        table = Table.grid(padding=(0, _GAP, 0, 0))
        for width in (*fixed, claim, left - claim):
            table.add_column(width=width, overflow="fold")
        table.add_row(*cells)
        self._console.print(table)

    def _claim(self, answer: ValidationResult) -> Text:
        content = answer.evidence.claim.content
        spans = sorted(set(deciding_spans(answer)))
        if not self._styled:
            return Text(_bracketed(content, spans))
        text = Text(content)
        style = Style(color=_COLOURS[answer.outcome], bold=True, underline=True)
        for start, end in spans:
            text.stylize(style, start, end)
        return text

    def _why(self, sample: Sample, answer: ValidationResult) -> Text:
        text = Text(answer.reason)
        for more in filter(None, (_detail(answer), sample.note)):
            text.append(f"\n{more}", "dim italic" if more == sample.note else "dim")
        return text


def deciding_spans(answer: ValidationResult) -> Iterator[tuple[int, int]]:
    """The characters of the claim that the decision rests on: hedges, citations, or changed values."""
    checks, verdicts = _DECIDING.get(answer.rule, (frozenset(), frozenset()))
    for finding in answer.findings:
        if finding.check in checks and finding.verdict in verdicts:
            yield from ((span.start, span.end) for span in finding.spans)
        if answer.rule == Rule.CONFLICT and finding.check == "dedup":
            yield from _changed(answer.evidence.claim.content, finding)


def _changed(content: str, finding: Finding) -> Iterator[tuple[int, int]]:
    changed = finding.facts.get("changed")
    for word in changed if isinstance(changed, list) else ():
        start = content.find(str(word))
        if start >= 0:
            yield start, start + len(str(word))


def _detail(answer: ValidationResult) -> str:
    """A fact beyond the reason: what was found for the citation, or which values differ."""
    if answer.rule == Rule.CONFLICT:
        return next(f.message for f in answer.findings if f.check == "dedup")
    if answer.rule in BY_CITATION:
        found = [source for source in answer.evidence.sources if isinstance(source, Found)]
        harvested = any(source.citation.harvested for source in found)
        return " ".join(
            [*(["The gate found it:"] if harvested else []), *(source.detail for source in found)]
        )
    if answer.rule == Rule.CITATION_UNKNOWN:
        return " ".join(f.message for f in answer.findings if f.verdict is Verdict.UNKNOWN and f.citation)
    if answer.rule == Rule.UNGROUNDED:
        return " ".join(_looked(look) for look in answer.looked)
    return ""


def _looked(look: Looked) -> str:
    if look.failure:
        return f"Not found out: {look.failure}"
    found = f"{look.found} that may speak of it" if look.found else "nothing that speaks of it"
    return f"Looked for it among the documents of the {look.path}: {found}."


def _bracketed(content: str, spans: Sequence[tuple[int, int]]) -> str:
    pieces, position = [], 0
    for start, end in spans:
        if start >= position:
            pieces += [content[position:start], "[", content[start:end], "]"]
            position = end
    return "".join((*pieces, content[position:]))
