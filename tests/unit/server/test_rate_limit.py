"""The token bucket, with a clock that the test turns."""

from __future__ import annotations

from pathlib import Path

import pytest

from vouchgate.server.auth import RateLimit


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_no_limit_never_waits() -> None:
    limit = RateLimit(0, Clock())
    assert all(limit.wait("a", 10_000) == 0 for _ in range(100))


def test_a_minutes_worth_at_once_and_then_at_the_rate() -> None:
    clock = Clock()
    limit = RateLimit(60, clock)
    assert [limit.wait("a") for _ in range(60)] == [0.0] * 60
    assert limit.wait("a") == 1.0
    assert limit.wait("b") == 0.0
    clock.now = 1.0
    assert limit.wait("a") == 0.0
    assert limit.wait("a") == 1.0


def test_what_is_larger_than_the_bucket_needs_a_full_one_and_is_owed() -> None:
    clock = Clock()
    limit = RateLimit(60, clock)
    assert limit.wait("a", 500) == 0.0
    assert limit.wait("a", 500) == 500.0
    assert limit.wait("a") == 441.0
    clock.now = 440.5
    assert limit.wait("a") == 0.5
    clock.now = 441.0
    assert limit.wait("a") == 0.0
    clock.now = 501.0
    assert limit.wait("a", 500) == 0.0


@pytest.mark.parametrize("claims", [7, 60, 61, 500])
def test_what_was_taken_before_its_size_was_known_counts_in_it(claims: int) -> None:
    clock = Clock()
    limit = RateLimit(60, clock)
    limit.wait("a", 60)
    clock.now = needed = float(min(claims, 60))
    clock.now -= 1
    assert limit.wait("a") == 0.0
    wait = limit.wait("a", claims, taken=1)
    assert wait == 2.0  # what was taken is gone, and is to be taken again
    clock.now += wait
    assert limit.wait("a") == limit.wait("a", claims, taken=1) == 0.0
    assert limit.wait("a") == 1.0 + claims - needed


def test_limits_that_share_a_folder_share_their_buckets(tmp_path: Path) -> None:
    clock = Clock()
    one, other = RateLimit(60, clock, tmp_path), RateLimit(60, clock, tmp_path)
    assert [limit.wait("a") for _ in range(30) for limit in (one, other)] == [0.0] * 60
    assert one.wait("a") == other.wait("a") == 1.0
    assert other.wait("b/../c") == 0.0  # a name is no path
    clock.now = 2.0
    assert [one.wait("a"), other.wait("a"), one.wait("a")] == [0.0, 0.0, 1.0]
    assert one.wait("a", 500) == 60.0
    clock.now = 62.0
    assert one.wait("a", 500) == 0.0
    assert other.wait("a") == 441.0
    assert {file.parent for file in tmp_path.rglob("*")} == {tmp_path}


def test_a_shared_bucket_that_cannot_be_kept_lets_nothing_through(tmp_path: Path) -> None:
    limit = RateLimit(60, Clock(), tmp_path / "gone")
    with pytest.raises(FileNotFoundError):
        limit.wait("a")
