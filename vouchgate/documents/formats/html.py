"""One HTML file of its own: the documents with their claims coloured, and beside each what its sources say."""

from __future__ import annotations

import base64
import hashlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from vouchgate.documents.report import Lines, Report, counted
from vouchgate.ingest.documents.gate import Accepted, CheckedDocument
from vouchgate.ingest.documents.verdict import CheckedClaim, ClaimVerdict, SourceSeen
from vouchgate.review.pages.render import STATIC
from vouchgate.review.pages.wording.text import pieces, plain_line

_LOOKS = {
    ClaimVerdict.FALSE: "bad",
    ClaimVerdict.BROKEN_CITATION: "bad broken",
    ClaimVerdict.UNKNOWN: "unknown",
    ClaimVerdict.PARTIAL: "doubt",
    ClaimVerdict.UNCITED: "doubt uncited",
    ClaimVerdict.VERIFIED: "good",
    ClaimVerdict.EXEMPT: "plain",
}
_HERE = Path(__file__).parent / "static"
_STYLE = STATIC["review.css"].content.decode() + (_HERE / "gate_doc.css").read_text("utf-8")
_SCRIPT = (_HERE / "gate_doc.js").read_text("utf-8")


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


# The Content-Security-Policy of the page: its own style and script, and nothing else.
POLICY = (
    f"default-src 'none'; style-src 'sha256-{_digest(_STYLE)}'; script-src 'sha256-{_digest(_SCRIPT)}'; "
    "img-src data:; base-uri 'none'; form-action 'none'"
)


@dataclass(frozen=True, slots=True)
class _Source:
    seen: SourceSeen
    href: str  # empty where the address is no link


@dataclass(frozen=True, slots=True)
class _Card:
    id: str
    look: str
    line: int
    one: CheckedClaim
    accepted: Accepted | None
    sources: tuple[_Source, ...]


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Text of a document, within one claim or within none."""

    text: str
    card: _Card | None


@dataclass(frozen=True, slots=True)
class _Row:
    """Lines of a document, and the claims that begin in them."""

    stretches: tuple[_Stretch, ...]

    @property
    def cards(self) -> tuple[_Card, ...]:
        return tuple(each.card for each in self.stretches if each.card is not None)


@dataclass(frozen=True, slots=True)
class _Page:
    checked: CheckedDocument
    lines: Lines
    rows: tuple[_Row, ...]


def write(report: Report) -> str:
    """The report as a page. It loads nothing from elsewhere, and says so in its Content-Security-Policy."""
    return (
        _environment()
        .get_template("gate_doc.html")
        .render(
            report=report,
            pages=[_page(number, each) for number, each in enumerate(report.documents, 1)],
            counted=counted(report),
            counts=[
                (verdict.value, look, report.gated.counts[verdict.value]) for verdict, look in _LOOKS.items()
            ],
            at=f"{report.at:%Y-%m-%d %H:%M} UTC",
            style=_STYLE,
            script=_SCRIPT,
            security=POLICY,
            icon=base64.b64encode(STATIC["icon.svg"].content).decode(),
        )
    )


def _page(number: int, checked: CheckedDocument) -> _Page:
    lines = Lines(checked.document.text)
    cards = [_card(f"c{number}-{at}", checked, one, lines) for at, one in enumerate(checked.claims, 1)]
    return _Page(checked, lines, tuple(_rows(checked.document.text, cards)))


def _card(name: str, checked: CheckedDocument, one: CheckedClaim, lines: Lines) -> _Card:
    accepted = checked.accepted.get(checked.fingerprint_of(one))
    sources = tuple(_Source(seen, _href(seen)) for seen in one.sources)
    return _Card(name, _LOOKS[one.verdict], lines.at(one.claim.start)[0], one, accepted, sources)


def _href(seen: SourceSeen) -> str:
    address = seen.address or seen.cited
    return address if address.startswith(("https://", "http://")) else ""


def _rows(text: str, cards: Sequence[_Card]) -> Iterator[_Row]:
    """Line by line, but for lines that share a claim, and lines without any, which are one row."""
    starts = [card.one.claim.start for card in cards]
    row: list[_Stretch] = []
    at = 0
    for start, end, ends in _cuts(text, cards):
        row += [_Stretch(text[at:start], None)] if start > at else []
        card = cards[bisect_right(starts, start) - 1] if end > start else None
        row += [_Stretch(text[start:end], card)] if card else []
        at = end
        if ends:
            yield _Row(tuple(row))
            row = []
    if at < len(text):
        row.append(_Stretch(text[at:], None))
    if row:
        yield _Row(tuple(row))


def _cuts(text: str, cards: Sequence[_Card]) -> Iterator[tuple[int, int, bool]]:
    """Each claim, and whether a row ends with the line that it ends in: it does unless another begins there. What comes
    before a claim on its first line begins the row."""
    before = 0
    for number, card in enumerate(cards):
        claim = card.one.claim
        head = text.rfind("\n", before, claim.start) + 1
        if head > before:  # lines without a claim
            yield head, head, True
        following = cards[number + 1].one.claim.start if number + 1 < len(cards) else len(text)
        line_end = text.find("\n", claim.end, following)
        yield claim.start, claim.end, False
        before = claim.end
        if line_end >= 0:
            yield line_end + 1, line_end + 1, True
            before = line_end + 1


def _environment() -> Environment:
    environment = Environment(
        loader=ChoiceLoader(
            [PackageLoader("vouchgate.documents.formats"), PackageLoader("vouchgate.review.pages")]
        ),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters["pieces"] = pieces
    environment.filters["unseen"] = partial(plain_line, most=120)
    environment.filters["n"] = lambda number: f"{number:,}"
    return environment
