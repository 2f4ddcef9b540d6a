"""What a place says of two things, no statement says of one; what it says in other words is still said."""

from __future__ import annotations

import pytest

from vouchgate.ingest.claims.source import Held, Stance
from vouchgate.ingest.support.source_text import SourceText
from vouchgate.ingest.support.stance import stances

STATES = Stance.STATES
BIRDS = "Gulls eat fish from the harbour, and ravens eat corn from the barn."
LIMITS = "Imports run for 20 seconds at most. Exports use another queue with a limit of five minutes."
TABLE = """## Fees

| Tent | Kept for | Then |
| --- | --- | --- |
| Small tents | 3 nights | cleaned |
| Large tents | 8 nights | aired |

The site is closed in winter."""


def held(claim: str, text: str) -> tuple[Held, ...]:
    return stances(claim, SourceText(text))


@pytest.mark.parametrize(
    ("claim", "text", "why"),
    [
        ("Gulls eat corn from the barn, ravens eat fish from the harbour.", BIRDS, "crossed"),
        ("Owls nest in old towers.", "Kites nest in old towers, and owls nest in old barns.", "mixed"),
        ("Imports run for five minutes at most.", LIMITS, "borrowed"),
        ("Small tents are kept for 8 nights.", TABLE, "opposite"),
        (
            "Bicycles, like cars and vans, are parked behind the town hall.",
            "Cars and vans are parked behind the town hall. The hall has two doors. Bicycles stay in the yard.",
            "subject",
        ),
    ],
)
def test_what_a_place_says_of_two_things_is_not_said_of_one(claim: str, text: str, why: str) -> None:
    found = held(claim, text)
    assert all(one.stance is not STATES for one in found)
    assert why in {one.why for one in found}


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("Ravens eat corn from the barn, and gulls eat fish from the harbour.", BIRDS),
        ("Large tents are kept for 8 nights.", TABLE),
        (
            "The bell can be rung by a guard.",
            "The bell is old. The bell can be rung by a guard of the tower.",
        ),
        ("Lamps burn for 40 days and candles for 6 days.", "Lamps burn for 40 days, candles for 6."),
        ("One guard rings the bell at noon.", "A guard rings the bell at noon."),
        ("Boats must never be tied to the crane.", "Boats must not be tied to the crane."),
        ("Every boat carries a lamp.", "Each boat carries a lamp."),
        ("The chest only holds letters.", "The chest holds nothing but letters."),
        ("Loose ropes are not allowed on deck.", "We do not allow loose ropes on deck."),
        ("They've oiled the lock of the gate.", "The lock of the gate is oiled."),
        ("The meadow gate is locked at dusk.", "# The meadow\n\n## At night\n\nThe gate is locked at dusk."),
        (
            "The wheel stops when the load exceeds 40 kg.",
            "The wheel stops when the load is above 40 kg.",
        ),
    ],
)
def test_the_same_in_other_words_is_stated(claim: str, text: str) -> None:
    found = held(claim, text)
    assert [(one.stance, one.why) for one in found] == [(STATES, "")] * len(found)


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("All boats carry a lamp.", "The ferry goes every 15 minutes. Boats carry a lamp."),
        ("The bell has no other name.", "The bell, also known as Old Tom, has a name of its own."),
        ("The gate is locked at dusk.", "It is not so that the gate is locked at dusk."),
        ("Two guards ring the bell at noon.", "A guard rings the bell at noon."),
        ("The chest holds all letters.", "The chest holds nothing but letters."),
    ],
)
def test_what_only_looks_the_same_is_not_stated(claim: str, text: str) -> None:
    assert all(one.stance is not STATES for one in held(claim, text))
