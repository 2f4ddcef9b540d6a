"""Quotations: those given with a citation, and those in an address."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.running.hangs import given_up_after
from tests.unit.deciding.test_pipeline import DETECTOR, POLICY, answer, claim
from vouchgate.ingest.citations import given_citation
from vouchgate.ingest.claims.citation import Citation, CitationType
from vouchgate.ingest.claims.claim import Finding, Verdict
from vouchgate.ingest.claims.decision import ValidationResult
from vouchgate.ingest.claims.source import Found, Stance, Standing, Unreachable
from vouchgate.ingest.pipeline import inspect, replay
from vouchgate.ingest.rules import Rule
from vouchgate.ingest.support.quotation import Folded, quotations_of

PAGE = "https://harbour.example.org/cranes"
TEXT = """The harbour has two cranes on the northern quay. They were built by Okoro & Sons.

Each crane is inspected on the first Monday of a month, before the first ship moors. Nobody may lift more than 1,200
containers a day -- the “old” quay can’t carry it. Fees are paid in advance ... and never given back."""
RECORD = """# 4. Keep sessions in the database

## Status

Accepted

## Context

The web servers forget every session when they are started again.

## Considered Options

* Keep sessions in signed cookies that browsers hold
* Keep sessions in the database of the shop

## Decision

Sessions are kept in the database of the shop for thirty days.

## Consequences

