"""The conversation of docs/langgraph.md, run as it stands: what the user said is stored, what the model made up is not,
and no page speaks for the user."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[3] / "docs" / "langgraph.md").read_text("utf-8")
SECTION = PAGE.partition("## What the user said, and what the model made up")[2].partition("\n## ")[0]


def test_the_conversation_on_the_page(
    tmp_path: Path, migrated_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ((block, printed),) = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", SECTION, re.DOTALL)
    (tmp_path / "conversation.db").write_bytes(migrated_file.read_bytes())
    monkeypatch.chdir(tmp_path)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(block, "docs/langgraph.md", "exec"), {})  # noqa: S102  (that is the test)
    assert said.getvalue() == printed
