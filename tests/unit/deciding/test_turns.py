"""Who asks for much waits for itself."""

from __future__ import annotations

import asyncio

from vouchgate.gate.turns import Turns


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
