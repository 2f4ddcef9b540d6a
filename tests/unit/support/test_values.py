"""A date, an hour, a sum or a share is the same however it is written; and a row of a table stands by itself."""

from __future__ import annotations

import pytest

from vouchgate.ingest.checks.statements import TURNED
from vouchgate.ingest.claims.source import Held, Stance
from vouchgate.ingest.language.dates import parts_of_date
from vouchgate.ingest.support.source_text import SourceText
from vouchgate.ingest.support.stance import stances
from vouchgate.ingest.support.times import times_of_day
from vouchgate.ingest.support.tokens import tokens_of

TABLE = """# Ferries

| Ferry | Pier | Fare | Crew | Runs | Refit |
|---|---|---|---|---|---|
| Heron | North Quay | €12 | Ines Moll | Mon–Sat 07:00–20:00 | 2024-04-09 |
| Osprey | Customs House | €19 | Piet Zand | Sun 09:30–18:00 | 14/11/2023 |

Fares rise in May.
"""


def hold(claim: str, source: str, title: str = "") -> Held:
    (held,) = stances(claim, SourceText(source, title))
    return held


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("The pier was closed on 9 April 2024.", "The pier was closed on 2024-04-09."),
        ("The pier was closed on 2024-04-09.", "The pier was closed on 9 April 2024."),
        ("The pier was closed on April 9, 2024.", "The pier was closed on 9 Apr 2024."),
        ("The pier was closed on 14 November 2023.", "The pier was closed on 14/11/2023."),
        ("The pier was closed on 4 May 2023.", "The pier was closed on 4.5.2023."),
        ("The pier was closed in April 2024.", "The pier was closed in 2024-04."),
        ("The pier is open from Monday to Saturday.", "The pier is open from Mon to Sat."),
        ("The ferry costs 12 euros.", "The ferry costs €12."),
        ("The ferry costs EUR 12.", "The ferry costs 12 euros."),
        ("The ferry costs USD 12.", "The ferry costs $12."),
        ("The ferry is full on 40 percent of its trips.", "The ferry is full on 40 % of its trips."),
        ("The ferry leaves at 2 pm.", "The ferry leaves at 14:00."),
        ("The ferry leaves at 14:00.", "The ferry leaves at 2 p.m."),
        ("The ferry leaves at seven in the morning.", "The ferry leaves at 07:00."),
        ("The ferry leaves at two o'clock.", "The ferry leaves at 14:00."),
        ("The ferry stops for a quarter of an hour.", "The ferry stops for 15 minutes."),
        ("The ferry stops for three quarters of an hour.", "The ferry stops for 45 minutes."),
        ("The ferry leaves once the pier is clear.", "The ferry leaves when the pier is clear."),
        ("Heron leaves from North Quay.", TABLE),
    ],
)
def test_what_is_written_otherwise_is_there(claim: str, source: str) -> None:
    held = hold(claim, source)
    assert held.why not in {"number", "far", "count", "sign", "name"}, held
    assert not held.uncovered and held.stance in {Stance.STATES, Stance.SPEAKS}, held


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("The pier was closed on 9 May 2024.", "The pier was closed on 2024-04-09."),
        ("The pier was closed on 8 April 2024.", "The pier was closed on 2024-04-09."),
        ("The pier was closed on 4 May 2023.", "The pier was closed on 05/04/2023."),  # or on 5 April
        ("The ferry costs 12 dollars.", "The ferry costs €12."),
        ("The ferry leaves at 2 am.", "The ferry leaves at 14:00."),
        ("The ferry leaves at eight in the evening.", "The ferry leaves at 08:00."),
        ("The ferry stops for a quarter of an hour.", "The ferry stops for 25 minutes."),
        ("The ferry leaves once a day.", "The ferry leaves every day."),
        # Each has a row of its own.
        ("Osprey costs €12.", TABLE),
        ("Osprey is crewed by Ines Moll.", TABLE),
        ("Heron had its refit in November 2023.", TABLE),
    ],
)
def test_what_is_another_value_is_not_there(claim: str, source: str) -> None:
    held = hold(claim, source)
    assert held.stance is not Stance.STATES, held
    assert held.uncovered or held.why in TURNED or held.stance is not Stance.SPEAKS, held


def test_what_a_source_says_and_denies_it_does_not_state() -> None:
    both = "Fares are paid on board.\n\nThe pier is old.\n\nFares are not paid on board.\n"
    assert hold("Fares are paid on board.", both).why == "denial"
    other = "Fares are paid on board.\n\nThe pier is old.\n\nFares for dogs are not paid.\n"
    assert hold("Fares are paid on board.", other).stance is Stance.STATES


