"""Approving what repeats or contradicts a stored memory, and approving the reviewer's own wording."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, select

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
from vouchgate.ingest.check import Findings
from vouchgate.ingest.claims.citation import Citation, CitationType
from vouchgate.ingest.claims.claim import Finding, MemoryType, Source, Verdict
from vouchgate.ingest.claims.decision import Confidence, Label, Tier, ValidationResult
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.memory import Memory, MemoryStatus
from vouchgate.ingest.claims.source import Found, Held, Stance, Standing
from vouchgate.ingest.claims.waiting import PendingMemory
from vouchgate.ingest.pipeline import Examined
from vouchgate.review.answers import ApprovalRefused, Approved
from vouchgate.storage.claims import decisions
from vouchgate.storage.claims.submit import Decided
from vouchgate.storage.errors import StorageError
from vouchgate.storage.log import chain as log
from vouchgate.storage.store import Store

LATER = NOW + timedelta(hours=1)


def gateway(port: int) -> str:
    """A sentence of 41 different words; two of them differ in their port alone, and reach the threshold even
    with one more word at the end of one."""
    return (
        "After the spring migration every internal gateway of our billing platform accepts encrypted traffic"
        f" only on port {port} and forwards anything else to a quiet host that logs it for later study by those"
        " who watch over its health at night"
    )


def approve(store: Store, item: PendingMemory, **asked: Any) -> Approved | ApprovalRefused:
    """Ann's reviewer approves the item in the version given."""
    answer = queue_of(store).approve(reviewer(), item.id, version=item.version, now=LATER, **asked)
    assert isinstance(answer, Approved | ApprovalRefused)
    return answer


def approved(store: Store, item: PendingMemory, **asked: Any) -> Approved:
    """The same, and it works."""
    answer = approve(store, item, **asked)
    assert isinstance(answer, Approved), answer
    assert_consistent(store)
    return answer


def refused(store: Store, item: PendingMemory, **asked: Any) -> ApprovalRefused:
    """The same, and it is refused and changes nothing at all."""
    before = everything(store)
    answer = approve(store, item, **asked)
    assert isinstance(answer, ApprovalRefused), answer
    assert everything(store) == before
    return answer


def edit(content: str, *verified: Finding, **claim: Any) -> Examined:
    """A reviewer's wording as the gate has examined it."""
    one = examined(content, source=Source.AI_SYNTHESIS, **claim)
    return replace(one, findings=Findings((*one.findings.every, *verified)))


def found(verdict: Verdict, code: str) -> Finding:
    """What was found of a cited ADR."""
    cited = Citation(type=CitationType.ADR, value="ADR-9", key="adr:9")
    return Finding(
        check="citation_verify", verdict=verdict, code=code, message=f"ADR-9: {code}.", citation=cited
    )


def conflict(store: Store) -> tuple[Memory, PendingMemory]:
    """A stored memory, and an item that says the same with another value."""
    old = stored(store, gateway(8443))
    item = waiting(store, gateway(9443))
    assert item.conflicting_memory_id == old.id
    return old, item


@pytest.mark.parametrize("supersede", [None, True, False])
def test_what_was_stored_meanwhile_is_not_stored_twice(store: Store, supersede: bool | None) -> None:
    item, other = waiting(store, gateway(8443)), waiting(store, "The relay keeps two days.")
    same = approved(store, other, edited=edit(gateway(8443)))
    answer = refused(store, item, supersede=supersede)
    assert (answer.code, answer.conflicting_memory_id) == ("duplicate", same.memory.id)
    assert same.memory.id in answer.message
    # the way out the message names
    assert (
        approved(store, item, edited=edit("The gateway is closed.")).memory.content
        == "The gateway is closed."
    )


