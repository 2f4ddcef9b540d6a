"""One tree over the entries of all chains (RFC 6962), kept as leaves and tiles, and its checkpoints.

An entry is committed in its owner's chain first, and taken from there into the tree afterwards, so that nothing a claim
waits for grows with it. How far that is, is in the owners' rows; the size in the row of `tree` is the referee: a batch
that was made for another size than there is adds nothing.
"""

from __future__ import annotations

import base64
import hashlib
import re
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Connection, Table, and_, bindparam, delete, func, or_, select, text, tuple_, update

from vouchgate.ingest.policy import canonical_json
from vouchgate.ingest.transparency.tree import Edge, edge_of, grow, inclusion_proof
from vouchgate.ingest.transparency.verifier import (
    HASH_BYTES,
    GetHash,
    NotProven,
    Proof,
    hashes_of_tiles,
    leaf_hash,
    range_hash,
)
from vouchgate.storage.columns import UtcTime
from vouchgate.storage.identity.grants import TOKEN
from vouchgate.storage.identity.names import valid_name
from vouchgate.storage.identity.owners import TABLE as OWNER
from vouchgate.storage.log.chain import TABLE as ENTRY
from vouchgate.storage.sql import BulkInsert, PreparedSelect, limited_to
from vouchgate.storage.tables.claims import DecisionRow
from vouchgate.storage.tables.tree import CheckpointRow, LeafRow, TileRow, TreeRow

BATCH = 2_000  # entries: some 20 ms under the writer's lock
VERSION = 1  # of the form of leaves

TREE: Table = TreeRow.metadata.tables["tree"]
LEAF: Table = LeafRow.metadata.tables["log_leaf"]
TILE: Table = TileRow.metadata.tables["log_tile"]
CHECKPOINT: Table = CheckpointRow.metadata.tables["log_checkpoint"]
DECISION: Table = DecisionRow.metadata.tables["decision"]
_LEAVES = BulkInsert(LEAF)
_BEHIND = OWNER.c.log_seq > OWNER.c.sequenced
SAYS = [*(c for c in ENTRY.c if c.name != "owner_id"), OWNER.c.owner_id, OWNER.c.pseudonym, TOKEN.c.role,
        TOKEN.c.person_id, DECISION.c.policy_digest]  # fmt: skip
OF_SUBJECT = and_(DECISION.c.owner_id == ENTRY.c.owner_id, DECISION.c.id == ENTRY.c.subject_id)
_OWNERS = PreparedSelect(
    select(OWNER.c.owner_id, OWNER.c.sequenced, OWNER.c.log_seq)
    .where(_BEHIND)
    .order_by(OWNER.c.owner_id)
    .limit(bindparam("most"))
)
# One owner at a time, and between two numbers: PostgreSQL, which cannot know how few are new, would sort all entries.
_NEW = PreparedSelect(
    select(*SAYS)
    .select_from(
        ENTRY.join(OWNER, OWNER.c.owner_id == ENTRY.c.owner_id)
        .outerjoin(TOKEN, TOKEN.c.id == ENTRY.c.actor)
        .outerjoin(DECISION, OF_SUBJECT)
    )
    .where(
        ENTRY.c.owner_id == bindparam("of_owner"),
        ENTRY.c.seq.between(bindparam("first"), bindparam("last")),
    )
    .order_by(ENTRY.c.seq)
)
_NEWEST = select(func.max(CHECKPOINT.c.size))
_DUE = select(
    TREE.c.due_at, select(OWNER.c.owner_id).where(_BEHIND).exists(), TREE.c.size, _NEWEST.scalar_subquery()
)
_LEASE = (
    update(TREE)
    .where(TREE.c.id == 1, TREE.c.due_at <= bindparam("now"))
    .values(lease=bindparam("name"), due_at=bindparam("until"))
)
_GROW = (
    update(TREE)
    .where(TREE.c.id == 1, TREE.c.size == bindparam("before"))
    .values(size=bindparam("after"), due_at=bindparam("due"), lease=None)
)
_MOVE = update(OWNER).where(OWNER.c.owner_id == bindparam("of_owner")).values(sequenced=bindparam("to"))
_PUT_TILE = text(
    "INSERT INTO log_tile (level, number, hashes) VALUES (:level, :number, :hashes) "
    "ON CONFLICT (level, number) DO UPDATE SET hashes = excluded.hashes"
)
_PUT_CHECKPOINT = text(
    "INSERT INTO log_checkpoint (size, note, signed_at, published_at) VALUES (:size, :note, :at, :published_at) "
    "ON CONFLICT DO NOTHING"
).bindparams(bindparam("at", type_=UtcTime), bindparam("published_at", type_=UtcTime))
_PUBLISHED = CHECKPOINT.c.published_at.is_not(None)
_LAST_PUBLISHED = select(func.coalesce(func.max(CHECKPOINT.c.size), -1)).where(_PUBLISHED).scalar_subquery()
_UNPUBLISHED = select(CHECKPOINT.c.size, CHECKPOINT.c.signed_at).where(CHECKPOINT.c.size > _LAST_PUBLISHED)
_SHOW = (
    update(TREE)
    .where(TREE.c.id == 1, TREE.c.witnesses_due_at <= bindparam("now"))
    .values(witnesses_due_at=bindparam("until"))
)
_LAST = select(CHECKPOINT.c.size, CHECKPOINT.c.note).order_by(CHECKPOINT.c.size.desc()).limit(1)
_ID = re.compile(r"(?:[a-z]+_)?[0-9a-f]{16,32}")  # what the gate makes; any other name may tell of somebody


