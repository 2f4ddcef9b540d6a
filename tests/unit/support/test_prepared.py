"""A text that is made ready once says of each claim what it says of it alone, and no more of them are kept than fit."""

from __future__ import annotations

from vouchgate.ingest.claims.citation import Citation, CitationType
from vouchgate.ingest.claims.source import Found, Standing
from vouchgate.ingest.support.holding import hold
from vouchgate.ingest.support.prepared import PreparedTexts
from vouchgate.ingest.support.quotation import quotations_of

RECORD = """# ADR-0004: Parcels wait in the north hall

## Status
Accepted

## Considered Options
* The cellar
* The north hall

## Decision Outcome
Chosen option: "The north hall", because it has a lift.
Parcels wait for 30 days. The National Parcel Service (NPS) collects what is left.
""" + "\n".join(
    f"Shelf {n} of the north hall holds {n + 3} crates of kind K{n % 7}, and its max-load is {n % 5} tons."
    for n in range(60)
)
CLAIMS = (
    "Parcels wait in the north hall for 30 days",
    "Parcels wait in the cellar",
    "Parcels wait for 20 days",
    "Shelf 12 holds 15 crates of kind K5",
    "The NPS collects what is left of the parcels, and shelf 3 is red",
    "Letters are burned by the harbour master",
)


def _found(text: str, form: str = "record", later: str = "") -> Found:
    citation = Citation(
        type=CitationType.URL,
        value="https://hall.example/parcel-rules?night=closed",
        key="rules",
        quote="Parcels wait for 30 days. The National",
    )
    return Found(
        citation=citation,
        source_id=citation.value,
        standing=Standing.IN_FORCE,
        detail="",
        text=text,
        form=form,
        later=later,
        title="Rules",
    )


def test_a_shared_text_says_what_it_says_alone() -> None:
    texts = PreparedTexts()
    for form in ("record", "page"):
        for later in ("", "Shelf 12 holds no crates any more."):
            found = _found(RECORD, form, later)
            quotations = quotations_of((found.citation,))
            for claim in CLAIMS:
                alone = hold(claim, (found.citation,), found, quotations)
                assert hold(claim, (found.citation,), found, quotations, texts) == alone
                assert alone.packed
                assert alone.quoted[0].found == "there"
    assert texts.of(_found(RECORD)) is texts.of(_found(RECORD))
    assert texts.of(_found(RECORD)) is not texts.of(_found(RECORD, "page"))


def test_no_more_text_is_kept_than_fits() -> None:
    texts = PreparedTexts(most=100)
    first = texts.of(_found("a" * 60))
    second = texts.of(_found("b" * 40))
    assert texts.of(_found("a" * 60)) is first
    texts.of(_found("c" * 30))  # the one that was not asked for last has to go
    assert texts.of(_found("a" * 60)) is first
    assert texts.of(_found("b" * 40)) is not second
    long = texts.of(_found("d" * 500))
    assert texts.of(_found("d" * 500)) is long
