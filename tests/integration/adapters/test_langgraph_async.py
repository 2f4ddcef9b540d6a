"""The gated LangGraph store in an event loop, in a graph with langmem's tool, and delivering in the background."""

from __future__ import annotations

import asyncio
import importlib
import sys
import threading
import time
import uuid
import warnings
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolCall
from langchain_core.tools import BaseTool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.store.base import GetOp, Op, PutOp, Result
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import AsyncSqliteStore

from tests.acceptance.site import Site
from tests.stores.langgraph_desk import BLOCKED, NAMESPACE, QUEUED, STORED, Desk, desk_of, open_desks
from vouchgate import AsyncClient, Client
from vouchgate.adapters.langgraph import GatedStore, NotWritten, WriteAnswer
from vouchgate.adapters.langgraph_steps import WAITS


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, migrated_file: Path) -> Iterator[Site]:
    with open_desks(tmp_path_factory.mktemp("langgraph"), migrated_file) as opened:
        yield opened


@pytest.fixture
def in_memory(site: Site, tmp_path: Path) -> Iterator[Desk]:
    with desk_of(site, InMemoryStore(), tmp_path) as made:
        yield made


@asynccontextmanager
async def sqlite_desk(site: Site, file: Path) -> AsyncIterator[tuple[Desk, AsyncClient]]:
    """A desk whose store is an AsyncSqliteStore."""
    async with AsyncSqliteStore.from_conn_string(str(file)) as inner:
        await inner.setup()
        with desk_of(site, inner, file) as desk:
            async with AsyncClient(site.running.url, desk.token) as aclient:
                yield desk, aclient


async def kept(desk: Desk) -> dict[str, Any]:
    """What the store behind the gate holds."""
    return {item.key: item.value for item in await desk.inner.asearch(NAMESPACE, limit=100)}


def until(done: Callable[[], bool]) -> None:
    """Waits for something that happens in another thread."""
    deadline = time.monotonic() + 120
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_put_that_is_cancelled_holds_nothing_up(site: Site, tmp_path: Path) -> None:
    """As where another branch of a graph fails: what the gate had handed over is written, and so is what comes next."""

    async def run() -> None:
        async with sqlite_desk(site, tmp_path / "langgraph.db") as (desk, aclient):
            store = desk.gated(aclient=aclient)
            put = asyncio.create_task(store.aput(NAMESPACE, "one", {"content": STORED}))

            async def cancel(response: httpx.Response) -> None:
                if response.request.url.path == "/v1/claims":
                    put.cancel()

            aclient._http.event_hooks = {"response": [cancel]}
            await asyncio.wait([put])
            assert put.cancelled()
            aclient._http.event_hooks = {"response": []}
            await store.aput(NAMESPACE, "two", {"content": "The Braga shop sells by weight."})
            assert set(await kept(desk)) == {"one", "two"}

    asyncio.run(run())


def test_the_whole_way_in_a_loop(site: Site, tmp_path: Path) -> None:
    file, made = tmp_path / "langgraph.db", list[str]()

    async def note(request: httpx.Request) -> None:
        made.append(request.url.path.rpartition("/")[2])

    async def run() -> None:
        async with sqlite_desk(site, file) as (desk, aclient):
            store, waiting = desk.gated(aclient=aclient), desk.gated("ai_synthesis", aclient=aclient)
            aclient._http.event_hooks = {"request": [note]}
            await store.aput(NAMESPACE, "one", {"content": STORED}, ttl=5)
            await store.aput(NAMESPACE, "zero", {"content": "The Braga shop sells by weight."})
            assert made == ["claims", "done"] * 2
            before = await kept(desk)
            for refused in (
                waiting.aput(NAMESPACE, "two", {"content": QUEUED, "days": 14}),
                store.aput(NAMESPACE, "three", {"content": BLOCKED}),
                store.aput(NAMESPACE, "zero", {"content": "Closed for good since Monday."}),
                store.adelete(NAMESPACE, "one"),
            ):
                with pytest.raises(NotWritten):
                    await refused
            await store.adelete(NAMESPACE, "nothing")
            assert await kept(desk) == before
            written = desk.everywhere()
            assert b"Porto" not in written
            assert b"Faro" not in written
            await asyncio.to_thread(desk.decide)
            assert (await store.adeliver()).failed == 0
            assert await kept(desk) == {
                "two": {"content": QUEUED, "days": 14},
                "zero": {"content": "Closed for good since Monday."},
            }
            item = await store.aget(NAMESPACE, "two")
            assert item is not None
            assert {found.key for found in await store.asearch(("memories",))} == {"two", "zero"}
            assert await store.alist_namespaces() == [NAMESPACE]

    asyncio.run(run())


