"""The similar index: band keys (`ingest.dedup.similar`) of every active memory, by owner, to show a reviewer what
is near a claim. It is advice: who asks copes with an exception, and whoever writes to it never fails for it
but for the database itself.

A look-up is bounded whatever an owner has stored: it reads the newest NEWEST rows of each of a claim's keys,
and the texts of the MOST_READ memories that share most keys with it.

A claim that is stored writes none of these rows, which were most of its rows: its memory's own row has the keys. What
the owner's log tells of after entry `owner.similar_seq` is the tail. Whoever looks up reads it too, and finds what they
would if all were in the index. The writer puts a tail of TAIL entries in, in a transaction of its own (ADR-0054).
"""

from __future__ import annotations

import json
import logging
import struct
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Table, bindparam, delete, select, update

from vouchgate.ingest.claims.decision import Label
from vouchgate.ingest.claims.likeness import ItemKind, Neighbour
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.memory import MemoryStatus
from vouchgate.ingest.dedup.similar import band_keys
from vouchgate.storage.dedup.window import Candidate
from vouchgate.storage.identity.owners import TABLE as OWNER
from vouchgate.storage.identity.owners import OwnerState
from vouchgate.storage.sql import BulkInsert, among, fetch, time_of
from vouchgate.storage.tables.claims import MemoryRow, SimilarKeyRow

log = logging.getLogger(__name__)

TABLE: Table = SimilarKeyRow.metadata.tables["similar_key"]
_MEMORY: Table = MemoryRow.metadata.tables["memory"]

_ROWS = BulkInsert(TABLE, known_ok=True)  # what was replaced and restored may be in already
NEWEST = 64
MOST_READ = 64
TAIL = 64  # entries of a log: to read them takes a tenth of a millisecond, to index their memories two
_MOST_OWNERS = 500  # of whom a process remembers the tail
_BATCH = 1000
_CLEARED = 5000  # rows; some 20 ms
# How claims are logged that change no memory that was there.
_PLAIN = frozenset(
    {
        Action.CLAIM_STORED.value,
        Action.CLAIM_QUEUED.value,
        Action.CLAIM_BLOCKED.value,
        Action.CLAIM_REPEATED.value,
        Action.CLAIM_LET_THROUGH.value,
    }
)


