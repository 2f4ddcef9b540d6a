"""`vouchgate extract`: every character of documents as JSON lines, and a sentence for what is no document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.cli_program import cli, complaint, json_lines

PAGE = """# Kilns

The kiln reaches 1,300 degrees ([log](https://oven.example/log)). Is it hot? It is old [3].
"""


def exempt(reason: str, start: int, text: str) -> dict[str, Any]:
    """The row of words that are no claim."""
    span = {"start": start, "end": start + len(text)}
    return {"file": "kilns.md", **span, "kind": "exempt", "reason": reason, "text": text, "citations": []}


def test_every_character_is_on_one_line_in_order(tmp_path: Path) -> None:
    (tmp_path / "kilns.md").write_bytes(PAGE.encode())
    done = cli("extract", "kilns.md", cwd=tmp_path)
    rows = json_lines(done.stdout)
    assert done.returncode == 0
    assert "".join(row["text"] for row in rows) == PAGE
    assert [row["start"] for row in rows] == [0, *(row["end"] for row in rows[:-1])]
    link, old = PAGE.index("[log]"), PAGE.index("[3]")
    log = {"target": "https://oven.example/log", "start": link, "end": link + 31}
    three = {"target": "[3]", "start": old, "end": old + 3}
    assert [row for row in rows if row["kind"] != "markup"] == [
        exempt("heading", 2, "Kilns"),
        {"file": "kilns.md", "start": 9, "end": 74, "kind": "claim", "text": PAGE[9:74], "citations": [log]},
        exempt("question", 75, "Is it hot?"),
        {
            "file": "kilns.md",
            "start": 86,
            "end": 100,
            "kind": "claim",
            "text": PAGE[86:100],
            "citations": [three],
        },
    ]
    assert done.stderr.decode() == f"kilns.md:{old}: dangling: [3]\n"


def test_a_page_may_come_on_standard_input(tmp_path: Path) -> None:
    done = cli("extract", "-", stdin="<!DOCTYPE html><p>The kiln is hot.</p>", cwd=tmp_path)
    assert [row["text"] for row in json_lines(done.stdout) if row["kind"] == "claim"] == ["The kiln is hot."]


def test_f1_that_nothing_can_be_checked_is_said(tmp_path: Path) -> None:
    done = cli("extract", "-", stdin="Is it hot?", cwd=tmp_path)
    assert done.stderr.decode() == "-: no claim was found, so nothing in it can be checked\n"


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"", "it is empty"), (b"\x89PNG\0\n", "it is not UTF-8"), (b"a" * 6_000_000, "it has more than 5000000 bytes")],
)  # fmt: skip
def test_what_is_no_document_ends_with_a_sentence(tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "a.md").write_bytes(content)
    assert f"a.md cannot be read: {why}" in complaint(cli("extract", "a.md", cwd=tmp_path), 2)


def test_a_file_that_cannot_be_read_does_not_stop_the_others(tmp_path: Path) -> None:
    (tmp_path / "b.md").write_text("The kiln is hot.", "utf-8")
    done = cli("extract", "none.md", "b.md", cwd=tmp_path)
    assert complaint(done, 2) == "vouchgate: none.md cannot be read: No such file or directory\n"
    assert [row["text"] for row in json_lines(done.stdout)] == ["The kiln is hot."]
