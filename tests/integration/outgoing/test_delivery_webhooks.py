"""Webhooks get every memory of their owner: signed, at least once, in order, and nothing of anybody else's."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook as Consumer
from standardwebhooks import WebhookVerificationError

from tests.acceptance.site import open_site
from tests.acceptance.site import store as store_over_http
from tests.claims import NOW, policy
from tests.conftest import THRESHOLD
from tests.delivering import SECOND, all_of, ask, put, states
from tests.hostile import LOOPBACK
from tests.rechecking import Clock
from tests.reviews import history, memory, queue_of, reviewer, set_mode, stored
from tests.running.processes import FORKED
from tests.running.racers import Report, race
from tests.web import Answer, Asked, WebServer, web_server
from tests.webhooking import READY, queue
from vouchgate.cli.app import run
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.modes import Mode
from vouchgate.ingest.net.client import Outbound
from vouchgate.review.answers import Approved, Undone
from vouchgate.review.ending.erasing import Erased, Erasing
from vouchgate.storage.log import chain as log
from vouchgate.storage.outgoing import streams, webhooks
from vouchgate.storage.outgoing.deliveries import LEASE, WAITS, DeliveryState
from vouchgate.storage.outgoing.webhooks import OF_MEMORIES, Event, Webhook
from vouchgate.storage.store import Store
from vouchgate.workers.webhooks import SendResult, Webhooks

PATH = "/memories/not-for-logs"
SOON = NOW + SECOND  # a round's clock goes on while it works


@dataclass
class Desk:
    """A store, a receiver, and the worker between them."""

    store: Store
    site: WebServer
    clock: Clock = field(default_factory=Clock)

    def sink(
        self, owner_id: str = "ann", path: str = PATH, events: Collection[Event] = OF_MEMORIES
    ) -> tuple[Webhook, str]:
        """A new webhook that gets memories, and its secret."""
        url = self.site.url + path
        return webhooks.create(self.store, owner_id=owner_id, url=url, events=events, actor="test", now=NOW)

    def worker(self, outbound: Outbound | None = None) -> Webhooks:
        """One that may send to this machine."""
        client = outbound or Outbound(allow_networks=LOOPBACK, spacing_seconds=0)
        return Webhooks(self.store, client, clock=self.clock)

    def work(self, now: datetime = NOW, outbound: Outbound | None = None) -> Counter[SendResult]:
        """One round of the worker at this time."""
        self.clock.now = now
        return asyncio.run(self.worker(outbound).memories.run_once(now))

    def got(self, path: str = PATH) -> list[tuple[str, str]]:
        """Type and memory of everything that came there, in order."""
        found = [json.loads(one.body) for one in self.site.asked if one.path == path]
        return [(said["type"], said["data"]["id"]) for said in found]


@contextmanager
def open_desk(store: Store) -> Iterator[Desk]:
    """With a receiver that takes everything in."""
    with web_server({PATH: Answer(), "/other": Answer()}) as site:
        yield Desk(store, site)


@pytest.fixture
def desk(migrated_file: Path, tmp_path: Path) -> Iterator[Desk]:
    """On SQLite: what the databases do is in `test_deliveries.py`."""
    shutil.copyfile(migrated_file, tmp_path / "vouchgate.db")
    store = Store.open(f"sqlite:///{tmp_path / 'vouchgate.db'}", threshold=THRESHOLD)
    with open_desk(store) as made:
        yield made
    store.close()


@pytest.fixture
def either(store: Store) -> Iterator[Desk]:
    """On either database."""
    with open_desk(store) as made:
        yield made


# --- what is sent


def test_a_memory_is_sent_with_its_text_and_a_signature(desk: Desk) -> None:
    now = datetime.now(UTC)  # the consumer holds the time against its own clock
    _, secret = desk.sink()
    made = stored(desk.store, "The mill has “three” wheels \N{SNOWMAN}", now=now)
    assert desk.work(now) == {SendResult.TOLD: 1}
    (asked,) = desk.site.asked
    assert (asked.method, asked.path, asked.headers["content-type"]) == ("POST", PATH, "application/json")
    assert Consumer(secret).verify(asked.body, dict(asked.headers)) == {
        "type": "memory.stored",
        "timestamp": now.isoformat(),
        "data": {
            "id": made.id,
            "owner_id": "ann",
            "content": "The mill has “three” wheels \N{SNOWMAN}",
            "memory_type": "fact",
            "label": "INFERENCE",
            "confidence": "medium",
            "source_id": None,
            "validity_horizon": None,
        },
    }
    with pytest.raises(WebhookVerificationError):
        Consumer(secret).verify(asked.body.replace(b"three", b"seven"), dict(asked.headers))
    (record,) = all_of(desk.store)
    assert asked.headers["webhook-id"] == record.id
    assert (record.state.value, record.place) == ("delivered", made.id)


def bodies(desk: Desk) -> list[bytes]:
    """Everything that came, in order."""
    return [one.body for one in desk.site.asked]


def bridge(tonnes: int) -> str:
    """Of two that differ in their tonnes alone, the second conflicts with the first."""
    return (
        "Since the spring inspection the old stone bridge below our mill carries carts and other loads up to"
        f" {tonnes} tonnes only, whatever the older signs along that road may tell anybody who comes by"
    )


@pytest.mark.on("sqlite")
def test_what_goes_out_of_force_is_told_by_its_id_alone(either: Desk) -> None:
    either.sink()
    old = stored(either.store, bridge(12))
    assert either.work() == {SendResult.TOLD: 1}
    item = ask(either.store, bridge(15), "bridge", sink="else")
    queue = queue_of(either.store)
    assert isinstance(queue.approve(reviewer(), item, version=1, supersede=True, now=NOW), Approved)
    new = memory(either.store, old.id).superseded_by
    assert new is not None
    assert either.work(SOON) == {SendResult.TOLD: 2}
    assert sorted(either.got()[1:]) == [("memory.removed", old.id), ("memory.stored", new)]
    (removed,) = (said for said in map(json.loads, bodies(either)) if said["type"] == "memory.removed")
    assert removed["data"] == {"id": old.id, "owner_id": "ann"}
    assert isinstance(queue.undo(reviewer(), item, version=2, now=SOON), Undone)
    assert either.work(SOON + SECOND) == {SendResult.TOLD: 2}
    assert sorted(either.got()[3:]) == [("memory.removed", new), ("memory.stored", old.id)]


def test_what_is_erased_or_withdrawn_while_others_are_sent_is_not_sent(desk: Desk, tmp_path: Path) -> None:
    """Nor does what comes after it wait for the lease to end."""
    hook, _ = desk.sink()
    erasing = Erasing(desk.store, policy(), path=tmp_path / "list.jsonl")
    ids = [put(desk.store, number, sink="else") for number in range(6)]
    erased = list[object]()

    def meanwhile(asked: Asked) -> Answer:
        said = json.loads(asked.body)
        told = said["data"]["id"] if said["type"] == "memory.stored" else ""
        if told == ids[0]:
            erased.append(erasing.by_owner(reviewer(), [ids[1]], "request 4711", NOW))
            queue_of(desk.store).retract(reviewer(), ids[2], reason="no", now=NOW)
        if told == ids[4]:  # this one itself
            erased.append(erasing.by_owner(reviewer(), [ids[4]], "request 4711", NOW))
        return Answer()

    desk.site.routes[PATH] = meanwhile
    for number in range(1, 5):
        desk.work(SOON + number * SECOND)
    stored_ids = [one for kind, one in desk.got() if kind == "memory.stored"]
    assert stored_ids == [ids[0], ids[3], ids[4], ids[5]]
    assert [type(one) for one in erased] == [Erased, Erased], erased
    assert desk.got().index(("memory.removed", ids[4])) > desk.got().index(("memory.stored", ids[4]))
    assert all_of(desk.store, sink=hook.id, state=DeliveryState.WAITING) == []


def test_one_that_is_given_a_new_secret_is_told_what_becomes_of_what_it_was_sent_before(
    either: Desk, tmp_path: Path
) -> None:
    before, _ = either.sink()
    ids = [put(either.store, number, sink="else") for number in range(3)]
    assert either.work() == {SendResult.TOLD: 3}
    either.sink()
    either.sink(owner_id="bob", path="/other")
    assert webhooks.remove(either.store, before.id, actor="test", now=NOW)
    later = put(either.store, 3, sink="else")
    queue_of(either.store).retract(reviewer(), ids[0], reason="it was mended", now=NOW)
    erased = Erasing(either.store, policy(), path=tmp_path / "list").by_owner(
        reviewer(), [ids[1]], "4711", NOW
    )
    assert isinstance(erased, Erased), erased
    assert either.work(SOON) == {SendResult.TOLD: 3}
    told = [("memory.removed", ids[0]), ("memory.removed", ids[1]), ("memory.stored", later)]
    assert sorted(either.got()[3:]) == sorted(told)
    assert either.got("/other") == []


def test_a_memory_that_ends_by_itself_is_told_too(desk: Desk) -> None:
    desk.sink()
    made = stored(desk.store, "The pass is open", validity_horizon=NOW + timedelta(days=1))
    assert desk.work() == {SendResult.TOLD: 1}
    after = NOW + timedelta(days=2)
    queue_of(desk.store).expire_memories(after)
    assert desk.work(after) == {SendResult.TOLD: 1}
    assert desk.got() == [("memory.stored", made.id), ("memory.removed", made.id)]


@pytest.mark.parametrize("event", [Event.MEMORY_STORED, Event.MEMORY_REMOVED])
def test_only_what_was_asked_for_is_sent_and_the_rest_is_skipped(either: Desk, event: Event) -> None:
    either.sink(events=[event])
    made = stored(either.store, "The pass is open", validity_horizon=NOW + timedelta(days=1))
    either.work()
    after = NOW + timedelta(days=2)
    queue_of(either.store).expire_memories(after)
    either.work(after)
    assert either.got() == [(event.value, made.id)]
    first, second = ("delivered", "skipped") if event is Event.MEMORY_STORED else ("skipped", "delivered")
    assert states(either.store) == [first, second]


@pytest.mark.on("sqlite")
def test_one_webhook_may_be_told_of_everything(either: Desk) -> None:
    hook, _ = either.sink(events=tuple(Event))
    made = stored(either.store, "The pass is open")
    (waits,) = queue(either.store, 1)
    assert either.work() == {SendResult.TOLD: 1}
    either.clock.now = READY
    assert asyncio.run(either.worker().messages.run_once(READY)) == {SendResult.TOLD: 1}
    memory_came, queue_came = map(json.loads, bodies(either))
    assert (memory_came["type"], memory_came["data"]["id"]) == ("memory.stored", made.id)
    assert (queue_came["type"], queue_came["data"]["queued"][0]["queue_id"]) == ("review.waiting", waits)
    assert hook.events == tuple(Event)


@pytest.mark.on("sqlite")
def test_who_is_told_of_memories_hears_of_nothing_else(either: Desk) -> None:
    either.sink()
    queue(either.store, 1)
    either.clock.now = READY
    assert asyncio.run(either.worker().messages.run_once(READY)) == {}
    assert either.site.asked == []


def test_what_waits_or_was_rejected_is_sent_nowhere(desk: Desk) -> None:
    desk.sink()
    item = ask(desk.store, "The king's pin is 4711", "pin", sink="else")
    ask(desk.store, "The queen's pin is 1147", "pin 2", sink="else")
    assert desk.work() == {}
    queue_of(desk.store).reject(reviewer(), item, version=1, reason="no", now=NOW)
    assert desk.work(SOON) == {}
    assert desk.site.asked == []


def test_nothing_of_one_owner_goes_to_another(desk: Desk) -> None:
    desk.sink("ann")
    desk.sink("bob", "/other")
    mine, theirs = stored(desk.store, "Ann has a mare"), stored(desk.store, "Bob has a mule", owner_id="bob")
    stored(desk.store, "Cid has a goat", owner_id="cid")
    assert desk.work() == {SendResult.TOLD: 2}
    assert desk.got() == [("memory.stored", mine.id)]
    assert desk.got("/other") == [("memory.stored", theirs.id)]


def test_what_is_read_only_waits_and_keeps_nobody_s_waiting(desk: Desk) -> None:
    desk.sink()
    desk.sink("bob", "/other")
    mine, theirs = put(desk.store, 1), put(desk.store, 2, owner_id="bob")
    set_mode(desk.store, "ann", Mode.READ_ONLY)
    assert desk.work(SOON) == {SendResult.TOLD: 1}
    assert desk.got("/other") == [("memory.stored", theirs)]
    with desk.store.read() as connection:
        assert streams.webhooks_next_due(connection) is None  # or it would look without a pause
    set_mode(desk.store, "ann", Mode.ENFORCE)
    desk.work(SOON)
    assert desk.got() == [("memory.stored", mine)]


# --- what fails


def test_what_fails_comes_again_in_order_with_the_same_words_under_the_same_id(desk: Desk) -> None:
    desk.sink()
    ids = [put(desk.store, number, sink="else") for number in range(3)]
    desk.site.routes[PATH] = Answer("secret reasons", status=500)
    assert desk.work() == {SendResult.FAILED: 1}
    record = all_of(desk.store, sink=all_of(desk.store)[1].sink)[0]
    assert (record.attempts, record.last_error) == (1, "HTTP status 500")
    assert desk.work(NOW + 0.9 * SECOND) == {}
    desk.site.routes[PATH] = Answer()
    assert desk.work(NOW + 3 * SECOND) == {SendResult.TOLD: 3}
    assert desk.got() == [("memory.stored", memory_id) for memory_id in [ids[0], *ids]]
    first, second = desk.site.asked[:2]
    assert first.body == second.body
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert first.headers["webhook-signature"] != second.headers["webhook-signature"]  # which has the time
    assert desk.site.most_at_once == 1


def test_what_is_never_taken_in_is_dead_after_eight_tries_and_the_next_goes_on(desk: Desk) -> None:
    sink, _ = desk.sink()
    lost, kept = stored(desk.store, "The first barrel leaks"), stored(desk.store, "A second one is dry")
    bad = lost.id.encode()
    desk.site.routes[PATH] = lambda asked: Answer(status=404 if bad in asked.body else 200)
    at, results = NOW, Counter[SendResult]()
    while "waiting" in states(desk.store, sink=sink.id):
        results += desk.work(at)
        due = all_of(desk.store, sink=sink.id)[0].due_at
        at = at if due is None else due
    assert results == {SendResult.FAILED: len(WAITS), SendResult.GIVEN_UP: 1, SendResult.TOLD: 1}
    assert states(desk.store) == ["dead", "delivered"]
    assert desk.got()[-1] == ("memory.stored", kept.id)
    (problem,) = desk.worker().problems()
    assert problem == "1 delivery was given up: see `vouchgate delivery list --state dead`."


def test_a_receiver_that_is_gone_makes_a_dead_letter_at_once(desk: Desk) -> None:
    desk.sink()
    stored(desk.store, "The ferry runs hourly")
    desk.site.routes[PATH] = Answer(status=410)
    assert desk.work() == {SendResult.GIVEN_UP: 1}
    assert states(desk.store) == ["dead"]


def test_a_receiver_may_ask_for_more_time(desk: Desk) -> None:
    desk.sink()
    stored(desk.store, "The ferry runs hourly")
    desk.site.routes[PATH] = Answer(status=503, headers={"Retry-After": "600"})
    assert desk.work() == {SendResult.FAILED: 1}
    due = all_of(desk.store)[0].due_at
    assert due is not None
    assert due >= NOW + timedelta(seconds=599)


def test_what_waits_for_its_next_try_is_resumed(
    desk: Desk, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hook, _ = desk.sink()
    ids = [put(desk.store, number, sink="else") for number in range(2)]

    async def rounds() -> list[Counter[SendResult]]:
        worker = desk.worker()  # one process, which knows of the pause
        desk.site.routes[PATH] = Answer(status=503, headers={"Retry-After": "600"})
        made = [await worker.memories.run_once(NOW)]
        desk.site.routes[PATH] = Answer()
        made.append(await worker.memories.run_once(SOON))
        assert await asyncio.to_thread(webhooks.resume, desk.store, hook.id, SOON)
        assert all_of(desk.store, sink=hook.id)[0].attempts == 0
        return [*made, await worker.memories.run_once(SOON)]

    assert asyncio.run(rounds()) == [{SendResult.FAILED: 1}, {}, {SendResult.TOLD: 2}]
    assert desk.got() == [("memory.stored", one) for one in (ids[0], *ids)]
    database = ("--database-url", f"sqlite:///{tmp_path / 'vouchgate.db'}")
    assert run(["webhook", "resume", hook.id, *database]) == 0
    assert "Nothing for webhook" in capsys.readouterr().err


def test_a_receiver_that_wants_a_pause_gets_it_and_others_at_its_host_go_on(desk: Desk) -> None:
    """Of two owners with one receiver, only the first one's delivery is a try; a third has another URL there."""
    desk.site.routes[PATH] = Answer(status=429, headers={"Retry-After": "600"})
    for owner_id in ("ann", "bob"):
        desk.sink(owner_id)
    desk.sink("cid", "/other")
    stored(desk.store, "Ann has a mare")

    async def both() -> list[Counter[SendResult]]:
        worker = desk.worker()
        first = await worker.memories.run_once(NOW)
        await asyncio.to_thread(stored, desk.store, "Bob has a mule", owner_id="bob")
        await asyncio.to_thread(stored, desk.store, "Cid has a goat", owner_id="cid")
        return [first, await worker.memories.run_once(SOON)]

    assert asyncio.run(both()) == [{SendResult.FAILED: 1}, {SendResult.NOT_SENT: 1, SendResult.TOLD: 1}]
    assert desk.site.paths() == [f"POST {PATH}", "POST /other"]
    mine, theirs = all_of(desk.store, frozenset({"ann", "bob"}))
    assert (mine.attempts, theirs.attempts) == (1, 0)
    for record in (mine, theirs):
        assert record.due_at is not None
        assert record.due_at >= NOW + timedelta(seconds=599)


