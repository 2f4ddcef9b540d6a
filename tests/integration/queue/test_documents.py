"""Documents that wait to be checked: nothing that was kept is lost, whoever dies, and nothing is done by two."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.repos import TestRepository
from tests.reviews import set_mode
from vouchgate.documents.gating import DocumentGate
from vouchgate.gate.gate import Gate
from vouchgate.ingest.claims.citation import Citation
from vouchgate.ingest.claims.modes import Mode
from vouchgate.ingest.claims.source import SourceReading
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.policy import DocumentPolicy
from vouchgate.ingest.sources.git.source import GitSource
from vouchgate.review.ending.expiry import expire
from vouchgate.review.queue import ReviewQueue
from vouchgate.sources.reader import Sources
from vouchgate.storage import ids
from vouchgate.storage.queue import documents
from vouchgate.storage.queue.documents import MOST_OF_ONE_OWNER, Added, DocumentState, KeyUsed, TooMany
from vouchgate.storage.store import Store
from vouchgate.workers.documents import AT_ONCE, LEASE_SECONDS, DocumentResult, DocumentWorker

POLICY = load_policy()
NOW = datetime.now(UTC)
LATER = timedelta(seconds=LEASE_SECONDS + 1)
ADR = "# ADR-0001: The port\n\nStatus: Accepted\n\n## Decision\n\nThe gateway listens on port 8080.\n"
TEXT = "The gateway listens on port 8080 (ADR-0001).\n"


def row(owner: str = "ann", *, by: str = "tok_1", key: str | None = None, text: str = TEXT) -> dict[str, Any]:
    """A document as it is kept."""
    return {
        "owner_id": owner,
        "id": ids.document_id(ids.new_id_suffix(NOW)),
        "submitted_by": by,
        "created_at": NOW,
        "sent": json.dumps({"content": text}),
        "sent_digest": text,
        "idempotency_key": key,
    }


def add(
    store: Store, made: dict[str, Any], limits: DocumentPolicy = POLICY.documents
) -> Added | KeyUsed | TooMany:
    """Keeps it."""
    return store.writer.run([made["owner_id"]], lambda c: documents.add(c, made, limits)).result()


def kept(store: Store, **more: Any) -> str:
    """Keeps a document; gives its id."""
    added = add(store, row(**more))
    assert isinstance(added, Added)
    return added.id


def get(store: Store, document_id: str) -> documents.DocumentRecord:
    """The document as it is now."""
    with store.read() as connection:
        found = documents.get(connection, document_id, owners=None)
    assert found is not None
    return found


def lease(store: Store, at: datetime, name: str, most: int = 8) -> list[documents.LeasedDocument]:
    """Takes what is due."""
    return store.writer.run((), lambda c: documents.lease(c, at, most, LEASE_SECONDS, name)).result()


class Hangs:
    """A source that never answers; `asked` when it was."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def read(self, citation: Citation, *, fresh: bool = False) -> SourceReading:
        self.asked.set()
        await asyncio.sleep(3600)
        raise AssertionError(citation.value)


@pytest.fixture
def sources(tmp_path: Path) -> Iterator[Sources]:
    """A repository with one record."""
    TestRepository(tmp_path / "repo").commit("Decide", {"docs/adrs/0001-port.md": ADR})
    opened = Sources(GitSource([tmp_path / "repo"]), {})
    yield opened
    opened.close()


@pytest.fixture
def gate(store: Store, sources: Sources) -> Iterator[Gate]:
    """A gate over it."""
    made = Gate(POLICY, store, sources)
    yield made
    made.close()


def work(store: Store, gate: Gate, source: Any, at: datetime) -> Counter[DocumentResult]:
    """One round of a worker at this time."""
    checker = DocumentGate(gate, source)
    try:
        return asyncio.run(DocumentWorker(store, POLICY, checker).job.run_once(at))
    finally:
        checker.close()


def test_an_owner_has_so_many_and_no_more(store: Store) -> None:
    few = DocumentPolicy(waiting=2, kept=3)
    for _ in range(2):
        assert isinstance(add(store, row(), few), Added)
    assert add(store, row(), few) == TooMany("waiting", 2)
    assert isinstance(add(store, row("bob"), few), Added)
    first = next(each for each in lease(store, NOW, "l1") if each.owner_id == "ann")
    settle: dict[str, Any] = {"at": NOW, "days": 1.0, "forms": {"report": "{}"}}
    assert store.writer.run(
        ["ann"], lambda c: documents.settle(c, first, DocumentState.CHECKED, **settle)
    ).result()
    assert isinstance(add(store, row(), few), Added)
    assert add(store, row(), DocumentPolicy(waiting=9, kept=3)) == TooMany("kept", 3)


