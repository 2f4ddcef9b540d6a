"""The audit as a page and as Markdown. The page is one file: it asks nobody for anything, runs no script, and shows
the text of others as text (`review.pages.wording.text`), escaped by the template."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from vouchgate.importing.documents import REPORT_MARK
from vouchgate.importing.findings import Audit, AuditedRow, Cluster, Example, Flag, RowPair
from vouchgate.importing.rows import BadRow
from vouchgate.ingest.claims.decision import Outcome
from vouchgate.review.pages.render import STATIC, environment
from vouchgate.review.pages.wording.diff import word_diff
from vouchgate.review.pages.wording.text import MarkedSpan, Piece, Pieces, pieces, plain_line

_SHOWN = 5  # cards of a section that are open; the others are a click away
_TAGS = 40  # unseen characters that are named of one text; more of them hide nothing else
_LINE = 300  # characters of a text in Markdown
_RADIUS = 54  # of the ring
_TICKS = re.compile(r"`+")


@dataclass(frozen=True, slots=True)
class ReportFacts:
    """What the report says of the run. `bad` are the first rows that could not be read, `bad_count` all of them."""

    file: str
    form: str
    at: datetime
    audit: Audit
    bad: tuple[BadRow, ...]
    bad_count: int
    offline: bool
    stopped: bool  # it was interrupted, or told to stop after some rows: more may be in the file
    threshold: float
    policy_digest: str


@dataclass(frozen=True, slots=True)
class _Words:
    """How one kind of finding is told."""

    flag: Flag
    id: str  # of its section, and of its colour
    name: str
    means: str
    mark: str = ""  # of the words it rests on, in an example


JUNK = (
    _Words(Flag.DUPLICATE, "repeats", "Repeats", "says the same as an earlier row"),
    _Words(
        Flag.CONFLICT,
        "conflicts",
        "Conflicts",
        "an earlier row says otherwise, and only one of them can be true",
    ),
    _Words(
        Flag.CITATION,
        "citations",
        "Citations that do not hold",
        "cites what does not exist, is no longer in force, or speaks of something else",
        "citation",
    ),
    _Words(
        Flag.SPECULATION,
        "speculation",
        "Speculation",
        "guesses, doubts itself, or proposes instead of stating",
        "hedge",
    ),
    _Words(Flag.SECRET, "credentials", "Credentials", "holds a password, a key or a token"),
    _Words(
        Flag.INSTRUCTION,
        "orders",
        "Orders to a model",
        "tells whatever reads it what to do, or hides something",
        "hedge",
    ),
)
LOOK = (
    _Words(
        Flag.UPDATE, "updates", "Updates", "says otherwise than an earlier row, and that this has changed"
    ),
    _Words(Flag.PERSONAL, "personal", "Personal data", "holds what the policy masks or lets wait"),
    _Words(Flag.SOFTENED, "softened", "Technical hedges", "says roughly, usually or should", "hedge"),
    _Words(
        Flag.UNCHECKED,
        "unchecked",
        "Citations not checked",
        "cites something that could not be looked up",
        "citation",
    ),
    _Words(Flag.UNGROUNDED, "ungrounded", "No citation", "cites nothing that could be checked"),
)
_OUTCOMES = {
    Outcome.STORED: "stored at once",
    Outcome.QUEUED: "waits for the owner",
    Outcome.BLOCKED: "blocked",
}


@dataclass(frozen=True, slots=True)
class Bar:
    """One kind as a bar: how many rows, and which share of all, also as the width of the bar (0 to 100)."""

    id: str
    name: str
    means: str
    count: int
    share: str
    width: float
    examples: tuple[ExampleView, ...]


@dataclass(frozen=True, slots=True)
class ExampleView:
    """An example, ready to be shown."""

    place: str
    owner: str
    text: Pieces
    line: str
    says: str


@dataclass(frozen=True, slots=True)
class ClusterView:
    """A cluster, ready to be shown."""

    times: int
    exact: int
    first: ExampleView
    variants: tuple[ExampleView, ...]
    when: str
    origins: tuple[str, ...]
    sources: str
    width: float


@dataclass(frozen=True, slots=True)
class ConflictingRowsView:
    """A conflict, ready to be shown."""

    earlier: ExampleView
    later: ExampleView
    merged: Pieces
    changed: str


def render_html(facts: ReportFacts) -> str:
    """The page, whole."""
    style = _style()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    icon = base64.b64encode(STATIC["icon.svg"].content).decode()
    return _render("report.html", facts, style=style, style_digest=digest, icon=icon)


def render_markdown(facts: ReportFacts) -> str:
    """The same in Markdown, for a terminal, a ticket or a diff with the audit before."""
    return re.sub(r"\n{3,}", "\n\n", _render("report.md", facts))


def format_share(count: int, of: int) -> str:
    """As a percentage, such as `12.3 %`; nothing that is there is shown as none, and nothing short of all as all."""
    if not of:
        return "0 %"
    percent = 100 * count / of
    if 0 < percent < 0.1:
        return "under 0.1 %"
    return f"{min(percent, 99.9) if count < of else percent:.1f} %".replace(".0 %", " %")


def _style() -> str:
    """The look of the review pages, and what only this page has."""
    own = (Path(__file__).parent / "static" / "report.css").read_text("utf-8")
    return STATIC["review.css"].content.decode() + own


def _render(name: str, facts: ReportFacts, **more: object) -> str:
    audit = facts.audit
    circle = 2 * math.pi * _RADIUS
    made = environment("vouchgate.importing", "vouchgate.review.pages")
    made.filters |= {"code": markdown_code, "n": lambda number: f"{number:,}"}
    return made.get_template(name).render(
        facts=facts,
        mark=REPORT_MARK,
        audit=audit,
        file=plain_line(facts.file, 120),
        at=f"{facts.at:%Y-%m-%d %H:%M} UTC",
        share=format_share(audit.junk, audit.rows),
        shown=_SHOWN,
        ring={"radius": _RADIUS, "circle": round(circle, 2), "part": round(circle * audit.share, 2)},
        junk=_bars(audit, JUNK),
        look=_bars(audit, LOOK),
        groups=[_cluster_view(cluster, audit) for cluster in audit.clusters],
        echoes=[_cluster_view(cluster, audit) for cluster in audit.echoes],
        updates=[_conflict_view(pair) for pair in audit.updates],
        conflicts=[_conflict_view(pair) for pair in audit.conflicts],
        would=_decision_bars(audit),
        secrets=sorted(audit.secrets.items(), key=lambda item: (-item[1], item[0])),
        bad=[{"place": row.place, "says": plain_line(row.message, 200)} for row in facts.bad],
        **more,
    )


def _bars(audit: Audit, kinds: Sequence[_Words]) -> list[Bar]:
    return [
        Bar(
            id=kind.id,
            name=kind.name,
            means=kind.means,
            count=audit.counts[kind.flag],
            share=format_share(audit.counts[kind.flag], audit.rows),
            width=_width(audit.counts[kind.flag], audit.rows),
            examples=tuple(_example(one, kind.mark) for one in audit.examples.get(kind.flag, ())),
        )
        for kind in kinds
    ]


def _width(count: int, of: int) -> float:
    """In percent; what is there at all can be seen."""
    return max(0.7, round(100 * count / of, 2)) if count else 0.0


def _example(example: Example, mark: str) -> ExampleView:
    spans = [MarkedSpan(start, end, mark) for start, end in example.spans] if mark else []
    return _example_view(example.row, spans, example.says)


def _example_view(row: AuditedRow, spans: Sequence[MarkedSpan] = (), says: str = "") -> ExampleView:
    text = pieces(row.text, spans, most=_TAGS)
    return ExampleView(
        place=row.place,
        owner=plain_line(row.owner, 60),
        text=(*text, Piece(" …")) if row.cut else text,
        line=plain_line(row.text, _LINE),
        says=plain_line(says, 600) if says else "",
    )


def _cluster_view(cluster: Cluster, audit: Audit) -> ClusterView:
    origins = [f"{plain_line(name, 80)} ({times})" for name, times in cluster.origins.items()]
    if cluster.other_origins:
        origins.append(f"and others ({cluster.other_origins})")
    return ClusterView(
        times=cluster.size,
        exact=cluster.exact,
        first=_example_view(cluster.first),
        variants=tuple(_example_view(row) for row in cluster.variants),
        when=_when(cluster),
        origins=tuple(origins),
        sources=", ".join(f"{name} ({times})" for name, times in cluster.sources.items()),
        width=round(100 * cluster.size / audit.clusters[0].size, 2),
    )


def _when(cluster: Cluster) -> str:
    if cluster.first_at is None or cluster.last_at is None:
        return ""
    first, last = f"{cluster.first_at:%Y-%m-%d}", f"{cluster.last_at:%Y-%m-%d}"
    return f"all on {first}" if first == last else f"first on {first}, last on {last}"


def _conflict_view(conflict: RowPair) -> ConflictingRowsView:
    merged = word_diff(conflict.earlier.text, conflict.later.text, conflict.changed).merged
    changed = plain_line(", ".join(conflict.changed), 200) if conflict.changed else ""
    return ConflictingRowsView(
        _example_view(conflict.earlier), _example_view(conflict.later), merged, changed
    )


def _decision_bars(audit: Audit) -> list[dict[str, object]]:
    """What the gate would have done, in the order stored, waiting, blocked, and each with its reasons."""
    found: list[dict[str, object]] = []
    for outcome, name in _OUTCOMES.items():
        reasons = sorted(
            ((n, reason) for (of, reason), n in audit.would.items() if of is outcome),
            key=lambda r: (-r[0], r[1]),
        )
        count = sum(n for n, _ in reasons)
        found.append(
            {
                "id": outcome.value,
                "name": name,
                "count": count,
                "share": format_share(count, audit.rows),
                "width": round(100 * count / audit.rows, 3) if audit.rows else 0,
                "reasons": [{"count": n, "reason": reason} for n, reason in reasons],
            }
        )
    return found


def markdown_code(text: str) -> str:
    """The text as Markdown that shows it and does nothing else: one line of code, fenced by more backticks than it
    has in a row."""
    line = " ".join(text.split()) or " "
    fence = "`" * (max((len(run) for run in _TICKS.findall(line)), default=0) + 1)
    return f"{fence} {line} {fence}" if line[0] == "`" or line[-1] == "`" else f"{fence}{line}{fence}"
