"""Our own pages and decisions, through our own gate: nothing in them is false, and no citation of them broken."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.acceptance.cli_program import cli
from tests.repos import TestRepository

ROOT = Path(__file__).parents[3]
LEFT_OUT = (".git", ".venv", "__pycache__", "*.egg-info", ".*_cache", ".hypothesis", "build", "node_modules")


def test_nothing_in_our_documents_is_false_or_badly_cited(tmp_path: Path) -> None:
    """As they are in the work tree, offline: links, and the clock, are those of a recorded run. What is accepted has
    its reason in `docs/accepted.toml`, and counts again when its words or its verdict change."""
    here = tmp_path / "vouchgate"
    shutil.copytree(ROOT, here, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT))
    TestRepository(here).commit("All")
    words = (
        "--fail-on",
        "false,broken",
        "--replay-links",
        "docs/recorded",
        "--baseline",
        "docs/accepted.toml",
    )
    done = cli("gate-doc", "README.md", "docs", *words, cwd=here, seconds=500)
    shown = done.stdout.decode()
    wrong = [line for line in shown.splitlines() if ": FALSE: " in line or ": BROKEN_CITATION: " in line]
    assert wrong == []
    assert done.returncode == 0, shown[-500:]
    assert "(accepted)" in shown
