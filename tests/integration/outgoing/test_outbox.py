"""What is to be delivered is written with what it tells of, and nobody takes a memory away by writing over it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select

from tests.claims import NOW, examined, policy, submission_of
from tests.reviews import assert_consistent, everything, memory, queue_of, reviewer
from vouchgate.ingest.claims.claim import MemoryType, Source
from vouchgate.ingest.claims.decision import ValidationResult
from vouchgate.ingest.claims.delivery import DeliveryOp, DeliveryTarget
from vouchgate.ingest.claims.memory import MemoryStatus
from vouchgate.ingest.claims.waiting import PendingMemory
from vouchgate.review.answers import (
    ApprovalRefused,
    Approved,
    NotUndoable,
    Rejected,
    Removed,
    Retracted,
    Undone,
)
from vouchgate.storage.claims.submit import Decided, write_submissions
from vouchgate.storage.dedup import upkeep, window
from vouchgate.storage.outgoing import outbox
from vouchgate.storage.store import Store
from vouchgate.storage.tables.doors import WebhookRow

LATER = NOW + timedelta(minutes=5)
TEA = "The office kitchen buys green tea from the shop in Mill Street"
COFFEE = "Since the spring nobody drinks anything but coffee from the new machine"
WATER = "A filter was put into the tap on the third floor last week"
AT_ONE = DeliveryTarget(sink="kg", place="drinks/1", data={"entity": "drinks"})


def send(
    store: Store, content: str, delivery: DeliveryTarget | None, source: Source = Source.USER, **about: Any
) -> ValidationResult:
    """The answer to a claim that is to be delivered; USER vouches for it, AI_SYNTHESIS does not."""
    one = examined(content, delivery=delivery, source=source, **about)
    answer = store.writer.submit(submission_of(one)).result()
    assert isinstance(answer, Decided)
    return answer.answer


def item(store: Store, answer: ValidationResult, owner_id: str = "ann") -> PendingMemory:
    """The item that an answer names."""
    found = queue_of(store).get_by_id(reviewer(owner_id), str(answer.queue_id))
    assert found is not None
    return found


def approve(store: Store, waits: PendingMemory, now: datetime = LATER, **asked: Any) -> Any:
    """What approving it in its present version comes to."""
    return queue_of(store).approve(reviewer(), waits.id, version=waits.version, now=now, **asked)


def rows(store: Store, owner_id: str = "ann") -> list[tuple[int, str, str, str, str | None]]:
    """(number, sink, place, op, memory) of everything an owner's stores are to be told, in order."""
    t = outbox.TABLE
    asked = select(t.c.seq, t.c.sink, t.c.place, t.c.op, t.c.memory_id).where(t.c.owner_id == owner_id)
    with store.read() as connection:
        return [tuple(row) for row in connection.execute(asked.order_by(t.c.seq))]


def hook(store: Store, owner_id: str = "ann") -> str:
    """A webhook that gets all memories of an owner."""
    values = {
        "owner_id": owner_id,
        "id": "sink_1",
        "url": "https://x.example",
        "secret": "s",
        "events": "memory.stored memory.removed",
        "created_at": NOW,
        "told_seq": 0,
        "attempts": 0,
    }
    table = WebhookRow.metadata.tables["webhook"]
    store.writer.run((), lambda c: c.execute(table.insert(), values)).result()
    return "sink_1"


def removal(delivery: DeliveryTarget) -> DeliveryTarget:
    """What asks for the removal of what is there."""
    return delivery.model_copy(update={"op": DeliveryOp.REMOVE})


def test_what_is_stored_is_to_be_delivered_and_what_waits_is_not(store: Store) -> None:
    stored = send(store, TEA, AT_ONE)
    send(store, COFFEE, AT_ONE.model_copy(update={"place": "drinks/2"}), Source.AI_SYNTHESIS)
    send(store, WATER, None)
    assert rows(store) == [(1, "kg", "drinks/1", "put", stored.memory_id)]
    t = outbox.TABLE
    with store.read() as connection:
        (row,) = connection.execute(select(t)).all()
    assert (row.state, row.attempts, row.data, row.id) == (
        "waiting",
        0,
        {"entity": "drinks"},
        outbox.delivery_id("ann", 1),
    )


