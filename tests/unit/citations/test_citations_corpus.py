"""Documents of corpora, as they are written."""

from __future__ import annotations

import pytest

from tests.running.hangs import given_up_after
from vouchgate.ingest.citations import detect_citations, given_citation, parse_citation
from vouchgate.ingest.citations.kinds.corpus import is_path, key_of, parse_key


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Leave is 27 days (corpus:handbook/policies/leave.md).", "corpus:handbook/policies/leave.md"),
        ("See corpus:handbook/leave.HTML.", "corpus:handbook/leave.HTML"),
        ("corpus:hand-book_2/a.b.md's first part", "corpus:hand-book_2/a.b.md"),
        ("corpus:handbook/grüße.txt, again", "corpus:handbook/grüße.txt"),
    ],
)
def test_a_document(text: str, value: str) -> None:
    (found,) = detect_citations(text)
    assert (found.type, found.value, found.key) == ("corpus", value, value)
    assert text[found.start : found.end] == value
    assert parse_citation(value).key == given_citation("corpus", value.partition(":")[2]).key == value


@pytest.mark.parametrize(
    "text",
    [
        "The corpus: handbook/leave", "corpus:handbook", "corpus:handbook/leave.pdf", "xcorpus:handbook/a.md",
        "corpus:handbook/.git/a.md", "corpus:Handbook/a.md.bak",
    ],
)  # fmt: skip
def test_not_a_document(text: str) -> None:
    assert [each for each in detect_citations(text) if each.type == "corpus"] == []


@pytest.mark.parametrize(
    "path",
    [
        "../a.md", "a/../b.md", "a//b.md", "./a.md", "/etc/a.md", ".hidden/a.md", "a\nb.md", " a.md", "a\\b.md",
        "a/b", "\ud800.md", "x" * 600 + ".md",
    ],
)  # fmt: skip
def test_a_path_that_leaves_the_corpus_or_cannot_be_told_is_refused(path: str) -> None:
    assert not is_path(path)
    assert parse_key(f"corpus:handbook/{path}") is None
    with pytest.raises(ValueError, match="not one corpus citation"):
        given_citation("corpus", f"handbook/{path}")


def test_a_name_with_a_sign_that_is_read_as_another_cannot_be_cited() -> None:
    assert is_path("a–b.md") and not is_path("a\u2011b.md")


def test_a_name_with_spaces_is_given_beside_the_claim() -> None:
    key = given_citation("corpus", "handbook/Leave of absence.md").key
    assert key == key_of("handbook", "Leave of absence.md")
    assert parse_key(key) == ("handbook", "Leave of absence.md")


@pytest.mark.parametrize(
    "text", ["corpus:a/" * 20_000, "corpus:a/" + "b/" * 50_000, "corpus:a/" + "b." * 50_000]
)
def test_a_long_text_takes_no_long_time(text: str) -> None:
    with given_up_after(10):
        detect_citations(text)
