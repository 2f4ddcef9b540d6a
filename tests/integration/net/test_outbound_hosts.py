"""How much one host is asked, by one process and by several."""

from __future__ import annotations

import asyncio
import fcntl
import os
import socket
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hostile import PUBLIC, Line, answer, client_of, failed, fetched, hostile, local, played
from tests.running.processes import FORKED
from tests.web import Answer, web_server
from vouchgate.ingest.net.fetched import Fetched, FetchFailed
from vouchgate.ingest.net.hosts import AT_ONCE, OWNER_AT_ONCE, HostLimits, requested_wait
from vouchgate.ingest.net.shared_limits import SharedHostLimits
from vouchgate.ingest.net.turns import on_behalf_of


@dataclass
class Slow:
    """Answers after a while. `most` requests were under way at once: one counts until it is answered, since the next
    may come before this side has closed its connection."""

    under_way: int = 0
    most: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, line: Line, head: bytes) -> None:
        with self.lock:
            self.under_way += 1
            self.most = max(self.most, self.under_way)
        time.sleep(0.05)
        with self.lock:
            self.under_way -= 1
        line.send(answer(b"ok"))


def test_many_requests_to_one_host_are_two_at_once() -> None:
    async def run(url: str) -> list[Fetched | FetchFailed]:
        client = local()
        return await asyncio.gather(*(client.fetch(f"{url}/{n}", seconds=60) for n in range(40)))

    slowly = Slow()
    with hostile(slowly) as server:
        outcomes = asyncio.run(run(f"http://127.0.0.1:{server.port}"))
    assert all(isinstance(outcome, Fetched) for outcome in outcomes)
    assert slowly.most == 2
    order = [int(head.split()[1][1:]) for head in server.heads]
    assert all(abs(place - number) <= 2 for place, number in enumerate(order)), "first come, first served"


def test_starts_are_apart() -> None:
    async def run(url: str) -> None:
        client = local(spacing_seconds=0.1)
        await asyncio.gather(*(client.fetch(f"{url}/{n}") for n in range(6)))

    with hostile(lambda line, head: line.send(answer(b"ok"))) as server:
        asyncio.run(run(f"http://127.0.0.1:{server.port}"))
    first, last = server.started[0], server.started[-1]
    assert last - first >= 0.45  # five gaps; a server thread may be late for the first


def test_hosts_do_not_wait_for_one_another() -> None:
    async def run(port: int) -> list[Fetched | FetchFailed]:
        client = client_of(resolve=lambda host: [PUBLIC], dial=played([], http=port), spacing_seconds=60.0)
        urls = [f"http://{n}.example/" for n in range(50)]
        return await asyncio.gather(*(client.fetch(url) for url in urls))

    with hostile(lambda line, head: line.send(answer(b"ok"))) as server:
        for outcome in asyncio.run(run(server.port)):
            fetched(outcome)


@pytest.mark.parametrize("url", ["http://A.example", "http://a.example.:8080", "http://a.EXAMPLE:8443/"])
def test_a_host_is_one_however_it_is_written(url: str) -> None:
    async def run(port: int) -> Fetched | FetchFailed:
        client = client_of(
            resolve=lambda host: [PUBLIC], dial=played([], http=port, https=port), spacing_seconds=60.0
        )
        fetched(await client.fetch("http://a.example/"))
        return await client.fetch(url, seconds=0.2)

    with hostile(lambda line, head: line.send(answer(b"ok"))) as server:
        failed(asyncio.run(run(server.port)), "timeout")
        assert len(server.heads) == 1


