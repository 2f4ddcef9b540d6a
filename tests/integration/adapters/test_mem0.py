"""mem0 behind the gate: the real package, offline, and the real service on SQLite."""

from __future__ import annotations

import importlib
import shutil
import sys
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.acceptance.site import Site, open_site
from tests.running.service import ALL_SOURCES
from vouchgate import Client
from vouchgate.client import ApiError
from vouchgate.ingest.claims.people import Role

if TYPE_CHECKING:  # loading mem0 takes two seconds, which only the process that runs this file has to spend
    from tests.stores.offline_mem0 import Store
    from vouchgate.adapters.mem0 import GatedMemory


BLOCKED = "I think Carthage may perhaps have had larger harbours"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, migrated_file: Path) -> Iterator[Site]:
    file = tmp_path_factory.mktemp("mem0") / "vouchgate.db"
    shutil.copyfile(migrated_file, file)
    with open_site(f"sqlite:///{file}") as opened:
        yield opened


@dataclass
class Desk:
    """One owner, an agent with a gated memory, and the owner's reviewer."""

    site: Site
    store: Store
    client: Client
    user: str
    gated: GatedMemory = field(init=False)

    def __post_init__(self) -> None:
        from vouchgate.adapters.mem0 import GatedMemory

        self.gated = GatedMemory(self.store.memory, self.client)
        self.reviewer = self.site.reviewer(self.user)

    def add(self, text: Any, source: str = "ai_synthesis", **more: Any) -> dict[str, Any]:
        """Adds as it stands. `ai_synthesis` without a citation waits for the owner, a granted `user` does not."""
        return self.gated.add(text, user_id=self.user, infer=False, source=source, **more)

    def store_one(self, text: str, **more: Any) -> dict[str, Any]:
        """Adds a text that is stored at once; gives its row in mem0."""
        answer = self.add(text, source="user", **more)
        assert [one["outcome"] for one in answer["vouchgate"]] == ["stored"], answer
        (result,) = answer["results"]
        row: dict[str, Any] = self.store.memory.get(result["id"])
        return row

    def decide(self, verdict: dict[str, Any], verb: str = "approve", **more: Any) -> None:
        """The owner's word on a queued claim."""
        item = f"/v1/reviews/{verdict['queue_id']}"
        version = self.reviewer.get(item).json()["version"]
        answer = self.reviewer.post(f"{item}/{verb}", json={"version": version, **more})
        assert answer.status_code == 200, answer.text

    def texts(self) -> list[str]:
        """What mem0 has for this owner."""
        return self.store.texts(user_id=self.user)


@pytest.fixture
def desk(site: Site, tmp_path: Path) -> Iterator[Desk]:
    user = site.owner()
    token = site.token(Role.AGENT, any_owner=True, sources=ALL_SOURCES)[1]
    from tests.stores.offline_mem0 import offline_mem0

    with offline_mem0(tmp_path) as store, Client(site.running.url, token) as client:
        yield Desk(site, store, client, user)


def only(answer: dict[str, Any], outcome: str) -> dict[str, Any]:
    """The one verdict of an answer, which must be this."""
    (verdict,) = answer["vouchgate"]
    assert verdict["outcome"] == outcome, verdict
    found: dict[str, Any] = verdict
    return found


# --- adding ---


def test_what_is_stored_is_in_mem0_with_its_metadata_and_leads_to_its_evidence(desk: Desk) -> None:
    messages = [{"role": "user", "content": "Tyre traded purple cloth", "name": "hiram"}]
    answer = desk.add(messages, source="user", metadata={"topic": "trade", "pages": [3, 4]})

    (result,) = answer["results"]
    assert result == {
        "id": result["id"],
        "memory": "Tyre traded purple cloth",
        "event": "ADD",
        "actor_id": "hiram",
        "role": "user",
    }
    verdict = only(answer, "stored")
    assert verdict["written"]
    row = desk.gated.get(result["id"])
    assert row["user_id"] == desk.user
    assert row["metadata"]["topic"] == "trade"
    assert row["metadata"]["vouchgate_memory"] == verdict["memory_id"]
    assert (
        desk.client.memory(verdict["memory_id"]).content
        == "Tyre traded purple cloth\n\npages: [3, 4]\ntopic: trade"
    )
    assert (
        desk.gated.search("purple cloth", filters={"user_id": desk.user})["results"][0]["id"] == result["id"]
    )
    assert desk.gated.history(result["id"])[0]["event"] == "ADD"


