"""Claims compared by meaning, from the policy to the rows, on SQLite and PostgreSQL."""

from __future__ import annotations

import asyncio
import math
from array import array
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, insert, select

from tests.claims import NOW, submission_of
from tests.models import Bag, Moody, policy_file
from tests.reviews import set_mode, stored
from vouchgate.embedding.paraphraser import Embedder, Paraphraser
from vouchgate.gate.gate import Gate
from vouchgate.ingest.claims.claim import MemoryType, Source
from vouchgate.ingest.claims.decision import Tier, ValidationResult
from vouchgate.ingest.claims.likeness import Embedding, ItemKind, Paraphrases, ParaphraseUnavailable
from vouchgate.ingest.claims.modes import Mode
from vouchgate.ingest.claims.people import Principal, Role
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.dedup.paraphrase import MESSAGE, cosine
from vouchgate.ingest.pipeline import replay
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.sources.git.source import GitSource
from vouchgate.review.answers import Approved, Rejected, Retracted
from vouchgate.service import Service, open_service
from vouchgate.settings import Settings
from vouchgate.sources.reader import Sources
from vouchgate.storage.claims.submit import Decided
from vouchgate.storage.dedup import vectors
from vouchgate.storage.store import Store
from vouchgate.wire import ClaimIn

AGENT = Principal(
    id="agent", name="a", role=Role.AGENT, owners=frozenset({"ann", "ben"}), sources=frozenset(Source)
)
ANN = Principal(id="rita", name="r", role=Role.REVIEWER, owners=frozenset({"ann"}))

BANNED = "Deploys are forbidden on Fridays"
BANNED_TOO = "Releases are prohibited on Fridays"
OTHER = "The invoice table has seven columns"

Open = Callable[..., Service]


@pytest.fixture
def open_gate(database_url: str, tmp_path: Path) -> Iterator[Open]:
    """Opens the service on one database, the one before being closed."""
    opened: list[Any] = []

    def closing() -> None:
        while opened:
            opened.pop().__exit__(None, None, None)

    def opening(model: str = "tests.models:Bag", **more: float) -> Service:
        closing()
        policy = policy_file(tmp_path, model, **more) if model else None
        context = open_service(Settings(database_url=database_url, policy=policy))
        service = context.__enter__()
        opened.append(context)
        return service

    yield opening
    closing()


def send(
    service: Service,
    content: str,
    owner: str = "ann",
    source: Source = Source.USER,
    horizon: datetime | None = None,
) -> ValidationResult:
    """The kept answer to a claim. USER is stored unless something is found; it must replay to the letter."""

    async def submit() -> ValidationResult:
        sent = ClaimIn(
            content=content,
            memory_type=MemoryType.FACT,
            source=source,
            user_id=owner,
            validity_horizon=horizon,
        )
        examined = await service.gate.examine(service.gate.examiner.build_claim(AGENT, sent))
        answer = await asyncio.wrap_future(
            service.store.writer.submit(submission_of(examined, principal_id=AGENT.id))
        )
        assert isinstance(answer, Decided)
        again = ValidationResult.model_validate_json(answer.json)
        assert replay(again, service.policy, service.gate.examiner.detector) == ()
        return answer.answer

    return asyncio.run(submit())


def kept(store: Store) -> dict[str, tuple[str, str]]:
    """Kind and model by item id, of every vector there is."""
    with store.read() as connection:
        return {row.item_id: (row.kind, row.model) for row in connection.execute(select(vectors.TABLE))}


def code_of(answer: ValidationResult) -> str:
    """What the dedup check said."""
    return next(finding.code for finding in answer.findings if finding.check == "dedup")


