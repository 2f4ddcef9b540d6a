"""Architecture decision records, looked up in real repositories."""

from __future__ import annotations

import hashlib
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.repos import TestRepository, adr
from vouchgate.ingest.claims.bounds import TEXT_CHARACTERS
from vouchgate.ingest.claims.citation import Citation, CitationType
from vouchgate.ingest.claims.source import Found, Missing, SourceReading, Standing, Unreachable
from vouchgate.ingest.sources.git.source import GitSource

DIRECTORIES = ("docs/adrs", "docs/adr", "doc/adr", "docs/decisions")
PAGE = (
    "# 3. Use queues\n\nDate: 2024-01-03\n\n## Status\n\nAccepted\n\n## Decision\n\nUploads go to a queue.\n"
)
NAME = "docs/adr/0003-use-queues.md"


@pytest.fixture
def repository(tmp_path: Path) -> TestRepository:
    return TestRepository(tmp_path / "project")


def source(
    *repositories: TestRepository | Path, directories: tuple[str, ...] = DIRECTORIES, timeout: float = 5.0
) -> GitSource:
    paths = [item.path if isinstance(item, TestRepository) else item for item in repositories]
    return GitSource(paths, directories, timeout_seconds=timeout)


def found(reading: SourceReading) -> Found:
    assert isinstance(reading, Found), reading
    return reading


def unreachable(reading: SourceReading) -> Unreachable:
    assert isinstance(reading, Unreachable), reading
    return reading


def page(status: str, number: int = 3) -> str:
    return f"# {number}. Use queues\n\n## Status\n\n{status}\n\n## Decision\n\nUploads go to a queue.\n"


def test_a_record_is_found_with_what_it_says(repository: TestRepository) -> None:
    repository.commit("Decide", {NAME: PAGE})
    reading = found(source(repository).read(adr(3)))
    assert reading.standing is Standing.IN_FORCE
    assert reading.source_id == "ADR-003"
    assert reading.title == "Use queues"
    assert reading.excerpt.startswith("Decision\nUploads go to a queue.")
    assert reading.digest == hashlib.sha256(PAGE.encode()).hexdigest()
    assert reading.dated == datetime(2024, 1, 3, tzinfo=UTC)
    assert reading.official
    assert NAME in reading.detail
    assert "Accepted" in reading.detail


def test_the_text_is_the_whole_page_in_its_order(repository: TestRepository) -> None:
    repository.commit(
        "Record",
        {
            "docs/adr/0003-queue.md": (
                "---\nstatus: accepted\ndate: 2024-03-05\nowner: platform\n---\n# 3. Use a queue\n\n## Context\n\n"
                "Uploads [time out](https://example.org) under load.\n\n<!-- remember to delete -->\n## Decision\n\n"
                "We put **every** upload into a queue.\n\n```\nqueue.size = 500\n```\n\n## Consequences\n\n"
                "Uploads are done later.\n"
            )
        },
    )
    reading = found(source(repository).read(adr(3)))
    assert reading.form == "record"
    assert reading.text == (
        "Status: accepted\n\n# 3. Use a queue\n\n## Context\n\n"
        "Uploads [time out](https://example.org) under load.\n\n\n## Decision\n\n"
        "We put **every** upload into a queue.\n\n```\nqueue.size = 500\n```\n\n## Consequences\n\n"
        "Uploads are done later."
    )
    assert reading.excerpt.startswith("Decision\nWe put every upload into a queue.")


def test_a_page_with_a_status_section_keeps_it_in_its_text(repository: TestRepository) -> None:
    repository.commit("Record", {"docs/adr/0003-x.md": page("Accepted")})
    assert "\n## Status\n\nAccepted\n" in found(source(repository).read(adr(3))).text


def test_a_page_without_end_is_cut(repository: TestRepository) -> None:
    repository.commit("Record", {"docs/adr/0003-x.md": page("Accepted") + "Words and words.\n" * 20_000})
    assert len(found(source(repository).read(adr(3))).text) == TEXT_CHARACTERS


