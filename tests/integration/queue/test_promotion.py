"""A claim that waits because its citation could not be checked is checked again by itself, and promoted when it
verifies and nothing else stands against it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from tests.claims import NOW, submission_of
from tests.models import policy_file
from tests.rechecking import CONTENT, NO_CHECKS, SAYS, Bench, bench, policy_with, reject_like
from tests.reviews import all_memories, assert_consistent, commits_to, history, memory, queue_of, reviewer
from vouchgate.embedding.paraphraser import Paraphraser, load_embedder
from vouchgate.ingest.checks.hedge import HedgeDetector
from vouchgate.ingest.claims.claim import Claim, MemoryType, Source
from vouchgate.ingest.claims.decision import Confidence, Label, ValidationResult
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.memory import MemoryStatus
from vouchgate.ingest.claims.waiting import ReviewStatus
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.pipeline import Examined, replay
from vouchgate.review.answers import AlreadyDecided, Approved, ItemChanged
from vouchgate.review.recheck import RecheckResult
from vouchgate.storage.claims import decisions
from vouchgate.storage.claims.submit import Decided
from vouchgate.storage.dedup import similar, vectors
from vouchgate.storage.dedup.upkeep import verify
from vouchgate.storage.queue import rechecks
from vouchgate.storage.store import Store
from vouchgate.workers.recheck import Rechecker
from vouchgate.workers.runner import AT_ONCE

SOON = NOW + timedelta(seconds=30)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def here(store: Store, tmp_path: Path) -> Iterator[Bench]:
    """A bench under the built-in policy."""
    with bench(store, tmp_path) as made:
        yield made


def decision(here: Bench, decision_id: str) -> ValidationResult:
    """A decision as it is kept; made again from its evidence it is the same."""
    with here.store.read() as connection:
        text = decisions.get(connection, decision_id, owners=None)
    kept = ValidationResult.model_validate_json(text or "")
    assert replay(kept, here.policy, HedgeDetector(here.policy.lexicon)) == ()
    return kept


def waiting(here: Bench, content: str = CONTENT, **more: Any) -> ValidationResult:
    """Sends a claim while the repository is out of reach; the repository is back afterwards."""
    here.hide()
    answer = here.send(content, **more)
    here.show()
    assert answer.rule == "citation_unknown", answer.reason
    return answer


@pytest.mark.on("sqlite")
def test_a_claim_that_cites_what_is_not_merged_waits_until_it_is(here: Bench) -> None:
    here.repository.git("checkout", "--quiet", "-b", "agent")
    made = here.repository.commit("Move the gateway to port 9090", {"gateway.txt": "port = 9090\n"})
    here.repository.git("checkout", "--quiet", "main")
    sent = here.send(f"The gateway was moved to port 9090 in commit {made[:10]}")
    assert sent.rule == "citation_unknown", sent.reason
    assert "citation_not_merged" in {finding.code for finding in sent.findings}
    assert here.work(SOON).again == 1
    here.repository.git("merge", "--quiet", "--ff-only", "agent")
    (row,) = here.schedule()
    assert here.work(row.due_at).promoted == 1
    (kept,) = all_memories(here.store)
    assert kept.label is Label.INFERENCE  # a message speaks for its own change, and makes no fact
    assert decision(here, kept.decision_id).evidence.sources[0].kind == "found"


@pytest.mark.on("sqlite")
def test_what_a_standing_ruling_rejects_by_now_goes_on_waiting(here: Bench) -> None:
    sent = waiting(here)
    reject_like(here, kind="adr")
    assert here.work(SOON).over == 1
    item = here.item(sent.queue_id)
    assert (item.status, item.version) == (ReviewStatus.PENDING, 1)
    assert item.reason.endswith("a standing ruling of its owner rejects it: none of these")
    assert here.schedule() == []
    assert here.send("ADR-0001 says that the gateway listens on port 8080.").rule == "standing_ruling"
    assert isinstance(queue_of(here.store).approve(reviewer(), item.id, version=1, now=SOON), Approved)
    assert_consistent(here.store, SOON)


def test_a_claim_whose_citation_verifies_is_promoted(here: Bench) -> None:
    sent = waiting(here, metadata={"ticket": 7})
    assert here.work(SOON - timedelta(seconds=1)) == NO_CHECKS
    assert here.work(SOON).promoted == 1
    item = here.item(sent.queue_id)
    assert (item.status, item.version, item.decided_by) == (ReviewStatus.PROMOTED, 2, "service")
    made = memory(here.store, str(item.memory_id))
    assert (made.content, made.status, made.metadata) == (CONTENT, MemoryStatus.ACTIVE, {"ticket": 7})
    assert (made.approved_by, made.source_id) == (None, "ADR-001")
    assert (made.confidence, made.label) == (Confidence.HIGH, Label.FACT)
    assert made.decision_id == item.decision_id != sent.decision_id
    kept = decision(here, made.decision_id)
    assert (kept.rule, kept.memory_id, kept.queue_id, kept.approved) == (
        "stated",
        made.id,
        None,
        True,
    )
    assert [source.kind for source in kept.evidence.sources] == ["found"]
    assert decision(here, str(sent.decision_id)) == sent
    entries = history(here.store)
    assert [e.action for e in entries] == [Action.CLAIM_QUEUED, Action.CLAIM_PROMOTED]
    assert (entries[1].subject_id, entries[1].actor) == (made.decision_id, "service")
    assert commits_to(here.store, entries[1], kept.model_dump_json())
    with here.store.read() as connection:
        shown = set(connection.scalars(select(similar.TABLE.c.memory_id)))
    assert shown == {made.id}
    assert [(row.item_id, row.kind) for row in here.schedule()] == [(made.id, "memory")]
    assert_consistent(here.store, SOON)
    assert verify(here.store).faults == 0
    # What was promoted is a memory for dedup too.
    assert here.send().conflicting_memory_id == made.id


@pytest.mark.on("sqlite")
def test_a_citation_that_turns_out_false_is_for_the_owner_to_see(here: Bench) -> None:
    sent = waiting(here)
    here.adr("Superseded by ADR-0002")
    assert here.work(SOON).redecided == 1
    item = here.item(sent.queue_id)
    assert (item.status, item.version) == (ReviewStatus.PENDING, 2)
    assert "Superseded by" in item.reason
    kept = decision(here, item.decision_id)
    assert (kept.rule, kept.queue_id, kept.memory_id) == ("refuted", item.id, None)
    entries = history(here.store)
    assert [e.action for e in entries] == [Action.CLAIM_QUEUED, Action.CLAIM_RECHECKED]
    assert (entries[1].subject_id, entries[1].actor) == (item.decision_id, "service")
    assert here.schedule() == []
    assert here.work(SOON + timedelta(days=20)) == NO_CHECKS
    queue = queue_of(here.store)
    assert isinstance(queue.approve(reviewer(), item.id, version=1, now=SOON), ItemChanged)
    done = queue.approve(reviewer(), item.id, version=2, now=SOON)
    assert isinstance(done, Approved)
    assert done.memory.decision_id == item.decision_id
    assert_consistent(here.store, SOON)


def test_what_stays_unknown_is_tried_at_growing_gaps_and_then_left_to_the_owner(
    store: Store, tmp_path: Path
) -> None:
    with bench(store, tmp_path, policy_with(first_seconds=10, growth=3, attempts=3)) as here:
        sent = waiting(here)
        here.hide()
        now = NOW
        for wait in (10, 30, 90):
            (row,) = here.schedule()
            assert abs((row.due_at - now).total_seconds() - wait) < 5
            now = row.due_at
            assert here.item(sent.queue_id).reason == "Citation could not be checked yet"
            counts = here.work(now)
            assert counts.again + counts.over == 1
        item = here.item(sent.queue_id)
        assert (item.status, item.version, item.decision_id) == ("pending", 1, sent.decision_id)
        assert item.reason.startswith("Could not be verified: tried again 3 times, at last: ")
        assert "grounding is not a git repository" in item.reason
        here.show()
        assert here.schedule() == []
        assert here.work(now + timedelta(days=9)) == NO_CHECKS
        assert [e.action for e in history(store)] == [Action.CLAIM_QUEUED]
        assert isinstance(queue_of(store).approve(reviewer(), item.id, version=1, now=now), Approved)
        assert_consistent(store, now)


@pytest.mark.on("sqlite")
def test_a_claim_with_several_citations_waits_until_all_are_known(here: Bench) -> None:
    sent = waiting(here, cites=("http://127.0.0.1:9/closed",))
    assert here.work(SOON).again == 1
    assert here.item(sent.queue_id).version == 1
    assert [row.attempts for row in here.schedule()] == [1]


@pytest.mark.on("sqlite")
def test_it_is_decided_with_what_is_stored_and_waits_by_then(here: Bench) -> None:
    """A conflict that came up meanwhile is the owner's, and names the memory. The item itself is none."""
    long = (
        "Per ADR-0001 the gateway of our billing platform listens on port {} and on no other port, so that the old"
        " proxies in front of it can be taken away one after the other without a window in which nobody answers"
    )
    sent = waiting(here, long.format(8080))
    vouched = here.send(long.format(9090), source=Source.USER)
    assert vouched.rule == "conflict"  # the item that waits
    item = here.item(vouched.queue_id)
    done = queue_of(here.store).approve(reviewer(), item.id, version=1, now=NOW)
    assert isinstance(done, Approved)
    assert here.work(SOON).redecided == 1
    item = here.item(sent.queue_id)
    assert (item.version, item.conflicting_memory_id) == (2, done.memory.id)
    assert decision(here, item.decision_id).rule == "conflict"
    answer = queue_of(here.store).approve(reviewer(), item.id, version=2, supersede=True, now=SOON)
    assert isinstance(answer, Approved)
    assert answer.superseded == done.memory.id
    assert_consistent(here.store, SOON)


