"""What stores behind the gate are told, handed out: leases, failures, dead letters, reads. `storage.outgoing.outbox`
writes it.

A stream is what one sink of one owner gets, in the order of its numbers. The first waiting row of a stream, its head,
speaks for all of it: while the head is leased, or waits for its next try, `due_at` of it is in the future and
nothing behind it moves. A head that is leased has the lease of whoever works at the stream. Everything here that
writes runs under the owner's lock, so two who ask at once never both get it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import takewhile
from typing import Any

from pydantic import JsonValue
from sqlalchemy import Connection, Select, String, Table, and_, bindparam, func, or_, select, tuple_, update

from vouchgate.ingest.claims.delivery import DeliveryOp
from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.claims.leased import Delivery
from vouchgate.ingest.claims.memory import Memory, MemoryStatus
from vouchgate.storage.claims import memories
from vouchgate.storage.erasing import scrub, tombstones
from vouchgate.storage.identity.names import valid_name
from vouchgate.storage.outgoing.streams import MOST, first_seq, is_waiting
from vouchgate.storage.sql import among, limited_to
from vouchgate.storage.tables.doors import DeliveryRow

LEASE = timedelta(seconds=60)  # from the taking, and again from every report of who took it
# Seconds between the tries of one delivery: some eight hours in all, then it is a dead letter. Short at first, as a
# store that restarts is back soon; then long, as one that is broken has to be mended by somebody.
WAITS = (1, 5, 30, 120, 600, 3_600, 21_600)
MOST_ERROR = 500  # characters of what went wrong
# How often one transaction looks for what is needed among what went out of force: 0.1 s at most, however much that is.
LOOKS = 5

TABLE: Table = DeliveryRow.metadata.tables["delivery"]
_ONE = and_(TABLE.c.owner_id == bindparam("of_owner"), TABLE.c.seq == bindparam("of_seq"))
_WAITS = and_(
    TABLE.c.owner_id == bindparam("of_owner"), TABLE.c.sink == bindparam("of_sink"), is_waiting(TABLE)
)
_BY_ID = select(TABLE).where(TABLE.c.id == bindparam("wanted"))
_FIRST = select(TABLE).where(_WAITS).order_by(TABLE.c.seq)
_HEAD_SEQ = first_seq(bindparam("of_owner"), bindparam("of_sink"))
_HEAD = select(TABLE.c.seq, TABLE.c.due_at, TABLE.c.lease).where(
    TABLE.c.owner_id == bindparam("of_owner"), TABLE.c.seq == _HEAD_SEQ
)
_OVERDUE = select(func.min(TABLE.c.due_at)).where(is_waiting(TABLE))
_IN_BACKOFF = select(TABLE.c.attempts, TABLE.c.due_at).where(
    is_waiting(TABLE), TABLE.c.due_at > bindparam("now"), TABLE.c.attempts > 0
)
_SET = update(TABLE).where(TABLE.c.owner_id == bindparam("of_owner"))
_LEASE = _SET.where(among(TABLE.c.seq, "seqs")).values(due_at=bindparam("until"), lease=bindparam("name"))
_OF_MEMORY = bindparam("of_memory", type_=String())
_LEASE_HEAD = (
    _SET.where(TABLE.c.seq == _HEAD_SEQ, TABLE.c.memory_id == _OF_MEMORY)
    .where(
        or_(
            TABLE.c.due_at <= bindparam("now"),
            func.substr(TABLE.c.lease, 1, func.length(_OF_MEMORY)) == _OF_MEMORY,
        )
    )
    .values(due_at=bindparam("until"), lease=bindparam("name"))
    .returning(TABLE)
)
_TRY_NOW = _SET.where(
    TABLE.c.seq == _HEAD_SEQ, TABLE.c.lease.is_(None), TABLE.c.due_at > bindparam("now")
).values(due_at=bindparam("now"), attempts=0)
_SKIP = _SET.where(among(TABLE.c.seq, "seqs")).values(
    state="skipped", lease=None, last_error=bindparam("why")
)
_HELD = update(TABLE).where(_ONE, is_waiting(TABLE), TABLE.c.lease == bindparam("of_lease"))
_DONE = _HELD.values(state="delivered", delivered_at=bindparam("at"), lease=None, last_error=None)
_FAIL = _HELD.values(
    state=bindparam("becomes"),
    attempts=bindparam("tried"),
    due_at=bindparam("next_due"),
    lease=None,
    last_error=bindparam("error"),
)
_EMPTY = update(TABLE).where(_ONE).values(place="", data={})
# Whoever reports is at work: what is left of the lease lasts from now on.
_RENEW = _SET.where(TABLE.c.seq == _HEAD_SEQ, TABLE.c.lease == bindparam("of_lease")).values(
    due_at=bindparam("until")
)
_RELEASE = _SET.where(among(TABLE.c.seq, "seqs"), TABLE.c.lease == bindparam("of_lease")).values(
    due_at=bindparam("at"), lease=None
)
_LATER = (
    select(TABLE.c.seq)
    .where(
        TABLE.c.owner_id == bindparam("of_owner"),
        TABLE.c.sink == bindparam("of_sink"),
        TABLE.c.place == bindparam("of_place"),
        TABLE.c.seq > bindparam("of_seq"),
        TABLE.c.state.in_(["waiting", "delivered"]),
    )
    .limit(1)
)
_RETRY = (
    update(TABLE)
    .where(_ONE, TABLE.c.state == "dead")
    .values(state="waiting", attempts=0, due_at=bindparam("next_due"), lease=bindparam("of_lease"))
)
_END = update(TABLE).where(TABLE.c.owner_id == bindparam("of_owner"), TABLE.c.sink == bindparam("of_sink"))
_ABANDON = _END.where(TABLE.c.state.in_(["waiting", "dead"])).values(
    state="skipped", lease=None, last_error=bindparam("why")
)


class DeliveryState(StrEnum):
    """Where a delivery stands."""

    WAITING = "waiting"  # to be tried, for the first time or again; or somebody is at it
    DELIVERED = "delivered"  # the sink has it
    DEAD = "dead"  # given up after the last try, or at once because the sink said so; it can be put back
    SKIPPED = "skipped"  # not needed any more: its memory went out of force first, or its sink is gone


class DeliveryRecord(Frozen):
    """A delivery as it may be shown. `attempts` is how often it failed since it was written or put back, `due_at` when
    it can be tried next (None: it does not wait), `last_error` what the last failure was, or why it was skipped."""

    id: str
    owner_id: str
    seq: int  # of the owner's deliveries to all sinks: 1, 2, … in the order in which they were written
    sink: str
    place: str
    op: DeliveryOp
    memory_id: str | None
    data: dict[str, JsonValue]
    created_at: datetime
    state: DeliveryState
    attempts: int
    due_at: datetime | None
    delivered_at: datetime | None
    last_error: str | None


@dataclass(frozen=True, slots=True)
class LeasedDelivery:
    """A delivery that was leased: nobody else gets it until the lease ends. `memory` is what it tells of, as it is
    now; None when that was never the gate's."""

    record: DeliveryRecord
    lease: str
    memory: Memory | None

    def told(self) -> Delivery:
        """As it is told to who leased it."""
        memory = self.memory
        return Delivery(
            **{name: value for name, value in self.record if name in Delivery.model_fields},
            lease=self.lease,
            content="" if memory is None else memory.content,
            memory_type=None if memory is None else memory.memory_type,
        )


