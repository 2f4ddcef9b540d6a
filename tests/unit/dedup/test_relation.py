"""What a claim is to an earlier memory: each kind of change, two facts of one frame, any text."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
