"""No way round the gate of a LangGraph store, and nothing through it that nobody looked at."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

from tests.acceptance.site import Site, open_site
from tests.running.service import ALL_SOURCES
from tests.stores.langgraph_desk import BLOCKED, NAMESPACE, QUEUED, STORED, Desk, desk_of, open_desks, refused
from vouchgate import ApiError, AsyncClient, Client, Unreachable
from vouchgate.adapters.langgraph import GatedStore, NotWritten, Unrenderable, WriteAnswer
from vouchgate.client import QueueFull
from vouchgate.gate.deliveries import hand_over
from vouchgate.ingest.claims.decision import Outcome
from vouchgate.ingest.claims.people import Role


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, migrated_file: Path) -> Iterator[Site]:
    with open_desks(tmp_path_factory.mktemp("langgraph"), migrated_file) as opened:
        yield opened


@pytest.fixture
def in_memory(site: Site, tmp_path: Path) -> Iterator[Desk]:
    """Where the kind of store cannot matter."""
    with desk_of(site, InMemoryStore(), tmp_path) as made:
        yield made


WRITES: dict[str, Callable[[GatedStore, Any], Any]] = {
    "put": lambda store, value: store.put(NAMESPACE, "k", value),
    "batch": lambda store, value: store.batch([PutOp(NAMESPACE, "k", value)]),
    "batch of an iterator": lambda store, value: store.batch(iter([PutOp(NAMESPACE, "k", value)])),
    "aput": lambda store, value: store.aput(NAMESPACE, "k", value),
    "abatch": lambda store, value: store.abatch([PutOp(NAMESPACE, "k", value)]),
}


@pytest.mark.parametrize("way", WRITES)
@pytest.mark.parametrize("text", [BLOCKED, QUEUED])
def test_no_way_of_writing_goes_round(in_memory: Desk, way: str, text: str) -> None:
    async def run() -> None:
        async with AsyncClient(in_memory.site.running.url, in_memory.token) as aclient:
            done = WRITES[way](in_memory.gated("ai_synthesis", aclient=aclient), {"content": text})
            if isinstance(done, Awaitable):
                await done

    with pytest.raises(NotWritten):
        asyncio.run(run())
    assert in_memory.values() == {}


def test_every_method_of_a_store_ends_in_the_two_that_are_gated() -> None:
    public = {
        name for name in dir(BaseStore) if not name.startswith("_") and callable(getattr(BaseStore, name))
    }
    ours = {name for name in public if getattr(GatedStore, name) is not getattr(BaseStore, name)}
    assert ours == {"batch", "abatch"}
    assert public - ours == {
        *("get", "search", "put", "delete", "list_namespaces"),
        *("aget", "asearch", "aput", "adelete", "alist_namespaces"),
    }, "a new method of BaseStore: does it write past batch?"


def test_reads_of_a_batch_see_what_was_before_it(in_memory: Desk) -> None:
    store = in_memory.gated(ungated=[("scratch",)])
    store.put(NAMESPACE, "one", {"content": STORED})
    ops: list[Op] = [
        PutOp(NAMESPACE, "two", {"content": "first, which does not count"}),
        GetOp(NAMESPACE, "one"),
        PutOp(("scratch", "x"), "s", {"content": BLOCKED}),
        GetOp(NAMESPACE, "two"),
        SearchOp(NAMESPACE),
        PutOp(NAMESPACE, "two", {"content": "The Braga shop sells by weight."}),
        ListNamespacesOp(),
    ]
    results: list[Result] = store.batch(ops)
    kinds = [type(one) for one in results]
    assert kinds == [type(None), Item, type(None), type(None), list, type(None), list]
    assert results[6] == [NAMESPACE]
    assert in_memory.values() == {
        "one": {"content": STORED},
        "two": {"content": "The Braga shop sells by weight."},
    }
    assert store.get(("scratch", "x"), "s") is not None
    assert len(in_memory.client.memories().items) == 2


def test_every_refused_write_of_a_batch_is_told_and_the_others_are_written(in_memory: Desk) -> None:
    texts = {
        "one": STORED,
        "two": BLOCKED,
        "three": "Trams to the harbour run every ten minutes.",
        "four": BLOCKED,
    }
    with pytest.raises(NotWritten) as caught:
        in_memory.gated().batch([PutOp(NAMESPACE, key, {"content": text}) for key, text in texts.items()])
    assert [answer.key for answer in caught.value.answers] == ["two", "four"]
    assert set(in_memory.values()) == {"one", "three"}


def test_on_verdict_is_told_instead_of_raising(in_memory: Desk) -> None:
    told: list[WriteAnswer] = []
    store = in_memory.gated(on_verdict=told.append)
    store.batch([PutOp(NAMESPACE, "two", {"content": BLOCKED}), PutOp(NAMESPACE, "one", {"content": STORED})])
    store.delete(NAMESPACE, "one")
    assert [(one.key, one.removal, one.written) for one in told] == [
        ("two", False, False),
        ("one", False, True),
        ("one", True, False),
    ]
    assert set(in_memory.values()) == {"one"}

    async def never(answer: WriteAnswer) -> None:
        told.append(answer)

    with pytest.raises(TypeError, match="on_verdict is called and not awaited"):
        in_memory.gated(on_verdict=never)
    store = in_memory.gated(on_verdict=lambda answer: asyncio.sleep(0, answer))
    with pytest.raises(TypeError, match="on_verdict is called and not awaited"):
        store.put(NAMESPACE, "two", {"content": BLOCKED})


def test_a_text_that_was_masked_is_written_and_said_to_be(in_memory: Desk) -> None:
    told: list[WriteAnswer] = []
    card = "4111 1111 1111 1111"
    for key, value in (
        ("one", {"content": f"Ada pays her trains with card {card}."}),
        ("two", {"kind": "Memory", "content": {"content": f"Bob pays hotels by {card}.", "n": 1}}),
    ):
        in_memory.gated().put(NAMESPACE, key, value)  # and does not say that it is not there
        in_memory.gated(on_verdict=told.append).put(NAMESPACE, f"{key} more", {**value, "tags": [key]})
    kept = in_memory.values()
    assert kept["one"] == {"content": f"Ada pays her trains with card {'*' * 19}."}
    assert kept["two"] == {
        "kind": "Memory",
        "content": {"content": f"Bob pays hotels by {'*' * 19}.", "n": 1},
    }
    assert {str(answer) for answer in told if answer.written} == {
        "The memory is saved, with masks in place of personal data."
    }
    with pytest.raises(ApiError, match="would name something else") as refused:
        in_memory.gated().put(NAMESPACE, card.replace(" ", ""), {"content": STORED})
    assert refused.value.code == "personal_data"


def test_only_what_is_named_is_ungated(in_memory: Desk) -> None:
    store = in_memory.gated(ungated=[("scratch", "agent")])
    store.put(("scratch", "agent"), "k", {"when": datetime.now(UTC)})  # no JSON: nobody looks
    store.put(("scratch", "agent", "deeper"), "k", {"content": BLOCKED})
    store.delete(("scratch", "agent"), "k")
    assert in_memory.site.events(in_memory.owner) == []
    for namespace in [("scratch",), ("scratch", "agents"), ("x", "scratch", "agent")]:
        refused(store.put, namespace, "k", {"content": BLOCKED})
    with pytest.raises(InvalidNamespaceError):
        store.batch([PutOp(("scratch.agent",), "k", {"content": BLOCKED})])
    for wrong in ([()], "scratch", ["scratch"]):
        with pytest.raises(ValueError, match="ungated"):
            in_memory.gated(ungated=wrong)


def test_text_in_keys_and_namespaces_is_looked_at_too(in_memory: Desk) -> None:
    store = in_memory.gated()
    for namespace, key, value in [
        (NAMESPACE, "I think we should close Faro", {"content": STORED}),
        (("memories", "I think we should close Faro"), "one", {"content": STORED}),
        (NAMESPACE, "one", {"I think we should close Faro": "yes"}),
        (NAMESPACE, "one", {"notes": [{"I think we should close Faro": 1}]}),
    ]:
        assert refused(store.put, namespace, key, value).verdict.rule == "speculation"
    store.put(NAMESPACE, "hours of Lisbon", {"content": STORED})
    assert in_memory.values() == {"hours of Lisbon": {"content": STORED}}


def test_what_cannot_be_told_is_refused_before_anything_is_sent(in_memory: Desk) -> None:
    store = in_memory.gated()
    wide = [f"fields[{number}].text" for number in range(400)]
    wrong: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        ("k", {"content": b"bytes"}, {}),
        ("k", {"content": "x" * 9000}, {}),
        ("k", {}, {}),
        ("k\n", {"content": STORED}, {}),
        ("k" * 600, {"content": STORED}, {}),
        ("k", {"content": STORED}, {"index": wide}),
        ("k", {"content": STORED}, {"index": [1]}),
    ]
    for key, value, more in wrong:
        with pytest.raises(Unrenderable):
            store.put(NAMESPACE, key, value, **more)
        with pytest.raises(Unrenderable):
            ops: list[Op] = [
                PutOp(NAMESPACE, "fine", {"content": STORED}),
                PutOp(NAMESPACE, key, value, **more),
            ]
            store.batch(ops)
    assert in_memory.site.events(in_memory.owner) == []
    assert in_memory.values() == {}


@pytest.mark.parametrize(
    "delivery",
    [
        {"place": '["memories", "ada", "k"]', "data": {"path": ["I think we should close Faro"]}},
        {"place": '["memories", "I think we should close Faro", "k"]', "data": {"path": ["content"]}},
        {"place": '["memories.ada", "k"]', "data": {"path": ["content"]}},
        {"place": '["k"]', "data": {"path": ["content"]}},
        {"place": "elsewhere", "data": {"path": ["content"]}},
        {"place": '["memories", "ada", "k"]', "data": {}},
        {"place": '["memories", "ada", "k"]', "data": {"path": "content"}},
        {"place": '["memories", "ada", "k"]', "data": {"path": ["content"], "ttl": "soon"}},
        # A sentence in names that are plain, each by itself.
        {"place": '["I-think-we-should", "close-Faro-in-autumn", "for-good"]', "data": {"path": ["content"]}},
        {"place": '["memories", "k"]', "data": {"path": ["I_think_we_should", "close_Faro_in_autumn"]}},
    ],
)
def test_a_delivery_that_was_not_made_here_is_refused(in_memory: Desk, delivery: dict[str, Any]) -> None:
    verdict = in_memory.client.save(STORED, source="user", delivery={"sink": "langgraph", **delivery})
    assert verdict.outcome is Outcome.STORED
    assert tuple(in_memory.gated().deliver()) == (0, 0, 1)
    assert b"Faro" not in in_memory.everywhere()
    assert in_memory.inner.search(()) == []


def test_what_is_older_than_the_gate_is_not_written_over_by_who_keeps_it_from_the_gate(
    in_memory: Desk,
) -> None:
    in_memory.inner.put(NAMESPACE, "k", {"content": "The safe is behind the clock."})
    delivery = {"sink": "langgraph", "place": '["memories", "ada", "k"]', "data": {"path": ["content"]}}
    assert in_memory.client.save(STORED, source="user", delivery=delivery).outcome is Outcome.STORED
    assert tuple(in_memory.gated().deliver()) == (0, 0, 1)
    assert in_memory.values() == {"k": {"content": "The safe is behind the clock."}}


def test_nobody_writes_into_the_namespace_of_another_owner(site: Site) -> None:
    """Both owners' deliveries go to the same store; which namespace is whose, only the application knows."""
    ada, bob = site.owner("ada"), site.owner("bob")
    application, both = site.token(Role.AGENT, ada, bob, sources=ALL_SOURCES)
    hand_over(site.store, [(bob, "langgraph")], application.id, actor="test", now=datetime.now(UTC))
    bobs = site.token(Role.AGENT, bob, sources=ALL_SOURCES)[1]
    inner = InMemoryStore()
    with Client(site.running.url, both) as client, Client(site.running.url, bobs) as agent:
        store = GatedStore(inner, client, source="user", user_id=lambda namespace: namespace[1])
        for place in (f'["memories", "{ada}", "k"]', '["memories", "k"]'):
            delivery = {"sink": "langgraph", "place": place, "data": {"path": ["content"]}}
            text = f"{STORED} {place.count(',')}"
            assert agent.save(text, source="user", delivery=delivery).outcome is Outcome.STORED
        assert tuple(store.deliver()) == (0, 0, 2)
        assert inner.search(()) == []