class DeliveryFilter(Frozen):
    """Which deliveries to list. What is None does not restrict; `owners` None means every owner and is only for a
    principal that may act for any."""

    owners: frozenset[str] | None
    sink: str | None = None
    state: DeliveryState | None = None
    memory_id: str | None = None
    after: tuple[str, int] | None = None  # owner and number of the last one of the page before
    limit: int = 50


def lease(
    connection: Connection, owner_id: str, sink: str, now: datetime, *, most: int, name: str
) -> list[LeasedDelivery]:
    """Takes up to `most` deliveries of a stream, the oldest first, for the time of LEASE; none when somebody else has
    the stream or nothing of it is due, fewer when no more are. `name` must be new each time. What need not be told any
    more is skipped; none as well when that was all in LOOKS looks, and then more may be due."""
    stream = {"of_owner": owner_id, "of_sink": sink}
    taken: list[LeasedDelivery] = []
    for window in (most, *[MOST] * (LOOKS - 1)):  # what follows one that went out of force often did so too
        due = _due_rows(connection, stream, now, window)
        known = memories.by_ids(connection, owner_id, {row.memory_id for row in due} - {None}, now)
        needed = [row for row in due if row.op != DeliveryOp.PUT.value or _in_force(known.get(row.memory_id))]
        if len(needed) == len(due):
            taken = [LeasedDelivery(_record(row), name, known.get(row.memory_id)) for row in due[:most]]
            break
        gone = {row.seq for row in due} - {row.seq for row in needed}
        why = "Its memory was out of force before it was delivered."
        connection.execute(_SKIP, _rows(owner_id, gone) | {"why": why})
    if taken:
        seqs = {handed.record.seq for handed in taken}
        connection.execute(_LEASE, _rows(owner_id, seqs) | {"until": now + LEASE, "name": name})
    return taken


