"""SARIF, JSON, annotations, JUnit and lines: what they have to have, and text of others in them."""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from tests.unit.documents.checks import FALSE, LOG, PARTLY, TRUE, report
from vouchgate.documents.formats import github, html, junit, sarif, text
from vouchgate.documents.report import Report, ReportJson

ROOT = Path(__file__).parents[3]
SCHEMA = ROOT / "docs" / "gate-doc.schema.json"
# The validator of SARIF by the makers of the format, and the schema that they publish in it: see the Makefile.
MULTITOOL = next((Path(sys.prefix) / "node/node_modules/@microsoft").glob("sarif-multitool-*"))
SARIF = MULTITOOL / "sarif-2.1.0.json"
ALL = f"# Kilns\n\n{TRUE}\n\n{FALSE}\n\n{PARTLY}\n\nThe bowls are sold in Ribe [7].\n\nThe bowls are red.\n"
HOSTILE = 'docs/a,b:c%::error::x\x1b[31m\u202e<b>&"\udce9.md'  # the last but one is a byte that is not UTF-8
WRITERS: dict[str, Callable[[Report], str]] = {
    "sarif": sarif.write,
    "github": github.write,
    "junit": junit.write,
    "text": text.write,
    "html": html.write,
}


def sarif_of(made: Report) -> Any:  # Any: JSON
    found = json.loads(sarif.write(made))
    jsonschema.Draft202012Validator(
        json.loads(SARIF.read_text("utf-8")), format_checker=jsonschema.FormatChecker()
    ).validate(found)
    return found


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the validator is a program for x86-64")
def test_sarif_is_opened_by_its_makers_validator(tmp_path: Path) -> None:
    written = json.loads(sarif.write(report(ALL, accepted="known")))
    (tmp_path / "whole.sarif").write_text(json.dumps(written), "utf-8")
    del written["runs"][0]["tool"]
    (tmp_path / "broken.sarif").write_text(json.dumps(written), "utf-8")
    done = subprocess.run(
        [MULTITOOL / "Sarif.Multitool", "validate", "whole.sarif", "broken.sarif"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={"DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1", "HOME": str(tmp_path)},  # else it needs ICU
        check=True,
    )
    found = set(re.findall(r"(\w+)\.sarif\(.*?\): (?:error|warning) (\w+):", done.stdout))
    # All that it asks for beyond the standard is an address where people read more of the program (SARIF2005).
    assert found == {("whole", "SARIF2005"), ("broken", "JSON1002")}


def test_sarif_is_what_its_schema_says() -> None:
    made = report(ALL, accepted="known")
    (run,) = sarif_of(made)["runs"]
    assert [each["ruleId"] for each in run["results"]] == ["FALSE", "PARTIAL", "BROKEN_CITATION", "UNCITED"]
    assert {each["id"] for each in run["tool"]["driver"]["rules"]} >= {
        each["ruleId"] for each in run["results"]
    }
    first = run["results"][0]["locations"][0]["physicalLocation"]["region"]
    assert (first["startLine"], first["startColumn"]) == (5, 1)


def test_a_validator_of_sarif_refuses_what_is_none() -> None:
    made = json.loads(sarif.write(report(ALL)))
    result = made["runs"][0]["results"][0]
    schema = json.loads(SARIF.read_text("utf-8"))
    validator = jsonschema.validators.validator_for(schema)(schema)
    validator.validate(made)
    for name, value in (("level", "grave"), ("message", "text"), ("verdict", "FALSE"), ("ruleIndex", -2)):
        with pytest.raises(jsonschema.ValidationError):
            broken = {**made, "runs": [{**made["runs"][0], "results": [{**result, name: value}]}]}
            validator.validate(broken)


def test_sarif_fingerprints_stay_where_claims_move() -> None:
    def prints(page: str) -> set[str]:
        (run,) = sarif_of(report(page))["runs"]
        return {each["partialFingerprints"]["vouchgate/v1"] for each in run["results"]}

    assert prints(f"{FALSE}\n\n{PARTLY}") == prints(f"# New\n\n{TRUE}\n\n{PARTLY}\n\n{FALSE}")
    assert prints(FALSE) != prints(FALSE.replace("1935", "1936"))


def test_sarif_of_more_results_than_code_hosts_show_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sarif.MOST == 5000
    monkeypatch.setattr(sarif, "MOST", 1000)
    page = "\n\n".join(f"The bowl {number} is red." for number in range(1003))
    (run,) = json.loads(sarif.write(report(page)))["runs"]
    assert len(run["results"]) == 1000
    notes = [each["message"]["text"] for each in run["invocations"][0]["toolExecutionNotifications"]]
    assert notes[-1] == "There are 1,003 results; the first 1,000 are here."


def test_json_is_what_its_schema_says() -> None:
    schema = json.loads(SCHEMA.read_text("utf-8"))
    assert schema == ReportJson.model_json_schema(mode="serialization"), (
        "python -m tests.unit.documents.checks"
    )
    told = report(ALL).as_json()
    jsonschema.validate(told, schema)
    documents: Any = told["documents"]
    verdicts = [claim["verdict"] for claim in documents[0]["claims"]]
    assert verdicts == ["VERIFIED", "FALSE", "PARTIAL", "BROKEN_CITATION", "UNCITED"]
    assert [ALL[c["start"] : c["start"] + 8] for c in documents[0]["claims"]][:2] == ["The kiln", "The kiln"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**told, "more": 1}, schema)


