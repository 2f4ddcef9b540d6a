"""Taking a decision back: everything is as it was before it, or nothing changes and the answer says why."""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from ingest.checks.hedge import HedgeDetector
from ingest.pipeline import Examined, examine, inspect
from ingest.policy import Policy
from ingest.types import (
    Action,
    Claim,
    Embedding,
    MemoryStatus,
    MemoryType,
    PendingMemory,
    Principal,
    ReviewStatus,
    Source,
    Unreachable,
)
from review.answers import (
    AlreadyDecided,
    Approved,
    NotFound,
    NotUndoable,
    Refused,
    Rejected,
    Retracted,
    Stale,
    Undone,
)
from review.queue import ReviewQueue
from review.undo import TAKEN_BACK
from storage import memories, rechecks, similar, vectors
from storage.store import Store
from storage.submit import CITATION_UNCHECKED, Decided
from storage.upkeep import verify
from tests.claims import NOW, examined, policy, submission_of
from tests.conftest import THRESHOLD
from tests.reviews import (
    all_memories,
    assert_consistent,
    everything,
    history,
    memory,
    queue_of,
    reviewer,
    stored,
    waiting,
)

LATER = NOW + timedelta(hours=1)
SOON = LATER + timedelta(minutes=59)
OVER = LATER + timedelta(minutes=60)
TEXT = "The nightly export leaves for bucket seven."
LONG = (
    "The bakery on the corner bakes rye bread in three ovens, sells what is left at half price after {},"
    " closes on Mondays and whenever flour runs short, and gives old loaves to a farm near town"
)


def approved(store: Store, item: PendingMemory, **more: Any) -> Approved:
    """The item, approved."""
    answer = queue_of(store).approve(reviewer(), item.id, version=item.version, now=LATER, **more)
    assert isinstance(answer, Approved), answer
    return answer


def rejected(store: Store, item: PendingMemory, reason: str = "Bucket nine.") -> Rejected:
    """The item, rejected."""
    answer = queue_of(store).reject(reviewer(), item.id, version=item.version, reason=reason, now=LATER)
    assert isinstance(answer, Rejected), answer
    return answer


def undone(store: Store, item_id: str, version: int = 2, now: datetime = SOON) -> Undone:
    """The decision on the item, taken back."""
    answer = queue_of(store).undo(reviewer(), item_id, version=version, now=now)
    assert isinstance(answer, Undone), answer
    return answer