def test_private_addresses_and_redirects_are_refused(desk: Desk) -> None:
    desk.sink()
    stored(desk.store, "The ferry runs hourly")
    inside = Outbound(extra_ports=frozenset({int(desk.site.url.rpartition(":")[2])}))
    assert desk.work(NOW, inside) == {SendResult.FAILED: 1}
    assert desk.site.asked == []
    assert "loopback" in str(all_of(desk.store)[0].last_error)
    desk.site.routes[PATH] = Answer(status=302, headers={"Location": "/other"})
    assert desk.work(NOW + 5 * SECOND) == {SendResult.FAILED: 1}
    assert desk.site.paths() == [f"POST {PATH}"]


def test_what_is_stuck_for_an_hour_is_a_problem(desk: Desk) -> None:
    desk.sink()
    stored(desk.store, "The ferry runs hourly")
    desk.clock.now = NOW + timedelta(minutes=59)
    assert desk.worker().problems() == ()
    desk.clock.now = NOW + timedelta(minutes=61)
    since = f"{NOW:%Y-%m-%d %H:%M} UTC"
    assert desk.worker().problems() == (f"Deliveries have waited since {since}: their sink takes nothing.",)
    assert Webhooks(desk.store, None, clock=desk.clock).problems()[:1] == (
        "Webhooks are told nothing, because the service is offline.",
    )


