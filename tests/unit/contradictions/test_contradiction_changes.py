"""Commit messages, decision records and documents: claims that they contradict, and claims that only look so.

The rows of contradiction_changes.tsv, written for these tests: the rule that finds it, "agrees" when nothing is said
otherwise, or "missed" when it is and no rule knows; then the claim and the text.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from vouchgate.ingest.contradictions.rules import contradictions

ROWS = [
    line.split("\t")
    for line in Path(__file__)
    .with_suffix(".tsv")
    .with_stem("contradiction_changes")
    .read_text("utf-8")
    .splitlines()
]
OTHERWISE = [row for row in ROWS if row[0] not in ("agrees", "missed")]
AGREEING = [row[1:] for row in ROWS if row[0] == "agrees"]


@pytest.mark.parametrize(("rule", "claim", "passage"), OTHERWISE)
def test_a_text_that_says_otherwise(rule: str, claim: str, passage: str) -> None:
    assert rule in {conflict.rule for conflict in contradictions(claim, passage)}


@pytest.mark.parametrize(("rule", "claim", "passage"), OTHERWISE)
def test_the_claim_found_in_the_text_takes_every_conflict_back(rule: str, claim: str, passage: str) -> None:
    for whole in (f"{passage} {claim}", f"{claim}\n\n{passage}"):
        assert contradictions(claim, whole) == (), rule


@pytest.mark.parametrize(("claim", "passage"), AGREEING)
def test_a_text_that_does_not_say_otherwise(claim: str, passage: str) -> None:
    assert contradictions(claim, passage) == ()


def test_most_of_what_is_said_otherwise_is_found() -> None:
    missed = sum(row[0] == "missed" for row in ROWS)
    assert missed < len(OTHERWISE) / 2
    assert len(AGREEING) > 100
