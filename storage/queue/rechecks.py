"""What is to be checked again, and when: waiting items whose citation could not be checked, and memories whose
sources are read again on a schedule.

The work lives in the database. A process takes some by leasing it: until the lease ends nobody else gets it, and
what a process that died held comes to others then. Every lease has a name of its own, so that a result is
applied only by who still holds it: each piece of work is done once, however many processes there are.
"""

from __future__ import annotations

import logging
import random
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import Connection, Table, and_, bindparam, delete, insert, select, update

from vouchgate.ingest.claims.claim import MemoryType
from vouchgate.ingest.claims.decision import ValidationResult
from vouchgate.ingest.claims.likeness import ItemKind
from vouchgate.ingest.claims.source import Found, SourceReading, Unreachable
from vouchgate.ingest.claims.waiting import ReviewStatus
from vouchgate.ingest.policy import Policy, Recheck
from vouchgate.ingest.rules import Rule
from vouchgate.ingest.scoring.score import is_listed
from vouchgate.storage import modes
from vouchgate.storage.sql import BulkInsert, among
from vouchgate.storage.tables.claims import MetaRow, PendingRow, RecheckRow

log = logging.getLogger(__name__)

TABLE: Table = RecheckRow.metadata.tables["recheck"]
ROWS = BulkInsert(TABLE)

MOST_RETRY_AFTER = timedelta(days=1)  # a source may ask for more time than this; it does not get it
# Memories stored in one import come due spread over a tenth of the time between two checks.
_SPREAD = 0.1
_MOST_GROWTH = 64  # times that a wait grows; by then it is over any bound, or does not grow

_CHANCE = random.SystemRandom()  # what nobody can foretell

_READINGS: TypeAdapter[tuple[Found, ...]] = TypeAdapter(tuple[Found, ...])

_OF_ITEM = and_(TABLE.c.owner_id == bindparam("of_owner"), TABLE.c.item_id == bindparam("of_item"))
_HELD = and_(_OF_ITEM, TABLE.c.lease == bindparam("of_lease"))
_OF_KIND = TABLE.c.kind == bindparam("of_kind")
# What another process is taking at this moment is left to it, so that nobody waits for anybody here.
_DUE = (
    select(TABLE)
    .where(_OF_KIND, TABLE.c.due_at <= bindparam("now"), modes.writable(TABLE.c.owner_id))
    .order_by(TABLE.c.due_at)
    .limit(bindparam("most"))
    .with_for_update(skip_locked=True)
)
_LEASE = update(TABLE).where(_OF_ITEM).values(due_at=bindparam("until"), lease=bindparam("name"))
_LOCK = select(TABLE.c.item_id).where(_HELD).with_for_update()
_POSTPONE = (
    update(TABLE)
    .where(_HELD)
    .values(
        due_at=bindparam("next_due"),
        attempts=bindparam("tried"),
        lease=None,
        readings=bindparam("learned"),
    )
)
_BRING_NOW = (
    update(TABLE)
    .where(
        TABLE.c.owner_id == bindparam("of_owner"), among(TABLE.c.item_id, "items"), TABLE.c.lease.is_(None)
    )
    .values(due_at=bindparam("now"))
)
_REMOVE = delete(TABLE).where(_OF_ITEM)
_NEXT = (
    select(TABLE.c.due_at).where(_OF_KIND, modes.writable(TABLE.c.owner_id)).order_by(TABLE.c.due_at).limit(1)
)
_WHEN = select(TABLE.c.due_at).where(_OF_ITEM)

_META: Table = MetaRow.metadata.tables["meta"]
_PENDING: Table = PendingRow.metadata.tables["pending"]
_LOOKED_UP = "looked_up_in"  # the row of `meta` for `bring_forward`
_PLACES = select(_META.c.value).where(_META.c.name == _LOOKED_UP).with_for_update()

_MOST_BROUGHT = 1000  # pieces in one round of ten minutes: about as many as a million memories are in a week
_TOO_LATE = (
    select(TABLE.c.owner_id, TABLE.c.item_id)
    .where(_OF_KIND, TABLE.c.due_at > bindparam("latest"), TABLE.c.lease.is_(None))
    .limit(bindparam("most"))
)
_BRING_BACK = update(TABLE).where(_OF_ITEM, TABLE.c.lease.is_(None)).values(due_at=bindparam("now"))

# A claim that waits for its promotion comes before a memory that is in force anyway.
_IN_TURN = (ItemKind.PENDING, ItemKind.MEMORY)


@dataclass(frozen=True, slots=True)
class LeasedRecheck:
    """A leased piece of work. `attempts` is how often it was tried before without an answer; `learned` is what
    later checks of a memory found of sources that its decision could not read."""

    owner_id: str
    item_id: str
    kind: ItemKind
    attempts: int
    lease: str
    learned: tuple[Found, ...] = ()


def next_wait(policy: Recheck, attempts: int, most: timedelta) -> timedelta:
    """How long to wait after so many attempts that found nothing out; never longer than `most`."""
    seconds = policy.first_seconds * policy.growth ** min(attempts, _MOST_GROWTH)
    return timedelta(seconds=min(seconds, most.total_seconds()))


