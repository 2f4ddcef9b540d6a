"""Decision records wherever a repository keeps them, and the later ones that change them; in real repositories."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.repos import TestRepository, adr
from vouchgate.ingest.claims.source import Found, Missing, SourceReading, Standing, Unreachable
from vouchgate.ingest.sources.git.source import GitSource


def page(number: int, status: str = "Accepted", more: str = "") -> str:
    return f"# {number}. Use queues\n\n## Status\n\n{status}\n\n## Decision\n\nUploads go to a queue.\n{more}"


@pytest.fixture
def repository(tmp_path: Path) -> TestRepository:
    return TestRepository(tmp_path / "project")


def source(*repositories: TestRepository) -> GitSource:
    return GitSource([item.path for item in repositories])


def found(reading: SourceReading) -> Found:
    assert isinstance(reading, Found), reading
    return reading


def unreachable(reading: SourceReading) -> Unreachable:
    assert isinstance(reading, Unreachable), reading
    return reading


@pytest.mark.parametrize(
    "directory",
    [
        "adr",
        "docs/adr",
        "docs/ADRs",
        "doc/arch",
        "docs/decisions",
        "docs/architecture/decisions",
        "docs/architecture/adr",
        "doc/architecture-decisions",
        "docs/architecture-decision-record",
        "docs/architecture_decision_records",
        "decisions",
        "packages/importer/docs/adr",
        "docs/adr/storage",
    ],
)
def test_common_directories_are_found_by_themselves(repository: TestRepository, directory: str) -> None:
    repository.commit("Decide", {f"{directory}/0003-use-queues.md": page(3), "docs/0004-guide.md": page(4)})
    looked_up = source(repository)
    assert found(looked_up.read(adr(3))).standing is Standing.IN_FORCE
    assert isinstance(looked_up.read(adr(4)), Missing)


@pytest.mark.parametrize(
    "file", ["adr-3-queues.md", "notes/ADR_0003.use-queues.md", "docs/architecture/adr-003.md"]
)
def test_a_file_that_calls_itself_a_record_is_one_wherever_it_lies(
    repository: TestRepository, file: str
) -> None:
    repository.commit("Decide", {file: page(3), "docs/architecture/0004-guide.md": page(4)})
    looked_up = source(repository)
    assert found(looked_up.read(adr(3))).standing is Standing.IN_FORCE
    assert isinstance(looked_up.read(adr(4)), Missing)  # where there are records, no other numbers count


def test_numbered_files_on_the_architecture_are_records_where_there_are_no_others(
    repository: TestRepository,
) -> None:
    chapters = {"architecture/04-solution.md": page(4), "tests/architecture/005-x.md": page(5)}
    repository.commit("Decide", {"site/docs/architecture/003-use-queues.md": page(3), **chapters})
    looked_up = source(repository)
    assert found(looked_up.read(adr(3))).standing is Standing.IN_FORCE
    for number in (4, 5):
        assert isinstance(looked_up.read(adr(number)), Missing)


def test_numbered_files_without_a_status_are_no_records(repository: TestRepository) -> None:
    repository.commit("Start", {"docs/architecture/003-overview.md": "# Overview\n\nWe use queues.\n"})
    assert unreachable(source(repository).read(adr(3))).code == "no_records"


def test_a_record_that_nobody_has_committed_is_seen_beside_others(repository: TestRepository) -> None:
    repository.commit("Decide", {"docs/architecture/adr-003-queues.md": page(3)})
    (repository.path / "docs/architecture/adr-004-eve.md").write_text(page(4))
    assert found(source(repository).read(adr(4))).standing is Standing.PROPOSED


@pytest.mark.parametrize(
    "directory",
    ["docs", "arch", "node_modules/tool/docs/adr", "tests/fixtures/adr", "memory-bank/decisions", "badr"],
)
def test_other_directories_hold_none(repository: TestRepository, directory: str) -> None:
    repository.commit("Start", {f"{directory}/0003-use-queues.md": page(3)})
    reading = unreachable(source(repository).read(adr(3)))
    assert reading.code == "no_records"
    assert "docs/decisions" in reading.detail  # where it looked


@pytest.mark.parametrize(
    ("pointer", "says", "file"),
    [
        (".adr-dir", "records\n", "records/0003-use-queues.md"),
        ("services/mail/.adr-dir", "./notes/records", "services/mail/notes/records/0003-use-queues.md"),
        (
            ".log4brains.yml",
            "project:\n  name: x\n  adrFolder: ./notes  # here\n  packages:\n    - name: a\n      adrFolder: a/notes\n",
            "a/notes/0003-use-queues.md",
        ),
    ],
)
def test_a_file_names_the_directory(repository: TestRepository, pointer: str, says: str, file: str) -> None:
    repository.commit("Decide", {pointer: says, file: page(3)})
    assert found(source(repository).read(adr(3))).standing is Standing.IN_FORCE


@pytest.mark.parametrize("says", ["../records", "/etc", "", "\n", "a/../../records", "x" * 10_000])
def test_a_file_that_names_no_directory_here_names_none(repository: TestRepository, says: str) -> None:
    repository.commit("Start", {".adr-dir": says, "records/0003-use-queues.md": page(3)})
    assert unreachable(source(repository).read(adr(3))).code == "no_records"


def test_directories_that_are_set_are_the_only_ones(repository: TestRepository) -> None:
    repository.commit("Decide", {"records/0003-use-queues.md": page(3), "docs/adr/0004-x.md": page(4)})
    looked_up = GitSource([repository.path], ["records"])
    assert found(looked_up.read(adr(3))).standing is Standing.IN_FORCE
    assert isinstance(looked_up.read(adr(4)), Missing)


def test_a_repository_without_records_does_not_hide_what_another_lacks(
    repository: TestRepository, tmp_path: Path
) -> None:
    repository.commit("Start", {"a.txt": "a"})
    other = TestRepository(tmp_path / "other")
    other.commit("Decide", {"docs/adr/0003-use-queues.md": page(3)})
    looked_up = source(repository, other)
    assert found(looked_up.read(adr(3))).standing is Standing.IN_FORCE
    assert isinstance(looked_up.read(adr(4)), Missing)


def test_a_hundred_thousand_files_are_looked_through_within_the_time_of_one_reading(
    repository: TestRepository,
) -> None:
    blocks = ["blob\nmark :1\ndata 2\nx\n"]
    blocks.append("commit refs/heads/main\ncommitter Ada <ada@example.org> 1700000000 +0000\ndata 4\nMany\n")
    blocks += [f"M 644 :1 src/part{number % 500}/file{number}.py\n" for number in range(100_000)]
    text = page(3)
    blocks.append(f"M 644 inline packages/a/docs/adr/0003-x.md\ndata {len(text)}\n{text}\n")
    repository.git("fast-import", "--quiet", stdin="".join(blocks))
    looked_up = source(repository)
    assert found(looked_up.read(adr(3))).standing is Standing.IN_FORCE
    assert isinstance(looked_up.read(adr(4)), Missing)


# --- what counts is at the protected ref


def test_the_default_branch_of_the_remote_counts_and_not_what_is_checked_out(
    repository: TestRepository, tmp_path: Path
) -> None:
    repository.commit("Decide", {"docs/adr/0003-use-queues.md": page(3)})
    clone = TestRepository(tmp_path / "work")
    clone.git("remote", "add", "origin", str(repository.path))
    clone.git("fetch", "--quiet", "origin")
    clone.git("remote", "set-head", "origin", "main")
    clone.git("reset", "--quiet", "--hard", "origin/main")
    clone.git("checkout", "--quiet", "-b", "agent")
    clone.commit(
        "Make one up", {"docs/adr/0004-eve.md": page(4), "docs/adr/0003-use-queues.md": page(3, "Rejected")}
    )
    looked_up = source(clone)
    assert found(looked_up.read(adr(3))).standing is Standing.IN_FORCE
    reading = found(looked_up.read(adr(4)))
    assert reading.standing is Standing.NOT_MERGED
    assert "is not merged into main" in reading.detail
    assert not reading.official
    clone.git("checkout", "--quiet", "--detach", "origin/main")  # now nothing of it is in the work tree
    assert found(looked_up.read(adr(4))).standing is Standing.NOT_MERGED
    assert isinstance(looked_up.read(adr(5)), Missing)
    repository.git("fetch", "--quiet", str(clone.path), "agent:agent")
    repository.git("merge", "--quiet", "--ff-only", "agent")
    clone.git("fetch", "--quiet", "origin")
    assert found(looked_up.read(adr(4))).standing is Standing.IN_FORCE
    assert found(looked_up.read(adr(3))).standing is Standing.REJECTED


@pytest.mark.parametrize("ref", ["release", "refs/heads/release", "v1"])
def test_a_ref_that_is_set_counts(repository: TestRepository, ref: str) -> None:
    repository.commit("Decide", {"docs/adr/0003-use-queues.md": page(3)})
    repository.git("branch", "release")
    repository.git("tag", "--annotate", "--message", "One", "v1")
    repository.commit("Go on", {"docs/adr/0004-x.md": page(4)})
    looked_up = GitSource([repository.path], refs=[ref])
    assert looked_up.problems() == ()
    assert found(looked_up.read(adr(3))).standing is Standing.IN_FORCE
    reading = found(looked_up.read(adr(4)))
    assert reading.standing is Standing.NOT_MERGED
    assert f"is not merged into {ref}" in reading.detail


def test_a_ref_that_is_set_and_not_there_or_two_of_them_stop_the_start(repository: TestRepository) -> None:
    first = repository.commit("Decide", {"docs/adr/0003-use-queues.md": page(3)})
    repository.commit("Go on")
    repository.git("update-ref", "refs/remotes/team/main", first)
    repository.git("update-ref", "refs/heads/team/main", "HEAD")
    for ref, words in (
        ("gone", "has no gone"),
        ("team/main", "refs/heads/team/main and refs/remotes/team/main"),
    ):
        looked_up = GitSource([repository.path], refs=[ref])
        assert words in looked_up.problems()[0]
        assert unreachable(looked_up.read(adr(3))).code == "error"
    for refs in (["a b"], ["--all"], ["main~1"], ["main", "main"]):
        with pytest.raises(ValueError, match="ref"):
            GitSource([repository.path], refs=refs)


# --- later records


CHANGED = "docs/adr/0003-use-queues.md"
AMENDS = (
    "## Status\n\nAccepted\n\nAmends [3. Use queues](0003-use-queues.md)\n\n## Decision\n\nOnly large ones.\n"
)


@pytest.mark.parametrize(
    "later",
    [
        f"# 7. Large uploads\n\n{AMENDS}",
        "# Large uploads\n\n- Status: accepted\n\n## Links\n\n- Refines [use queues](./0003-use-queues.md)\n",
        "# 7. Large uploads\n\n## Decision\n\nSmall uploads go straight to the\nstore, which relaxes ADR-0003.\n",
        "# 7. Large uploads\n\n## Decision\n\nADR 3 is therefore narrowed to uploads over 5 MB.\n",
        "# 7. Large uploads\n\nThis replaces parts of ADR-3.\n",
        "# 7. Large uploads\n\n## Context\n\n[ADR 3: Use queues][a] explained our decision to queue every upload.\n\n"
        "## Consequences\n\nWe no longer queue all of them.\n\n[a]: https://example.org/0003-use-queues.md\n",
    ],
)
def test_a_later_record_that_changes_one_is_read_with_it(repository: TestRepository, later: str) -> None:
    repository.commit("Decide", {CHANGED: page(3)})
    looked_up = source(repository)
    before = found(looked_up.read(adr(3)))
    assert (before.amended_by, before.later) == ((), "")
    repository.commit("Change", {"docs/adr/0007-large-uploads.md": later})
    reading = found(looked_up.read(adr(3)))
    assert reading.standing is Standing.IN_FORCE
    assert reading.amended_by == ("ADR-007",)
    assert "arge uploads" in reading.later
    assert "ADR-007" in reading.detail
    assert reading.digest != before.digest  # so that a memory is looked at again
    assert "later" not in reading.model_dump()
    assert found(looked_up.read(adr(7))).amended_by == ()


def test_the_changed_record_may_say_it_itself(repository: TestRepository) -> None:
    says = "Accepted\n\nAmended by [7. Large uploads](0007-large-uploads.md)\n\nClarified by ADR-9"
    repository.commit("Decide", {CHANGED: page(3, says), "docs/adr/0007-large-uploads.md": page(7)})
    reading = found(source(repository).read(adr(3)))
    assert reading.amended_by == ("ADR-007", "ADR-009")  # of the one that is not there nothing can be read
    assert reading.later.startswith("# 7. Use queues")


@pytest.mark.parametrize(
    "later",
    [
        page(7, "Proposed\n\nAmends ADR-3"),
        page(7, "Superseded by ADR-8\n\nAmends ADR-3"),
        page(7, more="As ADR-3 says, uploads go to a queue. We change the store.\n"),
        page(7, more="See [3. Change the queues](0003-use-queues.md) and [4. Amend nothing](0004-x.md).\n"),
        page(7, more="This does not change ADR-3. The changes made for ADR-3 stay.\n"),
        page(7, more="```\namends ADR-3\n```\n<!-- amends ADR-3 -->\n"),
        page(2, more="## Context\n\nADR-3 will decide it.\n\n## Consequences\n\nNo longer than a week.\n"),
    ],
)
def test_what_is_not_in_force_or_only_names_a_record_changes_nothing(
    repository: TestRepository, later: str
) -> None:
    number = 2 if later.startswith("# 2.") else 7
    files = {CHANGED: page(3), f"docs/adr/{number:04}-later.md": later, "docs/adr/0008-x.md": page(8)}
    repository.commit("Decide", files)
    assert found(source(repository).read(adr(3))).amended_by == ()
