"""Commits, looked up in real repositories."""

from __future__ import annotations

import hashlib
import itertools
import os
import shutil
import threading
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.repos import FIRST_SECOND, TestRepository, commit
from vouchgate.ingest.claims.bounds import TEXT_CHARACTERS
from vouchgate.ingest.claims.citation import Citation, CitationType
from vouchgate.ingest.claims.source import Found, Missing, SourceReading, Standing, Unreachable
from vouchgate.ingest.sources.git.adr_files import LARGEST, object_digest
from vouchgate.ingest.sources.git.commits import Candidates, Commits, messages, undone_ids
from vouchgate.ingest.sources.git.refs import protected_tip
from vouchgate.ingest.sources.git.repository import Repository
from vouchgate.ingest.sources.git.source import GitSource

ABSENT = "deadbeefcafe1234"


@pytest.fixture
def repository(tmp_path: Path) -> TestRepository:
    return TestRepository(tmp_path / "project")


@pytest.fixture(autouse=True)
def no_leaks() -> Iterator[None]:
    """Every test here also checks that no file, pipe or process is left open."""
    children = Path(f"/proc/self/task/{threading.get_native_id()}/children")
    others = set(children.read_text().split())  # a database that other tests share
    before = len(list(Path("/proc/self/fd").iterdir()))
    yield
    assert len(list(Path("/proc/self/fd").iterdir())) <= before
    assert set(children.read_text().split()) <= others


def source(*repositories: TestRepository | Path, timeout: float = 5.0) -> GitSource:
    paths = [item.path if isinstance(item, TestRepository) else item for item in repositories]
    return GitSource(paths, ["docs/adr"], timeout_seconds=timeout)


def found(reading: SourceReading) -> Found:
    assert isinstance(reading, Found), reading
    return reading


def unreachable(reading: SourceReading) -> Unreachable:
    assert isinstance(reading, Unreachable), reading
    return reading


def test_a_commit_is_found_with_what_it_says(repository: TestRepository) -> None:
    repository.commit("Start", {"a.txt": "a"})
    message = "Retry uploads three times\n\nThe store drops connections under load."
    full = repository.commit(message, {"upload.py": "retry = 3\n"})
    reading = found(source(repository).read(commit(full)))
    assert reading.standing is Standing.IN_FORCE
    assert reading.source_id == f"commit:{full[:7]}"
    assert reading.title == "Retry uploads three times"
    assert reading.text == f"{message}\n\nFiles: upload.py"
    assert reading.excerpt == reading.text
    assert reading.dated == datetime.fromtimestamp(FIRST_SECOND + 60, tz=UTC)
    raw = zlib.decompress(repository.object_file(full).read_bytes()).partition(b"\x00")[2]
    assert reading.digest == hashlib.sha256(raw).hexdigest()
    assert reading.form == "commit"
    assert not reading.official  # whoever writes a message speaks for the change alone
    assert reading.successor is None
    assert "project" in reading.detail


@pytest.mark.parametrize("length", [4, 7, 8, 12, 39, 40])
def test_abbreviated_ids_resolve(repository: TestRepository, length: int) -> None:
    full = repository.commit("Start")
    reading = found(source(repository).read(commit(full[:length])))
    assert reading.source_id == f"commit:{full[:7]}"
    assert reading.standing is Standing.IN_FORCE


def test_a_commit_that_does_not_exist_is_missing(repository: TestRepository) -> None:
    repository.commit("Start")
    for absent in (ABSENT, "0" * 40, "f" * 64):
        reading = source(repository).read(commit(absent))
        assert isinstance(reading, Missing)
        assert absent in reading.detail


