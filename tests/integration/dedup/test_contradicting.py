"""A claim that contradicts a memory in few words waits, however it comes and whatever goes on meanwhile."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.claims import NOW, examined, policy, submission_of
from tests.reviews import assert_consistent, memory, queue_of, reviewer, stored
from vouchgate.gate.gate import Gate
from vouchgate.ingest.checks.hedge import HedgeDetector
from vouchgate.ingest.claims.claim import MemoryType, Source
from vouchgate.ingest.claims.decision import Outcome, ValidationResult
from vouchgate.ingest.claims.likeness import Neighbours
from vouchgate.ingest.claims.memory import MemoryStatus
from vouchgate.ingest.claims.people import Principal, Role
from vouchgate.ingest.dedup.compare import Allowance, Comparisons
from vouchgate.ingest.dedup.signature import signature_keys
from vouchgate.ingest.language.words import tokens
from vouchgate.ingest.pipeline import replay
from vouchgate.ingest.rules import Rule
from vouchgate.ingest.sources.git.source import GitSource
from vouchgate.review.acts import retract
from vouchgate.review.answers import ApprovalRefused, Approved
from vouchgate.sources.reader import Sources
from vouchgate.storage.claims.submit import Decided
from vouchgate.storage.dedup import contradicting, similar
from vouchgate.storage.identity.tokens import create
from vouchgate.storage.store import Store
from vouchgate.wire import ClaimIn

EARLIER, CLAIM = "The API listens on port 8080.", "The API listens on port 8081."
KEYS = signature_keys(tokens(CLAIM), "fact", policy().threshold)


@pytest.fixture
def gate(store: Store) -> Iterator[Gate]:
    """A gate with no sources."""
    made = Gate(policy(), store, Sources(GitSource([]), {}))
    yield made
    made.close()


@pytest.fixture
def agent(store: Store) -> Principal:
    """Whom the gate hears as the user."""
    user = frozenset({Source.USER})
    principal, _ = create(
        store,
        role=Role.AGENT,
        name="an agent",
        owners=["ann"],
        any_owner=False,
        sources=user,
        expires_at=None,
        actor="test",
        now=datetime.now(UTC),
    )
    return principal


def _submit(gate: Gate, agent: Principal, content: str, source: Source = Source.USER) -> ValidationResult:
    """What becomes of it; made again from its evidence it is the same."""
    sent = ClaimIn(content=content, memory_type=MemoryType.FACT, source=source, user_id="ann")
    answer = asyncio.run(gate.submit(agent, sent))
    assert isinstance(answer, Decided)
    result = ValidationResult.model_validate_json(answer.json)
    assert replay(result, gate.policy, HedgeDetector(gate.policy.lexicon)) == ()
    return result


def _sent(store: Store, content: str, **options: Any) -> ValidationResult:
    """What becomes of one that nobody looked up before."""
    answer = store.writer.submit(submission_of(examined(content, **options))).result()
    assert isinstance(answer, Decided)
    return answer.answer


@pytest.mark.on("sqlite")
@pytest.mark.parametrize("source", [Source.USER, Source.AI_SYNTHESIS])
def test_a_short_contradiction_waits_and_names_the_memory(
    gate: Gate, agent: Principal, store: Store, source: Source
) -> None:
    earlier = _submit(gate, agent, EARLIER)
    result = _submit(gate, agent, CLAIM, source)
    assert (result.outcome, result.rule, result.conflicting_memory_id) == (
        Outcome.QUEUED,
        Rule.CONFLICT,
        earlier.memory_id,
    )
    (finding,) = [found for found in result.findings if found.check == "dedup"]
    assert finding.facts == {
        "id": earlier.memory_id,
        "kind": "memory",
        "similarity": 0.7143,
        "changed": ["8081", "8080"],
    }
    assert _submit(gate, agent, "The admin pages listen on port 9090.").outcome is Outcome.STORED


@pytest.mark.on("sqlite")
def test_check_says_what_a_submit_would(gate: Gate, agent: Principal) -> None:
    earlier = _submit(gate, agent, EARLIER)
    sent = ClaimIn(content=CLAIM, memory_type=MemoryType.FACT, source=Source.USER, user_id="ann")
    said = asyncio.run(gate.check(agent, sent))
    assert (said.rule, said.conflicting_memory_id) == (Rule.CONFLICT, earlier.memory_id)


@pytest.mark.on("sqlite")
@pytest.mark.parametrize(("supersede", "status"), [(True, "superseded"), (False, "active")])
def test_its_owner_replaces_the_memory_or_keeps_both(
    gate: Gate, agent: Principal, store: Store, supersede: bool, status: str
) -> None:
    earlier, queue = _submit(gate, agent, EARLIER), queue_of(store)
    item = queue.get_by_id(reviewer(), _submit(gate, agent, CLAIM).queue_id or "")
    assert item is not None
    compared = queue.memory_to_compare(item, NOW)
    assert compared is not None and compared.id == earlier.memory_id
    asked = queue.approve(reviewer(), item.id, version=item.version, now=NOW)
    assert isinstance(asked, ApprovalRefused) and asked.code == "conflict_unresolved"
    done = queue.approve(reviewer(), item.id, version=item.version, now=NOW, supersede=supersede)
    assert isinstance(done, Approved)
    assert memory(store, earlier.memory_id or "").status is MemoryStatus(status)
    assert_consistent(store)


@pytest.mark.on("sqlite")
def test_an_item_that_nothing_stood_against_is_held_against_what_was_stored_since(
    gate: Gate, agent: Principal, store: Store
) -> None:
    waits = _submit(gate, agent, CLAIM, Source.AI_SYNTHESIS)
    assert waits.rule is Rule.UNGROUNDED
    since, queue = _submit(gate, agent, EARLIER), queue_of(store)
    item = queue.get_by_id(reviewer(), waits.queue_id or "")
    assert item is not None
    asked = queue.approve(reviewer(), item.id, version=item.version, now=NOW)
    assert isinstance(asked, ApprovalRefused)
    assert (asked.code, asked.conflicting_memory_id) == ("conflict_unresolved", since.memory_id)


def test_two_of_one_transaction_are_held_against_each_other(store: Store) -> None:
    go = threading.Event()
    store.writer.run([], lambda connection: go.wait(120))
    texts = (EARLIER, CLAIM, "Backups of the archive run at two.", "Backups of the archive run at three.")
    futures = [store.writer.submit(submission_of(examined(text))) for text in texts]
    # What is over stands against nothing, and for nothing: neither otherwise nor in the same words.
    over = examined("The crane lifts nine tonnes.", validity_horizon=NOW - timedelta(hours=1))
    holding = (over, examined("The crane lifts ten tonnes."), examined("The crane lifts nine tonnes."))
    futures += [store.writer.submit(submission_of(each)) for each in holding]
    go.set()
    answers = [future.result(120) for future in futures]
    assert [isinstance(one, Decided) and one.answer.rule for one in answers] == [
        Rule.TRUSTED_SOURCE,
        Rule.CONFLICT,
        Rule.TRUSTED_SOURCE,
        Rule.CONFLICT,
        Rule.TRUSTED_SOURCE,
        Rule.TRUSTED_SOURCE,
        Rule.CONFLICT,
    ]
    last = futures[-1].result()
    assert isinstance(last, Decided) and isinstance(ten := futures[-2].result(), Decided)
    assert last.answer.conflicting_memory_id == ten.answer.memory_id


def _sent_while(
    gate: Gate, agent: Principal, store: Store, change: Callable[[], Future[Any]]
) -> ValidationResult:
    """What becomes of the claim when it was compared, and then, before its transaction, something changes."""
    go = threading.Event()
    sent = ClaimIn(content=CLAIM, memory_type=MemoryType.FACT, source=Source.USER, user_id="ann")

    async def late() -> ValidationResult:
        examined = await gate.examine(gate.examiner.build_claim(agent, sent))
        store.writer.run([], lambda connection: go.wait(30))
        changed = change()
        store.writer.run([], lambda connection: None)  # so that the claim has a transaction of its own
        answer = gate.send(agent, examined)
        # An owner's claims are compared in their order: the claim is, and waits for its transaction.
        await asyncio.wrap_future(store.comparer.look(examined.comparing(), KEYS))
        go.set()
        await asyncio.wrap_future(changed)
        decided = await answer
        assert isinstance(decided, Decided)
        return decided.answer

    return asyncio.run(late())


def test_what_is_stored_between_comparing_and_the_transaction_counts(
    gate: Gate, agent: Principal, store: Store
) -> None:
    said = _sent_while(gate, agent, store, lambda: store.writer.submit(submission_of(examined(EARLIER))))
    assert said.rule is Rule.CONFLICT


def test_what_was_taken_back_between_comparing_and_the_transaction_does_not(
    gate: Gate, agent: Principal, store: Store
) -> None:
    old = stored(store, EARLIER)

    def take_back() -> Future[Any]:
        return store.writer.run(
            ["ann"], lambda connection: retract(connection, old, by="ann", reason="It moved.", now=NOW)
        )

    assert _sent_while(gate, agent, store, take_back).outcome is Outcome.STORED


def test_what_takes_too_long_to_compare_in_the_transaction_is_compared_before_it(
    gate: Gate, agent: Principal, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier = _submit(gate, agent, EARLIER)
    monkeypatch.setattr(contradicting, "MOST_IN_TRANSACTION", 0)
    result = _submit(gate, agent, CLAIM)
    assert (result.rule, result.conflicting_memory_id) == (Rule.CONFLICT, earlier.memory_id)


@pytest.mark.on("sqlite")
def test_another_owner_and_another_type_are_not_asked(store: Store) -> None:
    stored(store, EARLIER)
    assert _sent(store, CLAIM, owner_id="bob").outcome is Outcome.STORED
    assert _sent(store, CLAIM, memory_type=MemoryType.DECISION).outcome is Outcome.STORED


@pytest.mark.on("sqlite")
def test_more_about_the_same_than_can_be_compared_is_for_its_owner(store: Store) -> None:
    """Many alike of other subjects are no crowd."""
    for number in range(similar.MOST_READ):
        assert (
            _sent(store, f"Service unit{number:03} writes one row for every event.").outcome is Outcome.STORED
        )
    assert _sent(store, "Service mailer writes one row for every event.").outcome is Outcome.STORED
    alike = [
        _sent(store, f"The user likes sort{number:03} of tea.") for number in range(similar.MOST_READ + 32)
    ]
    assert {one.rule for one in alike[: similar.MOST_READ]} == {Rule.TRUSTED_SOURCE}
    assert (alike[-1].outcome, alike[-1].rule) == (Outcome.QUEUED, Rule.DEDUP_UNKNOWN)
    assert isinstance(alike[-1].evidence.dedup, Neighbours) and not alike[-1].evidence.dedup.complete


@pytest.mark.on("sqlite")
def test_an_allowance_that_is_used_up_is_not_an_answer(store: Store) -> None:
    stored(store, EARLIER)
    known = Comparisons(CLAIM, policy().threshold, policy().values)
    with store.read() as connection:
        asked = (connection, "ann", CLAIM, "fact", known)
        none = contradicting.look_up(*asked, now=NOW, allowance=Allowance(0, 1))
        some = contradicting.look_up(*asked, now=NOW)
    assert (none.items, none.complete) == ((), False)
    assert len(some.items) == 1 and some.complete
