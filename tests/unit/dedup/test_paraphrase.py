"""What vectors add to the dedup finding, and how two vectors are compared."""

from __future__ import annotations

import math
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.claims import examined
from vouchgate.ingest.checks.dedup import UNIQUE
from vouchgate.ingest.claims.claim import Finding, Verdict
from vouchgate.ingest.claims.decision import Tier
from vouchgate.ingest.claims.likeness import (
    ItemKind,
    Neighbours,
    Paraphrase,
    ParaphraseFacts,
    Paraphrases,
    ParaphraseUnavailable,
)
from vouchgate.ingest.data.policy_file import PolicyError, load_policy
from vouchgate.ingest.dedup.paraphrase import CODE, MESSAGE, UNAVAILABLE, cosine, stored_only, weigh
from vouchgate.ingest.policy import Policy

DUPLICATE = Finding(check="dedup", verdict=Verdict.FAIL, code="duplicate", message="Stored already.")
BUSY = ParaphraseUnavailable(detail="The model is busy.")


def policy(method: str = "vector") -> Policy:
    """The built-in policy with this `dedup_method`."""
    return Policy.model_validate(load_policy().model_dump() | {"dedup_method": method})


def near(cosine: float, item_id: str = "mem_1", kind: ItemKind = ItemKind.MEMORY) -> Paraphrase:
    """An earlier claim at this cosine."""
    return Paraphrase(kind=kind, id=item_id, content="Earlier.", cosine=cosine)


def facts(*items: Paraphrase) -> Paraphrases:
    """The answer that names these."""
    return Paraphrases(model="m@1", items=items)


def test_at_the_threshold_it_is_a_doubt() -> None:
    finding = weigh(UNIQUE, facts(near(0.85)), policy())
    assert (finding.verdict, finding.code, finding.message) == (Verdict.DOUBT, CODE, f"{MESSAGE}.")
    assert finding.facts == {"id": "mem_1", "kind": "memory", "cosine": 0.85}


def test_below_the_threshold_it_is_unique() -> None:
    assert weigh(UNIQUE, facts(near(0.849999)), policy()) is UNIQUE
    assert weigh(UNIQUE, facts(), policy()) is UNIQUE


def test_the_nearest_is_named_and_equals_by_id() -> None:
    finding = weigh(UNIQUE, facts(near(0.96, "c"), near(0.97, "b"), near(0.97, "a")), policy())
    assert finding.facts["id"] == "a"


@pytest.mark.parametrize("known", [None, BUSY])
def test_what_was_not_found_out_is_unknown(known: ParaphraseFacts | None) -> None:
    finding = weigh(UNIQUE, known, policy())
    assert (finding.verdict, finding.code) == (Verdict.UNKNOWN, UNAVAILABLE)


@pytest.mark.parametrize("known", [None, BUSY, facts(near(1.0))])
def test_the_word_measure_decides_first_and_jaccard_asks_nothing_more(known: ParaphraseFacts | None) -> None:
    assert weigh(DUPLICATE, known, policy()) is DUPLICATE
    assert weigh(UNIQUE, known, policy("jaccard")) is UNIQUE


@pytest.mark.parametrize(
    ("known", "reason"),
    [
        (facts(near(0.99)), MESSAGE),
        (BUSY, "Dedup check failed - cannot verify uniqueness"),
        (None, "Dedup check failed - cannot verify uniqueness"),
    ],
)
def test_a_granted_source_does_not_carry_it(known: ParaphraseFacts | None, reason: str) -> None:
    one = examined("Deploys are forbidden on Fridays.", under=policy())
    decision = one.knowing(dedup=Neighbours(), paraphrases=known).decide()
    assert (decision.tier, decision.rule, decision.reason) == (Tier.QUEUED, "dedup_unknown", reason)
    assert decision.nearest is None  # it replaces nothing


def test_speculation_is_blocked_all_the_same() -> None:
    one = examined("Deploys are forbidden.", under=policy(), speculates=True)
    assert one.knowing(dedup=Neighbours()).decide().tier is Tier.BLOCKED


def test_waiting_items_can_be_left_out() -> None:
    memory, waits = near(0.99), near(0.99, "que_1", ItemKind.PENDING)
    assert stored_only(facts(memory, waits)) == facts(memory)
    assert stored_only(BUSY) is BUSY
    assert stored_only(None) is None


NUMBERS = st.floats(min_value=-100, max_value=100, width=32)


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=50))
def test_cosine_is_symmetric_and_bounded(pairs: list[tuple[float, float]]) -> None:
    left, right = (array("f", numbers) for numbers in zip(*pairs, strict=True))
    if not math.hypot(*left) * math.hypot(*right):
        with pytest.raises(ValueError, match="direction"):
            cosine(left.tobytes(), right.tobytes())
        return
    found = cosine(left.tobytes(), right.tobytes())
    assert found == cosine(right.tobytes(), left.tobytes())
    assert -1 <= found <= 1
    assert cosine(left.tobytes(), left.tobytes()) == 1


def test_vectors_of_two_lengths_are_not_compared() -> None:
    with pytest.raises(ValueError, match="2 and 1 numbers"):
        cosine(array("f", [1, 2]).tobytes(), array("f", [1]).tobytes())


@pytest.mark.parametrize(
    "line",
    [
        'dedup_method = "vectors"',
        "vector_threshold = 0.5",
        'vector_model = "os"',
        'vector_model = "os:system; x"',
    ],
)
def test_a_bad_setting_is_refused(tmp_path_factory: pytest.TempPathFactory, line: str) -> None:
    path = tmp_path_factory.mktemp("policy") / "policy.toml"
    path.write_text(line)
    with pytest.raises(PolicyError, match=line.partition(" ")[0]):
        load_policy(path)