def test_text_is_like_a_compilers() -> None:
    lines = text.write(report(f"{TRUE}\n\n{FALSE}\n")).splitlines()
    assert lines[0].startswith("page.md:3:1: FALSE: ") and "“1935”" in lines[0]
    assert lines[1] == "    The kiln of Vester was built in 1935."
    assert lines[2].startswith(f"    {LOG}: “") and "built in 1921" in lines[2]
    assert lines[-2:] == [
        "2 claims in 1 document: 1 VERIFIED, 1 FALSE",
        "not passed: 1 false; 1 verified, at least 2 must be",
    ]


def test_text_is_no_command_to_the_runner_of_a_workflow() -> None:
    said = "::set-output name=passed::true and ##[add-mask]e and ##vso[task.complete]"
    lines = text.write(report(f"{said} of Vester.\n")).splitlines()
    assert (
        lines[1]
        == "    : :set-output name=passed::true and ## [add-mask]e and ## vso[task.complete] of Vester."
    )


@pytest.mark.parametrize("name", WRITERS)
def test_what_a_baseline_lets_pass_is_shown_with_its_reason_and_day(name: str) -> None:
    written = WRITERS[name](report(FALSE, accepted="The log is wrong"))
    assert "The log is wrong" in written
    assert "2026-12-31" in written
    told = json.dumps(report(FALSE, accepted="The log is wrong").as_json())
    assert "The log is wrong" in told and "2026-12-31" in told


@pytest.mark.parametrize("name", WRITERS)
def test_names_and_texts_of_others_are_text(name: str) -> None:
    claim = "::warning::The kiln <script>alert(1)</script>\x01 ]]> \x1b[2J of Vester was built in 1935"
    made = report(f"{claim} ([log]({LOG})).", name="page.md")
    (document,) = made.documents
    hostile = replace(document, document=replace(document.document, name=HOSTILE))
    written = WRITERS[name](replace(made, documents=(hostile,)))
    assert "\x1b" not in written and "\x01" not in written
    if name == "sarif":
        result = json.loads(written)["runs"][0]["results"][0]
        uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert unquote(uri, errors="surrogateescape") == HOSTILE and re.fullmatch(r"[\w./%,~-]+", uri)
    elif name == "github":
        assert all(re.match(r"::(error|warning|notice) ?", line) for line in written.splitlines())
        assert re.match(r"::warning file=docs/a%2Cb%3Ac%25%3A%3Aerror%3A%3Ax[^:,]*,line=1,", written)
    elif name == "junit":
        assert ET.fromstring(written).find("testsuite/testcase/failure") is not None  # noqa: S314  (our own)
    elif name == "html":
        assert "<script>alert" not in written and "<b>&" not in written
    else:
        assert all("\u202e" not in line for line in written.splitlines())
        assert not any(line.lstrip().startswith("::") for line in written.splitlines())


def test_a_reference_outside_of_claims_to_nothing_is_told_where_it_stands() -> None:
    made = report(f"# Kilns\n\n## Kiln [^9]\n\n{TRUE}\n")
    assert made.gated.reasons == ("1 outside of claims to an entry that is missing",)
    (told,) = sarif_of(made)["runs"][0]["results"]
    assert (told["ruleId"], told["level"]) == ("dangling", "error")
    place = told["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("page.md", 3)
    line, _ = github.write(made).splitlines()
    assert line.startswith(
        "::error file=page.md,line=3,endLine=3,col=9,title=dangling::It refers to an entry"
    )
    suite = ET.fromstring(junit.write(made)).find("testsuite")  # noqa: S314  (our own)
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert [case.get("name") for case in suite.findall("testcase[failure]")] == ["3: [^9]"]


def test_junit_counts() -> None:
    suites = ET.fromstring(junit.write(report(ALL, accepted="known")))  # noqa: S314  (our own)
    suite = suites.find("testsuite")
    assert suite is not None
    assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "5",
        "failures": "4",
        "errors": "0",
        "skipped": "0",
    }


def test_the_page_has_every_character_of_the_document_once() -> None:
    page = html._page(1, report(ALL).documents[0])
    assert "".join(each.text for row in page.rows for each in row.stretches) == ALL
    assert [card.line for row in page.rows for card in row.cards] == [3, 5, 7, 9, 11]
