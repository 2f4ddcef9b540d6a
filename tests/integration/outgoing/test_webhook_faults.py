"""Messages are told once and in order, whatever fails: receivers, processes, leases."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection
from standardwebhooks import Webhook as Consumer

from tests.claims import NOW
from tests.conftest import THRESHOLD
from tests.hostile import LOOPBACK, hostile
from tests.reviews import history, queue_of, reviewer
from tests.running.processes import FORKED
from tests.running.racers import Report, race
from tests.web import Answer, Asked, WebServer
from tests.webhooking import LATER, PATH, READY, Desk, open_desk, queue
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.net.client import Outbound
from vouchgate.ingest.net.fetched import FetchFailed
from vouchgate.storage.errors import StorageError
from vouchgate.storage.log import chain as log
from vouchgate.storage.outgoing import webhook_messages, webhooks
from vouchgate.storage.store import Store
from vouchgate.workers.webhooks import LEASE_SECONDS, WAITS, SendResult, Webhooks


@pytest.fixture
def desk(store: Store) -> Iterator[Desk]:
    """With a receiver that takes everything in."""
    with open_desk(store) as made:
        yield made


# --- what fails


def test_a_try_that_failed_comes_again_with_the_same_words_under_the_same_id(desk: Desk) -> None:
    hook, secret = desk.hook()
    one, two = queue(desk.store, 2)
    desk.site.routes[PATH] = Answer("secret reasons", status=500)
    assert desk.work() == {SendResult.FAILED: 1}
    shown = desk.look(hook)
    assert (shown.attempts, shown.last_error) == (1, "HTTP status 500")
    since = shown.failing_since
    assert since is not None
    assert READY <= since < LATER
    # What happens meanwhile is for the message that follows.
    queue_of(desk.store).reject(reviewer(), one, version=1, reason="no", now=NOW)
    later = queue(desk.store, 1, first=2)
    assert desk.work(READY + timedelta(seconds=4.9)) == {}
    assert desk.work(READY + timedelta(seconds=6)) == {SendResult.FAILED: 1}
    assert desk.look(hook).failing_since == since
    desk.site.routes[PATH] = Answer()
    end = READY + timedelta(seconds=400)
    assert desk.work(end) == {SendResult.TOLD: 2}
    first, second, third, fourth = desk.site.asked
    assert first.body == second.body == third.body != fourth.body
    assert desk.queued() == [one, two] * 3 + later
    ids = [asked.headers["webhook-id"] for asked in desk.site.asked]
    assert ids[0] == ids[1] == ids[2] != ids[3]
    for asked, at in ((first, READY), (third, end)):
        stamp = int(at.timestamp())
        assert stamp <= int(asked.headers["webhook-timestamp"]) <= stamp + 5
        signed = datetime.fromtimestamp(int(asked.headers["webhook-timestamp"]), UTC)
        theirs = Consumer(secret).sign(asked.headers["webhook-id"], signed, asked.body.decode())
        assert asked.headers["webhook-signature"] == theirs
    shown = desk.look(hook)
    assert (shown.attempts, shown.failing_since, shown.last_error) == (0, None, None)
    assert desk.work(end + timedelta(days=5)) == {}


def test_what_is_never_answered_is_given_up_and_can_be_resumed(desk: Desk) -> None:
    hook, _ = desk.hook()
    items = queue(desk.store, 1)
    desk.site.routes[PATH] = Answer(status=404)
    results: list[SendResult] = []
    worker = desk.worker()
    at: datetime | None = READY
    while at is not None:
        results += desk.work(at)
        if len(results) == 1:
            assert (worker.problems(), worker.problem("ann")) == ((), None)  # it may be a moment's
        at = desk.look(hook).due_at
    assert results == [SendResult.FAILED] * len(WAITS) + [SendResult.GIVEN_UP]
    since = f"{READY:%Y-%m-%d %H:%M} UTC"
    assert worker.problems() == (f"A webhook has not been answered since {since}.",)
    problem = worker.problem("ann")
    assert problem is not None
    assert since in problem
    assert "HTTP status 404" in problem
    assert worker.problem("bob") is None
    items += queue(desk.store, 1, first=1)
    desk.site.routes[PATH] = Answer()
    much_later = NOW + timedelta(days=30)
    assert desk.work(much_later) == {}
    assert webhooks.resume(desk.store, hook.id, much_later)
    assert desk.work(much_later) == {SendResult.TOLD: 2}
    assert (worker.problems(), worker.problem("ann")) == ((), None)
    assert desk.queued() == items[:1] * 11 + items[1:]
    assert len({asked.headers["webhook-id"] for asked in desk.site.asked}) == 2


@pytest.mark.on("sqlite")
def test_what_fails_for_an_hour_is_a_problem_before_it_is_given_up(desk: Desk) -> None:
    desk.site.routes[PATH] = Answer(status=500)
    for owner_id in ("ann", "bob"):
        desk.hook(owner_id)
        queue(desk.store, 1, owner_id)
        desk.work()
    desk.clock.now = READY + timedelta(minutes=59)
    assert desk.worker().problems() == ()
    desk.clock.now = LATER + timedelta(minutes=60)
    (problem,) = desk.worker().problems()
    assert problem.startswith("2 webhooks have not been answered, the first since ")
    assert "ann" not in problem
    assert "It is tried on and off." in str(desk.worker().problem("bob"))


@pytest.mark.on("sqlite")
def test_a_receiver_that_is_gone_is_not_asked_again(desk: Desk) -> None:
    hook, _ = desk.hook()
    queue(desk.store, 1)
    desk.site.routes[PATH] = Answer(status=410)
    assert desk.work() == {SendResult.GIVEN_UP: 1}
    assert desk.look(hook).due_at is None
    assert desk.work(NOW + timedelta(days=30)) == {}
    assert len(desk.site.asked) == 1
    assert "410" in str(desk.worker().problem("ann"))


@pytest.mark.on("sqlite")
@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirects_are_not_followed(desk: Desk, status: int) -> None:
    hook, _ = desk.hook()
    queue(desk.store, 1)
    desk.site.routes[PATH] = Answer(status=status, headers={"Location": "/other"})
    assert desk.work() == {SendResult.FAILED: 1}
    assert desk.site.paths() == [f"POST {PATH}"]
    assert f"HTTP status {status}: redirects are not followed" in str(desk.look(hook).last_error)


@pytest.mark.on("sqlite")
def test_private_addresses_are_refused(desk: Desk) -> None:
    hook, _ = desk.hook()
    inside = Outbound(extra_ports=frozenset({int(desk.site.url.rpartition(":")[2])}))
    queue(desk.store, 1)
    assert desk.work(READY, inside) == {SendResult.FAILED: 1}
    assert desk.site.asked == []
    assert "loopback" in str(desk.look(hook).last_error)


@pytest.mark.on("sqlite")
def test_a_host_that_wants_a_pause_gets_it(desk: Desk) -> None:
    """Of two owners with one receiver, only the first one's message is a try."""
    mine, _ = desk.hook("ann")
    theirs, _ = desk.hook("bob")
    desk.site.routes[PATH] = Answer(status=429, headers={"Retry-After": "600"})
    queue(desk.store, 1, "ann")

    async def both() -> list[Counter[SendResult]]:
        worker = desk.worker()
        first = await worker.messages.run_once(READY)
        await asyncio.to_thread(queue, desk.store, 1, "bob")
        return [first, await worker.messages.run_once(LATER)]

    assert asyncio.run(both()) == [{SendResult.FAILED: 1}, {SendResult.NOT_SENT: 1}]
    assert len(desk.site.asked) == 1
    assert desk.look(mine).due_at is not None
    shown = desk.look(theirs)
    assert (shown.attempts, shown.failing_since is None) == (0, False)
    for hook in (mine, theirs):
        due = desk.look(hook).due_at
        assert due is not None
        assert due >= READY + timedelta(seconds=599)


