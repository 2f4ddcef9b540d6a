"""`gate-doc --changed-since`: what is new in a document, and in what it cites, as real git repositories have it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.repos import TestRepository
from vouchgate.cli.lines.gate_doc import Options, run
from vouchgate.settings import Settings

RECORD = """# 3. Fire with wood

## Status

Accepted

## Decision

The kiln of Vester is fired with beech wood.
"""
NOTES = "The bowls of Vester are red. The kiln of Vester is old.\n"
PAGE = """# Kiln

The bowls of Vester are red ([notes][n]).

The kiln of Vester is old.[^old]

| potter | colour |
|---|---|
| Ada | red ([notes](notes.md)) |

In winter the kiln of Vester has:

- a door of iron ([notes](notes.md))

The kiln of Vester is fired with beech wood (ADR-3).

[n]: notes.md
[^old]: docs/notes.md
"""
BOWLS, OLD, ROW, DOOR, WOOD = "bowls", "old", "Ada", "iron", "beech"

Checked = Callable[..., list[str]]


@pytest.fixture
def pottery(tmp_path: Path) -> TestRepository:
    repository = TestRepository(tmp_path / "pottery")
    files = {"docs/adr/0003-wood.md": RECORD, "docs/notes.md": NOTES, "docs/more.md": NOTES}
    repository.commit("Kiln", {**files, "docs/kiln.md": PAGE})
    return repository


@pytest.fixture
def checked(
    pottery: TestRepository, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Checked:
    """The claims of the page that are checked since a revision."""

    def claims(since: str = "HEAD") -> list[str]:
        monkeypatch.chdir(pottery.path)
        options = Options(format="json", changed_since=since, retry_seconds=0.0)
        run(["docs/kiln.md"], Settings(offline=True), options)
        report = json.loads(capfdbinary.readouterr().out)
        return [claim["text"] for document in report["documents"] for claim in document["claims"]]

    return claims


def test_nothing_changed_where_nothing_did(checked: Checked) -> None:
    assert checked() == []


@pytest.mark.parametrize(
    ("old", "new", "about"),
    [
        ("[n]: notes.md", "[n]: more.md", BOWLS),
        ("[^old]: docs/notes.md", "[^old]: docs/more.md", OLD),
        ("[^old]: docs/notes.md\n", "", OLD),
        ("| potter |", "| oven |", ROW),
        ("In winter the kiln", "In summer the kiln", f"summer {DOOR}"),
    ],
)
def test_a_claim_is_new_where_what_it_is_read_with_is(
    pottery: TestRepository, checked: Checked, old: str, new: str, about: str
) -> None:
    pottery.write({"docs/kiln.md": PAGE.replace(old, new)})
    assert all(word in claim for word, claim in zip(about.split(), checked(), strict=True))


def test_a_claim_that_moves_is_not_new_and_one_that_is_repeated_is(
    pottery: TestRepository, checked: Checked
) -> None:
    moved = "The kiln of Vester is fired with beech wood (ADR-3).\n\n"
    pottery.write({"docs/kiln.md": PAGE.replace(moved, "").replace("# Kiln\n\n", f"# Kilns\n\n{moved}")})
    assert checked() == []
    pottery.write({"docs/kiln.md": PAGE + f"\n{moved}"})
    (claim,) = checked()
    assert WOOD in claim


@pytest.mark.parametrize(
    "files",
    [
        {"docs/adr/0003-wood.md": RECORD.replace("beech wood", "coal")},
        {"docs/adr/0003-wood.md": RECORD.replace("Accepted", "Rejected")},
        {
            "docs/adr/0004-coal.md": "# 4. Fire with coal\n\n## Status\n\nAccepted\n\n"
            "Supersedes [ADR-3](0003-wood.md)\n\n## Decision\n\nThe kiln is fired with coal.\n"
        },
    ],
)
def test_a_record_that_is_cited_by_its_number_changes(
    pottery: TestRepository, checked: Checked, files: dict[str, str]
) -> None:
    pottery.commit("Coal", files)
    (claim,) = checked("HEAD~1")
    assert WOOD in claim


def test_nothing_that_a_repository_names_is_run_or_hides_a_change(
    tmp_path: Path, pottery: TestRepository, checked: Checked, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran, program = tmp_path / "ran", tmp_path / "program"
    program.write_text(f'#!/bin/sh\necho "$0" >> {ran}\n')
    program.chmod(0o700)
    pottery.commit("Attributes", {".gitattributes": "*.md -diff filter=own\n"})
    for name in (
        "diff.external",
        "diff.own.textconv",
        "diff.own.command",
        "filter.own.clean",
        "core.fsmonitor",
    ):
        pottery.git("config", name, str(program))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(program))
    new = "\nThe kiln of Vester was built by Ada.\n"
    for attributes in ("*.md -diff filter=own\n", "*.md diff=own filter=own\n"):
        pottery.write({".gitattributes": attributes, "docs/kiln.md": PAGE + new})
        os.utime(pottery.path / "docs/notes.md")
        assert checked() == [new.strip()]
    assert not ran.exists()
