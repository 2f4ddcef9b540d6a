"""The similar index holds what is active, is never larger to read than it says, and never decides."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, Engine, event, select, text

from tests.claims import NOW, examined, policy, submission_of
from tests.reviews import index_tails, memory, queue_of, reviewer, stored, waiting
from vouchgate.gate.gate import ADVICE_SECONDS, Gate
from vouchgate.ingest.checks.hedge import HedgeDetector
from vouchgate.ingest.claims.claim import MemoryType, Source
from vouchgate.ingest.claims.decision import Outcome, Tier, ValidationResult
from vouchgate.ingest.claims.likeness import SimilarMemory
from vouchgate.ingest.claims.memory import Memory
from vouchgate.ingest.claims.people import Principal, Role
from vouchgate.ingest.dedup.compare import jaccard
from vouchgate.ingest.dedup.similar import MAX_SHOWN, band_keys, nearest
from vouchgate.ingest.language.words import tokens
from vouchgate.ingest.pipeline import replay
from vouchgate.ingest.sources.git.source import GitSource
from vouchgate.review.answers import Approved, Retracted
from vouchgate.sources.reader import Sources
from vouchgate.storage.claims import decisions, memories
from vouchgate.storage.claims.submit import Decided
from vouchgate.storage.dedup import similar, upkeep
from vouchgate.storage.dedup.window import Candidate
from vouchgate.storage.engine import open_engine
from vouchgate.storage.identity import owners
from vouchgate.storage.identity.owners import lock_owners
from vouchgate.storage.identity.tokens import create
from vouchgate.storage.queue.pending import QueueFilter
from vouchgate.storage.store import Store
from vouchgate.wire import ClaimIn

THRESHOLD = Fraction(23, 25)
RETRIES = "The invoice service retries a failed upload three times"
NEARLY = "The invoice service retries a failed download three times"
FAR = "Backups of the archive run every night at two"
_owners = itertools.count()


def find(store: Store, content: str, owner_id: str = "ann", **asked: Any) -> tuple[SimilarMemory, ...]:
    about: dict[str, Any] = {"memory_type": "fact", "threshold": THRESHOLD, "now": NOW} | asked
    keys = band_keys(content, about["memory_type"])
    with store.read() as connection:
        near = similar.candidates(connection, owner_id, keys, about["memory_type"], now=about["now"])
    return nearest(content, near, about["threshold"])


def shown(store: Store, content: str, **asked: Any) -> list[str]:
    return [one.memory_id for one in find(store, content, **asked)]


def rows(store: Store) -> set[tuple[Any, ...]]:
    index_tails(store)
    with store.read() as connection:
        return {tuple(row) for row in connection.execute(select(similar.TABLE))}


def assert_holds_the_active(store: Store) -> None:
    """Every active memory has its keys, and nothing else has any."""
    with store.read() as connection:
        active = connection.execute(select(memories.TABLE).where(memories.TABLE.c.status == "active")).all()
    expected = {(m.owner_id, key, m.id) for m in active for key in band_keys(m.content, m.memory_type)}
    assert rows(store) == expected


def test_a_stored_memory_is_found_by_its_owner_and_type_alone(store: Store) -> None:
    memory = stored(store, RETRIES)
    stored(store, FAR)
    (found,) = find(store, NEARLY)
    assert (found.memory_id, found.content) == (memory.id, RETRIES)
    assert found.similarity == 0.8  # 8 of 10 words
    assert find(store, NEARLY, owner_id="bob") == ()
    assert find(store, NEARLY, memory_type="decision") == ()
    assert find(store, RETRIES) == ()  # the same claim is a duplicate, not similar
    assert find(store, NEARLY, threshold=Fraction(4, 5)) == ()  # as this is under another policy
    assert find(store, " ") == ()


def test_what_waits_is_not_shown_until_it_is_approved(store: Store) -> None:
    item = waiting(store, RETRIES)
    assert rows(store) == set() and find(store, NEARLY) == ()
    approved = queue_of(store).approve(reviewer(), item.id, version=1, now=NOW)
    assert isinstance(approved, Approved)
    assert shown(store, NEARLY) == [approved.memory.id]
    assert_holds_the_active(store)


def test_an_edited_approval_is_found_by_the_text_that_was_stored(store: Store) -> None:
    item = waiting(store, FAR)
    edited = examined(RETRIES, source=Source.AI_SYNTHESIS)
    approved = queue_of(store).approve(reviewer(), item.id, version=1, edited=edited, now=NOW)
    assert isinstance(approved, Approved)
    assert shown(store, NEARLY) == [approved.memory.id]
    assert_holds_the_active(store)


def test_a_memory_out_of_force_is_not_shown(store: Store) -> None:
    retracted = stored(store, RETRIES)
    replaced = stored(store, FAR)
    until = NOW + timedelta(hours=1)
    passing = stored(store, "The gateway keeps a session for thirty minutes", validity_horizon=until)
    near_passing = "The gateway keeps a session for sixty minutes"
    assert shown(store, near_passing) == [passing.id]
    assert shown(store, near_passing, now=until) == []
    answer = queue_of(store).retract(reviewer(), retracted.id, reason="it was wrong", now=NOW)
    assert isinstance(answer, Retracted)
    assert find(store, NEARLY) == ()

    def replace(connection: Connection) -> bool:
        return memories.supersede(connection, "ann", replaced.id, by=passing.id, at=NOW)

    assert store.writer.run(["ann"], replace).result()
    assert find(store, "Backups of the archive run every night at three") == ()
    assert_holds_the_active(store)
    assert {memory_id for _, _, memory_id in rows(store)} == {passing.id}


def test_rebuild_makes_the_same_rows_from_the_memories(store: Store) -> None:
    for number in range(3):
        stored(store, f"{RETRIES} on host {number}{number}")
    stored(store, RETRIES, owner_id="bob")
    queue_of(store).retract(reviewer(), stored(store, FAR).id, reason="it was wrong", now=NOW)
    before = rows(store)

    def lose(connection: Connection) -> None:
        lost = min(memory_id for owner_id, _, memory_id in before if owner_id == "ann")
        connection.execute(similar.TABLE.delete().where(similar.TABLE.c.memory_id == lost))
        stray = {"owner_id": "ann", "key": 1, "memory_id": "mem_gone"}
        connection.execute(similar.TABLE.insert(), stray)

    store.writer.run(["ann"], lose).result()
    assert upkeep.rebuild_similar(store, "ann", lambda count: None) == 3
    assert rows(store) == before
    assert_holds_the_active(store)


def test_a_rebuild_in_parts_keeps_what_is_stored_meanwhile(store: Store) -> None:
    for number in range(3):
        stored(store, f"{RETRIES} on host {number}{number}")

    def clear(connection: Connection) -> bool:
        return similar.clear_part(connection, "ann")

    def fill(connection: Connection) -> tuple[int, str | None]:
        return similar.fill_part(connection, "ann", after or "")

    assert not store.writer.run(["ann"], clear).result()
    assert rows(store) == set()
    meanwhile = stored(store, RETRIES)
    counts: list[int] = []
    after: str | None = ""
    while after is not None:
        count, after = store.writer.run(["ann"], fill).result()
        counts.append(count)
    assert counts == [4, 0]
    assert meanwhile.id in shown(store, NEARLY)
    assert_holds_the_active(store)


WORDS = [f"{name}word" for name in ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta")]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(st.lists(st.sampled_from(WORDS), min_size=3, max_size=8), min_size=1, max_size=8),
    asked=st.lists(st.sampled_from(WORDS), min_size=3, max_size=8),
)
def test_all_that_is_shown_is_true(store: Store, texts: list[list[str]], asked: list[str]) -> None:
    owner, other = f"owner-{next(_owners)}", f"owner-{next(_owners)}"
    contents: dict[str, str] = {}

    def write(connection: Connection) -> None:
        for number, words in enumerate(texts):
            content = " ".join(words)
            memory_id = f"mem_{next(_owners):032x}"
            for owner_id in (owner, other) if number % 2 else (owner,):
                kept = memory_id if owner_id == owner else memory_id.replace("mem_0", "mem_f")
                values = _memory_row(owner_id, kept, content)
                connection.execute(memories.TABLE.insert(), values)
                similar.add(connection, owner_id, kept, similar.keys_of(content, "fact"))
            contents[memory_id] = content

    contents.clear()
    store.writer.run([owner, other], write).result()
    question = " ".join(asked)
    found = find(store, question, owner_id=owner)
    order = [(-jaccard(tokens(question), tokens(one.content)), one.memory_id) for one in found]
    assert order == sorted(set(order)) and len(found) <= MAX_SHOWN
    for (negative, _), one in zip(order, found, strict=True):
        assert contents[one.memory_id] == one.content
        assert Fraction(1, 2) <= -negative < THRESHOLD
        assert one.similarity == math.floor(-negative * 10_000) / 10_000


def _memory_row(owner_id: str, memory_id: str, content: str) -> dict[str, Any]:
    return {
        "owner_id": owner_id,
        "id": memory_id,
        "memory_type": "fact",
        "content": content,
        "source": "user",
        "status": "active",
        "confidence": "medium",
        "label": "INFERENCE",
        "created_at": NOW,
        "decision_id": "dec_1",
        "details": {},
    }


def test_a_flood_of_one_template_is_read_in_small_part(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds that share every key: a look-up reads the newest of each key, and few texts. They are indexed anew in
    parts."""
    monkeypatch.setattr(similar, "_PAGE", similar._PAGE.limit(130))
    monkeypatch.setattr(similar, "_BOUNDARY", similar._BOUNDARY.offset(650))
    flood = [f"{RETRIES} as {number:05}" for number in range(400)]

    def write(connection: Connection) -> None:
        for number, content in enumerate(flood):
            memory_id = f"mem_{number:032x}"
            connection.execute(memories.TABLE.insert(), _memory_row("ann", memory_id, content))
            similar.add(connection, "ann", memory_id, band_keys(content, "fact"))

    store.writer.run(["ann"], write).result()
    keys = band_keys(RETRIES, "fact")
    with store.read() as connection:
        gathered = similar._of_owners(connection, similar._NEWEST, {"ann": keys}, similar.NEWEST)
        texts = similar.candidates(connection, "ann", keys, "fact", now=NOW)
    assert similar.NEWEST < len(gathered) <= similar.NEWEST * len(keys)
    assert len(texts) == similar.MOST_READ
    assert len(find(store, RETRIES)) == MAX_SHOWN
    before = rows(store)
    stray = {"owner_id": "ann", "key": 2**63 - 1, "memory_id": "mem_gone"}  # in the last part
    store.writer.run(["ann"], lambda connection: connection.execute(similar.TABLE.insert(), stray)).result()
    assert upkeep.rebuild_similar(store, "ann", lambda count: None) == len(flood)
    assert rows(store) == before


