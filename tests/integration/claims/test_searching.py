"""A search in words finds what fits, best first, alike on both databases and whether or not it is indexed yet."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select, text

from tests.claims import NOW
from tests.reviews import queue_of, reviewer, stored, waiting
from vouchgate.ingest.claims.claim import MemoryType, Source
from vouchgate.ingest.claims.decision import Label
from vouchgate.ingest.claims.likeness import Embedding
from vouchgate.review.answers import Approved, Retracted
from vouchgate.storage.claims import searching, word_index
from vouchgate.storage.claims.memories import MemoryFilter
from vouchgate.storage.claims.searching import TooManyOwners
from vouchgate.storage.dedup import vectors
from vouchgate.storage.store import Store
from vouchgate.workers.word_index import WordIndexer, rebuild, take_in

ANN = frozenset({"ann"})
TEXTS = (
    "The billing service keeps its invoices in PostgreSQL 15.",
    "Billing retries a failed card payment three times, a day apart.",
    "The shop keeps its sessions in Redis.",
    "Invoices are numbered per country; the class InvoiceNumber does it.",
    "Ärzte ohne Grenzen bekommt eine Spende.",
)


def find(store: Store, q: str | None, **asked: Any) -> list[str]:
    with store.read() as connection:
        wanted = MemoryFilter(**{"owners": ANN, "q": q} | asked)
        return [one.content for one in searching.find(connection, wanted, asked.get("as_of", NOW))]


def indexed(store: Store) -> int:
    with store.read() as connection:
        return connection.scalar(select(func.count()).select_from(word_index.TABLE)) or 0


def take_all_in(store: Store, owner: str = "ann") -> None:
    while take_in(store, owner):
        pass


def test_words_are_found_before_and_after_they_are_indexed(store: Store) -> None:
    for content in TEXTS:
        stored(store, content)
    theirs = stored(store, "The billing of bob uses invoices of PostgreSQL and Redis.", owner_id="bob")
    assert indexed(store) == 0  # nobody who stores pays for it
    for _ in range(3):
        cases: dict[str, tuple[int, ...]] = {
            "which database does billing use for an invoice": (0, 1, 3),
            "retrying payments": (1,),
            "session": (2,),
            "invoice number": (3, 0),  # also as a part of a name
            "ÄRZTE": (4,),
            "ostgre": (0,),  # no word, but a part of the text
            "unheard of": (),
            'billing" OR (redis AND -"': (2, 0, 1),  # the rarer word first
            "NEAR(* ^ 'x': & | ! <-> \\ %_": (),
        }
        for q, expected in cases.items():
            found = find(store, q)
            assert found[:1] == [TEXTS[place] for place in expected[:1]], q
            assert {*found} == {TEXTS[place] for place in expected}, q
        assert find(store, "billing", limit=1, owners=frozenset({"ann", "bob"})) != []
        assert find(store, "billing", owners=None, memory_type=MemoryType.FACT)[-1:] != []
        assert theirs.content in find(store, "redis", owners=None)
        if indexed(store) == 0:
            take_all_in(store)
            assert indexed(store) == len(TEXTS)  # and nothing of bob
            asyncio.run(WordIndexer(store).job.run_once(datetime.now(UTC)))
            assert indexed(store) == len(TEXTS)  # too little for the worker
        else:
            rebuild(store, None, lambda done: None)
            assert indexed(store) == len(TEXTS) + 1
    stored(store, "A newer invoice service of billing keeps PostgreSQL out.")
    assert len(find(store, "PostgreSQL billing")) == 3  # with what is in the tail


def test_what_left_is_found_for_the_time_before_alone(store: Store) -> None:
    early, late, after = (NOW + timedelta(hours=hours) for hours in (1, 3, 5))
    queue = queue_of(store)
    old = stored(store, "The crane of the quay listens on port 8443")
    until = NOW + timedelta(hours=2)
    passing = stored(store, "The crane is painted until noon.", validity_horizon=until)
    item = waiting(store, "The crane of the quay listens on port 9443")
    approved = queue.approve(reviewer(), item.id, version=1, supersede=True, now=until)
    assert isinstance(approved, Approved) and approved.superseded == old.id
    new = approved.memory
    gone = queue.retract(reviewer(), new.id, reason="It broke.", now=NOW + timedelta(hours=4))
    assert isinstance(gone, Retracted)
    for taken in (False, True):
        if taken:
            take_all_in(store)
        for q in ("the crane", None):
            assert {*find(store, q, as_of=early)} == {old.content, passing.content}
            assert find(store, q, as_of=late) == [new.content]
            assert find(store, q, as_of=after) == []
            assert find(store, q, as_of=NOW - timedelta(days=1)) == []
    assert find(store, "crane") == [passing.content]  # now
    assert {*find(store, "crane", as_of="2026-05-05")} == set()  # a day is its beginning in UTC


def test_filters_narrow_what_is_ranked(store: Store) -> None:
    first = stored(store, "The quay crane lifts nine tonnes.")
    second = stored(store, "I like the quay crane.", memory_type=MemoryType.PREFERENCE)
    item = waiting(store, "The quay crane is green.")
    approved = queue_of(store).approve(reviewer(), item.id, version=1, now=NOW)
    assert isinstance(approved, Approved)
    third = approved.memory
    take_all_in(store)
    for asked, expected in (
        ({"memory_type": MemoryType.PREFERENCE}, [second]),
        ({"source": Source.AI_SYNTHESIS}, [third]),
        ({"label": Label.INFERENCE}, [first, second, third]),
        ({"label": Label.FACT}, []),
        ({"agent": "agent-1"}, [first, second, third]),
        ({"agent": "agent-2"}, []),
        ({"created_from": NOW + timedelta(days=1)}, []),
        ({"created_to": NOW + timedelta(days=1)}, [first, second, third]),
        ({"source_id": "ADR-7"}, []),
    ):
        for q in ("crane", None):
            assert {*find(store, q, **asked)} == {one.content for one in expected}, (asked, q)
    everybody = [f"owner-{number}" for number in range(searching.MOST_OWNERS + 1)]
    store.writer.run(everybody, lambda connection: None).result()
    with pytest.raises(TooManyOwners, match="name one"):
        find(store, "crane", owners=None)


def test_an_old_database_is_searched_while_it_is_filled(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "_TAIL_READ", 3)
    monkeypatch.setattr(word_index, "TAIL", 2)
    for content in TEXTS:
        stored(store, content)
    assert find(store, "invoice")[:1] == [TEXTS[3]]
    assert {*find(store, "which database does billing use")} == {*TEXTS[:2]}
    with store.read() as connection:
        late = word_index.next_batch(connection, "ann", 4)
    rows = word_index.rows_of(late, store.dialect)
    put = partial(word_index.put, batch=late, rows=rows)
    assert store.writer.run(["ann"], put).result() is True
    assert store.writer.run(["ann"], put).result() is False  # another process was faster
    assert indexed(store) == 4 and find(store, "Spende") == [TEXTS[4]]


def test_what_is_erased_is_in_no_index(store: Store) -> None:
    held = stored(store, "The zeppelin hangar is rented.")
    other = stored(store, "The zeppelin flies on Mondays.")
    take_all_in(store)

    def erase(connection: Any) -> None:
        word_index.remove(connection, "ann", [held.id, "mem_unknown"])

    store.writer.run(["ann"], erase).result()
    assert indexed(store) == 1 and find(store, "zeppelin") == [other.content]
    store.scrub()
    if store.dialect == "sqlite":
        with store.read() as connection:
            blocks = connection.execute(text("SELECT block FROM memory_fts_data")).scalars()
            kept = b"".join(bytes(block) for block in blocks)
        assert b"hangar" not in kept and b"monda" in kept


def test_meaning_is_one_of_two_orders(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [stored(store, content).id for content in TEXTS[:3]]
    monkeypatch.setattr(vectors, "nearest", lambda *_, **__: [ids[2], ids[1]])
    meant = Embedding(model="m", vector=b"")
    with store.read() as connection:
        wanted = MemoryFilter(owners=ANN, q="billing invoices")
        found = [one.id for one in searching.find(connection, wanted, NOW, meant)]
    assert found == [ids[1], ids[0], ids[2]]  # both orders have the first


@given(q=st.text(min_size=1, max_size=60))
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_no_query_is_an_error(store: Store, q: str) -> None:
    if not indexed(store):
        stored(store, TEXTS[0])
        take_all_in(store)
    assert find(store, q) in ([], [TEXTS[0]])
