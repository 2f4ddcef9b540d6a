"""`vouchgate gate-doc` on two reports as models write them, with a local site that plays their sources: right, wrong,
dead, down for good, down once, moved, and one that hangs up in the middle of its answer."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.cli_program import cli
from tests.web import Answer, Asked, Route, web_server

# Addresses on lines of their own under a paragraph or list, as most reports have them.
HARBOUR = """# The ferries of Orsund, and what they cost

## Executive summary

The harbour of Orsund has **four berths**, and its largest ferry carries 310 passengers.
Sources: Harbour board
{site}/harbour
{site}/moved

- **Diesel ferries** burn 140 litres on each crossing of the sound.
- **Battery ferries** are charged for nine minutes at the east pier.

Sources:
{site}/fuel

## Risks

The east pier was built in 2017.
{site}/wrong

The west pier will be closed in winter.
{site}/dead

How long will it take? Ask the harbour board.
"""
# Numbers with a list of references, and a table.
TIMES = """# Crossing times

A crossing takes 26 minutes in summer [1]. The night ferry sails at half past eleven [2].

The pilot boat is red [3]. The old pilot boat is blue [5].

| Route | Minutes | Source |
|-------|---------|--------|
| Orsund to Vik | 26 | [1] |

Tickets are sold on board [4].

## References

[1] Timetable: {site}/once
[2] Night sailings: {site}/down
[3] Pilots: {site}/cut
[4] Tickets: {site}/tickets
[5] Old boats: {site}/cut-off
"""
OPTIONS = ("--policy", "policy.toml", "--format", "json")


def article(*sentences: str) -> Answer:
    """A page that says so."""
    said = "".join(f"<p>{each}</p>" for each in sentences)
    return Answer(f"<html><head><title>Orsund</title></head><body><article>{said}</article></body></html>")


def routes() -> dict[str, Route]:
    """What the sources of both reports answer."""
    times: defaultdict[str, int] = defaultdict(int)

    def once(asked: Asked) -> Answer:
        times[asked.method] += 1
        late = times[asked.method] == 1
        return (
            Answer("later", 503)
            if late
            else article("A crossing from Orsund to Vik takes 26 minutes in summer.")
        )

    def cut(asked: Asked) -> Answer:
        times["cut"] += asked.method == "GET"
        if asked.method == "GET" and times["cut"] == 1:
            raise BrokenPipeError  # hangs up instead of answering
        return article("The pilot boat is red.")

    def cut_off(asked: Asked) -> Answer:
        raise BrokenPipeError

    return {
        "/harbour": article(
            "The harbour of Orsund has four berths.", "Its largest ferry carries 310 passengers."
        ),
        "/moved": Answer("", 301, {"Location": "/board"}),
        "/board": article("The harbour board of Orsund keeps the four berths of the harbour."),
        "/fuel": article(
            "Diesel ferries burn 140 litres on each crossing of the sound.",
            "Battery ferries are charged for nine minutes at the east pier.",
        ),
        "/wrong": article("The east pier was built in 2009."),
        "/once": once,
        "/down": Answer("later", 503),
        "/cut": cut,
        "/cut-off": cut_off,
        "/tickets": article("Tickets are sold on board."),
    }


def verdicts(report: Mapping[str, Any]) -> dict[str, str]:
    return {
        claim["text"]: claim["verdict"] for document in report["documents"] for claim in document["claims"]
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both reports checked, with what came of it as `NAME.json`, and the site gone."""
    here = tmp_path_factory.mktemp("reports")
    (here / "policy.toml").write_text("[web]\nspacing_seconds = 0\n")
    with web_server(routes()) as site:
        for name, text in (("harbour", HARBOUR), ("times", TIMES)):
            (here / f"{name}.md").write_text(text.replace("{site}", site.url), "utf-8")
            words = ("--record", f"{name}.kept", "--retry-seconds", "0.3", *OPTIONS)
            done = cli(
                "gate-doc", f"{name}.md", *words, cwd=here, env={"VOUCHGATE_CITATION_NETWORKS": site.place}
            )
            (here / f"{name}.json").write_bytes(done.stdout)
            (here / f"{name}.status").write_text(str(done.returncode))
    return here


def told(folder: Path, name: str) -> tuple[int, Any]:
    """Exit status and report."""
    return int((folder / f"{name}.status").read_text()), json.loads(
        (folder / f"{name}.json").read_text("utf-8")
    )


def test_what_is_false_and_what_is_dead_is_found_and_nothing_else(folder: Path) -> None:
    status, report = told(folder, "harbour")
    assert verdicts(report) == {
        "The harbour of Orsund has four berths, and its largest ferry carries 310 passengers.": "VERIFIED",
        "Diesel ferries burn 140 litres on each crossing of the sound.": "VERIFIED",
        "Battery ferries are charged for nine minutes at the east pier.": "VERIFIED",
        "The east pier was built in 2017.": "FALSE",
        "The west pier will be closed in winter.": "BROKEN_CITATION",
    }
    assert (status, report["reasons"]) == (1, ["1 false", "1 with a broken citation"])
    claims = report["documents"][0]["claims"]
    (wrong,) = claims[3]["sources"]
    assert (wrong["quotation"], wrong["stance"]) == ("The east pier was built in 2009.", "refutes")
    moved = next(each for each in claims[0]["sources"] if each["cited"].endswith("/moved"))
    assert "/board, which exists" in moved["detail"]


def test_sources_that_die_leave_the_others_and_are_no_pass(folder: Path) -> None:
    """What was down or hung up once is asked again; what stays so could not be found out."""
    status, report = told(folder, "times")
    assert verdicts(report) == {
        "A crossing takes 26 minutes in summer.": "VERIFIED",
        "The night ferry sails at half past eleven.": "UNKNOWN",
        "The pilot boat is red.": "VERIFIED",
        "The old pilot boat is blue.": "UNKNOWN",
        "Route: Orsund to Vik; Minutes: 26": "VERIFIED",
        "Tickets are sold on board.": "VERIFIED",
    }
    assert (status, report["reasons"]) == (3, ["2 could not be found out"])


@pytest.mark.parametrize("name", ["harbour", "times"])
def test_a_replay_without_the_site_is_the_same_to_the_byte(folder: Path, name: str) -> None:
    done = cli("gate-doc", f"{name}.md", "--replay", f"{name}.kept", *OPTIONS, cwd=folder)
    assert done.stdout == (folder / f"{name}.json").read_bytes()
    assert done.returncode == told(folder, name)[0]