def test_a_conflict_waits_for_a_word_on_the_old_memory(store: Store) -> None:
    old, item = conflict(store)
    answer = refused(store, item)
    assert (answer.code, answer.conflicting_memory_id) == ("conflict_unresolved", old.id)
    for part in (old.id, "supersede true", "supersede false", "9443", "8443"):
        assert part in answer.message


def test_superseding_puts_the_new_value_in_place_of_the_old(store: Store) -> None:
    old, item = conflict(store)
    answer = approved(store, item, supersede=True, note="Moved in May.")
    assert answer.superseded == old.id
    assert memory(store, old.id) == old.model_copy(
        update={"status": MemoryStatus.SUPERSEDED, "superseded_by": answer.memory.id}
    )
    assert memory(store, answer.memory.id).status is MemoryStatus.ACTIVE
    last = [(e.action, e.subject_id, e.actor) for e in history(store)[-2:]]
    assert last == [
        (Action.REVIEW_APPROVED, item.id, "reviewer-rita"),
        (Action.MEMORY_SUPERSEDED, old.id, "reviewer-rita"),
    ]
    # the old value is no neighbour any more, the new one is
    again = store.writer.submit(submission_of(examined(gateway(8443)))).result()
    assert isinstance(again, Decided)
    assert again.answer.conflicting_memory_id == answer.memory.id


@pytest.mark.on("sqlite")
def test_keeping_both_keeps_both(store: Store) -> None:
    old, item = conflict(store)
    answer = approved(store, item, supersede=False)
    assert answer.superseded is None
    assert memory(store, old.id) == old
    assert [m.status for m in all_memories(store)] == [MemoryStatus.ACTIVE] * 2


@pytest.mark.on("sqlite")
@pytest.mark.parametrize("supersede", [None, True, False])
def test_a_conflict_whose_memory_is_gone_is_none(store: Store, supersede: bool | None) -> None:
    old, item = conflict(store)
    queue_of(store).retract(reviewer(), old.id, reason="Shut down.", now=LATER)
    answer = approved(store, item, supersede=supersede)
    assert answer.superseded is None
    assert memory(store, old.id).status is MemoryStatus.RETRACTED


def test_a_conflict_that_came_up_while_it_waited_is_found(store: Store) -> None:
    first, second = waiting(store, gateway(8443)), waiting(store, gateway(9443))
    assert second.conflicting_memory_id is None  # it conflicted with an item, not with a memory
    old = approved(store, first).memory
    answer = refused(store, second)
    assert (answer.code, answer.conflicting_memory_id) == ("conflict_unresolved", old.id)
    assert approved(store, second, supersede=True).superseded == old.id


def test_one_approval_replaces_one_memory_the_one_that_was_shown(store: Store) -> None:
    old = stored(store, f"{gateway(8443)} too")
    item = waiting(store, gateway(9443))
    assert item.conflicting_memory_id == old.id
    rival = approved(store, waiting(store, gateway(7443)), supersede=False).memory  # nearer to the item
    assert refused(store, item).conflicting_memory_id == old.id
    assert approved(store, item, supersede=True).superseded == old.id
    assert memory(store, rival.id).status is MemoryStatus.ACTIVE


@pytest.mark.on("sqlite")
def test_other_items_that_wait_do_not_stand_in_the_way(store: Store) -> None:
    first, second = waiting(store, gateway(8443)), waiting(store, gateway(9443))
    approved(store, first)
    assert queue_of(store).get_by_id(reviewer(), second.id) == second


@pytest.mark.on("sqlite")
def test_another_owners_or_types_memory_is_no_conflict(store: Store) -> None:
    stored(store, gateway(8443), owner_id="bob")
    stored(store, gateway(8443), memory_type=MemoryType.PROCEDURE)
    item = waiting(store, gateway(9443))
    assert item.conflicting_memory_id is None
    approved(store, item)