def test_what_waits_or_is_blocked_is_nowhere_in_mem0(desk: Desk) -> None:
    waits = "Sidon exported glass vessels"
    answer = desk.add([{"role": "user", "content": waits}, {"role": "assistant", "content": BLOCKED}])

    assert answer["results"] == []
    assert [(one["outcome"], one["written"]) for one in answer["vouchgate"]] == [
        ("queued", False),
        ("blocked", False),
    ]
    assert answer["vouchgate"][1]["reason"] == "Contains personal speculation"
    assert desk.gated.deliver() == (0, 0, 0)
    assert desk.texts() == []
    assert not desk.store.holds("Sidon")
    assert not desk.store.holds("Carthage")


def test_hedged_or_secret_metadata_is_looked_at_like_the_text(desk: Desk) -> None:
    answer = desk.add(
        "Byblos shipped cedar", source="user", metadata={"note": "I think they perhaps shipped it"}
    )

    assert only(answer, "blocked")["reason"] == "Contains personal speculation"
    assert not desk.store.holds("Byblos")


def test_what_was_approved_is_written_once_and_what_was_rejected_never(desk: Desk) -> None:
    yes, no = "Ugarit wrote on clay tablets", "Arwad was an island city"
    approved, rejected = (only(desk.add(text), "queued") for text in (yes, no))
    desk.decide(approved)
    desk.decide(rejected, "reject", reason="not ours")

    assert desk.gated.deliver(desk.user) == (1, 0, 0)
    assert desk.gated.deliver(desk.user) == (0, 0, 0)
    assert desk.texts() == [yes]
    assert not desk.store.holds(no)


def test_a_delivery_whose_answer_was_lost_is_not_written_twice(desk: Desk) -> None:
    desk.decide(only(desk.add("Berytus had a law school"), "queued"))
    (delivery,) = desk.client.lease_deliveries("mem0", user_id=desk.user)
    desk.gated.apply(delivery)
    # As after a crash between writing and telling: the same delivery comes again, to another process.
    desk.client.delivery_failed(delivery, "the answer was lost", final=True)
    answer = desk.reviewer.post(f"/v1/deliveries/{delivery.id}/retry")
    assert answer.status_code == 200, answer.text

    from vouchgate.adapters.mem0 import GatedMemory

    assert GatedMemory(desk.store.memory, desk.client).deliver(desk.user) == (1, 0, 0)
    (row,) = desk.gated.get_all(filters={"user_id": desk.user})["results"]
    assert row["memory"] == "Berytus had a law school"
    assert [one["event"] for one in desk.gated.history(row["id"])] == ["ADD"]


def test_what_the_owner_edited_is_what_is_written(desk: Desk) -> None:
    kept = {"year": 814}
    first = only(desk.add("Utica is older than Gades", metadata=kept), "queued")
    second = only(desk.add("Motya lies off Sicily", metadata=kept), "queued")
    desk.decide(first, content="Utica is older than Leptis\n\nyear: 814")
    desk.decide(second, content="Motya lies off the west of Sicily.")
    desk.gated.deliver(desk.user)

    rows = {
        row["memory"]: row["metadata"]
        for row in desk.gated.get_all(filters={"user_id": desk.user})["results"]
    }
    assert set(rows) == {"Utica is older than Leptis", "Motya lies off the west of Sicily."}
    assert rows["Utica is older than Leptis"]["year"] == 814
    assert "year" not in rows["Motya lies off the west of Sicily."]
    assert not desk.store.holds("Gades")