def test_the_name_of_a_file_tells_of_which_day_it_is() -> None:
    said = "The pier was closed for two hours."
    assert hold("The pier was closed for two hours in April 2024.", said).stance is not Stance.STATES
    dated = hold("The pier was closed for two hours in April 2024.", said, "notes/2024-04-09-pier.md")
    assert dated.stance is Stance.STATES


def test_what_keeps_a_statement_waiting_is_found_beside_what_does_not() -> None:
    """Of two reasons the one counts with which a place does not even speak of a statement."""
    held = hold(
        "The pier was closed.", "The pier, which may be wet, is to be closed in May if the board agrees."
    )
    assert held.why in TURNED, held


@pytest.mark.parametrize(
    "lie", ["gulls own the harbour", "visitors eat children", "noon fee gulls", "agents own data"]
)
@pytest.mark.parametrize(
    "joint",
    [
        ", ",
        " | ",
        " / ",
        " -> ",
        " → ",
        " & ",
        " and ",
        " = ",
        " because ",
        " while ",
        " if ",
        " like ",
        " [",
        ': "',
        "\n",
    ],
)
def test_a_lie_of_three_words_is_not_carried_along(joint: str, lie: str) -> None:
    said = "Every night the old ferry takes the bread, the mail and the milk from the north quay to the far islands"
    rest = (
        "The board meets in May. Gulls eat the bread of children. "
        "A harbour fee is due at noon; visitors pay it to agents, who keep the data."
    )
    source = SourceText(f"{said}.\n\n{rest}")
    assert {held.stance for held in stances(f"{said}.", source)} == {Stance.STATES}
    *_, held = stances(f"{said}{joint}{lie}.", source)
    assert held.stance is Stance.SPEAKS
    assert held.why in {"part", "added"} & TURNED.keys()


@pytest.mark.parametrize(
    ("claim", "source", "why"),
    [
        # What was done is not what will be.
        ("The pier has been moved.", "The pier will be moved in May.", "governed"),
        ("The pier was moved to the bay.", "The pier will be moved to the bay.", "governed"),
        (
            "Sail to Ameland, then Texel, then Vlieland.",
            "Sail to Ameland, then Vlieland, then Texel.",
            "relation",
        ),
        (
            "Whatever the weather, the ferry waits for cars.",
            "The ferry waits for cars in calm weather.",
            "universal",
        ),
    ],
)
def test_what_turns_a_sentence_keeps_it_back(claim: str, source: str, why: str) -> None:
    held = hold(claim, source)
    assert (held.why, held.why in TURNED or bool(held.uncovered)) == (why, True), held


def test_a_place_that_has_little_of_a_statement_does_not_speak_of_it() -> None:
    source = (
        "# The outage\n\nScribe: Piet Zand. The Leeds outage of April began when one zone lost its power.\n"
    )
    faint = hold("A few bookings of guests were lost for good in the Leeds outage.", source)
    assert (faint.stance, faint.why) == (Stance.SPEAKS, "faint")
    assert faint.why in TURNED
    # A row has no sentence that could be like one.
    assert hold("Heron, with Ines Moll on board, charges passengers €12.", TABLE).why == ""


@pytest.mark.parametrize(
    ("written", "parts"),
    [
        ("2024-04-09", ["2024", "april", "9"]),
        ("2024-04", ["2024", "april"]),
        ("31/08/2024", ["2024", "august", "31"]),
        ("08/2024", ["2024", "august"]),
        ("9.4.2024", ["2024", "april", "9"]),
        ("04/05/2024", []),
        ("2024-13-01", []),
        ("2024-00-01", []),
        ("1.2.3", []),
        ("3.11.2024.1", []),
        ("", []),
    ],
)
def test_the_parts_of_a_date(written: str, parts: list[str]) -> None:
    said = {key for each in parts for key in tokens_of(each)[0].keys}
    assert {("#" + key if key.isdigit() else key) for key, _ in parts_of_date(written)} == said


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("at 2 pm", {840}),
        ("at 14:00", {840}),
        ("at 2:30 p.m.", {870}),
        ("at 12 am", {0}),
        ("at noon", {720}),
        ("at midnight", {0}),
        ("at two o'clock", {120, 840}),
        ("at ten in the evening", {1320}),
        ("at 25:00", set()),
        ("at 10:75", set()),
        ("ten ferries", set()),
    ],
)
def test_a_time_of_day(text: str, minutes: set[int]) -> None:
    found = times_of_day(text, tokens_of(text))
    assert {minute for each in found.values() for minute in each} == minutes
