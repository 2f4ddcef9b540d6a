"""Documents that wait to be checked, and the reports of those that were, for as long as the policy has them kept.

A process takes a document by leasing it, and renews the lease while it is at it: what a process that died held comes to
others when its lease ends. A document that was begun MOST_ATTEMPTS times and never finished is given up: it may be what
the processes die of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Literal

from sqlalchemy import ColumnElement, Connection, Table, and_, bindparam, delete, func, select, tuple_, update

from vouchgate.ingest.policy import DocumentPolicy
from vouchgate.storage import modes
from vouchgate.storage.identity.names import valid_name
from vouchgate.storage.sql import BulkInsert, limited_to
from vouchgate.storage.tables.doors import DocumentRow

MOST_ATTEMPTS = 3
MOST_OF_ONE_OWNER = 16  # that are being checked: half of what one worker has under way is left to others

TABLE: Table = DocumentRow.metadata.tables["document"]
ROWS = BulkInsert(TABLE)


class DocumentState(StrEnum):
    """Where a document stands."""

    WAITING = "waiting"  # to be checked, or being checked
    CHECKED = "checked"
    GIVEN_UP = "given_up"


@dataclass(frozen=True, slots=True)
class DocumentRecord:
    """A document as whoever sent it sees it. `report` is JSON, there once it was checked."""

    owner_id: str
    id: str
    state: DocumentState
    created_at: datetime
    done_at: datetime | None
    kept_until: datetime | None
    report: str | None


@dataclass(frozen=True, slots=True)
class ListedDocument:
    """A document in a list, without its report."""

    owner_id: str
    id: str
    state: DocumentState
    created_at: datetime
    done_at: datetime | None
    kept_until: datetime | None


@dataclass(frozen=True, slots=True)
class LeasedDocument:
    """A leased document. `sent` is what was sent; `attempts` counts this one."""

    owner_id: str
    id: str
    sent: str
    attempts: int
    lease: str


@dataclass(frozen=True, slots=True)
class TooMany:
    """The owner has as many documents as the policy allows: waiting, or kept. Nothing was written."""

    what: Literal["waiting", "kept"]
    limit: int


@dataclass(frozen=True, slots=True)
class Added:
    """The document is kept. `repeated`: it was before, under the same key."""

    id: str
    repeated: bool = False


class KeyUsed:
    """The Idempotency-Key came with another document before. Nothing was written."""


_COUNT = (
    select(TABLE.c.state, func.count().label("many"))
    .where(TABLE.c.owner_id == bindparam("of_owner"))
    .group_by(TABLE.c.state)
)
_BY_KEY = select(TABLE.c.id, TABLE.c.sent_digest).where(
    TABLE.c.owner_id == bindparam("of_owner"),
    TABLE.c.submitted_by == bindparam("of_principal"),
    TABLE.c.idempotency_key == bindparam("of_key"),
)
_WAITS = TABLE.c.state == DocumentState.WAITING.value
# Documents that wait, in turns: the first of each owner, then the second of each. Those that are being checked are the
# first of theirs, so that an owner with many under way is behind one with none.
_TURNS = (
    select(
        TABLE.c.owner_id,
        TABLE.c.id,
        TABLE.c.due_at,
        func.row_number()
        .over(partition_by=TABLE.c.owner_id, order_by=(TABLE.c.lease.is_(None), TABLE.c.due_at, TABLE.c.id))
        .label("turn"),
    )
    .where(_WAITS, modes.writable(TABLE.c.owner_id))
    .subquery()
)
_MAY_COME = _TURNS.c.turn <= MOST_OF_ONE_OWNER
_NEXT = select(func.min(_TURNS.c.due_at)).where(_MAY_COME)
# When the owner was last served, of those of whom as many are under way; never, before all others.
_DONE = TABLE.alias("done")
_SERVED = (
    select(func.coalesce(func.max(_DONE.c.done_at), bindparam("never", type_=TABLE.c.done_at.type)))
    .where(_DONE.c.owner_id == _TURNS.c.owner_id)
    .scalar_subquery()
)
_CHOSEN = (
    select(_TURNS.c.owner_id, _TURNS.c.id)
    .where(_MAY_COME, _TURNS.c.due_at <= bindparam("now"))
    .order_by(_TURNS.c.turn, _SERVED, _TURNS.c.due_at)
    .limit(bindparam("most"))
)
# What another process is taking at this moment is left to it.
_DUE = (
    select(TABLE.c.owner_id, TABLE.c.id, TABLE.c.sent, TABLE.c.attempts)
    .where(tuple_(TABLE.c.owner_id, TABLE.c.id).in_(_CHOSEN), _WAITS, TABLE.c.due_at <= bindparam("now"))
    .with_for_update(skip_locked=True)
)
_THIS = and_(TABLE.c.owner_id == bindparam("of_owner"), TABLE.c.id == bindparam("of_id"))
_HELD = and_(_THIS, _WAITS, TABLE.c.lease == bindparam("of_lease"))
_LEASE = (
    update(TABLE)
    .where(_THIS)
    .values(due_at=bindparam("until"), lease=bindparam("name"), attempts=TABLE.c.attempts + 1)
)
_POSTPONE = update(TABLE).where(_HELD).values(due_at=bindparam("until"), attempts=bindparam("begun"))
_IS_OLD = and_(TABLE.c.kept_until.is_not(None), TABLE.c.kept_until <= bindparam("now"))
_ANY_OLD = select(TABLE.c.id).where(_IS_OLD).limit(1)
_OLD = (
    select(TABLE.c.owner_id, TABLE.c.id)
    .where(_IS_OLD)
    .limit(bindparam("most"))
    .with_for_update(skip_locked=True)
)
_FORGET = delete(TABLE).where(
    tuple_(TABLE.c.owner_id, TABLE.c.id) == tuple_(bindparam("of_owner"), bindparam("of_id"))
)
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


def add(connection: Connection, row: Mapping[str, Any], limits: DocumentPolicy) -> Added | KeyUsed | TooMany:
    """Keeps a document that waits, unless it is kept already under its key. `row` has `owner_id`, `id`, `submitted_by`,
    `created_at`, `sent`, `sent_digest` and `idempotency_key`. The caller holds the owner's lock."""
    owner, key = row["owner_id"], row["idempotency_key"]
    if key is not None:
        named = {"of_owner": owner, "of_principal": row["submitted_by"], "of_key": key}
        if (known := connection.execute(_BY_KEY, named).first()) is not None:
            return Added(known.id, repeated=True) if known.sent_digest == row["sent_digest"] else KeyUsed()
    many = {row.state: row.many for row in connection.execute(_COUNT, {"of_owner": owner})}
    if many.get(DocumentState.WAITING, 0) >= limits.waiting:
        return TooMany("waiting", limits.waiting)
    if sum(many.values()) >= limits.kept:
        return TooMany("kept", limits.kept)
    nothing = dict.fromkeys(("lease", "done_at", "kept_until", "report", "html", "sarif"))
    waits = {"state": DocumentState.WAITING.value, "due_at": row["created_at"], "attempts": 0}
    ROWS.write(connection, [{**row, **nothing, **waits}])
    return Added(row["id"])