def test_the_same_text_again_is_a_verdict_and_no_second_memory(desk: Desk) -> None:
    desk.store_one("Kition lies on Cyprus")
    again = desk.add("Kition lies on Cyprus", source="user")

    assert again["results"] == []
    assert only(again, "blocked")["rule"] == "duplicate"
    assert desk.texts() == ["Kition lies on Cyprus"]


def test_when_mem0_fails_the_memory_is_stored_and_written_later(desk: Desk) -> None:
    desk.store.vectors.broken = True
    answer = desk.add("Lixus traded in gold", source="user")
    assert answer["results"] == []
    verdict = only(answer, "stored")
    assert not verdict["written"]
    (state,) = desk.client.deliveries(user_id=desk.user, sink="mem0").items
    assert (state.state, state.attempts) == ("waiting", 1)
    assert "the embedder is away" in str(state.last_error)

    desk.store.vectors.broken = False
    for _ in range(200):
        if desk.gated.deliver(desk.user).done:
            break
        time.sleep(0.1)  # it is due again after a second
    assert desk.texts() == ["Lixus traded in gold"]


def test_what_was_stored_before_a_text_that_cannot_be_sent_is_written(desk: Desk) -> None:
    messages = [{"role": "user", "content": text} for text in ("Gades lies beyond the pillars", "x" * 9000)]
    with pytest.raises(ApiError):
        desk.add(messages, source="user")
    assert desk.texts() == ["Gades lies beyond the pillars"]


def test_a_repeat_writes_what_is_still_on_its_way(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as dying:
        dying.setattr(desk.gated, "_deliver", die)
        with pytest.raises(KeyboardInterrupt):
            desk.add("Utica is older than Carthage", source="user")
    assert desk.texts() == []
    again = desk.add("Utica is older than Carthage", source="user")
    assert only(again, "blocked")["rule"] == "duplicate"
    assert desk.texts() == ["Utica is older than Carthage"]


def test_threads_may_share_it_and_each_has_its_own_result(desk: Desk) -> None:
    places = ("Tharros", "Nora", "Sulcis", "Bithia", "Olbia", "Karalis")
    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(lambda place: desk.add(f"{place} lies in Sardinia", source="user"), places))

    assert [one["results"][0]["memory"] for one in answers] == [
        f"{place} lies in Sardinia" for place in places
    ]
    assert desk.texts() == sorted(f"{place} lies in Sardinia" for place in places)