def test_offline_nothing_is_sent(desk: Desk) -> None:
    desk.sink()
    stored(desk.store, "The ferry runs hourly")
    assert Webhooks(desk.store, None).jobs == ()
    assert states(desk.store) == ["waiting"]


# --- several processes, and their ends


def one_round(store: Store, at: str) -> Report:
    """Works like the service, in a process of its own."""
    worker = Webhooks(store, Outbound(allow_networks=LOOPBACK, per_host=8, spacing_seconds=0))
    results = asyncio.run(worker.memories.run_once(datetime.fromisoformat(at)))
    return [(result.value, str(count)) for result, count in results.items()]


def test_two_processes_send_nothing_twice_and_keep_the_order(either: Desk, database_url: str) -> None:
    expected: dict[str, list[str]] = {}
    for owner_id in (f"owner-{number}" for number in range(8)):
        either.sink(owner_id)
        expected[owner_id] = [
            put(either.store, number, owner_id=owner_id, sink="else") for number in range(6)
        ]
    reports = race(database_url, one_round, [(NOW.isoformat(),)] * 2)
    assert {name for report in reports for name, _ in report} == {"told"}
    came: dict[str, list[str]] = {owner_id: [] for owner_id in expected}
    for one in either.site.asked:
        data = json.loads(one.body)["data"]
        came[data["owner_id"]].append(data["id"])
    assert came == expected


