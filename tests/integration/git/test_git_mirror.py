"""Repositories that are known by an address: mirrored, fetched, and read as they were last seen."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.repos import TestRepository, adr, commit
from vouchgate.ingest.claims.source import Found, Missing, Standing, Unreachable
from vouchgate.ingest.sources.git.mirror import Mirror
from vouchgate.ingest.sources.git.repository import SourceError
from vouchgate.ingest.sources.git.source import GitSource
from vouchgate.settings import load_settings
from vouchgate.sources.repositories import RepositoryError, open_repositories

PAGE = "# 3. Use queues\n\n## Status\n\nAccepted\n"


@pytest.fixture
def origin(tmp_path: Path) -> TestRepository:
    made = TestRepository(tmp_path / "origin")
    made.commit("Decide", {"docs/adr/0003-use-queues.md": PAGE})
    return made


def mirror(origin: TestRepository, folder: Path, fresh_seconds: float = 0.0) -> Mirror:
    return Mirror(f"file://{origin.path}", folder, files=True, fresh_seconds=fresh_seconds)


def test_what_is_pushed_is_seen_and_what_is_on_another_branch_is_not_merged(
    origin: TestRepository, tmp_path: Path
) -> None:
    source = GitSource([mirror(origin, tmp_path / "mirrors")])
    first = source.read(adr(3))
    assert isinstance(first, Found), first
    assert "in origin says" in first.detail
    assert isinstance(source.read(adr(4)), Unreachable)  # fetched, but not less than no time ago
    origin.commit("Go on", {"docs/adr/0004-x.md": PAGE.replace("3", "4")})
    assert isinstance(source.read(adr(4)), Found)
    origin.git("checkout", "--quiet", "-b", "agent")
    made = origin.commit("Agent's")
    origin.git("checkout", "--quiet", "main")
    reading = source.read(commit(made))
    assert isinstance(reading, Found)
    assert reading.standing is Standing.NOT_MERGED
    assert source.problems() == ()


def test_it_is_not_fetched_again_so_soon_and_then_says_what_is_missing(
    origin: TestRepository, tmp_path: Path
) -> None:
    source = GitSource([mirror(origin, tmp_path / "mirrors", fresh_seconds=3_600.0)])
    assert isinstance(source.read(adr(3)), Found)
    origin.commit("Go on", {"docs/adr/0004-x.md": PAGE.replace("3", "4")})
    assert isinstance(source.read(adr(4)), Missing)
    again = GitSource([mirror(origin, tmp_path / "mirrors", fresh_seconds=3_600.0)])  # another process
    assert isinstance(again.read(adr(4)), Missing)
    (stamp,) = (tmp_path / "mirrors").rglob("fetched")
    ahead = time.time() + 86_400  # of the clock that it was fetched by
    os.utime(stamp, (ahead, ahead))
    later = GitSource([mirror(origin, tmp_path / "mirrors", fresh_seconds=3_600.0)])
    assert isinstance(later.read(adr(4)), Found)


def test_a_fetch_that_fails_leaves_the_last_state_and_says_so(origin: TestRepository, tmp_path: Path) -> None:
    source = GitSource([mirror(origin, tmp_path / "mirrors")])
    assert isinstance(source.read(adr(3)), Found)
    origin.path.rename(tmp_path / "away")
    assert isinstance(source.read(adr(3)), Found)
    reading = source.read(adr(4))
    assert isinstance(reading, Unreachable)  # it may be there by now
    assert (reading.code, "could not be fetched lately" in reading.detail) == ("connection", True)
    (problem,) = source.problems()
    assert problem == "origin could not be fetched; what was fetched before is read."
    (tmp_path / "away").rename(origin.path)
    assert isinstance(source.read(adr(3)), Found)
    assert source.problems() == ()


def test_one_that_was_never_fetched_is_not_found_out(origin: TestRepository, tmp_path: Path) -> None:
    origin.path.rename(tmp_path / "away")
    never = mirror(origin, tmp_path / "mirrors")
    reading = GitSource([never]).read(adr(3))
    assert isinstance(reading, Unreachable)
    assert reading.code == "connection"
    with pytest.raises(SourceError):
        never.refresh(time.monotonic())


@pytest.mark.parametrize(
    "address",
    [
        "ext::sh -c true",
        "http://example.org/x",
        "git://example.org/x",
        "file:///x",
        "-u@host:x",
        "git@host:-x",
        "x",
    ],
)
def test_other_protocols_are_refused(tmp_path: Path, address: str) -> None:
    with pytest.raises(ValueError, match="https"):
        Mirror(address, tmp_path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://host:8443/a/b.git:/c/d", ("https://host:8443/a/b.git", Path("/c/d"))),
        (
            "/c:git@host.example:a/b.git:ssh://git@host:22/x",
            (Path("/c"), "git@host.example:a/b.git", "ssh://git@host:22/x"),
        ),
        ("https://user:token@host/a.git", ("https://user:token@host/a.git",)),
        ("relative/x:.", (Path("relative/x"), Path())),
    ],
)
def test_addresses_among_paths_in_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, expected: tuple[object, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VOUCHGATE_REPO", text)
    assert load_settings({"VOUCHGATE_REPO": text}).repo == expected


def test_a_start_waits_for_the_first_fetch_and_stops_without_one(
    origin: TestRepository, tmp_path: Path
) -> None:
    settings = load_settings(
        {}, repo=(f"file://{origin.path}",), mirrors=tmp_path / "mirrors", mirror_files=True
    )
    assert isinstance(open_repositories(settings).read(adr(3)), Found)
    gone = load_settings(
        {}, repo=(f"file://{tmp_path}/gone",), mirrors=tmp_path / "mirrors", mirror_files=True
    )
    with pytest.raises(RepositoryError, match="gone could not be fetched"):
        open_repositories(gone)
    with pytest.raises(RepositoryError, match="https"):
        open_repositories(load_settings({}, repo=("file:///x",), mirrors=tmp_path / "mirrors"))
