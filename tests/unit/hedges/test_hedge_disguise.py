"""Hedge detection under disguise: whatever is done to the letters, spaces and marks, the hedge is still found."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.running.hangs import given_up_after
from tests.unit.hedges.hedge_sentences import CONTINUE, HEDGED, rows
from vouchgate.ingest.checks.hedge import HedgeDetector, action_of, judge
from vouchgate.ingest.claims.hedges import HedgeAction
from vouchgate.ingest.hedges.lexicon import load_lexicon

DETECTOR = HedgeDetector(load_lexicon())
RANK = {HedgeAction.CONTINUE: 0, HedgeAction.REVIEW: 1, HedgeAction.BLOCK: 2}


def action(text: str) -> HedgeAction:
    return action_of(DETECTOR.detect(text))


INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff\u00ad\u034f\u202e"
PREFIXES = ("> ", ">", ">> ", "> > ", "# ", "// ", "-- ", "; ", "% ", "    ", "")
BLANKS = "\t\u00a0\u2002\u2009\u200a\u202f\u205f\u3000\u2800\u2028"
APOSTROPHES = "\u2019\u2018\u02bc\u2032\u0060\u00b4\u02b9\uff07\u201b\ua78c\u02c8"
CYRILLIC = str.maketrans("aceiopsxyjkhmtABCEHIKMOPSTX", "асеіорѕхујкһмтАВСЕНІКМОРЅТХ")
GREEK = str.maketrans("aoivnuptkxewABEHIKMNOPTXYZ", "αοινηυρτκχεωΑΒΕΗΙΚΜΝΟΡΤΧΥΖ")
SMALL_CAPITALS = str.maketrans("abcdefghijklmnopqrstuvwyz", "ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘǫʀꜱᴛᴜᴠᴡʏᴢ")


def letters(change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: "".join(change(c) if c.isascii() and c.isalpha() else c for c in text)


def words(change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: " ".join(map(change, text.split(" ")))


def spaces(blank: str) -> Callable[[str], str]:
    return lambda text: text.replace(" ", blank)


def prefixed(prefix: str) -> Callable[[str], str]:
    return lambda text: prefix + text.replace(" ", f"\n{prefix}")


def apostrophes(mark: str) -> Callable[[str], str]:
    return lambda text: text.replace("'", mark)


def mathematical(upper: int, lower: int) -> Callable[[str], str]:
    return letters(lambda c: chr(upper + ord(c) - 65) if c.isupper() else chr(lower + ord(c) - 97))


OBFUSCATORS: dict[str, Callable[[str], str]] = {
    **{f"invisible {ord(c):04x}": c.join for c in INVISIBLE},
    "Cyrillic": lambda text: text.translate(CYRILLIC),
    "Greek": lambda text: text.translate(GREEK),
    "small capitals": lambda text: text.lower().translate(SMALL_CAPITALS),
    "full width": lambda text: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else "\u3000" for c in text),
    "bold": mathematical(0x1D400, 0x1D41A),
    "italic with holes": mathematical(0x1D434, 0x1D44E),
    "double-struck with holes": mathematical(0x1D538, 0x1D552),
    "circled": mathematical(0x24B6, 0x24D0),
    "squared": letters(lambda c: chr(0x1F170 + ord(c.upper()) - 65)),
    "parenthesised": letters(lambda c: chr(0x249C + ord(c.lower()) - 97)),
    "struck through": letters(lambda c: c + "\u0336"),
    "stacked marks": letters(lambda c: c + "\u0300\u0323\u0489"),
    "accents": lambda text: unicodedata.normalize("NFC", letters(lambda c: c + "\u0301")(text)),
    "decimal entities": letters(lambda c: f"&#{ord(c)};"),
    "hexadecimal entities": lambda text: "".join(f"&#x{ord(c):x};" for c in text),
    "space entities": spaces("&nbsp;"),
    "entities twice": spaces("&amp;#160;"),
    "bold tags": words(lambda word: f"<b>{word}</b>"),
    "tags within words": words(lambda word: f'<span style="x">{word[:1]}</span>{word[1:]}'),
    "breaks": spaces("<br>"),
    "comments": spaces(" <!-- so --> "),
    "stars": words(lambda word: f"*{word}*"),
    "two stars": words(lambda word: f"**{word}**"),
    "underscores": words(lambda word: f"_{word}_"),
    "two underscores": words(lambda word: f"__{word}__"),
    "tildes": words(lambda word: word if "~" in word else f"~~{word}~~"),
    "stars within words": words(lambda word: f"{word[:1]}**{word[1:]}**" if len(word) > 2 else word),
    **{f"prefix {prefix!r}": prefixed(prefix) for prefix in PREFIXES},
    "block comment": lambda text: "/*\n * " + text.replace(" ", "\n * ") + "\n */",
    "carriage returns": spaces("\r\n"),
    **{f"space {ord(c):04x}": spaces(c) for c in BLANKS},
    "two spaces": spaces("  "),
    **{f"apostrophe {ord(c):04x}": apostrophes(c) for c in APOSTROPHES},
    "capitals": str.upper,
    "small letters": str.lower,
    "swapped case": str.swapcase,
}  # fmt: skip


@pytest.mark.parametrize("family", OBFUSCATORS)
def test_no_disguise_lowers_the_action(family: str) -> None:
    disguise = OBFUSCATORS[family]
    for text in HEDGED:
        disguised = disguise(text)
        matches = DETECTOR.detect(disguised)
        assert RANK[action_of(matches)] >= RANK[action(text)], disguised
        for match in matches:
            assert disguised[match.start : match.end] == match.text


PLAIN_DISGUISES = [
    name for name in OBFUSCATORS if name.startswith(("space", "apostrophe", "bold tags", "stars", "Cyr"))
]


@pytest.mark.parametrize("family", PLAIN_DISGUISES)
def test_a_disguise_makes_no_hedge_of_a_plain_sentence(family: str) -> None:
    for text in rows(CONTINUE["facts"]) + rows(CONTINUE["requirements"]) + rows(CONTINUE["prepositions"]):
        assert DETECTOR.detect(OBFUSCATORS[family](text)) == (), (family, text)


@pytest.mark.parametrize(
    "missing", ["dont know", "don t know", "do nt know", "don’t know", "don`t know", "don´t know"]
)
def test_every_apostrophe_and_none(missing: str) -> None:
    assert action(f"I {missing} why it hangs.") is HedgeAction.BLOCK


@pytest.mark.parametrize("gap", "\u200b\u200d\u2060\u00ad\ufeff")
def test_invisible_characters_in_place_of_spaces(gap: str) -> None:
    assert action(f"I{gap}think the pool is too small.") is HedgeAction.BLOCK
    assert action(f"The{gap}pool{gap}is{gap}probably{gap}small.") is HedgeAction.REVIEW
    assert action(f"The to{gap}may{gap}to is red and the CO{gap}OP flag is set.") is HedgeAction.CONTINUE


PIECES = """I think maybe may May not should be about 10 ~5 don't know sure . , ? " ' ` ``` ( ) to me we if > # <b>
&nbsp; * _ - probably seems like the could could've MAY 2024 in sort of -- ~"""
FRAGMENTS = st.lists(
    st.sampled_from([*PIECES.split(), "\n", "\u200b", "\u00ad", "\u0456", "\ud800"]), max_size=40
)