@pytest.mark.parametrize("shared", [False, True])
def test_a_cancelled_request_frees_its_slot(shared: bool, tmp_path: Path) -> None:
    async def run(url: str) -> Fetched | FetchFailed:
        client = local(per_host=1, shared=tmp_path if shared else None)
        stuck = asyncio.create_task(client.fetch(f"{url}/stuck"))
        waiting = asyncio.create_task(client.fetch(f"{url}/waiting"))
        while not server.heads:
            await asyncio.sleep(0.01)
        last = asyncio.create_task(client.fetch(f"{url}/last"))
        await asyncio.sleep(0.05)
        waiting.cancel()
        stuck.cancel()
        for task in (stuck, waiting):
            with pytest.raises(asyncio.CancelledError):
                await task
        return await last

    def behave(line: Line, head: bytes) -> None:
        if b"/stuck" in head:
            line.hang()
        line.send(answer(b"ok"))

    with hostile(behave) as server:
        assert fetched(asyncio.run(run(f"http://127.0.0.1:{server.port}"))).body == b"ok"
        assert len(server.heads) == 2


def test_waiting_counts() -> None:
    async def run(url: str) -> tuple[Fetched | FetchFailed, ...]:
        client = local(per_host=1)
        slow = asyncio.create_task(client.fetch(f"{url}/slow", seconds=0.4))
        await asyncio.sleep(0)
        late = await client.fetch(f"{url}/late", seconds=0.1)
        return late, await slow

    with hostile(lambda line, head: line.hang()) as server:
        for outcome in asyncio.run(run(f"http://127.0.0.1:{server.port}")):
            failed(outcome, "timeout")
        assert len(server.heads) == 1


@pytest.mark.parametrize("status", [429, 503])
def test_a_host_that_asks_for_a_pause_gets_it(status: int) -> None:
    async def run(url: str) -> list[Fetched | FetchFailed]:
        client = local(spacing_seconds=5)  # so that they would not come to an end if each waited for its turn
        first = await client.fetch(f"{url}/a")
        return [first, *await asyncio.gather(*(client.fetch(f"{url}/{n}") for n in range(500)))]

    with web_server({"/a": Answer("later", status, {"Retry-After": "120"})}) as site:
        first, *rest = asyncio.run(run(site.url))
        assert len(site.asked) == 1
    assert fetched(first).status == status
    for outcome in rest:
        limited = failed(outcome, "rate_limited")
        assert limited.retry_after is not None
        assert timedelta(seconds=100) < limited.retry_after - datetime.now(UTC) <= timedelta(seconds=120)


def test_who_waits_already_hears_of_a_pause_too() -> None:
    async def run(url: str) -> list[Fetched | FetchFailed]:
        client = local(per_host=1, spacing_seconds=2)  # two hundred seconds if each waited for its turn
        return await asyncio.gather(*(client.fetch(f"{url}/{n}", seconds=300) for n in range(100)))

    with web_server({"/0": Answer("later", 429, {"Retry-After": "120"})}) as site:
        first, *rest = asyncio.run(run(site.url))
        assert len(site.asked) == 1
    fetched(first)
    for outcome in rest:
        failed(outcome, "rate_limited")


NOW = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("1", 1.0),
        (" 90 ", 90.0),
        ("3600", 3600.0),
        ("86400", 3600.0),
        ("9999999999", 3600.0),
        ("Tue, 06 May 2031 07:09:09 GMT", 60.0),
        ("Wed, 07 May 2031 07:08:09 GMT", 3600.0),
        ("Tue, 06 May 2031 07:08:08 GMT", None),
        ("0", None),
        ("-5", None),
        ("1.5", None),
        ("1e9", None),
        ("٣", None),
        ("9" * 5000, None),
        ("inf", None),
        ("", None),
        ("soon", None),
        ("Tue, 99 May 2031 07:09:09 GMT", None),
    ],
)
def test_how_long_a_host_may_ask_us_to_wait(value: str, seconds: float | None) -> None:
    assert requested_wait(value, NOW) == seconds


@given(st.text(max_size=50))
def test_no_value_asks_for_more_than_an_hour(value: str) -> None:
    seconds = requested_wait(value, NOW)
    assert seconds is None or 0 < seconds <= 3600


