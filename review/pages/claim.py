"""The text of a claim with the words marked that its decision rests on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from vouchgate.ingest.checks import citations, hedge, statements, support
from vouchgate.ingest.claims.claim import Finding, Verdict
from vouchgate.ingest.claims.hedges import HedgeCategory
from vouchgate.ingest.claims.source import Standing
from vouchgate.review.pages.source import CONFLICT
from vouchgate.review.pages.wording.diff import CHANGED, changed_spans
from vouchgate.review.pages.wording.text import UNSEEN, MarkedSpan, Pieces, pieces

HEDGE, CITATION, UNCOVERED = "hedge", "citation", "uncovered"

_NOTES = 10  # different notes that a legend names for one mark
_HEDGES: dict[str, str] = {
    HedgeCategory.PERSONAL_SPECULATION: "the writer's own speculation",
    HedgeCategory.ADMITTED_UNCERTAINTY: "says that it was not known or not checked",
    HedgeCategory.UNDECIDED_SUGGESTION: "a suggestion that nobody has decided on",
    HedgeCategory.TECHNICAL_HEDGE: "says what is possible, likely or usual, not what is",
    HedgeCategory.APPROXIMATION: "a rough figure",
}
_CITED = {
    "citation_verified": "found",
    "citation_missing": "does not exist",
    "citation_banned": "on the banned list",
    "citation_unchecked": "not checked yet",
    "citation_not_merged": "not merged",
    "citation_ambiguous": "more than one thing has this name",
}
_WORDS = {
    HEDGE: "hedge",
    CITATION: "citation",
    UNCOVERED: "no source covers it",
    CHANGED: "differs from what is stored",
    CONFLICT: "the source says otherwise",
    UNSEEN: "cannot be seen",
}


@dataclass(frozen=True, slots=True)
class Legend:
    """A mark that is in a text: its name, what it means, and the different notes it has there."""

    mark: str
    words: str
    notes: tuple[str, ...]


def claim_pieces(
    content: str, findings: Iterable[Finding], *, beside: str | None, changed: Iterable[str]
) -> tuple[Pieces, tuple[Legend, ...]]:
    """The claim's text with hedges, citations, words that a source contradicts and values that differ from the
    text it stands `beside` (None: none) marked, and the legend to it."""
    findings = list(findings)
    spans = [*_hedges(findings), *_cited(content, findings), *_contradicted(findings), *_uncovered(findings)]
    if beside is not None:
        note = "differs from the earlier claim"
        spans += (
            MarkedSpan(*span, CHANGED, note) for span in changed_spans(beside, content, frozenset(changed))
        )
    shown = pieces(content, spans)
    return shown, tuple(_legend(shown, spans))


def _hedges(findings: Iterable[Finding]) -> Iterator[MarkedSpan]:
    for finding in findings:
        if finding.check == hedge.CHECK and finding.verdict is not Verdict.PASS:
            note = _HEDGES.get(finding.code, "")
            yield from (MarkedSpan(span.start, span.end, HEDGE, note) for span in finding.spans)


def _cited(content: str, findings: Iterable[Finding]) -> Iterator[MarkedSpan]:
    """Every mention of a cited thing, with what became of it. A thing may be mentioned several times in different
    words; what cannot be told of a mention is left out of its note."""
    became: dict[str, str] = {}
    mentioned: list[tuple[int, int]] = []
    for finding in findings:
        if finding.check == citations.DETECT:
            mentioned += ((span.start, span.end) for span in finding.spans)
        elif finding.check == citations.VERIFY and finding.citation is not None:
            became[finding.citation.value] = _became(finding)
    for start, end in mentioned:
        yield MarkedSpan(start, end, CITATION, became.get(content[start:end], "cited"))


def _became(finding: Finding) -> str:
    if finding.code == "citation_not_in_force":
        because = finding.facts.get("because")
        return str(because).replace("_", " ") if because in tuple(Standing) else "not in force"
    return _CITED.get(finding.code, "cited")


def _contradicted(findings: Iterable[Finding]) -> Iterator[MarkedSpan]:
    for finding in findings:
        if finding.check == support.CHECK and finding.code == "support_conflict":
            yield from (
                MarkedSpan(span.start, span.end, CONFLICT, _WORDS[CONFLICT]) for span in finding.spans
            )


def _uncovered(findings: Iterable[Finding]) -> Iterator[MarkedSpan]:
    for finding in findings:
        if finding.check == statements.CHECK and finding.code == "uncovered":
            yield from (
                MarkedSpan(span.start, span.end, UNCOVERED, _WORDS[UNCOVERED]) for span in finding.spans
            )


def _legend(shown: Pieces, spans: Iterable[MarkedSpan]) -> Iterator[Legend]:
    notes: dict[str, dict[str, None]] = {}
    for span in spans:
        notes.setdefault(span.kind, {})[span.note] = None
    for piece in shown:
        if UNSEEN in piece.marks:
            notes.setdefault(UNSEEN, {})[piece.note] = None
    marks = frozenset().union(*(piece.marks for piece in shown))
    for mark, words in _WORDS.items():
        if mark in marks:
            listed = tuple(note for note in notes.get(mark, {}) if note not in ("", words))
            yield Legend(mark, words, listed[:_NOTES])