def work_and_die(url: str) -> None:
    """A round of the worker, in a process that the receiver kills."""
    store = Store.open(url, threshold=THRESHOLD)
    one_round(store, NOW.isoformat())
    os._exit(0)


def test_what_a_killed_process_sent_is_sent_again_under_the_same_id(either: Desk, database_url: str) -> None:
    either.sink()
    ids = [put(either.store, number, sink="else") for number in range(2)]
    process = FORKED.Process(target=work_and_die, args=(database_url,))

    def kill(_asked: Asked) -> Answer:
        os.kill(int(process.pid or 0), signal.SIGKILL)
        return Answer()

    either.site.routes[PATH] = kill
    process.start()
    process.join(120)
    assert process.exitcode == -signal.SIGKILL
    either.site.routes[PATH] = Answer()
    assert either.work(NOW + LEASE - SECOND) == {}
    assert either.work(NOW + LEASE + 5 * SECOND) == {SendResult.TOLD: 2}
    assert either.got() == [("memory.stored", memory_id) for memory_id in [ids[0], *ids]]
    one, two, _ = either.site.asked
    assert (one.body, one.headers["webhook-id"]) == (two.body, two.headers["webhook-id"])


# --- the sinks themselves


def test_a_removed_sink_gets_nothing_more_and_leaves_nothing_behind(either: Desk) -> None:
    sink, _ = either.sink()
    first = stored(either.store, "The first barrel leaks")
    assert either.work() == {SendResult.TOLD: 1}
    stored(either.store, "A second one is dry")

    def removes(_asked: Asked) -> Answer:
        assert webhooks.remove(either.store, sink.id, actor="test", now=NOW)
        return Answer()

    either.site.routes[PATH] = removes
    assert either.work(SOON) == {SendResult.LOST: 1}  # it was under way
    assert all_of(either.store)[1].last_error == "Its webhook was removed."
    queue_of(either.store).retract(reviewer(), first.id, reason="it was mended", now=SOON)
    stored(either.store, "The third one is empty")
    assert states(either.store) == ["delivered", "skipped"]
    assert either.work(NOW + timedelta(days=2)) == {}
    either.clock.now = NOW + timedelta(days=2)
    assert either.worker().problems() == ()
    actions = [entry.action for entry in history(either.store)]
    assert (actions[0], actions.count(Action.WEBHOOK_REMOVED)) == (Action.WEBHOOK_CREATED, 1)
    with either.store.read() as connection:
        assert webhooks.listing(connection) == []
        assert log.verify(connection) == []