@pytest.mark.on("sqlite")
def test_an_approval_delivers_the_text_that_was_approved(store: Store) -> None:
    answer = send(store, TEA, AT_ONE, Source.AI_SYNTHESIS)
    edited = examined(COFFEE, source=Source.AI_SYNTHESIS)
    approved = approve(store, item(store, answer), edited=edited)
    assert isinstance(approved, Approved)
    assert approved.memory.content == COFFEE
    assert rows(store) == [(1, "kg", "drinks/1", "put", approved.memory.id)]
    assert send(store, WATER, AT_ONE).rule == "place_change"  # the edited memory is what is at that place


@pytest.mark.on("sqlite")
def test_a_rejected_claim_is_never_delivered(store: Store) -> None:
    waits = item(store, send(store, TEA, AT_ONE, Source.AI_SYNTHESIS))
    answer = queue_of(store).reject(reviewer(), waits.id, version=1, reason="No.", now=LATER)
    assert isinstance(answer, Rejected)
    assert rows(store) == []


def test_writing_over_a_memory_waits_whatever_vouches_for_the_new_text(store: Store) -> None:
    old = send(store, TEA, AT_ONE)
    answer = send(store, COFFEE, AT_ONE)
    assert (answer.outcome, answer.rule, answer.reason) == (
        "queued",
        "place_change",
        "Changes what is stored",
    )
    assert answer.conflicting_memory_id == old.memory_id
    assert "place_taken" in {finding.code for finding in answer.findings}
    waits = item(store, answer)
    assert len(rows(store)) == 1
    both = approve(store, waits, supersede=False)
    assert isinstance(both, ApprovalRefused)
    assert both.code == "one_place"
    new = approve(store, waits)
    assert isinstance(new, Approved)
    assert new.superseded == old.memory_id
    assert memory(store, str(old.memory_id)).status is MemoryStatus.SUPERSEDED
    assert rows(store)[1:] == [(2, "kg", "drinks/1", "put", new.memory.id)]  # and no removal of what is gone
    assert_consistent(store)


def test_the_same_text_at_the_same_place_is_a_duplicate(store: Store) -> None:
    old = send(store, TEA, AT_ONE)
    again = send(store, TEA, AT_ONE)
    assert (again.rule, again.conflicting_memory_id) == ("duplicate", old.memory_id)
    assert len(rows(store)) == 1


@pytest.mark.on("sqlite")
def test_what_was_changed_back_by_undo_is_delivered_again(store: Store) -> None:
    old = send(store, TEA, AT_ONE)
    new = approve(store, item(store, send(store, COFFEE, AT_ONE)))
    assert isinstance(new, Approved)
    undone = queue_of(store).undo(reviewer(), new.item.id, version=new.item.version, now=LATER)
    assert isinstance(undone, Undone)
    assert rows(store)[2:] == [
        (3, "kg", "drinks/1", "remove", new.memory.id),
        (4, "kg", "drinks/1", "put", old.memory_id),
    ]
    assert_consistent(store)
    assert approve(store, item(store, send(store, WATER, AT_ONE))).superseded == old.memory_id


def test_a_retracted_memory_goes_from_everywhere_it_went(store: Store) -> None:
    sink = hook(store)
    answer = send(store, TEA, AT_ONE)
    name = str(answer.memory_id)
    assert rows(store) == [(1, "kg", "drinks/1", "put", name), (2, sink, name, "put", name)]
    gone = queue_of(store).retract(reviewer(), name, reason="Wrong.", now=LATER)
    assert isinstance(gone, Retracted)
    assert rows(store)[2:] == [(3, "kg", "drinks/1", "remove", name), (4, sink, name, "remove", name)]
    assert send(store, COFFEE, AT_ONE).outcome == "stored"  # the place is free again


@pytest.mark.on("sqlite")
def test_a_webhook_is_told_of_the_replaced_memory_too(store: Store) -> None:
    sink = hook(store)
    old = send(store, TEA, AT_ONE)
    new = approve(store, item(store, send(store, COFFEE, AT_ONE)))
    told = [(op, one) for _, where, _, op, one in rows(store) if where == sink]
    assert sorted(told) == sorted([("put", old.memory_id), ("put", new.memory.id), ("remove", old.memory_id)])