def lease_with_answer(
    connection: Connection, owner_id: str, sink: str, now: datetime, *, memory_id: str, name: str
) -> LeasedDelivery | None:
    """As `lease`, of the delivery of this memory alone, if it is the head of its stream: to go with the answer to its
    claim. What an earlier answer to the same claim told of, which was lost then, is taken anew. `name` must be new."""
    memory = memories.by_ids(connection, owner_id, {memory_id}, now).get(memory_id)
    if not _in_force(memory):
        return None
    asked = {"of_owner": owner_id, "of_sink": sink, "of_memory": memory_id, "now": now}
    name = f"{memory_id}.{name}"
    row = connection.execute(_LEASE_HEAD, asked | {"until": now + LEASE, "name": name}).one_or_none()
    return None if row is None else LeasedDelivery(_record(row), name, memory)


def _rows(owner_id: str, seqs: Collection[int]) -> dict[str, Any]:
    """Rows of an owner by their numbers, as parameters."""
    return {"of_owner": owner_id, "seqs": sorted(seqs)}


def _due_rows(connection: Connection, stream: dict[str, str], now: datetime, most: int) -> list[Any]:
    """The first waiting rows of a stream, up to the first that is not due."""
    rows = connection.execute(_FIRST.limit(most), stream).all()
    return list(takewhile(lambda row: row.due_at <= now, rows))


def _in_force(memory: Memory | None) -> bool:
    return memory is not None and memory.status is MemoryStatus.ACTIVE


def mark_done(connection: Connection, record: DeliveryRecord, name: str, now: datetime) -> bool:
    """Notes that the sink has it, and gives what is left of the lease another time of LEASE. True as well when that
    was noted before; False when the lease is somebody else's by now: then nothing is noted. One that has ended and was
    not given to anybody else still counts."""
    held = {"of_owner": record.owner_id, "of_seq": record.seq, "of_lease": name}
    if connection.execute(_DONE, held | {"at": now}).rowcount == 1:
        _renew(connection, record, name, now)
        _forget_erased(connection, record, now)
        return True
    now_it_is = connection.execute(_BY_ID, {"wanted": record.id}).one_or_none()
    return now_it_is is not None and now_it_is.state == DeliveryState.DELIVERED.value


def _forget_erased(connection: Connection, record: DeliveryRecord, now: datetime) -> None:
    """What a sink needed to let go of an erased memory goes as well once it did, or the removal was given up; a webhook
    got nothing but the id."""
    memory_id = record.memory_id
    if memory_id is None or record.op is DeliveryOp.PUT or record.place == memory_id:
        return
    if tombstones.known(connection, record.owner_id, [memory_id]):
        with scrub.overwriting(connection):
            connection.execute(_EMPTY, {"of_owner": record.owner_id, "of_seq": record.seq})
        scrub.note_due(connection, now)


