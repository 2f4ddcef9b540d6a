"""Stored memories: written and read back, kept apart by owner, filtered, paged, taken out of force."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction
from typing import Any

import pytest
from pydantic import ValidationError
from sqlalchemy import Connection

from vouchgate.ingest.claims.claim import MemoryType, Source
from vouchgate.ingest.claims.decision import Confidence, Label
from vouchgate.ingest.claims.likeness import ItemKind, Neighbour, Neighbours
from vouchgate.ingest.claims.memory import Memory, MemoryStatus
from vouchgate.ingest.dedup.signature import signature_keys
from vouchgate.ingest.language.words import tokens
from vouchgate.storage import ids
from vouchgate.storage.claims import memories
from vouchgate.storage.claims.memories import MemoryFilter
from vouchgate.storage.dedup import index
from vouchgate.storage.dedup.window import TABLE
from vouchgate.storage.store import Store

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
ANN, BOB = frozenset({"ann"}), frozenset({"bob"})
THRESHOLD = Fraction(23, 25)


def memory(content: str = "Backups run at two every night.", *, age: int = 0, **fields: object) -> Memory:
    """A memory of ann, `age` minutes old."""
    created = NOW - timedelta(minutes=age)
    suffix = ids.new_id_suffix(created)
    values: dict[str, object] = {
        "id": ids.memory_id(suffix),
        "owner_id": "ann",
        "memory_type": MemoryType.FACT,
        "content": content,
        "source": Source.AI_SYNTHESIS,
        "status": MemoryStatus.ACTIVE,
        "confidence": Confidence.MEDIUM,
        "confidence_score": None,
        "label": Label.INFERENCE,
        "source_id": None,
        "created_at": created,
        "validity_horizon": None,
        "decision_id": ids.decision_id(suffix),
    }
    return Memory.model_validate(values | fields)


def write(store: Store, *wanted: Memory) -> None:
    """Stores memories with their dedup keys."""

    def work(connection: Connection) -> None:
        for one in wanted:
            memories.insert(connection, one)
            neighbour = Neighbour(kind=ItemKind.MEMORY, id=one.id, content=one.content)
            index.add(connection, one.owner_id, neighbour, one.memory_type.value)

    store.writer.run(sorted({one.owner_id for one in wanted}), work).result()


def found(store: Store, now: datetime = NOW, **fields: Any) -> list[Memory]:
    """What a search of ann's memories finds, unless `owners` says otherwise."""
    wanted = MemoryFilter.model_validate({"owners": ANN} | fields)
    with store.read() as connection:
        return memories.search(connection, wanted, now)


def one(
    store: Store, memory_id: str, now: datetime = NOW, owners: frozenset[str] | None = ANN
) -> Memory | None:
    """The memory of this id."""
    with store.read() as connection:
        return memories.get(connection, memory_id, now, owners=owners)


def test_a_memory_comes_back_as_it_was_written(store: Store) -> None:
    full = memory(
        "Öffnungszeiten stehen in ADR-004, \N{ZERO WIDTH SPACE}siehe dort. 🗝",
        memory_type=MemoryType.DECISION,
        source=Source.DOCUMENTATION,
        confidence=Confidence.HIGH,
        confidence_score=0.875,
        label=Label.FACT,
        source_id="ADR-004",
        validity_horizon=datetime(2027, 1, 1, 12, 0, tzinfo=timezone(timedelta(hours=5, minutes=30))),
        approved_by="reviewer-1",
        metadata={"tags": ["a", None, 1.5], "nested": {"k": True}},
    )
    plain = memory()
    write(store, full, plain)
    assert one(store, full.id) == full
    assert one(store, plain.id) == plain


def test_another_owners_memory_is_as_unknown_as_none(store: Store) -> None:
    mine, theirs = memory(), memory(owner_id="bob")
    write(store, mine, theirs)
    assert one(store, theirs.id) is None
    assert one(store, theirs.id, owners=BOB) == theirs
    assert one(store, theirs.id, owners=None) == theirs
    assert one(store, theirs.id, owners=frozenset()) is None
    assert found(store) == [mine]
    assert found(store, owners=BOB) == [theirs]
    assert found(store, owners=frozenset()) == []
    assert found(store, owners=frozenset({"an", "ann ", "ANN", "%"})) == []
    assert {m.id for m in found(store, owners=ANN | BOB)} == {mine.id, theirs.id}
    assert {m.id for m in found(store, owners=None)} == {mine.id, theirs.id}


