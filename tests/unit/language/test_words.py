"""What counts as a word, and which texts have the same ones."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.running.hangs import given_up_after
from vouchgate.ingest.language.words import split_words, tokens, word_list

ANY_TEXT = st.text(st.characters(), max_size=200)  # every code point, lone surrogates too
PLAIN_WORD = st.text("abcdefghijklmnopqrstuvwxyz0123456789_/<>=%$#+&|.-", min_size=1, max_size=12)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Redis keeps it.", ["redis", "keeps", "it"]),
        ("“Redis”, 'redis' `REDIS` «redis» „Redis“ ‹redis›", ["redis"] * 6),
        ("ＲＥＤＩＳ 𝐑𝐞𝐝𝐢𝐬 Re\u00addis \u200bredis\u2060 redis\ufe0f \x00redis", ["redis"] * 6),
        ("「東京」。 (東京) 東京、", list("東京" * 3)),
        ("تم؟ تم، हो।", ["تم", "تم", "हो"]),
        ("don't don’t don`t don´t DON'T", ["don't"] * 5),
        ("Straße STRASSE ﬁle file", ["strasse", "strasse", "file", "file"]),
        ("caf\u00e9 cafe\u0301", ["café", "café"]),
        # signs in front, and what else is no punctuation
        (
            "<5 >5 =5 !5 -5 +5 ~5 $5 %5 5% 5",
            ["<5", ">5", "=5", "!5", "-5", "+5", "~5", "$5", "%5", "5%", "5"],
        ),
        ("–5 −5 —5 ‐5", ["-5"] * 4),
        ("≤5 <=5 ≠5 !=5 ≥ >=", ["<=5", "<=5", "!=5", "!=5", ">=", ">="]),
        (".5 .env ../up", [".5", ".env", "../up"]),
        ("C++ C# foo() string[] []int --flag", ["c++", "c#", "foo", "string[", "]int", "--flag"]),
        # no digit is made of what is none
        ("10² 10₂ 10½ 10① m² 2ⁿ", ["10²", "10₂", "10½", "10①", "m²", "2ⁿ"]),
        ("１５ 15 𝟏𝟓", ["15", "15", "15"]),
        ("ﷺ", ["ﷺ"]),  # eighteen characters in normal form KC
        # what is no word
        ("a - b — c – d -- e", ["a", "b", "c", "d", "e"]),
        ("a—b a ... b … c …d ...e", ["a", "b", "a", "b", "c", "d", "e"]),
        ("* one • two ( ) !", ["one", "two"]),
        ("a\u00a0b\u2003c\u3000d\u2028e\x85f\tg\r\nh", list("abcdefgh")),
        # a text without words is one, itself
        ("...", ["..."]),
        ("…", ["..."]),
        (" !! !", ["!!!"]),
        ("\u200b", ["\u200b"]),
        ("", []),
        (" \n\u2003", []),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert word_list(text) == words
    assert tokens(text) == frozenset(words)


def test_texts_without_words_are_not_all_equal() -> None:
    texts = ["...", "!!!", "?", "-", "--", "()", "\u200b", "\u200c", "'", "\ud800", ""]
    assert len({tokens(text) for text in texts}) == len(texts)


@given(ANY_TEXT)
def test_any_text_has_words_and_none_raises(text: str) -> None:
    found = word_list(text)
    assert bool(found) is bool(text.strip())
    assert tokens(text) == frozenset(found)
    assert not any(not word or any(character.isspace() for character in word) for word in found)


@given(
    st.lists(PLAIN_WORD, min_size=1, max_size=20), st.sampled_from([" ", "\n", "\t\r\n ", "\u00a0", "\u2003"])
)
def test_white_space_case_and_quotes_do_not_matter(words: list[str], space: str) -> None:
    plain = split_words(" ".join(words))
    assert split_words(space.join(words)) == plain
    assert split_words(" ".join(words).upper()) == plain
    assert split_words(" ".join(f"“{word}”" for word in words)) == plain
    assert split_words(" ".join(f"({word})," for word in words)) == plain
    assert split_words(" ".join("\u200b".join(word) for word in words)) == plain


@given(st.text(st.characters(categories=["L", "M", "Nd", "Zs"]), max_size=60))
def test_canonical_forms_are_one_text(text: str) -> None:
    assert word_list(unicodedata.normalize("NFD", text)) == word_list(unicodedata.normalize("NFC", text))


@given(st.text(st.characters(codec="ascii"), max_size=80))
def test_the_short_way_for_ascii_is_the_long_way(text: str) -> None:
    """A character outside ASCII sends the whole text the long way."""
    assert split_words(text + " é") == [*split_words(text), "é"]


@given(ANY_TEXT)
def test_words_are_found_one_by_one_as_well(text: str) -> None:
    assert split_words(text) == [word for part in text.split() for word in split_words(part)]


@pytest.mark.parametrize(
    "unit",
    [
        "\u0301\u0323",
        "...",
        "... ",
        "'",
        "((",
        "²",
        "\ufdfa",
        "—",
        "\ud800",
        "각",
        "\u1100\u1161",
        "é ",
        "- ",
        "*a",
    ],
)
def test_time_is_linear_in_hostile_text(unit: str) -> None:
    """A text eight times as long as any that is taken: a quadratic way would take a minute for it."""
    size = 8 * 8192
    with given_up_after(2):
        word_list((unit * size)[:size])