def test_a_record_that_does_not_exist_is_missing(repository: TestRepository) -> None:
    repository.commit("Decide", {NAME: PAGE})
    reading = source(repository).read(adr(999))
    assert isinstance(reading, Missing)
    assert "ADR-999" in reading.detail
    assert "docs/adr" in reading.detail


@pytest.mark.parametrize(
    "name",
    [
        "docs/adrs/0003-use-queues.md",
        "doc/adr/0003-use-queues.md",
        "docs/decisions/ADR-0003-use-queues.md",
        "docs/adr/adr003-use-queues.md",
        "docs/adr/adr-003-use-queues.MD",
        "docs/adr/storage/3_use_queues.txt",
        "docs/adr/20240103-use-queues.md",  # the number is in the heading
        "docs/adr/use-queues.md",
        "docs/adr/0003-wärteschlangen.md",
        "docs/adr/0003 new\tline.md",
    ],
)
def test_every_way_to_name_a_file(repository: TestRepository, name: str) -> None:
    repository.commit("Decide", {name: PAGE, "docs/adr/README.md": PAGE, "docs/adr/0003-template.md": PAGE})
    assert found(source(repository).read(adr(3))).standing is Standing.IN_FORCE


@pytest.mark.parametrize("number", ["3", "03", "0003"])
def test_numbers_compare_as_integers(repository: TestRepository, number: str) -> None:
    repository.commit("Decide", {NAME: PAGE})
    assert found(source(repository).read(adr(number))).source_id == "ADR-003"


def test_a_dated_name_without_a_number_answers_to_none(repository: TestRepository) -> None:
    repository.commit("Decide", {"docs/adr/20240103-use-queues.md": "# Use queues\n\n- Status: accepted\n"})
    for number in (2024, 20240103, 3):
        assert isinstance(source(repository).read(adr(number)), Missing)


@pytest.mark.parametrize(
    ("status", "standing", "successor"),
    [
        ("Superseded by [5. Use logs](0005-use-logs.md)", Standing.SUPERSEDED, "ADR-005"),
        ("Rejected", Standing.REJECTED, None),
        ("Deprecated", Standing.DEPRECATED, None),
        ("Proposed", Standing.PROPOSED, None),
        ("Somewhere in between", Standing.PROPOSED, None),
    ],
)
def test_what_is_not_in_force_says_why(
    repository: TestRepository, status: str, standing: Standing, successor: str | None
) -> None:
    repository.commit("Decide", {NAME: page(status)})
    reading = found(source(repository).read(adr(3)))
    assert (reading.standing, reading.successor) == (standing, successor)
    assert status[:12] in reading.detail


def test_an_entry_of_the_contents_is_no_status(repository: TestRepository) -> None:
    contents = "- [Status](#status)\n  - [Date](#date)\n1. [Decision](#decision)\n\n"
    repository.commit("Decide", {NAME: contents + page("Accepted")})
    assert found(source(repository).read(adr(3))).standing is Standing.IN_FORCE
    repository.commit("Reject", {NAME: contents + page("Rejected")})
    assert found(source(repository).read(adr(3))).standing is Standing.REJECTED


def test_no_status_at_all_counts_as_accepted(repository: TestRepository) -> None:
    repository.commit("Decide", {NAME: "# 3. Use queues\n\nUploads go to a queue.\n"})
    reading = found(source(repository).read(adr(3)))
    assert reading.standing is Standing.IN_FORCE
    assert "no status" in reading.detail