def test_messages_of_the_system_are_left_out_and_what_is_no_text_is_refused(desk: Desk) -> None:
    picture = [{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]
    answer = desk.add(
        [{"role": "system", "content": "Be brief"}, {"role": "user", "content": "Oea is Tripoli"}]
    )
    assert [one["text"] for one in answer["vouchgate"]] == ["Oea is Tripoli"]
    for messages in (
        [{"role": "user", "content": picture}],
        ["Oea is Tripoli"],
        [{"role": "we should all agree", "content": "Oea"}],
        7,
    ):
        with pytest.raises(ValueError, match="message"):
            desk.add(messages)
    for metadata in ({"user_id": "somebody"}, {"vouchgate_place": "new:1"}, {"when": object()}):
        with pytest.raises(ValueError, match="metadata"):
            desk.add("Oea is Tripoli", metadata=metadata)


def test_an_expiration_date_is_kept_by_both(desk: Desk) -> None:
    row = desk.store_one("The market is closed", expiration_date="2999-12-30")

    assert row["expiration_date"] == "2999-12-30"
    memory = desk.client.memory(row["metadata"]["vouchgate_memory"])
    assert str(memory.validity_horizon).startswith("2999-12-31 00:00")


# --- facts that mem0's own model finds ---


def test_facts_found_by_mem0_are_claims_and_nothing_is_written_beside_them(desk: Desk) -> None:
    desk.store.model.says = (
        '{"memory": [{"text": "Hanno sailed south", "attributed_to": "user"}, {"text": "' + BLOCKED + '"}]}'
    )
    said = "My brother Hanno took sixty ships past the Pillars"
    answer = desk.gated.add(said, user_id=desk.user, source="user")

    assert len(desk.store.model.asked) == 1
    assert [(one["text"], one["outcome"]) for one in answer["vouchgate"]] == [
        ("Hanno sailed south", "stored"),
        (BLOCKED, "blocked"),
    ]
    assert [(one["memory"], one["role"]) for one in answer["results"]] == [("Hanno sailed south", "user")]
    assert desk.texts() == ["Hanno sailed south"]
    for text in ("Carthage", "sixty ships"):
        assert not desk.store.holds(text)


def test_no_facts_and_no_model_write_nothing(desk: Desk) -> None:
    desk.store.model.says = '{"memory": []}'
    assert desk.gated.add("Good morning from Gadir", user_id=desk.user) == {"results": [], "vouchgate": []}
    desk.store.model.says = None
    with pytest.raises(Exception, match="the model was asked"):
        desk.gated.add("Good morning from Gadir", user_id=desk.user)
    assert not desk.store.holds("Gadir")


# --- changing and removing ---


def test_an_update_waits_for_the_owner_and_keeps_the_id(desk: Desk) -> None:
    row = desk.store_one("The harbour has 170 berths")
    refused = only(desk.gated.update(row["id"], "The harbour has 190 berths", source="user"), "queued")
    assert (refused["rule"], refused["reason"]) == ("place_change", "Changes what is stored")
    desk.decide(refused, "reject", reason="it has not")
    wanted = only(
        desk.gated.update(row["id"], data="The harbour has 220 berths", metadata={"seen": True}), "queued"
    )
    desk.gated.deliver(desk.user)
    assert desk.texts() == ["The harbour has 170 berths"]

    desk.decide(wanted, supersede=True)
    assert desk.gated.deliver(desk.user) == (1, 0, 0)
    changed = desk.store.memory.get(row["id"])
    assert (changed["memory"], changed["metadata"]["seen"]) == ("The harbour has 220 berths", True)
    assert desk.texts() == ["The harbour has 220 berths"]
    assert not desk.store.holds("190 berths")
    with pytest.raises(ValueError, match="needed"):
        desk.gated.update(row["id"])


def test_a_removal_waits_for_the_owner(desk: Desk) -> None:
    row = desk.store_one("Baal Hammon had a temple")
    verdict = only(desk.gated.delete(row["id"]), "queued")
    assert (verdict["rule"], verdict["reason"]) == ("removal", "Asks to remove what is stored")
    desk.gated.deliver(desk.user)
    assert desk.texts() == ["Baal Hammon had a temple"]

    desk.decide(verdict)
    assert desk.gated.deliver(desk.user) == (1, 0, 0)
    assert desk.texts() == []
    assert desk.client.memory(row["metadata"]["vouchgate_memory"]).status == "retracted"
    with pytest.raises(ValueError, match="not found"):
        desk.gated.delete(row["id"])


def test_delete_all_asks_for_each_memory(desk: Desk) -> None:
    for text in ("The tophet lies south", "The cothon is round"):
        desk.store_one(text)
    answer = desk.gated.delete_all(user_id=desk.user)

    assert answer["message"] == "2 waiting for the owner, 0 deleted"
    assert len(desk.texts()) == 2
    wanted = next(one for one in answer["vouchgate"] if one["text"] == "The cothon is round")
    desk.decide(wanted)
    desk.gated.deliver(desk.user)
    assert desk.texts() == ["The tophet lies south"]


def test_delete_all_asks_each_owner_for_their_own(desk: Desk) -> None:
    other = desk.site.owner("other")
    for user in (desk.user, other):
        desk.store.memory.add(f"Shared by {user}", user_id=user, run_id="run-7", infer=False)
    desk.gated.delete_all(run_id="run-7")

    for user in (desk.user, other):
        assert [one.content for one in desk.client.pending(user_id=user).items] == [f"Shared by {user}"]


def test_delete_all_of_more_than_a_queue_holds_asks_for_none(desk: Desk) -> None:
    from vouchgate.adapters.mem0 import MOST_REMOVALS

    for number in range(MOST_REMOVALS + 1):
        desk.store.memory.add(f"Amphora {number}", user_id=desk.user, infer=False)

    with pytest.raises(ValueError, match="more than 100"):
        desk.gated.delete_all(user_id=desk.user)
    assert desk.client.pending(user_id=desk.user).items == ()


def test_a_memory_from_before_the_gate_is_removed_by_its_id(desk: Desk) -> None:
    old = desk.store.memory.add("Before the gate", user_id=desk.user, infer=False)["results"][0]["id"]
    desk.decide(only(desk.gated.delete(old), "queued"))

    assert desk.gated.deliver(desk.user) == (1, 0, 0)
    assert desk.texts() == []


def test_what_the_owner_takes_back_leaves_mem0_and_comes_back(desk: Desk) -> None:
    verdict = only(desk.add("Melqart was worshipped at Gades"), "queued")
    desk.decide(verdict)
    desk.gated.deliver(desk.user)
    desk.decide(verdict, "undo")
    assert desk.gated.deliver(desk.user) == (1, 0, 0)
    assert desk.texts() == []

    desk.decide(verdict)
    assert desk.gated.deliver(desk.user) == (1, 0, 0)
    assert desk.texts() == ["Melqart was worshipped at Gades"]


def test_an_old_memory_that_was_changed_and_taken_back_is_found_at_its_place_again(desk: Desk) -> None:
    old = desk.store.memory.add("Before the gate", user_id=desk.user, infer=False)["results"][0]["id"]
    verdict = only(desk.gated.update(old, "Changed through the gate", source="user"), "queued")
    desk.decide(verdict)
    desk.gated.deliver(desk.user)
    assert desk.store.memory.get(old)["memory"] == "Changed through the gate"
    for verb in ("undo", "approve"):
        desk.decide(verdict, verb)
        desk.gated.deliver(desk.user)
    (row,) = desk.gated.get_all(filters={"user_id": desk.user})["results"]
    assert row["id"] != old

    desk.decide(only(desk.gated.update(row["id"], "Changed once more"), "queued"), supersede=True)
    desk.gated.deliver(desk.user)
    assert desk.store.memory.get(row["id"])["memory"] == "Changed once more"
    assert desk.texts() == ["Changed once more"]


# --- no way round ---


@pytest.mark.parametrize(
    "name",
    [
        "vector_store",
        "db",
        "llm",
        "entity_store",
        "project",
        "chat",
        "from_config",
        "_create_memory",
        "new_one",
    ],
)
def test_whatever_else_mem0_has_is_not_to_be_had(desk: Desk, name: str) -> None:
    from vouchgate.adapters.mem0 import Ungated

    with pytest.raises(Ungated, match=name):
        getattr(desk.gated, name)


def test_of_all_that_mem0_has_only_what_is_known_is_there(desk: Desk) -> None:
    known = {"add", "update", "delete", "delete_all", "reset", "close", "get", "get_all", "search", "history"}
    offered = {
        name for name in dir(desk.store.memory) if not name.startswith("_") and hasattr(desk.gated, name)
    }
    assert offered == known
    desk.store_one("Tanit's sign is a triangle")
    from vouchgate.adapters.mem0 import GatedMemory, Ungated

    with pytest.raises(Ungated, match="reset"):
        desk.gated.reset()
    with pytest.raises(Ungated, match="procedural"):
        desk.gated.add("Say hello", user_id=desk.user, agent_id="a", memory_type="procedural_memory")
    with pytest.raises(TypeError, match=r"mem0\.Memory"):
        GatedMemory(object(), desk.client)
    assert desk.texts() == ["Tanit's sign is a triangle"]


def test_without_mem0_the_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mem0", None)
    monkeypatch.delitem(sys.modules, "vouchgate.adapters.mem0")
    with pytest.raises(ImportError, match=r"extra \"mem0\": pip install 'vouchgate\[mem0\]'"):
        importlib.import_module("vouchgate.adapters.mem0")


def test_a_delivery_that_names_somebody_elses_memory_is_given_up(desk: Desk) -> None:
    other = desk.site.owner("other")
    theirs = desk.store.memory.add("Theirs", user_id=other, infer=False)["results"][0]["id"]
    for text, place, data in (
        ("Mine, under their name", "new:1", {"user_id": other, "role": "user"}),
        ("Mine, over their memory", f"id:{theirs}", {"user_id": desk.user, "role": "user"}),
        ("Mine, for nobody", "new:2", {"agent_id": "scout", "role": "user"}),
        ("Mine, with no role", "new:3", {"user_id": desk.user}),
    ):
        delivery = {"sink": "mem0", "place": place, "data": data}
        assert desk.client.save(text, source="user", user_id=desk.user, delivery=delivery).outcome == "stored"
    assert desk.gated.deliver(desk.user) == (0, 0, 4)
    mine = {"user_id": desk.user, "memory_id": theirs}
    gone = {"sink": "mem0", "place": f"id:{theirs}", "op": "remove", "data": mine}
    removal = desk.client.save("Theirs", user_id=desk.user, delivery=gone)
    desk.decide({"queue_id": removal.queue_id})
    assert desk.gated.deliver(desk.user) == (0, 0, 1)

    assert desk.texts() == []
    assert desk.store.texts(agent_id="scout") == []
    assert desk.store.texts(user_id=other) == ["Theirs"]
    said = [str(one.last_error) for one in desk.client.deliveries(user_id=desk.user, state="dead").items]
    assert sum("somebody else" in error for error in said) == 3, said


def test_a_memory_cannot_be_written_over_by_another_name_for_its_place(desk: Desk) -> None:
    row = desk.store_one("The admiral's house is on the island")
    data = {"user_id": desk.user, "role": "user", "memory_id": row["id"]}
    for text, place in (("Written over by its id", f"id:{row['id']}"), ("Written over by its data", "new:1")):
        delivery = {"sink": "mem0", "place": place, "data": data}
        assert desk.client.save(text, source="user", user_id=desk.user, delivery=delivery).outcome == "stored"
    desk.gated.deliver(desk.user)

    assert desk.store.memory.get(row["id"])["memory"] == "The admiral's house is on the island"


def test_an_old_memory_is_not_written_over_by_who_keeps_it_from_the_gate(desk: Desk) -> None:
    old = desk.store.memory.add("Older than the gate", user_id=desk.user, infer=False)["results"][0]["id"]
    delivery = {"sink": "mem0", "place": f"id:{old}", "data": {"user_id": desk.user, "role": "user"}}
    sent = desk.client.save("Over it", source="user", user_id=desk.user, delivery=delivery)
    assert sent.outcome == "stored"
    assert desk.gated.deliver(desk.user) == (0, 0, 1)
    assert desk.texts() == ["Older than the gate"]


def test_metadata_that_the_checks_never_saw_is_not_written(desk: Desk) -> None:
    data = {"user_id": desk.user, "role": "user", "metadata": {"note": "unseen words"}}
    delivery = {"sink": "mem0", "place": f"new:{uuid.uuid4().hex}", "data": data}
    desk.client.save("Seen words", source="user", user_id=desk.user, delivery=delivery)

    assert desk.gated.deliver(desk.user) == (1, 0, 0)
    assert desk.texts() == ["Seen words"]
    assert not desk.store.holds("unseen words")


def test_a_memory_without_a_user_needs_an_owner_that_is_said(desk: Desk) -> None:
    with pytest.raises(ValueError, match="no owner"):
        desk.gated.add("Agents share this", agent_id="scout", infer=False, source="user")
    with pytest.raises(ValueError, match="is needed"):
        desk.gated.add("Agents share this", infer=False)
    from vouchgate.adapters.mem0 import GatedMemory

    shared = GatedMemory(desk.store.memory, desk.client, owner=desk.user)
    answer = shared.add("Agents share this", agent_id="scout", infer=False, source="user")

    assert desk.client.memory(only(answer, "stored")["memory_id"]).owner_id == desk.user
    assert desk.store.texts(agent_id="scout") == ["Agents share this"]