def test_readers_cannot_change_what_a_store_keeps_in_memory(in_memory: Desk) -> None:
    store = in_memory.gated()
    value = {"content": STORED, "tags": ["office"]}
    store.put(NAMESPACE, "one", value)
    value["content"] = BLOCKED
    value["tags"].append(BLOCKED)  # type: ignore[attr-defined]  # a list, as built above
    for item in (store.get(NAMESPACE, "one"), store.search(NAMESPACE)[0]):
        assert item is not None
        item.value["content"] = BLOCKED
        item.value["tags"].append(BLOCKED)
    assert in_memory.values() == {"one": {"content": STORED, "tags": ["office"]}}


def test_each_namespace_may_have_its_owner(site: Site) -> None:
    ada, bob = site.owner("ada"), site.owner("bob")
    token = site.token(Role.AGENT, ada, bob, sources=ALL_SOURCES)[1]
    inner = InMemoryStore()
    with Client(site.running.url, token) as client:
        store = GatedStore(inner, client, source="user", user_id=lambda namespace: namespace[1])
        store.put(("memories", ada), "one", {"content": STORED})
        store.put(("memories", bob), "one", {"content": STORED})
        assert len(client.memories(user_id=ada).items) == len(client.memories(user_id=bob).items) == 1
        waiting = GatedStore(inner, client, user_id=lambda namespace: namespace[1])
        for owner in (ada, bob):
            refused(waiting.put, ("memories", owner), "two", {"content": QUEUED})
            Desk(site, owner, token, client, inner, Path()).decide()
        assert tuple(waiting.deliver(user_id=bob)) == (1, 0, 0)
        assert waiting.get(("memories", ada), "two") is None
        assert tuple(waiting.deliver()) == (1, 0, 0)
        assert waiting.get(("memories", ada), "two") is not None


