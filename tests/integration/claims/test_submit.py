"""What one write transaction makes of claims, alone, together, and from several processes at once."""

from __future__ import annotations

import json
import threading
from datetime import timedelta
from fractions import Fraction
from typing import Any

import pytest
from sqlalchemy import text

from tests.claims import NOW, examined, policy, submission_of
from tests.counting import counting
from tests.running import racers
from vouchgate.ingest.claims.claim import MemoryType, Source
from vouchgate.ingest.claims.decision import Outcome, ValidationResult
from vouchgate.ingest.claims.likeness import DedupUnavailable
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.waiting import PendingMemory, ReviewStatus
from vouchgate.ingest.policy import Policy
from vouchgate.storage.claims import decisions, memories
from vouchgate.storage.claims.submit import Decided, KeyReused, Repeated, SubmitAnswer
from vouchgate.storage.log import chain as log
from vouchgate.storage.queue import pending
from vouchgate.storage.queue.capacity import QueueFull, QueueLimit
from vouchgate.storage.store import Store

EARLIER = (
    "The invoice service retries a failed upload to the archive and then tells the finance team about it "
    "in the daily report that everyone reads at noon"
)


def _send(store: Store, content: str, *, key: str | None = None, **about: Any) -> SubmitAnswer:
    return store.writer.submit(submission_of(examined(content, **about), key=key)).result(120)


def _decide(store: Store, content: str, **about: Any) -> ValidationResult:
    answer = _send(store, content, **about)
    assert isinstance(answer, Decided)
    return answer.answer


def _count(store: Store, table: str) -> int:
    with store.read() as connection:
        return int(connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one())  # noqa: S608


def _counters(store: Store) -> tuple[dict[str, int], int]:
    with store.read() as connection:
        rows = connection.execute(text("SELECT owner_id, pending FROM owner")).all()
        total = connection.execute(text("SELECT pending FROM queue_total")).scalar_one()
    return {row.owner_id: row.pending for row in rows if row.owner_id}, int(total)


def _pending(store: Store, item_id: str | None) -> PendingMemory:
    assert item_id is not None
    with store.read() as connection:
        found = pending.get(connection, item_id, owners=None)
    assert found is not None
    return found


def _log_is_whole(store: Store) -> None:
    with store.read() as connection:
        assert log.verify(connection) == []


def test_a_stored_claim(store: Store) -> None:
    sent = submission_of(examined("The mailer retries 5 times.", validity_horizon=NOW + timedelta(days=1)))
    answer = store.writer.submit(sent).result(120)
    assert isinstance(answer, Decided)
    result = answer.answer
    assert (result.outcome, result.rule, result.queue_id) == (Outcome.STORED, "trusted_source", None)
    assert result.took_ms > 0
    assert result.decision_id == f"dec_{sent.suffix}"
    with store.read() as connection:
        memory = memories.get(connection, str(result.memory_id), NOW, owners=frozenset({"ann"}))
        kept = decisions.get(connection, str(result.decision_id), owners=frozenset({"ann"}))
        foreign = decisions.get(connection, str(result.decision_id), owners=frozenset({"bob"}))
        (entry,) = log.events(connection, None, after=None, limit=10)
    assert memory is not None
    assert memory.content == "The mailer retries 5 times."
    assert memory.metadata == {"ticket": 7}
    assert memory.decision_id == result.decision_id
    assert memory.created_at == NOW
    assert memory.validity_horizon == NOW + timedelta(days=1)
    assert (kept, foreign) == (answer.json, None)
    assert ValidationResult.model_validate_json(answer.json) == result
    assert (entry.actor, entry.action, entry.subject_id) == (
        "agent-1",
        Action.CLAIM_STORED,
        result.decision_id,
    )


def test_a_queued_claim_and_its_repeats(store: Store) -> None:
    first = _decide(store, "The cache is warmed at night.", source=Source.AI_SYNTHESIS)
    item = _pending(store, first.queue_id)
    assert (item.status, item.version, item.seen) == (ReviewStatus.PENDING, 1, 1)
    assert item.expires_at == NOW + timedelta(days=policy().queue.expire_days)
    assert (item.submitted_by, item.decision_id) == ("agent-1", first.decision_id)
    again = _decide(store, "the cache IS warmed at night.", source=Source.AI_SYNTHESIS)
    trusted = _decide(store, "The cache is warmed at night.")
    for repeat in (again, trusted):
        assert (repeat.rule, repeat.queue_id, repeat.memory_id) == ("already_pending", first.queue_id, None)
    item = _pending(store, first.queue_id)
    assert (item.version, item.seen) == (1, 3)
    assert (_count(store, "pending"), _count(store, "decision")) == (1, 3)
    assert _counters(store) == ({"ann": 1}, 1)
    with store.read() as connection:
        actions = [entry.action for entry in log.events(connection, None, after=None, limit=9)]
    assert actions == [Action.CLAIM_QUEUED, Action.CLAIM_REPEATED, Action.CLAIM_REPEATED]


