"""Which waiting claim comes first, and what is said of it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.claims import NOW, policy
from vouchgate.ingest.claims.claim import MemoryType, Source
from vouchgate.ingest.claims.waiting import PendingMemory, ReviewStatus
from vouchgate.ingest.language.words import tokens
from vouchgate.ingest.policy import HeadStart
from vouchgate.ingest.rules import Rule
from vouchgate.ingest.scoring.priority import digest_of, explain, head_start, span, span_left, words_digest

WEIGHTS = HeadStart(conflict=14, citation=7, hedge=2)


def item(rule: str = "ungrounded", **more: object) -> PendingMemory:
    """An item that waits since NOW under this rule."""
    fields: dict[str, object] = {
        "id": "rev_1",
        "owner_id": "ann",
        "memory_type": MemoryType.FACT,
        "content": "The bridge carries ten tons",
        "source": Source.AI_SYNTHESIS,
        "reason": "Because.",
        "status": ReviewStatus.PENDING,
        "version": 1,
        "seen": 1,
        "created_at": NOW,
        "expires_at": NOW + timedelta(days=30),
        "decision_id": "dec_1",
        "submitted_by": "agent-1",
        "rule": rule,
        "priority_at": NOW - head_start(rule, WEIGHTS),
    }
    return PendingMemory.model_validate(fields | more)


@pytest.mark.parametrize(
    ("rule", "days"),
    [
        (Rule.CONFLICT, 14),
        (Rule.REFUTED, 7),
        (Rule.TECHNICAL_HEDGE, 2),
        *((rule, 0) for rule in Rule if rule not in ("conflict", "refuted", "technical_hedge")),
        ("of_a_newer_gate", 0),
    ],
)
def test_what_is_riskier_has_a_head_start(rule: str, days: int) -> None:
    assert head_start(rule, WEIGHTS) == timedelta(days=days)


def test_the_built_in_policy_puts_conflicts_first() -> None:
    weights = policy().queue.head_start_days
    order = [head_start(rule, weights) for rule in ("conflict", "refuted", "technical_hedge", "ungrounded")]
    assert order == sorted(order, reverse=True)
    assert len(set(order)) == 4


@pytest.mark.parametrize(
    ("rule", "phrases"),
    [
        ("conflict", ["conflicts with a stored memory: counts as 14 days of waiting", "waits 5 hours"]),
        ("refuted", ["cites something that does not hold: counts as 7 days of waiting", "waits 5 hours"]),
        ("technical_hedge", ["is hedged: counts as 2 days of waiting", "waits 5 hours"]),
        ("ungrounded", ["waits 5 hours"]),
    ],
)
def test_an_item_says_why_it_stands_where_it_does(rule: str, phrases: list[str]) -> None:
    one = item(rule, conflicting_memory_id="mem_1" if rule == "conflict" else None)
    assert list(explain(one, WEIGHTS, NOW + timedelta(hours=5, minutes=59))) == phrases


def test_a_conflict_with_what_waits_is_called_so() -> None:
    (phrase, _) = explain(item("conflict"), WEIGHTS, NOW)
    assert phrase.startswith("conflicts with another claim that waits: counts as 14 days")


def test_a_reason_that_counts_for_nothing_is_not_named() -> None:
    none = HeadStart(conflict=0, citation=0, hedge=0)
    assert list(explain(item("conflict"), none, NOW)) == ["waits 0 minutes"]


@pytest.mark.parametrize(
    ("left", "said"),
    [
        (timedelta(days=3, seconds=1), None),
        (timedelta(days=3), "expires in 3 days"),
        (timedelta(hours=1), "expires in 1 hour"),
        (timedelta(0), "expires in 0 minutes"),
        (timedelta(days=-2), "expires in 0 minutes"),
    ],
)
def test_an_item_says_that_its_time_is_nearly_over(left: timedelta, said: str | None) -> None:
    phrases = list(explain(item("conflict"), WEIGHTS, NOW + timedelta(days=30) - left))
    assert (phrases[0] if phrases[0].startswith("expires") else None) == said


@pytest.mark.parametrize(
    ("time", "said"),
    [
        (timedelta(days=1), "1 day"),
        (timedelta(days=2, hours=23), "2 days"),
        (timedelta(hours=23, minutes=59), "23 hours"),
        (timedelta(minutes=59, seconds=59), "59 minutes"),
        (timedelta(minutes=1), "1 minute"),
        (timedelta(seconds=59), "0 minutes"),
        (timedelta(seconds=-5), "0 minutes"),
    ],
)
def test_a_length_of_time_is_said_in_its_largest_unit(time: timedelta, said: str) -> None:
    assert span(time) == said


def test_of_what_is_left_a_minute_that_has_begun_counts() -> None:
    tick = timedelta(microseconds=1)
    assert span_left(timedelta(days=3) - tick) == span_left(timedelta(days=3)) == "3 days"
    assert span_left(timedelta(minutes=59) - tick) == "59 minutes"
    assert (span_left(tick), span_left(timedelta(0))) == ("1 minute", "0 minutes")


@given(st.text(max_size=200), st.text(max_size=200), st.sampled_from(MemoryType))
def test_claims_with_the_same_words_have_one_digest(one: str, two: str, kind: MemoryType) -> None:
    same = tokens(one) == tokens(two)
    assert (words_digest(one, kind) == words_digest(two, kind)) == same
    assert words_digest(one, kind) == digest_of(tokens(one), kind.value)
    others = [words_digest(one, other) for other in MemoryType if other is not kind]
    assert words_digest(one, kind) not in others


def test_order_case_and_repetition_do_not_count_for_a_digest() -> None:
    kind = MemoryType.FACT
    assert words_digest("The bridge carries TEN tons.", kind) == words_digest(
        "Tons the bridge bridge carries ten", kind
    )
    assert words_digest("The bridge carries ten tons", kind) != words_digest(
        "The bridge carries two tons", kind
    )
