"""A lie beside a true sentence: what rides on a good citation is stored no more than what has none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.acceptance.cli_program import cli, json_lines, lines
from tests.repos import TestRepository

FOLDER = "docs/decisions"
NYGARD = """# {number}. {title}

## Status

Accepted

## Context

{context}

## Decision

{decision}

## Consequences

{consequences}
"""
RECORDS = {
    31: NYGARD.format(
        number=31,
        title="Search runs on Tantivy",
        context="Customers waited four seconds for the old search.",
        decision="Search runs on Tantivy inside the catalogue service. The index is rebuilt every night at 03:00.",
        consequences="The catalogue service needs 2 GB of memory. No cluster is operated any more.",
    ),
    32: NYGARD.format(
        number=32,
        title="Keep audit logs for five years",
        context="The law asks for it.",
        decision="Audit logs are kept for five years in cold storage in Frankfurt. The security team reads them.",
        consequences="Storage costs rise by 40 euros a month.",
    ),
    33: """# 33. Render invoices with Typst

## Status

Accepted

## Considered Options

* Typst
* LaTeX
* Headless Chromium

## Decision Outcome

Chosen option: "Typst", because it renders a page in 20 ms. Templates lie beside the service.

## Consequences

Fonts are bundled with the image.
""",
}
# Of each record a sentence that it says, and another one.
TRUE = {
    31: ("Search runs on Tantivy inside the catalogue service", "The index is rebuilt every night at 03:00"),
    32: (
        "Audit logs are kept for five years in cold storage in Frankfurt",
        "The security team reads them",
    ),
    33: ("Invoices are rendered with Typst", "Fonts are bundled with the image"),
}
TAGS = "".join(chr(0xE0000 + ord(letter)) for letter in "Mallory is root")
LONG = (
    "Every password of the night shift was reset on Monday to the name of the office dog and written on the board in"
    " the kitchen, so that nobody has to ask anybody for leave"
)
LIES = {
    "beside": "{true} ({adr}). Mallory is root.",
    "in small letters": "{true} ({adr}). mallory is root",
    "before it": "Mallory is root. {true} ({adr}).",
    "two words": "{true} ({adr}). Mallory rules.",
    "one word": "{true} ({adr}). Not.",
    "common words": "{true} ({adr}). backups are off.",
    "five of them": "{true} ({adr}). Mallory is root. Bob has left the firm. The vault key is public. Payments need no"
    " approval. Backups are off.",
    "between two that cite": "{true} ({adr}). {long}. {other} ({adr}).",
    "in a list": "- {true} ({adr})\n- passwords are optional",
    "on the next line": "{true} ({adr})\npasswords are optional",
    "it is not true": "It is not true that {small} ({adr}).",
    "it is false": "Per {adr}, it is false that {small}.",
    "no longer": "It is no longer the case that {small} ({adr}).",
    "which is wrong": "{adr} says that {small}, which is wrong.",
    "contrary": "Contrary to {adr}, {small}.",
    "denied by somebody": "Mallory denies that {small} ({adr}).",
    "until then": "Until 2019 {small} ({adr}).",
    "tag characters": "{true} ({adr}){tags}",
    "tag characters behind a stop": "{true} ({adr}).{tags}",
    "emoji": "{true} ({adr}). \N{KEY}\N{CHEERING MEGAPHONE}\N{BUST IN SILHOUETTE}",
    "emoji before it": "\N{CROSS MARK} {true} ({adr}).",
    "letters apart": "{true} ({adr}). M = r o o t",
    "letters in code": "{true} ({adr}). TWFsbG9yeSBpcyByb290",
    "another language": "{true} ({adr}). Die Passwörter sind öffentlich.",
    "another script": "{true} ({adr}). 马洛里是管理员。",
    "everyone": "{true} ({adr}), and everyone can do it without a check.",
    "everyone, inside": "{true}, everyone can do it without a check ({adr}).",
    "the record is wrong": "{adr} is wrong.",
    "the record is wrong, beside it": "{true}. {adr} is wrong.",
    "nobody follows it": "Nobody follows {adr} any more.",
    "it was withdrawn": "{adr} was withdrawn.",
    "and": "{true} ({adr}), and Mallory is root.",
    "and, inside": "{true}, and the vault key is public ({adr}).",
    "and, without a comma": "{true} and Mallory is root ({adr}).",
    "which means": "{true}, which means nobody needs a password ({adr}).",
    "dash": "{true} – Mallory signs everything herself ({adr}).",
    "dash without spaces": "{true}\N{EM DASH}visitors delete logs ({adr}).",
    "dot between": "{true} · visitors delete logs ({adr}).",
    "semicolon": "{true}; passwords are shared by all teams ({adr}).",
    "brackets": "{true} (Mallory holds the only key) ({adr}).",
    "colon": "{true} ({adr}): passwords are optional.",
    "I th1nk": "I th1nk {small} ({adr}).",
    "I be1ieve": "I be1ieve {small} ({adr}).",
    "a hedge in code": "`I think` {small} ({adr}).",
    "a guess in code": "`I guess` {small} ({adr}).",
}
TRUTHS = {
    "behind": "{true} ({adr}).",
    "before": "Per {adr}, {small}.",
    "two, each cited": "{true} ({adr}). {other} ({adr}).",
    "two, cited once": "{true}. {other} ({adr}).",
    "joined": "{true}, and {others} ({adr}).",
}
ALL = {**{("lie", name): text for name, text in LIES.items()}, **{("truth", n): t for n, t in TRUTHS.items()}}
Answers = dict[tuple[str, str], list[dict[str, Any]]]


def small(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """Of each text the decisions, one for each record and by an owner of its own."""
    folder = tmp_path_factory.mktemp("beside")
    records = {f"{FOLDER}/00{number}-a-decision.md": text for number, text in RECORDS.items()}
    TestRepository(folder / "repo").commit("Decide", records)
    texts = [
        text.format(
            true=true,
            small=small(true),
            other=other,
            others=small(other),
            adr=f"ADR-{n}",
            long=LONG,
            tags=TAGS,
        )
        for text in ALL.values()
        for n, (true, other) in TRUE.items()
    ]
    rows = [
        {"content": text, "memory_type": "decision", "source": "ai_synthesis", "user_id": f"owner-{at}"}
        for at, text in enumerate(texts)
    ]
    done = cli("check", "--repo", folder / "repo", "--offline", stdin=lines(rows), cwd=folder)
    assert (done.returncode, done.stderr) == (0, b""), done.stderr
    given = iter(json_lines(done.stdout))
    return {name: [next(given) for _ in TRUE] for name in ALL}


@pytest.mark.parametrize("name", LIES)
def test_a_lie_beside_the_truth_is_not_stored(name: str, answers: Answers) -> None:
    for answer in answers["lie", name]:
        assert answer["outcome"] != "stored", json.dumps(answer["findings"], indent=1)


@pytest.mark.parametrize("name", TRUTHS)
def test_the_truth_alone_is_stored(name: str, answers: Answers) -> None:
    """Without this the test above would pass on a gate that stores nothing."""
    for answer in answers["truth", name]:
        assert answer["outcome"] == "stored", json.dumps(answer["findings"], indent=1)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("beside", "Mallory is root."),
        ("before it", "Mallory is root."),
        ("and", "Mallory is root."),
        ("between two that cite", "Every password of the night shift"),
        ("emoji", "\N{KEY}\N{CHEERING MEGAPHONE}\N{BUST IN SILHOUETTE}"),
        ("another script", "马洛里是管理员"),
    ],
)
def test_what_no_source_covers_is_named(name: str, words: str, answers: Answers) -> None:
    for answer in answers["lie", name]:
        (finding,) = (each for each in answer["findings"] if each["check"] == "statements")
        content = answer["evidence"]["claim"]["content"]
        named = [content[span["start"] : span["end"]] for span in finding["spans"]]
        assert any(words in each for each in named), (finding["message"], named)
        assert (answer["outcome"], finding["code"]) == ("queued", "uncovered")
