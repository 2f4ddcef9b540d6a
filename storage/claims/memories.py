"""Stored claims: put in, looked up, filtered, taken out of force. Nothing here deletes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from pydantic import Field, field_validator
from sqlalchemy import ColumnElement, Connection, Table, and_, bindparam, or_, select, text, update
from sqlalchemy import insert as insert_into

from vouchgate.ingest.citations import names
from vouchgate.ingest.claims.claim import MemoryType, Source
from vouchgate.ingest.claims.decision import Confidence, Label, ValidationResult
from vouchgate.ingest.claims.delivery import DeliveryTarget
from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.claims.likeness import ItemKind
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.memory import Memory, MemoryStatus
from vouchgate.ingest.scoring.score import confidence_of
from vouchgate.storage import modes
from vouchgate.storage.claims import lineage
from vouchgate.storage.dedup import index, similar, vectors
from vouchgate.storage.identity.names import valid_name
from vouchgate.storage.outgoing.outbox import Outbox
from vouchgate.storage.queue import rechecks
from vouchgate.storage.sql import among, limited_to
from vouchgate.storage.tables.claims import LEFT, DecisionRow, LogRow, MemoryRow, PendingRow
from vouchgate.storage.tables.conversion import to_fields, to_row

TABLE: Table = MemoryRow.metadata.tables["memory"]
_DECISION: Table = DecisionRow.metadata.tables["decision"]
_LOG: Table = LogRow.metadata.tables["log_entry"]
_PENDING: Table = PendingRow.metadata.tables["pending"]
_INSERT = insert_into(TABLE)
THERE = TABLE.c.content != ""  # what was erased has none; see `storage.erasing`
_BY_ID = select(TABLE).where(TABLE.c.id == bindparam("wanted"), THERE)
_BY_IDS = select(TABLE).where(TABLE.c.owner_id == bindparam("of_owner"), among(TABLE.c.id, "wanted"), THERE)
_LEAVE = update(TABLE).where(
    TABLE.c.owner_id == bindparam("of_owner"),
    TABLE.c.id == bindparam("of_id"),
)
_MARK = _LEAVE.where(TABLE.c.status == MemoryStatus.ACTIVE.value).values(
    stale_since=bindparam("since"), stale_reason=bindparam("because")
)
_CONFIRM = _LEAVE.where(TABLE.c.status == MemoryStatus.ACTIVE.value).values(
    confirmed_at=bindparam("at"), confirmed_despite=bindparam("despite"), stale_since=None, stale_reason=None
)
_LOWER = _LEAVE.where(TABLE.c.status == MemoryStatus.ACTIVE.value).values(
    label=bindparam("as_label"),
    confidence=bindparam("as_confidence"),
    lowered_at=bindparam("at"),
    lowered_reason=bindparam("because"),
)
_REPLACED_BY = select(TABLE).where(
    TABLE.c.owner_id == bindparam("of_owner"), TABLE.c.superseded_by == bindparam("by_memory")
)
_RESTORE = (
    _LEAVE.where(
        TABLE.c.status == MemoryStatus.SUPERSEDED.value, TABLE.c.superseded_by == bindparam("by_memory")
    )
).values(status=MemoryStatus.ACTIVE.value, superseded_by=None)
# The status in words: only so does either database see that the index `memory_due` fits.
_DUE = (
    select(TABLE.c.owner_id, TABLE.c.id)
    .where(text("status = 'active'"), TABLE.c.validity_horizon <= bindparam("now"))
    .where(modes.writable(TABLE.c.owner_id))
    .order_by(TABLE.c.validity_horizon)
    .limit(bindparam("most"))
)

MAX_PAGE = 200
ENDING = timedelta(days=30)  # a memory whose horizon is nearer ends soon


class MemoryFilter(Frozen):
    """Which memories to list. What is None does not restrict; `owners` None means every owner and is only
    for a principal that may act for any."""

    owners: frozenset[str] | None
    memory_type: MemoryType | None = None
    confidence: Confidence | None = None
    label: Label | None = None
    source_id: str | None = (
        None  # what it rests on, alone or with others, in any spelling: `ingest.citations.names`
    )
    text: str | None = None  # substring; letters A to Z match in either case on every database
    # What is looked for in words, best first; `storage.claims.searching` alone heeds it.
    q: str | None = None
    source: Source | None = None  # what its claim said of where it comes from
    agent: str | None = None  # principal id of who sent the claim
    created_from: datetime | None = None
    created_to: datetime | None = None  # before this time
    as_of: datetime | None = (
        None  # what was in force then, whatever its status is now; `statuses` is not asked
    )
    stale: bool | None = None  # whether a source of it went away or changed, as far as is known
    lowered: bool | None = None  # whether its label or confidence was lowered when it was judged again
    validity: Literal["ending"] | None = None  # its horizon is within ENDING; what has ended is a status
    statuses: frozenset[MemoryStatus] = frozenset({MemoryStatus.ACTIVE})
    after: str | None = None  # id of the last memory of the page before
    limit: int = Field(default=50, ge=1, le=MAX_PAGE)

    @field_validator("created_from", "created_to", "as_of")
    @classmethod
    def _in_utc(cls, at: datetime | None) -> datetime | None:
        """A time without a zone is in UTC, a day its beginning."""
        try:
            return at if at is None else at.replace(tzinfo=at.tzinfo or UTC).astimezone(UTC)
        except OverflowError as error:
            raise ValueError("is outside the years 1 to 9999") from error


def row_from_answer(
    answer: ValidationResult,
    *,
    decision_id: str,
    memory_id: str,
    created_at: datetime,
    approved_by: str | None = None,
) -> dict[str, Any]:
    """The memory that a decided claim becomes, as the parameters of INSERT.

    `approved_by` is the reviewer whose approval stores it: the owner then vouches for it, so its confidence
    is at least medium. What was let through while the gate observed is UNVOUCHED, until somebody approves it.
    """
    evidence = answer.evidence
    claim = evidence.claim
    confidence = evidence.confidence
    label = evidence.label
    if approved_by is not None:
        confidence = confidence_of(evidence.label, evidence.confidence_score, vouched=True)
    elif not answer.approved and answer.held is False:
        label, confidence = Label.UNVOUCHED, Confidence.LOW
    return {
        "owner_id": claim.owner_id,
        "id": memory_id,
        "memory_type": claim.memory_type.value,
        "content": claim.content,
        "source": claim.source.value,
        "status": MemoryStatus.ACTIVE.value,
        "confidence": confidence.value,
        "confidence_score": evidence.confidence_score,
        "label": label.value,
        "source_id": evidence.source_id,
        "created_at": created_at,
        "validity_horizon": evidence.validity_horizon,
        "decision_id": decision_id,
        "approved_by": approved_by,
        "superseded_by": None,
        "retracted_reason": None,
        "stale_since": None,
        "stale_reason": None,
        "lowered_at": None,
        "lowered_reason": None,
        "confirmed_at": created_at,
        "confirmed_despite": None,
        "details": evidence.metadata,
    }


def from_answer(
    answer: ValidationResult,
    *,
    decision_id: str,
    memory_id: str,
    created_at: datetime,
    approved_by: str | None = None,
) -> Memory:
    """As `row_from_answer`, as the domain type."""
    row = row_from_answer(
        answer, decision_id=decision_id, memory_id=memory_id, created_at=created_at, approved_by=approved_by
    )
    return Memory.model_validate(to_fields(row))


def insert(connection: Connection, memory: Memory) -> None:
    """Writes a new memory; its dedup keys are written apart, with `storage.dedup.index.add`."""
    connection.execute(_INSERT, to_row(memory))


def get(
    connection: Connection, memory_id: str, now: datetime, *, owners: frozenset[str] | None
) -> Memory | None:
    """The memory of this id in whatever status, or None when none of `owners` has it (None: any owner)."""
    if not valid_name(memory_id):
        return None
    statement = limited_to(owners, _BY_ID, TABLE)
    row = connection.execute(statement, {"wanted": memory_id}).mappings().one_or_none()
    return None if row is None else from_row(row, now)


def by_ids(
    connection: Connection, owner_id: str, memory_ids: Collection[str], now: datetime
) -> dict[str, Memory]:
    """Those of these memories that the owner has, in whatever status, by id."""
    asked = {"of_owner": owner_id, "wanted": memory_ids}
    rows = connection.execute(_BY_IDS, asked).mappings() if memory_ids else ()
    return {row["id"]: from_row(row, now) for row in rows}


def search(connection: Connection, wanted: MemoryFilter, now: datetime) -> list[Memory]:
    """The memories that match, newest first; the id of the last one is the `after` of the next page."""
    texts = (wanted.source_id, wanted.text, wanted.after)
    if any(text is not None and not storable(text) for text in texts):
        return []
    # Of a source the few that rest on it are sorted; else all would be looked through in the order of their index.
    of_few = wanted.source_id is not None and wanted.owners is not None
    order = TABLE.c.id + "" if of_few else TABLE.c.id
    statement = select(TABLE).where(*conditions(wanted, now)).order_by(order.desc()).limit(wanted.limit)
    return [from_row(row, now) for row in connection.execute(statement).mappings()]


def supersede(
    connection: Connection,
    owner_id: str,
    memory_id: str,
    *,
    by: str,
    at: datetime,
    but: DeliveryTarget | None = None,
) -> bool:
    """Marks a memory as replaced by memory `by`, takes it out of every index and schedule, and has the stores that
    got it told, `but` at a place that the caller tells of. False: it was not active any more, and nothing
    changed. The caller holds the owner's lock."""
    active = TABLE.c.status == MemoryStatus.ACTIVE.value
    values = {"status": MemoryStatus.SUPERSEDED.value, "superseded_by": by}
    return _leave(connection, owner_id, memory_id, active, values, at=at, but=but)