@given(st.text(alphabet=st.characters(), max_size=200) | FRAGMENTS.map(" ".join) | FRAGMENTS.map("".join))
def test_any_text_is_answered_with_spans_that_hold(text: str) -> None:
    matches = DETECTOR.detect(text)
    for match in matches:
        assert match.text == text[match.start : match.end] != ""
    for one, other in pairwise(matches):
        assert one.end <= other.start
    judge(matches)


@given(st.sampled_from(HEDGED), st.data())
def test_zero_width_characters_never_lower_the_action(text: str, data: st.DataObject) -> None:
    hidden = text
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(hidden)))
        hidden = (
            hidden[:at]
            + data.draw(st.sampled_from("\u200b\u200c\u200d\u2060\ufeff\u00ad\u034f"))
            + hidden[at:]
        )
    assert RANK[action(hidden)] >= RANK[action(text)]


@given(st.sampled_from(HEDGED), st.sampled_from(["definitely", "for sure", "certainly", "without a doubt"]))
def test_an_assertion_marker_never_undoes_a_hedge(text: str, marker: str) -> None:
    marked = [f"{marker.capitalize()}. {text}"]
    if not text.endswith("?"):
        marked += [f"{text} {marker.capitalize()}.", f"{text.rstrip('.')}, {marker}."]
    for claim in marked:
        assert RANK[action(claim)] >= RANK[action(text)], claim


OTHER_LANGUAGES = """
    Я думаю, что кэш устарел.
    Νομίζω ότι είναι παλιό.
    캐시가 오래된 것 같습니다.
    أعتقد أن الذاكرة قديمة
    मुझे लगता है
    ฉันคิดว่า
"""


@pytest.mark.parametrize("text", rows(OTHER_LANGUAGES))
def test_languages_without_lists_are_left_in_peace(text: str) -> None:
    assert DETECTOR.detect(text) == ()


HOSTILE = """I_ & < <b_ <!-- maybe_ á á́́ '_a_' "I_think"_ ` `_ \n>_ \n * not_ should_we_ may_not_be_ i_still_really_
&amp; \ufdfa ~ ```\n a, ( not_quite_ a\u200b it's_""".split()  # noqa: SIM905  (a table; _ stands for a space)


@pytest.mark.parametrize("part", [part.replace("_", " ") for part in HOSTILE] + ["_ _a_ "])
def test_hostile_text_costs_no_more_than_its_length(part: str) -> None:
    """A text four times as long as any that is taken: a quadratic way would take a minute for it, and so would
    one that takes a hundred times as long for this text as for an ordinary one. The bench has the ratios."""
    size = 4 * 8192
    with given_up_after(1):
        DETECTOR.detect((part * size)[:size])
