"""How many claims may wait: of one agent, of one owner, in all; and those of imports, with places of their own."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from tests.claims import NOW, examined, policy, submission_of
from tests.integration.claims.test_submit import _in_one_group
from tests.reviews import assert_consistent, reviewer
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.waiting import Lane
from vouchgate.ingest.policy import Policy
from vouchgate.review.answers import NotUndoable, Rejected, Undone
from vouchgate.review.queue import ReviewQueue
from vouchgate.storage.claims.submit import Submission
from vouchgate.storage.queue import capacity
from vouchgate.storage.queue.capacity import QueueFull, QueueLimit
from vouchgate.storage.store import Store


def _limits(**queue: int) -> Policy:
    built_in = policy()
    return built_in.model_copy(update={"queue": built_in.queue.model_copy(update=queue)})


def _claims(under: Policy, agent: str, *things: str, lane: Lane = Lane.AGENT) -> list[Submission]:
    return [
        replace(
            submission_of(examined(f"The {thing} is oak.", source=Source.AI_SYNTHESIS, under=under)),
            principal_id=agent,
            lane=lane,
        )
        for thing in things
    ]


def _sent(store: Store, claims: list[Submission]) -> list[str]:
    """What became of each: queued, or the limit that was reached."""
    answers = _in_one_group(store, claims)
    return [a.which.value if isinstance(a, QueueFull) else type(a).__name__ for a in answers]


def test_an_agent_has_places_of_its_own_within_those_of_its_owner(store: Store) -> None:
    under = _limits(per_agent=3, per_owner=5, total=50)
    # Within one group and over groups: what is not written yet counts as well.
    assert _sent(store, _claims(under, "bea", "door", "table")) == ["Decided"] * 2
    assert _sent(store, _claims(under, "bea", "chair", "shelf")) == ["Decided", "per_agent"]
    assert _sent(store, _claims(under, "bea", "bench", "stool")) == ["per_agent"] * 2
    assert _sent(store, _claims(under, "cal", "lamp", "floor", "roof")) == ["Decided", "Decided", "per_owner"]
    assert_consistent(store)


def test_a_token_has_a_share_of_the_whole_for_all_its_owners(store: Store) -> None:
    """One that may name any owner does not fill the queue of all by naming many."""
    under = _limits(per_agent=2, per_owner=3, per_token=4, total=6)

    number = count()

    def of(agent: str, *owners: str) -> list[str]:
        claims = [
            submission_of(
                examined(
                    f"Door {next(number)} is oak.", owner_id=owner, source=Source.AI_SYNTHESIS, under=under
                )
            )
            for owner in owners
        ]
        return _sent(store, [replace(claim, principal_id=agent) for claim in claims])

    # Within one group and over groups, whoever its places are for.
    assert of("bea", "ann", "bob", "cyd") == ["Decided"] * 3
    assert of("bea", "dan", "eve", "fay") == ["Decided", "per_token", "per_token"]
    assert of("bea", "ann") == ["per_token"]
    # Which of them is the last is their owners' turn.
    assert sorted(of("cal", "ann", "ann", "gus")) == ["Decided", "Decided", "total"]
    full = QueueFull(QueueLimit.PER_TOKEN, 25_000, 60)
    assert (
        full.sentence
        == "25,000 claims of this token wait, of all the owners it sends for, which is the limit"
    )
    assert_consistent(store)


def test_imports_take_no_place_of_an_agent_and_the_other_way_round(store: Store) -> None:
    under = _limits(per_agent=2, per_owner=2, total=50, imports_per_owner=3, imports_total=4)
    rows = _claims(under, "bea", "door", "table", "chair", "shelf", lane=Lane.IMPORT)
    assert _sent(store, rows) == [*["Decided"] * 3, "imports_per_owner"]
    assert _sent(store, _claims(under, "bea", "lamp", "floor", "roof")) == ["Decided", "Decided", "per_agent"]
    both = [*_claims(under, "bea", "fence", lane=Lane.IMPORT), *_claims(under, "cal", "gate")]
    assert _sent(store, both) == ["imports_per_owner", "per_owner"]
    assert_consistent(store)
    queue = ReviewQueue(store, under)
    first = next(item for item in queue.search(reviewer()) if item.lane is Lane.IMPORT)
    done = queue.reject(reviewer(), first.id, version=1, reason="it is of pine", now=NOW)
    assert isinstance(done, Rejected)
    assert_consistent(store)
    # The place that is free is one for imports, which an undo needs again.
    assert _sent(store, _claims(under, "cal", "gate")) == ["per_owner"]
    assert _sent(store, _claims(under, "bea", "fence", lane=Lane.IMPORT)) == ["Decided"]
    refused = queue.undo(reviewer(), first.id, version=2, now=NOW)
    assert isinstance(refused, NotUndoable)
    assert "3 imported claims wait for this owner" in refused.message
    other = next(item for item in queue.search(reviewer()) if item.lane is Lane.IMPORT)
    queue.reject(reviewer(), other.id, version=1, reason="it is of pine", now=NOW)
    assert isinstance(queue.undo(reviewer(), first.id, version=2, now=NOW), Undone)
    assert_consistent(store)


def test_imports_have_a_limit_over_all_owners(store: Store) -> None:
    under = _limits(imports_per_owner=9, imports_total=3, total=1)
    rows = _claims(under, "bea", "door", "table", "chair", "shelf", lane=Lane.IMPORT)
    assert _sent(store, rows) == [*["Decided"] * 3, "imports_total"]
    assert _sent(store, _claims(under, "bea", "lamp", "floor")) == ["Decided", "total"]
    assert_consistent(store)


def test_a_policy_of_before_there_were_these_limits_means_what_it_meant(store: Store) -> None:
    old = _limits(per_owner=2, total=9)
    document = old.model_dump(mode="json")
    for name in ("per_agent", "imports_per_owner", "imports_total"):
        document["queue"].pop(name, None)
    under = Policy.model_validate(document)
    assert "per_agent" not in under.document
    assert under.queue.per_agent is None
    assert _sent(store, _claims(under, "bea", "door", "table", "chair")) == [*["Decided"] * 2, "per_owner"]
    rows = _claims(under, "bea", "lamp", "floor", "roof", lane=Lane.IMPORT)
    assert _sent(store, rows) == [*["Decided"] * 2, "imports_per_owner"]


def test_counting_reads_no_further_than_the_limit_and_no_import(store: Store) -> None:
    under = _limits(per_agent=2, per_owner=9)
    assert _sent(store, _claims(under, "bea", "door", "table", lane=Lane.IMPORT)) == ["Decided"] * 2
    assert _sent(store, _claims(under, "bea", "lamp", "floor", "roof")) == ["Decided", "Decided", "per_agent"]
    if store.dialect == "sqlite":
        statement = capacity._OF_AGENT[store.dialect]
        with store.read() as connection:
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", ("ann", "bea", 2)).all()
        assert any("INDEX pending_places" in row[-1] for row in plan), plan


def test_a_full_queue_says_which_limit_and_how_many() -> None:
    assert QueueFull(QueueLimit.PER_AGENT, 1000, 60).sentence == (
        "1,000 claims of this agent wait for their owner, which is the limit"
    )