def mark_failed(
    connection: Connection,
    record: DeliveryRecord,
    name: str,
    now: datetime,
    *,
    error: str,
    attempts: int,
    due_at: datetime | None,
) -> bool:
    """Notes that a try came to nothing. It is due again at `due_at`, and whatever was leased with it waits behind it;
    None makes it a dead letter, and what comes after it goes on. False as in `mark_done`."""
    values = {
        "of_owner": record.owner_id,
        "of_seq": record.seq,
        "of_lease": name,
        "becomes": (DeliveryState.DEAD if due_at is None else DeliveryState.WAITING).value,
        "tried": attempts,
        "next_due": now if due_at is None else due_at,
        "error": storable_error(error),
    }
    if connection.execute(_FAIL, values).rowcount != 1:
        return False
    if due_at is None:
        _renew(connection, record, name, now)
    else:
        release(connection, record, name, now)
    return True


def is_needed(connection: Connection, handed: LeasedDelivery, now: datetime) -> bool:
    """Whether a delivery that was leased is still to be told, and by whoever leased it."""
    record = handed.record
    row = connection.execute(_BY_ID, {"wanted": record.id}).one_or_none()
    if row is None or row.state != DeliveryState.WAITING.value or row.lease != handed.lease:
        return False
    known = memories.by_ids(connection, record.owner_id, {row.memory_id} - {None}, now)
    return record.op is not DeliveryOp.PUT or _in_force(known.get(row.memory_id))


def release(connection: Connection, record: DeliveryRecord, name: str, now: datetime) -> None:
    """Ends a lease: what is left of it in the stream of this delivery can be taken now. The caller holds the owner's
    lock."""
    stream = {"of_owner": record.owner_id, "of_sink": record.sink}
    # Leased rows are among the first; further back none has to be looked at.
    rows = connection.execute(_FIRST.with_only_columns(TABLE.c.seq).limit(2 * MOST), stream).all()
    of_lease = _rows(record.owner_id, [row.seq for row in rows]) | {"of_lease": name, "at": now}
    connection.execute(_RELEASE, of_lease)


def _renew(connection: Connection, record: DeliveryRecord, name: str, now: datetime) -> None:
    stream = {"of_owner": record.owner_id, "of_sink": record.sink}
    connection.execute(_RENEW, stream | {"of_lease": name, "until": now + LEASE})


def next_try(attempts: int, now: datetime) -> datetime | None:
    """When a delivery is tried again that failed at `now`, after so many failures before; None: never. Pure."""
    return now + timedelta(seconds=WAITS[attempts]) if attempts < len(WAITS) else None


def storable_error(text: str) -> str:
    """What a consumer said of an error, as far as it can be kept and shown."""
    return "".join(sign if sign.isprintable() else " " for sign in text[: 2 * MOST_ERROR]).strip()[
        :MOST_ERROR
    ]


def is_outdated(connection: Connection, record: DeliveryRecord) -> bool:
    """Whether something was delivered to the same place later, or waits to be: to deliver this one now would undo
    that."""
    asked = {
        "of_owner": record.owner_id,
        "of_sink": record.sink,
        "of_place": record.place,
        "of_seq": record.seq,
    }
    return connection.execute(_LATER, asked).first() is not None


def put_back(connection: Connection, record: DeliveryRecord, now: datetime) -> bool:
    """Has a dead letter tried again, as often as a new one, before what waits in its stream. While somebody works at
    the stream it waits with it for that lease to end. False: it is not dead any more."""
    head = connection.execute(_HEAD, {"of_owner": record.owner_id, "of_sink": record.sink}).one_or_none()
    due_at, name = now, None
    if head is not None and head.lease is not None and head.due_at > now and record.seq < head.seq:
        due_at, name = head.due_at, head.lease
    values = {"of_owner": record.owner_id, "of_seq": record.seq, "next_due": due_at, "of_lease": name}
    return connection.execute(_RETRY, values).rowcount == 1


