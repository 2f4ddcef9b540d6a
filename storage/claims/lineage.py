"""What decisions rest on, by every name of it (`ingest.citations.names`). A row is as final as its decision; what
became of the memory or the item that rests on the decision is asked of that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, and_, bindparam, func, or_, select

from vouchgate.ingest.citations.names import Cited, Wanted, lineage_of
from vouchgate.ingest.claims.decision import ValidationResult
from vouchgate.ingest.claims.source import Found
from vouchgate.storage.sql import BulkInsert
from vouchgate.storage.tables.claims import LineageRow

TABLE: Table = LineageRow.metadata.tables["lineage"]
ROWS = BulkInsert(TABLE)
_COUNT = func.count()
_FREQUENT = (
    select(TABLE.c.name)
    .where(TABLE.c.owner_id == bindparam("of_owner"))
    .group_by(TABLE.c.name)
    .order_by(_COUNT.desc(), TABLE.c.name)
    .limit(bindparam("most"))
)


def rows_of(answer: ValidationResult) -> list[dict[str, Any]]:
    """The rows of a decision as parameters of INSERT: none where nothing is stored or waits by it."""
    if answer.memory_id is None and answer.queue_id is None:
        return []
    cited = [
        Cited(one.citation.key, one.source_id, one.site, one.project, one.citation.harvested)
        if isinstance(one, Found)
        else Cited(one.citation.key, harvested=one.citation.harvested)
        for one in answer.evidence.sources
    ]
    return _rows(answer.evidence.claim.owner_id, str(answer.decision_id), cited)


def rows_of_stored(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The same of an answer as it was written. Raises KeyError and TypeError for what is none."""
    if answer["memory_id"] is None and answer["queue_id"] is None:
        return []
    cited = [
        Cited(
            one["citation"]["key"],
            one.get("source_id"),
            one.get("site", ""),
            one.get("project", ""),
            one["citation"].get("harvested", False),
        )
        for one in answer["evidence"]["sources"]
    ]
    return _rows(answer["evidence"]["claim"]["owner_id"], answer["decision_id"], cited)


def _rows(owner_id: str, decision_id: str, cited: list[Cited]) -> list[dict[str, Any]]:
    return [
        {"owner_id": owner_id, "name": name, "decision_id": decision_id, **basis._asdict()}
        for name, basis in (lineage_of(cited) if cited else {}).items()
    ]


def named(wanted: Wanted) -> ColumnElement[bool]:
    """Whether a row is of what is asked for."""
    found = TABLE.c.name.in_(sorted(wanted.names))
    if not wanted.commit:
        return found
    first = f"commit:{wanted.commit}"
    begins = and_(TABLE.c.name >= first, TABLE.c.name < f"{first}g", TABLE.c.name.startswith(first))
    return or_(found, begins)


def rests_on(items: Table, wanted: Wanted, owners: frozenset[str] | None) -> ColumnElement[bool]:
    """Whether the decision of a memory or an item rests on what is asked for. Of these owners, whose items alone the
    statement is about, all such decisions are looked up at once; with None each row is asked, which is for few rows."""
    decided = select(TABLE.c.decision_id).where(named(wanted))
    if owners is None:
        same = and_(TABLE.c.owner_id == items.c.owner_id, TABLE.c.decision_id == items.c.decision_id)
        return decided.where(same).correlate(items).exists()
    return items.c.decision_id.in_(decided.where(TABLE.c.owner_id.in_(owners)))


def frequent(connection: Connection, owner_id: str, most: int) -> Iterator[str]:
    """The names on which most of an owner's decisions rest, the most frequent first. Read from an index, whose every
    entry of the owner is counted."""
    yield from connection.scalars(_FREQUENT, {"of_owner": owner_id, "most": most})
