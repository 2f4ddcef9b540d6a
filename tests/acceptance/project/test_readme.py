"""What the README promises of its first request."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.acceptance.cli_program import cli
from tests.repos import TestRepository

ROOT = Path(__file__).parents[3]


def test_the_first_request_is_stored(tmp_path: Path) -> None:
    """In a repository with our own ADRs, as they are: one that no longer holds would be no example."""
    pages = {f"docs/adrs/{page.name}": page.read_text() for page in (ROOT / "docs/adrs").glob("*.md")}
    TestRepository(tmp_path / "repo").commit("Decide", pages)
    found = re.search(r"-d '(\{.*\})'", (ROOT / "README.md").read_text())
    assert found is not None
    done = cli("check", "--repo", tmp_path / "repo", "--offline", stdin=found[1], cwd=tmp_path)
    answer = json.loads(done.stdout)
    assert (answer["outcome"], answer["reason"]) == ("stored", "Stated by its source")
    assert answer["evidence"]["label"] == "FACT"