def ambiguous_pair(repository: TestRepository, digits: int = 4) -> tuple[str, str]:
    """Two commits whose ids begin alike."""
    seen: dict[str, str] = {}
    blocks = []
    for number in range(1, 600):
        message = f"Attempt {number}\n"
        blocks.append(
            f"commit refs/heads/attempt-{number}\nmark :{number}\n"
            f"committer Ada <ada@example.org> {FIRST_SECOND} +0000\ndata {len(message)}\n{message}"
        )
    repository.git("fast-import", "--quiet", stdin="".join(blocks))
    for line in repository.git("for-each-ref", "--format=%(objectname)", "refs/heads/").splitlines():
        if line[:digits] in seen:
            return seen[line[:digits]], line
        seen[line[:digits]] = line
    raise AssertionError("no two commits begin alike")


def test_an_ambiguous_abbreviation_names_its_candidates(repository: TestRepository) -> None:
    first, second = ambiguous_pair(repository)
    reading = found(source(repository).read(commit(first[:4])))
    assert reading.standing is Standing.AMBIGUOUS
    assert first[:12] in reading.detail
    assert second[:12] in reading.detail
    assert not reading.official
    repository.git("update-ref", "refs/heads/main", first)
    assert found(source(repository).read(commit(first))).standing is Standing.IN_FORCE


def test_a_blob_that_begins_alike_does_not_make_a_commit_ambiguous(repository: TestRepository) -> None:
    full = repository.commit("Start")
    numbers = (str(number).encode() for number in itertools.count())
    content = next(data for data in numbers if object_digest(full, "blob", data).startswith(full[:4]))
    blob = repository.git("hash-object", "-w", "--stdin", stdin=content)
    assert blob[:4] == full[:4]
    reading = found(source(repository).read(commit(full[:4])))
    assert reading.standing is Standing.IN_FORCE
    assert reading.title == "Start"


@pytest.mark.parametrize(
    ("expression", "word"), [("HEAD:a.txt", "a blob"), ("HEAD^{tree}", "a tree"), ("v1", "a tag")]
)
def test_what_is_not_a_commit_is_missing_and_says_what_it_is(
    repository: TestRepository, expression: str, word: str
) -> None:
    repository.commit("Start", {"a.txt": "a"})
    repository.git("tag", "--annotate", "--message", "One", "v1")
    reading = source(repository).read(commit(repository.git("rev-parse", expression)))
    assert isinstance(reading, Missing)
    assert word in reading.detail


def test_a_branch_with_the_name_of_an_id_does_not_stand_in_for_a_commit(repository: TestRepository) -> None:
    repository.commit("Start")
    repository.git("branch", ABSENT)
    repository.git("tag", "abc1234")
    assert isinstance(source(repository).read(commit(ABSENT)), Missing)
    assert isinstance(source(repository).read(commit("abc1234")), Missing)


def test_a_commit_on_no_branch_says_so_and_under_a_tag_it_is_not_merged(repository: TestRepository) -> None:
    repository.commit("Start")
    lost = repository.commit("Lost")
    repository.git("reset", "--quiet", "--hard", "HEAD~1")
    looked_up = source(repository)
    reading = found(looked_up.read(commit(lost)))
    assert reading.standing is Standing.DETACHED
    assert "no branch" in reading.detail
    repository.git("tag", "keep", lost)
    assert found(looked_up.read(commit(lost))).standing is Standing.NOT_MERGED
    repository.git("tag", "--delete", "keep")
    assert found(looked_up.read(commit(lost))).standing is Standing.DETACHED
    repository.git("update-ref", "refs/pull/1/head", lost)
    assert found(looked_up.read(commit(lost))).standing is Standing.DETACHED


@pytest.mark.parametrize("ref", ["refs/heads/other", "refs/remotes/origin/main", "refs/tags/light"])
def test_what_is_on_another_ref_is_not_merged_until_it_is(repository: TestRepository, ref: str) -> None:
    repository.commit("Start")
    kept = repository.commit("Kept")
    repository.git("reset", "--quiet", "--hard", "HEAD~1")
    repository.git("update-ref", ref, kept)
    looked_up = source(repository)
    reading = found(looked_up.read(commit(kept)))
    assert reading.standing is Standing.NOT_MERGED
    assert "is not merged into main" in reading.detail
    repository.git("merge", "--quiet", "--ff-only", ref)
    assert found(looked_up.read(commit(kept))).standing is Standing.IN_FORCE


