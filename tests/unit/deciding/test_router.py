"""The router's table, one row a case, and the properties that hold over all of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import Parts, route
from vouchgate.ingest.claims.claim import Finding, MemoryType, Source, Verdict
from vouchgate.ingest.claims.decision import Tier
from vouchgate.ingest.claims.trust import AppliedRuling, RulingVerdict, Track, TrackRecord
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.router import Ruling
from vouchgate.ingest.router import route as route_case

POLICY = load_policy()
REVIEW_ALL = Policy.model_validate(POLICY.model_dump() | {"auto_approve_ai_synthesis": False})
STRICT = Policy.model_validate(
    POLICY.model_dump()
    | {
        "confidence_floor": 0.8,
        "spoken_of": "queue",
        "unlisted_pages": "queue",
        "stated_in_conversation": {},
    }
)
ORDER = {Tier.STORED: 0, Tier.QUEUED: 1, Tier.BLOCKED: 2}


def finding(check: str, verdict: Verdict, code: str) -> Finding:
    return Finding(check=check, verdict=verdict, code=code, message=f"{code}.")


CLEAN = finding("hedge", Verdict.PASS, "no_hedge")
SPECULATION = finding("hedge", Verdict.FAIL, "personal_speculation")
UNSURE = finding("hedge", Verdict.FAIL, "admitted_uncertainty")
SUGGESTION = finding("hedge", Verdict.FAIL, "undecided_suggestion")
HEDGED = finding("hedge", Verdict.DOUBT, "technical_hedge")
ROUGHLY = finding("hedge", Verdict.DOUBT, "approximation")
UNIQUE = finding("dedup", Verdict.PASS, "unique")
DUPLICATE = finding("dedup", Verdict.FAIL, "duplicate")
CONFLICT = finding("dedup", Verdict.DOUBT, "conflict")
WAITING = finding("dedup", Verdict.DOUBT, "already_pending")
NOT_ASKED = finding("dedup", Verdict.UNKNOWN, "dedup_unavailable")
VERIFIED = finding("citation_verify", Verdict.PASS, "citation_verified")
MISSING = finding("citation_verify", Verdict.FAIL, "citation_missing")
OUTDATED = finding("citation_verify", Verdict.FAIL, "citation_not_in_force")
UNCHECKED = finding("citation_verify", Verdict.UNKNOWN, "citation_unchecked")
HIDDEN = finding("hidden", Verdict.DOUBT, "hidden_text")
ORDERS = finding("instruction", Verdict.DOUBT, "instruction")
PERSONAL = finding("personal", Verdict.DOUBT, "personal_data")
MASKED = finding("personal", Verdict.PASS, "personal_data_masked")
SECRET = finding("secrets", Verdict.FAIL, "credential")
STATED = finding("statements", Verdict.PASS, "stated")
SPOKEN_OF = finding("statements", Verdict.PASS, "spoken_of")
POINTER = finding("statements", Verdict.PASS, "pointer")
UNCOVERED = finding("statements", Verdict.DOUBT, "uncovered")
UNLISTED = finding("statements", Verdict.DOUBT, "unlisted")

PLAIN = Parts(CLEAN, UNIQUE)
VOUCHED = replace(
    PLAIN, citations=(VERIFIED,), score=1.0
)  # what it cites is there; nobody knows what that says
CITED = replace(VOUCHED, more=(STATED,))
FROM_USER = replace(PLAIN, source=Source.USER)


@pytest.mark.parametrize(
    ("case", "rule", "tier"),
    [
        (replace(PLAIN, hedge=SPECULATION), "speculation", Tier.BLOCKED),
        (replace(PLAIN, hedge=UNSURE), "speculation", Tier.BLOCKED),
        (replace(FROM_USER, hedge=SUGGESTION), "speculation", Tier.BLOCKED),
        (replace(CITED, hedge=SPECULATION, dedup=DUPLICATE), "speculation", Tier.BLOCKED),
        (replace(CITED, dedup=DUPLICATE), "duplicate", Tier.BLOCKED),
        (replace(FROM_USER, dedup=DUPLICATE, hedge=HEDGED), "duplicate", Tier.BLOCKED),
        (replace(CITED, dedup=CONFLICT), "conflict", Tier.QUEUED),
        (replace(FROM_USER, dedup=WAITING), "already_pending", Tier.QUEUED),
        (replace(CITED, hedge=HEDGED), "technical_hedge", Tier.QUEUED),
        (replace(FROM_USER, hedge=ROUGHLY), "technical_hedge", Tier.QUEUED),
        (replace(FROM_USER, dedup=NOT_ASKED), "dedup_unknown", Tier.QUEUED),
        (replace(CITED, dedup=NOT_ASKED), "dedup_unknown", Tier.QUEUED),
        (replace(FROM_USER, citations=(MISSING,)), "refuted", Tier.QUEUED),
        (replace(CITED, citations=(VERIFIED, MISSING)), "refuted", Tier.QUEUED),
        (replace(CITED, citations=(UNCHECKED, OUTDATED)), "refuted", Tier.QUEUED),
        (replace(FROM_USER, more=(HIDDEN,)), "hidden_text", Tier.QUEUED),
        (replace(CITED, more=(STATED, HIDDEN), hedge=HEDGED), "hidden_text", Tier.QUEUED),
        (replace(FROM_USER, more=(ORDERS,)), "instruction", Tier.QUEUED),
        (replace(CITED, more=(STATED, ORDERS), dedup=NOT_ASKED), "instruction", Tier.QUEUED),
        (replace(FROM_USER, more=(PERSONAL,)), "personal_data", Tier.QUEUED),
        (replace(CITED, more=(STATED, PERSONAL), hedge=HEDGED), "personal_data", Tier.QUEUED),
        (replace(FROM_USER, more=(MASKED,)), "trusted_source", Tier.STORED),
        (replace(VOUCHED, more=(UNCOVERED,)), "uncovered", Tier.QUEUED),
        (replace(VOUCHED, more=(UNCOVERED,), source=Source.USER), "trusted_source", Tier.STORED),
        (replace(VOUCHED, more=(UNCOVERED,), citations=(VERIFIED, MISSING)), "refuted", Tier.QUEUED),
        (CITED, "stated", Tier.STORED),
        (replace(CITED, source=Source.USER), "stated", Tier.STORED),
        (replace(VOUCHED, more=(SPOKEN_OF,)), "spoken_of", Tier.STORED),
        (replace(VOUCHED, more=(SPOKEN_OF,), score=0.49), "ungrounded", Tier.QUEUED),
        (replace(VOUCHED, more=(POINTER,)), "pointer", Tier.STORED),
        (replace(VOUCHED, more=(POINTER,), citations=(VERIFIED, UNCHECKED)), "citation_unknown", Tier.QUEUED),
        (replace(VOUCHED, more=(UNLISTED,)), "ungrounded", Tier.QUEUED),
        (VOUCHED, "ungrounded", Tier.QUEUED),
        (replace(CITED, citations=(VERIFIED, UNCHECKED)), "citation_unknown", Tier.QUEUED),
        (replace(CITED, score=0.49), "ungrounded", Tier.QUEUED),
        (replace(CITED, score=0.5), "stated", Tier.STORED),
        (replace(CITED, score=None), "ungrounded", Tier.QUEUED),
        (FROM_USER, "trusted_source", Tier.STORED),
        (replace(FROM_USER, source=Source.DOCUMENTATION), "trusted_source", Tier.STORED),
        (replace(FROM_USER, citations=(UNCHECKED,)), "trusted_source", Tier.STORED),
        (
            replace(PLAIN, source=Source.CONVERSATION, memory_type=MemoryType.DECISION),
            "stated_in_conversation",
            Tier.STORED,
        ),
        (replace(PLAIN, source=Source.CHAT, memory_type=MemoryType.DECISION), "ungrounded", Tier.QUEUED),
        (
            replace(PLAIN, source=Source.CHAT, memory_type=MemoryType.PREFERENCE),
            "stated_in_conversation",
            Tier.STORED,
        ),
        (
            replace(PLAIN, source=Source.CONVERSATION, memory_type=MemoryType.PREFERENCE),
            "stated_in_conversation",
            Tier.STORED,
        ),
        (replace(PLAIN, source=Source.CONVERSATION), "ungrounded", Tier.QUEUED),
        (replace(PLAIN, citations=(UNCHECKED,)), "citation_unknown", Tier.QUEUED),
        (PLAIN, "ungrounded", Tier.QUEUED),
    ],
)
def test_first_match_wins(case: Parts, rule: str, tier: Tier) -> None:
    ruling = route(case, POLICY)
    assert (ruling.rule, ruling.tier) == (rule, tier)


def test_missing_citation_blocks_when_the_policy_says_so() -> None:
    blocking = Policy.model_validate(POLICY.model_dump() | {"missing_citation_tier": Tier.BLOCKED})
    case = replace(CITED, citations=(VERIFIED, MISSING))
    assert route(case, blocking).tier is Tier.BLOCKED
    assert route(replace(case, citations=(OUTDATED,)), blocking).tier is Tier.QUEUED


@pytest.mark.parametrize(
    "case",
    [
        replace(VOUCHED, more=(SPOKEN_OF,)),
        replace(CITED, score=0.79),
        replace(PLAIN, source=Source.CONVERSATION, memory_type=MemoryType.DECISION),
    ],
)
def test_strict_stores_nothing_on_the_agents_word(case: Parts) -> None:
    assert route(case, STRICT).tier is Tier.QUEUED


@pytest.mark.parametrize("found", [STATED, SPOKEN_OF, POINTER])
def test_no_rule_stores_what_a_model_says_where_all_is_reviewed(found: Finding) -> None:
    case = replace(VOUCHED, more=(found,))
    assert route(case, REVIEW_ALL).rule == "ungrounded"
    assert route(replace(case, source=Source.USER), REVIEW_ALL).tier is Tier.STORED


def test_strict_stores_what_is_stated() -> None:
    assert route(CITED, STRICT).rule == "stated"


def test_before_statements_were_held_against_sources_one_that_was_there_was_enough() -> None:
    before = replace(VOUCHED, by_statements=False)
    assert (route(before, POLICY).rule, route(before, POLICY).tier) == ("citation_verified", Tier.STORED)
    assert route(before, REVIEW_ALL).rule == "ungrounded"
    assert route(replace(before, citations=(VERIFIED, UNCHECKED)), POLICY).rule == "citation_unknown"
    unclear = replace(before, citations=(VERIFIED, finding("support", Verdict.UNKNOWN, "support_unclear")))
    for required, rule in ((False, "citation_verified"), (True, "ungrounded")):
        then = Policy.model_validate(POLICY.model_dump() | {"require_relevance": required})
        assert route(unclear, then).rule == rule


def test_strict_still_trusts_a_granted_source() -> None:
    assert route(FROM_USER, STRICT).rule == "trusted_source"


def test_reason_of_a_refuted_citation_names_what_was_found() -> None:
    assert route(replace(CITED, citations=(MISSING,)), POLICY).reason == "citation_missing."


HEDGES = [CLEAN, SPECULATION, UNSURE, SUGGESTION, HEDGED, ROUGHLY]
DEDUPS = [UNIQUE, DUPLICATE, CONFLICT, WAITING, NOT_ASKED]
CITATIONS = [VERIFIED, MISSING, OUTDATED, UNCHECKED]
cases = st.builds(
    Parts,
    hedge=st.sampled_from(HEDGES),
    dedup=st.sampled_from(DEDUPS),
    citations=st.lists(st.sampled_from(CITATIONS), max_size=4).map(tuple),
    score=st.none() | st.floats(0, 1),
    source=st.sampled_from(Source),
    memory_type=st.sampled_from(MemoryType),
    more=st.lists(st.sampled_from([STATED, SPOKEN_OF, POINTER, UNCOVERED, UNLISTED]), max_size=1).map(tuple),
)
policies = st.sampled_from([POLICY, STRICT, REVIEW_ALL])


@given(cases, policies)
def test_stored_needs_something_that_vouches(case: Parts, policy: Policy) -> None:
    ruling = route(case, policy)
    if ruling.tier is Tier.STORED:
        verified = bool(case.citations) and all(f.verdict is Verdict.PASS for f in case.citations)
        covered = bool(case.more) and all(f.verdict is Verdict.PASS for f in case.more)
        assert (verified and covered) or case.source is not Source.AI_SYNTHESIS
        assert case.hedge.verdict is Verdict.PASS
        assert case.dedup.verdict is Verdict.PASS
        assert not any(f.verdict in (Verdict.FAIL, Verdict.DOUBT) for f in case.citations)


@given(cases, policies, st.sampled_from([MISSING, OUTDATED, UNCHECKED]))
def test_one_more_bad_citation_never_helps(case: Parts, policy: Policy, worse: Finding) -> None:
    more = replace(case, citations=(*case.citations, worse))
    assert ORDER[route(more, policy).tier] >= ORDER[route(case, policy).tier]


@given(cases, policies, st.randoms())
def test_order_of_citations_never_matters(case: Parts, policy: Policy, random: object) -> None:
    backwards = replace(case, citations=tuple(reversed(case.citations)))
    left, right = route(case, policy), route(backwards, policy)
    assert (left.rule, left.tier) == (right.rule, right.tier)


def with_standing(case: Parts, verdict: RulingVerdict, policy: Policy) -> Ruling:
    """What the router makes of them under a standing ruling."""
    standing = AppliedRuling(id="ruling_1", name="like the last one", verdict=verdict)
    return route_case(replace(case.case(), standing_ruling=standing), policy)


@given(cases, policies)
def test_a_standing_ruling_that_stores_outranks_only_that_nothing_vouches(
    case: Parts, policy: Policy
) -> None:
    alone, ruled = route(case, policy), with_standing(case, RulingVerdict.STORE, policy)
    unknown = any(f.verdict is Verdict.UNKNOWN for f in (case.dedup, *case.citations, *case.more))
    if alone.rule in ("uncovered", "ungrounded") and not unknown:
        stores = policy.auto_approve_ai_synthesis or case.source is not Source.AI_SYNTHESIS
        assert (ruled.rule, ruled.tier) == (
            ("standing_ruling", Tier.STORED) if stores else (alone.rule, alone.tier)
        )
    else:
        assert ruled == alone


@pytest.mark.parametrize("more", [(HIDDEN,), (ORDERS,), (UNCOVERED, SECRET)])
def test_a_standing_ruling_never_stores_hidden_text_orders_and_credentials(more: tuple[Finding, ...]) -> None:
    case = replace(PLAIN, more=more)
    assert with_standing(case, RulingVerdict.STORE, POLICY) == route(case, POLICY)
    never = Policy.model_validate(POLICY.model_dump() | {"standing_rulings": {"store": False}})
    assert with_standing(PLAIN, RulingVerdict.STORE, never).rule == "ungrounded"


@given(cases, policies)
def test_a_standing_ruling_that_rejects_blocks_whatever_would_not_be_blocked_and_says_its_name(
    case: Parts, policy: Policy
) -> None:
    alone, ruled = route(case, policy), with_standing(case, RulingVerdict.REJECT, policy)
    assert ruled.tier is Tier.BLOCKED
    assert ruled == alone if alone.tier is Tier.BLOCKED else ruled.reason.endswith(": like the last one")


@given(cases, policies, st.sampled_from([MISSING, OUTDATED, UNCHECKED]), st.sampled_from(RulingVerdict))
def test_one_more_bad_citation_never_helps_under_a_standing_ruling(
    case: Parts, policy: Policy, worse: Finding, verdict: RulingVerdict
) -> None:
    more = replace(case, citations=(*case.citations, worse))
    assert (
        ORDER[with_standing(more, verdict, policy).tier] >= ORDER[with_standing(case, verdict, policy).tier]
    )


def test_what_is_spoken_of_waits_under_the_floor() -> None:
    under = Policy.model_validate(POLICY.model_dump() | {"spoken_of_floor": 0.75})
    case = replace(VOUCHED, more=(SPOKEN_OF,)).case()
    for right, wrong, tier in (
        (12, 0, Tier.STORED),
        (11, 0, Tier.QUEUED),
        (80, 20, Tier.QUEUED),
        (0, 0, Tier.QUEUED),
    ):
        track = Track(agent=TrackRecord(right=right, wrong=wrong), kind=TrackRecord(right=99))
        assert (route_case(replace(case, track=track), under).tier, right) == (tier, right)
        assert route_case(replace(case, track=track), POLICY).tier is Tier.STORED
    assert route_case(case, under).tier is Tier.QUEUED
    assert route(CITED, under).rule == "stated"


def test_no_unknown_or_failed_check_of_any_kind_is_ever_stored() -> None:
    """Every combination of a check that did not pass, whatever its code says."""
    odd = [finding("x", verdict, "a_code_nobody_knows") for verdict in Verdict if verdict is not Verdict.PASS]
    for bad, source, kind in product(odd, Source, MemoryType):
        base = replace(CITED, source=source, memory_type=kind)
        assert route(replace(base, hedge=bad), POLICY).tier is not Tier.STORED
        assert route(replace(base, dedup=bad), POLICY).tier is not Tier.STORED
        if bad.verdict is not Verdict.UNKNOWN:
            assert route(replace(base, citations=(VERIFIED, bad)), POLICY).tier is not Tier.STORED
        doubted = route(replace(base, more=(bad,)), POLICY)
        assert (doubted.rule, doubted.tier, doubted.decided_by) == ("doubted", Tier.QUEUED, (bad,))
