"""What stores behind the gate are to be told: rows written in the transaction of what they tell of.

A memory is told to the sink that its claim names and to every webhook of its owner that is told of memories
(`storage.outgoing.webhooks`); when it goes out of force, the same are told that. `storage.outgoing.deliveries` hands
the rows out. Everything here runs under the owner's lock, which makes the numbers of an owner's rows gapless and
race-free.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Table, and_, bindparam, func, literal, or_, select

from vouchgate.ingest.claims.claim import Claim
from vouchgate.ingest.claims.delivery import OWN_SINK, DeliveryOp, DeliveryTarget
from vouchgate.ingest.claims.likeness import AtPlace, ItemKind, Neighbour
from vouchgate.ingest.claims.memory import MemoryStatus
from vouchgate.ingest.claims.waiting import ReviewStatus
from vouchgate.storage import ids
from vouchgate.storage.identity.owners import TABLE as OWNER
from vouchgate.storage.outgoing.sink_consumers import Consumers
from vouchgate.storage.sql import BulkInsert, PreparedSelect, among, fetch, time_of
from vouchgate.storage.tables.claims import MemoryRow, PendingRow
from vouchgate.storage.tables.doors import DeliveryRow, WebhookRow

TABLE: Table = DeliveryRow.metadata.tables["delivery"]
_WEBHOOK: Table = WebhookRow.metadata.tables["webhook"]
_MEMORY: Table = MemoryRow.metadata.tables["memory"]
_PENDING: Table = PendingRow.metadata.tables["pending"]
_ROWS = BulkInsert(TABLE)
_LAST_SEQ = select(
    OWNER.c.owner_id,
    select(func.max(TABLE.c.seq)).where(TABLE.c.owner_id == OWNER.c.owner_id).scalar_subquery().label("seq"),
).where(among(OWNER.c.owner_id, "owner_ids"))
_WEBHOOKS = PreparedSelect(
    select(_WEBHOOK.c.owner_id, _WEBHOOK.c.id).where(
        among(_WEBHOOK.c.owner_id, "owner_ids"), _WEBHOOK.c.id.startswith(ids.sink_id(""), autoescape=True)
    )
)
_REMOVALS = select(_PENDING.c.owner_id, _PENDING.c.removal_of, _PENDING.c.id, _PENDING.c.content).where(
    _PENDING.c.status == ReviewStatus.PENDING.value,
    among(_PENDING.c.owner_id, "owner_ids"),
    among(_PENDING.c.removal_of, "names"),
)
# A webhook that was removed is told nothing more; any other sink stands for as long as somebody asks for what it gets.
_STANDS = or_(
    ~TABLE.c.sink.startswith(ids.sink_id(""), autoescape=True),
    select(_WEBHOOK.c.id)
    .where(_WEBHOOK.c.owner_id == TABLE.c.owner_id, _WEBHOOK.c.id == TABLE.c.sink)
    .exists(),
)
# Where a memory was put.
_PUT_AT = (
    select(TABLE.c.sink, TABLE.c.place, TABLE.c.data)
    .where(
        TABLE.c.owner_id == bindparam("of_owner"),
        TABLE.c.memory_id == bindparam("of_memory"),
        TABLE.c.op == DeliveryOp.PUT.value,
        _STANDS,
    )
    .order_by(TABLE.c.seq)
)
_LATER = TABLE.alias("later")
# Where it still is: what was put there later is another's.
_HELD = _PUT_AT.where(
    ~select(_LATER.c.seq)
    .where(
        _LATER.c.owner_id == TABLE.c.owner_id,
        _LATER.c.sink == TABLE.c.sink,
        _LATER.c.place == TABLE.c.place,
        _LATER.c.seq > TABLE.c.seq,
    )
    .exists()
)
# Where nobody else was put since, and that did not let it go before; a webhook hears of it again.
_OWN_PLACES = _PUT_AT.where(
    ~select(_LATER.c.seq)
    .where(
        _LATER.c.owner_id == TABLE.c.owner_id,
        _LATER.c.sink == TABLE.c.sink,
        _LATER.c.place == TABLE.c.place,
        _LATER.c.seq > TABLE.c.seq,
        or_(
            _LATER.c.memory_id != TABLE.c.memory_id,
            and_(
                ~_LATER.c.sink.startswith(ids.sink_id(""), autoescape=True),
                _LATER.c.op == DeliveryOp.REMOVE.value,
                _LATER.c.state == "delivered",
            ),
        ),
    )
    .exists()
)
# Webhooks that are there and never had a memory which one had that was removed: a webhook is given a new secret by
# making another, and whoever stands behind both has what the first one was sent.
_HAD = TABLE.alias("had")
_GONE = TABLE.alias("gone")
_STILL = _WEBHOOK.alias("still")
_IN_PLACE = select(_WEBHOOK.c.id).where(
    _WEBHOOK.c.owner_id == bindparam("of_owner"),
    _WEBHOOK.c.id.startswith(ids.sink_id(""), autoescape=True),
    ~select(_HAD.c.seq)
    .where(
        _HAD.c.owner_id == bindparam("of_owner"),
        _HAD.c.memory_id == bindparam("of_memory"),
        _HAD.c.op == DeliveryOp.PUT.value,
        _HAD.c.sink == _WEBHOOK.c.id,
    )
    .exists(),
    select(_GONE.c.seq)
    .where(
        _GONE.c.owner_id == bindparam("of_owner"),
        _GONE.c.memory_id == bindparam("of_memory"),
        _GONE.c.op == DeliveryOp.PUT.value,
        _GONE.c.sink.startswith(ids.sink_id(""), autoescape=True),
        ~select(_STILL.c.id)
        .where(_STILL.c.owner_id == bindparam("of_owner"), _STILL.c.id == _GONE.c.sink)
        .exists(),
    )
    .exists(),
)
# The gate's own memories that these places name, as the statement below gives them.
_OWN = select(
    _MEMORY.c.owner_id,
    literal(OWN_SINK),
    _MEMORY.c.id,
    _MEMORY.c.id,
    _MEMORY.c.content,
    _MEMORY.c.validity_horizon,
).where(
    among(_MEMORY.c.owner_id, "owner_ids"),
    among(_MEMORY.c.id, "places"),
    _MEMORY.c.status == MemoryStatus.ACTIVE.value,
)
# The memory that was put last at each place, if it is in force and somebody vouches for it. CROSS JOIN makes SQLite
# start with what is asked for.
_AT_PLACES = {
    "sqlite": """
        SELECT w.value->>0, w.value->>1, w.value->>2, m.id, m.content, m.validity_horizon
        FROM json_each(?1) AS w
        CROSS JOIN delivery AS d ON d.owner_id = w.value->>0 AND d.seq = (
            SELECT max(l.seq) FROM delivery AS l
            WHERE l.owner_id = w.value->>0 AND l.sink = w.value->>1 AND l.place = w.value->>2)
        CROSS JOIN memory AS m ON m.owner_id = d.owner_id AND m.id = d.memory_id
        WHERE d.op = 'put' AND m.status = 'active' AND m.label <> 'UNVOUCHED'""",
    "postgresql": """
        SELECT w.owner_id, w.sink, w.place, m.id, m.content, m.validity_horizon
        FROM unnest(%(owners)s::text[], %(sinks)s::text[], %(places)s::text[]) AS w (owner_id, sink, place)
        CROSS JOIN LATERAL (
            SELECT l.owner_id, l.memory_id, l.op FROM delivery AS l
            WHERE l.owner_id = w.owner_id AND l.sink = w.sink AND l.place = w.place
            ORDER BY l.seq DESC LIMIT 1) AS d
        JOIN memory AS m ON m.owner_id = d.owner_id AND m.id = d.memory_id
        WHERE d.op = 'put' AND m.status = 'active' AND m.label <> 'UNVOUCHED'""",
}

OwnerPlace = tuple[str, str]  # an owner, and `DeliveryTarget.name`


class Outbox:
    """The rows of one transaction. `load` before `find_at_place`, and `write` at the end."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._known: dict[OwnerPlace, AtPlace] = {}
        self._horizons: dict[OwnerPlace, datetime | None] = {}
        self._consumers: Consumers | None = None  # None: no claim names a sink
        self._told: list[tuple[str, str, DeliveryTarget | None, datetime]] = []  # owner, memory, where, when
        self._rows: list[dict[str, Any]] = []  # without their numbers

    def load(self, claims: Iterable[Claim]) -> None:
        """Reads what the gate knows of the places that these claims name: three statements, or none."""
        asked = sorted({(c.owner_id, c.delivery.sink, c.delivery.place) for c in claims if c.delivery})
        if not asked:
            return
        own = {(owner_id, place) for owner_id, sink, place in asked if sink == OWN_SINK}
        stores = [one for one in asked if one[1] != OWN_SINK]
        found = self._put_last(stores) if stores else []
        if own:
            named = {"owner_ids": {owner for owner, _ in own}, "places": {place for _, place in own}}
            found += self._connection.execute(_OWN, named).all()
        for owner_id, sink, place, memory_id, content, horizon in found:
            key = owner_id, f"{sink} {place}"
            one = Neighbour(kind=ItemKind.MEMORY, id=memory_id, content=content)
            self._known[key] = AtPlace(memory=one)
            self._horizons[key] = None if horizon is None else time_of(horizon)
        if stores:
            self._consumers = Consumers(self._connection, {(owner, sink) for owner, sink, _ in stores})
        names = {"owner_ids": {a[0] for a in asked}, "names": {f"{sink} {place}" for _, sink, place in asked}}
        for row in self._connection.execute(_REMOVALS, names):
            one = Neighbour(kind=ItemKind.PENDING, id=row.id, content=row.content)
            self._update((row.owner_id, row.removal_of), removal=one)

    def _put_last(self, asked: Collection[tuple[str, str, str]]) -> list[Any]:
        dialect = self._connection.dialect.name
        if dialect == "sqlite":
            return list(fetch(self._connection, _AT_PLACES[dialect], (json.dumps(list(asked)),)))
        owners, sinks, places = (list(column) for column in zip(*asked, strict=True))
        parameters = {"owners": owners, "sinks": sinks, "places": places}
        return list(fetch(self._connection, _AT_PLACES[dialect], parameters))

    def find_at_place(self, claim: Claim, now: datetime) -> AtPlace | None:
        """What is known of the claim's place at `now`; None when nothing is, or the claim names none."""
        if claim.delivery is None:
            return None
        key = claim.owner_id, claim.delivery.name
        found = self._known.get(key)
        horizon = self._horizons.get(key)
        if found is not None and horizon is not None and horizon <= now:
            found = found.model_copy(update={"memory": None})
        return None if found == AtPlace() else found

    def claimed(self, claim: Claim, token_id: str, at: datetime) -> None:
        """A claim was decided: a sink that nobody serves yet is from now on served by the claim's token."""
        if claim.delivery is None or claim.delivery.sink == OWN_SINK:
            return
        if self._consumers is not None:
            self._consumers.claimed(claim.owner_id, claim.delivery.sink, token_id, at)

    def note_waiting_removal(self, claim: Claim, item_id: str) -> None:
        """Shows a removal that was just queued to the claims that follow."""
        if claim.delivery is not None:
            one = Neighbour(kind=ItemKind.PENDING, id=item_id, content=claim.content)
            self._update((claim.owner_id, claim.delivery.name), removal=one)

    def note_stored(
        self, owner_id: str, memory_id: str, delivery: DeliveryTarget | None, at: datetime
    ) -> None:
        """A memory came into force, for which its claim named a place, or none."""
        self._told.append((owner_id, memory_id, delivery, at))

    def note_stored_claim(self, claim: Claim, memory_id: str, at: datetime) -> None:
        """As `note_stored`, and shows the memory to the claims that follow. What was at its place is past its horizon,
        or the claim would wait: it goes first, so that a store is never asked to write over what it has."""
        self.note_stored(claim.owner_id, memory_id, claim.delivery, at)
        if claim.delivery is not None:
            key = claim.owner_id, claim.delivery.name
            before = self._known.get(key, AtPlace()).memory
            if before is not None:
                self.note_left(claim.owner_id, before.id, at)
            one = Neighbour(kind=ItemKind.MEMORY, id=memory_id, content=claim.content)
            self._update(key, memory=one)
            self._horizons[key] = claim.validity_horizon

    def note_removal(
        self, owner_id: str, delivery: DeliveryTarget, memory_id: str | None, at: datetime
    ) -> None:
        """What is at a place is to go; `memory_id` if the gate knew it."""
        if delivery.sink == OWN_SINK:  # nobody else holds it there
            return
        self._rows.append(_row(owner_id, delivery, DeliveryOp.REMOVE, memory_id, at))

    def note_left(
        self, owner_id: str, memory_id: str, at: datetime, but: DeliveryTarget | None = None
    ) -> None:
        """A memory is out of force: each place that holds it is to let it go, `but` one that gets something else; and
        webhooks in place of one that was removed."""
        asked = {"of_owner": owner_id, "of_memory": memory_id}
        for row in self._connection.execute(_HELD, asked).all():
            if but is None or (row.sink, row.place) != (but.sink, but.place):
                self.note_removal(
                    owner_id, DeliveryTarget(sink=row.sink, place=row.place, data=row.data), memory_id, at
                )
        self._note_in_place(owner_id, memory_id, at)

    def note_erased(self, owner_id: str, memory_id: str, at: datetime) -> None:
        """A memory is erased: each place that ever held it is to let it go, but for one that did or holds another by
        now; webhooks hear of it once more, also those in place of one that was removed."""
        asked = {"of_owner": owner_id, "of_memory": memory_id}
        found = {(row.sink, row.place): row.data for row in self._connection.execute(_OWN_PLACES, asked)}
        for (sink, place), data in found.items():
            self.note_removal(owner_id, DeliveryTarget(sink=sink, place=place, data=data), memory_id, at)
        self._note_in_place(owner_id, memory_id, at)

    def _note_in_place(self, owner_id: str, memory_id: str, at: datetime) -> None:
        asked = {"of_owner": owner_id, "of_memory": memory_id}
        for hook in self._connection.scalars(_IN_PLACE, asked).all():
            self.note_removal(owner_id, DeliveryTarget(sink=hook, place=memory_id), memory_id, at)

    def note_restored(self, owner_id: str, memory_id: str, at: datetime) -> None:
        """A memory is in force again: where it was put before, it is put once more, and the owner's webhooks are told,
        those that were made since as well."""
        asked = {"of_owner": owner_id, "of_memory": memory_id}
        rows = self._connection.execute(_PUT_AT, asked).all()
        places = {
            (row.sink, row.place): DeliveryTarget(sink=row.sink, place=row.place, data=row.data)
            for row in rows
            if not row.sink.startswith(ids.sink_id(""))
        }
        self._rows += [_row(owner_id, one, DeliveryOp.PUT, memory_id, at) for one in places.values()]
        self.note_stored(owner_id, memory_id, None, at)

    def write(self) -> None:
        """Numbers the rows in the order in which they were noted, removals first, and writes them."""
        if self._told:
            hooks: dict[str, list[str]] = {}
            owner_ids = {owner_id for owner_id, *_ in self._told}
            for owner_id, hook in _WEBHOOKS.rows(self._connection, {"owner_ids": owner_ids}):
                hooks.setdefault(owner_id, []).append(hook)
            for owner_id, memory_id, delivery, at in self._told:
                places = [DeliveryTarget(sink=hook, place=memory_id) for hook in hooks.get(owner_id, ())]
                for place in (*([delivery] if delivery else ()), *places):
                    self._rows.append(_row(owner_id, place, DeliveryOp.PUT, memory_id, at))
        if not self._rows:
            return
        owner_ids = {values["owner_id"] for values in self._rows}
        last = {r.owner_id: r.seq or 0 for r in self._connection.execute(_LAST_SEQ, {"owner_ids": owner_ids})}
        for values in self._rows:
            owner_id = values["owner_id"]
            values["seq"] = last[owner_id] = last.get(owner_id, 0) + 1
            values["id"] = delivery_id(owner_id, values["seq"])
        _ROWS.write(self._connection, self._rows)
        self._rows, self._told = [], []

    def _update(self, key: OwnerPlace, **found: Neighbour) -> None:
        self._known[key] = self._known.get(key, AtPlace()).model_copy(update=found)


def delivery_id(owner_id: str, seq: int) -> str:
    """Id of a delivery, the same whenever its transaction is run again."""
    return "dlv_" + hashlib.sha256(f"{seq} {owner_id}".encode()).hexdigest()[:32]


def _row(
    owner_id: str, delivery: DeliveryTarget, op: DeliveryOp, memory_id: str | None, at: datetime
) -> dict[str, Any]:
    return {
        "owner_id": owner_id,
        "sink": delivery.sink,
        "place": delivery.place,
        "op": op.value,
        "memory_id": memory_id,
        "data": delivery.data,
        "created_at": at,
        "state": "waiting",
        "attempts": 0,
        "due_at": at,
        "lease": None,
        "delivered_at": None,
        "last_error": None,
    }
