"""One name is installed, and the folders at the top have no other (ADR-0028)."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FOLDERS = ("ingest", "storage", "review")
# Somewhere after the word, up to the end of the line or where it is continued. Files without any need not be parsed.
BARE = re.compile(rf"\b(?:from|import)\b(?:[^\n]|\\\n)*(?<![.\w])(?:{'|'.join(FOLDERS)})\b")


def sources() -> list[Path]:
    """Every Python file of the project, each once."""
    tops = (*FOLDERS, "vouchgate", "tests", "bench", "clients")
    walked = (step for top in tops for step in os.walk(ROOT / top))
    return [Path(folder) / name for folder, _, names in walked for name in names if name.endswith(".py")]


def bare(text: str) -> list[int]:
    """The lines of a module in which one of the folders is imported by its own name."""
    found = []
    for node in ast.walk(ast.parse(text)) if BARE.search(text) else ():
        named = [each.name for each in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            named.append(node.module or "")
        if {each.split(".")[0] for each in named} & set(FOLDERS):
            found.append(getattr(node, "lineno", 0))
    return found


def test_nothing_is_imported_by_a_bare_name() -> None:
    for source in sources():
        assert bare(source.read_text("utf-8")) == [], source


@pytest.mark.parametrize(
    "text",
    [
        "import ingest",
        "x = 1; import os, ingest.net as net",
        "from review import pages",
        "if True:\n    from\\\n    storage.log import chain",
        "import os, \\\n    storage",
    ],
)
def test_a_bare_name_is_seen(text: str) -> None:
    assert len(bare(text)) == 1
    assert bare(text.replace("ingest", "a").replace("review", "b").replace("storage", "c")) == []


@pytest.mark.parametrize("name", FOLDERS)
def test_a_bare_name_is_refused(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"import {name}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and f"this package is called vouchgate.{name}" in done.stderr
