"""Deliveries are handed out at least once and in order, to one at a time, whatever fails; dead letters are seen and can
be put back."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from threading import Barrier, Thread

import pytest

from tests.claims import NOW
from tests.conftest import THRESHOLD
from tests.delivering import AGENT, ANN, SECOND, SINK, all_of, ask, done, fail, places, put, states, take
from tests.reviews import history, memory, queue_of, reviewer, set_mode
from vouchgate.gate import deliveries as acts
from vouchgate.gate.deliveries import LeaseNotHeld, NotDeadLetter, Outdated
from vouchgate.ingest.claims.delivery import DeliveryOp
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.modes import Mode
from vouchgate.storage.claims import memories
from vouchgate.storage.log import chain as log
from vouchgate.storage.outgoing import deliveries
from vouchgate.storage.outgoing import streams as delivery_streams
from vouchgate.storage.outgoing.deliveries import LEASE, WAITS, DeliveryRecord, LeasedDelivery
from vouchgate.storage.store import Store

BOB = frozenset({"bob"})


# --- taking and reporting


def test_what_was_stored_is_handed_out_in_order_with_its_text(store: Store) -> None:
    ids = [put(store, number, data={"shelf": number}) for number in range(3)]
    taken = take(store)
    assert [handed.record.memory_id for handed in taken] == ids
    assert places(taken) == ["row 0", "row 1", "row 2"]
    first = taken[0]
    assert first.memory is not None
    assert first.memory.content == "Crate c0c stands in row r0r."
    assert (first.record.op, first.record.data, first.record.attempts) == (DeliveryOp.PUT, {"shelf": 0}, 0)
    assert [done(store, handed) for handed in taken] == [True] * 3
    assert states(store) == ["delivered"] * 3
    assert take(store) == []
    assert all_of(store)[0].delivered_at == NOW
    assert all_of(store)[0].due_at is None


@pytest.mark.on("sqlite")
def test_claims_without_a_place_are_delivered_nowhere(store: Store) -> None:
    put(store, 1)
    ask(store, "The cellar is damp.", "cellar")
    assert len(all_of(store)) == 1


def test_nobody_else_gets_any_of_it_while_a_lease_lasts(store: Store) -> None:
    for number in range(4):
        put(store, number)
    mine = take(store, most=2)
    almost = NOW + LEASE - SECOND
    assert take(store, almost) == []
    assert done(store, mine[0], almost)  # which is a sign of life
    later = almost + LEASE - SECOND
    assert take(store, later) == []
    assert done(store, mine[1], later)
    assert places(take(store, later)) == ["row 2", "row 3"]


def test_what_somebody_who_died_held_comes_to_others_and_a_late_report_still_counts(store: Store) -> None:
    for number in range(3):
        put(store, number)
    dead, after = take(store, most=2), NOW + LEASE
    taken = take(store, after, most=1)
    assert places(taken) == ["row 0"]
    assert taken[0].record.id == dead[0].record.id
    assert taken[0].lease != dead[0].lease
    assert not done(store, dead[0], after)
    assert fail(store, dead[0], after) is None
    assert states(store) == ["waiting"] * 3
    assert done(store, taken[0], after)
    assert done(store, dead[0], after)  # delivered it is, so there is nothing to add
    assert fail(store, dead[0], after) is None
    assert done(store, dead[1], after)  # what nobody took since
    assert states(store) == ["delivered", "delivered", "waiting"]


@pytest.mark.on("sqlite")
def test_a_report_is_for_who_may_act_for_the_owner_and_names_the_lease(store: Store) -> None:
    put(store, 1)
    (handed,) = take(store)
    of = handed.record.id
    assert acts.mark_done(store, BOB, of, handed.lease, NOW, token_id=AGENT) is None
    assert acts.mark_failed(store, BOB, of, handed.lease, NOW, error="", final=True, token_id=AGENT) is None
    assert acts.mark_done(store, ANN, "dlv_0", handed.lease, NOW, token_id=AGENT) is None
    assert acts.mark_done(store, ANN, "a\x00b", handed.lease, NOW, token_id=AGENT) is None
    assert isinstance(acts.mark_done(store, ANN, of, "", NOW, token_id=AGENT), LeaseNotHeld)
    assert isinstance(
        acts.mark_failed(store, ANN, of, "x", NOW, error="", final=True, token_id=AGENT), LeaseNotHeld
    )
    assert states(store) == ["waiting"]


def test_owners_and_sinks_do_not_wait_for_one_another(store: Store) -> None:
    put(store, 1)
    put(store, 2, owner_id="bob")
    put(store, 3, sink="other")
    (mine,) = take(store)
    assert fail(store, mine) is not None
    assert places(take(store, owners=BOB)) == ["row 2"]
    assert places(take(store, sink="other")) == ["row 3"]
    assert take(store, sink="third") == []


@pytest.mark.parametrize("owners", [frozenset({"ann", "bob", "cid"}), None])
def test_one_who_acts_for_several_owners_gets_all_of_it_longest_due_first(
    store: Store, owners: frozenset[str] | None
) -> None:
    put(store, 1, owner_id="cid", now=NOW)
    for number in (2, 3):
        put(store, number, owner_id="ann", now=NOW + SECOND)
    put(store, 4, owner_id="bob", now=NOW + 2 * SECOND)
    put(store, 5, owner_id="bob", sink="other")
    after = NOW + 3 * SECOND
    first = take(store, after, most=2, owners=owners)
    assert [(handed.record.owner_id, handed.record.place) for handed in first] == [
        ("cid", "row 1"),
        ("ann", "row 2"),
    ]
    rest = take(store, after, owners=owners)
    assert [(handed.record.owner_id, handed.record.place) for handed in rest] == [("bob", "row 4")]
    assert take(store, after, owners=owners) == []


@pytest.mark.parametrize("owners", [frozenset({"ann", "bob"}), None])
def test_what_is_read_only_keeps_nobody_from_theirs(store: Store, owners: frozenset[str] | None) -> None:
    put(store, 1)
    put(store, 2, owner_id="bob", now=NOW + SECOND)
    set_mode(store, "ann", Mode.READ_ONLY)
    assert places(take(store, NOW + SECOND, most=1, owners=owners)) == ["row 2"]
    assert take(store, NOW + SECOND, owners=owners) == []
    set_mode(store, "ann", Mode.ENFORCE)
    assert places(take(store, NOW + SECOND, owners=owners)) == ["row 1"]


@pytest.mark.on("sqlite")
def test_what_waits_or_was_rejected_is_not_delivered(store: Store) -> None:
    item = ask(store, "The cellar is damp in May.", "cellar")
    assert take(store) == []
    queue_of(store).reject(
        reviewer(), ask(store, "The attic is dry.", "attic"), version=1, reason="no", now=NOW
    )
    queue_of(store).approve(reviewer(), item, version=1, now=NOW)
    (handed,) = take(store)
    assert handed.memory is not None
    assert handed.memory.content == "The cellar is damp in May."
    assert handed.record.place == "cellar"


def test_what_went_out_of_force_before_it_was_delivered_is_skipped(store: Store) -> None:
    ids = [put(store, number) for number in range(3)]
    queue_of(store).retract(reviewer(), ids[1], reason="it was sold", now=NOW)
    taken = take(store)
    assert [(handed.record.op.value, handed.record.place) for handed in taken] == [
        ("put", "row 0"),
        ("put", "row 2"),
        ("remove", "row 1"),
    ]
    skipped = all_of(store)[1]
    assert (skipped.state.value, skipped.last_error) == (
        "skipped",
        "Its memory was out of force before it was delivered.",
    )
    assert memory(store, ids[1]).content not in {
        handed.memory.content for handed in taken if handed.memory and handed.record.op is DeliveryOp.PUT
    }


def test_more_that_need_not_be_told_than_a_lease_holds_hide_nothing(store: Store) -> None:
    ids = [put(store, number) for number in range(5)]
    for memory_id in ids[:4]:
        queue_of(store).retract(reviewer(), memory_id, reason="sold", now=NOW)
    assert places(take(store, most=2)) == ["row 4", "row 0"]


def test_what_need_not_be_told_is_passed_over_in_short_transactions(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliveries, "MOST", 2)
    ids = [put(store, number) for number in range(24)]
    for memory_id in ids[:-1]:
        queue_of(store).retract(reviewer(), memory_id, reason="sold", now=NOW)
    lease = partial(deliveries.lease, owner_id="ann", sink=SINK, now=NOW, most=2, name="lease-1")
    assert store.writer.run(["ann"], lease).result() == []
    assert states(store).count("skipped") == 2 * deliveries.LOOKS
    assert places(take(store, most=2)) == ["row 23", "row 0"]


# --- failures


def test_what_failed_holds_up_what_comes_after_it(store: Store) -> None:
    for number in range(3):
        put(store, number)
    first, second, third = take(store)
    assert done(store, first)
    record = fail(store, second)
    assert record is not None
    assert (record.state.value, record.attempts, record.last_error) == ("waiting", 1, "the shelf is full")
    assert record.due_at == NOW + timedelta(seconds=WAITS[0])
    assert not done(store, third)  # it was leased with what failed, and waits behind it
    assert take(store, NOW + 0.9 * SECOND) == []
    again = take(store, NOW + SECOND)
    assert places(again) == ["row 1", "row 2"]
    assert again[0].record.id == second.record.id
    assert again[0].record.attempts == 1


@pytest.mark.on("sqlite")
def test_after_the_eighth_failure_it_is_dead_and_the_next_goes_on(store: Store) -> None:
    put(store, 1)
    put(store, 2)
    at = NOW
    waits: list[float] = []
    while states(store)[0] == "waiting":
        head = take(store, at)[0]
        assert head.record.place == "row 1"
        record = fail(store, head, at)
        assert record is not None
        if record.due_at is not None:
            waits.append((record.due_at - at).total_seconds())
            at = record.due_at
    assert waits == list(WAITS)
    dead = all_of(store)[0]
    assert (dead.state.value, dead.attempts, dead.last_error) == ("dead", 8, "the shelf is full")
    assert take(store, at) == []  # who reported still has the next
    assert places(take(store, at + LEASE)) == ["row 2"]


@pytest.mark.on("sqlite")
def test_a_final_failure_is_dead_at_once(store: Store) -> None:
    put(store, 1)
    put(store, 2)
    first, second = take(store)
    record = fail(store, first, final=True)
    assert record is not None
    assert record.state.value == "dead"
    assert done(store, second)
    with store.read() as connection:
        assert delivery_streams.figures(connection) == delivery_streams.DeliveryFigures(0, 1)


@pytest.mark.on("sqlite")
def test_errors_are_kept_short_and_readable(store: Store) -> None:
    put(store, 1)
    (handed,) = take(store)
    error = "\x1b[31mno\N{RIGHT-TO-LEFT OVERRIDE}\nroom \ud800" + "x" * 9000
    acts.mark_failed(
        store, ANN, handed.record.id, handed.lease, NOW, error=error, final=False, token_id=AGENT
    )
    (record,) = all_of(store)
    assert record.last_error is not None
    assert record.last_error.startswith("[31mno  room  xxx")
    assert len(record.last_error) == 500


@pytest.mark.on("sqlite")
def test_how_long_something_has_been_stuck(store: Store) -> None:
    def since(at: timedelta) -> timedelta | None:
        with store.read() as connection:
            found = deliveries.stuck_since(connection, NOW + at)
        return None if found is None else found - NOW

    assert since(timedelta(0)) is None
    put(store, 1)
    assert since(timedelta(hours=2)) == timedelta(0)  # nobody takes it
    at = NOW
    for _ in range(6):
        record = fail(store, take(store, at)[0], at)
        assert record is not None
        assert record.due_at is not None
        at = record.due_at
    assert since(at - NOW - timedelta(minutes=1)) == timedelta(0)  # every try fails
    assert done(store, take(store, at)[0], at)
    assert since(timedelta(hours=9)) is None


# --- dead letters


def kill(store: Store, number: int, **more: str) -> DeliveryRecord:
    """A dead letter at a place of its own."""
    put(store, number, **more)
    record = fail(store, take(store)[-1], final=True)
    assert record is not None
    return record


def test_a_dead_letter_that_is_put_back_is_tried_as_often_as_a_new_one(store: Store) -> None:
    dead = kill(store, 1)
    put(store, 2)
    later = NOW + timedelta(hours=5)
    back = acts.retry(store, ANN, dead.id, actor="reviewer-rita", now=later)
    assert isinstance(back, DeliveryRecord)
    assert (back.state.value, back.attempts, back.due_at, back.id) == ("waiting", 0, later, dead.id)
    assert places(take(store, later)) == ["row 1", "row 2"]
    entry = history(store)[-1]
    assert (entry.action, entry.actor, entry.subject_id) == (
        Action.DELIVERY_RETRIED,
        "reviewer-rita",
        dead.id,
    )
    assert isinstance(acts.retry(store, ANN, dead.id, actor="x", now=later), NotDeadLetter)
    assert acts.retry(store, BOB, dead.id, actor="x", now=later) is None
    with store.read() as connection:
        assert log.verify(connection) == []


def test_a_dead_letter_is_put_back_behind_who_works_at_the_stream(store: Store) -> None:
    dead = kill(store, 1)
    for number in (2, 3):
        put(store, number)
    working = take(store)
    assert isinstance(acts.retry(store, ANN, dead.id, actor="x", now=NOW), DeliveryRecord)
    assert take(store) == []
    at = NOW + LEASE - SECOND
    assert done(store, working[0], at)
    assert take(store, at + LEASE - SECOND) == []
    assert done(store, working[1], at)
    assert places(take(store, at + LEASE)) == ["row 1"]


def test_a_failure_behind_one_that_was_put_back_still_holds_up_its_own(store: Store) -> None:
    dead = kill(store, 1)
    for number in (2, 3):
        put(store, number)
    working = take(store)
    acts.retry(store, ANN, dead.id, actor="x", now=NOW)
    assert fail(store, working[0]) is not None
    assert places(take(store)) == ["row 1"]
    assert places(take(store, NOW + LEASE)) == ["row 1", "row 2", "row 3"]


def test_what_would_undo_a_later_delivery_is_not_put_back(store: Store) -> None:
    dead = kill(store, 1)
    assert dead.memory_id is not None
    queue_of(store).retract(reviewer(), dead.memory_id, reason="sold", now=NOW)
    refused = acts.retry(store, ANN, dead.id, actor="x", now=NOW)
    assert isinstance(refused, Outdated)
    assert states(store) == ["dead", "waiting"]


def test_a_dead_letter_can_be_given_up_for_good(store: Store) -> None:
    dead = kill(store, 1)
    dropped = acts.drop(store, ANN, dead.id, actor="cli", now=NOW)
    assert isinstance(dropped, DeliveryRecord)
    assert dropped.state.value == "skipped"
    assert dropped.last_error == "Dropped. Before that: the shelf is full"
    assert isinstance(acts.drop(store, ANN, dead.id, actor="cli", now=NOW), NotDeadLetter)
    assert history(store)[-1].action is Action.DELIVERY_DROPPED


# --- reads


def test_deliveries_are_listed_newest_first_by_owner_and_page(store: Store) -> None:
    mine = [put(store, number) for number in range(5)]
    put(store, 7, owner_id="bob")
    put(store, 8, sink="other")
    fail(store, take(store)[0], final=True)

    def listed(**wanted: object) -> list[str | None]:
        with store.read() as connection:
            found = deliveries.search(connection, deliveries.DeliveryFilter.model_validate(wanted))
        return [record.memory_id for record in found]

    assert listed(owners=ANN, sink=SINK) == mine[::-1]
    assert listed(owners=ANN, sink=SINK, limit=2) == [mine[4], mine[3]]
    assert listed(owners=ANN, sink=SINK, limit=2, after=("ann", 4)) == [mine[2], mine[1]]
    assert listed(owners=ANN, state="dead") == [mine[0]]
    assert listed(owners=ANN, memory_id=mine[3]) == [mine[3]]
    assert listed(owners=BOB, memory_id=mine[3]) == []
    assert len(listed(owners=None)) == 7
    assert len(listed(owners=None, after=("bob", 1))) == 6
    with store.read() as connection:
        known = memories.by_ids(connection, "ann", mine, NOW)
        assert set(known) == set(mine)
        assert memories.by_ids(connection, "bob", mine, NOW) == {}
        of = deliveries.of_memories(connection, list(known.values()))
        assert deliveries.of_memories(connection, []) == {}
    assert {memory_id: [one.place for one in records] for memory_id, records in of.items()} == {
        memory_id: [f"row {number}"] for number, memory_id in enumerate(mine)
    }


# --- several at once


def _take_three(barrier: Barrier, got: list[list[LeasedDelivery]], now: datetime, store: Store) -> None:
    barrier.wait(120)
    got.append(take(store, now, most=3))


def test_two_who_ask_at_once_never_both_hold_it(store: Store, database_url: str) -> None:
    for number in range(30):
        put(store, number)
    other = Store.open(database_url, threshold=THRESHOLD)
    try:
        for turn in range(10):
            barrier, got = Barrier(4), list[list[LeasedDelivery]]()
            work = partial(_take_three, barrier, got, NOW + LEASE * turn)
            threads = [Thread(target=work, args=(on,)) for on in (store, other, store, other)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(120)
            assert sorted(len(one) for one in got) == [0, 0, 0, 3]
    finally:
        other.close()
