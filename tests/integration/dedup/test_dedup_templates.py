"""Claims made from one template: found exactly, by few rows each, however many there are."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from fractions import Fraction

import pytest
from sqlalchemy import Connection, func, select, text

from tests.claims import NOW, alike
from vouchgate.ingest.claims.likeness import ItemKind, Neighbour, Neighbours
from vouchgate.ingest.dedup.signature import signature_keys
from vouchgate.ingest.dedup.template import MOST_STORED
from vouchgate.ingest.language.words import tokens
from vouchgate.storage.dedup import index
from vouchgate.storage.dedup.builds import hold
from vouchgate.storage.dedup.window import CLOSE_AT, MOST_ITEMS, MOST_ROWS, TABLE, Candidate, DedupIndexView
from vouchgate.storage.engine import writing
from vouchgate.storage.store import Store
from vouchgate.storage.tables.claims import DedupTemplateRow

THRESHOLD = Fraction(23, 25)
TEMPLATES = DedupTemplateRow.metadata.tables["dedup_template"]
INSERT = text(
    "INSERT INTO memory (owner_id, id, memory_type, content, source, status, confidence, label, created_at,"
    " decision_id, details) VALUES ('ann', :id, 'fact', :content, 'user', 'active', 'low', 'INFERENCE',"
    " '2026-01-01 00:00:00', 'dec', '{}')"
)
# Words in the template, slots, values of a slot, words in a slot at most.
FLOODS = [
    pytest.param(16, 1, 500, 1, id="16 words, 1 slot"),
    pytest.param(21, 3, 60, 2, id="21 words, 3 slots of one or two words"),
    pytest.param(30, 3, 12, 1, id="30 words, 3 slots of few values"),
    pytest.param(31, 3, 60, 2, id="31 words, 3 slots of one or two words"),
    pytest.param(50, 4, 20, 1, id="50 words, 4 slots"),
    pytest.param(100, 12, 30, 1, id="100 words, 12 slots"),
    pytest.param(120, 8, 200, 1, id="120 words, 8 slots"),
]


def flood(
    size: int, slots: int, values: int, most_words: int, *, count: int, edited: float = 0.0
) -> Iterator[str]:
    """Claims of one template; of some, an earlier one with up to three words dropped, added or replaced."""
    chance = random.Random(size * 100 + slots)  # noqa: S311  (a fixed sequence, not a secret)
    base = [f"word{chance.getrandbits(40):x}" for _ in range(size - slots)]
    made: list[list[str]] = []
    for _ in range(count):
        words = list(base)
        for slot in range(slots):
            filled = chance.randint(1, most_words)
            words += [f"slot{slot}is{chance.randrange(values)}" for _ in range(filled)]
        if made and chance.random() < edited:
            words = list(chance.choice(made))
            for _ in range(chance.randint(0, 3)):
                if chance.random() < 0.6:
                    words.remove(chance.choice(words))
                if chance.random() < 0.6:
                    words.append(f"word{chance.getrandbits(40):x}")
        made.append(words)
        yield " ".join(words)


def put(connection: Connection, item_id: str, content: str, window: DedupIndexView) -> None:
    keys = signature_keys(tokens(content), "fact", THRESHOLD)
    one = Neighbour(kind=ItemKind.MEMORY, id=item_id, content=content)
    window.add("ann", Candidate(one), keys)


def windows(store: Store, work: Callable[[Connection, DedupIndexView], None]) -> None:
    """Runs `work` in a write transaction with a window on the index, and writes what it added."""
    with writing(store._engine) as connection:
        built = hold(connection).built
        assert built is not None
        window = DedupIndexView(connection, built)
        work(connection, window)
        window.write()


def insert_memory(connection: Connection, item_id: str, content: str) -> None:
    connection.execute(INSERT, {"id": item_id, "content": content})


@pytest.mark.on("sqlite")
@pytest.mark.parametrize(("size", "slots", "values", "most_words"), FLOODS)
def test_a_flood_is_decided_as_by_brute_force(
    store: Store, size: int, slots: int, values: int, most_words: int
) -> None:
    decides_as_by_brute_force(store, size, slots, values, most_words)


# How a template is found depends on no database, and every flood is looked up and written by the same statements: on
# the other one, one whose claims are found by the keys under their template.
@pytest.mark.on("postgresql")
def test_so_is_a_flood_on_postgresql(store: Store) -> None:
    decides_as_by_brute_force(store, 31, 3, 60, 2)


def decides_as_by_brute_force(store: Store, size: int, slots: int, values: int, most_words: int) -> None:
    """Sends a flood, takes a third of it out, and holds every answer against all that came before."""
    stored: dict[str, frozenset[str]] = {}
    contents: dict[str, str] = {}
    claims = list(flood(size, slots, values, most_words, count=280, edited=0.3))
    asked = 0

    def take(connection: Connection, window: DedupIndexView) -> None:
        nonlocal asked
        for _ in range(7):
            content = claims.pop()
            keys = signature_keys(tokens(content), "fact", THRESHOLD)
            reached = window.find_candidates("ann", keys)
            near = index.select_neighbours(keys, reached, NOW)
            true = [i for i, words in stored.items() if alike(words, keys.words, THRESHOLD)]
            assert [item.id for item in near.items] == sorted(true)
            assert near.complete
            assert len(reached.candidates) <= len(true) + 12 * CLOSE_AT
            asked += bool(true)
            if not true:
                item_id = f"mem_{len(stored):05}"
                insert_memory(connection, item_id, content)
                put(connection, item_id, content, window)
                stored[item_id], contents[item_id] = keys.words, content

    while claims:
        windows(store, take)
    assert len(stored) > 80
    assert asked > 40
    rows_are_few(store, len(stored))
    for gone in list(stored)[::3]:
        store.writer.run(
            ["ann"],
            lambda c, gone=gone: index.remove(c, "ann", ItemKind.MEMORY, gone),  # type: ignore[misc]
        ).result(120)
        del stored[gone]
    for item_id, content in contents.items():
        keys = signature_keys(tokens(content), "fact", THRESHOLD)
        with store.read() as connection:
            near = index.find_neighbours(connection, "ann", keys, NOW)
        assert isinstance(near, Neighbours)
        assert item_id not in stored or item_id in {item.id for item in near.items}
        assert {item.id for item in near.items} <= set(stored)


def rows_are_few(store: Store, items: int) -> None:
    """A template was found, and an item has not many more rows than it may have under one."""
    with store.read() as connection:
        rows = connection.scalar(select(func.count()).select_from(TABLE)) or 0
        assert connection.scalar(select(func.count()).select_from(TEMPLATES))
    assert rows <= 1.5 * MOST_STORED * items


def test_a_key_is_closed_within_one_group_and_across_transactions(store: Store) -> None:
    claims = list(flood(16, 1, 10_000, 1, count=CLOSE_AT * 4))
    for group in (claims[: CLOSE_AT - 1], claims[CLOSE_AT - 1 : CLOSE_AT], claims[CLOSE_AT:]):

        def add(connection: Connection, window: DedupIndexView, group: list[str] = group) -> None:
            for content in group:
                insert_memory(connection, f"mem_{claims.index(content):05}", content)
                put(connection, f"mem_{claims.index(content):05}", content, window)

        windows(store, add)
    for number, content in enumerate(claims):
        for asked in (content, content + " more"):
            keys = signature_keys(tokens(asked), "fact", THRESHOLD)
            with store.read() as connection:
                facts = index.find_neighbours(connection, "ann", keys, NOW)
            assert isinstance(facts, Neighbours)
            assert [item.id for item in facts.items] == [f"mem_{number:05}"]


def test_putting_an_item_in_twice_changes_nothing(store: Store) -> None:
    claims = list(flood(30, 3, 1000, 1, count=40))

    def add(connection: Connection, window: DedupIndexView) -> None:
        for number, content in enumerate(claims):
            put(connection, f"mem_{number:05}", content, window)

    with writing(store._engine) as connection:
        for number, content in enumerate(claims):
            insert_memory(connection, f"mem_{number:05}", content)
    windows(store, add)
    rows = select(TABLE.c.key, TABLE.c.item_id).order_by(TABLE.c.key, TABLE.c.item_id)
    with store.read() as connection:
        before = connection.execute(rows).all()
    windows(store, add)
    with store.read() as connection:
        assert connection.execute(rows).all() == before


def test_more_than_can_be_compared_is_said_to_be_so(store: Store) -> None:
    """Texts that share one part and else nothing: no template, so the list grows; it is cut, and says so."""
    chance = random.Random(3)  # noqa: S311
    claims = [f"shared {' '.join(f'w{chance.getrandbits(40):x}' for _ in range(13))}" for _ in range(3)]
    keys = signature_keys(tokens(claims[0]), "fact", THRESHOLD)
    with writing(store._engine) as connection:
        for number in range(3 * MOST_ROWS):
            insert_memory(connection, f"mem_{number:05}", f"unlike {number}")
            row = {"owner_id": "ann", "key": keys.stored[0], "item_id": f"mem_{number:05}", "generation": 1}
            connection.execute(TABLE.insert(), row)
    with store.read() as connection:
        facts = index.find_neighbours(connection, "ann", keys, NOW)
        others = [signature_keys(tokens(text), "fact", THRESHOLD) for text in claims[1:]]
        window = DedupIndexView(connection, None)
        window.prepare([("ann", keys), *(("ann", other) for other in others)])
        reached = [window.find_candidates("ann", one) for one in (keys, *others)]
    assert facts == Neighbours(complete=False)
    assert [one.complete for one in reached] == [False, True, True]


def test_a_claim_leads_to_so_many_items_each_read_once(store: Store) -> None:
    """A long text shares several keys with each of its neighbours; past the bound the answer is not complete."""
    keys = signature_keys(tokens(" ".join(f"w{number}" for number in range(300))), "fact", THRESHOLD)

    def reached(others: int) -> tuple[list[str], bool]:
        wanted = [
            ("ann", keys),
            *(("ann", signature_keys(tokens(f"new {n}"), "fact", THRESHOLD)) for n in range(others)),
        ]
        with store.read() as connection:
            window = DedupIndexView(connection, None)
            window.prepare(wanted)
            found = window.find_candidates("ann", keys)
        return sorted(one.neighbour.content for one in found.candidates), found.complete

    texts = [f"unlike {number:05}" for number in range(MOST_ITEMS)]
    for number, content in enumerate(texts):
        if number == MOST_ITEMS - 1:
            assert [reached(others) for others in (0, 2)] == [(texts[:-1], True)] * 2
        with writing(store._engine) as connection:
            insert_memory(connection, f"mem_{number:05}", content)
            for key in (keys.stored[number % 20], keys.stored[number % 20 + 1]):
                row = {"owner_id": "ann", "key": key, "item_id": f"mem_{number:05}", "generation": 1}
                connection.execute(TABLE.insert(), row)
    assert [reached(others)[1] for others in (0, 2)] == [False, True]
