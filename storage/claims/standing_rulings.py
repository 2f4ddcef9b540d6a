"""Standing rulings of owners (`ingest.claims.standing_rulings`), and what each did."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Table, and_, bindparam, case, func, or_, select, update

from vouchgate.ingest.claims.decision import ValidationResult
from vouchgate.ingest.claims.memory import MemoryStatus
from vouchgate.ingest.claims.standing_rulings import StandingRuling
from vouchgate.ingest.claims.waiting import SpotVerdict
from vouchgate.ingest.rules import Rule
from vouchgate.storage.claims import decisions, memories
from vouchgate.storage.identity.names import valid_name
from vouchgate.storage.identity.owners import note_said
from vouchgate.storage.sql import BulkInsert, among, limited_to
from vouchgate.storage.tables.claims import SpotCheckRow, StandingRulingActRow, StandingRulingRow

TABLE: Table = StandingRulingRow.metadata.tables["standing_ruling"]
_ACTS: Table = StandingRulingActRow.metadata.tables["standing_ruling_act"]
_SPOT: Table = SpotCheckRow.metadata.tables["spot_check"]
ACTS = BulkInsert(_ACTS)
_ROWS = BulkInsert(TABLE)

_OF_OWNER = select(TABLE).where(TABLE.c.owner_id == bindparam("of_owner")).order_by(TABLE.c.id.desc())
_IN_FORCE = _OF_OWNER.where(TABLE.c.ended_at.is_(None))
_END = (
    update(TABLE)
    .where(
        TABLE.c.owner_id == bindparam("of_owner"),
        TABLE.c.id == bindparam("of_id"),
        TABLE.c.ended_at.is_(None),
    )
    .values(ended_at=bindparam("at"), ended_by=bindparam("by"))
)
_MEMORY, _CHECK = memories.TABLE, _SPOT
_JOINED = _ACTS.outerjoin(
    _MEMORY, and_(_MEMORY.c.owner_id == _ACTS.c.owner_id, _MEMORY.c.id == _ACTS.c.memory_id)
).outerjoin(_CHECK, and_(_CHECK.c.owner_id == _ACTS.c.owner_id, _CHECK.c.memory_id == _ACTS.c.memory_id))
_ACTIVE = _MEMORY.c.status == MemoryStatus.ACTIVE.value


def _times(condition: Any) -> Any:
    return func.sum(case((condition, 1), else_=0))


_COUNTS = (
    select(
        _ACTS.c.ruling_id,
        func.count(_ACTS.c.memory_id).label("stored"),
        _times(_ACTIVE).label("in_force"),
        _times(_ACTS.c.memory_id.is_(None)).label("rejected"),
        _times(_CHECK.c.verdict == SpotVerdict.RIGHT.value).label("right"),
        _times(_CHECK.c.verdict == SpotVerdict.WRONG.value).label("wrong"),
        _times(and_(_ACTS.c.settled.is_(False), _ACTIVE | _ACTS.c.memory_id.is_(None))).label("open"),
    )
    .select_from(_JOINED)
    .where(_ACTS.c.owner_id == bindparam("of_owner"))
    .group_by(_ACTS.c.ruling_id)
)
_OPEN_ACTS = (
    select(_ACTS.c.decision_id, _ACTS.c.memory_id, decisions.TABLE.c.principal_id, decisions.TABLE.c.answer)
    .select_from(
        _JOINED.join(
            decisions.TABLE,
            and_(decisions.TABLE.c.owner_id == _ACTS.c.owner_id, decisions.TABLE.c.id == _ACTS.c.decision_id),
        )
    )
    .where(
        _ACTS.c.owner_id == bindparam("of_owner"),
        _ACTS.c.ruling_id == bindparam("of_ruling"),
        _ACTS.c.settled.is_(False),
        _ACTIVE | _ACTS.c.memory_id.is_(None),
        decisions.TABLE.c.principal_id.not_in(bindparam("without", expanding=True)),
    )
    .order_by(_ACTS.c.decision_id)
    .limit(bindparam("most"))
)
_SETTLE = (
    update(_ACTS)
    .where(
        _ACTS.c.owner_id == bindparam("of_owner"),
        _ACTS.c.ruling_id == bindparam("of_ruling"),
        among(_ACTS.c.decision_id, "done"),
    )
    .values(settled=True)
)


@dataclass(frozen=True, slots=True)
class RulingCounts:
    """What a standing ruling did: memories it stored, how many are in force, claims it rejected; what owners said of
    those drawn for spot checks; and how many acts are open: not taken back, and there to be."""

    stored: int = 0
    in_force: int = 0
    rejected: int = 0
    right: int = 0
    wrong: int = 0
    open: int = 0


@dataclass(frozen=True, slots=True)
class RulingAct:
    """One claim that a standing ruling stored or rejected, whose it was, and the decision as it was written."""

    decision_id: str
    memory_id: str | None
    principal_id: str
    answer: str


def act_rows(answer: ValidationResult) -> list[dict[str, Any]]:
    """The row of a decision that a standing ruling of the owner's made."""
    ruling = answer.evidence.standing_ruling
    if ruling is None or answer.rule != Rule.STANDING_RULING:
        return []
    owner_id = answer.evidence.claim.owner_id
    row = {"owner_id": owner_id, "ruling_id": ruling.id, "decision_id": answer.decision_id}
    return [row | {"memory_id": answer.memory_id, "settled": False}]