@pytest.mark.on("sqlite")
def test_an_item_past_its_time_is_expired_not_promoted(here: Bench) -> None:
    sent = waiting(here)
    late = here.item(sent.queue_id).expires_at
    assert here.work(late).gone == 1
    assert here.item(sent.queue_id).status is ReviewStatus.PENDING  # which the sweep ends
    assert queue_of(here.store).expire(late) == 1
    assert here.item(sent.queue_id).status is ReviewStatus.EXPIRED
    assert all_memories(here.store, late) == []
    assert [e.action for e in history(here.store)] == [Action.CLAIM_QUEUED, Action.REVIEW_EXPIRED]
    assert here.schedule() == []
    assert_consistent(here.store, late)


@pytest.mark.on("sqlite")
def test_a_claim_that_does_not_hold_any_more_is_not_promoted(here: Bench) -> None:
    sent = waiting(here, validity_horizon=NOW + timedelta(seconds=10))
    assert here.work(SOON).over == 1
    item = here.item(sent.queue_id)
    assert (item.status, item.version) == ("pending", 1)
    assert "was to hold until" in item.reason
    assert here.schedule() == []


@pytest.mark.parametrize("act", ["approve", "reject", "expire"])
def test_an_item_that_was_decided_leaves_the_schedule(here: Bench, act: str) -> None:
    sent = waiting(here)
    queue, item_id = queue_of(here.store), str(sent.queue_id)
    if act == "approve":
        queue.approve(reviewer(), item_id, version=1, now=NOW)
    elif act == "reject":
        queue.reject(reviewer(), item_id, version=1, reason="no", now=NOW)
    else:
        queue.expire(NOW + timedelta(days=31))
    assert [row.kind for row in here.schedule()] == (["memory"] if act == "approve" else [])
    counts = here.work(SOON)
    assert counts.promoted == counts.redecided == 0


