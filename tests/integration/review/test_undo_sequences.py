"""What is found by what, after decisions were taken back: schedule and vectors come back with the item, and any
sequence of acts leaves index, counters and log whole. Of two who take one decision back at once, one does."""

from __future__ import annotations

import struct
import threading
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from tests.claims import NOW, examined, policy, submission_of
from tests.conftest import THRESHOLD
from tests.integration.review.test_review_undo import LATER, LONG, SOON, TEXT, rejected, undone
from tests.reviews import assert_consistent, everything, index_tails, queue_of, reviewer, waiting
from vouchgate.ingest.checks.hedge import HedgeDetector
from vouchgate.ingest.claims.claim import Claim, MemoryType, Source
from vouchgate.ingest.claims.likeness import Embedding
from vouchgate.ingest.claims.people import Principal
from vouchgate.ingest.claims.source import Unreachable
from vouchgate.ingest.claims.waiting import PendingMemory, ReviewStatus
from vouchgate.ingest.pipeline import Examined, examine, inspect
from vouchgate.ingest.policy import Policy
from vouchgate.review.answers import AlreadyDecided, ApprovalRefused, Approved, NotUndoable, Rejected, Undone
from vouchgate.review.queue import ReviewQueue
from vouchgate.storage.claims import memories
from vouchgate.storage.claims.submit import Decided
from vouchgate.storage.dedup import similar, vectors
from vouchgate.storage.dedup.upkeep import verify
from vouchgate.storage.queue import rechecks
from vouchgate.storage.store import Store


def unchecked(content: str, source: Source = Source.AI_SYNTHESIS) -> Examined:
    """A claim whose citation could not be read."""
    claim = Claim(
        content=content,
        memory_type=MemoryType.FACT,
        asserted_source=source,
        source=source,
        owner_id="ann",
    )
    inspected = inspect(claim, HedgeDetector(policy().lexicon))
    readings = [
        Unreachable(citation=citation, code="timeout", detail="It did not answer.")
        for citation in inspected.cited()
    ]
    return examine(inspected, readings, policy(), NOW)


@pytest.mark.on("sqlite")
def test_an_unchecked_citation_is_checked_again_as_before(store: Store) -> None:
    sent = store.writer.submit(
        submission_of(unchecked("Parcels over 30 kg go by freight, see https://example.com/shipping."))
    ).result()
    assert isinstance(sent, Decided)
    assert sent.answer.rule == "citation_unknown"
    queue, item_id = queue_of(store), str(sent.answer.queue_id)
    item = queue.get_by_id(reviewer(), item_id)
    assert item is not None
    rejected(store, item)
    assert queue.next_check(item) is None
    undone(store, item_id)
    assert queue.next_check(item) == SOON + timedelta(seconds=policy().recheck.first_seconds)
    with store.read() as connection:
        assert len(list(connection.execute(select(rechecks.TABLE)))) == 1


def test_the_sources_of_a_memory_in_force_again_are_read_again(store: Store) -> None:
    def scheduled() -> dict[str, datetime]:
        with store.read() as connection:
            return {row.item_id: row.due_at for row in connection.execute(select(rechecks.TABLE))}

    cites = LONG + ", see https://example.com/bakery"
    kept = store.writer.submit(submission_of(unchecked(cites.format("17:00"), Source.USER))).result()
    assert isinstance(kept, Decided)
    old = kept.answer.memory_id
    assert old is not None
    item = waiting(store, cites.format("18:00"))
    assert item.conflicting_memory_id == old
    assert queue_of(store).approve(reviewer(), item.id, version=1, supersede=True, now=LATER)
    assert old not in scheduled()
    undone(store, item.id)
    assert scheduled() == {old: SOON + timedelta(seconds=policy().recheck.first_seconds)}


def by_meaning() -> Policy:
    """The built-in policy, with vectors."""
    return policy().model_copy(update={"dedup_method": "vector"})


def vector(number: float) -> Embedding:
    """A vector of one number."""
    return Embedding(model="test@1", vector=struct.pack("f", number))


