"""Audits of memories that were handed over to be cleared: their rows, and what became of each. Whoever writes holds the
owner's lock, for AT_ONCE rows at most."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Row, Table, and_, bindparam, case, delete, func, select, update

from vouchgate.storage.sql import BulkInsert, among
from vouchgate.storage.tables.audits import AuditedRow, MemoryAuditRow

AT_ONCE = 1000  # rows that one transaction changes

AUDIT: Table = MemoryAuditRow.metadata.tables["memory_audit"]
ROW: Table = AuditedRow.metadata.tables["audited_row"]
_ROWS = BulkInsert(ROW)

Audit = Row[Any]  # of AUDIT
Chosen = Mapping[str, Collection[Any]]  # rows: in each of these columns they have one of the values


class RowState(StrEnum):
    """What became of a row."""

    OPEN = "open"  # nobody said anything of it
    CLEARED = "cleared"  # taken out of what goes to the gate
    KEPT = "kept"  # found wrongly, says its owner
    STORED = "stored"  # at the gate, as this and the next two
    QUEUED = "queued"
    BLOCKED = "blocked"
    REFUSED = "refused"  # the gate does not take it as a claim


LEFT = (RowState.OPEN.value, RowState.KEPT.value)  # what goes to the gate
_THIS = and_(AUDIT.c.owner_id == bindparam("of_owner"), AUDIT.c.id == bindparam("of_audit"))
_ITS = and_(ROW.c.owner_id == bindparam("of_owner"), ROW.c.audit_id == bindparam("of_audit"))
_COUNTS = select(ROW.c.label, ROW.c.state, func.count()).where(_ITS).group_by(ROW.c.label, ROW.c.state)
_ACT = (ROW.c.act, ROW.c.state, ROW.c.acted_by)
_UNDOABLE = ROW.c.act.is_not(None), ROW.c.state.in_(("cleared", "kept"))
_ACTS = select(*_ACT, func.count().label("rows")).where(_ITS, *_UNDOABLE).group_by(*_ACT)
_OLD = select(AUDIT).where(AUDIT.c.kept_until <= bindparam("now")).limit(1)
_LAST = select(func.max(ROW.c.position)).where(_ITS)
_OTHER = ROW.alias()
_IS_NAMED = (_OTHER.c.owner_id == ROW.c.owner_id, _OTHER.c.audit_id == ROW.c.audit_id, _OTHER.c.name == ROW.c.other,
             _OTHER.c.position != ROW.c.position)  # fmt: skip
_NAMED = select(_OTHER.c.position, _OTHER.c.state).where(*_IS_NAMED).limit(2).correlate(ROW).subquery()
_ABOUT = select(func.min(_NAMED.c.position)).having(func.count() == 1)  # where several have the name, none
_ABOUTS = select(ROW.c.position, _ABOUT.scalar_subquery()).where(_ITS, among(ROW.c.position, "these"))
_THESE = select(ROW).where(_ITS, among(ROW.c.position, "these"))
_REPLACED = _ABOUT.having(func.min(_NAMED.c.state) == "open").scalar_subquery()
_FALLING = case((ROW.c.label == "update", _REPLACED), else_=ROW.c.position)


def listing(connection: Connection, owners: frozenset[str]) -> Sequence[Audit]:
    """The audits of these owners, the newest first."""
    wanted = select(AUDIT).where(AUDIT.c.owner_id.in_(owners))
    return connection.execute(wanted.order_by(AUDIT.c.created_at.desc())).all()


def take(
    connection: Connection, owner_id: str, audit_id: str, rows: Sequence[Mapping[str, Any]], after: int
) -> int:
    """Adds rows behind the first `after`, if that is how many are here; how many then are."""
    here = int(connection.scalar(_LAST, {"of_owner": owner_id, "of_audit": audit_id}) or 0)
    if here != after:
        return here
    same = {"owner_id": owner_id, "audit_id": audit_id, "state": "open", "act": None, "acted_by": None}
    _ROWS.write(connection, [{**same, **row, "position": at} for at, row in enumerate(rows, after + 1)])
    return after + len(rows)


def counts(connection: Connection, audit: Audit) -> dict[str, dict[str, int]]:
    """How many rows each label has in each state: from an index alone."""
    counted: dict[str, dict[str, int]] = {}
    for label, state, many in connection.execute(_COUNTS, _key(audit)):
        counted.setdefault(label, {each.value: 0 for each in RowState})[state] = many
    return counted


def search(
    connection: Connection,
    audit: Audit,
    states: Collection[str],
    label: str = "",
    *,
    after: int = 0,
    limit: int,
) -> Sequence[Row[Any]]:
    """Rows in one of these states, and with that label where one is named, in the order of the memory."""
    wanted = select(ROW).where(_ITS, ROW.c.state.in_(states), ROW.c.position > after)
    wanted = wanted.where(ROW.c.label == label) if label else wanted
    return connection.execute(wanted.order_by(ROW.c.position).limit(limit), _key(audit)).all()


def others(connection: Connection, audit: Audit, positions: Collection[int]) -> dict[int, Row[Any]]:
    """The rows that those at these positions are about; none where several have the name."""
    about = dict(map(tuple, connection.execute(_ABOUTS, {**_key(audit), "these": positions})))
    these = {**_key(audit), "these": {each for each in about.values() if each is not None}}
    found = {row.position: row for row in connection.execute(_THESE, these)}
    return {position: found[other] for position, other in about.items() if other is not None}


def acts(connection: Connection, audit: Audit, limit: int) -> Sequence[Row[Any]]:
    """What owners did and did not take back, with how many `rows` it still holds for, the latest first."""
    return connection.execute(_ACTS.order_by(ROW.c.act.desc()).limit(limit), _key(audit)).all()


def positions(connection: Connection, audit: Audit, chosen: Chosen, what: Any = ROW.c.position) -> list[int]:
    """Where the chosen rows stand, or another position of each."""
    where = [ROW.c[name].in_(wanted) for name, wanted in chosen.items()]
    found = connection.scalars(select(what).where(_ITS, *where), _key(audit))
    return [at for at in found if at is not None]


def move(connection: Connection, audit: Audit, to: RowState, chosen: Chosen, **values: Any) -> int:
    """Puts chosen rows, AT_ONCE at most, into another state, and gives other columns these values; how many. When an
    update is cleared, it is the row that it replaces that is, where it is known and nobody said anything of it."""
    these = positions(connection, audit, chosen, _FALLING if to is RowState.CLEARED else ROW.c.position)
    changed = update(ROW).where(_ITS, among(ROW.c.position, "these")).values(state=to.value, **values)
    return connection.execute(changed, {**_key(audit), "these": these}).rowcount


def saying(connection: Connection, owner_id: str, texts: Collection[str]) -> list[tuple[str, int, bool]]:
    """The rows of an owner, as audit and position, that are one of these texts, and those that are about such a row
    (False). Reads all that there are."""
    wanted = select(ROW.c.audit_id, ROW.c.position, ROW.c.name, ROW.c.other, ROW.c.text)
    found, names, about = [], set(), []
    every = wanted.where(ROW.c.owner_id == owner_id)
    for row in connection.execute(every, execution_options={"yield_per": AT_ONCE}):
        if row.text in texts:
            names.add((row.audit_id, row.name))
            found.append((row.audit_id, row.position, True))
        elif row.other is not None:
            about.append((row.audit_id, row.position, row.other))
    return found + [(audit, at, False) for audit, at, other in about if (audit, other) in names]


def has_old(connection: Connection, now: datetime) -> bool:
    """Whether `forget_old` has something to do."""
    return connection.execute(_OLD, {"now": now}).first() is not None


def forget_old(connection: Connection, now: datetime, limit: int) -> int:
    """Deletes up to `limit` rows of an audit whose time is over, and at last the audit; how many."""
    audit = connection.execute(_OLD, {"now": now}).first()
    last = audit and connection.scalar(_LAST, _key(audit))
    gone = delete(ROW).where(_ITS, ROW.c.position > last - limit) if last else delete(AUDIT).where(_THIS)
    return connection.execute(gone, _key(audit)).rowcount if audit else 0


def _key(audit: Audit) -> dict[str, Any]:
    return {"of_owner": audit.owner_id, "of_audit": audit.id}