# The newest ids of each (owner, key), and the texts of (owner, id). CROSS JOIN makes SQLite start with what is
# asked, and its IN is looked up once a key.
_NEWEST = {
    "sqlite": """
        SELECT o.key, w.value, k.memory_id FROM json_each(?1) AS o CROSS JOIN json_each(o.value) AS w
        CROSS JOIN similar_key AS k ON k.owner_id = o.key AND k.key = w.value AND k.memory_id IN (
            SELECT memory_id FROM similar_key WHERE owner_id = o.key AND key = w.value
            ORDER BY memory_id DESC LIMIT ?2)""",
    "postgresql": """
        SELECT w.owner_id, w.key, k.memory_id
        FROM unnest(%(owner)s::text[], %(value)s::bigint[]) AS w (owner_id, key) CROSS JOIN LATERAL (
            SELECT memory_id FROM similar_key AS s WHERE s.owner_id = w.owner_id AND s.key = w.key
            ORDER BY memory_id DESC LIMIT %(most)s) AS k""",
}
_TEXTS = {
    "sqlite": """
        SELECT m.owner_id, m.id, m.memory_type, m.content, m.validity_horizon
        FROM json_each(?1) AS o CROSS JOIN json_each(o.value) AS w
        CROSS JOIN memory AS m ON m.owner_id = o.key AND m.id = w.value AND m.status = 'active'""",
    "postgresql": """
        SELECT m.owner_id, m.id, m.memory_type, m.content, m.validity_horizon
        FROM unnest(%(owner)s::text[], %(value)s::text[]) AS w (owner_id, id)
        JOIN memory AS m ON m.owner_id = w.owner_id AND m.id = w.id AND m.status = 'active'""",
}
# The entries of a tail after one of them, and the keys of the memories that claims became and that are in force. A
# memory has the suffix of the decision that stored it. LIMIT 1 makes PostgreSQL look each of them up.
_TAILS = {
    "sqlite": """
        SELECT e.owner_id, e.seq, e.action, m.id, m.bands
        FROM json_each(?1) AS w CROSS JOIN owner AS o ON o.owner_id = w.key
        CROSS JOIN log_entry AS e ON e.owner_id = o.owner_id AND e.seq > max(o.similar_seq, w.value)
        LEFT JOIN memory AS m ON e.action = 'claim.stored' AND m.owner_id = e.owner_id
        AND m.id = 'mem_' || substr(e.subject_id, 5) AND m.status = 'active' ORDER BY e.owner_id, e.seq""",
    "postgresql": """
        SELECT e.owner_id, e.seq, e.action, m.id, m.bands
        FROM unnest(%(owner)s::text[], %(value)s::bigint[]) AS w (owner_id, after)
        JOIN owner AS o ON o.owner_id = w.owner_id CROSS JOIN LATERAL (
            SELECT l.owner_id, l.seq, l.action, l.subject_id FROM log_entry AS l WHERE l.owner_id = o.owner_id
            AND l.seq > greatest(o.similar_seq, w.after) ORDER BY l.seq) AS e LEFT JOIN LATERAL (
            SELECT k.id, k.bands FROM memory AS k WHERE e.action = 'claim.stored' AND k.owner_id = e.owner_id
            AND k.id = 'mem_' || substr(e.subject_id, 5) AND k.status = 'active' LIMIT 1) AS m ON true
        ORDER BY e.owner_id, e.seq""",
}
_BEGIN = update(OWNER).where(OWNER.c.owner_id == bindparam("of_owner"))
_TEXT = select(_MEMORY.c.content, _MEMORY.c.memory_type).where(
    _MEMORY.c.owner_id == bindparam("of_owner"), _MEMORY.c.id == bindparam("of_id")
)
_REMOVE = delete(TABLE).where(
    TABLE.c.owner_id == bindparam("of_owner"),
    among(TABLE.c.key, "keys"),
    TABLE.c.memory_id == bindparam("of_id"),
)
_BOUNDARY = (
    select(TABLE.c.key)
    .where(TABLE.c.owner_id == bindparam("of_owner"))
    .order_by(TABLE.c.key)
    .offset(_CLEARED)
    .limit(1)
)
_PAGE = (
    select(_MEMORY.c.id, _MEMORY.c.memory_type, _MEMORY.c.content)
    .where(
        _MEMORY.c.owner_id == bindparam("of_owner"),
        _MEMORY.c.id > bindparam("after"),
        _MEMORY.c.status == MemoryStatus.ACTIVE.value,
        _MEMORY.c.label != Label.UNVOUCHED.value,
    )
    .order_by(_MEMORY.c.id)
    .limit(_BATCH)
)


@dataclass(slots=True)
class Tail:
    """The memories of an owner that are not in the index yet, by key: those that the entries after `begin` and up to
    `seen` tell of."""

    begin: int = 0
    seen: int = 0
    by_key: dict[int, list[str]] = field(default_factory=dict)

    def add(self, memory_id: str, keys: Iterable[int]) -> None:
        """Puts a memory in."""
        for key in keys:
            self.by_key.setdefault(key, []).append(memory_id)


Tails = Mapping[str, Tail]  # by owner


