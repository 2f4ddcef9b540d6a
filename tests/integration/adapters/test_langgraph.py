"""LangGraph stores behind the gate: the real packages, and the real service on SQLite."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import (
    GetOp,
    PutOp,
)
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore

from tests.acceptance.site import Site
from tests.stores.langgraph_desk import BLOCKED, NAMESPACE, QUEUED, STORED, Desk, desk_of, open_desks, refused
from vouchgate import Client
from vouchgate.adapters import langgraph
from vouchgate.adapters.rendering import place_of
from vouchgate.ingest.claims.decision import Outcome


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, migrated_file: Path) -> Iterator[Site]:
    with open_desks(tmp_path_factory.mktemp("langgraph"), migrated_file) as opened:
        yield opened


@pytest.fixture(params=["memory", "sqlite"])
def desk(request: pytest.FixtureRequest, site: Site, tmp_path: Path) -> Iterator[Desk]:
    file = tmp_path / "langgraph.db"
    if request.param == "memory":
        with desk_of(site, InMemoryStore(), file) as made:
            yield made
        return
    with SqliteStore.from_conn_string(str(file)) as inner:
        inner.setup()
        with desk_of(site, inner, file) as made:
            yield made


@pytest.fixture
def in_memory(site: Site, tmp_path: Path) -> Iterator[Desk]:
    """Where the kind of store cannot matter."""
    with desk_of(site, InMemoryStore(), tmp_path) as made:
        yield made


def test_what_is_stored_is_there_when_put_returns(desk: Desk) -> None:
    store = desk.gated()
    value = {"content": STORED, "tags": ["office", "hours"], "importance": 3, "sure": True, "until": None}
    store.put(NAMESPACE, "one", value)
    store.put(NAMESPACE, "two", {"content": "The Braga shop sells by weight."})
    item = store.get(NAMESPACE, "one")
    assert item is not None
    assert item.value == value
    assert {found.key for found in store.search(("memories",))} == {"one", "two"}
    assert store.list_namespaces() == [NAMESPACE]
    (memory,) = desk.client.memories(q="Braga").items
    assert memory.content == "The Braga shop sells by weight."


def requests_of(client: Client) -> list[str]:
    """The requests that the client will have made from now on, by the last part of their paths."""
    made: list[str] = []
    hook: Any = lambda request: made.append(request.url.path.rpartition("/")[2])  # noqa: E731
    client._http.event_hooks = {"request": [hook]}
    return made


def test_a_put_that_is_stored_is_two_requests(desk: Desk) -> None:
    made = requests_of(desk.client)
    store = desk.gated()
    for number in range(3):
        store.put(NAMESPACE, f"n{number}", {"content": f"Crate c{number}c stands in row r{number}r."})
        assert made == ["claims", "done"]
        made.clear()
    # What waits, or is blocked, is one. What came before is written first, by a lease.
    refused(desk.waiting.put, NAMESPACE, "queued", {"content": QUEUED})
    refused(store.put, NAMESPACE, "blocked", {"content": BLOCKED})
    assert made == ["claims", "claims"]
    desk.decide()
    made.clear()
    store.put(NAMESPACE, "after", {"content": STORED})
    assert made == ["claims", "lease", "done", "done", "lease"]
    made.clear()
    store.batch([PutOp(NAMESPACE, f"m{n}", {"content": f"Barrel b{n}b stands in hall h{n}h."}) for n in "ab"])
    assert made[:2] == ["batch", "lease"]
    assert len(desk.values()) == 7
    assert {each.state for each in desk.client.deliveries().items} == {"delivered"}


def test_what_was_handed_over_and_not_written_is_written_later(in_memory: Desk) -> None:
    """The process ends between the answer and the write, or the store refuses it."""
    place = place_of((*NAMESPACE, "one"))
    delivery = {"sink": "langgraph", "place": place, "data": {"path": ["content"]}}
    verdict = in_memory.client.save(STORED, source="user", delivery=delivery, hand_over=True)
    assert verdict.delivery is not None
    store = in_memory.gated()
    assert tuple(store.deliver()) == (0, 0, 0)
    in_memory.due()
    assert tuple(store.deliver()) == (1, 0, 0)
    assert in_memory.values() == {"one": {"content": STORED}}

    class Failing(InMemoryStore):
        def batch(self, ops: Any) -> list[Any]:
            ops = list(ops)
            if any(isinstance(op, PutOp) for op in ops):
                raise OSError("the disk is full")
            return super().batch(ops)

    mended, in_memory.inner = in_memory.inner, Failing()
    store = in_memory.gated()
    made = requests_of(in_memory.client)
    answer = refused(store.put, NAMESPACE, "two", {"content": "The Braga shop sells by weight."})
    assert (made, answer.error) == (["claims", "failed"], "the disk is full")
    (failed,) = in_memory.client.deliveries(state="waiting").items
    assert (failed.attempts, failed.last_error) == (1, "OSError: the disk is full")
    in_memory.inner = mended
    in_memory.due()
    assert tuple(in_memory.gated().deliver()) == (1, 0, 0)
    assert list(in_memory.values()) == ["one", "two"]


def test_a_turn_that_comes_too_late_begins_nothing(in_memory: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(langgraph, "BEGIN_WITHIN", -1.0)
    answer = refused(in_memory.gated().put, NAMESPACE, "one", {"content": STORED})
    assert answer.verdict.delivery is not None and in_memory.values() == {}
    in_memory.due()
    assert tuple(in_memory.gated().deliver()) == (1, 0, 0)


def test_the_same_again_is_no_error_and_no_second_memory(desk: Desk) -> None:
    store = desk.gated()
    for _ in range(3):
        store.put(NAMESPACE, "one", {"content": STORED})
    assert len(desk.client.memories().items) == 1
    answer = refused(store.put, NAMESPACE, "two", {"content": STORED})
    assert answer.verdict.rule == "duplicate"
    assert "Duplicate of existing memory" in str(answer)
    assert desk.values() == {"one": {"content": STORED}}


def test_what_waits_or_is_blocked_is_nowhere(desk: Desk) -> None:
    queued = refused(desk.waiting.put, NAMESPACE, "queued", {"content": QUEUED})
    blocked = refused(desk.gated().put, NAMESPACE, "blocked", {"deep": [{"note": BLOCKED}], "n": 1})
    assert queued.verdict.outcome is Outcome.QUEUED
    assert "Ungrounded assertion needs verification. It waits for its owner" in str(queued)
    assert blocked.verdict.outcome is Outcome.BLOCKED
    assert "The memory was not saved: Contains personal speculation." in str(blocked)
    desk.decide("reject", reason="Not so.")
    assert tuple(desk.gated().deliver()) == (0, 0, 0)
    desk.gated().put(NAMESPACE, "stored", {"content": STORED})
    assert desk.values() == {"stored": {"content": STORED}}
    written = desk.everywhere()
    assert STORED.encode() in written
    assert b"Porto" not in written
    assert b"Faro" not in written


def test_approved_is_written_once(desk: Desk) -> None:
    store = desk.waiting
    refused(store.put, NAMESPACE, "one", {"content": QUEUED, "days": 14})
    assert store.get(NAMESPACE, "one") is None
    desk.decide()
    assert tuple(store.deliver()) == (1, 0, 0)
    assert desk.values() == {"one": {"content": QUEUED, "days": 14}}
    assert tuple(store.deliver()) == (0, 0, 0)


def test_a_later_put_writes_what_was_approved_since(in_memory: Desk) -> None:
    refused(in_memory.waiting.put, NAMESPACE, "one", {"content": QUEUED})
    in_memory.decide()
    in_memory.gated().put(NAMESPACE, "two", {"content": STORED})
    assert list(in_memory.values()) == ["one", "two"]


@pytest.mark.parametrize(
    ("value", "edited", "expected"),
    [
        ({"content": QUEUED}, "It keeps them for ten days.", {"content": "It keeps them for ten days."}),
        (
            {"content": QUEUED, "days": 14, "secret": "The guard is called Rui."},
            f"content: {QUEUED[:-1]} at most.\ndays = 10",
            {"content": f"{QUEUED[:-1]} at most.", "days": 10},
        ),
    ],
)
def test_the_owners_edit_is_what_is_written(
    in_memory: Desk, value: dict[str, Any], edited: str, expected: dict[str, Any]
) -> None:
    refused(in_memory.waiting.put, NAMESPACE, "one", value)
    in_memory.decide(content=edited)
    in_memory.waiting.deliver()
    assert in_memory.values() == {"one": expected}


def test_an_edit_out_of_shape_is_a_dead_letter_and_others_go_on(in_memory: Desk) -> None:
    store = in_memory.waiting
    refused(store.put, NAMESPACE, "one", {"content": QUEUED, "days": 14})
    in_memory.decide(content="The owner wrote something else altogether here.")
    in_memory.gated().put(NAMESPACE, "two", {"content": STORED})
    assert in_memory.values() == {"two": {"content": STORED}}
    (dead,) = in_memory.client.deliveries(state="dead").items
    assert dead.last_error is not None
    assert "A line must be like `name: text`" in dead.last_error


def test_a_process_that_dies_between_writing_and_saying_so(in_memory: Desk) -> None:
    class Dying(InMemoryStore):
        dies = True

        def batch(self, ops: Any) -> list[Any]:
            ops = list(ops)
            done = super().batch(ops)
            if self.dies and any(isinstance(op, PutOp) for op in ops):
                raise KeyboardInterrupt
            return done

    in_memory.inner = inner = Dying()
    store = in_memory.gated()
    with pytest.raises(KeyboardInterrupt):
        store.put(NAMESPACE, "one", {"content": STORED})
    inner.dies = False
    assert tuple(store.deliver()) == (0, 0, 0)  # who died holds the lease still
    in_memory.due()
    assert tuple(store.deliver()) == (1, 0, 0)
    assert in_memory.values() == {"one": {"content": STORED}}
    assert len(in_memory.client.memories().items) == 1


def test_while_somebody_else_delivers(in_memory: Desk) -> None:
    """What is stored is not said to be written before the store shows it."""
    store = in_memory.gated()
    refused(in_memory.waiting.put, NAMESPACE, "one", {"content": QUEUED})
    in_memory.decide()
    (theirs,) = in_memory.client.lease_deliveries("langgraph")
    answer = refused(store.put, NAMESPACE, "two", {"content": STORED})
    assert answer.verdict.outcome is Outcome.STORED
    assert str(answer) == "The memory is stored at the gate, and not yet in the store behind it; it will be."
    assert in_memory.values() == {}
    in_memory.inner.put(NAMESPACE, "one", {"content": theirs.content})
    in_memory.client.delivery_done(theirs)
    in_memory.due()
    assert tuple(store.deliver()) == (1, 0, 0)
    assert in_memory.values() == {"one": {"content": QUEUED}, "two": {"content": STORED}}


def test_somebody_else_who_is_done_soon_is_waited_for(in_memory: Desk) -> None:
    class Meanwhile(InMemoryStore):
        looks = 0

        def batch(self, ops: Any) -> list[Any]:
            ops = list(ops)
            self.looks += any(isinstance(op, GetOp) and op.key == "two" for op in ops)
            if self.looks == 2 and any(
                isinstance(op, GetOp) for op in ops
            ):  # before the claim is sent, and after
                super().batch([PutOp(NAMESPACE, "one", {"content": theirs.content})])
                in_memory.client.delivery_done(theirs)
            return super().batch(ops)

    in_memory.inner = Meanwhile()
    refused(in_memory.waiting.put, NAMESPACE, "one", {"content": QUEUED})
    in_memory.decide()
    (theirs,) = in_memory.client.lease_deliveries("langgraph")
    in_memory.gated().put(NAMESPACE, "two", {"content": STORED})
    assert in_memory.values() == {"one": {"content": QUEUED}, "two": {"content": STORED}}


def test_a_store_that_fails_is_told_and_tried_again(in_memory: Desk) -> None:
    class Failing(InMemoryStore):
        fails = True

        def batch(self, ops: Any) -> list[Any]:
            ops = list(ops)
            if self.fails and any(isinstance(op, PutOp) for op in ops):
                raise ConnectionError("the disk is full")
            return super().batch(ops)

    in_memory.inner = inner = Failing()
    store = in_memory.gated()
    answer = refused(store.put, NAMESPACE, "one", {"content": STORED})
    assert answer.verdict.outcome is Outcome.STORED
    assert str(answer).endswith("it will be: the disk is full")
    (waiting,) = in_memory.client.deliveries().items
    assert (waiting.state, waiting.last_error) == ("waiting", "ConnectionError: the disk is full")
    inner.fails = False
    in_memory.due()
    store.put(NAMESPACE, "one", {"content": STORED})
    assert in_memory.values() == {"one": {"content": STORED}}


def test_overwriting_waits_and_the_old_value_stays(desk: Desk) -> None:
    store = desk.gated()
    store.put(NAMESPACE, "one", {"content": STORED})
    answer = refused(store.put, NAMESPACE, "one", {"content": "Closed for good since Monday."})
    assert (answer.verdict.rule, answer.verdict.reason) == ("place_change", "Changes what is stored")
    store.deliver()
    assert desk.values() == {"one": {"content": STORED}}
    desk.decide()
    store.deliver()
    assert desk.values() == {"one": {"content": "Closed for good since Monday."}}
    assert [memory.content for memory in desk.client.memories().items] == ["Closed for good since Monday."]


def test_deleting_waits(desk: Desk) -> None:
    store = desk.gated()
    store.put(NAMESPACE, "one", {"content": STORED, "days": 3})
    answer = refused(store.delete, NAMESPACE, "one")
    assert answer.removal
    assert "The memory was not deleted: Asks to remove what is stored. It waits for its owner" in str(answer)
    assert desk.values() == {"one": {"content": STORED, "days": 3}}
    (item,) = desk.site.reviewer(desk.owner).get("/v1/reviews").json()["items"]
    assert item["content"] == f"content: {STORED}\ndays = 3"
    desk.decide()
    store.deliver()
    assert desk.values() == {}
    assert desk.client.memories().items == ()


def test_deleting_what_was_there_before_the_gate(desk: Desk) -> None:
    for key, value in [("short", {"content": BLOCKED}), ("long", {"content": "x " * 9000})]:
        desk.inner.put(NAMESPACE, key, value)
        assert refused(desk.gated().delete, NAMESPACE, key).verdict.rule == "removal"
    assert len(desk.values()) == 2
    desk.decide()
    desk.gated().deliver()
    assert desk.values() == {}


def test_what_was_there_before_the_gate_is_not_overwritten(desk: Desk) -> None:
    """The gate does not know it, so that nothing there would stop the put."""
    desk.inner.put(NAMESPACE, "one", {"content": "Written long ago."})
    desk.inner.put(NAMESPACE, "same", {"content": QUEUED})
    store = desk.gated()
    assert refused(store.put, NAMESPACE, "one", {"content": STORED}).verdict.rule == "place_change"
    store.put(NAMESPACE, "same", {"content": QUEUED})
    assert desk.values() == {"one": {"content": "Written long ago."}, "same": {"content": QUEUED}}
    desk.decide()
    store.deliver()
    assert desk.values() == {"one": {"content": STORED}, "same": {"content": QUEUED}}


def test_a_place_whose_removal_was_approved_is_free(in_memory: Desk) -> None:
    store = in_memory.gated()
    store.put(NAMESPACE, "one", {"content": STORED})
    refused(store.delete, NAMESPACE, "one")
    in_memory.decide()
    store.put(NAMESPACE, "one", {"content": "Trams run every ten minutes."})
    assert in_memory.values() == {"one": {"content": "Trams run every ten minutes."}}


def test_a_rejected_removal_removes_nothing(in_memory: Desk) -> None:
    store = in_memory.gated()
    store.put(NAMESPACE, "one", {"content": STORED})
    refused(store.delete, NAMESPACE, "one")
    in_memory.decide("reject", reason="Keep it.")
    store.deliver()
    assert in_memory.values() == {"one": {"content": STORED}}


def test_deleting_what_is_not_there_asks_nobody(in_memory: Desk) -> None:
    in_memory.gated().delete(NAMESPACE, "nothing")
    assert in_memory.site.events(in_memory.owner) == []


def test_what_the_owner_retracts_leaves_the_store(in_memory: Desk) -> None:
    store = in_memory.gated()
    store.put(NAMESPACE, "one", {"content": STORED})
    (memory,) = in_memory.client.memories().items
    answer = in_memory.site.reviewer(in_memory.owner).request(
        "DELETE", f"/v1/memories/{memory.id}", json={"reason": "No longer so."}
    )
    assert answer.status_code == 200, answer.text
    store.deliver()
    assert in_memory.values() == {}


def test_ttl_is_kept_until_the_owner_approves(site: Site, tmp_path: Path) -> None:
    file = tmp_path / "langgraph.db"
    with SqliteStore.from_conn_string(str(file), ttl={"default_ttl": 30}) as inner:
        inner.setup()
        with desk_of(site, inner, file) as desk:
            desk.gated().put(NAMESPACE, "default", {"content": STORED})
            refused(desk.waiting.put, NAMESPACE, "own", {"content": QUEUED}, ttl=7.5)
            desk.gated().put(NAMESPACE, "never", {"content": "Trams run every ten minutes."}, ttl=None)
            desk.decide()
            desk.gated().deliver()
            rows = inner.conn.execute("SELECT key, ttl_minutes, expires_at IS NULL FROM store").fetchall()
    assert {key: (ttl, forever) for key, ttl, forever in rows} == {
        "default": (30, 0),
        "own": (7.5, 0),
        "never": (None, 1),
    }


def test_ttl_is_refused_where_the_store_behind_knows_none(in_memory: Desk) -> None:
    with pytest.raises(NotImplementedError, match="TTL"):
        in_memory.gated().put(NAMESPACE, "one", {"content": STORED}, ttl=5)


def test_index_is_kept_until_the_owner_approves(site: Site, tmp_path: Path) -> None:
    def embed(texts: Any) -> list[list[float]]:
        return [[float("Lisbon" in text), float("Porto" in text), 1.0] for text in texts]

    inner = InMemoryStore(index={"dims": 3, "embed": embed, "fields": ["content"]})
    with desk_of(site, inner, tmp_path) as desk:
        desk.gated().put(NAMESPACE, "default", {"content": STORED, "title": "x"})
        refused(
            desk.waiting.put,
            NAMESPACE,
            "title",
            {"content": "Parcels stay a week.", "title": "Porto"},
            index=["title"],
        )
        refused(desk.waiting.put, NAMESPACE, "none", {"content": QUEUED, "title": "Porto"}, index=False)
        desk.decide()
        desk.gated().deliver()
        paths = {key: list(vectors) for key, vectors in inner._vectors[NAMESPACE].items()}
        assert paths == {"default": ["content"], "title": ["title"]}
        assert desk.gated().search(NAMESPACE, query="Porto")[0].key == "title"
