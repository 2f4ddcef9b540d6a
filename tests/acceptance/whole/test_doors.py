"""Every door leads to the one gate: the same claims get the same decisions at each, and what was blocked, rejected or
still waits is in no store behind any of them."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from langgraph.store.sqlite import SqliteStore
from sqlalchemy import select

from tests.acceptance.cli_program import cli
from tests.acceptance.site import Site, claim, open_site
from tests.repos import TestRepository
from tests.stores.gating import GRAPH_SERVER, NODE, connected
from tests.stores.mcp_session import http_server, over_http, over_stdio
from vouchgate import AsyncClient, Client, Gate, VouchgateError
from vouchgate.adapters.langgraph import GatedStore, NotWritten
from vouchgate.ingest.claims.people import Role
from vouchgate.ingest.rules import Rule
from vouchgate.storage.claims import decisions

ADR = """# ADR-007: Deploys stop on Fridays

Status: Accepted

## Decision

Deploys stop on Fridays at noon. Nothing is deployed on a weekend.
"""
KEY = "ghp_" + "aB3dE6gH9jK2mN5pQ8rS1tU4vW7xY0zA3bC6"  # from parts, so that no scanner takes it for one
HEDGED = "I think the Faro branch may perhaps close in autumn."
SECRET = f"The Vigo mirror is pulled with {KEY} every night."
INVENTED = "According to ADR-999 the Braga shop sells by weight."
UNGROUNDED = "The Porto warehouse keeps parcels for fourteen days."
VERIFIED = "Deploys stop on Fridays at noon, as ADR-007 says."
CLAIMS = (HEDGED, SECRET, INVENTED, UNGROUNDED, VERIFIED)
RULES = [Rule.SPECULATION, Rule.CREDENTIAL, Rule.REFUTED, Rule.UNGROUNDED, Rule.STATED]
KEPT_OUT = ("Faro", KEY, KEY[4:], "Braga", "Porto")  # words that only these claims have


@dataclass
class Door:
    """One way in. `send` puts the claims through it, `deliver` writes what the owner decided meanwhile, and `behind`
    is all that the store behind it holds."""

    send: Callable[[], None]
    deliver: Callable[[], None]
    behind: Callable[[], bytes]


@dataclass
class Place:
    """What a door is built from."""

    site: Site
    owner: str
    token: str
    folder: Path
    programs: Path
    opened: ExitStack

    @property
    def url(self) -> str:
        return self.site.running.url

    def memories(self) -> bytes:
        """What an agent reads from the gate itself: for doors without a store of their own."""
        return self.site.caller(self.token).get("/v1/memories").content

    def client(self) -> Client:
        return self.opened.enter_context(Client(self.url, self.token))


def _nothing() -> None:
    """There is no store to be told."""


def http(place: Place) -> Door:
    def send() -> None:
        agent = place.site.caller(place.token)
        for text in CLAIMS:
            agent.post("/v1/claims", json=claim(text, "ai_synthesis"))

    return Door(send, _nothing, place.memories)


def batch(place: Place) -> Door:
    def send() -> None:
        rows = [claim(text, "ai_synthesis") for text in CLAIMS]
        place.site.caller(place.token).post("/v1/claims/batch", json={"claims": rows})

    return Door(send, _nothing, place.memories)


def python_client(place: Place) -> Door:
    written: list[str] = []

    def send() -> None:
        client = place.client()
        save = client.gated(written.append)
        for text in CLAIMS:
            save(text)

    return Door(send, _nothing, lambda: repr(written).encode())


def async_client(place: Place) -> Door:
    async def sending() -> None:
        async with AsyncClient(place.url, place.token) as client:
            for text in CLAIMS:
                await client.save(text)

    return Door(lambda: asyncio.run(sending()), _nothing, place.memories)


def embedded(place: Place) -> Door:
    """A gate inside this process, on the database that the service has open."""
    repo = place.folder.parent / "repo"
    gate = place.opened.enter_context(Gate.open(place.site.url, repo=repo, owner=place.owner))

    def send() -> None:
        for text in CLAIMS:
            gate.submit(text)

    return Door(send, _nothing, place.memories)


def mcp_stdio(place: Place) -> Door:
    # In a fresh interpreter, as programs start it: no other test does.
    session = place.opened.enter_context(over_stdio(place.url, place.token))

    def send() -> None:
        for text in CLAIMS:
            session.result("save_memory", content=text)

    return Door(send, _nothing, lambda: json.dumps(session.result("search_memories")).encode())


def mcp_http(place: Place) -> Door:
    address = place.opened.enter_context(http_server(place.url))
    session = place.opened.enter_context(over_http(address, place.token))

    def send() -> None:
        for text in CLAIMS:
            session.result("save_memory", content=text)

    return Door(send, _nothing, lambda: json.dumps(session.result("search_memories")).encode())


def mcp_gate(place: Place) -> Door:
    file = place.folder / "memory.jsonl"
    settings = {"VOUCHGATE_URL": place.url, "VOUCHGATE_TOKEN": place.token, "MEMORY_FILE_PATH": str(file)}
    command: list[str | Path] = [
        place.programs / "vouchgate",
        "mcp-gate",
        "--preset",
        "knowledge-graph",
        "--poll",
        "0.2",
        "--",
        NODE,
        GRAPH_SERVER,
    ]
    caller = place.opened.enter_context(connected(command, place.folder / "errors", settings))

    def send() -> None:
        for name, text in zip(("branch", "mirror", "shop", "warehouse", "deploys"), CLAIMS, strict=True):
            entity = {"name": name, "entityType": "note", "observations": [text]}
            caller.call("create_entities", entities=[entity])

    def deliver() -> None:  # another write waits for the deliveries that are due
        caller.call("read_graph")

    return Door(send, deliver, file.read_bytes)


def langgraph(place: Place) -> Door:
    file = place.folder / "store.db"
    inner = place.opened.enter_context(SqliteStore.from_conn_string(str(file)))
    inner.setup()
    gated = GatedStore(inner, place.client())

    def send() -> None:
        for number, text in enumerate(CLAIMS):
            with contextlib.suppress(NotWritten):
                gated.put(("notes",), f"n{number}", {"content": text})

    def behind() -> bytes:
        return b"".join(one.read_bytes() for one in place.folder.glob("store.db*"))

    return Door(send, lambda: _done(gated.deliver()), behind)


def mem0(place: Place) -> Door:
    # Loading mem0 takes two seconds, which only the process that runs this file has to spend.
    from tests.stores.offline_mem0 import offline_mem0
    from vouchgate.adapters.mem0 import GatedMemory

    store = place.opened.enter_context(offline_mem0(place.folder / "mem0"))
    gated = GatedMemory(store.memory, place.client())

    def send() -> None:
        for text in CLAIMS:
            gated.add(text, user_id=place.owner, infer=False)

    def behind() -> bytes:
        return b"".join(one.read_bytes() for one in (place.folder / "mem0").rglob("*") if one.is_file())

    return Door(send, lambda: _done(gated.deliver(place.owner)), behind)


def bulk_import(place: Place) -> Door:
    file = place.folder / "export.jsonl"
    file.write_text("".join(json.dumps({"text": text}) + "\n" for text in CLAIMS))

    def send() -> None:
        answer = cli(
            "import",
            str(file),
            "--database-url",
            place.site.url,
            "--repo",
            str(place.folder.parent / "repo"),
            cwd=place.folder,
            env={"VOUCHGATE_TOKEN": place.token},
        )
        assert answer.returncode in (0, 1), answer.stderr

    return Door(send, _nothing, place.memories)


def _done(_delivered: object) -> None:
    """What was delivered is looked for in the store."""


DOORS = (
    http,
    batch,
    python_client,
    async_client,
    embedded,
    mcp_stdio,
    mcp_http,
    mcp_gate,
    langgraph,
    mem0,
    bulk_import,
)


@pytest.fixture(scope="module")
def site(migrated_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One gate for all doors. On SQLite alone: what the doors do does not depend on the database."""
    folder = tmp_path_factory.mktemp("doors")
    TestRepository(folder / "repo").commit("Decide", {"docs/adrs/0007-fridays.md": ADR})
    file = folder / "vouchgate.db"
    file.write_bytes(migrated_file.read_bytes())
    with open_site(f"sqlite:///{file}", repos=[folder / "repo"]) as opened:
        yield opened