@pytest.mark.on("sqlite")
def test_a_receiver_whose_webhook_is_resumed_is_asked_before_its_pause_is_over(desk: Desk) -> None:
    hook, _ = desk.hook()
    queue(desk.store, 1)
    desk.site.routes[PATH] = Answer(status=429, headers={"Retry-After": "600"})

    async def rounds() -> list[Counter[SendResult]]:
        worker = desk.worker()
        first = await worker.messages.run_once(READY)
        desk.site.routes[PATH] = Answer()
        assert await asyncio.to_thread(webhooks.resume, desk.store, hook.id, LATER)
        return [first, await worker.messages.run_once(LATER)]

    assert asyncio.run(rounds()) == [{SendResult.FAILED: 1}, {SendResult.TOLD: 1}]


@pytest.mark.on("sqlite")
def test_the_answer_counts_when_its_head_is_there(store: Store) -> None:
    """A body that never ends, or is not what it says, is nobody's business."""
    head = b"HTTP/1.1 202 Accepted\r\nContent-Encoding: gzip\r\nContent-Length: 1000\r\n\r\nno gzip"

    def behave(line: Any, _head: bytes) -> None:
        line.send(head)
        line.hang()

    with hostile(behave) as server:
        desk = Desk(store, WebServer(f"http://127.0.0.1:{server.port}", {}))
        desk.hook()
        queue(store, 1)
        assert desk.work() == {SendResult.TOLD: 1}


