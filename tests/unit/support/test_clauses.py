"""Where statements begin and end, and what of a claim needs no cover."""

from __future__ import annotations

import pytest

from vouchgate.ingest.claims.source import Stance
from vouchgate.ingest.claims.statements import MOST, statements
from vouchgate.ingest.support.scope import said_by
from vouchgate.ingest.support.source_text import SourceText
from vouchgate.ingest.support.stance import stances

SOURCE = "The depot in Leeds opens at seven. Keys are kept by the porter, and nobody else has one."


def pieces(claim: str) -> list[str]:
    return [claim[one.start : one.end] for one in statements(claim)]


@pytest.mark.parametrize(
    "cited",
    ["as decided in ADR-7", "as laid down in ADR-7", "as it was agreed in ADR-7", "(as set out in ADR-7)"],
)
def test_that_it_was_decided_there_is_no_more_than_citing(cited: str) -> None:
    assert said_by(f"Ships wait, {cited}.").text.split() == ["Ships", "wait,", "."]
    assert "decided" in said_by("It was decided in ADR-7 that ships wait.").text


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ("The depot opens at seven.", ["The depot opens at seven."]),
        (
            "The depot opens at seven, and keys are kept by the porter.",
            ["The depot opens at seven", "keys are kept by the porter."],
        ),
        (
            "The depot opens at seven; which is early for Leeds.",
            ["The depot opens at seven", "which is early for Leeds."],
        ),
        ("- The depot opens\n- Keys are kept", ["- The depot opens", "- Keys are kept"]),
        ("Rods, reels and lines.", ["Rods, reels and lines."]),
        (
            "The depot opens at seven. eve has a key. no",
            ["The depot opens at seven", "eve has a key", "no"],
        ),
        ("Fruit, e.g. pears and plums, is sold.", ["Fruit, e.g. pears and plums, is sold."]),
    ],
)
def test_a_claim_is_cut_where_something_else_may_be_true(claim: str, expected: list[str]) -> None:
    assert pieces(claim) == expected


def test_a_claim_of_very_many_sentences_is_cut_off_and_nothing_is_lost() -> None:
    claim = "The depot opens at seven. " * (MOST + 50)
    found = statements(claim)
    assert len(found) == MOST + 1
    assert found[-1].end == len(claim)


@pytest.mark.parametrize(
    ("claim", "pointing"),
    [
        ("See ADR-3.", ["See ADR-3."]),
        ("Fixed the gate in ADR-3.", ["Fixed the gate in ADR-3."]),
        ("The depot opens at seven. See ADR-3 for more.", ["See ADR-3 for more."]),
        ("See ADR-3. Keys!", ["See ADR-3."]),
        ("See ADR-3. Not.", ["See ADR-3."]),
        ("See ADR-3. E v e.", ["See ADR-3."]),
        ("See ADR-3. The decision was changed.", ["See ADR-3."]),
        ("This was changed in ADR-3.", ["This was changed in ADR-3."]),
    ],
)
def test_only_a_sentence_that_cites_can_say_nothing(claim: str, pointing: list[str]) -> None:
    assert [claim[start:end] for start, end in said_by(claim).pointing] == pointing


def test_signs_that_are_no_words_are_seen() -> None:
    claim = "It is 20 °C ┌─┐ \N{KEY}\N{KEY} (ADR-3) ©"
    assert [claim[start:end] for start, end in said_by(claim).pictures] == ["\N{KEY}\N{KEY}"]
    claim = "The gate is open != true, and \N{NOT SIGN}(locked) \N{RIGHTWARDS ARROW} shut."
    assert [claim[start:end] for start, end in said_by(claim).pictures] == ["!=", "\N{NOT SIGN}"]


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ("The depot in Leeds opens at seven.", [Stance.STATES]),
        ("The depot in Leeds opens at seven, which is wrong.", [Stance.SPEAKS]),
        ("Contrary to what it says, the depot in Leeds opens at seven.", [Stance.SPEAKS]),
        ("The depot in Leeds opens at seven, and Mallory owns it.", [Stance.STATES, Stance.SILENT]),
        ("Keys are kept by the porter.", [Stance.STATES]),  # that nobody else has one denies nothing of it
        ("Not.", [Stance.SILENT]),
    ],
)
def test_a_denial_at_the_end_is_one(claim: str, expected: list[Stance]) -> None:
    assert [one.stance for one in stances(claim, SourceText(SOURCE))] == expected


def test_where_in_a_source_something_stands_is_part_of_the_citing() -> None:
    for where in (", section 6", " § 4.2", ", pp. 3-5", ", lines 10 to 12"):
        said = said_by(f"Sessions last for an hour (docs/sessions.md{where}).")
        assert said.text.split() == ["Sessions", "last", "for", "an", "hour", "."]
    assert "section 6 forbids" in said_by("Per docs/sessions.md, section 6 forbids it to us all.").text
