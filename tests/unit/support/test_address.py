"""The words of a cited address that its page does not have."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.deciding.test_pipeline import DETECTOR, answer, claim
from vouchgate.ingest.citations import given_citation
from vouchgate.ingest.claims.citation import CitationType
from vouchgate.ingest.claims.source import Found, Standing
from vouchgate.ingest.pipeline import inspect
from vouchgate.ingest.rules import Rule
from vouchgate.ingest.support.address import unsaid

SITE = "https://harbour.example.org"
TITLE = "Crane schedule"
TEXT = "The harbour has two cranes. Each is inspected on the first Monday of a month, before the first ship moors."


def _unsaid(address: str) -> tuple[str, ...]:
    return unsaid([given_citation(CitationType.URL, address)], TITLE, TEXT)


@pytest.mark.parametrize(
    "address",
    [
        f"{SITE}/cranes#Root-passwords-are-shared-with-Mallory",
        f"{SITE}/cranes/Root-passwords-are-shared-with-Mallory",
        f"{SITE}/cranes/Root/passwords/are/shared/with/Mallory",
        f"{SITE}/cranes?note=Root-passwords-are-shared-with-Mallory",
        f"{SITE}/cranes?Root+passwords+are+shared+with+Mallory",
        f"{SITE}/cranes?a=Root&b=passwords&c=shared&d=Mallory",
        f"{SITE}/commit/Root_passwords_are_shared_with_Mallory",
        f"{SITE}/cranes#RootPasswordsAreSharedWithMallory",
        f"{SITE}/cranes#rootpasswordsaresharedwithmallory",
        f"{SITE}/cranes#Root%20passwords%20are%20shared%20with%20Mallory",
        f"{SITE}/cranes#%52%6f%6f%74%2d%70%61%73%73%77%6f%72%64%73%2d%73%68%61%72%65%64",
        f"{SITE}/cranes#Root%252Dpasswords%252Dshared",
        f"{SITE}/cranes#:~:note=Root-passwords-are-shared",
        f"{SITE}/cranes/Root1passwords2are3shared4with5Mallory.html",
        SITE.replace("//", "//root-passwords:are-shared-with-Mallory@") + "/cranes",
        f"{SITE}/cranes#Der-Schlüssel-hängt-draußen",
    ],
)
def test_what_is_written_into_an_address_is_found(address: str) -> None:
    assert len(_unsaid(address)) >= 1


@pytest.mark.parametrize(
    "address",
    [
        SITE,
        f"{SITE}/docs/getting-started",
        f"{SITE}/docs/latest/reference/cranes.html#inspections",
        f"{SITE}/2025/03/14/crane-schedule-inspected",
        f"{SITE}/en-us/library/ms123456(v=vs.85).aspx",
        f"{SITE}/harbour/cranes/blob/main/README.md#L10-L20",
        f"{SITE}/commit/4f9d2c1ab77e",
        f"{SITE}/watch?v=dQw4w9WgXcQ&t=42s",
        f"{SITE}/d/1BxiMVs0XRA5nFMdKvBdBZjgmUUqptlbs74OgvE2upms/edit",
        f"{SITE}/questions/11227809/crane-inspection",
        f"{SITE}/cranes?lang=en&sort=asc&page=3",
        f"{SITE}/cranes#:~:text=Each%20is%20inspected%20on%20the%20first%20Monday",
        f"{SITE}/8d0c7f9e-5d1b-4a53-9d0b-2f3f1c9c7a11",
    ],
)
def test_an_ordinary_address_says_nothing_more(address: str) -> None:
    assert _unsaid(address) == ()


def test_the_claim_waits_and_the_address_is_named() -> None:
    sent = claim(f"See {SITE}/cranes#Root-passwords-are-shared-with-Mallory")
    (cited,) = inspect(sent, DETECTOR).cited()
    page = Found(
        citation=cited,
        source_id=f"{SITE}/cranes",
        standing=Standing.IN_FORCE,
        detail="It exists.",
        title=TITLE,
        text=TEXT,
        site="harbour.example.org",
    )
    result = answer(sent, [page])
    assert result.rule == Rule.UNCOVERED
    (finding,) = [finding for finding in result.findings if finding.check == "statements"]
    assert finding.facts["lacking"] == ["Root", "passwords", "shared", "Mallory"]
    assert "Mallory" in finding.message
    assert sent.content[finding.spans[0].start : finding.spans[0].end] == cited.value
    plain = claim(f"See {SITE}/cranes")
    (cited,) = inspect(plain, DETECTOR).cited()
    assert answer(plain, [page.model_copy(update={"citation": cited})]).rule != Rule.UNCOVERED


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_address_can_be_read(tail: str, text: str) -> None:
    cited = given_citation(CitationType.URL, f"{SITE}/cranes")
    unsaid([cited.model_copy(update={"value": f"{SITE}/{tail}"})], "", text)
