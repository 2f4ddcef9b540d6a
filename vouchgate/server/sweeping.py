"""What a service ends by itself because its time is over: once a minute what waits and what is kept, every ten what is
to be erased.

Neither can be taken back. So where the clock has gone ahead while the service ran, by more than the time that has
passed, nothing is ended for an hour: a clock that was set wrong is right again by then.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta

from starlette.concurrency import run_in_threadpool

from vouchgate.ingest.scoring.priority import span_left
from vouchgate.review.ending.expiry import expire
from vouchgate.service import Service
from vouchgate.storage.queue import leases
from vouchgate.workers.runner import now_in_utc

log = logging.getLogger(__name__)

RETENTION_SECONDS = (
    600.0  # how often what policies keep for a time only is erased, and free pages and leases are looked at
)
SWEEP_SECONDS = 60.0  # how often items and memories past their time are expired
DOUBT_SECONDS = 3_600.0  # for which a clock that went ahead ends nothing
_AHEAD = timedelta(hours=1)  # what a clock may go ahead by, as where it was an hour wrong and is set right


def _since_boot() -> float:
    """Seconds that nobody sets, those of a sleeping machine too."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Sweeper:
    """Ends what is over its time in one service. Its coroutines belong to one event loop."""

    def __init__(
        self,
        service: Service,
        *,
        clock: Callable[[], datetime] = now_in_utc,
        timer: Callable[[], float] = _since_boot,
    ) -> None:
        self._service = service
        self._clock, self._timer = clock, timer
        self._zero = self._zero_of_timer()
        self._doubted_since: float | None = None

    async def sweep(self) -> float:
        """Expires items and memories, and forgets what is kept for a time only. In how many seconds to come again."""
        now = self._believed_now()
        if now is not None:
            await run_in_threadpool(expire, self._service.queue, now)
        return SWEEP_SECONDS

    async def retain(self) -> float:
        """Erases what policies keep for a time only, and looks after what earlier erasures and clocks have left. In how
        many seconds to come again."""
        service, now = self._service, self._clock()
        await run_in_threadpool(service.erasing.again_if_waiting, now)
        if (believed := self._believed_now()) is not None:
            await run_in_threadpool(service.erasing.retain, believed)
        await run_in_threadpool(service.erasing.scrub_if_due, now)
        await run_in_threadpool(leases.end_impossible, service.store, service.policy, now)
        return RETENTION_SECONDS

    def _believed_now(self) -> datetime | None:
        """The time; None where the clock went ahead lately."""
        zero = self._zero_of_timer()
        ahead = zero - self._zero
        if ahead > _AHEAD:
            if self._doubted_since is None:
                self._doubted_since = self._timer()
                told = "the clock went ahead by %s: nothing is expired or erased for an hour"
                log.warning(told, span_left(ahead))
            if self._timer() - self._doubted_since < DOUBT_SECONDS:
                return None
        self._zero, self._doubted_since = zero, None
        return self._clock()

    def _zero_of_timer(self) -> datetime:
        """When the timer began, by the clock."""
        return self._clock() - timedelta(seconds=self._timer())
