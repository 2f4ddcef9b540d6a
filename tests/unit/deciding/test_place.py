"""What the place check says, which rule follows, and that both can be made again from the evidence."""

from __future__ import annotations

import pytest

from tests.claims import NOW, policy
from vouchgate.ingest.checks.hedge import HedgeDetector
from vouchgate.ingest.claims.claim import Claim, MemoryType, Source
from vouchgate.ingest.claims.decision import ValidationResult
from vouchgate.ingest.claims.delivery import DeliveryOp, DeliveryTarget
from vouchgate.ingest.claims.likeness import AtPlace, ItemKind, Neighbour, Neighbours
from vouchgate.ingest.pipeline import examine, inspect, replay

DETECTOR = HedgeDetector(policy().lexicon)
OLD = Neighbour(kind=ItemKind.MEMORY, id="mem_1", content="Deploys need two approvals.")
ASKED = Neighbour(kind=ItemKind.PENDING, id="rev_1", content="Deploys need two approvals.")


def answer(
    content: str,
    at_place: AtPlace | None,
    op: DeliveryOp = DeliveryOp.PUT,
    source: Source = Source.USER,
    *,
    replaces: bool = False,
) -> ValidationResult:
    """What is answered to a claim for a place of which this is known."""
    claim = Claim(
        content=content,
        memory_type=MemoryType.FACT,
        asserted_source=source,
        source=source,
        owner_id="ann",
        delivery=DeliveryTarget(sink="kg", place="deploys", op=op, replaces=replaces),
    )
    examined = examine(inspect(claim, DETECTOR), (), policy(), NOW)
    examined = examined.knowing(dedup=Neighbours(), at_place=at_place)
    decision = examined.decide()
    return examined.answer(
        decision,
        decision_id="dec_1",
        memory_id=None,
        queue_id=None,
        took_ms=0.0,
    )


@pytest.mark.parametrize(
    ("content", "at_place", "op", "rule", "nearest"),
    [
        ("Deploys need three approvals.", None, DeliveryOp.PUT, "trusted_source", None),
        ("Deploys need three approvals.", AtPlace(removal=ASKED), DeliveryOp.PUT, "trusted_source", None),
        ("Deploys need three approvals.", AtPlace(memory=OLD), DeliveryOp.PUT, "place_change", "mem_1"),
        ("I think deploys need three approvals.", AtPlace(memory=OLD), DeliveryOp.PUT, "speculation", None),
        (OLD.content, AtPlace(memory=OLD), DeliveryOp.REMOVE, "removal", "mem_1"),
        ("I think deploys need three approvals.", None, DeliveryOp.REMOVE, "removal", None),
        (OLD.content, AtPlace(memory=OLD, removal=ASKED), DeliveryOp.REMOVE, "already_pending", None),
    ],
)
def test_rules(
    content: str, at_place: AtPlace | None, op: DeliveryOp, rule: str, nearest: str | None
) -> None:
    answered = answer(content, at_place, op)
    assert answered.rule == rule
    assert answered.conflicting_memory_id == nearest
    assert replay(answered, policy(), DETECTOR) == ()
    again = ValidationResult.model_validate_json(answered.model_dump_json())
    assert again == answered


def test_what_is_older_than_the_gate_is_not_written_over_either() -> None:
    answered = answer("Deploys need three approvals.", None, replaces=True)
    assert (answered.rule, answered.conflicting_memory_id) == ("place_change", None)
    assert replay(answered, policy(), DETECTOR) == ()


def test_the_same_words_are_no_way_to_a_place_either() -> None:
    """Of another type they are no duplicate, and would be a second memory there."""
    assert answer(OLD.content, AtPlace(memory=OLD)).rule == "place_change"


def test_nothing_vouches_for_writing_over_a_memory() -> None:
    for source in Source:
        assert answer("Deploys need three.", AtPlace(memory=OLD), source=source).outcome == "queued"


def test_a_place_that_is_free_is_not_spoken_of() -> None:
    answered = answer("Deploys need three approvals.", None)
    assert {finding.check for finding in answered.findings} == {"hedge", "citation_detect", "dedup"}
    assert "at_place" not in answered.model_dump_json()