@pytest.mark.parametrize("made", ["before", "since"])
def test_a_webhook_is_told_once_of_what_is_in_force_again(store: Store, made: str) -> None:
    sink = hook(store) if made == "before" else "sink_1"
    old = send(store, TEA, AT_ONE)
    new = approve(store, item(store, send(store, COFFEE, AT_ONE)))
    if made == "since":
        hook(store)
    told = len(rows(store))
    undone = queue_of(store).undo(reviewer(), new.item.id, version=new.item.version, now=LATER)
    assert isinstance(undone, Undone)
    of_hook = [(op, one) for _, where, _, op, one in rows(store)[told:] if where == sink]
    left = [("remove", new.memory.id)] if made == "before" else []  # it was told of that one
    assert of_hook == [*left, ("put", old.memory_id)]


def test_an_expired_memory_leaves_its_place(store: Store) -> None:
    until = NOW + timedelta(days=1)
    old = send(store, TEA, AT_ONE, validity_horizon=until)
    assert send(store, COFFEE, AT_ONE, now=until).outcome == "stored"  # swept or not
    queue_of(store).expire_memories(until)
    assert [row[3] for row in rows(store)] == ["put", "remove", "put"]  # what is there now is the other's
    assert memory(store, str(old.memory_id), until).status is MemoryStatus.EXPIRED


def test_a_removal_waits_and_takes_the_memory_with_it(store: Store) -> None:
    old = send(store, TEA, AT_ONE)
    asked = removal(AT_ONE).model_copy(update={"data": {"tool": "delete"}})
    answer = send(store, TEA, asked)
    assert (answer.outcome, answer.rule, answer.reason) == (
        "queued",
        "removal",
        "Asks to remove what is stored",
    )
    assert answer.conflicting_memory_id == old.memory_id
    assert [finding.code for finding in answer.findings] == ["removal"]
    waits = item(store, answer)
    assert waits.removal_of == "kg drinks/1"
    again = send(store, TEA, asked)
    assert (again.rule, again.queue_id) == ("already_pending", waits.id)
    assert item(store, again).seen == 2
    assert isinstance(approve(store, waits, edited=examined(COFFEE)), ApprovalRefused)
    before = rows(store)
    removed = approve(store, waits)
    assert isinstance(removed, Removed)
    assert removed.memory is not None
    assert removed.memory.status is MemoryStatus.RETRACTED
    assert rows(store) == [*before, (2, "kg", "drinks/1", "remove", old.memory_id)]
    t = outbox.TABLE
    with store.read() as connection:
        assert connection.scalar(select(t.c.data).where(t.c.seq == 2)) == {"tool": "delete"}
    late = queue_of(store).undo(reviewer(), waits.id, version=removed.item.version, now=LATER)
    assert isinstance(late, NotUndoable)
    assert late.code == "removal"
    assert_consistent(store)


@pytest.mark.on("sqlite")
def test_what_the_gate_never_had_can_be_removed_too(store: Store) -> None:
    removed = approve(store, item(store, send(store, "I think it was me", removal(AT_ONE), speculates=True)))
    assert isinstance(removed, Removed)
    assert removed.memory is None
    assert rows(store) == [(1, "kg", "drinks/1", "remove", None)]


@pytest.mark.on("sqlite")
def test_a_removal_is_of_what_its_owner_was_shown(store: Store) -> None:
    send(store, TEA, AT_ONE)
    asked = item(store, send(store, TEA, removal(AT_ONE)))
    precious = approve(store, item(store, send(store, COFFEE, AT_ONE)))
    assert isinstance(precious, Approved)
    answer = approve(store, asked)
    assert isinstance(answer, ApprovalRefused)
    assert (answer.code, answer.conflicting_memory_id) == ("other_memory", precious.memory.id)
    assert memory(store, precious.memory.id).status is MemoryStatus.ACTIVE


@pytest.mark.on("sqlite")
def test_a_removal_asked_for_while_nothing_was_known_is_of_nothing_that_came_since(store: Store) -> None:
    asked = item(store, send(store, "Old tea", removal(AT_ONE)))
    send(store, COFFEE, AT_ONE)
    answer = approve(store, asked)
    assert isinstance(answer, ApprovalRefused)
    assert answer.code == "other_memory"


