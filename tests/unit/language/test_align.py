"""Where a quotation stands in a text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.running.hangs import given_up_after
from vouchgate.ingest.language.align import MOST_QUOTED, MOST_SEARCHED, align, find

SOURCE = "Each  node\nkeeps \u201cits own\u201d log\u00ad for 30\u00a0days \u2013 port 8080, 10\u00b2 rows."
TEXTS = st.text(
    st.sampled_from([*'aB1 .\n"', "\u200b", "\u00a0", "\u201c", "\u0130", "\u00df", "\u00e9"]), max_size=60
)


@pytest.mark.parametrize(
    ("quote", "words"),
    [
        ("node keeps", "node\nkeeps"),
        ('KEEPS "its own" log', "keeps \u201cits own\u201d log"),
        ("log for 30 days - port", "log\u00ad for 30\u00a0days \u2013 port"),
        ("rows.", "rows."),
        ("  each ", "Each"),
    ],
)
def test_words_are_found_whatever_their_typography(quote: str, words: str) -> None:
    place = find(quote, SOURCE)
    assert place is not None
    assert SOURCE[slice(*place)] == words
    assert align(quote, SOURCE) == (*place, 1.0)


@pytest.mark.parametrize("quote", ["port 80", "eeps", "102 rows", "keeps own", "", " \n"])
def test_other_words_and_numbers_are_not_found(quote: str) -> None:
    assert find(quote, SOURCE) is None


def test_the_nearest_words_are_located_and_score_less_than_the_very_words() -> None:
    nearest = align("keeps it's own log for 30 day", SOURCE)
    assert nearest is not None
    assert 0.85 < nearest.score < 1
    assert SOURCE[nearest.start : nearest.end].startswith("keeps")
    far = align("the capital of a far country", SOURCE)
    assert far is None or far.score < 0.7


@given(TEXTS, TEXTS)
def test_places_lie_in_the_text_and_say_what_was_quoted(quote: str, text: str) -> None:
    place = find(quote, text)
    if place is not None:
        assert 0 <= place[0] < place[1] <= len(text)
        assert find(quote, text[slice(*place)]) is not None
    nearest = align(quote, text)
    if nearest is not None:
        assert 0 <= nearest.start < nearest.end <= len(text)
        assert (nearest.score == 1) is (place is not None)


@pytest.mark.parametrize("bit", ["a", "ab ", "a b", "\u200b", '"', " "])
def test_a_hostile_text_is_read_to_its_bounds(bit: str) -> None:
    with given_up_after(10):
        align((bit * MOST_QUOTED)[: MOST_QUOTED * 10] + "x", (bit * MOST_SEARCHED)[: MOST_SEARCHED * 10])