def replaced_by(connection: Connection, owner_id: str, memory_id: str, now: datetime) -> Memory | None:
    """The memory that this one replaced, if it replaced one."""
    asked = {"of_owner": owner_id, "by_memory": memory_id}
    row = connection.execute(_REPLACED_BY, asked).mappings().one_or_none()
    return None if row is None else from_row(row, now)


def restore(connection: Connection, owner_id: str, memory_id: str, *, superseded_by: str) -> bool:
    """Puts a memory back in force that memory `superseded_by` replaced; its place in the indexes and in the
    schedule is the caller's to give back. False: it was not so any more, and nothing changed. The caller holds
    the owner's lock."""
    parameters = {"of_owner": owner_id, "of_id": memory_id, "by_memory": superseded_by}
    return connection.execute(_RESTORE, parameters).rowcount == 1


def retract(
    connection: Connection,
    owner_id: str,
    memory_id: str,
    *,
    reason: str,
    at: datetime,
    but: DeliveryTarget | None = None,
) -> bool:
    """Marks a memory as withdrawn by its owner, an expired one too, else as `supersede`."""
    there = TABLE.c.status.in_([MemoryStatus.ACTIVE.value, MemoryStatus.EXPIRED.value])
    values = {"status": MemoryStatus.RETRACTED.value, "retracted_reason": reason}
    return _leave(connection, owner_id, memory_id, there, values, at=at, but=but)


