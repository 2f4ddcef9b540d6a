"""Damage to the index is found and mended while others write; memories past their horizon leave it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from fractions import Fraction

import pytest
from sqlalchemy import Connection, delete, insert, select, update

from tests.claims import NOW, examined, submission_of
from tests.integration.dedup.test_dedup_templates import flood
from tests.integration.dedup.test_reindex import OWNERS, ROOM, THERE, assert_exact, in_force, rows
from tests.reviews import index_tails, queue_of, reviewer, set_mode, stored
from vouchgate.ingest.claims.modes import Mode
from vouchgate.ingest.dedup.signature import signature_keys
from vouchgate.storage.claims import memories
from vouchgate.storage.claims.submit import Decided
from vouchgate.storage.dedup import reindex as reindexing
from vouchgate.storage.dedup import similar, upkeep
from vouchgate.storage.dedup.builds import META, NEXT, build_of
from vouchgate.storage.dedup.upkeep import KEYS, TEMPLATES, FaultKind, verify
from vouchgate.storage.dedup.window import DedupIndexView
from vouchgate.storage.store import Store

HERE = Fraction(23, 25)
Damage = Callable[[Connection], object]


def damage(store: Store, work: Damage) -> None:
    """Does what nobody should."""
    store.writer.run([], work).result()


def troubles(store: Store, owner_id: str | None = None) -> set[tuple[FaultKind, str, str]]:
    found = verify(store, owner_id)
    assert found.faults >= len(found.first)
    return {(fault.trouble, fault.owner_id, fault.item_id) for fault in found.first}


def first(store: Store, owner_id: str = "ann") -> tuple[int, str]:
    """Key and item of some row of this owner that is under a template."""
    items = in_force(store)[owner_id]
    return next(
        (key, item_id)
        for owner, key, item_id in sorted(rows(store))
        if owner == owner_id
        and item_id in items
        and key not in signature_keys(items[item_id][1], items[item_id][0], HERE).stored
    )


def drop_row(connection: Connection, key: int, item_id: str) -> None:
    one = (KEYS.c.owner_id == "ann") & (KEYS.c.key == key) & (KEYS.c.item_id == item_id)
    assert connection.execute(delete(KEYS).where(one)).rowcount == 1


@pytest.mark.on("sqlite")
def test_nothing_is_wrong_with_an_index_that_was_left_alone(filled: Store) -> None:
    found = verify(filled)
    assert (found.faults, found.first) == (0, [])
    assert found.items == sum(map(len, in_force(filled).values()))
    assert found.rows == len(rows(filled))
    assert found.templates > 0
    one = verify(filled, "ann")
    assert (one.items, one.faults) == (len(in_force(filled)["ann"]), 0)
    assert 0 < one.rows < found.rows
    assert verify(filled, "nobody") == upkeep.Checked()


def mended(store: Store, before: set[tuple[str, int, str]] | None = None) -> dict[FaultKind, int]:
    done, left = upkeep.repair(store)
    assert left.faults == 0
    assert_exact(store, HERE)
    if before is not None:
        assert rows(store) == before
    return dict(done)


def test_a_lost_row(filled: Store) -> None:
    before = rows(filled)
    key, item_id = first(filled)
    damage(filled, lambda c: drop_row(c, key, item_id))
    assert troubles(filled) == {(FaultKind.MISSING, "ann", item_id)}
    assert troubles(filled, "bob") == set()
    upkeep.repair(filled, "bob")
    assert troubles(filled) == {(FaultKind.MISSING, "ann", item_id)}
    assert mended(filled, before) == {FaultKind.MISSING: 1}


@pytest.mark.on("sqlite")
def test_all_rows_of_an_owner_lost(filled: Store) -> None:
    damage(filled, lambda c: c.execute(delete(KEYS).where(KEYS.c.owner_id == "ann")))
    set_mode(filled, "ann", Mode.READ_ONLY)  # it is no change of theirs
    found = verify(filled)
    assert found.faults == len(in_force(filled)["ann"])
    assert len(found.first) == upkeep.SHOWN
    assert mended(filled) == {FaultKind.MISSING: found.faults}


def test_a_lost_template(filled: Store) -> None:
    with filled.read() as connection:
        template = connection.execute(select(TEMPLATES).where(TEMPLATES.c.owner_id == "bob")).first()
    assert template is not None
    one = (
        (TEMPLATES.c.owner_id == "bob") & (TEMPLATES.c.key == template.key) & (TEMPLATES.c.id == template.id)
    )
    damage(filled, lambda c: c.execute(delete(TEMPLATES).where(one)))
    found = verify(filled)
    assert {fault.owner_id for fault in found.first} == {"bob"}
    assert mended(filled)[FaultKind.MISSING] > 0


@pytest.mark.on("sqlite")
@pytest.mark.parametrize("words", ["not json", "7", '["some", 3]'])
def test_a_template_whose_words_cannot_be_read(filled: Store, words: str) -> None:
    unreadable(filled, words)


@pytest.mark.on("postgresql")
def test_neither_are_those_of_postgresql(filled: Store) -> None:
    unreadable(filled, "not json")


def unreadable(filled: Store, words: str) -> None:
    with filled.read() as connection:
        template = connection.execute(select(TEMPLATES).where(TEMPLATES.c.owner_id == "bob")).first()
    assert template is not None
    one = (
        (TEMPLATES.c.owner_id == "bob") & (TEMPLATES.c.key == template.key) & (TEMPLATES.c.id == template.id)
    )
    damage(filled, lambda c: c.execute(update(TEMPLATES).where(one).values(words=words)))
    assert (FaultKind.TEMPLATE, "bob", template.id) in troubles(filled)
    of_bob = in_force(filled)["bob"].values()
    with filled.read() as connection:  # what a claim is told meanwhile
        reached = [
            DedupIndexView(connection, None).find_candidates("bob", signature_keys(w, kind, HERE))
            for kind, w in of_bob
        ]
    assert not all(one.complete for one in reached)
    assert mended(filled)[FaultKind.TEMPLATE] == 1


def test_rows_too_many(filled: Store) -> None:
    """Of an item that is nowhere, of one that is out of force, of another owner, and under a wrong key."""
    before = rows(filled)
    key, item_id = first(filled)
    gone = stored(filled, "It will be gone")
    queue_of(filled).retract(reviewer(), gone.id, reason="Gone.", now=NOW)
    strays = [("ann", 5, "mem_nowhere"), ("ann", 6, gone.id), ("bob", key, item_id), ("ann", 7, item_id)]
    values = [{"owner_id": o, "key": k, "item_id": i, "generation": 1} for o, k, i in strays]
    damage(filled, lambda c: c.execute(insert(KEYS), values))
    assert troubles(filled) == {(FaultKind.STRAY, owner, item) for owner, _, item in strays}
    assert mended(filled, before) == {FaultKind.STRAY: 4}


@pytest.mark.on("sqlite")
def test_a_row_that_was_moved(filled: Store) -> None:
    before = rows(filled)
    key, item_id = first(filled)
    one = (KEYS.c.owner_id == "ann") & (KEYS.c.key == key) & (KEYS.c.item_id == item_id)
    damage(filled, lambda c: c.execute(update(KEYS).where(one).values(key=12345)))
    assert troubles(filled) == {(trouble, "ann", item_id) for trouble in (FaultKind.MISSING, FaultKind.STRAY)}
    assert mended(filled, before) == {FaultKind.STRAY: 1, FaultKind.MISSING: 1}


@pytest.mark.on("sqlite")
def test_rows_of_an_index_that_is_not_there(filled: Store) -> None:
    before = rows(filled)
    key, item_id = first(filled)
    one = (KEYS.c.owner_id == "ann") & (KEYS.c.key == key) & (KEYS.c.item_id == item_id)
    damage(filled, lambda c: c.execute(update(KEYS).where(one).values(generation=77)))
    template = {"owner_id": "ann", "key": 4, "id": "tpl_00", "words": "[]", "generation": 78}
    damage(filled, lambda c: c.execute(insert(TEMPLATES), template))
    found = {(FaultKind.TEMPLATE, "ann", "tpl_00"), (FaultKind.STRAY, "ann", item_id)}
    assert troubles(filled) == found
    assert mended(filled, before) == dict.fromkeys(
        FaultKind, 1
    )  # without that row the item is found by one key less


@pytest.mark.on("sqlite")
def test_text_that_was_changed_by_hand(filled: Store) -> None:
    kept = stored(filled, "The lamp in the hall is green")
    changed = update(memories.TABLE).where(memories.TABLE.c.id == kept.id).values(content="The gate is shut")
    damage(filled, lambda c: c.execute(changed))
    assert troubles(filled) == {(trouble, "ann", kept.id) for trouble in (FaultKind.MISSING, FaultKind.STRAY)}
    mended(filled)


def test_while_another_index_is_built(filled: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows are none too many; those that belong to no item are, and the old one's go in peace."""
    monkeypatch.setattr(reindexing, "BATCH", 40)
    monkeypatch.setattr(reindexing, "CLEAN_BATCH", 200)
    monkeypatch.setattr(reindexing, "REST", 0.0)
    seen: list[int] = []

    def look(done: int, total: int) -> None:
        assert verify(filled).faults == 0
        if len(seen) == 2:
            with filled.read() as connection:
                following = build_of(connection.scalar(select(META.c.value).where(META.c.name == NEXT)))
            assert following is not None
            row = {"owner_id": "ann", "key": 5, "item_id": "mem_no", "generation": following.generation}
            damage(filled, lambda c: c.execute(insert(KEYS), row))
            assert troubles(filled) == {(FaultKind.STRAY, "ann", "mem_no")}
            assert upkeep.repair(filled)[0] == {FaultKind.STRAY: 1}
        seen.append(done)

    reindexing.reindex(filled._engine, THERE, look)
    assert len(seen) > 6
    assert_exact(filled, THERE)


