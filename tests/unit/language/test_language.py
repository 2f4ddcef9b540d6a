"""One reading of text for every check: what is stored by it stays, and spans lead back to what was sent."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vouchgate.ingest import language
from vouchgate.ingest.checks.echo import echo_key
from vouchgate.ingest.language.normalise import INVISIBLE, plain_signs
from vouchgate.ingest.language.sentences import sentences
from vouchgate.ingest.language.stems import inflected, stem
from vouchgate.ingest.language.terms import term_key
from vouchgate.ingest.language.words import tokens

TEXTS = st.text(
    st.sampled_from([*"aZ9 .,-_'\n", "\u200b", "\u00ad", "\u2019", "\u00a0", "\u2011", "\uff21"]), max_size=80
)


@given(TEXTS)
def test_plain_signs_lead_back_to_what_was_sent(text: str) -> None:
    plain = plain_signs(text)
    assert not set(plain.text) & set("\u200b\u00ad\u2019\u00a0\u2011\uff21")
    for at, character in enumerate(plain.text):
        start, end = plain.span(at, at + 1)
        assert end == start + 1 and plain_signs(text[start:end]).text == character


@given(st.text(st.sampled_from("ab. \n"), max_size=200))
def test_a_longest_only_cuts_further(text: str) -> None:
    whole, cut = sentences(text, longest=None), sentences(text, longest=20)
    assert {start for start, _ in whole} <= {start for start, _ in cut}
    assert {end for _, end in whole} <= {end for _, end in cut}


def test_two_strengths_of_one_word() -> None:
    assert (inflected("indexes"), inflected("used"), inflected("organised")) == ("index", "used", "organized")
    assert len({stem(word) for word in ("index", "indexes", "indexed", "indexing", "indexer")}) == 1
    assert stem("number5") == "number5"


@pytest.mark.parametrize(
    "words",
    [
        "favour favor favoured favours",
        "neighbourhood neighborhood neighborhoods",
        "colour colored colours",
        "cancelled canceled cancelling cancel",
        "controlled controls control",
        "fulfil fulfill fulfilled",
        "organise organized organisation organising",
        "modelling modeling model",
        "emphasise emphasis",
        "grey gray",
        "metres meter",
        "artefacts artifact",
        "dialogue dialogs",
        "learnt learned",
        "skilful skillful",
    ],
)
def test_both_sides_of_the_atlantic_mean_the_same(words: str) -> None:
    assert len({term_key(word) for word in words.split()}) == 1


def test_a_word_that_only_looks_so_keeps_its_letters() -> None:
    kept = ["hour", "four", "contour", "flour", "tour", "call", "roll", "this"]
    assert [stem(word) for word in kept] == kept
    assert len({stem(word) for word in ("revise", "revised", "revision")}) == 1
    for one, two in (("stall", "stale"), ("Danielle", "Daniel"), ("chill", "Chile"), ("parkour", "park")):
        assert stem(one.lower()) != stem(two.lower())


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("The crawler retries a failed download 3 times.", "ffced863007fc74cad25a8052f866488"),
        (
            "Added caching to the \u201cparser\u201d, which isn\u2019t <5 ms.",
            "ce1a786e9eaf9b28338d3705465df61a",
        ),
    ],
)
def test_keys_in_databases_stay(text: str, key: str) -> None:
    assert echo_key(tokens(text), "fact") == key


def test_no_check_has_a_pattern_of_words_of_its_own() -> None:
    """Patterns of a whole word, and classes of invisible characters, are in one place."""
    own = Path(language.__file__).parent
    elsewhere = [
        f"{path.name}: {line.strip()}"
        for path in sorted(own.parent.rglob("*.py"))
        if path.parent != own
        for line in path.read_text("utf-8").splitlines()
        if re.search(r're\.compile\(r?f?"(\[\^\\W_\]\+|\\w\+)"|\\u200b-', line)
    ]
    assert elsewhere == []
    assert re.fullmatch(f"[{INVISIBLE}]+", "\u200b\u202e\ufeff")