def not_before(at: datetime, readings: Sequence[SourceReading]) -> datetime:
    """The latest time that the sources themselves asked to wait for, as far as it counts at `at`; else `at`."""
    asked = [r.retry_after for r in readings if isinstance(r, Unreachable) and r.retry_after is not None]
    return max([at, *(min(time, at + MOST_RETRY_AFTER) for time in asked)])


def memory_interval(policy: Recheck, memory_id: str) -> timedelta:
    """The time between two checks of a memory; a little longer for some than for others, always the same for
    one."""
    share = zlib.crc32(memory_id.encode()) / 2**32
    return timedelta(days=policy.memory_days * (1 + _SPREAD * share))


def pending_row(
    policy: Policy, owner_id: str, item_id: str, readings: Sequence[SourceReading], at: datetime
) -> dict[str, Any] | None:
    """The row of an item that waits because a citation could not be checked; None when the policy has nothing
    checked again."""
    if policy.recheck.attempts == 0:
        return None
    due = max(at + timedelta(seconds=policy.recheck.first_seconds), not_before(at, readings))
    return _row(owner_id, item_id, ItemKind.PENDING, due)


def uncited_row(policy: Policy, owner_id: str, item_id: str, at: datetime) -> dict[str, Any] | None:
    """The row of an item that cites nothing, which is looked up again as often as memories are read again: documents
    may state it by then. None when the policy has nothing checked again."""
    if policy.recheck.attempts == 0:
        return None
    return _row(owner_id, item_id, ItemKind.PENDING, at + memory_interval(policy.recheck, item_id))


def waiting_row(
    policy: Policy, answer: ValidationResult, item_id: str, at: datetime
) -> dict[str, Any] | None:
    """The row of an item that waits under this decision; None when asking again brings no answer. One that could not be
    checked has nothing else against it, so that is tried again; and what was looked up in vain may be found later."""
    owner_id = answer.evidence.claim.owner_id
    if answer.rule == Rule.CITATION_UNKNOWN:
        return pending_row(policy, owner_id, item_id, answer.evidence.sources, at)
    if answer.rule == Rule.UNGROUNDED and answer.looked:
        return uncited_row(policy, owner_id, item_id, at)
    return None


def memory_row(
    policy: Policy,
    owner_id: str,
    memory_id: str,
    readings: Sequence[SourceReading],
    at: datetime,
    *,
    memory_type: MemoryType,
) -> dict[str, Any] | None:
    """The row of a memory that was just stored on these readings; None for one without a source that is there
    or may be, unless the policy wants memories of its type confirmed. Where one could not be read, that is tried again
    as soon as for an item that waits. Where one is a page that nobody listed, the first check is a second look: whoever
    writes that page must not know when."""
    interval = memory_interval(policy.recheck, memory_id)
    if any(isinstance(reading, Unreachable) for reading in readings):
        wait = min(timedelta(seconds=policy.recheck.first_seconds), interval)
        return _row(owner_id, memory_id, ItemKind.MEMORY, max(at + wait, not_before(at, readings)))
    found = [reading for reading in readings if isinstance(reading, Found)]
    if not found:
        confirmed_within = policy.freshness.claims.get(memory_type)
        if confirmed_within is None:
            return None
        return _row(owner_id, memory_id, ItemKind.MEMORY, at + timedelta(days=confirmed_within))
    days = policy.recheck.second_look_days
    if days and not all(is_listed(source, policy) for source in found):
        interval = min(interval, timedelta(days=days * _CHANCE.random()))
    return _row(owner_id, memory_id, ItemKind.MEMORY, at + interval)


def _row(owner_id: str, item_id: str, kind: ItemKind, due: datetime) -> dict[str, Any]:
    return {
        "owner_id": owner_id,
        "item_id": item_id,
        "kind": kind.value,
        "due_at": due,
        "attempts": 0,
        "lease": None,
        "readings": None,
    }


def add(connection: Connection, row: dict[str, Any] | None) -> None:
    """Puts a row in that `waiting_row` or `memory_row` made, if they made one."""
    ROWS.write(connection, [] if row is None else [row])


def next_due(connection: Connection) -> datetime | None:
    """When the next work comes due, or some lease ends; None when there is none at all."""
    of = modes.read_only(connection)
    times = [connection.scalar(_NEXT, of | {"of_kind": kind.value}) for kind in _IN_TURN]
    return min((time for time in times if time is not None), default=None)


def next_recheck_at(connection: Connection, owner_id: str, item_id: str) -> datetime | None:
    """When one item or memory is checked again; None when it is not."""
    found: datetime | None = connection.scalar(_WHEN, {"of_owner": owner_id, "of_item": item_id})
    return found


