"""Rules about who is asked: the last line that matches counts, and each fault is told with its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vouchgate.ingest.rules import Rule
from vouchgate.review.vouching.loading import load_rules
from vouchgate.review.vouching.owner_rules import (
    HIGH_RISK,
    MEDIUM_RISK,
    ONE,
    OwnerRulesError,
    parse,
    risk_of,
    unknown_persons,
)

TEXT = """
# who is asked
@platform = @ann, @bea @cleo
*
type:decision                          2
type:decision path:docs/adr/*  @platform 2   # two of three
agent:import* @dana
risk:high label:INFERENCE     3
owner:acme source:ai_synthesis type:fact
"""


def claim(**values: str) -> dict[str, frozenset[str]]:
    return {key: frozenset(value.split()) for key, value in values.items()}


@pytest.mark.parametrize(
    ("facts", "approvals", "asked", "line"),
    [
        (claim(type="preference"), 1, (), 4),
        (claim(type="decision"), 2, (), 5),
        (claim(type="decision", path="docs/api.md"), 2, (), 5),
        (claim(type="decision", path="docs/api.md docs/adr/7.md"), 2, ("ann", "bea", "cleo"), 6),
        (claim(type="decision", path="docs/adr/7.md", agent="importer"), 1, ("dana",), 7),
        (claim(type="decision", risk="high", label="FACT"), 2, (), 5),
        (claim(type="decision", risk="high", label="INFERENCE"), 3, (), 8),
        (claim(type="fact", owner="acme", source="ai_synthesis", risk="high", label="INFERENCE"), 1, (), 9),
        (claim(type="fact", owner="acme2", source="ai_synthesis"), 1, (), 4),
    ],
)
def test_the_last_line_that_matches_counts(
    facts: dict[str, frozenset[str]], approvals: int, asked: tuple[str, ...], line: int
) -> None:
    rules, faults = parse(TEXT)
    assert faults == []
    found = rules.required(facts)
    assert (found.approvals, found.asked, found.line) == (approvals, asked, line)


def test_without_a_line_that_matches_one_approval_of_anybody_is_enough() -> None:
    assert parse("type:decision 2")[0].required(claim(type="fact")) == ONE
    assert parse("")[0].required(claim(type="fact")) == ONE


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("typ:decision 2", "did you mean type?"),
        ("type:decison 2", "did you mean decision?"),
        ("label:fact", "did you mean FACT?"),
        ("risk:severe", "it is high, low, medium"),
        ("source:blog*", "No claim has"),
        ("decision 2", "no selector like type:decision"),
        ("type: 2", "no selector"),
        ("@ann", "begin it with \\*"),
        ("* 0", "from 1 to 20"),
        ("* 21", "from 1 to 20"),
        ("* 99999999999999999999", "from 1 to 20"),
        ("* 2 3", "one number"),
        ("* @ann 2", "nobody ever could"),
        ("* @ann@bea", "no name of a person"),
        ("@team = ann", "names like @ann"),
        ("@team =", "names like @ann"),
    ],
)
def test_a_fault_is_told_with_its_line_and_stops_the_start(line: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "OWNERS"
    file.write_text(f"# first\n*\n{line}\n")
    rules, faults = parse(file.read_text())
    assert [fault.line for fault in faults] == [3]
    assert len(rules.rules) == 1
    with pytest.raises(OwnerRulesError, match=f"line 3: .*{says}"):
        load_rules(file)


def test_a_team_has_one_line_and_a_file_that_cannot_be_read_stops_the_start(tmp_path: Path) -> None:
    assert [each.line for each in parse("@a = @b\n@a = @c\n")[1]] == [2]
    for broken in (b"\xff\xfe", None):
        file = tmp_path / "rules"
        if broken is not None:
            file.write_bytes(broken)
        else:
            file.unlink()
        with pytest.raises(OwnerRulesError, match="cannot be read"):
            load_rules(file)
    assert load_rules(None).rules == ()


def test_names_that_nobody_has_are_told_with_who_was_meant() -> None:
    rules, _ = parse("@team = @ann @beaa\n* @team @zoe 2")
    faults = unknown_persons(rules, ["ann", "bea"])
    assert [(fault.line, fault.message) for fault in faults] == [
        (1, "There is no person beaa (did you mean bea?)."),
        (2, "There is no person zoe."),
    ]


@given(st.text(st.characters(codec=None), max_size=200) | st.text("*@:= #\n2abtype.", max_size=60))
def test_any_text_is_rules_and_faults(text: str) -> None:
    rules, faults = parse(text)
    assert all(fault.line >= 1 and fault.message for fault in faults)
    assert rules.required({}).approvals >= 1


def test_every_reason_has_one_risk() -> None:
    assert not HIGH_RISK & MEDIUM_RISK
    assert {risk_of(rule) for rule in Rule} == {"high", "medium", "low"}
    assert (risk_of(Rule.CONFLICT), risk_of(Rule.UNCOVERED), risk_of(Rule.UNGROUNDED)) == (
        "high",
        "medium",
        "low",
    )
