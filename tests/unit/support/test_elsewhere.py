"""What a place says of one thing, beside one verb, is not said of another."""

from __future__ import annotations

import pytest

from tests.running.hangs import given_up_after
from vouchgate.ingest.claims.source import Held, Stance
from vouchgate.ingest.support.clauses.acts import Act, acts, outside_brackets
from vouchgate.ingest.support.source_text import SourceText
from vouchgate.ingest.support.stance import stances
from vouchgate.ingest.support.tokens import tokens_of

STATES = Stance.STATES
LAKE = "The lake freezes in December and is free of ice by late April."
WINGS = "The east wing was built of brick in 1882, and the west wing was painted in 1961 by Nils Berg."
SUIT = "Judge Alma Reiter dismissed the suit in 2018, but the appeals court revived it in 2020."
FLAGS = "Feature flags live in flags.yaml and are read at start-up; secrets live in Vault and are read on each request."
JOBS = "Jobs larger than 5 MB are rejected at the door. Priority jobs skip the queue, but are never retried."
MODELS = "Model A scored 71.2 on the benchmark and Model B 68.9, although B was trained on more data."
LAB = (
    "Maria Okafor founded Lumen Labs in 2009 together with her brother Daniel, who left the company in 2014."
)
GUARD = "The gate is locked while the guard rests."
NOVEL = "Her second novel, The Salt Road, won the Orme Prize in 1994. Her first novel lay in a drawer."
BREW = "Cold brew contains less acid than hot coffee, but more caffeine per cup."
BRIDGE = (
    "The Marlow Bridge was closed in 2016. The older Kesh Bridge, a kilometre upstream, carried the traffic."
)


LEAVE = "Priya writes to Jo, who is on leave until June. The old crane stays until winter, the new one until Easter."
DEPOT = "The depot confirms orders within an hour, returns within three days."
COPY = "The picture hangs in Delft. The copy hung in Lyon until it burned."
SHIFT = "Rua is away from 4 to 9 May, Nils covers her shift."
OPTIONS = "Settings are read from files. Command line options override both."
LIMIT = "This enlarges the cache of the Split site from 90 to 270 MB. The limit is therefore raised to 400 MB there."
GRANT = "The place is first named when the abbot of Orrin granted the land to Godric Fenn in return for a rent of salt."
LEASES = "The list has name and owner. Expired leases are left out; cleaning is done by sweep, which the clock calls."
BUILDS = "Windows builds are signed by the release bot, macOS builds by Karin."


def held(claim: str, text: str) -> tuple[Held, ...]:
    return stances(claim, SourceText(text))


