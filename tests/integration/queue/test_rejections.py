"""A claim in the words of one that its owner rejected lately says so, to agent and owner; it decides nothing."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection

from tests.claims import NOW, examined, policy, submission_of
from tests.reviews import queue_of, reviewer, waiting
from vouchgate.ingest.claims.claim import MemoryType, Source
from vouchgate.ingest.claims.decision import RejectedBefore, ValidationResult
from vouchgate.ingest.claims.waiting import PendingMemory
from vouchgate.review.answers import Approved, Rejected, Retracted, Undone
from vouchgate.storage.claims.submit import Decided, write_submissions
from vouchgate.storage.queue import rejections
from vouchgate.storage.store import Store

LATER = NOW + timedelta(hours=1)
TALE = "The tower clock was built by elves"


def sent(
    store: Store,
    content: str,
    now: datetime = LATER,
    *,
    source: Source = Source.AI_SYNTHESIS,
    **more: Any,
) -> ValidationResult:
    """The answer to a claim, which is also what is kept."""
    one = examined(content, now=now, source=source, **more)
    answer = store.writer.submit(submission_of(one)).result()
    assert isinstance(answer, Decided)
    assert ValidationResult.model_validate_json(answer.json) == answer.answer
    assert ("rejected_before" in answer.json) == (answer.answer.rejected_before is not None)
    return answer.answer


def item_of(store: Store, answer: ValidationResult) -> PendingMemory:
    """The item that the answer names."""
    item = queue_of(store).get_by_id(reviewer(), str(answer.queue_id))
    assert item is not None
    return item


def reject(store: Store, content: str, *, at: datetime = LATER, reason: str = "A tale.") -> RejectedBefore:
    """Has a claim wait and rejects it; what later ones are told of that."""
    item = waiting(store, content)
    done = queue_of(store).reject(reviewer(), item.id, version=1, reason=reason, now=at)
    assert isinstance(done, Rejected)
    return RejectedBefore(queue_id=item.id, reason=reason, rejected_at=at)


def test_a_repeat_of_a_rejected_claim_says_so(store: Store) -> None:
    told = reject(store, TALE)
    answer = sent(store, TALE.upper() + "!")
    assert (answer.rule, answer.rejected_before) == ("ungrounded", told)
    item = item_of(store, answer)
    assert item.rejected_before == told.queue_id
    assert queue_of(store).rejected_before(item) == told
    repeat = sent(store, TALE)  # of the one that waits now
    assert (repeat.rule, repeat.queue_id, repeat.rejected_before) == ("already_pending", item.id, told)
    assert item_of(store, repeat).seen == 2


@pytest.mark.on("sqlite")
def test_a_blocked_claim_is_told_and_a_stored_one_is_not(store: Store) -> None:
    told = reject(store, TALE)
    assert sent(store, TALE, speculates=True).rejected_before == told
    assert sent(store, TALE, source=Source.USER).rejected_before is None


@pytest.mark.on("sqlite")
def test_the_latest_rejection_counts_and_no_other_words(store: Store) -> None:
    now = LATER + timedelta(days=2)
    told = reject(store, TALE, at=LATER + timedelta(days=1), reason="Still a tale.")
    reject(store, TALE, reason="Said again, rejected earlier.")
    others: tuple[tuple[str, dict[str, Any]], ...] = (
        (TALE + " and trolls", {}),
        (TALE, {"owner_id": "bob"}),
        (TALE, {"memory_type": MemoryType.PROCEDURE}),
    )
    for content, more in others:
        assert sent(store, content, now, **more).rejected_before is None
    assert sent(store, TALE, now).rejected_before == told


def test_a_rejection_is_remembered_for_so_long(store: Store) -> None:
    told = reject(store, TALE)
    end = LATER + timedelta(days=policy().queue.rejected_days)
    assert sent(store, TALE, end - timedelta(seconds=1)).rejected_before == told
    assert sent(store, TALE, end).rejected_before is None


@pytest.mark.on("sqlite")
def test_only_rejections_count(store: Store) -> None:
    queue = queue_of(store)
    item = waiting(store, TALE)
    queue.expire(item.expires_at)
    again = waiting(store, TALE)
    kept = queue.approve(reviewer(), again.id, version=1, now=LATER)
    assert isinstance(kept, Approved)
    assert isinstance(queue.retract(reviewer(), kept.memory.id, reason="no", now=LATER), Retracted)
    assert sent(store, TALE).rejected_before is None


def test_a_rejection_that_was_taken_back_is_shown_to_nobody(store: Store) -> None:
    queue, told = queue_of(store), reject(store, TALE)
    answer = sent(store, TALE)
    second = item_of(store, answer)
    assert isinstance(queue.reject(reviewer(), second.id, version=1, reason="No.", now=LATER), Rejected)
    assert isinstance(queue.undo(reviewer(), told.queue_id, version=2, now=LATER), Undone)
    assert queue.rejected_before(second) is None
    assert answer.rejected_before == told  # what was answered was so


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """For how many claims each statement asked."""
    seen: list[int] = []
    real = rejections.latest

    def latest(connection: Connection, wanted: Collection[rejections.Name]) -> Any:
        seen.append(len(wanted))
        return real(connection, wanted)

    monkeypatch.setattr(rejections, "latest", latest)
    return seen


def test_a_group_of_claims_asks_once_and_for_what_is_stored_never(store: Store, asked: list[int]) -> None:
    told = {content: reject(store, content) for content in (TALE, "The mill is haunted", "Cats can fly")}
    asked.clear()
    sent(store, "The clock is wound on Mondays", source=Source.USER)
    assert asked == []
    contents = [*told, *(f"Cart {number} has {number * 2} wheels" for number in range(5))]
    batch = [submission_of(examined(c, source=Source.AI_SYNTHESIS, now=LATER)) for c in contents]
    answers = store.writer.run((), lambda connection: write_submissions(connection, batch)).result()
    found = [answer.answer.rejected_before for answer in answers if isinstance(answer, Decided)]
    assert found == [*told.values(), *[None] * 5]
    assert asked == [8]