def test_vectors_come_back_or_nothing_does(store: Store) -> None:
    def sent(content: str, source: Source) -> Decided:
        one = replace(examined(content, source=source), embedding=vector(1.0))
        answer = store.writer.submit(submission_of(one)).result()
        assert isinstance(answer, Decided)
        return answer

    def kept() -> set[tuple[str, str]]:
        with store.read() as connection:
            rows = connection.execute(select(vectors.TABLE))
            return {(row.item_id, row.kind) for row in rows}

    old = sent(LONG.format("17:00"), Source.USER).answer.memory_id
    item_id = sent(LONG.format("18:00"), Source.AI_SYNTHESIS).answer.queue_id
    assert old is not None
    assert item_id is not None
    before = kept()
    queue = ReviewQueue(store, by_meaning())
    done = queue.approve(reviewer(), item_id, version=1, supersede=True, now=LATER)
    assert isinstance(done, Approved)
    texts = queue.to_embed(reviewer(), item_id)
    assert texts == {item_id: LONG.format("18:00"), old: LONG.format("17:00")}
    assert queue.to_embed(reviewer("bob"), item_id) == {}
    assert queue_of(store).to_embed(reviewer(), item_id) == {}
    unchanged = everything(store)
    for lacks in ({}, {item_id: vector(1.0)}, {old: vector(1.0)}):
        answer = queue.undo(reviewer(), item_id, version=2, now=SOON, embeddings=lacks)
        assert isinstance(answer, NotUndoable)
        assert answer.code == "not_embedded"
    assert everything(store) == unchanged
    whole = {name: vector(0.5) for name in texts}
    assert isinstance(queue.undo(reviewer(), item_id, version=2, now=SOON, embeddings=whole), Undone)
    assert kept() == before == {(old, "memory"), (item_id, "pending")}


def test_of_two_that_take_it_back_one_does(database_url: str) -> None:
    """In two processes, as far as the database can tell."""
    stores = [Store.open(database_url, threshold=THRESHOLD) for _ in range(2)]
    try:
        for number in range(5):
            item = waiting(stores[0], f"Boat {number} needs {number * 3 + 1} new planks")
            rejected(stores[0], item)
            ready, answers = threading.Barrier(2), [object(), object()]

            def act(who: int, item: PendingMemory = item, ready: Any = ready, answers: Any = answers) -> None:
                ready.wait()
                answers[who] = queue_of(stores[who]).undo(reviewer(), item.id, version=2, now=SOON)

            threads = [threading.Thread(target=act, args=(who,)) for who in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            lost = [answer for answer in answers if isinstance(answer, NotUndoable)]
            assert [answer.code for answer in lost] == ["waiting"]
            assert sum(isinstance(answer, Undone) for answer in answers) == 1
        assert_consistent(stores[0])
    finally:
        for store in stores:
            store.close()


POOL = [TEXT, TEXT.upper(), *(LONG.format(f"{hour}:00") for hour in (17, 18, 19))]
ACTS = st.one_of(
    st.tuples(st.just("send"), st.sampled_from(POOL), st.sampled_from([Source.AI_SYNTHESIS, Source.USER])),
    st.tuples(
        st.sampled_from(["approve", "replace", "edit", "reject", "undo", "retract"]), st.integers(0, 7)
    ),
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(acts=st.lists(ACTS, min_size=4, max_size=20), salt=st.uuids())
def test_any_sequence_of_acts_leaves_everything_whole(
    store: Store, acts: list[tuple[Any, ...]], salt: object
) -> None:
    owner = f"owner-{salt}"
    me, queue, at = reviewer(owner), queue_of(store), LATER
    items: list[str] = []
    for act, *more in acts:
        at += timedelta(minutes=1)
        if act == "send":
            one = examined(more[0], owner_id=owner, source=more[1])
            sent = store.writer.submit(submission_of(one)).result()
            assert isinstance(sent, Decided)
            if sent.answer.queue_id is not None:
                items.append(sent.answer.queue_id)
        elif items:
            _act_on(queue, me, act, items[more[0] % len(items)], at)
    assert_consistent(store)
    checked = verify(store, owner)
    assert not checked.faults, checked.first
    index_tails(store)
    with store.read() as connection:
        banded = set(connection.scalars(select(similar.TABLE.c.memory_id)))
        active = connection.execute(
            select(memories.TABLE.c.id).where(memories.TABLE.c.status == "active")
        ).scalars()
        assert banded == set(active)
    facts = queue.facets(me)
    assert facts.waiting == len(queue.search(me)) == sum(facts.by_rule.values())


def _act_on(queue: ReviewQueue, me: Principal, act: str, item_id: str, at: datetime) -> None:
    """One act on the item as it is now, whatever it comes to."""
    item = queue.get_by_id(me, item_id)
    assert item is not None
    version = item.version
    match act:
        case "approve" | "replace" | "edit":
            own = examined(LONG.format("20:00"), owner_id=item.owner_id) if act == "edit" else None
            answer: object = queue.approve(
                me, item_id, version=version, supersede=act == "replace", edited=own, now=at
            )
            assert isinstance(answer, Approved | ApprovalRefused | AlreadyDecided)
        case "reject":
            answer = queue.reject(me, item_id, version=version, reason="No.", now=at)
            assert isinstance(answer, Rejected | AlreadyDecided)
        case "retract":
            if item.memory_id is not None:
                queue.retract(me, item.memory_id, reason="Moved.", now=at)
        case "undo":
            answer = queue.undo(me, item_id, version=version, now=at)
            if item.status is ReviewStatus.REJECTED:
                same = isinstance(answer, NotUndoable) and answer.code == "duplicate"
                assert isinstance(answer, Undone) or same
            else:
                assert isinstance(answer, Undone | NotUndoable)
