"""Whether the dedup index fits the rows it was made from.

Every active memory and every waiting item must be found by each of its keys, and nothing else may be in the
index. Both are walked in parts, each in one snapshot, so that the service goes on meanwhile; what is found is
true of its moment. Mending it is in `storage.dedup.repair`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import Any, NamedTuple

from sqlalchemy import Connection, Table, and_, case, func, select, true, tuple_

from vouchgate.ingest.checks.dedup import tokens
from vouchgate.ingest.claims.types import ItemKind
from vouchgate.ingest.dedup.signature import SignatureKeys, signature_keys
from vouchgate.ingest.dedup.template import is_member, member_keys, restore_template
from vouchgate.storage.dedup.builds import Build, builds
from vouchgate.storage.dedup.in_force import IN_FORCE, MEMORY, PENDING
from vouchgate.storage.dedup.reindex import count_items, state_of
from vouchgate.storage.errors import StorageError
from vouchgate.storage.sql import fetch
from vouchgate.storage.store import Store
from vouchgate.storage.tables.claims import DedupKeyRow, DedupTemplateRow

ITEMS = 200  # items, or templates, looked at in one snapshot
ROWS = 2000  # rows of the index
SHOWN = 20  # faults that are kept to be shown; more say nothing new

KEYS: Table = DedupKeyRow.metadata.tables["dedup_key"]
TEMPLATES: Table = DedupTemplateRow.metadata.tables["dedup_template"]
# Templates by owner and key; rows of the index by owner, key and item. CROSS JOIN makes SQLite start with what is
# asked for.
_WORDS = {
    "sqlite": """
        SELECT k.owner_id, k.key, k.id, k.words FROM json_each(?1) AS w
        CROSS JOIN dedup_template AS k ON k.owner_id = w.value->>0 AND k.key = w.value->>1
        WHERE k.generation = ?2""",
    "postgresql": """
        SELECT k.owner_id, k.key, k.id, k.words
        FROM unnest(%(owners)s::text[], %(keys)s::bigint[]) AS w (owner_id, key)
        JOIN dedup_template AS k ON k.owner_id = w.owner_id AND k.key = w.key
        WHERE k.generation = %(generation)s""",
}
_PRESENT = {
    "sqlite": """
        SELECT k.owner_id, k.key, k.item_id FROM json_each(?1) AS w
        CROSS JOIN dedup_key AS k
            ON k.owner_id = w.value->>0 AND k.key = w.value->>1 AND k.item_id = w.value->>2
        WHERE k.generation = ?2""",
    "postgresql": """
        SELECT k.owner_id, k.key, k.item_id
        FROM unnest(%(owners)s::text[], %(keys)s::bigint[], %(items)s::text[]) AS w (owner_id, key, item_id)
        JOIN dedup_key AS k ON k.owner_id = w.owner_id AND k.key = w.key AND k.item_id = w.item_id
        WHERE k.generation = %(generation)s""",
}


class FaultKind(StrEnum):
    """What is wrong."""

    MISSING = "missing"  # an item in force that claims like it cannot all find
    STRAY = "stray"  # a row that no item in force should have
    TEMPLATE = "template"  # of an index that is not there, or with words that cannot be read


class Fault(NamedTuple):
    """One thing that is wrong with the index. `key` is 0 for a missing item; `item_id` is the template's id
    for a template."""

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


class Item(NamedTuple):
    """An active memory or a waiting item."""

    owner_id: str
    id: str
    kind: ItemKind
    memory_type: str
    content: str


class IndexRow(NamedTuple):
    """A row of the index, and the item it is of, when that is in force."""

    owner_id: str
    key: int
    item_id: str
    generation: int
    item: Item | None


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

    def note(self, found: Iterable[Fault]) -> None:
        """Counts faults."""
        for fault in found:
            self.faults += 1
            if len(self.first) < SHOWN:
                self.first.append(fault)


Progress = Callable[[Checked], None]


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
    for found in faults(store, owner_id, checked):
        checked.note(found)
        progress(checked)
    return checked


def faults(store: Store, owner_id: str | None, checked: Checked) -> Iterator[list[Fault]]:
    """What is wrong, part by part, in the order in which it can be mended: templates, strays, missing items.
    Counts in `checked` what was looked at."""
    place: Sequence[Any] | None = ("", -(2**63), "")
    while place is not None:
        with store.read() as connection:
            templates, place = _template_page(connection, owner_id, place)
            found = bad_templates(connection, templates)
        checked.templates += len(templates)
        yield found
    place = ("", -(2**63), "")
    while place is not None:
        with store.read() as connection:
            rows, place = _row_page(connection, owner_id, place)
            found = strays(connection, rows)
        checked.rows += len(rows)
        yield found
    for kind in ItemKind:
        place = ("", "")
        while place is not None:
            with store.read() as connection:
                items, place = _item_page(connection, kind, owner_id, place)
                lacking = missing(connection, items)
            checked.items += len(items)
            yield [Fault(FaultKind.MISSING, item.owner_id, item.id) for item in lacking]


def index_in_use(connection: Connection) -> Build:
    """The index that answers. Raises StorageError when it is of another version of the program."""
    built = builds(connection).built
    if built is None:
        raise StorageError("the index is of another version of the program; run `vouchgate index build`")
    return built


def missing(connection: Connection, items: Sequence[Item]) -> list[Item]:
    """Those that some claim over the threshold would not find: one of their keys leads nowhere."""
    build = index_in_use(connection)
    ways = _ways(connection, build, items)
    wanted = [
        (item.owner_id, key, item.id)
        for item in items
        for alternatives in ways[item.owner_id, item.id]
        for way in alternatives
        for key in way
    ]
    present: dict[tuple[str, str], set[int]] = {}
    for owner_id, key, item_id in _look_up(connection, _PRESENT, wanted, build):
        present.setdefault((owner_id, item_id), set()).add(key)
    lacking = []
    for item in items:
        has = present.get((item.owner_id, item.id), set())
        if not all(any(has >= way for way in found) for found in ways[item.owner_id, item.id]):
            lacking.append(item)
    return lacking


def strays(connection: Connection, rows: Sequence[IndexRow]) -> list[Fault]:
    """Those rows that should not be there. Rows of an index that is being taken out are none of them."""
    built, following = builds(connection)
    old = state_of(connection).old
    known = {build.generation: build for build in (built, following) if build is not None}
    found = []
    for generation in {row.generation for row in rows} - {old}:
        of_it = [row for row in rows if row.generation == generation]
        allowed: dict[tuple[str, str], set[int]] = {}
        if build := known.get(generation):
            items = {(row.owner_id, row.item_id): row.item for row in of_it if row.item is not None}
            for name, ways in _ways(connection, build, list(items.values())).items():
                allowed[name] = {key for alternatives in ways for way in alternatives for key in way}
        found += [row for row in of_it if row.key not in allowed.get((row.owner_id, row.item_id), ())]
    return [Fault(FaultKind.STRAY, row.owner_id, row.item_id, row.key) for row in sorted(found)]


def bad_templates(connection: Connection, templates: Sequence[Any]) -> list[Fault]:
    """Those (rows of the table) that belong to no index there is, or whose words cannot be read."""
    built, following = builds(connection)
    old = state_of(connection).old
    known = {build.generation for build in (built, following) if build is not None} | {old}
    return [
        Fault(FaultKind.TEMPLATE, row.owner_id, row.id, row.key)
        for row in templates
        if row.generation not in known or _readable(row.words) is None
    ]


def keys_of(item: Item, build: Build) -> SignatureKeys:
    """What the item is found by in this index."""
    return signature_keys(tokens(item.content), item.memory_type, build.threshold)


_Ways = list[list[set[int]]]  # for each stored key the ways to be found by it: each a set of keys, all needed


def _ways(connection: Connection, build: Build, items: Sequence[Item]) -> dict[tuple[str, str], _Ways]:
    """By owner and id: by which rows an item may be found. By the plain key, or by all keys under a template
    that the key was closed with."""
    keys = {(item.owner_id, item.id): keys_of(item, build) for item in items}
    wanted = [(owner_id, key, "") for (owner_id, _), of in keys.items() for key in of.stored]
    templates: dict[tuple[str, int], list[tuple[str, frozenset[str]]]] = {}
    for owner_id, key, template_id, text in _look_up(connection, _WORDS, sorted(set(wanted)), build):
        if (words := _readable(text)) is not None:
            templates.setdefault((owner_id, key), []).append((template_id, words))
    found: dict[tuple[str, str], _Ways] = {}
    for (owner_id, item_id), of in keys.items():
        finer: dict[str, set[int] | None] = {}
        ways: _Ways = []
        for key in of.stored:
            here = [{key}]
            for template_id, words in templates.get((owner_id, key), ()):
                if template_id not in finer:
                    template = restore_template(template_id, words, of.own.parts)
                    member = is_member(template, of.words)
                    finer[template_id] = set(member_keys(template, of.words)) if member else None
                if under := finer[template_id]:
                    here.append(under)
            ways.append(here)
        found[owner_id, item_id] = ways
    return found


def _readable(words: str) -> frozenset[str] | None:
    try:
        found = json.loads(words)
    except ValueError:
        return None
    whole = isinstance(found, list) and all(isinstance(word, str) for word in found)
    return frozenset(found) if whole else None


def _look_up(
    connection: Connection, statement: dict[str, str], wanted: Sequence[tuple[str, int, str]], build: Build
) -> list[Any]:
    if not wanted:
        return []
    dialect = connection.dialect.name
    if dialect == "sqlite":
        return fetch(connection, statement[dialect], (json.dumps(wanted), build.generation))
    owners, keys, items = (list(column) for column in zip(*wanted, strict=True))
    asked = {"owners": owners, "keys": keys, "items": items, "generation": build.generation}
    return fetch(connection, statement[dialect], asked)


def _item_page(
    connection: Connection, kind: ItemKind, owner_id: str | None, place: Sequence[Any]
) -> tuple[list[Item], Sequence[Any] | None]:
    table, _ = IN_FORCE[kind]
    after = tuple_(table.c.owner_id, table.c.id) > tuple_(*place)
    items = _items(connection, kind, and_(after, _of(table, owner_id)), ITEMS)
    return items, (items[-1][:2] if len(items) == ITEMS else None)


def items_of(connection: Connection, owner_id: str, item_ids: Collection[str]) -> list[Item]:
    """Those of these that are in force."""
    found = []
    for kind, (table, _) in IN_FORCE.items():
        found += _items(connection, kind, and_(table.c.owner_id == owner_id, table.c.id.in_(item_ids)), None)
    return found


def _items(connection: Connection, kind: ItemKind, wanted: Any, most: int | None) -> list[Item]:
    table, in_force = IN_FORCE[kind]
    place = (table.c.owner_id, table.c.id)
    statement = select(*place, table.c.memory_type, table.c.content).where(in_force, wanted)
    rows = connection.execute(statement.order_by(*place).limit(most))
    return [Item(row[0], row[1], kind, row[2], row[3]) for row in rows]


def _row_page(
    connection: Connection, owner_id: str | None, place: Sequence[Any]
) -> tuple[list[IndexRow], Sequence[Any] | None]:
    rows = rows_where(connection, and_(_after(KEYS, "item_id", place), _of(KEYS, owner_id)), ROWS)
    return rows, (rows[-1][:3] if len(rows) == ROWS else None)


def rows_where(connection: Connection, wanted: Any, most: int) -> list[IndexRow]:
    """Rows of the index in order, each with its item when that is in force."""
    memory, waiting = (
        and_(table.c.owner_id == KEYS.c.owner_id, table.c.id == KEYS.c.item_id, in_force)
        for table, in_force in IN_FORCE.values()
    )
    statement = (
        select(
            *KEYS.columns,
            case((MEMORY.c.id.is_not(None), ItemKind.MEMORY.value), else_=ItemKind.PENDING.value),
            func.coalesce(MEMORY.c.memory_type, PENDING.c.memory_type),
            func.coalesce(MEMORY.c.content, PENDING.c.content),
        )
        .select_from(KEYS.outerjoin(MEMORY, memory).outerjoin(PENDING, waiting))
        .where(wanted)
        .order_by(KEYS.c.owner_id, KEYS.c.key, KEYS.c.item_id)
        .limit(most)
    )
    rows = []
    for row in connection.execute(statement):
        owner_id, key, item_id, generation, kind, memory_type, content = tuple(row)
        item = None if content is None else Item(owner_id, item_id, ItemKind(kind), memory_type, content)
        rows.append(IndexRow(owner_id, key, item_id, generation, item))
    return rows


def _template_page(
    connection: Connection, owner_id: str | None, place: Sequence[Any]
) -> tuple[Sequence[Any], Sequence[Any] | None]:
    statement = (
        select(TEMPLATES)
        .where(_after(TEMPLATES, "id", place), _of(TEMPLATES, owner_id))
        .order_by(TEMPLATES.c.owner_id, TEMPLATES.c.key, TEMPLATES.c.id)
        .limit(ITEMS)
    )
    rows = connection.execute(statement).all()
    return rows, (rows[-1][:3] if len(rows) == ITEMS else None)


def _after(table: Table, last: str, place: Sequence[Any]) -> Any:
    return tuple_(table.c.owner_id, table.c.key, table.c[last]) > tuple_(*place)


def _of(table: Table, owner_id: str | None) -> Any:
    return true() if owner_id is None else table.c.owner_id == owner_id
