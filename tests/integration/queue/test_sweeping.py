"""A service whose clock goes ahead ends nothing until that has lasted."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from tests.desk import add, claim_words
from vouchgate.server.sweeping import DOUBT_SECONDS, Sweeper
from vouchgate.service import open_service
from vouchgate.settings import load_settings
from vouchgate.storage.queue import pending
from vouchgate.storage.queue.pending import QueueFilter

AHEAD, MINUTE, DOUBT = timedelta(days=400), timedelta(minutes=1), timedelta(seconds=DOUBT_SECONDS)


def test_what_waits_is_not_expired_by_a_clock_that_goes_ahead_for_a_while(database_url: str) -> None:
    clock, passed = datetime.now(UTC), 0.0
    with open_service(load_settings({}, database_url=database_url, offline=True)) as service:
        add(service, "ann", claim_words(1))
        sweeper = Sweeper(service, clock=lambda: clock, timer=lambda: passed)

        def waits_after(time: timedelta, *, ahead: timedelta = timedelta(0)) -> bool:
            """Whether the claim waits, so long afterwards, where the clock was put forward as well."""
            nonlocal clock, passed
            clock, passed = clock + time + ahead, passed + time.total_seconds()
            asyncio.run(sweeper.sweep())
            asyncio.run(sweeper.retain())
            with service.store.read() as connection:
                return bool(pending.search(connection, QueueFilter(owners=frozenset({"ann"}))))

        assert waits_after(MINUTE)
        assert waits_after(MINUTE, ahead=AHEAD)
        assert waits_after(MINUTE, ahead=-AHEAD)
        assert waits_after(2 * DOUBT, ahead=AHEAD)  # it is doubted from now on, and not since the first time
        assert waits_after(DOUBT - MINUTE)
        assert not waits_after(MINUTE)