def get(
    connection: Connection,
    document_id: str,
    *,
    owners: frozenset[str] | None,
    submitted_by: str | None = None,
) -> DocumentRecord | None:
    """A document of one of `owners` (None: of any), and of that principal where one is named."""
    names = DocumentRecord.__slots__
    row = _row(connection, document_id, [TABLE.c[name] for name in names], owners, submitted_by)
    if row is None:
        return None
    return DocumentRecord(**{**dict(zip(names, row, strict=True)), "state": DocumentState(row.state)})


def listing(
    connection: Connection,
    *,
    owners: frozenset[str] | None,
    submitted_by: str | None = None,
    after: str | None,
    limit: int,
) -> list[ListedDocument]:
    """Documents as of `get`, newest first; `after` is the id of the last one of the page before."""
    names = ListedDocument.__slots__
    statement = select(*(TABLE.c[name] for name in names)).order_by(TABLE.c.id.desc()).limit(limit)
    if submitted_by is not None:
        statement = statement.where(TABLE.c.submitted_by == submitted_by)
    if after is not None:
        statement = statement.where(TABLE.c.id < after)
    return [
        ListedDocument(**{**row, "state": DocumentState(row["state"])})
        for row in connection.execute(limited_to(owners, statement, TABLE)).mappings()
    ]