def test_a_paraphrase_waits_whatever_vouches_for_it(open_gate: Open) -> None:
    service = open_gate()
    first = send(service, BANNED)
    assert first.tier is Tier.STORED
    second = send(service, BANNED_TOO)
    assert (second.tier, second.rule, second.reason) == (Tier.QUEUED, "dedup_unknown", MESSAGE)
    finding = next(finding for finding in second.findings if finding.check == "dedup")
    assert (finding.code, finding.facts["id"]) == ("paraphrase", first.memory_id)
    assert f"paraphrase: {first.memory_id}" in second.checks_failed
    assert second.conflicting_memory_id is None
    assert isinstance(second.evidence.paraphrases, Paraphrases)
    assert second.evidence.paraphrases.model == "tests.models:Bag@1"
    assert send(service, OTHER).tier is Tier.STORED


@pytest.mark.on("sqlite")
def test_a_paraphrase_of_what_waits_waits_too(open_gate: Open) -> None:
    service = open_gate()
    first = send(service, BANNED, source=Source.AI_SYNTHESIS)
    second = send(service, BANNED_TOO)
    assert second.reason == MESSAGE
    assert second.queue_id not in (None, first.queue_id)


@pytest.mark.on("sqlite")
def test_the_word_measure_decides_first(open_gate: Open) -> None:
    service = open_gate()
    send(service, BANNED)
    again = send(service, BANNED)
    assert (again.tier, code_of(again)) == (Tier.BLOCKED, "duplicate")


def test_another_owner_is_not_asked(open_gate: Open) -> None:
    service = open_gate()
    send(service, BANNED, owner="ben")
    assert send(service, BANNED_TOO).tier is Tier.STORED


@pytest.mark.on("sqlite")
def test_what_is_out_of_force_says_nothing(open_gate: Open) -> None:
    service = open_gate()
    soon = datetime.now(UTC) + timedelta(seconds=0.5)
    send(service, BANNED, horizon=soon)
    while datetime.now(UTC) <= soon:
        pass
    second = send(service, BANNED_TOO)
    assert second.tier is Tier.STORED
    assert second.memory_id is not None
    retracted = service.queue.retract(ANN, second.memory_id, reason="no longer", now=datetime.now(UTC))
    assert isinstance(retracted, Retracted)
    assert second.memory_id not in kept(service.store)
    assert send(service, "Releases are banned on Fridays").tier is Tier.STORED


@pytest.mark.on("sqlite")
def test_a_check_tells_and_writes_nothing(open_gate: Open) -> None:
    service = open_gate()
    send(service, BANNED)
    before = kept(service.store)
    sent = ClaimIn(content=BANNED_TOO, memory_type=MemoryType.FACT, source=Source.USER, user_id="ann")
    assert asyncio.run(service.gate.check(AGENT, sent)).reason == MESSAGE
    assert kept(service.store) == before


def test_vectors_follow_their_items(open_gate: Open) -> None:
    service = open_gate()
    memory = send(service, OTHER)
    approved = send(service, BANNED, source=Source.AI_SYNTHESIS)
    rejected = send(service, "Our queue holds forty items", source=Source.AI_SYNTHESIS)
    assert set(kept(service.store)) == {memory.memory_id, approved.queue_id, rejected.queue_id}
    assert approved.queue_id is not None
    assert rejected.queue_id is not None
    now = datetime.now(UTC)
    became = service.queue.approve(ANN, approved.queue_id, version=1, now=now)
    assert isinstance(became, Approved)
    refused = service.queue.reject(ANN, rejected.queue_id, version=1, reason="untrue", now=now)
    assert isinstance(refused, Rejected)
    assert kept(service.store) == {
        memory.memory_id: ("memory", "tests.models:Bag@1"),
        became.memory.id: ("memory", "tests.models:Bag@1"),
    }
    assert send(service, BANNED_TOO).reason == MESSAGE