def test_a_newer_record_in_force_supersedes_an_older_one_that_does_not_say_so(
    repository: TestRepository,
) -> None:
    newer = "docs/adr/0005-use-logs.md"
    repository.commit("Decide", {NAME: PAGE, newer: page("Proposed\n\nSupersedes ADR-3", 5)})
    looked_up = source(repository)
    assert found(looked_up.read(adr(3))).standing is Standing.IN_FORCE
    repository.commit("Agree", {newer: page("Accepted\n\nSupersedes [3. Use queues](0003-use-queues.md)", 5)})
    reading = found(looked_up.read(adr(3)))
    assert (reading.standing, reading.successor) == (Standing.SUPERSEDED, "ADR-005")
    assert "does not say so" in reading.detail
    assert found(looked_up.read(adr(5))).standing is Standing.IN_FORCE


def test_two_files_with_one_number_are_ambiguous(repository: TestRepository) -> None:
    other = "doc/adr/003-use-files.md"
    repository.commit("Decide", {NAME: PAGE, other: page("Accepted\n\nmore")})
    reading = found(source(repository).read(adr(3)))
    assert reading.standing is Standing.AMBIGUOUS
    assert NAME in reading.detail
    assert other in reading.detail


def test_the_same_page_twice_is_one_record(repository: TestRepository, tmp_path: Path) -> None:
    repository.commit("Decide", {NAME: PAGE, "doc/adr/0003-use-queues.md": PAGE})
    clone = tmp_path / "clone"
    repository.git("clone", "--quiet", str(repository.path), str(clone))
    assert found(source(repository, clone).read(adr(3))).standing is Standing.IN_FORCE


def test_different_pages_in_two_repositories_are_ambiguous(
    repository: TestRepository, tmp_path: Path
) -> None:
    repository.commit("Decide", {NAME: PAGE})
    other = TestRepository(tmp_path / "other")
    other.commit("Decide", {"docs/adr/0003-use-files.md": page("Accepted")})
    reading = found(source(repository, other).read(adr(3)))
    assert reading.standing is Standing.AMBIGUOUS
    assert "project" in reading.detail
    assert "other" in reading.detail
    other.commit("Renumber", {"docs/adr/0004-use-files.md": page("Accepted", 4)})
    assert found(source(repository, other).read(adr(4))).source_id == "ADR-004"


def test_a_file_name_and_a_heading_that_disagree_are_ambiguous(repository: TestRepository) -> None:
    repository.commit("Decide", {"docs/adr/0004-use-queues.md": PAGE})
    for number in (3, 4):
        reading = found(source(repository).read(adr(number)))
        assert reading.standing is Standing.AMBIGUOUS
        assert "ADR-003 and ADR-004" in reading.detail


def test_only_what_is_committed_counts(repository: TestRepository) -> None:
    repository.commit("Start", {"docs/adr/0001-record.md": page("Accepted", 1)})
    repository.write({NAME: PAGE})
    looked_up = source(repository)
    reading = found(looked_up.read(adr(3)))
    assert reading.standing is Standing.PROPOSED
    assert "not committed" in reading.detail
    assert not reading.official
    repository.git("add", "--all")
    assert found(looked_up.read(adr(3))).standing is Standing.PROPOSED
    repository.commit("Decide")
    assert found(looked_up.read(adr(3))).standing is Standing.IN_FORCE
    repository.write({"docs/adr/0001-record.md": page("Rejected", 1)})
    assert found(looked_up.read(adr(1))).standing is Standing.IN_FORCE


def test_a_file_name_that_is_not_utf8_can_be_reported(repository: TestRepository) -> None:
    repository.commit("Start", {"docs/adr/0001-record.md": page("Accepted", 1)})
    name = os.fsdecode(b"0003-caf\xe9.md")
    repository.write({f"docs/adr/{name}": PAGE})
    looked_up = source(repository)
    assert "0003-caf" in found(looked_up.read(adr(3))).model_dump_json()
    repository.commit("Decide")
    assert "0003-caf" in found(looked_up.read(adr(3))).model_dump_json()


