"""The loop of the workers."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from vouchgate.workers.runner import end, repeat


def test_work_that_keeps_a_cancellation_to_itself_is_ended_all_the_same() -> None:
    """As `asyncio.wait_for` of Python 3.11 does when what it waits for has just ended."""

    async def work() -> float:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(3600)
        return 3600.0

    async def run() -> bool:
        task = asyncio.create_task(repeat("nothing", work))
        await asyncio.sleep(0)
        await end([task])
        return task.cancelled()

    assert asyncio.run(run())


def test_who_is_woken_does_not_sleep_on_and_one_that_is_woken_while_it_works_looks_again() -> None:
    async def run() -> int:
        woken, begun = asyncio.Event(), asyncio.Semaphore(0)
        looked = 0

        async def work() -> float:
            nonlocal looked
            looked += 1
            begun.release()
            if looked == 2:
                woken.set()
            return 3600.0

        task = asyncio.create_task(repeat("nothing", work, woken))
        await begun.acquire()
        woken.set()
        for _ in range(2):
            await begun.acquire()
        await end([task])
        return looked

    assert asyncio.run(run()) == 3