def due(connection: Connection, now: datetime, limit: int) -> list[tuple[str, str]]:
    """(owner id, memory id) of memories whose row still says active although their horizon has passed, longest
    overdue first."""
    rows = connection.execute(_DUE, {"now": now, "most": limit} | modes.read_only(connection))
    return [(row.owner_id, row.id) for row in rows]


def expire(connection: Connection, owner_id: str, memory_id: str, now: datetime) -> bool:
    """Marks a memory whose horizon has passed as expired, else as `supersede`. Reads said so before: this is
    what takes it out of the indexes."""
    overdue = and_(TABLE.c.status == MemoryStatus.ACTIVE.value, TABLE.c.validity_horizon <= now)
    return _leave(connection, owner_id, memory_id, overdue, {"status": MemoryStatus.EXPIRED.value}, at=now)


def mark_stale(
    connection: Connection, owner_id: str, memory_id: str, *, since: datetime, reason: str
) -> bool:
    """Notes that a source of an active memory went away or changed; it stays in force. False: it was not
    active any more. The caller holds the owner's lock."""
    parameters = {"of_owner": owner_id, "of_id": memory_id, "since": since, "because": reason}
    return connection.execute(_MARK, parameters).rowcount == 1


def confirm(
    connection: Connection, owner_id: str, memory_id: str, *, at: datetime, despite: str | None
) -> bool:
    """Notes that an active memory was seen to hold at this time, `despite` what stood against it, and takes the mark
    of a stale one away. False: it was not active any more. The caller holds the owner's lock."""
    parameters = {"of_owner": owner_id, "of_id": memory_id, "at": at, "despite": despite}
    return connection.execute(_CONFIRM, parameters).rowcount == 1


def lower(
    connection: Connection,
    owner_id: str,
    memory_id: str,
    *,
    label: Label,
    confidence: Confidence,
    at: datetime,
    reason: str,
) -> bool:
    """Gives an active memory a lower label or confidence. False: it was not active any more. The caller holds the
    owner's lock, and has seen that neither is raised."""
    lowered = {"as_label": label.value, "as_confidence": confidence.value, "at": at, "because": reason}
    parameters = {"of_owner": owner_id, "of_id": memory_id} | lowered
    return connection.execute(_LOWER, parameters).rowcount == 1


def _leave(
    connection: Connection,
    owner_id: str,
    memory_id: str,
    if_: ColumnElement[bool],
    values: dict[str, str],
    *,
    at: datetime,
    but: DeliveryTarget | None = None,
) -> bool:
    parameters = {"of_owner": owner_id, "of_id": memory_id}
    if connection.execute(_LEAVE.where(if_).values(**values), parameters).rowcount != 1:
        return False
    index.remove(connection, owner_id, ItemKind.MEMORY, memory_id)
    similar.remove(connection, owner_id, memory_id)
    vectors.remove(connection, owner_id, memory_id)
    rechecks.remove(connection, owner_id, memory_id)
    outbox = Outbox(connection)
    outbox.note_left(owner_id, memory_id, at, but)
    outbox.write()
    return True