def test_a_blocked_claim_leaves_only_its_decision(store: Store) -> None:
    result = _decide(store, "I believe it works.", speculates=True)
    assert (result.outcome, result.rule, result.memory_id, result.queue_id) == (
        Outcome.BLOCKED,
        "speculation",
        None,
        None,
    )
    assert [_count(store, t) for t in ("memory", "pending", "dedup_key", "decision", "log_entry")] == [
        0,
        0,
        0,
        1,
        1,
    ]


def test_a_duplicate_names_the_memory_it_repeats(store: Store) -> None:
    first = _decide(store, EARLIER)
    second = _decide(store, EARLIER.upper())
    assert (second.outcome, second.rule, second.conflicting_memory_id) == (
        Outcome.BLOCKED,
        "duplicate",
        first.memory_id,
    )
    assert second.similarity_score == 1.0


def test_a_changed_value_waits_beside_the_memory_it_conflicts_with(store: Store) -> None:
    first = _decide(store, EARLIER.replace("daily", "9am"))
    second = _decide(store, EARLIER.replace("daily", "8am"))
    assert (second.outcome, second.rule, second.conflicting_memory_id) == (
        Outcome.QUEUED,
        "conflict",
        first.memory_id,
    )
    assert _pending(store, second.queue_id).conflicting_memory_id == first.memory_id
    third = _decide(store, EARLIER.replace("daily", "8am"))
    assert (third.rule, third.queue_id) == ("already_pending", second.queue_id)


@pytest.mark.on("sqlite")
def test_a_conflict_with_a_waiting_item_names_no_memory(store: Store) -> None:
    _decide(store, EARLIER.replace("daily", "9am"), source=Source.AI_SYNTHESIS)
    second = _decide(store, EARLIER.replace("daily", "8am"))
    assert (second.rule, second.conflicting_memory_id) == ("conflict", None)
    assert _pending(store, second.queue_id).conflicting_memory_id is None


def test_owners_and_types_are_apart(store: Store) -> None:
    outcomes = [
        _decide(store, EARLIER, owner_id="ann"),
        _decide(store, EARLIER, owner_id="bob"),
        _decide(store, EARLIER, owner_id="ann", memory_type=MemoryType.PROCEDURE),
    ]
    assert [result.outcome for result in outcomes] == [Outcome.STORED] * 3
    assert all(result.evidence.dedup.kind == "neighbours" for result in outcomes)
    assert '"items":[]' in outcomes[1].evidence.dedup.model_dump_json()


def test_an_expired_memory_is_no_duplicate(store: Store) -> None:
    _decide(store, EARLIER, validity_horizon=NOW + timedelta(hours=1))
    assert _decide(store, EARLIER, now=NOW + timedelta(minutes=59)).rule == "duplicate"
    assert _decide(store, EARLIER, now=NOW + timedelta(hours=1)).outcome is Outcome.STORED


@pytest.mark.on("postgresql")
def test_a_claim_of_the_greatest_size(store: Store) -> None:
    words = [chr(0x4E00 + number) for number in range(4096 + 342)]
    first = _decide(store, " ".join(words[:4096]))
    assert len(first.evidence.claim.content) == 8191
    near = _decide(store, " ".join(words[170 : 4096 + 170]))  # 3926 of 4266 words: 0.9203
    assert (near.rule, near.conflicting_memory_id) == ("conflict", first.memory_id)
    far = words[171:4096] + words[4096 + 171 :]  # 3925 of 4267 words, with either of the two: 0.9199
    assert _decide(store, " ".join(far)).outcome is Outcome.STORED


def test_the_same_key_and_body_give_the_same_answer(store: Store) -> None:
    first = _send(store, EARLIER, key="k-1")
    assert isinstance(first, Decided)
    assert _send(store, EARLIER, key="k-1") == Repeated(first.json)
    assert _send(store, "Another claim entirely.", key="k-1") == KeyReused()
    other = store.writer.submit(submission_of(examined(EARLIER), principal_id="agent-2", key="k-1")).result(
        30
    )
    assert isinstance(other, Decided)
    assert other.answer.rule == "duplicate"
    assert (_count(store, "memory"), _count(store, "decision"), _count(store, "idempotency")) == (1, 2, 2)


