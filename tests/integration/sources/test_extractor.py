"""Pages are read in processes that a hostile page can hang, fill or crash without hurting anything else."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest

from vouchgate.ingest.claims.bounds import TEXT_CHARACTERS
from vouchgate.ingest.net.turns import on_behalf_of
from vouchgate.ingest.sources.web import extractor as extractor_module
from vouchgate.ingest.sources.web.extractor import MEMORY, Extractor, NotRead
from vouchgate.ingest.sources.web.page import ContentKind, Page

NOW = datetime(2025, 6, 1, tzinfo=UTC)
GOOD = b"<html><head><title>Queues</title></head><body><p>A project has at most 40 queues.</p></body></html>"
NESTED = b"<html><body>" + b"<table><tr><td>" * 130_000
BROAD = b"<html><body>" + b"<a href=x>y" * 180_000


def endless(attributes: int) -> bytes:
    """libxml2 compares every attribute of an element with every other, in C, where nothing is heard."""
    return b"<html><body><p " + b" ".join(b"a%d=1" % n for n in range(attributes)) + b">x</p>"


ENDLESS = endless(180_000)  # a minute or more

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="limits of processes are those of POSIX")


@pytest.fixture(scope="module")
def extractor() -> Iterator[Extractor]:
    """One for all tests that leave it as it was: each of its processes loads for half a second."""
    made = Extractor(seconds=3)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("VOUCHGATE_GITHUB_TOKEN", "secret-token")
        yield made
    made.close()
    assert workers() == []


def below(parent: int) -> list[psutil.Process]:
    """Its children and theirs, as /proc has them. psutil's own list leaves out those that seem older than their
    parent, which happens where the clock of the machine is set in between."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    found, front = list[int](), [parent]
    while front:
        front = [pid for pid, ppid in parents.items() if ppid in front]
        found += front
    return [psutil.Process(pid) for pid in found if psutil.pid_exists(pid)]


def workers(*others: psutil.Process) -> list[psutil.Process]:
    """Processes of ours that read pages, without these others."""
    found = []
    for child in below(os.getpid()):
        try:
            if child in others:
                continue
            if any("page_worker" in part for part in child.cmdline()) and child.status() != "zombie":
                found.append(child)
        except psutil.NoSuchProcess:
            continue
    return found


async def read(extractor: Extractor, body: bytes, kind: ContentKind = ContentKind.HTML) -> Page:
    return await extractor.read(body, kind, url="https://a.example/x", content_type="text/html", now=NOW)


def test_pages_are_read_and_the_process_is_used_again(extractor: Extractor) -> None:
    async def main() -> None:
        assert workers() == []  # none before the first page
        page = await read(extractor, GOOD)
        assert (page.title, page.text) == ("Queues", "A project has at most 40 queues.")
        first = workers()
        assert (await read(extractor, b"<a>x<b>y</b></a>", ContentKind.XML)).text == "x\ny"
        assert workers() == first
        assert len(first) == 1
        assert "secret-token" not in str(first[0].environ())

    asyncio.run(main())


def test_what_the_service_itself_takes_does_not_wear_out_the_process() -> None:
    """Linux counts the memory of who starts a program as the program's own, in one of its figures."""
    others, memory = workers(), 192 * 1024 * 1024
    extractor = Extractor(memory=memory)

    async def main() -> None:
        large = b"x" * memory  # so this process has held more than the bound of the other
        await read(extractor, GOOD)
        first = workers(*others)
        await read(extractor, GOOD)
        assert workers(*others) == first
        assert len(first) == 1
        del large

    try:
        asyncio.run(main())
    finally:
        extractor.close()


def test_a_page_that_hangs_costs_only_itself(extractor: Extractor) -> None:
    async def main() -> None:
        await asyncio.gather(read(extractor, GOOD), read(extractor, GOOD))
        hanging = asyncio.create_task(read(extractor, ENDLESS))
        ticks = 0
        while not hanging.done():
            assert (await read(extractor, GOOD)).title == "Queues"
            await asyncio.sleep(0.05)
            ticks += 1
        with pytest.raises(NotRead, match="longer than 3 s") as caught:
            hanging.result()
        assert caught.value.code == "odd_answer"
        assert ticks > 1  # the loop and the other process went on
        assert (await read(extractor, GOOD)).title == "Queues"

    asyncio.run(main())


HOSTILE = {
    "tables": NESTED,
    "links": BROAD,
    "boxes": b"<html><body>" + b"<div>" * 300_000,
    "spans": b"<html><body><table>" + b"<tr><td colspan=99999 rowspan=99999>a</td></tr>" * 20_000,
    "class": b"<html><body><p class='" + b"content " * 200_000 + b"'>x</p>",
    "entities": b"<html><body><p>" + b"&amp;" * 300_000,
    "doctype": b"<!DOCTYPE html [" + b"<!ENTITY a '&a;&a;'>" * 50_000 + b"]><p>&a;</p>",
    "nul": b"\0" * 1_000_000,
    "utf16": b"\xff\xfe" * 500_000,
    "json": b"<html><body><script type='application/ld+json'>" + b'{"articleBody":' * 100_000,
    "dates": b"<html><body><p>" + b"2020-01-01 updated 01/02/2020 " * 40_000,
    "open": b"<" * 1_000_000,
}


def test_hostile_pages_are_read_or_given_up(extractor: Extractor) -> None:
    async def main() -> None:
        for name, body in HOSTILE.items():
            try:
                page = await read(extractor, body)
            except NotRead as error:
                assert error.code == "odd_answer", name
            else:
                assert len(page.text) <= TEXT_CHARACTERS, name
                assert "\0" not in page.text, name
            assert (await read(extractor, GOOD)).title == "Queues", name

    asyncio.run(main())


