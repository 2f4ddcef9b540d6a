"""The query language: what is typed, as terms, and which texts have what the words of it say."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vouchgate.ingest.rules import Rule
from vouchgate.storage.queue.query import (
    AssignedTo,
    ByAgent,
    ByReason,
    BySource,
    Is,
    Phrase,
    Query,
    QueryError,
    SentAfter,
    SentBefore,
    Standing,
    Term,
    Word,
    needed_parts,
    parse,
    text_test,
)

NOW = datetime(2026, 5, 20, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("typed", "terms"),
    [
        ("", []),
        ("  returned   Bowl ", [Word("return"), Word("bowl")]),
        ('"Sea level"', [Phrase(("sea", "level"))]),
        ("retry_count", [Phrase(("retry", "count"))]),
        ("https://kiln.example/a", [Phrase(("https", "kiln", "example", "a"))]),
        ("agent:importer", [ByAgent("importer")]),
        ('agent:"the night importer"', [ByAgent("the night importer")]),
        (
            "reason:technical-hedge REASON:uncovered",
            [ByReason(Rule.TECHNICAL_HEDGE), ByReason(Rule.UNCOVERED)],
        ),
        ("source:ADR-7", [BySource("ADR-7")]),
        ("before:2026-05-01", [SentBefore(datetime(2026, 5, 1, tzinfo=UTC))]),
        ("after:7d before:12h", [SentAfter(NOW - timedelta(days=7)), SentBefore(NOW - timedelta(hours=12))]),
        ("is:sent_back assigned:me", [Is(Standing.SENT_BACK), AssignedTo("me")]),
        ("!!! , —", []),
    ],
)
def test_what_is_typed_as_terms(typed: str, terms: list[Term]) -> None:
    assert parse(typed, NOW) == Query(tuple(terms))


def test_without_keys_everything_is_words() -> None:
    assert parse('agent:bea "is: cold" kiln', NOW, keys=False) == Query(
        (Phrase(("agent", "bea")), Phrase(("is", "cold")), Word("kiln"))
    )


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("agnet:bea", "did you mean agent:?"),
        ("kiln:hot", "is no key of a query"),
        ("reason:uncoverd", "did you mean uncovered?"),
        ("is:snozed", "did you mean snoozed?"),
        ("before:soon", "is no time"),
        ("after:2026-13-01", "is no time"),
        ("agent: bea", "needs a value"),
        ('agent:""', "needs a value"),
        ('a "b', "never closed"),
        ("x" * 501, "at most 500"),
        (" ".join("abcdefghijklmnopqrstu"), "at most 20 terms"),
        ("a\x00b", "NUL"),
        ("agent:\ud800", "half of one"),
    ],
)
def test_what_cannot_be_understood_is_told(typed: str, says: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse(typed, NOW)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("typed", "text", "found"),
    [
        ("returned bowl", "Three bowls were returned in May.", True),
        ("bowls return", "The bowl was returned.", True),
        ("carry", "She carried both; he carries none.", True),
        ("art", "They start at nine.", False),
        ('"were returned"', "Bowls Were, returned!", True),
        ('"returned were"', "Bowls were returned.", False),
        ("café", "The CAFÉ opens.", True),
        ("organised", "We organize it.", True),
        ("timeout_ms", "Set timeout_ms to 5.", True),
        ("窯", "陶窯が熱い", True),
    ],
)
def test_words_are_found_in_all_their_forms(typed: str, text: str, found: bool) -> None:
    assert text_test(parse(typed, NOW).texts)(text) is found


@given(
    st.lists(st.text("abcdefgilmnorstuvyzéK", min_size=1, max_size=9), min_size=1, max_size=4),
    st.lists(
        st.sampled_from(["s", "ed", "ing", "ies", "ation", "er", "ly", "ment", ""]), min_size=4, max_size=4
    ),
)
def test_what_the_database_leaves_out_would_not_have_passed(words: list[str], endings: list[str]) -> None:
    """A text with other forms of the words passes the test only if it has every part that the database asks for."""
    terms = parse(" ".join(words), NOW).texts
    text = " ".join(word + ending for word, ending in zip(words, endings, strict=False)).title()
    if text_test(terms)(text):
        for part in needed_parts(terms):
            assert part in text.lower()


@given(st.text(max_size=120))
def test_any_text_is_a_query_or_an_error_in_words(typed: str) -> None:
    try:
        parse(typed, NOW)
    except QueryError as error:
        assert str(error).endswith(".")