def test_a_detached_head_reaches(repository: TestRepository) -> None:
    repository.commit("Start")
    repository.git("checkout", "--quiet", "--detach")
    kept = repository.commit("On a build server")
    assert found(source(repository).read(commit(kept))).standing is Standing.IN_FORCE


@pytest.mark.parametrize("listed", [1_000, 3])
def test_a_history_held_whole_and_one_too_long_for_it_answer_alike(
    repository: TestRepository, listed: int
) -> None:
    ids = [repository.commit(f"Change {number}") for number in range(12)]
    tree = repository.git("rev-parse", "HEAD^{tree}")
    # A wrong clock: git walks by date, and this one says it is the oldest of all.
    text = f"tree {tree}\nparent {ids[-1]}\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\nOld clock\n"
    late = repository.git("hash-object", "-t", "commit", "-w", "--stdin", stdin=text)
    repository.git("update-ref", "refs/heads/main", late)
    lost = repository.git("commit-tree", tree, "-p", ids[3], stdin="Lost")
    commits = Commits(listed=listed)
    aside = repository.git("commit-tree", tree, "-p", ids[3], stdin="Aside")
    repository.git("update-ref", "refs/heads/aside", aside)

    def standing(full: str) -> Standing:
        with Repository(repository.path, time.monotonic() + 5) as opened:
            return commits.read(
                opened, Candidates(commits=(full,), short=full[:7]), protected_tip(opened, None)
            ).standing

    assert {standing(full) for full in (*ids, late)} == {Standing.IN_FORCE}
    assert (standing(aside), standing(lost)) == (Standing.NOT_MERGED, Standing.DETACHED)
    repository.git("checkout", "--quiet", "--detach", lost)
    assert standing(lost) is Standing.IN_FORCE


def test_a_remote_whose_default_branch_is_gone_does_no_harm(repository: TestRepository) -> None:
    full = repository.commit("Start")
    repository.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/gone")
    assert found(source(repository).read(commit(full))).standing is Standing.IN_FORCE


def test_a_reverted_commit_names_the_one_that_undid_it(repository: TestRepository) -> None:
    repository.commit("Start")
    undone = repository.commit("Add cache", {"cache.py": "size = 1\n"})
    looked_up = source(repository)
    assert found(looked_up.read(commit(undone))).standing is Standing.IN_FORCE
    undoing = repository.revert(undone)
    reading = found(looked_up.read(commit(undone)))
    assert reading.standing is Standing.REVERTED
    assert reading.successor == f"commit:{undoing[:7]}"
    assert undoing[:7] in reading.detail
    assert found(looked_up.read(commit(undoing))).standing is Standing.IN_FORCE


def test_a_revert_of_the_revert_puts_it_back(repository: TestRepository) -> None:
    repository.commit("Start")
    undone = repository.commit("Add cache", {"cache.py": "size = 1\n"})
    undoing = repository.revert(undone)
    again = repository.revert(undoing)
    looked_up = source(repository)
    assert found(looked_up.read(commit(undone))).standing is Standing.IN_FORCE
    reading = found(looked_up.read(commit(undoing)))
    assert (reading.standing, reading.successor) == (Standing.REVERTED, f"commit:{again[:7]}")
    repository.revert(again)
    assert found(looked_up.read(commit(undone))).standing is Standing.REVERTED


def test_what_a_reverted_merge_had_brought_is_undone_with_it(repository: TestRepository) -> None:
    repository.commit("Start")
    repository.git("checkout", "-q", "-b", "feature")
    brought = repository.commit("Encrypt invoices", {"a.txt": "a"})
    repository.git("checkout", "-q", "main")
    kept = repository.commit("Add a guide", {"b.txt": "b"})
    repository.git("merge", "-q", "--no-ff", "-m", "Merge it", "feature")
    repository.git("revert", "--no-edit", "-m", "1", "HEAD")
    assert found(source(repository).read(commit(brought))).standing is Standing.REVERTED
    assert found(source(repository).read(commit(kept))).standing is Standing.IN_FORCE