def test_equal_claims_in_one_group_are_as_if_sent_one_by_one(store: Store) -> None:
    waits = {"source": Source.AI_SYNTHESIS}
    together = [
        submission_of(examined(EARLIER)),
        submission_of(examined(EARLIER)),
        submission_of(examined("The cache is warmed at night.", **waits)),  # type: ignore[arg-type]
        submission_of(examined("The cache is warmed at night.")),
        submission_of(examined("The gateway is off."), key="k"),
        submission_of(examined("The gateway is off."), key="k"),
        submission_of(examined("The gateway is on."), key="k"),
    ]
    answers = _in_one_group(store, together)
    stored, blocked, queued, repeated, keyed = answers[:5]
    assert isinstance(stored, Decided)
    assert isinstance(blocked, Decided)
    assert isinstance(queued, Decided)
    assert isinstance(repeated, Decided)
    assert isinstance(keyed, Decided)
    assert blocked.answer.conflicting_memory_id == stored.answer.memory_id
    assert repeated.answer.queue_id == queued.answer.queue_id
    assert answers[5:] == [Repeated(keyed.json), KeyReused()]
    assert _pending(store, queued.answer.queue_id).seen == 2
    _log_is_whole(store)


def _in_one_group(store: Store, submissions: list[Any]) -> list[SubmitAnswer]:
    """Sends them while the writer is kept busy, so that they wait together."""
    busy, go = threading.Event(), threading.Event()

    def hold(connection: Any) -> None:
        busy.set()
        go.wait(120)

    store.writer.run([], hold)
    assert busy.wait(120)  # else the first of them are written with it
    futures = [store.writer.submit(submission) for submission in submissions]
    go.set()
    return [future.result(120) for future in futures]


def test_a_full_queue_writes_nothing(store: Store) -> None:
    limits = policy(per_agent=9, per_owner=2, total=3)
    waits: dict[str, Any] = {"source": Source.AI_SYNTHESIS, "under": limits}
    _decide(store, "The mailer is green.", **waits)
    _decide(store, "The archive is blue.", **waits)
    before = [_count(store, t) for t in ("pending", "decision", "log_entry", "dedup_key", "idempotency")]
    full = _send(store, "The gateway is red.", key="later", **waits)
    assert full == QueueFull(QueueLimit.PER_OWNER, 2, limits.queue.retry_after_seconds)
    assert before == [
        _count(store, t) for t in ("pending", "decision", "log_entry", "dedup_key", "idempotency")
    ]
    assert _decide(store, "The mailer is green.", **waits).rule == "already_pending"  # a repeat needs no room
    assert _decide(store, "The gateway is red.", under=limits).outcome is Outcome.STORED
    _decide(store, "The mailer is green.", owner_id="bob", **waits)
    assert _send(store, "The archive is blue.", owner_id="bob", **waits) == QueueFull(
        QueueLimit.TOTAL, 3, limits.queue.retry_after_seconds
    )
    assert _counters(store) == ({"ann": 2, "bob": 1}, 3)


def test_a_queue_that_fills_within_a_group(store: Store) -> None:
    limits = policy(per_owner=3, total=4)
    sent = [
        submission_of(
            examined(f"The item {name} is here.", owner_id=owner, source=Source.AI_SYNTHESIS, under=limits)
        )
        for name in "abcde"
        for owner in ("ann", "bob")
    ]
    answers = [racers.summary(answer)[0] for answer in _in_one_group(store, sent)]
    # Each owner's in their turn, and ann's came first.
    assert answers[::2] == ["queued"] * 3 + ["full"] * 2
    assert answers[1::2] == ["queued"] + ["full"] * 4
    assert _counters(store) == ({"ann": 3, "bob": 1}, 4)


@pytest.mark.on("sqlite")
def test_an_index_of_another_threshold_cannot_be_asked(store: Store) -> None:
    _decide(store, EARLIER)
    lower = policy(threshold=0.8)
    result = _decide(store, EARLIER, under=lower)
    assert (result.outcome, result.rule) == (Outcome.QUEUED, "dedup_unknown")
    assert isinstance(result.evidence.dedup, DedupUnavailable)
    assert "0.92" in result.evidence.dedup.detail
    # What was queued is in the index all the same, under the keys that the index is made of.
    assert _decide(store, EARLIER.replace("noon", "9am")).rule == "conflict"
    assert _decide(store, EARLIER.replace("then tells", "then also tells")).rule == "duplicate"


@pytest.mark.on("sqlite")
def test_a_lower_threshold_counts_what_was_stored_under_another(database_url: str) -> None:
    store = Store.open(database_url, threshold=Fraction(23, 25))
    first = _decide(store, "alpha beta gamma delta epsilon")
    assert _decide(store, "alpha beta gamma delta epsilon zeta").outcome is Outcome.STORED
    waiting = _decide(store, "one two three four five", source=Source.AI_SYNTHESIS)
    store.close()
    lower = policy(threshold=0.8)
    store = Store.open(database_url, threshold=lower.threshold)
    result = _decide(store, "alpha beta gamma delta epsilon", under=lower)
    assert (result.rule, result.conflicting_memory_id) == ("duplicate", first.memory_id)
    assert _decide(store, "alpha beta gamma delta", under=lower).rule == "conflict"
    assert _decide(store, "alpha beta the gamma delta epsilon", under=lower).rule == "duplicate"
    assert _pending(store, waiting.queue_id).seen == 1
    store.close()


