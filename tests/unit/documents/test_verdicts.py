"""What a claim comes to by what its sources say, with both quotations."""

from __future__ import annotations

import pytest

from tests.unit.documents.checks import (
    FALSE,
    KILN,
    LOG,
    NOW,
    PARTLY,
    POLICY,
    TRUE,
    checked,
    readings,
    verdicts,
)
from tests.unit.documents.desk import read
from vouchgate.documents.checking import check_document
from vouchgate.ingest.claims.source import Found, Stance, Standing
from vouchgate.ingest.documents.verdict import ClaimVerdict as V
from vouchgate.ingest.documents.verdict import check_claim


@pytest.mark.parametrize(
    ("text", "pages", "verdict"),
    [
        (TRUE, {LOG: KILN}, V.VERIFIED),
        (PARTLY, {LOG: KILN}, V.PARTIAL),
        (FALSE, {LOG: KILN}, V.FALSE),
        (TRUE, {}, V.BROKEN_CITATION),
        (TRUE, {LOG: 503}, V.UNKNOWN),
        ("The kiln of Vester reaches 1,300 degrees.", {}, V.UNCITED),
        ("The kiln of Vester reaches 1,300 degrees [7].", {}, V.BROKEN_CITATION),
        (f"See {LOG}.", {LOG: KILN}, V.EXEMPT),
        (f"See the [log]({LOG}).", {LOG: KILN}, V.EXEMPT),
        (f"See the [log]({LOG}).", {}, V.BROKEN_CITATION),
        (f"See the [confessions of the potter]({LOG}).", {LOG: KILN}, V.PARTIAL),
        (f"Nobody reads the [log]({LOG}).", {LOG: KILN}, V.PARTIAL),
        # A book cannot be looked up here, which is not the same as that there is none.
        ("The kiln of Vester reaches 1,300 degrees [1].\n\n## References\n\n1. Brandt: Kilns", {}, V.UNKNOWN),
    ],
)
def test_every_verdict(text: str, pages: dict[str, str | int], verdict: V) -> None:
    assert verdicts(text, pages) == [verdict]


def test_a_verdict_has_both_quotations_and_where_they_stand() -> None:
    (true, false, partly) = checked(f"{TRUE}\n\n{FALSE}\n\n{PARTLY}\n").claims
    for one, stance, said in (
        (true, Stance.STATES, "The kiln of Vester reaches 1,300 degrees."),
        (false, Stance.REFUTES, "It was built in 1921 by Oda Brandt."),
        (partly, Stance.SPEAKS, "The kiln burns beech wood."),
    ):
        (source,) = one.sources
        assert (source.stance, source.state, source.address) == (stance, "found", LOG)
        assert said in source.quotation
        assert (
            source.place is not None and source.quotation in KILN[source.place[0] - 2 : source.place[1] + 2]
        )
        assert len(source.digest) == 64
    assert (partly.missing, "coal" in partly.message) == (("coal",), True)
    assert "1935" in false.message


def test_the_final_address_is_what_is_cited() -> None:
    document = read(TRUE)
    ((key, reading),) = readings(TRUE, {LOG: KILN}).items()
    assert isinstance(reading, Found)
    moved = reading.model_copy(update={"source_id": "https://kiln.example/new"})
    one = check_claim(document.claims[0], {key: moved}, POLICY, NOW)
    assert [(source.cited, source.address) for source in one.sources] == [(LOG, "https://kiln.example/new")]


def test_a_banned_source_vouches_for_nothing_and_counts_as_the_worst() -> None:
    banned = type(POLICY).model_validate(POLICY.model_dump() | {"banned_domains": ("oven.example",)})
    document = checked(TRUE, policy=banned)
    assert [one.verdict for one in document.claims] == [V.BROKEN_CITATION]
    assert document.lowest_score == 0


def test_a_superseded_record_vouches_for_nothing() -> None:
    text = "The kiln of Vester reaches 1,300 degrees (ADR-3)."
    document = read(text)
    (citation,) = [each.citation for each in document.references]
    assert citation is not None
    old = Found(
        citation=citation,
        source_id="ADR-003",
        standing=Standing.SUPERSEDED,
        detail="ADR-003 is superseded.",
        text=KILN,
        form="record",
    )
    assert check_claim(document.claims[0], {citation.key: old}, POLICY, NOW).verdict is V.BROKEN_CITATION


def test_what_could_be_read_is_enough_when_it_states_all() -> None:
    book, other = "https://book.example/kiln", "https://gone.example/kiln"
    text = f"The kiln of Vester reaches 1,300 degrees ([log]({LOG}), [book]({book}))."
    assert verdicts(text, {LOG: KILN, book: 503}) == [V.VERIFIED]
    assert verdicts(text, {LOG: "Bowls\n\nThe bowls are red.", book: 503}) == [V.UNKNOWN]
    assert verdicts(text.replace(book, other), {LOG: KILN}) == [V.BROKEN_CITATION]


def test_one_source_that_says_otherwise_is_enough_to_be_false() -> None:
    book = "https://book.example/kiln"
    text = f"The kiln of Vester was built in 1921 ([log]({LOG}), [book]({book}))."
    assert verdicts(text, {LOG: KILN, book: KILN.replace("1921", "1922")}) == [V.FALSE]


def test_every_statement_of_a_sentence_is_held_against_its_source() -> None:
    """F8: as much is verified as was read."""
    text = f"The kiln of Vester burns beech wood, and the bowls are sold in Ribe ([log]({LOG}))."
    assert verdicts(text) == [V.PARTIAL]


def test_a_lead_in_is_the_context_of_its_items() -> None:
    text = f"The kiln of Vester:\n\n- was built in 1921 ([log]({LOG}))\n- was built in 1935 ([log]({LOG}))\n"
    (lead, right, wrong) = checked(text).claims
    assert (right.verdict, wrong.verdict) == (V.VERIFIED, V.FALSE)
    assert lead.verdict is V.UNCITED


@pytest.mark.parametrize(
    ("name", "cited", "itself"),
    [
        ("docs/kiln.md", "docs/kiln.md", True),
        ("docs/kiln.md", "docs/kiln.md:3", True),
        ("docs/kiln.md", "docs/kiln.md#L3-L5", True),
        ("docs/kiln.md", "docs/kilns.md", False),
        ("docs/adr/0003-kiln.md", "ADR-3", True),
        ("docs/adr/0003-kiln.md", "ADR-4", False),
    ],
)
def test_a_document_does_not_vouch_for_itself(name: str, cited: str, itself: bool) -> None:
    text = f"The kiln of Vester reaches 1,300 degrees, see {cited}."
    document = read(text, name)
    ((key, missing),) = readings(text, {}, name).items()
    found = Found(
        citation=missing.citation,
        source_id=cited,
        standing=Standing.IN_FORCE,
        detail="",
        text=KILN,
        form="file",
    )
    done = check_document(document, {key: found}, POLICY, NOW, baseline={}, own=name)
    assert [one.verdict for one in done.claims] == [V.BROKEN_CITATION if itself else V.VERIFIED]


def test_no_passage_is_quoted_twice() -> None:
    """A sentence that one part of a claim rests on stands in the passage that another part rests on."""
    page = "Pier notes\n\nThe pier of Orsund has four berths. Its largest ferry carries 310 passengers.\n"
    claim = (
        f"The pier of Orsund has four berths, and its largest ferry carries 310 passengers ([log]({LOG}))."
    )
    (one,) = checked(claim, {LOG: page}).claims
    assert one.verdict == "VERIFIED"
    assert one.sources[0].quotation.count("four berths") == 1