Near = dict[tuple[str, tuple[int, ...]], list[str]]


def _by_all_memories(connection: Connection, owner: str, asked: list[tuple[int, ...]]) -> Near:
    """What keys find when every active memory is in the index."""
    active = memories.TABLE.c.owner_id == owner, memories.TABLE.c.status == "active"
    by_key: dict[int, list[str]] = {}
    for row in connection.execute(select(memories.TABLE).where(*active)):
        for key in band_keys(row.content, row.memory_type):
            by_key.setdefault(key, []).append(row.id)
    found: Near = {}
    for keys in asked:
        shared = Counter(i for key in keys for i in sorted(by_key.get(key, ()))[-similar.NEWEST :])
        most = sorted(shared, key=lambda each: (shared[each], each))[-similar.MOST_READ :]
        if most:
            found[owner, keys] = most[::-1]
    return found


def _ids(found: dict[tuple[str, tuple[int, ...]], list[Candidate]]) -> Near:
    return {of: [one.neighbour.id for one in each] for of, each in found.items()}


@pytest.fixture
def other(store: Store, database_url: str) -> Iterator[Store]:
    """The same database, as another process has it."""
    opened = Store.open(database_url, threshold=THRESHOLD)
    yield opened
    opened.close()


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    acts=st.lists(
        st.tuples(
            st.sampled_from(["store", "store", "store", "queue", "retract", "index"]),
            st.booleans(),
            st.lists(st.sampled_from(WORDS), min_size=3, max_size=5),
        ),
        min_size=3,
        max_size=16,
    )
)
def test_what_is_not_indexed_yet_is_found_as_if_it_were(
    store: Store, other: Store, monkeypatch: pytest.MonkeyPatch, acts: list[tuple[str, bool, list[str]]]
) -> None:
    """Whoever wrote what, indexed or not: a reader and both writers find what they would in a whole index."""
    monkeypatch.setattr(similar, "NEWEST", 3)
    monkeypatch.setattr(similar, "MOST_READ", 4)
    monkeypatch.setattr(similar, "TAIL", 6)
    owner = f"owner-{next(_owners)}"
    asked = [band_keys(" ".join(words), "fact") for _, _, words in acts]
    wanted = {owner: dict.fromkeys(asked, "fact")}
    kept: list[Memory] = []
    for number, (act, elsewhere, words) in enumerate(acts):
        at = other if elsewhere else store
        if act == "retract" and kept:
            queue_of(at).retract(reviewer(), kept.pop().id, reason="it was wrong", now=NOW)
        elif act == "index":
            at.writer.run([owner], lambda connection: similar.index_tail(connection, owner)).result()
        else:
            source = Source.AI_SYNTHESIS if act == "queue" else Source.USER
            one = examined(" ".join([*words, f"unit{number}"]), owner_id=owner, source=source)
            sent = at.writer.submit(submission_of(one)).result()
            assert isinstance(sent, Decided)
            if sent.answer.memory_id is not None:
                kept.append(memory(store, sent.answer.memory_id))
        with store.read() as connection:
            true = _by_all_memories(connection, owner, asked)
            assert _ids(similar.candidates_of_many(connection, wanted)) == true
        for here in (store, other):

            def within(connection: Connection, here: Store = here) -> Near:
                states = lock_owners(connection, [owner])
                tails = here.writer._tails.of(connection, states, {owner: states[owner].log_seq})
                return _ids(similar.candidates_of_many(connection, wanted, tails))

            assert here.writer.run([], within).result() == true


