"""A sentence in a language of which the rules do not know the words for "not"."""

from __future__ import annotations

import pytest

from vouchgate.ingest.claims.citation import Citation, CitationType
from vouchgate.ingest.claims.source import Found, Stance, Standing
from vouchgate.ingest.support.holding import hold

ENGLISH = "The shop sells books and maps, and its desk is open on working days from nine to five."
URL = Citation(type=CitationType.URL, value="https://a.example/x", key="url:https://a.example/x")


def stance(claim: str, text: str) -> Stance:
    found = Found(
        citation=URL,
        source_id=URL.value,
        standing=Standing.IN_FORCE,
        detail="There.",
        text=text,
        title="Shop",
    )
    (held,) = hold(claim, (URL,), found).held or ()
    return held.stance


@pytest.mark.parametrize(
    "page", ["{}", f"{ENGLISH}\n\n{{}}\n\n{ENGLISH}"], ids=["alone", "on an English page"]
)
@pytest.mark.parametrize(
    ("claim", "said"),
    [
        ("Ada werkt maandag.", "Ada werkt niet maandag."),
        ("De server gebruikt poort 8080.", "De server gebruikt geen poort 8080."),
        ("Ada jobbar måndag.", "Ada jobbar inte måndag."),
        ("Tjeneren bruker port 8080.", "Tjeneren bruker ikke port 8080."),
        ("Zwroty są wypłacane w ciągu 14 dni.", "Zwroty nie są wypłacane w ciągu 14 dni."),
        ("Palautukset maksetaan 14 päivässä.", "Palautukset ei makseta 14 päivässä."),
        ("Rabatte gelten montags.", "Rabatte gelten nicht montags."),
    ],
)
def test_what_may_be_a_not_states_nothing(claim: str, said: str, page: str) -> None:
    assert stance(claim, page.format(said)) is not Stance.STATES


@pytest.mark.parametrize(
    "said",
    [
        "Redis keeps sessions 30 minutes.",
        "Van drivers need permits.",
        "Ada van den Berg signs contracts.",
        "Port 8080 serves requests.",
    ],
)
def test_english_without_a_small_word_is_still_read(said: str) -> None:
    assert stance(said, f"{ENGLISH}\n\n{said}") is Stance.STATES


def test_a_row_of_names_and_regions_is_read() -> None:
    table = (
        f"{ENGLISH}\n\n| Service | Owner | Store | Region |\n|---|---|---|---|\n"
        "| ledger | Pricing | PostgreSQL 14 | eu-west-1 |\n| desk | Sales | Redis 7 | OS |\n"
    )
    assert stance("The ledger is on PostgreSQL 14.", table) is Stance.STATES
    assert stance("The desk is on Redis 7.", table) is Stance.STATES
