"""Documents that are made to be slow, deep or endless are read in time that grows with their length."""

from __future__ import annotations

import pytest

from tests.running.hangs import given_up_after
from vouchgate.ingest.documents import Unreadable, read_document

SIZE = 25_000  # characters: a moment when each is read once, half a minute when each is read for each other


@pytest.mark.parametrize(
    "piece",
    [
        "[",
        "![",
        "[[]",
        "[a](",
        '[a](b "',
        "[a][",
        "[^1] ",
        "<",
        "<a b='",
        "<!-- ",
        "<![CDATA[",
        "*a ",
        "_a",
        "`a ``b ",
        "|",
        "| a | b |\n|---|---|\n",
        "&amp",
        "\\",
        "- a\n  > ",
        "> " * 200 + "a\n",
        "<div><ul><li>",
        "://\n",
        "1. a. ",
        "• a ",
        "a (b [c] ",
    ],
)
def test_a_piece_without_end(piece: str) -> None:
    text = piece * (SIZE // len(piece))
    with given_up_after(2):
        document = read_document("page.md", text.encode())
    assert "".join(document.text[block.start : block.end] for block in document.blocks) == text


@pytest.mark.parametrize(
    "text",
    [
        "[" * SIZE + "](a)" * SIZE,
        "[" * SIZE + "[a](b)" * (SIZE // 4),
        "".join("a" + "`" * length for length in range(1, 225)),
        "".join(f"[^{number}]: see [^{number + 1}]\n" for number in range(2_500)),
        "".join(f"Hot.[^{number}]\n\n[^{number}]: https://oven.example/a\n\n" for number in range(1_000)),
        "<a " + "b " * SIZE,
        "a" * SIZE + " " * SIZE + "b",
        "https://oven.example/" + "(" * SIZE,
        "Hot.[^1]\n\n[^1]: " + "It changed. " * (SIZE // 12),
        "(" + "[in 1](b) " * (SIZE // 10) + ")",
    ],
    ids=[
        *("pairs", "opened", "ticks", "a ring of notes", "notes", "attributes", "one line", "an address"),
        *("sentences of a note", "values in brackets"),
    ],
)
def test_a_text_that_nests_or_goes_on(text: str) -> None:
    with given_up_after(2):
        document = read_document("page.md", text.encode())
    assert "".join(document.text[block.start : block.end] for block in document.blocks) == text


def test_a_range_of_numbers_without_entries_is_one_reference() -> None:
    document = read_document("page.md", b"The kiln is hot [1-9999].\n")
    assert [(one.target, one.dangling) for one in document.references] == [("[1-9999]", True)]


def test_notes_that_multiply_are_refused_with_a_sentence() -> None:
    sources = " ".join(f"https://oven.example/{number}" for number in range(2_000))
    with pytest.raises(Unreadable, match="its notes and numbers stand for more than 200000 sources"):
        read_document("page.md", ("Hot.[^1] " * 2_000 + f"\n\n[^1]: {sources}\n").encode())
