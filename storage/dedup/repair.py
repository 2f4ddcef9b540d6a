"""Mending the indexes where `storage.dedup.upkeep` finds that they do not fit the rows, while everybody goes on.

Each owner's faults are looked at again under the owner's lock, a few in a transaction of the store's writer:
what somebody else has set right meanwhile is left alone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import NamedTuple

from sqlalchemy import Connection, Delete, and_, bindparam, delete, select, tuple_

from vouchgate.ingest.claims.types import Neighbour
from vouchgate.storage.dedup import similar
from vouchgate.storage.dedup.upkeep import (
    KEYS,
    TEMPLATES,
    Checked,
    Fault,
    FaultKind,
    Item,
    bad_templates,
    faults,
    index_in_use,
    items_of,
    keys_of,
    missing,
    rows_where,
    strays,
)
from vouchgate.storage.dedup.window import Candidate, DedupIndexView
from vouchgate.storage.errors import StorageError, StoreBusy
from vouchgate.storage.identity.owners import TABLE as OWNER
from vouchgate.storage.store import Store

log = logging.getLogger(__name__)

AT_ONCE = 50  # faults of one owner in a transaction: others wait some 50 ms for it
# Times that everything is looked at. One fault can stand in the way of mending another; the second time it is gone.
ROUNDS = 3

_TAKE_OUT = delete(KEYS).where(
    KEYS.c.owner_id == bindparam("of_owner"),
    KEYS.c.key == bindparam("of_key"),
    KEYS.c.item_id == bindparam("of_item"),
)
_DROP_TEMPLATE = delete(TEMPLATES).where(
    TEMPLATES.c.owner_id == bindparam("of_owner"),
    TEMPLATES.c.key == bindparam("of_key"),
    TEMPLATES.c.id == bindparam("of_item"),
)


class Mended(NamedTuple):
    """How many were set right."""

    templates: int = 0
    strays: int = 0
    missing: int = 0
    failed: int = 0  # times that a transaction was refused, because of another fault


@dataclass
class Repaired:
    """What a repair did, and what the last look at everything found."""

    mended: Mended = field(default_factory=Mended)
    left: Checked = field(default_factory=Checked)


Progress = Callable[[Repaired], None]


def repair(store: Store, owner_id: str | None = None, progress: Progress = lambda so_far: None) -> Repaired:
    """Takes out of the dedup index, or of one owner's part, what should not be there, and puts in what is
    missing. `left` is what the last look found, after mending: nothing, unless it could not be mended or
    somebody damages it all the while. Raises StorageError when it cannot be read or written at all."""
    done = Repaired()
    for _ in range(ROUNDS):
        done.left = Checked()
        for found in faults(store, owner_id, done.left):
            done.left.note(found)
            for fault in found[:AT_ONCE]:
                log.warning("dedup index: %s", fault)
            done.mended = _sum(done.mended, *_mend(store, found))
            progress(done)
        if not done.left.faults:
            break
    return done


def rebuild_similar(store: Store, owner_id: str | None, progress: Callable[[int], None]) -> int:
    """Makes the similar index anew, of all owners or one, in short transactions: until it is done, less is shown
    beside a claim. How many memories are in."""
    count = 0
    for owner in [owner_id] if owner_id is not None else _owners(store):
        while store.writer.run([owner], partial(similar.clear_part, owner_id=owner)).result():
            pass
        after: str | None = ""
        while after is not None:
            filled, after = store.writer.run(
                [owner], partial(similar.fill_part, owner_id=owner, after=after)
            ).result()
            count += filled
            progress(count)
    return count


def _owners(store: Store) -> list[str]:
    with store.read() as connection:
        return list(connection.scalars(select(OWNER.c.owner_id).order_by(OWNER.c.owner_id)))


def _sum(*parts: Mended) -> Mended:
    return Mended(*map(sum, zip(*parts, strict=True)))


def _mend(store: Store, found: Sequence[Fault]) -> list[Mended]:
    """Faults of one trouble, by owner, a few at a time."""
    done = []
    for owner_id, of_owner in groupby(sorted(found), key=lambda fault: fault.owner_id):
        one_owner = list(of_owner)
        for start in range(0, len(one_owner), AT_ONCE):
            some = one_owner[start : start + AT_ONCE]
            try:
                done.append(store.writer.run([owner_id], partial(_mend_some, found=some)).result())
            except StoreBusy:
                raise
            except StorageError as error:
                log.warning("the dedup index of owner %s could not be mended: %s", owner_id, error)
                done.append(Mended(failed=1))
    return done


def _mend_some(connection: Connection, found: Sequence[Fault]) -> Mended:
    """Runs under the lock of the one owner that these faults are of."""
    trouble = found[0].trouble
    if trouble is FaultKind.MISSING:
        return Mended(missing=_put_in(connection, found))
    if trouble is FaultKind.STRAY:
        still = _strays_again(connection, found)
        return Mended(strays=_delete(connection, _TAKE_OUT, still))
    places = tuple_(TEMPLATES.c.owner_id, TEMPLATES.c.key, TEMPLATES.c.id)
    rows = connection.execute(select(TEMPLATES).where(places.in_(_row_keys(found)))).all()
    return Mended(templates=_delete(connection, _DROP_TEMPLATE, bad_templates(connection, rows)))


def _strays_again(connection: Connection, found: Sequence[Fault]) -> list[Fault]:
    places = tuple_(KEYS.c.owner_id, KEYS.c.key, KEYS.c.item_id)
    return strays(connection, rows_where(connection, and_(places.in_(_row_keys(found))), len(found)))


def _row_keys(found: Sequence[Fault]) -> list[tuple[str, int, str]]:
    return [(fault.owner_id, fault.key, fault.item_id) for fault in found]


def _delete(connection: Connection, statement: Delete, found: Sequence[Fault]) -> int:
    if found:
        connection.execute(
            statement,
            [{"of_owner": f.owner_id, "of_key": f.key, "of_item": f.item_id} for f in found],
        )
    return len(found)


def _put_in(connection: Connection, found: Sequence[Fault]) -> int:
    """Takes out what there still is of these items, then puts them in as if they were new."""
    build = index_in_use(connection)
    lacking = missing(connection, items_of(connection, found[0].owner_id, {fault.item_id for fault in found}))
    for item in lacking:
        DedupIndexView(connection, build).remove(item.owner_id, item.id, keys_of(item, build))
    window = DedupIndexView(connection, build)
    for item in lacking:
        window.add(item.owner_id, _candidate(item), keys_of(item, build))
    window.write()
    return len(lacking)


def _candidate(item: Item) -> Candidate:
    return Candidate(Neighbour(kind=item.kind, id=item.id, content=item.content))