def test_a_memory_expires_at_its_horizon_in_every_read(store: Store) -> None:
    brief = memory(validity_horizon=NOW + timedelta(hours=1))
    write(store, brief)
    just_before = NOW + timedelta(minutes=59, seconds=59)
    assert found(store, just_before) == [brief]
    assert found(store, just_before, statuses={MemoryStatus.EXPIRED}) == []
    at = NOW + timedelta(hours=1)
    expired = brief.model_copy(update={"status": MemoryStatus.EXPIRED})
    assert found(store, at) == []
    assert found(store, at, statuses={MemoryStatus.EXPIRED}) == [expired]
    assert found(store, at, statuses=set(MemoryStatus)) == [expired]
    assert one(store, brief.id, at) == expired


def test_statuses_are_listed_only_when_asked_for(store: Store) -> None:
    active, old, taken = memory("a b", age=1), memory("c d", age=2), memory("e f", age=3)
    late = memory("g h", age=4, validity_horizon=NOW + timedelta(hours=1))
    write(store, active, old, taken, late)

    def work(connection: Connection) -> tuple[bool, ...]:
        return (
            memories.supersede(connection, "ann", old.id, by=active.id, at=NOW),
            memories.retract(connection, "ann", taken.id, reason="was a mistake", at=NOW),
            memories.retract(connection, "ann", late.id, reason="also", at=NOW),
            memories.supersede(connection, "ann", old.id, by=taken.id, at=NOW),
            memories.retract(connection, "ann", old.id, reason="again", at=NOW),
            memories.retract(connection, "bob", active.id, reason="not theirs", at=NOW),
            memories.retract(connection, "ann", "mem_0", reason="nowhere", at=NOW),
        )

    assert store.writer.run(["ann"], work).result() == (True, True, True, False, False, False, False)
    assert found(store) == [active]
    superseded = found(store, statuses={MemoryStatus.SUPERSEDED})
    assert [(m.id, m.superseded_by, m.retracted_reason) for m in superseded] == [(old.id, active.id, None)]
    retracted = found(store, statuses={MemoryStatus.RETRACTED})
    assert [(m.id, m.retracted_reason) for m in retracted] == [(taken.id, "was a mistake"), (late.id, "also")]
    # past its horizon it is expired, whatever its row says
    after = NOW + timedelta(hours=2)
    assert [m.id for m in found(store, after, statuses={MemoryStatus.RETRACTED})] == [taken.id]
    assert [m.id for m in found(store, after, statuses={MemoryStatus.EXPIRED})] == [late.id]


@pytest.mark.parametrize(
    "leave",
    [
        lambda connection, id_: memories.supersede(connection, "ann", id_, by="mem_f", at=NOW),
        lambda connection, id_: memories.retract(connection, "ann", id_, reason="no", at=NOW),
    ],
)
def test_what_is_out_of_force_is_no_neighbour(store: Store, leave: Callable[[Connection, str], bool]) -> None:
    gone, stays = memory(age=1), memory()
    write(store, gone, stays)
    keys = signature_keys(tokens(gone.content), gone.memory_type.value, THRESHOLD)

    def neighbours(connection: Connection) -> set[str]:
        facts = index.find_neighbours(connection, "ann", keys, NOW)
        assert isinstance(facts, Neighbours)
        return {item.id for item in facts.items}

    with store.read() as connection:
        assert neighbours(connection) == {gone.id, stays.id}
    assert store.writer.run(["ann"], lambda connection: leave(connection, gone.id)).result()
    with store.read() as connection:
        assert neighbours(connection) == {stays.id}
        rows = connection.execute(TABLE.select().where(TABLE.c.item_id == gone.id)).all()
    assert rows == []


HITS: list[dict[str, Any]] = [
    {"memory_type": MemoryType.PROCEDURE},
    {"confidence": Confidence.HIGH},
    {"label": Label.FACT},
    {"text": "GATEWAY listens"},
    {"text": "port 8443."},
    {"memory_type": MemoryType.PROCEDURE, "label": Label.FACT, "text": "port"},
]
MISSES: list[dict[str, Any]] = [
    {"memory_type": MemoryType.PREFERENCE},
    {"memory_type": MemoryType.FACT, "label": Label.FACT},
    {"text": "listens  on"},
]


