"""What an audit finds: rows, what is the matter with them, and the counts that a report shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntFlag

from vouchgate.ingest.claims.decision import Outcome

EXAMPLES = 10  # rows of each kind that the report shows
CONFLICTS = 100  # pairs of rows that it shows, of updates as well
CLUSTERS = 20  # groups of rows that say the same, the largest
VARIANTS = 4  # other wordings that are shown of one group
ORIGINS = 12  # keys and agents that are named of one echo
TEXT_CHARACTERS = 600  # of a row that is shown: some eight lines


class Flag(IntFlag):
    """What is the matter with a row; none of it is 0. Those in JUNK make it junk."""

    DUPLICATE = 1
    SPECULATION = 2
    CITATION = 4  # it does not exist, no longer holds, is banned, or speaks of something else
    CONFLICT = 8
    SECRET = 16
    SOFTENED = 32  # a technical hedge or an approximation
    UNCHECKED = 64  # a citation of which it could not be found out
    UNGROUNDED = 128  # no citation
    INSTRUCTION = 256  # it gives a model orders, or holds what nobody sees
    UPDATE = 512  # it says otherwise than an earlier row, and that it takes its place
    PERSONAL = 1024  # personal data that the policy masks or lets wait


JUNK = Flag.DUPLICATE | Flag.SPECULATION | Flag.CITATION | Flag.CONFLICT | Flag.SECRET | Flag.INSTRUCTION


@dataclass(frozen=True, slots=True)
class AuditedRow:
    """A row as the report shows it. A credential in `text` is masked; nothing else of such a row is shown."""

    number: int  # of all rows that could be read, from 0
    place: str
    owner: str
    text: str
    cut: bool = False  # the row has more of it
    saved_at: datetime | None = None
    origin: str | None = None
    source: str = ""


@dataclass(frozen=True, slots=True)
class Example:
    """A row, a sentence on what is the matter with it, and the characters of it that this rests on."""

    row: AuditedRow
    says: str
    spans: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class RowPair:
    """Two rows of which only one can be true, or the later one replaces the other; `changed` are the words that differ
    where a rule tells them."""

    earlier: AuditedRow
    later: AuditedRow
    changed: tuple[str, ...]


@dataclass(slots=True)
class Cluster:
    """Rows of one owner that say the same. `exact` of them have the words of the first in the same order."""

    first: AuditedRow
    size: int = 1
    exact: int = 1
    variants: list[AuditedRow] = field(default_factory=list)
    first_at: datetime | None = None
    last_at: datetime | None = None
    origins: dict[str, int] = field(default_factory=dict)  # at most ORIGINS, with how often
    other_origins: int = 0  # rows from any other
    sources: dict[str, int] = field(default_factory=dict)

    def add(self, row: AuditedRow, *, exact: bool) -> None:
        """One more row."""
        self.size += 1
        self.exact += exact
        if not exact and len(self.variants) < VARIANTS:
            self.variants.append(row)
        self.note(row)

    def note(self, row: AuditedRow) -> None:
        """When and from where a row of it came."""
        if row.saved_at is not None:
            self.first_at = min(self.first_at or row.saved_at, row.saved_at)
            self.last_at = max(self.last_at or row.saved_at, row.saved_at)
        self.sources[row.source] = self.sources.get(row.source, 0) + 1
        if row.origin is not None:
            self._came_from(row.origin, 1)

    def absorb(self, other: Cluster) -> None:
        """Another group turns out to say the same, by a row that says what both say."""
        self.size += other.size
        self.variants = [*self.variants, other.first, *other.variants][:VARIANTS]
        for at in (other.first_at, other.last_at):
            if at is not None:
                self.first_at, self.last_at = min(self.first_at or at, at), max(self.last_at or at, at)
        for source, times in other.sources.items():
            self.sources[source] = self.sources.get(source, 0) + times
        for origin, times in other.origins.items():
            self._came_from(origin, times)
        self.other_origins += other.other_origins

    def _came_from(self, origin: str, times: int) -> None:
        if origin in self.origins or len(self.origins) < ORIGINS:
            self.origins[origin] = self.origins.get(origin, 0) + times
        else:
            self.other_origins += times


@dataclass(frozen=True, slots=True)
class Audit:
    """What was found in all rows."""

    rows: int
    junk: int
    counts: dict[Flag, int]  # of single flags; one row may have several
    owners: int
    clusters: tuple[Cluster, ...]  # the CLUSTERS largest
    cluster_count: int
    echoes: tuple[Cluster, ...]  # of three rows and more
    echo_count: int
    echo_rows: int
    echo_from: int
    updates: tuple[RowPair, ...]  # the first CONFLICTS
    conflicts: tuple[RowPair, ...]  # the first CONFLICTS
    conflict_count: int  # pairs; of one row with earlier ones MOST_KEPT at most
    examples: dict[Flag, tuple[Example, ...]]
    secrets: Counter[str]  # credentials by kind
    would: Counter[tuple[Outcome, str]]  # what the gate would have done, by reason

    @property
    def share(self) -> float:
        """Of all rows, those that are junk: 0 to 1."""
        return self.junk / self.rows if self.rows else 0.0


def largest(clusters: Iterable[Cluster]) -> tuple[Cluster, ...]:
    """The CLUSTERS largest, of equals the first."""
    return tuple(sorted(clusters, key=lambda one: (-one.size, one.first.number))[:CLUSTERS])


def _first(pairs: Iterable[RowPair]) -> tuple[RowPair, ...]:
    """In the order in which one auditor would find them: with the later row that it is shown."""
    return tuple(sorted(pairs, key=lambda one: max(one.earlier.number, one.later.number))[:CONFLICTS])


def merge(audits: Sequence[Audit], owners: int) -> Audit:
    """What was found in the rows of several auditors, one at least; `owners` is how many these rows have in all."""
    examples = {flag: [each for one in audits for each in one.examples.get(flag, ())] for flag in Flag}
    for found in examples.values():
        found.sort(key=lambda one: one.row.number)
    sums = ("rows", "junk", "cluster_count", "echo_count", "echo_rows", "conflict_count")
    return Audit(
        **{name: sum(getattr(one, name) for one in audits) for name in sums},
        counts={flag: sum(one.counts[flag] for one in audits) for flag in Flag},
        owners=owners,
        clusters=largest(each for one in audits for each in one.clusters),
        echoes=largest(each for one in audits for each in one.echoes),
        echo_from=audits[0].echo_from,
        updates=_first(each for one in audits for each in one.updates),
        conflicts=_first(each for one in audits for each in one.conflicts),
        examples={flag: tuple(found[:EXAMPLES]) for flag, found in examples.items() if found},
        secrets=sum((one.secrets for one in audits), Counter[str]()),
        would=sum((one.would for one in audits), Counter[tuple[Outcome, str]]()),
    )
