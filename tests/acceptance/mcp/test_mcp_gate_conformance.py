"""What every preset of `vouchgate mcp-gate` has to keep to, in front of the real server it is for and of one that lies:
Written is said of what is there, and of nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx
import pytest
from mcp_types import Tool

from tests.acceptance.site import Site, open_site
from tests.running.service import ALL_SOURCES
from tests.stores.memory_servers import LIES, STORES, InTurn, Lying, Store
from vouchgate.client import AsyncClient
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.people import Role
from vouchgate.mcp.gate.config import load, presets
from vouchgate.mcp.gate.guessing import ToolRole, guess_role, guess_text
from vouchgate.mcp.gate.memory_gate import MemoryGate, Schemas
from vouchgate.mcp.gate.owner import Owner
from vouchgate.mcp.gate.pins import Pins
from vouchgate.mcp.gate.proxy import Downstream, result_of
from vouchgate.mcp.gate.relay import Relay
from vouchgate.mcp.gate.trial import Trial


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, migrated_file: Path) -> Iterator[Site]:
    """A gate, on SQLite: the database does not matter here."""
    file = tmp_path_factory.mktemp("site") / "vouchgate.db"
    file.write_bytes(migrated_file.read_bytes())
    with open_site(f"sqlite:///{file}") as opened:
        yield opened


def test_every_preset_is_tried() -> None:
    assert sorted(store.preset for store in STORES) == presets()


@pytest.mark.parametrize("store", STORES, ids=lambda store: store.preset)
def test_written_is_said_of_what_is_there_alone(
    site: Site, store: Store, programs: Path, tmp_path: Path
) -> None:
    asyncio.run(conform(site, store, programs, tmp_path))


async def conform(site: Site, store: Store, programs: Path, folder: Path) -> None:
    """All of it with one server, which takes a second to start."""
    downstream = Downstream(
        store.start(folder, programs), Relay(), Pins(folder / "pins.json", lambda _: None)
    )
    try:
        tools = {tool.name: tool for tool in await downstream.all_tools()}
        downstream.pins.pin_first(list(tools.values()))
        await downstream.tools()
        assert set(load(store.preset, None).write) <= set(tools)
        turns, writes = InTurn(downstream), frozenset(load(store.preset, None).write)
        # Together, as a gate looks for two seconds for what is not there.
        async with asyncio.TaskGroup() as group:
            for way in ("none", "is slow", *LIES):
                lying = Lying(turns, tools, writes, way)
                group.create_task(one(site, store, downstream.client.schemas, lying))
            group.create_task(taken_away(site, store, downstream.client.schemas, turns))
        await tried(store, downstream, tools)
    finally:
        await downstream.transport.disconnect()  # type: ignore[no-untyped-call]  # of fastmcp


def test_a_call_that_is_cancelled_while_the_gate_answers_holds_nothing_up(site: Site, tmp_path: Path) -> None:
    asyncio.run(
        cancelled(site, next(store for store in STORES if store.preset == "knowledge-graph"), tmp_path)
    )


async def cancelled(site: Site, store: Store, folder: Path) -> None:
    """What the gate leased to a call that nobody waits for is written all the same, and what comes next."""
    downstream = Downstream(store.start(folder, folder), Relay(), Pins(folder / "pins.json", lambda _: None))
    owner = site.owner()
    token = site.token(Role.AGENT, owner, sources=ALL_SOURCES)[1]
    config = load(store.preset, None).model_copy(update={"source": Source.USER})
    try:
        downstream.pins.pin_first(await downstream.all_tools())
        await downstream.tools()
        async with AsyncClient(site.running.url, token) as client:
            gate = MemoryGate(client, downstream, config, downstream.client.schemas, Owner(client, owner))
            call = asyncio.create_task(gate.write(*store.write("weir", "The weir has 7 gates of oak")))

            async def cancel(response: httpx.Response) -> None:
                if response.request.url.path == "/v1/claims":
                    call.cancel()

            client._http.event_hooks = {"response": [cancel]}
            await asyncio.wait([call])
            assert call.cancelled()
            client._http.event_hooks = {"response": []}
            await gate.wait_for_writes(60)
            answer = result_of(await gate.write(*store.write("lock", "The lock closes at midnight")))
            assert [each["state"] for each in (answer.meta or {})["vouchgate/verdicts"]] == ["written"], (
                answer
            )
            assert "7 gates of oak" in (await downstream.call(*store.look("weir"))).text
    finally:
        await downstream.transport.disconnect()  # type: ignore[no-untyped-call]  # of fastmcp


async def tried(store: Store, downstream: Downstream, tools: Mapping[str, Tool]) -> None:
    """`mcp-gate init` finds the preset, and leaves no probe where it could not remove it."""
    asked = list[str]()

    def may_leave(why: str) -> bool:
        asked.append(why)
        return False

    roles = {name: guess_role(tool) or ToolRole.REFUSED for name, tool in tools.items()}
    texts = {name: guess_text(tool) or "" for name, tool in tools.items()}
    made, notes = await Trial(downstream, tools, roles, may_leave).configure(None, texts)
    assert made["preset"] == store.preset
    (note,) = (notes[name] for name in load(store.preset, None).write if name in notes)
    assert note.startswith("written and read back, removed again" if store.undone else "not tried"), note
    assert bool(asked) is not store.undone


async def one(site: Site, store: Store, schemas: Schemas, server: Lying) -> None:
    """One text, of an owner of its own."""
    owner, name = site.owner(), f"mill-{server.way.replace(' ', '-')}"
    text = f"The {name} grinds 40 sacks of oats"
    token = site.token(Role.AGENT, owner, sources=ALL_SOURCES)[1]
    config = load(store.preset, None).model_copy(update={"source": Source.USER})
    async with AsyncClient(site.running.url, token) as client:
        asked = list[str]()

        async def note(request: httpx.Request) -> None:
            asked.append(request.url.path.rpartition("/")[2])

        client._http.event_hooks = {"request": [note]}
        gate = MemoryGate(client, server, config, schemas, Owner(client, owner))
        tool, arguments = store.write(name, text)
        answer = result_of(await gate.write(tool, arguments))
        told = str(answer.content)
        await asyncio.gather(*server.later)
        if server.way in LIES:
            assert answer.is_error, (server.way, told)
            assert "Written" not in told, (server.way, told)
            assert len(server.written) <= 1, server.way
            return
        assert text in (await server.server.call(*store.look(name))).text, (server.way, told)
        assert [each["state"] for each in (answer.meta or {})["vouchgate/verdicts"]] == ["written"], told
        assert len(server.written) == 1, server.written  # sent again, it might be there twice
        # Whose memory it is is asked once; where a tool is told how to replace, what its owner agreed to.
        of_the_write = [each for each in asked if each not in ("whoami", "evidence")]
        assert of_the_write == ["claims", "done"], asked
        again = result_of(await gate.write(tool, arguments))
        assert len(server.written) == 1, again
        server.way = "none"
        reviewer = site.reviewer(owner)
        (memory,) = reviewer.get("/v1/memories").json()["items"]
        assert reviewer.delete(f"/v1/memories/{memory['id']}").status_code == 200
        await gate.deliver_pending()
        items = reviewer.get("/v1/deliveries").json()["items"]
        removal = next(each for each in items if each["op"] == "remove")
        if store.undone:
            assert removal["state"] == "delivered", removal
            try:
                shown = (await server.server.call(*store.look(name))).text
            except Exception as error:  # noqa: BLE001  (some say so in an error)
                shown = str(error)
            assert text not in shown
        else:
            assert removal["state"] == "dead", removal
            assert "by hand" in removal["last_error"], removal


async def taken_away(site: Site, store: Store, schemas: Schemas, server: InTurn) -> None:
    """What is written to the place of another text takes that away only where its owner was asked."""
    owner = site.owner()
    token = site.token(Role.AGENT, owner, sources=ALL_SOURCES)[1]
    config = load(store.preset, None).model_copy(update={"source": Source.USER})
    first, second = "The quay has 12 bollards of iron", "The pilot boards at the outer buoy"
    async with AsyncClient(site.running.url, token) as client:
        gate = MemoryGate(client, server, config, schemas, Owner(client, owner))
        for name, text in (("quay", first), ("quay", second), ("quay ", second)):
            await gate.write(*store.write(name, text))
        tool, arguments = store.look("quay")
        assert first in (await server.call(tool, arguments)).text
