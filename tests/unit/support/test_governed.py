"""What the place says of an act, and a statement leaves out: that it is planned, tried, allowed, rare or doubted."""

from __future__ import annotations

import pytest

from vouchgate.ingest.claims.source import Stance
from vouchgate.ingest.support.source_text import SourceText
from vouchgate.ingest.support.stance import stances

CLAIM = "The bakery bakes rye bread at night."
PAGE = "# The square\n\nThere is a fountain.\n\n{}\n\nThe square belongs to the town.\n"


def stance(claim: str, sentence: str) -> Stance:
    (held,) = stances(claim, SourceText(PAGE.format(sentence)))
    return held.stance


@pytest.mark.parametrize(
    "sentence",
    [
        "The bakery will bake rye bread at night.",
        "The bakery should bake rye bread at night.",
        "The bakery plans to bake rye bread at night.",
        "The bakery is going to bake rye bread at night.",
        "The bakery was asked not to bake rye bread at night.",
        "The bakery is forbidden to bake rye bread at night.",
        "The bakery tried to bake rye bread at night.",
        "The bakery is said to bake rye bread at night.",
        "The bakery stopped baking rye bread at night.",
        "The bakery considers baking rye bread at night.",
        "The bakery rarely bakes rye bread at night.",
        "Reportedly the bakery bakes rye bread at night.",
        "The bakery forgot to bake rye bread at night.",
        "The bakery was meant to bake rye bread at night.",
        "The bakery is too small to bake rye bread at night.",
        "The bakery would bake rye bread at night if it could.",
        "The bakery was prevented from baking rye bread at night.",
        "Suppose the bakery bakes rye bread at night.",
        "The bakery used to bake rye bread at night.",
        "We rejected the idea that the bakery bakes rye bread at night.",
        "One option is that the bakery bakes rye bread at night.",
        "The landlord keeps the bakery from baking rye bread at night.",
        "It is planned that the bakery bakes rye bread at night.",
        "It is likely that the bakery bakes rye bread at night.",
        "We hope that the bakery bakes rye bread at night.",
        "Ideally, the bakery bakes rye bread at night.",
        "Usually the bakery bakes rye bread at night.",
        "Ada doubts that the bakery bakes rye bread at night.",
        "We propose that the bakery bakes rye bread at night.",
        "Unless it is full, the bakery bakes rye bread at night.",
    ],
)
def test_what_rules_the_act_is_no_part_of_it(sentence: str) -> None:
    assert stance(CLAIM, sentence) is not Stance.STATES


@pytest.mark.parametrize(
    ("claim", "sentence"),
    [
        (CLAIM, "The bakery bakes rye bread at night."),
        (CLAIM, "The bakery bakes rye bread at night, and plans to open on Sundays."),
        (CLAIM, "The bakery, which was asked to move, bakes rye bread at night."),
        (CLAIM, "The bakery decided to bake rye bread at night."),
        (CLAIM, "The bakery is able to bake rye bread at night."),
        ("The bakery will bake rye bread at night.", "The bakery will bake rye bread at night."),
        ("The bakery plans to bake rye bread at night.", "The bakery planned to bake rye bread at night."),
        ("New bakers do not carry keys.", "New bakers: you will not carry keys."),
        ("We bake rye bread at night.", "We will bake rye bread at night."),
        ("The town plans a bakery.", "The town plans a bakery."),
        (CLAIM, "The bakery bakes rye bread at night, which keeps the clerk from sleeping."),
        (
            "The bakery moves from baking at day to baking at night.",
            "The bakery moves from baking at day to baking at night.",
        ),
        ("The oven used to bake rye bread is old.", "The oven used to bake rye bread is old."),
        (
            "The oven used to bake bread is made of rye straw.",
            "The oven used to bake bread is made of rye straw.",
        ),
    ],
)
def test_what_rules_something_else_or_is_said_keeps_nothing_back(claim: str, sentence: str) -> None:
    assert stance(claim, sentence) is Stance.STATES


def test_what_will_be_needed_is_not_said_to_have_been() -> None:
    (held,) = stances("Ropes and chains need a splice.", SourceText("Ropes and chains will need a splice."))
    assert held.why == "intended"