def test_a_revert_does_not_say_what_it_takes_back(repository: TestRepository) -> None:
    repository.commit("Start")
    undoing = repository.revert(repository.commit("Open the door to every guest", {"a.txt": "a"}))
    reading = found(source(repository).read(commit(undoing)))
    assert "every guest" in reading.title and "every guest" not in reading.text
    assert "every guest" in found(source(repository).read(commit(repository.revert(undoing)))).text


def test_an_unmerged_branch_cannot_put_a_reverted_commit_back(repository: TestRepository) -> None:
    repository.commit("Start")
    undone = repository.commit("Add cache", {"cache.py": "size = 1\n"})
    undoing = repository.revert(undone)
    repository.git("checkout", "--quiet", "-b", "agent")
    repository.revert(undoing)
    repository.git("checkout", "--quiet", "main")
    assert found(source(repository).read(commit(undone))).standing is Standing.REVERTED


def test_an_unmerged_revert_undoes_nothing(repository: TestRepository) -> None:
    repository.commit("Start")
    kept = repository.commit("Add cache", {"cache.py": "size = 1\n"})
    looked_up = source(repository)
    repository.git("checkout", "--quiet", "-b", "agent")
    repository.revert(kept)
    repository.git("tag", "elsewhere")
    repository.git("checkout", "--quiet", "main")
    assert found(looked_up.read(commit(kept))).standing is Standing.IN_FORCE
    repository.git("merge", "--quiet", "--ff-only", "agent")
    assert found(looked_up.read(commit(kept))).standing is Standing.REVERTED


def test_a_root_of_its_own_under_a_tag_is_not_merged(repository: TestRepository) -> None:
    repository.commit("Start")
    tree = repository.git("rev-parse", "HEAD^{tree}")
    made_up = repository.git("commit-tree", tree, stdin="Eve is admin")
    repository.git("tag", "v9", made_up)
    assert found(source(repository).read(commit(made_up))).standing is Standing.NOT_MERGED


def test_a_revert_that_was_thrown_away_does_not_count(repository: TestRepository) -> None:
    repository.commit("Start")
    undone = repository.commit("Add cache", {"cache.py": "size = 1\n"})
    repository.revert(undone)
    repository.git("reset", "--quiet", "--hard", "HEAD~1")
    assert found(source(repository).read(commit(undone))).standing is Standing.IN_FORCE


@pytest.mark.parametrize(
    ("message", "ids"),
    [
        ("Revert it\n\nThis reverts commit 0123456789abcdef0123456789abcdef01234567.", 1),
        ("This reverts commit 0123456, reversing\nchanges made to 89abcde0.", 1),
        ("This reverts commits 0123456, 89abcde and 4567890.", 3),
        ("This reverts commit 0123456 (Add cache, 2024-01-01).", 1),
        ("this reverts\ncommit 0123456", 1),
        ("This reverts commit messages to plain ones.", 0),
        ("This reverts commit 12.", 0),
        ("We talk about reverts here.", 0),
    ],
)
def test_what_a_message_says_it_reverts(message: str, ids: int) -> None:
    assert len(undone_ids(message)) == ids


@pytest.fixture
def shallow(repository: TestRepository, tmp_path: Path) -> tuple[Path, list[str]]:
    ids = [repository.commit(f"Change {number}") for number in range(3)]
    clone = tmp_path / "shallow"
    repository.git("clone", "--quiet", "--depth", "1", f"file://{repository.path}", str(clone))
    return clone, ids


def test_a_shallow_clone_cannot_say_missing(shallow: tuple[Path, list[str]]) -> None:
    clone, ids = shallow
    looked_up = source(clone)
    assert found(looked_up.read(commit(ids[-1]))).standing is Standing.IN_FORCE
    assert unreachable(looked_up.read(commit(ids[0]))).code == "shallow_clone"
    assert unreachable(looked_up.read(commit(ABSENT))).code == "shallow_clone"


