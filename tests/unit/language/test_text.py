"""Normalising: what is seen through, what stays, and the way back to the text as sent."""

from __future__ import annotations

import tomllib
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vouchgate.ingest.language.normalise import fold, normalise

ANY_TEXT = st.text(alphabet=st.characters(), max_size=200)  # lone surrogates included
MARKUP = st.text(alphabet="ab I'think>#/*_~`<&;=-\n\r\u200b\u0301\u00ad\u0456\uff29", max_size=120)


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ("Plain words, and a comma.", "Plain words, and a comma."),
        ("I\u200b th\u200dink\ufeff", "I think"),
        ("may\u00adbe", "maybe"),
        ("\u202eI\u202c \u2066think\u2069", "I think"),
        ("\u0406 th\u0456nk", "I think"),  # Cyrillic
        ("m\u03b1ybe", "maybe"),  # Greek
        ("\u13a5 \u1d1bh\u026an\u1d0b", "i think"),  # Cherokee, small capitals
        ("\uff29\u3000\uff54\uff48\uff49\uff4e\uff4b", "I think"),
        ("\U0001d408 \U0001d4fd\U0001d4f1\U0001d4f2\U0001d4f7\U0001d4f4", "I think"),
        ("\U0001d456 \U0001d461\U0001d455\U0001d456\U0001d45b\U0001d458", "i think"),  # with a hole for the h
        ("\U0001f178 \u24e3\u24d7\u24d8\u24dd\u24da", "I think"),
        ("t\u0336h\u0336i\u0336n\u0336k\u0336", "think"),
        ("p\u00e9rh\u00e0ps", "perhaps"),
        ("I\u00a0think\u2009so\u202f", "I think so "),
        ("I\u2800think", "I think"),
        ("don\u2019t don\u02bct don\u2032t don`t don\u00b4t", "don't don't don't don't don't"),
        ("\u201cmaybe\u201d \u00abso\u00bb", '"maybe" "so"'),
        ("I&nbsp;think", "I think"),
        ("&#73; th&#x69;nk", "I think"),
        ("I&amp;nbsp;think", "I think"),
        ("don&rsquo;t", "don't"),
        ("&zwnj;may&shy;be", "maybe"),
        ("&notanentity; & so", "&notanentity; & so"),
        ("I <b>think</b> <em class='x'>so</em>", "I think so"),
        ("may<wbr>be <!-- not --> so", "maybe  so"),
        ("I<br/>think", "I\nthink"),
        ("the <path> of <code>x</code>", "the <path> of `x`"),
        ("*I* **think** ***so***", "I think so"),
        ("_maybe_ __so__ ~~not~~ ==yes==", "maybe so not yes"),
        ("m**ay**be", "maybe"),
        ("_maybe a_b __init", "_maybe a_b __init"),
        ("~10 and HEAD~1 and ~/bin", "~10 and HEAD~1 and ~/bin"),
        ("> I\n> think", "I\nthink"),
        ("# I\n# think", "I\nthink"),
        ("// I\n// think", "I\nthink"),
        ("/*\n * I\n * think", "\nI\nthink"),
        (">> I\n> > think", "I\nthink"),
        ("-- I\n-- think", "I\nthink"),
        ("; I\n; think", "I\nthink"),
        ("#12 is open\n#13 is not", "#12 is open\n#13 is not"),
        ("--all\n--none", "--all\n--none"),
        ("a\n- b", "a\n\nb"),
        ("I\r\nthink\u2028so\x85not\x0bnow", "I\nthink\nso\nnot\nnow"),
        ("nul\x00and\x07bell", "nulandbell"),
        ("I\U0001f4adthink", "I think"),
        ("\ud800I\udfff", " I "),
        ("\ud55c\uad6d\uc5b4 \u65e5\u672c\u8a9e", "\ud55c\uad6d\uc5b4 \u65e5\u672c\u8a9e"),
        ("", ""),
    ],
)
def test_what_is_read(sent: str, read: str) -> None:
    assert normalise(sent).text == read


@pytest.mark.parametrize(
    ("sent", "word", "as_sent"),
    [
        ("so I\u200b th\u0456nk it", "I think", "I\u200b th\u0456nk"),
        ("so &#73;&nbsp;think it", "I think", "&#73;&nbsp;think"),
        ("so *I* **think** it", "I think", "I* **think"),
        ("so I\n> think it", "I\nthink", "I\n> think"),
        ("so <b>may</b>be it", "maybe", "may</b>be"),
        ("a \ufb01ne day", "fine", "\ufb01ne"),
        ("a \ufb01ne day", "ine", "\ufb01ne"),
        ("t\u0301\u0301 x", "t", "t"),
        ("\u200bx", "x", "x"),
        ("I&amp;nbsp;think", " ", "&amp;nbsp;"),
        ("\u22121 caf\u00e9", "cafe", "caf\u00e9"),
    ],
)
def test_spans_lead_back(sent: str, word: str, as_sent: str) -> None:
    read = normalise(sent)
    at = read.text.index(word)
    start, end = read.span(at, at + len(word))
    assert sent[start:end] == as_sent


@given(ANY_TEXT | MARKUP, st.data())
def test_any_text_is_read_and_every_span_lies_in_it(sent: str, data: st.DataObject) -> None:
    read = normalise(sent)
    start = data.draw(st.integers(0, len(read.text)))
    end = data.draw(st.integers(start, len(read.text)))
    first, last = read.span(start, end)
    assert 0 <= first <= last <= len(sent)
    if start < end:
        assert first < last
        assert first <= read.span(start, start + 1)[0]
        assert read.span(end - 1, end)[1] == last
    else:
        assert first == last


@given(ANY_TEXT | MARKUP)
def test_characters_are_read_once_and_for_all(sent: str) -> None:
    once = "".join(map(fold, sent))
    assert "".join(map(fold, once)) == once


@given(
    st.text(alphabet="ab'.,I think-1", max_size=80).filter(
        lambda text: not text.lstrip().startswith(("-", "'"))
    )
)
def test_plain_text_is_left_alone(sent: str) -> None:
    read = normalise(sent)
    assert read.text == sent
    assert read.span(0, len(sent)) == (0, len(sent))


@given(MARKUP.filter(lambda text: not set("&<\r") & set(text)), st.data())
def test_a_zero_width_character_changes_nothing(sent: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(sent)))
    hidden = data.draw(st.sampled_from("\u200b\u200c\u200d\u2060\ufeff\u00ad\u034f\ufe0f"))
    assert normalise(sent[:at] + hidden + sent[at:]).text == normalise(sent).text


def test_every_look_alike_stands_in_one_group_and_reads_as_ascii() -> None:
    raw = tomllib.loads(
        resources.files("vouchgate.ingest.data").joinpath("lookalikes.toml").read_text("utf-8")
    )
    seen: dict[str, str] = {}
    for group, readings in raw.items():
        for reading, characters in readings.items():
            assert reading.isascii() or reading == "\u2014", (group, reading)
            for character in characters:
                assert not character.isascii(), (group, reading, character)
                assert character not in seen, (group, character, seen[character])
                seen[character] = group
    assert len(seen) > 600