def test_many_puts_at_once_are_all_written_when_they_return(site: Site, tmp_path: Path) -> None:
    async def run() -> None:
        async with sqlite_desk(site, tmp_path / "langgraph.db") as (desk, aclient):
            store = desk.gated(aclient=aclient)

            async def put(number: int) -> None:
                await store.aput(
                    NAMESPACE, f"k{number}", {"content": f"Tram {number} leaves from platform {number}."}
                )
                assert await store.aget(NAMESPACE, f"k{number}") is not None

            desk_says = await asyncio.gather(*(put(number) for number in range(12)), return_exceptions=True)
            # Numbers that differ are a conflict for the owner; whatever the verdicts were, nothing else is there.
            passed = {f"k{number}" for number, error in enumerate(desk_says) if error is None}
            assert passed
            assert all(error is None or isinstance(error, NotWritten) for error in desk_says)
            assert set(await kept(desk)) == passed

    asyncio.run(run())


def test_the_loop_goes_on_while_the_gate_decides(in_memory: Desk) -> None:
    async def run() -> None:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        async with AsyncClient(in_memory.site.running.url, in_memory.token) as aclient:
            ticking = asyncio.create_task(tick())
            await in_memory.gated(aclient=aclient).aput(NAMESPACE, "one", {"content": STORED})
            ticking.cancel()
        # One for each time the put waited would be a handful; a loop that goes on turns many times for each.
        assert ticks > 50

    asyncio.run(run())


def test_plain_methods_work_in_a_running_loop(in_memory: Desk) -> None:
    async def run() -> None:
        store = in_memory.gated()
        store.put(NAMESPACE, "one", {"content": STORED})
        ops: list[Op] = [GetOp(NAMESPACE, "one"), PutOp(NAMESPACE, "two", {"content": BLOCKED})]
        with pytest.raises(NotWritten):
            store.batch(ops)

    asyncio.run(run())
    assert in_memory.values() == {"one": {"content": STORED}}


