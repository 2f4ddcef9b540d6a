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