def test_a_whole_clone_beside_a_shallow_one_answers(
    shallow: tuple[Path, list[str]], repository: TestRepository
) -> None:
    clone, ids = shallow
    looked_up = source(clone, repository)
    assert found(looked_up.read(commit(ids[0]))).standing is Standing.IN_FORCE
    assert unreachable(looked_up.read(commit(ABSENT))).code == "shallow_clone"


def test_a_partial_clone_cannot_say_missing_and_never_fetches(
    repository: TestRepository, tmp_path: Path
) -> None:
    repository.git("config", "uploadpack.allowFilter", "true")
    full = repository.commit("Start", {"a.txt": "a"})
    clone = tmp_path / "partial"
    url = f"file://{repository.path}"
    repository.git("clone", "--quiet", "--bare", "--filter=tree:0", url, str(clone))
    packs = sorted(path.name for path in (clone / "objects" / "pack").iterdir())
    looked_up = source(clone)
    assert found(looked_up.read(commit(full))).standing is Standing.IN_FORCE
    assert unreachable(looked_up.read(commit(ABSENT))).code == "shallow_clone"
    assert sorted(path.name for path in (clone / "objects" / "pack").iterdir()) == packs


def test_without_a_repository_nothing_can_be_found_out(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    assert unreachable(source().read(commit(ABSENT))).code == "no_repository"
    assert unreachable(source(plain).read(commit(ABSENT))).code == "no_repository"
    assert unreachable(source(tmp_path / "absent").read(commit(ABSENT))).code == "no_repository"
    assert source().problems() == ()
    assert len(source(plain, tmp_path / "absent").problems()) == 2


def test_a_directory_inside_a_repository_is_not_answered_by_it(repository: TestRepository) -> None:
    full = repository.commit("Start", {"inner/a.txt": "a"})
    assert unreachable(source(repository.path / "inner").read(commit(full))).code == "no_repository"


def test_a_repository_without_commits_is_a_problem(repository: TestRepository) -> None:
    looked_up = source(repository)
    assert "project" in looked_up.problems()[0]
    assert isinstance(looked_up.read(commit(ABSENT)), Missing)
    repository.commit("Start")
    assert looked_up.problems() == ()


def test_a_repository_that_goes_away_and_comes_back(repository: TestRepository, tmp_path: Path) -> None:
    full = repository.commit("Start")
    looked_up = source(repository)
    assert found(looked_up.read(commit(full))).standing is Standing.IN_FORCE
    repository.path.rename(tmp_path / "elsewhere")
    assert unreachable(looked_up.read(commit(full))).code == "no_repository"
    (tmp_path / "elsewhere").rename(repository.path)
    assert found(looked_up.read(commit(full))).standing is Standing.IN_FORCE
    shutil.rmtree(repository.path)
    assert unreachable(looked_up.read(commit(full))).code == "no_repository"
    other = TestRepository(repository.path)
    other.commit("Another history")
    assert isinstance(looked_up.read(commit(full)), Missing)


def test_time_running_out_is_not_an_answer(repository: TestRepository) -> None:
    full = repository.commit("Start")
    assert unreachable(source(repository, timeout=0.0).read(commit(full))).code == "timeout"


def test_a_git_that_hangs_is_ended(repository: TestRepository) -> None:
    full = repository.commit("Start")
    file = repository.object_file(full)
    file.unlink()
    os.mkfifo(file)  # opening it waits for a writer that never comes
    assert unreachable(source(repository, timeout=0.3).read(commit(full))).code == "timeout"


def test_the_text_is_the_whole_message_and_the_names_of_many_files(repository: TestRepository) -> None:
    repository.commit("Start", {"a.txt": "a"})
    message = "Split the module\n\n" + "Every part gets a file of its own.\n" * 100
    full = repository.commit(message, {f"part-{number:03}.py": "" for number in range(400)})
    reading = found(source(repository).read(commit(full)))
    said, _, files = reading.text.partition("\n\nFiles: ")
    assert said == message.strip()
    assert files.split(", ") == [f"part-{number:03}.py" for number in range(300)]
    assert reading.excerpt == message[:2000]


def test_file_names_without_end_are_cut(repository: TestRepository) -> None:
    long = "x" * 200
    full = repository.commit("Start", {f"{number:03}/{long}": "" for number in range(200)})
    reading = found(source(repository).read(commit(full)))
    assert 19_000 < len(reading.text) <= 20_300
    assert reading.text.endswith(f"/{long}")


def test_a_merge_names_the_files_it_brought(repository: TestRepository) -> None:
    repository.commit("Start", {"a.txt": "a"})
    repository.git("checkout", "--quiet", "-b", "side")
    repository.commit("On the side", {"side.txt": "s"})
    repository.git("checkout", "--quiet", "-")
    repository.commit("Meanwhile", {"main.txt": "m"})
    repository.git("merge", "--quiet", "--no-ff", "--message", "Merge side", "side")
    reading = found(source(repository).read(commit(repository.git("rev-parse", "HEAD"))))
    assert reading.text == "Merge side\n\nFiles: side.txt"


def test_the_oldest_commit_of_a_shallow_clone_names_no_files(
    repository: TestRepository, tmp_path: Path
) -> None:
    repository.commit("Start", {"a.txt": "a"})
    last = repository.commit("More", {"b.txt": "b"})
    clone = tmp_path / "shallow"
    repository.git("clone", "--quiet", "--depth", "1", f"file://{repository.path}", str(clone))
    assert found(source(clone).read(commit(last))).text == "More"


def test_a_message_without_end_is_cut(repository: TestRepository, tmp_path: Path) -> None:
    repository.commit("Start", {"a.txt": "a"})
    message = tmp_path / "message"  # no command line is as long
    message.write_text("Start\n\n" + "word " * 50_000)
    repository.git("commit", "--quiet", "--amend", "--file", str(message))
    full = repository.git("rev-parse", "HEAD")
    assert len(found(source(repository).read(commit(full))).text) == TEXT_CHARACTERS


def test_a_commit_of_many_megabytes_is_not_read(repository: TestRepository, tmp_path: Path) -> None:
    first = repository.commit("Start", {"a.txt": "The kiln cools for 4 hours."})
    message = tmp_path / "message"
    message.write_text(f"Kiln\n\nThis reverts commit {first}.\n" + "x" * LARGEST)
    repository.git("commit", "--quiet", "--allow-empty", "--file", str(message))
    large = repository.git("rev-parse", "HEAD")
    kept = repository.commit("Cooling of the kiln", {"b.txt": "b"})
    looked_up = source(repository)
    refused = unreachable(looked_up.read(commit(large)))
    assert (refused.code, "is larger than 1 MiB" in refused.detail) == ("not_supported", True)
    assert found(looked_up.read(commit(first))).standing is Standing.IN_FORCE  # it reverts nothing
    (grounding,) = looked_up._groundings
    with grounding.open(time.monotonic() + 60) as opened:
        tip = grounding.tip(opened)
        assert tip is not None
        assert [each.splitlines()[0] for each in messages(opened, "%H", tip.commit)] == [kept, first]


def test_a_corrupt_object_is_an_error(repository: TestRepository) -> None:
    full = repository.commit("Start")
    looked_up = source(repository)
    assert found(looked_up.read(commit(full))).standing is Standing.IN_FORCE
    file = repository.object_file(full)
    file.chmod(0o644)
    file.write_bytes(b"not zlib")
    assert unreachable(looked_up.read(commit(full))).code == "error"


def test_an_object_under_a_false_name_is_an_error(repository: TestRepository) -> None:
    honest = repository.commit("Honest")
    other = repository.commit("Other")
    file = repository.object_file(honest)
    file.chmod(0o644)
    shutil.copyfile(repository.object_file(other), file)
    assert unreachable(source(repository).read(commit(honest))).code == "error"


def test_a_branch_that_points_at_nothing_is_an_error(repository: TestRepository) -> None:
    full = repository.commit("Start")
    repository.write({".git/refs/heads/broken": f"{'1' * 40}\n"})
    assert unreachable(source(repository).read(commit(full))).code == "error"


def test_a_broken_configuration_is_not_a_crash(repository: TestRepository) -> None:
    full = repository.commit("Start")
    repository.write({".git/config": "[core\nnot a config"})
    assert unreachable(source(repository).read(commit(full))).code in {"error", "no_repository"}
    repository.write({".git/config": b"\xff\xfe\x00"})
    assert unreachable(source(repository).read(commit(full))).code in {"error", "no_repository"}


def test_two_repositories_are_asked(repository: TestRepository, tmp_path: Path) -> None:
    repository.commit("Start")
    other = TestRepository(tmp_path / "other")
    full = other.commit("In the other", {"b.txt": "b"})
    reading = found(source(repository, other).read(commit(full)))
    assert "other" in reading.detail
    assert isinstance(source(repository, other).read(commit(ABSENT)), Missing)
    clone = tmp_path / "clone"
    other.git("clone", "--quiet", str(other.path), str(clone))
    assert found(source(other, clone).read(commit(full))).standing is Standing.IN_FORCE


def test_an_id_that_means_two_commits_in_two_repositories_is_ambiguous(
    repository: TestRepository, tmp_path: Path
) -> None:
    first, second = ambiguous_pair(repository)
    apart = [tmp_path / "one", tmp_path / "two"]
    for path, full in zip(apart, (first, second), strict=True):
        branch = repository.git("for-each-ref", "--format=%(refname:short)", f"--points-at={full}")
        TestRepository(path, bare=True)
        repository.git("push", "--quiet", "--force", str(path), f"{branch}:refs/heads/{branch}")
    reading = found(source(*apart).read(commit(first[:4])))
    assert reading.standing is Standing.AMBIGUOUS
    assert first[:12] in reading.detail
    assert second[:12] in reading.detail


def test_of_two_clones_the_one_that_knows_of_the_revert_wins(
    repository: TestRepository, tmp_path: Path
) -> None:
    repository.commit("Start")
    undone = repository.commit("Add cache", {"cache.py": "size = 1\n"})
    clone = tmp_path / "stale"
    repository.git("clone", "--quiet", str(repository.path), str(clone))
    repository.revert(undone)
    assert found(source(clone, repository).read(commit(undone))).standing is Standing.REVERTED


def test_an_unreachable_repository_beside_a_good_one(repository: TestRepository, tmp_path: Path) -> None:
    full = repository.commit("Start")
    looked_up = source(tmp_path / "absent", repository)
    assert found(looked_up.read(commit(full))).standing is Standing.IN_FORCE
    assert unreachable(looked_up.read(commit(ABSENT))).code == "no_repository"


@pytest.mark.parametrize(
    "key", ["commit:--all", "commit:HEAD", "commit:", "commit:abc", "commit:ABCDEF1", "adr:1"]
)
def test_only_an_id_reaches_git(repository: TestRepository, key: str) -> None:
    repository.commit("Start")
    citation = Citation(type=CitationType.COMMIT, value="x", key=key)
    assert unreachable(source(repository).read(citation)).code == "not_supported"


def test_another_kind_of_citation_is_not_looked_up(repository: TestRepository) -> None:
    repository.commit("Start")
    citation = Citation(type=CitationType.RFC, value="RFC 2119", key="rfc:2119")
    assert unreachable(source(repository).read(citation)).code == "not_supported"


def test_a_hostile_repository_runs_nothing(repository: TestRepository, tmp_path: Path) -> None:
    undone = repository.commit("Add cache", {"cache.py": "size = 1\n"})
    repository.revert(undone)
    trap = tmp_path / "sprung"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {trap}\n")
    program.chmod(0o755)
    hook = repository.path / ".git" / "hooks" / "post-index-change"
    hook.parent.mkdir(exist_ok=True)
    shutil.copy(program, hook)
    for name in ("core.fsmonitor", "core.pager", "diff.external", "gpg.program", "core.sshCommand"):
        repository.git("config", name, str(program))
    for name in ("alias.rev-parse", "alias.cat-file", "alias.rev-list"):
        repository.git("config", name, f"!{program}")
    repository.git("config", "log.showSignature", "true")
    repository.git("config", "core.repositoryformatversion", "1")
    repository.git("config", "extensions.partialClone", "origin")
    repository.git("config", "remote.origin.url", str(tmp_path / "nowhere"))
    repository.git("config", "remote.origin.promisor", "true")
    repository.git("config", "remote.origin.uploadpack", str(program))
    trap.unlink(missing_ok=True)
    looked_up = source(repository)
    assert found(looked_up.read(commit(undone))).standing is Standing.REVERTED
    assert unreachable(looked_up.read(commit(ABSENT))).code == "shallow_clone"
    assert not trap.exists()


def test_a_replacement_does_not_change_a_commit(repository: TestRepository) -> None:
    honest = repository.commit("Honest")
    other = repository.commit("Other")
    repository.git("replace", honest, other)
    assert found(source(repository).read(commit(honest))).title == "Honest"


def test_the_environment_of_a_hook_does_not_lead_elsewhere(
    repository: TestRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = repository.commit("Start")
    other = TestRepository(tmp_path / "other")
    elsewhere = other.commit("Elsewhere")
    monkeypatch.setenv("GIT_DIR", str(other.path / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.path))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(other.path / ".git" / "objects"))
    monkeypatch.setenv("GIT_ALTERNATE_OBJECT_DIRECTORIES", str(other.path / ".git" / "objects"))
    assert found(source(repository).read(commit(full))).standing is Standing.IN_FORCE
    assert isinstance(source(repository).read(commit(elsewhere)), Missing)


def test_bare_repositories_and_work_trees_are_both_read(repository: TestRepository, tmp_path: Path) -> None:
    full = repository.commit("Start")
    bare = tmp_path / "bare.git"
    repository.git("clone", "--quiet", "--bare", str(repository.path), str(bare))
    repository.git("worktree", "add", "--quiet", "--detach", str(tmp_path / "linked"))
    for path in (bare, tmp_path / "linked"):
        assert found(source(path).read(commit(full))).standing is Standing.IN_FORCE


def test_odd_messages_are_read(repository: TestRepository) -> None:
    repository.commit("Start")
    tree = repository.git("rev-parse", "HEAD^{tree}")
    people = b"author A <a@b> 1 +0000\ncommitter A <a@b> 99999999999999 +0000\n"
    raw = (
        b"tree "
        + tree.encode()
        + b"\n"
        + people
        + b"encoding no-such\n\n\xff\xfe\x01 caf\xe9 "
        + b"x" * 5_000
    )
    full = repository.git("hash-object", "-t", "commit", "-w", "--stdin", "--literally", stdin=raw)
    repository.git("tag", "odd", full)
    reading = found(source(repository).read(commit(full)))
    assert len(reading.excerpt) == 2_000
    assert "\x01" not in reading.excerpt
    assert reading.dated is None
    empty = repository.git("commit-tree", tree, stdin="")
    assert found(source(repository).read(commit(empty))).title == ""
    repository.git("config", "i18n.commitEncoding", "ISO-8859-1")
    latin = repository.git("commit-tree", tree, stdin="Caf\xe9".encode("latin-1"))
    assert found(source(repository).read(commit(latin))).title == "Café"


def test_many_threads_get_the_same_answer(repository: TestRepository) -> None:
    ids = [repository.commit(f"Change {number}") for number in range(6)]
    looked_up = source(repository)
    with ThreadPoolExecutor(8) as pool:
        readings = list(pool.map(lambda full: looked_up.read(commit(full)), ids * 5))
    assert {found(reading).standing for reading in readings} == {Standing.IN_FORCE}
    assert [found(reading).title for reading in readings[:6]] == [f"Change {number}" for number in range(6)]
