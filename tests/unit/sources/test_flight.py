"""Single flight: what several ask for at once is fetched once, and nobody's leaving costs the others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vouchgate.ingest.net.single_flight import SharedTasks


class Work:
    """Something slow that counts how often it was begun, finished and cancelled. Without `seconds` it takes until
    `over` is set."""

    def __init__(self, seconds: float | None = 0.02) -> None:
        self.seconds = seconds
        self.over = asyncio.Event()
        self.begun = self.finished = self.cancelled = 0

    async def __call__(self) -> int:
        self.begun += 1
        number = self.begun
        try:
            await (self.over.wait() if self.seconds is None else asyncio.sleep(self.seconds))
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        self.finished += 1
        return number


def run(main: Coroutine[Any, Any, None]) -> None:
    """In a loop that fails the test for an exception that nobody saw."""

    async def watched() -> None:
        complaints: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        await main
        await asyncio.sleep(0)
        assert not complaints

    asyncio.run(watched())


def test_the_same_key_is_fetched_once_and_another_key_by_itself() -> None:
    async def main() -> None:
        flights, one, other = SharedTasks(), Work(), Work()
        answers = await asyncio.gather(
            *(flights.run_once("a", one) for _ in range(50)),
            *(flights.run_once("b", other) for _ in range(3)),
        )
        assert answers == [1] * 53
        assert (one.begun, other.begun, len(flights)) == (1, 1, 0)

    run(main())


def test_what_has_landed_is_fetched_anew() -> None:
    async def main() -> None:
        flights, work = SharedTasks(), Work(0)
        assert [await flights.run_once("a", work), await flights.run_once("a", work)] == [1, 2]

    run(main())


def test_an_exception_reaches_every_waiter_and_the_next_caller_tries_again() -> None:
    calls = 0

    async def fail() -> int:
        nonlocal calls
        calls += 1
        await asyncio.sleep(0.01)
        raise ValueError("no")

    async def main() -> None:
        flights = SharedTasks()
        answers = await asyncio.gather(
            *(flights.run_once("a", fail) for _ in range(3)), return_exceptions=True
        )
        assert [type(answer) for answer in answers] == [ValueError] * 3
        with pytest.raises(ValueError, match="no"):
            await flights.run_once("a", fail)
        assert (calls, len(flights)) == (2, 0)

    run(main())


def test_a_start_that_fails_before_it_waits_for_anything() -> None:
    def broken() -> Awaitable[int]:
        raise ValueError("at once")

    async def main() -> None:
        flights = SharedTasks()
        with pytest.raises(ValueError, match="at once"):
            await flights.run_once("a", broken)
        assert len(flights) == 0

    run(main())


def test_a_waiter_that_leaves_takes_nothing_from_the_others() -> None:
    async def main() -> None:
        flights, work = SharedTasks(), Work(None)
        first = asyncio.create_task(flights.run_once("a", work))
        second = asyncio.create_task(flights.run_once("a", work))
        await asyncio.sleep(0.005)
        first.cancel()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001):
                await flights.run_once("a", work)
        work.over.set()
        assert await second == 1
        assert first.cancelled()
        assert (work.begun, work.finished, len(flights)) == (1, 1, 0)

    run(main())


def test_without_a_waiter_work_goes_on_for_the_time_it_may_linger() -> None:
    async def main() -> None:
        flights, work = SharedTasks(linger_seconds=60), Work(None)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.005):
                await flights.run_once("a", work)
        assert len(flights) == 1
        work.over.set()
        assert await flights.run_once("a", work) == 1  # still the same flight
        assert (work.begun, work.finished) == (1, 1)

    run(main())


def test_after_that_time_it_is_cancelled_and_forgotten() -> None:
    async def main() -> None:
        flights, work = SharedTasks(linger_seconds=0.01), Work(60)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.005):
                await flights.run_once("a", work)
        await asyncio.sleep(0.05)
        assert (work.cancelled, len(flights)) == (1, 0)

    run(main())


def test_somebody_who_comes_while_it_lingers_keeps_it_alive() -> None:
    async def main() -> None:
        flights, work = SharedTasks(linger_seconds=0.03), Work(0.1)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.005):
                await flights.run_once("a", work)
        assert await flights.run_once("a", work) == 1
        assert work.cancelled == 0

    run(main())


def test_nobody_boards_what_is_being_cancelled() -> None:
    stubborn: list[str] = []

    async def slow_to_end() -> str:
        try:
            await asyncio.sleep(60)
        finally:
            stubborn.append("asked to end")
            await asyncio.sleep(0.05)
        return "never"

    async def main() -> None:
        flights, work = SharedTasks(), Work()
        task = asyncio.create_task(flights.run_once("a", slow_to_end))
        await asyncio.sleep(0.005)
        task.cancel()
        await asyncio.sleep(0.01)
        assert stubborn == ["asked to end"]
        assert await flights.run_once("a", work) == 1

    run(main())


def test_work_that_fails_when_nobody_waits_any_more_says_nothing() -> None:
    async def fail() -> int:
        await asyncio.sleep(0.01)
        raise ValueError("unseen")

    async def main() -> None:
        flights = SharedTasks(linger_seconds=5)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001):
                await flights.run_once("a", fail)
        await asyncio.sleep(0.05)
        assert len(flights) == 0

    run(main())


def test_close_ends_what_is_under_way() -> None:
    async def main() -> None:
        flights, work = SharedTasks(linger_seconds=60), Work(60)
        waiter = asyncio.create_task(flights.run_once("a", work))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await flights.close()
        with pytest.raises(asyncio.CancelledError):
            await waiter
        assert (work.cancelled, len(flights)) == (1, 0)

    run(main())


@settings(max_examples=40, deadline=None)
@given(
    patience=st.lists(st.floats(min_value=0, max_value=0.02), min_size=1, max_size=12),
    linger=st.sampled_from([0.0, 0.005, 1.0]),
)
def test_whoever_waits_long_enough_gets_the_answer_and_nothing_is_left(
    patience: list[float], linger: float
) -> None:
    async def ask(flights: SharedTasks, work: Callable[[], Awaitable[int]], seconds: float) -> int | None:
        try:
            async with asyncio.timeout(seconds):
                return await flights.run_once("a", work)
        except TimeoutError:
            return None

    async def main() -> None:
        flights, work = SharedTasks(linger_seconds=linger), Work(0.01)
        answers = await asyncio.gather(
            ask(flights, work, 10), *(ask(flights, work, each) for each in patience)
        )
        assert answers[0] == 1
        assert work.begun == 1
        assert set(answers) <= {1, None}
        assert len(flights) == 0

    run(main())
