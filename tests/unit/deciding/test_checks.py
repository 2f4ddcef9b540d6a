"""Every file with a check says what its check is; what it says is so, and is on the page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from vouchgate.ingest import checks
from vouchgate.ingest.check import Check, Findings
from vouchgate.ingest.claims.claim import Finding, Verdict
from vouchgate.ingest.registry import CHECKS, OF_CLAIMS, OF_FACTS, OF_FINDINGS, OF_SOURCES, title_of

PAGE = Path(__file__).parents[3] / "docs" / "checks.md"


def documented() -> dict[str, dict[str, set[str]]]:
    """The verdicts of each code of each check, as the table of the page has them."""
    found: dict[str, dict[str, set[str]]] = {}
    check = ""
    for line in PAGE.read_text("utf-8").partition("\n## ")[0].splitlines():
        if (row := re.fullmatch(r"\| (?:`(\w+)`[^|]*)?\| ([^|]*) \| ([^|]*) \|", line)) is not None:
            check = row[1] or check
            for code in re.findall(r"`(\w+)`", row[2]):
                found.setdefault(check, {})[code] = set(re.findall(r"PASS|DOUBT|FAIL|UNKNOWN", row[3]))
    return found


def test_every_file_has_its_checks_and_every_check_its_place() -> None:
    files = sorted(each.stem for each in Path(checks.__path__[0]).glob("[a-z]*.py"))
    where = {
        check.judge or check.judge_source or check.judge_findings or check.judge_facts: check
        for check in CHECKS.values()
    }
    modules = {getattr(judge, "__module__", "").rpartition(".")[2] for judge in where}
    assert sorted(modules) == files
    assert len(OF_CLAIMS) + len(OF_SOURCES) + len(OF_FINDINGS) + len(OF_FACTS) == len(CHECKS)
    assert list(CHECKS) == [check.name for check in sorted(CHECKS.values(), key=lambda each: each.order)]
    assert all(title_of(name) for name in CHECKS)
    assert title_of("none") is None


def test_every_code_is_on_the_page_with_its_verdict() -> None:
    declared = {
        check.name: {
            code: {each.value for each in (verdicts if isinstance(verdicts, tuple) else (verdicts,))}
            for code, verdicts in check.codes.items()
        }
        for check in CHECKS.values()
    }
    assert declared == documented()


@pytest.mark.parametrize("given", [{}, {"judge": lambda read: (), "judge_facts": lambda known: None}])
def test_a_check_has_one_judge(given: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="the check x must have one judge"):
        Check(name="x", title="X", codes={}, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("needs", [frozenset(), frozenset({"weather"})])
def test_a_check_of_facts_names_those_that_are_gathered(needs: frozenset[str]) -> None:
    with pytest.raises(ValueError, match="the check x may need dedup, paraphrases, at_place, echo"):
        Check(name="x", title="X", codes={}, judge_facts=lambda known: None, needs=needs)


def test_findings_are_found_by_their_check_and_keep_their_order() -> None:
    every = [
        Finding(check=name, verdict=Verdict.PASS, code=f"c{number}", message="")
        for number, name in enumerate(("b", "a", "b"))
    ]
    found = Findings(every)
    assert (list(found), found["b"], found.of("c"), found.one("c")) == (
        ["b", "a"],
        (every[0], every[2]),
        (),
        None,
    )
    assert found.every == tuple(every)
    assert found == Findings(every)
