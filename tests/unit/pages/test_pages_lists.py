"""The lists of the pages, decided without a database: rows, groups, addresses, and what changed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, get_args
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vouchgate.ingest.claims.claim import MemoryType, Source
from vouchgate.ingest.claims.decision import Confidence, Label
from vouchgate.ingest.claims.memory import Memory, MemoryStatus
from vouchgate.ingest.claims.waiting import PendingMemory, ReviewStatus
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.rules import Rule
from vouchgate.review.pages import history, memory, queue
from vouchgate.review.pages.queue import QueueListing
from vouchgate.review.pages.reasons import OTHER, kind_of
from vouchgate.storage.claims.memories import MemoryFilter
from vouchgate.storage.queue.pending import Order

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
HEAD_START = load_policy().queue.head_start_days


def item(**fields: Any) -> PendingMemory:
    return PendingMemory(
        **{
            "id": "rev_1",
            "owner_id": "ann",
            "memory_type": MemoryType.FACT,
            "content": "Exports leave at four.",
            "source": Source.AI_SYNTHESIS,
            "reason": "Ungrounded assertion needs verification",
            "status": ReviewStatus.PENDING,
            "version": 3,
            "seen": 1,
            "created_at": NOW - timedelta(days=2),
            "expires_at": NOW + timedelta(days=28),
            "decision_id": "dec_1",
            "submitted_by": "0123456789abcdef",
            "rule": "ungrounded",
            "priority_at": NOW,
            **fields,
        }
    )


def row(listing: QueueListing | None = None, **fields: Any) -> queue.QueueRow:
    senders = {"0123456789abcdef": "night agent"}
    (made,) = queue.rows_of(
        [item(**fields)], listing or QueueListing(), senders=senders, head_start=HEAD_START, now=NOW
    )
    return made


def query(href: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(href).query))


def test_a_row_says_who_what_and_since_when() -> None:
    made = row()
    assert (made.sender, made.kind.label, made.waited) == ("night agent", "Ungrounded", "waits 2 days")
    assert (made.conflict, made.expiring, made.cited_shown) == (False, "", "")
    assert row(created_at=NOW - timedelta(seconds=59)).waited == "just sent"
    assert row(submitted_by="fedcba9876543210").sender == "fedcba9876543210"  # a token nobody knows any more


@pytest.mark.parametrize(
    ("fields", "conflict"),
    [
        ({"rule": "conflict", "conflicting_memory_id": "mem_1"}, True),
        ({"rule": "conflict"}, False),  # with another claim that waits
        ({"rule": "technical_hedge", "conflicting_memory_id": "mem_1"}, True),
        ({"rule": "technical_hedge"}, False),
    ],
)
def test_a_row_knows_that_approving_it_is_a_choice(fields: dict[str, Any], conflict: bool) -> None:
    assert row(**fields).conflict is conflict


def test_what_is_about_to_expire_says_so() -> None:
    assert row(expires_at=NOW + timedelta(days=3)).expiring == "expires in 3 days"
    assert row(expires_at=NOW + timedelta(days=3, seconds=1)).expiring == ""


def test_the_groups_of_a_row_are_addresses_and_keep_the_order() -> None:
    made = row(QueueListing(order="newest", q="four"), cited="url:https://a.example/x?y=1&z=2")
    assert query(made.rule_href) == {"rule": "ungrounded", "order": "newest"}
    assert query(made.cited_href) == {"cited": "url:https://a.example/x?y=1&z=2", "order": "newest"}
    assert made.cited_shown == "https://a.example/x?y=1&z=2"
    assert query(made.href) == {"q": "four", "order": "newest"}  # so that the next one is known there


@given(
    st.builds(
        QueueListing,
        rule=st.none() | st.sampled_from(Rule),
        sender=st.none() | st.text(min_size=1),
        cited=st.none() | st.text(min_size=1),
        memory_type=st.none() | st.sampled_from(MemoryType),
        q=st.none() | st.text(),
        order=st.sampled_from(get_args(Order)),
    )
)
def test_an_address_holds_all_of_a_listing(listing: QueueListing) -> None:
    href = listing.href()
    assert href.isascii()
    assert not set(href) & set(" \"'<>\\")
    assert parse_qsl(urlsplit(href).query, strict_parsing="?" in href) == list(listing.query)


def test_groups_are_shown_with_their_counts_and_the_chosen_one() -> None:
    groups = queue.by_reason(
        {Rule.UNGROUNDED: 3, Rule.CONFLICT: 5, Rule.TRUSTED_SOURCE: 1}, QueueListing(rule=Rule.CONFLICT)
    )
    assert [(g.label, g.count, g.chosen) for g in groups] == [
        ("Conflict", 5, True),
        ("Ungrounded", 3, False),
        (OTHER.label, 1, False),
    ]
    assert kind_of("of_a_newer_gate") == OTHER
    cited = queue.by_cited({"adr:1": 2, "adr:2": 1, "adr:3": 1}, QueueListing(cited="adr:3"))
    assert [g.label for g in cited] == [
        "adr:1",
        "adr:3",
    ]  # what only one item cites is no group, unless chosen


def test_a_listing_in_words() -> None:
    words = queue.filter_words(
        QueueListing(rule=Rule.REFUTED, sender="a", q="x\u202ey"), {"a": "night agent"}
    )
    assert words == "Citation does not hold, from night agent, with “x⟨U+202E⟩y”"
    assert queue.filter_words(QueueListing(order="newest"), {}) == ""


@pytest.mark.parametrize(
    ("fields", "undo", "by", "mark"),
    [
        ({"status": ReviewStatus.APPROVED, "decided_by": "r"}, "for 50 minutes more", "by rita", "good"),
        ({"status": ReviewStatus.REJECTED, "decided_by": "x"}, "for 50 minutes more", "by x", "bad"),
        ({"status": ReviewStatus.EXPIRED, "decided_by": "service"}, "", "by itself", "doubt"),
        ({"status": ReviewStatus.PROMOTED, "decided_by": "service"}, "", "by itself", "good"),
    ],
)
def test_history_says_what_can_be_taken_back(fields: dict[str, Any], undo: str, by: str, mark: str) -> None:
    decided = item(decided_at=NOW - timedelta(minutes=10), **fields)
    (made,) = history.rows_of([decided], names={"r": "rita"}, stored={}, policy=load_policy(), now=NOW)
    assert (made.undo, made.by, made.mark) == (undo, by, mark)
    late_at = NOW + timedelta(minutes=50)
    (late,) = history.rows_of([decided], names={}, stored={}, policy=load_policy(), now=late_at)
    assert late.undo == ""


def test_every_ending_can_be_chosen() -> None:
    made = history.filter_choices(ReviewStatus.EXPIRED, {"q": "bowl", "status": "expired"})
    assert query(made[1].href) == {"q": "bowl", "status": "approved"}
    assert [choice.label for choice in made] == [
        "all",
        "approved",
        "rejected",
        "expired",
        "let go",
        "promoted",
    ]
    assert [choice.label for choice in made if choice.chosen] == ["expired"]


def test_every_choice_of_memories_is_one_that_the_store_knows() -> None:
    for select in memory.parse_query({}).selects:
        for value, _ in select.options:
            chosen = memory.parse_query({select.name: value})
            MemoryFilter(owners=frozenset({"ann"}), **chosen.fields)
            assert chosen.filtered is bool(value)
            assert query(chosen.href()) == ({select.name: value} if value else {})
    everything = MemoryFilter(owners=None, **memory.parse_query({"state": "all"}).fields)
    assert everything.statuses == frozenset(MemoryStatus)


def test_a_choice_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="stale"):
        MemoryFilter(owners=None, **memory.parse_query({"state": "good"}).fields)


def test_a_memory_whose_decision_cannot_be_read_is_shown_all_the_same() -> None:
    kept = Memory(
        id="mem_1",
        owner_id="ann",
        memory_type=MemoryType.FACT,
        content="Exports leave at four.\u202e",
        source=Source.USER,
        status=MemoryStatus.EXPIRED,
        confidence=Confidence.MEDIUM,
        confidence_score=None,
        label=Label.INFERENCE,
        source_id=None,
        created_at=NOW,
        validity_horizon=NOW,
        decision_id="dec_1",
        approved_by="r",
    )
    view = memory.memory_view(kept, None, names={"r": "rita"}, policy=load_policy(), now=NOW)
    assert not view.findings
    assert not view.sources
    assert "unseen" in view.claim[-1].marks
    assert view.vouched == "Its owner vouches for it: approved by rita."
    assert view.may_retract
    gone = kept.model_copy(update={"status": MemoryStatus.RETRACTED})
    assert not memory.memory_view(gone, None, names={}, policy=load_policy(), now=NOW).may_retract
