"""Hostile text as pieces: marks at the right characters, and nothing that cannot be seen goes by unnamed."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vouchgate.review.pages.wording.text import (
    MOST_TAGS,
    UNSEEN,
    MarkedSpan,
    Piece,
    Pieces,
    opening_pieces,
    pieces,
    plain_line,
)


def tags(text: str) -> list[tuple[str, str]]:
    return [(piece.text, piece.note) for piece in pieces(text) if UNSEEN in piece.marks]


def shown(found: Pieces) -> str:
    return "".join(piece.text for piece in found if UNSEEN not in piece.marks)


# --- characters that nobody would see


@pytest.mark.parametrize(
    ("character", "name"),
    [
        ("\u202a", "LEFT-TO-RIGHT EMBEDDING"),
        ("\u202b", "RIGHT-TO-LEFT EMBEDDING"),
        ("\u202c", "POP DIRECTIONAL FORMATTING"),
        ("\u202d", "LEFT-TO-RIGHT OVERRIDE"),
        ("\u202e", "RIGHT-TO-LEFT OVERRIDE"),
        ("\u2066", "LEFT-TO-RIGHT ISOLATE"),
        ("\u2069", "POP DIRECTIONAL ISOLATE"),
        ("\u200e", "LEFT-TO-RIGHT MARK"),
        ("\u200f", "RIGHT-TO-LEFT MARK"),
        ("\u061c", "ARABIC LETTER MARK"),
        ("\u200b", "ZERO WIDTH SPACE"),
        ("\u200c", "ZERO WIDTH NON-JOINER"),
        ("\u200d", "ZERO WIDTH JOINER"),
        ("\u2060", "WORD JOINER"),
        ("\ufeff", "ZERO WIDTH NO-BREAK SPACE"),
        ("\u00ad", "SOFT HYPHEN"),
        ("\u034f", "COMBINING GRAPHEME JOINER"),
        ("\u3164", "HANGUL FILLER"),
        ("\u2800", "BRAILLE PATTERN BLANK"),
        ("\u2028", "LINE SEPARATOR"),
        ("\u2029", "PARAGRAPH SEPARATOR"),
        ("\ufe0f", "VARIATION SELECTOR-16"),
        ("\U000e0101", "VARIATION SELECTOR-18"),
        ("\U000e0041", "TAG LATIN CAPITAL LETTER A"),
        ("\x00", "NULL"),
        ("\x1b", "ESCAPE"),
        ("\x01", "CONTROL CHARACTER"),
        ("\x7f", "DELETE"),
        ("\x85", "NEXT LINE"),
        ("\x9f", "CONTROL CHARACTER"),
        ("\r", "CARRIAGE RETURN"),
        ("\ud800", "LONE SURROGATE"),
        ("\ue000", "PRIVATE USE CHARACTER"),
        ("\U000f0000", "PRIVATE USE CHARACTER"),
        ("\ufdd0", "NONCHARACTER"),
        ("\uffff", "NONCHARACTER"),
        ("\U0010fffe", "NONCHARACTER"),
    ],
)
def test_what_cannot_be_seen_is_named(character: str, name: str) -> None:
    code = f"U+{ord(character):04X}"
    assert pieces(f"a{character}b") == (
        Piece("a"),
        Piece(code, frozenset({UNSEEN}), name),
        Piece("b"),
    )
    assert plain_line(f"a{character}b", 40) == f"a⟨{code}⟩b"
    assert tags(character * 40) == [(f"{code} × 40", name)]


@pytest.mark.parametrize(
    "text",
    [
        "plain words\n\twith a tab",
        "a line\r\nand another",
        "café cafe\u0301 Ελλάδα Привет",
        "שלום עולם",
        "العربية ١٢٣ \u0600",
        "می\u200cخواهم",  # Persian, with the joiner that its spelling has
        "क्\u200dष",
        "👩\u200d💻 ☺\ufe0f ❤\ufe0f\u200d🔥 1\ufe0f\u20e3 ©\ufe0f 👍🏽",
        "日本語 設定 한국어",
        "a\u00a0b\u2003c",
        "Z̧̀́̂ four marks",
        "\ufffd",
    ],
)
def test_real_writing_is_left_alone(text: str) -> None:
    assert pieces(text) == (Piece(text),)


@pytest.mark.parametrize(
    "text", ["a\u200db", "\u200d", "می\u200c", "日\u200d本", "💻\u200d", "1\ufe0fa", "a\u200cb"]
)
def test_a_joiner_where_no_writing_has_one_is_named(text: str) -> None:
    assert len(tags(text)) == 1


def test_marks_that_pile_up_are_folded() -> None:
    zalgo = "e" + "\u0301" * 30 + "x" + "".join(chr(0x300 + n) for n in range(40))
    assert [(piece.text, UNSEEN in piece.marks) for piece in pieces(zalgo)] == [
        ("e\u0301\u0301\u0301\u0301", False),
        ("U+0301 × 26", True),
        ("x\u0300\u0301\u0302\u0303", False),
        ("U+0304 and 35 others × 36", True),
    ]
    # A mark with no letter to sit on would sit on whatever the page has before the text.
    for text in ("\u0301a", "a\n\u0301", "a\u200b\u0301"):
        assert ("U+0301", "COMBINING ACUTE ACCENT") in tags(text)


def test_stretches_of_many_different_ones_are_one_tag() -> None:
    smuggled = "".join(chr(0xE0061 + n % 20) for n in range(100))
    assert tags(f"a{smuggled}b") == [
        (
            "U+E0061 and 19 others × 100",
            "TAG LATIN SMALL LETTER A, TAG LATIN SMALL LETTER B, TAG LATIN SMALL LETTER C, …",
        )
    ]
    assert tags("\u202e\u2066\u2066\u200b") == [
        ("U+202E", "RIGHT-TO-LEFT OVERRIDE"),
        ("U+2066 × 2", "LEFT-TO-RIGHT ISOLATE"),
        ("U+200B", "ZERO WIDTH SPACE"),
    ]


def test_a_text_full_of_them_ends_with_how_many_are_left_out() -> None:
    found = pieces("a\u200b" * 4096)
    assert sum(UNSEEN in piece.marks for piece in found) == MOST_TAGS + 1
    assert found[-1].text == f"and {4096 - MOST_TAGS:,} more"
    assert shown(found) == "a" * 4096


# --- marks


def test_marks_are_at_their_characters_and_overlap() -> None:
    text = "😀 about 40 😀 units"
    found = pieces(text, [MarkedSpan(2, 10, "hedge", "rough"), MarkedSpan(8, 10, "changed", "was 50")])
    assert found == (
        Piece("😀 "),
        Piece("about ", frozenset({"hedge"}), "rough"),
        Piece("40", frozenset({"hedge", "changed"}), "rough; was 50"),
        Piece(" 😀 units"),
    )


def test_a_tag_within_a_mark_has_it_and_is_never_split() -> None:
    found = pieces("ab\u200b\u200b\u200bcd", [MarkedSpan(0, 3, "hedge", "n"), MarkedSpan(4, 6, "citation")])
    assert found == (
        Piece("ab", frozenset({"hedge"}), "n"),
        Piece("U+200B × 3", frozenset({"hedge", "citation", UNSEEN}), "ZERO WIDTH SPACE"),
        Piece("c", frozenset({"citation"})),
        Piece("d"),
    )


def test_spans_beyond_the_text_are_cut_and_empty_ones_say_nothing() -> None:
    spans = [
        MarkedSpan(-5, 1, "hedge"),
        MarkedSpan(2, 99, "citation"),
        MarkedSpan(1, 1, "changed"),
        MarkedSpan(9, 3, "changed"),
    ]
    assert [(piece.text, set(piece.marks)) for piece in pieces("abc", spans)] == [
        ("a", {"hedge"}),
        ("b", set()),
        ("c", {"citation"}),
    ]
    assert pieces("", [MarkedSpan(0, 9, "hedge")]) == ()


def test_the_same_mark_twice_is_one() -> None:
    twice = [MarkedSpan(0, 3, "hedge", "n"), MarkedSpan(1, 2, "hedge", "n")]
    assert pieces("abcd", twice) == (Piece("abc", frozenset({"hedge"}), "n"), Piece("d"))


# --- one line


def test_plain_is_one_line_cut_between_names() -> None:
    assert plain_line("  a\n\n b\tc ", 40) == "a b c"
    assert plain_line("abcdef", 6) == "abcdef"
    assert plain_line("abcdefg", 6) == "abcde…"
    assert plain_line("abc\u202edefgh", 8) == "abc…"
    assert plain_line("\u202e", 3) == "…"
    assert plain_line("", 10) == ""


def test_of_a_long_text_a_line_and_a_list_hold_the_beginning() -> None:
    assert plain_line("\n" * 9000 + "a" + " " * 9000 + "b", 40) == "a…"
    assert plain_line("a" * 9000, 40) == "a" * 39 + "…"
    assert plain_line("ab" + "\u200b" * 9000, 40).startswith("ab⟨U+200B × ")
    assert opening_pieces("a\u202eb" * 10) == pieces("a\u202eb" * 10)
    assert opening_pieces("a" * 9000) == (Piece("a" * 600), Piece(" …"))
    hidden = opening_pieces("a\u200b" * 4000)
    assert sum(UNSEEN in piece.marks for piece in hidden) == 41
    assert [piece.text for piece in hidden[-3:]] == ["a" * 260, "and 260 more", " …"]


# --- any text

ANY = st.text(st.characters(), max_size=80) | st.text(
    st.sampled_from("ab \n\r\t\u200b\u200d\u202e\ufe0f\u0301\u0302😀☺א\ud800\x00\ue0001\u20e3می"), max_size=80
)
SPANS = st.lists(
    st.builds(
        MarkedSpan, st.integers(-3, 90), st.integers(-3, 90), st.sampled_from(["hedge", "citation"]), ANY
    ),
    max_size=8,
)
MAY_STAY = frozenset(
    "\n\t\r\u200c\u200d\ufe0e\ufe0f\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2"
)


@given(ANY, SPANS)
def test_pieces_are_the_text_without_what_cannot_be_seen(text: str, spans: list[MarkedSpan]) -> None:
    found = pieces(text, spans)
    assert all(piece.text for piece in found)
    rest = shown(found)
    at = 0  # what is shown are characters of the text, in order
    for character in rest:
        at = text.index(character, at) + 1
    left_out = len(text) - len(rest)
    assert left_out == sum(_counted(piece.text) for piece in found if UNSEEN in piece.marks)
    for character in rest:
        category = unicodedata.category(character)
        assert category not in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp") or character in MAY_STAY
    for character in text:  # and nothing else is left out
        if unicodedata.category(character)[0] in "LNPZ" and character.isprintable() and character.strip():
            assert character in rest or character in "\u115f\u1160\u3164\uffa0"


def _counted(tag: str) -> int:
    return int(tag.rpartition("× ")[2]) if "×" in tag else 1


@given(ANY, SPANS)
def test_a_character_has_the_marks_of_the_spans_that_cover_it(text: str, spans: list[MarkedSpan]) -> None:
    at = 0
    hidden = {piece.text for piece in pieces(text) if UNSEEN in piece.marks}
    for piece in pieces(text, spans):
        if UNSEEN in piece.marks:
            assert piece.text in hidden
            at += _counted(piece.text)
            continue
        assert text[at : at + len(piece.text)] == piece.text
        for place in range(at, at + len(piece.text)):
            covering = {span.kind for span in spans if max(span.start, 0) <= place < min(span.end, len(text))}
            assert piece.marks == covering
        at += len(piece.text)
    assert at == len(text)


@given(ANY, st.integers(1, 40))
def test_plain_is_short_and_holds_nothing_unseen(text: str, most: int) -> None:
    line = plain_line(text, most)
    assert len(line) <= most
    assert line == " ".join(line.split())
    for character in line:
        category = unicodedata.category(character)
        assert category not in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp") or character in MAY_STAY