# --- leases, processes, crashes


def test_a_lease_keeps_others_away_and_a_lost_one_counts_for_nothing(desk: Desk) -> None:
    hook, _ = desk.hook()
    queue(desk.store, 1)

    def lease(at: datetime, name: str) -> Any:
        take = webhook_messages.lease_due
        return desk.store.writer.run((), lambda c: take(c, at, 8, LEASE_SECONDS, name)).result().messages

    (first,) = lease(READY, "one")
    assert lease(READY + timedelta(seconds=LEASE_SECONDS - 1), "two") == []
    (second,) = lease(READY + timedelta(seconds=LEASE_SECONDS), "three")
    assert (second.id, second.body, second.attempts) == (first.id, first.body, 0)
    note = webhook_messages.mark_sent
    assert not desk.store.writer.run((), lambda c: note(c, first, READY)).result()
    assert desk.look(hook).told_seq == 1
    assert desk.store.writer.run((), lambda c: note(c, second, READY)).result()
    assert desk.look(hook).told_seq == 2


def one_round(store: Store, at: str) -> Report:
    """Works like the service, in a process of its own."""
    worker = Webhooks(store, Outbound(allow_networks=LOOPBACK, per_host=8, spacing_seconds=0))
    results = asyncio.run(worker.messages.run_once(datetime.fromisoformat(at)))
    return [(result.value, str(count)) for result, count in results.items()]


def test_two_processes_tell_nothing_twice(desk: Desk, database_url: str) -> None:
    owners = [f"owner-{number}" for number in range(20)]
    expected = {}
    for owner_id in owners:
        desk.hook(owner_id)
        expected[owner_id] = queue(desk.store, 3, owner_id)
    reports = race(database_url, one_round, [(READY.isoformat(),)] * 2)
    assert {name for report in reports for name, _ in report} == {"told"}
    assert sum(int(count) for report in reports for _, count in report) == len(owners)
    told = {data["owner_id"]: [item["queue_id"] for item in data["queued"]] for data in desk.said()}
    assert told == expected
    assert len(desk.site.asked) == len(owners)


def work_and_die(url: str) -> None:
    """A round of the worker, in a process that the receiver kills."""
    store = Store.open(url, threshold=THRESHOLD)
    one_round(store, READY.isoformat())
    os._exit(0)