def test_no_path_of_the_machine_is_in_an_answer(repository: TestRepository) -> None:
    repository.commit("Decide", {NAME: PAGE})
    file = repository.object_file(repository.git("rev-parse", f"HEAD:{NAME}"))
    file.unlink()
    file.write_bytes(b"garbage")
    reading = unreachable(source(repository).read(adr(3)))
    assert str(repository.path.parent) not in reading.detail


def test_a_moved_head_is_seen_at_once(repository: TestRepository) -> None:
    repository.commit("Start", {"a.txt": "a"})
    repository.commit("Decide", {NAME: PAGE})
    looked_up = source(repository)
    assert found(looked_up.read(adr(3))).standing is Standing.IN_FORCE
    repository.git("reset", "--quiet", "--hard", "HEAD~1")
    assert unreachable(looked_up.read(adr(3))).code == "no_records"
    repository.commit("Reject", {NAME: page("Rejected")})
    assert found(looked_up.read(adr(3))).standing is Standing.REJECTED


def test_a_repository_without_commits(repository: TestRepository) -> None:
    looked_up = source(repository)
    assert unreachable(looked_up.read(adr(3))).code == "error"
    repository.write({NAME: PAGE})
    assert found(looked_up.read(adr(3))).standing is Standing.PROPOSED


def test_a_head_that_points_at_no_branch_is_a_problem(repository: TestRepository, tmp_path: Path) -> None:
    repository.commit("Decide", {NAME: PAGE})
    bare = tmp_path / "bare.git"
    repository.git("clone", "--quiet", "--bare", str(repository.path), str(bare))
    looked_up = source(bare)
    assert found(looked_up.read(adr(3))).standing is Standing.IN_FORCE
    assert looked_up.problems() == ()
    (bare / "HEAD").write_text("ref: refs/heads/master\n")
    assert "branch" in unreachable(looked_up.read(adr(3))).detail
    assert len(looked_up.problems()) == 1


def test_a_repository_that_goes_away_and_comes_back(repository: TestRepository, tmp_path: Path) -> None:
    repository.commit("Decide", {NAME: PAGE})
    looked_up = source(repository)
    assert found(looked_up.read(adr(3))).standing is Standing.IN_FORCE
    repository.path.rename(tmp_path / "elsewhere")
    assert unreachable(looked_up.read(adr(3))).code == "no_repository"
    (tmp_path / "elsewhere").rename(repository.path)
    assert found(looked_up.read(adr(3))).standing is Standing.IN_FORCE
    shutil.rmtree(repository.path / ".git")
    assert unreachable(looked_up.read(adr(3))).code == "no_repository"


def test_without_a_repository_nothing_can_be_found_out(tmp_path: Path) -> None:
    (tmp_path / "docs" / "adr").mkdir(parents=True)
    (tmp_path / NAME).write_text(PAGE)
    assert unreachable(source().read(adr(3))).code == "no_repository"
    assert unreachable(source(tmp_path).read(adr(3))).code == "no_repository"


def test_time_running_out_is_not_an_answer(repository: TestRepository) -> None:
    repository.commit("Decide", {NAME: PAGE})
    assert unreachable(source(repository, timeout=0.0).read(adr(3))).code == "timeout"


def test_a_git_that_hangs_is_ended(repository: TestRepository) -> None:
    repository.commit("Decide", {NAME: PAGE})
    file = repository.object_file(repository.git("rev-parse", f"HEAD:{NAME}"))
    file.unlink()
    os.mkfifo(file)
    assert unreachable(source(repository, timeout=0.3).read(adr(3))).code == "timeout"