@pytest.mark.on("sqlite")
def test_only_rule_11_is_tried_again(store: Store, tmp_path: Path) -> None:
    with bench(store, tmp_path) as here:
        here.hide()
        assert here.send("Per ADR-0001 the gateway probably listens on port 8080.").rule == "technical_hedge"
        assert here.send("Per ADR-0001 the gateway listens on port 8080.").rule == "citation_unknown"
        assert here.send("Per ADR-0001 the gateway listens on port 8080.").rule == "already_pending"
        assert here.send("I guess, per ADR-0001, the gateway listens.").rule == "speculation"
        assert len(here.schedule()) == 1
        here.show()
    with bench(store, tmp_path / "other", policy_with(attempts=0)) as never:
        never.hide()
        assert never.send("Per ADR-0001 the old proxy is gone.").rule == "citation_unknown"
        assert len(never.schedule()) == 1


@pytest.mark.on("sqlite")
def test_a_check_that_fails_is_an_attempt_and_says_so(
    store: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(claim: Claim, *, fresh: bool = False) -> Examined:
        raise RuntimeError("the checks fell over")

    with bench(store, tmp_path, policy_with(attempts=2, growth=1), examine=broken) as here:
        sent = waiting(here)
        assert here.work(SOON).again == 1
        assert "the checks fell over" in caplog.text
        assert here.work(SOON + MINUTE).over == 1
        assert here.item(sent.queue_id).reason.endswith(
            "tried again 2 times, at last: the check itself failed."
        )
        assert_consistent(store)


def test_a_damaged_decision_costs_its_own_item_only(here: Bench, caplog: pytest.LogCaptureFixture) -> None:
    damaged = waiting(here)
    other = waiting(here, "Per ADR-0001 the old proxies are gone.")
    statement = (
        decisions.TABLE.update().where(decisions.TABLE.c.id == damaged.decision_id).values(answer="{}")
    )
    here.store.writer.run(["ann"], lambda c: c.execute(statement).rowcount).result()
    counts = here.work(SOON)
    assert (counts.promoted, counts.again) == (1, 1)
    assert here.item(other.queue_id).status is ReviewStatus.PROMOTED
    assert "cannot be understood" in caplog.text


def test_the_result_of_a_lease_that_was_lost_is_not_applied(here: Bench) -> None:
    """Another worker took the item over and finished while this one was reading."""
    sent = waiting(here)

    async def slow(claim: Claim, *, fresh: bool = False) -> Examined:
        examined = await here.examiner.examine(claim, fresh=fresh)
        later = SOON + timedelta(hours=1)
        taken = here.store.writer.run((), lambda c: rechecks.lease(c, later, 5, 60, "other")).result()
        assert [due.item_id for due in taken] == [sent.queue_id]
        return examined

    here.rechecker._examine = slow
    assert here.work(SOON).lost == 1
    assert here.item(sent.queue_id).status is ReviewStatus.PENDING
    assert [row.lease for row in here.schedule()] == ["other"]
    here.rechecker._examine = here.examiner.examine
    assert here.work(SOON + timedelta(hours=2)).promoted == 1
    assert_consistent(here.store, SOON)


def test_an_item_that_is_approved_while_it_is_checked_stays_approved(here: Bench) -> None:
    sent = waiting(here)

    async def overtaken(claim: Claim, *, fresh: bool = False) -> Examined:
        examined = await here.examiner.examine(claim, fresh=fresh)
        queue_of(here.store).approve(reviewer(), str(sent.queue_id), version=1, now=SOON)
        return examined

    here.rechecker._examine = overtaken
    assert here.work(SOON).lost == 1
    item = here.item(sent.queue_id)
    assert item.status is ReviewStatus.APPROVED
    assert [m.id for m in all_memories(here.store)] == [item.memory_id]
    again = queue_of(here.store).approve(reviewer(), item.id, version=1, now=SOON)
    assert isinstance(again, AlreadyDecided)
    assert_consistent(here.store, SOON)


@pytest.mark.on("sqlite")
def test_before_an_approval_a_source_that_went_away_gives_a_new_decision_once(here: Bench) -> None:
    other = "Per ADR-0001 the gateway probably listens on port 8080."
    sent = here.send(other)
    assert sent.rule == "technical_hedge"
    item = here.item(sent.queue_id)
    here.before_approval(item, now=SOON)
    assert here.item(item.id) == item
    here.adr("Rejected")
    here.before_approval(item, now=SOON)
    changed = here.item(item.id)
    assert (changed.version, changed.status) == (2, ReviewStatus.PENDING)
    kept = decision(here, changed.decision_id)
    assert any(f.code == "citation_not_in_force" for f in kept.findings)
    assert changed.reason.startswith(
        "Contains technical hedges - needs verification. ADR-0001 is not in force"
    )
    assert [e.action for e in history(here.store)] == [Action.CLAIM_QUEUED, Action.CLAIM_RECHECKED]
    queue = queue_of(here.store)
    assert isinstance(queue.approve(reviewer(), item.id, version=1, now=SOON), ItemChanged)
    here.before_approval(changed, now=SOON)
    assert here.item(item.id) == changed
    assert isinstance(queue.approve(reviewer(), item.id, version=2, now=SOON), Approved)
    assert_consistent(here.store, SOON)


@pytest.mark.on("sqlite")
def test_before_an_approval_what_cannot_be_found_out_changes_nothing(here: Bench) -> None:
    sent = here.send("Per ADR-0001 the gateway probably listens on port 8080.")
    item = here.item(sent.queue_id)
    here.hide()
    here.before_approval(item, item, now=SOON)
    assert here.item(item.id) == item
    here.show()
    here.adr("Rejected")
    seen_before = item.model_copy(update={"version": 9})
    here.before_approval(seen_before, now=SOON)
    assert here.item(item.id) == item


def test_a_round_does_all_that_is_due_a_few_at_once_and_tells_as_it_goes(here: Bench) -> None:
    words = ["amber", "birch", "cedar", "dune", "elm", "fern", "grove", "heath", "iris", "jade"]
    for word in words:
        waiting(here, f"Per ADR-0001 the {word} gateway listens on port 8080.")
    under_way, most = 0, 0

    async def counted(claim: Claim, *, fresh: bool = False) -> Examined:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        try:
            return await here.examiner.examine(claim, fresh=fresh)
        finally:
            under_way -= 1

    told: list[Mapping[RecheckResult, int]] = []
    job = Rechecker(here.store, here.policy, counted, here.world.read, clock=here.clock).job
    here.clock.now = SOON
    assert asyncio.run(job.run_once(SOON, told.append)) == {RecheckResult.PROMOTED: 10}
    assert sum(map(Counter, told), Counter[RecheckResult]()) == {RecheckResult.PROMOTED: 10}
    assert len(told) > 1
    assert 1 < most <= AT_ONCE
    assert {m.status for m in all_memories(here.store)} == {MemoryStatus.ACTIVE}
    assert_consistent(here.store, SOON)


@pytest.mark.on("sqlite")
def test_its_own_vector_does_not_stand_in_a_claims_way(database_url: str, tmp_path: Path) -> None:
    """Compared by meaning, a claim is nearest to the item that holds it: that is no paraphrase. Another item is."""
    under = load_policy(policy_file(tmp_path, "tests.models:Bag"))
    store = Store.open(database_url, threshold=under.threshold, vectors=True)
    with closing(store), bench(store, tmp_path, under) as here:
        by_meaning = Paraphraser(store, load_embedder(under), under.vector_threshold)

        async def near(claim: Claim, *, fresh: bool = False) -> Examined:
            examined = await here.examiner.examine(claim, fresh=fresh)
            embedding = by_meaning.embed(claim.content)
            facts = by_meaning.find(claim.owner_id, embedding, here.clock())
            return replace(examined.knowing(paraphrases=facts), embedding=embedding)

        def sent(content: str) -> str:
            claim = Claim(
                content=content,
                memory_type=MemoryType.FACT,
                asserted_source=Source.AI_SYNTHESIS,
                source=Source.AI_SYNTHESIS,
                owner_id="ann",
            )
            answer = store.writer.submit(submission_of(asyncio.run(near(claim)))).result()
            assert isinstance(answer, Decided)
            return str(answer.answer.queue_id)

        here.rechecker._examine = near
        here.adr("Accepted", f"{SAYS} Smoking in the long hall is banned.")
        here.hide()
        lone = sent("Per ADR-0001 the gateway listens on port 8080.")
        first = sent("Per ADR-0001 smoking in the long hall is banned.")
        here.show()
        second = sent("Per ADR-0001 smoking in the long hall is forbidden.")
        counts = here.work(SOON)
        assert (counts.promoted, counts.redecided) == (1, 1)
        assert here.item(lone).status is ReviewStatus.PROMOTED
        assert here.item(first).reason == "May say the same as an earlier claim in other words"
        assert here.item(second).status is ReviewStatus.PENDING
        decision(here, here.item(first).decision_id)
        with store.read() as connection:
            vectors_of = set(connection.scalars(select(vectors.TABLE.c.item_id)))
        assert vectors_of == {here.item(lone).memory_id, first, second}
        assert_consistent(store, SOON)
        by_meaning.close()