@pytest.mark.parametrize("shared", [False, True])
def test_many_hosts_are_not_remembered_for_ever(shared: bool, tmp_path: Path) -> None:
    times = iter(range(10**9))
    hosts = HostLimits(2, 0.5, tmp_path if shared else None, lambda: next(times) * 10.0)
    count = 500 if shared else 25_000

    async def run() -> None:
        for number in range(count):
            async with hosts.slot(f"{number}.example"):
                pass
            if not shared:
                await hosts.hold(f"{number}.example", 3600)

    asyncio.run(run())
    assert not hosts._queues
    assert len(hosts._next) <= 10_000
    assert len(hosts._paused) <= 10_000
    assert len(list(tmp_path.iterdir())) < 60
    assert shared or hosts.pause(f"{count - 1}.example") > 0


def test_slow_hosts_of_one_owner_make_no_other_wait() -> None:
    """One owner names hundreds of hosts that never answer, and many pages of a host that another names too. Requests
    of the process are bounded all the same."""
    hanging: Counter[str] = Counter()
    popular: list[str] = []

    def behave(line: Line, head: bytes) -> None:
        owner, page = head.split()[1].decode()[1:].split("/")
        if page == "hangs":
            hanging[owner] += 1
            line.hang()
        elif page == "popular":
            popular.append(owner)
            time.sleep(0.1)
        line.send(answer(b"ok"))

    async def run(port: int) -> None:
        client = client_of(resolve=lambda host: [PUBLIC], dial=played([], http=port), spacing_seconds=0.0)

        def ask(owner: str, host: str, page: str) -> asyncio.Task[Fetched | FetchFailed]:
            with on_behalf_of(owner):
                return asyncio.create_task(client.fetch(f"http://{host}/{owner}/{page}", seconds=60))

        tasks = [ask("ann", "popular.example", "popular") for _ in range(50)]
        tasks += [ask("ann", f"{n}.example", "hangs") for n in range(OWNER_AT_ONCE + 60)]
        while hanging["ann"] + 2 < OWNER_AT_ONCE:
            await asyncio.sleep(0.01)
        fetched(await ask("bob", "quick.example", "page"))
        fetched(await ask("bob", "popular.example", "popular"))
        assert len(popular) < 50
        tasks += [ask("cyd", f"{n}.example.org", "hangs") for n in range(OWNER_AT_ONCE + 60)]
        while hanging.total() < AT_ONCE:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.3)
        assert hanging == {"ann": OWNER_AT_ONCE, "cyd": OWNER_AT_ONCE}
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

    with hostile(behave) as server:
        asyncio.run(run(server.port))


# Several processes


def ask_for_a_while(port: int, folder: Path, number: int, report: Any) -> None:
    """Keeps ten requests waiting for three seconds; reports how many were answered."""

    async def run() -> int:
        client = local(shared=folder, spacing_seconds=0.04)
        end = time.monotonic() + 3
        done = 0

        async def one() -> None:
            nonlocal done
            while time.monotonic() < end:
                outcome = await client.fetch(f"http://127.0.0.1:{port}/{number}", seconds=60)
                done += isinstance(outcome, Fetched)

        await asyncio.gather(*(one() for _ in range(10)))
        return done

    report.put((number, asyncio.run(run())))


def test_processes_keep_the_limits_together_and_all_get_their_turn(tmp_path: Path) -> None:
    report = FORKED.Queue()
    slowly = Slow()
    with hostile(slowly) as server:
        arguments = [(server.port, tmp_path, number, report) for number in range(3)]
        processes = [FORKED.Process(target=ask_for_a_while, args=given) for given in arguments]
        for process in processes:
            process.start()
        counts = dict(report.get(timeout=60) for _ in processes)
        for process in processes:
            process.join(120)
            assert process.exitcode == 0
        report.close()
        report.join_thread()
    assert slowly.most <= 2
    assert sum(counts.values()) == len(server.heads)
    assert min(counts.values()) * 6 > max(counts.values()), counts
    gaps = [after - before for before, after in zip(server.started, server.started[1:], strict=False)]
    assert sum(gaps) / len(gaps) >= 0.038