def remove(connection: Connection, owner_id: str, document_id: str) -> str | None:
    """Deletes a document, its text and what came of it; the digest of what was sent. None when it is not there. The
    caller holds the owner's lock."""
    named = {"of_owner": owner_id, "of_id": document_id}
    digest: str | None = connection.scalar(select(TABLE.c.sent_digest).where(_THIS), named)
    if digest is not None:
        connection.execute(_FORGET, named)
    return digest


def rendered(
    connection: Connection,
    document_id: str,
    form: Literal["html", "sarif"],
    *,
    owners: frozenset[str] | None,
    submitted_by: str | None = None,
) -> tuple[DocumentState, str | None] | None:
    """Where a document stands, and its report in that form once there is one; None as of `get`."""
    row = _row(connection, document_id, [TABLE.c.state, TABLE.c[form]], owners, submitted_by)
    return None if row is None else (DocumentState(row[0]), row[1])


def _row(
    connection: Connection,
    document_id: str,
    columns: list[ColumnElement[Any]],
    owners: frozenset[str] | None,
    submitted_by: str | None,
) -> Any:
    if not valid_name(document_id):
        return None
    statement = select(*columns).where(TABLE.c.id == bindparam("wanted"))
    if submitted_by is not None:
        statement = statement.where(TABLE.c.submitted_by == submitted_by)
    return connection.execute(limited_to(owners, statement, TABLE), {"wanted": document_id}).first()


def next_due(connection: Connection) -> datetime | None:
    """When the next document comes due that may be taken, or some lease ends; None when none waits."""
    found: datetime | None = connection.scalar(_NEXT, modes.read_only(connection))
    return found


def lease(
    connection: Connection, now: datetime, limit: int, seconds: float, name: str
) -> list[LeasedDocument]:
    """Takes up to `limit` documents that are due, for so long: owners in turn, whoever was served longest ago first,
    MOST_OF_ONE_OWNER at most. `name` must be new each time. In a write transaction of its own: it holds no owner's
    lock."""
    asked = modes.read_only(connection) | {"now": now, "most": limit, "never": _NEVER}
    taken = [
        LeasedDocument(row.owner_id, row.id, row.sent, row.attempts + 1, name)
        for row in connection.execute(_DUE, asked)
    ]
    if taken:
        until = now + timedelta(seconds=seconds)
        connection.execute(_LEASE, [{**_named(one), "until": until, "name": name} for one in taken])
    return taken


def postpone(connection: Connection, held: LeasedDocument, until: datetime, *, attempts: int) -> None:
    """Has the lease end then, with so many attempts begun; nothing when another has it by now."""
    named = {**_named(held), "of_lease": held.lease}
    connection.execute(_POSTPONE, named | {"until": until, "begun": attempts})


def settle(
    connection: Connection,
    held: LeasedDocument,
    state: DocumentState,
    *,
    at: datetime,
    days: float,
    forms: Mapping[str, str],
) -> bool:
    """Keeps what came of a document, in the `forms` `report`, `html` and `sarif`, for so many days, and forgets its
    text; False, and nothing, when another process has the lease by now."""
    done = {"state": state.value, "done_at": at, "kept_until": at + timedelta(days=days), "sent": "", **forms}
    named = {**_named(held), "of_lease": held.lease}
    return connection.execute(update(TABLE).where(_HELD).values(**done), named).rowcount > 0


def has_old(connection: Connection, now: datetime) -> bool:
    """Whether `forget_old` has something to do."""
    return connection.execute(_ANY_OLD, {"now": now}).first() is not None


def forget_old(connection: Connection, now: datetime, limit: int) -> int:
    """Deletes up to `limit` documents whose time is over, at most 100; how many. None that waits is among them."""
    rows = connection.execute(_OLD, {"now": now, "most": min(limit, 100)}).all()
    if rows:
        connection.execute(_FORGET, [{"of_owner": row.owner_id, "of_id": row.id} for row in rows])
    return len(rows)


def _named(held: LeasedDocument) -> dict[str, Any]:
    return {"of_owner": held.owner_id, "of_id": held.id}
