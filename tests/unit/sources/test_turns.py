"""Who asks for much waits for itself."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from vouchgate.ingest.net.turns import Turns, asking, on_behalf_of


def test_each_name_has_so_many_at_once() -> None:
    async def main() -> None:
        turns, go = Turns(2), asyncio.Event()
        going: list[str] = []

        async def take(name: str) -> None:
            async with turns.of(name):
                going.append(name)
                await go.wait()

        tasks = [asyncio.create_task(take("ann")) for _ in range(8)]
        tasks.append(asyncio.create_task(take("bob")))
        for _ in range(5):
            await asyncio.sleep(0)
        assert going == ["ann", "ann", "bob"]
        tasks[3].cancel()
        go.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert sorted(going) == ["ann"] * 7 + ["bob"]

    asyncio.run(main())


def test_nothing_is_kept_of_who_has_gone() -> None:
    async def main() -> None:
        turns = Turns(1)
        for _ in range(2):
            async with turns.of("ann"):
                assert turns.names == {"ann"}
        assert not turns.names

    asyncio.run(main())


def test_names_take_turns_where_all_have_so_many_together() -> None:
    """One name with much to do is given the next turn when another has had one, and gives back what it waited for."""

    async def main() -> None:
        turns, going = Turns(2, total=3), []
        go = asyncio.Semaphore(0)

        async def take(name: str) -> None:
            async with turns.of(name):
                going.append(name)
                await go.acquire()

        async def settle(more: int = 0) -> None:
            for _ in range(more):
                go.release()
            for _ in range(8):
                await asyncio.sleep(0)

        tasks = [asyncio.create_task(take(name)) for name in ["ann"] * 20 + ["bob"] * 3 + ["cyd"] * 2]
        await settle()
        assert going == ["ann", "ann", "bob"]
        tasks[21].cancel()  # bob's second
        await settle(6)
        assert going[3:] == ["bob", "cyd", "ann", "cyd", "ann", "ann"]
        await settle(20)
        await asyncio.gather(*tasks, return_exceptions=True)
        assert Counter(going) == {"ann": 20, "bob": 2, "cyd": 2}
        assert not turns.names

    asyncio.run(main())


def test_a_turn_lasts_until_its_thread_is_free() -> None:
    """Who gave up waiting has not freed the thread that works for it."""

    async def main() -> None:
        turns, over, threads = Turns(1, total=1), threading.Event(), ThreadPoolExecutor(2)
        slow = asyncio.create_task(turns.run("ann", threads, lambda: over.wait(30)))
        waiting = asyncio.create_task(turns.run("ann", threads, lambda: "never"))
        other = asyncio.create_task(turns.run("bob", threads, lambda: "done"))
        for _ in range(3):
            await asyncio.sleep(0)
        for task in (slow, waiting):
            task.cancel()
        await asyncio.wait([slow, waiting])
        await asyncio.sleep(0.05)
        assert not other.done()
        over.set()
        assert await other == "done"
        with pytest.raises(ZeroDivisionError):
            await turns.run("ann", threads, lambda: 1 // 0)
        await asyncio.sleep(0)
        threads.shutdown()
        with pytest.raises(RuntimeError, match="shutdown"):
            await turns.run("ann", threads, lambda: "late")
        assert not turns.names

    asyncio.run(main())


def test_what_is_asked_on_behalf_of_an_owner_is_theirs_in_every_task() -> None:
    async def ask() -> str:
        await asyncio.sleep(0)
        return asking()

    async def main() -> list[str]:
        with on_behalf_of("ann"):
            ours = asyncio.create_task(ask())
            with on_behalf_of("bob"):
                theirs = asyncio.create_task(ask())
            return [await ours, await theirs, asking(), await asyncio.create_task(ask())]

    assert asyncio.run(main()) == ["ann", "bob", "ann", "ann"]
    assert not asking()
