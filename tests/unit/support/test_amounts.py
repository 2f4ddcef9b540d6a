"""How much of a thing a place says it of: a limit, a range, some of several, a part of one."""

from __future__ import annotations

import pytest

from vouchgate.ingest.claims.source import Stance
from vouchgate.ingest.support.source_text import SourceText
from vouchgate.ingest.support.stance import stances

WAITS = "The tram waits 30 seconds at the school."
CARS = "The trams carry the bikes to the lake."


def stated(claim: str, sentence: str) -> bool:
    (held,) = stances(claim, SourceText(f"# The trams\n\nThere is a depot.\n\n{sentence} It rains.\n"))
    assert held.stance in {Stance.STATES, Stance.SPEAKS}
    return held.stance is Stance.STATES


@pytest.mark.parametrize(
    ("claim", "sentence"),
    [
        (WAITS, "The tram waits more than 30 seconds at the school."),
        (WAITS, "The tram waits at most 30 seconds at the school."),
        (WAITS, "The tram waits up to 30 seconds at the school."),
        (WAITS, "The tram waits half of 30 seconds at the school."),
        (WAITS, "The tram waits 20 to 30 seconds at the school."),
        (WAITS, "The tram waits between 20 and 30 seconds at the school."),
        (WAITS, "The tram waits 30 seconds or more at the school."),
        (WAITS, "The tram waits 30 seconds at most at the school."),
        (CARS, "Some trams carry the bikes to the lake."),
        (CARS, "Few trams carry the bikes to the lake."),
        (CARS, "Two of the five trams carry the bikes to the lake."),
        (CARS, "A minority of the trams carry the bikes to the lake."),
        (CARS, "The trams carry half of the bikes to the lake."),
        (CARS, "The trams carry the names of the bikes to the lake."),
        (CARS, "The trams carry the bikes to a mock of the lake."),
        (CARS, "The trams seem to carry the bikes to the lake."),
    ],
)
def test_less_than_the_statement_says_does_not_state_it(claim: str, sentence: str) -> None:
    assert not stated(claim, sentence)
    assert stated(sentence, sentence)


@pytest.mark.parametrize(
    ("claim", "sentence"),
    [
        (WAITS, "The tram waits 30 seconds at the school."),
        (WAITS, "The tram waits 30 seconds at the school, and up to 5 minutes at the lake."),
        (
            "The tram waits at least 30 seconds at the school.",
            "The tram waits at least 30 seconds at the school.",
        ),
        (
            "The tram waits up to 30 seconds at the school.",
            "The tram waits 30 seconds at most at the school.",
        ),
        (CARS, "The trams carry the bikes to the lake, and some trams carry dogs."),
        ("The trams most often carry bikes to the lake.", "The trams most often carry bikes to the lake."),
        (CARS, "As most of our trams are red, the trams carry the bikes to the lake."),
    ],
)
def test_as_much_as_the_statement_says_states_it(claim: str, sentence: str) -> None:
    assert stated(claim, sentence)
