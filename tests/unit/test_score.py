"""Score, label and confidence are functions of the sources, in any order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ingest.citations import given_citation
from ingest.policy import ScoreWeights, load_policy
from ingest.score import claim_score, confidence_of, label_of, source_score
from ingest.types import CitationType, Confidence, Found, Label, Standing

WEIGHTS = load_policy().score
sources = st.builds(
    Found,
    citation=st.just(given_citation(CitationType.ADR, "ADR-1")),
    source_id=st.just("ADR-001"),
    standing=st.sampled_from(Standing),
    detail=st.just("There."),
    official=st.booleans(),
)


@given(st.lists(sources, max_size=4), st.randoms())
def test_order_of_sources_never_matters(found: list[Found], random: object) -> None:
    assert claim_score(found, WEIGHTS) == claim_score(found[::-1], WEIGHTS)
    assert label_of(found) is label_of(found[::-1])


@given(st.lists(sources, max_size=3), sources)
def test_one_more_source_never_raises_the_score(found: list[Found], more: Found) -> None:
    before, after = claim_score(found, WEIGHTS), claim_score([*found, more], WEIGHTS)
    assert after is not None
    assert before is None or after <= before


@given(sources)
def test_only_an_official_source_in_force_scores(source: Found) -> None:
    good = source.official and source.standing is Standing.IN_FORCE
    assert source_score(source, WEIGHTS) == (1.0 if good else 0.0)
    assert label_of([source]) is (Label.FACT if good else Label.INFERENCE)


def test_weights_that_leave_nothing_without_a_judge_score_nothing() -> None:
    judge_only = ScoreWeights(reachable=0, reputation=0, freshness=0, judgement=1)
    good = Found(
        citation=given_citation(CitationType.ADR, "ADR-1"),
        source_id="ADR-001",
        standing=Standing.IN_FORCE,
        detail="There.",
        official=True,
    )
    assert source_score(good, judge_only) == 0.0


def test_confidence() -> None:
    assert confidence_of(Label.FACT, 0.6, vouched=True) is Confidence.HIGH
    assert confidence_of(Label.INFERENCE, 0.8, vouched=False) is Confidence.HIGH
    assert confidence_of(Label.INFERENCE, 0.79, vouched=True) is Confidence.MEDIUM
    assert confidence_of(Label.INFERENCE, None, vouched=True) is Confidence.MEDIUM
    assert confidence_of(Label.INFERENCE, None, vouched=False) is Confidence.LOW