def test_what_a_killed_process_sent_is_sent_again_under_the_same_id(desk: Desk, database_url: str) -> None:
    hook, _ = desk.hook()
    items = queue(desk.store, 2)
    process = FORKED.Process(target=work_and_die, args=(database_url,))

    def kill(_asked: Asked) -> Answer:
        os.kill(int(process.pid or 0), signal.SIGKILL)
        return Answer()

    desk.site.routes[PATH] = kill
    process.start()
    process.join(120)
    assert process.exitcode == -signal.SIGKILL
    assert desk.look(hook).told_seq == 1  # nobody could note it
    desk.site.routes[PATH] = Answer()
    assert desk.work(READY + timedelta(seconds=LEASE_SECONDS - 1)) == {}
    assert desk.work(LATER + timedelta(seconds=LEASE_SECONDS)) == {SendResult.TOLD: 1}
    one, two = desk.site.asked
    assert (one.body, one.headers["webhook-id"]) == (two.body, two.headers["webhook-id"])
    assert desk.queued() == items * 2


def test_a_removed_webhook_is_silent(desk: Desk) -> None:
    hook, _ = desk.hook()
    gone, _ = desk.hook("bob")
    queue(desk.store, 1)

    def removes(_asked: Asked) -> Answer:
        assert webhooks.remove(desk.store, hook.id, actor="test", now=NOW)
        return Answer()

    desk.site.routes[PATH] = removes
    assert desk.work() == {SendResult.LOST: 1}  # it was under way
    assert webhooks.remove(desk.store, gone.id, actor="test", now=NOW)
    for owner_id in ("ann", "bob"):
        queue(desk.store, 2, owner_id, first=5)
    assert desk.work(NOW + timedelta(days=2)) == {}
    assert len(desk.site.asked) == 1
    assert [entry.action for entry in history(desk.store, "bob")][:2] == [
        Action.WEBHOOK_CREATED,
        Action.WEBHOOK_REMOVED,
    ]
    with desk.store.read() as connection:
        assert webhooks.listing(connection) == []
        assert log.verify(connection) == []


@pytest.mark.on("sqlite")
def test_the_worker_runs_until_it_is_cancelled_and_survives_errors(
    desk: Desk, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vouchgate.workers.runner.ERROR_SECONDS", 0.02)
    monkeypatch.setattr("vouchgate.workers.webhooks.POLL_SECONDS", 0.02)
    desk.hook()
    queue(desk.store, 1)
    desk.clock.now = READY
    job, reports = desk.worker().messages, list[Any]()
    failures = iter([StorageError("away for a moment")])

    def sometimes(connection: Connection) -> datetime | None:
        for error in failures:
            raise error
        return job.next_due(connection)

    async def run() -> None:
        task = asyncio.create_task(replace(job, next_due=sometimes).run(reports.append))
        for rounds in (1, 2):
            async with asyncio.timeout(30):
                while len(reports) < rounds:
                    await asyncio.sleep(0.01)
            if rounds == 1:
                await asyncio.to_thread(queue, desk.store, 1, now=NOW, first=1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert reports == [{SendResult.TOLD: 1}] * 2
    assert len(desk.site.asked) == 2
    assert "away for a moment" in caplog.text


@pytest.mark.on("sqlite")
def test_offline_nothing_is_sent(desk: Desk) -> None:
    hook, _ = desk.hook()
    queue(desk.store, 1)
    worker = Webhooks(desk.store, None)
    assert worker.jobs == ()
    assert worker.problems() == ("Webhooks are told nothing, because the service is offline.",)
    with desk.store.read() as connection:
        to = webhooks.endpoint(connection, hook.id)
    assert to is not None
    assert isinstance(asyncio.run(worker.test(to)), FetchFailed)
    assert desk.site.asked == []
    webhooks.remove(desk.store, hook.id, actor="test", now=NOW)
    assert worker.problems() == ()