def test_what_was_replaced_does_not_come_back_over_another(store: Store) -> None:
    long = f"{TEA}, and what is left over is kept in the tall cupboard beside the window until floor {{}} needs it"
    old = send(store, long.format(3), AT_ONE)
    conflict = item(store, send(store, long.format(4), AT_ONE.model_copy(update={"place": "drinks/2"})))
    assert conflict.conflicting_memory_id == old.memory_id
    new = approve(store, conflict, supersede=True)
    assert isinstance(new, Approved)
    send(store, COFFEE, AT_ONE)  # the place is free again
    before = everything(store)
    undone = queue_of(store).undo(reviewer(), conflict.id, version=new.item.version, now=LATER)
    assert isinstance(undone, NotUndoable)
    assert undone.code == "place_taken"
    assert everything(store) == before


@pytest.mark.on("sqlite")
def test_the_same_text_of_another_type_is_no_way_to_a_place(store: Store) -> None:
    """It would be a second memory there, and take the first with it when its time is over."""
    send(store, TEA, AT_ONE)
    soon = NOW + timedelta(seconds=1)
    again = send(store, TEA, AT_ONE, memory_type=MemoryType.DECISION, validity_horizon=soon)
    assert (again.outcome, again.rule) == ("queued", "place_change")


@pytest.mark.on("sqlite")
def test_a_rejected_removal_removes_nothing_and_can_be_taken_back(store: Store) -> None:
    send(store, TEA, AT_ONE)
    waits = item(store, send(store, TEA, removal(AT_ONE)))
    rejected = queue_of(store).reject(reviewer(), waits.id, version=1, reason="It stays.", now=LATER)
    assert isinstance(rejected, Rejected)
    assert len(rows(store)) == 1
    undone = queue_of(store).undo(reviewer(), waits.id, version=rejected.item.version, now=LATER)
    assert isinstance(undone, Undone)
    assert send(store, TEA, removal(AT_ONE)).rule == "already_pending"  # it is found again
    assert isinstance(approve(store, undone.item), Removed)


@pytest.mark.on("sqlite")
def test_a_removal_is_in_no_index(store: Store) -> None:
    """Its text is that of what is to go: a claim in the same words is no repeat of it."""
    send(store, TEA, removal(AT_ONE))
    with store.read() as connection:
        assert connection.scalar(select(window.TABLE.c.item_id)) is None
        assert upkeep.status(connection).items == 0
    assert send(store, TEA, None).outcome == "stored"


def test_claims_of_one_group_see_each_other(store: Store) -> None:
    sent = [
        submission_of(examined(TEA, delivery=AT_ONE)),
        submission_of(examined(COFFEE, delivery=AT_ONE)),
        submission_of(examined(TEA, delivery=removal(AT_ONE))),
        submission_of(examined(TEA, delivery=removal(AT_ONE))),
        submission_of(examined(WATER, delivery=AT_ONE, owner_id="bob")),
    ]
    answers = store.writer.run(["ann", "bob"], lambda c: write_submissions(c, sent, lock_total=True)).result()
    found = [one.answer for one in answers if isinstance(one, Decided)]
    assert [one.rule for one in found] == [
        "trusted_source",
        "place_change",
        "removal",
        "already_pending",
        "trusted_source",
    ]
    assert found[2].queue_id == found[3].queue_id
    assert [row[0] for row in rows(store)] == [row[0] for row in rows(store, "bob")] == [1]


def test_owners_do_not_meet_at_a_place(store: Store) -> None:
    send(store, TEA, AT_ONE)
    assert send(store, COFFEE, AT_ONE, owner_id="bob").outcome == "stored"
    assert send(store, WATER, AT_ONE.model_copy(update={"sink": "mem0"})).outcome == "stored"


def test_a_full_queue_refuses_a_removal_and_writes_nothing(store: Store) -> None:
    small = policy(per_owner=1)
    for content, delivery in ((COFFEE, None), (TEA, removal(AT_ONE))):
        before = everything(store)
        one = examined(content, source=Source.AI_SYNTHESIS, under=small, delivery=delivery)
        answer = store.writer.submit(submission_of(one)).result()
    assert type(answer).__name__ == "QueueFull"
    assert everything(store) == before


@pytest.mark.on("sqlite")
@pytest.mark.parametrize("place", ["a b", "ü 🍵", "' OR 1=1 --", "x" * 512])
def test_places_of_all_kinds(store: Store, place: str) -> None:
    there = DeliveryTarget(sink="kg", place=place)
    old = send(store, TEA, there)
    assert send(store, COFFEE, there).conflicting_memory_id == old.memory_id
    assert send(store, TEA, removal(there)).conflicting_memory_id == old.memory_id
