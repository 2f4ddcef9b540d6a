"""`vouchgate support` as a program: its exact answer, bad lines, any text, long sources."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.acceptance.cli_program import cli, complaint, json_lines, lines, talking

ROW = {
    "claim": "The kiln is fired for 30 hours",
    "source_text": "The kiln is fired for 40 hours. Then it cools.",
}


def test_the_answer_has_exactly_the_documented_shape(tmp_path: Path) -> None:
    done = cli("support", stdin=lines([{"id": "r1", **ROW}]), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    (answer,) = json_lines(done.stdout)
    score = answer.pop("score")
    (statement,) = answer.pop("statements")
    assert isinstance(score, float) and score == statement.pop("score") and 0.4 <= score <= 1
    assert statement == {
        "text": ROW["claim"],
        "start": 0,
        "end": 30,
        "stance": "refutes",
        "missing": ["30"],
        "why": "number",
        "place": {"start": 0, "end": 31},
    }
    assert answer == {
        "id": "r1",
        "verdict": "conflict",
        "spans": {"claim": {"start": 22, "end": 30}, "source": {"start": 22, "end": 30}},
    }


@pytest.mark.parametrize(
    ("claim", "source", "verdict"),
    [
        ("The kiln is fired for 40 hours", ROW["source_text"], "states"),
        ("The kiln is fired at the harbour", ROW["source_text"], "on_topic"),
        ("The kiln is fired for 30 hours", ROW["source_text"], "conflict"),
        ("Parcels wait in the archive", ROW["source_text"], "off_topic"),
        ("Parcels wait in the archive", "", "unknown"),
        ("See ADR-012", ROW["source_text"], "unknown"),
    ],
)
def test_the_verdict_is_one_of_five_words(claim: str, source: str, verdict: str, tmp_path: Path) -> None:
    done = cli("support", "-", stdin=lines([{"claim": claim, "source_text": source}]), cwd=tmp_path)
    (answer,) = json_lines(done.stdout)
    assert answer["id"] is None
    assert answer["verdict"] == verdict


def test_spans_count_characters_of_the_texts_as_sent_in_a_long_source_too(tmp_path: Path) -> None:
    told = "🙂 The kiln is fired for 40 hours."
    filler = "A keeper measured the harbour twice and wrote the result into a ledger.\n" * 300
    row = {"claim": "𝔘 The kiln is fired for 30 hours", "source_text": f"{filler}{told}\n{filler}"}
    (answer,) = json_lines(cli("support", stdin=lines([row]), cwd=tmp_path).stdout)
    assert answer["verdict"] == "conflict"
    spans = answer["spans"]
    assert row["claim"][spans["claim"]["start"] : spans["claim"]["end"]] == "30 hours"
    assert row["source_text"][spans["source"]["start"] : spans["source"]["end"]] == "40 hours"


def test_a_bad_line_gets_an_error_object_in_its_place_and_spoils_no_other(tmp_path: Path) -> None:
    bad = [
        '{"claim": 3, "source_text": "x", "id": 7}',
        '{"id": "x", "claim": "a"}',
        "{",
        "[]",
        '{"source_text": null}',
    ]
    good = json.dumps(ROW)
    done = cli("support", stdin="\n".join([good, *bad, good]) + "\n", cwd=tmp_path)
    answers = json_lines(done.stdout)
    assert (done.returncode, done.stderr) == (1, b"")
    assert [answer.get("line") for answer in answers] == [None, 2, 3, 4, 5, 6, None]
    assert answers[1] == {
        "error": {"code": "claim_invalid", "message": "claim must be a string"},
        "line": 2,
        "id": 7,
    }
    assert answers[2]["error"] == {
        "code": "source_text_invalid",
        "message": "the field source_text is missing",
    }


def test_any_text_is_answered(tmp_path: Path) -> None:
    texts = ["", "\x00", "\ud800 kiln", "\u202e kiln \u200b", "a" * 70_000, "\r", "\u2028", "kiln. " * 30_000]
    rows = [{"id": text[:9], "claim": text[:8192], "source_text": other} for text in texts for other in texts]
    done = cli("support", stdin=lines(rows), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [answer["id"] for answer in json_lines(done.stdout)] == [row["id"] for row in rows]
    assert done.stdout.isascii()


def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    assert "nowhere.jsonl: cannot be read" in complaint(cli("support", "nowhere.jsonl", cwd=tmp_path))


def test_it_answers_each_line_before_the_next_one_is_written(tmp_path: Path) -> None:
    with talking("support", cwd=tmp_path) as asked:
        for number in range(3):
            asked.given.write(json.dumps({"id": number, **ROW}).encode() + b"\n")
            asked.given.flush()
            assert json.loads(asked.told.readline())["id"] == number
        asked.given.close()
        assert asked.program.wait(120) == 0


def test_hundreds_of_rows_are_all_answered(tmp_path: Path) -> None:
    row = {"claim": ROW["claim"], "source_text": ROW["source_text"] + " The harbour was measured twice." * 10}
    done = cli("support", stdin=lines([row] * 400), cwd=tmp_path)
    assert len(done.stdout.splitlines()) == 400


def test_the_example_of_the_docs_is_what_comes_out(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "cli.md").read_text("utf-8")
    example = re.search(r"echo '(.+)' \| vouchgate support\n```\n\n```json\n(.+)\n```", page)
    assert example
    assert cli("support", stdin=example[1], cwd=tmp_path).stdout.decode() == example[2] + "\n"
