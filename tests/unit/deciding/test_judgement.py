"""What a judge said, as a finding; and that no answer of it ever lets a claim do better."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.cases import Parts, route
from vouchgate.ingest.checks.judgement import judge
from vouchgate.ingest.citations import given_citation
from vouchgate.ingest.claims.citation import CitationType
from vouchgate.ingest.claims.claim import Finding, MemoryType, Source, Verdict
from vouchgate.ingest.claims.decision import Tier
from vouchgate.ingest.claims.hedges import BLOCKING_HEDGES
from vouchgate.ingest.claims.source import Found, Judged, Judgement, NotJudged, Standing
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.rules import BY_CITATION

BALANCED = load_policy()
STRICT = Policy.model_validate(
    BALANCED.model_dump()
    | {"confidence_floor": 0.8, "spoken_of": "queue", "auto_approve_ai_synthesis": False}
)
BLOCKING = Policy.model_validate(BALANCED.model_dump() | {"missing_citation_tier": Tier.BLOCKED})
ORDER = {Tier.STORED: 0, Tier.QUEUED: 1, Tier.BLOCKED: 2}
ADR = Found(
    citation=given_citation(CitationType.ADR, "ADR-0007"),
    source_id="ADR-007",
    standing=Standing.IN_FORCE,
    detail="ADR-007 is in force.",
    title="Sessions",
    excerpt="The gateway keeps a session for 30 minutes.",
    official=True,
)


def said(contains: str = "yes", attributed: str = "yes", quote: str = "for 30 minutes") -> Judged:
    return Judged.model_validate(
        {"model": "m-1", "contains": contains, "attributed": attributed, "quote": quote, "took_ms": 12.5}
    )


def silent(code: str = "timeout") -> NotJudged:
    return NotJudged(model="m-1", code=code, detail="The judge gave no answer in time.")


def finding_of(judgement: Judgement) -> Finding:
    finding = judge(ADR.model_copy(update={"judgement": judgement}))
    assert finding is not None
    return finding


def test_nobody_asked_is_no_finding() -> None:
    assert judge(ADR) is None


@pytest.mark.parametrize(
    ("judgement", "verdict", "code"),
    [
        (said("yes", "yes"), Verdict.PASS, "judge_supports"),
        (said("yes", "no"), Verdict.DOUBT, "judge_doubts"),
        (said("partly", "yes"), Verdict.DOUBT, "judge_doubts"),
        (said("partly", "no"), Verdict.DOUBT, "judge_doubts"),
        (said("no", "yes"), Verdict.DOUBT, "judge_doubts"),
        (said("no", "no"), Verdict.DOUBT, "judge_doubts"),
        (silent("timeout"), Verdict.UNKNOWN, "judge_unavailable"),
        (silent("budget"), Verdict.UNKNOWN, "judge_unavailable"),
        (silent("a_code_nobody_knows"), Verdict.UNKNOWN, "judge_unavailable"),
    ],
)
def test_each_answer_is_one_finding(judgement: Judgement, verdict: Verdict, code: str) -> None:
    finding = finding_of(judgement)
    assert (finding.check, finding.verdict, finding.code) == ("judge", verdict, code)
    assert finding.citation == ADR.citation
    assert finding.took_ms == judgement.took_ms
    assert finding.message


def test_the_finding_shows_what_was_said_and_by_which_model() -> None:
    assert finding_of(said("yes", "no")).facts == {
        "model": "m-1",
        "contains": "yes",
        "attributed": "no",
        "quote": "for 30 minutes",
    }
    assert finding_of(silent("budget")).facts == {"model": "m-1", "code": "budget"}


def test_the_reason_an_owner_reads_names_the_source_and_the_doubt() -> None:
    assert finding_of(said("no")).message == "The judge does not find the claim in ADR-007."
    assert finding_of(said("partly")).message == "The judge finds a part of the claim only in ADR-007."
    assert "not as what ADR-007 says itself" in finding_of(said("yes", "no")).message


def test_an_answer_of_another_form_is_no_judgement() -> None:
    for wrong in ({"contains": "maybe"}, {"attributed": "partly"}, {"quote": "x" * 501}, {"score": 0.9}):
        with pytest.raises(ValidationError):
            Judged.model_validate(said().model_dump() | wrong)


def test_evidence_with_a_judgement_reads_back_the_same() -> None:
    for judgement in (said(), silent()):
        found = ADR.model_copy(update={"judgement": judgement})
        again = Found.model_validate_json(found.model_dump_json())
        assert again == found
        assert judge(again) == judge(found)


judgements = st.one_of(
    st.builds(
        Judged,
        model=st.just("m-1"),
        contains=st.sampled_from(get_args(Judged.model_fields["contains"].annotation)),
        attributed=st.sampled_from(get_args(Judged.model_fields["attributed"].annotation)),
        quote=st.text(max_size=20),
    ),
    st.builds(NotJudged, model=st.just("m-1"), code=st.text(max_size=10), detail=st.text(max_size=20)),
)


def finding(check: str, verdict: Verdict, code: str) -> Finding:
    return Finding(check=check, verdict=verdict, code=code, message=f"{code}.", citation=ADR.citation)


def of_statements(verdict: Verdict, code: str) -> Finding:
    return finding("statements", verdict, code).model_copy(update={"citation": None})


VERIFIED = finding("citation_verify", Verdict.PASS, "citation_verified")
cases = st.builds(
    Parts,
    hedge=st.sampled_from(
        [
            finding("hedge", Verdict.PASS, "no_hedge"),
            finding("hedge", Verdict.DOUBT, "technical_hedge"),
            *(finding("hedge", Verdict.FAIL, category.value) for category in BLOCKING_HEDGES),
        ]
    ),
    dedup=st.sampled_from(
        [
            finding("dedup", Verdict.PASS, "unique"),
            finding("dedup", Verdict.FAIL, "duplicate"),
            finding("dedup", Verdict.DOUBT, "conflict"),
            finding("dedup", Verdict.UNKNOWN, "dedup_unavailable"),
        ]
    ),
    # What the judge is asked about was verified, so that finding is always there.
    citations=st.lists(
        st.sampled_from(
            [
                VERIFIED,
                finding("citation_verify", Verdict.FAIL, "citation_missing"),
                finding("citation_verify", Verdict.UNKNOWN, "citation_unchecked"),
                finding("support", Verdict.PASS, "support_on_topic"),
                finding("support", Verdict.UNKNOWN, "support_unclear"),
                finding("support", Verdict.UNKNOWN, "support_unreadable"),
                finding("support", Verdict.FAIL, "support_conflict"),
            ]
        ),
        max_size=4,
    ).map(lambda more: (VERIFIED, *more)),
    score=st.none() | st.floats(0, 1),
    source=st.sampled_from(Source),
    memory_type=st.sampled_from(MemoryType),
    more=st.sampled_from(
        [
            (),
            (of_statements(Verdict.PASS, "stated"),),
            (of_statements(Verdict.PASS, "spoken_of"),),
            (of_statements(Verdict.PASS, "pointer"),),
            (of_statements(Verdict.DOUBT, "uncovered"),),
        ]
    ),
    by_statements=st.booleans(),
)


@given(cases, st.sampled_from([BALANCED, STRICT, BLOCKING]), st.lists(judgements, min_size=1, max_size=3))
def test_whatever_the_judge_answers_no_claim_does_better(
    case: Parts, policy: Policy, answers: list[Judgement]
) -> None:
    judged = replace(case, citations=(*case.citations, *map(finding_of, answers)))
    without, with_judge = route(case, policy), route(judged, policy)
    assert ORDER[with_judge.tier] >= ORDER[without.tier]
    if with_judge.rule in BY_CITATION:  # what rests on citations passes only when every answer was a yes
        assert without.rule is with_judge.rule
        assert all(finding_of(answer).verdict is Verdict.PASS for answer in answers)


@given(cases, judgements)
def test_a_failed_check_stands_whatever_the_judge_says(case: Parts, answer: Judgement) -> None:
    failed = replace(
        case, citations=(*case.citations, finding("citation_verify", Verdict.FAIL, "citation_not_in_force"))
    )
    judged = replace(failed, citations=(*failed.citations, finding_of(answer)))
    assert route(judged, BALANCED).tier is not Tier.STORED
