"""Taking a decision back: everything is as it was before it, or nothing changes and the answer says why."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.claims import NOW, examined, policy, submission_of
from tests.reviews import (
    all_memories,
    assert_consistent,
    everything,
    history,
    index_tails,
    memory,
    queue_of,
    reviewer,
    stored,
    waiting,
)
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.memory import MemoryStatus
from vouchgate.ingest.claims.people import Principal
from vouchgate.ingest.claims.waiting import PendingMemory
from vouchgate.review.answers import Approved, ItemChanged, NotFound, NotUndoable, Rejected, Retracted, Undone
from vouchgate.review.queue import ReviewQueue
from vouchgate.review.undo import TAKEN_BACK
from vouchgate.storage.claims.submit import Decided
from vouchgate.storage.store import Store

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
    index_tails(store)
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
    assert (again.answer.rule, again.answer.queue_id) == ("already_pending", item.id)
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
    assert (again.answer.rule, again.answer.conflicting_memory_id) == ("duplicate", old.id)
    assert_consistent(store)


@pytest.mark.on("sqlite")
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


@pytest.mark.on("sqlite")
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


@pytest.mark.on("sqlite")
def test_a_version_that_is_not_the_present_one_is_stale(store: Store) -> None:
    item = waiting(store, TEXT)
    now = rejected(store, item).item
    before = everything(store)
    for version in (1, 3, 0, 2**40):
        assert queue_of(store).undo(reviewer(), item.id, version=version, now=SOON) == ItemChanged(now)
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


@pytest.mark.on("sqlite")
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


@pytest.mark.on("sqlite")
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


@pytest.mark.on("sqlite")
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


@pytest.mark.on("sqlite")
def test_an_index_of_another_threshold_leaves_the_decision(store: Store) -> None:
    item = waiting(store, TEXT)
    rejected(store, item)
    before = everything(store)
    answer = ReviewQueue(store, policy(threshold=0.8)).undo(reviewer(), item.id, version=2, now=SOON)
    assert isinstance(answer, NotUndoable)
    assert answer.code == "dedup_unavailable"
    assert everything(store) == before
