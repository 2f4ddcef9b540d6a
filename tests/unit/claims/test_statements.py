"""A claim is cut into what can be true or false by itself, and nothing of it is lost between the pieces."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.running.hangs import given_up_after
from vouchgate.ingest.claims.statements import MOST, statements

# What may stand between two statements: the words that join them, and marks.
JOINTS = frozenset(
    [
        *("and", "but", "or", "so", "which", "while", "whereas", "because", "since", "although", "though"),
        *("meaning", "whose", "where", "with"),
    ]
)
WORD = re.compile(r"\w+")


def cut(text: str) -> list[str]:
    return [text[each.start : each.end] for each in statements(text)]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("The gate opens at nine. It closes at six.", ["The gate opens at nine.", "It closes at six."]),
        (
            "- The queue has five workers\n- The cache has none\n- Logs go to disk",
            ["- The queue has five workers", "- The cache has none", "- Logs go to disk"],
        ),
        (
            "The relay keeps mail for 3 days, and it drops spam at once.",
            ["The relay keeps mail for 3 days", "it drops spam at once."],
        ),
        (
            "The job runs hourly and it never waits for the lock.",
            ["The job runs hourly", "it never waits for the lock."],
        ),
        (
            "The cache is emptied nightly, which means that reports are slow at six.",
            ["The cache is emptied nightly", "means that reports are slow at six."],
        ),
        (
            "Builds run on Linux; releases are cut by hand.",
            ["Builds run on Linux", "releases are cut by hand."],
        ),
        (
            "The port is 8080 - the old one was closed last year.",
            ["The port is 8080", "the old one was closed last year."],
        ),
        *(
            (
                f"The port is 8080{sign}the old one was closed.",
                ["The port is 8080", "the old one was closed."],
            )
            for sign in ("\u2014", "\u2015", "---", " \u00b7 ", " \u2022 ", "\t", "\u2026 ", " // ", "\uff1b")
        ),
        (
            "Every job waits for its turn--nobody is asked.",
            ["Every job waits for its turn", "nobody is asked."],
        ),
        ("The gate opens at nine. it closes at six.", ["The gate opens at nine", "it closes at six."]),
        (
            "The night gate (which nobody watches at all) opens at nine.",
            ["The night gate", "which nobody watches at all", "opens at nine."],
        ),
    ],
)
def test_what_can_be_true_or_false_by_itself_is_a_statement(text: str, pieces: list[str]) -> None:
    assert cut(text) == pieces


@pytest.mark.parametrize(
    "text",
    [
        "Tea, coffee and cake are free of charge.",  # a list of single words
        "Tea is free, and cake too.",  # too few words to be a clause
        "He waited and did nothing.",
        "The queue has one flaw: jobs that fail come twice.",
        "It takes 3.5 ms, e.g. on a laptop.",  # the dots of a number and of an abbreviation
        "The well-known end-to-end test is slow.",  # hyphens within words
        "The office is open 9–17 on Monday–Friday for all of them.",  # a range
        "The build takes the flag --no-cache from the file.",
        "All jobs run at night because the day belongs to people.",
    ],
)
def test_what_belongs_together_is_one_statement(text: str) -> None:
    (only,) = statements(text)
    assert (only.start, only.end) == (0, len(text))
    assert only.whole


def test_a_clause_knows_its_sentence_which_has_its_subject() -> None:
    text = "Yes. The relay keeps mail for 3 days, and drops spam, but never the mail of the owner."
    first, *clauses = statements(text)
    assert first.whole
    assert len(clauses) > 1
    for clause in clauses:
        assert clause.sentence == (5, len(text))
        assert not clause.whole


@pytest.mark.parametrize("text", ["", " \n\t ", "\ufeff"])
def test_an_empty_text_states_nothing_that_has_words(text: str) -> None:
    assert not any(WORD.search(piece) for piece in cut(text))


texts = st.lists(
    st.sampled_from(
        [
            *("the", "relay", "never", "keeps", "3.5", "days", "which", "and", "but", "with", "not", "every"),
            *(",", ";", "-", "–", "(", ")", ":", ".", "\n", "\n- ", "`", "a1b2c3d"),
        ]
    ),
    max_size=60,
).map(" ".join)


@given(texts | st.text(max_size=300))
def test_no_word_is_lost_between_statements(text: str) -> None:
    at = 0
    for each in statements(text):
        assert at <= each.start <= each.end <= len(text)
        assert set(WORD.findall(text[at : each.start].lower())) <= JOINTS
        assert each.sentence[0] <= each.start <= each.end <= each.sentence[1]
        at = each.end
    assert set(WORD.findall(text[at:].lower())) <= JOINTS


@pytest.mark.parametrize(
    "piece", ["the relay sleeps now; ", ", and it is", "- one two three\n", "((((", "- ", "word "]
)
def test_a_text_of_many_clauses_has_a_bounded_number_and_none_is_left_out(piece: str) -> None:
    text = piece * 20_000
    with given_up_after(6):
        found = statements(text)
    assert len(found) <= MOST + 1
    assert found[-1].end >= len(text.rstrip())