def try_now(connection: Connection, owner_id: str, sink: str, now: datetime) -> bool:
    """Has a stream that waits for the next try of its head go on at once, with the tries of a new one. False when it
    does not wait."""
    asked = {"of_owner": owner_id, "of_sink": sink, "now": now}
    return connection.execute(_TRY_NOW, asked).rowcount == 1


def drop(connection: Connection, record: DeliveryRecord, why: str, now: datetime) -> None:
    """Gives a dead letter up for good: it is skipped."""
    connection.execute(_SKIP, _rows(record.owner_id, [record.seq]) | {"why": why})
    _forget_erased(connection, record, now)


def abandon(connection: Connection, owner_id: str, sink: str, why: str) -> None:
    """Skips all that was not delivered to a sink which is gone."""
    connection.execute(_ABANDON, {"of_owner": owner_id, "of_sink": sink, "why": why})


def get(connection: Connection, delivery_id: str, *, owners: frozenset[str] | None) -> DeliveryRecord | None:
    """The delivery of this id, or None when none of `owners` has it (None: any owner)."""
    if not valid_name(delivery_id):
        return None
    row = connection.execute(limited_to(owners, _BY_ID, TABLE), {"wanted": delivery_id}).one_or_none()
    return None if row is None else _record(row)


def search(connection: Connection, wanted: DeliveryFilter) -> list[DeliveryRecord]:
    """The deliveries that match, the newest of an owner first."""
    statement: Select[Any] = select(TABLE)
    if wanted.owners is not None:
        statement = statement.where(TABLE.c.owner_id.in_(wanted.owners))
    for column, value in (
        (TABLE.c.sink, wanted.sink),
        (TABLE.c.state, wanted.state and wanted.state.value),
        (TABLE.c.memory_id, wanted.memory_id),
    ):
        if value is not None:
            statement = statement.where(column == value)
    if wanted.after is not None:
        statement = statement.where(tuple_(TABLE.c.owner_id, TABLE.c.seq) < tuple_(*wanted.after))
    statement = statement.order_by(TABLE.c.owner_id.desc(), TABLE.c.seq.desc()).limit(wanted.limit)
    return [_record(row) for row in connection.execute(statement)]


def of_memories(connection: Connection, found: Sequence[Memory]) -> dict[str, tuple[DeliveryRecord, ...]]:
    """What sinks were told, or are to be, of each of these memories, oldest first; by the memory's id."""
    owners, ids = {memory.owner_id for memory in found}, {memory.id for memory in found}
    of: dict[str, list[DeliveryRecord]] = {memory_id: [] for memory_id in ids}
    statement = (
        select(TABLE)
        .where(among(TABLE.c.owner_id, "owner_ids"), among(TABLE.c.memory_id, "memory_ids"))
        .order_by(TABLE.c.owner_id, TABLE.c.seq)
    )
    for row in connection.execute(statement, {"owner_ids": owners, "memory_ids": ids}) if ids else ():
        of[row.memory_id].append(_record(row))
    return {memory_id: tuple(records) for memory_id, records in of.items()}


def stuck_since(connection: Connection, now: datetime) -> datetime | None:
    """Since when the delivery has been due that waits for longest: nobody takes it, or every try fails, or it is behind
    one of which that is so. None when nothing is due."""
    times: list[datetime] = [
        row.due_at - timedelta(seconds=sum(WAITS[: row.attempts]))  # about when it failed first
        for row in connection.execute(_IN_BACKOFF, {"now": now})
    ]
    overdue: datetime | None = connection.scalar(_OVERDUE)
    if overdue is not None and overdue <= now:
        times.append(overdue)
    return min(times, default=None)


def _record(row: Any) -> DeliveryRecord:
    fields = {name: getattr(row, name) for name in DeliveryRecord.model_fields}
    if row.state != DeliveryState.WAITING.value:
        fields["due_at"] = None
    return DeliveryRecord.model_validate(fields)