class TailCache:
    """The tails of owners as they were last read, for one thread that writes. `clear` it after a transaction that was
    not committed."""

    def __init__(self) -> None:
        self._known: dict[str, Tail] = {}
        self.long: set[str] = set()  # owners whose tails are to be put into the index

    def clear(self) -> None:
        """Forgets all."""
        self._known.clear()
        self.long.clear()

    def note_length(self, state: OwnerState) -> None:
        """Looks at an owner's row."""
        if state.log_seq - state.similar_seq >= TAIL:
            self.long.add(state.owner_id)

    def of(self, connection: Connection, states: Mapping[str, OwnerState], ends: Mapping[str, int]) -> Tails:
        """The tails of owners whose rows are locked, and whose logs end there on disk."""
        if len(self._known) > _MOST_OWNERS:
            self._known.clear()
        tails: dict[str, Tail] = {}
        for owner_id, state in states.items():
            tail, begin = self._known.get(owner_id), state.similar_seq
            tails[owner_id] = Tail(begin, begin) if tail is None or tail.begin != begin else tail
        rows = _read(connection, {o: tail.seen for o, tail in tails.items() if tail.seen < ends[o]})
        # Something else than a claim may have put a memory of the tail out of force.
        again = {owner_id for owner_id, _, action, *_ in rows if action not in _PLAIN}
        again = {owner_id for owner_id in again if tails[owner_id].by_key}
        tails |= {owner_id: Tail(states[owner_id].similar_seq) for owner_id in again}
        rows = [row for row in rows if row[0] not in again] + _read(connection, dict.fromkeys(again, 0))
        _fill(tails, rows)
        for owner_id, tail in tails.items():
            tail.seen = ends[owner_id]
        self._known |= tails
        return tails

    def extend(self, state: OwnerState, stored: Iterable[tuple[str, Iterable[int]]], start: int) -> None:
        """Adds what the claims of a transaction became (id and keys), before which the owner's log ended at `start`."""
        self.note_length(state)
        tail = self._known.get(state.owner_id)
        if tail is not None and tail.seen == start:
            tail.seen = state.log_seq
            for memory_id, keys in stored:
                tail.add(memory_id, keys)


def _read(connection: Connection, after: Mapping[str, int]) -> list[Any]:
    """The rows of the tails of these owners after an entry each."""
    if not after:
        return []
    if connection.dialect.name == "sqlite":
        return fetch(connection, _TAILS["sqlite"], (json.dumps(after),))
    asked = {"owner": list(after), "value": list(after.values())}
    return fetch(connection, _TAILS["postgresql"], asked)


def _fill(tails: dict[str, Tail], rows: Iterable[Any]) -> None:
    for owner_id, _, _, memory_id, bands in rows:
        if bands:
            tails.setdefault(owner_id, Tail()).add(memory_id, struct.unpack(f">{len(bands) // 8}q", bands))


def index_tail(connection: Connection, owner_id: str) -> None:
    """Puts an owner's tail into the index. The caller holds the owner's lock."""
    rows = _read(connection, {owner_id: 0})
    tails = {owner_id: Tail()}
    _fill(tails, rows)
    of_keys = sorted(tails[owner_id].by_key.items())
    _ROWS.write(
        connection, [row for key, ids in of_keys for each in ids for row in _rows_of(owner_id, each, [key])]
    )
    if rows:
        connection.execute(_BEGIN.values(similar_seq=rows[-1][1]), {"of_owner": owner_id})


def candidates(
    connection: Connection, owner_id: str, keys: Sequence[int], memory_type: str, *, now: datetime
) -> list[tuple[str, str]]:
    """The memories (id, text) of this owner and type, in force at `now`, that share most of these keys: MOST_READ
    at most. Not complete: a similar one is missed with the probability that `ingest.dedup.similar` tells."""
    asked = tuple(keys)
    found = candidates_of_many(connection, {owner_id: {asked: memory_type}}) if asked else {}
    return [
        (memory.neighbour.id, memory.neighbour.content)
        for memory in found.get((owner_id, asked), ())
        if memory.counts_at(now)
    ]


def candidates_of_many(
    connection: Connection, wanted: Mapping[str, Mapping[tuple[int, ...], str]], tails: Tails | None = None
) -> dict[tuple[str, tuple[int, ...]], list[Candidate]]:
    """As `candidates`, for many claims of many owners in three statements: by owner, their keys to their memory types;
    `tails` are those of the owners, where they are known. What was found, in force or not, has the owner and the keys;
    whoever found nothing is not in it."""
    keys = {owner: sorted({key for bands in claims for key in bands}) for owner, claims in wanted.items()}
    by_key: dict[tuple[str, int], list[str]] = {}
    for owner, key, memory_id in _of_owners(connection, _NEWEST, keys, NEWEST):
        by_key.setdefault((owner, key), []).append(memory_id)
    if tails is None:
        read: dict[str, Tail] = {}
        _fill(read, _read(connection, dict.fromkeys(wanted, 0)))
        tails = read
    for owner, tail in tails.items():
        for key in keys.get(owner, ()):
            if new := tail.by_key.get(key):
                both = {*new, *by_key.get((owner, key), ())}
                by_key[owner, key] = sorted(both, reverse=True)[:NEWEST]
    if not by_key:
        return {}  # most claims are new
    first = {
        (owner, bands): sorted(shared, key=lambda each: (shared[each], each), reverse=True)[:MOST_READ]
        for owner, claims in wanted.items()
        for bands in claims
        if (shared := Counter(i for key in bands for i in by_key.get((owner, key), ())))
    }
    ids: dict[str, set[str]] = {}
    for (owner, _), found in first.items():
        ids.setdefault(owner, set()).update(found)
    of_owners = {owner: sorted(found) for owner, found in ids.items()}
    memories = {
        (owner, memory_id, memory_type): Candidate(
            Neighbour(kind=ItemKind.MEMORY, id=memory_id, content=content),
            None if until is None else time_of(until),
        )
        for owner, memory_id, memory_type, content, until in _of_owners(connection, _TEXTS, of_owners)
    }
    return {
        (owner, bands): [
            memory
            for memory_id in found
            if (memory := memories.get((owner, memory_id, wanted[owner][bands])))
        ]
        for (owner, bands), found in first.items()
    }


