"""What bounds a clause of the place goes with it: a case, a speaker, a doubt, another time, a circumstance."""

from __future__ import annotations

import re

import pytest

from vouchgate.ingest.claims.source import Held, Stance
from vouchgate.ingest.data import read_data
from vouchgate.ingest.support.source_text import SourceText
from vouchgate.ingest.support.stance import stances

CLAIM = "The ferry carries cars to the island."
SAID = "the ferry carries cars to the island"
PAGE = "# The harbour\n\nThere is a lighthouse.\n\n{} The harbour belongs to the town.\n"


def held(claim: str, sentence: str) -> Held:
    (one,) = stances(claim, SourceText(PAGE.format(sentence)))
    return one


@pytest.mark.parametrize(
    ("form", "why"),
    [
        ("If the pier is free, {}.", "left out"),
        ("When asked, {}.", "left out"),
        ("As long as the pier is free, {}.", "left out"),
        ("Provided that the pier is free, {}.", "left out"),
        ("In the event of a strike, {}.", "left out"),
        ("Should the bridge close, {}.", "left out"),
        ("In some cases {}.", "left out"),
        ("Mostly {}.", "left out"),
        ("{}, if the pier is free.", "left out"),
        ("{} whenever the bridge is closed.", "left out"),
        ("{} sometimes.", "left out"),
        ("{} (not yet).", "left out"),
        ("{}, at least in May.", "left out"),
        ("The vendor says that {}.", "reported"),
        ("According to the vendor, {}.", "reported"),
        ("Some people think that {}.", "reported"),
        ("We expect that {}.", "reported"),
        ("We were told that {}.", "reported"),
        ("Allegedly, {}.", "reported"),
        ("In theory, {}.", "reported"),
        ("Proposal: {}.", "reported"),
        ("Let us say {}.", "reported"),
        ("{}, the vendor says.", "reported"),
        ("{}, or so the vendor claims.", "reported"),
        ("{}, hopefully.", "reported"),
        ("Consider that {}.", "governed"),
        ("Perhaps, {}.", "governed"),
        ("In the future, {}.", "former"),
        ("In the first design, {}.", "former"),
        ("{} eventually.", "former"),
        ("In case {}, call the pilot.", "left out"),
        ("Towns whose mayor says that {} are rich.", "left out"),
        ("Versions in which {} are sold out.", "left out"),
        ("Every boat but {}.", "left out"),
        ("Most of the time, {}.", "left out"),
        ("With the lamp off, {}.", "left out"),
        ("{} as a last resort.", "left out"),
        ("{} by mistake.", "left out"),
        ("{} in part.", "left out"),
        ("The ticket says that {}.", "reported"),
        ("The requirement that {} was dropped.", "reported"),
        ("Passengers complain that {}.", "reported"),
        ("Check that {}.", "reported"),
        ("In an ideal world, {}.", "reported"),
        ("At a competitor, {}.", "reported"),
        ("There is a flag that makes sure {}.", "governed"),
        ("Either {} or the bridge is open.", "governed"),
        ("{} no longer.", "denial"),
        ("{} at night.", "scoped"),
        ("{} on Android.", "scoped"),
        ("In version 2, {}.", "scoped"),
        ("During a strike, {}.", "scoped"),
        ("On Sundays, {}.", "scoped"),
        ("For members, {}.", "scoped"),
        ("In production, {}.", "scoped"),
    ],
)
def test_a_statement_that_leaves_out_what_bounds_it_is_not_stated(form: str, why: str) -> None:
    sentence = form.format(SAID)
    sentence = sentence[0].upper() + sentence[1:]
    without = held(CLAIM, sentence)
    assert (without.stance, without.why) == (Stance.SPEAKS, why)


