"""The key under which submissions are counted, and what follows from the count."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import Parts, route
from tests.unit.deciding.test_router import CLEAN, UNIQUE
from vouchgate.ingest.checks.echo import echo_key, judge
from vouchgate.ingest.claims.claim import Finding, Source, Verdict
from vouchgate.ingest.claims.decision import Tier
from vouchgate.ingest.claims.likeness import EchoFacts
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.language.words import tokens
from vouchgate.ingest.policy import EchoPolicy, Policy
from vouchgate.ingest.router import ECHO_REASON
from vouchgate.review.pages.findings import finding_view

CLAIM = "The delivery service retries a failed delivery eight times and never gives up before noon"
POLICY = load_policy()


def key(text: str) -> str:
    return echo_key(tokens(text), "fact")


@pytest.mark.parametrize(
    "again",
    [
        CLAIM.upper() + ".",
        "A failed delivery is retried by the delivery service eight times, and it never gives up before noon.",
        "Note: the delivery services retry failed deliveries eight times and never give up before noon!",
        "Before noon the delivery service never gives up, and eight times retries a failed delivery",
    ],
)
def test_case_order_endings_and_small_words_make_no_other_claim(again: str) -> None:
    assert key(again) == key(CLAIM)


@pytest.mark.parametrize(
    "other",
    [
        CLAIM.replace("eight", "nine"),
        CLAIM.replace("never ", ""),
        CLAIM.replace("before", "after"),
        CLAIM.replace("noon", "midnight"),
        CLAIM.replace("failed", "late"),
        CLAIM + " on Sundays",
    ],
)
def test_any_other_word_does(other: str) -> None:
    assert key(other) != key(CLAIM)


def test_types_are_counted_apart_and_small_words_alone_are_a_claim() -> None:
    assert echo_key(tokens(CLAIM), "fact") != echo_key(tokens(CLAIM), "decision")
    assert key("it is") != key("they were")


@given(st.text(max_size=400))
def test_a_key_is_a_digest_whatever_the_text_is(text: str) -> None:
    made = key(text)
    assert len(made) == 32
    assert int(made, 16) >= 0


def facts(count: int, agents: int = 1) -> EchoFacts:
    names = tuple(f"agent-{number}" for number in range(agents))
    first = datetime(2026, 11, 2, 23, 59, tzinfo=UTC)
    return EchoFacts(count=count, first_seen=first, first_by=names[0], agents=names, sources=(Source.USER,))


def test_it_is_an_echo_from_the_policys_count_on() -> None:
    assert judge(None, POLICY.echo) is None
    assert judge(facts(2), POLICY.echo) is None
    third = judge(facts(3), POLICY.echo)
    assert third is not None
    assert (third.verdict, third.code) == (Verdict.DOUBT, "echo")
    assert third.message == "Sent 3 times since 2026-11-02 by 1 agent."
    seventh = judge(facts(7, 3), POLICY.echo)
    assert seventh is not None
    assert seventh.message == "Sent 7 times since 2026-11-02 by 3 agents."
    many = judge(facts(90, 20), POLICY.echo)
    assert many is not None
    assert many.message == "Sent 90 times since 2026-11-02 by 20 or more agents."


def test_the_owners_page_shows_it_among_what_was_found() -> None:
    echo = judge(facts(3, 2), POLICY.echo)
    assert echo is not None
    view = finding_view(echo, decides=False)
    assert (view.check, view.kind, view.says[0].text) == ("Sent before", "doubt", echo.message)


def under(action: str) -> Policy:
    return POLICY.model_copy(update={"echo": EchoPolicy.model_validate({"count": 3, "action": action})})


def finding(check: str, code: str) -> Finding:
    return Finding(check=check, verdict=Verdict.DOUBT, code=code, message="")


@pytest.mark.parametrize(
    ("action", "source", "dedup", "expected"),
    [
        ("report", Source.USER, UNIQUE, ("trusted_source", Tier.STORED)),
        ("queue", Source.USER, UNIQUE, ("echo", Tier.QUEUED)),
        ("block", Source.USER, UNIQUE, ("echo", Tier.BLOCKED)),
        # What would not be stored keeps its own reason, so that its owner still reads it.
        ("queue", Source.AI_SYNTHESIS, UNIQUE, ("ungrounded", Tier.QUEUED)),
        ("queue", Source.USER, finding("dedup", "conflict"), ("conflict", Tier.QUEUED)),
        ("block", Source.USER, finding("dedup", "already_pending"), ("echo", Tier.BLOCKED)),
        ("block", Source.USER, finding("dedup", "duplicate"), ("duplicate", Tier.BLOCKED)),
    ],
)
def test_the_policy_says_what_becomes_of_it(
    action: str, source: Source, dedup: Finding, expected: tuple[str, Tier]
) -> None:
    echo = judge(facts(3), POLICY.echo)
    assert echo is not None
    ruling = route(Parts(CLEAN, dedup, source=source, more=(echo,)), under(action))
    assert (ruling.rule, ruling.tier) == expected
    if ruling.rule == "echo":
        assert (ruling.reason, ruling.decided_by) == (ECHO_REASON, (echo,))


def test_no_tier_changes_without_an_echo() -> None:
    case = Parts(CLEAN, UNIQUE, source=Source.USER)
    assert {route(case, under(action)).rule for action in ("report", "queue", "block")} == {"trusted_source"}