def _rules(site: Site, owner: str) -> list[Rule]:
    """The rules by which the owner's claims were decided, in order."""
    t = decisions.TABLE
    with site.store.read() as connection:
        asked = select(t.c.rule).where(t.c.owner_id == owner).order_by(t.c.id)
        return list(connection.scalars(asked))


@pytest.mark.parametrize("door_of", DOORS, ids=lambda door: door.__name__)
def test_a_door(door_of: Callable[[Place], Door], site: Site, programs: Path) -> None:
    owner = site.owner()
    token = site.token(Role.AGENT, owner)[1]
    folder = Path(site.url.removeprefix("sqlite:///")).parent / door_of.__name__
    folder.mkdir()
    with ExitStack() as opened:
        door = door_of(Place(site, owner, token, folder, programs, opened))
        door.send()
        assert sorted(_rules(site, owner)) == sorted(RULES)
        reviewer = site.reviewer(owner)
        waiting = reviewer.get("/v1/reviews").json()["items"]
        assert len(waiting) == 2
        for item in waiting:
            body = {"version": item["version"], "reason": "Nobody said so."}
            assert reviewer.post(f"/v1/reviews/{item['id']}/reject", json=body).status_code == 200
        door.deliver()
        behind = door.behind()
        assert b"Fridays" in behind
        for words in KEPT_OUT:
            assert words.encode() not in behind, words
    for file in Path(site.url.removeprefix("sqlite:///")).parent.glob("vouchgate.db*"):
        assert KEY[4:].encode() not in file.read_bytes(), file.name


def test_no_token_of_an_agent_approves_at_any_door(site: Site) -> None:
    owner = site.owner()
    agent = site.agent(owner)
    item = agent.post("/v1/claims", json=claim(UNGROUNDED, "ai_synthesis")).json()["queue_id"]
    for path in (f"/v1/reviews/{item}/approve", f"/v1/reviews/{item}/undo"):
        assert agent.post(path, json={"version": 1}).status_code == 403
    with Client(site.running.url, agent.headers["Authorization"].removeprefix("Bearer ")) as client:
        assert not [name for name in dir(client) if "approve" in name or "review" in name]
        with pytest.raises(VouchgateError):
            client.memory(item)