def test_an_owner_has_five_of_a_kind_at_most(desk: Desk) -> None:
    made = [desk.sink(events=[Event.MEMORY_STORED])[0] for _ in range(5)]
    with pytest.raises(ValueError, match="has 5 webhooks already"):
        desk.sink()
    desk.sink(events=[Event.WAITING])
    with pytest.raises(ValueError, match="has 5 webhooks already"):
        desk.sink(events=tuple(Event))
    desk.sink("bob")
    webhooks.remove(desk.store, made[2].id, actor="test", now=NOW)
    desk.sink()


@pytest.mark.on("sqlite")
@pytest.mark.parametrize(
    ("owner_id", "url", "says"),
    [
        ("", "https://example.com/", "owner id"),
        ("a\nb", "https://example.com/", "owner id"),
        ("ann", "ftp://example.com/", "only http and https"),
        ("ann", "https://user:pass@example.com/", "user name"),
        ("ann", "example.com/hook", "URL"),
    ],
)
def test_what_cannot_be_sent_to_is_refused(store: Store, owner_id: str, url: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        webhooks.create(store, owner_id=owner_id, url=url, events=OF_MEMORIES, actor="test", now=NOW)
    for name in ("sink_0", "", "a\x00b", "x" * 500):
        assert not webhooks.remove(store, name, actor="test", now=NOW)


def test_secrets_urls_and_texts_are_in_no_log(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    sink, secret = desk.sink()
    stored(desk.store, "The king's pin is 4711")
    with desk.store.read() as connection:
        shown: list[Any] = [*webhooks.listing(connection), webhooks.endpoint(connection, sink.id)]
    desk.site.routes[PATH] = Answer(status=500)
    desk.work()
    assert caplog.text.count(sink.id) == 1
    for text in (caplog.text, repr(shown)):
        assert secret not in text
        assert "4711" not in text
    assert "not-for-logs" not in caplog.text


# --- the served gate and the commands


def until(look: Callable[[], Any]) -> Any:
    """What `look` gives, once that is something."""
    end = time.monotonic() + 120
    while not (seen := look()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)
    return seen


def test_the_served_gate_sends_to_what_the_command_made(
    tmp_path: Path, migrated_file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'vouchgate.db'}"
    (tmp_path / "vouchgate.db").write_bytes(migrated_file.read_bytes())
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        status = run([*arguments, "--database-url", url])
        return (status, *capsys.readouterr())

    with (
        web_server({PATH: Answer()}) as receiver,
        open_site(url, environment={"VOUCHGATE_ALLOW_NETWORKS": "127.0.0.0/8"}) as site,
    ):
        asked_for = ("--event", "memory.stored", "--event", "memory.removed")
        made = ("webhook", "create", "--owner", "ann", "--url", receiver.url + PATH, *asked_for)
        assert command("owners", "create", "ann")[0] == 0
        status, secret, said = command(*made)
        assert status == 0
        sink_id = said.split()[1]
        assert "not https" in said
        memory_id = store_over_http(site.agent("ann"), "The tower has 99 steps")
        until(lambda: receiver.asked)
        (asked,) = receiver.asked
        message = Consumer(secret.strip()).verify(asked.body, dict(asked.headers))
        assert message["data"]["content"] == "The tower has 99 steps"
        deliveries = until(
            lambda: [
                one
                for one in site.reviewer("ann").get(f"/v1/memories/{memory_id}").json().get("deliveries", ())
                if one["state"] == "delivered"
            ]
        )
        assert deliveries[0]["sink"] == sink_id
        assert 'vouchgate_webhook_messages_total{result="told"} 1.0' in site.caller().get("/metrics").text
    status, listed, _ = command("webhook", "list", "--json")
    assert (json.loads(listed)["id"], secret.strip() in listed) == (sink_id, False)
    assert command("webhook", "list")[0] == 0
    assert command("webhook", "remove", sink_id)[0] == 0
    status, _, said = command("webhook", "remove", sink_id)
    assert status == 1
    assert "there is no webhook" in said
    assert "There is no webhook." in command("webhook", "list")[2]
    status, _, said = command("webhook", "create", "--owner", "ann", "--url", "nonsense", *asked_for)
    assert status == 2
