"""Files and lines of them, looked up in real repositories."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.repos import TestRepository, adr
from vouchgate.ingest.citations import given_citation
from vouchgate.ingest.claims.bounds import TEXT_CHARACTERS
from vouchgate.ingest.claims.source import Found, Missing, SourceReading, Standing, Unreachable
from vouchgate.ingest.sources.git.repository import ObjectAnswers
from vouchgate.ingest.sources.git.source import GitSource

LINES = "".join(f"line {number}\n" for number in range(1, 21))
RECORD = "# 3. Use queues\n\n## Status\n\nAccepted\n\n## Decision\n\nUploads go to a queue.\n"


@pytest.fixture
def repository(tmp_path: Path) -> TestRepository:
    made = TestRepository(tmp_path / "project")
    made.commit("Start", {"src/retry.py": LINES, "docs/guide.md": "# Guide\n\nFive retries.\n"})
    return made


def read(where: TestRepository | GitSource, value: str) -> SourceReading:
    looked_up = where if isinstance(where, GitSource) else GitSource([where.path])
    return looked_up.read(given_citation("path", value))


def found(reading: SourceReading) -> Found:
    assert isinstance(reading, Found), reading
    return reading


def unreachable(reading: SourceReading) -> Unreachable:
    assert isinstance(reading, Unreachable), reading
    return reading


def test_a_file_is_found_with_what_it_says(repository: TestRepository) -> None:
    reading = found(read(repository, "docs/guide.md"))
    assert (reading.standing, reading.form) == (Standing.IN_FORCE, "file")
    assert (reading.source_id, reading.name, reading.title) == ("docs/guide.md",) * 3
    assert reading.text == reading.excerpt == "# Guide\n\nFive retries.\n"
    assert "at main" in reading.detail
    assert not reading.official


def test_lines_are_read_with_what_stands_around_them(repository: TestRepository) -> None:
    reading = found(read(repository, "src/retry.py:10-11"))
    assert reading.text == "\n".join(f"line {number}" for number in range(7, 15))
    assert reading.digest == hashlib.sha256(b"line 10\nline 11").hexdigest()
    assert found(read(repository, "src/retry.py#L1")).text == "line 1\nline 2\nline 3\nline 4"
    assert found(read(repository, "src/retry.py:20")).text == "line 17\nline 18\nline 19\nline 20"


def test_only_the_lines_that_are_cited_make_the_digest(repository: TestRepository) -> None:
    before = found(read(repository, "src/retry.py:10"))
    repository.commit("Change another", {"src/retry.py": LINES.replace("line 12\n", "line twelve\n")})
    assert found(read(repository, "src/retry.py:10")).digest == before.digest
    repository.commit("Change it", {"src/retry.py": LINES.replace("line 10\n", "line ten\n")})
    assert found(read(repository, "src/retry.py:10")).digest != before.digest


def test_what_an_object_says_is_asked_once(repository: TestRepository) -> None:
    """What could not be read is asked again; what was read is known, as long as the ref leads to it."""
    looked_up, head = GitSource([repository.path]), repository.git("rev-parse", "HEAD")
    file = repository.object_file(repository.git("rev-parse", "HEAD:docs/guide.md"))
    away = file.rename(file.with_suffix(".away"))
    assert unreachable(read(looked_up, "docs/guide.md")).code == "error"
    away.rename(file)
    first = found(read(looked_up, "docs/guide.md"))
    file.rename(away)
    assert read(looked_up, "docs/guide.md") == first
    repository.commit("Change it", {"docs/guide.md": "# Guide\n\nSix retries.\n"})
    assert "Six retries" in found(read(looked_up, "docs/guide.md")).text
    repository.git("reset", "-q", "--soft", head)
    assert read(looked_up, "docs/guide.md") == first


def test_answers_on_objects_take_a_bounded_place() -> None:
    answers = ObjectAnswers(most=3_000)
    for number in range(5):
        answers.keep(("cat-file", "blob", str(number)), b"x" * 500)
        assert answers.get(("cat-file", "blob", "0")) == b"x" * 500
    kept = [number for number in range(5) if answers.get(("cat-file", "blob", str(number)))]
    assert kept == [0, 3, 4]
    answers.keep(("cat-file", "blob", "large"), b"x" * 3_000)
    assert answers.get(("cat-file", "blob", "large")) is None


@pytest.mark.parametrize(
    "value",
    ["src/other.py", "src/retry.py:21", "src/retry.py:19-21", "src", "docs/guide.md/x.md", "SRC/retry.py"],
)
def test_what_is_not_there_is_missing(repository: TestRepository, value: str) -> None:
    reading = read(repository, "docs/src.d" if value == "src" else value)
    assert isinstance(reading, Missing), reading
    assert "project" in reading.detail


@pytest.mark.parametrize("value", ["docs/adr/0003-use-queues.md", "./docs/adr/0003-use-queues.md"])
def test_the_path_of_a_record_is_that_record(repository: TestRepository, value: str) -> None:
    repository.commit("Decide", {"docs/adr/0003-use-queues.md": RECORD})
    looked_up = GitSource([repository.path])
    by_path, by_number = found(read(looked_up, value)), found(looked_up.read(adr(3)))
    assert by_path.called == value
    same = {"citation": by_number.citation, "called": by_number.called, "detail": by_number.detail}
    assert by_path.model_copy(update=same) == by_number
    repository.commit("Reject", {"docs/adr/0003-use-queues.md": RECORD.replace("Accepted", "Rejected")})
    assert found(read(looked_up, value)).standing is Standing.REJECTED


def test_the_file_name_of_a_record_is_that_record_where_one_alone_has_it(repository: TestRepository) -> None:
    repository.commit("Decide", {"docs/adr/0003-use-queues.md": RECORD})
    by_name = found(read(repository, "0003-use-queues.md"))
    assert (by_name.called, by_name.source_id) == ("0003-use-queues.md", "ADR-003")
    assert (by_name.form, by_name.standing, by_name.official) == ("record", Standing.IN_FORCE, True)
    assert found(read(repository, "0003-use-queues.md:9")).text == by_name.text
    for other in ("0003-use-files.md", "0004-use-queues.md", "0003-use-queues.txt"):
        assert isinstance(read(repository, other), Missing)
    repository.commit("Say more", {"packages/a/docs/adr/0003-use-queues.md": RECORD})
    assert found(read(repository, "0003-use-queues.md")).standing is Standing.AMBIGUOUS
    repository.commit("Note", {"0003-use-queues.md": "No record.\n"})
    assert found(read(repository, "0003-use-queues.md")).text == "No record.\n"


def test_lines_of_a_record_and_a_record_at_a_commit_are_that_record(repository: TestRepository) -> None:
    path = "docs/adr/0003-use-queues.md"
    first = repository.commit("Decide", {path: RECORD})
    looked_up = GitSource([repository.path])
    for value in (f"{path}:9", f"{path}#L3", f"{path}@{first[:10]}", f"{path}@{first[:10]}:9"):
        reading = found(read(looked_up, value))
        assert (reading.form, reading.standing, reading.official) == ("record", Standing.IN_FORCE, True)
        assert reading.text == found(looked_up.read(adr(3))).text
    assert isinstance(read(looked_up, f"{path}:90"), Missing)
    repository.commit("Reject", {path: RECORD.replace("Accepted", "Rejected")})
    assert found(read(looked_up, f"{path}:9")).standing is Standing.REJECTED
    assert found(read(looked_up, f"{path}@{first[:10]}:9")).standing is Standing.REJECTED
    assert found(read(looked_up, f"{path}@{first[:10]}")).standing is Standing.SUPERSEDED


def test_what_stood_around_old_lines_vouches_for_nothing(repository: TestRepository) -> None:
    first = repository.commit("Limit", {"docs/limits.md": "# Limits\n\nAt most 100 requests.\n\nNo other.\n"})
    repository.commit("Lower", {"docs/limits.md": "# Limits\n\nAt most 40 requests.\n\nNo other.\n"})
    assert found(read(repository, f"docs/limits.md@{first[:10]}:5")).text == "No other."
    assert "40" in found(read(repository, "docs/limits.md:5")).text
    for value in ("docs/limits.md:2", f"docs/limits.md@{first[:10]}:4"):
        assert "nothing in the lines" in unreachable(read(repository, value)).detail


def test_a_path_tells_two_records_of_one_number_apart(repository: TestRepository) -> None:
    other = "packages/a/docs/adr/0003-use-files.md"
    repository.commit(
        "Decide", {"docs/adr/0003-use-queues.md": RECORD, other: RECORD.replace("queue", "file")}
    )
    assert found(GitSource([repository.path]).read(adr(3))).standing is Standing.AMBIGUOUS
    reading = found(read(repository, other))
    assert (reading.standing, reading.title) == (Standing.IN_FORCE, "Use files")


def test_a_file_at_a_commit_counts_as_long_as_it_still_stands_so(repository: TestRepository) -> None:
    first = repository.git("rev-parse", "HEAD")
    value = f"src/retry.py@{first[:10]}:10"
    repository.commit("Move it", {"src/retry.py": "new\n" + LINES})
    reading = found(read(repository, value))
    assert (reading.standing, reading.text.splitlines()[3]) == (Standing.IN_FORCE, "line 10")
    repository.commit("Change it", {"src/retry.py": LINES.replace("line 10\n", "line ten\n")})
    assert found(read(repository, value)).standing is Standing.SUPERSEDED
    (repository.path / "src/retry.py").unlink()
    repository.commit("Delete it")
    assert found(read(repository, value)).standing is Standing.SUPERSEDED
    assert isinstance(read(repository, f"src/none.py@{first[:10]}"), Missing)
    assert isinstance(read(repository, "src/retry.py@deadbeefcafe"), Missing)


def test_what_is_on_another_branch_or_not_committed_does_not_count(repository: TestRepository) -> None:
    repository.write({"src/new.py": "x = 1\n"})
    assert found(read(repository, "src/new.py")).standing is Standing.PROPOSED
    repository.git("checkout", "--quiet", "-b", "agent")
    made = repository.commit("Agent's", {"src/retry.py": "line ten\n" * 20})
    looked_up = GitSource([repository.path], refs=["main"])
    reading = found(read(looked_up, "src/new.py"))
    assert reading.standing is Standing.NOT_MERGED
    assert "is not merged into main" in reading.detail
    assert found(read(looked_up, "src/retry.py:10")).text.splitlines()[3] == "line 10"
    assert found(read(looked_up, f"src/retry.py@{made[:10]}")).standing is Standing.NOT_MERGED
    repository.git("checkout", "--quiet", "main")  # now nothing of it is in the work tree
    repository.git("tag", "of-a-file", "main:src/retry.py")
    for cited in ("src/new.py", "src/new.py:1"):
        reading = found(read(looked_up, cited))
        assert (reading.standing, reading.text) == (Standing.NOT_MERGED, "")
        assert "is not merged into main" in reading.detail
    assert isinstance(read(looked_up, "src/newer.py"), Missing)
    repository.git("merge", "--quiet", "--ff-only", "agent")
    assert found(read(looked_up, "src/new.py")).standing is Standing.IN_FORCE
    repository.git("rm", "--quiet", "src/new.py")
    repository.commit("Away")
    assert isinstance(read(looked_up, "src/new.py"), Missing)


@pytest.mark.parametrize(
    "path",
    ["CLAUDE.md", "packages/a/agents.md", "memory-bank/notes/x.md", ".cursor/rules/a.mdc", "docs/Memory.md"],
)
def test_what_agents_write_to_never_vouches(repository: TestRepository, path: str) -> None:
    repository.commit("Remember", {path: "Five retries.\n"})
    reading = found(read(GitSource([repository.path], official=["**"]), path))
    assert (reading.standing, reading.official) == (Standing.MEMORY, False)
    assert found(read(GitSource([repository.path], memory_files=[]), path)).standing is Standing.IN_FORCE


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("docs/**/*.md", True),
        ("docs/", True),
        ("*.md", True),
        ("docs/g?ide.md", True),
        ("docs/*.txt", False),
        ("guide.md/", True),
        ("src/**", False),
        ("*/guide", False),
        ("DOCS/*.md", False),
        ("d*.md", False),
    ],
)
def test_files_that_are_marked_are_official(repository: TestRepository, pattern: str, names: bool) -> None:
    assert found(read(GitSource([repository.path], official=[pattern]), "docs/guide.md")).official is names


@pytest.mark.parametrize("pattern", ["", "/", "/docs", "../docs", "docs/../x", "!docs", "a\\b"])
def test_a_pattern_that_leaves_the_repository_is_refused(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(ValueError, match="no pattern"):
        GitSource([tmp_path], official=[pattern])


def test_what_cannot_be_read_is_not_found_out(repository: TestRepository, tmp_path: Path) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n"
    repository.write({"a/image.bin": b"\x00\x01", "a/big.csv": b"x" * 1_048_577})
    repository.write({"a/long.csv": "word " * 50_000, "a/pointer.csv": pointer})
    (repository.path / "a/link.md").symlink_to("../docs/guide.md")
    (repository.path / "linked").symlink_to("docs")
    repository.commit("Odd ones")
    for value in ("a/image.bin", "a/big.csv", "a/long.csv", "a/pointer.csv", "a/link.md", "linked/guide.md"):
        assert unreachable(read(repository, value)).code == "not_supported", value
    assert len(found(read(repository, "docs/guide.md")).text) < TEXT_CHARACTERS
    assert unreachable(read(GitSource([tmp_path / "none"]), "docs/guide.md")).code == "no_repository"
    assert (
        unreachable(read(GitSource([repository.path], timeout_seconds=0.0), "docs/guide.md")).code
        == "timeout"
    )


def test_a_path_is_no_pattern_and_no_option(repository: TestRepository) -> None:
    repository.commit("Odd names", {"docs/[ab].md": "A\n", ":(top)/x.md": "B\n", "docs/a.md": "C\n"})
    assert found(read(repository, "docs/[ab].md")).text == "A\n"
    assert isinstance(read(repository, "docs/[a].md"), Missing)


def test_two_repositories_with_different_files_are_ambiguous(
    repository: TestRepository, tmp_path: Path
) -> None:
    other = TestRepository(tmp_path / "other")
    other.commit("Start", {"docs/guide.md": "# Guide\n\nSix retries.\n", "src/retry.py": LINES})
    both = GitSource([repository.path, other.path])
    assert found(read(both, "docs/guide.md")).standing is Standing.AMBIGUOUS
    assert found(read(both, "src/retry.py")).standing is Standing.IN_FORCE
    assert isinstance(read(both, "docs/other.md"), Missing)
