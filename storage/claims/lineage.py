"""What decisions rest on, by every name of it (`ingest.citations.names`). A row is as final as its decision; what
became of the memory or the item that rests on the decision is asked of that."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, and_, case, func, or_, select

from vouchgate.ingest.citations.names import Cited, Wanted, lineage_of
from vouchgate.ingest.claims.decision import ValidationResult
from vouchgate.ingest.claims.source import Found
from vouchgate.storage.sql import BulkInsert, among
from vouchgate.storage.tables.claims import LineageRow

TABLE: Table = LineageRow.metadata.tables["lineage"]
ROWS = BulkInsert(TABLE)


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


def alone(connection: Connection, owner_id: str, wanted: Wanted, decision_ids: Collection[str]) -> set[str]:
    """Those of an owner's decisions that rest on what is asked for and on nothing else."""
    found = select(TABLE.c.decision_id).where(
        TABLE.c.owner_id == owner_id, named(wanted), TABLE.c.others == 0, among(TABLE.c.decision_id, "wanted")
    )
    return set(connection.scalars(found, {"wanted": decision_ids}))


def counts(
    connection: Connection,
    items: Table,
    owner_id: str,
    wanted: Wanted,
    told: Mapping[str, ColumnElement[bool]],
) -> dict[str, dict[str, int]]:
    """How many of an owner's memories or items rest on what is asked for, by status: `all`, those that rest on nothing
    else (`alone`), and those of which something else is to be `told`."""
    said = select(TABLE.c.decision_id, func.min(TABLE.c.others).label("others"))
    basis = said.where(TABLE.c.owner_id == owner_id, named(wanted)).group_by(TABLE.c.decision_id).subquery()
    sums = {"alone": basis.c.others == 0, **told}
    found = (
        select(items.c.status, func.count().label("all"))
        .add_columns(*(func.sum(case((is_so, 1), else_=0)).label(name) for name, is_so in sums.items()))
        .join(basis, basis.c.decision_id == items.c.decision_id)
        .where(items.c.owner_id == owner_id)
        .group_by(items.c.status)
    )
    return {row.pop("status"): row for row in map(dict, connection.execute(found).mappings())}