def test_a_key_stands_for_one_document_of_one_token(store: Store) -> None:
    first = add(store, row(key="k"))
    assert isinstance(first, Added)
    assert add(store, row(key="k")) == Added(first.id, repeated=True)
    assert isinstance(add(store, row(key="k", text="Another.")), KeyUsed)
    assert add(store, row(key="k", by="tok_2")) != Added(first.id, repeated=True)


def test_nobody_else_s_is_found(store: Store) -> None:
    document_id = kept(store)
    with store.read() as connection:
        for owners, by, there in (
            (frozenset({"ann"}), "tok_1", True),
            (None, None, True),
            (frozenset({"bob"}), None, False),
            (frozenset({"ann"}), "tok_2", False),
        ):
            assert (
                documents.get(connection, document_id, owners=owners, submitted_by=by) is not None
            ) is there
            form = documents.rendered(connection, document_id, "html", owners=owners, submitted_by=by)
            assert (form is not None) is there


def test_each_is_leased_once_and_comes_back_when_the_lease_ends(store: Store) -> None:
    names = {kept(store) for _ in range(3)}
    first, second = lease(store, NOW, "a", 2), lease(store, NOW, "b", 2)
    assert {each.id for each in (*first, *second)} == names
    assert lease(store, NOW, "c") == []
    again = lease(store, NOW + LATER, "d")
    assert {each.id for each in again} == names
    assert {each.attempts for each in again} == {2}
    late = store.writer.run(
        ["ann"],
        lambda c: documents.settle(c, first[0], DocumentState.GIVEN_UP, at=NOW, days=1.0, forms={}),
    )
    assert late.result() is False  # another has it by now
    assert get(store, first[0].id).state is DocumentState.WAITING


def settled(store: Store, held: documents.LeasedDocument, at: datetime) -> None:
    """Its report is there."""
    store.writer.run(
        [held.owner_id],
        lambda c: documents.settle(c, held, DocumentState.CHECKED, at=at, days=1.0, forms={"report": "{}"}),
    ).result()


def test_owners_are_served_in_turn_however_many_documents_one_has(store: Store) -> None:
    for _ in range(MOST_OF_ONE_OWNER + 2):
        kept(store, owner="ann")
    kept(store, owner="bob")
    kept(store, owner="cleo")
    first = lease(store, NOW, "a", 4)
    assert sorted(each.owner_id for each in first) == ["ann", "ann", "bob", "cleo"]
    # Alone, an owner has half of a worker's places, and a newcomer need not wait for theirs.
    assert MOST_OF_ONE_OWNER * 2 == AT_ONCE
    assert [each.owner_id for each in lease(store, NOW, "b", AT_ONCE)] == ["ann"] * (MOST_OF_ONE_OWNER - 2)
    assert lease(store, NOW, "c") == []
    with store.read() as connection:
        assert documents.next_due(connection) == NOW + timedelta(seconds=LEASE_SECONDS)
    kept(store, owner="dora")
    assert [each.owner_id for each in lease(store, NOW, "d")] == ["dora"]
    with store.read() as connection:
        assert documents.next_due(connection) == NOW + timedelta(seconds=LEASE_SECONDS)


def test_whoever_was_served_longest_ago_comes_first(store: Store) -> None:
    served = []
    for owner in ("ann", "bob", "cleo"):
        for _ in range(3):
            kept(store, owner=owner)
    for number in range(9):
        (held,) = lease(store, NOW, f"l{number}", 1)
        settled(store, held, NOW + timedelta(seconds=number))
        served.append(held.owner_id)
    assert served == ["ann", "bob", "cleo"] * 3


def test_pages_are_of_one_owner_and_what_is_deleted_is_gone(store: Store) -> None:
    mine = [kept(store) for _ in range(3)]
    kept(store, by="tok_2")
    kept(store, owner="bob")
    ann = frozenset({"ann"})

    def page(after: str | None = None, by: str | None = "tok_1") -> list[str]:
        with store.read() as connection:
            found = documents.listing(connection, owners=ann, submitted_by=by, after=after, limit=2)
        return [each.id for each in found]

    newest = sorted(mine, reverse=True)
    assert (page(), page(newest[1]), page(newest[2])) == (newest[:2], newest[2:], [])
    assert len(page(by=None)) == 2
    held = lease(store, NOW, "a")[0]

    def delete(owner: str) -> str | None:
        return store.writer.run([owner], lambda c: documents.remove(c, owner, held.id)).result()

    assert delete("nobody") is None
    assert delete(held.owner_id) == TEXT
    assert delete(held.owner_id) is None
    settled(store, held, NOW)  # whoever was at it finds nothing to write to
    with store.read() as connection:
        assert documents.get(connection, held.id, owners=None) is None


