"""The token bucket, with a clock that the test turns."""

from __future__ import annotations

from groundgate.auth import RateLimit


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


def test_a_batch_larger_than_the_bucket_needs_a_full_one() -> None:
    clock = Clock()
    limit = RateLimit(60, clock)
    assert limit.wait("a", 500) == 0.0
    assert limit.wait("a", 500) == 60.0
    clock.now = 60.0
    assert limit.wait("a", 500) == 0.0
