"""`vouchgate compare` as a program: its exact answer, bad lines, any text."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.acceptance.cli_program import cli, complaint, json_lines, lines

ROW = {"earlier": "The kiln cools for 90 minutes.", "claim": "The kiln cools for 9 minutes."}


@pytest.mark.parametrize(
    ("earlier", "relation", "similarity", "changed"),
    [
        (ROW["earlier"], "conflict", 0.7143, ["9", "90"]),
        ("the kiln cools for 9 minutes", "repeat", 1.0, []),
        ("The kiln is fired with wood.", "new", 0.2, []),
    ],
)
def test_the_answer_has_exactly_the_documented_shape(
    earlier: str, relation: str, similarity: float, changed: list[str], tmp_path: Path
) -> None:
    done = cli(
        "compare", stdin=lines([{"id": "m1", "earlier": earlier, "claim": ROW["claim"]}]), cwd=tmp_path
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert json_lines(done.stdout) == [
        {"id": "m1", "relation": relation, "similarity": similarity, "changed": changed}
    ]


def test_a_bad_line_gets_an_error_object_in_its_place_and_spoils_no_other(tmp_path: Path) -> None:
    bad = ['{"claim": 3, "earlier": "x", "id": 7}', '{"id": "x", "earlier": "a"}', "{", "[]"]
    good = json.dumps(ROW)
    done = cli("compare", "-", stdin="\n".join([good, *bad, good]) + "\n", cwd=tmp_path)
    answers = json_lines(done.stdout)
    assert (done.returncode, done.stderr) == (1, b"")
    assert [answer.get("line") for answer in answers] == [None, 2, 3, 4, 5, None]
    assert answers[1] == {
        "error": {"code": "claim_invalid", "message": "claim must be a string"},
        "line": 2,
        "id": 7,
    }
    assert answers[2]["error"] == {"code": "claim_invalid", "message": "the field claim is missing"}


def test_any_text_is_answered(tmp_path: Path) -> None:
    texts = [
        "",
        "\x00",
        "\ud800 kiln",
        "\u202e kiln \u200b",
        "a" * 70_000,
        "\r",
        "\u2028",
        "The kiln is 9 m. " * 30_000,
    ]
    rows = [{"id": text[:9], "earlier": text, "claim": other} for text in texts for other in texts]
    done = cli("compare", stdin=lines(rows), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [answer["id"] for answer in json_lines(done.stdout)] == [row["id"] for row in rows]
    assert done.stdout.isascii()
    assert "nowhere.jsonl: cannot be read" in complaint(cli("compare", "nowhere.jsonl", cwd=tmp_path))


def test_the_example_of_the_docs_is_what_comes_out(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "cli.md").read_text("utf-8")
    example = re.search(r"echo '(.+)' \| vouchgate compare\n```\n\n```json\n(.+)\n```", page)
    assert example
    assert cli("compare", stdin=example[1], cwd=tmp_path).stdout.decode() == example[2] + "\n"