def test_statements_do_not_grow_with_the_claims_of_an_owner(store: Store) -> None:
    counts = []
    every = Policy.model_validate(policy().model_dump() | {"spot_checks": {"rate": 1.0}})
    # Powers of two: on SQLite other sizes are written in a few pieces. And no 64 in all, with which the log would be
    # long enough for a transaction that puts its end into the similar index.
    for size in (2, 32):
        waits = [
            submission_of(
                examined(
                    f"Item {size}-{n} of the list.",
                    source=(Source.USER, Source.AI_SYNTHESIS)[n % 2],
                    under=every,
                ),
                key=f"{size}-{n}",
            )
            for n in range(size)
        ]
        with counting(store) as seen:
            _in_one_group(store, waits)
        counts.append(len(seen.reads) + len(seen.writes))
    # One more for the texts that the similar index leads to: the first group finds none.
    assert counts[1] <= counts[0] + 1


@pytest.mark.parametrize("source", [Source.USER, Source.AI_SYNTHESIS])
def test_processes_racing_the_same_claims(store: Store, database_url: str, source: Source) -> None:
    """Every claim is kept once, and everyone who lost learns its id. Odd rounds race near-same claims."""
    base = " ".join(f"plain{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(40))
    small = (" also", " currently", " the")  # words whose coming and going changes nothing
    contents = [
        [
            f"{base} round{chr(97 + turn)} topic{chr(97 + turn)} "
            f"theme{chr(97 + turn)} matter{chr(97 + turn)}" + (small[who] if turn % 2 else "")
            for turn in range(20)
        ]
        for who in range(3)
    ]
    kept, work = (
        ("stored", racers.send_each_alone) if source is Source.USER else ("queued", racers.send_together)
    )
    reports = racers.race(database_url, work, [(texts, "ann", source) for texts in contents])
    for turn in range(20):
        answers = [report[turn] for report in reports]
        assert len({named for _, named in answers}) == 1, answers
        if source is Source.USER:
            assert sorted(outcome for outcome, _ in answers) == ["blocked", "blocked", "stored"]
    table = "memory" if kept == "stored" else "pending"
    assert _count(store, table) == 20
    assert _count(store, "decision") == 60
    _log_is_whole(store)


@pytest.mark.parametrize(
    "owners", [[["ann", "bob"], ["cem", "dee"], ["eve", "fay"]], [["ann", "bob", "cem", "dee"]] * 3]
)
def test_processes_racing_for_room_in_the_queue(
    store: Store, database_url: str, owners: list[list[str]]
) -> None:
    """Each process with owners of its own, who meet at the total alone, and all with the same owners."""
    reports = racers.race(
        database_url,
        racers.fill_queue,
        [(some, label, 5, 17) for some, label in zip(owners, ("left", "right", "middle"), strict=True)],
    )
    outcomes = [outcome for report in reports for outcome, _ in report]
    assert outcomes.count("queued") == 17
    per_owner, total = _counters(store)
    assert total == 17
    assert sum(per_owner.values()) == 17
    assert max(per_owner.values()) <= 5
    assert _count(store, "pending") == 17
    _log_is_whole(store)


def test_processes_racing_one_key(store: Store, database_url: str) -> None:
    keys = [f"key{number}" for number in range(15)]
    reports = racers.race(
        database_url, racers.send_with_keys, [("ann", keys), ("ann", keys), ("bob", keys[::-1])]
    )
    by_key = [(reports[0][n], reports[1][n], reports[2][len(keys) - 1 - n]) for n in range(len(keys))]
    for ann, again, bob in by_key:
        outcomes = sorted([ann[0], again[0], bob[0]])
        if bob[0] == "stored":
            assert outcomes == ["reused", "reused", "stored"]
        else:
            assert outcomes == ["repeated", "reused", "stored"]
            repeated, stored = (ann, again) if ann[0] == "repeated" else (again, ann)
            assert json.loads(repeated[1])["memory_id"] == stored[1]
    assert _count(store, "memory") == _count(store, "idempotency") == len(keys)
    _log_is_whole(store)


def test_processes_with_groups_over_the_same_owners(store: Store, database_url: str) -> None:
    owners = [f"owner{number}" for number in range(8)]
    reports = racers.race(
        database_url,
        racers.cross_owners,
        [(owners, "first", 8), (owners[::-1], "second", 8), (owners[3:] + owners[:3], "third", 8)],
    )
    assert all(outcome == "queued" for report in reports for outcome, _ in report)
    assert _counters(store) == (dict.fromkeys(owners, 24), 192)
    _log_is_whole(store)
