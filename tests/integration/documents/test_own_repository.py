"""A document in one of several repositories, or in another copy of the one that is read: where its links go, and that
it does not vouch for itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.repos import TestRepository
from vouchgate.cli.importing.run import ImportRequest
from vouchgate.cli.lines.gate_doc import Options, run
from vouchgate.importing.rows import Defaults, ImportRow
from vouchgate.settings import Settings

SELF, NOTES = "docs/kiln.md", "The bowls of Vester are red.\n"
PAGE = """The bowls of Vester are red ([notes](notes.md)).

The kiln of Vester is old ([page](kiln.md)).

The potters of Vester fire the kiln twice a month.
"""
CLAIMED = ["VERIFIED", "BROKEN_CITATION", "UNCITED"]

Verdicts = Callable[..., list[str]]


@pytest.fixture
def verdicts(capfdbinary: pytest.CaptureFixture[bytes]) -> Verdicts:
    def told(document: Path, *repos: Path, options: Options) -> list[str]:
        run([str(document)], Settings(repo=repos, official_paths=("docs/*.md",)), options)
        (found,) = json.loads(capfdbinary.readouterr().out)["documents"]
        return [claim["verdict"] for claim in found["claims"]]

    return told


@pytest.fixture
def pottery(tmp_path: Path) -> TestRepository:
    repository = TestRepository(tmp_path / "pottery")
    repository.commit("Kiln", {SELF: PAGE, "docs/notes.md": NOTES})
    return repository


def test_a_document_lies_in_any_of_the_repositories_or_in_a_copy_of_one(
    tmp_path: Path, pottery: TestRepository, verdicts: Verdicts
) -> None:
    options = Options(format="json", harvest=True)
    other = TestRepository(tmp_path / "other")
    other.commit("Ovens", {"ovens.md": "The oven is hot.\n"})
    pottery.git("clone", "--quiet", ".", str(tmp_path / "clone"))
    document = pottery.path / SELF
    assert verdicts(document, pottery.path, options=options) == CLAIMED
    assert verdicts(document, other.path, pottery.path, options=options) == CLAIMED
    assert verdicts(document, tmp_path / "clone", options=options) == CLAIMED


def test_what_changed_is_asked_of_the_repository_that_a_document_lies_in(
    tmp_path: Path, pottery: TestRepository, verdicts: Verdicts
) -> None:
    other = TestRepository(tmp_path / "other")
    other.commit("Ovens", {"ovens.md": "The oven is hot.\n"})
    pottery.git("tag", "start")
    pottery.write({SELF: PAGE + "\nThe potters are many.\n"})
    options = Options(format="json", changed_since="start")
    assert verdicts(pottery.path / SELF, other.path, pottery.path, options=options) == ["UNCITED"]


def test_a_document_that_is_imported_lies_in_any_of_them(tmp_path: Path, pottery: TestRepository) -> None:
    other = TestRepository(tmp_path / "other")
    request = ImportRequest(str(pottery.path / SELF), None, Defaults(), None)
    for repos in ([pottery.path], [other.path, pottery.path], [other.path]):
        with request.open(repos) as rows:
            cited = [row.citations for row in rows if isinstance(row, ImportRow)]
        assert cited == [[{"type": "path", "value": "docs/notes.md"}], [], []]
