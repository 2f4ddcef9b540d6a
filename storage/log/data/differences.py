"""What may differ, and how rows and log entries are read side by side: both in the order of what they are about, so
that one batch of each is in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum
from itertools import groupby, islice
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

from pydantic_core import from_json
from sqlalchemy import Column, ColumnElement, Connection, Integer, Row, Select, Table, select, type_coerce

from vouchgate.ingest.claims.log import Action
from vouchgate.storage.log import chain
from vouchgate.storage.sql import among
from vouchgate.storage.tables.claims import DecisionRow, MemoryRow, PendingRow

BATCH = 500  # rows, with what belongs to them

LOG: Table = chain.TABLE
DECISION: Table = DecisionRow.metadata.tables["decision"]
MEMORY: Table = MemoryRow.metadata.tables["memory"]
PENDING: Table = PendingRow.metadata.tables["pending"]
_ENTRIES = [
    LOG.c.seq,
    LOG.c.at,
    LOG.c.actor,
    LOG.c.action,
    LOG.c.subject_id,
    LOG.c.content_digest,
    LOG.c.owner_id,
    LOG.c.salt,
]

T = TypeVar("T")


class Kind(StrEnum):
    """How rows and log differ."""

    ALTERED = "altered"  # the row is there, and says something else
    MISSING = "missing"  # the log says that it was made, and nothing that it went
    EXTRA = "extra"  # the row is there, and nothing in the log made it, or something ended it


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference. `column` is where it is, as far as that can be told; `entry` the number of the log entry in the
    owner's chain that says otherwise."""

    kind: Kind
    table: str
    owner_id: str
    key: str
    column: str | None = None
    entry: int | None = None
    why: str = ""

    def __str__(self) -> str:
        where = f"{self.table} {self.key!a} of {self.owner_id!a}" + (
            f", {self.column}" if self.column else ""
        )
        entry = "" if self.entry is None else f" (log entry {self.entry})"
        return f"{self.kind}: {where}{entry}" + (f": {self.why}" if self.why else "")


class Entry(NamedTuple):
    """A log entry, as far as rows are held against it."""

    seq: int
    at: datetime
    actor: str
    action: str
    subject_id: str
    content_digest: str
    owner_id: str
    salt: bytes | None

    @property
    def form(self) -> int:
        """Of its document."""
        return chain.form_of(self.content_digest)

    def commits_to(self, form: int = 1, /, **about: Any) -> bool:
        """Whether this is what it is about."""
        return self.holds(chain.document_of(about, form=form))

    def holds(self, document: chain.Document) -> bool:
        """The same of a document as it was written."""
        return self.content_digest == document.commitment(self.salt)


