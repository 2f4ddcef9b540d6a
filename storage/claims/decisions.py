"""The answers that were given, word for word."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Table, and_, bindparam, func, select, tuple_

from vouchgate.ingest.claims.decision import ValidationResult
from vouchgate.ingest.transparency.verifier import DECIDED
from vouchgate.storage.identity.names import valid_name
from vouchgate.storage.ids import first_decision_id
from vouchgate.storage.sql import limited_to
from vouchgate.storage.tables.claims import DecisionRow, LogRow
from vouchgate.storage.tables.tree import LeafRow

TABLE: Table = DecisionRow.metadata.tables["decision"]
_LEAF: Table = LeafRow.metadata.tables["log_leaf"]
_LOG: Table = LogRow.metadata.tables["log_entry"]
_BY_ID = select(TABLE.c.answer).where(TABLE.c.id == bindparam("wanted"))
_PAGE = (
    select(TABLE.c.owner_id, TABLE.c.id, TABLE.c.answer)
    .where(tuple_(TABLE.c.owner_id, TABLE.c.id) > tuple_(bindparam("last_owner"), bindparam("last_id")))
    .order_by(TABLE.c.owner_id, TABLE.c.id)
    .limit(bindparam("most"))
)
_WITH_LEAVES = (
    select(TABLE, _LEAF.c.seq, _LEAF.c.number, _LEAF.c.data, _LOG.c.salt)
    .select_from(
        TABLE.outerjoin(
            _LEAF.join(
                _LOG,
                and_(
                    _LOG.c.owner_id == _LEAF.c.owner_id, _LOG.c.seq == _LEAF.c.seq, _LOG.c.action.in_(DECIDED)
                ),
            ),
            and_(_LEAF.c.owner_id == TABLE.c.owner_id, _LEAF.c.decision_id == TABLE.c.id),
        )
    )
    .order_by(TABLE.c.owner_id, TABLE.c.id)
)


def row_of(answer: ValidationResult, json: str, *, principal_id: str, at: datetime) -> dict[str, Any]:
    """A decision as the parameters of INSERT; `json` is the text of `answer` that is told and kept."""
    return {
        "owner_id": answer.evidence.claim.owner_id,
        "id": answer.decision_id,
        "created_at": at,
        "principal_id": principal_id,
        "tier": answer.tier.value,
        "rule": answer.rule,
        "policy_digest": answer.policy_digest,
        "answer": json,
    }


def get(connection: Connection, decision_id: str, *, owners: frozenset[str] | None) -> str | None:
    """The answer as JSON, or None when none of `owners` has a decision of this id (None: any owner), or it was erased
    (`storage.erasing`)."""
    if not valid_name(decision_id):
        return None
    statement = limited_to(owners, _BY_ID, TABLE)
    row = connection.execute(statement, {"wanted": decision_id}).one_or_none()
    return None if row is None or not row.answer else str(row.answer)


def since(
    connection: Connection, owner_id: str, first: datetime, *, agent: str | None, most: int
) -> list[tuple[str, str]]:
    """(id of the principal, answer as JSON) of an owner's decisions from a time on, the newest first and so many at
    most; of one principal's claims only, if one is named. Ids go by time, so they lie together in the index."""
    wanted = select(TABLE.c.principal_id, TABLE.c.answer).where(
        TABLE.c.owner_id == owner_id,
        TABLE.c.id >= first_decision_id(first),
        TABLE.c.answer != "",
    )
    if agent is not None:
        wanted = wanted.where(TABLE.c.principal_id == agent)
    return [
        (row.principal_id, row.answer)
        for row in connection.execute(wanted.order_by(TABLE.c.id.desc()).limit(most))
    ]


def between(
    connection: Connection, owners: frozenset[str] | None, since: datetime | None, until: datetime | None
) -> Iterator[Row[Any]]:
    """The rows of these owners' decisions (None: every owner's) from `since` on and before `until`, by owner and age,
    each with `seq`, `number` and text (`data`) of its leaf in the tree and the `salt` of its entry, None where
    there is none (yet). Some in memory at a time; needs one reading transaction."""
    statement = limited_to(owners, _WITH_LEAVES, TABLE)
    if since is not None:
        statement = statement.where(TABLE.c.created_at >= since)
    if until is not None:
        statement = statement.where(TABLE.c.created_at < until)
    yield from connection.execute(statement, execution_options={"yield_per": 500})


def _within(owner_id: str | None, first: datetime | None) -> list[ColumnElement[bool]]:
    """Those of an owner, and of a time on: ids go by time."""
    of_owner = [] if owner_id is None else [TABLE.c.owner_id == owner_id]
    return of_owner + ([] if first is None else [TABLE.c.id >= first_decision_id(first)])


def count(connection: Connection, owner_id: str | None = None, first: datetime | None = None) -> int:
    """How many `walk` has."""
    return connection.scalar(select(func.count()).select_from(TABLE).where(*_within(owner_id, first))) or 0


def walk(
    connection: Connection, owner_id: str | None = None, first: datetime | None = None, *, batch: int = 500
) -> Iterator[tuple[str, str]]:
    """(decision id, answer as JSON) of every decision, or of one owner's, from a time on; by owner and age, `batch`
    rows in memory at a time. Of one that was erased, an empty answer."""
    page = _PAGE.where(*_within(owner_id, first))
    last = {"last_owner": "", "last_id": "", "most": batch}
    while rows := connection.execute(page, last).all():
        for row in rows:
            yield row.id, row.answer
        last |= {"last_owner": rows[-1].owner_id, "last_id": rows[-1].id}