class TreeMoved(Exception):
    """Somebody else added to the tree meanwhile; nothing was written."""


class TreeBroken(Exception):
    """The tiles are not those of the tree: somebody altered them."""


class Batch(NamedTuple):
    """What is to be added to a tree of the size `before`."""

    before: int
    after: int
    leaves: list[dict[str, Any]]
    tiles: dict[tuple[int, int], bytes]
    ends: dict[str, int]  # by owner, the number of the last entry
    more: bool


def next_due(connection: Connection, *, signing: bool) -> datetime | None:
    """When entries may be added next; None when there is nothing to add and, with `signing`, nothing to sign."""
    due_at, behind, size, signed = connection.execute(_DUE).one()
    return due_at if behind or (signing and size > (signed or 0)) else None


def lease(connection: Connection, name: str, now: datetime, seconds: float) -> bool:
    """Takes the next batch, for so long; whether it was there to be taken."""
    until = now + timedelta(seconds=seconds)
    return connection.execute(_LEASE, {"name": name, "now": now, "until": until}).rowcount == 1


class Said(NamedTuple):
    """An entry with what the tables say beside it: the columns of SAYS."""

    seq: int
    at: datetime
    actor: str
    action: str
    subject_id: str
    content_digest: str
    previous: str
    digest: str
    salt: bytes | None
    owner_id: str
    pseudonym: str
    role: str | None
    person_id: str | None
    policy_digest: str | None

    @property
    def subject(self) -> str | None:
        """What it is about, as everybody may read it. None of an entry without a salt, where the name may tell of
        somebody."""
        if _ID.fullmatch(self.subject_id) and self.subject_id != self.owner_id:
            return self.subject_id
        if self.salt is None:
            return None
        return "s:" + hashlib.sha256(self.salt + self.subject_id.encode()).hexdigest()

    def leaf(self) -> dict[str, Any]:
        """All that the tree says of it; no text, and no name of an owner. Role, person and policy are as the tables had
        them when it was added."""
        return {
            "version": VERSION,
            "owner": self.pseudonym,
            "seq": self.seq,
            "previous": self.previous,
            "digest": self.digest,
            "at": self.at.isoformat(),
            "actor": {"id": self.actor, "role": self.role, "person": self.person_id},
            "action": self.action,
            "subject": self.subject,
            "policy": self.policy_digest,
            "commitment": self.content_digest,
        }


def next_batch(connection: Connection, most: int = BATCH) -> Batch:
    """The entries that come next, of each owner in the order of its chain and without a gap; perhaps none."""
    edge = read_edge(connection)
    rows: list[Said] = []
    for owner_id, sequenced, log_seq in _OWNERS.rows(connection, {"most": most}):
        last = min(log_seq, sequenced + most - len(rows))
        wanted = {"of_owner": owner_id, "first": sequenced + 1, "last": last}
        rows += map(Said._make, _NEW.rows(connection, wanted))
        if len(rows) == most:
            break
    leaves: list[dict[str, Any]] = [
        {
            "owner_id": row.owner_id,
            "seq": row.seq,
            "number": number,
            "decision_id": None if row.policy_digest is None else row.subject_id,
            "data": canonical_json(row.leaf()),
        }
        for number, row in enumerate(rows, edge.size)
    ]
    grown, tiles = grow(edge, (leaf_hash(leaf["data"].encode()) for leaf in leaves))
    ends = {row.owner_id: row.seq for row in rows}
    return Batch(edge.size, grown.size, leaves, tiles, ends, len(rows) == most)


def add(connection: Connection, batch: Batch, due_at: datetime) -> None:
    """Adds it and gives back the lease: the next one is due then. The caller holds the locks of its owners. Raises
    TreeMoved."""
    moved = {"before": batch.before, "after": batch.after, "due": due_at}
    if connection.execute(_GROW, moved).rowcount != 1:
        raise TreeMoved
    _LEAVES.write(connection, batch.leaves)
    if batch.leaves:
        tiles = [{"level": level, "number": n, "hashes": tile} for (level, n), tile in batch.tiles.items()]
        connection.execute(_PUT_TILE, tiles)
        connection.execute(_MOVE, [{"of_owner": owner, "to": seq} for owner, seq in batch.ends.items()])


def size_of(connection: Connection) -> int:
    """How many leaves there are."""
    return int(connection.scalar(select(TREE.c.size)) or 0)