def test_an_edit_is_stored_with_a_decision_of_its_own(store: Store) -> None:
    item = waiting(store, "The relay keeps two days.")
    answer = approved(store, item, edited=edit("The relay keeps three days.", now=LATER), note="Three.")
    kept = answer.memory
    assert (kept.content, kept.approved_by) == ("The relay keeps three days.", "reviewer-rita")
    assert kept.confidence is Confidence.MEDIUM
    assert answer.item.content == item.content  # both texts are kept
    assert (answer.item.decision_id, answer.item.memory_id) == (item.decision_id, kept.id)
    assert kept.decision_id != item.decision_id
    with store.read() as connection:
        row = connection.execute(
            select(decisions.TABLE).where(decisions.TABLE.c.id == kept.decision_id)
        ).one()
    result = ValidationResult.model_validate_json(row.answer)
    assert (row.owner_id, row.principal_id, row.tier, row.rule) == (
        "ann",
        "reviewer-rita",
        "tier_2",
        "ungrounded",
    )
    assert row.policy_digest == policy().digest == result.policy_digest
    assert result.evidence.claim.content == "The relay keeps three days."
    assert (result.decision_id, result.queue_id, result.memory_id) == (kept.decision_id, item.id, None)
    (logged,) = [entry for entry in history(store) if entry.action is Action.REVIEW_EDITED]
    assert (logged.actor, logged.subject_id) == ("reviewer-rita", kept.decision_id)
    assert commits_to(store, logged, row.answer)


@pytest.mark.on("sqlite")
def test_an_edit_that_passes_by_itself_says_so_in_its_decision(store: Store) -> None:
    item = waiting(store, "The relay keeps two days.")
    cited = Citation(type=CitationType.ADR, value="ADR-9", key="adr:9", start=28, end=33)
    reading = Found(
        citation=cited,
        source_id="ADR-009",
        standing=Standing.IN_FORCE,
        detail="Found.",
        official=True,
        held=(Held(start=0, end=27, stance=Stance.STATES, score=0.9),),
    )
    stated = Finding(check="statements", verdict=Verdict.PASS, code="stated", message="It says so.")
    edited = replace(
        edit("The relay keeps three days (ADR-9).", found(Verdict.PASS, "citation_verified"), stated),
        readings=(reading,),
    )
    kept = approved(store, item, edited=edited).memory
    assert (kept.confidence, kept.label, kept.source_id) == (Confidence.HIGH, Label.FACT, "ADR-009")
    with store.read() as connection:
        got = decisions.get(connection, kept.decision_id, owners=frozenset({"ann"}))
    assert got is not None
    result = ValidationResult.model_validate_json(got)
    assert (result.tier, result.memory_id, result.queue_id) == (Tier.STORED, kept.id, None)


@pytest.mark.on("sqlite")
@pytest.mark.parametrize("code", ["personal_speculation", "admitted_uncertainty", "undecided_suggestion"])
def test_an_edit_that_speculates_is_refused(store: Store, code: str) -> None:
    item = waiting(store, "The relay keeps two days.")
    hedge = Finding(check="hedge", verdict=Verdict.FAIL, code=code, message="It says maybe.")
    said = edit("Maybe three days.")
    others = said.findings["citation_detect"]
    answer = refused(store, item, edited=replace(said, findings=Findings((hedge, *others))))
    assert answer.code == "edit_hedged"
    assert "It says maybe." in answer.message


@pytest.mark.on("sqlite")
@pytest.mark.parametrize("verdict", [Verdict.FAIL, Verdict.DOUBT])
def test_an_edit_with_a_refuted_citation_is_refused(store: Store, verdict: Verdict) -> None:
    item = waiting(store, "The relay keeps two days.")
    edited = edit("Three days (ADR-9).", found(verdict, "citation_missing"))
    answer = refused(store, item, edited=edited)
    assert answer.code == "edit_citation_refuted"
    assert "ADR-9: citation_missing." in answer.message


