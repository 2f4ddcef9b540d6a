"""What was stored before statements were held against sources one by one is judged again: labels and confidence are
lowered where they promise more than is shown, logged and listed; nothing is raised or deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from itertools import product
from pathlib import Path

import pytest

from tests.claims import NOW, submission_of
from tests.rechecking import Bench, bench
from tests.reviews import history, memory, reviewer
from vouchgate.ingest.claims.claim import Claim, MemoryType, Source
from vouchgate.ingest.claims.decision import Confidence, Label, ValidationResult
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.memory import Memory, MemoryStatus
from vouchgate.ingest.claims.source import EXCERPT_CHARACTERS, Found
from vouchgate.ingest.pipeline import examine
from vouchgate.review.pages.memory import memory_view, parse_query
from vouchgate.review.staleness import Shown, lowered
from vouchgate.storage.claims import memories
from vouchgate.storage.claims.memories import MemoryFilter
from vouchgate.storage.claims.submit import Decided
from vouchgate.storage.store import Store

STATED = "Per ADR-0001 the gateway listens on port 8080."
TOO_MUCH = "Per ADR-0001 the gateway listens on port 8080 and encrypts every packet."
WEEK = timedelta(days=8)


@pytest.fixture
def here(store: Store, tmp_path: Path) -> Iterator[Bench]:
    """A bench under the built-in policy."""
    with bench(store, tmp_path) as made:
        yield made


def send_as_before(here: Bench, content: str, source: Source = Source.AI_SYNTHESIS) -> ValidationResult:
    """Submits a claim, decided as it was before statements were held against sources one by one."""
    claim = Claim(
        content=content, memory_type=MemoryType.FACT, asserted_source=source, source=source, owner_id="ann"
    )
    inspected = here.examiner.inspect(claim)
    readings = []
    for citation in inspected.cited():
        found = asyncio.run(here.world.read(citation))
        assert isinstance(found, Found)
        readings.append(found.model_copy(update={"excerpt": found.text[:EXCERPT_CHARACTERS], "text": ""}))
    examined = examine(inspected, readings, here.policy, NOW, by_statements=False)
    answer = here.store.writer.submit(submission_of(examined)).result()
    assert isinstance(answer, Decided)
    assert answer.answer.evidence.label is Label.FACT
    return answer.answer


def one(here: Bench, sent: ValidationResult) -> Memory:
    """The memory, but for when it was looked at last."""
    return memory(here.store, str(sent.memory_id), NOW).model_copy(update={"confirmed_at": None})


def test_what_is_stated_keeps_its_label_and_what_is_not_is_lowered_once(here: Bench) -> None:
    stated, too_much = send_as_before(here, STATED), send_as_before(here, TOO_MUCH)
    assert too_much.rule == "citation_verified"
    before = one(here, stated)
    counts = here.work(NOW + WEEK)
    assert (counts.same, counts.lowered) == (1, 1)
    assert one(here, stated) == before
    made = one(here, too_much)
    assert made.status is MemoryStatus.ACTIVE
    assert (made.label, made.confidence) == (Label.INFERENCE, Confidence.MEDIUM)
    assert made.lowered_at is not None
    assert abs(made.lowered_at - NOW - WEEK) < timedelta(minutes=1)
    assert str(made.lowered_reason).startswith("It was FACT with high confidence. ")
    assert "encrypts" in str(made.lowered_reason)
    (entry,) = [each for each in history(here.store) if each.action is Action.MEMORY_RELABELLED]
    assert (entry.subject_id, entry.actor) == (made.id, "service")
    counts = here.work(NOW + 2 * WEEK)
    assert (counts.same, counts.lowered) == (2, 0)
    assert one(here, too_much) == made


@pytest.mark.on("sqlite")
def test_what_is_shown_again_is_not_raised(here: Bench) -> None:
    sent = send_as_before(here, TOO_MUCH)
    here.work(NOW + WEEK)
    here.adr("Accepted", "The gateway listens on port 8080 and encrypts every packet.")
    here.work(NOW + 2 * WEEK)
    assert one(here, sent).label is Label.INFERENCE


@pytest.mark.on("sqlite")
def test_what_cannot_be_read_lowers_nothing(here: Bench) -> None:
    sent = send_as_before(here, TOO_MUCH)
    here.hide()
    assert here.work(NOW + WEEK).again == 1
    assert one(here, sent).label is Label.FACT
    here.show()
    here.repository.git("rm", "--quiet", "docs/adrs/0001-port.md")
    here.repository.commit("Gone", {"docs/adrs/0002-logs.md": "# 2. Logs\n\nLogs go to a file.\n"})
    assert here.work(here.schedule()[0].due_at).stale == 1
    assert (one(here, sent).label, one(here, sent).lowered_at) == (Label.FACT, None)


@pytest.mark.on("sqlite")
def test_a_decision_by_statements_is_not_judged_again(here: Bench) -> None:
    sent = here.send(TOO_MUCH, source=Source.USER)
    assert sent.rule == "trusted_source", sent.reason
    was = one(here, sent)
    assert here.work(NOW + WEEK).same == 1
    assert one(here, sent) == was


def test_its_owner_can_list_what_was_lowered(here: Bench) -> None:
    stated, too_much = send_as_before(here, STATED), send_as_before(here, TOO_MUCH)
    here.work(NOW + WEEK)
    for value, expected in (("yes", too_much), ("no", stated)):
        fields = parse_query({"lowered": value}).fields
        wanted = MemoryFilter(owners=reviewer().owners, **fields)
        with here.store.read() as connection:
            assert [each.id for each in memories.search(connection, wanted, NOW)] == [expected.memory_id]
    view = memory_view(one(here, too_much), too_much, names={}, policy=here.policy, now=NOW + WEEK)
    assert "".join(piece.text for piece in view.lowered).startswith("It was FACT")


@pytest.mark.on("sqlite")
def test_nothing_is_ever_raised(here: Bench) -> None:
    ranks = {Confidence.LOW: 0, Confidence.MEDIUM: 1, Confidence.HIGH: 2}
    made = one(here, send_as_before(here, STATED))
    shown_labels = (Label.FACT, Label.INFERENCE)  # no decision shows that a claim is unvouched
    for label, confidence, shown, worth, by in product(
        Label, Confidence, shown_labels, Confidence, (None, "rita")
    ):
        held = made.model_copy(update={"label": label, "confidence": confidence, "approved_by": by})
        left = lowered(held, Shown(shown, worth, "Why."))
        if left is None:
            assert label is not Label.FACT or shown is Label.FACT
            continue
        assert left != (label, confidence)
        assert label is not Label.UNVOUCHED  # it promises nothing that could be lowered
        assert label is Label.FACT or left[0] is Label.INFERENCE
        assert ranks[left[1]] <= ranks[confidence]
        assert by is None or confidence is Confidence.LOW or left[1] is not Confidence.LOW