def test_the_writer_indexes_a_tail_that_has_grown(store: Store) -> None:
    for number in range(similar.TAIL + 1):
        stored(
            store,
            f"Unit u{number:03} of the {WORDS[number % 8]} line {number % 7} stands in hall {number % 11}",
        )
    store.writer.run([], lambda connection: None).result()
    with store.read() as connection:
        (begin,) = connection.execute(
            select(owners.TABLE.c.similar_seq).where(owners.TABLE.c.owner_id == "ann")
        ).one()
        indexed = len(set(connection.scalars(select(similar.TABLE.c.memory_id))))
    assert begin >= similar.TAIL > indexed / 2 > 0
    assert_holds_the_active(store)


def claim(content: str, source: Source = Source.AI_SYNTHESIS) -> ClaimIn:
    return ClaimIn(content=content, memory_type=MemoryType.FACT, source=source)


@dataclass(frozen=True, slots=True)
class Door:
    """A gate, and an agent of ann's that may assert the source user."""

    gate: Gate
    agent: Principal

    def check(self, content: str, source: Source = Source.AI_SYNTHESIS) -> ValidationResult:
        return asyncio.run(self.gate.check(self.agent, claim(content, source)))


@contextmanager
def door_of(store: Store) -> Iterator[Door]:
    agent, _ = create(
        store,
        role=Role.AGENT,
        name="an agent",
        owners=["ann"],
        any_owner=False,
        sources=frozenset({Source.USER}),
        expires_at=None,
        actor="test",
        now=datetime.now(UTC),
    )
    gate = Gate(policy(), store, Sources(GitSource(()), {}))
    try:
        yield Door(gate, agent)
    finally:
        gate.close()


