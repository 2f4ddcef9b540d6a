"""Rules have names; what was decided when they were numbers is read as ever."""

from __future__ import annotations

import json

import pytest

from tests.answers import DETECTOR, POLICY, answer_of, claim_of
from tests.unit.deciding.test_place import answer as at_a_place
from vouchgate.client.answers import verdict
from vouchgate.client.steps import HttpReply
from vouchgate.ingest.claims.decision import ValidationResult
from vouchgate.ingest.claims.delivery import DeliveryOp
from vouchgate.ingest.claims.likeness import AtPlace, ItemKind, Neighbour
from vouchgate.ingest.pipeline import replay
from vouchgate.ingest.rules import NUMBERS, Rule, rule_of

HERE = AtPlace(memory=Neighbour(kind=ItemKind.MEMORY, id="mem_1", content="Deploys need two approvals."))
CHANGE = at_a_place("Deploys need three approvals.", HERE, DeliveryOp.PUT)
REMOVAL = at_a_place("Deploys need two approvals.", HERE, DeliveryOp.REMOVE)
WAITS = answer_of(claim_of("The export job writes to the ledger."))


def with_rule(answer: ValidationResult, rule: object) -> str:
    return json.dumps(answer.model_dump(mode="json") | {"rule": rule})


def test_every_rule_has_a_number_of_its_own() -> None:
    assert set(NUMBERS) == set(Rule)
    assert len(set(NUMBERS.values())) == len(NUMBERS)
    assert {rule_of(number) for number in NUMBERS.values()} == set(Rule)


@pytest.mark.parametrize(
    ("answer", "number", "name"),
    [(WAITS, 12, "ungrounded"), (CHANGE, 15, "place_change"), (REMOVAL, 15, "removal")],
)
def test_a_decision_from_when_rules_were_numbers(answer: ValidationResult, number: int, name: str) -> None:
    assert json.loads(answer.model_dump_json())["rule"] == name
    old = ValidationResult.model_validate_json(with_rule(answer, number))
    assert (old.rule, old) == (Rule(name), answer)
    assert replay(old, POLICY, DETECTOR) == ()
    assert json.loads(old.model_dump_json())["rule"] == name


def test_a_number_that_never_was_a_rule_is_no_answer() -> None:
    with pytest.raises(ValueError, match="no rule has the number 77"):
        ValidationResult.model_validate_json(with_rule(WAITS, 77))


@pytest.mark.parametrize(("rule", "read"), [("of_a_newer_gate", "of_a_newer_gate"), (12, "ungrounded")])
def test_a_client_reads_the_rule_of_a_newer_service_and_of_an_old_decision(rule: object, read: str) -> None:
    body = json.dumps(json.loads(with_rule(WAITS, rule)) | {"more": True}).encode()
    assert verdict(HttpReply(200, "application/json", body)).rule == read