def conditions(wanted: MemoryFilter, now: datetime) -> list[ColumnElement[bool]]:
    """Of a memory's row, for all that is asked but words and order."""
    as_of = wanted.as_of
    found = _in_force_at(as_of) if as_of is not None else [_in_status(wanted.statuses, now)]
    if wanted.owners is not None:
        found.append(TABLE.c.owner_id.in_(wanted.owners))
    for column, value in (
        (TABLE.c.memory_type, wanted.memory_type),
        (TABLE.c.confidence, wanted.confidence),
        (TABLE.c.label, wanted.label),
        (TABLE.c.source, wanted.source),
    ):
        if value is not None:
            found.append(column == str(value))
    if wanted.source_id is not None:
        found.append(lineage.rests_on(TABLE, names.wanted(wanted.source_id), wanted.owners))
    if wanted.stale is not None:
        since = TABLE.c.stale_since
        found.append(since.is_not(None) if wanted.stale else since.is_(None))
    if wanted.lowered is not None:
        at = TABLE.c.lowered_at
        found.append(at.is_not(None) if wanted.lowered else at.is_(None))
    if wanted.validity == "ending":
        found.append(TABLE.c.validity_horizon <= now + ENDING)
    if wanted.agent is not None:
        found.append(_sent_by(wanted.agent))
    if wanted.created_from is not None:
        found.append(TABLE.c.created_at >= wanted.created_from)
    if wanted.created_to is not None:
        found.append(TABLE.c.created_at < wanted.created_to)
    if wanted.text is not None:
        found.append(TABLE.c.content.icontains(wanted.text, autoescape=True))
    if wanted.after is not None:
        found.append(TABLE.c.id < wanted.after)
    return found


def _in_status(statuses: frozenset[MemoryStatus], now: datetime) -> ColumnElement[bool]:
    """A memory past its horizon is in status EXPIRED alone, whatever its row says."""
    horizon = TABLE.c.validity_horizon
    kept = [status.value for status in statuses if status is not MemoryStatus.EXPIRED]
    in_force = and_(TABLE.c.status.in_(kept), or_(horizon.is_(None), horizon > now))
    return or_(in_force, horizon <= now) if MemoryStatus.EXPIRED in statuses else in_force


def _in_force_at(at: datetime) -> list[ColumnElement[bool]]:
    """Stored by then, within its horizon, and neither replaced nor taken back but for what was restored since. The log
    tells when that was; what was erased is gone for then as well."""
    horizon, restored = TABLE.c.validity_horizon, _LOG.alias()
    again = select(restored.c.seq).where(
        restored.c.owner_id == _LOG.c.owner_id,
        restored.c.subject_id == _LOG.c.subject_id,
        restored.c.action == Action.MEMORY_RESTORED.value,
        restored.c.seq > _LOG.c.seq,
        restored.c.at <= at,
    )
    left = select(_LOG.c.seq).where(
        _LOG.c.owner_id == TABLE.c.owner_id,
        _LOG.c.subject_id == TABLE.c.id,
        text(LEFT),  # the words of its index
        _LOG.c.action != Action.MEMORY_RESTORED.value,
        _LOG.c.at <= at,
        ~again.correlate(_LOG).exists(),
    )
    return [
        TABLE.c.created_at <= at,
        or_(horizon.is_(None), horizon > at),
        THERE,
        ~left.correlate(TABLE).exists(),
    ]


def _sent_by(agent: str) -> ColumnElement[bool]:
    """Whether this principal sent the claim that the memory was: it was decided at once, or waited."""
    made = select(_DECISION.c.id).where(
        _DECISION.c.owner_id == TABLE.c.owner_id,
        _DECISION.c.id == TABLE.c.decision_id,
        _DECISION.c.principal_id == agent,
    )
    waited = select(_PENDING.c.id).where(
        _PENDING.c.owner_id == TABLE.c.owner_id,
        _PENDING.c.memory_id == TABLE.c.id,
        _PENDING.c.submitted_by == agent,
    )
    return or_(made.correlate(TABLE).exists(), waited.correlate(TABLE).exists())


def storable(text: str) -> bool:
    """Whether a database can be asked for this text; one that cannot be stored matches nothing."""
    return "\x00" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def from_row(row: Mapping[Any, Any], now: datetime) -> Memory:
    """The memory of a row as it is at `now`."""
    values = to_fields(row)
    del values["bands"]
    horizon = values["validity_horizon"]
    if horizon is not None and horizon <= now:
        values["status"] = MemoryStatus.EXPIRED
    return Memory.model_validate(values)