def submitted(door: Door, content: str, source: Source = Source.AI_SYNTHESIS) -> ValidationResult:
    gate = door.gate
    answer = asyncio.run(gate.submit(door.agent, claim(content, source)))
    assert isinstance(answer, Decided)
    with gate.store.read() as connection:
        kept = decisions.get(connection, answer.answer.decision_id or "", owners=None)
    assert kept == answer.json  # what is shown is kept as it was shown
    result = ValidationResult.model_validate_json(answer.json)
    assert replay(result, gate.policy, HedgeDetector(gate.policy.lexicon)) == ()
    return result


@pytest.mark.on("sqlite")
def test_the_gate_shows_what_is_similar_to_a_claim_that_waits(store: Store) -> None:
    memory = stored(store, RETRIES)
    expected = (SimilarMemory(memory_id=memory.id, similarity=0.8, content=RETRIES),)
    with door_of(store) as door:
        result = submitted(door, NEARLY)
        assert (result.outcome, result.similar) == (Outcome.QUEUED, expected)
        assert submitted(door, "Nobody has written about the harbour lights").similar == ()
        checked = door.check(NEARLY + " over", Source.USER)
        assert (checked.outcome, [one.memory_id for one in checked.similar or ()]) == (
            Outcome.STORED,
            [memory.id],
        )
    item = queue_of(store).search(reviewer(), QueueFilter(order="oldest"))[0]
    decision = queue_of(store).decision_of(item)
    assert decision is not None and decision.similar == expected