def _of_owners(
    connection: Connection, statements: Mapping[str, str], wanted: Mapping[str, Sequence[Any]], *most: int
) -> list[Any]:
    """The rows of one look-up for values of several owners, at most so many for each where it says."""
    if connection.dialect.name == "sqlite":
        return fetch(connection, statements["sqlite"], (json.dumps(wanted), *most))
    pairs = [(owner, value) for owner, values in wanted.items() for value in values]
    owners, values = [owner for owner, _ in pairs], [value for _, value in pairs]
    asked = {"owner": owners, "value": values} | dict(zip(("most",), most, strict=False))
    return fetch(connection, statements["postgresql"], asked)


def keys_of(content: str, memory_type: str) -> tuple[int, ...]:
    """`band_keys`, or none when they cannot be made: a memory that is never shown as similar is better than
    a claim that cannot be stored."""
    try:
        return band_keys(content, memory_type)
    except Exception:
        log.exception("a memory has no keys in the similar index")
        return ()


def pack(keys: Sequence[int]) -> bytes:
    """Keys as the row of a memory has them."""
    return struct.pack(f">{len(keys)}q", *keys)


def _rows_of(owner_id: str, memory_id: str, keys: Iterable[int]) -> list[dict[str, Any]]:
    """The index rows of one memory, as parameters of INSERT."""
    return [{"owner_id": owner_id, "key": key, "memory_id": memory_id} for key in keys]


def add(connection: Connection, owner_id: str, memory_id: str, keys: Sequence[int]) -> None:
    """Puts a memory in."""
    _ROWS.write(connection, _rows_of(owner_id, memory_id, keys))


def remove(connection: Connection, owner_id: str, memory_id: str) -> None:
    """Takes a memory out, whose row and text stay; one that is not in is no error."""
    row = connection.execute(_TEXT, {"of_owner": owner_id, "of_id": memory_id}).one_or_none()
    if row is None:
        return
    keys = keys_of(row.content, row.memory_type)
    connection.execute(_REMOVE, {"of_owner": owner_id, "of_id": memory_id, "keys": keys})


def clear_part(connection: Connection, owner_id: str) -> bool:
    """Deletes some thousand of an owner's rows, and all of one key; whether there may be more."""
    boundary = connection.scalar(_BOUNDARY, {"of_owner": owner_id})
    of_owner = delete(TABLE).where(TABLE.c.owner_id == owner_id)
    connection.execute(of_owner if boundary is None else of_owner.where(TABLE.c.key <= boundary))
    connection.execute(_BEGIN.values(similar_seq=OWNER.c.log_seq), {"of_owner": owner_id})  # it is filled in
    return boundary is not None


def fill_part(connection: Connection, owner_id: str, after: str) -> tuple[int, str | None]:
    """Puts the owner's next memories after this id in, "" for the first; how many, and the id to go on from,
    None when that was the last. Those that were stored meanwhile, and are in, stay in."""
    batch = connection.execute(_PAGE, {"of_owner": owner_id, "after": after}).all()
    if not batch:
        return 0, None
    keys = {row.id: band_keys(row.content, row.memory_type) for row in batch}
    _ROWS.write(connection, [row for key, bands in keys.items() for row in _rows_of(owner_id, key, bands)])
    return len(batch), batch[-1].id