@pytest.mark.on("sqlite")
def test_an_edit_with_an_unchecked_citation_is_the_owners_to_vouch_for(store: Store) -> None:
    item = waiting(store, "The relay keeps two days.")
    edited = edit("Three days (ADR-9).", found(Verdict.UNKNOWN, "citation_unchecked"))
    assert approved(store, item, edited=edited).memory.confidence is Confidence.MEDIUM


@pytest.mark.on("sqlite")
def test_an_edit_can_take_a_conflict_away_or_bring_one_in(store: Store) -> None:
    old, item = conflict(store)
    away = approved(store, item, edited=edit("The gateways have moved."))
    assert (away.superseded, memory(store, old.id)) == (None, old)
    other = waiting(store, "The relay keeps two days.")
    assert refused(store, other, edited=edit(gateway(7443))).conflicting_memory_id == old.id
    assert approved(store, other, edited=edit(gateway(7443)), supersede=True).superseded == old.id


@pytest.mark.on("sqlite")
def test_an_edit_far_from_the_old_memory_still_replaces_it_when_asked(store: Store) -> None:
    old, item = conflict(store)
    answer = approved(store, item, edited=edit("The gateways have moved."), supersede=True)
    assert answer.superseded == old.id
    assert memory(store, old.id).superseded_by == answer.memory.id


@pytest.mark.on("sqlite")
@pytest.mark.parametrize(
    "wrong",
    [
        {"owner_id": "bob"},
        {"memory_type": MemoryType.PROCEDURE},
        {"under": policy(threshold=0.8)},
    ],
    ids=["owner", "type", "policy"],
)
def test_an_edit_of_something_else_is_an_error_and_changes_nothing(
    store: Store, wrong: dict[str, Any]
) -> None:
    item = waiting(store, "The relay keeps two days.")
    before = everything(store)
    with pytest.raises(ValueError, match=r"an edit changes|another policy"):
        approve(store, item, edited=edit("The relay keeps three days.", **wrong))
    assert everything(store) == before


def test_a_replacement_that_fails_at_its_last_write_changes_nothing(store: Store) -> None:
    """The second of the two log numbers is taken: by then the item, the memory, its keys, the decision and
    the first log entry have been written."""
    old, item = conflict(store)

    def take_the_number_after_next(connection: Connection) -> None:
        rows = connection.execute(select(log.TABLE).order_by(log.TABLE.c.seq)).mappings().all()
        connection.execute(log.TABLE.insert(), dict(rows[-1]) | {"seq": len(rows) + 2})

    store.writer.run(["ann"], take_the_number_after_next).result()
    before = everything(store)
    with pytest.raises(StorageError):
        approve(store, item, supersede=True, edited=edit(gateway(7443)))
    assert everything(store) == before
    assert memory(store, old.id) == old
    approved_without_the_number = approve(store, item, supersede=False)
    assert isinstance(approved_without_the_number, Approved)


@pytest.mark.on("sqlite")
def test_a_memory_that_says_nearly_the_same_is_replaced_when_it_was_shown(store: Store) -> None:
    old = approved(store, waiting(store, "Refunds above 500 euros wait for a manager of the Bergen desk."))
    other = approved(store, waiting(store, "The till is counted at noon."))
    item = waiting(store, "Refunds above 500 euros wait for a manager of the Bergen desk, paid on Mondays.")
    for over in (other.memory.id, "mem_unknown"):
        assert refused(store, item, supersede=True, over=over).code == "not_alike"
    answer = approved(store, item, supersede=True, over=old.memory.id)
    assert answer.superseded == old.memory.id
    assert memory(store, old.memory.id).status is MemoryStatus.SUPERSEDED
    again = waiting(store, "Refunds above 500 euros wait for a manager of the Bergen desk, paid on Fridays.")
    assert refused(store, again, supersede=True, over=old.memory.id).code == "not_alike"  # it is gone
    assert approved(store, again, supersede=False, over=answer.memory.id).superseded is None