@pytest.mark.on("sqlite")
def test_a_claim_that_is_stored_at_once_is_not_looked_up_before_and_shows_nothing(store: Store) -> None:
    stored(store, RETRIES)
    reads: list[Connection] = []

    def note(connection: Connection) -> None:
        if not connection.get_execution_options().get("vouchgate_write"):
            reads.append(connection)

    event.listen(Engine, "begin", note)
    try:
        with door_of(store) as door:
            result = submitted(door, NEARLY, Source.USER)
            of_stored = len(reads)
            waits = submitted(door, NEARLY + " again")
    finally:
        event.remove(Engine, "begin", note)
    assert (result.outcome, result.similar) == (Outcome.STORED, None)
    assert waits.outcome is Outcome.QUEUED and waits.similar
    assert (of_stored, len(reads) - of_stored) == (1, 2)  # `submitted` itself reads once
    assert_holds_the_active(store)


@pytest.mark.on("sqlite")
def test_a_broken_index_changes_no_decision(
    store: Store, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    contents = [NEARLY, "I think the cache is stale", RETRIES, "The lock is held for long"]
    stored(store, RETRIES)
    with door_of(store) as door:
        before = [door.check(content) for content in contents]
        engine = open_engine(database_url)
        with engine.connect().execution_options(vouchgate_write=True) as connection, connection.begin():
            connection.execute(text("DROP TABLE similar_key"))
        engine.dispose()
        after = [door.check(content) for content in contents]
        queued = submitted(door, NEARLY)
    assert [r.tier for r in before] == [Tier.QUEUED, Tier.BLOCKED, Tier.BLOCKED, Tier.QUEUED]
    assert before[0].similar != () and before[3].similar == ()
    assert all(result.similar is None for result in (*after, queued))
    different = {"similar", "evidence", "took_ms"}
    for one, other in zip(before, after, strict=True):
        assert one.model_dump(exclude=different) == other.model_dump(exclude=different)
        assert one.evidence.dedup == other.evidence.dedup
    assert (queued.outcome, queued.rule, queued.reason) == (
        before[0].outcome,
        before[0].rule,
        before[0].reason,
    )
    assert caplog.text.count("similar memories could not be looked up") == len(contents) + 1


@pytest.mark.on("postgresql")
def test_an_index_that_does_not_answer_delays_no_claim_for_long(
    store: Store, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    stored(store, RETRIES)
    engine = open_engine(database_url)
    with door_of(store) as door, engine.connect() as connection, connection.begin():
        assert submitted(door, NEARLY).similar
        connection.execute(text("LOCK TABLE similar_key IN ACCESS EXCLUSIVE MODE"))
        result = submitted(door, "The invoice service retries a failed handshake three times")
        connection.rollback()
    engine.dispose()
    assert (result.outcome, result.similar) == (Outcome.QUEUED, None)
    # Given up by the gate, long before the database gives up waiting for the lock.
    assert f"could not be looked up within {ADVICE_SECONDS:g} s" in caplog.text