@pytest.mark.parametrize("expression", ["HEAD", "HEAD^{tree}", "HEAD:docs/adr", f"HEAD:{NAME}"])
@pytest.mark.parametrize("damage", ["gone", "garbage", "another object"])
@pytest.mark.parametrize("known", [False, True])
def test_a_damaged_object_store_is_an_error(
    repository: TestRepository, expression: str, damage: str, known: bool
) -> None:
    repository.commit("Decide", {NAME: PAGE, "other.txt": "other"})
    looked_up = source(repository)
    if known:
        assert found(looked_up.read(adr(3))).standing is Standing.IN_FORCE
    file = repository.object_file(repository.git("rev-parse", expression))
    other = repository.object_file(repository.git("rev-parse", "HEAD:other.txt")).read_bytes()
    file.unlink()
    if damage != "gone":
        file.write_bytes(b"garbage" if damage == "garbage" else other)
    reading = looked_up.read(adr(3))
    if known and expression in {"HEAD:docs/adr", f"HEAD:{NAME}"}:
        # What these ids stand for was read and held against them: still the right answer.
        assert found(reading).digest == hashlib.sha256(PAGE.encode()).hexdigest()
    else:
        assert unreachable(reading).code == "error"


def test_a_shallow_clone_has_all_records_of_head(repository: TestRepository, tmp_path: Path) -> None:
    repository.commit("Start")
    repository.commit("Decide", {NAME: PAGE})
    clone = tmp_path / "shallow"
    repository.git("clone", "--quiet", "--depth", "1", f"file://{repository.path}", str(clone))
    assert found(source(clone).read(adr(3))).standing is Standing.IN_FORCE
    assert isinstance(source(clone).read(adr(4)), Missing)


@pytest.mark.parametrize("what", ["blob:none", "tree:0"])
def test_a_partial_clone_without_the_records_never_fetches(
    repository: TestRepository, tmp_path: Path, what: str
) -> None:
    repository.git("config", "uploadpack.allowFilter", "true")
    repository.commit("Decide", {NAME: PAGE})
    clone = tmp_path / "partial"
    url = f"file://{repository.path}"
    repository.git("clone", "--quiet", "--bare", f"--filter={what}", url, str(clone))
    packs = sorted(path.name for path in (clone / "objects" / "pack").iterdir())
    assert unreachable(source(clone).read(adr(3))).code == "shallow_clone"
    assert sorted(path.name for path in (clone / "objects" / "pack").iterdir()) == packs


def test_links_are_not_followed(repository: TestRepository, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "0003-use-queues.md").write_text(PAGE)
    repository.commit("Start", {"a.txt": "a", "docs/adr/0007-x.md": page("Accepted", 7)})
    (repository.path / "doc").mkdir()
    (repository.path / "doc" / "adr").symlink_to(outside)
    looked_up = source(repository)
    assert isinstance(looked_up.read(adr(3)), Missing)  # nor into a directory outside, uncommitted
    repository.commit("Link the directory")
    reading = unreachable(looked_up.read(adr(3)))
    assert reading.code == "not_supported"
    assert "doc/adr" in reading.detail
    (repository.path / "doc" / "adr").unlink()
    (repository.path / "doc" / "adr").mkdir()
    (repository.path / "doc" / "adr" / "0003-use-queues.md").symlink_to(outside / "0003-use-queues.md")
    assert isinstance(looked_up.read(adr(4)), Unreachable)  # HEAD still has the linked directory
    repository.commit("Link the file")
    assert unreachable(looked_up.read(adr(3))).code == "not_supported"
    assert isinstance(looked_up.read(adr(4)), Missing)


def test_a_link_below_an_adr_directory_does_not_lead_out_of_it(
    repository: TestRepository, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "0003-use-queues.md").write_text(PAGE)
    repository.commit("Start", {"docs/adr/0001-x.md": page("Accepted", 1)})
    (repository.path / "docs" / "adr" / "more").symlink_to(outside)
    (repository.path / "docs" / "adr" / "0004-x.md").symlink_to(outside / "0003-use-queues.md")
    os.mkfifo(repository.path / "docs" / "adr" / "0005-x.md")
    looked_up = source(repository)
    assert isinstance(looked_up.read(adr(3)), Missing)
    assert isinstance(looked_up.read(adr(4)), Missing)
    assert found(looked_up.read(adr(5))).standing is Standing.PROPOSED