def test_a_page_that_takes_too_much_memory_is_given_up() -> None:
    others, extractor = workers(), Extractor(memory=150 * 1024 * 1024)

    async def main() -> None:
        assert (await read(extractor, GOOD)).title == "Queues"
        before = {worker.pid for worker in workers(*others)}
        with pytest.raises(NotRead) as caught:
            await read(extractor, BROAD)
        assert caught.value.code == "odd_answer"
        assert (await read(extractor, GOOD)).title == "Queues"
        assert before.isdisjoint(worker.pid for worker in workers(*others))  # by a new one

    try:
        asyncio.run(main())
    finally:
        extractor.close()
    assert workers(*others) == []


def test_closing_ends_what_is_being_read_and_nothing_is_read_afterwards() -> None:
    others, extractor = workers(), Extractor(workers=1, seconds=3_000)

    async def main() -> None:
        reading = [
            asyncio.create_task(read(extractor, endless(720_000))),
            asyncio.create_task(read(extractor, GOOD)),
        ]
        while not workers(*others):
            await asyncio.sleep(0.05)
        extractor.close()  # which would take a quarter of an hour if it waited for the page
        assert workers(*others) == []
        for outcome in await asyncio.gather(*reading, return_exceptions=True):
            assert isinstance(outcome, NotRead)
            assert outcome.code == "timeout"
        with pytest.raises(NotRead, match="ending"):
            await read(extractor, GOOD)

    asyncio.run(main())
    extractor.close()  # twice is harmless


def test_a_caller_that_leaves_gives_up_its_place_and_a_process_that_is_killed_is_replaced(
    extractor: Extractor,
) -> None:
    async def main() -> None:
        await read(extractor, GOOD)
        (worker,) = workers()  # the only one that one owner has
        worker.suspend()  # it hangs as on an endless page, without keeping the processor busy
        held = asyncio.create_task(read(extractor, GOOD))
        await asyncio.sleep(0.2)
        waiting = [asyncio.create_task(read(extractor, GOOD)) for _ in range(20)]
        await asyncio.sleep(0.1)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert all(task.cancelled() for task in waiting)
        worker.kill()
        with pytest.raises(NotRead, match="ends the process"):
            await held
        assert (await read(extractor, GOOD)).title == "Queues"  # by a new one
        for idle in workers():
            idle.kill()
        with pytest.raises(NotRead, match="ends the process"):
            await read(extractor, GOOD)
        assert (await read(extractor, GOOD)).title == "Queues"

    asyncio.run(main())


def test_too_many_pages_at_once_are_not_kept_in_memory(
    extractor: Extractor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And half of them are for others than the owner who cites so many."""
    monkeypatch.setattr(extractor_module, "WAITING", 6 * len(GOOD))

    async def main() -> None:
        async def of(owner: str) -> Page:
            with on_behalf_of(owner):
                return await read(extractor, GOOD)

        owners = ["ann"] * 5 + ["bob"] * 2 + ["cyd"] * 2
        outcomes = await asyncio.gather(*map(of, owners), return_exceptions=True)
        refused = [
            (owner, one.code) for owner, one in zip(owners, outcomes, strict=True) if isinstance(one, NotRead)
        ]
        assert refused == [("ann", "timeout")] * 2 + [("cyd", "timeout")]
        assert (await read(extractor, GOOD)).title == "Queues"

    asyncio.run(main())


def test_several_threads_with_loops_of_their_own_share_it(extractor: Extractor) -> None:
    titles: list[str] = []

    def work() -> None:
        titles.extend(asyncio.run(read(extractor, GOOD)).title for _ in range(3))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert titles == ["Queues"] * 12
    assert len(workers()) <= 2


PROGRAM = """
import asyncio, os, sys
from datetime import UTC, datetime
from vouchgate.ingest.sources.web.extractor import Extractor
from vouchgate.ingest.sources.web.page import ContentKind

async def main():
    extractor = Extractor(seconds=3)
    body = b"<title>t</title><p>words</p>"
    await extractor.read(body, ContentKind.HTML, url="https://a.example/", content_type="", now=datetime.now(UTC))
    asyncio.create_task(extractor.read(
        b"<p " + b" ".join(b"a%d=1" % n for n in range(180_000)) + b">", ContentKind.HTML,
        url="https://a.example/", content_type="", now=datetime.now(UTC)))
    await asyncio.sleep(0.3)
    print("ready", flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


def test_no_process_outlives_a_service_that_is_killed() -> None:
    """Neither one that waits for a page nor one that is held by it in a library."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, cwd=Path(__file__).parents[3], env=os.environ
    ) as service:
        assert service.stdout is not None
        assert service.stdout.readline() == b"ready\n"
        left = below(service.pid)
        assert left
        service.send_signal(signal.SIGKILL)
    _, alive = psutil.wait_procs(left, timeout=45)
    assert alive == []


def test_a_process_whose_service_is_gone_ends_without_a_word() -> None:
    request = b'{"kind": "xml", "content_type": "", "length": 8}\n<a>x</a>'
    with subprocess.Popen(
        [sys.executable, "-m", "vouchgate.ingest.sources.web.page_worker", str(MEMORY), "5"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=Path(__file__).parents[3],
    ) as worker:
        assert worker.stdin and worker.stdout and worker.stderr
        worker.stdout.readline()
        worker.stdout.close()
        worker.stdin.write(request)
        worker.stdin.flush()
        assert worker.wait(120) == 0
        assert worker.stderr.read() == b""
