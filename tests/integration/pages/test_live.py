"""Who listens to a queue is told of its changes, whoever wrote them, and nobody else pays for it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import count, pairwise
from typing import TypeVar

import pytest
from sqlalchemy import Connection, Engine, event

from tests.claims import NOW, examined, submission_of
from tests.conftest import THRESHOLD
from tests.reviews import queue_of, reviewer, waiting
from vouchgate.ingest.claims.claim import Source
from vouchgate.server.live import MOST_FOR_ONE, Hub, QueueState, Stream, TooManyStreams
from vouchgate.storage.claims.submit import Decided
from vouchgate.storage.errors import StorageError
from vouchgate.storage.store import Store
from vouchgate.web.live import CROWDED_MS, RETRY_MS, frames

LOOK = 0.02  # seconds between two looks, so that tests need not wait

T = TypeVar("T")


def hub_of(store: Store, most_for_one: int = MOST_FOR_ONE) -> Hub:
    """A hub that looks often."""
    return Hub(store, look_seconds=LOOK, most_for_one=most_for_one)


def go(work: Callable[[], Awaitable[T]], seconds: float = 120) -> T:
    """Runs it; at the end no task may be left but those that end by themselves when asked to."""

    async def main() -> T:
        try:
            async with asyncio.timeout(seconds):
                return await work()
        finally:
            async with asyncio.timeout(seconds):
                while len(asyncio.all_tasks()) > 1:
                    await asyncio.sleep(LOOK)

    return asyncio.run(main())


async def send(store: Store, content: str, owner_id: str = "ann") -> None:
    """A claim that waits, sent while the event loop goes on."""
    one = examined(content, owner_id=owner_id, source=Source.AI_SYNTHESIS)
    answer = await asyncio.wrap_future(store.writer.submit(submission_of(one)))
    assert isinstance(answer, Decided)
    assert answer.answer.queue_id is not None


@contextmanager
def statements() -> Iterator[list[str]]:
    """The statements about owners that are sent meanwhile, by anybody in this process."""
    seen: list[str] = []

    def note(_connection: Connection, _cursor: object, statement: str, *_: object) -> None:
        if statement.startswith("SELECT owner."):
            seen.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(Engine, "before_cursor_execute", note)


def test_the_present_state_comes_first_and_at_once(store: Store) -> None:
    waiting(store, "The hall is cold")
    waiting(store, "The hall is dark")

    async def work() -> tuple[QueueState, QueueState]:
        hub = Hub(store, look_seconds=3600)  # so that it was not told by chance, by the next look
        with hub.listen("ann") as ann:
            first = await anext(ann)
            with hub.listen("nobody yet") as late:
                return first, await anext(late)

    assert go(work) == (QueueState(seq=2, waiting=2), QueueState(seq=0, waiting=0))


def test_a_change_by_another_process_is_told(store: Store, database_url: str) -> None:
    item = waiting(store, "The hall is cold")
    other = Store.open(database_url, threshold=THRESHOLD)

    async def work() -> list[QueueState]:
        with hub_of(store).listen("ann") as stream:
            seen = [await anext(stream)]
            await send(other, "The hall is dark")
            seen.append(await anext(stream))
            await asyncio.to_thread(
                queue_of(other).reject, reviewer(), item.id, version=1, reason="no", now=NOW
            )
            return [*seen, await anext(stream)]

    try:
        assert go(work) == [QueueState(1, 1), QueueState(2, 2), QueueState(3, 1)]
    finally:
        other.close()


@pytest.mark.on("sqlite")
def test_nobody_is_told_of_another_owner_s_queue(store: Store) -> None:
    async def work() -> list[QueueState]:
        with hub_of(store).listen("ann") as ann, hub_of(store).listen("bob") as bob:
            seen = [await anext(ann), await anext(bob)]
            await send(store, "The hall is cold", "bob")
            seen.append(await anext(bob))
            with suppress(TimeoutError):
                async with asyncio.timeout(10 * LOOK):
                    seen.append(await anext(ann))
            return seen

    assert go(work) == [QueueState(0, 0), QueueState(0, 0), QueueState(1, 1)]


def test_the_last_of_many_changes_is_always_told(store: Store) -> None:
    """Listeners that take their time, give up waiting now and then, and come and go."""

    async def follow(hub: Hub, pause: float, last: int) -> list[QueueState]:
        seen: list[QueueState] = []
        with hub.listen("ann") as stream:
            while not seen or seen[-1].waiting < last:
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK / 2):
                        seen.append(await anext(stream))
                        await asyncio.sleep(pause)
        return seen

    async def work() -> list[list[QueueState]]:
        hub = hub_of(store, most_for_one=50)
        followers = [asyncio.create_task(follow(hub, pause, 30)) for pause in (0, LOOK / 3, LOOK, 3 * LOOK)]
        for number in range(30):
            await send(store, f"Cellar {number} is dry, as anybody can see")
            followers.append(asyncio.create_task(follow(hub, 0, 15)))
        return await asyncio.gather(*followers)

    for seen in go(work):
        assert seen == sorted(seen, key=lambda state: state.seq)
        assert len(seen) == len(set(seen))


def test_one_look_is_one_statement_for_all_and_none_while_nobody_listens(store: Store) -> None:
    async def many() -> None:
        hub = Hub(store, look_seconds=3600)
        with ExitStack() as opened:
            streams = [opened.enter_context(hub.listen(f"owner {number % 10}")) for number in range(40)]
            for stream in streams:
                await anext(stream)

    async def idle(seen: list[str]) -> None:
        hub = hub_of(store)
        with hub.listen("ann") as stream:
            await anext(stream)
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(LOOK)
        seen.clear()
        await asyncio.sleep(5 * LOOK)
        assert seen == []
        with hub.listen("ann") as stream:  # and it wakes up again
            assert await anext(stream) == QueueState(0, 0)

    with statements() as seen:
        go(many)
        assert len(seen) == 1
        go(lambda: idle(seen))


@pytest.mark.on("sqlite")
def test_too_many_of_one_owner_end_the_oldest_and_too_many_in_all_are_refused(store: Store) -> None:
    counts: list[int] = []

    async def work() -> None:
        hub = Hub(store, counts.append, look_seconds=LOOK, most_for_one=2, most_in_all=3)
        with ExitStack() as opened:
            ann = [opened.enter_context(hub.listen("ann")) for _ in range(3)]
            assert [state async for state in ann[0]] == []
            assert ann[0].crowded_out
            with hub.listen("bob"):
                with pytest.raises(TooManyStreams), hub.listen("cid"):
                    pass
                with pytest.raises(TooManyStreams), hub.listen("bob"):
                    pass
                opened.enter_context(hub.listen("ann"))  # takes the place of one of her own
                assert [state async for state in ann[1]] == []
            with hub.listen("cid") as stream:
                assert await anext(stream) == QueueState(0, 0)
            assert [await anext(stream) for stream in ann[2:]] == [QueueState(0, 0)]
        assert not ann[2].crowded_out

    go(work)
    assert max(counts) == 3
    assert counts[-1] == 0


def test_while_the_database_is_away_nobody_is_told_anything(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    waiting(store, "The hall is cold")

    def said(words: str) -> list[str]:
        return [record.getMessage() for record in caplog.records if words in record.getMessage()]

    def rename(old: str, new: str) -> None:
        store.writer.run(
            (), lambda connection: connection.exec_driver_sql(f"ALTER TABLE {old} RENAME TO {new}")
        ).result()

    async def work() -> None:
        with hub_of(store).listen("ann") as stream:
            assert await anext(stream) == QueueState(1, 1)
            await asyncio.to_thread(rename, "owner", "owner_away")
            late = hub_of(store)
            with late.listen("ann") as newcomer:
                while len(said("cannot be read")) < 2:  # of both hubs
                    await asyncio.sleep(LOOK)
                for one in (stream, newcomer):
                    with pytest.raises(TimeoutError):
                        async with asyncio.timeout(10 * LOOK):
                            await anext(one)
                assert len(said("cannot be read")) == 2
                await asyncio.to_thread(rename, "owner_away", "owner")
                assert await anext(newcomer) == QueueState(1, 1)
            await send(store, "The hall is dark")
            assert await anext(stream) == QueueState(2, 2)

    with caplog.at_level(logging.INFO):
        go(work)
    assert len(said("told of changes again")) == 2


@pytest.mark.on("sqlite")
def test_closing_ends_everybody_and_nobody_new_comes_in(store: Store) -> None:
    async def work() -> None:
        hub = Hub(store, look_seconds=3600)
        with hub.listen("ann") as ann, hub.listen("bob") as bob:
            assert await anext(ann) == QueueState(0, 0)
            rest = asyncio.create_task(rest_of(bob))
            hub.close()
            assert [state async for state in ann] == []
            assert len(await rest) <= 1
            assert not ann.crowded_out
            with pytest.raises(TooManyStreams), hub.listen("ann"):
                pass
        hub.close()

    async def rest_of(stream: Stream) -> list[QueueState]:
        return [state async for state in stream]

    go(work)


@pytest.mark.on("sqlite")
def test_a_stream_of_events_on_the_wire(store: Store) -> None:
    waiting(store, "The hall is cold")

    async def work() -> list[bytes]:
        with hub_of(store).listen("ann") as stream:
            sent = frames(stream, lambda: True, 3600)
            got = [await anext(sent), await anext(sent)]
            await send(store, "The hall is dark")
            got.append(await anext(sent))
            stream.end()
            return got + [frame async for frame in sent]

    assert go(work) == [
        f"retry: {RETRY_MS}\n\n".encode(),
        b'event: queue\ndata: {"waiting": 1, "seq": 1}\nid: 1\n\n',
        b'event: queue\ndata: {"waiting": 2, "seq": 2}\nid: 2\n\n',
    ]


@pytest.mark.on("sqlite")
def test_one_who_is_crowded_out_is_asked_to_stay_away_for_a_while(store: Store) -> None:
    async def work() -> bytes:
        with hub_of(store).listen("ann") as stream:
            stream.end(crowded_out=True)
            return b"".join([frame async for frame in frames(stream, lambda: True, 3600)])

    assert go(work).endswith(f"retry: {CROWDED_MS}\n\n".encode())


def test_a_heartbeat_looks_whether_the_visitor_is_still_signed_in(store: Store) -> None:
    """Also while there are so many events that the stream is never quiet."""
    answers: list[bool | StorageError] = []

    asked: list[float] = []

    def still_signed_in() -> bool:
        asked.append(time.monotonic())
        answer = answers.pop(0)
        if isinstance(answer, StorageError):
            raise answer
        return answer

    async def change(stream: Stream) -> None:
        for number in count(1):
            stream.push_state(QueueState(number, 1))
            await asyncio.sleep(0)

    async def work(*, busy: bool) -> list[bytes]:
        with hub_of(store).listen("ann") as stream:
            changing = asyncio.create_task(change(stream) if busy else asyncio.sleep(0))
            try:
                return [frame async for frame in frames(stream, still_signed_in, 3 * LOOK)]
            finally:
                changing.cancel()

    for busy in (False, True):
        answers[:], asked[:] = [True, StorageError("away"), True, False], []
        got = go(partial(work, busy=busy))
        assert answers == []
        assert [frame for frame in got if frame.startswith(b":")] == [b": still there\n\n"] * 3
        assert (len(got) > 10) is busy
        assert all(
            later - earlier > 2 * LOOK for earlier, later in pairwise(asked)
        )  # no more often than said