@pytest.mark.parametrize(
    "form",
    [
        "When the pier is free, {}.",
        "{} if the pier is free.",
        "{} sometimes.",
        "The vendor says that {}.",
        "In theory, {}.",
        "In the first design, {}.",
        "During a strike, {}.",
        "We expect that {}.",
        "The ticket says that {}.",
        "With the lamp off, {}.",
        "{} as a last resort.",
        "{} no longer.",
        "Either {} or the bridge is open.",
    ],
)
def test_a_statement_that_says_it_too_is_stated(form: str) -> None:
    sentence = form.format(SAID)
    assert held(sentence, sentence).stance is Stance.STATES


@pytest.mark.parametrize(
    "sentence",
    [
        "The ferry carries cars to the island, when nobody walks.",  # tells of it, and limits nothing
        "The ferry carries cars to the island, and sometimes bread.",
        "The ferry carries cars to the island; if it breaks, the crew mends it.",
        "The ferry carries cars to the island, says the record.",
        "For example, the ferry carries cars to the island.",
        "While the bridge is old, we think of buses; the ferry carries cars to the island.",
        "In 1990 the ferry carries cars to the island.",
        "All boats but one are white. The ferry carries cars to the island.",
        "The ferry carries cars to the island, and either bread or milk.",
        "The plan is old: the ferry carries cars to the island.",
        "A sign informs the guests that the ferry carries cars to the island.",
    ],
)
def test_what_bounds_another_clause_does_not_bound_this_one(sentence: str) -> None:
    assert held(CLAIM, sentence).stance is Stance.STATES


def test_every_form_is_a_pattern_in_small_letters_that_matches_something() -> None:
    for forms in read_data("stance.toml")["bounds"]:
        for name, patterns in forms.items():
            for pattern in patterns if name != "kind" else ():
                assert pattern == pattern.lower() or "\\W" in pattern, (name, pattern)
                assert re.compile(pattern).fullmatch("") is None, (name, pattern)


def test_an_act_denied_in_other_words_is_denied() -> None:
    drop = "We drop the use of the harbour tug."
    assert held("The harbour tug is no longer used.", drop).why != "denial"
    assert held("The harbour tug is dropped.", "The harbour tug is not used.").why != "denial"
    assert held("The ferry is not used for cars.", "The ferry is used for cars.").stance is Stance.REFUTES


@pytest.mark.parametrize(
    ("claim", "sentence"),
    [
        ("Each berth has its own VTS.", "We keep a separate VTSs list: each berth has its own VTS."),
        ("Two VTSs guide the ships.", "Two VTS guide the ships."),
        ("The VTS guides the ships.", "The VTSs guide the ships."),
    ],
)
def test_several_of_a_short_form_are_found_as_one(claim: str, sentence: str) -> None:
    assert "VTS" not in str((held(claim, sentence).missing, held(claim, sentence).uncovered))


@pytest.mark.parametrize(
    "sentence",
    [
        "The ferry can be configured to carry cars to the island.",
        "The ferry has the option to carry cars to the island.",
        "It is possible for the ferry to carry cars to the island.",
        "We tried to make the ferry carry cars to the island.",
        "We advise against letting the ferry carry cars to the island.",
        "The risk of the ferry carrying cars to the island is high.",
        "The ferry turns away boats that carry cars to the island.",
        "Letting the ferry carry cars to the island costs too much.",
        "Making the ferry carry cars to the island is risky.",
    ],
)
def test_what_may_be_done_or_is_only_spoken_of_is_not_stated(sentence: str) -> None:
    assert held(CLAIM, sentence).stance is not Stance.STATES


@pytest.mark.parametrize("form", ["We {} the harbour tug for cars.", "The harbour tug is {} for cars."])
def test_what_is_used_is_found_in_each_form(form: str) -> None:
    source = SourceText("Cars are moved using the harbour tug.")
    for word in ("use", "used", "using"):
        (one,) = stances(form.format(word), source)
        assert word not in one.missing


def test_what_is_switched_off_is_not_enabled() -> None:
    kept = "The radar of the pilot boat stays enabled in harbour waters."
    assert held("The radar of the pilot boat is switched off in harbour waters.", kept).why == "opposite"
    assert held("The radar of the pilot boat is switched on in harbour waters.", kept).why != "opposite"
