"""Whether the dedup index fits the rows it was made from, and mending it where it does not.

Every active memory and every waiting item must be found by each of its keys, and nothing else may be in the
index. All is walked in parts, each in one snapshot, so that the service goes on meanwhile; what is found is true
of its moment. What is to be mended is looked at again under its owner's lock, and put in or taken out there.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

from sqlalchemy import Column, Connection, Row, Select, Table, and_, delete, func, select, true, tuple_

from vouchgate.ingest.claims.likeness import ItemKind, Neighbour
from vouchgate.ingest.dedup.signature import SignatureKeys, signature_keys
from vouchgate.ingest.dedup.template import is_member, member_keys, restore_template
from vouchgate.ingest.language.words import tokens
from vouchgate.storage.dedup import similar
from vouchgate.storage.dedup.builds import Build, builds
from vouchgate.storage.dedup.in_force import IN_FORCE, MEMORY, PENDING
from vouchgate.storage.dedup.reindex import count_items, state_of
from vouchgate.storage.dedup.window import Candidate, DedupIndexView, readable
from vouchgate.storage.errors import StorageError
from vouchgate.storage.identity.owners import TABLE as OWNER
from vouchgate.storage.store import Store
from vouchgate.storage.tables.claims import DedupKeyRow, DedupTemplateRow

log = logging.getLogger(__name__)

PART = 2000  # rows looked at in one snapshot
LOOKED_UP = 2000  # keys in one statement
AT_ONCE = 50  # faults of one owner mended in a transaction: others wait some 50 ms for it
SHOWN = 20  # faults that are kept to be shown; more say nothing new
ROUNDS = 3  # of mending: one fault can stand in the way of another, which then is found in the next

KEYS: Table = DedupKeyRow.metadata.tables["dedup_key"]
TEMPLATES: Table = DedupTemplateRow.metadata.tables["dedup_template"]


class FaultKind(StrEnum):
    """What is wrong."""

    TEMPLATE = "template"  # of an index that is not there, or with words that cannot be read
    STRAY = "stray"  # a row that no item in force should have
    MISSING = "missing"  # an item in force that claims like it cannot all find


class Fault(NamedTuple):
    """One thing that is wrong with the index. `key` is 0 for a missing item; `item_id` is the template's id for a
    template."""

    trouble: FaultKind
    owner_id: str
    item_id: str
    key: int = 0

    def __str__(self) -> str:
        what = {
            FaultKind.MISSING: "is not found by all its keys",
            FaultKind.STRAY: f"has the key {self.key}, which it should not have",
            FaultKind.TEMPLATE: f"at the key {self.key} belongs to no index, or cannot be read",
        }
        return f"owner {self.owner_id}, {self.item_id}: {what[self.trouble]}"


class IndexStatus(NamedTuple):
    """What there is. `threshold` and `generation` are None when the index in use is of another version of the
    program; `building` tells the threshold of one that is being built, and how many items are in it."""

    threshold: Fraction | None
    generation: int | None
    rows: int
    templates: int
    items: int
    building: tuple[Fraction, int] | None
    cleaning: int | None


@dataclass
class Checked:
    """How much was looked at, and what is wrong: how often, and the first SHOWN."""

    items: int = 0
    rows: int = 0
    templates: int = 0
    faults: int = 0
    first: list[Fault] = field(default_factory=list)


Progress = Callable[[Checked], None]
Rows = Sequence[Row[Any]]


@dataclass(frozen=True, slots=True)
class _Walk:
    """One table, looked at part by part: `look` gives those of its rows that are wrong."""

    trouble: FaultKind
    key: tuple[Column[Any], ...]  # what a row begins with: owner, then key and id, or id alone
    rows: Select[Any]
    look: Callable[[Connection, Rows], list[Row[Any]]]

    def read(self, connection: Connection, wanted: Any) -> Rows:
        return connection.execute(self.rows.where(wanted).order_by(*self.key).limit(PART)).all()

    def fault(self, row: Row[Any]) -> Fault:
        owner_id, *key, item_id = row[: len(self.key)]
        return Fault(self.trouble, owner_id, item_id, *key)


def status(connection: Connection) -> IndexStatus:
    """What the index is. Counts every row."""
    built, job, old = state_of(connection)
    generation = None if built is None else built.generation
    counts = [
        connection.scalar(select(func.count()).select_from(table).where(table.c.generation == generation))
        for table in (KEYS, TEMPLATES)
    ]
    return IndexStatus(
        threshold=None if built is None else built.threshold,
        generation=generation,
        rows=counts[0] or 0,
        templates=counts[1] or 0,
        items=count_items(connection),
        building=None if job is None else (job.build.threshold, job.done),
        cleaning=old,
    )


def verify(store: Store, owner_id: str | None = None, progress: Progress = lambda so_far: None) -> Checked:
    """Looks at the whole index, or one owner's. Raises StorageError when it cannot be read, or is of another
    version of the program."""
    checked = Checked()
    for _ in _faults(store, owner_id, checked, progress):
        pass
    return checked


def repair(
    store: Store, owner_id: str | None = None, progress: Progress = lambda so_far: None
) -> tuple[Counter[FaultKind], Checked]:
    """Takes out what should not be there and puts in what is missing, in the whole index or one owner's part. How
    many were mended, and what the last look found: nothing, unless somebody damages it all the while. Raises
    StorageError when it cannot be read or written."""
    mended: Counter[FaultKind] = Counter()
    for _ in range(ROUNDS):
        checked = Checked()
        for walk, found in _faults(store, owner_id, checked, progress):
            for row in found[:AT_ONCE]:
                log.warning("dedup index: %s", walk.fault(row))
            for owner, rows in groupby(found, key=lambda row: row.owner_id):
                of_owner = list(rows)
                for start in range(0, len(of_owner), AT_ONCE):
                    work = partial(_mend, walk=walk, found=of_owner[start : start + AT_ONCE])
                    mended[walk.trouble] += store.writer.run([owner], work, always=True).result()
        if not checked.faults:
            break
    return mended, checked


def rebuild_similar(store: Store, owner_id: str | None, progress: Callable[[int], None]) -> int:
    """Makes the similar index anew, of all owners or one, in short transactions: until it is done, less is shown
    beside a claim. How many memories are in."""
    with store.read() as connection:
        every = connection.scalars(select(OWNER.c.owner_id).order_by(OWNER.c.owner_id)).all()
    count = 0
    for owner in every if owner_id is None else [owner_id]:
        while store.writer.run([owner], partial(similar.clear_part, owner_id=owner), always=True).result():
            pass
        after: str | None = ""
        while after is not None:
            work = partial(similar.fill_part, owner_id=owner, after=after)
            filled, after = store.writer.run([owner], work, always=True).result()
            count += filled
            progress(count)
    return count


def _faults(
    store: Store, owner_id: str | None, checked: Checked, progress: Progress
) -> Iterator[tuple[_Walk, list[Row[Any]]]]:
    """What is wrong, part by part, in the order in which it can be mended. Counts in `checked` what was looked at."""
    for walk in _WALKS:
        counts = _COUNTS[walk.trouble]
        wanted: Any = true() if owner_id is None else walk.key[0] == owner_id
        rest = wanted
        while True:
            with store.read() as connection:
                rows = walk.read(connection, rest)
                found = walk.look(connection, rows)
            setattr(checked, counts, getattr(checked, counts) + len(rows))
            checked.faults += len(found)
            checked.first += map(walk.fault, found[: SHOWN - len(checked.first)])
            progress(checked)
            yield walk, found
            if len(rows) < PART:
                break
            rest = and_(wanted, tuple_(*walk.key) > tuple_(*rows[-1][: len(walk.key)]))


def _mend(connection: Connection, walk: _Walk, found: Rows) -> int:
    """Sets right what is still wrong with these rows, under the lock of the one owner they are of; how many were."""
    size, key = len(walk.key), tuple_(*walk.key)
    wrong = walk.look(connection, walk.read(connection, key.in_([tuple(row[:size]) for row in found])))
    if wrong and walk.trouble is not FaultKind.MISSING:
        connection.execute(delete(walk.key[0].table).where(key.in_([tuple(row[:size]) for row in wrong])))
    elif wrong:
        build = _in_use(connection)
        for row in wrong:
            DedupIndexView(connection, build).remove(row.owner_id, row.id, _keys(row, build))
        window = DedupIndexView(connection, build)
        for row in wrong:
            neighbour = Neighbour(kind=ItemKind.MEMORY, id=row.id, content=row.content)
            window.add(row.owner_id, Candidate(neighbour), _keys(row, build))
        window.write()
    return len(wrong)


def _in_use(connection: Connection) -> Build:
    built = builds(connection).built
    if built is None:
        raise StorageError("the index is of another version of the program; run `vouchgate index build`")
    return built


def _keys(row: Row[Any], build: Build) -> SignatureKeys:
    """What an item is found by in this index."""
    return signature_keys(tokens(row.content), row.memory_type, build.threshold)


def _bad_templates(connection: Connection, rows: Rows) -> list[Row[Any]]:
    known = _generations(connection)
    return [row for row in rows if row.generation not in known or readable(row.words) is None]


def _generations(connection: Connection) -> dict[int, Build | None]:
    """The indexes there are; None is one that is being taken out."""
    old = state_of(connection).old
    return {build.generation: build for build in builds(connection).live()} | (
        {} if old is None else {old: None}
    )


def _strays(connection: Connection, rows: Rows) -> list[Row[Any]]:
    """Those that lead to nothing in force, or to what is not found by that key. An index that is being taken out
    has none."""
    known = _generations(connection)
    wrong = [row for row in rows if row.generation not in known]
    for generation, build in known.items():
        if build is None:
            continue
        of_it = [row for row in rows if row.generation == generation]
        items = {(row.owner_id, row.item_id): row for row in of_it if row.content is not None}
        ways = dict(zip(items, _ways(connection, build, list(items.values())), strict=True))
        allowed = {item: {key for of_key in of for way in of_key for key in way} for item, of in ways.items()}
        wrong += [row for row in of_it if row.key not in allowed.get((row.owner_id, row.item_id), ())]
    return sorted(wrong, key=lambda row: row[:3])


def _missing(connection: Connection, rows: Rows) -> list[Row[Any]]:
    """Those that some claim over the threshold would not find: one of their keys leads nowhere."""
    build = _in_use(connection)
    ways = _ways(connection, build, rows)
    places = (KEYS.c.owner_id, KEYS.c.key, KEYS.c.item_id)
    wanted = {
        (row.owner_id, key, row.id)
        for row, of_row in zip(rows, ways, strict=True)
        for of_key in of_row
        for way in of_key
        for key in way
    }
    present = set(map(tuple, _at(connection, select(*places), places, sorted(wanted))))

    def found(row: Row[Any], way: Sequence[int]) -> bool:
        return all((row.owner_id, key, row.id) in present for key in way)

    return [
        row
        for row, of_row in zip(rows, ways, strict=True)
        if not all(any(found(row, way) for way in of_key) for of_key in of_row)
    ]


def _ways(connection: Connection, build: Build, rows: Rows) -> list[list[list[list[int]]]]:
    """For each item, and each of its stored keys, the ways to be found by it: by the key itself, or by all keys under a
    template that it was closed with."""
    every = [_keys(row, build) for row in rows]
    wanted = {(row.owner_id, key) for row, keys in zip(rows, every, strict=True) for key in keys.stored}
    place = (TEMPLATES.c.owner_id, TEMPLATES.c.key)
    closed: dict[tuple[str, int], list[tuple[str, frozenset[str]]]] = {}
    for found in _at(connection, select(*place, TEMPLATES.c.id, TEMPLATES.c.words), place, sorted(wanted)):
        if (words := readable(found.words)) is not None:
            closed.setdefault((found.owner_id, found.key), []).append((found.id, words))
    ways = []
    for row, keys in zip(rows, every, strict=True):
        under: dict[str, list[int] | None] = {}  # by template; None for one that the item is no member of
        of_row = []
        for key in keys.stored:
            for template_id, words in closed.get((row.owner_id, key), ()):
                if template_id not in under:
                    template = restore_template(template_id, words, keys.own.parts)
                    member = is_member(template, keys.words)
                    under[template_id] = member_keys(template, keys.words) if member else None
            names = [template_id for template_id, _ in closed.get((row.owner_id, key), ())]
            of_row.append([[key], *(finer for name in names if (finer := under[name]) is not None)])
        ways.append(of_row)
    return ways


def _at(
    connection: Connection, rows: Select[Any], place: Sequence[Column[Any]], wanted: Sequence[Sequence[Any]]
) -> Iterator[Row[Any]]:
    """The rows at these places, some at a time."""
    for start in range(0, len(wanted), LOOKED_UP):
        yield from connection.execute(rows.where(tuple_(*place).in_(wanted[start : start + LOOKED_UP])))


def _items(kind: ItemKind) -> _Walk:
    table, in_force = IN_FORCE[kind]
    key = (table.c.owner_id, table.c.id)
    rows = select(*key, table.c.memory_type, table.c.content).where(in_force)
    return _Walk(FaultKind.MISSING, key, rows, _missing)


def _of_row(kind: ItemKind) -> Any:
    table, in_force = IN_FORCE[kind]
    return and_(table.c.owner_id == KEYS.c.owner_id, table.c.id == KEYS.c.item_id, in_force)


_WALKS = (
    _Walk(
        FaultKind.TEMPLATE,
        (TEMPLATES.c.owner_id, TEMPLATES.c.key, TEMPLATES.c.id),
        select(
            TEMPLATES.c.owner_id, TEMPLATES.c.key, TEMPLATES.c.id, TEMPLATES.c.words, TEMPLATES.c.generation
        ),
        _bad_templates,
    ),
    _Walk(
        FaultKind.STRAY,
        (KEYS.c.owner_id, KEYS.c.key, KEYS.c.item_id),
        select(
            *(KEYS.c.owner_id, KEYS.c.key, KEYS.c.item_id, KEYS.c.generation),
            func.coalesce(MEMORY.c.memory_type, PENDING.c.memory_type).label("memory_type"),
            func.coalesce(MEMORY.c.content, PENDING.c.content).label("content"),
        ).select_from(
            KEYS.outerjoin(MEMORY, _of_row(ItemKind.MEMORY)).outerjoin(PENDING, _of_row(ItemKind.PENDING))
        ),
        _strays,
    ),
    *map(_items, ItemKind),
)
_COUNTS = {FaultKind.TEMPLATE: "templates", FaultKind.STRAY: "rows", FaultKind.MISSING: "items"}