@pytest.mark.parametrize(
    ("claim", "text", "why"),
    [
        ("The lake freezes in late April.", LAKE, "elsewhere"),  # another time
        ("The lake is free of ice by December.", LAKE, "elsewhere"),
        ("The west wing was built of brick in 1882.", WINGS, "elsewhere"),  # another subject
        ("The east wing was painted in 1961.", WINGS, "elsewhere"),
        (
            "Judge Alma Reiter revived the suit in 2020.",
            SUIT,
            "elsewhere",
        ),  # "the court" is not she beside her
        ("The appeals court dismissed the suit in 2020.", SUIT, "elsewhere"),
        ("Feature flags live in Vault.", FLAGS, "elsewhere"),  # another place
        # Of what is named by it.
        ("The mill sells flour to guests.", "Another mill sells flour to guests.", "elsewhere"),
        ("The mill sells flour to guests.", "The other mill sells flour to guests.", "elsewhere"),
        ("The mill sells flour to guests.", "The shop behind the mill sells flour to guests.", "elsewhere"),
        ("The mill sells flour to guests.", "The owner of the mill sells flour to guests.", "elsewhere"),
        ("Feature flags are read on each request.", FLAGS, "elsewhere"),
        ("Secrets live in flags.yaml.", FLAGS, "elsewhere"),
        ("Secrets and feature flags live in Vault.", FLAGS, "elsewhere"),  # one of the two does
        ("The gate is locked until the guard rests.", GUARD, "elsewhere"),
        ("Feature flags live in flags.yaml until they are read.", FLAGS, "elsewhere"),  # a condition
        ("Priority jobs are rejected at the door.", JOBS, "elsewhere"),  # other things of one name
        (
            "Model B scored 71.2 on the benchmark.",
            MODELS,
            "elsewhere",
        ),  # told by a letter, and without a verb
        ("Maria Okafor left the company in 2014.", LAB, "elsewhere"),  # "who" is the one before it
        ("Lumen Labs was founded in 2014.", LAB, "elsewhere"),
        ("The gate is locked before the guard rests.", GUARD, "relation"),  # another moment
        ("Her first novel won the Orme Prize in 1994.", NOVEL, "beside"),
        ("Cold brew contains less caffeine than hot coffee.", BREW, "beside"),
        ("The Marlow Bridge carried the traffic.", BRIDGE, "elsewhere"),
        ("Priya is on leave until June.", LEAVE, "elsewhere"),  # how somebody is
        ("The old crane stays until Easter.", LEAVE, "elsewhere"),
        ("Windows builds are signed by Karin.", BUILDS, "elsewhere"),  # another one does it
        ("The depot confirms orders within three days.", DEPOT, "elsewhere"),
        ("Postfix keeps mail.", "The relay keeps mail. Postfix sends it on.", "bystander"),  # named behind it
        ("The copy hung in Delft until it burned.", COPY, "elsewhere"),  # another place, named before
        ("Rua covers the shift of Nils.", SHIFT, "elsewhere"),  # the other way about
        ("Settings in files override the options of the command line.", OPTIONS, "elsewhere"),
        ("Godric Fenn granted the land at Orrin to the abbot.", GRANT, "elsewhere"),
        ("The limit of the Split site was raised to 270 MB.", LIMIT, "elsewhere"),  # both are MB
        ("The lake reliably freezes in December.", LAKE, "manner"),  # the source has no such word
    ],
)
def test_what_is_said_of_something_else_is_not_stated(claim: str, text: str, why: str) -> None:
    found = held(claim, text)
    assert all(one.stance is not STATES for one in found)
    assert why in {one.why for one in found}


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("The lake freezes in December.", LAKE),
        ("The owner of the mill sells flour.", "The owner of the mill sells flour."),
        ("The other mill sells flour.", "The other mill sells flour."),
        ("Guests of the mill pay at the gate.", "York - Guests of the mill pay at the gate."),
        ("The lake is free of ice by late April.", LAKE),
        ("The west wing was painted in 1961 by Nils Berg.", WINGS),
        ("Nils Berg painted the west wing in 1961.", WINGS),
        ("The appeals court revived the suit in 2020.", SUIT),
        ("Secrets are read on each request.", FLAGS),
        ("Feature flags live in flags.yaml, and secrets live in Vault.", FLAGS),
        ("Priority jobs are never retried.", JOBS),
        ("Model A scored 71.2 on the benchmark.", MODELS),
        ("Maria Okafor founded Lumen Labs in 2009.", LAB),
        ("Lumen Labs was founded in 2009 by Maria Okafor.", LAB),
        ("The Salt Road won the Orme Prize in 1994.", NOVEL),
        ("Cold brew contains more caffeine per cup than hot coffee.", BREW),
        ("The Kesh Bridge carried the traffic.", BRIDGE),
        ("Jo is on leave until June.", LEAVE),
        ("Windows builds are signed by the release bot.", BUILDS),
        ("The depot confirms orders within an hour.", DEPOT),
        ("The copy hung in Lyon until it burned.", COPY),
        ("Nils covers her shift from 4 to 9 May.", SHIFT),
        ("The limit is raised to 400 MB.", LIMIT),
        ("Sweep, called by the clock, does the cleaning.", LEASES),
        ("Vedra was built in Split.", "Vedra is a large ferry built in Split for the islands."),
        ("The film premiered on 2 May, 2016.", "The film premiered at the harbour on 2 May, 2016."),
        (
            "Harlan will recall 19 lorries.",
            "Harlan said that it works on a mend. The maker will also recall 19 lorries.",
        ),
    ],
)
def test_what_is_said_of_it_is_stated(claim: str, text: str) -> None:
    found = held(claim, text)
    assert [(one.stance, one.why) for one in found] == [(STATES, "")] * len(found)


def read(text: str) -> list[tuple[str, list[str], Act]]:
    words = outside_brackets(text, tokens_of(text))
    return [(words[act.at].shown, [words[at].shown for at in act.subject], act) for act in acts(text, words)]


def test_an_act_has_what_belongs_to_its_verb() -> None:
    (feeds, crew, one), (left, they, two) = read(
        "The old crew feeds gulls at the pier in May, but left on Monday."
    )
    assert (feeds, crew, left, they) == ("feeds", ["old", "crew"], "left", ["old", "crew"])
    assert [kind for kind, _ in one.settings] == ["at", "at", "when"]  # the pier, May, and May as a time
    assert [kind for kind, _ in two.settings] == ["at", "when"]
    assert two.joint == "but"
    assert not (one.passive or one.denied or one.pronoun)


@pytest.mark.parametrize(
    ("text", "verbs"),
    [
        ("The run of requests is logged.", ["logged"]),
        ("Requests fail at night.", ["fail"]),
        ("API requests are refused.", ["refused"]),
        ("The indexer only reads files.", ["reads"]),
        ("A restore runs for hours.", ["runs"]),
        ("The list omits expired rows.", ["omits"]),
        ("", []),
        (". , ; (", []),
        ("apply apply apply supply reply", []),
    ],
)
def test_a_verb_is_told_by_its_neighbours(text: str, verbs: list[str]) -> None:
    assert [verb for verb, _, _ in read(text)] == verbs


@pytest.mark.parametrize(
    "word", ["runs ", "apply ", "who runs, ", "is ", "(", "May in 1990, ", "! A ", "rarely "]
)
def test_hostile_places_take_no_time(word: str) -> None:
    with given_up_after(2):
        for claim in ("The relay keeps mail for 30 days.", word * 40):
            stances(claim, SourceText(word * 2_000 + "The relay keeps mail for 30 days."))