Every request costs one query more than it did before.
"""


def quoting(quote: str, type_: CitationType = CitationType.URL, value: str = PAGE) -> Citation:
    return given_citation(type_, value).model_copy(update={"quote": quote})


def page(citation: Citation, text: str = TEXT, **more: object) -> Found:
    return Found.model_validate(
        {
            "citation": citation.model_copy(update={"quote": ""}),
            "source_id": citation.value,
            "standing": Standing.IN_FORCE,
            "detail": "It exists.",
            "title": "Cranes of the harbour and when they are looked at",
            "text": text,
        }
        | more
    )


def record(citation: Citation) -> Found:
    named = {
        "source_id": "ADR-004",
        "title": "Keep sessions in the database",
        "form": "record",
        "official": True,
    }
    return page(citation, RECORD, **named)


def judged(quote: str, text: str = TEXT, **more: object) -> Finding:
    cited = quoting(quote)
    return finding_of(answer(claim("Cranes are inspected.", citations=(cited,)), [page(cited, text, **more)]))


def finding_of(result: ValidationResult) -> Finding:
    (finding,) = [finding for finding in result.findings if finding.check == "quote"]
    return finding


@pytest.mark.parametrize(
    "quote",
    [
        "inspected on the first Monday of a month",
        "each crane is inspected on the first Monday",
        "“Each crane is inspected on the first Monday of a month.”",
        'Nobody may lift more than 1,200 containers\n   a day — the "old" quay can\'t carry it',
        "**Fees are paid** in advance… and never given back",
        "…before the first ship moors…",
        "cranes of the harbour and when they are looked at",
    ],
)
def test_a_quotation_that_stands_there_passes(quote: str) -> None:
    finding = judged(quote)
    assert (finding.verdict, finding.code) == (Verdict.PASS, "quote_there")
    start, end = finding.facts.get("source_start"), finding.facts.get("source_end")
    assert (start is None) == quote.startswith("cranes of the harbour")  # in the title
    if isinstance(start, int) and isinstance(end, int):
        assert len(TEXT[start:end].split()) >= 5


@pytest.mark.parametrize(
    ("quote", "code"),
    [
        ("each crane is inspected on the second Monday of a month", "quote_missing"),
        ("each crane is inspected on the First Monday of a month", "quote_missing"),
        ("nobody may lift more than 1,20", "quote_missing"),
        ("nobody may lift more than 200 containers a day", "quote_missing"),
        ("Nobody may lift more than 1", "quote_missing"),
        ("The harbour has two cranes on the northern", "quote_there"),
        ("The harbour has two cranes before the first ship moors", "quote_stitched"),
        ("Each crane is inspected … never given back", "quote_stitched"),
        ("two cranes", "quote_short"),
        ("three cranes", "quote_missing"),
        ("!?", "quote_missing"),
    ],
)
def test_what_is_wrong_with_a_quotation_is_said(quote: str, code: str) -> None:
    assert judged(quote).code == code


def test_a_refuted_quotation_keeps_a_true_claim_from_being_stored() -> None:
    cited = quoting("sessions are kept in signed cookies for thirty days", CitationType.ADR, "ADR-004")
    sent = claim("Sessions are kept in the database of the shop for thirty days.", citations=(cited,))
    result = answer(sent, [record(cited)])
    assert (result.rule, result.tier) == (Rule.REFUTED, "tier_2")
    assert "does not stand in ADR-004" in result.reason


def test_a_quotation_of_another_source_is_said_to_be_from_there() -> None:
    wrong = quoting("Each crane is inspected on the first Monday of a month", CitationType.ADR, "ADR-004")
    right = given_citation(CitationType.URL, PAGE)
    sent = claim("Each crane is inspected on the first Monday of a month.", citations=(wrong, right))
    finding = finding_of(answer(sent, [record(wrong), page(right)]))
    assert (finding.verdict, finding.code) == (Verdict.FAIL, "quote_misattributed")
    assert finding.facts["found_in"] == PAGE
    assert finding.citation is not None
    assert finding.citation.key == "adr:4"


@pytest.mark.parametrize(
    ("quote", "part"),
    [
        ("Keep sessions in signed cookies that browsers hold", "options"),
        ("The web servers forget every session when they are started again", "context"),
    ],
)
def test_what_a_record_weighed_vouches_for_nothing(quote: str, part: str) -> None:
    cited = quoting(quote, CitationType.ADR, "ADR-004")
    sent = claim("Sessions are kept in the database of the shop for thirty days.", citations=(cited,))
    result = answer(sent, [record(cited)])
    finding = finding_of(result)
    assert (finding.verdict, finding.code) == (Verdict.DOUBT, "quote_weighed")
    assert f"the {part} of ADR-004" in finding.message
    assert result.rule == Rule.DOUBTED


def test_a_short_quotation_is_a_doubt_and_no_refutation() -> None:
    cited = quoting("two cranes")
    result = answer(claim("The harbour has two cranes.", citations=(cited,)), [page(cited)])
    assert (result.rule, finding_of(result).citation) == (Rule.DOUBTED, None)


@pytest.mark.parametrize(
    ("directive", "code"),
    [
        ("text=Each%20crane,first%20ship%20moors", "quote_there"),
        ("text=inspected%20on-,the%20first%20Monday,-of%20a%20month", "quote_there"),
        ("text=northern%20quay", "quote_there"),
        ("text=Root%20passwords%20are%20shared", "quote_missing"),
        ("text=built%20on-,the%20first%20Monday", "quote_missing"),
        ("text=first%20ship%20moors,Each%20crane", "quote_missing"),
        ("text=", None),
    ],
)
def test_a_text_directive_is_looked_up(directive: str, code: str | None) -> None:
    sent = claim(f"See {PAGE}#:~:{directive} for the cranes")
    (cited,) = inspect(sent, DETECTOR).cited()
    found = [f.code for f in answer(sent, [page(cited)]).findings if f.check == "quote"]
    assert found == ([] if code is None else [code])


def test_of_a_private_page_it_is_only_said_whether_the_words_are_there() -> None:
    stitched = judged("The harbour has two cranes before the first ship moors", private=True)
    assert stitched.code == "quote_missing"


def test_what_was_not_read_to_its_end_may_have_the_words() -> None:
    finding = judged("the cranes are painted yellow every spring", cut=True)
    assert (finding.verdict, finding.code) == (Verdict.UNKNOWN, "quote_unread")


def test_of_a_source_that_was_not_read_nothing_is_said() -> None:
    cited = quoting("each crane is inspected on the first Monday")
    away = Unreachable(citation=cited, code="timeout", detail="Too late.")
    result = answer(claim("Cranes are inspected.", citations=(cited,)), [away])
    assert [f for f in result.findings if f.check == "quote"] == []
    assert result.rule == Rule.CITATION_UNKNOWN


def test_a_statement_is_held_against_the_place_that_is_quoted() -> None:
    """A place that has as many of its words stands before it, and says something else."""
    text = (
        "The old rule was that drivers get no eleven coins for every ship of theirs.\n\n"
        + "The harbour has many quays. " * 3
        + "Drivers get eleven coins for every ship. Nobody gets more."
    )
    content = "Drivers get eleven coins for every ship."
    cited = quoting("drivers get eleven coins for every ship")
    by_itself = given_citation(CitationType.URL, PAGE)
    assert answer(claim(content, citations=(by_itself,)), [page(cited, text)]).rule == Rule.UNCOVERED
    with_quote = answer(claim(content, citations=(cited,)), [page(cited, text)])
    assert with_quote.rule == Rule.STATED
    (source,) = with_quote.evidence.sources
    assert isinstance(source, Found)
    assert source.held is not None
    assert source.held[0].stance is Stance.STATES
    assert source.held[0].place is not None
    assert text[slice(*source.held[0].place)] == content
    assert source.quoted[0].place is not None
    assert text[slice(*source.quoted[0].place)] == "Drivers get eleven coins for every ship"


def test_a_claim_that_says_otherwise_than_its_own_quotation_is_refuted() -> None:
    cited = quoting("Each crane is inspected on the first Monday of a month")
    sent = claim("Each crane is inspected on the first Friday of a month.", citations=(cited,))
    result = answer(sent, [page(cited)])
    assert finding_of(result).verdict is Verdict.PASS
    assert result.rule in {Rule.REFUTED, Rule.UNCOVERED}


def test_a_decision_with_quotations_is_made_again_from_its_evidence() -> None:
    cited = quoting("The harbour has two cranes before the first ship moors")
    result = answer(claim("Cranes are inspected.", citations=(cited,)), [page(cited)])
    kept = ValidationResult.model_validate_json(result.model_dump_json())
    assert kept.evidence.claim.citations[0].quote == cited.quote
    assert replay(kept, POLICY, DETECTOR) == ()
    assert '"quote"' not in answer(claim("Cranes are inspected."), []).model_dump_json()


@given(st.text(), st.text())
def test_any_text_and_quotation_can_be_looked_up(quote: str, text: str) -> None:
    folded = Folded(text)
    quotations_of([quoting(quote), quoting("", value=f"{PAGE}#:~:text=")])
    for place in folded.places([quote[:3]]):
        assert folded.origin(*place)[1] <= len(text)
    assert quote.strip() == "" or judged(quote, text).check == "quote"


def test_looking_up_is_linear() -> None:
    with given_up_after(10):
        assert judged("a " * 999 + "b", "a " * 99_000).code == "quote_missing"
        assert judged("x" * 2000, "y" * 190_000).code == "quote_missing"
