"""The shape of a worker that sends what is in the database: lease some, work at it with nothing locked, note what came
of it, and begin again. What is leased and how it is sent is the caller's."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

log = logging.getLogger(__name__)

J = TypeVar("J")  # a piece of work
R = TypeVar("R")  # what one try came to


async def keep_going(
    work: Callable[[], Awaitable[Mapping[R, int]]],
    pause: Callable[[], float],
    report: Callable[[Mapping[R, int]], None],
    *,
    after_error: float,
    what: str,
) -> None:
    """Does rounds of `work` until it is cancelled, and tells `report` of every one that did something. `pause` gives
    the seconds to sleep between two; it may read the database, so it is called in a thread. After an error, which is
    logged as one of `what`, it sleeps `after_error` seconds."""
    while True:
        wait = after_error
        try:
            results = await work()
            if results:
                report(results)
            wait = await asyncio.to_thread(pause)
        except Exception:
            log.exception("%s failed; it is tried again", what)
        await asyncio.sleep(wait)


async def one_round(
    now: datetime,
    at_once: int,
    lease: Callable[[datetime, int], Awaitable[Sequence[J]]],
    do: Callable[[J, datetime], Coroutine[Any, Any, Iterable[R]]],
) -> Counter[R]:
    """Does what is due at `now` or comes due meanwhile, so many pieces at once; how often what came of it. `lease` gets
    the time and how much there is room for, and gives nothing when nothing is due. Cancelled, it cancels what is under
    way and waits for that."""
    begun = time.monotonic()
    results: Counter[R] = Counter()
    under_way: set[asyncio.Task[Iterable[R]]] = set()
    more = True
    try:
        while more or under_way:
            at = now + timedelta(seconds=time.monotonic() - begun)
            if more and (room := at_once - len(under_way)) > 0:
                pieces = await lease(at, room)
                more = bool(pieces)
                under_way |= {asyncio.create_task(do(piece, at)) for piece in pieces}
            if under_way:
                done, under_way = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    results.update(task.result())
    finally:
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
    return results