@dataclass(slots=True)
class Look:
    """A look at one owner's rows, in one read transaction. `found` counts differences, `seen` rows and entries;
    `uncovered` what no entry commits to, by table and reason."""

    connection: Connection
    owner_id: str
    policies: Mapping[str, str]  # documents by digest, those that are what their digest says
    uncovered: Counter[str]
    differences: list[Difference] = field(default_factory=list)
    seen: int = 0
    # What the decisions say, for what comes after them: by item, the decisions made of it again, in order; by decision,
    # the entry of a promotion.
    redecided: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    promoted: dict[str, Entry] = field(default_factory=dict)
    unusable: set[str] = field(default_factory=set)  # decisions that are gone or altered, which is noted once
    together: int = 1  # how many items were let go together, last
    without: set[str] = field(default_factory=set)  # digests of policies that are not there
    edited: set[str] = field(default_factory=set)  # decisions on what a reviewer wrote
    erased: set[str] = field(default_factory=set)  # memories, items and decisions, by entries that say so
    unsalted: set[str] = field(default_factory=set)  # these, and what else has lost its salts with them

    def note(
        self,
        kind: Kind,
        table: str,
        key: str,
        column: str | None = None,
        entry: Entry | None = None,
        *,
        why: str = "",
    ) -> None:
        """Notes a difference."""
        seq = None if entry is None else entry.seq
        self.differences.append(Difference(kind, table, self.owner_id, key, column, seq, why))

    def compare(
        self, table: str, key: str, row: Any, expected: Mapping[str, Any], entry: Entry | None = None
    ) -> None:
        """Notes every column that is not as it is expected to be."""
        for column, value in expected.items():
            if getattr(row, column) != value:
                self.note(Kind.ALTERED, table, key, column, entry)

    def rows(self, statement: Select[Any]) -> Iterator[Row[Any]]:
        """The rows, a batch at a time."""
        for row in self.connection.execute(statement, execution_options={"yield_per": BATCH}):
            self.seen += 1
            yield row

    def side_by_side(
        self,
        statement: Select[Any],
        key: Column[Any],
        actions: Collection[Action],
        *,
        also: Any = None,
    ) -> Iterator[tuple[str, list[Row[Any]], list[Entry]]]:
        """Rows by `key`, each with the entries of these actions about it; also keys that only one side has. `also`
        orders the rows of one key."""
        order = [self.ordered(key), *([] if also is None else also)]
        rows = groupby(self.rows(statement.order_by(*order)), attrgetter(key.key))
        entries = groupby(self.entries(actions), lambda entry: entry.subject_id)
        row, entry = next(rows, None), next(entries, None)
        while row is not None or entry is not None:
            name = min(side[0] for side in (row, entry) if side is not None)
            of_row: list[Row[Any]] = []
            of_entry: list[Entry] = []
            if row is not None and row[0] == name:
                of_row = list(row[1])
                row = next(rows, None)
            if entry is not None and entry[0] == name:
                of_entry = list(entry[1])
                entry = next(entries, None)
            yield name, of_row, of_entry

    def entries(self, actions: Collection[Action]) -> Iterator[Entry]:
        """The owner's log entries of these actions, by what they are about and number."""
        wanted = select(*_ENTRIES).where(
            LOG.c.owner_id == self.owner_id, LOG.c.action.in_(sorted(action.value for action in actions))
        )
        for row in self.rows(wanted.order_by(self.ordered(LOG.c.subject_id), LOG.c.seq)):
            yield Entry._make(row)

    def ordered(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        """The column in the order in which Python compares texts."""
        return column.collate("C") if self.connection.dialect.name == "postgresql" else column

    def there(self, table: Table, column: str, wanted: Collection[str]) -> set[str]:
        """Which of these the owner's rows of a table have in a column."""
        if not wanted:
            return set()
        found = select(table.c[column]).where(
            table.c.owner_id == self.owner_id, among(table.c[column], "wanted")
        )
        return set(self.connection.scalars(found, {"wanted": list(wanted)}))

    def answers(self, decision_ids: Collection[str]) -> dict[str, tuple[Any, Any]]:
        """Decisions by id: principal and time, and the answer."""
        wanted = select(
            DECISION.c.id, DECISION.c.principal_id, DECISION.c.created_at, DECISION.c.answer
        ).where(DECISION.c.owner_id == self.owner_id, among(DECISION.c.id, "wanted"))
        rows = self.connection.execute(wanted, {"wanted": list(decision_ids)})
        return {row.id: (row, parsed(row.answer)) for row in rows}


def entries_of_all(connection: Connection, actions: Collection[Action]) -> Iterator[Entry]:
    """The entries of these actions in every chain, by owner and number."""
    wanted = select(*_ENTRIES).where(LOG.c.action.in_(sorted(action.value for action in actions)))
    for row in connection.execute(
        wanted.order_by(LOG.c.owner_id, LOG.c.seq), execution_options={"yield_per": BATCH}
    ):
        yield Entry._make(row)


def plain(table: Table) -> Select[Any]:
    """The rows of a table, rules as their numbers: what is none's number is to be found, not to fail."""
    columns = [type_coerce(c, Integer).label(c.name) if c.name == "rule" else c for c in table.c]
    return select(*columns)


def parsed(answer: str) -> Any:
    """An answer as JSON; None when it is none."""
    try:
        return from_json(answer)
    except ValueError:
        return None


def time_of(text: str | None) -> datetime | None:
    """A time as an answer has it."""
    return None if text is None else datetime.fromisoformat(text).astimezone(UTC)


def spellings(at: datetime | None) -> Iterator[str | None]:
    """A time as entries may have it: in UTC, and in the other zones that it may have been sent in."""
    if at is None:
        yield None
        return
    yield at.astimezone(UTC).isoformat()
    for quarters in range(-48, 57):
        yield at.astimezone(timezone(timedelta(minutes=15 * quarters))).isoformat()
        if quarters == 0:
            yield at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def batched(each: Iterable[T]) -> Iterator[list[T]]:
    """So many at a time."""
    them = iter(each)
    while batch := list(islice(them, BATCH)):
        yield batch


Check = Callable[[Look], None]