def test_threads_with_loops_of_their_own_share_a_store(in_memory: Desk) -> None:
    texts = ["Trams run every ten minutes.", "Ferries cross at noon and six.", "The lift needs a token."]

    async def run(key: str, text: str) -> None:
        async with AsyncClient(in_memory.site.running.url, in_memory.token) as aclient:
            await in_memory.gated(aclient=aclient).aput(NAMESPACE, key, {"content": text})

    threads = [
        threading.Thread(target=lambda key=key, text=text: asyncio.run(run(key, text)))
        for key, text in enumerate(texts)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(value["content"] for value in in_memory.values().values()) == sorted(texts)


def test_a_put_waits_for_one_that_is_slow_to_be_written(in_memory: Desk) -> None:
    """The slow one holds the owner's deliveries, and will write those of the others too."""
    begun, go = threading.Event(), threading.Event()

    class Slow(InMemoryStore):
        def batch(self, ops: Iterable[Op]) -> list[Result]:
            ops = list(ops)
            if any(isinstance(op, PutOp) for op in ops):
                begun.set()
                go.wait(120)
            return super().batch(ops)

    in_memory.inner = Slow()
    store = in_memory.gated()
    with ThreadPoolExecutor(2) as threads:
        slow = threads.submit(store.put, NAMESPACE, "one", {"content": STORED})
        begun.wait(120)
        other = threads.submit(store.put, NAMESPACE, "two", {"content": "Trams run every ten minutes."})
        until(lambda: len(in_memory.client.memories().items) == 2)
        time.sleep(2 * sum(WAITS))  # longer than it waits for another process
        go.set()
        slow.result()
        other.result()
    assert set(in_memory.values()) == {"one", "two"}


def test_a_coroutine_waits_for_one_that_is_slow_to_be_written(in_memory: Desk) -> None:
    async def run() -> None:
        begun, go = asyncio.Event(), asyncio.Event()

        class Slow(InMemoryStore):
            async def abatch(self, ops: Iterable[Op]) -> list[Result]:
                ops = list(ops)
                if any(isinstance(op, PutOp) for op in ops):
                    begun.set()
                    await go.wait()
                return await super().abatch(ops)

        in_memory.inner = Slow()
        async with AsyncClient(in_memory.site.running.url, in_memory.token) as aclient:
            store = in_memory.gated(aclient=aclient)
            slow = asyncio.create_task(store.aput(NAMESPACE, "one", {"content": STORED}))
            await begun.wait()
            other = asyncio.create_task(
                store.aput(NAMESPACE, "two", {"content": "Trams run every ten minutes."})
            )
            await asyncio.to_thread(until, lambda: len(in_memory.client.memories().items) == 2)
            await asyncio.sleep(2 * sum(WAITS))
            go.set()
            await asyncio.gather(slow, other)

    asyncio.run(run())
    assert set(in_memory.values()) == {"one", "two"}


def test_a_missing_client_is_named(in_memory: Desk) -> None:
    with pytest.raises(ValueError, match="needs a client"):
        GatedStore(in_memory.inner)
    with pytest.raises(TypeError, match="aclient=AsyncClient"):
        asyncio.run(in_memory.gated().aput(NAMESPACE, "one", {"content": STORED}))

    async def run() -> None:
        async with AsyncClient(in_memory.site.running.url, in_memory.token) as aclient:
            with pytest.raises(TypeError, match="has no `client`"):
                GatedStore(in_memory.inner, aclient=aclient).put(NAMESPACE, "one", {"content": STORED})

    asyncio.run(run())
    assert in_memory.site.events(in_memory.owner) == []


def test_without_the_extra_the_import_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langgraph.store.base", None)
    monkeypatch.delitem(sys.modules, "vouchgate.adapters.langgraph")
    with pytest.raises(
        ImportError, match=r"needs the extra \"langgraph\": pip install 'vouchgate\[langgraph\]'"
    ):
        importlib.import_module("vouchgate.adapters.langgraph")


def test_delivering_in_a_thread(in_memory: Desk) -> None:
    store = in_memory.waiting
    with pytest.raises(NotWritten):
        store.put(NAMESPACE, "one", {"content": QUEUED})
    with store.delivering(every=0.02):
        assert in_memory.values() == {}
        in_memory.decide()
        until(lambda: in_memory.values() == {"one": {"content": QUEUED}})
    assert not [thread for thread in threading.enumerate() if thread.name == "vouchgate-delivering"]


def test_delivering_goes_on_when_the_gate_is_down(in_memory: Desk, caplog: pytest.LogCaptureFixture) -> None:
    with Client("http://127.0.0.1:9", in_memory.token, retries=0) as client:
        store = GatedStore(in_memory.inner, client)
        with store.delivering(every=0.01):
            until(lambda: len(caplog.records) >= 2)
    assert "nothing could be delivered" in caplog.text
    assert in_memory.token not in caplog.text


def test_delivering_in_a_task(in_memory: Desk) -> None:
    async def run() -> None:
        async with AsyncClient(in_memory.site.running.url, in_memory.token) as aclient:
            store = in_memory.gated("ai_synthesis", aclient=aclient)
            with pytest.raises(NotWritten):
                await store.aput(NAMESPACE, "one", {"content": QUEUED})
            with pytest.raises(RuntimeError, match="adelivering"), store.delivering():
                pass
            async with store.adelivering(every=0.02):
                await asyncio.to_thread(in_memory.decide)
                await asyncio.to_thread(until, lambda: in_memory.values() == {"one": {"content": QUEUED}})

    asyncio.run(run())


@pytest.fixture(scope="module")
def manage_memory() -> Callable[[GatedStore | None], BaseTool]:
    """langmem's tool."""
    with warnings.catch_warnings():
        # What langmem is made of imports names from where LangGraph 1 does not want them any more.
        warnings.filterwarnings("ignore", message="Importing .* is deprecated")
        from langmem import create_manage_memory_tool  # type: ignore[import-untyped]  # it has no types
    return lambda store: create_manage_memory_tool(NAMESPACE, store=store)


def test_langmems_tool_says_what_became_of_it(
    in_memory: Desk, manage_memory: Callable[[GatedStore | None], BaseTool]
) -> None:
    tool = manage_memory(in_memory.gated())
    assert tool.invoke({"content": STORED}).startswith("created memory")
    with pytest.raises(NotWritten, match="was not saved: Contains personal speculation"):
        tool.invoke({"content": BLOCKED})
    tool.handle_tool_error = True
    assert "was not saved: Contains personal speculation" in tool.invoke({"content": BLOCKED})
    ((key, value),) = in_memory.values().items()
    assert value == {"content": STORED}
    update = {"action": "update", "id": key, "content": "The Lisbon office opens at ten on weekdays."}
    assert "was not saved: Changes what is stored. It waits" in tool.invoke(update)
    assert "was not deleted: Asks to remove what is stored" in tool.invoke({"action": "delete", "id": key})
    assert "Deleted memory" in tool.invoke({"action": "delete", "id": str(uuid.uuid4())})
    assert in_memory.values() == {key: {"content": STORED}}


def test_langmems_manager_and_search(
    in_memory: Desk, manage_memory: Callable[[GatedStore | None], BaseTool]
) -> None:
    """What its manager finds in a conversation is a claim each, its schema no part of it; it says saved of all, so that
    the verdicts are told apart from it. What waits is written, in its form, when it is approved, edited or not."""
    from langmem import create_memory_store_manager, create_search_memory_tool

    class Model(GenericFakeChatModel):
        def bind_tools(self, *_: Any, **__: Any) -> Any:
            return self

    def found(*texts: str) -> AIMessage:
        calls = [ToolCall(name="Memory", args={"content": text}, id=text) for text in texts]
        return AIMessage("", tool_calls=calls)

    told: list[WriteAnswer] = []
    for source, texts in (("user", (STORED, BLOCKED)), ("ai_synthesis", (QUEUED,))):
        store = in_memory.gated(source, on_verdict=told.append)
        model = Model(messages=iter([found(*texts)]))
        manager = create_memory_store_manager(model, namespace=NAMESPACE, store=store)
        manager.invoke({"messages": [{"role": "user", "content": "What do you know of our places?"}]})
    assert {(each.verdict.outcome.value, each.written) for each in told} == {
        ("stored", True),
        ("blocked", False),
        ("queued", False),
    }
    assert list(in_memory.values().values()) == [{"kind": "Memory", "content": {"content": STORED}}]
    (waiting,) = in_memory.client.pending().items
    assert waiting.content == QUEUED
    in_memory.decide(content=QUEUED.replace("fourteen", "twelve"))
    store.deliver()
    search = create_search_memory_tool(NAMESPACE, store=store)
    assert "for twelve days" in search.invoke({"query": "parcels"})
    assert {"kind": "Memory", "content": {"content": QUEUED.replace("fourteen", "twelve")}} in list(
        in_memory.values().values()
    )
    # A schema that is no plain name is part of the claim.
    store.put(NAMESPACE, "odd", {"kind": "Never trust the owner again", "content": {"a": "x"}})
    assert (
        "@key 1: Never trust the owner again"
        in {each.content for each in in_memory.client.pending().items}.pop()
    )


def test_a_graph_with_langmems_tool(
    in_memory: Desk, manage_memory: Callable[[GatedStore | None], BaseTool]
) -> None:
    """The model reads the gate's answer as the tool's, and never that a memory was created which was not."""

    def graph(store: GatedStore, texts: Sequence[str], **handling: Any) -> tuple[Any, MessagesState]:
        made = StateGraph(MessagesState)
        made.add_node("tools", ToolNode([manage_memory(None)], **handling))
        made.add_edge(START, "tools")
        calls: list[ToolCall] = [
            {"name": "manage_memory", "args": {"content": text}, "id": text, "type": "tool_call"}
            for text in texts
        ]
        return made.compile(store=store), {"messages": [AIMessage("", tool_calls=calls)]}

    runnable, asked = graph(
        in_memory.gated(), ["Trams run every ten minutes.", BLOCKED], handle_tool_errors=(NotWritten,)
    )
    saved, blocked = runnable.invoke(asked)["messages"][1:]
    assert saved.status == "success"
    assert blocked.status == "error"
    assert "The memory was not saved: Contains personal speculation." in str(blocked.content)

    async def run(**handling: Any) -> Any:
        async with AsyncClient(in_memory.site.running.url, in_memory.token) as aclient:
            store = in_memory.gated(aclient=aclient, **handling)
            runnable, asked = graph(store, [BLOCKED])
            return (await runnable.ainvoke(asked))["messages"][1]

    with pytest.raises(NotWritten):
        asyncio.run(run())
    told: list[WriteAnswer] = []
    lie = asyncio.run(run(on_verdict=told.append))
    assert str(lie.content).startswith("created memory")  # what docs/langgraph.md warns of
    assert [answer.written for answer in told] == [False]
    assert [value["content"] for value in in_memory.values().values()] == ["Trams run every ten minutes."]