def test_each_filter_restricts(store: Store) -> None:
    plain = memory(age=2)
    other = memory(
        "The gateway listens on port 8443.",
        age=1,
        memory_type=MemoryType.PROCEDURE,
        confidence=Confidence.HIGH,
        label=Label.FACT,
        source_id="ADR-009",
    )
    write(store, plain, other)
    assert found(store) == [other, plain]
    for wanted in HITS:
        assert found(store, **wanted) == [other], wanted
    for wanted in MISSES:
        assert found(store, **wanted) == [], wanted


SUBSTRINGS = [
    ("Retries stop at 100% load.", ["100%", "% l", "STOP AT"], ["1%0", "%stop%", "Retries%load"]),
    ("The flag is cache_only here.", ["e_o", "CACHE_ONLY"], ["cache.only", "cach__only"]),
    ("Logs go to /var/log/app today.", ["/var/log", "/", "//"[:1]], ["//var", "\\var"]),
    (r"The share is \\files\team.", ["\\\\files", "\\t"], ["\\\\\\", "/"]),
    ("Der Zähler heißt Größe.", ["Zähler", "ZäHLER", "Größe"], ["Zahler"]),
    ("It's 'quoted'; -- really.", ["'quoted';", "It's", "--"], ["''"]),
]


def test_text_is_a_substring_and_not_a_pattern(store: Store) -> None:
    for number, (content, hits, misses) in enumerate(SUBSTRINGS):
        owners = frozenset({f"owner{number}"})
        wanted = memory(content, owner_id=f"owner{number}")
        write(store, wanted, memory("Something else entirely", owner_id=f"bob{number}"))
        for text in hits:
            assert found(store, owners=owners, text=text) == [wanted], text
        for text in misses:
            assert found(store, owners=owners, text=text) == [], text


@pytest.mark.on("postgresql")
def test_a_text_that_cannot_be_stored_finds_nothing_and_raises_nothing(store: Store) -> None:
    write(store, memory())
    for text in ("\x00", "a\x00b", "\ud800", "x" * 9000, "\u202e", ""):
        assert one(store, text) is None, text
        assert found(store, source_id=text) == [], text
        if text:
            assert found(store, text=text) == [], text


@pytest.mark.on("postgresql")
@pytest.mark.parametrize("after", ["\x00", "\udfff"])
def test_a_cursor_that_cannot_be_an_id_ends_the_list(store: Store, after: str) -> None:
    write(store, memory())
    assert found(store, after=after) == []


def test_pages_are_newest_first_and_lose_nothing(store: Store) -> None:
    owners = ["ann", "bob", "cat"]
    wanted = [memory(f"Note number {n}.", age=n, owner_id=owners[n % 3]) for n in range(12)]
    write(store, *wanted)
    in_view = ANN | BOB
    for size in (1, 2, 3, 7, 200):
        got: list[Memory] = []
        after = None
        while page := found(store, owners=in_view, after=after, limit=size):
            assert len(page) <= size
            got += page
            after = page[-1].id
        assert got == [m for m in wanted if m.owner_id in in_view], size


@pytest.mark.parametrize("limit", [0, -1, 201])
def test_a_page_has_1_to_200(limit: int) -> None:
    with pytest.raises(ValidationError):
        MemoryFilter(owners=None, limit=limit)


def test_what_ends_soon_is_a_filter_of_its_own(store: Store) -> None:
    soon = memory("a b", age=1, validity_horizon=NOW + timedelta(days=30))
    later = memory("c d", age=2, validity_horizon=NOW + timedelta(days=30, seconds=1))
    ended = memory("e f", age=3, validity_horizon=NOW)
    write(store, soon, later, ended, memory("g h", age=4))
    assert found(store, validity="ending") == [soon]
    assert found(store, NOW + timedelta(seconds=1), validity="ending") == [soon, later]
    everything = set(MemoryStatus)
    assert [m.id for m in found(store, validity="ending", statuses=everything)] == [soon.id, ended.id]