def read_edge(connection: Connection) -> Edge:
    """The right edge of the tree as it stands. Raises TreeBroken."""
    size = size_of(connection)
    wanted = [(level, size >> 8 * level + 8) for level in range((size.bit_length() + 7) // 8)]
    rows = connection.execute(select(TILE).where(tuple_(TILE.c.level, TILE.c.number).in_(wanted)))
    try:
        return edge_of(size, {(row.level, row.number): row.hashes for row in rows})
    except (ValueError, KeyError) as error:
        raise TreeBroken from error


def hashes(connection: Connection, size: int) -> GetHash:
    """The hashes of the tree when it had this size."""

    def read(level: int, number: int, width: int) -> bytes:
        return tile(connection, level, number)[: width * HASH_BYTES]

    return hashes_of_tiles(read, size)


def tile(connection: Connection, level: int, number: int) -> bytes:
    """A tile as long as it is; empty when there is none."""
    wanted = select(TILE.c.hashes).where(TILE.c.level == level, TILE.c.number == number)
    return connection.scalar(wanted) or b""


def root_at(connection: Connection, size: int) -> bytes:
    """The root of the tree when it had this size. Raises TreeBroken."""
    try:
        return range_hash(hashes(connection, size), 0, size)
    except (ValueError, NotProven) as error:
        raise TreeBroken from error


def last_checkpoint(connection: Connection, *, published: bool, above: int = 0) -> tuple[int, str] | None:
    """Size and note of the newest checkpoint, or of the newest one that was published."""
    wanted = _LAST.where(CHECKPOINT.c.size > above)
    row = connection.execute(wanted.where(_PUBLISHED) if published else wanted).one_or_none()
    return None if row is None else (row.size, row.note)


def put_checkpoint(connection: Connection, size: int, note: str, now: datetime, *, publish: bool) -> None:
    """Keeps a signed checkpoint. Of the published ones before it, one an hour is kept: anybody who has another still
    gets a proof that the tree only grew. Of those that are not, the first and the last are: since when one waits, and
    what to show."""
    published_at = now if publish else None
    connection.execute(_PUT_CHECKPOINT, {"size": size, "note": note, "at": now, "published_at": published_at})
    last = last_checkpoint(connection, published=True)
    hour = now.replace(minute=0, second=0, microsecond=0)
    before = and_(_PUBLISHED, CHECKPOINT.c.size < (last or (0,))[0], CHECKPOINT.c.signed_at >= hour)
    first = connection.scalar(_UNPUBLISHED.order_by(CHECKPOINT.c.size).limit(1))
    newest = connection.scalar(_NEWEST)
    between = and_(
        ~_PUBLISHED, CHECKPOINT.c.size.not_in([each for each in (first, newest) if each is not None])
    )
    connection.execute(delete(CHECKPOINT).where(or_(before, between)))


def publish(connection: Connection, size: int, note: str, now: datetime) -> None:
    """Publishes a checkpoint with the cosignatures that it got, whatever became of its row meanwhile."""
    connection.execute(delete(CHECKPOINT).where(CHECKPOINT.c.size == size))
    put_checkpoint(connection, size, note, now, publish=True)


def next_unpublished(connection: Connection) -> datetime | None:
    """When a checkpoint is to be shown to witnesses; None when the newest one is published."""
    due = select(TREE.c.witnesses_due_at).where(_UNPUBLISHED.exists())
    return connection.scalar(due)


def unpublished_since(connection: Connection) -> datetime | None:
    """Since when there is a checkpoint that is not published; None where there is none."""
    row = connection.execute(_UNPUBLISHED.order_by(CHECKPOINT.c.size).limit(1)).one_or_none()
    return None if row is None else row.signed_at


def lease_witnesses(connection: Connection, now: datetime, until: datetime) -> bool:
    """Takes the turn to show the newest checkpoint, until then; whether it was due."""
    return connection.execute(_SHOW, {"now": now, "until": until}).rowcount == 1


class Receipt(NamedTuple):
    """Why the log is bound to a decision: the leaf, its salt if it was not erased, and the proof."""

    leaf: bytes
    salt: bytes | None
    proof: str

    def fields(self, *, salted: bool = True) -> dict[str, str | None]:
        """As it is given in JSON; without `salted` it tells nothing of the text that the leaf commits to."""
        salt = self.salt.hex() if salted and self.salt is not None else None
        return {"leaf": base64.b64encode(self.leaf).decode(), "salt": salt, "proof": self.proof}


def receipt(connection: Connection, decision_id: str, *, owners: frozenset[str] | None) -> Receipt | None:
    """Of a decision of one of these owners (None: any). None as long as no published checkpoint covers it."""
    if not valid_name(decision_id):
        return None
    salted = and_(ENTRY.c.owner_id == LEAF.c.owner_id, ENTRY.c.seq == LEAF.c.seq)
    wanted = select(LEAF, ENTRY.c.salt).join(ENTRY, salted).where(LEAF.c.decision_id == decision_id)
    leaf = connection.execute(limited_to(owners, wanted, LEAF).order_by(LEAF.c.number)).first()
    last = None if leaf is None else last_checkpoint(connection, published=True, above=leaf.number)
    if leaf is None or last is None:
        return None
    size, note = last
    proof = Proof(
        leaf.number, tuple(inclusion_proof(hashes(connection, size), leaf.number, size)), note.encode()
    )
    return Receipt(leaf.data.encode(), leaf.salt, str(proof))
