"""`vouchgate detect` as a program: its exact answer, bad lines, any text, closed pipes."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.acceptance.cli_program import (
    PROGRAM,
    clean_environment,
    cli,
    complaint,
    json_lines,
    lines,
    talking,
)


def test_the_answer_has_exactly_the_documented_shape(tmp_path: Path) -> None:
    row = {"id": "r1", "text": "Maybe we could shard it, see ADR-007."}
    done = cli("detect", stdin=lines([row]), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    assert json_lines(done.stdout) == [
        {
            "id": "r1",
            "hedge": {
                "action": "block",
                "matches": [
                    {"category": "undecided_suggestion", "text": "Maybe we could", "start": 0, "end": 14}
                ],
            },
            "citations": [{"type": "adr", "value": "ADR-007", "start": 29, "end": 36}],
        }
    ]


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("I think the cache is small", "block"),
        ("The import may time out", "review"),
        ("The cache holds 40 entries", "continue"),
    ],
)
def test_the_action_is_one_of_three_words(text: str, action: str, tmp_path: Path) -> None:
    done = cli("detect", "-", stdin=lines([{"text": text}]), cwd=tmp_path)
    (answer,) = json_lines(done.stdout)
    assert answer["id"] is None
    assert answer["hedge"]["action"] == action


def test_offsets_count_characters_of_the_text_as_sent(tmp_path: Path) -> None:
    text = "𝔘𝔫𝔦 🙂 I th\u0456nk it holds (ADR-12)"
    (answer,) = json_lines(cli("detect", stdin=lines([{"text": text}]), cwd=tmp_path).stdout)
    found = [*answer["hedge"]["matches"], *answer["citations"]]
    assert [text[one["start"] : one["end"]] for one in found] == ["I th\u0456nk", "ADR-12"]


def test_a_bad_line_gets_an_error_object_in_its_place_and_spoils_no_other(tmp_path: Path) -> None:
    bad = ['{"text": 3, "id": 7}', '{"id": "x"}', "{", "[]", '"text"', '{"text": NaN}', "\x00", "[" * 99_999]
    good = json.dumps({"text": "It holds."})
    done = cli("detect", stdin="\n".join([good, *bad, good]) + "\n", cwd=tmp_path)
    answers = json_lines(done.stdout)
    assert done.returncode == 1
    assert done.stderr == b""
    assert [answer.get("line") for answer in answers] == [None, 2, 3, 4, 5, 6, 7, 8, 9, None]
    assert all(answer["error"]["code"] and answer["error"]["message"] for answer in answers[1:-1])
    assert answers[1]["id"] == 7
    assert answers[2]["id"] == "x"
    assert "id" not in answers[3]


def test_any_text_is_answered_and_comes_back_as_it_was(tmp_path: Path) -> None:
    texts = ["", "\x00", "\ud800 maybe", "\udfff\ud800", "\u202e maybe \u200b", "a" * 70_000, "\r", "\u2028"]
    done = cli("detect", stdin=lines([{"id": text, "text": text} for text in texts]), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [answer["id"] for answer in json_lines(done.stdout)] == texts
    assert done.stdout.isascii()


def test_raw_bytes_that_are_no_utf_8_are_a_bad_line(tmp_path: Path) -> None:
    done = cli("detect", stdin=b'{"text": "\xff"}\n{"text": "fine"}\n', cwd=tmp_path)
    first, second = json_lines(done.stdout)
    assert first["error"]["code"] == "json_invalid"
    assert second["hedge"]["action"] == "continue"
    assert done.returncode == 1


def test_a_line_far_too_long_is_refused_and_the_next_one_read(tmp_path: Path) -> None:
    long = b'{"text": "' + b"x" * (17 * 1024 * 1024) + b'"}\n'
    done = cli("detect", stdin=long + b'{"text": "fine"}\n', cwd=tmp_path)
    first, second = json_lines(done.stdout)
    assert (first["error"]["code"], first["line"]) == ("line_too_long", 1)
    assert second["hedge"]["action"] == "continue"


def test_a_file_a_byte_order_mark_blank_lines_and_no_last_line_end(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_bytes(
        b'\xef\xbb\xbf{"id":1,"text":"a"}\r\n\n  \n{"id":2,"text":"b","tag":"kept by the caller"}'
    )
    done = cli("detect", file, cwd=tmp_path)
    assert [answer["id"] for answer in json_lines(done.stdout)] == [1, 2]
    assert done.returncode == 0


def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    assert "nowhere.jsonl: cannot be read" in complaint(cli("detect", "nowhere.jsonl", cwd=tmp_path))
    assert "cannot be read" in complaint(cli("detect", tmp_path, cwd=tmp_path))


def test_it_answers_each_line_before_the_next_one_is_written(tmp_path: Path) -> None:
    with talking("detect", cwd=tmp_path) as asked:
        for number in range(3):
            asked.given.write(json.dumps({"id": number, "text": "perhaps"}).encode() + b"\n")
            asked.given.flush()
            assert json.loads(asked.told.readline())["id"] == number
        asked.given.close()
        assert asked.program.wait(120) == 0


def test_a_reader_that_goes_away_ends_it_quietly(tmp_path: Path) -> None:
    file = tmp_path / "many.jsonl"
    file.write_text(lines([{"text": "perhaps " * 40}] * 5_000))
    with subprocess.Popen(
        [*PROGRAM, "detect", file],
        cwd=tmp_path,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


def test_thousands_of_rows_are_all_answered(tmp_path: Path) -> None:
    row = {
        "text": "The importer probably retries about three times, see ADR-004 and https://example.org/a#b."
    }
    done = cli("detect", stdin=lines([row] * 3_000), cwd=tmp_path)
    assert len(done.stdout.splitlines()) == 3_000


def test_the_example_of_the_docs_is_what_comes_out(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "cli.md").read_text("utf-8")
    example = re.search(r"echo '(.+)' \| vouchgate detect\n```\n\n```json\n(.+)\n```", page)
    assert example
    assert cli("detect", stdin=example[1], cwd=tmp_path).stdout.decode() == example[2] + "\n"
