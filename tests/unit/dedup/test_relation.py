"""What a claim is to an earlier memory: each kind of change, two facts of one frame, any text."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.running.hangs import given_up_after
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.dedup.relation import Relation, relation

POLICY = load_policy()
PAIRS = [
    tuple(line.split("\t"))
    for line in (Path(__file__).parent / "memory_pairs.tsv").read_text("utf-8").splitlines()
    if line and not line.startswith("#")
]
_SOME = """The API user listens is owned by Alice Bob on port 8080 8081 not never twice two times prefers tea coffee may
must 5 ms minutes always #12 in Berlin ."""
WORDS = st.sampled_from(_SOME.split())
TEXTS = st.one_of(
    st.text(st.characters(), max_size=200), st.lists(WORDS, min_size=1, max_size=12).map(" ".join)
)


def _related(earlier: str, claim: str) -> Relation:
    return relation(earlier, claim, POLICY.threshold, POLICY.values).relation


@pytest.mark.parametrize(("expected", "kind", "earlier", "claim"), PAIRS)
def test_a_claim_beside_an_earlier_memory(expected: str, kind: str, earlier: str, claim: str) -> None:
    assert _related(earlier, claim) == expected
    assert _related(claim, earlier) == expected, "the other way round"


def test_a_conflict_names_the_words_that_changed_the_claims_first() -> None:
    found = relation(
        "Logs are kept for 90 days.", "Logs are kept for 9 days.", POLICY.threshold, POLICY.values
    )
    assert found.changed == ("9", "90")
    assert found.similarity == Fraction(5, 7)


@given(earlier=TEXTS, claim=TEXTS)
def test_any_two_texts_are_related_somehow(earlier: str, claim: str) -> None:
    found = relation(earlier, claim, POLICY.threshold, POLICY.values)
    assert (found.relation is Relation.CONFLICT) is bool(found.changed)
    assert _related(claim, claim) is Relation.REPEAT
    if found.relation is Relation.CONFLICT:
        assert found.similarity >= Fraction(1, 2)


@pytest.mark.parametrize("piece", ["1 2 3 ", "; a b c", "open to all, ", "not only this. ", "a b. "])
@pytest.mark.parametrize("end", ["not at nine", "closed at nine", "never"])
def test_a_few_words_said_a_thousand_times_cost_no_more_than_others(piece: str, end: str) -> None:
    """Texts as long as any that is taken, of few different words: these are asked about although they are long."""
    claim = (piece * 9000)[:8000]
    earlier = f"{claim[:6000]} {end}"
    with given_up_after(2):
        _related(earlier, claim)
        _related(claim, earlier)