def lease(
    connection: Connection, now: datetime, limit: int, lease_seconds: float, name: str
) -> list[LeasedRecheck]:
    """Takes up to `limit` pieces of work that are due, those of items first, for so long. `name` must be new
    each time. In a write transaction of its own: it holds no owner's lock."""
    of = modes.read_only(connection)
    taken: list[LeasedRecheck] = []
    for kind in _IN_TURN:
        if len(taken) < limit:
            asked = of | {"of_kind": kind.value, "now": now, "most": limit - len(taken)}
            taken += [_due(row, name) for row in connection.execute(_DUE, asked)]
    if taken:
        until = now + timedelta(seconds=lease_seconds)
        connection.execute(
            _LEASE,
            [
                {"of_owner": due.owner_id, "of_item": due.item_id, "until": until, "name": name}
                for due in taken
            ],
        )
    return taken


def bring_forward(connection: Connection, places: str, now: datetime, due: datetime) -> int:
    """Has the items that cite nothing looked up again at `due`, when `places`, a digest of where they are looked up, is
    not the one that was kept; how many items. In a write transaction of its own, as `lease`. What was never kept before
    is only kept."""
    known = connection.execute(_PLACES).scalar_one_or_none()
    if known is None:
        connection.execute(insert(_META).values(name=_LOOKED_UP, value=places))
    if known in (None, places):
        return 0
    connection.execute(update(_META).where(_META.c.name == _LOOKED_UP).values(value=places))
    waiting = select(_PENDING.c.id).where(
        _PENDING.c.owner_id == TABLE.c.owner_id,
        _PENDING.c.id == TABLE.c.item_id,
        _PENDING.c.status == ReviewStatus.PENDING.value,
        _PENDING.c.rule == Rule.UNGROUNDED,
        _PENDING.c.cited.is_(None),
        _PENDING.c.expires_at > now,
    )
    brought = connection.execute(
        update(TABLE)
        .where(TABLE.c.kind == ItemKind.PENDING.value, TABLE.c.lease.is_(None), TABLE.c.due_at > due)
        .where(waiting.exists())
        .values(due_at=due)
    )
    return brought.rowcount


def too_late(connection: Connection, policy: Policy, now: datetime) -> list[dict[str, Any]]:
    """Some of what comes due later than this policy has anything wait, those of items first: a clock was ahead when
    that was said, or it was said under another policy."""
    recheck, days = policy.recheck, policy.freshness.claims.values()
    longest = max(recheck.memory_days * (1 + _SPREAD), policy.queue.expire_days, *days)
    latest = now + MOST_RETRY_AFTER + timedelta(days=longest)
    found: list[dict[str, Any]] = []
    for kind in _IN_TURN:
        asked = {"of_kind": kind.value, "latest": latest, "most": _MOST_BROUGHT - len(found)}
        rows = connection.execute(_TOO_LATE, asked)
        found += [{"of_owner": row.owner_id, "of_item": row.item_id} for row in rows]
    return found


def bring_back(connection: Connection, found: Sequence[dict[str, Any]], now: datetime) -> int:
    """Has what `too_late` found come due now; how many. In a write transaction of its own, as `lease`."""
    if found:  # in one order in every process: two that wait for each other's rows would never get them
        rows = sorted(found, key=lambda each: (each["of_owner"], each["of_item"]))
        connection.execute(_BRING_BACK, [each | {"now": now} for each in rows])
    return len(found)


def bring_now(connection: Connection, *, owner_id: str, item_ids: Sequence[str], now: datetime) -> int:
    """Has those of these items that are looked at again looked at now, but for what somebody looks at already; how
    many. The caller holds the owner's lock."""
    asked = {"of_owner": owner_id, "items": item_ids, "now": now}
    return connection.execute(_BRING_NOW, asked).rowcount


def hold_lease(connection: Connection, due: LeasedRecheck) -> bool:
    """Whether the lease still is who asks's, and is kept so until this transaction ends. One that has ended
    and was not given to anybody else still counts. The caller holds the owner's lock."""
    return connection.execute(_LOCK, _named(due)).first() is not None


def postpone(
    connection: Connection, due: LeasedRecheck, at: datetime, *, attempts: int, learned: Sequence[Found] = ()
) -> None:
    """Ends a lease that `hold_lease` confirmed; the work comes due again at `at`."""
    text = _READINGS.dump_json(tuple(learned)).decode() if learned else None
    connection.execute(_POSTPONE, _named(due) | {"next_due": at, "tried": attempts, "learned": text})


def remove(connection: Connection, owner_id: str, item_id: str) -> None:
    """Takes an item or memory out of the schedule; one that is not in is no error. The caller holds the
    owner's lock."""
    connection.execute(_REMOVE, {"of_owner": owner_id, "of_item": item_id})


def _named(due: LeasedRecheck) -> dict[str, Any]:
    return {"of_owner": due.owner_id, "of_item": due.item_id, "of_lease": due.lease}


def _due(row: Any, name: str) -> LeasedRecheck:
    return LeasedRecheck(
        owner_id=row.owner_id,
        item_id=row.item_id,
        kind=ItemKind(row.kind),
        attempts=row.attempts,
        lease=name,
        learned=() if row.readings is None else _learned(row.item_id, row.readings),
    )


def _learned(item_id: str, readings: str) -> tuple[Found, ...]:
    try:
        return _READINGS.validate_json(readings)
    except ValueError:  # then it is learned again
        log.exception("what was found of the sources of %s cannot be understood", item_id)
        return ()