def test_an_edit_brings_its_own_vector(open_gate: Open) -> None:
    service = open_gate()
    answer = send(service, BANNED, source=Source.AI_SYNTHESIS)
    assert answer.queue_id is not None
    item = service.queue.get_by_id(ANN, answer.queue_id)
    assert item is not None
    near = asyncio.run(service.gate.examine_edit(item, BANNED_TOO, ()))
    assert near.facts.paraphrases == Paraphrases(model="tests.models:Bag@1")  # of itself it is none
    edited = asyncio.run(service.gate.examine_edit(item, OTHER, ()))
    became = service.queue.approve(ANN, item.id, version=1, now=datetime.now(UTC), edited=edited)
    assert isinstance(became, Approved)
    assert set(kept(service.store)) == {became.memory.id}
    assert send(service, BANNED_TOO).tier is Tier.STORED  # the text before the edit is gone
    assert send(service, "The invoice table has seven columns now").reason == MESSAGE


@pytest.mark.on("sqlite")
@pytest.mark.parametrize("text", ["This is unreadable to it", "This is odd to it"])
def test_a_model_that_fails_sends_to_review(open_gate: Open, text: str) -> None:
    service = open_gate("tests.models:Moody")
    answer = send(service, text)
    assert (answer.tier, answer.rule, code_of(answer)) == (
        Tier.QUEUED,
        "dedup_unknown",
        "paraphrase_unavailable",
    )
    assert kept(service.store) == {}
    # Until it has a vector, nobody knows what is like it.
    assert code_of(send(service, OTHER)) == "paraphrase_unavailable"
    assert send(service, OTHER, owner="ben").tier is Tier.STORED


@pytest.mark.on("sqlite")
def test_a_model_that_takes_too_long_sends_to_review(open_gate: Open) -> None:
    service = open_gate("tests.models:Moody", deadline_seconds=0.2)
    answer = send(service, "This is slow to it")
    assert (answer.tier, code_of(answer)) == (Tier.QUEUED, "paraphrase_unavailable")
    assert "within 0.2 s" in answer.checks_failed[0] + answer.findings[-1].message


def test_another_version_of_the_model_starts_afresh(open_gate: Open) -> None:
    first = send(open_gate(), BANNED)
    service = open_gate("tests.models:NewerBag")
    caught_up(service)
    assert kept(service.store) == {first.memory_id: ("memory", "tests.models:NewerBag@2")}
    assert send(service, BANNED_TOO).reason == MESSAGE


def test_items_from_before_get_their_vectors(open_gate: Open) -> None:
    plain = open_gate("")
    first, waits = send(plain, BANNED), send(plain, OTHER, source=Source.AI_SYNTHESIS)
    assert kept(plain.store) == {}
    service = open_gate()
    caught_up(service)
    assert set(kept(service.store)) == {first.memory_id, waits.queue_id}
    assert send(service, BANNED_TOO).reason == MESSAGE


def caught_up(service: Service) -> None:
    """Waits until a claim of ann's can be compared."""
    sent = ClaimIn(content="Nothing like it", memory_type=MemoryType.FACT, source=Source.USER, user_id="ann")
    for _ in range(200):
        answer = asyncio.run(service.gate.check(AGENT, sent))
        if isinstance(answer.evidence.paraphrases, Paraphrases):
            return
    raise AssertionError("the vectors were not made")


def test_vectors_not_made_yet_are_no_empty_answer(store_with_vectors: Store) -> None:
    store = store_with_vectors
    stored(store, BANNED)  # as a process without vectors would
    wanted = Embedder("b", Bag()).embed(BANNED_TOO)
    with store.read() as connection:
        found = vectors.find(connection, "ann", wanted, threshold=0.95, now=NOW)
    assert isinstance(found, ParaphraseUnavailable)


def test_what_left_in_the_meantime_gets_no_vector(store_with_vectors: Store) -> None:
    store, embedder = store_with_vectors, Embedder("b", Bag())
    memory = stored(store, BANNED)
    item = vectors.Unembedded("ann", ItemKind.PENDING, memory.id, BANNED)  # no such item waits
    store.writer.run(("ann",), lambda c: vectors.store_vector(c, item, embedder.embed(BANNED))).result()
    assert kept(store) == {}


