"""What goes along for a store behind the gate says no more than the claim."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from tests.unit.deciding.test_pipeline import DETECTOR, answer, claim
from vouchgate.ingest.claims.claim import Claim
from vouchgate.ingest.claims.delivery import DeliveryTarget
from vouchgate.ingest.claims.source import Found, Standing
from vouchgate.ingest.pipeline import inspect
from vouchgate.ingest.rules import Rule
from vouchgate.ingest.support.beside import said_beside

CONTENT = "The harbour inspects each crane on the first Monday of a month (ADR-004)."


def sent(data: dict[str, JsonValue], place: str = "notes/1") -> Claim:
    return claim(CONTENT, delivery=DeliveryTarget(sink="notes", place=place, data=data))


MANY = [
    *("root", "passwords", "shared", "with", "mallory", "every", "friday", "evening"),
    *("behind", "quay", "seven", "under", "orange", "canvas", "beside", "lamp"),
]


@pytest.mark.parametrize(
    ("data", "place", "where"),
    [
        ({"note": "Root passwords are shared with Mallory"}, "n/1", "delivery.data.note"),
        ({"a": [{"b": ["Root passwords are shared with Mallory"]}]}, "n/1", "delivery.data.a"),
        ({"Root passwords are shared with Mallory": 1}, "n/1", "delivery.data"),
        ({}, "Root passwords are shared with Mallory", "delivery.place"),
        ({}, json.dumps(["notes", "Root passwords are shared with Mallory"]), "delivery.place"),
        ({"note": "root_passwords_are_shared_with_mallory"}, "n/1", "delivery.data.note"),
        ({f"k{n}": name for n, name in enumerate(MANY)}, "n/1", "delivery"),
    ],
)  # fmt: skip
def test_prose_beside_the_text_is_found(data: dict[str, JsonValue], place: str, where: str) -> None:
    assert [found for found, _ in said_beside(sent(data, place))] == [where]


@pytest.mark.parametrize(
    ("data", "place"),
    [
        ({}, "notes/1"),
        ({"text": CONTENT, "size": 12, "ok": True, "none": None}, "notes/1"),
        ({"crane": "inspected each month", "entity": "Harbour crane"}, "notes/1"),
        (
            {"tool": "add_observations", "name": "harbour", "type": "place"},
            json.dumps(["observation", "harbour"]),
        ),
        (
            {"user_id": "ada", "role": "assistant", "run_id": "8d0c7f9e-5d1b-4a53-9d0b-2f3f1c9c7a11"},
            "new:8d0c7f9e",
        ),
        (
            {"path": ["notes", 0], "index": ["notes[*].text", "title"], "ttl": 12.5},
            json.dumps(["users", "ada", "x"]),
        ),
    ],
)
def test_names_numbers_and_copies_of_the_text_pass(data: dict[str, JsonValue], place: str) -> None:
    assert list(said_beside(sent(data, place))) == []


@pytest.mark.parametrize(
    ("data", "rule"),
    [({"note": "Root passwords are shared with Mallory"}, Rule.UNCOVERED), ({"n": 1}, Rule.STATED)],
)
def test_a_claim_that_its_source_states_waits_for_what_goes_with_it(
    data: dict[str, JsonValue], rule: Rule
) -> None:
    one = sent(data)
    (cited,) = inspect(one, DETECTOR).cited()
    record = Found(
        citation=cited,
        source_id="ADR-004",
        standing=Standing.IN_FORCE,
        detail="In force.",
        official=True,
        text="The harbour inspects each crane on the first Monday of a month.",
    )
    result = answer(one, [record])
    assert result.rule == rule
    if rule is Rule.UNCOVERED:
        (finding,) = [each for each in result.findings if each.check == "statements"]
        assert finding.facts["where"] == "delivery.data.note"


_JSON = st.recursive(
    st.text() | st.integers() | st.none(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(st.dictionaries(st.text(), _JSON), st.text())
def test_anything_can_go_along(data: dict[str, JsonValue], place: str) -> None:
    list(said_beside(sent(data, place)))