def test_repair_while_claims_come_in(filled: Store) -> None:
    """Rows vanish and strays appear while three owners send, and repair runs again and again."""
    enough = threading.Event()
    sent: list[str] = []
    failed: list[BaseException] = []

    def send() -> None:
        try:
            for content in flood(31, 3, 60, 2, count=400, edited=0.2):
                for owner_id in OWNERS:
                    if enough.is_set():
                        return
                    one = examined(content, owner_id=owner_id, under=ROOM)
                    assert isinstance(filled.writer.submit(submission_of(one)).result(), Decided)
                    sent.append(content)
        except BaseException as error:  # noqa: BLE001  (told below, in the thread of the test)
            failed.append(error)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        for number in range(1, 5):
            key, item_id = first(filled)
            damage(filled, lambda c, k=key, i=item_id: drop_row(c, k, i))  # type: ignore[misc]
            stray = {"owner_id": "bob", "key": number, "item_id": item_id, "generation": 1}
            damage(filled, lambda c, row=stray: c.execute(insert(KEYS), row))  # type: ignore[misc]
            before = len(sent)
            done, left = upkeep.repair(filled)
            assert left.faults == 0
            assert done == {FaultKind.STRAY: 1, FaultKind.MISSING: 1}
            assert len(sent) > before  # it went on meanwhile
    finally:
        enough.set()
        thread.join()
    assert not failed
    assert_exact(filled, HERE)


def test_the_similar_index_is_made_anew(filled: Store) -> None:
    def kept() -> list[tuple[object, ...]]:
        index_tails(filled)
        with filled.read() as connection:
            return sorted(map(tuple, connection.execute(select(similar.TABLE))))

    before = kept()
    told: list[int] = []
    stray = {"owner_id": "ann", "key": 1, "memory_id": "mem_no"}
    damage(filled, lambda c: c.execute(insert(similar.TABLE), stray))
    damage(filled, lambda c: c.execute(delete(similar.TABLE).where(similar.TABLE.c.owner_id == "bob")))
    assert upkeep.rebuild_similar(filled, "bob", told.append) == told[-1] > 0
    assert kept() == sorted([*before, ("ann", 1, "mem_no")])
    set_mode(filled, "ann", Mode.READ_ONLY)
    assert upkeep.rebuild_similar(filled, None, told.append) == told[-1]
    set_mode(filled, "ann", Mode.ENFORCE)
    assert kept() == before
