"""What only one of the two sentences of a place has, beside nothing else of the statement, is not said of it."""

from __future__ import annotations

import pytest

from vouchgate.ingest.claims.source import Stance
from vouchgate.ingest.support.source_text import SourceText
from vouchgate.ingest.support.stance import stances


def held(claim: str, source: str) -> tuple[Stance, str]:
    (one,) = stances(claim, SourceText(source))
    return one.stance, one.why


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("The ferry carries mail automatically.", "Gates open automatically. The ferry carries mail."),
        ("The ferry carries mail for auditors.", "The ferry carries mail. Reports go to auditors by hand."),
        ("The ferry carries mail by hand.", "The ferry carries mail. Reports go to auditors by hand."),
        # Another one in its stead, though both sentences have a word of the statement.
        (
            "We settled on the Nord chart system.",
            "We settled on the Sund chart system. Sailors liked the Nord chart system.",
        ),
    ],
)
def test_what_another_sentence_says_is_not_added(claim: str, source: str) -> None:
    assert held(claim, source) == (Stance.SPEAKS, "stray")


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("The ferry carries mail by hand.", "The ferry carries mail. It is loaded by hand."),
        ("The ferry carries mail by hand.", "## By hand\n\nThe ferry carries mail."),
        ("The ferry carries mail by hand.", "What is done by hand:\n\n- The ferry carries mail."),
        ("The ferry carries mail, not bread.", "The ferry carries mail. Nobody wants bread."),
        ("The ferry carries mail, e.g. parcels.", "The ferry carries mail. Parcels are heavy."),
        ("The ferry of Nord carries mail.", "The ferry of Nord is old. Gulls eat. The ferry carries mail."),
    ],
)
def test_what_goes_on_or_is_aside_is_said_of_it(claim: str, source: str) -> None:
    assert held(claim, source)[0] is Stance.STATES


@pytest.mark.parametrize(
    ("claim", "source", "why"),
    [
        (
            "Pages are layout structures that are combined to construct templates.",
            "Templates are layout structures that can be combined to construct pages.",
            "exchanged",
        ),
        (
            "Pilots tell the crews of old ferries about harbours.",
            "Harbours tell the crews of old ferries about pilots.",
            "exchanged",
        ),
        ("On Friday the old pumps run in Havn.", "In Havn the old pumps run on Friday.", ""),
        (
            "The keeper stores old charts in the tower.",
            "Old charts are stored in the tower by the keeper.",
            "",
        ),
        ("The harbour used to close at noon.", "The harbour closes at noon.", "former"),
        ("The harbour used to close at noon.", "The harbour once closed at noon, and was rich.", ""),
    ],
)
def test_two_words_in_each_other_s_stead(claim: str, source: str, why: str) -> None:
    assert held(claim, source)[1] == why


@pytest.mark.parametrize(
    "claim",
    [
        "The ferry and the crane carry mail to the island.",
        "The harbour crane and the ferry carry mail to the island.",
        "The harbour crane and the old pilots and the ferry carry mail to the island.",
    ],
)
def test_another_subject_does_not_do_it_as_well(claim: str) -> None:
    source = SourceText(
        "The ferry carries mail to the island. The harbour crane lifts stones. Old pilots rest."
    )
    assert any(one.stance is not Stance.STATES for one in stances(claim, source))
    both = SourceText(f"{claim} Gulls eat.")
    assert all(one.stance is Stance.STATES for one in stances(claim, both))


def test_no_longer_denies_what_stands_before_it() -> None:
    assert held("The ferry carries mail no longer.", "The ferry carries mail.")[1] == "denial"
    assert held("The ferry no longer carries mail.", "The ferry carries mail no longer.")[0] is Stance.STATES


def test_what_is_to_come_is_not_so() -> None:
    until = "We wait until the new pier stands."
    assert held("The new pier stands.", until) == (Stance.SPEAKS, "former")
    assert held("We wait until the new pier stands.", until)[0] is Stance.STATES
    assert held("The new pier stands.", "Once the new pier stands we go.")[0] is not Stance.STATES
