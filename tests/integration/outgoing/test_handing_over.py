"""A delivery handed over with the answer to its claim: leased in the transaction that writes it, in the order of its
stream and to the token that serves it, and found again when the answer was lost."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from tests.claims import NOW, examined, submission_of
from tests.counting import counting
from tests.delivering import AGENT, ANN, SECOND, SINK, put, states, take
from vouchgate.gate import deliveries as acts
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.delivery import DeliveryOp, DeliveryTarget
from vouchgate.ingest.claims.leased import Delivery
from vouchgate.ingest.claims.modes import Mode, ModeSwitch
from vouchgate.review.trust import modes
from vouchgate.storage.claims import memories
from vouchgate.storage.claims.submit import Decided, Repeated, Submission, write_submissions
from vouchgate.storage.outgoing.deliveries import DeliveryRecord
from vouchgate.storage.store import Store


def asking(number: int, key: str | None = None, token_id: str = AGENT, **more: Any) -> Submission:
    """A claim with a place of its own, whose delivery is wanted with the answer."""
    wanted = DeliveryTarget(
        sink=more.pop("sink", SINK),
        place=f"row {number}",
        op=more.pop("op", DeliveryOp.PUT),
        data={"n": number},
    )
    one = examined(f"Crate c{number}c stands in row r{number}r.", **more)
    one = replace(one, claim=one.claim.model_copy(update={"delivery": wanted}))
    return replace(submission_of(one, principal_id=token_id, key=key), hand_over=True)


def ask(
    store: Store, number: int, key: str | None = None, token_id: str = AGENT, **more: Any
) -> Delivery | None:
    """What is handed over with the answer to such a claim."""
    answer = store.writer.submit(asking(number, key, token_id, **more)).result()
    assert isinstance(answer, Decided | Repeated)
    assert '"lease"' not in answer.json, "it is no part of what is kept"
    return answer.delivery


def given(delivery: Delivery | None) -> Delivery:
    """It was handed over."""
    assert delivery is not None
    return delivery


def report(store: Store, one: Delivery, token_id: str = AGENT) -> bool:
    """Reports it as delivered; whether that was noted."""
    now = datetime.now(UTC)
    return isinstance(acts.mark_done(store, ANN, one.id, one.lease, now, token_id=token_id), DeliveryRecord)


def test_what_is_handed_over_is_what_a_lease_would_have_given(store: Store) -> None:
    before = datetime.now(UTC)
    one = given(ask(store, 1))
    after = datetime.now(UTC)
    assert (one.place, one.op, one.data, one.attempts) == ("row 1", "put", {"n": 1}, 0)
    assert one.content == "Crate c1c stands in row r1r."
    assert take(store, before + timedelta(seconds=59)) == [], "nobody else gets it"
    # Whoever got it is gone: when the lease ends, it comes to the next who asks.
    (again,) = take(store, after + timedelta(seconds=61))
    assert again.told() == one.model_copy(update={"lease": again.lease}) and again.lease != one.lease
    assert not report(store, one), "the lease is another's by now"
    assert states(store) == ["waiting"]


def test_nothing_comes_before_what_was_stored_earlier(store: Store) -> None:
    first = given(ask(store, 1))
    assert ask(store, 2) is None, "while the first is written"
    assert given(ask(store, 3, sink="other")).place == "row 3"
    assert given(ask(store, 4, owner_id="bob")).place == "row 4", "owners do not wait for each other"
    assert report(store, first)
    assert ask(store, 5) is None, "the second waits, and nobody has it"
    for handed in take(store, datetime.now(UTC)):
        assert report(store, handed.told())
    sixth = given(ask(store, 6))
    now = datetime.now(UTC)
    due = now + SECOND
    failed = acts.mark_failed(
        store, ANN, sixth.id, sixth.lease, now, error="full", final=False, token_id=AGENT
    )
    assert isinstance(failed, DeliveryRecord) and failed.due_at == due
    assert ask(store, 7) is None, "the one that failed is tried again first"
    both = take(store, due)
    assert [one.record.place for one in both] == ["row 6", "row 7"]
    dead = acts.mark_failed(store, ANN, sixth.id, both[0].lease, due, error="no", final=True, token_id=AGENT)
    assert isinstance(dead, DeliveryRecord) and report(store, both[1].told())
    assert given(ask(store, 8)).place == "row 8", "a dead letter holds nothing up"


def test_of_claims_decided_together_the_first_is_handed_over(store: Store) -> None:
    """And when the second of them is the first, sent again since its answer was lost, it is as well."""
    put(store, 0, sink="made", owner_id="ann")
    group = [asking(1), asking(2), asking(3, "again", owner_id="bob"), asking(3, "again", owner_id="bob")]
    answers = store.writer.run(
        ["ann", "bob"], lambda connection: write_submissions(connection, group)
    ).result()
    first, second, third, again = (one.delivery for one in answers if isinstance(one, Decided | Repeated))
    assert given(first).place == "row 1" and second is None
    assert given(third).id == given(again).id


def test_only_what_is_stored_has_one_and_only_for_who_serves_the_sink(store: Store) -> None:
    assert ask(store, 1, source=Source.AI_SYNTHESIS) is None
    assert ask(store, 2, op=DeliveryOp.REMOVE) is None
    assert states(store) == []
    assert ask(store, 3, token_id="stranger") is None, "the sink is bound to who named it first"
    (due,) = take(store, datetime.now(UTC))
    assert due.record.place == "row 3"
    # As in a database made before sinks were bound: the same rule as for a lease.
    store.writer.run(["ann"], lambda c: c.execute(text("DELETE FROM sink_consumer"))).result()
    assert report(store, due.told(), "stranger"), "who put something there before"
    assert ask(store, 4) is None
    assert given(ask(store, 5, sink="own", token_id="stranger")).sink == "own"


@pytest.mark.parametrize("lost", [1, 3])
def test_a_lost_answer_is_given_again(store: Store, lost: int) -> None:
    tries = [given(ask(store, 1, "key")) for _ in range(lost + 1)]
    assert {one.id for one in tries} == {tries[0].id} and len({one.lease for one in tries}) == lost + 1
    assert ask(store, 1, "key", token_id="other") is None, "a key is its token's own"
    assert take(store, datetime.now(UTC)) == []
    assert [report(store, one) for one in tries] == [False] * lost + [True], "the last that was told has it"
    assert ask(store, 1, "key") is None, "it is done"
    assert states(store) == ["delivered"]


def test_what_is_somebody_else_s_or_over_is_not_given_again(store: Store) -> None:
    given(ask(store, 1, "one"))
    late = datetime.now(UTC) + timedelta(seconds=61)
    assert len(take(store, late)) == 1
    assert ask(store, 1, "one") is None, "the lease had ended, and another has it"
    two = given(ask(store, 2, "two", owner_id="bob"))
    reading = ModeSwitch(owner_id="bob", agent="", mode=Mode.READ_ONLY, reason="", by="op", since=NOW)
    modes.switch(store, reading)
    assert ask(store, 2, "two", owner_id="bob") is None, "nothing is written while it is read-only"
    modes.switch(store, reading.model_copy(update={"mode": Mode.ENFORCE}))
    store.writer.run(
        ["bob"],
        lambda c: c.execute(text("UPDATE sink_consumer SET token_id = 'next' WHERE owner_id = 'bob'")),
    ).result()
    assert ask(store, 2, "two", owner_id="bob") is None, "the operator gave the sink to another"
    three = given(ask(store, 3, "three", owner_id="cat"))
    memory_id = str(three.memory_id)
    store.writer.run(["cat"], lambda c: memories.retract(c, "cat", memory_id, reason="no", at=NOW)).result()
    assert ask(store, 3, "three", owner_id="cat") is None
    assert two.owner_id == "bob"


def test_what_it_costs(store: Store) -> None:
    """Nothing where nobody asks."""
    put(store, 1)
    (one,) = take(store, datetime.now(UTC))
    assert report(store, one.told())
    with counting(store) as plain:
        put(store, 2)
    (two,) = take(store, datetime.now(UTC))
    assert report(store, two.told())
    with counting(store) as handed:
        given(ask(store, 3))
    # But for a spot check, which is drawn by chance.
    before, after = (sum("spot_check" not in each for each in one.writes) for one in (plain, handed))
    assert after == before + 1
    assert len(handed.reads) == len(plain.reads) + 2