def test_a_directory_named_like_a_record_is_none(repository: TestRepository) -> None:
    repository.commit(
        "Decide",
        {"docs/adr/0003-use-queues.md/notes.md": "Notes\n", "docs/adr/0001-x.md": page("Accepted", 1)},
    )
    assert isinstance(source(repository).read(adr(3)), Missing)


def test_bytes_that_are_not_utf8(repository: TestRepository) -> None:
    latin = page("Rejected").replace("queues", "caf\xe9").encode("latin-1")
    wide = page("Rejected", 4).encode("utf-16")
    files = {NAME: latin, "docs/adr/0004-x.md": wide, "docs/adr/0005-x.md": b"# 5. X\n\x00\x01\n## Status\n"}
    repository.commit("Decide", files)
    looked_up = source(repository)
    assert found(looked_up.read(adr(3))).standing is Standing.REJECTED
    assert found(looked_up.read(adr(4))).standing is Standing.REJECTED
    assert unreachable(looked_up.read(adr(5))).code == "not_supported"


def test_a_file_too_large_is_not_read(repository: TestRepository) -> None:
    repository.commit("Decide", {NAME: PAGE + "x" * 1_048_576, "docs/adr/0004-x.md": page("Accepted", 4)})
    reading = unreachable(source(repository).read(adr(3)))
    assert "1 MiB" in reading.detail
    assert found(source(repository).read(adr(4))).standing is Standing.IN_FORCE


@pytest.mark.parametrize("name", ["../x", "docs/../../x", "/etc", "", " ", "a\x00b", "..\\x", "C:\\x"])
def test_a_directory_outside_the_repository_is_refused(repository: TestRepository, name: str) -> None:
    with pytest.raises(ValueError, match="ADR directory"):
        source(repository, directories=(name,))


def test_the_top_of_the_repository_can_be_the_directory(repository: TestRepository) -> None:
    repository.commit("Decide", {"0003-use-queues.md": PAGE})
    assert found(source(repository, directories=(".",)).read(adr(3))).standing is Standing.IN_FORCE
    assert isinstance(source(repository, directories=(".",)).read(adr(4)), Missing)


def test_a_directory_name_is_no_pattern(repository: TestRepository) -> None:
    repository.commit("Decide", {NAME: PAGE})
    reading = source(repository, directories=("docs/*", "docs/adr?")).read(adr(3))
    assert unreachable(reading).code == "no_records"


def test_many_files(repository: TestRepository) -> None:
    blocks = ["commit refs/heads/main\ncommitter Ada <ada@example.org> 1700000000 +0000\ndata 4\nMany\n"]
    for number in range(1, 3_001):
        text = page("Accepted", number)
        blocks.append(f"M 644 inline docs/adr/{number:04}-use-queues.md\ndata {len(text)}\n{text}\n")
    repository.git("fast-import", "--quiet", stdin="".join(blocks))
    looked_up = source(repository, timeout=30.0)
    assert found(looked_up.read(adr(3_000))).source_id == "ADR-3000"
    assert isinstance(looked_up.read(adr(3_001)), Missing)


def test_many_threads_get_the_same_answer(repository: TestRepository) -> None:
    repository.commit("Decide", {NAME: PAGE})
    looked_up = source(repository)
    with ThreadPoolExecutor(8) as pool:
        readings = list(pool.map(lambda _: looked_up.read(adr(3)), range(40)))
    assert len({found(reading).model_dump_json() for reading in readings}) == 1


@pytest.mark.parametrize("key", ["adr:", "adr:x", "adr:-1", "adr:٣", "commit:abcdef1", f"adr:{'9' * 5_000}"])
def test_an_odd_key_is_not_an_answer(repository: TestRepository, key: str) -> None:
    repository.commit("Decide", {NAME: PAGE})
    assert isinstance(
        source(repository).read(Citation(type=CitationType.ADR, value="x", key=key)), Unreachable
    )