@pytest.mark.on("sqlite")
def test_catching_up_passes_over_what_fails(store_with_vectors: Store) -> None:
    store = store_with_vectors
    contents = [f"Shelf {number} holds {number * 7} boxes of kind {number}" for number in range(150)]
    for content in [*contents, "This is unreadable to it"]:
        stored(store, content)
    set_mode(store, "ann", Mode.READ_ONLY)  # a vector is no change of theirs
    paraphraser = Paraphraser(store, Embedder("m", Moody()), 0.95)
    try:
        for _ in range(200):
            if len(kept(store)) == 150:
                break
            asyncio.run(asyncio.sleep(0.05))
    finally:
        paraphraser.close()
    assert len(kept(store)) == 150


@pytest.fixture
def store_with_vectors(database_url: str) -> Iterator[Store]:
    """An open store whose connections can compare vectors."""
    opened = Store.open(database_url, threshold=load_policy().threshold, vectors=True)
    yield opened
    opened.close()


FLOATS = st.lists(st.floats(min_value=-1, max_value=1, width=32), min_size=3, max_size=3).filter(any)


@pytest.mark.on("sqlite")
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(wanted=FLOATS, others=st.lists(FLOATS, max_size=8), threshold=st.sampled_from([0.51, 0.9, 0.95, 1.0]))
def test_every_vector_at_the_threshold_is_found(
    store_with_vectors: Store, wanted: list[float], others: list[list[float]], threshold: float
) -> None:
    store = store_with_vectors
    asked = unit(wanted)
    owner = f"owner-{datetime.now(UTC).timestamp()}"
    expected = {}
    for number, numbers in enumerate(others):
        memory = stored(store, f"Claim {number} of {number * 13} by nobody", owner_id=owner)
        row = vectors.rows_of(owner, ItemKind.MEMORY, memory.id, unit(numbers))
        store.writer.run((owner,), partial(insert_rows, row)).result()
        if (found := cosine(asked.vector, unit(numbers).vector)) >= threshold:
            expected[memory.id] = found
    with store.read() as connection:
        answer = vectors.find(connection, owner, asked, threshold=threshold, now=NOW)
    assert isinstance(answer, Paraphrases)
    assert {item.id: item.cosine for item in answer.items} == expected


def insert_rows(rows: list[dict[str, Any]], connection: Connection) -> None:
    """Writes vectors as they are."""
    connection.execute(insert(vectors.TABLE), rows)


def unit(numbers: Sequence[float]) -> Embedding:
    """These numbers as a vector of length 1."""
    largest = max(map(abs, numbers))
    scaled = [number / largest for number in numbers]
    length = math.hypot(*scaled)
    return Embedding(model="m@1", vector=array("f", (number / length for number in scaled)).tobytes())


@pytest.mark.on("sqlite")
def test_a_gate_without_a_model_queues(database_url: str) -> None:
    built_in = load_policy().model_dump()
    policy = Policy.model_validate(built_in | {"dedup_method": "vector"})
    store = Store.open(database_url, threshold=policy.threshold)
    gate = Gate(policy, store, Sources(GitSource(()), {}))
    try:
        sent = ClaimIn(content=BANNED, memory_type=MemoryType.FACT, source=Source.USER, user_id="ann")
        answer = asyncio.run(gate.check(AGENT, sent))
        assert (answer.tier, code_of(answer)) == (Tier.QUEUED, "paraphrase_unavailable")
    finally:
        gate.close()
        store.close()


@pytest.mark.on("sqlite")
def test_the_model_of_the_package_finds_a_paraphrase(open_gate: Open) -> None:
    service = open_gate("vouchgate.embedding.minilm:MiniLM")
    send(service, "The API listens on port 8080.")
    second = send(service, "Port 8080 is what the API listens on.")
    assert second.reason == MESSAGE
    assert send(service, "The invoice table has seven columns.").tier is Tier.STORED
    assert isinstance(second.evidence.paraphrases, Paraphrases)
    assert second.evidence.paraphrases.model == "vouchgate.embedding.minilm:MiniLM@0.1.0"
    assert second.evidence.paraphrases.items[0].cosine == pytest.approx(0.953, abs=0.001)
