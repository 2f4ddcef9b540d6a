"""Sentences, and the passages of a long text that bear on a claim."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.running.hangs import given_up_after
from vouchgate.ingest.citations import detect_citations
from vouchgate.ingest.claims.bounds import TEXT_CHARACTERS
from vouchgate.ingest.claims.source import EXCERPT_CHARACTERS
from vouchgate.ingest.language.sentences import LONGEST, sentences
from vouchgate.ingest.support.passages import GAP, passages

# A page of many small sections, none of which speaks of what the claims below do.
_TOPICS = ("harbour", "orchard", "violin", "glacier", "bakery", "loom", "quarry", "stable", "meadow", "kiln")
_FILLER = [
    f"The {topic} of district {number} was measured twice. Its keeper wrote the result into a ledger."
    for number in range(100, 160)
    for topic in _TOPICS
]


def _page(*inserted: tuple[int, str]) -> str:
    lines = list(_FILLER)
    for at, line in inserted:
        lines.insert(at, line)
    return "\n".join(lines)


def _shown(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences(text)]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("It holds. It broke!  Did it?", ["It holds.", "It broke!", "Did it?"]),
        (
            "Since v1.8.2 it holds, e.g. for U.S. users. Fine.",
            ["Since v1.8.2 it holds, e.g. for U.S. users.", "Fine."],
        ),
        (
            "It went from yes to no. Later, ticket no. 5 brought it back.",
            ["It went from yes to no.", "Later, ticket no. 5 brought it back."],
        ),
        ("Dr. A. Smith wrote it.", ["Dr. A. Smith wrote it."]),
        ("Heading\nIt holds.", ["Heading", "It holds."]),
        ("- one\n- two\n- three", ["- one", "- two", "- three"]),
        ("| a | 1 |\n| b | 2 |", ["| a | 1 |", "| b | 2 |"]),
        ("It (really.) holds “so.” Then it broke.", ["It (really.) holds “so.”", "Then it broke."]),
        (
            "A line of a commit message that was wrapped by hand at about seventy\ncolumns goes on here.",
            ["A line of a commit message that was wrapped by hand at about seventy\ncolumns goes on here."],
        ),
        ("x = 1\nreturn x", ["x = 1", "return x"]),
        ("", []),
        (" \n\t\n ", []),
    ],
)
def test_a_text_is_cut_where_something_ends(text: str, shown: list[str]) -> None:
    assert _shown(text) == shown


@given(st.text(alphabet=st.sampled_from("aB .!?\n-|#\"'(1。\u0301\ud800"), max_size=1500))
def test_sentences_lie_in_order_and_leave_out_only_white_space(text: str) -> None:
    spans = sentences(text)
    last = 0
    for start, end in spans:
        assert not text[last:start].strip()
        assert 0 < end - start <= LONGEST
        assert text[start:end] == text[start:end].strip()
        last = end
    assert not text[last:].strip()


def test_a_text_that_fits_is_taken_as_it_is() -> None:
    text = "  It holds.\n\nIt broke.  "
    assert passages("anything", (), "", text).text == text
    assert passages("anything", (), "", "").text == ""


def test_the_sentence_that_bears_on_the_claim_is_found_with_its_context() -> None:
    before, told, after = (
        "The archive has two shelves.",
        "Parcels are kept in the archive for 45 days.",
        "Then they go back to whoever sent them.",
    )
    page = _page((300, f"{before} {told} {after}"))
    excerpt = passages("Parcels stay in the archive for 30 days, see ADR-012", (), "Rules", page).text
    assert f"{before} {told} {after}" in excerpt
    assert len(excerpt) <= EXCERPT_CHARACTERS


def test_passages_stand_in_the_order_of_the_text_with_a_gap_between() -> None:
    page = _page((50, "The archive opens at nine."), (400, "Parcels are weighed in the archive."))
    excerpt = passages("The archive opens at nine and weighs parcels", (), "", page).text
    first, second = excerpt.index("opens at nine"), excerpt.index("are weighed")
    assert first < second
    assert GAP in excerpt[first:second]


def test_what_is_looked_for_is_what_the_claim_says_of_this_source() -> None:
    claim = "Parcels wait 45 days, see ADR-012. Letters leave at noon (#77)."
    page = _page((100, "A letter leaves at noon."), (400, "A parcel waits for 45 days."))
    adr, issue = detect_citations(claim)
    assert "A parcel waits" in passages(claim, (adr,), "", page).text
    assert "A parcel waits" not in passages(claim, (issue,), "", page).text
    assert "A letter leaves" in passages(claim, (issue,), "", page).text


def test_identifiers_are_found_by_their_parts_and_by_their_whole() -> None:
    page = _page((200, "Set maxIdleStreams to raise the limit."), (400, "The `idle_limit` counts streams."))
    excerpt = passages("max-idle-streams was replaced by idle-limit", (), "", page).text
    assert "maxIdleStreams" in excerpt
    assert "idle_limit" in excerpt


@pytest.mark.parametrize("claim", ["See ADR-012.", "Nobody zxqv wrthl", ""])
def test_without_a_word_to_look_for_the_beginning_is_taken(claim: str) -> None:
    page = _page()
    excerpt = passages(claim, (), "", page).text
    assert page.startswith(excerpt)
    assert EXCERPT_CHARACTERS - LONGEST < len(excerpt) <= EXCERPT_CHARACTERS


@settings(max_examples=50)
@given(
    st.lists(
        st.sampled_from([*_FILLER[:20], "Parcels wait.\n", "| x | 45 |\n", "\n\n", "é. ", "漢字。"]),
        min_size=40,
    ),
    st.sampled_from(["Parcels wait 45 days", "the violin of district 100", "漢字"]),
)
def test_an_excerpt_is_whole_sentences_and_every_place_leads_back(pieces: list[str], claim: str) -> None:
    text = " ".join(pieces) * 3
    excerpt = passages(claim, (), "", text)
    assert len(excerpt.text) <= EXCERPT_CHARACTERS
    if excerpt.text == text:
        return
    whole = {text[start:end] for start, end in sentences(text)}
    for begin, source, length in excerpt.stretches:
        assert excerpt.text[begin : begin + length] in whole
        assert excerpt.origin(begin, begin + length) == (source, source + length)
        assert excerpt.text[begin : begin + length] == text[source : source + length]


@pytest.mark.parametrize(
    "piece",
    [
        "word ",
        ".",
        "A. ",
        '."',
        "\n",
        "\n \n",
        "a-",
        "aB",
        "1,",
        "see ADR-1 and ",
        "([ ",
        "\u0301",
        "漢字。",
        "\ud800",
        "'s",
    ],
)
def test_time_grows_with_the_text_and_no_faster(piece: str) -> None:
    """A text half as long as any that is kept: a quadratic way would take a minute for it."""
    text = (piece * TEXT_CHARACTERS)[: TEXT_CHARACTERS // 2]
    with given_up_after(2):
        passages(text[:8192], (), "title", text)