@pytest.mark.on("sqlite")
def test_a_worker_checks_what_waits(store: Store, gate: Gate, sources: Sources) -> None:
    document_id = kept(store)
    assert work(store, gate, sources, NOW) == Counter({DocumentResult.PASSED: 1})
    found = get(store, document_id)
    assert (found.state, json.loads(found.report or "")["passed"]) == (DocumentState.CHECKED, True)
    assert work(store, gate, sources, NOW + LATER) == Counter()


def test_what_a_worker_that_died_held_is_done_by_another(store: Store, gate: Gate, sources: Sources) -> None:
    document_id = kept(store)
    assert [each.id for each in lease(store, NOW, "of one that dies")] == [document_id]
    assert work(store, gate, sources, NOW + timedelta(seconds=1)) == Counter()
    assert work(store, gate, sources, NOW + LATER) == Counter({DocumentResult.PASSED: 1})


@pytest.mark.on("sqlite")
def test_what_every_worker_dies_of_is_given_up(store: Store, gate: Gate, sources: Sources) -> None:
    document_id = kept(store)
    for number in range(documents.MOST_ATTEMPTS):
        assert len(lease(store, NOW + number * LATER, f"dies {number}")) == 1
    at = NOW + documents.MOST_ATTEMPTS * LATER
    assert work(store, gate, sources, at) == Counter({DocumentResult.GIVEN_UP: 1})
    found = get(store, document_id)
    assert (found.state, found.report) == (DocumentState.GIVEN_UP, None)


@pytest.mark.on("sqlite")
def test_a_check_that_fails_is_tried_again_and_in_the_end_given_up(
    store: Store, gate: Gate, sources: Sources
) -> None:
    broken = row() | {"sent": "{}"}
    add(store, broken)
    document_id = broken["id"]
    came: Counter[DocumentResult] = Counter()
    for number in range(documents.MOST_ATTEMPTS):
        came += work(
            store, gate, sources, datetime.now(UTC) + (number + 1) * LATER
        )  # it comes due by the clock
    assert came == Counter({DocumentResult.AGAIN: 2, DocumentResult.GIVEN_UP: 1})
    assert get(store, document_id).state is DocumentState.GIVEN_UP


def test_what_is_read_only_is_not_taken_and_keeps_nobody_s_waiting(store: Store) -> None:
    first, second = kept(store), kept(store, owner="bob")
    set_mode(store, "ann", Mode.READ_ONLY)
    (taken,) = lease(store, NOW, "one", most=1)
    with store.read() as connection:
        assert documents.next_due(connection) == NOW + timedelta(seconds=LEASE_SECONDS)
    set_mode(store, "ann", Mode.ENFORCE)
    assert [taken.id, *(one.id for one in lease(store, NOW, "two"))] == [second, first]


def test_a_service_that_ends_gives_back_what_it_was_at(store: Store, gate: Gate, sources: Sources) -> None:
    document_id = kept(store)

    async def interrupted() -> None:
        source = Hangs()
        checker = DocumentGate(gate, source)
        job = DocumentWorker(store, POLICY, checker).job
        running = asyncio.create_task(job.run(lambda results: None))
        await source.asked.wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        checker.close()

    asyncio.run(interrupted())
    assert get(store, document_id).state is DocumentState.WAITING
    (held,) = lease(store, datetime.now(UTC), "next")
    assert held.attempts == 1  # an end is no failure


def test_reports_are_forgotten_after_their_days_and_what_waits_never(
    store: Store, gate: Gate, sources: Sources
) -> None:
    checked = kept(store)
    began = datetime.now(UTC)  # the days count from when it was checked, by the clock
    work(store, gate, sources, began)
    waiting = kept(store)
    queue = ReviewQueue(store, POLICY)
    days = timedelta(days=POLICY.documents.days)
    assert expire(queue, began + days - timedelta(minutes=1)).documents == 0
    assert expire(queue, began + days + timedelta(minutes=10)).documents == 1
    with store.read() as connection:
        assert documents.get(connection, checked, owners=None) is None
    assert expire(queue, began + 1000 * days).documents == 0
    assert get(store, waiting).state is DocumentState.WAITING