def in_force(connection: Connection, owner_id: str) -> list[StandingRuling]:
    """The standing rulings that an owner did not end; the time of some may be over."""
    return [_ruling(row) for row in connection.execute(_IN_FORCE, {"of_owner": owner_id}).mappings()]


def at(connection: Connection, when: datetime, owners: frozenset[str] | None) -> list[StandingRuling]:
    """The standing rulings of these owners (None: of all) that were in force then."""
    wanted = select(TABLE).where(
        TABLE.c.created_at <= when,
        TABLE.c.until > when,
        or_(TABLE.c.ended_at.is_(None), TABLE.c.ended_at > when),
    )
    rows = connection.execute(limited_to(owners, wanted, TABLE).order_by(TABLE.c.owner_id, TABLE.c.id))
    return [_ruling(row) for row in rows.mappings()]


def listing(connection: Connection, owner_id: str) -> list[tuple[StandingRuling, RulingCounts]]:
    """All standing rulings that an owner ever had, the newest first, with what each did."""
    asked = {"of_owner": owner_id}
    counted = {
        row["ruling_id"]: RulingCounts(**{name: int(row[name] or 0) for name in RulingCounts.__slots__})
        for row in connection.execute(_COUNTS, asked).mappings()
    }
    rulings = [_ruling(row) for row in connection.execute(_OF_OWNER, asked).mappings()]
    return [(ruling, counted.get(ruling.id, RulingCounts())) for ruling in rulings]


def get(connection: Connection, owners: frozenset[str], ruling_id: str) -> StandingRuling | None:
    """The standing ruling of this id; None when none of these owners has it."""
    if not valid_name(ruling_id):
        return None
    wanted = select(TABLE).where(TABLE.c.owner_id.in_(owners), TABLE.c.id == ruling_id)
    row = connection.execute(wanted).mappings().one_or_none()
    return None if row is None else _ruling(row)


def put(connection: Connection, ruling: StandingRuling) -> None:
    """Notes a new standing ruling, which counts from now on. The caller holds the owner's lock."""
    _ROWS.write(
        connection, [ruling.model_dump() | {"terms": ruling.terms.model_dump(mode="json", exclude_none=True)}]
    )
    note_said(connection, ruling.owner_id)


def end(connection: Connection, ruling: StandingRuling, *, by: str, at: datetime) -> bool:
    """Ends a standing ruling; whether it was in force. The caller holds the owner's lock."""
    asked = {"of_owner": ruling.owner_id, "of_id": ruling.id, "at": at, "by": by}
    ended = connection.execute(_END, asked).rowcount == 1
    if ended:
        note_said(connection, ruling.owner_id)
    return ended


def open_acts(
    connection: Connection,
    ruling: StandingRuling,
    most: int,
    *,
    stored_only: bool,
    without: Collection[str] = (),
) -> list[RulingAct]:
    """What a standing ruling did and was not taken back, the oldest first: memories in force and, unless `stored_only`,
    claims that it rejected; but for what these agents sent."""
    wanted = _OPEN_ACTS.where(_ACTS.c.memory_id.is_not(None)) if stored_only else _OPEN_ACTS
    asked = {"of_owner": ruling.owner_id, "of_ruling": ruling.id, "most": most, "without": list(without)}
    return [RulingAct(**row) for row in connection.execute(wanted, asked).mappings()]


def settle(connection: Connection, ruling: StandingRuling, done: Collection[str]) -> None:
    """Notes that what these decisions did was taken back. The caller holds the owner's lock."""
    connection.execute(_SETTLE, {"of_owner": ruling.owner_id, "of_ruling": ruling.id, "done": done})


def _ruling(row: Mapping[Any, Any]) -> StandingRuling:
    return StandingRuling.model_validate(dict(row))