def test_a_pause_holds_for_all_processes(tmp_path: Path) -> None:
    async def run() -> list[Fetched | FetchFailed]:
        clients = [local(shared=tmp_path) for _ in range(2)]
        return [await client.fetch(site.url) for client in clients]

    with web_server({"/": Answer("later", 429, {"Retry-After": "60"})}) as site:
        first, second = asyncio.run(run())
        assert len(site.asked) == 1
    fetched(first)
    assert failed(second, "rate_limited").retry_after is not None


def test_who_asked_last_stands_back_once(tmp_path: Path) -> None:
    hosts = SharedHostLimits(tmp_path, 1, 0.0, time.monotonic)
    first = hosts.start("a.example", stood_back=False)
    assert first.handle is not None
    assert hosts.start("a.example", stood_back=False).wait > 0
    os.close(first.handle)
    second = hosts.start("a.example", stood_back=False)
    assert (second.handle, second.stand_back) == (None, True)
    third = hosts.start("a.example", stood_back=True)
    assert third.handle is not None
    os.close(third.handle)


def test_a_file_that_is_removed_just_now_is_no_slot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = fcntl.flock

    def late(handle: int, how: int) -> None:
        for file in tmp_path.iterdir():
            file.unlink()  # as another process does that sweeps
        lock(handle, how)

    hosts = SharedHostLimits(tmp_path, 2, 0.0, time.monotonic)
    monkeypatch.setattr(fcntl, "flock", late)
    assert hosts.start("a.example", stood_back=True).handle is None
    monkeypatch.undo()
    start = hosts.start("a.example", stood_back=True)
    assert start.handle is not None
    os.close(start.handle)


def hold_and_die(folder: Path) -> None:
    """Takes a slot and ends without giving it back."""
    start = SharedHostLimits(folder, 1, 0.0, time.monotonic).start("a.example", stood_back=True)
    os._exit(0 if start.handle is not None else 1)


def test_a_process_that_dies_keeps_no_slot(tmp_path: Path) -> None:
    process = FORKED.Process(target=hold_and_die, args=(tmp_path,))
    process.start()
    process.join(120)
    assert process.exitcode == 0

    async def run() -> float:
        async with HostLimits(1, 0.0, tmp_path).slot("a.example") as pause:
            return pause

    assert asyncio.run(asyncio.wait_for(run(), 10)) == 0


def test_without_its_folder_nothing_is_asked(tmp_path: Path) -> None:
    with web_server({"/": Answer("ok")}) as site:
        client = local(shared=tmp_path / "gone")
        assert "cannot be kept" in failed(asyncio.run(client.fetch(site.url)), "rate_limited").detail
    assert not site.asked


def test_times_from_before_the_machine_was_started_anew_do_not_count(tmp_path: Path) -> None:
    late = SharedHostLimits(tmp_path, 2, 0.5, lambda: 1e6)
    assert late.start("a.example", stood_back=True).handle is not None
    assert late.hold("a.example", 60)
    early = SharedHostLimits(tmp_path, 2, 0.5, lambda: 10.0)
    assert early.start("a.example", stood_back=True).handle is not None


def test_what_others_keep_in_the_folder_is_neither_opened_nor_removed(tmp_path: Path) -> None:
    """A socket of another part of the service cannot be opened; once that meant that no host was asked any more."""
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(tmp_path / "socket"))
        (tmp_path / "other.db").touch()
        limits = SharedHostLimits(tmp_path, 2, 0.0, lambda: 1000.0)
        for number in range(10):
            answer = limits.start(f"host-{number}", stood_back=True)
            assert answer.handle is not None
            os.close(answer.handle)
        assert {"socket", "other.db"} <= {path.name for path in tmp_path.iterdir()}