def test_a_token_of_another_owner_writes_nothing(in_memory: Desk) -> None:
    other = in_memory.site.token(Role.AGENT, in_memory.site.owner(), sources=ALL_SOURCES)[1]
    with Client(in_memory.site.running.url, other) as client:
        store = GatedStore(in_memory.inner, client, source="user", user_id=in_memory.owner)
        with pytest.raises(ApiError, match="owner_not_allowed"):
            store.put(NAMESPACE, "one", {"content": STORED})
    assert in_memory.values() == {}


def test_a_gate_that_is_down_lets_nothing_through(in_memory: Desk) -> None:
    with Client("http://127.0.0.1:9", in_memory.token, retries=0) as client:
        store = GatedStore(in_memory.inner, client, source="user", on_verdict=lambda answer: None)
        with pytest.raises(Unreachable):
            store.put(NAMESPACE, "one", {"content": STORED})
    assert in_memory.values() == {}


def test_a_row_that_is_refused_raises_after_the_others_are_written(
    site: Site, tmp_path: Path, migrated_file: Path
) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text("[queue]\nper_owner = 1\n")
    file = tmp_path / "small.db"
    shutil.copyfile(migrated_file, file)
    with (
        open_site(f"sqlite:///{file}", policy=policy) as small,
        desk_of(small, InMemoryStore(), tmp_path) as desk,
    ):
        refused(desk.waiting.put, NAMESPACE, "one", {"content": QUEUED})
        told: list[WriteAnswer] = []
        store = desk.gated(on_verdict=told.append)
        store.put(NAMESPACE, "two", {"content": STORED})
        ops: list[Op] = [
            PutOp(NAMESPACE, "two", {"content": "The queue has no room for this."}),
            PutOp(NAMESPACE, "three", {"content": "Trams run every ten minutes."}),
        ]
        with pytest.raises(QueueFull) as full:
            store.batch(ops)
        assert full.value.retry_after and full.value.idempotency_key
        assert set(desk.values()) == {"two", "three"}
        assert desk.values()["two"] == {"content": STORED}
