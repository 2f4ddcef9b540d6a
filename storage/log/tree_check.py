"""Whether the tree has every entry that was added, as its chain has it, and hashes and checkpoints of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic_core import from_json
from sqlalchemy import Connection, and_, func, select

from vouchgate.ingest.transparency.tree import Edge, grow
from vouchgate.ingest.transparency.verifier import (
    TILE_HASHES,
    Key,
    NotProven,
    leaf_hash,
    parse_checkpoint,
    parse_note,
)
from vouchgate.storage.columns import as_it_lies, read_time
from vouchgate.storage.identity.grants import TOKEN
from vouchgate.storage.identity.owners import TABLE as OWNER
from vouchgate.storage.log import keys, tree
from vouchgate.storage.log.chain import TABLE as ENTRY
from vouchgate.storage.log.tree import CHECKPOINT, DECISION, LEAF, OF_SUBJECT, SAYS, TILE, Said

_AT_ONCE = 2_000
_TIMES = CHECKPOINT.c.signed_at, CHECKPOINT.c.published_at
_IN_ORDER = (
    select(LEAF.c.number, LEAF.c.data, LEAF.c.decision_id, LEAF.c.owner_id.label("of_owner"), *SAYS)
    .select_from(
        LEAF.outerjoin(ENTRY, and_(ENTRY.c.owner_id == LEAF.c.owner_id, ENTRY.c.seq == LEAF.c.seq))
        .outerjoin(OWNER, OWNER.c.owner_id == LEAF.c.owner_id)
        .outerjoin(TOKEN, TOKEN.c.id == ENTRY.c.actor)
        .outerjoin(DECISION, OF_SUBJECT)
    )
    .order_by(LEAF.c.number)
)
_ADDED = select(LEAF.c.owner_id, func.count().label("many"), func.max(LEAF.c.seq).label("last"))
_ENDS = _ADDED.group_by(LEAF.c.owner_id).subquery()


def verify(connection: Connection) -> Iterator[str]:
    """One sentence per difference; none when all is as it should be. Entries that were not taken in yet are none. Needs
    a reading transaction, and memory for one batch of rows."""
    for what, check in (("Tree", _tree), ("Checkpoints", _checkpoints)):
        try:
            yield from check(connection)
        except (ValueError, TypeError, AttributeError, KeyError, IndexError, tree.TreeBroken) as error:
            why = "something in it cannot be read, and what comes after it was not looked at"
            yield f"{what}: was altered: {why}: {error!r:.200}"


def _tree(connection: Connection) -> Iterator[str]:
    edge, size = Edge(), tree.size_of(connection)
    rows = connection.execute(_IN_ORDER, execution_options={"yield_per": _AT_ONCE})
    for batch in rows.partitions():
        for number, row in enumerate(batch, edge.size):
            if row.number != number:
                yield f"Tree: leaf {number} is missing; the next one is {row.number}."
                rows.close()
                return  # every hash from here on would be another
            yield from _leaf(row)
        edge, tiles = grow(edge, (leaf_hash(row.data.encode()) for row in batch))
        for (level, number), tile in tiles.items():
            whole = len(tile) == TILE_HASHES * 32 or edge.size == size
            if whole and tree.tile(connection, level, number) != tile:
                yield f"Tree: tile {level}/{number} does not have the hashes of its leaves."
    if edge.size != size:
        yield f"Tree: it has {edge.size} leaves, and is said to have {size}."
        return
    wanted = select(OWNER.c.owner_id, OWNER.c.sequenced, _ENDS.c.many, _ENDS.c.last)
    for owner in connection.execute(wanted.outerjoin(_ENDS, _ENDS.c.owner_id == OWNER.c.owner_id)):
        many = owner.many or 0
        if not owner.sequenced == many == (owner.last or 0):
            yield f"Tree: it has {many} leaves of owner {owner.owner_id!r}, and {owner.sequenced} were added."
    count = sum(-(-(size >> 8 * level) // TILE_HASHES) for level in range((size.bit_length() + 7) // 8))
    if count != (there := connection.scalar(select(func.count()).select_from(TILE))):
        yield f"Tree: it has {there} tiles, and should have {count}."


def _leaf(row: Any) -> Iterator[str]:
    """What an entry, and the tables that must say the same, say otherwise than its leaf."""
    where = f"Tree, leaf {row.number}"
    if row.digest is None or row.owner_id is None:
        yield f"{where}: the entry of owner {row.of_owner!r} that it is of is not there."
        return
    said = Said(*(row._mapping[column] for column in SAYS))
    try:
        leaf, expected = from_json(row.data), said.leaf()
        leaf["actor"] = {"id": leaf["actor"]["id"]}
    except (ValueError, TypeError, KeyError):
        yield f"{where}: cannot be read."
        return
    expected["actor"] = {"id": said.actor}
    if expected["subject"] is None:
        leaf.pop("subject", None), expected.pop("subject")
    if said.policy_digest is None:  # the decision may have been erased
        leaf.pop("policy", None), expected.pop("policy")
    if leaf != expected:
        yield f"{where}: does not say what entry {said.seq} of owner {said.owner_id!r} says."
    if row.decision_id not in (None, said.subject_id) or (
        row.decision_id is None and said.policy_digest is not None
    ):
        yield f"{where}: is not found by its decision."


def _checkpoints(connection: Connection) -> Iterator[str]:
    size, known = tree.size_of(connection), list[Key]()
    for key_id, key in keys.verifiers(connection):
        if key is None:
            yield f"Key {key_id!a} of the log: was altered, and cannot be read."
        else:
            known.append(key)
    wanted = select(CHECKPOINT.c.size, CHECKPOINT.c.note, *map(as_it_lies, _TIMES)).order_by(
        CHECKPOINT.c.size
    )
    for row in connection.execute(wanted).all():
        where = f"Checkpoint of {row.size} entries"
        try:
            _ = [read_time(at) for at in row[2:] if at is not None]
        except ValueError as error:
            yield f"{where}: was altered: {error}."
        try:
            note = parse_note(row.note.encode())
            said = parse_checkpoint(note.text)
            signed = any(note.signed_at(key) is not None for key in known if key.name == said.origin)
            same = row.size == said.size <= size and tree.root_at(connection, row.size) == said.root
        except NotProven as error:
            yield f"{where}: {error}"
            continue
        except tree.TreeBroken:
            same = False
        if not signed:
            yield f"{where}: is signed by no key of the log."
        if not same:
            yield f"{where}: is not of this tree."