def indexes(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    """All that later claims are compared by, and the counters; not the end of the log."""
    rows = everything(store)
    counted = [(row[0], row[3]) for row in rows["owner"]]
    return {
        **{name: rows[name] for name in ("dedup_key", "dedup_template", "similar_key", "queue_total")},
        "owner": counted,
    }


def test_a_rejection_taken_back_leaves_the_item_as_it_was_queued(store: Store) -> None:
    item = waiting(store, TEXT)
    before = indexes(store)
    rejected(store, item)
    answer = undone(store, item.id)
    assert answer == Undone(item.model_copy(update={"version": 3}))
    assert indexes(store) == before
    last = history(store)[-1]
    assert (last.action, last.subject_id, last.actor) == (Action.REVIEW_UNDONE, item.id, reviewer().id)
    again = store.writer.submit(submission_of(examined(TEXT, source=Source.AI_SYNTHESIS))).result()
    assert isinstance(again, Decided)
    assert (again.answer.rule, again.answer.queue_id) == (4, item.id)
    assert again.answer.rejected_before is None  # it was taken back
    assert_consistent(store)


def test_an_approval_taken_back_takes_its_memory_back(store: Store) -> None:
    item = waiting(store, TEXT, validity_horizon=NOW + timedelta(days=400))
    before = indexes(store)
    kept = approved(store, item, note="I set it up.").memory
    answer = undone(store, item.id)
    assert answer == Undone(item.model_copy(update={"version": 3}), retracted=kept.id)
    assert indexes(store) == before
    gone = memory(store, kept.id)
    assert (gone.status, gone.retracted_reason) == (MemoryStatus.RETRACTED, TAKEN_BACK)
    assert [entry.action for entry in history(store)[-2:]] == [
        Action.REVIEW_UNDONE,
        Action.MEMORY_RETRACTED,
    ]
    assert_consistent(store)


@pytest.mark.parametrize("edit", [None, LONG.format("18:30")])
def test_what_an_approval_replaced_is_in_force_again(store: Store, edit: str | None) -> None:
    old = stored(store, LONG.format("17:00"))
    item = waiting(store, LONG.format("18:00"))
    before = indexes(store)
    own = None if edit is None else examined(edit)
    new = approved(store, item, supersede=True, edited=own).memory
    assert new.content == (edit or item.content)
    answer = undone(store, item.id)
    assert answer == Undone(item.model_copy(update={"version": 3}), new.id, old.id)
    assert answer.item.content == LONG.format("18:00")
    assert memory(store, old.id) == old
    assert indexes(store) == before
    assert [entry.action for entry in history(store)[-3:]] == [
        Action.REVIEW_UNDONE,
        Action.MEMORY_RETRACTED,
        Action.MEMORY_RESTORED,
    ]
    again = store.writer.submit(submission_of(examined(LONG.format("17:00")))).result()
    assert isinstance(again, Decided)
    assert (again.answer.rule, again.answer.conflicting_memory_id) == (2, old.id)
    assert_consistent(store)


def test_what_was_taken_back_can_be_decided_anew_and_taken_back_again(store: Store) -> None:
    item = waiting(store, TEXT)
    for version in (2, 4, 6):
        now = LATER + timedelta(days=version)
        queue = queue_of(store)
        assert isinstance(queue.approve(reviewer(), item.id, version=version - 1, now=now), Approved)
        assert undone(store, item.id, version, now + timedelta(minutes=1)).item.version == version + 1
    rejected(store, item.model_copy(update={"version": 7}))
    kept = all_memories(store)
    assert [one.status for one in kept] == [MemoryStatus.RETRACTED] * 3
    assert_consistent(store)


def test_any_reviewer_of_the_owner_may_take_it_back_and_nobody_else(store: Store) -> None:
    item = waiting(store, TEXT)
    rejected(store, item)
    queue = queue_of(store)
    same = Principal(
        id=item.submitted_by, name="s", role=reviewer().role, owners=frozenset({"ann"})
    )  # who sent it
    before = everything(store)
    for stranger in (reviewer("bob"), same):
        assert queue.undo(stranger, item.id, version=2, now=SOON) == NotFound()
    assert queue.undo(reviewer(), "rev_0", version=2, now=SOON) == NotFound()
    assert everything(store) == before
    assert isinstance(queue.undo(reviewer(name="sam"), item.id, version=2, now=SOON), Undone)
    assert history(store)[-1].actor == "reviewer-sam"


def test_a_version_that_is_not_the_present_one_is_stale(store: Store) -> None:
    item = waiting(store, TEXT)
    now = rejected(store, item).item
    before = everything(store)
    for version in (1, 3, 0, 2**40):
        assert queue_of(store).undo(reviewer(), item.id, version=version, now=SOON) == Stale(now)
    assert everything(store) == before


def _too_late(store: Store) -> tuple[str, datetime]:
    item = waiting(store, TEXT)
    approved(store, item)
    return item.id, OVER


def _never_decided(store: Store) -> tuple[str, datetime]:
    return waiting(store, TEXT).id, SOON


def _undone_already(store: Store) -> tuple[str, datetime]:
    item = waiting(store, TEXT)
    rejected(store, item)
    undone(store, item.id)
    return item.id, SOON


def _ran_out_of_time(store: Store) -> tuple[str, datetime]:
    item = waiting(store, TEXT)
    overdue = item.expires_at + timedelta(seconds=1)
    assert queue_of(store).expire(overdue) == 1
    return item.id, overdue


def _past_its_time(store: Store) -> tuple[str, datetime]:
    item = waiting(store, TEXT)
    late = item.expires_at - timedelta(minutes=1)
    answer = queue_of(store).reject(reviewer(), item.id, version=1, reason="No.", now=late)
    assert isinstance(answer, Rejected)
    return item.id, item.expires_at


def _retracted_since(store: Store) -> tuple[str, datetime]:
    item = waiting(store, TEXT)
    kept = approved(store, item).memory
    assert isinstance(queue_of(store).retract(reviewer(), kept.id, reason="no", now=SOON), Retracted)
    return item.id, SOON


def _replaced_since(store: Store) -> tuple[str, datetime]:
    first = waiting(store, LONG.format("17:00"))
    approved(store, first)
    approved(store, waiting(store, LONG.format("18:00")), supersede=True)
    return first.id, SOON


def _no_longer_valid(store: Store) -> tuple[str, datetime]:
    item = waiting(store, TEXT, validity_horizon=LATER + timedelta(minutes=5))
    approved(store, item)
    return item.id, SOON


def _queued_since(store: Store) -> tuple[str, datetime]:
    item = waiting(store, TEXT)
    rejected(store, item)
    waiting(store, TEXT.upper())
    return item.id, SOON


def _stored_since(store: Store) -> tuple[str, datetime]:
    item = waiting(store, TEXT)
    rejected(store, item)
    stored(store, TEXT)
    return item.id, SOON


def _replaced_claim_queued_since(store: Store) -> tuple[str, datetime]:
    stored(store, LONG.format("17:00"))
    item = waiting(store, LONG.format("18:00"))
    approved(store, item, supersede=True)
    waiting(store, LONG.format("17:00"))  # it conflicts with the one that replaced it
    return item.id, SOON


@pytest.mark.parametrize(
    ("arrange", "code"),
    [
        (_too_late, "too_late"),
        (_never_decided, "waiting"),
        (_undone_already, "waiting"),
        (_ran_out_of_time, "not_reviewed"),
        (_past_its_time, "expired"),
        (_retracted_since, "memory_gone"),
        (_replaced_since, "memory_gone"),
        (_no_longer_valid, "memory_gone"),
        (_queued_since, "duplicate"),
        (_stored_since, "duplicate"),
        (_replaced_claim_queued_since, "duplicate"),
    ],
)
def test_what_cannot_be_taken_back_says_why_and_stays(
    store: Store, arrange: Callable[[Store], tuple[str, datetime]], code: str
) -> None:
    item_id, now = arrange(store)
    queue = queue_of(store)
    item = queue.get_by_id(reviewer(), item_id)
    assert item is not None
    before = everything(store)
    answer = queue.undo(reviewer(), item_id, version=item.version, now=now)
    assert isinstance(answer, NotUndoable)
    assert (answer.code, answer.current) == (code, item)
    assert answer.message.endswith(".")
    assert (answer.same_as is not None) == (code == "duplicate")
    assert everything(store) == before


def test_a_policy_may_say_never(store: Store) -> None:
    item = waiting(store, TEXT)
    never = policy().model_copy(update={"queue": policy().queue.model_copy(update={"undo_minutes": 0})})
    queue = ReviewQueue(store, never)
    done = queue.reject(reviewer(), item.id, version=1, reason="No.", now=LATER)
    assert isinstance(done, Rejected)
    assert queue.undo_until(done.item) == LATER
    answer = queue.undo(reviewer(), item.id, version=2, now=LATER)
    assert isinstance(answer, NotUndoable)
    assert answer.code == "too_late"


@pytest.mark.parametrize(("limits", "other"), [({"per_owner": 1}, "ann"), ({"total": 1}, "bob")])
def test_a_queue_that_is_full_by_now_takes_nothing_back(
    store: Store, limits: dict[str, int], other: str
) -> None:
    item = waiting(store, TEXT)
    rejected(store, item)
    waiting(store, "The mail host is mx one.", owner_id=other)
    before = everything(store)
    answer = ReviewQueue(store, policy(**limits)).undo(reviewer(), item.id, version=2, now=SOON)
    assert isinstance(answer, NotUndoable)
    assert answer.code == "queue_full"
    assert everything(store) == before


def test_when_it_is_too_late_is_known_beforehand(store: Store) -> None:
    queue = queue_of(store)
    item = waiting(store, TEXT)
    assert queue.undo_until(item) is None
    assert queue.undo_until(rejected(store, item).item) == OVER
    late = item.expires_at - timedelta(minutes=1)
    undone(store, item.id)
    done = queue.reject(reviewer(), item.id, version=3, reason="No.", now=late)
    assert isinstance(done, Rejected)
    assert queue.undo_until(done.item) == item.expires_at


def unchecked(content: str) -> Examined:
    """A claim whose citation could not be read."""
    claim = Claim(
        content=content,
        memory_type=MemoryType.FACT,
        asserted_source=Source.AI_SYNTHESIS,
        source=Source.AI_SYNTHESIS,
        owner_id="ann",
    )
    inspected = inspect(claim, HedgeDetector(policy().lexicon))
    readings = [
        Unreachable(citation=citation, code="timeout", detail="It did not answer.")
        for citation in inspected.cited()
    ]
    return examine(inspected, readings, policy(), NOW)


def test_an_unchecked_citation_is_checked_again_as_before(store: Store) -> None:
    sent = store.writer.submit(
        submission_of(unchecked("Parcels over 30 kg go by freight, see https://example.com/shipping."))
    ).result()
    assert isinstance(sent, Decided)
    assert sent.answer.rule == CITATION_UNCHECKED
    queue, item_id = queue_of(store), str(sent.answer.queue_id)
    item = queue.get_by_id(reviewer(), item_id)
    assert item is not None
    rejected(store, item)
    assert queue.next_check(item) is None
    undone(store, item_id)
    assert queue.next_check(item) == SOON + timedelta(seconds=policy().recheck.first_seconds)
    with store.read() as connection:
        assert len(list(connection.execute(select(rechecks.TABLE)))) == 1


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


def test_an_index_of_another_threshold_leaves_the_decision(store: Store) -> None:
    item = waiting(store, TEXT)
    rejected(store, item)
    before = everything(store)
    answer = ReviewQueue(store, policy(threshold=0.8)).undo(reviewer(), item.id, version=2, now=SOON)
    assert isinstance(answer, NotUndoable)
    assert answer.code == "dedup_unavailable"
    assert everything(store) == before


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
            assert isinstance(answer, Approved | Refused | AlreadyDecided)
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
