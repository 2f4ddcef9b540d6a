"""The review queue: who sees what, what each act does, and that an act is all or nothing."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, select, update

from tests.claims import NOW, examined, policy, submission_of
from tests.reviews import (
    all_memories,
    assert_consistent,
    commits_to,
    everything,
    history,
    memory,
    queue_of,
    reviewer,
    stored,
    waiting,
)
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.decision import Confidence
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.memory import MemoryStatus
from vouchgate.ingest.claims.people import Principal, Role
from vouchgate.ingest.claims.waiting import PendingMemory, ReviewStatus
from vouchgate.review.answers import (
    AlreadyDecided,
    AlreadyGone,
    ApprovalRefused,
    Approved,
    ItemChanged,
    NotFound,
    Rejected,
    Retracted,
)
from vouchgate.review.queue import ReviewQueue
from vouchgate.storage.claims import decisions
from vouchgate.storage.claims.submit import Decided
from vouchgate.storage.errors import StorageError
from vouchgate.storage.log import chain as log
from vouchgate.storage.queue.pending import QueueFilter
from vouchgate.storage.store import Store

LATER = NOW + timedelta(hours=1)
OVERDUE = NOW + timedelta(days=policy().queue.expire_days)
TEXT = "The nightly export leaves for bucket seven."

ANN = frozenset({"ann"})
STRANGERS = [
    Principal(id="a", name="agent", role=Role.AGENT, owners=ANN, sources=frozenset(Source)),
    Principal(id="b", name="agent of any", role=Role.AGENT, any_owner=True),
    Principal(id="c", name="bob's auditor", role=Role.AUDITOR, owners=frozenset({"bob"})),
    Principal(id="d", name="admin", role=Role.ADMIN, owners=ANN, any_owner=True),
    Principal(id="e", name="bob's reviewer", role=Role.REVIEWER, owners=frozenset({"bob"})),
    Principal(id="f", name="nobody's reviewer", role=Role.REVIEWER),
    Principal(id="g", name="anybody's reviewer", role=Role.REVIEWER, owners=ANN, any_owner=True),
]


def document(**about: str | None) -> str:
    """What the log says an act was about."""
    return json.dumps(about, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def test_an_approved_item_is_a_memory_the_owner_vouches_for(store: Store) -> None:
    item = waiting(store, TEXT, validity_horizon=NOW + timedelta(days=400))
    answer = queue_of(store).approve(reviewer(), item.id, version=1, note="I set it up.", now=LATER)
    assert isinstance(answer, Approved)
    assert answer.superseded is None
    assert answer.item == item.model_copy(
        update={
            "status": ReviewStatus.APPROVED,
            "version": 2,
            "decided_at": LATER,
            "decided_by": "reviewer-rita",
            "note": "I set it up.",
            "memory_id": answer.memory.id,
        }
    )
    kept = answer.memory
    assert memory(store, kept.id) == kept
    assert (kept.owner_id, kept.content, kept.status) == ("ann", TEXT, MemoryStatus.ACTIVE)
    assert (kept.decision_id, kept.approved_by, kept.created_at) == (item.decision_id, "reviewer-rita", LATER)
    assert kept.confidence is Confidence.MEDIUM  # it was low: nothing but the owner vouches for it
    assert (kept.source, kept.memory_type) == (item.source, item.memory_type)
    assert (kept.validity_horizon, kept.metadata) == (item.validity_horizon, item.metadata)
    last = history(store)[-1]
    assert (last.actor, last.action, last.subject_id) == ("reviewer-rita", Action.REVIEW_APPROVED, item.id)
    assert commits_to(store, last, document(item=item.id, note="I set it up.", content=TEXT))
    assert_consistent(store)


@pytest.mark.on("sqlite")
def test_an_approved_claim_is_a_duplicate_from_then_on(store: Store) -> None:
    item = waiting(store, TEXT)
    answer = queue_of(store).approve(reviewer(), item.id, version=1, now=LATER)
    assert isinstance(answer, Approved)
    again = store.writer.submit(submission_of(examined(TEXT))).result()
    assert isinstance(again, Decided)
    assert (again.answer.rule, again.answer.conflicting_memory_id) == ("duplicate", answer.memory.id)


@pytest.mark.on("sqlite")
def test_a_rejected_item_is_no_memory(store: Store) -> None:
    item = waiting(store, TEXT)
    answer = queue_of(store).reject(reviewer(), item.id, version=1, reason="Bucket nine.", now=LATER)
    assert answer == Rejected(
        item.model_copy(
            update={
                "status": ReviewStatus.REJECTED,
                "version": 2,
                "decided_at": LATER,
                "decided_by": "reviewer-rita",
                "note": "Bucket nine.",
            }
        )
    )
    assert all_memories(store) == []
    last = history(store)[-1]
    assert (last.actor, last.action, last.subject_id) == ("reviewer-rita", Action.REVIEW_REJECTED, item.id)
    assert commits_to(store, last, document(item=item.id, note="Bucket nine."))
    assert_consistent(store)
    assert waiting(store, TEXT).id != item.id  # a rejected claim may be proposed again


@pytest.mark.on("sqlite")
def test_nobody_but_the_owners_reviewer_sees_or_does_anything(store: Store) -> None:
    queue, item, kept = queue_of(store), waiting(store, TEXT), stored(store, "The mail host is mx one.")
    before, other = everything(store), examined("Other text.")
    for who in STRANGERS:
        assert queue.search(who, QueueFilter(order="oldest")) == [], who
        assert queue.get_by_id(who, item.id) is None, who
        assert queue.approve(who, item.id, version=1, now=LATER) == NotFound(), who
        assert queue.approve(who, item.id, version=1, edited=other, now=LATER) == NotFound(), who
        assert queue.reject(who, item.id, version=1, reason="no", now=LATER) == NotFound(), who
        assert queue.retract(who, kept.id, reason="no", now=LATER) == NotFound(), who
    assert everything(store) == before


@pytest.mark.on("sqlite")
def test_the_submitter_never_approves_its_own(store: Store) -> None:
    queue, item = queue_of(store), waiting(store, TEXT)
    same = Principal(id=item.submitted_by, name="both", role=Role.REVIEWER, owners=ANN)
    before = everything(store)
    assert queue.approve(same, item.id, version=1, now=LATER) == NotFound()
    assert queue.reject(same, item.id, version=1, reason="no", now=LATER) == NotFound()
    assert everything(store) == before


@pytest.mark.on("sqlite")
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    principal=st.builds(
        Principal,
        id=st.just(reviewer().id),
        name=st.just("x"),
        role=st.sampled_from([role for role in Role if role is not Role.REVIEWER]),
        owners=st.just(ANN),
        any_owner=st.booleans(),
    ),
    version=st.integers(),
    supersede=st.none() | st.booleans(),
    edit=st.booleans(),
)
def test_no_other_role_approves_by_any_route(
    store: Store, principal: Principal, version: int, supersede: bool | None, edit: bool
) -> None:
    queue = queue_of(store)
    items = queue.search(reviewer(), QueueFilter(order="oldest"))
    item = items[0] if items else waiting(store, TEXT)
    edited = examined("Quite another text.") if edit else None
    answer = queue.approve(principal, item.id, version=version, supersede=supersede, edited=edited, now=LATER)
    assert answer == NotFound()
    assert queue.get_by_id(reviewer(), item.id) == item
    assert all_memories(store) == []


@pytest.mark.on("postgresql")
def test_an_unknown_id_is_not_found(store: Store) -> None:
    queue = queue_of(store)
    waiting(store, TEXT)
    for item_id in ("", "rev_0", "\x00", "\ud800", "x" * 5000, "rev_' OR 1=1 --", "%"):
        assert queue.get_by_id(reviewer(), item_id) is None, item_id
        assert queue.approve(reviewer(), item_id, version=1, now=LATER) == NotFound(), item_id
        assert queue.reject(reviewer(), item_id, version=1, reason="no", now=LATER) == NotFound(), item_id
        assert queue.retract(reviewer(), item_id, reason="no", now=LATER) == NotFound(), item_id


@pytest.mark.on("postgresql")
def test_an_act_on_another_version_is_stale(store: Store) -> None:
    queue, item = queue_of(store), waiting(store, TEXT)
    before, me = everything(store), reviewer()
    for version in (-1, 0, 2, 2**70):
        assert queue.approve(me, item.id, version=version, now=LATER) == ItemChanged(item), version
        changed = queue.reject(me, item.id, version=version, reason="no", now=LATER)
        assert changed == ItemChanged(item), version
    assert everything(store) == before


@pytest.mark.on("sqlite")
def test_a_repeat_of_a_waiting_claim_does_not_make_it_stale(store: Store) -> None:
    queue, item = queue_of(store), waiting(store, TEXT)
    assert waiting(store, TEXT) == item.model_copy(update={"seen": 2})
    assert isinstance(queue.approve(reviewer(), item.id, version=item.version, now=LATER), Approved)
    assert_consistent(store)


@pytest.mark.on("sqlite")
@pytest.mark.parametrize("first", ["approve", "reject", "expire"])
def test_what_is_decided_stays_decided(store: Store, first: str) -> None:
    queue, item = queue_of(store), waiting(store, TEXT)
    if first == "approve":
        queue.approve(reviewer(), item.id, version=1, now=LATER)
    elif first == "reject":
        queue.reject(reviewer(), item.id, version=1, reason="no", now=LATER)
    else:
        assert queue.expire(OVERDUE) == 1
    current = queue.get_by_id(reviewer(), item.id)
    assert current is not None
    assert current.status is not ReviewStatus.PENDING
    before = everything(store)
    for version in (1, 2, 3):
        assert queue.approve(reviewer(), item.id, version=version, now=LATER) == AlreadyDecided(current)
        answer = queue.reject(reviewer(), item.id, version=version, reason="no", now=LATER)
        assert answer == AlreadyDecided(current)
    assert queue.expire(OVERDUE) == 0
    assert everything(store) == before


@pytest.mark.on("sqlite")
@pytest.mark.parametrize("reason", ["", "  \n"])
def test_rejecting_and_retracting_need_a_reason(store: Store, reason: str) -> None:
    queue, item, kept = queue_of(store), waiting(store, TEXT), stored(store, "The mail host is mx one.")
    before = everything(store)
    with pytest.raises(ValueError, match="needs a reason"):
        queue.reject(reviewer(), item.id, version=1, reason=reason, now=LATER)
    with pytest.raises(ValueError, match="needs a reason"):
        queue.retract(reviewer(), kept.id, reason=reason, now=LATER)
    assert everything(store) == before


def test_pages_of_the_queue_are_oldest_first_and_ones_own(store: Store) -> None:
    queue = queue_of(store)
    items = [
        waiting(store, f"Service number {n} starts alone.", owner_id=owner, now=NOW + timedelta(seconds=n))
        for n, owner in enumerate(["ann", "bob", "ann", "ann", "bob", "ann", "ann"])
    ]
    anns = [item for item in items if item.owner_id == "ann"]
    assert queue.search(reviewer(), QueueFilter(order="oldest")) == anns
    assert queue.search(reviewer("bob"), QueueFilter(order="oldest")) == [
        item for item in items if item.owner_id == "bob"
    ]
    assert queue.search(reviewer("cat"), QueueFilter(order="oldest")) == []
    for limit in (1, 2, 5):
        got: list[PendingMemory] = []
        while page := queue.search(
            reviewer(), QueueFilter(after=got[-1].id if got else None, limit=limit, order="oldest")
        ):
            assert len(page) <= limit
            got += page
        assert got == anns
    assert queue.search(reviewer(), QueueFilter(limit=1, order="oldest")) == anns[:1]
    assert queue.search(reviewer(), QueueFilter(after="\x00", order="oldest")) == []
    queue.reject(reviewer(), anns[1].id, version=1, reason="no", now=LATER)
    assert queue.search(reviewer(), QueueFilter(order="oldest")) == [anns[0], *anns[2:]]
    assert [
        item.id
        for item in queue.search(reviewer(), QueueFilter(status=ReviewStatus.REJECTED, order="oldest"))
    ] == [anns[1].id]
    assert queue.search(reviewer(), QueueFilter(status=ReviewStatus.EXPIRED, order="oldest")) == []


def test_an_item_expires_at_its_time_and_nobody_has_rejected_it(store: Store) -> None:
    queue = queue_of(store)
    item, other = waiting(store, TEXT), waiting(store, "The cache is warm at six.", owner_id="bob")
    young = waiting(store, "The relay keeps two days.", now=NOW + timedelta(seconds=1))
    assert item.expires_at == OVERDUE
    assert queue.expire(OVERDUE - timedelta(microseconds=1)) == 0
    assert queue.expire(OVERDUE) == 2
    expired = queue.get_by_id(reviewer(), item.id)
    assert expired == item.model_copy(
        update={
            "status": ReviewStatus.EXPIRED,
            "version": 2,
            "decided_at": OVERDUE,
            "decided_by": "service",
        }
    )
    assert [
        i.id for i in queue.search(reviewer("bob"), QueueFilter(status=ReviewStatus.EXPIRED, order="oldest"))
    ] == [other.id]
    assert queue.search(reviewer(), QueueFilter(order="oldest")) == [young]
    last = history(store)[-1]
    assert (last.actor, last.action, last.subject_id) == ("service", Action.REVIEW_EXPIRED, item.id)
    assert_consistent(store)
    assert waiting(store, TEXT).id != item.id


def test_expiring_takes_at_most_what_was_asked_for(store: Store) -> None:
    queue = queue_of(store)
    for n in range(5):
        waiting(store, f"Service number {n} starts alone.", owner_id="ann" if n % 2 else "bob")
    assert [queue.expire(OVERDUE, limit=2) for _ in range(4)] == [2, 2, 1, 0]
    assert_consistent(store)


@pytest.mark.on("postgresql")
@pytest.mark.parametrize("act", ["approve", "reject"])
def test_an_overdue_item_is_over_before_it_is_swept(store: Store, act: str) -> None:
    queue, item = queue_of(store), waiting(store, TEXT)
    if act == "approve":
        answer: object = queue.approve(reviewer(), item.id, version=1, now=OVERDUE)
    else:
        answer = queue.reject(reviewer(), item.id, version=1, reason="no", now=OVERDUE)
    assert isinstance(answer, AlreadyDecided)
    assert (answer.current.status, answer.current.decided_by) == (ReviewStatus.EXPIRED, "service")
    assert queue.get_by_id(reviewer(), item.id) == answer.current
    assert all_memories(store) == []
    assert history(store)[-1].action is Action.REVIEW_EXPIRED
    assert queue.expire(OVERDUE) == 0
    assert_consistent(store)


def test_a_retracted_memory_is_out_of_force_and_may_come_again(store: Store) -> None:
    queue, kept = queue_of(store), stored(store, TEXT)
    answer = queue.retract(reviewer(), kept.id, reason="Was moved.", now=LATER)
    assert answer == Retracted(
        kept.model_copy(update={"status": MemoryStatus.RETRACTED, "retracted_reason": "Was moved."})
    )
    last = history(store)[-1]
    assert (last.actor, last.action, last.subject_id) == ("reviewer-rita", Action.MEMORY_RETRACTED, kept.id)
    assert commits_to(store, last, document(memory=kept.id, note="Was moved."))
    before = everything(store)
    assert queue.retract(reviewer(), kept.id, reason="Again.", now=LATER) == AlreadyGone(answer.memory)
    assert everything(store) == before
    assert_consistent(store)
    assert stored(store, TEXT).id != kept.id


@pytest.mark.on("sqlite")
def test_an_expired_memory_may_still_be_retracted(store: Store) -> None:
    kept = stored(store, TEXT, validity_horizon=LATER)
    answer = queue_of(store).retract(reviewer(), kept.id, reason="Was wrong all along.", now=LATER)
    assert isinstance(answer, Retracted)
    assert (answer.memory.status, answer.memory.retracted_reason) == (
        MemoryStatus.EXPIRED,
        "Was wrong all along.",
    )
    assert_consistent(store)


@pytest.mark.on("sqlite")
def test_a_claim_that_does_not_hold_any_more_is_not_approved(store: Store) -> None:
    queue, item = queue_of(store), waiting(store, TEXT, validity_horizon=LATER)
    before = everything(store)
    answer = queue.approve(reviewer(), item.id, version=1, now=LATER)
    assert isinstance(answer, ApprovalRefused)
    assert answer.code == "no_longer_valid"
    assert everything(store) == before
    assert isinstance(
        queue.approve(reviewer(), item.id, version=1, now=LATER - timedelta(seconds=1)), Approved
    )


@pytest.mark.on("sqlite")
def test_an_index_that_cannot_answer_approves_nothing(store: Store) -> None:
    item = waiting(store, TEXT)
    before = everything(store)
    other = ReviewQueue(store, policy(threshold=0.8))
    answer = other.approve(reviewer(), item.id, version=1, now=LATER)
    assert isinstance(answer, ApprovalRefused)
    assert answer.code == "dedup_unavailable"
    assert everything(store) == before


@pytest.mark.on("sqlite")
@pytest.mark.parametrize("answer", ["{}", "not JSON", ""])
def test_an_item_whose_decision_cannot_be_read_is_not_approved(store: Store, answer: str) -> None:
    item = waiting(store, TEXT)
    spoil = update(decisions.TABLE).values(answer=answer)
    store.writer.run(["ann"], lambda connection: connection.execute(spoil) and None).result()
    before = everything(store)
    with pytest.raises(StorageError, match=r"cannot be (understood|read back)"):
        queue_of(store).approve(reviewer(), item.id, version=1, now=LATER)
    assert everything(store) == before


def test_a_failed_act_leaves_everything_as_it_was(store: Store) -> None:
    """The next number of the owner's log is taken, so that the last write of every act fails."""
    queue, item, kept = queue_of(store), waiting(store, TEXT), stored(store, "The mail host is mx one.")

    def take_the_next_number(connection: Connection) -> None:
        rows = connection.execute(select(log.TABLE).order_by(log.TABLE.c.seq)).mappings().all()
        connection.execute(log.TABLE.insert(), dict(rows[-1]) | {"seq": len(rows) + 1})

    store.writer.run(["ann"], take_the_next_number).result()
    before = everything(store)
    with pytest.raises(StorageError):
        queue.approve(reviewer(), item.id, version=1, now=LATER)
    with pytest.raises(StorageError):
        queue.reject(reviewer(), item.id, version=1, reason="no", now=LATER)
    with pytest.raises(StorageError):
        queue.retract(reviewer(), kept.id, reason="no", now=LATER)
    with pytest.raises(StorageError):
        queue.expire(OVERDUE)
    assert everything(store) == before
